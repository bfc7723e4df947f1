//! What a run's parameters say, worked out anew: the bounds of its game, and the arithmetic of its values.

use exact2048_game::{Objective, Params, Precision};

use super::geometry::Geometry;

/// What the spawns of an afterstate are worth.
#[derive(Clone, Copy, Default)]
pub struct SpawnMeans {
    /// Number of empty cells.
    pub empty: u32,
    /// Sum of the values of the states that a 2 leads to.
    pub twos: u128,
    /// The same for a 4.
    pub fours: u128,
}

/// The game of a run.
#[derive(Debug)]
pub struct Game {
    params: Params,
    geometry: Geometry,
    largest_exponent: u8,
    last_layer: u32,
    fraction_bits: u32,
    /// What each content of two cells adds to the code of a board's lane.
    lane_codes: Vec<u64>,
}

impl Game {
    /// The game that parameters describe.
    pub fn new(params: &Params) -> Self {
        let largest_exponent = largest_exponent(params);
        let heaviest = || heaviest_board(params.board.cells() as u8, largest_exponent);
        let whole_game: u64 = heaviest().map(|e| 1u64 << e).sum();
        let until = params.until_layer.map_or(whole_game, |layer| whole_game.min(layer.into()));
        let largest_value = match params.objective {
            Objective::Score => heaviest().map(potential_of).sum(),
            Objective::Reach { .. } => 1,
        };
        let large = |e: u64| if e >= u64::from(params.large) { 256 << e | 1 } else { 0 };
        let huge = |e: u64| if e >= u64::from(params.huge) { 1 << (4 * e) } else { 0 };
        let lane_code = |e: u64| large(e) + huge(e);
        Self {
            lane_codes: (0..256).map(|two| lane_code(two & 15) + lane_code(two >> 4)).collect(),
            geometry: Geometry::new(params.board),
            largest_exponent,
            last_layer: u32::try_from(until).unwrap_or(u32::MAX),
            fraction_bits: fraction_bits(params, largest_value),
            params: params.clone(),
        }
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Moves and symmetries.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Exponent of the largest tile on a board that counts.
    pub fn largest_exponent(&self) -> u8 {
        self.largest_exponent
    }

    /// The largest tile sum that a board which counts can have.
    pub fn last_layer(&self) -> u32 {
        self.last_layer
    }

    /// Whether the values of a layer are stored: of every period those with the smallest remainders, and of a long one
    /// those of the starts.
    pub fn keeps(&self, layer: u32) -> bool {
        let (period, width) = (2 * self.params.kept.period(), 2 * self.params.kept.width());
        layer % period < width || (layer < 10 && period >= 10)
    }

    /// The lower of the next two neighbouring layers, from this one on, whose values are stored.
    pub fn next_cut(&self, layer: u32) -> u32 {
        let last = self.last_layer();
        (layer..=last)
            .step_by(2)
            .find(|&layer| self.keeps(layer) && self.keeps(layer + 2))
            .unwrap_or(last + 2)
    }

    /// Bits after the binary point of a value.
    pub fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    /// The code of a board's lane: from the lowest bit on the number of its large tiles, in 8 bits, their sum, in 24, and
    /// how many huge tiles of each exponent from 8 on there are, 4 each.
    #[inline]
    pub fn lane(&self, board: u64) -> u64 {
        board.to_le_bytes().iter().map(|&two| self.lane_codes[usize::from(two)]).sum()
    }

    /// Whether a board holds the wanted tile.
    pub fn is_won(&self, board: u64) -> bool {
        match self.params.objective {
            Objective::Score => false,
            Objective::Reach { exponent } => exponents(board).any(|e| e >= exponent),
        }
    }

    /// The boards that a 2 and a 4 in each empty cell make, as pairs.
    pub fn spawns(&self, after: u64) -> impl Iterator<Item = (u64, u64)> {
        let empty = self.geometry.empty_cells(after);
        let others = |&empty: &u64| Some(empty & (empty - 1)).filter(|&empty| empty != 0);
        let cells = std::iter::successors(Some(empty).filter(|&empty| empty != 0), others);
        cells.map(move |empty| empty & empty.wrapping_neg()).map(move |two| (after | two, after | two << 1))
    }

    /// The canonical starts: two tiles, each a 2 or a 4, on an empty board.
    pub fn starts(&self) -> Vec<u64> {
        let one_tile = self.spawns(0).flat_map(|(two, four)| [two, four]);
        let two_tiles = one_tile.flat_map(|board| self.spawns(board).flat_map(|(two, four)| [two, four]));
        let mut starts: Vec<u64> = two_tiles.map(|board| self.geometry.canonical(board)).collect();
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
            Objective::Score => exponents(board).map(potential_of).sum::<u64>() << self.fraction_bits,
            Objective::Reach { .. } => 0,
        }
    }

