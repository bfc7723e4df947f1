//! Jobs and workers as JSON, for `exact2048 status --json` and for the coordinator's page.

use exact2048_game::{Discount, KeptLayers, Spawner};
use exact2048_proto::v1::{Job, JobState, Pass, RunParameters, Worker, WorkerActivity};
use serde::Serialize;

use crate::wire::{discount_of, spawner_of};

/// A job, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct JobView {
    job: String,
    state: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    failure: String,
    cancelling: bool,
    checking: bool,
    trouble: String,
    board: String,
    objective: String,
    spawn4: String,
    /// The discount; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    discount: Option<String>,
    /// The spawner; absent if it is chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    spawner: Option<String>,
    /// The position from which the run begins; absent if it begins with the starts of games.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    precision: u32,
    until_layer: Option<u32>,
    /// The kept layers, in the syntax of `--keep`.
    keep: String,
    /// Whether the run also stores the best move of every state.
    best_moves: bool,
    /// Step to which stored values are rounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_step: Option<String>,
    run: String,
    phase: Option<&'static str>,
    layer: Option<u32>,
    first_layer: Option<u32>,
    last_layer: Option<u32>,
    states: u64,
    states_total: Option<u64>,
    states_per_second: f64,
    done: f64,
    eta_seconds: Option<f64>,
    job_eta_seconds: Option<f64>,
    bytes: u64,
    /// Bytes of the run on disk. This field and the next two are present if the run has a disk limit and was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_on_disk: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_disk_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_limit_bytes: Option<u64>,
    retries: u64,
    epochs: u64,
    worker_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

/// A worker, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct WorkerView {
    worker: String,
    address: String,
    threads: u32,
    memory_bytes: u64,
    activity: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    job: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_layer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_layer: Option<u32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "is_zero")]
    backoff_seconds: f64,
    silent_seconds: f64,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// The whole visible state, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum StatusView {
    /// A cluster.
    All {
        /// In order of their turns.
        jobs: Vec<JobView>,
        /// In order of their ids.
        workers: Vec<WorkerView>,
    },
    /// A job.
    One {
        /// The job.
        #[serde(flatten)]
        job: Box<JobView>,
        /// The workers that work on it.
        workers: Vec<WorkerView>,
    },
}

impl StatusView {
    /// The view of a cluster.
    #[must_use]
    pub fn all(jobs: &[Job], workers: &[Worker]) -> Self {
        let jobs = jobs.iter().map(JobView::from).collect();
        Self::All { jobs, workers: workers.iter().map(WorkerView::from).collect() }
    }

    /// The view of a job.
    #[must_use]
    pub fn one(job: &Job, workers: &[Worker]) -> Self {
        let workers = at_work(job, workers).map(WorkerView::from).collect();
        Self::One { job: Box::new(job.into()), workers }
    }
}

impl From<&Job> for JobView {
    fn from(job: &Job) -> Self {
        let parameters = job.parameters.clone().unwrap_or_default();
        Self {
            job: job.name.clone(),
            state: state_name(job.state()),
            failure: job.failure.clone(),
            cancelling: job.cancelling,
            checking: job.checking,
            trouble: job.trouble.clone(),
            board: board_text(&parameters),
            spawn4: spawn4(&parameters),
            discount: Some(discount(&parameters)).filter(|&d| d != Discount::NONE).map(|d| d.to_string()),
            from: parameters.position.clone(),
            spawner: Some(spawner(&parameters)).filter(|&s| s != Spawner::Random).map(|s| s.to_string()),
            objective: parameters.objective.clone(),
            precision: parameters.precision_bits,
            until_layer: parameters.until_layer,
            keep: kept(&parameters).to_string(),
            best_moves: parameters.best_moves,
            value_step: Some(parameters.value_step).filter(|step| !step.is_empty()),
            run: job.run_url.clone(),
            phase: phase_name(job.pass()),
            layer: job.layer,
            first_layer: job.first_layer,
            last_layer: job.last_layer,
            states: job.states_done,
            states_total: job.states_total,
            states_per_second: job.states_per_second,
            done: job.done,
            eta_seconds: job.eta_seconds,
            job_eta_seconds: job.job_eta_seconds,
            bytes: job.bytes,
            bytes_on_disk: job.disk.map(|disk| disk.bytes),
            peak_disk_bytes: job.disk.map(|disk| disk.peak_bytes),
            disk_limit_bytes: job.disk.map(|disk| disk.limit_bytes),
            retries: job.retries,
            epochs: job.epochs,
            worker_count: job.workers,
            fingerprint: Some(job.fingerprint.clone()).filter(|text| !text.is_empty()),
        }
    }
}

impl From<&Worker> for WorkerView {
    fn from(worker: &Worker) -> Self {
        Self {
            worker: worker.id.clone(),
            address: worker.address.clone(),
            threads: worker.threads,
            memory_bytes: worker.memory_bytes,
            activity: activity_name(worker.activity()),
            job: worker.job.clone(),
            first_layer: worker.first_layer,
            last_layer: worker.last_layer,
            reason: worker.reason.clone(),
            backoff_seconds: worker.backoff_seconds,
            silent_seconds: worker.silent_seconds,
        }
    }
}

/// The workers that work on a job.
pub fn at_work<'a>(job: &'a Job, workers: &'a [Worker]) -> impl Iterator<Item = &'a Worker> {
    workers.iter().filter(|worker| worker.job == job.name)
}

/// Returns the name of a state.
#[must_use]
pub fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Unspecified => "unknown",
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Cancelled => "cancelled",
        JobState::Failed => "failed",
    }
}

/// Returns the name of a pass, as in the names of fields.
#[must_use]
pub fn phase_name(pass: Pass) -> Option<&'static str> {
    match pass {
        Pass::Unspecified => None,
        Pass::Enumerate => Some("enumerate"),
        Pass::BackUp => Some("back_up"),
    }
}

fn activity_name(activity: WorkerActivity) -> &'static str {
    match activity {
        WorkerActivity::Unspecified => "unknown",
        WorkerActivity::Working => "working",
        WorkerActivity::Writing => "writing",
        WorkerActivity::Waiting => "waiting",
        WorkerActivity::Unwell => "unwell",
        WorkerActivity::BackingOff => "backing_off",
        WorkerActivity::TooSmall => "too_small",
        WorkerActivity::Leaving => "leaving",
    }
}

/// Returns the rows, columns and stones of a job's board.
#[must_use]
pub fn board_text(parameters: &RunParameters) -> String {
    parameters.size().map_or_else(|_| String::new(), |size| size.to_string())
}

/// The chance that a spawned tile is a 4, as a fraction.
#[must_use]
pub fn spawn4(parameters: &RunParameters) -> String {
    format!("{}/{}", parameters.spawn4_numerator, parameters.spawn4_denominator)
}

/// Returns the discount of a job's run, or the default if the message is invalid.
#[must_use]
pub fn discount(parameters: &RunParameters) -> Discount {
    discount_of(parameters).unwrap_or_default()
}

/// Returns the spawner of a job's run, or the default if the name is unknown.
#[must_use]
pub fn spawner(parameters: &RunParameters) -> Spawner {
    spawner_of(parameters).unwrap_or_default()
}

/// Returns the kept layers of a job's run, or the default if the message is invalid.
#[must_use]
pub fn kept(parameters: &RunParameters) -> KeptLayers {
    let kept = parameters.kept.and_then(|kept| KeptLayers::new(kept.period, kept.width).ok());
    kept.unwrap_or_default()
}
