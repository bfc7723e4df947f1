//! Tables that tasks share: transitions of classes, columns and index maps of lanes.
//!
//! All of them follow from the parameters. So they are made when first needed, kept while memory allows, and made again
//! after they were dropped.

mod lane_maps;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use exact2048_game::bitset::{self, BitSet};
use exact2048_game::class::{Class, ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::configs::Config;
use exact2048_game::lane::Step;
use exact2048_game::maps::ColumnMap;
use exact2048_game::patterns::{PatternId, Patterns};
use exact2048_game::rowset::{RowSet, Slot};
use exact2048_game::sequence::Column;
use exact2048_game::transitions::{Direction, Maker, Moves, Skeletons, Spawns, SymmetricRow, Transitions};
use exact2048_game::{Lane, Layer, Params, lane};
use exact2048_storage::StorageError;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::kernels::index_map::{self, IndexMap, MapList, Permutation};
use crate::memory::Memory;
use lane_maps::LaneMaps;

/// The tables of a run.
#[derive(Debug)]
pub struct Tables {
    /// Symmetries, masks, classes.
    pub space: Space,
    patterns: Patterns,
    memory: Arc<Memory>,
    lanes: FxHashMap<Lane, Mutex<Option<Arc<LaneTables>>>>,
    /// The columns in use, by lanes in the first sector. All sectors of a lane share them.
    columns: FxHashMap<Lane, Mutex<Weak<Columns>>>,
    classes: Mutex<FxHashMap<ClassId, Arc<ClassSlot>>>,
    /// A class with at most this many rows keeps the transitions of all its rows, and its blocks may hold all rows.
    dense_rows: usize,
    /// The steps between lanes that a move can make.
    steps: Vec<Step>,
}

#[derive(Debug, Default)]
struct ClassSlot {
    all_rows: OnceLock<Arc<RowSet>>,
    /// Transitions of all rows of the class.
    transitions: Mutex<Option<Arc<Transitions>>>,
}

/// Tables of one lane.
#[derive(Debug)]
pub struct LaneTables {
    /// The sequences of the lane.
    pub columns: Arc<Columns>,
    /// Index maps that the lane's tasks use.
    ///
    /// Tasks of one lane run one after the other, so the lock is free when a task takes it. The lock remembers a panic,
    /// because half-made maps must be dropped.
    maps: std::sync::Mutex<MapCache>,
}

/// Index maps from one lane to another, by number.
#[derive(Debug, Default)]
struct PatternMaps {
    numbers: FxHashMap<PatternId, u32>,
    maps: MapList,
    /// The number of maps, from the first on, that stay when the task ends.
    kept: usize,
}

impl PatternMaps {
    fn numbered(&self, numbers: &[u32]) -> Vec<IndexMap<'_>> {
        numbers.iter().map(|&number| self.maps.get(number as usize)).collect()
    }
}

/// Index maps by their lanes, permutations of the lane's own columns, and column sets by symmetries.
#[derive(Debug, Default)]
pub struct MapCache {
    lanes: FxHashMap<(Lane, Lane), PatternMaps>,
    permutations: FxHashMap<PatternId, Arc<Permutation>>,
    representatives: BTreeMap<Vec<PatternId>, Arc<Vec<u64>>>,
    /// The time at which a task last locked this cache.
    last_use: Option<Instant>,
}

impl MapCache {
    /// Bytes of the maps, permutations and column sets.
    fn heap_bytes(&self) -> usize {
        let maps = self.lanes.values().map(|maps| maps.maps.heap_bytes());
        let permutations = self.permutations.values().map(|permutation| permutation.heap_bytes());
        let columns = self.representatives.values().map(|columns| size_of_val(&***columns));
        maps.chain(permutations).chain(columns).sum()
    }

    /// At the end of a task, keeps the maps that it made if they fit, or drops them.
    ///
    /// Lanes have the same order in every layer. If not all maps fit, keeping the same ones for long saves more than
    /// replacing them in turn.
    fn settle(&mut self, fits: bool) {
        for PatternMaps { numbers, maps, kept } in self.lanes.values_mut() {
            if fits {
                *kept = maps.len();
            } else {
                maps.truncate(*kept);
                numbers.retain(|_, &mut number| (number as usize) < *kept);
            }
        }
    }
}

