//! Parsers of option values, with errors that state the expected form.

use std::ffi::OsString;
use std::path::PathBuf;

use bytesize::ByteSize;
use clap::builder::{OsStringValueParser, RangedI64ValueParser, TypedValueParser};
use exact2048_run::machine::MOST_THREADS;
use exact2048_storage::Location;

/// A number of bytes, as in `60GB` or `512MiB`.
pub fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "expected a size such as 512MiB or 60GB".to_owned())
}

/// A number of threads.
pub fn threads() -> RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=i64::from(MOST_THREADS))
}

/// A file or a folder of this machine: a path, or `file:///PATH`.
pub fn local_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(is_not_stdout).try_map(|text| Location::parse_local(&text))
}

/// Refuses `-`, which means stdout in other programs.
fn is_not_stdout(text: OsString) -> Result<OsString, &'static str> {
    if text == "-" {
        Err("expected a file or a folder, found '-'; write ./- for a file of that name")
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_state_the_expected_form() {
        assert_eq!(size("1.5KiB").map(|size| size.as_u64()), Ok(1536));
        for wrong in ["", "-1", "1.5X", "many"] {
            assert!(size(wrong).unwrap_err().contains("512MiB"), "{wrong}");
        }
    }
}
