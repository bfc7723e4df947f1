//! The index of a shard: position and items of each frame. `docs/dev/format.md` specifies its layout.
//!
//! The items of a frame are contiguous, so their offsets follow from their lengths and cannot contradict each other.

use super::block::{self, BLOCK_HEADER_BYTES, BlockHeader};
use super::codec::Codec;
use super::header::{HEADER_BYTES, Header};
use crate::bytes::{Fields, index};
use crate::{ItemKey, Place, StorageError};

/// Bytes per frame: the offset of its block and a copy of the header of that block.
pub(super) const FRAME_BYTES: usize = 8 + BLOCK_HEADER_BYTES;

/// Bytes per item: layer, lane, part, length.
pub(super) const ITEM_BYTES: usize = 4 + 8 + 4 + 4;

/// Compression level of the index. It favours a small size because opening a shard reads the whole index.
const LEVEL: i32 = 3;

/// Position of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key of the item.
    pub key: ItemKey,
    /// Number of the item's frame.
    pub frame: u32,
    /// Offset in bytes within the decoded frame.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

impl Entry {
    /// Returns the item within the decoded frame; `None` if the frame is too short.
    #[must_use]
    pub fn slice<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        frame.get(index(self.offset)..)?.get(..index(self.length))
    }
}

/// Description of a frame in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// Offset in bytes of its block in the file.
    pub file_offset: u64,
    /// Total bytes of its items.
    pub raw_bytes: u32,
    /// Bytes of the items in the file, without the 24 bytes of the block's header.
    pub encoded_bytes: u32,
    /// Number of its items.
    pub items: u32,
    /// Encoding of its items.
    pub codec: Codec,
    /// Checksum of the block.
    pub checksum: u64,
}

impl FrameInfo {
    /// Returns the header that the frame's block must have.
    pub(super) fn block_header(&self) -> BlockHeader {
        BlockHeader {
            raw_bytes: self.raw_bytes,
            encoded_bytes: self.encoded_bytes,
            items: self.items,
            codec: self.codec as u32,
            checksum: self.checksum,
        }
    }
}

/// Collects the index while frames are written. Uses 32 bytes per frame and 24 per item.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    frames: Vec<(u64, BlockHeader)>,
    items: Vec<(ItemKey, u32)>,
}

impl IndexBuilder {
    pub(super) fn frames(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn items(&self) -> usize {
        self.items.len()
    }

    /// Checks that the index still fits in a block after one more frame of this many items.
    pub(super) fn check_room(&self, items: usize) -> Result<(), StorageError> {
        match content_bytes(self.frames() as u64 + 1, (self.items() + items) as u64) {
            Some(bytes) if bytes <= block::MAX_RAW_BYTES => Ok(()),
            bytes => Err(StorageError::TooLarge {
                what: "the index of a shard",
                bytes: bytes.unwrap_or(u64::MAX),
                limit: block::MAX_RAW_BYTES,
                remedy: "Use fewer layers per shard, or larger items",
            }),
        }
    }

    pub(super) fn add(&mut self, offset: u64, header: BlockHeader, items: &[(ItemKey, u32)]) {
        self.frames.push((offset, header));
        self.items.extend_from_slice(items);
    }

    /// Returns the first duplicate key. Sorts a copy of the keys, with 16 bytes per key.
    pub(super) fn duplicate(&self) -> Option<ItemKey> {
        let mut keys: Vec<ItemKey> = self.items.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        first_duplicate(keys.iter().copied())
    }

    /// Encodes the index as a block, and returns the header and all bytes of the block.
    pub(super) fn seal(&self) -> Result<(BlockHeader, Vec<u8>), StorageError> {
        let mut raw = Vec::with_capacity(self.frames() * FRAME_BYTES + self.items() * ITEM_BYTES);
        for (offset, header) in &self.frames {
            raw.extend(offset.to_le_bytes());
            raw.extend(header.to_bytes());
        }
        // Store each field as a column, because layers and parts repeat and then compress to almost nothing.
        self.items.iter().for_each(|(key, _)| raw.extend(key.layer.to_le_bytes()));
        self.items.iter().for_each(|(key, _)| raw.extend(key.lane.to_le_bytes()));
        self.items.iter().for_each(|(key, _)| raw.extend(key.part.to_le_bytes()));
        self.items.iter().for_each(|(_, length)| raw.extend(length.to_le_bytes()));
        let items = u32::try_from(self.items()).unwrap_or(u32::MAX); // `check_room` fails far earlier
        block::seal(&raw, items, LEVEL.into())
    }
}

/// Returns the length of an index's content; `None` if it exceeds 64 bits.
fn content_bytes(frames: u64, items: u64) -> Option<u64> {
    frames.checked_mul(FRAME_BYTES as u64)?.checked_add(items.checked_mul(ITEM_BYTES as u64)?)
}

fn first_duplicate(sorted: impl Iterator<Item = ItemKey> + Clone) -> Option<ItemKey> {
    sorted.clone().zip(sorted.skip(1)).find(|(key, next)| key == next).map(|(key, _)| key)
}

/// A verified index.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) frames: Vec<FrameInfo>,
    /// Sorted by key, without duplicates.
    pub(super) entries: Vec<Entry>,
}

