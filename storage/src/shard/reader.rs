//! Reading a shard: opening verifies header and index, each read verifies its frame.

use std::path::Path;

use super::ShardRecord;
use super::block::{self, BLOCK_HEADER_BYTES};
use super::content::{Content, ShardFile, head};
use super::header::{Header, LONGEST_HEADER};
use super::index::{Entry, FrameInfo, Index};
use crate::bytes::index;
use crate::home::RunPlace;
use crate::{ItemKey, Place, ShardIdentity, StorageError};

/// Largest index in bytes of a shard opened without an expected identity.
///
/// The solver's indexes are far smaller. A forged index of a few kilobytes could expand to gigabytes of memory.
const UNKNOWN_INDEX_BYTES: u64 = 64 << 20;

/// Requirements on a shard to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected<'a> {
    /// No requirement.
    Anything,
    /// This identity.
    Identity(&'a ShardIdentity),
    /// The shard of this record, with this identity.
    Committed(&'a ShardRecord, &'a ShardIdentity),
}

impl Expected<'_> {
    /// Returns the expected length in bytes, if known.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Committed(record, _) => Some(record.bytes),
            Self::Anything | Self::Identity(_) => None,
        }
    }

    /// Checks that a header belongs to the expected shard. The error names the first field that differs.
    pub(super) fn check(&self, file: &Place, header: &Header, checksum: u64) -> Result<(), StorageError> {
        let foreign = |field, expected: String, found: String| {
            Err(StorageError::Foreign { file: file.clone(), field, expected, found })
        };
        let (Self::Identity(identity) | Self::Committed(_, identity)) = self else { return Ok(()) };
        if let Some((field, expected, found)) = identity.difference(&header.identity) {
            return foreign(field, expected, found);
        }
        match self {
            Self::Committed(record, _) if record.header_checksum != checksum => {
                let expected = format!("{:016x}", record.header_checksum);
                foreign("header checksum", expected, format!("{checksum:016x}"))
            }
            _ => Ok(()),
        }
    }

    /// Limit in bytes on the index.
    fn index_limit(&self) -> u64 {
        match self {
            Self::Anything => UNKNOWN_INDEX_BYTES,
            Self::Identity(_) | Self::Committed(..) => block::MAX_RAW_BYTES,
        }
    }
}

/// An open shard. All methods take `&self`, and any number of threads may read at once.
///
/// Memory: 32 bytes per item and per frame; frames stay on disk until they are read. The file usually stays open, so a
/// shard that is replaced or removed meanwhile remains readable. If too many files are open, each read opens the file
/// again.
#[derive(Debug)]
pub struct ShardReader {
    place: Place,
    content: Content,
    header: Header,
    header_checksum: u64,
    index: Index,
    /// The run through which the shard was opened.
    run: Option<RunPlace>,
}

impl ShardReader {
    /// Opens the shard at `path`, which must match `expected`, and verifies its header and index.
    ///
    /// Costs reading the index and, unless the items were written in order, a sort of its entries.
    ///
    /// # Errors
    ///
    /// [`StorageError::Foreign`] with the first field that differs. [`StorageError::ShardMissing`],
    /// [`StorageError::NewerVersion`], [`StorageError::Damaged`] or an I/O error.
    pub fn open(path: &Path, expected: &ShardIdentity) -> Result<Self, StorageError> {
        Self::open_file(&Place::from(path).of_lone_shard(), path, Expected::Identity(expected))
    }

    /// Opens a shard of unknown identity, to inspect it.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotAShard`], [`StorageError::TooLarge`] for an index of more than 64 MiB, and as for
    /// [`open`](Self::open), except [`StorageError::Foreign`].
    pub fn open_any(path: &Path) -> Result<Self, StorageError> {
        // A missing file is not reported as a lost shard, because no record states that the shard was committed.
        let file = ShardFile::open(path).map_err(|e| StorageError::read(path, e))?;
        Self::new(&Place::from(path).of_lone_shard(), Content::File(file), Expected::Anything)
    }

