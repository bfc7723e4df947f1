//! One file a subcommand, all of the same shape: `Args` and `main`.

pub mod info;
pub mod inspect;
pub mod layers;
pub mod query;
pub mod serve;
pub mod solve;
pub mod verify;
pub mod worker;

use anyhow::Result;

/// The subcommands.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// Solve a board on this machine: enumerate, back up, publish; resumes where it stopped
    Solve(solve::Args),
    /// Say what states are worth, and each of their moves
    Query(query::Args),
    /// Answer what states are worth over gRPC, until stopped
    Serve(serve::Args),
    /// Compute for a coordinator, until stopped
    Worker(worker::Args),
    /// List the layers with their numbers of states and afterstates
    Layers(layers::Args),
    /// Check checksums, reachability and values with code that the solver does not share
    Verify(verify::Args),
    /// Show what a run is, and how far it is
    Info(info::Args),
    /// Show the header, the frames and the items of a shard file
    Inspect(inspect::Args),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<()> {
        match self {
            Command::Solve(args) => solve::main(args),
            Command::Query(args) => query::main(args),
            Command::Serve(args) => serve::main(args),
            Command::Worker(args) => worker::main(args),
            Command::Layers(args) => layers::main(args),
            Command::Verify(args) => verify::main(args),
            Command::Info(args) => info::main(args),
            Command::Inspect(args) => inspect::main(args),
        }
    }
}
