//! Compression. Each thread reuses one compressor, so a small block does not allocate a compressor.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

/// Encoding of a block's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Codec {
    /// The content unchanged, because compression did not make the content shorter.
    Raw = 0,
    /// One Zstandard frame.
    Zstd = 1,
}

impl Codec {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        [Self::Raw, Self::Zstd].into_iter().find(|codec| *codec as u32 == number)
    }

    /// Returns the longest content that `encoded` bytes can represent.
    ///
    /// A Zstandard block uses at least 4 bytes for at most 128 KiB of content (RFC 8878, 3.1.1.2).
    pub(super) fn max_raw_bytes(self, encoded: u32) -> u64 {
        match self {
            Self::Raw => u64::from(encoded),
            Self::Zstd => u64::from(encoded) * (128 * 1024 / 4),
        }
    }
}

/// A thread's compressor, its level and its output buffer.
struct Packer {
    compressor: Compressor<'static>,
    level: i32,
    packed: Vec<u8>,
}

thread_local! {
    static PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Passes `raw` or its compressed form to `store`, whichever is shorter.
pub(super) fn compress<T>(raw: &[u8], level: i32, store: impl FnOnce(Codec, &[u8]) -> T) -> io::Result<T> {
    PACKER.with_borrow_mut(|slot| {
        let packer = match slot {
            Some(packer) => packer,
            None => slot.insert(Packer { compressor: Compressor::new(level)?, level, packed: Vec::new() }),
        };
        if packer.level != level {
            packer.compressor.set_compression_level(level)?;
            packer.level = level;
        }
        packer.packed.clear();
        packer.packed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        packer.compressor.compress_to_buffer(raw, &mut packer.packed)?;
        Ok(if packer.packed.len() < raw.len() {
            store(Codec::Zstd, &packer.packed)
        } else {
            store(Codec::Raw, raw)
        })
    })
}

/// Decodes `encoded`, which must yield exactly `raw_bytes`. Allocates at most that many bytes.
pub(super) fn decompress(codec: Codec, encoded: &[u8], raw_bytes: usize) -> io::Result<Vec<u8>> {
    let mut raw = Vec::new();
    raw.try_reserve_exact(raw_bytes)?;
    match codec {
        Codec::Raw => raw.extend_from_slice(encoded),
        Codec::Zstd => UNPACKER.with_borrow_mut(|slot| {
            let unpacker = match slot {
                Some(unpacker) => unpacker,
                None => slot.insert(Decompressor::new()?),
            };
            unpacker.decompress_to_buffer(encoded, &mut raw).map(drop)
        })?,
    }
    if raw.len() == raw_bytes {
        Ok(raw)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("content of {} bytes", raw.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(raw: &[u8], level: i32) -> (Codec, Vec<u8>) {
        compress(raw, level, |codec, bytes| (codec, bytes.to_vec())).unwrap()
    }

    #[test]
    fn levels_change_within_a_thread_and_every_level_is_decoded() {
        let raw: Vec<u8> = (0..50_000u32).flat_map(|i| (i * i / 7).to_le_bytes()).collect();
        let lengths = [1, 9, -5, 1, 19].map(|level| {
            let (codec, bytes) = packed(&raw, level);
            assert_eq!(decompress(codec, &bytes, raw.len()).unwrap(), raw);
            bytes.len()
        });
        assert_eq!(lengths[0], lengths[3], "the level of an earlier block leaked into a later one");
        assert!(lengths[1] < lengths[0]);
    }

    #[test]
    fn a_wrong_length_is_an_error_in_both_directions() {
        for raw in [vec![7; 1000], vec![1, 2, 3]] {
            let (codec, bytes) = packed(&raw, 3);
            assert!(decompress(codec, &bytes, raw.len() - 1).is_err());
            assert!(decompress(codec, &bytes, raw.len() + 1).is_err());
        }
    }

    /// The bound that exposes false lengths must never refuse real output of the compressor.
    #[test]
    fn the_bound_exceeds_the_best_compression() {
        for length in [1 << 10, 1 << 17, (1 << 17) + 1, 1 << 24, 100_000_000] {
            let (codec, bytes) = packed(&vec![0; length], 1);
            assert!(length as u64 <= codec.max_raw_bytes(bytes.len() as u32), "{length} in {}", bytes.len());
        }
    }
}
