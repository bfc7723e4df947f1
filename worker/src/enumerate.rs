//! Enumeration of one block: its states from the spawns of earlier afterstates, then its
//! afterstates from the moves of its layer's states.

use std::sync::Arc;

use exact2048_game::class::ClassId;
use exact2048_game::transitions::{SpawnEdge, Transitions};
use exact2048_game::{Lane, Layer, rules};
use exact2048_storage::ShardKind;

use crate::bits::{self, BitMatrix};
use crate::blocks::ReachBlock;
use crate::payload::Parts;
use crate::tables::{LaneTables, MapCache};
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
        let words = place.tables.words();
        let mut states = None;
        if place.lane.k == 0 && place.layer.0 <= 8 {
            self.mark_starts(place, states.get_or_insert_with(|| self.empty_bits(place.class, words)));
        }
        for spawned in [2, 4] {
            let Some(below) = place.layer.0.checked_sub(spawned).filter(|&layer| layer >= 4).map(Layer)
            else {
                continue;
            };
            let afterstates = self.afterstates(below, place.lane, cache)?;
            if afterstates.is_empty() {
                continue;
            }
            let Some(class) = self.tables.class(below, place.lane) else { continue };
            let Some(transitions) = self.tables.transitions(class) else { continue };
            let edges = if spawned == 2 { &transitions.spawn2 } else { &transitions.spawn4 };
            let states = states.get_or_insert_with(|| self.empty_bits(place.class, words));
            self.spawn_into(states, &afterstates, &transitions, edges, place.tables, cache);
        }
        let Some(mut states) = states else { return Ok((0, None)) };
        let count = self.close_under_symmetry(&mut states, place, cache);
        Ok((count, (count > 0).then_some(states)))
    }

    fn spawn_into(
        &self,
        states: &mut BitMatrix,
        afterstates: &ReachBlock,
        transitions: &Transitions,
        edges: &[SpawnEdge],
        tables: &LaneTables,
        cache: &mut MapCache,
    ) {
        let mut maps = self.tables.maps(cache, tables, tables);
        let maps = maps.get_all(&transitions.spawn_patterns);
        for row in 0..transitions.rows as u32 {
            let from = afterstates.row(row);
            if !bits::any(from) {
                continue;
            }
            let range = transitions.spawn_start[row as usize]..transitions.spawn_start[row as usize + 1];
            for edge in &edges[range.start as usize..range.end as usize] {
                bits::or_mapped_row(states.row_mut(edge.row as usize), from, maps[edge.pattern as usize]);
            }
        }
    }

    /// The afterstates of a block, counted.
    fn move_states(
        &self,
        place: &Place<'_>,
        cache: &mut MapCache,
    ) -> Result<(u64, Option<BitMatrix>), WorkerError> {
        let mut afterstates: Option<BitMatrix> = None;
        for &step in &self.steps {
            let Some(source_lane) = place.lane.before(step, self.tables.params().large) else { continue };
            let Some(source_class) = self.tables.class(place.layer, source_lane) else { continue };
            let Some(source_tables) = self.tables.lane(source_lane) else { continue };
            let states = self.states(place.layer, source_lane)?;
            if states.is_empty() {
                continue;
            }
            let Some(transitions) = self.tables.transitions(source_class) else { continue };
            let Some(group) = transitions.moves.iter().find(|group| group.step == step) else { continue };
            let words = place.tables.words();
            let target = afterstates.get_or_insert_with(|| self.empty_bits(place.class, words));
            let mut maps = self.tables.maps(cache, &source_tables, place.tables);
            for (pattern, edges) in group.runs() {
                let map = maps.get(pattern, &states.columns_used);
                bits::or_mapped(target, &states.bits, states.words, edges, map);
            }
        }
        let Some(mut afterstates) = afterstates else { return Ok((0, None)) };
        bits::clear_padding(&mut afterstates, place.tables.columns.len());
        let count = self.close_under_symmetry(&mut afterstates, place, cache);
        Ok((count, (count > 0).then_some(afterstates)))
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
        let rows = self.tables.space.class(class).map_or(0, |c| c.rows());
        let parts = Parts::new(rows, tables.columns.len());
        let mut found: Option<Vec<u64>> = None;
        for part in 0..parts.count() {
            let key = Parts::key(layer, lane, part);
            if let Some(item) = self.archive.read(ShardKind::Reach, key)? {
                let bits = found.get_or_insert_with(|| vec![0; rows * tables.words()]);
                parts.decode_reach(key, &item, bits)?;
            }
        }
        Ok(found.map(|bits| BitMatrix::from_bits(tables.words(), bits)))
    }

    /// Sets all images of the entries in symmetric rows, and counts orbits.
    fn close_under_symmetry(&self, matrix: &mut BitMatrix, place: &Place<'_>, cache: &mut MapCache) -> u64 {
        let mut count = matrix.count_ones();
        let Some(transitions) = self.tables.transitions(place.class) else { return count };
        let mut images = vec![0u64; matrix.words()];
        for symmetric in &transitions.symmetric {
            let row = symmetric.row as usize;
            if !bits::any(matrix.row(row)) {
                continue;
            }
            count -= ones(matrix.row(row));
            images.copy_from_slice(matrix.row(row));
            let mut maps = self.tables.maps(cache, place.tables, place.tables);
            for &pattern in &symmetric.patterns {
                bits::or_mapped_row(&mut images, matrix.row(row), maps.get(pattern, &[]));
            }
            matrix.row_mut(row).copy_from_slice(&images);
            let representatives = self.tables.representatives(cache, place.tables, &symmetric.patterns);
            count += images
                .iter()
                .zip(&**representatives)
                .map(|(i, r)| u64::from((i & r).count_ones()))
                .sum::<u64>();
        }
        count
    }

    /// Marks the starts of the layer: two tiles on an empty board.
    fn mark_starts(&self, place: &Place<'_>, states: &mut BitMatrix) {
        for (board, _) in rules::starts(self.tables.params().board) {
            if let Some((lane, layer, row, _)) = self.tables.space.locate(board)
                && (layer, lane) == (place.layer, place.lane)
            {
                states.row_mut(row as usize)[0] |= 1;
            }
        }
    }

    fn empty_bits(&self, class: ClassId, words: usize) -> BitMatrix {
        BitMatrix::new(self.tables.space.class(class).map_or(0, |c| c.rows()), words)
    }

    pub(crate) fn settle_bits(&self, bits: Option<BitMatrix>) -> Result<ReachBlock, WorkerError> {
        let words = bits.as_ref().map_or(0, BitMatrix::words);
        let columns_used = bits.as_ref().map_or_else(Vec::new, BitMatrix::columns_used);
        let bits = bits.map_or_else(Vec::new, BitMatrix::into_bits);
        Ok(ReachBlock { words, bits: self.memory.settle(bits)?, columns_used })
    }

    /// Sets aside the items of a block until its layer is sealed.
    fn keep_reach_items(&self, place: &Place<'_>, bits: &Option<BitMatrix>) {
        let Some(bits) = bits else { return };
        let parts = Parts::new(bits.rows(), place.tables.columns.len());
        let items = (0..parts.count()).filter_map(|part| {
            Some((Parts::key(place.layer, place.lane, part), parts.encode_reach(part, bits.bits())?))
        });
        self.pending(ShardKind::Reach).extend(items);
    }
}

fn ones(row: &[u64]) -> u64 {
    row.iter().map(|w| u64::from(w.count_ones())).sum()
}
