//! How a file comes to have its name: written beside it, synced, renamed or linked, the folder synced.
//!
//! The order of these steps is what makes a crash harmless; `docs/dev/format.md` goes through it case by case.
//! The steps are single functions, and all code that publishes calls them in that order with a crash point
//! between any two.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use exact2048_files::open;

use crate::StorageError;
use crate::allowance::file_cost;
use crate::ids::random_bits;
use crate::run::MANIFEST;

/// How the name of every temporary file begins.
pub(crate) const TEMP_PREFIX: &str = ".tmp-";

/// A temporary file that no process has locked, and that has not grown for this long, has lost its writer.
pub(crate) const ABANDONED: Duration = Duration::from_secs(10 * 60);

/// The name that a temporary file was to be published as; `None` for other files. Users may have files whose names begin
/// like these, so that all of the form is required.
pub fn temp_target(name: &str) -> Option<&str> {
    let (target, drawn) = name.strip_prefix(TEMP_PREFIX)?.rsplit_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if drawn.len() == 32 && is_hex(drawn) {
        return Some(target);
    }
    // Version 0.1.0 and earlier ones ended names with two numbers.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    target
        .rsplit_once('-')
        .filter(|(_, process)| is_number(process) && is_number(drawn))
        .map(|(target, _)| target)
}

/// Removes temporary files that have lost their writers, of those that were to get names that are the caller's own. For
/// folders that other programs may use. What cannot be removed stays: it only takes room.
pub fn remove_abandoned(folder: &Path, is_own: impl Fn(&str) -> bool) {
    let entries = list(folder).unwrap_or_default();
    let own = entries.iter().filter(|entry| entry.becomes().is_some_and(&is_own));
    own.filter(|entry| is_abandoned(&entry.path)).for_each(|entry| drop(entry.remove()));
}

/// Whether a temporary file has lost its writer. Where there are no locks, none has.
fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = open(path) else { return false };
    let changed = file.metadata().and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_some_and(|age| age > ABANDONED) && file.try_lock().is_ok()
}

/// A file that is not published yet. Dropping it removes its temporary name.
#[derive(Debug)]
pub(crate) struct TempFile {
    file: File,
    path: PathBuf,
    /// Whether `path` is still ours to remove.
    named: bool,
}

impl TempFile {
    /// Creates an empty file in `folder`, to be published there as `name`.
    ///
    /// Its temporary name is drawn by chance: process ids are the same in every container, and a name could be that of
    /// a file that an earlier process left. It is locked for as long as it is open, which tells it from such a file.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self, StorageError> {
        let path = folder.join(format!("{TEMP_PREFIX}{name}-{:032x}", random_bits()));
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|e| StorageError::io("create", &path, e))?;
        // Where there are no locks, what is left over stays.
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

    /// Brings the contents to the disk. After a failure they may be lost even if a second attempt succeeds, so
    /// there must be none.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_all().map_err(|e| StorageError::io("sync", &self.path, e))
    }

    /// Gives the file its name in place of whatever had it, but for a directory that holds something.
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

    /// Gives the file a second name, unless something has that name: then [`StorageError::Conflict`].
    pub(crate) fn link_to(&self, name: &Path) -> Result<(), StorageError> {
        fs::hard_link(&self.path, name).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => StorageError::Conflict { file: name.into() },
            // The process that took that name may have removed this file as one that an earlier process left.
            io::ErrorKind::NotFound if name.exists() => StorageError::Conflict { file: name.into() },
            _ => StorageError::io("create", name, e),
        })
    }

    /// Takes the name away and returns the file.
    pub(crate) fn into_unnamed(mut self) -> Result<File, StorageError> {
        fs::remove_file(&self.path).map_err(|e| StorageError::io("remove", &self.path, e))?;
        self.named = false;
        self.file.try_clone().map_err(|e| StorageError::io("open", &self.path, e))
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.named {
            // Harmless when it fails: the next writer of the run removes what is left.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a file and puts it in the place of what has its name, in one step. The file's folder is made if it is missing
/// and would lie within a run: where that was moved or removed, nothing is made in its place. Nothing is synced but what
/// `write` syncs: this is for what can be made again. Other processes may do the same. What a process left that
/// ended while it wrote the same file is removed.
///
/// # Errors
///
/// What keeps the file from being written or renamed. Then what had its name before still has it.
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

/// Writes a file where none is, all of it or nothing, and brings it to the disk.
///
/// # Errors
///
/// A failure of the system, or a file of this name.
pub fn create_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), StorageError> {
    let (folder, name) = (parent_of(path), path.file_name().unwrap_or_default().to_string_lossy());
    remove_abandoned(folder, |other| other == name);
    let mut temp = TempFile::create(folder, &name)?;
    write(temp.file()).map_err(|e| StorageError::io("write", temp.path(), e))?;
    temp.sync()?;
    // Unlike a rename it refuses a file that came in between.
    temp.link_to(path).map_err(|error| match error {
        StorageError::Conflict { .. } => {
            StorageError::io("create", path, io::ErrorKind::AlreadyExists.into())
        }
        error => error,
    })
}

/// Requires that a file of a name can be made, by making one beside it for a moment.
///
/// # Errors
///
/// A failure of the system.
pub fn require_creatable(path: &Path) -> Result<(), StorageError> {
    TempFile::create(parent_of(path), &path.file_name().unwrap_or_default().to_string_lossy()).map(drop)
}

/// Removes a folder that has the name of a file, unless it holds something: that may be somebody's.
fn remove_empty_folder(folder: &Path) -> Result<(), StorageError> {
    fs::remove_dir(folder).map_err(|e| {
        let is_full = e.kind() == io::ErrorKind::DirectoryNotEmpty;
        StorageError::io("replace", folder, if is_full { full_folder() } else { e })
    })
}

/// A folder has the name of a file and holds something, so that it cannot be replaced.
pub(crate) fn full_folder() -> io::Error {
    let advice = "Move it away, and try again";
    io::Error::other(format!("expected a file, found a directory that is not empty. {advice}"))
}

/// Brings the names in `folder` to the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StorageError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| StorageError::io("sync the folder", folder, e))
}

