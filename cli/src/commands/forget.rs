//! `exact2048 forget`: takes a job of a cluster that has ended out of its list.

use std::io::Write;

use anyhow::{Context, Result};
use exact2048_cluster::client::within;
use exact2048_proto::v1::ForgetRequest;

use crate::cluster::CoordinatorPlace;
use crate::job_view::JobView;

/// Options of `forget`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 forget --coordinator http://head:2049 4x3

A job that is done, was cancelled or has failed is listed no longer. Its run stays in the store as it is: remove
STORE/JOB yourself if it is not wanted. A job of the same name that is submitted later continues it.")]
pub struct Args {
    #[command(flatten)]
    place: CoordinatorPlace,
    /// Name of the job
    job: String,
    /// Print the job as it was, as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let coordinator = args.place.connect()?;
    let request = ForgetRequest { job: args.job.clone() };
    let answer = coordinator.ask(async |mut client| client.forget(within(request)).await)?;
    let job = answer.job.context("the coordinator does not say which job that was")?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&JobView::from(&job))?)?;
        return Ok(());
    }
    writeln!(out, "{} is forgotten; its run stays in {}", job.name, job.run_url)?;
    Ok(())
}
