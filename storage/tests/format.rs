//! The format of `docs/dev/format.md`, implemented independently here. The crate must read files that follow the
//! specification, and must refuse files with valid checksums and false contents.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::path::Path;

use common::{identity, key};
use exact2048_storage::{RunId, ShardReader, StorageError};
use xxhash_rust::xxh3::xxh3_64;

/// A shard under construction. Derived fields are computed unless a test sets them.
#[derive(Clone)]
struct Forge {
    /// Frames: claimed raw length if set, codec, payload.
    frames: Vec<(Option<u32>, u32, Vec<u8>)>,
    /// Items: frame, layer, lane, part, length.
    items: Vec<(usize, u32, u64, u32, u32)>,
    header_items: Option<u64>,
    header_frames: Option<u32>,
    index_raw_bytes: Option<u32>,
    /// Bytes appended to the content of the index.
    index_extra: Vec<u8>,
    index_offset: Option<u64>,
    index_checksum: Option<u64>,
    /// Replaces the first frame after the index was computed.
    swapped_frame: Option<Vec<u8>>,
    /// Bytes between the last frame and the index.
    gap: Vec<u8>,
    file_bytes: Option<u64>,
    first_frame_offset: u64,
    first_layer: u32,
    kind: u8,
    zero: u8,
}

impl Default for Forge {
    fn default() -> Self {
        Self {
            frames: vec![(None, 0, b"onetwo".to_vec()), (None, 0, b"three".to_vec())],
            items: vec![(0, 5, 1, 0, 3), (0, 5, 2, 0, 3), (1, 4, 9, 7, 5)],
            header_items: None,
            header_frames: None,
            index_raw_bytes: None,
            index_extra: Vec::new(),
            index_offset: None,
            index_checksum: None,
            swapped_frame: None,
            gap: Vec::new(),
            file_bytes: None,
            first_frame_offset: 104,
            first_layer: 4,
            kind: 1,
            zero: 0,
        }
    }
}

fn block(raw_bytes: u32, items: u32, codec: u32, payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for field in [raw_bytes, payload.len() as u32, items, codec] {
        block.extend(field.to_le_bytes());
    }
    let checksum = xxh3_64(&[&block, payload].concat());
    block.extend(checksum.to_le_bytes());
    block.extend(payload);
    block
}

impl Forge {
    fn build(&self) -> Vec<u8> {
        let mut frames = Vec::new();
        let mut index = Vec::new();
        for (number, (claimed, codec, payload)) in self.frames.iter().enumerate() {
            let items = self.items.iter().filter(|item| item.0 == number).count() as u32;
            let block = block(claimed.unwrap_or(payload.len() as u32), items, *codec, payload);
            index.extend((self.first_frame_offset + frames.len() as u64).to_le_bytes());
            index.extend(&block[..24]);
            frames.extend(block);
        }
        self.items.iter().for_each(|item| index.extend(item.1.to_le_bytes()));
        self.items.iter().for_each(|item| index.extend(item.2.to_le_bytes()));
        self.items.iter().for_each(|item| index.extend(item.3.to_le_bytes()));
        self.items.iter().for_each(|item| index.extend(item.4.to_le_bytes()));
        index.extend(&self.index_extra);
        if let Some(other) = &self.swapped_frame {
            frames[..other.len()].copy_from_slice(other);
        }
        frames.extend(&self.gap);
        let items = self.header_items.unwrap_or(self.items.len() as u64);
        let index = block(self.index_raw_bytes.unwrap_or(index.len() as u32), items as u32, 0, &index);
        let index_checksum = u64::from_le_bytes(index[16..24].try_into().unwrap());
        let file_bytes = 104 + frames.len() as u64 + index.len() as u64;

        let mut file = b"EX2048SH".to_vec();
        file.extend(1u32.to_le_bytes());
        file.extend(104u32.to_le_bytes());
        file.extend([9; 16]);
        file.extend([self.kind, 3, 4, self.zero]);
        file.extend(self.first_layer.to_le_bytes());
        file.extend(120u32.to_le_bytes());
        file.extend(self.header_frames.unwrap_or(self.frames.len() as u32).to_le_bytes());
        file.extend(0x0123_4567_89ab_cdef_u64.to_le_bytes());
        file.extend(items.to_le_bytes());
        file.extend(self.index_offset.unwrap_or(104 + frames.len() as u64).to_le_bytes());
        file.extend((index.len() as u64).to_le_bytes());
        file.extend(self.index_checksum.unwrap_or(index_checksum).to_le_bytes());
        file.extend(self.file_bytes.unwrap_or(file_bytes).to_le_bytes());
        file.extend(xxh3_64(&file).to_le_bytes());
        file.extend(frames);
        file.extend(index);
        file
    }

