//! Backup of one block: its afterstates' values as means over spawns, then its states' values as
//! maxima over moves.

use std::sync::Arc;

use exact2048_game::class::ClassId;
use exact2048_game::maps::IndexMap;
use exact2048_game::transitions::Transitions;
use exact2048_game::{Lane, Layer};
use exact2048_storage::ShardKind;

use crate::bits::{self, BitMatrix};
use crate::blocks::ValueBlock;
use crate::fingerprint::{CanonicalBoards, state_hash};
use crate::payload::{Parts, for_each_bit};
use crate::rows::{Rows, is_set, max_over_edges, means_over_spawns};
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
    /// Backs up the block of `lane` in `layer`. Needs the lane's own values of the two layers above
    /// and this layer's afterstate values in every lane that moves lead to from here.
    pub fn back_up(&self, layer: Layer, lane: Lane, keep: bool) -> Result<BlockValues, WorkerError> {
        let (Some(tables), Some(class)) = (self.tables.lane(lane), self.tables.class(layer, lane)) else {
            return Ok(BlockValues::default());
        };
        let Some(transitions) = self.tables.transitions(class) else { return Ok(BlockValues::default()) };
        let mut cache = tables.maps();
        let after = self.mean_over_spawns(layer, &tables, &transitions, &mut cache)?;
        let after = self.after_values.insert(layer, lane, after);
        let Some(reach) = self.read_reach(layer, lane)? else {
            self.values.insert(layer, lane, self.settle_values(0, Vec::new(), Vec::new())?);
            return Ok(BlockValues::default());
        };
        let occupied = occupancy(&reach);
        let wanted = (&*occupied, &*reach.columns_used());
        let states = self.max_over_moves(layer, &tables, &transitions, wanted, &after, &mut cache);
        if keep {
            self.keep_value_items(layer, lane, &tables, &reach, &states);
        }
        let found = self.fingerprint(class, &tables, &transitions, &reach, &states, &mut cache);
        let stride = stride(&tables);
        self.values.insert(layer, lane, self.settle_values(stride, occupied, states)?);
        Ok(found)
    }

    /// The afterstates' values of a block: every row whose spawns all lead to rows that hold
    /// reachable states. That covers the reachable afterstates; the others are read by no state.
    fn mean_over_spawns(
        &self,
        layer: Layer,
        tables: &Arc<LaneTables>,
        transitions: &Transitions,
        cache: &mut MapCache,
    ) -> Result<ValueBlock<V>, WorkerError> {
        let lane = tables.columns.lane();
        let twos = self.state_values(Layer(layer.0 + 2), lane)?;
        let fours = self.state_values(Layer(layer.0 + 4), lane)?;
        if twos.values.is_empty() || fours.values.is_empty() {
            return self.settle_values(0, Vec::new(), Vec::new());
        }
        let (columns, stride) = (tables.columns.len(), stride(tables));
        let mut maps = self.tables.maps(cache, tables, tables);
        let maps = maps.get_all(&transitions.spawn_patterns);
        let mut values = vec![V::default(); transitions.rows * stride];
        let mut occupied = vec![0u64; transitions.rows.div_ceil(64)];
        let (twos, fours) = (twos.rows(), fours.rows());
        means_over_spawns(&mut values, &mut occupied, &self.backup, transitions, twos, fours, &maps);
        // The padding that index maps lead to: nothing, and a won game.
        for row in values.chunks_exact_mut(stride) {
            (row[columns], row[columns + 1]) = (V::default(), self.backup.won());
        }
        self.settle_values(stride, occupied, values)
    }

    /// The states' values of a block, for the rows that hold reachable states.
    fn max_over_moves(
        &self,
        layer: Layer,
        tables: &LaneTables,
        transitions: &Transitions,
        (wanted, columns_used): (&[u64], &[u64]),
        own_after: &Arc<ValueBlock<V>>,
        cache: &mut MapCache,
    ) -> Vec<V> {
        let (columns, stride) = (tables.columns.len(), stride(tables));
        let mut states = vec![V::default(); transitions.rows * stride];
        let has = |row: u32| is_set(wanted, row);
        for row in (0..transitions.rows as u32).filter(|&row| has(row)) {
            let small = transitions.potential[row as usize];
            let values = &mut states[row as usize * stride..][..columns];
            for (value, large) in values.iter_mut().zip(tables.columns.potential()) {
                *value = self.backup.terminal(small + large);
            }
        }
        for &row in transitions.won_rows.iter().filter(|&&row| has(row)) {
            states[row as usize * stride..][..columns].fill(self.backup.won());
        }
        let own_lane = tables.columns.lane();
        for group in &transitions.moves {
            let Some(target_lane) = own_lane.after(group.step, self.tables.params().large) else { continue };
            let after = if target_lane == own_lane {
                Some(Arc::clone(own_after))
            } else {
                self.after_values.get(layer, target_lane).filter(|block| !block.values.is_empty())
            };
            if after.is_none() && !self.backup.can_win() {
                continue;
            }
            let target = self.tables.lane_or_empty(target_lane);
            let nothing = self.padding_row(&target);
            let not_computed = Rows { stride: nothing.len(), occupied: &[], values: &[] };
            let after = after.as_ref().map_or(not_computed, |block| block.rows());
            let mut maps = self.tables.maps(cache, tables, &target);
            for (pattern, edges) in group.runs() {
                let map = maps.get(pattern, columns_used);
                max_over_edges(&mut states, wanted, stride, edges, after, &nothing, map);
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
            None => self.settle_values(0, Vec::new(), Vec::new())?,
        };
        Ok(self.values.insert(layer, lane, block))
    }

    fn read_values(&self, layer: Layer, lane: Lane) -> Result<Option<ValueBlock<V>>, WorkerError> {
        if layer > self.tables.params().last_layer() {
            return Ok(None);
        }
        let Some(tables) = self.tables.lane(lane) else { return Ok(None) };
        let Some(reach) = self.read_reach(layer, lane)? else { return Ok(None) };
        let parts = Parts::new(reach.rows(), tables.columns.len());
        let stride = stride(&tables);
        let mut values = vec![V::default(); reach.rows() * stride];
        for part in 0..parts.count() {
            let rows = parts.rows(part);
            if !bits::any(&reach.bits()[rows.start * reach.words()..rows.end * reach.words()]) {
                continue;
            }
            let key = Parts::key(layer, lane, part);
            let item = self.archive.read(ShardKind::Values, key)?.ok_or(WorkerError::ItemMissing(key))?;
            parts.decode_values(key, &item, reach.bits(), stride, &mut values)?;
        }
        Ok(Some(self.settle_values(stride, occupancy(&reach), values)?))
    }

    fn fingerprint(
        &self,
        class: ClassId,
        tables: &LaneTables,
        transitions: &Transitions,
        reach: &BitMatrix,
        states: &[V],
        cache: &mut MapCache,
    ) -> BlockValues {
        let mut found = BlockValues::default();
        let Some(class) = self.tables.space.class(class) else { return found };
        let mut canonical = CanonicalBoards::new(&self.tables.space, &tables.columns);
        let mut symmetric = transitions.symmetric.iter().peekable();
        let mut marked = vec![0u64; reach.words()];
        for mask in 0..class.masks() {
            for row in class.mask_rows(mask) {
                let one_an_orbit = symmetric.next_if(|s| s.row as usize == row);
                if !bits::any(reach.row(row)) {
                    continue;
                }
                marked.copy_from_slice(reach.row(row));
                if let Some(symmetric) = one_an_orbit {
                    let one = self.tables.representatives(cache, tables, &symmetric.patterns);
                    marked.iter_mut().zip(&**one).for_each(|(m, o)| *m &= o);
                }
                let boards = canonical.of_row(mask, transitions.configs[row]);
                let values = &states[row * stride(tables)..][..boards.len()];
                for_each_bit(&marked, |column| {
                    found.states += 1;
                    let hash = state_hash(boards[column], values[column].to_bits());
                    found.fingerprint = found.fingerprint.wrapping_add(hash);
                });
            }
        }
        found
    }

    fn settle_values(
        &self,
        stride: usize,
        occupied: Vec<u64>,
        values: Vec<V>,
    ) -> Result<ValueBlock<V>, WorkerError> {
        Ok(ValueBlock { stride, occupied, values: self.memory.settle(values)? })
    }

    /// Sets aside the items of a block until its layer is sealed.
    fn keep_value_items(
        &self,
        layer: Layer,
        lane: Lane,
        tables: &LaneTables,
        reach: &BitMatrix,
        states: &[V],
    ) {
        let parts = Parts::new(reach.rows(), tables.columns.len());
        let items = (0..parts.count()).map(|part| {
            let item = parts.encode_values(part, reach.bits(), stride(tables), states);
            (Parts::key(layer, lane, part), item)
        });
        self.pending(ShardKind::Values).extend(items.filter(|(_, item)| !item.is_empty()));
    }
}

/// Values a row: the columns and the padding that index maps may lead to.
fn stride(tables: &LaneTables) -> usize {
    IndexMap::stride(tables.columns.len())
}

/// One bit a row: whether it holds a reachable entry.
fn occupancy(reach: &BitMatrix) -> Vec<u64> {
    let mut occupied = vec![0u64; reach.rows().div_ceil(64)];
    for row in (0..reach.rows()).filter(|&row| bits::any(reach.row(row))) {
        occupied[row / 64] |= 1 << (row % 64);
    }
    occupied
}
