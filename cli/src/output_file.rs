//! Output files of commands. They are written whole or not at all, and never replace a file.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use exact2048_storage::{StorageError, create_file, require_creatable};
use exact2048_text::with_causes;

use crate::Failure;

/// Requires that a file can be created. Its path must be free, and its folder must exist.
pub fn require_free(place: &Path, option: &str) -> Result<()> {
    if place.symlink_metadata().is_ok() {
        let message =
            format!("{} exists already; give another file with {option}, or remove it", place.display());
        return Err(Failure::usage(message).into());
    }
    let folder = folder_of(place);
    if place.file_name().is_none() || !folder.is_dir() {
        let message =
            format!("{}: the folder {} does not exist ({option})", place.display(), folder.display());
        return Err(Failure::usage(message).into());
    }
    // Refuse an unwritable file before hours of work.
    require_creatable(place).map_err(|error| failed(place, &error))
}

/// Creates a folder if needed, and requires that it is empty.
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
                format!("expected an empty or new folder, found {held} in {} ({option})", place.display());
            Err(Failure::usage(message).into())
        }
    }
}

/// Writes a new file.
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
