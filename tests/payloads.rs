//! A second implementation of the items in `docs/dev/format.md`, from the boards of the slow solver. The tests compare its
//! items byte by byte with the items of the program.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};

use common::forge::Forge;
use common::{Place, number, solve};
use exact2048_reference::{Board, Game, as_f64};
use exact2048_storage::{ItemKey, ShardKind};

/// Digit that represents a large tile.
const L: u8 = 99;

/// The numbers n, h and g of the page, and the largest exponent of the run.
struct Writer<'g> {
    game: &'g Game,
    cells: usize,
    large: u8,
    huge: u8,
    largest: u8,
}

/// A board's mask as bits, its config as digits, and its sequence.
type Split = (u32, Vec<u8>, Vec<u8>);

impl Writer<'_> {
    fn split(&self, board: &Board) -> Split {
        let (mut mask, mut config, mut sequence) = (0, Vec::new(), Vec::new());
        for (cell, &exponent) in board[..self.cells].iter().enumerate() {
            if exponent >= self.large {
                mask |= 1 << cell;
                sequence.push(exponent);
            } else {
                config.push(exponent);
            }
        }
        (mask, config, sequence)
    }

    /// All lists of `count` exponents with tile sum `sum`, in order. An exponent of 0 is an empty cell.
    fn lists(exponents: &[u8], count: usize, sum: u32) -> Vec<Vec<u8>> {
        if count == 0 {
            return if sum == 0 { vec![Vec::new()] } else { Vec::new() };
        }
        let mut all = Vec::new();
        for &first in exponents {
            let tile = if first == 0 { 0 } else { 1 << first };
            if tile <= sum {
                let rest = Self::lists(exponents, count - 1, sum - tile);
                all.extend(rest.into_iter().map(|rest| [vec![first], rest].concat()));
            }
        }
        all
    }

    /// The rows of a class.
    fn rows(&self, large_tiles: u32, small_sum: u32) -> Vec<(u32, Vec<u8>)> {
        let digits: Vec<u8> = (0..self.large).collect();
        let configs = Self::lists(&digits, self.cells - large_tiles as usize, small_sum);
        let mut rows = Vec::new();
        for mask in (0u32..1 << self.cells).filter(|mask| mask.count_ones() == large_tiles) {
            let board: Board = std::array::from_fn(|cell| (mask >> cell & 1) as u8 * L);
            let images: Vec<u32> = self.game.images(&board).iter().map(|image| self.split(image).0).collect();
            if images.iter().any(|&image| image < mask) {
                continue;
            }
            let is_kept = images.iter().filter(|&&image| image == mask).count() > 1;
            let some = |config: &Vec<u8>| {
                let mut config_left = config.iter();
                let skeleton: Board = std::array::from_fn(|cell| match mask >> cell & 1 {
                    1 => L,
                    _ => config_left.next().copied().unwrap_or(0),
                });
                let images = self.game.images(&skeleton);
                let images = images.iter().map(|image| self.split(image));
                images.filter(|image| image.0 == mask).all(|image| image.1 >= *config)
            };
            let canonical_only = is_kept && configs.len() <= 32_768;
            let configs = configs.iter().filter(|config| !canonical_only || some(config));
            rows.extend(configs.map(|config| (mask, config.clone())));
        }
        rows
    }

    /// The lane of a sequence.
    fn lane(&self, sequence: &[u8]) -> u64 {
        let huge = |e: u8| if e >= self.huge { 1u64 << 32 << (4 * (e - 8)) } else { 0 };
        sequence.iter().map(|&e| (256u64 << e) + 1 + huge(e)).sum()
    }

    /// The columns of a lane.
    fn columns(&self, lane: u64, large_tiles: u32, sum: u32) -> Vec<Vec<u8>> {
        let exponents: Vec<u8> = (self.large..=self.largest).collect();
        let mut columns = Self::lists(&exponents, large_tiles as usize, sum);
        columns.retain(|column| self.lane(column) == lane);
        let within_bound = |e: u8, column: &Vec<u8>| {
            column.iter().filter(|&&x| x >= e).count() + usize::from(e) <= self.cells + 2
        };
        columns.retain(|column| (3..=self.largest).all(|e| within_bound(e, column)));
        columns.sort_by_key(|column| {
            let mut downward = column.clone();
            downward.sort_by_key(|&e| std::cmp::Reverse(e));
            (downward, column.clone())
        });
        columns
    }

    /// The reach items of a layer, each with the states of its entries in order.
    fn items(
        &self,
        layer: u32,
        states: impl Iterator<Item = Board>,
    ) -> BTreeMap<ItemKey, (Vec<u8>, Vec<Board>)> {
        // Maps each lane to its entries, by mask and config, and by sequence.
        let mut lanes =
            BTreeMap::<(u64, u32, u32), BTreeMap<(u32, Vec<u8>), BTreeMap<Vec<u8>, Board>>>::new();
        for state in states {
            let images = self.game.images(&state);
            let splits: Vec<Split> = images.iter().map(|image| self.split(image)).collect();
            let (mask, config, _) = splits.iter().min().unwrap().clone();
            let large_sum = splits[0].2.iter().map(|&e| 1u32 << e).sum();
            let lane = self.lane(&splits[0].2);
            let entries = lanes.entry((lane, mask.count_ones(), large_sum)).or_default();
            let entries = entries.entry((mask, config.clone())).or_default();
            let in_row = splits.into_iter().filter(|split| (split.0, &split.1) == (mask, &config));
            entries.extend(in_row.map(|split| (split.2, state)));
        }
        let mut items = BTreeMap::new();
        for ((lane, large_tiles, sum), entries) in lanes {
            let rows = self.rows(large_tiles, layer - sum);
            let columns = self.columns(lane, large_tiles, sum);
            let each = (65_536 / columns.len()).max(1);
            let mut found = 0;
            for (part, rows) in rows.chunks(each).enumerate() {
                let mut occupancy = vec![0u8; rows.len().div_ceil(8)];
                let (mut bits, mut boards) = (Vec::new(), Vec::new());
                for (i, row) in rows.iter().enumerate() {
                    let Some(entries) = entries.get(row) else { continue };
                    occupancy[i / 8] |= 1 << (i % 8);
                    let mut row_bits = vec![0u8; columns.len().div_ceil(8)];
                    for (column, sequence) in columns.iter().enumerate() {
                        if let Some(&board) = entries.get(sequence) {
                            row_bits[column / 8] |= 1 << (column % 8);
                            boards.push(board);
                        }
                    }
                    bits.extend(row_bits);
                    found += entries.len();
                }
                if !bits.is_empty() {
                    items.insert(
                        ItemKey { layer, lane, part: part as u32 },
                        ([occupancy, bits].concat(), boards),
                    );
                }
            }
            assert_eq!(found, entries.values().map(BTreeMap::len).sum::<usize>(), "entries without a place");
        }
        items
    }
}

