//! The folder of an export. Divides layers into files, and lets each file appear only when complete.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use exact2048_files::{OFlags, open_with};
use exact2048_game::Layer;

/// Name of the file that describes the export in one line. The description prevents an export from mixing files of two
/// runs.
///
/// The exporter holds the lock of this file. If the file is empty or its line is not terminated, the export has no files
/// yet.
const DESCRIPTION: &str = "_export.txt";

/// Name of the folder of finished files. It holds no other files, because some programs read all files of a folder as one
/// table.
const DATA: &str = "data";

/// Suffix of the names of unfinished files.
const UNFINISHED: &str = ".part";

/// Consecutive layers that one file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileRange {
    pub first: Layer,
    pub last: Layer,
    /// Number of rows in all layers before `first`, over all files.
    pub rows_before: u64,
    pub rows: u64,
}

/// Divides layers into files. Each file gets layers until it has at least `rows_each` rows.
pub(crate) fn cut(layers: impl Iterator<Item = (Layer, u64)>, rows_each: u64) -> Vec<FileRange> {
    let mut files: Vec<FileRange> = Vec::new();
    let mut rows_before = 0;
    for (layer, rows) in layers {
        match files.last_mut().filter(|file| file.rows < rows_each) {
            Some(file) => {
                file.last = layer;
                file.rows += rows;
            }
            None => files.push(FileRange { first: layer, last: layer, rows_before, rows }),
        }
        rows_before += rows;
    }
    files
}

/// Reason why a folder is not usable for an export.
#[derive(Debug)]
pub(crate) enum FolderError {
    /// The folder has other contents.
    Occupied(String),
    /// Another process exports to the folder.
    Busy,
    /// A file of the folder, or the folder, cannot be read or written.
    Io(PathBuf, io::Error),
}

/// The folder of an export.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The description file, locked if the file system supports locks. Without the lock, two processes could write to the
    /// same unfinished file.
    description: File,
}

impl Folder {
    /// Creates the folder, or opens one that holds a part of the same export.
    pub fn open(path: &Path, description: &str) -> Result<Self, FolderError> {
        let io = |error| FolderError::Io(path.to_path_buf(), error);
        if path.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::NotADirectory, "expected a folder, found a file")));
        }
        fs::create_dir_all(path).map_err(io)?;
        let place = path.join(DESCRIPTION);
        // A refused folder stays unchanged. Check again that the description is missing, because another process may
        // create the description at the same moment.
        if !place.exists()
            && let Err(error) = check_free(path)
            && !place.exists()
        {
            return Err(error);
        }
        let in_description = |error| FolderError::Io(place.clone(), error);
        // Does not truncate the file, because it may describe another export.
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_with(&mut options, OFlags::NOFOLLOW, &place);
        let mut file = file.map_err(in_description)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(FolderError::Busy),
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let text = io::read_to_string(&file).map_err(in_description)?;
        match text.strip_suffix('\n') {
            Some(held) if held == description => {}
            Some(held) => return Err(FolderError::Occupied(format!("an export of {held}"))),
            // Overwrite the file only if its text is the beginning of this export's line, because a user may have a
            // file of this name.
            None if !description.starts_with(&text) => {
                return Err(FolderError::Occupied(format!("{DESCRIPTION} with other text")));
            }
            None => {
                check_free(path)?;
                io::Seek::rewind(&mut file).map_err(in_description)?;
                file.set_len(0).map_err(in_description)?;
                writeln!(file, "{description}").map_err(in_description)?;
            }
        }
        let data = path.join(DATA);
        fs::create_dir_all(&data).map_err(|error| FolderError::Io(data, error))?;
        // Without these syncs, a table could survive a power failure without its description.
        file.sync_all().map_err(in_description)?;
        File::open(path).and_then(|folder| folder.sync_all()).map_err(io)?;
        Ok(Self { path: path.to_path_buf(), description: file })
    }

    /// Releases the folder for another export if it has no finished files.
    pub fn leave(&self) {
        // `remove_dir` removes only an empty folder.
        if fs::remove_dir(self.path.join(DATA)).is_ok() {
            // If the truncation fails, the folder still belongs to this export. The file is not deleted, because the
            // exporter holds its lock.
            let _ = self.description.set_len(0);
        }
    }

    /// The place of a finished file.
    pub fn place(&self, name: &str) -> PathBuf {
        self.path.join(DATA).join(name)
    }

    /// The place of a file while it is written.
    pub fn unfinished(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{UNFINISHED}"))
    }

    /// Syncs written files and renames them to their final names.
    pub fn finish(&self, names: &[String], files: &[File]) -> io::Result<()> {
        files.iter().try_for_each(File::sync_all)?;
        names.iter().try_for_each(|name| fs::rename(self.unfinished(name), self.place(name)))?;
        File::open(self.path.join(DATA))?.sync_all()
    }
}

