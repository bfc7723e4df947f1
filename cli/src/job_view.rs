//! Jobs and workers of a cluster, as they are shown: as JSON for scripts, in words for people.

use std::ffi::OsStr;
use std::io::{self, Write};

use exact2048_cluster::wire::{discount_of, spawner_of};
use exact2048_game::{Discount, KeptLayers, Spawner};
use exact2048_proto::v1::{Job, JobState, Pass, RunParameters, Worker, WorkerActivity};
use serde::Serialize;

use crate::job::{kept_text, rules_text};
use crate::output::{self, write_field};
use crate::summary::RunSummary;
use crate::units;

/// A job, as `--json` prints it.
#[derive(Serialize)]
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
    /// Only where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    discount: Option<String>,
    /// Only where it is not chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    spawner: Option<String>,
    precision: u32,
    until_layer: Option<u32>,
    /// As `--keep` takes it.
    keep: String,
    /// Whether the best move of every state is stored, too.
    best_moves: bool,
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
    retries: u64,
    epochs: u64,
    worker_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

/// A worker, as `--json` prints it.
#[derive(Serialize)]
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

/// What there is to see, as `--json` prints it.
#[derive(Serialize)]
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
        /// Those that are at it.
        workers: Vec<WorkerView>,
    },
}

impl StatusView {
    /// The view of a cluster.
    pub fn all(jobs: &[Job], workers: &[Worker]) -> Self {
        let jobs = jobs.iter().map(JobView::from).collect();
        Self::All { jobs, workers: workers.iter().map(WorkerView::from).collect() }
    }

    /// The view of a job.
    pub fn one(job: &Job, workers: &[Worker]) -> Self {
        let workers = at_work(job, workers).map(WorkerView::from).collect();
        Self::One { job: Box::new(job.into()), workers }
    }
}

/// The workers that are at a job.
fn at_work<'a>(job: &'a Job, workers: &'a [Worker]) -> impl Iterator<Item = &'a Worker> {
    workers.iter().filter(|worker| worker.job == job.name)
}

/// A word for a state.
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

/// A word for what happens to a job.
fn doing_name(job: &Job) -> &'static str {
    match job.state() {
        _ if job.cancelling => "cancelling",
        _ if job.checking => "checking",
        JobState::Running if !job.trouble.is_empty() => "stuck",
        JobState::Running if job.workers == 0 => "waiting for workers",
        state => state_name(state),
    }
}

/// A word for a pass, as in the names of fields.
fn phase_name(pass: Pass) -> Option<&'static str> {
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

fn spawn4(parameters: &RunParameters) -> String {
    format!("{}/{}", parameters.spawn4_numerator, parameters.spawn4_denominator)
}

/// The discount of a job's run. What no coordinator would have taken is shown as the default.
fn discount(parameters: &RunParameters) -> Discount {
    discount_of(parameters).unwrap_or_default()
}

/// Who places the tiles in a job's run, in the same way.
fn spawner(parameters: &RunParameters) -> Spawner {
    spawner_of(parameters).unwrap_or_default()
}