impl Index {
    /// Refuses an index of more than `limit` bytes. Uses only the header, before any part of the index is read.
    pub(super) fn check_size(file: &Place, header: &Header, limit: u64) -> Result<(), StorageError> {
        let content = content_bytes(header.frames.into(), header.items).unwrap_or(u64::MAX);
        let bytes = content.max(header.index_bytes.saturating_sub(BLOCK_HEADER_BYTES as u64));
        if bytes > block::MAX_RAW_BYTES {
            let expected = format!("an index of at most {} bytes", block::MAX_RAW_BYTES);
            return Err(StorageError::damaged(file, 44, expected, format!("{bytes} bytes")));
        }
        if bytes > limit {
            let (what, remedy) = ("the index of an unverified shard", "Open the shard through its run");
            return Err(StorageError::TooLarge { what, bytes, limit, remedy });
        }
        Ok(())
    }

    /// Verifies and decodes the index of a shard with this header. `block` contains all bytes from the index offset to
    /// the end of the file.
    ///
    /// Decodes the block only if the counts in the header, the lengths in the block and its checksum agree. So a file
    /// cannot demand more memory than its length justifies. Uses 32 bytes per item and per frame, plus the content
    /// while decoding.
    pub(super) fn parse(file: &Place, block: &[u8], header: &Header) -> Result<Self, StorageError> {
        let at = header.index_offset;
        let damaged = |expected: &str, found: String| StorageError::damaged(file, at, expected, found);
        let stated = BlockHeader::parse(&mut Fields(block))
            .ok_or_else(|| damaged("a block of at least 24 bytes", format!("{} bytes", block.len())))?;
        if stated.checksum != header.index_checksum {
            let expected = format!("checksum {:016x}", header.index_checksum);
            return Err(damaged(&expected, format!("{:016x}", stated.checksum)));
        }
        // Without this check, the counts could claim more entries than the content has.
        let content = content_bytes(header.frames.into(), header.items);
        if content != Some(stated.raw_bytes.into()) || header.items != u64::from(stated.items) {
            let expected = format!("an index of {} frames and {} items", header.frames, header.items);
            return Err(damaged(&expected, format!("{} bytes, {} items", stated.raw_bytes, stated.items)));
        }
        let raw = block::open(file, at, block, &stated)?;
        let (frames, items) = raw
            .split_at_checked(index(header.frames) * FRAME_BYTES)
            .ok_or_else(|| damaged("a frame table", format!("{} bytes", raw.len())))?;
        let frames = parse_frames(file, frames, header)?;
        let entries = parse_items(file, items, index(stated.items), &frames, header)?;
        Ok(Self { frames, entries })
    }
}

