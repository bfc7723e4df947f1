//! `exact2048 combo`: the longest expected combo in a field four columns wide. One file per subcommand.

mod export;
mod graph;
mod minimise;
mod query;
mod setting;
mod solve;

use anyhow::Result;

/// Options of `combo`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  exact2048 combo solve --hold --previews 5
  exact2048 combo query --field X.../X.../X... --hold T --queue LSZ

Pieces fall into a field four columns wide, between walls. Each piece must fill a row, or the combo ends.
docs/combo.md has the definition, the formulas and the source."
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Compute how long combos last under the best policy
    Solve(solve::Args),
    /// Print the values of the placements of a piece
    Query(query::Args),
    /// Show the fields, their successors and their components
    Graph(graph::Args),
    /// Merge equivalent states and prune placements that are never better
    Minimise(minimise::Args),
    /// Export the values of all states, or the best placement of every decision
    Export(export::Args),
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    match &args.command {
        Command::Solve(args) => solve::main(args),
        Command::Query(args) => query::main(args),
        Command::Graph(args) => graph::main(args),
        Command::Minimise(args) => minimise::main(args),
        Command::Export(args) => export::main(args),
    }
}
