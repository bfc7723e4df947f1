//! Answers as text for people and as JSON.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::Result;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use exact2048_game::Board;
use exact2048_game::certainty::{self, Certainty};
use exact2048_game::packed::PackedRules;
use exact2048_game::rules::Move;
use exact2048_game::{Params, ValueUnit};
use exact2048_solution::{Advice, Evaluation, MoveValue, StateAnswer, StateView};
use serde::Serialize;

use super::answerer::AnswerWithCost;
use crate::cones::Cost;
use crate::job::objective_text;
use crate::{display, exit, output, units};

/// Prints answers about one run.
pub struct Printer {
    /// Parameters of the run.
    pub params: Params,
    /// Whether to print JSON.
    pub json: bool,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    state: StateView,
    /// Cost of the answer, if the run stores few layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

#[derive(Serialize)]
struct Refusal<'a> {
    line: u64,
    board: &'a str,
    error: String,
}

impl Printer {
    /// Prints an answer. Searches for a proof of a value of 0 or 1, which can take a few tenths of a second.
    pub fn write(&self, out: &mut impl Write, answer: &AnswerWithCost) -> Result<()> {
        let proved = match &answer.answer {
            StateAnswer::Values(of) if !self.json => {
                certainty::proved(self.params.game(), of.value, [of.board])
            }
            _ => None,
        };
        self.write_with(out, answer, proved)
    }

    fn write_with(
        &self,
        out: &mut impl Write,
        answer: &AnswerWithCost,
        proved: Option<Certainty>,
    ) -> Result<()> {
        if self.json {
            let shown = Shown {
                state: StateView::new(&answer.answer, self.params.game().board()),
                cost: answer.cost,
            };
            writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        } else {
            self.write_for_people(out, answer, proved)?;
        }
        Ok(())
    }

    /// Prints one of many answers, followed by a blank line. Does not search for proofs, because proofs for many answers
    /// could take hours.
    pub fn write_one_of_many(&self, out: &mut impl Write, answer: &AnswerWithCost) -> Result<()> {
        self.write_with(out, answer, None)?;
        if !self.json {
            writeln!(out)?;
        }
        Ok(())
    }

    /// Reports why a line has no answer.
    pub fn refuse(&self, out: &mut impl Write, line: u64, board: &str, error: &anyhow::Error) -> Result<()> {
        if self.json {
            let refusal = Refusal { line, board, error: exit::text(error) };
            writeln!(out, "{}", serde_json::to_string(&refusal)?)?;
        } else {
            display::print_note(&format!("error: line {line}: {}", exit::text(error)));
        }
        Ok(())
    }

    fn write_for_people(
        &self,
        out: &mut impl Write,
        answer: &AnswerWithCost,
        proved: Option<Certainty>,
    ) -> io::Result<()> {
        let (board, canonical, layer) = answer.answer.state();
        writeln!(out, "{}", self.grid(board))?;
        output::write_field(out, "layer", layer)?;
        output::write_field(out, "canonical", canonical.to_text(self.params.game().board()))?;
        output::write_field(out, "objective", objective_text(self.params.game()))?;
        if let Some(cost) = &answer.cost {
            output::write_field(out, "cost", cost.text())?;
        }
        match &answer.answer {
            StateAnswer::Values(of) => self.write_values(out, of, proved),
            StateAnswer::BestMove(of) => self.write_best_move(out, of),
        }
    }

    fn write_best_move(&self, out: &mut impl Write, advice: &Advice) -> io::Result<()> {
        let Some(best) = advice.best else {
            return writeln!(out, "\nNo move is legal: the game is over.");
        };
        output::write_field(out, "best", best.name())?;
        output::write_field(out, "value", "not stored; --value computes it")?;
        let row = |direction: Move| {
            let [score, after] = match advice.moves.get(direction) {
                Some((after, score)) => [score.to_string(), after.to_text(self.params.game().board())],
                None => ["-".to_owned(), "not legal".to_owned()],
            };
            let mark = if best == direction { "best" } else { "" };
            vec![direction.name().to_owned(), mark.to_owned(), score, after]
        };
        writeln!(out)?;
        let rows: Vec<Vec<String>> = Move::ALL.into_iter().map(row).collect();
        output::write_all_columns(out, &["move", "", "score", "afterstate"], &[0, 1, 3], &rows)
    }

