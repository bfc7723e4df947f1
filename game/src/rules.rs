//! Rules for one board at a time: moves, spawns, starts and the potential Φ.
//!
//! Queries, players and tests use this plain code. The solver uses only the starts, the directions and Φ of this
//! module. Its kernels compute moves and spawns for whole rows (see [`crate::transitions`]).

use crate::board::{Board, BoardSize, MAX_EXPONENT, exponent_potential, tile};
use crate::{Spawn4, SpawnKind, Stone};

/// Moves, in the order of reports. Ties between moves are broken in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Tiles slide towards the first column.
    Left,
    /// Tiles slide towards the last column.
    Right,
    /// Tiles slide towards the first row.
    Up,
    /// Tiles slide towards the last row.
    Down,
}

impl Move {
    /// All moves, in order.
    pub const ALL: [Move; 4] = [Move::Left, Move::Right, Move::Up, Move::Down];

    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Move::Left => "left",
            Move::Right => "right",
            Move::Up => "up",
            Move::Down => "down",
        }
    }

    /// Lines of cells that slide, each from the wall outward.
    pub fn lines(self, size: BoardSize) -> Vec<Vec<u8>> {
        let (rows, cols) = (size.rows(), size.cols());
        let cell = |r: usize, c: usize| (r * cols + c) as u8;
        match self {
            Move::Left => (0..rows).map(|r| (0..cols).map(|c| cell(r, c)).collect()).collect(),
            Move::Right => (0..rows).map(|r| (0..cols).rev().map(|c| cell(r, c)).collect()).collect(),
            Move::Up => (0..cols).map(|c| (0..rows).map(|r| cell(r, c)).collect()).collect(),
            Move::Down => (0..cols).map(|c| (0..rows).rev().map(|r| cell(r, c)).collect()).collect(),
        }
    }
}

/// Makes a move. Returns the afterstate and the score of the move, or `None` if the move is illegal.
///
/// A move that would change nothing or slide a lock is illegal. Two 32,768s do not merge, because a packed board cannot
/// hold a 65,536. So loose stones, which have the same exponent, do not merge either.
pub fn make_move(board: Board, direction: Move, size: BoardSize) -> Option<(Board, u32)> {
    let (mut after, mut score) = (Board::default(), 0);
    for line in direction.lines(size) {
        // `resting` is the exponent of the last tile if it may still merge; `taken` is the number of filled cells.
        let (mut resting, mut taken) = (0, 0);
        for (place, &cell) in line.iter().enumerate() {
            let exponent = board.get(cell as usize);
            if size.is_stone(cell as usize) {
                // A gap or a merge before a lock would slide the lock.
                if size.stone() == Some(Stone::Locked) && taken != place {
                    return None;
                }
                (resting, taken) = (0, place + 1);
            } else if exponent != 0 && exponent == resting && exponent < MAX_EXPONENT {
                after = after.with(line[taken - 1] as usize, exponent + 1);
                score += tile(exponent + 1);
                resting = 0;
            } else if exponent != 0 {
                after = after.with(line[taken] as usize, exponent);
                resting = exponent;
                taken += 1;
            }
        }
    }
    (after != board).then_some((after, score))
}

/// Iterates over the empty cells of a board.
pub fn empty_cells(board: Board, size: BoardSize) -> impl Iterator<Item = usize> {
    size.playable().filter(move |&cell| board.get(cell) == 0)
}

/// Potential Φ of a board: the score of building every tile from 2s. A move raises Φ by exactly its score.
#[inline]
pub fn potential(board: Board) -> u64 {
    board.0.to_ne_bytes().iter().map(|&tiles| u64::from(TWO_TILES[usize::from(tiles)])).sum()
}

/// Φ of two tiles, by their exponents in four bits each.
static TWO_TILES: [u32; 256] = {
    let (mut of_two, mut tiles) = ([0; 256], 0);
    while tiles < 256 {
        of_two[tiles] = (exponent_potential(tiles as u8 & 15) + exponent_potential(tiles as u8 >> 4)) as u32;
        tiles += 1;
    }
    of_two
};

/// Iterates over all starts: two spawned tiles in two different cells, for each placement of the loose stones. Each
/// ordered pair of cells occurs with each ordered pair of tiles, so every board occurs twice.
pub fn starts(size: BoardSize) -> impl Iterator<Item = (Board, [SpawnKind; 2])> {
    let pairs = || SpawnKind::ALL.into_iter().flat_map(|first| SpawnKind::ALL.map(|second| [first, second]));
    loose_placements(size).flat_map(move |stones| {
        let two = empty_cells(stones, size)
            .flat_map(move |one| empty_cells(stones, size).map(move |other| (one, other)));
        two.filter(|(one, other)| one != other).flat_map(move |(one, other)| {
            pairs().map(move |pair| {
                let [first, second] = pair.map(SpawnKind::exponent);
                (stones.with(one, first).with(other, second), pair)
            })
        })
    })
}

