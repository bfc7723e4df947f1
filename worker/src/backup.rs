//! Backup of one block: its afterstates' values as means over spawns, then its states' values as
//! maxima over moves.

use std::ops::Range;
use std::sync::Arc;

use exact2048_arena::Area;
use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::class::{Class, ClassId};
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::transitions::{Direction, Moves, Transitions};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, SpawnKind};
use exact2048_solution::{ItemKind, Parts, ReadError};
use exact2048_storage::{ItemKey, ShardKind};

use crate::blocks::{Entries, ReachBits, ValueBlock};
use crate::enumerate::OccurringMoves;
use crate::follow::moves;
use crate::kernels::Rows;
use crate::kernels::index_map::Permutation;
use crate::kernels::maxima::Maxima;
use crate::kernels::means::Means;
use crate::open_block::OpenBlock;
use crate::pieces::{SlotBits, map_parts, of_slots};
use crate::tables::{LaneTables, MapCache};
use crate::{Worker, WorkerError, most_pieces};

/// The result of backing a block up.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct BlockValues {
    /// States of the block, up to symmetry.
    pub states: u64,
    /// The block's share of the run's fingerprint.
    pub fingerprint: u128,
}

/// A block with the values of its states.
pub struct BackedUp<'a, V> {
    /// The block.
    pub open: &'a OpenBlock<'a>,
    /// The transitions of its rows.
    pub transitions: &'a Transitions,
    /// Its entries.
    pub reach: &'a Entries,
    /// The values of its rows.
    pub states: &'a [V],
}

impl<V: Value> Worker<V> {
    /// Backs up the afterstates of the block of `lane` in `layer`. Needs the lane's own values of the two layers above.
    /// `helpers` threads have no task of their own, and may help.
    ///
    /// # Errors
    ///
    /// If data cannot be read, or cannot be written to a scratch file.
    pub fn back_up_afterstates(&self, layer: Layer, lane: Lane, helpers: usize) -> Result<(), WorkerError> {
        let Some(open) = self.open(layer, lane, helpers) else { return Ok(()) };
        let after = self.mean_over_spawns(&open, &mut open.tables.maps())?;
        self.after_values.insert(layer, lane, after);
        Ok(())
    }

    /// Backs up the states of the block of `lane` in `layer`, and packs their values for a shard if `keep` is set.
    /// Needs the values of this layer's afterstates in this lane and in every lane that moves lead to from here.
    ///
    /// # Errors
    ///
    /// If data cannot be read, or cannot be written to a scratch file.
    pub fn back_up_states(
        &self,
        layer: Layer,
        lane: Lane,
        keep: bool,
        helpers: usize,
    ) -> Result<BlockValues, WorkerError> {
        self.states_of(layer, lane, helpers, |block, best, cache| {
            if let (Some(legality), Some(best)) = (&self.legality, best) {
                self.pack_best_moves(legality, block, best)?;
            }
            if keep {
                self.pack_values(block)?;
            }
            Ok(self.fingerprint(block, cache))
        })
    }

    /// Like [`Worker::back_up_states`], but packs nothing for a shard, and gives the values as shards hold them: an
    /// item for each part that has some.
    ///
    /// # Errors
    ///
    /// As for [`Worker::back_up_states`].
    pub fn back_up_items(
        &self,
        layer: Layer,
        lane: Lane,
        helpers: usize,
    ) -> Result<Vec<(ItemKey, Vec<u8>)>, WorkerError> {
        self.states_of(layer, lane, helpers, |block, _, _| {
            let (parts, bits) = (block.open.parts(), block.reach.matrix.bits());
            let (held, stride) = (block.reach.matrix.rows(), block.open.tables.stride());
            let item = |part| parts.encode_values(part, held, bits, stride, block.states);
            let items = (0..parts.count()).map(|part| (Parts::key(layer, lane, part), item(part)));
            Ok(items.filter(|(_, item)| !item.is_empty()).collect())
        })
    }

