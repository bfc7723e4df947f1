//! Files that a command writes, which are there whole or not at all, and never in place of another.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use exact2048_storage::{StorageError, create_file, require_creatable};
use exact2048_text::with_causes;

use crate::Failure;

/// Requires that a file can be made at a place: that nothing is there, and that its folder is.
pub fn require_free(place: &Path, option: &str) -> Result<()> {
    if place.symlink_metadata().is_ok() {
        let message =
            format!("{} is there already: name another file with {option}, or remove it", place.display());
        return Err(Failure::usage(message).into());
    }
    let folder = folder_of(place);
    if place.file_name().is_none() || !folder.is_dir() {
        let message = format!("{}: there is no folder {} ({option})", place.display(), folder.display());
        return Err(Failure::usage(message).into());
    }
    // A file that cannot be written ends the command before hours of work.
    require_creatable(place).map_err(|error| failed(place, &error))
}

/// Requires that a folder can be made, or is empty; makes it.
pub fn require_empty_folder(place: &Path, option: &str) -> Result<()> {
    let failed =
        |error: io::Error| Failure::failed(format!("{} cannot be written: {error}", place.display()));
    fs::create_dir_all(place).map_err(failed)?;
    let mut entries = fs::read_dir(place).map_err(failed)?;
    match entries.next() {
        None => require_free(&place.join("a.svg"), option),
        Some(entry) => {
            let held =
                entry.map_or_else(|error| error.to_string(), |entry| entry.file_name().display().to_string());
            let message =
                format!("{} holds {held}: expected an empty folder, or none ({option})", place.display());
            Err(Failure::usage(message).into())
        }
    }
}

/// Writes a file where none is.
pub fn write_whole(place: &Path, content: &str) -> Result<()> {
    let written = create_file(place, |file| file.write_all(content.as_bytes()));
    written.map_err(|error| failed(place, &error))
}

fn folder_of(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(place: &Path, error: &StorageError) -> anyhow::Error {
    Failure::failed(format!("{} cannot be written: {}", place.display(), with_causes(error))).into()
}
