//! The game once more, one board at a time, and the arithmetic of values in integers.

use exact2048_game::board::Board;
use exact2048_game::rules::Move;
use exact2048_game::symmetry::Symmetries;
use exact2048_game::{Objective, Params, Precision};

/// What the spawns of an afterstate are worth: the value of each state that a 2 and a 4 lead to.
pub struct Spawns {
    /// Number of empty cells.
    pub empty: u32,
    /// Sum of the values after a 2.
    pub twos: u128,
    /// Sum of the values after a 4.
    pub fours: u128,
}

/// The rules of a run's game.
pub struct Rules {
    params: Params,
    /// For each move, the lines that slide as bit positions of their cells, from the wall outward.
    lines: Vec<Vec<Vec<u32>>>,
    /// For each symmetry and pair of cells, where each content of the two cells goes.
    images: Vec<Vec<Vec<u64>>>,
    fraction_bits: u32,
}

impl Rules {
    /// The rules of a run.
    pub fn new(params: &Params) -> Self {
        let lines = Move::ALL.map(|direction| {
            let positions = |line: Vec<u8>| line.into_iter().map(|cell| 4 * u32::from(cell)).collect();
            direction.lines(params.board).into_iter().map(positions).collect()
        });
        let symmetries = Symmetries::new(params.board);
        let cells = params.cells();
        // A board is the sum of what its pairs of cells hold, and so is each of its images.
        let image_of = |symmetry: usize, pair: usize, content: u64| -> u64 {
            let within = if 2 * pair + 1 < cells { content } else { content & 15 };
            symmetries.images(Board(within << (8 * pair))).nth(symmetry).unwrap_or_default().0
        };
        let pairs = |symmetry: usize| {
            let table = |pair: usize| (0..256).map(|content| image_of(symmetry, pair, content)).collect();
            (0..cells.div_ceil(2)).map(table).collect()
        };
        Self {
            params: params.clone(),
            lines: lines.to_vec(),
            images: (0..symmetries.permutations().len()).map(pairs).collect(),
            fraction_bits: params.scale().fraction_bits(),
        }
    }

    /// The smallest image of a board as a packed number.
    pub fn canonical(&self, board: u64) -> u64 {
        let image = |pairs: &Vec<Vec<u64>>| {
            pairs.iter().enumerate().map(|(i, table)| table[(board >> (8 * i)) as usize & 255]).sum::<u64>()
        };
        self.images.iter().map(image).min().unwrap_or(board)
    }

    /// The boards after each legal move.
    pub fn afterstates(&self, board: u64) -> impl Iterator<Item = u64> + '_ {
        self.lines.iter().map(move |lines| slide(board, lines)).filter(move |&after| after != board)
    }

    /// Whether a board holds the wanted tile.
    pub fn is_won(&self, board: u64) -> bool {
        let cells = self.params.cells();
        self.params.winning_exponent().is_some_and(|e| (0..cells).any(|c| exponent(board, c) >= u64::from(e)))
    }

    /// The boards that a 2 and a 4 in each empty cell make, as pairs.
    pub fn spawns(&self, after: u64) -> impl Iterator<Item = (u64, u64)> {
        let empty = move |&cell: &usize| exponent(after, cell) == 0;
        (0..self.params.cells()).filter(empty).map(move |c| (after | 1 << (4 * c), after | 2 << (4 * c)))
    }

    /// The canonical starts: two tiles, each a 2 or a 4, on an empty board.
    pub fn starts(&self) -> Vec<u64> {
        let empty = [1u64, 2].map(|e| (0..self.params.cells()).map(move |cell| e << (4 * cell)));
        let one_tile = empty.into_iter().flatten();
        let two_tiles = one_tile.flat_map(|board| self.spawns(board).flat_map(|(two, four)| [two, four]));
        let mut starts: Vec<u64> = two_tiles.map(|board| self.canonical(board)).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// The value of a won board.
    pub fn won(&self) -> u64 {
        1 << self.fraction_bits
    }

    /// The value of a board without a legal move: all that is left is the score already made.
    pub fn dead(&self, board: u64) -> u64 {
        match self.params.objective {
            Objective::Score => {
                let score = |e: u64| if e == 0 { 0 } else { (e - 1) << e };
                (0..self.params.cells()).map(|cell| score(exponent(board, cell))).sum::<u64>()
                    << self.fraction_bits
            }
            Objective::Reach { .. } => 0,
        }
    }

    /// The value of an afterstate: the mean over its spawns, rounded to nearest.
    ///
    /// A spawned 4 adds 4 to what building the board from 2s would have scored, and the player did not
    /// score it: so it counts 4 less.
    pub fn mean(&self, spawns: &Spawns) -> u64 {
        let spawn4 = self.params.spawn4;
        let gift = match self.params.objective {
            Objective::Score => u128::from(spawns.empty) << (self.fraction_bits + 2),
            Objective::Reach { .. } => 0,
        };
        let (weight2, weight4) = (u128::from(spawn4.weight2()), u128::from(spawn4.weight4()));
        let sum = weight2 * spawns.twos + weight4 * spawns.fours.saturating_sub(gift);
        let count = u128::from(spawn4.denominator()) * u128::from(spawns.empty);
        divide(sum, count, self.params.precision)
    }
}

