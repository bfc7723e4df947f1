//! Slides of skeletons: what a move does to a line before the large exponents are known.
//!
//! Small tiles merge as usual and two tiles of `2^(large − 1)` give birth to a large one. Two L that
//! meet merge or stay apart depending on the sequence, so a line has one outcome for each way of
//! taking its meeting pairs as equal or not.

use std::sync::OnceLock;

use crate::board::BoardSize;
use crate::rowset::{is_set, set};
use crate::rules::Move;

/// Where the exponent of a large tile comes from. L tiles are numbered by the order in which they
/// stand: in a line from the wall outward, in a [`crate::maps::Pattern`] by cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The exponent of that L, unchanged.
    Plain(u8),
    /// That L merged with an equal one: its exponent plus 1.
    Merged(u8),
    /// Born from two small tiles: the smallest large exponent.
    Born,
}

/// One outcome of sliding a line towards the wall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Tokens of the line afterwards: 0 empty, a small exponent, or `large` for an L.
    pub tokens: Vec<u8>,
    /// Source of each L of the line afterwards, from the wall outward.
    pub sources: Vec<Source>,
    /// Pairs of L, first by number and its next, that must be equal (`true`) or different.
    pub conditions: Vec<(u8, bool)>,
    /// Merges of two L.
    pub merges: u8,
    /// New L.
    pub births: u8,
    /// Whether anything moved or merged.
    pub changed: bool,
}

/// The lines of the four moves, and the outcomes of every line, made when first asked for.
#[derive(Debug)]
pub struct Lines {
    large: u8,
    /// For each move: its lines of cells, from the wall outward.
    pub(crate) moves: [Vec<Vec<u8>>; 4],
    /// By line length, then by the line's tokens read as a number with base `large + 1`.
    outcomes: Vec<Vec<OnceLock<Box<[Outcome]>>>>,
    /// One bit for each set of cells: whether tiles there stand at a wall as they do after a move.
    settled: Vec<u64>,
}

impl Lines {
    /// The lines of a board whose large tiles start at exponent `large`.
    pub fn new(board: BoardSize, large: u8) -> Self {
        let longest = board.rows().max(board.cols());
        let used = |length: usize| length == board.rows() || length == board.cols();
        let table = |length: usize| {
            let size = if used(length) { (large as usize + 1).pow(length as u32) } else { 0 };
            (0..size).map(|_| OnceLock::new()).collect()
        };
        let moves = Move::ALL.map(|m| m.lines(board));
        let settled = settled_sets(board.cells(), &moves);
        Self { large, moves, outcomes: (0..=longest).map(table).collect(), settled }
    }

    /// Whether a move may have left tiles on just these cells, given as bits. Other boards are no afterstates.
    #[inline]
    pub fn may_follow_a_move(&self, occupied: u32) -> bool {
        is_set(&self.settled, occupied)
    }

    /// Whether a move may have led here that merged large tiles or gave birth to one, with tiles on the `occupied` cells
    /// and large ones on the `large` cells: some line at the wall then has a large tile, and a gap behind its last tile.
    pub fn may_follow_a_step(&self, occupied: u32, large: u32) -> bool {
        let count = |line: &Vec<u8>, cells: u32| line.iter().filter(|&&cell| cells >> cell & 1 == 1).count();
        let merged = |line: &Vec<u8>| count(line, large) > 0 && count(line, occupied) < line.len();
        self.moves.iter().any(|lines| are_settled(lines, occupied) && lines.iter().any(merged))
    }

    /// All outcomes of a line of tokens, in the order of [`Outcome::tokens`].
    #[inline]
    pub fn outcomes(&self, tokens: impl ExactSizeIterator<Item = u8> + Clone) -> &[Outcome] {
        let code = tokens.clone().fold(0, |code, t| code * (self.large as usize + 1) + t as usize);
        self.outcomes[tokens.len()][code].get_or_init(|| slide(&tokens.collect::<Vec<_>>(), self.large))
    }
}

/// The sets of cells without a gap before any tile in any line of some move.
fn settled_sets(cells: usize, moves: &[Vec<Vec<u8>>; 4]) -> Vec<u64> {
    let mut settled = vec![0u64; (1usize << cells).div_ceil(64)];
    for occupied in 0u32..1 << cells {
        if moves.iter().any(|lines| are_settled(lines, occupied)) {
            set(&mut settled, occupied);
        }
    }
    settled
}

