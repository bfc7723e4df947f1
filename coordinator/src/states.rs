//! Numbers of states in a run and its layers, counted or estimated.

use exact2048_game::{Discount, Game, Layer, Params, Spawner};

/// Number of states of solved whole runs, by board and by the exponent of the winning tile.
const SOLVED: [((usize, usize), Option<u8>, f64); 28] = [
    ((2, 2), None, 110.0),
    ((3, 2), None, 21_752.0),
    ((4, 2), None, 4_980_767.0),
    ((4, 2), Some(6), 220_575.0),
    ((4, 2), Some(7), 631_834.0),
    ((4, 2), Some(8), 1_484_919.0),
    ((4, 2), Some(9), 2_980_688.0),
    ((3, 3), None, 48_713_519.0),
    ((3, 3), Some(5), 125_732.0),
    ((3, 3), Some(6), 609_981.0),
    ((3, 3), Some(7), 2_172_172.0),
    ((3, 3), Some(8), 6_116_578.0),
    ((3, 3), Some(9), 14_314_189.0),
    ((3, 3), Some(10), 29_063_397.0),
    ((5, 2), None, 1_814_373_350.0),
    ((5, 2), Some(7), 25_906_149.0),
    ((5, 2), Some(8), 84_127_079.0),
    ((5, 2), Some(10), 527_501_965.0),
    ((4, 3), None, 1_152_817_492_752.0),
    ((4, 3), Some(5), 16_355_929.0),
    ((4, 3), Some(6), 158_719_987.0),
    ((4, 3), Some(8), 4_722_887_433.0),
    ((4, 3), Some(9), 17_353_860_953.0),
    ((4, 3), Some(10), 52_996_837_882.0),
    ((4, 3), Some(11), 140_042_875_418.0),
    ((4, 4), Some(3), 84_660.0),
    ((4, 4), Some(4), 23_483_970.0),
    ((4, 4), Some(5), 1_567_514_971.0),
];

/// Number of states with a legal move in each layer of 4x4 to 64, that is, with the objective `reach:64`. Published by
/// Lees-Miller, "The Mathematics of 2048", in the file `layer_parts.csv` of its data. A run also counts dead boards.
/// They add 0.02% in the layers up to 124.
const PUBLISHED_4X4_TO_64: &str = include_str!("data/4x4-to-64.csv");

/// Exponent of the winning tile of [`PUBLISHED_4X4_TO_64`].
const PUBLISHED_EXPONENT: u8 = 6;

/// Highest layer of 4x4 to 64 for which time and disk space of a run were measured.
const MEASURED_LAYER: u32 = 124;

/// Largest number of cells of a dense board. On larger boards, few arrangements of tiles are states, because a move
/// slides all tiles to one side.
const DENSE_CELLS: usize = 12;

/// Basis of the estimates for a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knowledge {
    /// A run with the same states was solved and measured.
    Solved,
    /// The states of the run were published or counted, but no such run was measured.
    Counted,
    /// The number of states is estimated from the share of entries that are states on similar boards.
    Similar,
    /// No similar board was measured.
    Unlike,
}

impl Knowledge {
    /// Returns the knowledge about a run with these parameters.
    pub fn of(params: &Params) -> Self {
        let game = params.game();
        let is_usual = game.discount() == Discount::NONE && game.spawner() == Spawner::Random;
        let is_short = params.contents().until().is_some_and(|layer| layer.0 <= MEASURED_LAYER);
        match states_of_solved(params) {
            Some(_) if is_usual => Self::Solved,
            Some(_) => Self::Counted,
            None if published(params).is_some() => {
                if is_short {
                    Self::Solved
                } else {
                    Self::Counted
                }
            }
            None if params.game().cells() <= DENSE_CELLS => Self::Similar,
            None => Self::Unlike,
        }
    }

