//! `exact2048 submit`: puts a job in the queue of a cluster.

use std::io::Write;

use anyhow::{Context, Result};
use exact2048_cluster::client::within;
use exact2048_cluster::names::{self, NameError};
use exact2048_cluster::view::JobView;
use exact2048_coordinator::Workload;
use exact2048_proto::v1::SubmitRequest;
use exact2048_solution::{Holdings, Recipe};

use crate::cluster::CoordinatorPlace;
use crate::display;
use crate::job::JobArgs;
use crate::plan::{FreeRoom, Needs, notes};

/// Options of `submit`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 submit --coordinator http://head:2049 --board 4x3
  exact2048 submit --coordinator http://head:2049 --board 4x4 --objective reach:512 --name try-1
  job=$(exact2048 submit --coordinator http://head:2049 --board 3x3)
  exact2048 status --coordinator http://head:2049 $job --watch

Prints the name of the job, which is the name of its run in the store. A run of that name that is there already, of
the same job, is continued. A job that fits no worker's memory is refused at once.")]
pub struct Args {
    #[command(flatten)]
    place: CoordinatorPlace,
    #[command(flatten)]
    job: JobArgs,
    /// Name of the job: 1 to 63 of a-z, 0-9, '.', '_' and '-' [default: made of the options, for example 4x3]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Print the job as one JSON object
    #[arg(long)]
    json: bool,
}

/// Reads the name of a job, so that a wrong one is refused before a coordinator is asked.
fn name(text: &str) -> Result<String, NameError> {
    names::parse(text).map(|job| job.0)
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let params = args.job.params()?;
    let needs =
        Needs::of(&params, &Workload::new(&params), &Recipe::new(&params, &Holdings::default()).steps());
    let coordinator = args.place.connect()?;
    let request =
        SubmitRequest { parameters: Some((&params).into()), name: args.name.clone().unwrap_or_default() };
    let answer = coordinator.ask(async |mut client| client.submit(within(request)).await)?;
    let job = answer.job.context("the coordinator does not say which job this is")?;
    // How much the store has free is not known here.
    for note in notes(&needs, 0, &FreeRoom::default()) {
        display::say(&note);
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&JobView::from(&job))?)?;
    } else {
        writeln!(out, "{}", job.name)?;
    }
    Ok(())
}
