//! `exact2048 forget`: removes an ended job from the list of a cluster.

use anyhow::Result;
use exact2048_cluster::client::within;
use exact2048_proto::v1::{ForgetRequest, ForgetResponse, Job};

use crate::cluster::JobPlace;

/// Options of `forget`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 forget --coordinator http://head:2049 4x3

The coordinator no longer lists a job that is done, cancelled or failed. The run stays in the store; remove STORE/JOB
yourself if you do not need it. A later job with the same name resumes the run.")]
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

/// The new state of the job in words.
fn words(job: &Job) -> String {
    format!("{} is forgotten; its run stays in {}", job.name, job.run_url)
}
