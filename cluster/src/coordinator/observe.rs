//! Logs and metrics of events.

use exact2048_coordinator::cluster::{Append, Event, JobState, WorkerId};
use exact2048_net::log_limiter::LogLimiter;
use exact2048_net::text::with_causes;
use exact2048_proto::v1;
use exact2048_solution::RunError;
use exact2048_storage::ShardKind;
use metrics::{counter, describe_counter, describe_gauge, gauge};

use super::board::ClusterSnapshot;
use super::records;
use crate::view::state_name;

const WORKERS: &str = "exact2048_workers";
const JOBS: &str = "exact2048_jobs";
const STATES: &str = "exact2048_states_total";
const STATES_RATE: &str = "exact2048_states_per_second";
const BYTES: &str = "exact2048_committed_bytes";
const WRITTEN: &str = "exact2048_written_bytes_total";
const COMMITS: &str = "exact2048_commits_total";
const RETRACTIONS: &str = "exact2048_retractions_total";
const EPOCHS: &str = "exact2048_epochs_total";
const EPOCHS_FAILED: &str = "exact2048_epochs_failed_total";
const WORKERS_LOST: &str = "exact2048_workers_lost_total";
const APPENDS_FAILED: &str = "exact2048_appends_failed_total";

/// Describes the metrics. Called once at the start. Counters begin with 0, because a metric without a sample is
/// invisible.
pub fn describe() {
    describe_gauge!(WORKERS, "Registered workers");
    describe_gauge!(JOBS, "Jobs, by state");
    describe_counter!(
        STATES,
        "States that workers have finished, in both passes of all jobs, retries included"
    );
    describe_gauge!(STATES_RATE, "States per second of the current job, averaged over about 20 seconds");
    describe_gauge!(BYTES, "Bytes of committed shards of all jobs");
    describe_counter!(WRITTEN, "Bytes of committed shards, by kind");
    describe_counter!(COMMITS, "Committed ranges of layers");
    describe_counter!(RETRACTIONS, "Commits retracted because a shard was lost");
    describe_counter!(EPOCHS, "Epochs begun");
    describe_counter!(EPOCHS_FAILED, "Failed epochs, whose uncommitted work is repeated");
    describe_counter!(WORKERS_LOST, "Workers silent for longer than their lease");
    describe_counter!(APPENDS_FAILED, "Failed appends to journals, which are retried");
    for name in [COMMITS, RETRACTIONS, EPOCHS, EPOCHS_FAILED, WORKERS_LOST, APPENDS_FAILED] {
        counter!(name).increment(0);
    }
    for kind in [ShardKind::Reach, ShardKind::Values] {
        counter!(WRITTEN, "kind" => kind.to_string()).increment(0);
    }
}

/// Sets the metrics that follow from a snapshot. `states` is the total number of states that workers have finished.
pub fn record(now: &ClusterSnapshot, states: u64) {
    let jobs = || now.jobs.values().map(|(_, job)| job);
    gauge!(WORKERS).set(now.workers.len() as f64);
    counter!(STATES).absolute(states);
    gauge!(STATES_RATE).set(jobs().map(|job| job.states_per_second).sum::<f64>());
    gauge!(BYTES).set(jobs().map(|job| job.bytes).sum::<u64>() as f64);
    for state in [
        v1::JobState::Queued,
        v1::JobState::Running,
        v1::JobState::Done,
        v1::JobState::Cancelled,
        v1::JobState::Failed,
    ] {
        let of_state = jobs().filter(|job| job.state() == state).count();
        gauge!(JOBS, "state" => state_name(state)).set(of_state as f64);
    }
}

/// Limiters of log lines, because any process that may pull can cause these lines.
static JOINED: LogLimiter = LogLimiter::new();
static LOST: LogLimiter = LogLimiter::new();
static FAILED: LogLimiter = LogLimiter::new();
static WELL: LogLimiter = LogLimiter::new();
static NOT_UNDERSTOOD: LogLimiter = LogLimiter::new();
static REFUSED: LogLimiter = LogLimiter::new();

/// Logs an invalid pull. `worker` is `None` if the pull's message could not be converted.
pub fn not_understood(worker: Option<WorkerId>, what: &dyn std::fmt::Display) {
    let worker = worker.map(tracing::field::display);
    NOT_UNDERSTOOD.pass(|left_out| tracing::warn!(worker, %what, left_out, "invalid pull"));
}