/// `sum / count` to the nearest integer. Of two that are equally near, 64-bit values take the larger
/// one; 32-bit values take the one that IEEE arithmetic gives, where dividing is multiplying by the
/// reciprocal and a tie goes to the even one. That product is off by less than 2^-20, so that it
/// matters only within 2^-16 of a tie.
fn divide(sum: u128, count: u128, precision: Precision) -> u64 {
    let (whole, rest) = (sum / count, sum % count);
    let (twice, near) = (2 * rest, count >> 16);
    let nearest = whole + u128::from(twice >= count);
    let rounded = match precision {
        Precision::Bits32 if twice.abs_diff(count) <= near => {
            (sum as f64 * (1.0 / count as f64)).round_ties_even() as u128
        }
        _ => nearest,
    };
    rounded as u64
}

fn exponent(board: u64, cell: usize) -> u64 {
    board >> (4 * cell) & 15
}

/// Slides every line towards its first cell. Each tile merges once, those nearest the wall first.
fn slide(board: u64, lines: &[Vec<u32>]) -> u64 {
    let mut after = 0;
    for line in lines {
        let (mut places, mut waiting) = (line.iter(), 0);
        let mut put = |exponent: u64| {
            if let Some(place) = places.next() {
                after |= exponent << place;
            }
        };
        for &place in line {
            let exponent = board >> place & 15;
            if exponent == 0 {
                continue;
            }
            if exponent == waiting {
                put(exponent + 1);
                waiting = 0;
            } else {
                if waiting != 0 {
                    put(waiting);
                }
                waiting = exponent;
            }
        }
        if waiting != 0 {
            put(waiting);
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Spawn4, rules};

    fn params(board: &str) -> Params {
        let board = board.parse().unwrap();
        Params::new(board, Objective::Reach { exponent: 9 }, Spawn4::default(), Precision::Bits32, None)
            .unwrap()
    }

    #[test]
    fn agrees_with_the_rules_that_queries_use() {
        for board in ["3x3", "2x4", "1x8", "5x2"] {
            let params = params(board);
            let (own, symmetries) = (Rules::new(&params), Symmetries::new(params.board));
            let mut seed = 7u64;
            for _ in 0..2000 {
                let mut board = Board::default();
                for cell in 0..params.cells() {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    board = board.with(cell, (seed >> 61) as u8);
                }
                let moves = Move::ALL.iter().filter_map(|&m| rules::make_move(board, m, params.board));
                assert!(own.afterstates(board.0).eq(moves.map(|(after, _)| after.0)), "{board:?}");
                assert_eq!(own.canonical(board.0), symmetries.canonical(board).0);
                let empty = rules::empty_cells(board, params.board);
                assert!(own.spawns(board.0).eq(empty.map(|c| (board.with(c, 1).0, board.with(c, 2).0))));
            }
            let mut starts: Vec<u64> =
                rules::starts(params.board).map(|(b, _)| symmetries.canonical(b).0).collect();
            starts.sort_unstable();
            starts.dedup();
            assert_eq!(own.starts(), starts);
        }
    }

    #[test]
    fn rounds_to_nearest() {
        for (sum, count, wanted) in
            [(10, 4, [2, 3]), (14, 4, [4, 4]), (9, 4, [2, 2]), (11, 4, [3, 3]), (0, 7, [0, 0])]
        {
            assert_eq!(divide(sum, count, Precision::Bits32), wanted[0], "{sum}/{count}");
            assert_eq!(divide(sum, count, Precision::Bits64), wanted[1], "{sum}/{count}");
        }
    }
}
