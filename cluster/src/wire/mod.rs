//! Conversions between the messages of `proto/exact2048/v1/coordinator.proto` and the types of the pure code.
//!
//! This module checks data from the network once. After that, lengths, layers and sums of an accepted value are
//! safe to calculate with. Conversions to messages cannot fail.

mod answer;
#[cfg(test)]
mod damaged;
mod params;
mod pull;
mod refusal;
mod status;

use exact2048_coordinator::cluster::{
    EpochId, JobId, PROTOCOL_VERSION, PullReply, Secret, Share, WriteShard,
};
use exact2048_game::Layer;
use exact2048_net::client::is_address;
use exact2048_net::text::plain_words;
use exact2048_proto::v1;
use exact2048_solution::Phase;

use crate::names;

pub use answer::{answer_message, answer_of};
pub use params::{discount_of, params_of, spawner_of};
pub use pull::{pull_message, pull_of};
pub use refusal::{cluster_status, is_run_unknown, refusal_of, refusal_status, run_unknown_status};
pub use status::{job_message, worker_message};

/// Number of an opening record of a journal. Workers write shards on behalf of the process that appended this
/// record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OpeningId(pub u64);

/// The work of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// The worker's part of a segment.
    pub share: Share,
    /// Location of the job's run: a path or a URL that `Location::parse` accepts.
    pub run_url: String,
    /// The opening record that the worker names in the `Attempt`s of its shards.
    pub opening: OpeningId,
}

/// The answer to a pull, as seen by a worker.
pub type Answer = PullReply<Assignment>;

/// An invalid message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// A field is invalid.
    #[error("{field}: {what}")]
    Field {
        /// The field's name, preceded by the names of the messages around it.
        field: String,
        /// The expected and the found value.
        what: String,
    },
    /// The other side has another protocol version, so the rest of the message was ignored.
    #[error("expected protocol {expected}, found {got} on the other side; use the same build for both")]
    Version {
        /// Version of this side.
        expected: u32,
        /// Version of the other side.
        got: u32,
    },
}

impl WireError {
    fn field(field: &str, what: impl std::fmt::Display) -> Self {
        Self::Field { field: field.to_owned(), what: what.to_string() }
    }

    /// Returns an error about a field unless `is_valid` is set.
    fn unless(is_valid: bool, field: &str, what: impl FnOnce() -> String) -> Result<(), Self> {
        if is_valid { Ok(()) } else { Err(Self::field(field, what())) }
    }

    /// Prefixes the field's name with the name of the message around it.
    fn within(self, outer: &str) -> Self {
        match self {
            Self::Field { field, what } => Self::Field { field: format!("{outer}.{field}"), what },
            version @ Self::Version { .. } => version,
        }
    }
}

/// Maximum length of an address, in bytes.
const MAX_ADDRESS_BYTES: usize = 512;

/// Maximum length of a worker's description of a failure, in bytes after control characters are escaped. Longer
/// texts are truncated.
const MAX_WORDS_BYTES: usize = 2048;

/// Maximum length of a shard's record from a worker, in bytes.
const MAX_RECORD_BYTES: usize = 16 << 10;

/// Exclusive bound on counts and bytes of a worker's part of a layer. Sums over 2^16 workers below this bound do
/// not overflow.
const MAX_COUNT: u64 = 1 << 46;

/// Maximum number of threads of a worker.
const MAX_THREADS: u32 = 1 << 16;

/// Requires that the other side has this version of the protocol.
///
/// # Errors
///
/// [`WireError::Version`].
pub fn check_version(got: u32) -> Result<(), WireError> {
    match got {
        PROTOCOL_VERSION => Ok(()),
        _ => Err(WireError::Version { expected: PROTOCOL_VERSION, got }),
    }
}

/// Checks the secret in a field of a message.
///
/// # Errors
///
/// [`WireError::Field`] if the length is wrong. The error does not repeat the bytes.
pub fn secret_of(field: &str, bytes: &[u8]) -> Result<Secret, WireError> {
    let found =
        || WireError::field(field, format!("expected {} bytes, found {}", Secret::BYTES, bytes.len()));
    bytes.try_into().map(Secret::new).map_err(|_| found())
}

fn job_of(field: &str, name: &str) -> Result<JobId, WireError> {
    names::parse(name).map_err(|error| WireError::field(field, error))
}

fn threads_of(threads: u32) -> Result<u32, WireError> {
    let is_valid = (1..=MAX_THREADS).contains(&threads);
    WireError::unless(is_valid, "threads", || format!("expected 1 to {MAX_THREADS}, found {threads}"))?;
    Ok(threads)
}

fn address_of(address: String) -> Result<String, WireError> {
    WireError::unless(address.len() <= MAX_ADDRESS_BYTES, "address", || {
        format!("expected at most {MAX_ADDRESS_BYTES} bytes, found {}", address.len())
    })?;
    WireError::unless(is_address(&address), "address", || {
        format!("expected a URL such as http://HOST:PORT, found {:?}", plain_words(&address, 80))
    })?;
    Ok(address)
}

fn pass_of(field: &str, pass: i32) -> Result<Phase, WireError> {
    match v1::Pass::try_from(pass) {
        Ok(v1::Pass::Enumerate) => Ok(Phase::Enumerate),
        Ok(v1::Pass::BackUp) => Ok(Phase::BackUp),
        Ok(v1::Pass::Unspecified) | Err(_) => {
            Err(WireError::field(field, format!("expected PASS_ENUMERATE or PASS_BACK_UP, found {pass}")))
        }
    }
}

fn pass_message(phase: Phase) -> v1::Pass {
    match phase {
        Phase::Enumerate => v1::Pass::Enumerate,
        Phase::BackUp => v1::Pass::BackUp,
    }
}

/// Checks that a range of layers consists of even tile sums from 4 on, with the lower sum first.
fn layers_of(first: u32, last: u32) -> Result<(Layer, Layer), WireError> {
    let is_layer = |layer: u32| Layer::of_sum(layer).is_some();
    let expected = |least: u32, found: u32| format!("expected an even number from {least} on, found {found}");
    WireError::unless(is_layer(first), "first_layer", || expected(4, first))?;
    WireError::unless(is_layer(last) && last >= first, "last_layer", || expected(first, last))?;
    Ok((Layer(first), Layer(last)))
}

fn write_of(message: v1::WriteShard) -> Result<WriteShard, WireError> {
    let (first, last) = layers_of(message.first_layer, message.last_layer)?;
    Ok(WriteShard { epoch: EpochId(message.epoch), first, last })
}

fn write_message(write: WriteShard) -> v1::WriteShard {
    v1::WriteShard { epoch: write.epoch.0, first_layer: write.first.0, last_layer: write.last.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_other_lengths_are_refused_and_not_repeated() {
        assert_eq!(secret_of("secret", &[7; 16]), Ok(Secret::new([7; 16])));
        for wrong in [&b""[..], &[7; 15], &[7; 17]] {
            let refused = secret_of("secret", wrong).unwrap_err().to_string();
            assert!(refused.starts_with("secret: ") && !refused.contains("07"), "{refused}");
        }
    }
}
