//! Tables that tasks share: transitions of classes, columns and index maps of lanes.
//!
//! All of them follow from the parameters, so they are made when first needed, kept while the
//! memory budget allows, and made again after they were dropped.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use exact2048_game::bitset::{self, BitSet};
use exact2048_game::class::{Class, ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::maps::ColumnMap;
use exact2048_game::patterns::{PatternId, Patterns};
use exact2048_game::rowset::{RowSet, Slot};
use exact2048_game::sequence::Column;
use exact2048_game::skeleton::Config;
use exact2048_game::transitions::{Direction, Maker, Moves, Skeletons, Spawns, SymmetricRow, Transitions};
use exact2048_game::{Lane, Layer, Params, lane};
use exact2048_storage::StorageError;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::kernels::index_map::{self, IndexMap, MapList, Permutation};
use crate::memory::Memory;

/// The tables of a run.
#[derive(Debug)]
pub struct Tables {
    /// Symmetries, masks, classes.
    pub space: Space,
    patterns: Patterns,
    memory: Arc<Memory>,
    lanes: FxHashMap<Lane, Mutex<Option<Arc<LaneTables>>>>,
    classes: Mutex<FxHashMap<ClassId, Arc<ClassSlot>>>,
    /// A class with at most this many rows keeps the transitions of all of them, and its blocks may hold all of them.
    dense_rows: usize,
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
    pub columns: Columns,
    /// Index maps that the lane's tasks use. Tasks of one lane run one after the other, so that the
    /// lock is free whenever a task takes it. A lock that remembers a panic: maps that are half made must go.
    maps: std::sync::Mutex<MapCache>,
}

/// Index maps from one lane to another, by number.
#[derive(Debug, Default)]
struct PatternMaps {
    numbers: FxHashMap<PatternId, u32>,
    maps: MapList,
    /// How many of them, from the first on, stay when the task ends.
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
    /// When a task last took them.
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

    /// Keeps the maps that a task made, at its end, or drops them if there is no `room`.
    ///
    /// Lanes have the same order in every layer. So if not all maps fit, it saves more to keep the same ones for long
    /// than to replace them in turn.
    fn settle(&mut self, room: bool) {
        for PatternMaps { numbers, maps, kept } in self.lanes.values_mut() {
            if room {
                *kept = maps.len();
            } else {
                maps.truncate(*kept);
                numbers.retain(|_, &mut number| (number as usize) < *kept);
            }
        }
    }
}

/// A row of a block that symmetries map to itself, and which of its columns stand for their orbits.
#[derive(Debug)]
pub struct SymmetricColumns<'a> {
    /// The slot.
    pub slot: Slot,
    /// The effects of the symmetries on the columns.
    pub patterns: &'a [PatternId],
    /// How many patterns the symmetric rows before it have, all together.
    pub first_pattern: usize,
    /// Which columns stand for their orbits, one bit each.
    pub representatives: Arc<Vec<u64>>,
}

