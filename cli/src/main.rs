//! `exact2048`: strongly solves 2048 on R×C boards, exactly, and answers what a state is worth.

#[cfg(feature = "net")]
mod cluster;
mod commands;
mod embedded;
mod failure;
mod job;
#[cfg(feature = "net")]
mod job_view;
mod limits;
#[cfg_attr(not(feature = "net"), path = "without_net/network.rs")]
mod network;
mod output;
mod place;
mod progress;
#[cfg_attr(not(feature = "net"), path = "without_net/remote.rs")]
mod remote;

use std::process::ExitCode;

use clap::Parser;

pub use failure::Failure;

/// Strongly solves 2048 on R×C boards, exactly.
#[derive(Parser, Debug)]
#[command(version, about, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    // Crash tests name the point at which the process dies in the environment.
    #[cfg(feature = "failpoints")]
    let _scenario = fail::FailScenario::setup();
    let cli = Cli::parse();
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
