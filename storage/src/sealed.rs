//! Sealed JSON: a JSON file that carries a checksum of its body.
//!
//! The checksum covers the exact text of the body, and every byte around the body is fixed. So a change of any byte
//! is detected. The envelope is the same in every format version.

use std::io::{self, Read};
use std::path::Path;

use exact2048_files::{not_a_file, open};
use serde::Deserialize;
use serde_json::error::Category;
use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::hex64;
use crate::{Place, StorageError};

const BEFORE_CHECKSUM: &str = "{\"xxh3\":\"";
const BEFORE_BODY: &str = "\",\"body\":";
const AFTER_BODY: &str = "}\n";

/// Largest sealed file. Without a bound, reading a damaged or foreign file could fill the memory.
pub(crate) const MAX_BYTES: u64 = 64 << 20;

/// Returns the bytes of a sealed file with this JSON body.
pub(crate) fn seal(what: &'static str, body: &str) -> Result<Vec<u8>, StorageError> {
    let checksum = hex64(xxh3_64(body.as_bytes()));
    let sealed = [BEFORE_CHECKSUM, &checksum, BEFORE_BODY, body, AFTER_BODY].concat().into_bytes();
    if sealed.len() as u64 > MAX_BYTES {
        let remedy = "Keep bulk data in shards";
        return Err(StorageError::TooLarge { what, bytes: sealed.len() as u64, limit: MAX_BYTES, remedy });
    }
    Ok(sealed)
}

/// Reads a sealed file without verifying it; `None` if the file does not exist.
pub(crate) fn read(file: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    let mut bytes = Vec::new();
    let opened = match open(file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            return Err(match not_a_file(&e) {
                Some(found) => StorageError::damaged(file, 0, "a file", found),
                None => StorageError::read(file, e),
            });
        }
        Ok(opened) => opened,
    };
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| StorageError::read(file, e))?;
    if bytes.len() as u64 > MAX_BYTES {
        let found = "a longer file";
        return Err(StorageError::damaged(file, MAX_BYTES, format!("at most {MAX_BYTES} bytes"), found));
    }
    Ok(Some(bytes))
}

/// Offset of the body in bytes from the start of the file.
const BODY_OFFSET: u64 = (BEFORE_CHECKSUM.len() + 16 + BEFORE_BODY.len()) as u64;

/// Verifies the checksum of a sealed file and returns its body.
pub(crate) fn unseal<'a>(file: &Place, bytes: &'a [u8]) -> Result<&'a [u8], StorageError> {
    let envelope = || {
        let rest = bytes.strip_prefix(BEFORE_CHECKSUM.as_bytes())?;
        let (checksum, rest) = rest.split_at_checked(16)?;
        let body = rest.strip_prefix(BEFORE_BODY.as_bytes())?.strip_suffix(AFTER_BODY.as_bytes())?;
        Some((checksum, body))
    };
    let Some((stated, body)) = envelope() else {
        let expected = format!("{BEFORE_CHECKSUM}<16 hex digits>{BEFORE_BODY}...}} and a line feed");
        return Err(StorageError::damaged(file, 0, expected, format!("{} other bytes", bytes.len())));
    };
    // Compare the text, because upper-case digits give the same number but differ from the written bytes.
    let actual = hex64(xxh3_64(body));
    if stated != actual.as_bytes() {
        let stated = format!("checksum {}", String::from_utf8_lossy(stated));
        return Err(StorageError::damaged(file, BODY_OFFSET, stated, format!("checksum {actual}")));
    }
    Ok(body)
}

/// Parses the body of a sealed file. `other` makes the error for valid JSON of another type.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    file: &Place,
    body: &'a [u8],
    other: impl FnOnce(serde_json::Error) -> StorageError,
) -> Result<T, StorageError> {
    serde_json::from_slice(body).map_err(|e| match e.classify() {
        Category::Data => other(e),
        Category::Io | Category::Syntax | Category::Eof => {
            StorageError::damaged(file, BODY_OFFSET, "JSON", format!("{e} (counted from this byte)"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn open(bytes: &[u8]) -> Result<Value, StorageError> {
        let file = Place::from(Path::new("x"));
        parse(&file, unseal(&file, bytes)?, |e| panic!("{e}"))
    }

    #[test]
    fn a_sealed_body_is_json_and_survives_exactly() {
        let body = json!({ "f": 0.1 + 0.2, "tiny": 5e-324, "u": u64::MAX, "text": "\u{e9}\n\"}" });
        for text in [body.to_string(), format!("{body:#}")] {
            let sealed = seal("a test", &text).unwrap();
            assert_eq!(open(&sealed).unwrap(), body);
            assert_eq!(serde_json::from_slice::<Value>(&sealed).unwrap()["body"], body);
        }
    }

    #[test]
    fn every_changed_missing_or_added_byte_is_detected() {
        let sealed = seal("a test", &json!({ "a": [1, 2.5, "ab"], "b": null }).to_string()).unwrap();
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << bit;
                assert!(open(&changed).is_err(), "bit {bit} of byte {at}");
            }
            assert!(open(&sealed[..at]).is_err(), "cut at {at}");
        }
        for extra in [b' ', b'\n', b'}', 0] {
            assert!(open(&[&sealed[..], &[extra]].concat()).is_err());
        }
    }

    #[test]
    fn a_sealed_body_that_is_not_json_is_an_error() {
        let error = open(&seal("a test", "{nonsense").unwrap()).unwrap_err();
        assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
    }
}