impl LaneTables {
    /// Locks the index maps of the lane's tasks, for the length of a task.
    pub fn maps(&self) -> std::sync::MutexGuard<'_, MapCache> {
        let mut maps = self.maps.lock().unwrap_or_else(|poisoned| {
            // Maps may be half made.
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

    /// Values of a row: its columns, and the padding that index maps may lead to.
    pub fn stride(&self) -> usize {
        index_map::stride(self.columns.len())
    }
}

impl Tables {
    /// Empty tables for a run.
    pub fn new(params: &Params, memory: Arc<Memory>, dense_rows: usize) -> Self {
        Self {
            space: Space::new(params),
            patterns: Patterns::default(),
            lanes: lane::lanes(params).into_iter().map(|lane| (lane, Mutex::new(None))).collect(),
            classes: Mutex::default(),
            memory,
            dense_rows,
        }
    }

    /// A class with at most this many rows keeps the transitions of all of them, and its blocks may hold all of them.
    pub fn dense_rows(&self) -> usize {
        self.dense_rows
    }

    /// The parameters of the run.
    pub fn params(&self) -> &Params {
        self.space.params()
    }

    /// The class of a block; `None` where no skeleton fits it.
    pub fn class(&self, layer: Layer, lane: Lane) -> Option<&Class> {
        self.space.class(ClassId::of(layer, lane)?)
    }

    /// All rows of a class, where it is small enough that blocks hold all of them whether or not they
    /// occur. `None` where blocks hold only the rows that do.
    pub fn all_rows(&self, class: &Class) -> Option<Arc<RowSet>> {
        if class.rows() > self.dense_rows {
            return None;
        }
        let slot = Arc::clone(self.lock_classes().entry(class.id()).or_default());
        Some(Arc::clone(slot.all_rows.get_or_init(|| Arc::new(RowSet::all(class.rows())))))
    }

    /// The transitions of the rows that a block of a class holds. Of a class that keeps the transitions of all its
    /// rows, they are taken from those, which are made once; else they are made for these rows alone.
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

    /// Whether the transitions of all rows of a class are kept.
    pub fn keeps_transitions(&self, id: ClassId) -> bool {
        let Some(slot) = self.lock_classes().get(&id).cloned() else { return false };
        slot.transitions.lock().is_some()
    }

    /// Moves transitions that no task is using to scratch files until `enough` says so.
    pub fn spill_transitions(&self, enough: impl Fn() -> bool) -> Result<(), StorageError> {
        let slots: Vec<Arc<ClassSlot>> = self.lock_classes().values().cloned().collect();
        for slot in slots {
            if enough() {
                break;
            }
            // A lock that is held means that a task wants the transitions now.
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

    /// Those of the moves that `is_made` says.
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

    /// Bytes of the index maps that are kept, but for those of lanes that a task is working in.
    pub fn map_bytes(&self) -> usize {
        let known = self.lanes.values().filter_map(|slot| slot.try_lock()?.clone());
        known.filter_map(|lane| Some(lane.maps.try_lock().ok()?.heap_bytes())).sum()
    }

    /// Drops index maps of lanes that no task is working in until `enough` says so, and at last the known shapes.
    ///
    /// All are made again where they are needed. Lanes have about the same order in every layer, so the maps that were
    /// used last are not needed for the longest time.
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

    /// Drops the known shapes if they take much of the memory.
    ///
    /// They only grow, by shapes of finished lanes. To make the shapes of the lanes at work again takes a small part of
    /// the time of their layers.
    pub fn forget_many_shapes(&self) {
        if self.patterns.shape_bytes() > self.memory.limit_bytes() / MANY_SHAPES {
            self.patterns.clear_shapes();
        }
    }

    /// The tables of a lane; `None` where the run has no such lane.
    pub fn lane(&self, lane: Lane) -> Option<Arc<LaneTables>> {
        let mut slot = self.lanes.get(&lane)?.lock();
        Some(Arc::clone(slot.get_or_insert_with(|| Arc::new(self.new_lane(lane)))))
    }

    /// The tables of a lane, without columns where the run has no such lane: only won games lead
    /// there.
    pub fn lane_or_empty(&self, lane: Lane) -> Arc<LaneTables> {
        self.lane(lane).unwrap_or_else(|| Arc::new(self.new_lane(lane)))
    }

    fn new_lane(&self, lane: Lane) -> LaneTables {
        LaneTables { columns: Columns::new(self.params(), lane), maps: std::sync::Mutex::default() }
    }

    /// Drops the tables of a lane until they are asked for again.
    pub fn release_lane(&self, lane: Lane) {
        if let Some(slot) = self.lanes.get(&lane) {
            *slot.lock() = None;
        }
    }

    /// The index maps from one lane to another, from the cache of the lane whose task asks.
    pub fn maps<'a>(
        &'a self,
        cache: &'a mut MapCache,
        source: &'a LaneTables,
        target: &'a LaneTables,
    ) -> LaneMaps<'a> {
        let lanes = (source.columns.lane(), target.columns.lane());
        LaneMaps { tables: self, source, target, maps: cache.lanes.entry(lanes).or_default() }
    }

    /// Whether index maps leave enough memory for the blocks to come: fresh pages for blocks cost more than making maps
    /// again.
    pub fn maps_leave_enough(&self) -> bool {
        self.memory.fits(self.memory.limit_bytes() / LEFT_BY_MAPS)
    }

    /// At the end of a task, keeps the index maps that it made where they leave enough memory.
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

    /// The columns that stand for their orbits under some symmetries, as bits: those that no
    /// symmetry maps to a smaller column.
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

    /// The symmetric rows among those that occur, ascending.
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

/// The index maps from one lane to another, made as they are asked for.
pub struct LaneMaps<'a> {
    tables: &'a Tables,
    source: &'a LaneTables,
    target: &'a LaneTables,
    maps: &'a mut PatternMaps,
}

/// Maps are kept as long as one part in this many of the memory limit stays free.
const LEFT_BY_MAPS: usize = 8;

/// Of more than one part in this many of the memory limit, what is known of shapes takes much.
const MANY_SHAPES: usize = 16;

/// Maps are made side by side up to one part in this many of the memory limit, before it is checked whether memory is
/// short.
const MADE_AT_ONCE: usize = 32;

impl LaneMaps<'_> {
    /// Calls `apply` with the maps of patterns, in order, once with all of them.
    ///
    /// If memory is short, calls it several times, each time with as many as fit. The first argument is their range.
    pub fn for_each_some(
        &mut self,
        patterns: &[PatternId],
        mut apply: impl FnMut(Range<usize>, &[IndexMap<'_>]),
    ) {
        let mut next = 0;
        while next < patterns.len() {
            if !self.tables.memory.fits(0) && !self.has(patterns[next]) {
                *self.maps = PatternMaps::default();
            }
            let numbers = self.numbers(&patterns[next..], || !self.tables.memory.fits(0));
            let maps = self.maps.numbered(&numbers);
            apply(next..next + maps.len(), &maps);
            next += maps.len();
        }
    }

    fn has(&self, pattern: PatternId) -> bool {
        self.maps.numbers.contains_key(&pattern)
    }

    /// The numbers of the maps of patterns, which are made if they are missing; only of the first patterns if `enough`
    /// says so.
    fn numbers(&mut self, patterns: &[PatternId], enough: impl Fn() -> bool) -> Vec<u32> {
        let at_once =
            self.tables.memory.limit_bytes() / MADE_AT_ONCE / (4 * self.source.columns.len()).max(1);
        let (mut numbers, mut unmade) = (Vec::with_capacity(patterns.len()), Vec::new());
        for &pattern in patterns {
            let next = (self.maps.maps.len() + unmade.len()) as u32;
            let number = *self.maps.numbers.entry(pattern).or_insert(next);
            if number == next {
                unmade.push(pattern);
            }
            numbers.push(number);
            if unmade.len() > at_once {
                self.make(&mut unmade);
                if enough() {
                    break;
                }
            }
        }
        self.make(&mut unmade);
        numbers
    }

    fn make(&mut self, unmade: &mut Vec<PatternId>) {
        if unmade.is_empty() {
            return;
        }
        let (source, target) = (&self.source.columns, &self.target.columns);
        let patterns = &self.tables.patterns;
        let between = ColumnMap { params: self.tables.params(), patterns, source, target };
        self.maps.maps.make(&between, &patterns.known(unmade.drain(..)));
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::pattern::Pattern;
    use exact2048_game::slide::TileSource;

    use super::*;
    use crate::Heap;

    fn tables() -> Tables {
        tables_within(usize::MAX)
    }

    fn tables_within(limit_bytes: usize) -> Tables {
        let params = Params::usual("3x2", "score").large(3).build().unwrap();
        Tables::new(
            &params,
            Arc::new(Memory::new(limit_bytes, Heap::of(|| 0), std::env::temp_dir().into())),
            0,
        )
    }

    #[test]
    fn maps_that_a_task_made_stay_where_there_is_room() {
        let tables = tables();
        let ids = tables.patterns.intern(&[1, 2, 3].map(|births| {
            let mut pattern = Pattern::empty();
            (0..births).for_each(|item| pattern.set_item(item, TileSource::Born));
            pattern
        }));
        let lane = tables.lane(Lane::new(0, 0)).unwrap();
        let mut cache = lane.maps();
        let mut number_after = |patterns: &[PatternId], room: bool| {
            tables.maps(&mut cache, &lane, &lane).for_each_some(patterns, |which, maps| {
                assert_eq!((which, maps.len()), (0..patterns.len(), patterns.len()));
            });
            cache.settle(room);
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
    fn what_is_known_of_shapes_stays_as_long_as_it_takes_little() {
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
    fn maps_that_were_used_last_are_dropped_first() {
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