/// A row of a block that symmetries map to itself, with the columns that stand for their orbits.
#[derive(Debug)]
pub struct SymmetricColumns<'a> {
    /// The slot.
    pub slot: Slot,
    /// The effects of the symmetries on the columns.
    pub patterns: &'a [PatternId],
    /// The number of patterns of all symmetric rows before it.
    pub first_pattern: usize,
    /// The columns that stand for their orbits, one bit each.
    pub representatives: Arc<Vec<u64>>,
}

impl LaneTables {
    /// Locks the index maps of the lane's tasks for the duration of a task.
    pub fn maps(&self) -> std::sync::MutexGuard<'_, MapCache> {
        let mut maps = self.maps.lock().unwrap_or_else(|poisoned| {
            // Some maps may be half made.
            let mut maps = poisoned.into_inner();
            *maps = MapCache::default();
            self.maps.clear_poison();
            maps
        });
        maps.last_use = Some(Instant::now());
        maps
    }

    /// Words of a row of bits.
    pub fn words(&self) -> usize {
        self.columns.words()
    }

    /// Values of a row: its columns, and the padding of index maps.
    pub fn stride(&self) -> usize {
        index_map::stride(self.columns.len())
    }
}

impl Tables {
    /// Empty tables for a run.
    pub fn new(params: &Params, memory: Arc<Memory>, dense_rows: usize) -> Self {
        let lanes = lane::lanes(params);
        let in_first_sector = lanes.iter().map(|lane| lane.in_first_sector());
        Self {
            space: Space::new(params),
            patterns: Patterns::default(),
            columns: in_first_sector.map(|lane| (lane, Mutex::default())).collect(),
            lanes: lanes.into_iter().map(|lane| (lane, Mutex::new(None))).collect(),
            classes: Mutex::default(),
            memory,
            dense_rows,
            steps: Step::all(params),
        }
    }

