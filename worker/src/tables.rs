//! Tables that tasks share: transitions of classes, columns and index maps of lanes.
//!
//! All of them follow from the parameters, so they are made when first needed, kept while the
//! memory budget allows, and made again after they were dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

use exact2048_game::class::{Class, ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::maps::{IndexMap, PatternId, Patterns};
use exact2048_game::rowset::RowSet;
use exact2048_game::transitions::Transitions;
use exact2048_game::{Lane, Layer, Params, lane};
use rustc_hash::FxHashMap;

use exact2048_storage::StorageError;

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
    /// Blocks of classes with at most so many rows hold all of them.
    dense_rows: usize,
}

#[derive(Debug, Default)]
struct ClassSlot {
    all_rows: OnceLock<Arc<RowSet>>,
    transitions: Mutex<Option<ClassTransitions>>,
}

/// Transitions of all rows of a class.
#[derive(Debug)]
struct ClassTransitions {
    shared: Arc<Transitions>,
    on_heap: bool,
}

/// What is known of one lane.
#[derive(Debug)]
pub struct LaneTables {
    /// The sequences of the lane.
    pub columns: Columns,
    /// Index maps that the lane's tasks use. Tasks of one lane run one after the other, so that the
    /// lock is free whenever a task takes it.
    maps: Mutex<MapCache>,
}

/// Index maps from one lane to another.
type PatternMaps = FxHashMap<PatternId, IndexMap>;

/// Index maps by their lanes, and column sets by symmetries.
#[derive(Debug, Default)]
pub struct MapCache {
    lanes: FxHashMap<(Lane, Lane), PatternMaps>,
    representatives: BTreeMap<Vec<PatternId>, Arc<Vec<u64>>>,
}

