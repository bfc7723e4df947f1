//! `exact2048 resume`: requeues a stopped job of a cluster, or rechecks a finished one.

use anyhow::Result;
use exact2048_cluster::client::within;
use exact2048_proto::v1::{Job, JobState, ResumeRequest, ResumeResponse};

use crate::cluster::JobPlace;

/// Options of `resume`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 resume --coordinator http://head:2049 4x3

A cancelled or failed job resumes from its last commit, after the jobs that are already in the queue. For a finished
job the coordinator reads every shard again and recomputes those that are lost or damaged.")]
pub struct Args {
    #[command(flatten)]
    job: JobPlace,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    args.job.change(
        async |mut client, job| client.resume(within(ResumeRequest { job })).await,
        |answer: ResumeResponse| answer.job,
        words,
    )
}

/// The new state of the job in words.
fn words(job: &Job) -> String {
    let what = match job.state() {
        JobState::Queued => "is in the queue",
        JobState::Done if job.checking => "is done; its shards are being checked, follow with status --watch",
        JobState::Done => "is done",
        _ => "is running",
    };
    format!("{} {what}", job.name)
}
