//! `exact2048 combo minimise`: the smallest equivalent set of states.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_combo4w::{ComboSpace, Explicit, Graph, Minimised, Node, minimise, prune};
use rayon::prelude::*;
use serde_json::json;

use super::setting::SolvedArgs;
use crate::{output, units};

/// Options of `combo minimise`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 combo minimise --hold --previews 2
  exact2048 combo minimise --draw bag --previews 1 --json | jq .rounds

The command merges equivalent states. Then it prunes successors that are never better than another \
successor, and merges again, until nothing changes. At the end it compares all values with those of `combo solve`. \
Pruning examines pairs of states, so it is skipped if more than 20,000 states remain.")]
pub struct Args {
    #[command(flatten)]
    solved: SolvedArgs,
}

/// Largest number of states for pruning. The number is limited because pruning examines all pairs.
const MOST_PRUNED: usize = 20_000;
/// Largest change of a value at which the iteration on a small graph ends.
const GOAL: f64 = 1e-12;

/// Numbers of states and edges after a round.
struct Round {
    pruned_edges: usize,
    states: usize,
    edges: usize,
}

/// A minimised space.
struct Reduced {
    graph: Explicit,
    class_of: Vec<Node>,
    rounds: Vec<Round>,
    /// Whether the space was small enough to prune.
    is_small: bool,
}

/// Minimises and prunes in turn until nothing changes.
fn reduce(space: &ComboSpace) -> Reduced {
    let Minimised { mut graph, mut class_of } = minimise(space);
    let mut rounds = vec![Round { pruned_edges: 0, states: graph.nodes(), edges: graph.edges() }];
    let is_small = graph.nodes() <= MOST_PRUNED;
    let mut may_shrink = is_small;
    while may_shrink {
        let lives = graph.lives(GOAL);
        let pruned_edges = prune(&mut graph, &lives);
        may_shrink = pruned_edges > 0;
        if may_shrink {
            let again = minimise(&graph);
            class_of.par_iter_mut().for_each(|class| *class = again.class_of[*class as usize]);
            graph = again.graph;
            rounds.push(Round { pruned_edges, states: graph.nodes(), edges: graph.edges() });
        }
    }
    Reduced { graph, class_of, rounds, is_small }
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let SolvedArgs { solve, json, .. } = &args.solved;
    let solved = args.solved.solved()?;
    let space = &solved.space;
    let Reduced { graph, class_of, rounds, is_small } = solve.pool()?.install(|| reduce(space));
    let lives = graph.lives(GOAL);
    let difference = solved
        .solution
        .lives()
        .zip(&class_of)
        .map(|(own, &class)| (own - lives[class as usize]).abs())
        .fold(0.0, f64::max);
    let mut out = io::stdout().lock();
    if *json {
        let rounds: Vec<_> = rounds
            .iter()
            .map(|round| json!({ "pruned_edges": round.pruned_edges, "states": round.states, "edges": round.edges }))
            .collect();
        let json = json!({
            "states": space.len(),
            "edges": edges(space),
            "rounds": rounds,
            "is_pruned": is_small,
            "largest_difference": difference,
        });
        writeln!(out, "{json}")?;
        return Ok(());
    }
    let row = |name: &str, pruned: usize, states: usize, edges: usize| {
        let pruned = if pruned > 0 { units::count(pruned) } else { String::new() };
        vec![name.to_owned(), pruned, units::count(states), units::count(edges)]
    };
    let mut rows = vec![row("all", 0, space.len(), edges(space))];
    rows.extend(rounds.iter().map(|round| {
        let name = if round.pruned_edges > 0 { "pruned and minimised" } else { "minimised" };
        row(name, round.pruned_edges, round.states, round.edges)
    }));
    output::write_table(out.by_ref(), &output::table(&["", "edges pruned", "states", "edges"], &[0], rows))?;
    if !is_small {
        writeln!(
            out,
            "\nNot pruned: {} states are too many to examine all pairs.",
            units::count(lives.len())
        )?;
    }
    writeln!(out, "\nValues differ by at most {} from those of all states.", units::bound(difference))?;
    Ok(())
}

/// Number of pairs of a branch and a successor.
fn edges(space: &ComboSpace) -> usize {
    let of_state = |node: Node| {
        let mut edges = 0;
        space.branches(node, |_, successors| edges += successors.len());
        edges
    };
    (0..space.len() as Node).into_par_iter().map(of_state).sum()
}
