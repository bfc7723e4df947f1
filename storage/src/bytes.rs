//! Little-endian fields of fixed-size structures.

/// Reads fields from the front of a byte slice; `None` if the slice is too short.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Converts a 32-bit count or length to an index. Lossless, because the crate does not build if `usize` is shorter.
pub(crate) const fn index(value: u32) -> usize {
    const { assert!(usize::BITS >= u32::BITS, "lengths of 32 bits must fit in memory") };
    value as usize
}

/// Formats a number as 16 hex digits for messages and JSON, because some JSON readers round 64-bit integers.
pub(crate) fn hex64(value: u64) -> String {
    format!("{value:016x}")
}

/// Serde support for fields written as [`hex64`].
pub(crate) mod as_hex64 {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::hex64(*value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16)
            .ok()
            .filter(|value| super::hex64(*value) == text)
            .ok_or_else(|| D::Error::custom(format!("expected 16 hex digits, found {text:?}")))
    }
}
