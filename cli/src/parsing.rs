//! Values of options, with errors that say what is expected.

use std::net::SocketAddr;

use bytesize::ByteSize;

/// A number of bytes, as in `60GB` or `512MiB`.
pub fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "expected a size such as 512MiB or 60GB".to_owned())
}

/// Where to listen.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an address and a port in numbers, for example 127.0.0.1:8048 or [::1]:8048".to_owned()
    })
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
        assert!(address("[::1]:8048").is_ok());
        for wrong in ["localhost:8048", "8048", "127.0.0.1"] {
            assert!(address(wrong).unwrap_err().contains("127.0.0.1:8048"), "{wrong}");
        }
    }
}
