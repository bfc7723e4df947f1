//! `exact2048 formations`: the formations that players practise.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_game::board::MAX_EXPONENT;
use exact2048_game::formation::Formation;
use exact2048_game::{Objective, Params};
use serde_json::json;

use crate::states_bound::{SECONDS_A_STATE, states_at_most};
use crate::{output, units};

/// Options of `formations`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 formations
  exact2048 solve --formation L3 --objective reach:64 --run runs/L3
  exact2048 query --run runs/L3 \"2 0 4 0 / 0 0 8 0 / 2 128 64 256 / 16 512 2048 1024\"

Stones stand for large tiles that double from one to the next. Those in a picture are locked in their cells, and those of
4x4+Nx are loose: they slide. With n stones, the smallest of which is the tile to reach, the tile to reach completes a
chain that merges to 2^n times the tile. The bounds on states and core time are for the
tile in the column before, and mostly several times too large. docs/endgames.md describes formations.")]
pub struct Args {
    /// Print one JSON object for each formation
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let mut out = io::stdout().lock();
    let served = Formation::ALL.map(Served::of);
    if args.json {
        for Served { formation, large_tiles, target, states } in served {
            let size = formation.size();
            let view = json!({
                "name": formation.name, "board": size, "picture": size.picture(), "loose": size.loose(),
                "cells": size.tile_cells(), "locks": size.stones().count_ones(),
                "factor": 1u32 << large_tiles, "tile": target,
                "states_at_most": states.map(|states| states.to_string()),
                "core_seconds_at_most": states.map(|states| states as f64 * SECONDS_A_STATE),
            });
            writeln!(out, "{view}")?;
        }
        return Ok(());
    }
    let rows: Vec<Vec<String>> = served.iter().map(Served::row).collect();
    let names = ["name", "stones", "cells", "large tiles", "serves", "states, at most", "core time, at most"];
    output::write_all_columns(&mut out, &names, &[0, 1, 4], &rows)?;
    Ok(out.flush()?)
}

/// A formation, and the smallest tile with which it serves the largest tile of a real game.
struct Served {
    formation: Formation,
    /// Number of stones.
    large_tiles: u32,
    target: u32,
    /// Bound on the states of the run to this tile.
    states: Option<u128>,
}

impl Served {
    fn of(formation: Formation) -> Self {
        let large_tiles = formation.large_tiles();
        let target = 1 << (u32::from(MAX_EXPONENT) - large_tiles);
        let objective = Objective::Reach { exponent: MAX_EXPONENT - large_tiles as u8 };
        let params = Params::builder(formation.size(), objective).build().ok();
        Self { formation, large_tiles, target, states: params.as_ref().and_then(states_at_most) }
    }

    fn row(&self) -> Vec<String> {
        let Self { formation, large_tiles, target, states } = self;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            formation.name.to_owned(),
            formation.stones.trim_start_matches([':', '+']).to_owned(),
            formation.size().tile_cells().to_string(),
            large_tiles.to_string(),
            format!("{} with reach:{target}", 1u32 << MAX_EXPONENT),
            or_none(states.map(|states| units::rough(states as f64))),
            or_none(states.map(|states| units::about(states as f64 * SECONDS_A_STATE))),
        ]
    }
}
