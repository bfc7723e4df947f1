//! Backup of one block: its afterstates' values as means over spawns, then its states' values as
//! maxima over moves.

use std::sync::Arc;

use exact2048_game::class::{Class, ClassId};
use exact2048_game::maps::IndexMap;
use exact2048_game::rowset::{RowSet, is_set, set};
use exact2048_game::transitions::Transitions;
use exact2048_game::{Lane, Layer};
use exact2048_storage::ShardKind;

use crate::area::Area;
use crate::bits::{self, BitMatrix};
use crate::blocks::ValueBlock;
use crate::fingerprint::{CanonicalBoards, state_hash};
use crate::payload::{Parts, for_each_bit};
use crate::rows::{Rows, max_over_edges, means_over_spawns};
use crate::seal::Packer;
use crate::tables::{LaneTables, MapCache};
use crate::{Value, Worker, WorkerError};

/// What backing a block up gives.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct BlockValues {
    /// States of the block, up to symmetry.
    pub states: u64,
    /// The block's share of the run's fingerprint.
    pub fingerprint: u128,
}

impl<V: Value> Worker<V> {
    /// Backs up the afterstates of the block of `lane` in `layer`. Needs the lane's own values of the two layers
    /// above.
    pub fn back_up_afterstates(&self, layer: Layer, lane: Lane) -> Result<(), WorkerError> {
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(());
        };
        let _reserved = self.reserve(self.back_up_bytes(layer, lane))?;
        let after = self.mean_over_spawns(layer, class, &tables, &mut tables.maps())?;
        self.after_values.insert(layer, lane, after);
        Ok(())
    }

    /// Backs up the states of the block of `lane` in `layer`, and keeps their values for a shard if told to. Needs
    /// the values of this layer's afterstates in this lane and in every lane that moves lead to from here.
    pub fn back_up_states(&self, layer: Layer, lane: Lane, keep: bool) -> Result<BlockValues, WorkerError> {
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(BlockValues::default());
        };
        let _reserved = self.reserve(self.back_up_bytes(layer, lane))?;
        let mut cache = tables.maps();
        let reach = self.read_reach(layer, lane)?;
        let Some(reach) = reach else {
            self.values.insert(layer, lane, self.no_values()?);
            return Ok(BlockValues::default());
        };
        let transitions = self.class_transitions(class, reach.rows())?;
        let states = self.max_over_moves(layer, &tables, &transitions, &reach, &mut cache);
        if keep {
            self.pack_values(layer, class, &tables, &reach, &states)?;
        }
        let found = self.fingerprint(class, &tables, &transitions, &reach, &states, &mut cache);
        self.values.insert(layer, lane, self.settle_states(&tables, &reach, states)?);
        Ok(found)
    }

    /// The afterstates' values of a block: every row whose spawns all lead to rows that hold
    /// reachable states. That covers the reachable afterstates; the others are read by no state.
    fn mean_over_spawns(
        &self,
        layer: Layer,
        class: &Class,
        tables: &Arc<LaneTables>,
        cache: &mut MapCache,
    ) -> Result<ValueBlock<V>, WorkerError> {
        let lane = tables.columns.lane();
        let twos = self.state_values(Layer(layer.0 + 2), lane)?;
        let fours = self.state_values(Layer(layer.0 + 4), lane)?;
        if twos.values.is_empty() || fours.values.is_empty() {
            return self.no_values();
        }
        let Some(rows) = self.afterstate_rows(class, &twos) else { return self.no_values() };
        let transitions = self.class_transitions(class, &rows)?;
        let (columns, stride) = (tables.columns.len(), stride(tables));
        let mut maps = self.tables.maps(cache, tables, tables);
        let maps = maps.get_all(&transitions.spawn_patterns);
        let mut values = self.memory.area(rows.len() * stride);
        let mut occupied = vec![0u64; rows.bits().len()];
        let (twos, fours) = (twos.rows(), fours.rows());
        means_over_spawns(&mut values, &mut occupied, &self.backup, &transitions, twos, fours, &maps);
        // The padding that index maps lead to: nothing, and a won game.
        for (slot, _) in rows.iter().enumerate().filter(|&(_, row)| is_set(&occupied, row)) {
            let padding = &mut values[slot * stride + columns..][..2];
            padding.copy_from_slice(&[V::default(), self.backup.won()]);
        }
        Ok(ValueBlock { rows, stride, occupied, values: self.memory.settle(values)? })
    }

    /// The rows for a block of afterstates: all, or where the class has very many, those that a spawned
    /// 2 can lead from to a state.
    fn afterstate_rows(&self, class: &Class, twos: &ValueBlock<V>) -> Option<Arc<RowSet>> {
        if let Some(all) = self.tables.all_rows(class) {
            return Some(all);
        }
        let space = &self.tables.space;
        let above = ClassId { small_sum: class.id().small_sum + 2, ..class.id() };
        let rows = space.before_spawned_2(class, space.class(above)?, &twos.rows);
        Some(Arc::new(RowSet::new(rows)))
    }

    /// The states' values of a block, for the rows that hold reachable states.
    fn max_over_moves(
        &self,
        layer: Layer,
        tables: &LaneTables,
        transitions: &Transitions,
        reach: &BitMatrix,
        cache: &mut MapCache,
    ) -> Area<V> {
        let (columns, stride) = (tables.columns.len(), stride(tables));
        let columns_used = reach.columns_used();
        let slots = transitions.rows.len();
        let mut wanted = vec![0u64; slots.div_ceil(64)];
        let mut states = self.memory.area(slots * stride);
        let potential = &*transitions.potential;
        for slot in (0..slots).filter(|&slot| bits::any(reach.slot(slot))) {
            set(&mut wanted, slot as u32);
            let small = potential[slot];
            let values = &mut states[slot * stride..][..columns];
            for (value, large) in values.iter_mut().zip(tables.columns.potential()) {
                *value = self.backup.terminal(small + large);
            }
        }
        for &slot in transitions.won_rows.iter().filter(|&&slot| is_set(&wanted, slot)) {
            states[slot as usize * stride..][..columns].fill(self.backup.won());
        }
        let own_lane = tables.columns.lane();
        for group in &transitions.moves {
            let Some(target_lane) = own_lane.after(group.step, self.tables.params().large) else { continue };
            let after = self.after_values.get(layer, target_lane).filter(|block| !block.values.is_empty());
            if after.is_none() && !self.backup.can_win() {
                continue;
            }
            let target = self.tables.lane_or_empty(target_lane);
            let nothing = self.padding_row(&target);
            let no_rows = RowSet::all(0);
            let not_computed = Rows { stride: nothing.len(), set: &no_rows, occupied: &[], values: &[] };
            let after = after.as_ref().map_or(not_computed, |block| block.rows());
            let mut maps = self.tables.maps(cache, tables, &target);
            for (pattern, edges) in group.runs() {
                let map = maps.get(pattern, &columns_used);
                max_over_edges(&mut states, &wanted, stride, edges, after, &nothing, map);
            }
        }
        states
    }

    /// A row of zeros with its padding, in place of afterstates that are not there.
    fn padding_row(&self, target: &LaneTables) -> Vec<V> {
        let mut row = vec![V::default(); stride(target)];
        row[target.columns.len() + 1] = self.backup.won();
        row
    }

    /// The values of a block's states: held, or read from its shards. Empty where it has none.
    fn state_values(&self, layer: Layer, lane: Lane) -> Result<Arc<ValueBlock<V>>, WorkerError> {
        if let Some(block) = self.values.get(layer, lane) {
            return Ok(block);
        }
        let block = match self.read_values(layer, lane)? {
            Some(block) => block,
            None => self.no_values()?,
        };
        Ok(self.values.insert(layer, lane, block))
    }

    fn read_values(&self, layer: Layer, lane: Lane) -> Result<Option<ValueBlock<V>>, WorkerError> {
        if layer > self.tables.params().last_layer() {
            return Ok(None);
        }
        let Some(tables) = self.tables.lane(lane) else { return Ok(None) };
        let Some(class) = self.tables.class(layer, lane) else { return Ok(None) };
        let Some(reach) = self.read_reach(layer, lane)? else { return Ok(None) };
        let parts = self.parts(class, &tables);
        let stride = stride(&tables);
        let mut values = self.memory.area(reach.rows().len() * stride);
        for part in 0..parts.count() {
            let mut rows = reach.rows().rows_in(parts.rows(part));
            if !rows.any(|row| bits::any(reach.slot(reach.rows().slot(row)))) {
                continue;
            }
            let key = Parts::key(layer, lane, part);
            let item = self.archive.read(ShardKind::Values, key)?.ok_or(WorkerError::ItemMissing(key))?;
            parts.decode_values(key, &item, reach.rows(), reach.bits(), stride, &mut values)?;
        }
        Ok(Some(self.settle_states(&tables, &reach, values)?))
    }

    fn parts(&self, class: &Class, tables: &LaneTables) -> Parts {
        Parts::new(class.rows(), tables.columns.len())
    }

    fn fingerprint(
        &self,
        class: &Class,
        tables: &LaneTables,
        transitions: &Transitions,
        reach: &BitMatrix,
        states: &[V],
        cache: &mut MapCache,
    ) -> BlockValues {
        let mut found = BlockValues::default();
        let mut canonical = CanonicalBoards::new(&self.tables.space, &tables.columns);
        let mut symmetric = transitions.symmetric.iter().peekable();
        let mut marked = vec![0u64; reach.words()];
        let configs = &*transitions.configs;
        for mask in 0..class.masks() {
            for row in reach.rows().rows_in(class.mask_rows(mask)) {
                let slot = reach.rows().slot(row);
                let one_an_orbit = symmetric.next_if(|s| s.slot as usize == slot);
                if !bits::any(reach.slot(slot)) {
                    continue;
                }
                marked.copy_from_slice(reach.slot(slot));
                if let Some(symmetric) = one_an_orbit {
                    let one = self.tables.representatives(cache, tables, &symmetric.patterns);
                    marked.iter_mut().zip(&**one).for_each(|(m, o)| *m &= o);
                }
                let boards = canonical.of_row(mask, configs[slot]);
                let values = &states[slot * stride(tables)..][..boards.len()];
                for_each_bit(&marked, |column| {
                    found.states += 1;
                    let hash = state_hash(boards[column], values[column].to_bits());
                    found.fingerprint = found.fingerprint.wrapping_add(hash);
                });
            }
        }
        found
    }

    pub(crate) fn no_values(&self) -> Result<ValueBlock<V>, WorkerError> {
        let (rows, values) = (Arc::new(RowSet::all(0)), self.memory.settle(Vec::new())?);
        Ok(ValueBlock { rows, stride: 0, occupied: Vec::new(), values })
    }

    /// A block of states' values; the rows that hold reachable entries are those that were computed.
    fn settle_states(
        &self,
        tables: &LaneTables,
        reach: &BitMatrix,
        values: Area<V>,
    ) -> Result<ValueBlock<V>, WorkerError> {
        let mut occupied = vec![0u64; reach.rows().bits().len()];
        for (_, row) in reach.rows().iter().enumerate().filter(|&(slot, _)| bits::any(reach.slot(slot))) {
            set(&mut occupied, row);
        }
        let (rows, stride) = (Arc::clone(reach.rows()), stride(tables));
        Ok(ValueBlock { rows, stride, occupied, values: self.memory.settle(values)? })
    }

    /// Packs the items of a block for the shard of its layer.
    fn pack_values(
        &self,
        layer: Layer,
        class: &Class,
        tables: &LaneTables,
        reach: &BitMatrix,
        states: &[V],
    ) -> Result<(), WorkerError> {
        let (parts, lane) = (self.parts(class, tables), tables.columns.lane());
        let mut packer = Packer::new(ShardKind::Values);
        for part in 0..parts.count() {
            let item = parts.encode_values(part, reach.rows(), reach.bits(), stride(tables), states);
            if !item.is_empty() {
                packer.push(Parts::key(layer, lane, part), item)?;
            }
        }
        let packed = packer.finish_block(&self.memory)?;
        self.unsealed(ShardKind::Values).add(layer, lane, packed);
        Ok(())
    }
}

/// Values a row: the columns and the padding that index maps may lead to.
pub(crate) fn stride(tables: &LaneTables) -> usize {
    IndexMap::stride(tables.columns.len())
}