    /// The lanes from which moves lead to a lane, with their steps.
    pub fn lanes_before(&self, lane: Lane) -> impl Iterator<Item = (Step, Lane)> + '_ {
        let before =
            move |&step: &Step| lane.before(step, self.params()).into_iter().map(move |lane| (step, lane));
        self.steps.iter().flat_map(before)
    }

    /// A class with at most this many rows keeps the transitions of all its rows, and its blocks may hold all rows.
    pub fn dense_rows(&self) -> usize {
        self.dense_rows
    }

    /// The parameters of the run.
    pub fn params(&self) -> &Params {
        self.space.params()
    }

    /// The class of a block; `None` if no skeleton fits it.
    pub fn class(&self, layer: Layer, lane: Lane) -> Option<&Class> {
        self.space.class(ClassId::of(layer, lane)?)
    }

    /// All rows of a class, if it is so small that blocks hold all of them. `None` if blocks hold only the rows that
    /// occur.
    pub fn all_rows(&self, class: &Class) -> Option<Arc<RowSet>> {
        if class.rows() > self.dense_rows {
            return None;
        }
        let slot = Arc::clone(self.lock_classes().entry(class.id()).or_default());
        Some(Arc::clone(slot.all_rows.get_or_init(|| Arc::new(RowSet::all(class.rows())))))
    }

    /// The transitions of the rows that a block of a class holds.
    ///
    /// They are a part of the kept transitions of the class, which are made once. For a class that keeps none, they are
    /// made for these rows alone.
    pub fn transitions(&self, class: &Class, rows: &Arc<RowSet>) -> Arc<Transitions> {
        let of = |rows: &Arc<RowSet>| Arc::new(Transitions::new(class.id(), Arc::clone(rows)));
        let Some(all) = self.all_rows(class) else { return of(rows) };
        let slot = Arc::clone(self.lock_classes().entry(class.id()).or_default());
        let mut kept = slot.transitions.lock();
        let of_all = kept.get_or_insert_with(|| of(&all));
        if rows.len() == all.len() {
            return Arc::clone(of_all);
        }
        Arc::new(Transitions::subset_of(of_all, Arc::clone(rows)))
    }

    /// Whether the class keeps the transitions of all its rows.
    pub fn keeps_transitions(&self, id: ClassId) -> bool {
        let Some(slot) = self.lock_classes().get(&id).cloned() else { return false };
        slot.transitions.lock().is_some()
    }

    /// Moves transitions that no task uses to scratch files until `enough` is true.
    pub fn spill_transitions(&self, enough: impl Fn() -> bool) -> Result<(), StorageError> {
        let slots: Vec<Arc<ClassSlot>> = self.lock_classes().values().cloned().collect();
        for slot in slots {
            if enough() {
                break;
            }
            // If the lock is held, a task wants the transitions now.
            if let Some(mut kept) = slot.transitions.try_lock()
                && let Some(kept) = &mut *kept
                && Arc::strong_count(kept) == 1
                && kept.heap_bytes() > 0
            {
                *kept = Arc::new(kept.stored_in(&mut &*self.memory)?);
            }
        }
        Ok(())
    }

    /// The configs of the rows of a block, in order.
    pub fn configs<'a>(&self, transitions: &'a Transitions) -> &'a [Config] {
        transitions.configs(self.maker())
    }

    /// The small tiles of the rows of a block.
    pub fn skeletons<'a>(&self, transitions: &'a Transitions) -> &'a Skeletons {
        transitions.skeletons(self.maker())
    }

    /// The effects of spawns on the rows of a block.
    pub fn spawns<'a>(&self, transitions: &'a Transitions) -> &'a Spawns {
        transitions.spawns(self.maker())
    }

    /// The effects of moves on the rows of a block.
    pub fn moves<'a>(&self, transitions: &'a Transitions) -> &'a Moves {
        transitions.moves(self.maker())
    }

    /// The moves for which `is_made` is true.
    pub fn select_moves(
        &self,
        transitions: &Transitions,
        is_made: impl Fn(Slot, Direction) -> bool,
    ) -> Moves {
        transitions.select_moves(self.maker(), is_made)
    }

    fn maker(&self) -> Maker<'_> {
        Maker { space: &self.space, patterns: &self.patterns }
    }

    /// Bytes of the kept index maps, without those of lanes that a task works in.
    pub fn map_bytes(&self) -> usize {
        let known = self.lanes.values().filter_map(|slot| slot.try_lock()?.clone());
        known.filter_map(|lane| Some(lane.maps.try_lock().ok()?.heap_bytes())).sum()
    }

    /// Drops index maps of lanes that no task works in until `enough` is true, and lastly drops the data of shapes.
    ///
    /// Tasks make them again if needed. Lanes recur in about the same order in every layer. So the maps used last are
    /// not needed for the longest time.
    pub fn forget_maps(&self, enough: impl Fn() -> bool) {
        let known = self.lanes.values().filter_map(|slot| slot.try_lock()?.clone());
        let last_use = |lane: Arc<LaneTables>| {
            let last_use = lane.maps.try_lock().ok()?.last_use;
            Some((last_use, lane))
        };
        let mut lanes: Vec<_> = known.filter_map(last_use).collect();
        lanes.sort_unstable_by_key(|&(last_use, _)| Reverse(last_use));
        for (_, lane) in lanes {
            if enough() {
                return;
            }
            if let Ok(mut maps) = lane.maps.try_lock() {
                *maps = MapCache::default();
            }
        }
        if !enough() {
            self.patterns.clear_shapes();
        }
    }

    /// Drops the data of shapes if it takes much of the memory.
    ///
    /// The data keeps the shapes of finished lanes, so it only grows. Making the data of the current lanes again takes
    /// a small part of the time of their layers.
    pub fn forget_many_shapes(&self) {
        if self.patterns.shape_bytes() > self.memory.limit_bytes() / MANY_SHAPES {
            self.patterns.clear_shapes();
        }
    }

    /// The tables of a lane; `None` if the run has no such lane.
    pub fn lane(&self, lane: Lane) -> Option<Arc<LaneTables>> {
        let mut slot = self.lanes.get(&lane)?.lock();
        Some(Arc::clone(slot.get_or_insert_with(|| Arc::new(self.new_lane(lane)))))
    }

    /// The tables of a lane, without columns if the run has no such lane. Only won games lead to that lane.
    pub fn lane_or_empty(&self, lane: Lane) -> Arc<LaneTables> {
        self.lane(lane).unwrap_or_else(|| Arc::new(self.new_lane(lane)))
    }

    fn new_lane(&self, lane: Lane) -> LaneTables {
        LaneTables { columns: self.columns(lane), maps: std::sync::Mutex::default() }
    }

    fn columns(&self, lane: Lane) -> Arc<Columns> {
        let new = || Arc::new(Columns::new(self.params(), lane));
        let Some(slot) = self.columns.get(&lane.in_first_sector()) else { return new() };
        let mut slot = slot.lock();
        slot.upgrade().unwrap_or_else(|| {
            let columns = new();
            *slot = Arc::downgrade(&columns);
            columns
        })
    }

    /// Drops the tables of a lane. A task makes them again if needed.
    pub fn release_lane(&self, lane: Lane) {
        if let Some(slot) = self.lanes.get(&lane) {
            *slot.lock() = None;
        }
    }

    /// The index maps from one lane to another, in the cache of a task's lane.
    pub fn maps<'a>(
        &'a self,
        cache: &'a mut MapCache,
        source: &'a LaneTables,
        target: &'a LaneTables,
    ) -> LaneMaps<'a> {
        let lanes = (source.columns.lane(), target.columns.lane());
        LaneMaps { tables: self, source, target, maps: cache.lanes.entry(lanes).or_default() }
    }

    /// Whether index maps leave enough memory for later blocks, whose fresh pages cost more than making maps again.
    pub fn maps_leave_enough(&self) -> bool {
        self.memory.fits(self.memory.limit_bytes() / LEFT_BY_MAPS)
    }

    /// At the end of a task, keeps the index maps that it made if they leave enough memory.
    pub fn settle_maps(&self, cache: &mut MapCache) {
        cache.settle(self.maps_leave_enough());
    }

    /// The effects of patterns of spawns or symmetries on the columns of a lane, in order.
    pub fn permutations(
        &self,
        cache: &mut MapCache,
        lane: &LaneTables,
        patterns: &[PatternId],
    ) -> Vec<Arc<Permutation>> {
        let columns = &lane.columns;
        let between =
            ColumnMap { params: self.params(), patterns: &self.patterns, source: columns, target: columns };
        let permutation = |&pattern: &PatternId| {
            let made = cache.permutations.entry(pattern).or_insert_with(|| {
                let known = self.patterns.known([pattern]).pop().flatten();
                Arc::new(Permutation::new(&between, known.as_deref()))
            });
            Arc::clone(made)
        };
        patterns.iter().map(permutation).collect()
    }

    /// The columns that stand for their orbits under some symmetries, as bits. No symmetry maps them to a smaller
    /// column.
    fn representatives(
        &self,
        cache: &mut MapCache,
        lane: &LaneTables,
        patterns: &[PatternId],
    ) -> Arc<Vec<u64>> {
        if let Some(found) = cache.representatives.get(patterns) {
            return Arc::clone(found);
        }
        let mut bits = BitSet::<Column>::below(lane.columns.len()).into_words();
        for permutation in self.permutations(cache, lane, patterns) {
            if let Some(map) = permutation.map() {
                let columns = map.leads_to()[..lane.columns.len()].iter().enumerate();
                for (column, _) in columns.filter(|&(column, &to)| (to as usize) < column) {
                    bitset::clear(&mut bits, column..column + 1);
                }
            }
        }
        let bits = Arc::new(bits);
        cache.representatives.insert(patterns.to_vec(), Arc::clone(&bits));
        bits
    }

    /// The symmetric rows that occur, ascending.
    pub fn symmetric_rows<'a>(
        &self,
        cache: &mut MapCache,
        lane: &LaneTables,
        transitions: &'a Transitions,
        occurs: impl Fn(Slot) -> bool,
    ) -> Vec<SymmetricColumns<'a>> {
        let mut patterns_before = 0;
        let symmetric = transitions.symmetric(self.maker());
        let rows = symmetric.iter().filter(|row| occurs(row.slot)).map(|row: &SymmetricRow| {
            let first_pattern = patterns_before;
            patterns_before += row.patterns.len();
            let representatives = self.representatives(cache, lane, &row.patterns);
            SymmetricColumns { slot: row.slot, patterns: &row.patterns, first_pattern, representatives }
        });
        rows.collect()
    }

    fn lock_classes(&self) -> MutexGuard<'_, FxHashMap<ClassId, Arc<ClassSlot>>> {
        self.classes.lock()
    }
}