/// Parses the frame table. Frames must be contiguous from the header to the index.
fn parse_frames(file: &Place, table: &[u8], header: &Header) -> Result<Vec<FrameInfo>, StorageError> {
    let damaged = |what: String, found| StorageError::damaged(file, header.index_offset, what, found);
    let mut frames = Vec::with_capacity(table.len() / FRAME_BYTES);
    let mut next = u64::from(HEADER_BYTES);
    for entry in table.chunks_exact(FRAME_BYTES) {
        let mut fields = Fields(entry);
        let (Some(file_offset), Some(block)) = (fields.u64(), BlockHeader::parse(&mut fields)) else {
            return Err(damaged("an entry of the frame table".to_owned(), format!("{entry:?}")));
        };
        if file_offset != next {
            return Err(damaged(
                format!("frame {} at {next}", frames.len()),
                format!("offset {file_offset}"),
            ));
        }
        let codec = block.check_claims(file, file_offset)?;
        frames.push(FrameInfo {
            file_offset,
            raw_bytes: block.raw_bytes,
            encoded_bytes: block.encoded_bytes,
            items: block.items,
            codec,
            checksum: block.checksum,
        });
        next += block.block_bytes(); // no overflow: at most 2^25 blocks of less than 2^33 bytes
    }
    if next != header.index_offset {
        return Err(damaged(format!("frames up to {}", header.index_offset), format!("frames up to {next}")));
    }
    Ok(frames)
}

/// Parses the four item columns and sorts the entries by key. The items must fill the frames exactly.
fn parse_items(
    file: &Place,
    columns: &[u8],
    items: usize,
    frames: &[FrameInfo],
    header: &Header,
) -> Result<Vec<Entry>, StorageError> {
    let damaged = |what: String, found| StorageError::damaged(file, header.index_offset, what, found);
    let short = || damaged(format!("{items} items"), format!("{} bytes", columns.len()));
    let (layers, rest) = columns.split_at_checked(items * 4).ok_or_else(short)?;
    let (lanes, rest) = rest.split_at_checked(items * 8).ok_or_else(short)?;
    let (parts, lengths) = rest.split_at_checked(items * 4).ok_or_else(short)?;
    let (mut layers, mut lanes) = (Fields(layers), Fields(lanes));
    let (mut parts, mut lengths) = (Fields(parts), Fields(lengths));

    let layers_of_shard = header.identity.first_layer..=header.identity.last_layer;
    let mut entries = Vec::with_capacity(items);
    for (frame, info) in (0u32..).zip(frames) {
        let mut offset = 0u32;
        for _ in 0..info.items {
            let read = (layers.u32(), lanes.u64(), parts.u32(), lengths.u32());
            let (Some(layer), Some(lane), Some(part), Some(length)) = read else {
                return Err(damaged(format!("{} items in frame {frame}", info.items), "fewer".to_owned()));
            };
            let key = ItemKey { layer, lane, part };
            if !layers_of_shard.contains(&layer) {
                return Err(damaged(
                    format!("an item of the layers {layers_of_shard:?}"),
                    format!("{key:?}"),
                ));
            }
            entries.push(Entry { key, frame, offset, length });
            offset = offset.checked_add(length).ok_or_else(|| {
                damaged(
                    format!("items of {} bytes in frame {frame}", info.raw_bytes),
                    "over 4 GiB".to_owned(),
                )
            })?;
        }
        if offset != info.raw_bytes {
            let what = format!("items of {} bytes in frame {frame}", info.raw_bytes);
            return Err(damaged(what, format!("{offset} bytes")));
        }
    }
    if entries.len() != items {
        return Err(damaged(format!("{items} items"), format!("{} items in the frames", entries.len())));
    }
    entries.sort_unstable_by_key(|entry| entry.key);
    match first_duplicate(entries.iter().map(|entry| entry.key)) {
        Some(key) => Err(damaged("unique keys".to_owned(), format!("{key:?} twice"))),
        None => Ok(entries),
    }
}
