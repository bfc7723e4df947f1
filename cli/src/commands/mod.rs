//! One file a subcommand, all of the same shape: `Args` and `main`.

pub mod solve;

use anyhow::Result;

/// The subcommands.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// Solve a board on this machine: enumerate, back up, publish; resumes where it stopped
    Solve(solve::Args),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<()> {
        match self {
            Command::Solve(args) => solve::main(args),
        }
    }
}
