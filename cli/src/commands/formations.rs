//! `exact2048 formations`: the formations that players practise.

use std::io::{self, Write};

use anyhow::Result;
use exact2048_game::board::MAX_EXPONENT;
use exact2048_game::formation::Formation;
use serde_json::json;

use crate::output;

/// Options of `formations`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 formations
  exact2048 solve --formation L3 --objective reach:64 --run runs/L3
  exact2048 query --run runs/L3 \"2 0 4 0 / 0 0 8 0 / 2 128 64 256 / 16 512 2048 1024\"

Locks stand for large tiles that double from one to the next. With n locks, the smallest of which is the tile to reach,
the tile to reach completes a chain that merges to 2^n times the tile. docs/endgames.md describes formations.")]
pub struct Args {
    /// Print one JSON object for each formation
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let mut out = io::stdout().lock();
    let locks = |formation: &Formation| formation.size().stones().count_ones();
    if args.json {
        for of in &Formation::ALL {
            let view = json!({
                "name": of.name, "picture": of.picture, "cells": of.size().cells(), "locks": locks(of),
                "factor": 1u32 << locks(of),
            });
            writeln!(out, "{view}")?;
        }
        return Ok(());
    }
    let row = |of: &Formation| {
        let serves =
            format!("{} with reach:{}", 1u32 << MAX_EXPONENT, 1u32 << (u32::from(MAX_EXPONENT) - locks(of)));
        [
            of.name.to_owned(),
            of.picture.to_owned(),
            of.size().cells().to_string(),
            locks(of).to_string(),
            serves,
        ]
    };
    let rows: Vec<Vec<String>> = Formation::ALL.iter().map(|of| row(of).to_vec()).collect();
    output::write_all_columns(&mut out, &["name", "picture", "cells", "locks", "serves"], &[0, 1, 4], &rows)?;
    Ok(out.flush()?)
}