    /// Returns the factor by which the number of states may be too high or too low; 1 if the states were counted.
    pub fn states_factor(self) -> f64 {
        match self {
            Self::Solved | Self::Counted => 1.0,
            Self::Similar => 2.0,
            Self::Unlike => 3.0,
        }
    }

    /// Returns the factor by which disk space and hours may be too high or too low.
    pub fn cost_factor(self) -> f64 {
        match self {
            Self::Solved => 1.3,
            Self::Counted => 2.5,
            Self::Similar => 2.0,
            Self::Unlike => 5.0,
        }
    }
}

/// Returns the number of states in each layer of a run, given the rows and entries of its layers.
pub(crate) fn of_layers(params: &Params, rows: &[f64], entries: &[f64]) -> Vec<f64> {
    if let Some(published) = published(params) {
        let mut states = vec![0.0; entries.len()];
        for (layer, live) in published {
            if let Some(states) = states.get_mut(layer.index()) {
                *states = live;
            }
        }
        return states;
    }
    let [all_rows, all_entries] = [rows, entries].map(|of_layers| of_layers.iter().sum::<f64>().max(1.0));
    let states = states_of_solved(params).unwrap_or_else(|| {
        let share = share_of_entries(params.game().cells(), all_entries / all_rows.max(1.0));
        share * all_entries
    });
    entries.iter().map(|entries| states / all_entries * entries).collect()
}

/// Estimates the share of entries that are states, for rows with this number of columns. On boards of up to 12
/// cells, measured shares were 0.63 to 1.6 times the estimate. On 4x4 with `reach:16` and higher, they were between
/// a third of the estimate and the estimate.
fn share_of_entries(cells: usize, columns: f64) -> f64 {
    if cells <= DENSE_CELLS { 0.41 * columns.max(1.0).powf(-0.2) } else { 0.1 }
}

/// Returns the number of states in the whole run, if a run with the same states was solved.
fn states_of_solved(params: &Params) -> Option<f64> {
    if params.contents().enumerates_only() || !spawns_both(params.game()) || !params.game().is_whole() {
        return None;
    }
    let (rows, cols) = (params.game().board().rows(), params.game().board().cols());
    let run = ((rows.max(cols), rows.min(cols)), params.game().objective().winning_exponent());
    SOLVED.iter().find(|(size, wins, _)| (*size, *wins) == run).map(|(.., states)| *states)
}

/// Returns whether both 2s and 4s are spawned. Otherwise fewer boards are reachable.
fn spawns_both(game: &Game) -> bool {
    game.spawn4().weight2() > 0 && game.spawn4().weight4() > 0
}

