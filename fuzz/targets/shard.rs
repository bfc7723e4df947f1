//! A shard. This target seals the bytes before reading them, because unsealed bytes fail the checksums.
#![no_main]

use std::path::Path;

use exact2048_storage::{ShardReader, StorageError};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

const HEADER_BYTES: usize = 104;
const BLOCK_HEADER_BYTES: usize = 24;

/// Reads the 64-bit number at `at`; `None` if the file ends earlier.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// Corrects the checksum of the block at `at`, and returns it.
fn seal_block(bytes: &mut [u8], at: usize) -> Option<u64> {
    let length =
        u32::from_le_bytes(bytes.get(at.checked_add(4)?..at.checked_add(8)?)?.try_into().ok()?) as usize;
    let payload = at.checked_add(BLOCK_HEADER_BYTES)?;
    let sealed = [bytes.get(at..at + 16)?, bytes.get(payload..payload.checked_add(length)?)?].concat();
    let checksum = xxh3_64(&sealed);
    put(bytes, at + 16, checksum);
    Some(checksum)
}

/// Corrects the lengths and checksums of header and index; see docs/dev/format.md.
///
/// Also repairs the checksum of the first frame, but not its copy in a compressed index.
fn seal(bytes: &mut [u8]) {
    let length = bytes.len();
    if length < HEADER_BYTES {
        return;
    }
    put(bytes, 88, length as u64);
    let index = number(bytes, 64).and_then(|at| usize::try_from(at).ok()).filter(|&at| at < length);
    if let Some(index) = index {
        put(bytes, 72, (length - index) as u64);
        seal_block(bytes, HEADER_BYTES);
        if let Some(checksum) = seal_block(bytes, index) {
            put(bytes, 80, checksum);
        }
    }
    let checksum = xxh3_64(&bytes[..HEADER_BYTES - 8]);
    put(bytes, HEADER_BYTES - 8, checksum);
}

fn read(bytes: Vec<u8>) -> Result<(), StorageError> {
    let shard = ShardReader::from_bytes(Path::new("fuzzed"), bytes, None)?;
    for entry in shard.items() {
        assert!(shard.find(entry.key).is_some());
    }
    for number in 0..shard.frames().len() {
        // Not every frame has a valid checksum, so each read gives an error or the frame's bytes.
        if let Ok(frame) = shard.read_frame(number as u32) {
            for entry in shard.items().iter().filter(|entry| entry.frame == number as u32) {
                assert!(entry.slice(&frame).is_some());
            }
        }
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    seal(&mut bytes);
    let _ = read(bytes);
});