    /// Like [`Worker::back_up_states`], but packs nothing for a shard and gives nothing: the values are only held for
    /// the layers below.
    ///
    /// # Errors
    ///
    /// As for [`Worker::back_up_states`].
    pub fn back_up_values(&self, layer: Layer, lane: Lane, helpers: usize) -> Result<(), WorkerError> {
        self.states_of(layer, lane, helpers, |_, _, _| Ok(()))
    }

    /// Like [`Worker::back_up_states`], but packs nothing for a shard, and gives the best moves as
    /// [`Follower`](crate::Follower) reads them; none unless the run stores best moves.
    ///
    /// # Errors
    ///
    /// As for [`Worker::back_up_states`].
    pub fn back_up_best_moves(
        &self,
        layer: Layer,
        lane: Lane,
        helpers: usize,
    ) -> Result<Vec<(ItemKey, Vec<u8>)>, WorkerError> {
        self.states_of(layer, lane, helpers, |block, best, _| {
            Ok(self.legality.as_ref().zip(best).map_or_else(Vec::new, |(legality, best)| {
                let items = self.best_moves_items(legality, block, best, |_, rows| moves::pack(rows));
                let keys = (0..).map(|part| ItemKind::BestMoves.key(Parts::key(layer, lane, part)));
                keys.zip(items).filter(|(_, item)| !item.is_empty()).collect()
            }))
        })
    }

