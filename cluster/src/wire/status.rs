//! Status messages of jobs and workers.

use exact2048_coordinator::cluster::{Activity, JobState, JobStatus, WorkerStatus};
use exact2048_game::Params;
use exact2048_proto::v1;

use super::pass_message;

/// Converts a job's status, with its parameters and the location of its run.
#[must_use]
pub fn job_message(status: &JobStatus, params: &Params, run_url: &str) -> v1::Job {
    let (state, failure) = match &status.state {
        JobState::Queued => (v1::JobState::Queued, ""),
        JobState::Running => (v1::JobState::Running, ""),
        JobState::Done => (v1::JobState::Done, ""),
        JobState::Cancelled => (v1::JobState::Cancelled, ""),
        JobState::Failed { reason } => (v1::JobState::Failed, reason.as_str()),
    };
    // The remaining time follows from the speed so far, but a job with an obstacle makes no progress now.
    let eta = status.eta.filter(|_| status.obstacle.is_none());
    v1::Job {
        name: status.job.0.clone(),
        parameters: Some(params.into()),
        run_url: run_url.to_owned(),
        state: state.into(),
        failure: failure.to_owned(),
        cancelling: status.cancelling,
        pass: status.phase.map_or(v1::Pass::Unspecified, pass_message).into(),
        layer: status.layer.map(|layer| layer.0),
        first_layer: status.segment.map(|segment| segment.first.0),
        last_layer: status.segment.map(|segment| segment.last.0),
        states_done: status.states_done,
        states_total: status.states_total,
        states_per_second: status.states_per_second,
        done: status.done,
        eta_seconds: eta.map(|eta| eta.pass.as_secs_f64()),
        job_eta_seconds: eta.map(|eta| eta.job.as_secs_f64()),
        bytes: status.bytes,
        retries: status.retries,
        epochs: status.epochs,
        workers: status.workers,
        fingerprint: status.fingerprint.map(|sum| format!("{sum:032x}")).unwrap_or_default(),
        disk: status.disk.map(|disk| v1::DiskUse {
            limit_bytes: disk.limit_bytes,
            bytes: disk.taken_bytes,
            peak_bytes: disk.peak_bytes,
        }),
        checking: status.checking,
        trouble: status.obstacle.clone().unwrap_or_default(),
    }
}

/// Converts a worker's status.
#[must_use]
pub fn worker_message(status: &WorkerStatus) -> v1::Worker {
    use v1::WorkerActivity as Is;

    let mut message = v1::Worker {
        id: status.worker.to_string(),
        address: status.address.clone(),
        threads: status.threads,
        memory_bytes: status.memory_bytes,
        silent_seconds: status.silent.as_secs_f64(),
        ..v1::Worker::default()
    };
    let activity = match &status.activity {
        Activity::Working { job, layer } => {
            message.job = job.0.clone();
            message.first_layer = Some(layer.0);
            message.last_layer = Some(layer.0);
            Is::Working
        }
        Activity::Writing { job, first, last } => {
            message.job = job.0.clone();
            message.first_layer = Some(first.0);
            message.last_layer = Some(last.0);
            Is::Writing
        }
        Activity::Waiting => Is::Waiting,
        Activity::Unwell(reason) => {
            message.reason = reason.clone();
            Is::Unwell
        }
        Activity::BackingOff(left) => {
            message.backoff_seconds = left.as_secs_f64();
            Is::BackingOff
        }
        Activity::TooSmall => Is::TooSmall,
        Activity::Leaving => Is::Leaving,
    };
    message.activity = activity.into();
    message
}
