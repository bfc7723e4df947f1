//! Between the messages of `proto/exact2048/v1/coordinator.proto` and the types of the pure code.
//!
//! What comes from a network is checked here, once: a value that got through has lengths, layers and sums with which
//! the code that gets it can calculate. Conversions to messages cannot fail.

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
    cluster_status, is_run_unknown, is_unmet, refusal_of, refusal_status, run_unknown_status,
    status_with_reason, unmet_status, wire_status,
};
pub use secret::{proof_of, secret_of, worker_of};
pub use status::{job_message, worker_message};

/// Number of an opening record of a journal: shards are made on behalf of the writer that appended it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OpeningId(pub u64);

/// What a worker has to work on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Its part of a segment.
    pub share: Share,
    /// Where the job's run is: a path, or a URL as `Location::parse` reads it.
    pub run_url: String,
    /// The opening record that the worker names in the `Attempt`s of its shards.
    pub opening: OpeningId,
}

/// The answer to a pull, as a worker sees it. See `PullReply` of the pure code for the fields that both have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Reports with lower numbers have arrived and may be forgotten.
    pub acknowledged: u64,
    /// The epoch of the pull is over: drop everything of it.
    pub withdrawn: Option<EpochId>,
    /// What to work on; repeated until the worker says that it is in that epoch.
    pub assignment: Option<Assignment>,
    /// How far the worker's epoch is, where it is in the current one.
    pub progress: Option<EpochProgress>,
    /// A shard to write; repeated until the worker reports it as written.
    pub write: Option<WriteShard>,
    /// The job whose turn it is needs this much memory of the worker, in bytes, and the worker has less.
    pub needed_memory: Option<u64>,
}

/// A message that says nothing that can be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// A field is not what it should be.
    #[error("{field}: {what}")]
    Field {
        /// Its name, and those of the messages around it.
        field: String,
        /// What is wrong.
        what: String,
    },
    /// The other side speaks another protocol, so that the rest of the message was not looked at.
    #[error("the other side speaks protocol {got}, this one {expected}: use the same build for both")]
    Version {
        /// What this side speaks.
        expected: u32,
        /// What the other side speaks.
        got: u32,
    },
}

impl WireError {
    fn field(field: &str, what: impl std::fmt::Display) -> Self {
        Self::Field { field: field.to_owned(), what: what.to_string() }
    }

    /// This error, with the field named as seen from the message around it.
    fn within(self, outer: &str) -> Self {
        match self {
            Self::Field { field, what } => Self::Field { field: format!("{outer}.{field}"), what },
            version @ Self::Version { .. } => version,
        }
    }
}

/// Most bytes of an address.
const MAX_ADDRESS_BYTES: usize = 512;

/// Most bytes of what a worker says of a failure, with control characters as escapes; what is longer is cut.
const MAX_WORDS_BYTES: usize = 2048;

/// Most bytes of what a worker says of a shard.
const MAX_RECORD_BYTES: usize = 16 << 10;

/// Counts and bytes of a worker's part of a layer are below this, so that sums over 2^16 workers do not overflow.
const MAX_COUNT: u64 = 1 << 46;

/// Most threads of a worker.
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
    Err(WireError::field("threads", format!("{threads}: expected 1 to {MAX_THREADS}")))
}

fn address_of(address: String) -> Result<String, WireError> {
    if address.len() > MAX_ADDRESS_BYTES {
        let what = format!("{} bytes: expected at most {MAX_ADDRESS_BYTES}", address.len());
        return Err(WireError::field("address", what));
    }
    if !is_address(&address) {
        let what = format!("{:?}: expected a URL such as http://HOST:PORT", plain_words(&address, 80));
        return Err(WireError::field("address", what));
    }
    Ok(address)
}

fn pass_of(field: &str, pass: i32) -> Result<Phase, WireError> {
    match v1::Pass::try_from(pass) {
        Ok(v1::Pass::Enumerate) => Ok(Phase::Enumerate),
        Ok(v1::Pass::BackUp) => Ok(Phase::BackUp),
        Ok(v1::Pass::Unspecified) | Err(_) => {
            Err(WireError::field(field, format!("{pass}: expected PASS_ENUMERATE or PASS_BACK_UP")))
        }
    }
}

fn pass_message(phase: Phase) -> v1::Pass {
    match phase {
        Phase::Enumerate => v1::Pass::Enumerate,
        Phase::BackUp => v1::Pass::BackUp,
    }
}

/// A range of layers: even tile sums from 4 on, the lower one first.
fn layers_of(first: u32, last: u32) -> Result<(Layer, Layer), WireError> {
    let is_layer = |layer: u32| Layer::of_sum(layer).is_some();
    if !is_layer(first) {
        return Err(WireError::field("first_layer", format!("{first}: expected an even number from 4 on")));
    }
    if !is_layer(last) || last < first {
        return Err(WireError::field(
            "last_layer",
            format!("{last}: expected an even number from {first} on"),
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