/// Creates `folder` and those above it as needed, each brought to the disk. It may exist.
pub(crate) fn create_folder(folder: &Path) -> Result<(), StorageError> {
    if folder.is_dir() {
        return Ok(());
    }
    create_folder(parent_of(folder))?;
    create_in_folder(folder)
}

/// Creates `folder` in a folder that is there, and brings it to the disk. It may exist.
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

/// The folder that holds the name of `path`.
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

    /// The name that a temporary file was to be published as; `None` for other files.
    pub(crate) fn becomes(&self) -> Option<&str> {
        temp_target(&self.name)
    }

    /// Bytes that it takes of the disk as [`files`](crate::TypedRun) count them; 0 if it has vanished in the meantime.
    pub(crate) fn cost(&self) -> Result<u64, StorageError> {
        let is_there = fs::symlink_metadata(&self.path).is_ok();
        Ok(if is_there { file_cost(self.file_bytes()?) } else { 0 })
    }

    /// Length in bytes, 0 if it has vanished in the meantime or is a folder.
    pub(crate) fn file_bytes(&self) -> Result<u64, StorageError> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => Ok(if metadata.is_file() { metadata.len() } else { 0 }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(StorageError::read(&self.path, e)),
        }
    }

    pub(crate) fn remove(&self) -> Result<(), StorageError> {
        match fs::remove_file(&self.path) {
            // Another process was faster.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => remove_empty_folder(&self.path),
            removed => removed.map_err(|e| StorageError::io("remove", &self.path, e)),
        }
    }
}

/// The entries of `folder`, sorted by name. A name that is no text is shown with replacement characters.
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

/// As [`list`], but empty where there is no such folder: copies of a run may lack empty folders.
pub(crate) fn list_if_there(folder: &Path) -> Result<Vec<Listed>, StorageError> {
    match fs::symlink_metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => list(folder),
    }
}

/// Removes what processes that ended early left in `folder`, which only the holder of the lock writes to.
pub(crate) fn remove_temps(folder: &Path) -> Result<(), StorageError> {
    list(folder)?.iter().filter(|entry| entry.is_temp()).try_for_each(Listed::remove)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_temporary_names_are_ours() {
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
    fn a_file_that_is_there_is_never_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("page.html");
        require_creatable(&path).unwrap();
        create_file(&path, |file| file.write_all(b"first")).unwrap();
        let refused = create_file(&path, |file| file.write_all(b"second")).unwrap_err();
        assert!(!matches!(refused, StorageError::Conflict { .. }), "it is no record: {refused}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(list(place.path()).unwrap().len(), 1, "nothing temporary is left");
    }
}
