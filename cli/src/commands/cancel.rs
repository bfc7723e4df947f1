//! `exact2048 cancel`: stops a job of a cluster.

use std::io::Write;

use anyhow::{Context, Result};
use exact2048_cluster::client::within;
use exact2048_proto::v1::CancelRequest;

use crate::cluster::CoordinatorPlace;
use crate::job_view::JobView;

/// Options of `cancel`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 cancel --coordinator http://head:2049 4x3

Workers finish what they are at and commit it; what is committed stays. The job goes on with exact2048 resume.")]
pub struct Args {
    #[command(flatten)]
    place: CoordinatorPlace,
    /// Name of the job
    job: String,
    /// Print the job as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let coordinator = args.place.connect()?;
    let request = CancelRequest { job: args.job.clone() };
    let answer = coordinator.ask(async |mut client| client.cancel(within(request)).await)?;
    let job = answer.job.context("the coordinator does not say what became of the job")?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&JobView::from(&job))?)?;
        return Ok(());
    }
    let what = if job.cancelling {
        "is being cancelled: what is finished is committed first"
    } else {
        "is cancelled"
    };
    writeln!(out, "{} {what}", job.name)?;
    Ok(())
}
