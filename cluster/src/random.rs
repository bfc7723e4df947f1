//! Random numbers that cannot be guessed: secrets, tokens, and ids of workers.

use exact2048_coordinator::cluster::{Secret, Secrets, WorkerId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The system provides no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("cannot get random numbers from the system")]
pub struct NoRandomNumbers(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Draws the id of a new worker.
///
/// # Errors
///
/// [`NoRandomNumbers`].
pub fn worker_id() -> Result<WorkerId, NoRandomNumbers> {
    Ok(WorkerId(generator()?.random()))
}

/// Draws a token: 64 hexadecimal digits.
///
/// # Errors
///
/// Those of [`worker_id`].
pub fn token() -> Result<String, NoRandomNumbers> {
    let words: [u128; 2] = generator()?.random();
    Ok(words.map(|word| format!("{word:032x}")).concat())
}

/// Creates a source of secrets.
///
/// # Errors
///
/// Those of [`worker_id`].
pub fn secrets() -> Result<Secrets, NoRandomNumbers> {
    let mut generator = generator()?;
    Ok(Secrets::new(move || Secret::new(generator.random())))
}

/// Creates a generator that is secure enough for secrets. The system's random numbers are its seed.
fn generator() -> Result<StdRng, NoRandomNumbers> {
    StdRng::try_from_os_rng().map_err(|error| NoRandomNumbers(Box::new(error)))
}
