//! Conversions between the messages of `proto/exact2048/v1/coordinator.proto` and the types of the pure code.
//!
//! Data from the network is checked here, once: lengths, layers and sums of an accepted value are safe to calculate
//! with. Conversions to messages cannot fail.

mod answer;
#[cfg(test)]
mod damaged;
mod params;
mod pull;
mod refusal;
mod secret;
mod status;

use exact2048_coordinator::cluster::{EpochId, EpochProgress, JobId, PROTOCOL_VERSION, Share, WriteShard};
use exact2048_game::Layer;
use exact2048_net::client::is_address;
use exact2048_net::text::plain_words;
use exact2048_proto::v1;
use exact2048_solution::Phase;

use crate::names;

pub use params::{discount_of, params_of, spawner_of};
pub use pull::{pull_message, pull_of};
pub use refusal::{
    cluster_status, is_run_unknown, is_unreachable, refusal_of, refusal_status, run_unknown_status,
    status_with_reason, unreachable_status, wire_status,
};
pub use secret::{proof_of, secret_of, worker_of};
pub use status::{job_message, worker_message};

/// Number of an opening record of a journal. Shards are written on behalf of the writer that appended it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OpeningId(pub u64);

/// The work of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Its part of a segment.
    pub share: Share,
    /// Location of the job's run: a path, or a URL as `Location::parse` reads it.
    pub run_url: String,
    /// The opening record that the worker names in the `Attempt`s of its shards.
    pub opening: OpeningId,
}

/// The answer to a pull, as seen by a worker. The pure code's `PullReply` describes the common fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Reports with lower numbers have arrived, and the worker may drop them.
    pub acknowledged: u64,
    /// The pull's epoch is over: drop all its data.
    pub withdrawn: Option<EpochId>,
    /// The next work, repeated until the worker reports that it is in that epoch.
    pub assignment: Option<Assignment>,
    /// Progress of the worker's epoch, if that is the current one.
    pub progress: Option<EpochProgress>,
    /// A shard to write; repeated until the worker reports it as written.
    pub write: Option<WriteShard>,
    /// Memory in bytes that the current job needs of the worker, if the worker has less.
    pub needed_memory: Option<u64>,
}

/// An invalid message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// A field is invalid.
    #[error("{field}: {what}")]
    Field {
        /// The field's name, preceded by those of the messages around it.
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

    /// Prefixes the field's name with that of the message around it.
    fn within(self, outer: &str) -> Self {
        match self {
            Self::Field { field, what } => Self::Field { field: format!("{outer}.{field}"), what },
            version @ Self::Version { .. } => version,
        }
    }
}

/// Maximum length of an address, in bytes.
const MAX_ADDRESS_BYTES: usize = 512;

/// Maximum length of a worker's description of a failure, in bytes with escaped control characters; longer texts are
/// cut.
const MAX_WORDS_BYTES: usize = 2048;

/// Maximum length of a shard's record from a worker, in bytes.
const MAX_RECORD_BYTES: usize = 16 << 10;

/// Exclusive bound on counts and bytes of a worker's part of a layer, so sums over 2^16 workers do not overflow.
const MAX_COUNT: u64 = 1 << 46;

/// Maximum number of threads of a worker.
const MAX_THREADS: u32 = 1 << 16;

fn check_version(got: u32) -> Result<(), WireError> {
    match got {
        PROTOCOL_VERSION => Ok(()),
        _ => Err(WireError::Version { expected: PROTOCOL_VERSION, got }),
    }
}

fn job_of(field: &str, name: &str) -> Result<JobId, WireError> {
    names::parse(name).map_err(|error| WireError::field(field, error))
}

fn threads_of(threads: u32) -> Result<u32, WireError> {
    if (1..=MAX_THREADS).contains(&threads) {
        return Ok(threads);
    }
    Err(WireError::field("threads", format!("expected 1 to {MAX_THREADS}, found {threads}")))
}

fn address_of(address: String) -> Result<String, WireError> {
    if address.len() > MAX_ADDRESS_BYTES {
        let what = format!("expected at most {MAX_ADDRESS_BYTES} bytes, found {}", address.len());
        return Err(WireError::field("address", what));
    }
    if !is_address(&address) {
        let what = format!("expected a URL such as http://HOST:PORT, found {:?}", plain_words(&address, 80));
        return Err(WireError::field("address", what));
    }
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

/// Checks a range of layers: even tile sums from 4 on, the lower one first.
fn layers_of(first: u32, last: u32) -> Result<(Layer, Layer), WireError> {
    let is_layer = |layer: u32| Layer::of_sum(layer).is_some();
    if !is_layer(first) {
        return Err(WireError::field(
            "first_layer",
            format!("expected an even number from 4 on, found {first}"),
        ));
    }
    if !is_layer(last) || last < first {
        return Err(WireError::field(
            "last_layer",
            format!("expected an even number from {first} on, found {last}"),
        ));
    }
    Ok((Layer(first), Layer(last)))
}

fn write_of(message: v1::WriteShard) -> Result<WriteShard, WireError> {
    let (first, last) = layers_of(message.first_layer, message.last_layer)?;
    Ok(WriteShard { epoch: EpochId(message.epoch), first, last })
}

fn write_message(write: WriteShard) -> v1::WriteShard {
    v1::WriteShard { epoch: write.epoch.0, first_layer: write.first.0, last_layer: write.last.0 }
}
