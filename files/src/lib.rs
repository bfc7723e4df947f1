//! Opening files that users name. Paths that are not files are refused, and a FIFO does not block the program.
#![forbid(unsafe_code)]

use std::fmt;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

pub use rustix::fs::OFlags;
use rustix::io::Errno;

/// Name of a symbolic link that the system cannot follow.
const LINK_LOOP: &str = "a symbolic link that leads to itself";

/// Error for a path that is not a file, with a name for the object at that path.
#[derive(Debug)]
struct NotAFile(&'static str);

impl fmt::Display for NotAFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a file, found {}", self.0)
    }
}

impl std::error::Error for NotAFile {}

/// Opens a file for reading. A FIFO without a writer does not block the caller.
///
/// # Errors
///
/// `InvalidData` for a FIFO or a device, `IsADirectory` for a directory, and system errors.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(File::options().read(true), OFlags::empty(), path)
}

/// Reads at most `most` bytes of a file. So a wrong path does not fill the memory.
///
/// # Errors
///
/// Those of [`open`], and an I/O error.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file with the given options and flags.
///
/// # Errors
///
/// As for [`open`].
pub fn open_with(options: &mut OpenOptions, flags: OFlags, path: &Path) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let (error, found) = if kind.is_dir() {
        (io::ErrorKind::IsADirectory, "a directory")
    } else {
        (io::ErrorKind::InvalidData, special(kind))
    };
    Err(io::Error::new(error, NotAFile(found)))
}

/// Returns the name of the object that [`open`] found in place of a file; `None` for other errors.
#[must_use]
pub fn not_a_file(error: &io::Error) -> Option<&'static str> {
    let found = error.get_ref().and_then(|inner| inner.downcast_ref());
    match (found, error.kind()) {
        (Some(NotAFile(found)), _) => Some(found),
        (None, io::ErrorKind::IsADirectory) => Some("a directory"),
        // `ErrorKind::FilesystemLoop` is not stable.
        _ if Errno::from_io_error(error) == Some(Errno::LOOP) => Some(LINK_LOOP),
        _ => None,
    }
}

/// Returns a name for an object in place of a folder; `None` for a folder or a path that does not exist.
///
/// # Errors
///
/// System errors.
pub fn not_a_folder(path: &Path) -> io::Result<Option<&'static str>> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(None),
        Ok(found) if found.is_file() => Ok(Some("a file")),
        Ok(found) => Ok(Some(special(found.file_type()))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Ok(fs::symlink_metadata(path).is_ok().then_some("a symbolic link that leads nowhere"))
        }
        Err(e) if Errno::from_io_error(&e) == Some(Errno::LOOP) => Ok(Some(LINK_LOOP)),
        Err(e) => Err(e),
    }
}

/// Names an object that is neither a file nor a directory.
fn special(kind: FileType) -> &'static str {
    if kind.is_fifo() { "a FIFO" } else { "a device" }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;

    /// An ordinary open of a FIFO would wait for a writer forever.
    #[test]
    fn only_files_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&link, &link).unwrap();
        for (path, found) in [
            (fifo.as_path(), "a FIFO"),
            (Path::new("/dev/null"), "a device"),
            (place.path(), "a directory"),
            (&link, LINK_LOOP),
        ] {
            let append = open_with(File::options().append(true), OFlags::NOFOLLOW, path);
            // The system refuses to open a FIFO for writing if the FIFO has no reader.
            if found != "a FIFO" {
                assert_eq!(not_a_file(&append.unwrap_err()), Some(found));
            }
            let error = open(path).unwrap_err();
            assert_eq!(not_a_file(&error), Some(found), "{error}");
        }
        let error = open(&fifo).unwrap_err().to_string();
        assert_eq!(error, "expected a file, found a FIFO");
        let missing = open(&place.path().join("missing")).unwrap_err();
        assert_eq!((missing.kind(), not_a_file(&missing)), (io::ErrorKind::NotFound, None));
        fs::write(place.path().join("file"), "text").unwrap();
        open(&place.path().join("file")).unwrap();
    }
}
