//! `exact2048 submit`: puts a job in the queue of a cluster.

use std::io::Write;

use anyhow::{Context, Result};
use bytesize::ByteSize;
use exact2048_cluster::client::within;
use exact2048_cluster::names::{self, NameError};
use exact2048_cluster::view::{JobView, kept};
use exact2048_cluster::wire::is_run_unknown;
use exact2048_coordinator::Workload;
use exact2048_proto::v1::{JobState, SubmitRequest};
use exact2048_solution::{Holdings, Recipe};

use crate::choice::{Choices, LayerCost};
use crate::cluster::{CoordinatorPlace, failure};
use crate::job::JobArgs;
use crate::plan::{FreeRoom, Needs, notes};
use crate::summary::say_what_is_over;
use crate::{display, limits};

/// Options of `submit`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 submit --coordinator http://head:2049 --board 4x3
  exact2048 submit --coordinator http://head:2049 --board 4x3 --disk 60GB
  exact2048 submit --coordinator http://head:2049 --board 4x4 --objective reach:512 --name try-1
  job=$(exact2048 submit --coordinator http://head:2049 --board 3x3)
  exact2048 status --coordinator http://head:2049 $job --watch

Prints the name of the job, which is the name of its run in the store. A run of that name that is there already, of
the same job, is continued; without --keep it goes on to keep the layers that it keeps. A job that fits no worker's memory \
is refused at once.")]
pub struct Args {
    #[command(flatten)]
    place: CoordinatorPlace,
    #[command(flatten)]
    job: JobArgs,
    /// Disk that the run may take in the store, for example 60GB, journal included; scratch files of workers are on their
    /// own disks. What is kept is chosen so that it fits, unless --keep says it; reach that is not needed is
    /// removed, and where room is short enumerated again
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    disk: Option<ByteSize>,
    /// Name of the job: 1 to 63 of a-z, 0-9, '.', '_' and '-' [default: made of the options, for example 4x3]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Print the job as one JSON object
    #[arg(long)]
    json: bool,
}

/// Of the machine of docs/performance.md.
const USUAL_MEMORY: u64 = 12 << 30;
const USUAL_THREADS: usize = 2;

/// Reads the name of a job, so that a wrong one is refused before a coordinator is asked.
fn name(text: &str) -> Result<String, NameError> {
    names::parse(text).map(|job| job.0)
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let mut params = args.job.params()?;
    let workload = Workload::new(&params);
    let disk_bytes = args.disk.map(|limit| limit.as_u64());
    let chosen = match disk_bytes {
        Some(limit) => {
            Choices::new(&params, limit, 0).choose(args.job.keep_of(&params), params.board).map(Some)
        }
        None => Ok(None),
    };
    // What is too little for a whole run may do for what is left of one, where it is said which.
    let says_which = args.name.is_some() || args.job.has_keep();
    let (choice, too_small) = match chosen {
        Ok(choice) => (choice, None),
        Err(too_small) if says_which => (None, Some(too_small)),
        Err(too_small) => return Err(too_small.into()),
    };
    if let Some(choice) = &choice {
        params = params.with_kept(choice.kept);
    }
    let needs = Needs::of(&params, &workload, &Recipe::new(&params, &Holdings::default()).steps());
    let needs = disk_bytes.map_or(needs, |limit| needs.within(limit));
    let coordinator = args.place.connect()?;
    let request = SubmitRequest {
        parameters: Some((&params).into()),
        name: args.name.clone().unwrap_or_default(),
        disk_bytes,
        any_kept: !args.job.has_keep(),
        any_values: !args.job.has_values(),
        any_precision: !args.job.has_precision(),
        must_exist: too_small.is_some(),
    };
    let is_rest = request.must_exist;
    let answer = coordinator.answer(async |mut client| client.submit(within(request)).await);
    let answer = answer.map_err(|status| match too_small {
        Some(too_small) if is_run_unknown(&status) => too_small.into(),
        _ => failure(&status),
    })?;
    let job = answer.job.context("the coordinator does not say which job this is")?;
    let is_as_chosen = job.parameters.as_ref().is_some_and(|taken| kept(taken) == params.kept);
    if let (Some(limit), Some(choice)) = (disk_bytes, choice.filter(|_| is_as_chosen)) {
        // How fast the workers are is not known here.
        let tuning = limits::worker_tuning(USUAL_MEMORY, USUAL_THREADS);
        let layer_cost = LayerCost::usual(&params, &workload, tuning, USUAL_THREADS);
        display::say(&choice.text(limit, &layer_cost));
    }
    // How much the store has free is not known here, either; nor how much of a run is left.
    if !is_rest {
        for note in notes(&needs, 0, &FreeRoom::default()) {
            display::say(&note);
        }
    }
    if let Some(limit) = disk_bytes.filter(|_| job.state() == JobState::Done) {
        say_what_is_over(job.bytes, limit);
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&JobView::from(&job))?)?;
    } else {
        writeln!(out, "{}", job.name)?;
    }
    Ok(())
}
