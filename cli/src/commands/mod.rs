//! Subcommands: one file each, with `Args` and `main`.

pub mod bag;
#[cfg(feature = "net")]
pub mod cancel;
pub mod combo;
pub mod completions;
#[cfg(feature = "net")]
pub mod coordinator;
pub mod count;
pub mod evaluate;
#[cfg(feature = "export")]
pub mod export;
#[cfg(feature = "net")]
pub mod forget;
pub mod formations;
pub mod info;
pub mod inspect;
pub mod layers;
pub mod man;
pub mod plan;
pub mod play;
pub mod query;
pub mod report;
#[cfg(feature = "net")]
pub mod resume;
#[cfg(feature = "net")]
pub mod serve;
pub mod solve;
pub mod stats;
#[cfg(feature = "net")]
pub mod status;
#[cfg(feature = "net")]
pub mod submit;
pub mod verify;
#[cfg(feature = "net")]
pub mod worker;

use anyhow::Result;

/// The subcommands.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    /// Solve a board on this machine, or resume a run where it stopped
    Solve(solve::Args),
    /// Print the values of states and of their moves
    Query(query::Args),
    #[cfg(feature = "net")]
    #[command(flatten)]
    Net(NetCommand),
    /// List the layers with their counts of states and afterstates
    Layers(layers::Args),
    /// Verify checksums, reachability and values with code independent of the solver
    Verify(verify::Args),
    /// Show the parameters and the progress of a run
    Info(info::Args),
    /// Show the header, frames and items of a shard file
    Inspect(inspect::Args),
    /// List formations of 4x4 that players practise, for solve --formation
    Formations(formations::Args),
    /// Estimate the time, memory and disk of a solve, for each choice of kept layers
    Plan(plan::Args),
    /// Play many games and print statistics of the results
    Play(play::Args),
    /// Measure how much a player loses against perfect play
    Evaluate(evaluate::Args),
    /// Compute statistics of perfect play without sampling: largest tiles, last layers, moves
    Stats(stats::Args),
    /// Write a report on solved runs as one HTML file: certificate, figures and tables
    Report(report::Args),
    /// Export tables of states, afterstates or best moves: Parquet, NumPy, CSV
    #[cfg(feature = "export")]
    Export(export::Args),
    /// Compute upper bounds on the number of boards, without enumerating them
    Count(count::Args),
    /// Compute a lower bound on the moves of a win, with tiles in a bag instead of on a board
    Bag(bag::Args),
    /// Compute exactly how long combos last in a field four columns wide
    Combo(combo::Args),
    /// Print a completion script for a shell: bash, elvish, fish, powershell, zsh
    Completions(completions::Args),
    /// Print the manual page, or write one page for each command
    Man(man::Args),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<()> {
        match self {
            Command::Solve(args) => solve::main(args),
            Command::Query(args) => query::main(args),
            #[cfg(feature = "net")]
            Command::Net(command) => command.run(),
            Command::Layers(args) => layers::main(args),
            Command::Verify(args) => verify::main(args),
            Command::Info(args) => info::main(args),
            Command::Inspect(args) => inspect::main(args),
            Command::Formations(args) => formations::main(args),
            Command::Plan(args) => plan::main(args),
            Command::Play(args) => play::main(args),
            Command::Evaluate(args) => evaluate::main(args),
            Command::Stats(args) => stats::main(args),
            Command::Report(args) => report::main(args),
            #[cfg(feature = "export")]
            Command::Export(args) => export::main(args),
            Command::Count(args) => count::main(args),
            Command::Bag(args) => bag::main(args),
            Command::Combo(args) => combo::main(args),
            Command::Completions(args) => completions::main(args),
            Command::Man(args) => man::main(args),
        }
    }
}

/// The subcommands that run servers or call them.
#[cfg(feature = "net")]
#[derive(clap::Subcommand, Debug)]
pub enum NetCommand {
    /// Serve the values of states over gRPC, until stopped
    Serve(serve::Args),
    /// Coordinate the workers of a cluster, until stopped
    Coordinator(coordinator::Args),
    /// Compute jobs of a coordinator, until stopped
    Worker(worker::Args),
    /// Submit a job to the queue of a cluster
    Submit(submit::Args),
    /// Show the jobs and workers of a cluster, or follow a job
    Status(status::Args),
    /// Cancel a job of a cluster
    Cancel(cancel::Args),
    /// Remove an ended job from the list of a cluster; its run stays
    Forget(forget::Args),
    /// Resume a stopped job of a cluster
    Resume(resume::Args),
}

#[cfg(feature = "net")]
impl NetCommand {
    fn run(&self) -> Result<()> {
        match self {
            Self::Serve(args) => serve::main(args),
            Self::Coordinator(args) => coordinator::main(args),
            Self::Worker(args) => worker::main(args),
            Self::Submit(args) => submit::main(args),
            Self::Status(args) => status::main(args),
            Self::Cancel(args) => cancel::main(args),
            Self::Forget(args) => forget::main(args),
            Self::Resume(args) => resume::main(args),
        }
    }
}
