//! `exact2048 status`: what a cluster is doing.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use exact2048_cluster::client::within;
use exact2048_proto::v1::{GetRequest, Job, JobState, ListRequest, WatchRequest, WatchResponse, Worker};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tonic::Code;

use crate::Failure;
use crate::cluster::{Coordinator, CoordinatorPlace, failure};
use crate::job_view::{StatusView, details, doing, headline, line, state_name, write_all, write_one};

/// How often a plain line is written where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// For how long a coordinator that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// Workers that are shown by a line of their own on a terminal.
const WORKERS_SHOWN: usize = 16;

/// Options of `status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 status --coordinator http://head:2049
  exact2048 status --coordinator http://head:2049 4x3
  exact2048 status --coordinator http://head:2049 4x3 --watch
  exact2048 status --coordinator http://head:2049 4x3 --json | jq .job_eta_seconds

With --watch and a JOB it ends when the job does: with exit code 0 if it is done, 1 if it failed or was cancelled.
With --watch and --json, an object is printed on a line of its own for every change.")]
pub struct Args {
    #[command(flatten)]
    place: CoordinatorPlace,
    /// Name of the job [default: all jobs and workers]
    job: Option<String>,
    /// Go on showing it as it changes
    #[arg(long)]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let coordinator = args.place.connect()?;
    if args.watch {
        return watch(args, &coordinator);
    }
    let all = coordinator.ask(async |mut client| client.list(within(ListRequest {})).await)?;
    let mut out = io::stdout().lock();
    let Some(name) = &args.job else {
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&StatusView::all(&all.jobs, &all.workers))?)?;
        } else {
            write_all(&mut out, &all.jobs, &all.workers)?;
        }
        return Ok(());
    };
    let request = GetRequest { job: name.clone() };
    let job = coordinator.ask(async |mut client| client.get(within(request)).await)?.job;
    let job = job.context("the coordinator does not say what the job is")?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&StatusView::one(&job, &all.workers))?)?;
    } else {
        write_one(&mut out, &job, &all.workers)?;
    }
    Ok(())
}

fn watch(args: &Args, coordinator: &Coordinator) -> Result<()> {
    let mut display = Display::new(args);
    let mut silent_since: Option<Instant> = None;
    loop {
        let request = WatchRequest { job: args.job.clone().unwrap_or_default() };
        let watched: Result<(), tonic::Status> = coordinator.wait(async {
            let mut client = coordinator.client();
            let mut stream = client.watch(request).await?.into_inner();
            while let Some(message) = stream.message().await? {
                silent_since = None;
                display
                    .show(message)
                    .map_err(|error| tonic::Status::from_error(Box::new(Unwritten(error))))?;
            }
            Ok(())
        });
        match watched {
            Ok(()) => return display.end(),
            Err(status) if closed_pipe(&status) => {
                return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
            }
            // It may be started anew. What has a source is not what it said, but what happened on the way.
            Err(status) if status.code() == Code::Unavailable || status.source().is_some() => {
                let first = silent_since.is_none();
                let since = *silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    return Err(failure(&status));
                }
                if first {
                    eprintln!("the coordinator does not answer: waiting for it to be started again");
                }
                std::thread::sleep(Duration::from_secs(1));
            }
            Err(status) => return Err(failure(&status)),
        }
    }
}

/// Whether a stream was given up because whoever reads what is printed has read enough.
fn closed_pipe(status: &tonic::Status) -> bool {
    let error = status.source().and_then(|source| source.downcast_ref::<Unwritten>());
    error.is_some_and(|Unwritten(error)| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Nothing can be printed.
#[derive(Debug)]
struct Unwritten(io::Error);

impl std::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write: {}", self.0)
    }
}

impl Error for Unwritten {}

/// What was shown last, and how.
struct Display {
    job: Option<String>,
    json: bool,
    live: Option<Live>,
    next_line: Instant,
    last: Option<WatchResponse>,
}

/// Lines on a terminal that are written over and over.
struct Live {
    lines: MultiProgress,
    job: ProgressBar,
    /// Details of the job, then workers.
    below: Vec<ProgressBar>,
}

impl Display {
    fn new(args: &Args) -> Self {
        let live = args.job.is_some() && !args.json && io::stderr().is_terminal();
        Self {
            job: args.job.clone(),
            json: args.json,
            live: live.then(Live::new),
            next_line: Instant::now(),
            last: None,
        }
    }

    fn show(&mut self, message: WatchResponse) -> io::Result<()> {
        let job = message.jobs.first().filter(|_| self.job.is_some());
        let mut out = io::stdout().lock();
        if self.json {
            let view = match job {
                Some(job) => StatusView::one(job, &message.workers),
                None => StatusView::all(&message.jobs, &message.workers),
            };
            writeln!(out, "{}", serde_json::to_string(&view)?)?;
        } else if let (Some(job), Some(live)) = (job, &mut self.live) {
            live.show(job, &message.workers);
        } else if Instant::now() >= self.next_line {
            self.next_line = Instant::now() + PLAIN_INTERVAL;
            match job {
                Some(job) => writeln!(out, "{}", line(job))?,
                None => {
                    write_all(&mut out, &message.jobs, &message.workers)?;
                    writeln!(out)?;
                }
            }
        }
        out.flush()?;
        self.last = Some(message);
        Ok(())
    }

    /// The stream has ended, because the job has.
    fn end(self) -> Result<()> {
        if let Some(live) = self.live {
            live.lines.clear()?;
        }
        let Some(WatchResponse { jobs, workers }) = self.last else { bail!("the coordinator said nothing") };
        let Some(job) = jobs.first() else { bail!("the coordinator no longer knows the job") };
        if !self.json {
            write_one(&mut io::stdout().lock(), job, &workers)?;
        }
        match job.state() {
            JobState::Done if job.trouble.is_empty() => Ok(()),
            JobState::Done => bail!("{} is done, but {}", job.name, job.trouble),
            JobState::Failed => {
                let Job { name, failure, .. } = job;
                bail!("{name} failed: {failure}. To go on once the cause is gone: exact2048 resume {name}")
            }
            state => Err(Failure::failed(format!("{} is {}", job.name, state_name(state))).into()),
        }
    }
}

impl Live {
    fn new() -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let job = lines.add(ProgressBar::new(1000));
        if let Ok(style) = ProgressStyle::with_template("[{bar:14}] {percent:>3}% {wide_msg}") {
            job.set_style(style.progress_chars("=> "));
        }
        Self { lines, job, below: Vec::new() }
    }

    fn show(&mut self, job: &Job, workers: &[Worker]) {
        self.job.set_position((job.done * 1000.0) as u64);
        self.job.set_message(headline(job));
        let more = workers.len().saturating_sub(WORKERS_SHOWN);
        let told = |worker: &Worker| format!("  {} {}  {}", worker.id, worker.address, doing(worker));
        let details = Some(details(job)).filter(|text| !text.is_empty()).map(|text| format!("  {text}"));
        let mut texts: Vec<String> =
            details.into_iter().chain(workers.iter().take(WORKERS_SHOWN).map(told)).collect();
        texts.extend((more > 0).then(|| format!("  and {more} more workers")));
        while self.below.len() > texts.len() {
            self.below.pop().into_iter().for_each(|line| self.lines.remove(&line));
        }
        while self.below.len() < texts.len() {
            let line = self.lines.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                line.set_style(style);
            }
            self.below.push(line);
        }
        self.below.iter().zip(texts).for_each(|(line, text)| line.set_message(text));
    }
}
