//! Wins that are certain or impossible, proved by going through games, since no stored value proves either: a chance of
//! 1 − 10^-10 is stored as 1 in 32 bits, and one of 10^-10 as 0.

use std::collections::HashMap;

use exact2048_text::numbers::value_with_bound;

use crate::packed::PackedRules;
use crate::{Board, Discount, Layer, Objective, Params, SpawnKind, Spawner, rules};

/// A proof about winning from some states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// The player can win whatever tiles come.
    Certain,
    /// No tiles and no moves lead to a win.
    Impossible,
}

/// States that a proof may go through: a few tenths of a second.
const MOST_STATES: usize = 1 << 17;

/// Moves that a proof may look ahead, which bounds the stack.
const MOST_MOVES: u32 = 1 << 9;

/// A proof that agrees with the value of some states, if a short search finds one. `None` proves nothing.
///
/// Takes up to a few tenths of a second where the value is 0 or 1, else no time.
#[must_use]
pub fn proved(params: &Params, value: f64, states: impl IntoIterator<Item = Board>) -> Option<Certainty> {
    let wanted = wanted(params, value)?;
    let mut search = Search {
        rules: PackedRules::new(params.board),
        target: params.winning_exponent()?,
        spawns: SpawnKind::ALL.into_iter().filter(|spawn| spawn.weight(params.spawn4) > 0).collect(),
        wanted,
        known: HashMap::new(),
    };
    let is_certain = wanted == Certainty::Certain;
    states.into_iter().all(|state| search.wins(state, MOST_MOVES) == Some(is_certain)).then_some(wanted)
}

/// The same for the mean over all starts. `last` is the highest layer that has a state.
#[must_use]
pub fn proved_of_starts(params: &Params, value: f64, last: Layer) -> Option<Certainty> {
    if wanted(params, value)? == Certainty::Impossible {
        let target = params.winning_exponent()?;
        // A move that makes the tile leads from two halves of it. Of 2s alone, a tile of 2^e takes e cells.
        let never_4 = SpawnKind::Four.weight(params.spawn4) == 0;
        if last.0 < 1 << target || never_4 && usize::from(target) > params.cells() {
            return Some(Certainty::Impossible);
        }
    }
    let can_come = |spawn: &SpawnKind| spawn.weight(params.spawn4) > 0;
    let starts = rules::starts(params.board).filter(|(_, spawns)| spawns.iter().all(can_come));
    proved(params, value, starts.map(|(board, _)| board))
}

/// The proof that a value may have. Against the worst spawns values are exact, and need none.
fn wanted(params: &Params, value: f64) -> Option<Certainty> {
    let winning = match params.objective {
        Objective::Score => None,
        _ if params.spawner == Spawner::Worst => None,
        Objective::Reach { .. } => Some(value),
        Objective::Lose { .. } => Some(1.0 - value),
    };
    match winning {
        Some(1.0) => Some(Certainty::Certain),
        Some(0.0) => Some(Certainty::Impossible),
        _ => None,
    }
}

/// A value as text: with its bound, or what is proved of it; where it is within its bound of certainty, with the
/// objective that has more digits.
#[must_use]
pub fn value_text(params: &Params, value: f64, error: f64, proved: Option<Certainty>) -> String {
    let of = if matches!(params.objective, Objective::Lose { .. }) { "loss" } else { "win" };
    let is_win = |proved| (of == "win") == (proved == Certainty::Certain);
    match (proved, params.objective) {
        (Some(proved), _) if is_win(proved) => format!("{}, exactly: a {of} is certain", value.round()),
        (Some(_), _) => format!("{}, exactly: a {of} is impossible", value.round()),
        (None, Objective::Reach { exponent })
            if error > 0.0 && value + error >= 1.0 && params.discount == Discount::NONE =>
        {
            let lose = Objective::Lose { exponent };
            format!("{}; {lose} has the digits below 1", value_with_bound(value, error))
        }
        _ => value_with_bound(value, error),
    }
}

struct Search {
    rules: PackedRules,
    target: u8,
    spawns: Vec<SpawnKind>,
    wanted: Certainty,
    known: HashMap<Board, bool>,
}