impl LaneTables {
    /// The index maps of the lane's tasks, for the length of a task.
    pub fn maps(&self) -> MutexGuard<'_, MapCache> {
        self.maps.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Words of a row of bits.
    pub fn words(&self) -> usize {
        self.columns.words()
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

    /// Blocks of classes with at most so many rows hold all of them.
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

    /// The transitions of the rows that a block of a class holds: of all its rows, made once and kept, or
    /// of the given ones.
    pub fn transitions(&self, class: &Class, rows: &Arc<RowSet>) -> Arc<Transitions> {
        let make = || Arc::new(Transitions::new(&self.space, &self.patterns, class, Arc::clone(rows)));
        if self.all_rows(class).is_none() {
            return make();
        }
        let slot = Arc::clone(self.lock_classes().entry(class.id()).or_default());
        let mut kept = slot.transitions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kept = kept.get_or_insert_with(|| ClassTransitions { shared: make(), on_heap: true });
        Arc::clone(&kept.shared)
    }

    /// The transitions of all rows of a class, where they were made already.
    pub fn kept_transitions(&self, id: ClassId) -> Option<Arc<Transitions>> {
        let slot = Arc::clone(self.lock_classes().get(&id)?);
        let kept = slot.transitions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.as_ref().map(|kept| Arc::clone(&kept.shared))
    }

    /// Moves transitions that no task is using to scratch files until `enough` says so.
    pub fn spill_transitions(&self, enough: impl Fn() -> bool) -> Result<(), StorageError> {
        let slots: Vec<Arc<ClassSlot>> = self.lock_classes().values().cloned().collect();
        for slot in slots {
            if enough() {
                break;
            }
            // What is locked is being made.
            if let Some(mut kept) = free_now(slot.transitions.try_lock())
                && let Some(kept) = &mut *kept
                && kept.on_heap
                && Arc::strong_count(&kept.shared) == 1
            {
                let shared = Arc::new(kept.shared.stored_in(&mut &*self.memory)?);
                *kept = ClassTransitions { shared, on_heap: false };
            }
        }
        Ok(())
    }

    /// Drops the index maps of lanes that no task is working in; they are made again where they are needed.
    pub fn forget_maps(&self) {
        for slot in self.lanes.values() {
            if let Some(lane) = free_now(slot.try_lock())
                && let Some(lane) = &*lane
                && let Some(mut maps) = free_now(lane.maps.try_lock())
            {
                *maps = MapCache::default();
            }
        }
        self.patterns.forget_shapes();
    }

    /// The tables of a lane; `None` where the run has no such lane.
    pub fn lane(&self, lane: Lane) -> Option<Arc<LaneTables>> {
        let mut slot = self.lanes.get(&lane)?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Some(Arc::clone(slot.get_or_insert_with(|| Arc::new(self.new_lane(lane)))))
    }

    /// The tables of a lane, without columns where the run has no such lane: only won games lead
    /// there.
    pub fn lane_or_empty(&self, lane: Lane) -> Arc<LaneTables> {
        self.lane(lane).unwrap_or_else(|| Arc::new(self.new_lane(lane)))
    }

    fn new_lane(&self, lane: Lane) -> LaneTables {
        LaneTables { columns: Columns::new(self.params(), lane), maps: Mutex::default() }
    }

    /// Drops the tables of a lane until they are asked for again.
    pub fn release_lane(&self, lane: Lane) {
        if let Some(slot) = self.lanes.get(&lane) {
            *slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
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

    /// The columns that stand for their orbits under some symmetries, as bits: those that no
    /// symmetry maps to a smaller column.
    pub fn representatives(
        &self,
        cache: &mut MapCache,
        lane: &LaneTables,
        patterns: &[PatternId],
    ) -> Arc<Vec<u64>> {
        if let Some(found) = cache.representatives.get(patterns) {
            return Arc::clone(found);
        }
        let mut bits = vec![0u64; lane.words()];
        for column in 0..lane.columns.len() {
            bits[column / 64] |= 1 << (column % 64);
        }
        for &pattern in patterns {
            if let IndexMap::Dense(map) = self.maps(cache, lane, lane).get(pattern, &[]) {
                let columns = map.leads_to()[..lane.columns.len()].iter().enumerate();
                for (column, _) in columns.filter(|&(column, &to)| (to as usize) < column) {
                    bits[column / 64] &= !(1 << (column % 64));
                }
            }
        }
        let bits = Arc::new(bits);
        cache.representatives.insert(patterns.to_vec(), Arc::clone(&bits));
        bits
    }

    fn lock_classes(&self) -> MutexGuard<'_, FxHashMap<ClassId, Arc<ClassSlot>>> {
        self.classes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The index maps from one lane to another, made as they are asked for.
pub struct LaneMaps<'a> {
    tables: &'a Tables,
    source: &'a LaneTables,
    target: &'a LaneTables,
    maps: &'a mut PatternMaps,
}

impl LaneMaps<'_> {
    /// The map of a pattern; it covers the `wanted` columns of the source, one bit each, and perhaps more.
    pub fn get(&mut self, pattern: PatternId, wanted: &[u64]) -> &IndexMap {
        if !self.maps.contains_key(&pattern) {
            if !self.tables.memory.fits(0) {
                self.maps.clear();
            }
            self.make(pattern);
        }
        let (source, target) = (&self.source.columns, &self.target.columns);
        let tables = self.tables;
        match self.maps.get_mut(&pattern) {
            Some(map) => {
                map.extend(tables.params(), &tables.patterns, pattern, source, target, wanted);
                map
            }
            None => unreachable!("made just now"),
        }
    }

    /// The maps of several patterns in which every column takes part.
    pub fn get_all(&mut self, patterns: &[PatternId]) -> Vec<&IndexMap> {
        for &pattern in patterns {
            if !self.maps.contains_key(&pattern) {
                self.make(pattern);
            }
        }
        patterns.iter().map(|pattern| &self.maps[pattern]).collect()
    }

    fn make(&mut self, pattern: PatternId) {
        let (source, target) = (&self.source.columns, &self.target.columns);
        let map = IndexMap::new(self.tables.params(), &self.tables.patterns, pattern, source, target);
        self.maps.insert(pattern, map);
    }
}

/// What a lock guards, where nobody holds it.
fn free_now<T>(lock: Result<T, TryLockError<T>>) -> Option<T> {
    match lock {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