    /// The value of an afterstate: the mean over its spawns, rounded to nearest.
    ///
    /// A spawned 4 adds 4 to what building the board from 2s would have scored, and the player did not
    /// score it: so it counts 4 less.
    pub fn mean(&self, spawns: &SpawnMeans) -> u64 {
        let spawn4 = self.params.spawn4;
        let gift = match self.params.objective {
            Objective::Score => u128::from(spawns.empty) << (self.fraction_bits + 2),
            Objective::Reach { .. } => 0,
        };
        let (weight2, weight4) = (u128::from(spawn4.weight2()), u128::from(spawn4.weight4()));
        let sum = weight2 * spawns.twos + weight4 * spawns.fours.saturating_sub(gift);
        let count = u64::from(spawn4.denominator()) * u64::from(spawns.empty);
        match self.params.precision {
            Precision::Bits32 => to_nearest_32(sum, count),
            Precision::Bits64 => to_nearest_64(sum, count),
        }
    }
}

/// The sum of the large tiles of a lane and their number, from its code.
pub fn lane_tiles(lane: u64) -> (u32, usize) {
    (lane as u32 >> 8, (lane & 255) as usize)
}

/// `sum / count` to the nearest integer; of two that are equally near, the larger one.
fn to_nearest_64(sum: u128, count: u64) -> u64 {
    // Almost always 64 bits are enough, and dividing them is much faster.
    let (whole, rest) = match u64::try_from(sum) {
        Ok(sum) => (sum / count, sum % count),
        Err(_) => ((sum / u128::from(count)) as u64, (sum % u128::from(count)) as u64),
    };
    whole.wrapping_add(u64::from(2 * rest >= count))
}

/// `sum / count` to the nearest integer; of two that are equally near, the one that IEEE arithmetic gives, where
/// dividing is multiplying by the reciprocal and a tie goes to the even one. That product is off by less than
/// 2^-20, so that it matters only within 2^-16 of a tie.
fn to_nearest_32(sum: u128, count: u64) -> u64 {
    let near_tie = |rest: u64| (2 * rest).abs_diff(count) <= count >> 16;
    match u64::try_from(sum) {
        Ok(sum) if near_tie(sum % count) => (sum as f64 * (1.0 / count as f64)).round_ties_even() as u64,
        _ => to_nearest_64(sum, count),
    }
}

/// Exponents of the tiles of a board.
fn exponents(board: u64) -> impl Iterator<Item = u8> {
    let rest = |&board: &u64| (board >> 4 != 0).then_some(board >> 4);
    std::iter::successors(Some(board), rest).map(|board| board as u8 & 15).filter(|&e| e > 0)
}

/// The score that building a tile from 2s earns.
fn potential_of(exponent: u8) -> u64 {
    u64::from(exponent - 1) << exponent
}

/// The largest exponent: a board of n cells reaches 2^(n+1) at most; boards that hold the wanted tile do not
/// count, nor those above the last layer.
fn largest_exponent(params: &Params) -> u8 {
    let by_cells = params.board.cells() as u8 + 1;
    let by_objective = match params.objective {
        Objective::Score => by_cells,
        Objective::Reach { exponent } => exponent - 1,
    };
    let by_layer = params.until_layer.map_or(by_cells, |layer| layer.ilog2() as u8);
    by_cells.min(by_objective).min(by_layer)
}

