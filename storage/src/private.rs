//! Small files in the folder of a run that only its owner may read, such as the token of a cluster.

use std::fs::Permissions;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::location::Medium;
use crate::publish::TempFile;
use crate::store::Created;
use crate::{Location, StorageError, sealed};

/// Access to the file: its owner may read and write it.
const OWNER_ONLY: u32 = 0o600;

impl Location {
    /// Reads the private file with this name; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// I/O and store errors. A missing folder counts as a missing file.
    pub fn read_private(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
        match &self.0 {
            Medium::Folder(folder) => read(&folder.join(name)),
            Medium::Store(place) => Ok(place.store.read(name)?.map(|bytes| bytes.to_vec())),
        }
    }

    /// Creates a private file unless its name exists, and returns the contents that the file has then. In a directory
    /// only the owner may read the file. In an object store, each reader of the store may read it.
    ///
    /// # Errors
    ///
    /// I/O and store errors.
    pub fn create_private(&self, name: &str, contents: &[u8]) -> Result<Vec<u8>, StorageError> {
        let created = match &self.0 {
            Medium::Folder(folder) => create(folder, name, contents),
            Medium::Store(place) => {
                return Ok(match place.store.create(name, contents)? {
                    Created::Here => contents.to_vec(),
                    Created::Taken(found) => found.to_vec(),
                });
            }
        };
        match created {
            Ok(()) => Ok(contents.to_vec()),
            Err(conflict @ StorageError::Conflict { .. }) => self.read_private(name)?.ok_or(conflict),
            Err(error) => Err(error),
        }
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    let failed = |error| StorageError::io("read", path, error);
    let file = match exact2048_files::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mut bytes = Vec::new();
    file.take(sealed::MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Creates the file. It is empty until its access is restricted.
fn create(folder: &Path, name: &str, contents: &[u8]) -> Result<(), StorageError> {
    let mut file = TempFile::create(folder, name)?;
    let restricted = file.file().set_permissions(Permissions::from_mode(OWNER_ONLY));
    restricted.map_err(|error| StorageError::io("restrict access to", file.path(), error))?;
    file.write(contents)?;
    file.sync()?;
    file.link_to(&folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_contents_stay_and_only_the_owner_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::from(folder.path());
        assert_eq!(location.read_private("token").unwrap(), None);
        assert_eq!(location.create_private("token", b"one").unwrap(), b"one");
        assert_eq!(location.create_private("token", b"two").unwrap(), b"one");
        assert_eq!(location.read_private("token").unwrap().as_deref(), Some(&b"one"[..]));
        let mode = std::fs::metadata(folder.path().join("token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        assert_eq!(location.child("missing").unwrap().read_private("token").unwrap(), None);
    }
}
