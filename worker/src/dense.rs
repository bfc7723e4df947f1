//! The choice of the split of tiles, and of the classes that keep the transitions of all their rows.

use std::collections::BTreeMap;

use exact2048_game::class::{ClassId, Space};
use exact2048_game::huge::LEAST_HUGE;
use exact2048_game::sector::MOST_SECTORS;
use exact2048_game::{Params, lane};

use crate::footprint::{SHARED_HEAP_BYTES, least_heap_bytes, process_bytes};
use crate::tuning::Tuning;

/// The most rows of a run whose classes all keep their transitions.
const MOST_ROWS: u64 = 1 << 27;

/// The least average number of blocks of a class that keeps its transitions. In each block about a third of its rows
/// occur.
const LEAST_USES: u64 = 16;

/// Bytes of memory that a run needs for each row with kept transitions. Transitions take twice as many, but those used
/// least can be in scratch files.
const ROW_BYTES: u64 = 50;

/// Bytes that the transitions of a row take.
const TRANSITION_BYTES: u64 = 2 * ROW_BYTES;

impl Tuning {
    /// This tuning, changed so that all classes of the run keep their transitions, if that pays and memory suffices.
    ///
    /// It pays if the classes have few enough rows and each serves many blocks, as on 4x3 with `reach:512` or a larger
    /// tile. Cost: one step for each block, 0.1 s for 4x3.
    #[must_use]
    pub fn for_run(self, params: &Params) -> Self {
        let rows = Rows::of(params);
        let fits = || self.limit_bytes as u64 >= ample_bytes(params).max(ROW_BYTES * rows.of_classes);
        if self.pays(&rows) && fits() { Self { dense_rows: usize::MAX, ..self } } else { self }
    }

    /// Bytes of scratch files that the transitions of a run take.
    ///
    /// Memory also holds the tables, the largest block and the values of the largest layer. Transitions that do not fit
    /// move to scratch files, and stay there as long as the process works on the run. Cost: as [`Tuning::for_run`].
    #[must_use]
    pub fn scratch_bytes(self, params: &Params) -> u64 {
        let limit = self.limit_bytes as u64;
        // No run begins with less than the least memory.
        if limit < least_heap_bytes(params, Self::DENSE_ROWS) {
            return 0;
        }
        let dense_rows = self.for_run(params).dense_rows;
        let kept = rows_of_classes(params).1.into_iter().filter(|&rows| rows <= dense_rows as u64);
        let transitions = TRANSITION_BYTES * kept.sum::<u64>();
        // The least memory includes some memory for values.
        let values = values_of_largest_layer(params).saturating_sub(SHARED_HEAP_BYTES);
        let beside = least_heap_bytes(params, dense_rows) + values;
        (beside + transitions).saturating_sub(limit).min(transitions)
    }

    /// The least memory for statistics of a run; see [`least_memory_bytes`](crate::least_memory_bytes).
    pub fn least_statistics_bytes(self, params: &Params, threads: usize) -> u64 {
        let params = params.with_all_contents();
        process_bytes(least_heap_bytes(&params, self.for_statistics(&params).dense_rows), threads)
    }

    /// [`Tuning::for_run`] for statistics of a run, for any memory.
    ///
    /// The order in which chances are added up follows from the kept transitions, and must not depend on the memory.
    /// Data that does not fit moves to scratch files.
    #[must_use]
    pub fn for_statistics(self, params: &Params) -> Self {
        if self.pays(&Rows::of(params)) { Self { dense_rows: usize::MAX, ..self } } else { self }
    }

    /// Whether some class would not keep its transitions, although keeping all would pay.
    fn pays(&self, &Rows { of_classes, of_largest, of_blocks }: &Rows) -> bool {
        let is_one_left_out = of_largest > self.dense_rows as u64;
        is_one_left_out && of_classes <= MOST_ROWS && of_blocks >= LEAST_USES * of_classes
    }

