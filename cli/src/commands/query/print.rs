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
use exact2048_game::{Params, Perspective, ValueUnit};
use exact2048_solution::{Advice, Evaluation, MoveValue, StateAnswer, StateView, shown_moves};
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
    pub fn write(
        &self,
        out: &mut impl Write,
        answer: &AnswerWithCost,
        perspective: &Perspective,
    ) -> Result<()> {
        let proved = match &answer.answer {
            StateAnswer::Values(of) if !self.json => {
                certainty::proved(self.params.game(), of.value, [of.board])
            }
            _ => None,
        };
        self.write_with(out, answer, perspective, proved)
    }

    fn write_with(
        &self,
        out: &mut impl Write,
        answer: &AnswerWithCost,
        perspective: &Perspective,
        proved: Option<Certainty>,
    ) -> Result<()> {
        if self.json {
            let state = StateView::new(&answer.answer, perspective);
            let shown = Shown { state, cost: answer.cost };
            writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        } else {
            self.write_for_people(out, answer, perspective, proved)?;
        }
        Ok(())
    }

    /// Prints one of many answers, followed by a blank line. Does not search for proofs, because proofs for many answers
    /// could take hours.
    pub fn write_one_of_many(
        &self,
        out: &mut impl Write,
        answer: &AnswerWithCost,
        perspective: &Perspective,
    ) -> Result<()> {
        self.write_with(out, answer, perspective, None)?;
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
        perspective: &Perspective,
        proved: Option<Certainty>,
    ) -> io::Result<()> {
        let (board, canonical, layer) = answer.answer.state();
        writeln!(out, "{}", grid(board, perspective))?;
        if perspective.is_real() {
            output::write_field(out, "formation", board.to_text(self.params.game().board()))?;
        }
        output::write_field(out, "layer", layer)?;
        output::write_field(out, "canonical", canonical.to_text(self.params.game().board()))?;
        output::write_field(out, "objective", objective_text(self.params.game()))?;
        if let Some(cost) = &answer.cost {
            output::write_field(out, "cost", cost.text())?;
        }
        match &answer.answer {
            StateAnswer::Values(of) => self.write_values(out, of, perspective, proved),
            StateAnswer::BestMove(of) => write_best_move(out, of, perspective),
        }
    }

    fn write_values(
        &self,
        out: &mut impl Write,
        answer: &Evaluation,
        perspective: &Perspective,
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
        let rules = PackedRules::new(self.params.game().board());
        output::write_field(out, "best", best_of(&answer.moves, perspective, &rules))?;
        let has_worst = answer.moves.iter().any(|m| worst_spawn(m).is_some());
        let row = |(shown, m): (Move, &MoveValue)| {
            let cells = match m.outcome {
                Some(outcome) => {
                    let after = perspective.text(outcome.after);
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
            let worst = worst_spawn(m).map_or("-".to_owned(), |board| perspective.text(board));
            let mut row = vec![shown.name().to_owned(), mark.to_owned(), score, value, after];
            row.extend(has_worst.then_some(worst));
            row
        };
        let scores = self.params.game().objective().unit() == ValueUnit::Points;
        let value = if scores { "value with score" } else { "value" };
        let header = ["move", "", "score", value, "afterstate", "worst spawn"];
        writeln!(out)?;
        let rows: Vec<Vec<String>> = shown_moves(&answer.moves, perspective).map(row).collect();
        output::write_all_columns(out, &header[..if has_worst { 6 } else { 5 }], &[0, 1, 4, 5], &rows)
    }
}

fn write_best_move(out: &mut impl Write, advice: &Advice, perspective: &Perspective) -> io::Result<()> {
    let Some(best) = advice.best else {
        return writeln!(out, "\nNo move is legal: the game is over.");
    };
    output::write_field(out, "best", perspective.shown_move(best).name())?;
    output::write_field(out, "value", "not stored; --value computes it")?;
    let row = |shown: Move| {
        let of_run = perspective.of_run(shown);
        let [score, after] = match advice.moves.get(of_run) {
            Some((after, score)) => [score.to_string(), perspective.text(after)],
            None => ["-".to_owned(), "not legal".to_owned()],
        };
        let mark = if best == of_run { "best" } else { "" };
        vec![shown.name().to_owned(), mark.to_owned(), score, after]
    };
    writeln!(out)?;
    let rows: Vec<Vec<String>> = Move::ALL.into_iter().map(row).collect();
    output::write_all_columns(out, &["move", "", "score", "afterstate"], &[0, 1, 3], &rows)
}

/// A board of the run as a grid.
fn grid(board: Board, perspective: &Perspective) -> Table {
    let (board, size) = (perspective.shown(board), perspective.size());
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

fn is_best(of: &MoveValue) -> bool {
    of.outcome.is_some_and(|outcome| outcome.is_best)
}

fn worst_spawn(of: &MoveValue) -> Option<Board> {
    of.outcome.and_then(|outcome| outcome.worst_spawn)
}

/// The best move, or all equally good moves: `left`, or `left, right: equal`. If values are rounded, the moves that may
/// be best.
fn best_of(moves: &[MoveValue], perspective: &Perspective, rules: &PackedRules) -> String {
    let may_be = |m: &MoveValue| m.outcome.is_some_and(|outcome| outcome.may_be_best == Some(true));
    let moves: Vec<(Move, &MoveValue)> = shown_moves(moves, perspective).collect();
    let candidates: Vec<&(Move, &MoveValue)> = moves.iter().filter(|(_, m)| may_be(m)).collect();
    let results = candidates.iter().filter_map(|(_, m)| m.outcome);
    let results: BTreeSet<(u64, u32)> =
        results.map(|outcome| (rules.canonical(outcome.after).0, outcome.score)).collect();
    if results.len() > 1 {
        let names: Vec<&str> = candidates.iter().map(|(shown, _)| shown.name()).collect();
        return format!("{}: too close to tell apart", names.join(" or "));
    }
    let best: Vec<&str> = moves.iter().filter(|(_, m)| is_best(m)).map(|(shown, _)| shown.name()).collect();
    match best[..] {
        [one] => one.to_owned(),
        _ => format!("{}: equal", best.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::BoardSize;
    use exact2048_solution::MoveOutcome;

    use super::*;

    #[test]
    fn ties_are_named() {
        let size: BoardSize = "2x2".parse().unwrap();
        let (perspective, rules) = (Perspective::from(size), PackedRules::new(size));
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
        assert_eq!(best_of(&moves([Some(false), None, Some(true), Some(false)]), &perspective, &rules), "up");
        assert_eq!(
            best_of(&moves([Some(true), Some(true), Some(false), None]), &perspective, &rules),
            "left, right: equal"
        );
    }
}
