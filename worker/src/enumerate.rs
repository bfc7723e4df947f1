//! Enumeration of one block: its states from the spawns of earlier afterstates, then its
//! afterstates from the moves of its layer's states.

use std::sync::{Arc, OnceLock};

use exact2048_game::class::ClassId;
use exact2048_game::lane::Step;
use exact2048_game::rowset::{RowSet, set};
use exact2048_game::transitions::{MoveGroup, Transitions};
use exact2048_game::{Lane, Layer, rules};
use exact2048_storage::ShardKind;

use crate::bits::{self, BitMatrix};
use crate::blocks::ReachBlock;
use crate::payload::Parts;
use crate::tables::{LaneTables, MapCache, SharedTransitions};
use crate::{Worker, WorkerError};

/// What enumerating a block found, up to symmetry.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct BlockCounts {
    /// States of the block.
    pub states: u64,
    /// Afterstates of the block.
    pub afterstates: u64,
}

/// A block while it is worked on.
struct Place<'a> {
    layer: Layer,
    lane: Lane,
    class: ClassId,
    tables: &'a LaneTables,
}

impl<V: crate::Value> Worker<V> {
    /// Enumerates the block of `lane` in `layer`. Needs the lane's own blocks of the two layers
    /// below and the states of this layer in every lane that moves lead here from.
    pub fn enumerate(&self, layer: Layer, lane: Lane) -> Result<BlockCounts, WorkerError> {
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(BlockCounts::default());
        };
        let place = Place { layer, lane, class, tables: &tables };
        let mut cache = tables.maps();
        let (states, bits) = self.spawn_states(&place, &mut cache)?;
        self.keep_reach_items(&place, &bits);
        self.reach.insert(layer, lane, self.settle_bits(bits)?);
        let (afterstates, bits) = self.move_states(&place, &mut cache)?;
        self.after_reach.insert(layer, lane, self.settle_bits(bits)?);
        Ok(BlockCounts { states, afterstates })
    }

    /// The states of a block, counted.
    fn spawn_states(
        &self,
        place: &Place<'_>,
        cache: &mut MapCache,
    ) -> Result<(u64, Option<BitMatrix>), WorkerError> {
        let starts = self.starts(place);
        let mut below = Vec::new();
        for spawned in [2, 4] {
            let layer = place.layer.0.checked_sub(spawned).filter(|&layer| layer >= 4).map(Layer);
            let Some(layer) = layer else { continue };
            let afterstates = self.afterstates(layer, place.lane, cache)?;
            let transitions =
                self.tables.class(layer, place.lane).and_then(|c| self.transitions(c, &afterstates));
            below.extend(transitions.map(|transitions| (spawned, afterstates, transitions)));
        }
        if below.is_empty() && starts.is_empty() {
            return Ok((0, None));
        }
        let rows = self.rows_of(place.class, |found| {
            starts.iter().for_each(|&row| set(found, row));
            for (spawned, afterstates, transitions) in &below {
                for (slot, edges) in transitions.spawns_of(*spawned).enumerate() {
                    if bits::any(afterstates.slot(slot)) {
                        edges.iter().for_each(|edge| set(found, edge.row));
                    }
                }
            }
        });
        let mut states = BitMatrix::new(rows, place.tables.words());
        starts.iter().for_each(|&row| states.row_mut(row)[0] |= 1);
        for (spawned, afterstates, transitions) in &below {
            let mut maps = self.tables.maps(cache, place.tables, place.tables);
            let maps = maps.get_all(&transitions.spawn_patterns);
            for (slot, edges) in transitions.spawns_of(*spawned).enumerate() {
                let from = afterstates.slot(slot);
                if bits::any(from) {
                    for edge in edges {
                        bits::or_mapped_row(states.row_mut(edge.row), from, maps[edge.pattern as usize]);
                    }
                }
            }
        }
        let count = self.close_under_symmetry(&mut states, place, cache);
        Ok((count, (count > 0).then_some(states)))
    }

    /// The afterstates of a block, counted.
    fn move_states(
        &self,
        place: &Place<'_>,
        cache: &mut MapCache,
    ) -> Result<(u64, Option<BitMatrix>), WorkerError> {
        let mut sources = Vec::new();
        for &step in &self.steps {
            let Some(lane) = place.lane.before(step, self.tables.params().large) else { continue };
            let Some(class) = self.tables.class(place.layer, lane) else { continue };
            let Some(tables) = self.tables.lane(lane) else { continue };
            let states = self.states(place.layer, lane)?;
            let Some(transitions) = self.transitions(class, &states) else { continue };
            sources.push((step, tables, states, transitions));
        }
        if sources.is_empty() {
            return Ok((0, None));
        }
        let rows = self.rows_of(place.class, |found| {
            for (step, _, states, transitions) in &sources {
                let edges = group_of(transitions, *step).map_or(&[][..], |group| &group.edges);
                let reached = edges.iter().filter(|edge| bits::any(states.slot(edge.0 as usize)));
                reached.for_each(|&(_, to)| set(found, to));
            }
        });
        let mut afterstates = BitMatrix::new(rows, place.tables.words());
        for (step, tables, states, transitions) in &sources {
            let Some(group) = group_of(transitions, *step) else { continue };
            let mut maps = self.tables.maps(cache, tables, place.tables);
            for (pattern, edges) in group.runs() {
                let map = maps.get(pattern, &states.columns_used);
                bits::or_mapped(&mut afterstates, &states.bits, states.words, edges, map);
            }
        }
        bits::clear_padding(&mut afterstates, place.tables.columns.len());
        let count = self.close_under_symmetry(&mut afterstates, place, cache);
        Ok((count, (count > 0).then_some(afterstates)))
    }

    /// The transitions of a block's rows, `None` where it has no entry.
    fn transitions(&self, class: ClassId, block: &ReachBlock) -> Option<SharedTransitions> {
        if block.is_empty() {
            return None;
        }
        if self.tables.all_rows(class).is_some() {
            // Kept by the class, which drops them when memory is short; a block would hold on to them.
            return self.tables.transitions(class, &block.rows);
        }
        if let Some(transitions) = block.transitions.get() {
            return Some(transitions.clone());
        }
        let transitions = self.tables.transitions(class, &block.rows)?;
        Some(block.transitions.get_or_init(|| transitions).clone())
    }

    /// The rows for a new block: all, or those that `mark` marks where the class has very many.
    fn rows_of(&self, class: ClassId, mark: impl FnOnce(&mut [u64])) -> Arc<RowSet> {
        self.tables.all_rows(class).unwrap_or_else(|| {
            let rows = self.tables.space.class(class).map_or(0, |class| class.rows());
            let mut found = vec![0u64; rows.div_ceil(64)];
            mark(&mut found);
            Arc::new(RowSet::new(found))
        })
    }

    /// The reachable states of a block: held, or read from its shard.
    pub(crate) fn states(&self, layer: Layer, lane: Lane) -> Result<Arc<ReachBlock>, WorkerError> {
        if let Some(block) = self.reach.get(layer, lane) {
            return Ok(block);
        }
        let bits = self.read_reach(layer, lane)?;
        Ok(self.reach.insert(layer, lane, self.settle_bits(bits)?))
    }

    /// The reachable afterstates of a block: held, or from the states of their layer.
    fn afterstates(
        &self,
        layer: Layer,
        lane: Lane,
        cache: &mut MapCache,
    ) -> Result<Arc<ReachBlock>, WorkerError> {
        if let Some(block) = self.after_reach.get(layer, lane) {
            return Ok(block);
        }
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(Arc::new(self.settle_bits(None)?));
        };
        let place = Place { layer, lane, class, tables: &tables };
        let (_, bits) = self.move_states(&place, cache)?;
        Ok(self.after_reach.insert(layer, lane, self.settle_bits(bits)?))
    }

    /// Reads the reachable states of a block from its shard; `None` where it has none.
    pub(crate) fn read_reach(&self, layer: Layer, lane: Lane) -> Result<Option<BitMatrix>, WorkerError> {
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(None);
        };
        let class_rows = self.tables.space.class(class).map_or(0, |c| c.rows());
        let parts = Parts::new(class_rows, tables.columns.len());
        let words = parts.words();
        let mut found: Vec<(u32, Vec<u64>)> = Vec::new();
        for part in 0..parts.count() {
            let key = Parts::key(layer, lane, part);
            if let Some(item) = self.archive.read(ShardKind::Reach, key)? {
                let mut bits = vec![0u64; parts.rows(part).len() * words];
                parts.decode_reach_part(key, &item, &mut bits)?;
                found.push((part, bits));
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        let decoded = || {
            found.iter().flat_map(|(part, bits)| {
                let first = parts.rows(*part).start as u32;
                bits.chunks_exact(words).enumerate().map(move |(i, row)| (first + i as u32, row))
            })
        };
        let rows = self.rows_of(class, |marked| {
            decoded().filter(|(_, bits)| bits::any(bits)).for_each(|(row, _)| set(marked, row));
        });
        let mut matrix = BitMatrix::new(rows, words);
        for (row, bits) in decoded().filter(|(_, bits)| bits::any(bits)) {
            matrix.row_mut(row).copy_from_slice(bits);
        }
        Ok(Some(matrix))
    }

    /// Sets all images of the entries in symmetric rows, and counts orbits.
    fn close_under_symmetry(&self, matrix: &mut BitMatrix, place: &Place<'_>, cache: &mut MapCache) -> u64 {
        let mut count = matrix.count_ones();
        let Some(transitions) = self.tables.transitions(place.class, matrix.rows()) else { return count };
        let mut images = vec![0u64; matrix.words()];
        for symmetric in &transitions.symmetric {
            let slot = symmetric.slot as usize;
            if !bits::any(matrix.slot(slot)) {
                continue;
            }
            count -= ones(matrix.slot(slot));
            images.copy_from_slice(matrix.slot(slot));
            let mut maps = self.tables.maps(cache, place.tables, place.tables);
            for &pattern in &symmetric.patterns {
                bits::or_mapped_row(&mut images, matrix.slot(slot), maps.get(pattern, &[]));
            }
            matrix.slot_mut(slot).copy_from_slice(&images);
            let representatives = self.tables.representatives(cache, place.tables, &symmetric.patterns);
            count += images
                .iter()
                .zip(&**representatives)
                .map(|(i, r)| u64::from((i & r).count_ones()))
                .sum::<u64>();
        }
        count
    }

    /// The rows of the layer's starts, two tiles on an empty board: their only column is the first.
    fn starts(&self, place: &Place<'_>) -> Vec<u32> {
        if place.lane.k > 0 || place.layer.0 > 8 {
            return Vec::new();
        }
        let located = rules::starts(self.tables.params().board)
            .filter_map(|(board, _)| self.tables.space.locate(board))
            .filter(|&(lane, layer, ..)| (layer, lane) == (place.layer, place.lane));
        located.map(|(_, _, row, _)| row).collect()
    }

    pub(crate) fn settle_bits(&self, bits: Option<BitMatrix>) -> Result<ReachBlock, WorkerError> {
        let Some(matrix) = bits else {
            return Ok(ReachBlock {
                rows: Arc::new(RowSet::all(0)),
                words: 0,
                bits: self.memory.settle(Vec::new())?,
                columns_used: Vec::new(),
                transitions: OnceLock::new(),
            });
        };
        Ok(ReachBlock {
            rows: Arc::clone(matrix.rows()),
            words: matrix.words(),
            columns_used: matrix.columns_used(),
            bits: self.memory.settle(matrix.into_bits())?,
            transitions: OnceLock::new(),
        })
    }

    /// Sets aside the items of a block until its layer is sealed.
    fn keep_reach_items(&self, place: &Place<'_>, bits: &Option<BitMatrix>) {
        let Some(matrix) = bits else { return };
        let class_rows = self.tables.space.class(place.class).map_or(0, |c| c.rows());
        let parts = Parts::new(class_rows, place.tables.columns.len());
        let items = (0..parts.count()).filter_map(|part| {
            let item = parts.encode_reach(part, matrix.rows(), matrix.bits())?;
            Some((Parts::key(place.layer, place.lane, part), item))
        });
        self.pending(ShardKind::Reach).extend(items);
    }
}

/// The moves of a step, if the class has any.
fn group_of(transitions: &Transitions, step: Step) -> Option<&MoveGroup> {
    transitions.moves.iter().find(|group| group.step == step)
}

fn ones(row: &[u64]) -> u64 {
    row.iter().map(|w| u64::from(w.count_ones())).sum()
}
