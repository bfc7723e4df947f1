//! Random numbers that cannot be guessed: secrets, tokens, and ids of workers.

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// Creates a generator that is secure enough for secrets. The system's random numbers are its seed.
///
/// # Errors
///
/// The system provides no random numbers.
pub fn generator() -> Result<StdRng> {
    StdRng::try_from_os_rng().context("cannot get random numbers from the system")
}
