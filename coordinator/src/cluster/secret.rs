//! What only the members of an epoch know.

use std::fmt;

use subtle::ConstantTimeEq;

/// 128 random bits that only some may know. They are neither printed nor logged, and two of them are compared in a
/// time that does not tell how much of them is equal.
#[derive(Clone, Copy)]
pub struct Secret([u8; Secret::BYTES]);

impl Secret {
    /// Length in bytes.
    pub const BYTES: usize = 16;

    /// The secret of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes, for those who may know it.
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

/// Where a cluster gets the secrets of its epochs from. The decisions of a cluster are the same whatever they are.
pub struct Secrets(Box<dyn FnMut() -> Secret + Send>);

impl Secrets {
    /// Secrets that `draw` returns: each time other ones, which nobody can guess.
    pub fn new(draw: impl FnMut() -> Secret + Send + 'static) -> Self {
        Self(Box::new(draw))
    }

    /// The next one.
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
    fn secrets_are_compared_and_not_shown() {
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
