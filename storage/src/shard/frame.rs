//! Frames: items compressed together by the threads that compute the items.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::block::{self, BlockHeader};
use super::codec::Packing;
use super::index;
use crate::{ItemKey, MappedFile, Place, ScratchPlace, StorageError};

/// A compressed, checksummed group of items, ready to be written.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(super) header: BlockHeader,
    bytes: FrameBytes,
    /// Keys and lengths in bytes of the items, in frame order.
    pub(super) items: Vec<(ItemKey, u32)>,
}

/// Header and payload, on the heap or in a scratch file.
#[derive(Clone, Debug)]
enum FrameBytes {
    Heap(Vec<u8>),
    Spilled { map: Arc<MappedFile>, range: Range<usize> },
}

thread_local! {
    /// Buffer in which the items of a frame are concatenated.
    static RAW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Frame {
    /// Compresses `items`, in any order, with a `packing` or at a Zstandard level (1 while computing, 3 to keep, 9 to
    /// archive).
    ///
    /// Stores the items unchanged if compression does not help. Each thread keeps a compressor and buffers of twice
    /// the size of its largest frame. The frame itself needs only as much memory as its size in the file. A reader
    /// decodes a whole frame to get one item, at about 1 GB/s.
    ///
    /// # Errors
    ///
    /// [`StorageError::TooLarge`] if the items exceed 1 GiB together.
    pub fn encode(items: &[(ItemKey, &[u8])], packing: impl Into<Packing>) -> Result<Self, StorageError> {
        let packing = packing.into();
        let too_large = |bytes: usize| StorageError::TooLarge {
            what: "a frame",
            bytes: bytes as u64,
            limit: block::MAX_RAW_BYTES,
            remedy: "Put fewer items into a frame",
        };
        // Check the size before copying, so items too large for a frame are not held in memory twice.
        let total = items.iter().map(|(_, payload)| payload.len()).fold(0, usize::saturating_add);
        if total as u64 > block::MAX_RAW_BYTES {
            return Err(too_large(total));
        }
        let count = u32::try_from(items.len()).map_err(|_| too_large(total))?;
        let lengths = items
            .iter()
            .map(|(key, payload)| Ok((*key, u32::try_from(payload.len()).map_err(|_| too_large(total))?)))
            .collect::<Result<Vec<_>, StorageError>>()?;
        RAW.with_borrow_mut(|raw| {
            raw.clear();
            items.iter().for_each(|(_, payload)| raw.extend_from_slice(payload));
            let (header, bytes) = block::seal(raw, count, packing)?;
            Ok(Self { header, bytes: FrameBytes::Heap(bytes), items: lengths })
        })
    }

    /// Total bytes of the items.
    #[must_use]
    pub fn raw_bytes(&self) -> usize {
        crate::bytes::index(self.header.raw_bytes)
    }

    /// Bytes of the frame in the file, without its entries in the index.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        match &self.bytes {
            FrameBytes::Heap(bytes) => bytes.len(),
            FrameBytes::Spilled { range, .. } => range.len(),
        }
    }

    /// Upper bound on the bytes of the frame in the file, including its index entries before their compression.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.encoded_bytes() + index::FRAME_BYTES + self.items.len() * index::ITEM_BYTES
    }

    /// Header and payload.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            FrameBytes::Heap(bytes) => bytes,
            FrameBytes::Spilled { map, range } => map.get(range.clone()).unwrap_or_default(),
        }
    }

    /// Decodes all items of a frame that is in memory or in a scratch file.
    ///
    /// # Errors
    ///
    /// [`StorageError::Damaged`] if a scratch file differs from the data written.
    pub fn read(&self) -> Result<Vec<u8>, StorageError> {
        block::open(&Place::from(Path::new("a scratch file of frames")), 0, self.bytes(), &self.header)
    }

    /// Moves all heap-allocated `frames` into one scratch file in `folder`.
    ///
    /// For frames that wait long before they are written to a shard.
    ///
    /// # Errors
    ///
    /// [`StorageError::Full`] or another I/O error; the frames stay unchanged.
    pub fn spill(frames: &mut [Self], folder: &ScratchPlace) -> Result<(), StorageError> {
        let on_heap = |frame: &&mut Self| matches!(frame.bytes, FrameBytes::Heap(_));
        let mut frames: Vec<&mut Self> = frames.iter_mut().filter(on_heap).collect();
        if frames.is_empty() {
            return Ok(());
        }
        let mut scratch = folder.create()?;
        for frame in &frames {
            scratch.append(frame.bytes())?;
        }
        let map = Arc::new(scratch.map()?);
        let mut start = 0;
        for frame in &mut frames {
            let end = start + frame.encoded_bytes();
            frame.bytes = FrameBytes::Spilled { map: Arc::clone(&map), range: start..end };
            start = end;
        }
        Ok(())
    }
}
