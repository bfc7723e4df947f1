//! `exact2048 combo graph`: the fields and their successors.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use exact2048_combo4w::{PIECES, Placements};
use serde_json::{Value, json};

use super::setting::{DropsArg, FieldArgs};
use crate::{Failure, output, units};

/// Options of `combo graph`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 combo graph
  exact2048 combo graph --cells 6 --drops hard
  exact2048 combo graph --json | jq .fields
  exact2048 combo graph --dot | dot -Tsvg > fields.svg

A component is a set of fields in which each field leads to all others.")]
pub struct Args {
    #[command(flatten)]
    field: FieldArgs,
    /// Choose how pieces may be dropped
    #[arg(long, value_enum, default_value = "srs")]
    drops: DropsArg,
    /// Print one JSON object with all fields
    #[arg(long, conflicts_with = "dot")]
    json: bool,
    /// Print the graph in the Graphviz language
    #[arg(long)]
    dot: bool,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let moves = Placements::from_field(args.field.first(), args.drops.into())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        writeln!(out, "{}", json(&moves))?;
    } else if args.dot {
        write_dot(&mut out, &moves)?;
    } else {
        write_for_people(&mut out, &moves)?;
    }
    out.flush()?;
    Ok(())
}

fn write_for_people(out: &mut impl Write, moves: &Placements) -> Result<()> {
    let components = moves.components();
    output::write_field(out, "first field", moves.fields()[0])?;
    output::write_field(out, "fields", units::count(moves.fields().len()))?;
    output::write_field(out, "placements", units::count(moves.placements()))?;
    output::write_field(out, "components", units::count(components.len()))?;
    let mut large: Vec<_> = components.iter().filter(|component| component.len() > 1).collect();
    large.sort_by_key(|component| std::cmp::Reverse(component.len()));
    writeln!(out, "\nComponents of more than one field:")?;
    let rows = large.into_iter().map(|component| {
        let first = moves.fields()[component[0]];
        vec![first.to_string(), first.cells().to_string(), units::count(component.len())]
    });
    output::write_table(out, &output::table(&["one of the fields", "cells", "fields"], &[0], rows))?;
    Ok(())
}

fn write_dot(out: &mut impl Write, moves: &Placements) -> Result<()> {
    writeln!(out, "digraph fields {{\n  node [shape=box, fontname=monospace];")?;
    for (at, field) in moves.fields().iter().enumerate() {
        writeln!(out, "  {at} [label=\"{}\"];", format!("{field:#}").replace('\n', "\\n"))?;
        for piece in PIECES {
            for next in moves.next(at, piece) {
                writeln!(out, "  {at} -> {next} [label={piece}];")?;
            }
        }
    }
    writeln!(out, "}}")?;
    Ok(())
}

fn json(moves: &Placements) -> Value {
    let fields: Vec<Value> = moves
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| {
            let next: serde_json::Map<String, Value> =
                PIECES.into_iter().map(|piece| (piece.to_string(), json!(moves.next(at, piece)))).collect();
            json!({ "field": field.to_string(), "next": next })
        })
        .collect();
    json!({ "placements": moves.placements(), "components": moves.components(), "fields": fields })
}
