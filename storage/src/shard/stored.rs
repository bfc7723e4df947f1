//! Opening a shard in a store: from its cached copy, a peer or the store.

use std::io::{self, Read};
use std::sync::Arc;

use super::content::{Content, ShardFile};
use super::origin::Origin;
use super::reader::{Expected, ShardReader};
use crate::publish::TempFile;
use crate::store::{Cache, Store};
use crate::{CopyOutcome, StorageError, WantedCopy};

/// A shard in a store, read from its cached copy.
#[derive(Debug)]
pub(crate) struct StoredShard(pub(crate) Origin);

impl StoredShard {
    /// Opens the cached copy; `None` unless the copy has the header and index of the expected shard.
    pub(crate) fn open_copy(&self, wanted: &WantedCopy, expected: Expected<'_>) -> Option<ShardReader> {
        if !self.0.cache.touch(&self.0.entry) {
            return None;
        }
        let opened =
            ShardFile::open(&self.0.entry).map_err(|e| StorageError::read_shard(&self.0.place, 0, 0, e));
        let opened = opened.and_then(|file| self.reader(file, expected));
        // Discard only a damaged or foreign copy, because other errors may be temporary.
        let discard = |error: &StorageError| {
            if error.blames().is_some() {
                self.0.cache.discard(&self.0.entry);
            }
        };
        let copy = opened.inspect_err(discard).ok()?;
        if let Some(peers) = self.0.cache.peers() {
            peers.note(wanted, CopyOutcome::Cached);
        }
        Some(copy)
    }

    /// Fetches a copy of the expected shard from a peer and keeps the copy in the cache; `None` if no peer has a copy
    /// with the expected header and index.
    pub(crate) fn take_from_peers(&self, wanted: &WantedCopy, expected: Expected<'_>) -> Option<ShardReader> {
        let peers = self.0.cache.peers()?;
        let taken = peers.copies(wanted).find_map(|copy| {
            let taken = self.receive(copy, wanted).and_then(|temp| self.keep(temp, expected));
            taken.inspect_err(|error| peers.note(wanted, CopyOutcome::Refused(error))).ok()
        });
        peers.note(wanted, if taken.is_some() { CopyOutcome::Taken } else { CopyOutcome::FromStore });
        taken
    }

    /// Fetches the shard from the store, and keeps a copy in the cache if header and index are those expected.
    pub(crate) fn fetch(&self, expected: Expected<'_>) -> Result<ShardReader, StorageError> {
        let fetch = || self.keep(self.0.download(expected.bytes())?, expected);
        match fetch() {
            // The transfer may have damaged the data, so fetch the shard once more before reporting it as lost.
            Err(StorageError::Damaged { .. } | StorageError::Foreign { .. }) => fetch(),
            fetched => fetched,
        }
    }

    /// Fetches the shard, and verifies every byte if it is the expected shard. Keeps no copy.
    pub(crate) fn check(&self, expected: Expected<'_>) -> Result<(), StorageError> {
        let check = || {
            let file = ShardFile::unnamed(self.0.download(expected.bytes())?.into_unnamed()?);
            ShardReader::new(&self.0.place, Content::File(file), expected)?.verify()
        };
        match check() {
            Err(StorageError::Damaged { .. } | StorageError::Foreign { .. }) => check(),
            checked => checked,
        }
    }

    /// Makes a file the cached copy if it has the expected header and index. Each later read verifies its frame.
    fn keep(&self, mut temp: TempFile, expected: Expected<'_>) -> Result<ShardReader, StorageError> {
        let file = temp.file().try_clone().map_err(|e| StorageError::io("open", temp.path(), e))?;
        let reader = self.reader(ShardFile::of(file, self.0.entry.clone()), expected)?;
        self.0.cache.insert(temp, &self.0.entry)?;
        Ok(reader)
    }

    /// Writes the bytes from a peer to a new file in the cache folder.
    ///
    /// Reads at most one byte more than the shard has, which reveals a longer copy.
    fn receive(&self, copy: impl Read, wanted: &WantedCopy) -> Result<TempFile, StorageError> {
        let mut temp = TempFile::create(self.0.cache.folder(), "copy")?;
        let received = io::copy(&mut copy.take(wanted.bytes.saturating_add(1)), temp.file());
        let received = received.map_err(|e| StorageError::io("receive", temp.path(), e))?;
        if received == wanted.bytes {
            return Ok(temp);
        }
        let (expected, found) = (format!("{} bytes", wanted.bytes), format!("{received} bytes or more"));
        Err(StorageError::damaged(&self.0.place, received, expected, found))
    }

    fn reader(&self, file: ShardFile, expected: Expected<'_>) -> Result<ShardReader, StorageError> {
        ShardReader::new(&self.0.place, Content::Copied(file, self.0.clone()), expected)
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
