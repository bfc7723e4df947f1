//! Proofs by search that a win is certain or impossible.
//!
//! A stored value proves neither, because it is rounded. In 32 bits, a probability of 1 − 10^-10 is stored as 1, and a
//! probability of 10^-10 as 0.

use std::collections::HashMap;

use exact2048_text::numbers::value_with_bound;

use crate::packed::PackedRules;
use crate::{Board, Discount, Game, Layer, Objective, SpawnKind, Spawner, rules};

/// Proven fact about winning from a set of states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// The player can win for every sequence of spawns.
    Certain,
    /// No sequence of moves and spawns leads to a win.
    Impossible,
}

/// Largest number of states that a proof may search. Such a search takes a few tenths of a second.
const MOST_STATES: usize = 1 << 17;

/// Largest number of moves that a proof may look ahead. The limit bounds the stack.
const MOST_MOVES: u32 = 1 << 9;

/// Searches for a proof of the fact that the value of some states suggests. `None` means that no proof was found.
///
/// Cost: up to a few tenths of a second if the value is 0 or 1, else none.
#[must_use]
pub fn proved(game: &Game, value: f64, states: impl IntoIterator<Item = Board>) -> Option<Certainty> {
    let wanted = wanted(game, value)?;
    let mut search = Search {
        rules: PackedRules::new(game.board()),
        target: game.winning_exponent()?,
        spawns: SpawnKind::ALL.into_iter().filter(|spawn| spawn.weight(game.spawn4()) > 0).collect(),
        wanted,
        known: HashMap::new(),
    };
    let is_certain = wanted == Certainty::Certain;
    states.into_iter().all(|state| search.wins(state, MOST_MOVES) == Some(is_certain)).then_some(wanted)
}

/// Does the same as [`proved`] for the mean over all starts. `last` is the highest layer that has a state.
#[must_use]
pub fn proved_of_starts(game: &Game, value: f64, last: Layer) -> Option<Certainty> {
    if wanted(game, value)? == Certainty::Impossible {
        let target = game.winning_exponent()?;
        // A move makes the tile from two halves, so the layer of the move is at least the value of the tile. If only
        // 2s spawn, a tile of 2^e needs e cells.
        let never_4 = SpawnKind::Four.weight(game.spawn4()) == 0;
        let only_2s = never_4 && game.from().is_none();
        if last.0 < 1 << target || only_2s && usize::from(target) > game.cells() {
            return Some(Certainty::Impossible);
        }
    }
    let starts = game.starts().into_iter().filter(|start| start.weight > 0);
    proved(game, value, starts.map(|start| start.board))
}

/// Returns the fact that a value suggests. Values against the worst spawns are exact, so they need no proof.
fn wanted(game: &Game, value: f64) -> Option<Certainty> {
    let winning = game.objective().winning_probability(value);
    match winning.filter(|_| game.spawner() == Spawner::Random) {
        Some(1.0) => Some(Certainty::Certain),
        Some(0.0) => Some(Certainty::Impossible),
        _ => None,
    }
}

/// Formats a value with its error bound, or with the proven fact. If 1 is within the error bound of the value, the
/// text names the objective with more digits.
#[must_use]
pub fn value_text(game: &Game, value: f64, error: f64, proved: Option<Certainty>) -> String {
    let of = if matches!(game.objective(), Objective::Lose { .. }) { "loss" } else { "win" };
    let is_win = |proved| (of == "win") == (proved == Certainty::Certain);
    match (proved, game.objective()) {
        (Some(proved), _) if is_win(proved) => format!("{}, exactly: a {of} is certain", value.round()),
        (Some(_), _) => format!("{}, exactly: a {of} is impossible", value.round()),
        (None, Objective::Reach { exponent })
            if error > 0.0 && value + error >= 1.0 && game.discount() == Discount::NONE =>
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
    /// Whether some move wins or leads to winning spawns. In a proof of certainty, all spawns must win. Otherwise one
    /// winning spawn suffices. Returns `None` if the search exceeds its limits.
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
    use crate::{Params, Spawn4};

    fn params(board: &str, objective: &str, spawn4: &str) -> Params {
        let spawn4: Spawn4 = spawn4.parse().unwrap();
        Params::usual(board, objective).spawn4(spawn4).build().unwrap()
    }

    fn at_start(board: &str, objective: &str, spawn4: &str, value: f64) -> Option<Certainty> {
        let params = params(board, objective, spawn4);
        proved_of_starts(params.game(), value, params.last_layer())
    }

    #[test]
    fn only_certain_and_impossible_wins_are_proved() {
        use Certainty::{Certain, Impossible};
        for (board, objective, spawn4, value, expected) in [
            ("2x2", "reach:8", "0.1", 1.0, Some(Certain)),
            ("3x3", "reach:16", "0.1", 1.0, Some(Certain)),
            ("3x3", "lose:16", "0.1", 0.0, Some(Certain)),
            ("4x2", "reach:512", "0", 0.0, Some(Impossible)),
            ("2x2", "lose:32", "0", 1.0, Some(Impossible)),
            // Rounding could produce these values, so they prove nothing.
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
        // No layer up to 1022 can hold two tiles that make the winning tile.
        let wide = params("3x3", "reach:1024", "0.1");
        assert_eq!(proved_of_starts(wide.game(), 0.0, Layer(1022)), Some(Impossible));
        assert_eq!(proved_of_starts(wide.game(), 0.0, Layer(1024)), None);
    }

    #[test]
    fn texts_name_the_proof_and_the_objective_with_more_digits() {
        let (reach, lose) = (params("3x3", "reach:16", "0.1"), params("3x3", "lose:16", "0.1"));
        let text = |params, value, proved| value_text(params, value, 1.2e-7, proved);
        let (certain, impossible) = (Some(Certainty::Certain), Some(Certainty::Impossible));
        assert_eq!(text(reach.game(), 1.0, certain), "1, exactly: a win is certain");
        assert_eq!(text(reach.game(), 0.0, impossible), "0, exactly: a win is impossible");
        assert_eq!(text(lose.game(), 0.0, certain), "0, exactly: a loss is impossible");
        assert_eq!(text(lose.game(), 1.0, impossible), "1, exactly: a loss is certain");
        assert_eq!(
            text(reach.game(), 1.0 - 1e-7, None),
            "0.9999999 (error at most 1.3e-7); lose:16 has the digits below 1"
        );
        assert_eq!(text(reach.game(), 0.5, None), "0.5000000 (error at most 1.3e-7)");
        assert_eq!(text(lose.game(), 1.0, None), "1.0000000 (error at most 1.3e-7)");
    }
}
