//! Jobs and workers of a cluster as text for people.

use std::ffi::OsStr;
use std::io::{self, Write};

use exact2048_cluster::view::{at_work, board_text, discount, kept, spawn4, spawner, state_name};
use exact2048_proto::v1::{DiskUse, Job, JobState, Pass, Worker, WorkerActivity};
use exact2048_solution::Phase;

use crate::job::{kept_text, rules_text};
use crate::output::{self, write_field};
use crate::summary::RunSummary;
use crate::units::SizeUnits;
use crate::{pass, units};

/// The state of a job in a word. A running job with only idle workers is starting, because the coordinator is opening
/// its run or is giving more workers time to join.
fn doing_name(job: &Job, workers: &[Worker]) -> &'static str {
    let is_free = |worker: &Worker| worker.activity() == WorkerActivity::Waiting;
    match job.state() {
        _ if job.cancelling => "cancelling",
        _ if job.checking => "checking",
        JobState::Running if !job.trouble.is_empty() => "stuck",
        JobState::Running if job.workers == 0 && workers.iter().any(is_free) => "starting",
        JobState::Running if job.workers == 0 => "waiting for workers",
        state => state_name(state),
    }
}

/// Escapes control characters in a text from other programs, because the characters could move the cursor or forge lines.
pub fn plain(text: &str) -> String {
    exact2048_net::text::plain(text).into_owned()
}

/// The current pass of a job, if any.
fn phase(job: &Job) -> Option<Phase> {
    match job.pass() {
        Pass::Unspecified => None,
        Pass::Enumerate => Some(Phase::Enumerate),
        Pass::BackUp => Some(Phase::BackUp),
    }
}

/// The finished share of the pass, with the name of the pass.
pub fn share_done(job: &Job, share: String) -> String {
    share + phase(job).map_or("", pass::way)
}

/// The finished share, and the time left if the job is in a pass.
fn progress(job: &Job) -> String {
    let share = share_done(job, units::percent(job.done));
    match in_pass(job) {
        true => format!("{share}, {}", time_left(job)),
        false => share,
    }
}

/// The time left in the pass and in the whole job.
fn time_left(job: &Job) -> String {
    pass::time_left(job.eta_seconds, job.job_eta_seconds)
}

/// Whether a job is running and its pass is known.
fn in_pass(job: &Job) -> bool {
    job.state() == JobState::Running && phase(job).is_some()
}

/// The current layer of a job and the last layer of its pass, as tile sums.
fn layer(job: &Job) -> String {
    let count = |layer: Option<u32>| units::count(layer.unwrap_or_default());
    format!("layer {} of {}", count(job.layer), count(job.last_layer))
}

/// The activity of a job in one line.
pub fn line(job: &Job, workers: &[Worker]) -> String {
    let state = state(job, workers);
    let head = if in_pass(job) {
        vec![format!("{state}: {}", progress(job)), layer(job)]
    } else {
        vec![state.to_owned()]
    };
    head.into_iter().chain(details(job, |rate| rate)).collect::<Vec<_>>().join(", ")
}

/// The time left, state and layer of a job, most important first. The caller prints them after the finished share.
pub fn headline(job: &Job, workers: &[Worker]) -> Vec<String> {
    let state = state(job, workers).to_owned();
    if !in_pass(job) {
        return vec![state];
    }
    vec![time_left(job), state, layer(job)]
}

/// The state of a job, in words.
fn state(job: &Job, workers: &[Worker]) -> &'static str {
    match job.state() {
        JobState::Done if job.checking => "done, its shards are being checked",
        _ => doing_name(job, workers),
    }
}

