//! Secrets: random numbers that cannot be guessed.

use exact2048_coordinator::cluster::{Secret, Secrets};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The system has no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("cannot get random numbers from the system")]
pub struct NoRandomNumbers(#[source] Box<dyn std::error::Error + Send + Sync>);

/// A new secret.
///
/// # Errors
///
/// Where the system has no random numbers.
pub fn secret() -> Result<Secret, NoRandomNumbers> {
    Ok(Secret::new(generator()?.random()))
}

/// Secrets, one after the other.
///
/// # Errors
///
/// As for [`secret`].
pub fn secrets() -> Result<Secrets, NoRandomNumbers> {
    let mut generator = generator()?;
    Ok(Secrets::new(move || Secret::new(generator.random())))
}

/// A generator that is fit for secrets, which begins with the system's random numbers.
fn generator() -> Result<StdRng, NoRandomNumbers> {
    StdRng::try_from_os_rng().map_err(|error| NoRandomNumbers(Box::new(error)))
}