    fn open(&self) -> Result<ShardReader, StorageError> {
        let reader = ShardReader::from_bytes(Path::new("forged.shard"), self.build(), None)?;
        reader.verify()?;
        Ok(reader)
    }
}

#[test]
fn a_shard_written_by_hand_is_read() {
    let reader = Forge::default().open().unwrap();
    assert_eq!(*reader.identity(), identity(RunId([9; 16])));
    assert_eq!(reader.read(key(5, 2, 0)).unwrap().unwrap(), b"two");
    assert_eq!(reader.read(key(4, 9, 7)).unwrap().unwrap(), b"three");
}

/// Codec 2: three integers of 4 bytes, multiples of 2^20, in two planes of which the second is compressed.
#[test]
fn planes_written_by_hand_are_read() {
    let high = zstd::bulk::compress(&[1; 3], 3).unwrap();
    let mut payload = vec![4, 20, 2, 0, 3, 0, 0, 0, 7, 8, 9];
    payload.extend((high.len() as u32).to_le_bytes());
    payload.extend(&high);
    let mut forge = Forge { frames: vec![(Some(12), 2, payload)], ..Forge::default() };
    forge.items = vec![(0, 5, 1, 0, 4), (0, 5, 2, 0, 8)];
    let reader = forge.open().unwrap();
    let words = [0x107u32 << 20, 0x108 << 20, 0x109 << 20].map(u32::to_le_bytes);
    assert_eq!(reader.read(key(5, 1, 0)).unwrap().unwrap(), words[0]);
    assert_eq!(reader.read(key(5, 2, 0)).unwrap().unwrap(), words[1..].concat());
    forge.frames[0].2[1] = 24;
    assert!(matches!(forge.open(), Err(StorageError::Damaged { .. })), "the integers exceed 4 bytes");
}

#[test]
fn a_shard_that_contradicts_itself_is_damaged() {
    let base = Forge::default();
    let with_item = |at: usize, item| {
        let mut forge = base.clone();
        forge.items[at] = item;
        forge
    };
    let with_frame = |frame| Forge { frames: vec![frame, base.frames[1].clone()], ..base.clone() };
    let zstd = |raw: &[u8]| zstd::bulk::compress(raw, 3).unwrap();
    let with_more = |item| {
        let mut forge = base.clone();
        forge.items.push(item);
        forge
    };
    let swapped = Some(block(6, 2, 0, b"ONETWO"));
    // The forged shard, and the start of the expectation in its error.
    let cases = [
        (Forge { kind: 4, ..base.clone() }, "kind 1 to 3"),
        (Forge { zero: 1, ..base.clone() }, "0"),
        (Forge { first_layer: 121, ..base.clone() }, "a last layer of at least 121"),
        (Forge { file_bytes: Some(1000), ..base.clone() }, "a file of 1000 bytes"),
        (Forge { index_offset: Some(0), ..base.clone() }, "an index after the header"),
        (Forge { index_offset: Some(u64::MAX), ..base.clone() }, "an index after the header"),
        (Forge { index_checksum: Some(7), ..base.clone() }, "checksum 0000000000000007"),
        (Forge { header_frames: Some(3), ..base.clone() }, "an index of 3 frames and 3 items"),
        (Forge { index_extra: vec![0], ..base.clone() }, "an index of 2 frames and 3 items"),
        (Forge { first_frame_offset: 105, ..base.clone() }, "frame 0 at 104"),
        (Forge { first_frame_offset: u64::MAX / 2, ..base.clone() }, "frame 0 at 104"),
        (Forge { gap: vec![0; 24], ..base.clone() }, "frames up to 187"),
        (Forge { swapped_frame: swapped, ..base.clone() }, "BlockHeader"),
        (with_item(1, (0, 5, 2, 0, 4)), "items of 6 bytes in frame 0"),
        (with_item(1, (0, 5, 2, 0, u32::MAX)), "items of 6 bytes in frame 0"),
        (with_item(2, (1, 4, 9, 7, 4)), "items of 5 bytes in frame 1"),
        (with_item(0, (0, 3, 1, 0, 3)), "an item of the layers 4..=120"),
        (with_item(1, (0, 5, 1, 0, 3)), "unique keys"),
        (with_more((9, 5, 3, 0, 0)), "4 items"),
        (with_frame((None, 3, b"onetwo".to_vec())), "codec 0, 1 or 2"),
        (with_frame((Some(6), 2, b"onetwo".to_vec())), "content of 6 bytes"),
        (with_frame((Some(7), 0, b"onetwo".to_vec())), "a content of at most 6 bytes"),
        (with_frame((Some(6), 0, b"onetwo!".to_vec())), "content of 6 bytes"),
        (with_frame((Some(6), 1, b"onetwo".to_vec())), "content of 6 bytes"),
        (with_frame((Some(6), 1, zstd(b"onetwo!"))), "content of 6 bytes"),
        (with_frame((Some(6), 1, zstd(b"onetw"))), "content of 6 bytes"),
    ];
    for (forge, reason) in cases {
        match forge.open() {
            Err(StorageError::Damaged { file, expected, .. }) => {
                assert_eq!(file.to_string(), "forged.shard");
                assert!(expected.starts_with(reason), "expected {reason}, found {expected}");
            }
            other => panic!("{reason}: {other:?}"),
        }
    }
}

