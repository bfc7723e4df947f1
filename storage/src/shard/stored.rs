//! A shard in a store: its cached copy and the sources of another copy.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::content::{Content, ShardFile};
use super::reader::{Expected, ShardReader};
use crate::publish::TempFile;
use crate::store::{Cache, Store};
use crate::{CopyOutcome, Place, StorageError, WantedCopy};

/// Place of a shard in a store and of its copy in the cache.
#[derive(Debug)]
pub(crate) struct StoredShard {
    pub(crate) store: Arc<Store>,
    pub(crate) cache: Arc<Cache>,
    /// Place of the shard in the store.
    pub(crate) place: Place,
    /// Name of the object within the run.
    pub(crate) object: String,
    /// Entry of the shard in the cache.
    pub(crate) entry: PathBuf,
}

impl StoredShard {
    /// Opens the cached copy; `None` unless the copy has the header and index of the expected shard.
    pub(crate) fn open_copy(&self, wanted: &WantedCopy, expected: Expected<'_>) -> Option<ShardReader> {
        if !self.cache.touch(&self.entry) {
            return None;
        }
        let opened = ShardFile::open(&self.entry).map_err(|e| StorageError::read_shard(&self.place, 0, 0, e));
        let opened = opened.and_then(|file| self.reader(file, expected));
        // Discard only a damaged or foreign copy, because other errors may be temporary.
        let discard = |error: &StorageError| {
            if error.blames().is_some() {
                self.cache.discard(&self.entry);
            }
        };
        let copy = opened.inspect_err(discard).ok()?;
        if let Some(peers) = self.cache.peers() {
            peers.note(wanted, CopyOutcome::Cached);
        }
        Some(copy)
    }

    /// Fetches a copy of the expected shard from a peer and keeps the copy in the cache; `None` if no peer has a copy
    /// with the expected header and index.
    pub(crate) fn take_from_peers(&self, wanted: &WantedCopy, expected: Expected<'_>) -> Option<ShardReader> {
        let peers = self.cache.peers()?;
        let taken = peers.copies(wanted).find_map(|copy| {
            let taken = self.receive(copy, wanted).and_then(|temp| self.keep(temp, expected));
            taken.inspect_err(|error| peers.note(wanted, CopyOutcome::Refused(error))).ok()
        });
        peers.note(wanted, if taken.is_some() { CopyOutcome::Taken } else { CopyOutcome::FromStore });
        taken
    }

    /// Fetches the shard from the store, and keeps a copy in the cache if header and index are those expected.
    pub(crate) fn fetch(&self, expected: Expected<'_>) -> Result<ShardReader, StorageError> {
        let fetch = || self.keep(self.download(expected)?, expected);
        match fetch() {
            // The transfer may have damaged the data, so fetch the shard once more before reporting it as lost.
            Err(StorageError::Damaged { .. } | StorageError::Foreign { .. }) => fetch(),
            fetched => fetched,
        }
    }

    /// Fetches the shard, and verifies every byte if it is the expected shard. Keeps no copy.
    pub(crate) fn check(&self, expected: Expected<'_>) -> Result<(), StorageError> {
        let check = || {
            let file = ShardFile::unnamed(self.download(expected)?.into_unnamed()?);
            ShardReader::new(&self.place, Content::File(file), expected)?.verify()
        };
        match check() {
            Err(StorageError::Damaged { .. } | StorageError::Foreign { .. }) => check(),
            checked => checked,
        }
    }

    /// Makes a file the cached copy if it has the expected header and index. Each later read verifies its frame.
    fn keep(&self, mut temp: TempFile, expected: Expected<'_>) -> Result<ShardReader, StorageError> {
        let file = temp.file().try_clone().map_err(|e| StorageError::io("open", temp.path(), e))?;
        let reader = self.reader(ShardFile::of(file, self.entry.clone()), expected)?;
        self.cache.insert(temp, &self.entry)?;
        Ok(reader)
    }

    /// Writes the bytes from a peer to a new file in the cache folder.
    ///
    /// Reads at most one byte more than the shard has, which reveals a longer copy.
    fn receive(&self, copy: impl Read, wanted: &WantedCopy) -> Result<TempFile, StorageError> {
        let mut temp = TempFile::create(self.cache.folder(), "copy")?;
        let received = io::copy(&mut copy.take(wanted.bytes.saturating_add(1)), temp.file());
        let received = received.map_err(|e| StorageError::io("receive", temp.path(), e))?;
        if received == wanted.bytes {
            return Ok(temp);
        }
        let (expected, found) = (format!("{} bytes", wanted.bytes), format!("{received} bytes or more"));
        Err(StorageError::damaged(&self.place, received, expected, found))
    }

    /// Downloads the shard to a new file in the cache folder.
    ///
    /// An object of unexpected length is not fetched, because it might fill the disk.
    pub(super) fn download(&self, expected: Expected<'_>) -> Result<TempFile, StorageError> {
        let mut temp = TempFile::create(self.cache.folder(), "download")?;
        let wanted = expected.bytes();
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

    /// Converts the error of a missing object to the error of a missing shard.
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

    fn reader(&self, file: ShardFile, expected: Expected<'_>) -> Result<ShardReader, StorageError> {
        let origin = Self {
            store: Arc::clone(&self.store),
            cache: Arc::clone(&self.cache),
            place: self.place.clone(),
            object: self.object.clone(),
            entry: self.entry.clone(),
        };
        ShardReader::new(&self.place, Content::Copied(file, origin), expected)
    }
}

/// Opens the object whose name is the store's prefix, without an expected identity. Keeps no copy.
pub(crate) fn open_lone_object(store: &Arc<Store>, cache: &Cache) -> Result<ShardReader, StorageError> {
    let mut temp = TempFile::create(cache.folder(), "inspect")?;
    store.download("", &mut temp, None)?;
    let path = temp.path().to_path_buf();
    let file = ShardFile::of(temp.into_unnamed()?, path);
    ShardReader::new(&store.place().of_lone_shard(), Content::File(file), Expected::Anything)
}
