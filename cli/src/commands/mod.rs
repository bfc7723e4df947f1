//! One file a subcommand, all of the same shape: `Args` and `main`.

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
    /// Solve a board on this machine: enumerate, back up, publish; resumes where it stopped
    Solve(solve::Args),
    /// Say what states are worth, and each of their moves
    Query(query::Args),
    #[cfg(feature = "net")]
    #[command(flatten)]
    Net(NetCommand),
    /// List the layers with their numbers of states and afterstates
    Layers(layers::Args),
    /// Check checksums, reachability and values with code that the solver does not share
    Verify(verify::Args),
    /// Show what a run is, and how far it is
    Info(info::Args),
    /// Show the header, the frames and the items of a shard file
    Inspect(inspect::Args),
    /// Say what a solve would take: hours, memory, and disk with each choice of kept layers
    Plan(plan::Args),
    /// Play many games and say what came of them
    Play(play::Args),
    /// Say how much a player loses against perfect play
    Evaluate(evaluate::Args),
    /// Say what perfect play comes to: largest tiles, last layers and moves, without sampling
    Stats(stats::Args),
    /// Write a page about solved runs: certificate, figures and tables, in one HTML file
    Report(report::Args),
    /// Write tables of states, afterstates or best moves for other programs: Parquet, NumPy, CSV
    #[cfg(feature = "export")]
    Export(export::Args),
    /// Say how many boards there can be, without enumerating them
    Count(count::Args),
    /// Say how many moves a win takes at least: tiles in a bag, without a board
    Bag(bag::Args),
    /// Say how long combos are in a field four columns wide, solved exactly
    Combo(combo::Args),
    /// Print a script for completion by a shell: bash, elvish, fish, powershell, zsh
    Completions(completions::Args),
    /// Print the manual, or write a page for each command
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

/// Those that serve or ask others.
#[cfg(feature = "net")]
#[derive(clap::Subcommand, Debug)]
pub enum NetCommand {
    /// Answer what states are worth over gRPC, until stopped
    Serve(serve::Args),
    /// Give out work to workers, until stopped
    Coordinator(coordinator::Args),
    /// Compute for a coordinator, until stopped
    Worker(worker::Args),
    /// Put a job in the queue of a cluster
    Submit(submit::Args),
    /// Show what a cluster is doing, or follow a job
    Status(status::Args),
    /// Stop a job of a cluster
    Cancel(cancel::Args),
    /// Take a job of a cluster that has ended out of its list; its run stays
    Forget(forget::Args),
    /// Go on with a job of a cluster that has stopped
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