/// Which layers' values the run of a job stores. What no coordinator would have taken is shown as the default.
fn kept(parameters: &RunParameters) -> KeptLayers {
    let kept = parameters.kept.and_then(|kept| KeptLayers::new(kept.period, kept.width).ok());
    kept.unwrap_or_default()
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
            board: format!("{}x{}", parameters.rows, parameters.columns),
            spawn4: spawn4(&parameters),
            discount: Some(discount(&parameters)).filter(|&d| d != Discount::NONE).map(|d| d.to_string()),
            spawner: Some(spawner(&parameters)).filter(|&s| s != Spawner::Random).map(|s| s.to_string()),
            objective: parameters.objective.clone(),
            precision: parameters.precision_bits,
            until_layer: parameters.until_layer,
            keep: kept(&parameters).to_string(),
            best_moves: parameters.best_moves,
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

/// A text from elsewhere without control characters, which could move the cursor or forge lines.
pub fn plain(text: &str) -> String {
    exact2048_net::text::plain(text).into_owned()
}

/// When the job is done.
fn eta(job: &Job) -> String {
    job.job_eta_seconds.map_or("unknown".to_owned(), units::about)
}

/// The layer that a job is at, of the last one that it comes to; both are tile sums.
fn layer(job: &Job) -> String {
    let count = |layer: Option<u32>| units::count(layer.unwrap_or_default());
    format!("layer {} of {}", count(job.layer), count(job.last_layer))
}

/// What a job is doing, in a line.
pub fn line(job: &Job) -> String {
    let parts: Vec<String> = headline(job).into_iter().chain(details(job)).collect();
    parts.join(", ")
}

/// What a job is doing and when it is done: what matters most comes first.
pub fn headline(job: &Job) -> Vec<String> {
    let state = match job.state() {
        JobState::Done if job.checking => "done, its shards are read again",
        _ => doing_name(job),
    };
    let Some(phase) = phase_name(job.pass()).filter(|_| job.state() == JobState::Running) else {
        return vec![state.to_owned()];
    };
    vec![format!("{state}: {}", phase.replace('_', " ")), format!("ETA {}", eta(job)), layer(job)]
}

/// How fast a running job is, and what it has so far; empty for other jobs. What matters most comes first.
pub fn details(job: &Job) -> Vec<String> {
    if !job.trouble.is_empty() {
        return vec![plain(&job.trouble)];
    }
    if job.state() != JobState::Running || phase_name(job.pass()).is_none() {
        return Vec::new();
    }
    let retries = match job.retries {
        0 => None,
        1 => Some("1 retry".to_owned()),
        retries => Some(format!("{} retries", units::count(retries))),
    };
    let known = [
        units::several(job.workers, "worker"),
        units::rate(job.states_per_second),
        format!("{} states", units::count(job.states_done)),
        format!("{} written", units::size(job.bytes)),
    ];
    known.into_iter().chain(retries).collect()
}

/// What a worker is doing, in words.
pub fn doing(worker: &Worker) -> String {
    let layers = |worker: &Worker| match (worker.first_layer, worker.last_layer) {
        (Some(first), Some(last)) if first != last => {
            format!("layers {} to {}", units::count(first), units::count(last))
        }
        (Some(first), _) => format!("layer {}", units::count(first)),
        _ => "some layers".to_owned(),
    };
    match worker.activity() {
        WorkerActivity::Working => format!("{}: {}", worker.job, layers(worker)),
        WorkerActivity::Writing => format!("{}: writing {}", worker.job, layers(worker)),
        WorkerActivity::Waiting => "waiting for work".to_owned(),
        WorkerActivity::Unwell => format!("cannot work: {}", plain(&worker.reason)),
        WorkerActivity::BackingOff => {
            format!("has failed, gets work again in {}", units::about(worker.backoff_seconds.ceil()))
        }
        WorkerActivity::TooSmall => "its memory is too small for the job".to_owned(),
        WorkerActivity::Leaving => "leaving".to_owned(),
        WorkerActivity::Unspecified => "unknown".to_owned(),
    }
}

/// Writes tables of all jobs and workers.
pub fn write_all(out: &mut impl Write, jobs: &[Job], workers: &[Worker]) -> io::Result<()> {
    if jobs.is_empty() {
        writeln!(out, "no jobs: submit one with exact2048 submit")?;
    } else {
        let header =
            ["job", "state", "phase", "layer", "done", "states", "ETA", "written", "workers", "retries"];
        let rows: Vec<Vec<String>> = jobs.iter().map(job_row).collect();
        // On a narrow terminal the columns from the right go first, but for when it is done.
        output::write_fitting(out, &header, &[0, 1, 2], &rows, &[9, 7, 5, 8, 3, 2])?;
    }
    writeln!(out)?;
    write_workers_or_advice(out, workers)
}

fn write_workers_or_advice(out: &mut impl Write, workers: &[Worker]) -> io::Result<()> {
    if workers.is_empty() {
        writeln!(out, "no workers: start some with exact2048 worker")
    } else {
        write_workers(out, workers.iter())
    }
}

fn job_row(job: &Job) -> Vec<String> {
    let running = job.state() == JobState::Running;
    let of_running = |text: String| if running { text } else { String::new() };
    vec![
        job.name.clone(),
        doing_name(job).to_owned(),
        phase_name(job.pass()).unwrap_or_default().replace('_', " "),
        job.layer.map(units::count).unwrap_or_default(),
        units::percent(job.done),
        of_running(units::rate(job.states_per_second)),
        of_running(eta(job)),
        units::size(job.bytes),
        units::count(job.workers),
        units::count(job.retries),
    ]
}

fn write_workers<'a>(out: &mut impl Write, workers: impl Iterator<Item = &'a Worker>) -> io::Result<()> {
    let row = |worker: &Worker| {
        vec![
            worker.id.clone(),
            doing(worker),
            plain(&worker.address),
            units::count(worker.threads),
            units::size(worker.memory_bytes),
            format!("{} ago", units::time(worker.silent_seconds)),
        ]
    };
    let rows: Vec<Vec<String>> = workers.map(row).collect();
    let header = ["worker", "doing", "address", "threads", "memory", "heard"];
    output::write_fitting(out, &header, &[0, 1, 2], &rows, &[2, 4, 3, 5])
}

