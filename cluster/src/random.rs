//! Secrets: random numbers that nobody can guess.

use anyhow::{Context, Result};
use exact2048_coordinator::cluster::{Secret, Secrets};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A new secret.
///
/// # Errors
///
/// Where the system has no random numbers.
pub fn secret() -> Result<Secret> {
    Ok(Secret::new(generator()?.random()))
}

/// Secrets, one after the other.
///
/// # Errors
///
/// As for [`secret`].
pub fn secrets() -> Result<Secrets> {
    let mut generator = generator()?;
    Ok(Secrets::new(move || Secret::new(generator.random())))
}

/// A generator that is fit for secrets, which begins with the system's random numbers.
fn generator() -> Result<StdRng> {
    StdRng::try_from_os_rng().context("the system has no random numbers")
}
