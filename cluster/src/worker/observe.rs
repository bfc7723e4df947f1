//! The metrics of a worker. [`describe`] explains their names.

use exact2048_solution::Phase;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};

pub const STATES: &str = "exact2048_states_total";
pub const EPOCHS: &str = "exact2048_epochs_total";
pub const EPOCHS_FAILED: &str = "exact2048_epochs_failed_total";
pub const IN_EPOCH: &str = "exact2048_in_epoch";
pub const SENDING_BYTES: &str = "exact2048_sending_bytes";
pub const UNWRITTEN_BYTES: &str = "exact2048_unwritten_bytes";
pub const REPORTS_WAITING: &str = "exact2048_reports_waiting";
pub const PUSHED_BYTES: &str = "exact2048_pushed_bytes_total";
pub const RECEIVED_BYTES: &str = "exact2048_received_bytes_total";
pub const DENIED: &str = "exact2048_denied_total";
pub const WRITTEN_BYTES: &str = "exact2048_written_bytes_total";
pub const GIVEN_BYTES: &str = "exact2048_given_bytes_total";
pub const CACHED_SHARDS: &str = "exact2048_cached_shards_total";
pub const FETCHED_SHARDS: &str = "exact2048_fetched_shards_total";
pub const FETCHED_BYTES: &str = "exact2048_fetched_bytes_total";
pub const PULL_SECONDS: &str = "exact2048_pull_seconds";

/// Label of shards that a peer sent.
pub const PEER: &str = "peer";
/// Label of shards that no peer had.
pub const STORE: &str = "store";

/// Describes the metrics, and makes all of them visible. Called once at the start.
pub fn describe() {
    describe_counter!(STATES, "States that this worker has finished, by pass, repeated work included");
    describe_counter!(EPOCHS, "Epochs begun by this worker");
    describe_counter!(EPOCHS_FAILED, "Epochs that failed on this worker, whose uncommitted work is repeated");
    describe_gauge!(IN_EPOCH, "1 while this worker is in an epoch");
    describe_gauge!(SENDING_BYTES, Unit::Bytes, "Bytes of blocks waiting to be sent to other workers");
    describe_gauge!(UNWRITTEN_BYTES, Unit::Bytes, "Bytes of packed layers waiting to be written as shards");
    describe_gauge!(REPORTS_WAITING, "Reports not acknowledged by the coordinator");
    describe_counter!(PUSHED_BYTES, Unit::Bytes, "Bytes of blocks sent to other workers");
    describe_counter!(RECEIVED_BYTES, Unit::Bytes, "Bytes of blocks received from other workers");
    describe_counter!(DENIED, "Calls with a wrong secret of the epoch");
    describe_counter!(WRITTEN_BYTES, Unit::Bytes, "Bytes of shards written to the store");
    describe_counter!(GIVEN_BYTES, Unit::Bytes, "Bytes of copies of shards sent to other workers");
    describe_counter!(CACHED_SHARDS, "Committed shards opened from the cache");
    describe_counter!(
        FETCHED_SHARDS,
        "Committed shards missing in the cache, fetched from another worker (peer) or from the store"
    );
    describe_counter!(FETCHED_BYTES, Unit::Bytes, "Bytes of the shards missing in the cache");
    describe_histogram!(PULL_SECONDS, Unit::Seconds, "Time from a pull to the coordinator's answer");
    show_all();
}

/// Gives each counter and gauge a first sample, because a metric without a sample is invisible.
fn show_all() {
    for phase in [Phase::Enumerate, Phase::BackUp] {
        counter!(STATES, "phase" => phase.name()).increment(0);
    }
    for name in [
        EPOCHS,
        EPOCHS_FAILED,
        PUSHED_BYTES,
        RECEIVED_BYTES,
        DENIED,
        WRITTEN_BYTES,
        GIVEN_BYTES,
        CACHED_SHARDS,
    ] {
        counter!(name).increment(0);
    }
    for from in [PEER, STORE] {
        counter!(FETCHED_SHARDS, "from" => from).increment(0);
        counter!(FETCHED_BYTES, "from" => from).increment(0);
    }
    for name in [IN_EPOCH, SENDING_BYTES, UNWRITTEN_BYTES, REPORTS_WAITING] {
        gauge!(name).set(0.0);
    }
}
