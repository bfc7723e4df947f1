//! Compression. Each thread reuses one compressor, so a small block does not allocate a compressor.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, Strategy};

use super::planes::Planes;

/// Zstandard level of planes. Their few bytes take less time at this level than whole integers at level 1.
const PLANES_LEVEL: i32 = 3;

/// Number of hash bits of [`Packing::repeats`]. One more or fewer changes the size by a hundredth.
const REPEATS_HASH_BITS: u32 = 16;

/// How to compress a frame. A level converts to the packing of any bytes at that level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    search: Search,
    /// Bytes of the integers that the frame consists of, if it does.
    width: Option<usize>,
}

/// How Zstandard searches for repeated bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Level(i32),
    /// As at level 1, but from 4 repeated bytes on. Level 1 needs 6, so it misses single integers.
    Repeats,
}

impl From<i32> for Packing {
    fn from(level: i32) -> Self {
        Self { search: Search::Level(level), width: None }
    }
}

impl Packing {
    /// Packing of integers of which many repeat. Of integers of 4 bytes it finds each repetition, in a little more time
    /// than level 1.
    #[must_use]
    pub fn repeats() -> Self {
        Self { search: Search::Repeats, width: None }
    }

    /// The same packing for integers of `width` bytes (4 or 8), little-endian. If all integers of a frame are 16-bit
    /// multiples of one power of two, they are packed as such.
    #[must_use]
    pub fn of_integers(self, width: usize) -> Self {
        Self { width: Some(width), ..self }
    }
}

/// Encoding of a block's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Codec {
    /// The content unchanged, because compression did not make the content shorter.
    Raw = 0,
    /// One Zstandard frame.
    Zstd = 1,
    /// Multiples of a power of two: the planes of their bytes, each one Zstandard frame.
    Planes = 2,
}

impl Codec {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        [Self::Raw, Self::Zstd, Self::Planes].into_iter().find(|codec| *codec as u32 == number)
    }

    /// Returns the longest content that `encoded` bytes can represent.
    ///
    /// A Zstandard block uses at least 4 bytes for at most 128 KiB of content (RFC 8878, 3.1.1.2).
    pub(super) fn max_raw_bytes(self, encoded: u32) -> u64 {
        match self {
            Self::Raw => u64::from(encoded),
            Self::Zstd => u64::from(encoded) * (128 * 1024 / 4),
            // Each byte of a plane stands for an integer of up to 8 bytes.
            Self::Planes => u64::from(encoded) * (128 * 1024 / 4) * 8,
        }
    }
}

/// A thread's compressor, its search and its output buffer.
struct Packer {
    compressor: Compressor<'static>,
    search: Search,
    packed: Vec<u8>,
}

impl Packer {
    fn new(search: Search) -> io::Result<Self> {
        let level = match search {
            Search::Level(level) => level,
            Search::Repeats => 1,
        };
        let mut compressor = Compressor::new(level)?;
        if search == Search::Repeats {
            compressor.set_parameter(CParameter::Strategy(Strategy::ZSTD_fast))?;
            compressor.set_parameter(CParameter::MinMatch(4))?;
            compressor.set_parameter(CParameter::HashLog(REPEATS_HASH_BITS))?;
        }
        Ok(Self { compressor, search, packed: Vec::new() })
    }

    /// Changes the level; a packer of repeats keeps its search.
    fn set(&mut self, search: Search) -> io::Result<()> {
        if let Search::Level(level) = search
            && self.search != search
        {
            self.compressor.set_compression_level(level)?;
            self.search = search;
        }
        Ok(())
    }

    fn pack(&mut self, raw: &[u8]) -> io::Result<&[u8]> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        self.compressor.compress_to_buffer(raw, &mut self.packed)?;
        Ok(&self.packed)
    }
}