    fn write_values(
        &self,
        out: &mut impl Write,
        answer: &Evaluation,
        proved: Option<Certainty>,
    ) -> io::Result<()> {
        if !answer.is_known_reachable {
            let layer = units::count(answer.layer.0);
            let text = format!("unknown: the run no longer stores the reachability of layer {layer}");
            output::write_field(out, "reachable", text)?;
        }
        if answer.best.is_none() {
            output::write_field(out, "value", units::value_with_bound(answer.value, 0.0))?;
            return writeln!(out, "\nNo move is legal: the game is over.");
        }
        let value = certainty::value_text(self.params.game(), answer.value, answer.error_bound, proved);
        output::write_field(out, "value", value)?;
        output::write_field(
            out,
            "best",
            best_of(&answer.moves, &PackedRules::new(self.params.game().board())),
        )?;
        let has_worst = answer.moves.iter().any(|m| worst_spawn(m).is_some());
        let row = |m: &MoveValue| {
            let cells = match m.outcome {
                Some(outcome) => {
                    let after = outcome.after.to_text(self.params.game().board());
                    [outcome.score.to_string(), units::value(outcome.value, outcome.error_bound), after]
                }
                None => ["-".to_owned(), "-".to_owned(), "not legal".to_owned()],
            };
            let [score, value, after] = cells;
            let mark = match m.outcome {
                Some(outcome) if outcome.is_best => "best",
                Some(outcome) if outcome.may_be_best == Some(true) => "near",
                _ => "",
            };
            let worst =
                worst_spawn(m).map_or("-".to_owned(), |board| board.to_text(self.params.game().board()));
            let mut row = vec![m.direction.name().to_owned(), mark.to_owned(), score, value, after];
            row.extend(has_worst.then_some(worst));
            row
        };
        let scores = self.params.game().objective().unit() == ValueUnit::Points;
        let value = if scores { "value with score" } else { "value" };
        let header = ["move", "", "score", value, "afterstate", "worst spawn"];
        writeln!(out)?;
        let rows: Vec<Vec<String>> = answer.moves.iter().map(row).collect();
        output::write_all_columns(out, &header[..if has_worst { 6 } else { 5 }], &[0, 1, 4, 5], &rows)
    }

    /// The board as a grid.
    fn grid(&self, board: Board) -> Table {
        let size = self.params.game().board();
        let (rows, cols) = (size.rows(), size.cols());
        let mut grid = Table::new();
        grid.load_style(UTF8_FULL_CONDENSED);
        for row in 0..rows {
            let text = |col| board.cell_text(row * cols + col, size);
            grid.add_row((0..cols).map(text).map(|text| if text == "0" { ".".to_owned() } else { text }));
        }
        grid.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        grid
    }
}

fn is_best(of: &MoveValue) -> bool {
    of.outcome.is_some_and(|outcome| outcome.is_best)
}

fn worst_spawn(of: &MoveValue) -> Option<Board> {
    of.outcome.and_then(|outcome| outcome.worst_spawn)
}

/// The best move, or all equally good moves: `left`, or `left, right: equal`. If values are rounded, the moves that may
/// be best.
fn best_of(moves: &[MoveValue], rules: &PackedRules) -> String {
    let may_be = |m: &&MoveValue| m.outcome.is_some_and(|outcome| outcome.may_be_best == Some(true));
    let candidates: Vec<&MoveValue> = moves.iter().filter(may_be).collect();
    let results = candidates.iter().filter_map(|m| m.outcome);
    let results: BTreeSet<(u64, u32)> =
        results.map(|outcome| (rules.canonical(outcome.after).0, outcome.score)).collect();
    if results.len() > 1 {
        let names: Vec<&str> = candidates.iter().map(|m| m.direction.name()).collect();
        return format!("{}: too close to tell apart", names.join(" or "));
    }
    let best: Vec<&str> = moves.iter().filter(|m| is_best(m)).map(|m| m.direction.name()).collect();
    match best[..] {
        [one] => one.to_owned(),
        _ => format!("{}: equal", best.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_solution::MoveOutcome;

    #[test]
    fn ties_are_named() {
        let rules = PackedRules::new("2x2".parse().unwrap());
        let outcome = |is_best| MoveOutcome {
            after: Board::default(),
            score: 0,
            value: 1.0,
            error_bound: 1e-7,
            worst_spawn: None,
            is_best,
            may_be_best: None,
        };
        let moves = |best: [Option<bool>; 4]| -> Vec<MoveValue> {
            let each = Move::ALL.into_iter().zip(best);
            each.map(|(direction, best)| MoveValue { direction, outcome: best.map(outcome) }).collect()
        };
        assert_eq!(best_of(&moves([Some(false), None, Some(true), Some(false)]), &rules), "up");
        assert_eq!(
            best_of(&moves([Some(true), Some(true), Some(false), None]), &rules),
            "left, right: equal"
        );
    }
}