impl Search {
    /// Whether a move wins, or leads to spawns that do: all of them where a win is to be certain, else any. `None` where
    /// that takes too long to find out.
    fn wins(&mut self, state: Board, moves: u32) -> Option<bool> {
        let state = self.rules.canonical(state);
        if let Some(&known) = self.known.get(&state) {
            return Some(known);
        }
        if moves == 0 || self.known.len() >= MOST_STATES {
            return None;
        }
        let legal = self.rules.moves(state);
        let mut is_won = legal.iter().any(|(_, after, _)| self.rules.has(after, self.target));
        for (_, after, _) in legal.iter() {
            is_won = is_won || self.spawns_win(after, moves - 1)?;
        }
        self.known.insert(state, is_won);
        Some(is_won)
    }

    fn spawns_win(&mut self, after: Board, moves: u32) -> Option<bool> {
        let all = self.wanted == Certainty::Certain;
        for cell in rules::empty_cells(after, self.rules.size()) {
            for nth in 0..self.spawns.len() {
                if self.wins(after.with(cell, self.spawns[nth].exponent()), moves)? != all {
                    return Some(!all);
                }
            }
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Precision, Spawn4};

    fn params(board: &str, objective: &str, spawn4: &str) -> Params {
        let spawn4: Spawn4 = spawn4.parse().unwrap();
        Params::new(board.parse().unwrap(), objective.parse().unwrap(), spawn4, Precision::Bits32, None)
            .unwrap()
    }

    fn at_start(board: &str, objective: &str, spawn4: &str, value: f64) -> Option<Certainty> {
        let params = params(board, objective, spawn4);
        proved_of_starts(&params, value, params.last_layer())
    }

    #[test]
    fn what_is_certain_or_impossible_is_proved_and_nothing_else() {
        use Certainty::{Certain, Impossible};
        for (board, objective, spawn4, value, expected) in [
            ("2x2", "reach:8", "0.1", 1.0, Some(Certain)),
            ("3x3", "reach:16", "0.1", 1.0, Some(Certain)),
            ("3x3", "lose:16", "0.1", 0.0, Some(Certain)),
            ("4x2", "reach:512", "0", 0.0, Some(Impossible)),
            ("2x2", "lose:32", "0", 1.0, Some(Impossible)),
            // Values as rounding could make them: the proof does not trust them.
            ("2x2", "reach:16", "0.1", 1.0, None),
            ("2x2", "reach:32", "0.1", 0.0, None),
            ("3x3", "reach:512", "0.1", 0.0, None),
            ("3x3", "reach:512", "0.1", 1.0, None),
            ("4x4", "reach:32768", "0.1", 1.0, None),
            ("2x2", "reach:8", "0.1", 0.999_999, None),
            ("2x2", "score", "0.1", 0.0, None),
        ] {
            assert_eq!(at_start(board, objective, spawn4, value), expected, "{board} {objective} {spawn4}");
        }
        // No layer of the run has two tiles that make it.
        let wide = params("3x3", "reach:1024", "0.1");
        assert_eq!(proved_of_starts(&wide, 0.0, Layer(1022)), Some(Impossible));
        assert_eq!(proved_of_starts(&wide, 0.0, Layer(1024)), None);
    }

    #[test]
    fn texts_say_what_is_proved_and_where_more_digits_are() {
        let (reach, lose) = (params("3x3", "reach:16", "0.1"), params("3x3", "lose:16", "0.1"));
        let text = |params, value, proved| value_text(params, value, 1.2e-7, proved);
        let (certain, impossible) = (Some(Certainty::Certain), Some(Certainty::Impossible));
        assert_eq!(text(&reach, 1.0, certain), "1, exactly: a win is certain");
        assert_eq!(text(&reach, 0.0, impossible), "0, exactly: a win is impossible");
        assert_eq!(text(&lose, 0.0, certain), "0, exactly: a loss is impossible");
        assert_eq!(text(&lose, 1.0, impossible), "1, exactly: a loss is certain");
        assert_eq!(
            text(&reach, 1.0 - 1e-7, None),
            "0.9999999 (error at most 1.3e-7); lose:16 has the digits below 1"
        );
        assert_eq!(text(&reach, 0.5, None), "0.5000000 (error at most 1.3e-7)");
        assert_eq!(text(&lose, 1.0, None), "1.0000000 (error at most 1.3e-7)");
    }
}