thread_local! {
    static PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
    /// The compressor of repeats, whose parameters a level does not reset.
    static REPEATS_PACKER: RefCell<Option<Packer>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Passes the thread's packer for a search to `with`.
fn with_packer<T>(search: Search, with: impl FnOnce(&mut Packer) -> io::Result<T>) -> io::Result<T> {
    let packer = match search {
        Search::Level(_) => &PACKER,
        Search::Repeats => &REPEATS_PACKER,
    };
    packer.with_borrow_mut(|slot| {
        let packer = match slot {
            Some(packer) => packer,
            None => slot.insert(Packer::new(search)?),
        };
        packer.set(search)?;
        with(packer)
    })
}

/// Passes `raw` or its compressed form to `store`, whichever is shorter.
pub(super) fn compress<T>(
    raw: &[u8],
    packing: Packing,
    store: impl FnOnce(Codec, &[u8]) -> T,
) -> io::Result<T> {
    if let Some(planes) = packing.width.and_then(|width| Planes::split(raw, width)) {
        let pack = |plane: &[u8]| {
            with_packer(Search::Level(PLANES_LEVEL), |packer| packer.pack(plane).map(<[u8]>::to_vec))
        };
        let payload = planes.encode(pack)?;
        if payload.len() < raw.len() {
            return Ok(store(Codec::Planes, &payload));
        }
    }
    with_packer(packing.search, |packer| {
        let packed = packer.pack(raw)?;
        Ok(if packed.len() < raw.len() { store(Codec::Zstd, packed) } else { store(Codec::Raw, raw) })
    })
}

/// Decodes `encoded`, which must yield exactly `raw_bytes`. Allocates at most that many bytes, and as many for planes.
pub(super) fn decompress(codec: Codec, encoded: &[u8], raw_bytes: usize) -> io::Result<Vec<u8>> {
    let raw = match codec {
        Codec::Raw => {
            let mut raw = Vec::new();
            raw.try_reserve_exact(encoded.len())?;
            raw.extend_from_slice(encoded);
            raw
        }
        Codec::Zstd => unpack(encoded, raw_bytes)?,
        Codec::Planes => Planes::decode(encoded, raw_bytes, unpack)?,
    };
    if raw.len() == raw_bytes {
        Ok(raw)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("content of {} bytes", raw.len())))
    }
}

/// Decodes a Zstandard frame of at most `most_bytes`.
fn unpack(encoded: &[u8], most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut raw = Vec::new();
    raw.try_reserve_exact(most_bytes)?;
    UNPACKER.with_borrow_mut(|slot| {
        let unpacker = match slot {
            Some(unpacker) => unpacker,
            None => slot.insert(Decompressor::new()?),
        };
        unpacker.decompress_to_buffer(encoded, &mut raw).map(drop)
    })?;
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(raw: &[u8], packing: impl Into<Packing>) -> (Codec, Vec<u8>) {
        compress(raw, packing.into(), |codec, bytes| (codec, bytes.to_vec())).unwrap()
    }

    /// Integers in no order, of which two in three repeat one of a hundred.
    fn repeating(shift: u32) -> Vec<u8> {
        let mut seed = 1u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed ^ seed >> 15
        };
        let often: Vec<u32> = (0..100).map(|_| random()).collect();
        let words = (0..60_000).map(|i| if i % 3 == 0 { random() } else { often[random() as usize % 100] });
        words.flat_map(|word| (word >> shift << shift).to_le_bytes()).collect()
    }

    #[test]
    fn repeated_integers_are_found() {
        let raw = repeating(0);
        let of_level = packed(&raw, 1);
        let of_repeats = packed(&raw, Packing::repeats().of_integers(4));
        assert_eq!(of_repeats.0, Codec::Zstd);
        assert!(
            of_repeats.1.len() * 10 < of_level.1.len() * 9,
            "{} {}",
            of_repeats.1.len(),
            of_level.1.len()
        );
        assert_eq!(packed(&raw, 1), of_level, "the search leaked into a level");
        assert_eq!(decompress(Codec::Zstd, &of_repeats.1, raw.len()).unwrap(), raw);
    }

    #[test]
    fn multiples_of_a_power_of_two_are_packed_as_such() {
        let raw = repeating(20);
        for packing in [Packing::repeats(), Packing::from(1)] {
            let (codec, payload) = packed(&raw, packing.of_integers(4));
            assert_eq!(codec, Codec::Planes);
            assert!(payload.len() < packed(&raw, 9).1.len());
            assert_eq!(decompress(codec, &payload, raw.len()).unwrap(), raw);
            for length in [0, raw.len() - 4, raw.len() + 4, raw.len() - 1, 1 << 29] {
                assert!(decompress(codec, &payload, length).is_err(), "{length} bytes");
            }
            assert_ne!(packed(&raw, packing).0, Codec::Planes, "these bytes may not be integers");
        }
        // Few integers are shorter without planes.
        assert_eq!(packed(&[0, 0, 0, 1], Packing::from(1).of_integers(4)).0, Codec::Raw);
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
            let (codec, bytes) = packed(&vec![0; length & !7], Packing::from(1).of_integers(8));
            assert!(
                length as u64 <= codec.max_raw_bytes(bytes.len() as u32) + 7,
                "{length} in {}",
                bytes.len()
            );
        }
    }
}