/// Returns the peak of the memory reserved by this process, in KiB.
fn peak_reserved_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A shard of a run may have an index larger than the limit for a file of unknown identity.
#[test]
fn the_index_of_an_unknown_shard_is_bounded() {
    let items = 5_000_000;
    let claim = Forge {
        header_items: Some(items),
        index_raw_bytes: Some(u32::try_from(20 * items).unwrap() + 64),
        ..Forge::default()
    };
    let read = |expected| ShardReader::from_bytes(Path::new("forged.shard"), claim.build(), expected);
    let unknown = read(None);
    assert!(matches!(unknown, Err(StorageError::TooLarge { .. })), "{unknown:?}");
    let known = read(Some(&identity(RunId([9; 16]))));
    assert!(matches!(known, Err(StorageError::Damaged { .. })), "{known:?}");
}

#[test]
fn huge_claims_are_refused_before_memory_is_reserved_for_them() {
    let base = Forge::default();
    let claim = |bytes, codec| Forge {
        frames: vec![(Some(bytes), codec, vec![0; 64]), base.frames[1].clone()],
        items: vec![(0, 5, 1, 0, bytes), (1, 4, 9, 7, 5)],
        ..base.clone()
    };
    let cases = [
        ("frame of 4 GiB", claim(u32::MAX, 1)),
        ("frame of 1 GiB", claim(1 << 30, 1)),
        ("raw frame of 1 GiB", claim(1 << 30, 0)),
        ("planes of 1 GiB", claim(1 << 30, 2)),
        ("index of 4 GiB", Forge { index_raw_bytes: Some(u32::MAX), ..base.clone() }),
        (
            "50 million items in an index of a few bytes",
            Forge {
                header_items: Some(50_000_000),
                index_raw_bytes: Some(50_000_000 * 20 + 64),
                ..base.clone()
            },
        ),
        ("as many items as 64 bits can count", Forge { header_items: Some(u64::MAX), ..base.clone() }),
        ("as many frames as 32 bits can count", Forge { header_frames: Some(u32::MAX), ..base.clone() }),
    ];
    let before = peak_reserved_kib();
    for (what, forge) in cases {
        let refused = forge.open();
        assert!(
            matches!(refused, Err(StorageError::Damaged { .. } | StorageError::TooLarge { .. })),
            "{what}: {refused:?}"
        );
        // Threads of other tests reserve about 64 MiB each.
        let grown = peak_reserved_kib() - before;
        assert!(grown < 512 << 10, "{what}: {grown} KiB were reserved");
    }
}
