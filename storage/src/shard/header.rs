//! The header of a shard. `docs/dev/format.md` specifies its layout.

use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::{Fields, hex64, index};
use crate::{Place, RunId, SHARD_VERSION, ShardIdentity, ShardKind, StorageError};

/// Length of the header in shard version 1.
pub(super) const HEADER_BYTES: u32 = 104;

const MAGIC: [u8; 8] = *b"EX2048SH";

/// Length of magic, version and header length. These fields have the same position and meaning in every version.
const PREAMBLE_BYTES: usize = 16;

/// Valid header lengths in any version. Without the upper bound, a damaged length could make a reader hash a whole
/// large file.
const HEADER_LENGTHS: std::ops::RangeInclusive<u32> = 24..=LONGEST_HEADER;

/// Longest valid header. The first bytes of a file, up to this number, contain its whole header.
pub(super) const LONGEST_HEADER: u32 = 4096;

/// A header. [`Header::parse`] returns only verified headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) identity: ShardIdentity,
    pub(super) frames: u32,
    pub(super) items: u64,
    pub(super) index_offset: u64,
    pub(super) index_bytes: u64,
    /// Checksum in the header of the index block. Through this field, the header's own checksum covers the whole file.
    pub(super) index_checksum: u64,
    pub(super) file_bytes: u64,
}

impl Header {
    /// Returns the bytes of the header and the checksum at their end.
    pub(super) fn to_bytes(&self) -> (Vec<u8>, u64) {
        let Self { identity, .. } = self;
        let mut bytes = Vec::with_capacity(index(HEADER_BYTES));
        bytes.extend(MAGIC);
        bytes.extend(SHARD_VERSION.to_le_bytes());
        bytes.extend(HEADER_BYTES.to_le_bytes());
        bytes.extend(identity.run.0);
        bytes.extend([identity.kind as u8, identity.rows, identity.cols, 0]);
        bytes.extend(identity.first_layer.to_le_bytes());
        bytes.extend(identity.last_layer.to_le_bytes());
        bytes.extend(self.frames.to_le_bytes());
        bytes.extend(identity.rule_hash.to_le_bytes());
        bytes.extend(self.items.to_le_bytes());
        bytes.extend(self.index_offset.to_le_bytes());
        bytes.extend(self.index_bytes.to_le_bytes());
        bytes.extend(self.index_checksum.to_le_bytes());
        bytes.extend(self.file_bytes.to_le_bytes());
        let sum = xxh3_64(&bytes);
        bytes.extend(sum.to_le_bytes());
        debug_assert_eq!(bytes.len(), index(HEADER_BYTES));
        (bytes, sum)
    }

    /// Verifies the header of a shard of `file_bytes` bytes, and returns the header with its checksum.
    ///
    /// `bytes` is the start of the shard, up to [`LONGEST_HEADER`] bytes. Checks in this order: magic, header length,
    /// checksum, version, fields, bounds.
    pub(super) fn parse(file: &Place, bytes: &[u8], file_bytes: u64) -> Result<(Self, u64), StorageError> {
        let damaged =
            |offset, expected: &str, found: String| StorageError::damaged(file, offset, expected, found);
        let short = || damaged(0, "the header of a shard", format!("a file of {file_bytes} bytes"));

        let mut preamble = Fields(bytes);
        let magic: [u8; 8] = preamble.array().ok_or_else(short)?;
        if magic != MAGIC {
            return Err(damaged(0, "EX2048SH, the first bytes of a shard", magic.escape_ascii().to_string()));
        }
        let version = preamble.u32().ok_or_else(short)?;
        let length = preamble.u32().ok_or_else(short)?;
        if !HEADER_LENGTHS.contains(&length) {
            return Err(damaged(12, "a header length of 24 to 4096", length.to_string()));
        }
        let newer =
            || StorageError::NewerVersion { file: file.clone(), found: version, supported: SHARD_VERSION };
        let Some(header) = bytes.get(..index(length)) else {
            // `bytes` may contain only a part of a longer header.
            return Err(if version > SHARD_VERSION && file_bytes > length.into() {
                newer()
            } else {
                short()
            });
        };
        let (summed, stated) = header.split_last_chunk().ok_or_else(short)?;
        let (stated, actual) = (u64::from_le_bytes(*stated), xxh3_64(summed));
        if stated != actual {
            let expected = format!("a header with checksum {}", hex64(stated));
            return Err(damaged(0, &expected, format!("checksum {}", hex64(actual))));
        }
        if version > SHARD_VERSION {
            return Err(newer());
        }
        if version != SHARD_VERSION || length != HEADER_BYTES {
            let expected = format!("format version {SHARD_VERSION} with a header of {HEADER_BYTES} bytes");
            return Err(damaged(8, &expected, format!("version {version}, {length} bytes")));
        }

        let mut fields = Fields(summed.get(PREAMBLE_BYTES..).ok_or_else(short)?);
        let run = RunId(fields.array().ok_or_else(short)?);
        let [kind, rows, cols, zero] = fields.array().ok_or_else(short)?;
        let kind = ShardKind::from_byte(kind).ok_or_else(|| damaged(32, "kind 1 to 3", kind.to_string()))?;
        if zero != 0 {
            return Err(damaged(35, "0", zero.to_string()));
        }
        let first_layer = fields.u32().ok_or_else(short)?;
        let last_layer = fields.u32().ok_or_else(short)?;
        let frames = fields.u32().ok_or_else(short)?;
        let rule_hash = fields.u64().ok_or_else(short)?;
        let header = Self {
            identity: ShardIdentity { run, kind, rows, cols, first_layer, last_layer, rule_hash },
            frames,
            items: fields.u64().ok_or_else(short)?,
            index_offset: fields.u64().ok_or_else(short)?,
            index_bytes: fields.u64().ok_or_else(short)?,
            index_checksum: fields.u64().ok_or_else(short)?,
            file_bytes: fields.u64().ok_or_else(short)?,
        };
        header.check_bounds(file, file_bytes)?;
        Ok((header, actual))
    }

    /// Checks that a file starts like a shard. The error contains the file's first bytes, for messages.
    pub(super) fn begins(bytes: &[u8]) -> Result<(), String> {
        match bytes.get(..MAGIC.len()) {
            Some(magic) if *magic == MAGIC => Ok(()),
            _ if bytes.is_empty() => Err("an empty file".to_owned()),
            begin => Err(begin.unwrap_or(bytes).escape_ascii().to_string()),
        }
    }

    /// Checks the fields against the file, so no later offset points outside the file.
    fn check_bounds(&self, file: &Place, file_bytes: u64) -> Result<(), StorageError> {
        let identity = &self.identity;
        if identity.first_layer > identity.last_layer {
            let expected = format!("a last layer of at least {}", identity.first_layer);
            return Err(StorageError::damaged(file, 40, expected, identity.last_layer.to_string()));
        }
        if self.file_bytes != file_bytes {
            let expected = format!("a file of {} bytes", self.file_bytes);
            return Err(StorageError::damaged(file, 88, expected, format!("{file_bytes} bytes")));
        }
        // Frames lie between the header and the index, and the index is at the end of the file. So every byte is
        // accounted for.
        let index_end = self.index_offset.checked_add(self.index_bytes);
        if self.index_offset < u64::from(HEADER_BYTES) || index_end != Some(file_bytes) {
            let expected = format!("an index after the header that ends at {file_bytes}");
            let found = format!("{} bytes at {}", self.index_bytes, self.index_offset);
            return Err(StorageError::damaged(file, 64, expected, found));
        }
        Ok(())
    }
}
