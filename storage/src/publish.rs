//! Publication of a file: write a temporary file, sync it, rename or link it, sync the folder.
//!
//! This order makes a crash harmless; `docs/dev/format.md` covers each case. Each step is one function. All publishing
//! code calls the steps in this order, with a crash point between consecutive steps.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use exact2048_files::open;

use crate::StorageError;
use crate::allowance::file_cost;
use crate::error::full_folder;
use crate::ids::random_bits;
use crate::names::MANIFEST;

/// Prefix of the name of every temporary file.
pub(crate) const TEMP_PREFIX: &str = ".tmp-";

/// Time without changes after which an unlocked temporary file counts as abandoned.
pub(crate) const ABANDONED: Duration = Duration::from_secs(10 * 60);

/// Returns the name under which a temporary file was to be published, or `None` for other files.
///
/// The whole name must match the pattern, because users' files may have names with the same prefix.
pub fn temp_target(name: &str) -> Option<&str> {
    let (target, drawn) = name.strip_prefix(TEMP_PREFIX)?.rsplit_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if drawn.len() == 32 && is_hex(drawn) {
        return Some(target);
    }
    // Versions up to 0.1.0 ended names with two numbers.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    target
        .rsplit_once('-')
        .filter(|(_, process)| is_number(process) && is_number(drawn))
        .map(|(target, _)| target)
}

/// Removes abandoned temporary files if `is_own` accepts their target names.
///
/// Safe in folders that other programs also use. Files that cannot be removed stay and only take up space.
pub fn remove_abandoned(folder: &Path, is_own: impl Fn(&str) -> bool) {
    let entries = list(folder).unwrap_or_default();
    let own = entries.iter().filter(|entry| entry.becomes().is_some_and(&is_own));
    own.filter(|entry| is_abandoned(&entry.path)).for_each(|entry| drop(entry.remove()));
}

/// Returns whether a temporary file has lost its writer. Always `false` on a file system without locks.
fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = open(path) else { return false };
    let changed = file.metadata().and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_some_and(|age| age > ABANDONED) && file.try_lock().is_ok()
}

/// An unpublished file. Dropping it removes its temporary name.
#[derive(Debug)]
pub(crate) struct TempFile {
    file: File,
    path: PathBuf,
    /// True while this value must still remove `path`.
    named: bool,
}

impl TempFile {
    /// Creates an empty file in `folder`, to be published there as `name`.
    ///
    /// The temporary name is random because process ids are not unique across containers and over time. The file stays
    /// locked while it is open, which distinguishes it from an abandoned file.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self, StorageError> {
        let path = folder.join(format!("{TEMP_PREFIX}{name}-{:032x}", random_bits()));
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|e| StorageError::io("create", &path, e))?;
        // If the file system has no locks, abandoned files stay.
        let _ = file.try_lock();
        Ok(Self { file, path, named: true })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Writes `bytes` at the current position.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.file.write_all(bytes).map_err(|e| StorageError::write(&self.path, bytes.len(), e))
    }

    /// Flushes the contents to the disk.
    ///
    /// Callers must not retry: after a failure the data may be lost even if a second attempt succeeds.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_all().map_err(|e| StorageError::io("sync", &self.path, e))
    }

    /// Renames the file to `name`. Replaces a file or an empty folder of that name.
    pub(crate) fn rename_to(mut self, name: &Path) -> Result<(), StorageError> {
        let renamed = match fs::rename(&self.path, name) {
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
                remove_empty_folder(name)?;
                fs::rename(&self.path, name)
            }
            renamed => renamed,
        };
        renamed.map_err(|e| StorageError::io("replace", name, e))?;
        self.named = false;
        Ok(())
    }

    /// Gives the file a second name, or fails with [`StorageError::Conflict`] if the name exists.
    pub(crate) fn link_to(&self, name: &Path) -> Result<(), StorageError> {
        fs::hard_link(&self.path, name).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => StorageError::Conflict { file: name.into() },
            // The process that created the file of that name may have removed this temporary file as a leftover.
            io::ErrorKind::NotFound if name.exists() => StorageError::Conflict { file: name.into() },
            _ => StorageError::io("create", name, e),
        })
    }

    /// Removes the name and returns the file.
    pub(crate) fn into_unnamed(mut self) -> Result<File, StorageError> {
        fs::remove_file(&self.path).map_err(|e| StorageError::io("remove", &self.path, e))?;
        self.named = false;
        self.file.try_clone().map_err(|e| StorageError::io("open", &self.path, e))
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.named {
            // A failure is harmless because the next writer of the run removes leftovers.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a file and atomically replaces `path` with it.
///
/// Creates a missing folder only inside a run, so a moved or removed run is not recreated. Data is synced only if
/// `write` does so; use this function only for files that can be recreated. Other processes may replace the same file
/// at the same time. Removes leftovers of processes that ended while writing this file.
///
/// # Errors
///
/// An error of writing or renaming the file. The previous file then stays in place.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StorageError> {
    let (folder, name) = (parent_of(path), path.file_name().unwrap_or_default().to_string_lossy());
    if parent_of(folder).join(MANIFEST).is_file() {
        match fs::create_dir(folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(StorageError::io("create the folder", folder, e));
            }
            _ => {}
        }
    }
    remove_abandoned(folder, |other| other == name);
    let mut temp = TempFile::create(folder, &name)?;
    write(temp.file()).map_err(|e| StorageError::io("write", temp.path(), e))?;
    temp.rename_to(path)
}