/// The rate of a running job and its totals so far, most important first. `beside` adds a history to the rate.
///
/// If the job reports trouble, returns only the trouble. Returns nothing for a job outside a pass.
pub fn details(job: &Job, beside: impl FnOnce(String) -> String) -> Vec<String> {
    if !job.trouble.is_empty() {
        return vec![plain(&job.trouble)];
    }
    if !in_pass(job) {
        return Vec::new();
    }
    let retries = match job.retries {
        0 => None,
        1 => Some("1 retry".to_owned()),
        retries => Some(format!("{} retries", units::count(retries))),
    };
    let known = [
        beside(units::rate(job.states_per_second)),
        units::several(job.workers, "worker"),
        format!("{} states", units::count(job.states_done)),
        match disk(job) {
            Some((now, most)) => format!("{now} on disk, {most}"),
            None => format!("{} written", units::size(job.bytes)),
        },
    ];
    known.into_iter().chain(retries).collect()
}

/// Disk use of a job's run, and its peak with the limit; `None` if unknown.
fn disk(job: &Job) -> Option<(String, String)> {
    let DiskUse { limit_bytes, bytes, peak_bytes } = job.disk?;
    let [limit, now, most] =
        [limit_bytes, bytes, peak_bytes].map(|bytes| SizeUnits::of(limit_bytes).size(bytes));
    Some((now, format!("peak {most} of {limit}")))
}

/// The activity of a worker.
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
            format!("failed, gets work again in {}", units::about(worker.backoff_seconds.ceil()))
        }
        WorkerActivity::TooSmall => "too little memory for the job".to_owned(),
        WorkerActivity::Leaving => "leaving".to_owned(),
        WorkerActivity::Unspecified => "unknown".to_owned(),
    }
}

/// Writes tables of all jobs and workers.
pub fn write_all(out: &mut impl Write, jobs: &[Job], workers: &[Worker]) -> io::Result<()> {
    if jobs.is_empty() {
        writeln!(out, "no jobs; submit one with exact2048 submit")?;
    } else {
        let header =
            ["job", "state", "progress", "time left", "layer", "states", "written", "workers", "retries"];
        let rows: Vec<Vec<String>> = jobs.iter().map(|job| job_row(job, workers)).collect();
        // Narrow terminals omit columns, from the right.
        output::write_fitting(out, &header, &[0, 1, 2, 3], &rows, &[8, 7, 6, 5, 4, 3])?;
    }
    writeln!(out)?;
    write_workers_or_advice(out, workers)
}

fn write_workers_or_advice(out: &mut impl Write, workers: &[Worker]) -> io::Result<()> {
    if workers.is_empty() {
        writeln!(out, "no workers; start some with exact2048 worker")
    } else {
        write_workers(out, workers.iter())
    }
}

fn job_row(job: &Job, workers: &[Worker]) -> Vec<String> {
    let running = job.state() == JobState::Running;
    let of_running = |text: String| if running { text } else { String::new() };
    vec![
        job.name.clone(),
        doing_name(job, workers).to_owned(),
        share_done(job, units::percent(job.done)),
        if in_pass(job) { time_left(job) } else { String::new() },
        job.layer.map(units::count).unwrap_or_default(),
        of_running(units::rate(job.states_per_second)),
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
            SizeUnits::of(worker.memory_bytes).size(worker.memory_bytes),
            format!("{} ago", units::time(worker.silent_seconds)),
        ]
    };
    let rows: Vec<Vec<String>> = workers.map(row).collect();
    let header = ["worker", "doing", "address", "threads", "memory", "heard"];
    output::write_fitting(out, &header, &[0, 1, 2], &rows, &[2, 4, 3, 5])?;
    Ok(())
}

