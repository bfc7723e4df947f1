//! Reading a shard: header and index are verified on opening, each frame whenever it is read.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::block::{self, BLOCK_HEADER_BYTES};
use super::header::Header;
use super::index::{Entry, FrameInfo, Index};
use super::stored::StoredShard;
use crate::bytes::index;
use crate::mapped::MappedFile;
use crate::{ItemKey, ShardIdentity, StorageError};

/// Where the bytes of a shard are.
#[derive(Debug)]
pub(super) enum Bytes {
    Mapped(MappedFile),
    /// A copy of a shard in a store. What is damaged in the copy may be sound in the store.
    Copied(MappedFile, StoredShard),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) | Self::Copied(map, _) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// An open shard. All methods take `&self`, and any number of threads may read at once.
///
/// Memory: 32 bytes per item and per frame; the frames stay on disk until they are read.
#[derive(Debug)]
pub struct ShardReader {
    path: PathBuf,
    bytes: Bytes,
    header: Header,
    header_checksum: u64,
    index: Index,
}

impl ShardReader {
    /// Maps the shard at `path`, which must be the one `expected`, and verifies its header and index.
    ///
    /// Costs the reading of the index and, unless the items were written in order, a sort of its entries.
    ///
    /// # Errors
    ///
    /// [`StorageError::Foreign`] names the first field that is not as expected;
    /// [`StorageError::NewerVersion`], [`StorageError::Damaged`] or a failure of the system.
    pub fn open(path: &Path, expected: &ShardIdentity) -> Result<Self, StorageError> {
        Self::new(path, Bytes::Mapped(MappedFile::open_published(path)?), Some(expected))
    }

    /// The same without an expectation, to inspect a shard of which nothing is known.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), without [`StorageError::Foreign`].
    pub fn open_any(path: &Path) -> Result<Self, StorageError> {
        Self::new(path, Bytes::Mapped(MappedFile::open_published(path)?), None)
    }

    /// A shard that is in memory already. `path` is only for messages.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(
        path: &Path,
        bytes: Vec<u8>,
        expected: Option<&ShardIdentity>,
    ) -> Result<Self, StorageError> {
        Self::new(path, Bytes::Owned(bytes), expected)
    }

    pub(super) fn new(
        path: &Path,
        bytes: Bytes,
        expected: Option<&ShardIdentity>,
    ) -> Result<Self, StorageError> {
        let (header, header_checksum) = Header::parse(path, &bytes)?;
        if let Some((field, expected, found)) = expected.and_then(|ours| ours.difference(&header.identity)) {
            return Err(StorageError::Foreign { file: path.to_path_buf(), field, expected, found });
        }
        let index = Index::parse(path, &bytes, &header)?;
        Ok(Self { path: path.to_path_buf(), bytes, header, header_checksum, index })
    }

    /// The file, as given on opening.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the shard says it is.
    #[must_use]
    pub fn identity(&self) -> &ShardIdentity {
        &self.header.identity
    }

    /// Checksum of the header, as in [`ShardRecord`](crate::ShardRecord): equal checksums mean equal shards.
    #[must_use]
    pub fn header_checksum(&self) -> u64 {
        self.header_checksum
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.header.file_bytes
    }

    /// Length in bytes of the index in the file.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        self.header.index_bytes
    }

    /// All items, sorted by key.
    #[must_use]
    pub fn items(&self) -> &[Entry] {
        &self.index.entries
    }

    /// All frames, in file order.
    #[must_use]
    pub fn frames(&self) -> &[FrameInfo] {
        &self.index.frames
    }

    /// Where the item `key` is, by binary search.
    #[must_use]
    pub fn find(&self, key: ItemKey) -> Option<&Entry> {
        let at = self.index.entries.binary_search_by_key(&key, |entry| entry.key).ok()?;
        self.index.entries.get(at)
    }

    /// The item `key`, `None` if the shard does not have it. Decodes its whole frame: whoever wants several items
    /// of a frame calls [`read_frame`](Self::read_frame) and [`Entry::slice`].
    ///
    /// # Errors
    ///
    /// As for [`read_frame`](Self::read_frame).
    pub fn read(&self, key: ItemKey) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(entry) = self.find(key) else { return Ok(None) };
        let frame = self.read_frame(entry.frame)?;
        Ok(entry.slice(&frame).map(<[u8]>::to_vec))
    }

    /// Verifies and decodes a frame, at about 1 GB/s. Allocates exactly the
    /// [`raw_bytes`](FrameInfo::raw_bytes) of the frame.
    ///
    /// # Errors
    ///
    /// [`StorageError::Damaged`], or [`StorageError::InvalidInput`] if there is no such frame. A frame that is
    /// damaged in a copy of a shard in a store is read from the store, with its failures.
    pub fn read_frame(&self, number: u32) -> Result<Vec<u8>, StorageError> {
        let frame = self.index.frames.get(index(number)).ok_or_else(|| StorageError::InvalidInput {
            what: format!("frame {number} asked of {} with {}", self.path.display(), self.frames().len()),
        })?;
        let start = frame.file_offset;
        let length = BLOCK_HEADER_BYTES + index(frame.encoded_bytes);
        // Cannot be short: the index was checked against the length of the file.
        let block = usize::try_from(start).ok().and_then(|start| self.bytes.get(start..)?.get(..length));
        let opened = block::open(&self.path, start, block.unwrap_or_default(), &frame.block_header());
        match (&self.bytes, opened) {
            (Bytes::Copied(_, stored), Err(StorageError::Damaged { .. })) => {
                let again = stored.read_again(start, length)?;
                block::open(&self.path, start, &again, &frame.block_header())
            }
            (_, opened) => opened,
        }
    }

    /// Verifies every byte of the shard by reading every frame, at about 1 GB/s.
    ///
    /// # Errors
    ///
    /// [`StorageError::Damaged`] with the place of the first damaged frame.
    pub fn verify(&self) -> Result<(), StorageError> {
        (0u32..).zip(self.frames()).try_for_each(|(number, _)| self.read_frame(number).map(drop))
    }
}
