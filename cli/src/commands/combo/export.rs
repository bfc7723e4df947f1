//! `exact2048 combo export`: tables of values and policies for other programs.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use exact2048_combo4w::{Outlook, Piece};
use serde_json::json;

use super::setting::{SolvedArgs, SolvedCombo};

/// Options of `combo export`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 combo export policy --hold --previews 1 > policy.csv
  exact2048 combo export values --draw bag --json > values.jsonl

policy prints one line for each decision: the field, the held piece, the current piece, the previews and the pieces \
that the bag can give next. The line ends with the best placement: its piece, the field after it and its expected \
placements. Decisions that end the combo are omitted. values prints one line for each state, before a piece is drawn.")]
#[command(mut_arg("json", |json| json.help("Print one JSON object per line instead of comma-separated values")))]
pub struct Args {
    /// Choose the table to print
    #[arg(value_enum)]
    what: What,
    #[command(flatten)]
    solved: SolvedArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum What {
    /// Print the best placement of every decision
    Policy,
    /// Print the expected further placements in every state
    Values,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let solved = args.solved.solved()?;
    let mut out = BufWriter::new(io::stdout().lock());
    match args.what {
        What::Policy => write_policy(&mut out, &solved, args.solved.json)?,
        What::Values => write_values(&mut out, &solved, args.solved.json)?,
    }
    out.flush()?;
    Ok(())
}

fn letters(pieces: impl IntoIterator<Item = Piece>) -> String {
    pieces.into_iter().map(|piece| piece.to_string()).collect()
}

fn seen(outlook: &Outlook) -> (String, String) {
    (letters(outlook.previews.iter().copied()), letters(outlook.bag.iter().copied()))
}

fn write_policy(out: &mut impl Write, solved: &SolvedCombo, as_json: bool) -> Result<()> {
    let SolvedCombo { space, solution, .. } = solved;
    if !as_json {
        writeln!(out, "field,hold,current,previews,bag,piece,after,expected")?;
    }
    for decision in space.decisions() {
        let placements = solution.placements(space, &decision).unwrap_or_default();
        let Some(best) = placements.first() else { continue };
        let (previews, bag) = seen(&decision.outlook);
        let (field, hold, current) = (decision.field, letters(decision.hold), decision.current);
        let (piece, after, value) = (best.piece, best.after, best.value);
        if as_json {
            let line = json!({
                "field": field.to_string(), "hold": hold, "current": current.to_string(), "previews": previews,
                "bag": bag, "piece": piece.to_string(), "after": after.to_string(), "expected": value,
            });
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{field},{hold},{current},{previews},{bag},{piece},{after},{value}")?;
        }
    }
    Ok(())
}

fn write_values(out: &mut impl Write, solved: &SolvedCombo, as_json: bool) -> Result<()> {
    if !as_json {
        writeln!(out, "field,hold,previews,bag,expected")?;
    }
    for (state, value) in solved.solution.values(&solved.space) {
        let (previews, bag) = seen(&state.outlook);
        let (field, hold) = (state.field, letters(state.hold));
        if as_json {
            let line = json!({
                "field": field.to_string(), "hold": hold, "previews": previews, "bag": bag, "expected": value,
            });
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{field},{hold},{previews},{bag},{value}")?;
        }
    }
    Ok(())
}