/// Maps are kept while one part in this many of the memory limit stays free.
const LEFT_BY_MAPS: usize = 8;

/// The data of shapes takes much memory if it exceeds one part in this many of the limit.
const MANY_SHAPES: usize = 16;

#[cfg(test)]
mod tests {
    use exact2048_game::pattern::Pattern;
    use exact2048_game::slide::TileSource;

    use super::*;
    use crate::tuning::Heap;

    fn tables() -> Tables {
        tables_within(usize::MAX)
    }

    fn tables_within(limit_bytes: usize) -> Tables {
        tables_of(&Params::usual("3x2", "score").large(3).build().unwrap(), limit_bytes)
    }

    fn tables_of(params: &Params, limit_bytes: usize) -> Tables {
        Tables::new(
            params,
            Arc::new(Memory::new(limit_bytes, Heap::of(|| 0), std::env::temp_dir().into())),
            0,
        )
    }

    #[test]
    fn the_sectors_of_a_lane_share_its_columns() {
        let params = Params::usual("3x2", "score").large(3).sectors(2).build().unwrap();
        let tables = tables_of(&params, usize::MAX);
        let [first, second] = [0, 1].map(|sector| {
            let lane = Lane { sector, ..Lane::new(2, 24) };
            tables.lane(lane).unwrap()
        });
        assert!(!first.columns.is_empty() && Arc::ptr_eq(&first.columns, &second.columns));
    }