/// The items that a run has stored.
fn stored(run: &std::path::Path, kind: ShardKind) -> BTreeMap<ItemKey, Vec<u8>> {
    let forge = Forge::open(run);
    forge.of_kind(kind).flat_map(|shard| forge.shards[shard].items.clone()).collect()
}

/// Compares the reach items of a job up to a layer.
fn compare(board: &str, large: u8, huge: u8, until: u32) -> usize {
    let place = Place::new();
    let run = place.join("run");
    solve(&run, &format!("--board {board} --large {large} --huge {huge} --until-layer {until}"));
    let game = Game::new(board, "score", "1/10");
    let largest = (game.cells() as u8 + 1).min(until.ilog2() as u8);
    let writer = Writer { game: &game, cells: game.cells(), large, huge, largest };
    let stored = stored(&run, ShardKind::Reach);
    let mut known = BTreeSet::new();
    for (layer, boards) in game.enumerate(until) {
        for (key, (item, _)) in writer.items(layer, boards.states.into_iter()) {
            assert!(stored.get(&key) == Some(&item), "{key:?} of {board} is not what the page says");
            known.insert(key);
        }
    }
    assert!(known.iter().eq(stored.keys()), "{board} has items that the page does not know");
    known.len()
}

#[test]
fn reach_items_are_those_of_the_page() {
    assert!(compare("2x2", 3, 16, 60) > 40);
    assert!(compare("3x3", 4, 16, 40) > 30);
    assert!(compare("4x2", 3, 16, 34) > 30);
    assert!(compare("1x6", 3, 16, 50) > 30);
    // Compares up to the last layer, with tiles of 256 in separate lanes.
    assert!(compare("1x7", 4, 8, 508) > 100);
}

/// Tests a mask with symmetries and more than 32,768 configs.
#[test]
fn rows_of_large_symmetric_masks_are_those_of_the_page() {
    let game = Game::new("5x2", "score", "1/10");
    let writer = Writer { game: &game, cells: 10, large: 4, huge: 16, largest: 11 };
    let rows = writer.rows(0, 22);
    assert_eq!(rows.len(), 36_430);
    let mirrored = |config: &[u8]| (0..10).map(|cell| config[cell ^ 1]).collect::<Vec<_>>();
    let turned = |config: &[u8]| config.iter().rev().copied().collect::<Vec<_>>();
    let canonical = rows.iter().filter(|(_, config)| {
        let images = [mirrored(config), turned(config), mirrored(&turned(config))];
        images.iter().all(|image| image >= config)
    });
    assert_eq!(canonical.count(), 9_141);
    assert!(compare("5x2", 4, 16, 22) > 10);
}

/// An item of values has the values of its entries, in the order of the entries.
#[test]
fn values_items_are_those_of_the_page() {
    for (job, objective, f) in [("2x2", "score", 24), ("3x2", "reach:16", 31), ("3x2", "score", 21)] {
        let place = Place::new();
        let run = place.join("run");
        let summary = solve(&run, &format!("--board {job} --objective {objective} --large 3"));
        let game = Game::new(job, objective, "1/10");
        let solution = game.solve();
        let largest = if objective == "score" { game.cells() as u8 + 1 } else { 3 };
        let writer = Writer { game: &game, cells: game.cells(), large: 3, huge: 16, largest };
        let values = stored(&run, ShardKind::Values);
        let bound = number(&summary["start"]["error_bound"]);
        let mut compared = 0;
        for (&layer, boards) in solution.layers.iter().filter(|(layer, _)| *layer % 8 < 4) {
            for (key, (_, entries)) in writer.items(layer, boards.states.iter().copied()) {
                let item = &values[&key];
                assert_eq!(item.len(), 4 * entries.len(), "{key:?}");
                for (bytes, board) in item.chunks(4).zip(entries) {
                    let stored =
                        f64::from(u32::from_le_bytes(bytes.try_into().unwrap())) / f64::from(1u32 << f);
                    let potential = |&e: &u8| if e == 0 { 0 } else { (u32::from(e) - 1) << e };
                    let built = if objective == "score" { board.iter().map(potential).sum() } else { 0 };
                    let wanted = as_f64(solution.values[&board]) + f64::from(built);
                    assert!((stored - wanted).abs() <= bound + 1e-9, "{key:?}: {stored} for {wanted}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "{compared}");
        assert_eq!(values.len(), values.keys().filter(|key| key.layer % 8 < 4).count());
    }
}