/// Creates a file of an export, or truncates a file that an interrupted export left.
///
/// Refuses a symbolic link, because it may point to a file of the user.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    open_with(File::options().write(true).create(true).truncate(true), OFlags::NOFOLLOW, path)
}

/// Checks that a folder is empty, or holds only an export without files.
fn check_free(path: &Path) -> Result<(), FolderError> {
    let io = |error| FolderError::Io(path.to_path_buf(), error);
    for entry in fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        // An export that ended before its first file leaves an empty data folder.
        let is_ours = name == DESCRIPTION
            || name == DATA && fs::read_dir(entry.path()).is_ok_and(|mut files| files.next().is_none());
        if !is_ours {
            return Err(FolderError::Occupied(format!("{} without {DESCRIPTION}", name.display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_uses_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let first = Folder::open(place.path(), "all").unwrap();
        let second = Folder::open(place.path(), "all").unwrap_err();
        assert!(matches!(second, FolderError::Busy), "{second:?}");
        drop(first);
        Folder::open(place.path(), "all").unwrap();
    }

    /// All threads begin before the folder exists.
    #[test]
    fn concurrent_exports_give_the_folder_to_one() {
        for round in 0..20 {
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("folder");
            let barrier = std::sync::Barrier::new(4);
            let open = || {
                barrier.wait();
                Folder::open(&folder, "all")
            };
            let opened: Vec<_> = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(open));
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let (had, refused): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
            assert_eq!(had.len(), 1, "round {round}: {refused:?}");
            assert!(refused.iter().all(|error| matches!(error, Err(FolderError::Busy))), "{refused:?}");
        }
    }

    #[test]
    fn a_folder_that_was_left_is_free_for_another_export() {
        let place = tempfile::tempdir().unwrap();
        Folder::open(place.path(), "all").unwrap().leave();
        Folder::open(place.path(), "some").unwrap();
        // A crash truncated this description, so the folder is still free.
        fs::write(place.path().join(DESCRIPTION), "ot").unwrap();
        let folder = Folder::open(place.path(), "other").unwrap();
        fs::write(folder.place("table"), "rows").unwrap();
        folder.leave();
        drop(folder);
        let error = Folder::open(place.path(), "all").unwrap_err();
        assert!(matches!(&error, FolderError::Occupied(held) if held.ends_with(" of other")), "{error:?}");
    }

    #[test]
    fn files_of_the_user_are_never_written_to() {
        let place = tempfile::tempdir().unwrap();
        let notes = place.path().join("notes");
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let own = folder.join(DESCRIPTION);
        fs::write(&own, "my notes").unwrap();
        let error = Folder::open(&folder, "all").unwrap_err();
        assert!(matches!(&error, FolderError::Occupied(held) if held.contains(DESCRIPTION)), "{error:?}");
        assert_eq!(fs::read_to_string(&own).unwrap(), "my notes");
        fs::remove_file(&own).unwrap();
        fs::write(&notes, "").unwrap();
        std::os::unix::fs::symlink(&notes, &own).unwrap();
        assert!(matches!(Folder::open(&folder, "all").unwrap_err(), FolderError::Io(..)));
        fs::remove_file(&own).unwrap();
        let folder = Folder::open(&folder, "all").unwrap();
        fs::write(&notes, "precious").unwrap();
        std::os::unix::fs::symlink(&notes, folder.unfinished("table")).unwrap();
        create_own(&folder.unfinished("table")).unwrap_err();
        assert_eq!(fs::read_to_string(&notes).unwrap(), "precious");
    }

    #[test]
    fn layers_are_cut_by_their_rows() {
        let layers =
            [3, 5, 4, 0, 20, 1].into_iter().zip((4..).step_by(2)).map(|(rows, sum)| (Layer(sum), rows));
        let files = cut(layers, 8);
        let ranges: Vec<_> = files.iter().map(|f| (f.first.0, f.last.0, f.rows_before, f.rows)).collect();
        assert_eq!(ranges, [(4, 6, 0, 8), (8, 12, 8, 24), (14, 14, 32, 1)]);
    }
}