    #[test]
    fn maps_that_a_task_made_stay_if_they_fit() {
        let tables = tables();
        let ids = tables.patterns.intern(&[1, 2, 3].map(|births| {
            let mut pattern = Pattern::empty();
            (0..births).for_each(|item| pattern.set_item(item, TileSource::Born));
            pattern
        }));
        let lane = tables.lane(Lane::new(0, 0)).unwrap();
        let mut cache = lane.maps();
        let mut number_after = |patterns: &[PatternId], fits: bool| {
            tables.maps(&mut cache, &lane, &lane).for_each_some(patterns, |which, maps| {
                assert_eq!((which, maps.len()), (0..patterns.len(), patterns.len()));
            });
            cache.settle(fits);
            let PatternMaps { numbers, maps, .. } = cache.lanes.values().next().unwrap();
            assert_eq!(numbers.len(), maps.len());
            maps.len()
        };
        assert_eq!(number_after(&ids[..1], true), 1);
        assert_eq!(number_after(&ids, false), 1);
        assert_eq!(number_after(&ids[1..], true), 3);
        assert_eq!(number_after(&ids, false), 3);
    }

    #[test]
    fn the_data_of_shapes_stays_while_it_takes_little() {
        for (limit_bytes, stays) in [(64 << 20, true), (64, false)] {
            let tables = tables_within(limit_bytes);
            let mut turned = Pattern::empty();
            (0..2).for_each(|item| turned.set_item(item, TileSource::Plain(1 - item as u8)));
            let pattern = tables.patterns.intern(&[turned])[0];
            let lane = lane::lanes(tables.params()).into_iter().find(|lane| lane.k == 2).unwrap();
            let lane = tables.lane(lane).unwrap();
            tables.maps(&mut lane.maps(), &lane, &lane).for_each_some(&[pattern], |_, _| {});
            let known = tables.patterns.shape_bytes();
            assert!(known > 0);
            tables.forget_many_shapes();
            assert_eq!(tables.patterns.shape_bytes(), if stays { known } else { 0 });
        }
    }

    #[test]
    fn maps_used_last_are_dropped_first() {
        let tables = tables();
        let lanes = lane::lanes(tables.params())[..4].to_vec().into_iter();
        let lanes: Vec<Arc<LaneTables>> = lanes.filter_map(|lane| tables.lane(lane)).collect();
        let with_maps = || lanes.iter().filter(|lane| !lane.maps.lock().unwrap().lanes.is_empty()).count();
        for lane in &lanes {
            let mut cache = lane.maps();
            tables.maps(&mut cache, lane, lane).for_each_some(&[PatternId::IDENTITY], |_, _| {});
        }
        assert_eq!(with_maps(), 4);
        let in_use = lanes[3].maps();
        tables.forget_maps(|| lanes[1].maps.lock().unwrap().lanes.is_empty());
        drop(in_use);
        let left: Vec<bool> = lanes.iter().map(|lane| !lane.maps().lanes.is_empty()).collect();
        assert_eq!(left, [true, false, false, true], "the last one is in use");
        tables.forget_maps(|| false);
        assert_eq!(with_maps(), 0);
    }
}
