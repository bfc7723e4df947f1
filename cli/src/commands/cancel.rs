//! `exact2048 cancel`: stops a job of a cluster.

use anyhow::Result;
use exact2048_cluster::client::within;
use exact2048_proto::v1::{CancelRequest, CancelResponse, Job};

use crate::cluster::JobPlace;

/// Options of `cancel`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 cancel --coordinator http://head:2049 4x3

Workers finish what they are at and commit it; what is committed stays. The job goes on with exact2048 resume.")]
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

/// What became of the job.
fn words(job: &Job) -> String {
    let what = if job.cancelling {
        "is being cancelled: what is finished is committed first"
    } else {
        "is cancelled"
    };
    format!("{} {what}", job.name)
}
