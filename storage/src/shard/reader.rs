//! Reading a shard: header and index are verified on opening, each frame whenever it is read.

use std::path::Path;

use super::ShardRecord;
use super::block::{self, BLOCK_HEADER_BYTES};
use super::content::{Content, ShardFile, head};
use super::header::{Header, LONGEST_HEADER};
use super::index::{Entry, FrameInfo, Index};
use crate::bytes::index;
use crate::{ItemKey, Place, ShardIdentity, Shards, StorageError};

/// Largest index that is read of a shard of which nothing is known, in bytes. Those of the solver have far less; a
/// forged one could take gigabytes of memory out of some kilobytes.
const UNKNOWN_INDEX_BYTES: u64 = 64 << 20;

/// What a shard has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected<'a> {
    /// Any shard.
    Anything,
    /// One with this identity.
    Identity(&'a ShardIdentity),
    /// The one of this record, with this identity.
    Committed(&'a ShardRecord, &'a ShardIdentity),
}

impl Expected<'_> {
    /// How many bytes it has, where that is known.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Committed(record, _) => Some(record.bytes),
            Self::Anything | Self::Identity(_) => None,
        }
    }

    /// Requires that a header is that of the shard: the first field that differs is named.
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

    /// Bytes that the index may take.
    fn index_limit(&self) -> u64 {
        match self {
            Self::Anything => UNKNOWN_INDEX_BYTES,
            Self::Identity(_) | Self::Committed(..) => block::MAX_RAW_BYTES,
        }
    }
}

/// An open shard. All methods take `&self`, and any number of threads may read at once.
///
/// Memory: 32 bytes per item and per frame; the frames stay on disk until they are read. The file is kept open while
/// not too many are, so that a shard that is replaced or removed meanwhile can be read to the end.
#[derive(Debug)]
pub struct ShardReader {
    place: Place,
    content: Content,
    header: Header,
    header_checksum: u64,
    index: Index,
    /// The run that it was opened as a part of.
    run: Option<Shards>,
}

impl ShardReader {
    /// Opens the shard at `path`, which must be the one `expected`, and verifies its header and index.
    ///
    /// Costs the reading of the index and, unless the items were written in order, a sort of its entries.
    ///
    /// # Errors
    ///
    /// [`StorageError::Foreign`] names the first field that is not as expected;
    /// [`StorageError::ShardMissing`], [`StorageError::NewerVersion`], [`StorageError::Damaged`] or a failure of the
    /// system.
    pub fn open(path: &Path, expected: &ShardIdentity) -> Result<Self, StorageError> {
        Self::open_file(&Place::from(path).of_lone_shard(), path, Expected::Identity(expected))
    }

    /// The same without an expectation, to inspect a shard of which nothing is known.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotAShard`], [`StorageError::TooLarge`] for an index of more than 64 MiB, and as for
    /// [`open`](Self::open), but for [`StorageError::Foreign`].
    pub fn open_any(path: &Path) -> Result<Self, StorageError> {
        // A missing file is not a lost shard here: nobody says that it was committed.
        let file = ShardFile::open(path).map_err(|e| StorageError::read(path, e))?;
        Self::new(&Place::from(path).of_lone_shard(), Content::File(file), Expected::Anything)
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
        let place = Place::from(path).of_lone_shard();
        Self::new(&place, Content::Owned(bytes), expected.map_or(Expected::Anything, Expected::Identity))
    }

    /// Opens the shard in a file, which errors name as `place`.
    pub(crate) fn open_file(
        place: &Place,
        path: &Path,
        expected: Expected<'_>,
    ) -> Result<Self, StorageError> {
        let file = ShardFile::open(path).map_err(|e| StorageError::read_shard(place, 0, 0, e))?;
        Self::new(place, Content::File(file), expected)
    }

    /// Checks in this order: that it is a shard, its header, whether it is the one expected, the size of its index, its
    /// index. So nothing is believed of a shard that is not the one expected.
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

    /// The same shard as a part of a run. Where that is away, no error blames the shard.
    pub(crate) fn of_run(self, run: Shards) -> Self {
        Self { run: Some(run), ..self }
    }

    /// Where the shard is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
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

    /// The item `key`, `None` if the shard does not have it. Decodes its whole frame: who wants several items
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
    /// [`StorageError::Damaged`] or [`StorageError::ShardMissing`]; [`StorageError::InvalidInput`] if there is no such
    /// frame; a failure of the system. A frame that cannot be read from a copy of a shard in a store, or is damaged
    /// there, is read from the store, with its failures.
    pub fn read_frame(&self, number: u32) -> Result<Vec<u8>, StorageError> {
        let frame = self.index.frames.get(index(number)).ok_or_else(|| StorageError::InvalidInput {
            what: format!("frame {number} asked of {} with {}", self.place, self.frames().len()),
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
            (Content::Copied(_, stored), Err(_) | Ok(Err(StorageError::Damaged { .. }))) => {
                open(&stored.read_again(start, length)?)
            }
            (_, read) => read.map_err(|e| StorageError::read_shard(&self.place, start, length, e))?,
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
