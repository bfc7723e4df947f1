//! `exact2048 combo query`: the values of the placements of a piece.

use std::io::{self, Read, Write};

use anyhow::{Context, Result};
use exact2048_combo4w::{ComboProblem, Decision, Draw, Field, Outlook, PIECES, Piece, Placement};
use serde_json::{Value, json};

use super::setting::{RuleArgs, SolveArgs, SolvedCombo};
use crate::{Failure, output, units};

/// Options of `combo query`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 combo query --field X.../X.../X... --queue T
  exact2048 combo query --field X.../XX.. --hold T --queue LSZ
  exact2048 combo query --field XXX. --hold I --queue LJ --draw bag --bag TO
  exact2048 combo query --field - --queue I --json < field.txt

The player drops the first piece of the queue or the held piece; the other pieces are previews. The command solves \
the rules before it answers, which takes seconds with five previews.")]
pub struct Args {
    /// Set the field: rows from the top, X or . for each cell, separated by /; - reads lines from stdin
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    field: String,
    /// Set the held piece; without this option no piece can be held
    #[arg(long, value_name = "PIECE")]
    hold: Option<Piece>,
    /// Set the current piece and the previews after it: letters of IOTSZJL
    #[arg(long, value_name = "PIECES", value_parser = pieces)]
    queue: Pieces,
    /// Set the pieces that can follow the queue before the next bag begins, with --draw bag
    #[arg(long, value_name = "PIECES", value_parser = pieces)]
    bag: Option<Pieces>,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    solve: SolveArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// At least one piece.
#[derive(Clone, Debug)]
struct Pieces(Vec<Piece>);

fn pieces(text: &str) -> Result<Pieces, String> {
    let pieces: Result<Vec<Piece>, _> = text.chars().map(|letter| letter.to_string().parse()).collect();
    match pieces {
        Ok(pieces) if pieces.is_empty() => Err("expected at least one letter of IOTSZJL".to_owned()),
        Ok(pieces) => Ok(Pieces(pieces)),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let decision = args.decision()?;
    let draw = Draw::from(args.rules.draw);
    let solved = args.solve.solve(ComboProblem {
        first: decision.field,
        drops: args.rules.drops.into(),
        hold: decision.hold.is_some(),
        draw,
        previews: decision.outlook.previews.len(),
    })?;
    let placements = solved.solution.placements(&solved.space, &decision).ok_or_else(|| {
        let Pieces(queue) = &args.queue;
        let seen: String = queue.iter().map(Piece::to_string).collect();
        let bag: String = decision.outlook.bag.iter().map(Piece::to_string).collect();
        Failure::unreachable(format!(
            "bags cannot give {seen} and then one of {bag}; give in --bag the pieces not yet drawn from the current bag"
        ))
    })?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json(&solved, &decision, &placements))?;
    } else {
        write_for_people(&mut out, &solved, &decision, &placements)?;
    }
    Ok(())
}

impl Args {
    fn decision(&self) -> Result<Decision> {
        let text = match self.field.as_str() {
            "-" => {
                let mut bytes = Vec::new();
                io::stdin().read_to_end(&mut bytes).context("cannot read from stdin")?;
                let text = exact2048_text::utf8(&bytes);
                text.map_err(|found| Failure::usage(format!("expected a field, found {found}")))?.to_owned()
            }
            given => given.to_owned(),
        };
        let field: Field = text.parse().map_err(|error| Failure::usage(format!("--field: {error}")))?;
        let Pieces(queue) = &self.queue;
        let bag = match (Draw::from(self.rules.draw), &self.bag) {
            (Draw::Random, None) => PIECES.to_vec(),
            (Draw::Random, Some(_)) => {
                return Err(Failure::usage("--bag requires --draw bag".to_owned()).into());
            }
            (Draw::Bag, Some(Pieces(bag))) => {
                PIECES.into_iter().filter(|piece| bag.contains(piece)).collect()
            }
            (Draw::Bag, None) => {
                let message = "--draw bag: expected --bag with the pieces that can follow the queue";
                return Err(Failure::usage(message.to_owned()).into());
            }
        };
        Ok(Decision {
            field,
            hold: self.hold,
            current: queue[0],
            outlook: Outlook { previews: queue[1..].to_vec(), bag },
        })
    }
}

fn write_for_people(
    out: &mut impl Write,
    solved: &SolvedCombo,
    decision: &Decision,
    placements: &[Placement],
) -> Result<()> {
    let Some(best) = placements.first() else {
        writeln!(out, "{:#}\n\nNo placement fills a row: the combo ends.", decision.field)?;
        return Ok(());
    };
    let error = solved.error(best.value, 0.0);
    for line in side_by_side(decision.field, best) {
        writeln!(out, "{line}")?;
    }
    output::write_field(out, "best", describe(best))?;
    output::write_field(
        out,
        "expected",
        format!("{} placements", units::value_with_bound(best.value, error)),
    )?;
    writeln!(out)?;
    let rows = placements.iter().map(|placement| {
        vec![
            placement.piece.to_string(),
            placement.after.to_string(),
            placement.hold.map_or(String::new(), |piece| piece.to_string()),
            units::value(placement.value, error),
        ]
    });
    output::write_table(
        out,
        &output::table(&["piece", "field after it", "hold", "expected"], &[0, 1, 2], rows),
    )?;
    Ok(())
}

fn describe(best: &Placement) -> String {
    match best.hold {
        Some(hold) => format!("drop {}, hold {hold}", best.piece),
        None => format!("drop {}", best.piece),
    }
}

/// The field before and after the best placement, on the same floor.
fn side_by_side(before: Field, best: &Placement) -> Vec<String> {
    let rows = |field: Field| format!("{field:#}").lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (rows(before), rows(best.after));
    let height = before.len().max(after.len());
    let row = |rows: &[String], at: usize| match (at + rows.len()).checked_sub(height) {
        Some(at) => rows[at].clone(),
        None => "....".to_owned(),
    };
    let arrow = |at: usize| if at + 1 == height { format!("--{}->", best.piece) } else { " ".repeat(5) };
    (0..height)
        .map(|at| format!("{} {} {}", row(&before, at), arrow(at), row(&after, at)))
        .chain([String::new()])
        .collect()
}

fn json(solved: &SolvedCombo, decision: &Decision, placements: &[Placement]) -> Value {
    let letters = |pieces: &[Piece]| pieces.iter().map(Piece::to_string).collect::<String>();
    let hold = |piece: Option<Piece>| piece.map(|piece| piece.to_string());
    let placements: Vec<Value> = placements
        .iter()
        .map(|placement| {
            json!({
                "piece": placement.piece.to_string(),
                "after": placement.after.to_string(),
                "hold": hold(placement.hold),
                "expected": solved.value_json(placement.value, 0.0),
            })
        })
        .collect();
    json!({
        "field": decision.field.to_string(),
        "hold": hold(decision.hold),
        "current": decision.current.to_string(),
        "previews": letters(&decision.outlook.previews),
        "bag": letters(&decision.outlook.bag),
        "placements": placements,
    })
}