/// Iterates over all boards that have the loose stones and no tile.
fn loose_placements(size: BoardSize) -> impl Iterator<Item = Board> {
    let with = move |cells: u32| {
        let taken = (0..size.places()).filter(move |place| cells >> place & 1 == 1);
        taken.fold(Board::default(), |board, place| board.with(place, MAX_EXPONENT))
    };
    let sets = (0..1u32 << size.places()).filter(move |cells| cells.count_ones() == u32::from(size.loose()));
    sets.filter(move |&cells| cells & u32::from(size.stones()) == 0).map(with)
}

/// Iterates over all starts in the order of [`starts`], each with its probability.
pub fn start_probabilities(size: BoardSize, spawn4: Spawn4) -> impl Iterator<Item = (Board, f64)> {
    let placements = loose_placements(size).count();
    let (cells, all) = (size.tile_cells(), f64::from(spawn4.denominator()));
    let weight = move |spawn: SpawnKind| f64::from(spawn.weight(spawn4));
    starts(size).map(move |(board, [first, second])| {
        (board, weight(first) * weight(second) / (all * all * (placements * cells * (cells - 1)) as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_starts_add_up_to_one() {
        for (size, spawn4) in [
            ("2x2", "0.1"),
            ("2x2:.#/..", "0.1"),
            ("4x3", "1/3"),
            ("1x4", "0"),
            ("3x3", "1"),
            ("3x2+2x", "0.1"),
        ] {
            let chances = start_probabilities(size.parse().unwrap(), spawn4.parse().unwrap());
            let sum: f64 = chances.map(|(_, chance)| chance).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{size} {spawn4}: {sum}");
        }
    }

    #[test]
    fn moves_merge_once_from_the_wall() {
        let size = BoardSize::new(1, 4).unwrap();
        let board = Board::parse("2 2 2 2", size).unwrap();
        let (after, score) = make_move(board, Move::Left, size).unwrap();
        assert_eq!((after.to_text(size).as_str(), score), ("4 4 0 0", 8));
        let board = Board::parse("0 2 2 2", size).unwrap();
        let (after, _) = make_move(board, Move::Right, size).unwrap();
        assert_eq!(after.to_text(size), "0 0 2 4");
        assert!(make_move(board, Move::Up, size).is_none());
        assert!(make_move(Board::parse("2 4 8 2", size).unwrap(), Move::Left, size).is_none());
    }

    #[test]
    fn locks_forbid_moves_and_walls_stop_tiles() {
        for (picture, board, way, after) in [
            ("..xx", "2 0 x x", Move::Right, Some("0 2 x x")),
            ("..xxx", "0 2 x x x", Move::Left, None),
            ("..###", "0 2 # # #", Move::Left, Some("2 0 # # #")),
            ("x...", "x 0 2 0", Move::Right, None),
            ("#...", "# 0 2 0", Move::Right, Some("# 0 0 2")),
            ("x...", "x 0 2 2", Move::Left, Some("x 4 0 0")),
            ("..x.", "2 2 x 0", Move::Left, None),
            ("..x.", "2 4 x 0", Move::Left, None),
            ("..x.", "2 4 x 4", Move::Right, None),
            ("..x.", "2 2 x 4", Move::Right, Some("0 4 x 4")),
            (".x..", "2 x 0 2", Move::Left, Some("2 x 2 0")),
            (".#..", "2 # 2 0", Move::Right, Some("2 # 0 2")),
            ("..#.", "2 2 # 2", Move::Left, Some("4 0 # 2")),
        ] {
            let size: BoardSize = format!("1x{}:{picture}", picture.len()).parse().unwrap();
            let board = Board::parse(board, size).unwrap();
            let made = make_move(board, way, size).map(|(after, _)| after.to_text(size));
            assert_eq!(made.as_deref(), after, "{} {}", board.to_text(size), way.name());
        }
    }

    #[test]
    fn a_barred_line_forbids_the_whole_move() {
        let size: BoardSize = "2x3:.../.xx".parse().unwrap();
        let make = |text: &str, way| make_move(Board::parse(text, size).unwrap(), way, size);
        assert!(make("0 0 2 / 0 x x", Move::Left).is_none());
        assert!(make("0 0 2 / 4 x x", Move::Left).is_some());
        assert!(make("2 4 8 / 0 x x", Move::Down).is_some());
        assert!(make("2 0 8 / 0 x x", Move::Up).is_none(), "a lock below an empty cell would slide");
    }

    #[test]
    fn the_potential_is_the_sum_over_all_tiles() {
        let board = (0..16).fold(Board::default(), |board, cell| board.with(cell, cell as u8));
        assert_eq!(potential(board), (0..16).map(exponent_potential).sum::<u64>());
    }

    #[test]
    fn a_move_raises_the_potential_by_its_score() {
        let size = BoardSize::new(3, 3).unwrap();
        let board = Board::parse("2 2 4 / 8 8 16 / 4 4 4", size).unwrap();
        for direction in Move::ALL {
            let moved = make_move(board, direction, size);
            assert_eq!(moved.is_some(), matches!(direction, Move::Left | Move::Right));
            if let Some((after, score)) = moved {
                assert_eq!(potential(after), potential(board) + u64::from(score));
            }
        }
    }
}
