//! The folder of an export: which file holds which layers, and files that are there whole or not at all.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use exact2048_files::open;
use exact2048_game::Layer;

/// The file that says, in a line, what the folder holds an export of, so that files of two runs are never mixed.
/// Programs that read the folder as one table skip files whose names begin with `_`.
const DESCRIPTION: &str = "_export.txt";

/// Consecutive layers that one file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileRange {
    pub first: Layer,
    pub last: Layer,
    /// Rows of all layers before the first, in whatever files.
    pub rows_before: u64,
    pub rows: u64,
}

/// Cuts layers into files: each gets layers until it has `rows_each` rows or more.
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

/// Why a folder cannot be exported to.
#[derive(Debug)]
pub(crate) enum FolderError {
    /// It holds something else.
    Occupied(String),
    /// It cannot be read or written.
    Io(PathBuf, io::Error),
}

/// The folder of an export.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Its description, locked where the file system can: two processes would write to the same unfinished file.
    _lock: Option<File>,
}

impl Folder {
    /// Makes the folder, or takes one that holds the beginning of the same export.
    pub fn open(path: &Path, description: &str) -> Result<Self, FolderError> {
        let folder = Self { path: path.to_path_buf(), _lock: None };
        let io = |error| FolderError::Io(path.to_path_buf(), error);
        if path.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::NotADirectory, "expected a folder, found a file")));
        }
        fs::create_dir_all(path).map_err(io)?;
        let held = path.join(DESCRIPTION);
        match open(&held).and_then(io::read_to_string) {
            Ok(text) if text.trim_end() == description => return folder.locked(),
            Ok(text) => return Err(FolderError::Occupied(format!("an export of: {}", text.trim_end()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(FolderError::Io(held, error)),
        }
        let unfinished = folder.unfinished(DESCRIPTION);
        for entry in fs::read_dir(path).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            // This is left where an export ended while it wrote its description.
            if Some(name.as_os_str()) != unfinished.file_name() {
                return Err(FolderError::Occupied(format!("{}, and no {DESCRIPTION}", name.display())));
            }
        }
        fs::write(&unfinished, format!("{description}\n")).map_err(io)?;
        // Else the name could outlive a loss of power without what it holds.
        File::open(&unfinished).and_then(|file| file.sync_all()).map_err(io)?;
        fs::rename(&unfinished, &held).map_err(io)?;
        folder.locked()
    }

    /// The folder, for one process at a time.
    fn locked(mut self) -> Result<Self, FolderError> {
        let held = self.path.join(DESCRIPTION);
        let file = open(&held).map_err(|error| FolderError::Io(held, error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(FolderError::Occupied("an export that another process is at".to_owned()));
            }
            Ok(()) | Err(TryLockError::Error(_)) => self._lock = Some(file),
        }
        Ok(self)
    }

    /// Leaves a folder without a table as if it had not been taken, so that it can be used for another export.
    pub fn leave(&self) {
        let names = fs::read_dir(&self.path)
            .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect());
        if names.is_ok_and(|names: Vec<_>| names == [DESCRIPTION]) {
            // It would only be in the way.
            let _ = fs::remove_file(self.path.join(DESCRIPTION));
        }
    }

    /// The place of a finished file.
    pub fn place(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The place of a file while it is written.
    pub fn unfinished(&self, name: &str) -> PathBuf {
        self.path.join(format!("_{name}.part"))
    }

    /// Gives a file that is written its name.
    pub fn finish(&self, name: &str, file: &File) -> io::Result<()> {
        file.sync_all()?;
        fs::rename(self.unfinished(name), self.place(name))?;
        File::open(&self.path)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_one_process_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = Folder::open(place.path(), "all").unwrap();
        let second = Folder::open(place.path(), "all").unwrap_err();
        assert!(
            matches!(&second, FolderError::Occupied(held) if held.contains("another process")),
            "{second:?}"
        );
        drop(first);
        Folder::open(place.path(), "all").unwrap();
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
