//! Tables that tasks share: transitions of classes, columns and index maps of lanes.
//!
//! All of them follow from the parameters, so they are made when first needed, kept while the
//! memory budget allows, and made again after they were dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::maps::{IndexMap, PatternId, Patterns};
use exact2048_game::rowset::RowSet;
use exact2048_game::transitions::Transitions;
use exact2048_game::{Lane, Layer, Params, lane};
use rustc_hash::FxHashMap;

use crate::memory::{Charge, Memory};

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
    transitions: OnceLock<(Transitions, Charge)>,
}

/// Transitions, kept alive while a task or a block uses them.
#[derive(Debug, Clone)]
pub struct SharedTransitions(Arc<ClassSlot>);

impl std::ops::Deref for SharedTransitions {
    type Target = Transitions;

    fn deref(&self) -> &Transitions {
        match self.0.transitions.get() {
            Some((transitions, _)) => transitions,
            None => unreachable!("a slot is shared only once its transitions are made"),
        }
    }
}

/// What is known of one lane.
#[derive(Debug)]
pub struct LaneTables {
    /// The sequences of the lane.
    pub columns: Columns,
    /// Index maps that the lane's tasks use. Tasks of one lane run one after the other, so that the
    /// lock is free whenever a task takes it.
    maps: Mutex<MapCache>,
    _charge: Charge,
}

/// Index maps from one lane to another.
type PatternMaps = FxHashMap<PatternId, (IndexMap, Charge)>;

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

    /// The parameters of the run.
    pub fn params(&self) -> &Params {
        self.space.params()
    }

    /// The class of a block; `None` where no skeleton fits it.
    pub fn class(&self, layer: Layer, lane: Lane) -> Option<ClassId> {
        let id = ClassId::of(layer, lane)?;
        self.space.class(id).map(|_| id)
    }

    /// All rows of a class, where it is small enough that blocks hold all of them whether or not they
    /// occur. `None` where blocks hold only the rows that do.
    pub fn all_rows(&self, id: ClassId) -> Option<Arc<RowSet>> {
        let class = self.space.class(id).filter(|class| class.rows() <= self.dense_rows)?;
        let slot = Arc::clone(self.lock_classes().entry(id).or_default());
        Some(Arc::clone(slot.all_rows.get_or_init(|| Arc::new(RowSet::all(class.rows())))))
    }

    /// The transitions of the rows that a block of a class holds: of all its rows, made once and kept, or
    /// of the given ones.
    pub fn transitions(&self, id: ClassId, rows: &Arc<RowSet>) -> Option<SharedTransitions> {
        let class = self.space.class(id)?;
        let slot = match self.all_rows(id) {
            Some(_) => Arc::clone(self.lock_classes().entry(id).or_default()),
            None => Arc::default(),
        };
        slot.transitions.get_or_init(|| {
            let transitions = Transitions::new(&self.space, &self.patterns, class, Arc::clone(rows));
            let bytes = transitions.bytes();
            self.make_room(bytes, id);
            (transitions, self.memory.charge(bytes))
        });
        Some(SharedTransitions(slot))
    }

    /// Drops transitions that no task uses while the budget is exceeded.
    fn make_room(&self, bytes: usize, keep: ClassId) {
        if !self.memory.fits(bytes) {
            self.lock_classes().retain(|&id, slot| id == keep || Arc::strong_count(slot) > 1);
        }
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
        let columns = Columns::new(self.params(), lane);
        let charge = self.memory.charge(columns.bytes());
        LaneTables { columns, maps: Mutex::default(), _charge: charge }
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
        if !self.memory.fits(self.patterns.shape_bytes()) {
            cache.lanes.clear();
            self.patterns.forget_shapes();
        }
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
            self.make(pattern);
        }
        let (source, target) = (&self.source.columns, &self.target.columns);
        let tables = self.tables;
        match self.maps.get_mut(&pattern) {
            Some((map, charge)) => {
                map.extend(tables.params(), &tables.patterns, pattern, source, target, wanted);
                charge.resize(map.bytes() + MAP_BYTES);
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
        patterns.iter().map(|pattern| &self.maps[pattern].0).collect()
    }

    fn make(&mut self, pattern: PatternId) {
        let (source, target) = (&self.source.columns, &self.target.columns);
        let map = IndexMap::new(self.tables.params(), &self.tables.patterns, pattern, source, target);
        let charge = self.tables.memory.charge(map.bytes() + MAP_BYTES);
        self.maps.insert(pattern, (map, charge));
    }
}

/// What an entry of the cache takes beside the map's own bytes.
const MAP_BYTES: usize = 96;
