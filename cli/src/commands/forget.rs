//! `exact2048 forget`: takes a job of a cluster that has ended out of its list.

use anyhow::Result;
use exact2048_cluster::client::within;
use exact2048_proto::v1::{ForgetRequest, ForgetResponse, Job};

use crate::cluster::JobPlace;

/// Options of `forget`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 forget --coordinator http://head:2049 4x3

A job that is done, was cancelled or has failed is listed no longer. Its run stays in the store as it is: remove
STORE/JOB yourself if it is not wanted. A job of the same name that is submitted later continues it.")]
pub struct Args {
    #[command(flatten)]
    job: JobPlace,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    args.job.change(
        async |mut client, job| client.forget(within(ForgetRequest { job })).await,
        |answer: ForgetResponse| answer.job,
        words,
    )
}

/// What became of the job.
fn words(job: &Job) -> String {
    format!("{} is forgotten; its run stays in {}", job.name, job.run_url)
}
