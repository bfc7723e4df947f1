//! `exact2048 cancel`: cancels a job of a cluster.

use anyhow::Result;
use exact2048_cluster::client::within;
use exact2048_proto::v1::{CancelRequest, CancelResponse, Job};

use crate::cluster::JobPlace;

/// Options of `cancel`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 cancel --coordinator http://head:2049 4x3

Workers finish and commit their current work, and all commits stay. To continue the job, use exact2048 resume.")]
pub struct Args {
    #[command(flatten)]
    job: JobPlace,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    args.job.change(
        async |mut client, job| client.cancel(within(CancelRequest { job })).await,
        |answer: CancelResponse| answer.job,
        words,
    )
}

/// The new state of the job in words.
fn words(job: &Job) -> String {
    let what = if job.cancelling {
        "is being cancelled: workers commit their finished work first"
    } else {
        "is cancelled"
    };
    format!("{} {what}", job.name)
}
