//! Slides of skeletons: the effect of a move on a line before the large exponents are known.
//!
//! Small tiles merge as usual, and a merge of two tiles of `2^(large − 1)` makes a new large tile (a birth). Two L that
//! meet merge or stay apart, depending on the sequence. So a line has one outcome for each consistent choice of which
//! meeting pairs are equal.

use std::sync::OnceLock;

use crate::bitset::BitSet;
use crate::board::BoardSize;
use crate::rules::Move;
use crate::stones::Stone;

/// Source of the exponent of a large tile. The large tiles of a skeleton are numbered by cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TileSource {
    /// L with this number, unchanged.
    Plain(u8),
    /// L with this number, merged with an equal L: its exponent plus 1.
    Merged(u8),
    /// Two small tiles that merged: the smallest large exponent.
    Born,
}

/// Content of a place of a line after a slide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No tile, or a small tile.
    Small,
    /// Unchanged large tile.
    Plain,
    /// Large tile made of two large tiles.
    Merged,
    /// Large tile made of two small tiles.
    Born,
}

/// Kind of each place of some lines, 2 bits per place, with the first place in the lowest bits.
///
/// The kinds and the mask before the move determine the source of every large tile, and the pairs that had to be equal
/// or different. Adjacent large tiles that did not merge must have met, because a small tile would have stayed between
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Kinds(pub u32);

impl Kinds {
    /// Kind of a place.
    pub fn at(self, place: usize) -> Kind {
        [Kind::Small, Kind::Plain, Kind::Merged, Kind::Born][(self.0 >> (2 * place) & 3) as usize]
    }

    /// Returns the kinds of all lines except the first line, which has `places` places.
    pub fn after(self, places: usize) -> Kinds {
        Kinds(self.0.checked_shr(2 * places as u32).unwrap_or(0))
    }
}

/// Outcome of sliding a line towards the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SlideOutcome {
    /// Small tiles after the slide: one exponent per nibble, with the place at the wall in the lowest nibble.
    pub digits: u32,
    /// Kind of each place.
    pub kinds: Kinds,
    /// Number of merges of two L.
    pub merges: u8,
    /// Number of new L.
    pub births: u8,
    /// Whether any tile moved or merged.
    pub changed: bool,
}

impl SlideOutcome {
    /// Adds one more tile: a small exponent, or 0 with the kind of a large tile.
    fn with(mut self, place: usize, digit: u8, kind: Kind) -> Self {
        self.digits |= u32::from(digit) << (4 * place);
        self.kinds.0 |= (kind as u32) << (2 * place);
        self
    }
}

/// Largest total number of lines of the four moves (20, on a board of 8×2), rounded up to whole vectors.
const MOST_LINES: usize = 24;

/// Codes of the lines of all moves.
///
/// The token of a cell is 0 if it is empty, a small exponent, `large` for an L, or `large + 1` for a stone. The code of
/// a line is the number whose digits are its tokens, from the wall outward. The base is the number of tokens of the
/// board. The codes of a board are the sums of the codes of its tiles and stones.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LineCodes([u32; MOST_LINES]);

impl LineCodes {
    #[inline]
    fn add(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(code, other)| *code += other);
    }
}

/// Lines of the four moves, with the outcomes of every line. Outcomes are computed on first use.
#[derive(Debug)]
pub struct Lines {
    large: u8,
    /// Kind of the stones of the board.
    stone: Option<Stone>,
    /// Codes of the stones, without tiles.
    pub(crate) stones: LineCodes,
    /// Lines of cells of each move, from the wall outward.
    pub(crate) moves: [Vec<Vec<u8>>; 4],
    /// Number of the first line of each move among all lines.
    first: [usize; 4],
    /// Codes of a board with a single tile, by cell and token.
    codes: Vec<Vec<LineCodes>>,
    /// Outcomes by line length and code.
    outcomes: Vec<Vec<OnceLock<Box<[SlideOutcome]>>>>,
    /// Sets of cells, as bits, that tiles can occupy after a move.
    settled: BitSet<u32>,
}

