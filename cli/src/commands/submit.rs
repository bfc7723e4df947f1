//! `exact2048 submit`: submits a job to the queue of a cluster.

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

use crate::choice::{LayerCost, choose};
use crate::cluster::{CoordinatorPlace, failure};
use crate::job::JobArgs;
use crate::plan::{FreeRoom, Needs, notes};
use crate::summary::report_excess;
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

The command prints the name of the job, which is also the name of its run in the store. If the store already has a run \
with this name and the same parameters, the job resumes the run. Without --keep, such a run keeps its choice of \
layers. A job that exceeds the memory of every worker is refused at once.")]
pub struct Args {
    #[command(flatten)]
    place: CoordinatorPlace,
    #[command(flatten)]
    job: JobArgs,
    /// Limit the size of the run in the store, for example to 60GB, including its journal; scratch files use the disks of
    /// the workers. Without --keep, the run keeps as many layers as fit. It removes reachability data that it no longer
    /// needs. If space is short, it also removes needed data and enumerates the data again later
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    disk: Option<ByteSize>,
    /// Set the name of the job: 1 to 63 of a-z, 0-9, '.', '_' and '-' [default: made of the options, for example 4x3]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Print the job as one JSON object
    #[arg(long)]
    json: bool,
}

/// Memory and threads of the machine in docs/performance.md. They are the basis of the estimate.
const USUAL_MEMORY: u64 = 12 << 30;
const USUAL_THREADS: usize = 2;

/// Parses the name of a job. Refuses an invalid name without a request.
fn name(text: &str) -> Result<String, NameError> {
    names::parse(text).map(|job| job.0)
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let mut params = args.job.params()?;
    let workload = Workload::new(&params);
    let disk_bytes = args.disk.map(|limit| limit.as_u64());
    let is_whole = params.game().is_whole();
    // Estimates hold for whole games without stones, so they choose nothing for other runs.
    args.job.require_step(args.disk.is_some(), false)?;
    let chosen = match disk_bytes.filter(|_| is_whole) {
        Some(limit) => {
            choose(&params, (args.job.keep_of(&params), args.job.has_open_step()), limit, 0).map(Some)
        }
        None => Ok(None),
    };
    // A limit that is too small for a whole run may suffice for the rest of an existing run, if the options identify that
    // run.
    let identifies_run = args.name.is_some() || args.job.has_keep();
    let (choice, too_small) = match chosen {
        Ok(Some((chosen, choice))) => {
            params = chosen;
            (Some(choice), None)
        }
        Ok(None) => (None, None),
        Err(too_small) if identifies_run => (None, Some(too_small)),
        Err(too_small) => return Err(too_small),
    };
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
        any_value_step: !args.job.has_value_step(),
        must_exist: too_small.is_some(),
    };
    let is_rest = request.must_exist;
    let answer = coordinator.answer(async |mut client| client.submit(within(request)).await);
    let answer = answer.map_err(|status| match too_small {
        Some(too_small) if is_run_unknown(&status) => too_small,
        _ => failure(&status),
    })?;
    let job = answer.job.context("the coordinator returned no job")?;
    let is_as_chosen = job.parameters.as_ref().is_some_and(|taken| kept(taken) == params.contents().kept());
    if let (Some(limit), Some(choice)) = (disk_bytes, choice.filter(|_| is_as_chosen)) {
        // The speed of the workers is unknown here.
        let tuning = limits::worker_tuning(USUAL_MEMORY, USUAL_THREADS);
        let layer_cost = LayerCost::usual(&params, &workload, tuning, USUAL_THREADS);
        display::print_note(&choice.text(limit, &layer_cost));
    }
    // The free space of the store and the rest of an existing run are unknown here too.
    if !is_rest && is_whole {
        for note in notes(&needs, 0, &FreeRoom::default()) {
            display::print_note(&note);
        }
    }
    if let Some(limit) = disk_bytes.filter(|_| job.state() == JobState::Done) {
        report_excess(job.bytes, limit);
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&JobView(job))?)?;
    } else {
        writeln!(out, "{}", job.name)?;
    }
    Ok(())
}