/// Writes all that there is to say of a job.
pub fn write_one(out: &mut impl Write, job: &Job, workers: &[Worker]) -> io::Result<()> {
    let parameters = job.parameters.clone().unwrap_or_default();
    write_field(out, "job", &job.name)?;
    let (rows, columns, objective) = (parameters.rows, parameters.columns, &parameters.objective);
    let rules = rules_text(&spawn4(&parameters), discount(&parameters), spawner(&parameters));
    write_field(out, "board", format!("{rows}x{columns}, {objective}, {rules}"))?;
    if parameters.until_layer.is_none() {
        write_field(out, "kept layers", kept_text(kept(&parameters), parameters.best_moves))?;
    }
    write_field(out, "run", &job.run_url)?;
    write_field(out, "state", doing_name(job))?;
    for (name, what) in [("failure", &job.failure), ("trouble", &job.trouble)] {
        if !what.is_empty() {
            write_field(out, name, plain(what))?;
        }
    }
    if job.state() == JobState::Failed {
        write_field(out, "to go on", format!("exact2048 resume {}, once its cause is gone", job.name))?;
    }
    if let (Some(phase), Some(_)) = (phase_name(job.pass()), job.layer) {
        let done = units::percent(job.done);
        write_field(out, "phase", format!("{}, {}, {done} of it", phase.replace('_', " "), layer(job)))?;
    }
    let total = job.states_total.map(|total| format!(" of {}", units::count(total))).unwrap_or_default();
    write_field(out, "states", format!("{}{total}", units::count(job.states_done)))?;
    if job.state() == JobState::Running {
        write_field(out, "speed", units::rate(job.states_per_second))?;
        let pass = job.eta_seconds.filter(|pass| job.job_eta_seconds.is_some_and(|job| job - pass >= 1.0));
        let pass = pass.map(|left| format!(", {} for this pass", units::about(left)));
        write_field(out, "ETA", format!("{}{}", eta(job), pass.unwrap_or_default()))?;
    }
    write_field(out, "written", units::size(job.bytes))?;
    let epochs = units::several(job.epochs, "epoch");
    write_field(out, "retries", format!("{} in {epochs}", units::count(job.retries)))?;
    if at_work(job, workers).next().is_some() {
        writeln!(out)?;
        return write_workers(out, at_work(job, workers));
    }
    if job.state() == JobState::Running {
        // They say why they are not at it.
        writeln!(out)?;
        return write_workers_or_advice(out, workers);
    }
    Ok(())
}

/// Writes what a job that is solved came to: from its run where that can be read from here, else its fingerprint.
pub fn write_result(out: &mut impl Write, job: &Job, run: Option<&RunSummary>) -> io::Result<()> {
    match run {
        Some(run) => run.write_results(out)?,
        None if !job.fingerprint.is_empty() => write_field(out, "fingerprint", &job.fingerprint)?,
        None => {}
    }
    if job.fingerprint.is_empty() { Ok(()) } else { output::write_next(out, OsStr::new(&job.run_url)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job {
            name: "3x3".to_owned(),
            state: JobState::Running.into(),
            pass: Pass::Enumerate.into(),
            layer: Some(54),
            first_layer: Some(4),
            last_layer: Some(104),
            states_done: 2_500,
            workers: 2,
            retries: 1,
            ..Job::default()
        }
    }

    #[test]
    fn control_characters_are_told_and_not_obeyed() {
        assert_eq!(plain("\u{1b}[2Jfail\nline\u{7}"), "\\u{1b}[2Jfail\\nline\\u{7}");
        assert_eq!(plain("plain – text"), "plain – text");
    }

    #[test]
    fn texts_of_workers_do_not_move_the_cursor() {
        let worker = Worker {
            activity: WorkerActivity::Unwell.into(),
            reason: "\u{1b}[2J\nforged".to_owned(),
            address: "\u{1b}[31mhost".to_owned(),
            ..Worker::default()
        };
        let mut out = Vec::new();
        assert!(write_all(&mut out, &[Job { trouble: "\u{7}".to_owned(), ..job() }], &[worker]).is_ok());
        let text = String::from_utf8_lossy(&out);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
        assert!(text.contains("forged") && text.contains("host"), "{text}");
    }

    #[test]
    fn a_line_says_whether_it_is_stuck() {
        let text = line(&job());
        for word in
            ["running: enumerate", "layer 54 of 104", "2,500 states", "2 workers", "ETA unknown", "1 retry"]
        {
            assert!(text.contains(word), "{text}");
        }
        assert!(line(&Job { workers: 0, ..job() }).starts_with("waiting for workers"));
        assert_eq!(line(&Job { state: JobState::Queued.into(), ..job() }), "queued");
    }
}
