//! `exact2048`: solves 2048 strongly and exactly on R×C boards, and returns the value of any state.

mod choice;
#[cfg(feature = "net")]
mod cluster;
mod commands;
mod cones;
mod display;
mod exit;
mod failure;
mod help;
mod job;
#[cfg(feature = "net")]
mod job_view;
mod limits;
#[cfg_attr(not(feature = "net"), path = "without_net/network.rs")]
mod network;
mod output;
mod output_file;
mod parsing;
mod pass;
mod place;
mod plan;
mod progress;
#[cfg(test)]
mod recorded;
mod remedy;
#[cfg_attr(not(feature = "net"), path = "without_net/remote.rs")]
mod remote;
mod shell;
mod signals;
mod sparkline;
mod states_bound;
mod summary;
mod temporary;
mod terminal;
mod units;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use exact2048_storage::CrashPoints;

pub use failure::Failure;

/// Solves 2048 strongly and exactly on R×C boards.
#[derive(Parser, Debug)]
#[command(
    version,
    about,
    arg_required_else_help = true,
    after_help = "\
Exit codes, the same for every command:
  0    done
  1    failure, or verify found a problem
  2    wrong usage, or the place has other contents
  3    the state is not reachable in this run
  130  interrupted"
)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    // Crash tests name the crash point in the environment.
    let _points = CrashPoints::of_environment();
    let matches = help::with_examples(Cli::command()).try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return exit::report_usage(&error),
    };
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