impl Lines {
    /// Builds the lines of a board whose large tiles start at exponent `large`.
    pub fn new(board: BoardSize, large: u8) -> Self {
        let longest = board.rows().max(board.cols());
        let base = base(large, board.stone());
        let used = |length: usize| length == board.rows() || length == board.cols();
        let table = |length: usize| {
            let size = if used(length) { (base as usize).pow(length as u32) } else { 0 };
            (0..size).map(|_| OnceLock::new()).collect()
        };
        let moves = Move::ALL.map(|m| m.lines(board));
        let settled = settled_sets(board, &moves);
        let mut lines_before = 0;
        let first = moves.each_ref().map(|lines| {
            lines_before += lines.len();
            lines_before - lines.len()
        });
        let of_one_tile = |cell: u8, token: u8| {
            let mut codes = LineCodes::default();
            for (code, line) in codes.0.iter_mut().zip(moves.iter().flatten()) {
                let place = line.iter().rev().position(|&c| c == cell);
                *code = place.map_or(0, |place| u32::from(token) * base.pow(place as u32));
            }
            codes
        };
        let of_cell = |cell: u8| (0..=large).map(|token| of_one_tile(cell, token)).collect();
        let mut stones = LineCodes::default();
        (0..board.places())
            .filter(|&place| board.is_stone(place))
            .for_each(|place| stones.add(&of_one_tile(place as u8, stone_token(large))));
        let codes = (0..board.places() as u8).map(of_cell).collect();
        let outcomes = (0..=longest).map(table).collect();
        Self { large, stone: board.stone(), stones, first, codes, outcomes, settled, moves }
    }

    /// Whether tiles can occupy exactly these cells, given as bits, after a move. Boards with other occupied cells are
    /// not afterstates.
    #[inline]
    pub fn can_follow_move(&self, occupied: u32) -> bool {
        self.settled.contains(occupied)
    }

    /// Adds a token in an empty cell.
    #[inline]
    pub(crate) fn put(&self, codes: &mut LineCodes, cell: u8, token: u8) {
        codes.add(&self.codes[cell as usize][token as usize]);
    }

    /// Returns all outcomes of a line of a move, one for each consistent choice of which meeting L are equal.
    #[inline]
    pub(crate) fn outcomes(&self, direction: usize, line: usize, codes: &LineCodes) -> &[SlideOutcome] {
        let code = codes.0[self.first[direction] + line];
        let length = self.moves[direction][line].len();
        self.outcomes[length][code as usize].get_or_init(|| self.slide(length, code))
    }

    #[cold]
    fn slide(&self, length: usize, mut code: u32) -> Box<[SlideOutcome]> {
        let base = base(self.large, self.stone);
        let mut tokens = vec![0; length];
        for token in tokens.iter_mut().rev() {
            *token = (code % base) as u8;
            code /= base;
        }
        slide(&tokens, self.large, self.stone)
    }
}

/// Token of a stone.
fn stone_token(large: u8) -> u8 {
    large + 1
}

/// Number of tokens that a cell can have.
fn base(large: u8, stone: Option<Stone>) -> u32 {
    u32::from(large) + 1 + u32::from(stone.is_some())
}

/// Returns the sets of cells that are settled ([`are_settled`]) for at least one move.
fn settled_sets(board: BoardSize, moves: &[Vec<Vec<u8>>; 4]) -> BitSet<u32> {
    let (places, stones) = (board.places(), u32::from(board.stones()));
    let mut settled = BitSet::with_room(1 << places);
    for occupied in (0u32..1 << places).filter(|occupied| occupied & stones == 0) {
        if moves.iter().any(|lines| are_settled(lines, occupied, board)) {
            settled.insert(occupied);
        }
    }
    settled
}

/// Whether no line has a gap between a wall and a tile, or between the edge of the board and a lock.
fn are_settled(lines: &[Vec<u8>], occupied: u32, board: BoardSize) -> bool {
    let has_walls = board.stone() == Some(Stone::Wall);
    let is_stone = |&cell: &u8| board.is_stone(usize::from(cell));
    let is_empty = |cell: &u8| occupied >> cell & 1 == 0 && !is_stone(cell);
    let mut segments = lines.iter().flat_map(|line| line.split(|cell| has_walls && is_stone(cell)));
    segments.all(|segment| segment.is_sorted_by_key(is_empty))
}

/// Returns all outcomes of one line. A line has no outcome if each would slide a lock.
fn slide(line: &[u8], large: u8, stone: Option<Stone>) -> Box<[SlideOutcome]> {
    let tiles: Vec<(usize, u8)> = line.iter().copied().enumerate().filter(|&(_, token)| token != 0).collect();
    let mut found = Vec::new();
    let rules = SlideRules { large, stone };
    rules.branch(&tiles, 0, SlideOutcome::default(), &mut found);
    found.into()
}

/// Rules of slides that do not depend on the line.
#[derive(Clone, Copy)]
struct SlideRules {
    large: u8,
    stone: Option<Stone>,
}