/// Whether no line has a gap between the wall and any of its tiles.
fn are_settled(lines: &[Vec<u8>], occupied: u32) -> bool {
    lines.iter().all(|line| line.is_sorted_by_key(|&cell| occupied >> cell & 1 == 0))
}

/// All outcomes of one line.
fn slide(line: &[u8], large: u8) -> Box<[Outcome]> {
    let tiles: Vec<u8> = line.iter().copied().filter(|&t| t != 0).collect();
    let start = Outcome {
        tokens: Vec::new(),
        sources: Vec::new(),
        conditions: Vec::new(),
        merges: 0,
        births: 0,
        changed: false,
    };
    let mut found = Vec::new();
    branch(&tiles, 0, large, start, &mut found);
    for outcome in &mut found {
        outcome.tokens.resize(line.len(), 0);
        outcome.changed = outcome.merges > 0 || outcome.tokens != line;
    }
    found.into()
}

/// Continues an outcome with the tiles that have not slid yet; `next_large` is the number of their
/// first L.
fn branch(tiles: &[u8], next_large: u8, large: u8, mut outcome: Outcome, found: &mut Vec<Outcome>) {
    let Some((&tile, rest)) = tiles.split_first() else {
        found.push(outcome);
        return;
    };
    let meets_equal = rest.first() == Some(&tile);
    if tile == large {
        if meets_equal {
            let mut merged = outcome.clone();
            merged.tokens.push(large);
            merged.sources.push(Source::Merged(next_large));
            merged.conditions.push((next_large, true));
            merged.merges += 1;
            branch(&rest[1..], next_large + 2, large, merged, found);
            outcome.conditions.push((next_large, false));
        }
        outcome.tokens.push(large);
        outcome.sources.push(Source::Plain(next_large));
        branch(rest, next_large + 1, large, outcome, found);
    } else if meets_equal {
        outcome.tokens.push(tile + 1);
        if tile + 1 == large {
            outcome.sources.push(Source::Born);
            outcome.births += 1;
        }
        branch(&rest[1..], next_large, large, outcome, found);
    } else {
        outcome.tokens.push(tile);
        branch(rest, next_large, large, outcome, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_after_moves_stand_at_a_wall() {
        let lines = Lines::new("2x3".parse().unwrap(), 3);
        let follows = |cells: &[u32]| lines.may_follow_a_move(cells.iter().map(|cell| 1 << cell).sum());
        assert!(follows(&[0, 1, 2]) && follows(&[0, 3]) && follows(&[4]));
        assert!(!follows(&[1, 3]) && !follows(&[0, 4]));
        let steps = |cells: &[u32], large: u32| {
            lines.may_follow_a_step(cells.iter().map(|cell| 1 << cell).sum(), 1 << large)
        };
        assert!(steps(&[0, 1, 2], 2) && steps(&[0, 1], 0), "up the column, and along the row");
        assert!(!steps(&[0, 1, 2, 3, 4], 0), "its row and its column are full");
        assert!(!steps(&[1, 3], 1), "no afterstate at all");
    }

    #[test]
    fn three_large_in_a_line_have_three_outcomes() {
        let outcomes = slide(&[0, 3, 3, 3], 3);
        let conditions: Vec<_> = outcomes.iter().map(|o| o.conditions.clone()).collect();
        assert_eq!(conditions, [vec![(0, true)], vec![(0, false), (1, true)], vec![(0, false), (1, false)]]);
        assert_eq!(outcomes[0].sources, [Source::Merged(0), Source::Plain(2)]);
        assert!(outcomes.iter().all(|o| o.changed));
    }

    #[test]
    fn births_and_standing_lines() {
        let born = &slide(&[2, 2, 3, 0], 3)[0];
        assert_eq!((born.tokens.as_slice(), born.births), ([3, 3, 0, 0].as_slice(), 1));
        assert_eq!(born.sources, [Source::Born, Source::Plain(0)]);
        assert!(born.conditions.is_empty(), "a tile born in a move does not merge in it");
        assert!(!slide(&[1, 2, 3, 0], 3)[0].changed);
    }
}