    /// Opens a shard in memory. `path` is only for messages.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn from_bytes(
        path: &Path,
        bytes: Vec<u8>,
        expected: Option<&ShardIdentity>,
    ) -> Result<Self, StorageError> {
        let place = Place::from(path).of_lone_shard();
        Self::new(&place, Content::Owned(bytes), expected.map_or(Expected::Anything, Expected::Identity))
    }

    /// Opens the shard in a file. Errors report the file as `place`.
    pub(crate) fn open_file(
        place: &Place,
        path: &Path,
        expected: Expected<'_>,
    ) -> Result<Self, StorageError> {
        let file = ShardFile::open(path).map_err(|e| StorageError::read_shard(place, 0, 0, e))?;
        Self::new(place, Content::File(file), expected)
    }

    /// Verifies header and index of a shard.
    ///
    /// Checks in this order: magic, header, expected identity, size of the index, index. Because of this order, the
    /// index of an unexpected shard is never read.
    pub(super) fn new(
        place: &Place,
        mut content: Content,
        expected: Expected<'_>,
    ) -> Result<Self, StorageError> {
        let failed = |offset, length| move |e| StorageError::read_shard(place, offset, length, e);
        let file_bytes = content.length().map_err(failed(0, 0))?;
        let head = head(&content, LONGEST_HEADER).map_err(failed(0, 0))?;
        if let (Expected::Anything, Err(found)) = (expected, Header::begins(&head)) {
            return Err(StorageError::NotAShard { file: place.clone(), found });
        }
        let (header, header_checksum) = Header::parse(place, &head, file_bytes)?;
        expected.check(place, &header, header_checksum)?;
        Index::check_size(place, &header, expected.index_limit())?;
        let (start, length) =
            (header.index_offset, usize::try_from(header.index_bytes).unwrap_or(usize::MAX));
        let parsed = content.with_bytes(start, length, |block| Index::parse(place, block, &header));
        let index = parsed.map_err(failed(start, length))??;
        content.settle();
        Ok(Self { place: place.clone(), content, header, header_checksum, index, run: None })
    }

    /// Attaches the shard to a run, so no error blames the shard if the whole run is unavailable.
    pub(crate) fn of_run(self, run: RunPlace) -> Self {
        Self { run: Some(run), ..self }
    }

    /// Place of the shard.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Identity stated in the header.
    #[must_use]
    pub fn identity(&self) -> &ShardIdentity {
        &self.header.identity
    }

    /// Checksum of the header, as in [`ShardRecord`](crate::ShardRecord). Equal checksums mean equal shards.
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

    /// Finds the item `key` by binary search.
    #[must_use]
    pub fn find(&self, key: ItemKey) -> Option<&Entry> {
        let at = self.index.entries.binary_search_by_key(&key, |entry| entry.key).ok()?;
        self.index.entries.get(at)
    }

    /// Reads the item `key`; `None` if the shard does not have it.
    ///
    /// Decodes the whole frame. To read several items of a frame, call [`read_frame`](Self::read_frame) and
    /// [`Entry::slice`].
    ///
    /// # Errors
    ///
    /// As for [`read_frame`](Self::read_frame).
    pub fn read(&self, key: ItemKey) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(entry) = self.find(key) else { return Ok(None) };
        let frame = self.read_frame(entry.frame)?;
        Ok(entry.slice(&frame).map(<[u8]>::to_vec))
    }

    /// Verifies and decodes a frame, at about 1 GB/s. Allocates exactly the frame's
    /// [`raw_bytes`](FrameInfo::raw_bytes).
    ///
    /// # Errors
    ///
    /// [`StorageError::Damaged`], [`StorageError::ShardMissing`], [`StorageError::InvalidInput`] if the frame does
    /// not exist, or an I/O error. If the cached copy of a shard in a store is damaged or unreadable, reads the frame
    /// from the store, with the store's errors.
    pub fn read_frame(&self, number: u32) -> Result<Vec<u8>, StorageError> {
        let frame = self.index.frames.get(index(number)).ok_or_else(|| StorageError::InvalidInput {
            what: format!("expected a frame of {} below {}, found {number}", self.place, self.frames().len()),
        })?;
        self.read_frame_at(frame).map_err(|error| match &self.run {
            Some(run) => run.explain(error),
            None => error,
        })
    }

    fn read_frame_at(&self, frame: &FrameInfo) -> Result<Vec<u8>, StorageError> {
        let (start, expected) = (frame.file_offset, frame.block_header());
        let length = BLOCK_HEADER_BYTES + index(frame.encoded_bytes);
        let open = |bytes: &[u8]| block::open(&self.place, start, bytes, &expected);
        let read = self.content.with_bytes(start, length, open);
        match (&self.content, read) {
            (Content::Copied(_, origin), Err(_) | Ok(Err(StorageError::Damaged { .. }))) => {
                open(&origin.read_again(start, length)?)
            }
            (_, read) => read.map_err(|e| StorageError::read_shard(&self.place, start, length, e))?,
        }
    }

    /// Verifies every byte of the shard by reading every frame, at about 1 GB/s.
    ///
    /// # Errors
    ///
    /// [`StorageError::Damaged`] with the position of the first damaged frame.
    pub fn verify(&self) -> Result<(), StorageError> {
        (0u32..).zip(self.frames()).try_for_each(|(number, _)| self.read_frame(number).map(drop))
    }
}
