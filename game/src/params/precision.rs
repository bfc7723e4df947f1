//! Precision of values.

use serde::{Deserialize, Serialize};

/// Number of bits of a stored value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Precision {
    /// 32 bits per value.
    Bits32,
    /// 64 bits per value.
    Bits64,
}

impl Precision {
    /// Number of bytes of a stored value.
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(u8::from(self)) / 8
    }
}

impl From<Precision> for u8 {
    fn from(precision: Precision) -> u8 {
        match precision {
            Precision::Bits32 => 32,
            Precision::Bits64 => 64,
        }
    }
}

impl TryFrom<u8> for Precision {
    type Error = String;

    fn try_from(bits: u8) -> Result<Self, String> {
        match bits {
            32 => Ok(Precision::Bits32),
            64 => Ok(Precision::Bits64),
            _ => Err(format!("precision {bits} is not known; expected 32 or 64")),
        }
    }
}