impl SlideRules {
    /// Extends an outcome by the tiles that have not slid yet, each with its place before the slide. The first of them
    /// slides to `place`. Collects all results.
    fn branch(
        self,
        tiles: &[(usize, u8)],
        place: usize,
        mut outcome: SlideOutcome,
        found: &mut Vec<SlideOutcome>,
    ) {
        let Some((&(from, tile), rest)) = tiles.split_first() else {
            found.push(outcome);
            return;
        };
        if tile == stone_token(self.large) {
            // A gap or a merge before a lock would slide the lock.
            if self.stone != Some(Stone::Locked) || place == from {
                self.branch(rest, from + 1, outcome, found);
            }
            return;
        }
        outcome.changed |= from != place;
        let meets_equal = rest.first().is_some_and(|&(_, next)| next == tile);
        if tile == self.large {
            if meets_equal {
                let mut merged = outcome.with(place, 0, Kind::Merged);
                (merged.merges, merged.changed) = (merged.merges + 1, true);
                self.branch(&rest[1..], place + 1, merged, found);
            }
            self.branch(rest, place + 1, outcome.with(place, 0, Kind::Plain), found);
        } else if meets_equal {
            let mut merged = if tile + 1 == self.large {
                let born = outcome.with(place, 0, Kind::Born);
                SlideOutcome { births: born.births + 1, ..born }
            } else {
                outcome.with(place, tile + 1, Kind::Small)
            };
            merged.changed = true;
            self.branch(&rest[1..], place + 1, merged, found);
        } else {
            self.branch(rest, place + 1, outcome.with(place, tile, Kind::Small), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_at_a_wall_after_moves() {
        let lines = Lines::new("2x3".parse().unwrap(), 3);
        let follows = |cells: &[u32]| lines.can_follow_move(cells.iter().map(|cell| 1 << cell).sum());
        assert!(follows(&[0, 1, 2]) && follows(&[0, 3]) && follows(&[4]));
        assert!(!follows(&[1, 3]) && !follows(&[0, 4]));
    }

    #[test]
    fn tiles_are_at_a_stone_after_moves() {
        let follows = |picture: &str, cells: &[u32]| {
            let lines = Lines::new(format!("2x3:{picture}").parse().unwrap(), 3);
            lines.can_follow_move(cells.iter().map(|cell| 1 << cell).sum())
        };
        assert!(follows("#../...", &[1, 3]) && follows("x../...", &[1, 3]));
        assert!(follows(".#./...", &[2, 3]), "up or left");
        assert!(!follows("..x/..x", &[1, 3]), "each direction has a gap");
        assert!(follows("..x/..x", &[1, 4]) && follows("..x/..x", &[0, 1, 3, 4]));
    }

    fn slide(line: &[u8], large: u8) -> Box<[SlideOutcome]> {
        super::slide(line, large, None)
    }

    #[test]
    fn large_tiles_before_a_lock_stay_apart() {
        let locked = |line: &[u8]| super::slide(line, 3, Some(Stone::Locked));
        let outcomes = locked(&[3, 3, 4, 3]);
        assert_eq!(outcomes.len(), 1);
        assert_eq!(kinds(&outcomes[0], 4), [Kind::Plain, Kind::Plain, Kind::Small, Kind::Plain]);
        assert!(!outcomes[0].changed);
        assert!(locked(&[0, 4, 4, 4]).is_empty() && locked(&[1, 1, 4, 0]).is_empty());
        assert!(locked(&[4, 0, 2, 0])[0].changed);
        let outcomes = super::slide(&[3, 4, 3, 3], 3, Some(Stone::Wall));
        assert_eq!((outcomes.len(), outcomes[0].merges), (2, 1), "tiles on two sides of a wall never meet");
    }

    fn kinds(outcome: &SlideOutcome, places: usize) -> Vec<Kind> {
        (0..places).map(|place| outcome.kinds.at(place)).collect()
    }

    #[test]
    fn three_large_in_a_line_have_three_outcomes() {
        use Kind::{Merged, Plain, Small};
        let outcomes = slide(&[0, 3, 3, 3], 3);
        let kinds: Vec<_> = outcomes.iter().map(|o| kinds(o, 4)).collect();
        assert_eq!(
            kinds,
            [[Merged, Plain, Small, Small], [Plain, Merged, Small, Small], [Plain, Plain, Plain, Small]]
        );
        assert!(outcomes.iter().all(|o| o.changed));
        assert!(!slide(&[3, 3, 0], 3)[1].changed, "different tiles at the wall do not move");
    }

    #[test]
    fn small_tiles_merge_move_or_stay() {
        let born = &slide(&[2, 2, 3, 0], 3)[0];
        assert_eq!(kinds(born, 4), [Kind::Born, Kind::Plain, Kind::Small, Kind::Small]);
        assert_eq!(
            (born.digits, born.births, born.merges),
            (0, 1, 0),
            "a tile born in a move does not merge in it"
        );
        let small = &slide(&[0, 1, 1, 2], 3)[0];
        assert_eq!((small.digits, small.changed), (0x22, true));
        assert!(!slide(&[1, 2, 3, 0], 3)[0].changed);
    }
}
