//! Jobs and workers as JSON, for `exact2048 status --json` and for the coordinator's page.

use exact2048_game::{Discount, KeptLayers, Spawner};
use exact2048_proto::v1::{Job, JobState, Pass, RunParameters, Worker, WorkerActivity};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::wire::{discount_of, spawner_of};

/// A job, as `--json` prints it.
#[derive(Debug)]
pub struct JobView(pub Job);

/// A worker, as `--json` prints it.
#[derive(Debug)]
pub struct WorkerView(pub Worker);

/// The whole visible state, as `--json` prints it.
#[derive(Debug, serde::Serialize)]
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
        let jobs = jobs.iter().cloned().map(JobView).collect();
        Self::All { jobs, workers: workers.iter().cloned().map(WorkerView).collect() }
    }

    /// The view of a job.
    #[must_use]
    pub fn one(job: &Job, workers: &[Worker]) -> Self {
        let workers = at_work(job, workers).cloned().map(WorkerView).collect();
        Self::One { job: Box::new(JobView(job.clone())), workers }
    }
}

impl Serialize for JobView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(job) = self;
        let parameters = &job.parameters.clone().unwrap_or_default();
        let discount = Some(discount(parameters)).filter(|&discount| discount != Discount::NONE);
        let spawner = Some(spawner(parameters)).filter(|&spawner| spawner != Spawner::Random);
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("job", &job.name)?;
        fields.serialize_entry("state", state_name(job.state()))?;
        present(&mut fields, "failure", filled(&job.failure))?;
        fields.serialize_entry("cancelling", &job.cancelling)?;
        fields.serialize_entry("checking", &job.checking)?;
        fields.serialize_entry("trouble", &job.trouble)?;
        fields.serialize_entry("board", &board_text(parameters))?;
        fields.serialize_entry("objective", &parameters.objective)?;
        fields.serialize_entry("spawn4", &spawn4(parameters))?;
        // Absent without a discount.
        present(&mut fields, "discount", discount.map(|discount| discount.to_string()))?;
        // Absent if the spawner is chance.
        present(&mut fields, "spawner", spawner.map(|spawner| spawner.to_string()))?;
        // The position from which the run begins; absent if it begins with the starts of games.
        present(&mut fields, "from", parameters.position.as_ref())?;
        fields.serialize_entry("precision", &parameters.precision_bits)?;
        fields.serialize_entry("until_layer", &parameters.until_layer)?;
        // The kept layers, in the syntax of `--keep`.
        fields.serialize_entry("keep", &kept(parameters).to_string())?;
        // Whether the run also stores the best move of every state.
        fields.serialize_entry("best_moves", &parameters.best_moves)?;
        // Step to which stored values are rounded.
        present(&mut fields, "value_step", filled(&parameters.value_step))?;
        fields.serialize_entry("run", &job.run_url)?;
        fields.serialize_entry("phase", &phase_name(job.pass()))?;
        fields.serialize_entry("layer", &job.layer)?;
        fields.serialize_entry("first_layer", &job.first_layer)?;
        fields.serialize_entry("last_layer", &job.last_layer)?;
        fields.serialize_entry("states", &job.states_done)?;
        fields.serialize_entry("states_total", &job.states_total)?;
        fields.serialize_entry("states_per_second", &job.states_per_second)?;
        fields.serialize_entry("done", &job.done)?;
        fields.serialize_entry("eta_seconds", &job.eta_seconds)?;
        fields.serialize_entry("job_eta_seconds", &job.job_eta_seconds)?;
        fields.serialize_entry("bytes", &job.bytes)?;
        // Bytes of the run on disk. This field and the next two are present if the run has a disk limit and was opened.
        present(&mut fields, "bytes_on_disk", job.disk.map(|disk| disk.bytes))?;
        present(&mut fields, "peak_disk_bytes", job.disk.map(|disk| disk.peak_bytes))?;
        present(&mut fields, "disk_limit_bytes", job.disk.map(|disk| disk.limit_bytes))?;
        fields.serialize_entry("retries", &job.retries)?;
        fields.serialize_entry("epochs", &job.epochs)?;
        fields.serialize_entry("worker_count", &job.workers)?;
        present(&mut fields, "fingerprint", filled(&job.fingerprint))?;
        fields.end()
    }
}

impl Serialize for WorkerView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(worker) = self;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("worker", &worker.id)?;
        fields.serialize_entry("address", &worker.address)?;
        fields.serialize_entry("threads", &worker.threads)?;
        fields.serialize_entry("memory_bytes", &worker.memory_bytes)?;
        fields.serialize_entry("activity", activity_name(worker.activity()))?;
        present(&mut fields, "job", filled(&worker.job))?;
        present(&mut fields, "first_layer", worker.first_layer)?;
        present(&mut fields, "last_layer", worker.last_layer)?;
        present(&mut fields, "reason", filled(&worker.reason))?;
        let backoff = Some(worker.backoff_seconds).filter(|&seconds| seconds != 0.0);
        present(&mut fields, "backoff_seconds", backoff)?;
        fields.serialize_entry("silent_seconds", &worker.silent_seconds)?;
        fields.end()
    }
}

/// Adds a field if it has a value.
fn present<M: SerializeMap>(
    fields: &mut M,
    name: &'static str,
    value: Option<impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| fields.serialize_entry(name, &value))
}

/// Returns a text unless it is empty.
fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
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