/// Logs that a worker is refused.
pub fn refused(worker: WorkerId, why: &dyn std::fmt::Display) {
    REFUSED.pass(|left_out| tracing::warn!(%worker, %why, left_out, "worker refused"));
}

/// Logs and counts an event.
pub fn log_event(event: &Event) {
    match event {
        Event::WorkerJoined { worker, threads, memory_bytes, address, again } => {
            let what = if *again { "worker restarted" } else { "worker joined" };
            JOINED.pass(|left_out| {
                tracing::info!(%worker, threads, memory_bytes, address, left_out, "{what}");
            });
        }
        Event::WorkerLost { worker, leaving: true } => {
            LOST.pass(|left_out| tracing::info!(%worker, left_out, "worker left"));
        }
        Event::WorkerLost { worker, leaving: false } => {
            counter!(WORKERS_LOST).increment(1);
            LOST.pass(|left_out| {
                tracing::warn!(%worker, left_out, "worker lost, silent for longer than its lease");
            });
        }
        Event::WorkerFailed { worker, epoch, failure } => {
            let epoch = epoch.map(|epoch| epoch.to_string());
            FAILED.pass(|left_out| tracing::warn!(%worker, epoch, %failure, left_out, "worker failed"));
        }
        Event::WorkerWell { worker } => {
            WELL.pass(|left_out| tracing::info!(%worker, left_out, "worker recovered"));
        }
        Event::EpochBegan(share) => {
            counter!(EPOCHS).increment(1);
            let (job, epoch, segment) = (&share.job, share.epoch, share.segment);
            let (first, last, workers) = (segment.first.0, segment.last.0, share.members.len());
            tracing::info!(%job, %epoch, phase = segment.phase.name(), first, last, workers, "epoch began");
            for member in &share.members {
                let (worker, threads, address) = (member.worker, member.threads, &member.address);
                tracing::debug!(%job, %epoch, %worker, threads, address, "epoch member");
            }
        }
        Event::EpochEnded { job, epoch } => {
            tracing::info!(%job, %epoch, "epoch ended");
        }
        Event::EpochFailed { job, epoch, reason } => {
            counter!(EPOCHS_FAILED).increment(1);
            tracing::warn!(%job, %epoch, reason, "epoch failed, uncommitted work is repeated");
        }
        Event::Appended(Append::Commit { job, epoch, commit, shards, .. }) => {
            let bytes = records::bytes(shards);
            counter!(COMMITS).increment(1);
            counter!(WRITTEN, "kind" => commit.phase.shard_kind().to_string()).increment(bytes);
            let (phase, first, last) = (commit.phase.name(), commit.first.0, commit.last.0);
            let shards = shards.len();
            tracing::info!(%job, %epoch, phase, first, last, shards, bytes, "committed");
        }
        Event::Appended(Append::Retract { job, epoch, commit, .. }) => {
            counter!(RETRACTIONS).increment(1);
            let (phase, first, last) = (commit.phase.name(), commit.first.0, commit.last.0);
            tracing::warn!(%job, %epoch, phase, first, last, "shard lost, recomputing its range");
        }
        Event::Appended(Append::Remove { job, removed, .. }) => {
            let ranges = removed.len();
            let (first, last) = (removed.first().map(|r| r.first.0), removed.last().map(|r| r.last.0));
            tracing::info!(%job, ranges, first, last, "unneeded reach removed");
        }
        Event::DiskLimitReached { job, epoch, times } => {
            tracing::info!(%job, %epoch, times, "disk limit reached, freeing space");
        }
        Event::Misread(claim) => {
            let (worker, job, file) = (claim.worker, &claim.job, &claim.file);
            tracing::warn!(%worker, %job, file, "worker cannot read an intact shard");
        }
        // The queue records the progress.
        Event::Progress { .. } => {}
        Event::Forgotten { job } => tracing::info!(%job, "job forgotten, its run stays"),
        Event::Job { job, state: JobState::Failed { reason } } => {
            tracing::error!(%job, reason, "job failed; fix the cause, then resume it");
        }
        Event::Job { job, state } => {
            tracing::info!(%job, state = state.name(), "job state changed")
        }
    }
}

/// Logs and counts that an append failed.
pub fn append_failed(append: &Append, error: &RunError) {
    counter!(APPENDS_FAILED).increment(1);
    let (job, error) = (append.job(), with_causes(error));
    let epoch = match append {
        Append::Commit { epoch, .. } | Append::Retract { epoch, .. } => Some(epoch.to_string()),
        Append::Remove { .. } => None,
    };
    tracing::warn!(%job, epoch, error, "append failed");
}
