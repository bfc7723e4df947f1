//! `exact2048 resume`: puts a job of a cluster that has stopped back in the queue, or has one that is done checked.

use anyhow::Result;
use exact2048_cluster::client::within;
use exact2048_proto::v1::{Job, JobState, ResumeRequest, ResumeResponse};

use crate::cluster::JobPlace;

/// Options of `resume`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 resume --coordinator http://head:2049 4x3

Jobs that were cancelled or have failed go on from what is committed, after the jobs that are in the queue. Of a job
that is done every shard is read again; what is lost or damaged is computed again.")]
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

/// What became of the job.
fn words(job: &Job) -> String {
    let what = match job.state() {
        JobState::Queued => "is in the queue",
        JobState::Done if job.checking => {
            "is done; its shards are read again, status --watch says when that is over"
        }
        JobState::Done => "is done",
        _ => "goes on",
    };
    format!("{} {what}", job.name)
}
