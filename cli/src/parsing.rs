//! Values of options, with errors that say what is expected.

use bytesize::ByteSize;

/// A number of bytes, as in `60GB` or `512MiB`.
pub fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "expected a size such as 512MiB or 60GB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_expected() {
        assert_eq!(size("1.5KiB").map(|size| size.as_u64()), Ok(1536));
        for wrong in ["", "-1", "1.5X", "many"] {
            assert!(size(wrong).unwrap_err().contains("512MiB"), "{wrong}");
        }
    }
}