/// Atomically creates a file and flushes it to the disk.
///
/// # Errors
///
/// An I/O error, for example if the name exists.
pub fn create_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), StorageError> {
    let (folder, name) = (parent_of(path), path.file_name().unwrap_or_default().to_string_lossy());
    remove_abandoned(folder, |other| other == name);
    let mut temp = TempFile::create(folder, &name)?;
    write(temp.file()).map_err(|e| StorageError::io("write", temp.path(), e))?;
    temp.sync()?;
    // Unlike a rename, a link refuses a file that another process has created meanwhile.
    temp.link_to(path).map_err(|error| match error {
        StorageError::Conflict { .. } => {
            StorageError::io("create", path, io::ErrorKind::AlreadyExists.into())
        }
        error => error,
    })
}

/// Checks that the file `path` can be created, by creating a temporary file in its folder.
///
/// # Errors
///
/// An I/O error.
pub fn require_creatable(path: &Path) -> Result<(), StorageError> {
    TempFile::create(parent_of(path), &path.file_name().unwrap_or_default().to_string_lossy()).map(drop)
}

/// Removes an empty folder at the path of a file. A non-empty folder stays because its contents may belong to the
/// user.
fn remove_empty_folder(folder: &Path) -> Result<(), StorageError> {
    fs::remove_dir(folder).map_err(|e| {
        let is_full = e.kind() == io::ErrorKind::DirectoryNotEmpty;
        StorageError::io("replace", folder, if is_full { full_folder() } else { e })
    })
}

/// Flushes the names in `folder` to the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StorageError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| StorageError::io("sync the folder", folder, e))
}

/// Creates `folder` and its missing parents, and flushes each to the disk. The folder may exist.
pub(crate) fn create_folder(folder: &Path) -> Result<(), StorageError> {
    if folder.is_dir() {
        return Ok(());
    }
    create_folder(parent_of(folder))?;
    create_in_folder(folder)
}

/// Creates `folder` in an existing folder and flushes it to the disk. The folder may exist.
pub(crate) fn create_in_folder(folder: &Path) -> Result<(), StorageError> {
    if folder.is_dir() {
        return Ok(());
    }
    match fs::create_dir(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            Err(StorageError::io("create the folder", folder, e))
        }
        _ => sync_folder(parent_of(folder)),
    }
}

/// Returns the folder that contains `path`.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// One entry of a folder.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl Listed {
    pub(crate) fn is_temp(&self) -> bool {
        self.becomes().is_some()
    }

    /// Returns the name under which a temporary file was to be published, or `None` for other files.
    pub(crate) fn becomes(&self) -> Option<&str> {
        temp_target(&self.name)
    }

    /// Disk space of the file as in [`file_cost`]; 0 if the file was deleted meanwhile.
    pub(crate) fn cost(&self) -> Result<u64, StorageError> {
        let is_there = fs::symlink_metadata(&self.path).is_ok();
        Ok(if is_there { file_cost(self.file_bytes()?) } else { 0 })
    }

    /// Length in bytes; 0 for a folder, or if the file was deleted meanwhile.
    pub(crate) fn file_bytes(&self) -> Result<u64, StorageError> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => Ok(if metadata.is_file() { metadata.len() } else { 0 }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(StorageError::read(&self.path, e)),
        }
    }

    pub(crate) fn remove(&self) -> Result<(), StorageError> {
        match fs::remove_file(&self.path) {
            // Another process has already removed it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => remove_empty_folder(&self.path),
            removed => removed.map_err(|e| StorageError::io("remove", &self.path, e)),
        }
    }
}

/// Lists the entries of `folder`, sorted by name. Names that are not UTF-8 contain replacement characters.
pub(crate) fn list(folder: &Path) -> Result<Vec<Listed>, StorageError> {
    let read = |e| StorageError::read(folder, e);
    let mut entries = fs::read_dir(folder)
        .map_err(read)?
        .map(|entry| {
            entry.map(|e| Listed { name: e.file_name().to_string_lossy().into_owned(), path: e.path() })
        })
        .collect::<io::Result<Vec<_>>>()
        .map_err(read)?;
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Lists as [`list`] does, but returns nothing for a missing folder, because copies of a run may lack empty folders.
pub(crate) fn list_if_there(folder: &Path) -> Result<Vec<Listed>, StorageError> {
    match fs::symlink_metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => list(folder),
    }
}

/// Removes leftovers of interrupted processes from `folder`. The caller holds the run's lock, so no other process
/// writes there.
pub(crate) fn remove_temps(folder: &Path) -> Result<(), StorageError> {
    list(folder)?.iter().filter(|entry| entry.is_temp()).try_for_each(Listed::remove)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_temporary_names_are_recognized() {
        let drawn = format!("{:032x}", 1);
        for target in ["manifest.json", "reach-000004-000120.shard", "a-b"] {
            assert_eq!(temp_target(&format!(".tmp-{target}-{drawn}")), Some(target));
            assert_eq!(
                temp_target(&format!(".tmp-{target}-77-0")),
                Some(target),
                "as version 0.1.0 named it"
            );
        }
        let short = &drawn[1..];
        for other in
            [".tmp-a", ".tmp-a-1", ".tmp-notes-b-1", ".tmp-a-1-", "a-1-2", &format!(".tmp-a-{short}")]
        {
            assert_eq!(temp_target(other), None, "{other}");
        }
    }

    #[test]
    fn an_existing_file_is_never_replaced_by_create_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page.html");
        require_creatable(&path).unwrap();
        create_file(&path, |file| file.write_all(b"first")).unwrap();
        let refused = create_file(&path, |file| file.write_all(b"second")).unwrap_err();
        assert!(!matches!(refused, StorageError::Conflict { .. }), "only records conflict: {refused}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(list(place.path()).unwrap().len(), 1, "no temporary file is left");
    }
}