    /// Backs up the states of a block, and finds their best moves where the run stores these. Returns the result of
    /// `of` on them, or the default for a block without states.
    fn states_of<R: Default>(
        &self,
        layer: Layer,
        lane: Lane,
        helpers: usize,
        of: impl FnOnce(&BackedUp<'_, V>, Option<&[Direction]>, &mut MapCache) -> Result<R, WorkerError>,
    ) -> Result<R, WorkerError> {
        let Some(open) = self.open(layer, lane, helpers) else { return Ok(R::default()) };
        let mut cache = open.tables.maps();
        let Some(reach) = self.read_occurring(layer, lane)? else {
            self.values.insert(layer, lane, self.no_values()?);
            return Ok(R::default());
        };
        let rows = reach.matrix.rows();
        let values = rows.len() * open.tables.stride();
        let mut reserved = self.reserve(self.maxima_need(rows.len(), values))?;
        let transitions = self.class_transitions(open.class, rows)?;
        let mut states = reserved.area(values);
        let mut best = self.legality.is_some().then(|| reserved.area(values));
        let moves = best.as_deref_mut();
        self.max_over_moves(&open, &transitions, &reach, &mut cache, &mut states, moves)?;
        let block = BackedUp { open: &open, transitions: &transitions, reach: &reach, states: &states };
        let found = of(&block, best.as_deref(), &mut cache)?;
        self.settle_maps(&mut cache);
        self.values.insert(layer, lane, self.settle_states(&open.tables, reach, states)?);
        Ok(found)
    }

    /// Computes the values of a block's afterstates, in every row whose spawns all lead to rows that hold reachable
    /// states. These rows have all reachable afterstates; no state reads the others.
    fn mean_over_spawns(
        &self,
        open: &OpenBlock<'_>,
        cache: &mut MapCache,
    ) -> Result<ValueBlock<V>, WorkerError> {
        let OpenBlock { layer, lane, class, ref tables, helpers } = *open;
        let reading = self.reserve(self.means_input_need(layer, lane))?;
        let twos = self.state_values(layer.after(SpawnKind::Two), lane)?;
        let fours = self.state_values(layer.after(SpawnKind::Four), lane)?;
        if twos.rows.is_empty() || fours.rows.is_empty() {
            return self.no_values();
        }
        let (columns, stride) = (tables.columns.len(), tables.stride());
        let Some(rows) = self.afterstate_rows(class, stride, &twos, &fours)? else { return self.no_values() };
        drop(reading);
        let values = rows.len() * stride;
        let mut reserved = self.reserve(self.means_need(rows.len(), values))?;
        let transitions = self.class_transitions(class, &rows)?;
        let spawns = self.tables.spawns(&transitions);
        let permutations = self.tables.permutations(cache, tables, &spawns.patterns);
        let maps: Vec<&Permutation> = permutations.iter().map(|permutation| &**permutation).collect();
        let mut values = reserved.area(values);
        let (backup, reached) = (&self.backup, twos.marks());
        let plan = Means { backup, spawns, maps: &maps, twos: twos.rows(), fours: fours.rows(), reached };
        let pieces = self.value_pieces(rows.len(), stride).at_most(most_pieces(helpers));
        let computed = pieces.map_of(&mut values, stride, |slots, values| {
            let first = slots.start;
            let computed = self.kernels.means(&plan, slots, values);
            // The padding that index maps lead to: nothing, and a won game.
            computed.for_each(|slot| {
                let padding = &mut values[(slot.index() - first) * stride + columns..][..2];
                padding.copy_from_slice(&[V::default(), self.backup.won()]);
            });
            computed
        });
        self.settle_values(rows, stride, &SlotBits::of_all(transitions.rows().len(), computed), values)
    }

    /// The rows that a block of afterstates holds. Of a small class, all; or of a large block, where these are few
    /// enough, those whose spawns all lead to rows with values. Of a class with very many rows, those from which a
    /// spawned 2 can lead to a row of `twos`; `None` where there is no class that it leads to.
    fn afterstate_rows(
        &self,
        class: &Class,
        stride: usize,
        twos: &ValueBlock<V>,
        fours: &ValueBlock<V>,
    ) -> Result<Option<Arc<RowSet>>, WorkerError> {
        if let Some(all) = self.tables.all_rows(class) {
            let is_large = self.is_sparse(all.len(), stride, 0);
            let computed = if is_large { Some(self.computed_rows(class, &all, twos, fours)?) } else { None };
            let is_sparse = |rows: &BitSet<Row>| self.is_sparse(all.len(), stride, rows.len());
            return Ok(Some(
                computed.filter(is_sparse).map_or(all.clone(), |rows| Arc::new(RowSet::new(rows))),
            ));
        }
        let space = &self.tables.space;
        let above = ClassId { small_sum: class.id().small_sum + SpawnKind::Two.tile(), ..class.id() };
        let Some(above) = space.class(above) else { return Ok(None) };
        Ok(Some(Arc::new(RowSet::new(space.rows_before_two(class, above, &twos.rows)))))
    }

    /// The rows of a class whose spawns all lead to rows with values.
    fn computed_rows(
        &self,
        class: &Class,
        all: &Arc<RowSet>,
        twos: &ValueBlock<V>,
        fours: &ValueBlock<V>,
    ) -> Result<BitSet<Row>, WorkerError> {
        let transitions = self.class_transitions(class, all)?;
        let spawns = self.tables.spawns(&transitions);
        let mut rows = BitSet::with_room(all.len());
        let edges = std::iter::zip(spawns.of(SpawnKind::Two), spawns.of(SpawnKind::Four));
        for (row, (to_twos, to_fours)) in edges.enumerate() {
            if !to_twos.is_empty()
                && to_twos.iter().all(|edge| twos.occupied.contains(edge.row))
                && to_fours.iter().all(|edge| fours.occupied.contains(edge.row))
            {
                rows.insert(Row::from_index(row));
            }
        }
        Ok(rows)
    }

    /// Whether a block of `rows` rows is large, and so few of them occur that it should hold these alone. Most rows of
    /// 4×3 are reached by no game.
    pub(crate) fn is_sparse(&self, rows: usize, stride: usize, occurring: usize) -> bool {
        rows * stride * size_of::<V>() >= self.piece_bytes && occurring * 4 <= rows * 3
    }

    /// Reads the reachable entries of a block; of a large block in which few rows have any, only these rows.
    pub(crate) fn read_occurring(&self, layer: Layer, lane: Lane) -> Result<Option<Entries>, WorkerError> {
        let _reserved = self.reserve(self.enumerate_need(layer, lane))?;
        self.occurring(layer, lane)
    }

    /// Like [`Worker::read_occurring`], for a task that has reserved the memory already: if it waited for more while it
    /// holds some, it might wait for ever.
    fn occurring(&self, layer: Layer, lane: Lane) -> Result<Option<Entries>, WorkerError> {
        let (Some(entries), Some(tables)) = (self.read_reach(layer, lane)?, self.tables.lane(lane)) else {
            return Ok(None);
        };
        let (rows, occurring) = (entries.matrix.rows().len(), entries.summary.occupied.len());
        let is_sparse = self.is_sparse(rows, tables.stride(), occurring);
        Ok(Some(if is_sparse { entries.of_occurring_rows() } else { entries }))
    }

    /// Computes the values of a block's states, in the rows that hold reachable ones, and their best moves if `best` is
    /// given.
    fn max_over_moves(
        &self,
        open: &OpenBlock<'_>,
        transitions: &Transitions,
        reach: &Entries,
        cache: &mut MapCache,
        states: &mut [V],
        mut best: Option<&mut [Direction]>,
    ) -> Result<(), WorkerError> {
        let OpenBlock { layer, lane: own_lane, ref tables, helpers, .. } = *open;
        let stride = tables.stride();
        let occupied = &reach.summary.occupied;
        let wanted = reach.source();
        let slots = transitions.rows().len();
        let (moves, potential) =
            (self.tables.moves(transitions), &self.tables.skeletons(transitions).potential);
        let pieces = self.value_pieces(slots, stride).at_most(most_pieces(helpers));
        pieces.map_of(states, stride, |slots, states| {
            self.end_games(tables, (moves, potential), occupied, slots, states);
        });
        if let Some(best) = &mut best {
            begin_best_moves(moves, stride, best);
        }
        for group in &moves.groups {
            let occurring = OccurringMoves::new(group, |edge| occupied.contains(edge.from));
            for target_lane in own_lane.after(group.step, self.tables.params()) {
                let after =
                    self.after_values.get(layer, target_lane).filter(|block| !block.values.is_empty());
                if after.is_none() && !self.backup.can_win() {
                    continue;
                }
                let target = self.tables.lane_or_empty(target_lane);
                let nothing = self.padding_row(&target);
                let (no_rows, none) = (RowSet::all(0), BitSet::default());
                let not_computed =
                    Rows { stride: nothing.len(), set: &no_rows, occupied: &none, values: &[] };
                let after = after.as_ref().map_or(not_computed, |block| block.rows());
                let mut maps = self.tables.maps(cache, tables, &target);
                // Maps are dropped where there is no room, and made again for the next layer.
                self.make_room(0)?;
                maps.for_each_some(&occurring.patterns, |patterns, maps| {
                    let runs = occurring.runs(patterns, maps);
                    let plan = Maxima { runs: &runs, wanted, stride, after, nothing: &nothing };
                    match &mut best {
                        None => pieces.map_of(states, stride, |slots, states| {
                            self.kernels.maxima(&plan, slots, states);
                        }),
                        Some(best) => pieces.map_of_both((states, best), stride, |slots, states, best| {
                            self.kernels.best_moves(&plan, slots, states, best);
                        }),
                    };
                });
            }
        }
        Ok(())
    }

    /// Sets the values of the states in some slots as if no move were legal; in rows with a move that wins, to that of
    /// a won game.
    fn end_games(
        &self,
        tables: &LaneTables,
        (moves, potential): (&Moves, &[u32]),
        occupied: &BitSet<Slot>,
        slots: Range<usize>,
        states: &mut [V],
    ) {
        let (columns, stride) = (tables.columns.len(), tables.stride());
        let rows = states.chunks_exact_mut(stride).zip(slots.clone().map(Slot::from_index));
        for (values, slot) in rows.filter(|&(_, slot)| occupied.contains(slot)) {
            let small = potential[slot.index()];
            for (value, large) in values[..columns].iter_mut().zip(tables.columns.potential()) {
                *value = self.backup.terminal(small + large);
            }
        }
        let won = of_slots(&moves.won_rows, slots.clone(), |&(slot, _)| slot);
        for &(slot, _) in won.iter().filter(|(slot, _)| occupied.contains(*slot)) {
            states[(slot.index() - slots.start) * stride..][..columns].fill(self.backup.won());
        }
    }

    /// A row of zeros with its padding, which stands for rows of afterstates that were not computed.
    fn padding_row(&self, target: &LaneTables) -> Vec<V> {
        let mut row = vec![V::default(); target.stride()];
        row[target.columns.len() + 1] = self.backup.won();
        row
    }

    /// The values of a block's states: held, or read from its shards. Empty where it has none. The task must have reserved
    /// memory to read them.
    fn state_values(&self, layer: Layer, lane: Lane) -> Result<Arc<ValueBlock<V>>, WorkerError> {
        if let Some(block) = self.values.get(layer, lane) {
            return Ok(block.unpacked(&self.memory).map_or(block, Arc::new));
        }
        let block = match self.read_values(layer, lane)? {
            Some(block) => block,
            None => self.no_values()?,
        };
        Ok(self.values.insert(layer, lane, block))
    }

    /// Reads the values of a block. The task must have reserved memory for that.
    fn read_values(&self, layer: Layer, lane: Lane) -> Result<Option<ValueBlock<V>>, WorkerError> {
        if layer > self.tables.params().last_layer() {
            return Ok(None);
        }
        let Some(open) = self.open(layer, lane, 0) else { return Ok(None) };
        let Some(reach) = self.occurring(layer, lane)? else { return Ok(None) };
        let (parts, matrix) = (open.parts(), &reach.matrix);
        let (held, stride) = (matrix.rows(), open.tables.stride());
        let mut values = self.memory.area(held.len() * stride);
        for part in 0..parts.count() {
            if parts.values_bytes::<V>(part, held, matrix.bits()) > 0 {
                let key = Parts::key(layer, lane, part);
                let missing = ReadError::no_values(key);
                let item = self.archive.read(ShardKind::Values, key)?.ok_or(missing)?;
                parts
                    .decode_values(key, &item, held, matrix.bits(), stride, &mut values)
                    .map_err(ReadError::from)?;
            }
        }
        Ok(Some(self.settle_states(&open.tables, reach, values)?))
    }

    pub(crate) fn no_values(&self) -> Result<ValueBlock<V>, WorkerError> {
        let values = self.memory.settle(Vec::new())?;
        let (rows, occupied) = (Arc::new(RowSet::all(0)), BitSet::default());
        Ok(ValueBlock { rows, stride: 0, occupied, values, marks: None, is_packed: false })
    }

    /// The block of some states' values, of which the rows with reachable entries were computed.
    fn settle_states(
        &self,
        tables: &LaneTables,
        reach: Entries,
        values: Area<V>,
    ) -> Result<ValueBlock<V>, WorkerError> {
        let rows = Arc::clone(reach.matrix.rows());
        let occupied = reach.summary.occupied.clone();
        let marks = ReachBits::of(reach, &values);
        Ok(ValueBlock { marks, ..self.settle_values(rows, tables.stride(), &occupied, values)? })
    }

    /// A block of values, in memory or in a scratch file; the slots in `computed` are those whose values were computed.
    fn settle_values(
        &self,
        rows: Arc<RowSet>,
        stride: usize,
        computed: &BitSet<Slot>,
        values: Area<V>,
    ) -> Result<ValueBlock<V>, WorkerError> {
        let occupied = rows.rows_in_slots(computed);
        // Other data, which is not needed as soon, moves to disk first.
        self.make_room(0)?;
        let values = self.memory.settle(values)?;
        Ok(ValueBlock { rows, stride, occupied, values, marks: None, is_packed: false })
    }

    /// Packs the items of a block for the shard of its layer.
    fn pack_values(&self, block: &BackedUp<'_, V>) -> Result<(), WorkerError> {
        let BackedUp { open, reach, states, .. } = *block;
        let (parts, matrix, stride) = (open.parts(), &reach.matrix, open.tables.stride());
        let (held, bits) = (matrix.rows(), matrix.bits());
        let lengths = map_parts(parts, |part| parts.values_bytes::<V>(part, held, bits));
        let item = |part| parts.encode_values(part, held, bits, stride, states);
        self.pack(ItemKind::Values, open.layer, open.lane, &lengths, item)
    }
}

/// Sets the best moves as if no move were legal; in rows with a move that wins, to the first such move.
fn begin_best_moves(moves: &Moves, stride: usize, best: &mut [Direction]) {
    best.fill(0);
    for &(slot, direction) in &moves.won_rows {
        best[slot.index() * stride..][..stride].fill(direction);
    }
}
