//! Checks a shard against its record by length and header.

use super::ShardRecord;
use super::header::{HEADER_BYTES, Header};
use super::reader::Expected;
use crate::{Place, ShardIdentity, StorageError};

/// Number of bytes at the start of a shard that [`check_head`] needs.
pub(crate) const HEAD_BYTES: u32 = HEADER_BYTES;

/// Checks that a shard of `file_bytes` bytes that starts with `head` has this identity and matches its record.
pub(crate) fn check_head(
    file: &Place,
    head: &[u8],
    file_bytes: u64,
    record: &ShardRecord,
    identity: &ShardIdentity,
) -> Result<(), StorageError> {
    let (header, checksum) = Header::parse(file, head, file_bytes)?;
    Expected::Committed(record, identity).check(file, &header, checksum)?;
    let ShardIdentity { kind, first_layer, last_layer, .. } = header.identity;
    let fields = [
        ("kind", record.kind == kind, record.kind.to_string(), kind.to_string()),
        number("first layer", record.first_layer.into(), first_layer.into()),
        number("last layer", record.last_layer.into(), last_layer.into()),
        number("length", record.bytes, header.file_bytes),
        number("number of frames", record.frames, header.frames.into()),
        number("number of items", record.items, header.items),
    ];
    match fields.into_iter().find(|(_, equal, ..)| !equal) {
        Some((field, _, expected, found)) => {
            Err(StorageError::Foreign { file: file.clone(), field, expected, found })
        }
        None => Ok(()),
    }
}

fn number(field: &'static str, expected: u64, found: u64) -> (&'static str, bool, String, String) {
    (field, expected == found, expected.to_string(), found.to_string())
}
