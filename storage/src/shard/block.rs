//! Blocks of a shard file: a small header and a payload, with one checksum over both. Frames and the index are such
//! blocks. They are unrelated to the solver's blocks of rows and columns.

use xxhash_rust::xxh3::Xxh3Default;

use super::codec::{self, Codec, Packing};
use crate::bytes::{Fields, hex64, index};
use crate::{Place, StorageError};

/// Length of the header of a block.
pub(super) const BLOCK_HEADER_BYTES: usize = 24;

/// Largest content of a block. Without a bound, a forged length could make each thread allocate 4 GiB.
pub(super) const MAX_RAW_BYTES: u64 = 1 << 30;

/// Header of a block. `parse` returns an unverified header; only [`open`] decodes the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) raw_bytes: u32,
    pub(super) encoded_bytes: u32,
    pub(super) items: u32,
    pub(super) codec: u32,
    pub(super) checksum: u64,
}

impl BlockHeader {
    pub(super) fn to_bytes(self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        let (fields, checksum) = bytes.split_at_mut(BLOCK_HEADER_BYTES - 8);
        fields.copy_from_slice(&self.fields());
        checksum.copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Returns the fields before the checksum as stored in the file.
    fn fields(&self) -> [u8; BLOCK_HEADER_BYTES - 8] {
        let mut bytes = [0; BLOCK_HEADER_BYTES - 8];
        let numbers = [self.raw_bytes, self.encoded_bytes, self.items, self.codec];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub(super) fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            raw_bytes: fields.u32()?,
            encoded_bytes: fields.u32()?,
            items: fields.u32()?,
            codec: fields.u32()?,
            checksum: fields.u64()?,
        })
    }

    /// Computes the checksum of these fields and `payload`.
    fn checksum_of(&self, payload: &[u8]) -> u64 {
        let mut hash = Xxh3Default::new();
        hash.update(&self.fields());
        hash.update(payload);
        hash.digest()
    }

    /// Runs all checks that need no decoding, and returns the codec.
    fn check(&self, file: &Place, offset: u64, payload: &[u8]) -> Result<Codec, StorageError> {
        let damaged = |expected: String, found: String| StorageError::damaged(file, offset, expected, found);
        if payload.len() as u64 != u64::from(self.encoded_bytes) {
            let expected = format!("a payload of {} bytes", self.encoded_bytes);
            return Err(damaged(expected, format!("{} bytes", payload.len())));
        }
        let actual = self.checksum_of(payload);
        if actual != self.checksum {
            let expected = format!("a block with checksum {}", hex64(self.checksum));
            return Err(damaged(expected, format!("checksum {}", hex64(actual))));
        }
        self.check_claims(file, offset)
    }

    /// Runs the checks that need no payload, and returns the codec.
    ///
    /// These checks prevent a forged header from demanding more memory than the file's length justifies.
    pub(super) fn check_claims(&self, file: &Place, offset: u64) -> Result<Codec, StorageError> {
        let damaged = |expected: String, found: String| StorageError::damaged(file, offset, expected, found);
        let codec = Codec::from_number(self.codec)
            .ok_or_else(|| damaged("codec 0, 1 or 2".to_owned(), format!("codec {}", self.codec)))?;
        let limit = codec.max_raw_bytes(self.encoded_bytes).min(MAX_RAW_BYTES);
        if u64::from(self.raw_bytes) > limit {
            let expected = format!("a content of at most {limit} bytes, encoded in {}", self.encoded_bytes);
            return Err(damaged(expected, format!("a stated length of {} bytes", self.raw_bytes)));
        }
        Ok(codec)
    }

    /// Length of the whole block in the file.
    pub(super) fn block_bytes(&self) -> u64 {
        BLOCK_HEADER_BYTES as u64 + u64::from(self.encoded_bytes)
    }
}

/// Encodes `raw` as a block, and returns the header and all bytes of the block.
pub(super) fn seal(raw: &[u8], items: u32, packing: Packing) -> Result<(BlockHeader, Vec<u8>), StorageError> {
    let too_large = || StorageError::TooLarge {
        what: "a block",
        bytes: raw.len() as u64,
        limit: MAX_RAW_BYTES,
        remedy: "Use smaller frames, or fewer items per shard",
    };
    if raw.len() as u64 > MAX_RAW_BYTES {
        return Err(too_large());
    }
    let raw_bytes = u32::try_from(raw.len()).map_err(|_| too_large())?;
    codec::compress(raw, packing, |codec, payload| {
        let encoded_bytes = u32::try_from(payload.len()).map_err(|_| too_large())?;
        let mut header = BlockHeader { raw_bytes, encoded_bytes, items, codec: codec as u32, checksum: 0 };
        header.checksum = header.checksum_of(payload);
        let mut bytes = Vec::with_capacity(BLOCK_HEADER_BYTES + payload.len());
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(payload);
        Ok((header, bytes))
    })
    .map_err(|e| StorageError::InvalidInput { what: format!("compression with {packing:?} failed: {e}") })?
}

/// Verifies `bytes`, found at `offset` of `file`, as a block and returns its content.
///
/// `expected` is the header that the block must have. Checks in this order: length, header, checksum, codec, claimed
/// length, content.
pub(super) fn open(
    file: &Place,
    offset: u64,
    bytes: &[u8],
    expected: &BlockHeader,
) -> Result<Vec<u8>, StorageError> {
    let mut fields = Fields(bytes);
    let header = BlockHeader::parse(&mut fields);
    let (Some(header), payload) = (header, fields.0) else {
        let found = format!("{} bytes", bytes.len());
        return Err(StorageError::damaged(file, offset, "the header of a block, 24 bytes", found));
    };
    if header != *expected {
        return Err(StorageError::damaged(file, offset, format!("{expected:?}"), format!("{header:?}")));
    }
    let codec = header.check(file, offset, payload)?;
    codec::decompress(codec, payload, index(header.raw_bytes)).map_err(|e| {
        let expected = format!("content of {} bytes", header.raw_bytes);
        StorageError::damaged(file, offset + BLOCK_HEADER_BYTES as u64, expected, e.to_string())
    })
}