/// Returns the published layers of a run, if they cover the whole run. Layers with a tile sum below the published
/// target are the same for every larger target.
fn published(params: &Params) -> Option<impl Iterator<Item = (Layer, f64)> + '_> {
    let board = params.game().board();
    let is_4x4 = !board.has_stones() && (board.rows(), board.cols()) == (4, 4);
    let wins = params.game().winning_exponent();
    let is_below = || params.contents().until().is_some_and(|layer| layer.0 < 1 << PUBLISHED_EXPONENT);
    let is_same = wins == Some(PUBLISHED_EXPONENT)
        || wins.is_none_or(|exponent| exponent > PUBLISHED_EXPONENT) && is_below();
    if !is_4x4 || !is_same || !spawns_both(params.game()) {
        return None;
    }
    let last = params.last_layer();
    let layers = PUBLISHED_4X4_TO_64.lines().skip(1).filter_map(|line| {
        let (layer, live) = line.split_once(',')?;
        Some((Layer::of_sum(layer.parse().ok()?)?, live.trim().parse().ok()?))
    });
    Some(layers.filter(move |(layer, _)| *layer <= last))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use super::*;
    use crate::Workload;

    fn params(board: &str, objective: &str, until_layer: Option<u32>) -> Params {
        Params::usual(board, objective).until(until_layer).build().unwrap()
    }

    #[test]
    fn published_layers_are_those_of_4x4() {
        let states =
            |objective, until| Workload::new(&params("4x4", objective, until)).whole_states().round();
        assert_eq!(states("reach:64", None), 40_652_843_433.0);
        assert_eq!(states("reach:64", Some(124)), 5_653_857_638.0);
        // No board of these layers has a tile of 64.
        assert_eq!(states("reach:64", Some(60)), 44_219_889.0);
        assert_eq!(states("score", Some(60)), 44_219_889.0);
        assert_eq!(states("reach:2048", Some(60)), 44_219_889.0);
    }

    /// Compares the enumeration of 4x4 to 64 with the published one, layer by layer.
    #[test]
    fn the_enumeration_of_4x4_to_64_agrees_with_the_published_one() {
        let numbers =
            |line: &str| -> Vec<u64> { line.split(',').map(|cell| cell.parse().unwrap()).collect() };
        let ours = include_str!("../../docs/results/4x4-64-layers.csv").lines().skip(1).map(numbers);
        let published = PUBLISHED_4X4_TO_64.lines().skip(1).map(numbers);
        let live: Vec<Vec<u64>> = ours.map(|row| vec![row[0], row[1] - row[2]]).collect();
        assert_eq!(live, published.collect::<Vec<_>>());
    }

    #[test]
    fn knowledge_depends_on_measured_runs() {
        for (board, objective, until, known) in [
            ("3x3", "score", None, Knowledge::Solved),
            ("2x4", "lose:64", None, Knowledge::Solved),
            ("4x4", "reach:32", None, Knowledge::Solved),
            ("4x4", "reach:64", Some(124), Knowledge::Solved),
            ("4x4", "reach:64", None, Knowledge::Counted),
            ("4x3", "reach:128", None, Knowledge::Similar),
            ("3x3", "score", Some(100), Knowledge::Similar),
            ("4x4", "score", Some(64), Knowledge::Unlike),
            ("4x4", "reach:128", None, Knowledge::Unlike),
            ("5x3", "reach:32", None, Knowledge::Unlike),
        ] {
            assert_eq!(
                Knowledge::of(&params(board, objective, until)),
                known,
                "{board} {objective} {until:?}"
            );
        }
        let only_2s = Params::usual("3x3", "score").spawn4("0".parse().unwrap()).build().unwrap();
        assert_eq!(Knowledge::of(&only_2s), Knowledge::Similar);
        let soon = Params::usual("3x3", "reach:64").discount("0.9".parse().unwrap()).build().unwrap();
        assert_eq!(Knowledge::of(&soon), Knowledge::Counted);
    }

    /// Checks that estimated numbers of states are within the stated factor.
    #[test]
    fn estimated_states_are_within_their_factor() {
        for (board, objective, until, states) in
            [("4x3", "score", Some(224), 792_386_098.0), ("3x3", "reach:16", None, 16_895.0)]
        {
            let params = params(board, objective, until);
            let off = Workload::new(&params).whole_states() / states;
            let most = Knowledge::of(&params).states_factor();
            assert!((1.0 / most..=most).contains(&off), "{board} {objective}: off by {off}");
        }
        for (board, wins, states) in
            SOLVED.map(|((rows, cols), wins, states)| (format!("{rows}x{cols}"), wins, states))
        {
            let Some(exponent) = wins.filter(|exponent| *exponent > 3) else { continue };
            let params = params(&board, &format!("reach:{}", 1 << exponent), None);
            let workload = Workload::new(&params);
            let columns = workload.whole() / workload.whole_rows();
            let off = share_of_entries(params.game().cells(), columns) * workload.whole() / states;
            let most =
                if params.game().cells() <= DENSE_CELLS { Knowledge::Similar } else { Knowledge::Unlike };
            let most = most.states_factor();
            assert!((1.0 / most..=most).contains(&off), "{board} to {wins:?}: off by {off}");
        }
    }
}