    /// The parameters of the same run, with the fastest split between small and large tiles for this limit of memory. If the
    /// largest block does not fit, lanes are divided into sectors.
    pub fn split(&self, params: Params) -> Params {
        if params.game().from().is_some() && params.game().cells() >= CELLS_OF_MANY_LANES {
            return exact_split(params);
        }
        let keeps_all = |params: &Params| self.for_run(params).dense_rows > self.dense_rows;
        params.with_fewer_rows().filter(keeps_all).unwrap_or_else(|| self.in_sectors(params))
    }

    /// The parameters with the fewest sectors that fit into the memory; with the most sectors if none fit. Boards with
    /// stones have no sectors.
    fn in_sectors(&self, params: Params) -> Params {
        let fits = |params: &Params| least_heap_bytes(params, self.dense_rows) <= self.limit_bytes as u64;
        let mut divided = params;
        for sectors in [2, 4, MOST_SECTORS] {
            if fits(&divided) {
                break;
            }
            let Ok(more) = divided.to_builder().sectors(sectors).build() else { break };
            divided = more;
        }
        divided
    }
}

/// Smallest number of cells of boards whose runs from a position divide lanes by all huge tiles.
const CELLS_OF_MANY_LANES: usize = 11;

/// The split of a run from a position on a large board. The position has most of the large tiles already, so few lanes
/// occur, and each of them is small if all its states have the same huge tiles.
fn exact_split(params: Params) -> Params {
    params.to_builder().huge(LEAST_HUGE).build().unwrap_or(params)
}

/// Estimates of the rows of a run: of all classes, of the largest class, and of all blocks.
#[derive(Default, Debug)]
struct Rows {
    of_classes: u64,
    of_largest: u64,
    of_blocks: u64,
}

impl Rows {
    fn of(params: &Params) -> Self {
        let (of_blocks, classes) = rows_of_classes(params);
        let of_largest = classes.iter().copied().max().unwrap_or(0);
        Self { of_classes: classes.into_iter().sum(), of_largest, of_blocks }
    }
}

/// Estimates the rows of all blocks of a run together, and of each of their classes.
fn rows_of_classes(params: &Params) -> (u64, Vec<u64>) {
    let space = Space::new(params);
    let until = params.last_layer();
    let (mut of_blocks, mut classes) = (0, BTreeMap::new());
    for lane in lane::lanes(params) {
        let (first, last) = lane::layer_range(params, lane);
        let layers = first.to(last.min(until));
        for id in layers.filter_map(|layer| ClassId::of(layer, lane)) {
            of_blocks += *classes.entry(id).or_insert_with(|| space.estimate_rows(id));
        }
    }
    (of_blocks, classes.into_values().collect())
}

/// Bytes of the values of the layer with the most entries; 0 if a run only enumerates.
fn values_of_largest_layer(params: &Params) -> u64 {
    if params.contents().enumerates_only() {
        return 0;
    }
    let (space, mut entries) = (Space::new(params), BTreeMap::new());
    for (layer, count) in lane::lanes(params).into_iter().flat_map(|lane| space.estimate_entries(lane)) {
        *entries.entry(layer).or_insert(0) += count;
    }
    entries.into_values().max().unwrap_or(0) * params.game().precision().bytes()
}

