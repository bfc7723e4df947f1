//! Compression of blocks on their way to another worker.
//!
//! A link codes blocks while earlier ones have to wait for the network. Otherwise coding would take longer than sending. A coded block is a sequence of Zstandard frames, one for each piece.

use std::io;

use bytes::{Buf, Bytes};
use exact2048_storage::{pack, unpack};
use exact2048_worker::BytesList;

/// Codes a block. Returns `None` if the coded block is not shorter. Cost: some nanoseconds for each byte.
pub fn coded(block: &BytesList) -> Option<BytesList> {
    // The writer joins the frames, because only the last piece of a block may be short.
    let mut coded = BytesList::writer(block.len());
    for piece in block.clone().into_pieces() {
        coded.put(&pack(&piece).ok()?);
    }
    Some(coded.finish()).filter(|coded| coded.len() < block.len())
}

/// Decodes a block of `bytes` bytes.
///
/// # Errors
///
/// If the bytes are not those of a coded block of this length, or if memory is short.
pub fn decoded(mut coded: BytesList, bytes: usize) -> io::Result<BytesList> {
    let frames = coded.copy_to_bytes(coded.len());
    let block = unpack(&frames, bytes)?;
    if block.len() == bytes {
        Ok(Bytes::from(block).into())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("a block of {} bytes", block.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(bytes: &[u8]) -> BytesList {
        let mut writer = BytesList::writer(bytes.len());
        writer.put(bytes);
        writer.finish()
    }

    #[test]
    fn coded_blocks_are_decoded() {
        for length in [0usize, 1, 5000, BytesList::PIECE_BYTES, 3 * BytesList::PIECE_BYTES + 17] {
            let block: Vec<u8> = (0..length).map(|i| (i / 4 % 100) as u8).collect();
            let Some(coded) = coded(&list(&block)) else {
                assert!(length < 5000);
                continue;
            };
            assert!(coded.len() < length / 2);
            assert_eq!(coded.clone().into_pieces().count(), coded.len().div_ceil(BytesList::PIECE_BYTES));
            let mut found = decoded(coded.clone(), length).unwrap();
            assert_eq!(found.copy_to_bytes(found.len()), block);
            assert!(decoded(coded.clone(), length - 1).is_err(), "expected a limit of the decoded bytes");
            assert!(decoded(coded, length + 1).is_err());
        }
    }

    #[test]
    fn blocks_that_do_not_shrink_are_not_coded() {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 56) as u8
        };
        let block: Vec<u8> = (0..100_000).map(|_| random()).collect();
        assert!(coded(&list(&block)).is_none());
        assert!(decoded(list(&block), 1 << 20).is_err());
    }
}
