//! Secrets that only the members of an epoch know.

use std::fmt;

use subtle::ConstantTimeEq;

/// A secret of 128 random bits. It is never printed or logged. Comparisons take constant time, so they do not
/// reveal a matching part.
#[derive(Clone, Copy)]
pub struct Secret([u8; Secret::BYTES]);

impl Secret {
    /// Length in bytes.
    pub const BYTES: usize = 16;

    /// Creates a secret from these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the secret, to send to parties that may know it.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Source of the secrets of epochs. The decisions of a cluster do not depend on secrets.
pub struct Secrets(Box<dyn FnMut() -> Secret + Send>);

impl Secrets {
    /// Uses the secrets that `draw` returns. Each of them must be unpredictable and new.
    pub fn new(draw: impl FnMut() -> Secret + Send + 'static) -> Self {
        Self(Box::new(draw))
    }

    /// Returns the next secret.
    pub(super) fn draw(&mut self) -> Secret {
        (self.0)()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_and_never_printed() {
        let secret = Secret::new([0xab; 16]);
        assert_eq!(secret, Secret::new([0xab; 16]));
        let mut other = [0xab; 16];
        other[15] = 0;
        assert_ne!(secret, Secret::new(other));
        for shown in [format!("{secret:?}"), format!("{:?}", Secrets::new(move || secret))] {
            assert!(!shown.contains("ab") && !shown.contains("171"), "{shown}");
        }
    }
}