/// Bytes of memory that hold some blocks in addition to the one that a task makes. With less, blocks would move to
/// scratch files all the time.
fn ample_bytes(params: &Params) -> u64 {
    least_heap_bytes(params, usize::MAX) / 5 * 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::Heap;
    use exact2048_game::Precision;

    fn params(board: &str, objective: &str, precision: Precision, until_layer: Option<u32>) -> Params {
        Params::usual(board, objective).precision(precision).until(until_layer).build().unwrap()
    }

    fn tuning(gib: usize) -> Tuning {
        let (dense_rows, piece_bytes) = (Tuning::DENSE_ROWS, Tuning::PIECE_BYTES);
        Tuning { limit_bytes: gib << 30, heap: Heap::of(|| 0), dense_rows, piece_bytes }
    }

    #[test]
    fn all_classes_keep_their_transitions_if_these_are_few_and_used_often() {
        for (board, objective, until_layer, all) in [
            ("3x3", "score", None, false), // All classes are small enough to keep their transitions.
            ("5x2", "score", None, false),
            ("4x3", "score", None, false), // Split at 32: 839 million rows.
            ("4x3", "score", Some(400), false),
            ("4x3", "reach:256", None, false),
            ("4x3", "reach:512", None, true),
            ("4x3", "reach:2048", None, true),
            ("4x4", "reach:64", None, false),
            ("4x4", "score", Some(40), false), // Each class serves one or two blocks.
            ("5x3", "score", Some(60), false),
        ] {
            let params = params(board, objective, Precision::Bits32, until_layer);
            let keeps_all = |gib| tuning(gib).for_run(&params).dense_rows > Tuning::DENSE_ROWS;
            assert_eq!(keeps_all(12), all, "{board} {objective}");
            assert!(!keeps_all(1), "{board} {objective} with little memory");
            for gib in [1, 12] {
                let keeps_all = tuning(gib).for_statistics(&params).dense_rows > Tuning::DENSE_ROWS;
                assert_eq!(keeps_all, all, "statistics of {board} {objective}, {gib} GiB");
            }
        }
    }

    /// Measured bytes that runs mapped from scratch files, with two threads and `mib` MiB of memory.
    #[test]
    fn transitions_take_about_the_measured_bytes_of_scratch_files() {
        for (board, objective, mib, measured) in [
            ("3x3", "score", 80, 13_582_336.0),
            ("3x3", "score", 100, 0.0),
            ("5x2", "reach:128", 256, 163_086_336.0),
            ("5x2", "score", 2048, 0.0),
            ("4x3", "reach:2048", 8192, 5.2 * f64::from(1 << 30)),
            ("4x3", "reach:2048", 64 << 10, 0.0),
        ] {
            let limit_bytes = crate::heap_limit_bytes(mib << 20, 2) as usize;
            let tuning = Tuning { limit_bytes, ..tuning(0) };
            let estimated = tuning.scratch_bytes(&params(board, objective, Precision::Bits32, None)) as f64;
            let is_near =
                if measured > 0.0 { (0.9..1.4).contains(&(estimated / measured)) } else { estimated == 0.0 };
            assert!(
                is_near,
                "{board} {objective} within {mib} MiB: {estimated} bytes estimated, {measured} measured"
            );
        }
    }

    #[test]
    fn lanes_are_divided_if_blocks_do_not_fit() {
        for (board, objective, gib, sectors) in [
            ("4x4", "reach:64", 12, 1),
            ("4x4", "reach:64", 3, 4),
            ("4x4", "reach:128", 20, 8),
            ("4x4", "reach:128", 1, 8),
            ("4x4:..../..../..../xxxx", "reach:2048", 1, 1),
            ("4x3", "score", 1, 4),
        ] {
            let params = params(board, objective, Precision::Bits32, None);
            let split = tuning(gib).split(params.clone());
            assert_eq!(split.split().sectors(), sectors, "{board} {objective}, {gib} GiB");
            assert_eq!(params.to_builder().sectors(sectors).build().unwrap(), split);
        }
    }

    #[test]
    fn a_whole_4x3_is_split_by_its_memory() {
        for (precision, gib, large) in [
            (Precision::Bits32, 5, 5),
            (Precision::Bits32, 8, 4),
            (Precision::Bits64, 8, 5),
            (Precision::Bits64, 16, 4),
        ] {
            let params = params("4x3", "score", precision, None);
            let split = tuning(gib).split(params.clone());
            assert_eq!(
                (params.split().large(), split.split().large(), split.split().huge()),
                (5, large, params.split().huge()),
                "{gib} GiB"
            );
            assert_eq!(tuning(gib).split(split.clone()), split);
        }
        let small = params("3x3", "score", Precision::Bits32, None);
        assert_eq!(tuning(64).split(small.clone()), small);
    }
}
