//! Enumeration of one block: its states from the spawns of earlier afterstates, then its
//! afterstates from the moves of its layer's states.

use std::sync::{Arc, OnceLock};

use exact2048_game::class::Class;
use exact2048_game::lane::Step;
use exact2048_game::rowset::{RowSet, set};
use exact2048_game::transitions::{MoveEdge, MoveGroup, Transitions};
use exact2048_game::{Lane, Layer, rules};
use exact2048_storage::ShardKind;

use crate::bits::{self, BitMatrix};
use crate::blocks::ReachBlock;
use crate::payload::Parts;
use crate::seal::Packer;
use crate::tables::{LaneTables, MapCache};
use crate::{Worker, WorkerError};

/// A block while it is worked on.
struct Place<'a> {
    layer: Layer,
    lane: Lane,
    class: &'a Class,
    tables: &'a LaneTables,
}

impl<V: crate::Value> Worker<V> {
    /// Finds the states of the block of `lane` in `layer` and counts them, up to symmetry. Needs the lane's own
    /// afterstates of the two layers below.
    pub fn enumerate_states(&self, layer: Layer, lane: Lane) -> Result<u64, WorkerError> {
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(0);
        };
        let _reserved = self.reserve(self.enumerate_bytes(layer, lane))?;
        let place = Place { layer, lane, class, tables: &tables };
        let (count, bits) = self.spawn_states(&place, &mut tables.maps())?;
        self.pack_reach(&place, &bits)?;
        self.reach.insert(layer, lane, self.settle_bits(bits)?);
        Ok(count)
    }

    /// Finds the afterstates of the block of `lane` in `layer` and counts them, up to symmetry. Needs the states of
    /// this layer in this lane and in every lane that moves lead here from.
    pub fn enumerate_afterstates(&self, layer: Layer, lane: Lane) -> Result<u64, WorkerError> {
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(0);
        };
        let _reserved = self.reserve(self.enumerate_bytes(layer, lane))?;
        let place = Place { layer, lane, class, tables: &tables };
        let (count, bits) = self.move_states(&place, &mut tables.maps())?;
        self.after_reach.insert(layer, lane, self.settle_bits(bits)?);
        Ok(count)
    }

    /// The states of a block, counted.
    fn spawn_states(
        &self,
        place: &Place<'_>,
        cache: &mut MapCache,
    ) -> Result<(u64, Option<BitMatrix>), WorkerError> {
        let starts = self.starts(place);
        let below = [2, 4].map(|spawned| {
            let layer = place.layer.0.checked_sub(spawned).filter(|&layer| layer >= 4).map(Layer)?;
            Some((spawned, layer, self.tables.class(layer, place.lane)?))
        });
        let mut sources = Vec::new();
        for (spawned, layer, class) in below.into_iter().flatten() {
            let afterstates = self.afterstates(layer, place.lane, cache)?;
            if !afterstates.is_empty() {
                sources.push((spawned, class, afterstates));
            }
        }
        if sources.is_empty() && starts.is_empty() {
            return Ok((0, None));
        }
        let rows = self.rows_of(place.class, |found| {
            starts.iter().for_each(|&row| set(found, row));
            for (spawned, class, afterstates) in &sources {
                let transitions = self.transitions(class, afterstates)?;
                for (slot, edges) in transitions.spawns_of(*spawned).enumerate() {
                    if bits::any(afterstates.slot(slot)) {
                        edges.iter().for_each(|edge| set(found, edge.row));
                    }
                }
            }
            Ok(())
        })?;
        let mut states = self.new_matrix(rows, place)?;
        starts.iter().for_each(|&row| states.row_mut(row)[0] |= 1);
        for (spawned, class, afterstates) in &sources {
            let transitions = self.transitions(class, afterstates)?;
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
        let count = self.close_under_symmetry(&mut states, place, cache)?;
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
            if !states.is_empty() {
                sources.push((step, class, tables, states));
            }
        }
        if sources.is_empty() {
            return Ok((0, None));
        }
        // Each source's transitions are let go of before the next one's are fetched: they can be large.
        let rows = self.rows_of(place.class, |found| {
            for (step, class, _, states) in &sources {
                let transitions = self.transitions(class, states)?;
                let edges: &[MoveEdge] = group_of(&transitions, *step).map_or(&[], |group| &group.edges);
                let reached = edges.iter().filter(|edge| bits::any(states.slot(edge.from as usize)));
                reached.for_each(|edge| set(found, edge.to));
            }
            Ok(())
        })?;
        let mut afterstates = self.new_matrix(rows, place)?;
        for (step, class, tables, states) in &sources {
            let transitions = self.transitions(class, states)?;
            let Some(group) = group_of(&transitions, *step) else { continue };
            let mut maps = self.tables.maps(cache, tables, place.tables);
            for (pattern, edges) in group.runs() {
                let map = maps.get(pattern, &states.columns_used);
                bits::or_mapped(&mut afterstates, &states.bits, states.words, edges, map);
            }
        }
        bits::clear_padding(&mut afterstates, place.tables.columns.len());
        let count = self.close_under_symmetry(&mut afterstates, place, cache)?;
        Ok((count, (count > 0).then_some(afterstates)))
    }

    /// The transitions of the rows of a block that has some.
    fn transitions(&self, class: &Class, block: &ReachBlock) -> Result<Arc<Transitions>, WorkerError> {
        if self.tables.all_rows(class).is_some() {
            // Kept by the class, which moves them to disk when memory is short; a block would hold on to them.
            return self.class_transitions(class, &block.rows);
        }
        if let Some(transitions) = block.transitions.get() {
            return Ok(Arc::clone(transitions));
        }
        let transitions = self.class_transitions(class, &block.rows)?;
        Ok(Arc::clone(block.transitions.get_or_init(|| transitions)))
    }

    /// The transitions of some rows of a class, of all where blocks hold all.
    pub(crate) fn class_transitions(
        &self,
        class: &Class,
        rows: &Arc<RowSet>,
    ) -> Result<Arc<Transitions>, WorkerError> {
        if let Some(kept) = self.tables.kept_transitions(class.id()) {
            return Ok(kept);
        }
        self.make_room(rows.len() * Transitions::BYTES_TO_MAKE_A_ROW)?;
        Ok(self.tables.transitions(class, rows))
    }

    /// A matrix of a block, without a bit set.
    fn new_matrix(&self, rows: Arc<RowSet>, place: &Place<'_>) -> Result<BitMatrix, WorkerError> {
        let words = place.tables.words();
        self.make_room(8 * rows.len() * words)?;
        Ok(BitMatrix::new(rows, words))
    }

    /// The rows for a new block: all, or those that `mark` marks where the class has very many.
    fn rows_of(
        &self,
        class: &Class,
        mark: impl FnOnce(&mut [u64]) -> Result<(), WorkerError>,
    ) -> Result<Arc<RowSet>, WorkerError> {
        if let Some(all) = self.tables.all_rows(class) {
            return Ok(all);
        }
        let mut found = vec![0u64; class.rows().div_ceil(64)];
        mark(&mut found)?;
        Ok(Arc::new(RowSet::new(found)))
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
        let parts = Parts::new(class.rows(), tables.columns.len());
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
        self.matrix_of_parts(class, parts, &found)
    }

    /// The matrix of a block from the bits of those of its parts that have some; `None` without any.
    pub(crate) fn matrix_of_parts(
        &self,
        class: &Class,
        parts: Parts,
        found: &[(u32, Vec<u64>)],
    ) -> Result<Option<BitMatrix>, WorkerError> {
        if found.is_empty() {
            return Ok(None);
        }
        let words = parts.words();
        let rows = || {
            found.iter().flat_map(|(part, bits)| {
                let first = parts.rows(*part).start as u32;
                let rows = bits.chunks_exact(words).enumerate();
                rows.map(move |(i, row)| (first + i as u32, row)).filter(|(_, row)| bits::any(row))
            })
        };
        let held = self.rows_of(class, |marked| {
            rows().for_each(|(row, _)| set(marked, row));
            Ok(())
        })?;
        let mut matrix = BitMatrix::new(held, words);
        rows().for_each(|(row, bits)| matrix.row_mut(row).copy_from_slice(bits));
        Ok(Some(matrix))
    }

    /// Sets all images of the entries in symmetric rows, and counts orbits.
    fn close_under_symmetry(
        &self,
        matrix: &mut BitMatrix,
        place: &Place<'_>,
        cache: &mut MapCache,
    ) -> Result<u64, WorkerError> {
        let mut count = matrix.count_ones();
        let transitions = self.class_transitions(place.class, matrix.rows())?;
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
        Ok(count)
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

    /// Packs the items of a block for the shard of its layer.
    fn pack_reach(&self, place: &Place<'_>, bits: &Option<BitMatrix>) -> Result<(), WorkerError> {
        let Some(matrix) = bits else { return Ok(()) };
        let parts = Parts::new(place.class.rows(), place.tables.columns.len());
        let mut packer = Packer::new(ShardKind::Reach);
        for part in 0..parts.count() {
            if let Some(item) = parts.encode_reach(part, matrix.rows(), matrix.bits()) {
                packer.push(Parts::key(place.layer, place.lane, part), item)?;
            }
        }
        let packed = packer.finish_block(&self.memory)?;
        self.unsealed(ShardKind::Reach).add(place.layer, place.lane, packed);
        Ok(())
    }
}

/// The moves of a step, if the class has any.
fn group_of(transitions: &Transitions, step: Step) -> Option<&MoveGroup> {
    transitions.moves.iter().find(|group| group.step == step)
}

fn ones(row: &[u64]) -> u64 {
    row.iter().map(|w| u64::from(w.count_ones())).sum()
}
