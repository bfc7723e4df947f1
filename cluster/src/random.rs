//! Random numbers that cannot be guessed: secrets, tokens, and ids of workers.

use anyhow::{Context, Result};
use exact2048_coordinator::cluster::{Secret, Secrets, WorkerId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Draws the id of a new worker.
///
/// # Errors
///
/// The system provides no random numbers.
pub fn worker_id() -> Result<WorkerId> {
    Ok(WorkerId(generator()?.random()))
}

/// Draws a token: 64 hexadecimal digits.
///
/// # Errors
///
/// Those of [`worker_id`].
pub fn token() -> Result<String> {
    let words: [u128; 2] = generator()?.random();
    Ok(words.map(|word| format!("{word:032x}")).concat())
}

/// Creates a source of secrets.
///
/// # Errors
///
/// Those of [`worker_id`].
pub fn secrets() -> Result<Secrets> {
    let mut generator = generator()?;
    Ok(Secrets::new(move || Secret::new(generator.random())))
}

/// Creates a generator that is secure enough for secrets. The system's random numbers are its seed.
fn generator() -> Result<StdRng> {
    StdRng::try_from_os_rng().context("cannot get random numbers from the system")
}
