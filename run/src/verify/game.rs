//! The bounds of a run's game, computed independently from its parameters.

use exact2048_game::{Game, Params, ValueStep};

use super::geometry::Geometry;
use super::sectors::sectors_of_sets;
use super::values::{SPAWNS, ValueForm};

/// The game of a run.
#[derive(Debug)]
pub struct CheckedGame {
    params: Params,
    geometry: Geometry,
    largest_exponent: u8,
    first_layer: u32,
    last_layer: u32,
    values: ValueForm,
    /// For each content of two cells, the term that it adds to the code of the board's lane.
    lane_codes: Vec<u64>,
    /// The sector of each set of cells with large tiles. Empty with a single sector.
    sectors: Vec<u8>,
}

impl CheckedGame {
    /// The game that parameters describe.
    pub fn new(params: &Params) -> Self {
        let largest = largest_exponent(params.game());
        let heaviest = || heaviest_board(tile_cells(params.game()), largest);
        let whole_game: u64 = heaviest().map(|e| 1u64 << e).sum();
        let until = params.contents().until().map_or(whole_game, |layer| whole_game.min(layer.0.into()));
        let has_loose = params.game().board().loose() > 0;
        let large = |e: u64| match e {
            15 if has_loose => 1,
            e if e >= u64::from(params.split().large()) => 256 << e | 1,
            _ => 0,
        };
        let huge = |e: u64| if e >= u64::from(params.split().huge()) { 1 << (4 * e) } else { 0 };
        let lane_code = |e: u64| large(e) + huge(e);
        let (board, geometry) = (params.game().board(), Geometry::new(params.game().board()));
        Self {
            lane_codes: (0..256).map(|two| lane_code(two & 15) + lane_code(two >> 4)).collect(),
            sectors: sectors_of_sets((board.rows(), board.cols()), &geometry, params.split().sectors()),
            largest_exponent: params
                .contents()
                .until()
                .map_or(largest, |layer| largest.min(layer.0.ilog2() as u8)),
            first_layer: params.game().from().map_or(4, |board| geometry.tile_sum(board.0)),
            geometry,
            last_layer: u32::try_from(until).unwrap_or(u32::MAX),
            values: ValueForm::new(params.game(), heaviest().map(potential_of).sum())
                .with_step(params.contents().value_step().map(ValueStep::number)),
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

    /// The largest exponent of a tile that a state can hold.
    pub fn largest_exponent(&self) -> u8 {
        self.largest_exponent
    }

    /// The layer of a board: the sum of its tiles.
    #[inline]
    pub fn layer(&self, board: u64) -> u32 {
        self.geometry.tile_sum(board)
    }

    /// The smallest tile sum of a state: two 2s, or the tiles of the position from which the run begins.
    pub fn first_layer(&self) -> u32 {
        self.first_layer
    }

    /// The largest tile sum of a state.
    pub fn last_layer(&self) -> u32 {
        self.last_layer
    }

    /// Whether the values of a layer are stored.
    ///
    /// These are the first layers of every period and, if the period is long, the lowest three layers.
    pub fn keeps(&self, layer: u32) -> bool {
        let (period, width) =
            (2 * self.params.contents().kept().period(), 2 * self.params.contents().kept().width());
        layer % period < width || (layer < self.first_layer + 6 && period >= 10)
    }

    /// The lower layer of the next cut, from this layer upward.
    pub fn next_cut(&self, layer: u32) -> u32 {
        let last = self.last_layer();
        (layer..=last)
            .step_by(2)
            .find(|&layer| self.keeps(layer) && self.keeps(layer + 2))
            .unwrap_or(last + 2)
    }

    /// The stored form of values, and the values of afterstates.
    pub fn values(&self) -> &ValueForm {
        &self.values
    }

    /// Returns the code of a board's lane.
    ///
    /// From the lowest bit upward, the code has the number of large tiles in 5 bits and the sector in 3 bits. The sum of
    /// the large tiles follows in 24 bits. Then it has the number of huge tiles of each exponent from 8 to 15, in 4 bits each.
    #[inline]
    pub fn lane(&self, board: u64) -> u64 {
        self.lane_of_tiles(board) | self.sector(board) << 5
    }

    /// The sector of a board.
    pub fn sector(&self, board: u64) -> u64 {
        if self.sectors.is_empty() {
            return 0;
        }
        let large = self.params.split().large();
        let is_large = |cell: usize| (board >> (4 * cell) & 15) as u8 >= large;
        let set: usize = (0..self.geometry.places()).map(|cell| usize::from(is_large(cell)) << cell).sum();
        self.sectors[set].into()
    }

    /// Returns the code of the lane of some tiles in the first sector.
    #[inline]
    pub fn lane_of_tiles(&self, board: u64) -> u64 {
        board.to_le_bytes().iter().map(|&two| self.lane_codes[usize::from(two)]).sum()
    }

    /// Whether a board holds the tile that wins.
    pub fn is_won(&self, board: u64) -> bool {
        self.params
            .game()
            .objective()
            .winning_exponent()
            .is_some_and(|wins| exponents(self.geometry.tiles(board)).any(|e| e >= wins))
    }

    /// For each empty cell, the boards after a 2 and after a 4 spawn in it.
    pub fn spawns(&self, after: u64) -> impl Iterator<Item = [u64; SPAWNS.len()]> {
        cells_of(self.geometry.empty_cells(after))
            .map(move |cell| SPAWNS.map(|tile| after | (u64::from(tile) * cell)))
    }

    /// The canonical starts: the position from which the run begins, or two tiles, each a 2 or a 4, beside the loose
    /// stones in any cells.
    pub fn starts(&self) -> Vec<u64> {
        if let Some(board) = self.params.game().from() {
            return vec![self.geometry.canonical(board.0)];
        }
        let distinct = |boards: &mut dyn Iterator<Item = u64>| {
            let mut distinct: Vec<u64> = boards.map(|board| self.geometry.canonical(board)).collect();
            distinct.sort_unstable();
            distinct.dedup();
            distinct
        };
        let one_more = |boards: Vec<u64>, exponents: &[u64]| {
            let cells =
                |&board: &u64| cells_of(self.geometry.empty_cells(board)).map(move |cell| (board, cell));
            let all = boards.iter().flat_map(cells);
            distinct(&mut all.flat_map(|(board, cell)| exponents.iter().map(move |&e| board | (e * cell))))
        };
        let stones = (0..self.geometry.loose()).fold(vec![0], |boards, _| one_more(boards, &[15]));
        (0..2).fold(stones, |boards, _| one_more(boards, &SPAWNS.map(u64::from)))
    }

    /// The stored value of a board without a legal move. For the objective score, it is the potential of the board,
    /// otherwise 0.
    pub fn dead(&self, board: u64) -> u64 {
        self.values.score(exponents(board).map(potential_of).sum())
    }
}

/// Each of some cells, given by their lowest bits.
fn cells_of(cells: u64) -> impl Iterator<Item = u64> {
    let others = |&cells: &u64| Some(cells & (cells - 1)).filter(|&cells| cells != 0);
    let left = std::iter::successors(Some(cells).filter(|&cells| cells != 0), others);
    left.map(|cells| cells & cells.wrapping_neg())
}

/// The sum and the number of the large tiles of a lane, from its code.
pub fn lane_tiles(lane: u64) -> (u32, usize) {
    (lane as u32 >> 8, (lane & 31) as usize)
}

/// The sector of a lane, from its code.
pub fn lane_sector(lane: u64) -> u64 {
    lane >> 5 & 7
}

/// The code of a lane with the same tiles in the first sector.
pub fn in_first_sector(lane: u64) -> u64 {
    lane & !(7 << 5)
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

/// The largest exponent of a tile that a state can hold.
///
/// A board of n cells without a stone reaches at most 2^(n+1), and boards that hold the winning tile are not states.
fn largest_exponent(game: &Game) -> u8 {
    let by_cells = tile_cells(game) + 1;
    let by_objective = game.objective().winning_exponent().map_or(by_cells, |exponent| exponent - 1);
    by_cells.min(by_objective)
}

/// The number of cells that stones of any kind leave for tiles.
fn tile_cells(game: &Game) -> u8 {
    game.board().cells() as u8 - game.board().loose()
}

/// Returns the exponents of the heaviest board.
///
/// For every e from 3 on, at most n + 2 - e cells hold a tile of 2^e or more. Any number of cells can hold a 4.
fn heaviest_board(cells: u8, largest: u8) -> impl Iterator<Item = u8> {
    (0..cells).map(move |before| (cells + 1 - before).max(2).min(largest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Precision;
    use exact2048_game::fixed::Scale;

    fn game(board: &str, objective: &str, precision: Precision, until: Option<u32>) -> CheckedGame {
        CheckedGame::new(&Params::usual(board, objective).precision(precision).until(until).build().unwrap())
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
            assert_eq!((game.values.won(), game.last_layer()), (1 << fraction, last), "{board} {objective}");
        }
    }

    #[test]
    fn bounds_are_those_of_the_solver() {
        let pictures =
            ["3x3:x../x../...", "4x4:..../..../.xxx/.xxx", "4x4:####/..../..../####", "4x4+8x", "3x2+1x"];
        let sizes = ["2x2", "1x4", "3x2", "3x3", "5x2", "4x3", "7x2", "4x4", "1x8"];
        for board in sizes.into_iter().chain(pictures) {
            for objective in ["score", "reach:8", "reach:16", "reach:256", "lose:16"] {
                for (bits, until) in [(Precision::Bits32, None), (Precision::Bits64, Some(24))] {
                    let Ok(params) = Params::usual(board, objective).precision(bits).until(until).build()
                    else {
                        continue;
                    };
                    let game = CheckedGame::new(&params);
                    assert_eq!(game.largest_exponent(), params.largest_exponent(), "{params:?}");
                    assert_eq!(game.last_layer(), params.last_layer().0, "{params:?}");
                    assert_eq!(game.values.won(), Scale::new(params.game()).won().0, "{params:?}");
                }
            }
        }
    }

    #[test]
    fn a_board_is_worth_what_its_tiles_earned() {
        let game = game("2x2", "score", Precision::Bits32, None);
        // 16 was built from two 8s, those from four 4s: 16 + 2 * 8 + 4 * 4.
        assert_eq!(game.dead(0x4000), game.values.score(48));
        assert_eq!(game.starts().len(), 6);
        assert!(!game.is_won(0xffff));
    }
}