/// Writes all details of a job.
pub fn write_one(out: &mut impl Write, job: &Job, workers: &[Worker]) -> io::Result<()> {
    let parameters = job.parameters.clone().unwrap_or_default();
    write_field(out, "job", &job.name)?;
    let (board, objective) = (board_text(&parameters), &parameters.objective);
    let rules = rules_text(&spawn4(&parameters), discount(&parameters), spawner(&parameters));
    write_field(out, "board", format!("{board}, {objective}, {rules}"))?;
    if parameters.until_layer.is_none() {
        write_field(out, "kept layers", kept_text(kept(&parameters), parameters.best_moves))?;
        if !parameters.value_step.is_empty() {
            write_field(out, "value step", plain(&parameters.value_step))?;
        }
    }
    write_field(out, "run", &job.run_url)?;
    write_field(out, "state", doing_name(job, workers))?;
    for (name, what) in [("failure", &job.failure), ("trouble", &job.trouble)] {
        if !what.is_empty() {
            write_field(out, name, plain(what))?;
        }
    }
    if job.state() == JobState::Failed {
        write_field(out, "to resume", format!("remove the cause, then use exact2048 resume {}", job.name))?;
    }
    if phase(job).is_some() {
        write_field(out, "progress", progress(job))?;
    }
    if job.layer.is_some() {
        write_field(out, "at", layer(job))?;
    }
    let total = job.states_total.map(|total| format!(" of {}", units::count(total))).unwrap_or_default();
    write_field(out, "states", format!("{}{total}", units::count(job.states_done)))?;
    if job.state() == JobState::Running {
        write_field(out, "speed", units::rate(job.states_per_second))?;
    }
    match disk(job) {
        Some((now, most)) => write_field(out, "disk", format!("{now}, {most}"))?,
        None => write_field(out, "written", units::size(job.bytes))?,
    }
    let epochs = units::several(job.epochs, "epoch");
    write_field(out, "retries", format!("{} in {epochs}", units::count(job.retries)))?;
    if at_work(job, workers).next().is_some() {
        writeln!(out)?;
        return write_workers(out, at_work(job, workers));
    }
    if job.state() == JobState::Running {
        // The table shows why no worker works on the job.
        writeln!(out)?;
        return write_workers_or_advice(out, workers);
    }
    Ok(())
}

/// Writes the result of a solved job: the summary of its run if readable, else its fingerprint.
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
            done: 0.599,
            workers: 2,
            retries: 1,
            ..Job::default()
        }
    }

    #[test]
    fn control_characters_are_escaped() {
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
    fn lines_show_the_state_of_the_job() {
        let text = line(&job(), &[]);
        let progress = "running: 59.9% of the upward pass, time left unknown, layer 54 of 104, ";
        assert!(text.starts_with(progress), "{text}");
        for word in ["2,500 states", "2 workers", "1 retry"] {
            assert!(text.contains(word), "{text}");
        }
        assert!(line(&Job { workers: 0, ..job() }, &[]).starts_with("waiting for workers"));
        assert_eq!(line(&Job { state: JobState::Queued.into(), ..job() }, &[]), "queued");
    }

    #[test]
    fn jobs_with_idle_workers_are_starting() {
        let idle = Worker { activity: WorkerActivity::Waiting.into(), ..Worker::default() };
        let small = Worker { activity: WorkerActivity::TooSmall.into(), ..Worker::default() };
        let opening = Job { workers: 0, ..job() };
        assert!(line(&opening, &[small.clone(), idle.clone()]).starts_with("starting: "));
        assert!(line(&opening, &[small]).starts_with("waiting for workers: "));
        assert!(line(&job(), &[idle]).starts_with("running: "));
    }

    /// All views of a job agree.
    #[test]
    fn the_share_names_the_pass_and_the_time_the_whole_job() {
        let job = Job { eta_seconds: Some(3.0), job_eta_seconds: Some(17.0), ..job() };
        let wanted = "59.9% of the upward pass, 3 s; whole job 17 s";
        let (mut one, mut all) = (Vec::new(), Vec::new());
        write_one(&mut one, &job, &[]).unwrap();
        write_all(&mut all, std::slice::from_ref(&job), &[]).unwrap();
        let live =
            format!("{}, {}", share_done(&job, units::percent(job.done)), headline(&job, &[]).join(", "));
        for text in [line(&job, &[]), live, String::from_utf8(one).unwrap()] {
            assert!(text.contains(wanted), "{text}");
        }
        let table = String::from_utf8(all).unwrap();
        assert!(
            table.contains(" 59.9% of the upward pass ") && table.contains(" 3 s; whole job 17 s "),
            "{table}"
        );
        let down = Job { pass: Pass::BackUp.into(), eta_seconds: Some(17.0), ..job };
        assert!(line(&down, &[]).starts_with("running: 59.9% of the downward pass, 17 s, layer"));
    }
}
