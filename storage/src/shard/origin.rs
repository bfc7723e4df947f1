//! Place of a shard in a store, and downloads from it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::publish::TempFile;
use crate::store::{Cache, Store};
use crate::{Place, StorageError};

/// Place of a shard in a store and of its copy in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) store: Arc<Store>,
    pub(crate) cache: Arc<Cache>,
    /// Place of the shard in the store.
    pub(crate) place: Place,
    /// Name of the object within the run.
    pub(crate) object: String,
    /// Entry of the shard in the cache.
    pub(crate) entry: PathBuf,
}

impl Origin {
    /// Downloads the shard to a new file in the cache folder. `wanted` is its length in bytes, if known.
    ///
    /// An object of another length is not fetched, because it might fill the disk.
    pub(super) fn download(&self, wanted: Option<u64>) -> Result<TempFile, StorageError> {
        let mut temp = TempFile::create(self.cache.folder(), "download")?;
        let found = self.store.download(&self.object, &mut temp, wanted);
        let found = found.map_err(|error| self.missing(error))?;
        match wanted.filter(|&wanted| wanted != found) {
            Some(wanted) => {
                let at = wanted.min(found);
                Err(StorageError::damaged(
                    &self.place,
                    at,
                    format!("{wanted} bytes"),
                    format!("{found} bytes"),
                ))
            }
            None => Ok(temp),
        }
    }

    /// Converts a read error: a missing object is a missing shard.
    fn missing(&self, error: StorageError) -> StorageError {
        match error {
            StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                StorageError::ShardMissing { file: self.place.clone() }
            }
            error => error,
        }
    }

    /// Reads a range of the shard from the store because the copy is damaged, and discards the copy.
    pub(super) fn read_again(&self, start: u64, length: usize) -> Result<Bytes, StorageError> {
        self.cache.discard(&self.entry);
        let range = start..start.saturating_add(length as u64);
        self.store.read_range(&self.object, range).map_err(|error| self.missing(error))
    }
}
