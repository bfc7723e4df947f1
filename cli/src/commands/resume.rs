//! `exact2048 resume`: puts a job of a cluster that has stopped back in the queue, or has one that is done checked.

use std::io::Write;

use anyhow::{Context, Result};
use exact2048_cluster::client::within;
use exact2048_proto::v1::{JobState, ResumeRequest};

use crate::cluster::CoordinatorPlace;
use crate::job_view::JobView;

/// Options of `resume`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 resume --coordinator http://head:2049 4x3

Jobs that were cancelled or have failed go on from what is committed, after the jobs that are in the queue. Of a job that
is done every shard is read again; what is lost or damaged is computed again.")]
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
    let request = ResumeRequest { job: args.job.clone() };
    let answer = coordinator.ask(async |mut client| client.resume(within(request)).await)?;
    let job = answer.job.context("the coordinator does not say what became of the job")?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&JobView::from(&job))?)?;
        return Ok(());
    }
    let what = match job.state() {
        JobState::Queued => "is in the queue",
        JobState::Done if job.checking => {
            "is done; its shards are read again, status --watch says when that is over"
        }
        JobState::Done => "is done",
        _ => "goes on",
    };
    writeln!(out, "{} {what}", job.name)?;
    Ok(())
}
