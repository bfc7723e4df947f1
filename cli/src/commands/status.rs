//! `exact2048 status`: the jobs and workers of a cluster.

mod live;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use exact2048_cluster::client::{Shown, within};
use exact2048_cluster::view::{StatusView, state_name};
use exact2048_proto::v1::{GetRequest, Job, JobState, ListRequest, WatchRequest, WatchResponse};
use exact2048_solution::Run;
use exact2048_storage::{Location, StoreSettings};
use tonic::Code;

use crate::cluster::{Coordinator, CoordinatorPlace, failure};
use crate::display::{PLAIN_INTERVAL, columns};
use crate::job_view::{line, plain, write_all, write_one, write_result};
use crate::summary::RunSummary;
use crate::{Failure, display};
use live::Live;

/// Time to wait for a coordinator that does not answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Options of `status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 status --coordinator http://head:2049
  exact2048 status --coordinator http://head:2049 4x3
  exact2048 status --coordinator http://head:2049 4x3 --watch
  exact2048 status --coordinator http://head:2049 4x3 --json | jq .job_eta_seconds

With --watch and a JOB the command ends when the job ends. The exit code is 0 if the job is done, 1 if it failed or was
cancelled. With --watch and --json the command prints one object per line for every change.")]
pub struct Args {
    #[command(flatten)]
    place: CoordinatorPlace,
    /// Show the job of this name [default: all jobs and workers]
    job: Option<String>,
    /// Keep showing changes
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
    let job = job.context("the coordinator returned no job")?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&StatusView::one(&job, &all.workers))?)?;
    } else {
        write_one(&mut out, &job, &all.workers)?;
        write_result(&mut out, &job, result(&job).as_ref())?;
    }
    Ok(())
}

/// The summary of a finished job, if its run is in a readable folder. The coordinator does not have the values.
fn result(job: &Job) -> Option<RunSummary> {
    if job.state() != JobState::Done {
        return None;
    }
    let place = Location::parse(&OsString::from(&job.run_url), &StoreSettings::default()).ok()?;
    // Reading a store costs requests, and this process may lack the store's keys.
    place.as_folder()?;
    RunSummary::new(&Run::open(place).ok()?, None, None).ok()
}

fn watch(args: &Args, coordinator: &Coordinator) -> Result<()> {
    let mut display = Display::new(args);
    let mut silent_since: Option<Instant> = None;
    loop {
        let request = WatchRequest { job: args.job.clone().unwrap_or_default() };
        let watched: Result<(), tonic::Status> = coordinator.wait(async {
            let mut client = coordinator.client();
            let mut stream = client.watch(request).await?.into_inner();
            while let Some(mut message) = stream.message().await? {
                message.make_plain();
                silent_since = None;
                display
                    .show(message)
                    .map_err(|error| tonic::Status::from_error(Box::new(StdoutError(error))))?;
            }
            Ok(())
        });
        match watched {
            Ok(()) => return display.end(),
            Err(status) if closed_pipe(&status) => {
                return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
            }
            // The coordinator may be restarting. A status with a source is a failure of the connection.
            Err(status) if status.code() == Code::Unavailable || status.source().is_some() => {
                let first = silent_since.is_none();
                let since = *silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    return Err(failure(&status));
                }
                if first {
                    display.lost();
                }
                std::thread::sleep(Duration::from_secs(1));
            }
            Err(status) => return Err(failure(&status)),
        }
    }
}

/// Whether the stream ended because the reader of stdout closed the pipe.
fn closed_pipe(status: &tonic::Status) -> bool {
    let error = status.source().and_then(|source| source.downcast_ref::<StdoutError>());
    error.is_some_and(|StdoutError(error)| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A failure to write to stdout.
#[derive(Debug)]
struct StdoutError(io::Error);

impl std::fmt::Display for StdoutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write: {}", self.0)
    }
}

impl Error for StdoutError {}

/// The display, and the last message that it showed.
struct Display {
    job: Option<String>,
    json: bool,
    live: Option<Live>,
    next_line: Instant,
    last: Option<WatchResponse>,
}

impl Display {
    fn new(args: &Args) -> Self {
        let live = !args.json && columns().is_some();
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
        } else if let Some(live) = &mut self.live {
            live.show(&message);
        } else if Instant::now() >= self.next_line {
            self.next_line = Instant::now() + PLAIN_INTERVAL;
            match job {
                Some(job) => writeln!(out, "{}", line(job, &message.workers))?,
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

    /// Shows that the coordinator no longer answers.
    fn lost(&mut self) {
        let text = "the coordinator does not answer; waiting for it";
        match &mut self.live {
            Some(live) => live.lost(text),
            None => display::print_note(text),
        }
    }

    /// Shows the final state after the job has ended.
    fn end(self) -> Result<()> {
        if let Some(live) = self.live {
            live.clear()?;
        }
        let Some(WatchResponse { jobs, workers }) = self.last else {
            bail!("the coordinator sent no status")
        };
        let Some(job) = jobs.first() else { bail!("the coordinator no longer knows the job") };
        if !self.json {
            let mut out = io::stdout().lock();
            write_one(&mut out, job, &workers)?;
            write_result(&mut out, job, result(job).as_ref())?;
        }
        match job.state() {
            JobState::Done if job.trouble.is_empty() => Ok(()),
            JobState::Done => bail!("{} is done, but {}", job.name, plain(&job.trouble)),
            JobState::Failed => {
                let (name, failure) = (&job.name, plain(&job.failure));
                bail!("{name} failed: {failure}. Remove the cause, then use exact2048 resume {name}")
            }
            state => Err(Failure::failed(format!("{} is {}", job.name, state_name(state))).into()),
        }
    }
}