/// The exponents of the heaviest board: at most n + 2 - e cells hold a tile of 2^e or more, for every e from 3
/// on, and any number of cells a 4.
fn heaviest_board(cells: u8, largest: u8) -> impl Iterator<Item = u8> {
    (0..cells).map(move |before| (cells + 1 - before).max(2).min(largest))
}

/// Bits after the binary point: with 32 bits a value all that the largest value leaves; with 64 as many less as
/// the weights of the spawns of a full board need, and one for rounding.
fn fraction_bits(params: &Params, largest_value: u64) -> u32 {
    let digits = |n: u64| u64::BITS - n.leading_zeros();
    match params.precision {
        Precision::Bits32 => 32 - digits(largest_value),
        Precision::Bits64 => {
            let weights = 2 * u64::from(params.spawn4.denominator()) * params.board.cells() as u64;
            64 - digits(largest_value) - digits(weights)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Spawn4;

    fn game(board: &str, objective: &str, precision: Precision, until: Option<u32>) -> Game {
        let (board, objective) = (board.parse().unwrap(), objective.parse().unwrap());
        Game::new(&Params::new(board, objective, Spawn4::default(), precision, until).unwrap())
    }

    /// The table of `docs/dev/error-bound.md`.
    #[test]
    fn bounds_are_the_published_ones() {
        for (board, objective, bits, fraction, last) in [
            ("3x3", "score", Precision::Bits32, 17, 2044),
            ("3x3", "score", Precision::Bits64, 41, 2044),
            ("5x2", "score", Precision::Bits32, 16, 4092),
            ("4x3", "score", Precision::Bits32, 14, 16380),
            ("3x3", "reach:512", Precision::Bits32, 31, 1020),
        ] {
            let game = game(board, objective, bits, None);
            assert_eq!((game.fraction_bits, game.last_layer()), (fraction, last), "{board} {objective}");
        }
    }

    #[test]
    fn bounds_are_those_of_the_solver() {
        for board in ["2x2", "1x4", "3x2", "3x3", "5x2", "4x3", "7x2", "4x4", "1x8"] {
            for objective in ["score", "reach:8", "reach:16", "reach:256"] {
                for (bits, until) in [(Precision::Bits32, None), (Precision::Bits64, Some(24))] {
                    let (board, objective) = (board.parse().unwrap(), objective.parse().unwrap());
                    let Ok(params) = Params::new(board, objective, Spawn4::default(), bits, until) else {
                        continue;
                    };
                    let game = Game::new(&params);
                    assert_eq!(game.largest_exponent(), params.largest_exponent(), "{params:?}");
                    assert_eq!(game.last_layer(), params.last_layer().0, "{params:?}");
                    assert_eq!(game.fraction_bits, params.scale().fraction_bits(), "{params:?}");
                }
            }
        }
    }

    #[test]
    fn rounds_to_nearest() {
        for (sum, count, wanted) in
            [(10, 4, [2, 3]), (14, 4, [4, 4]), (9, 4, [2, 2]), (11, 4, [3, 3]), (0, 7, [0, 0])]
        {
            assert_eq!(to_nearest_32(sum, count), wanted[0], "{sum}/{count}");
            assert_eq!(to_nearest_64(sum, count), wanted[1], "{sum}/{count}");
        }
        assert_eq!(to_nearest_64(3 << 64, 6), 1 << 63);
    }

    #[test]
    fn a_board_is_worth_what_its_tiles_earned() {
        let game = game("2x2", "score", Precision::Bits32, None);
        // 16 was built from two 8s, those from four 4s: 16 + 2 * 8 + 4 * 4.
        assert_eq!(game.dead(0x4000), 48 << game.fraction_bits);
        assert_eq!(game.starts().len(), 6);
        assert!(!game.is_won(0xffff));
    }
}
