//! The values of a block's states: maxima over moves.

use std::ops::Range;
use std::sync::Arc;

use exact2048_arena::Area;
use exact2048_game::Lane;
use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::rowset::{RowSet, Slot};
use exact2048_game::transitions::{Direction, Moves, Transitions};
use exact2048_game::value::Value;

use crate::blocks::{Entries, ValueBlock};
use crate::error::WorkerError;
use crate::footprint::{enumerate_need, maxima_need, shape};
use crate::kernels::Rows;
use crate::kernels::maxima::Maxima;
use crate::memory::Need;
use crate::occurring::OccurringMoves;
use crate::open_block::{BackedUp, OpenBlock};
use crate::pieces::{Pieces, most_pieces, of_slots};
use crate::sink::{Drain, Outcome};
use crate::stage::{BlockStage, StageResources};
use crate::tables::MapCache;

/// The stage that backs up the states of a block, in the rows that hold reachable ones.
///
/// It reads the values of this layer's afterstates in all lanes to which moves from this block lead. It finds best
/// moves if the run stores them.
pub struct BackUpStates<'a, V> {
    pub open: &'a OpenBlock<'a>,
    pub drain: Drain<'a, V>,
}

/// The values and best moves of the rows of states.
pub struct MaxValues<V> {
    reach: Entries,
    transitions: Arc<Transitions>,
    states: Area<V>,
    best: Option<Area<Direction>>,
}

impl<V: Value> BlockStage for BackUpStates<'_, V> {
    type Inputs = Entries;
    type Made = MaxValues<V>;

    fn need_to_gather(&self) -> Need {
        enumerate_need(shape(&self.drain.shared.tables, self.open.layer, self.open.lane))
    }

    fn gather(&self, _: &mut StageResources<'_>) -> Result<Option<Entries>, WorkerError> {
        self.drain.shared.sources.occurring_states(self.open.layer, self.open.lane)
    }

    fn need_to_compute(&self, reach: &Entries) -> Option<Need> {
        let rows = reach.matrix.rows().len();
        Some(maxima_need::<V>(rows, rows * self.open.tables.stride(), self.drain.legality.is_some()))
    }

    fn compute(&self, reach: Entries, task: &mut StageResources<'_>) -> Result<Self::Made, WorkerError> {
        let OpenBlock { class, tables, helpers, .. } = self.open;
        let (shared, stride, rows) = (self.drain.shared, tables.stride(), reach.matrix.rows().len());
        let transitions = shared.store.transitions(class, reach.matrix.rows())?;
        let mut states = task.reserved.area(rows * stride);
        let mut best = self.drain.legality.is_some().then(|| task.reserved.area(rows * stride));
        let pieces = shared.piece_length.of_values::<V>(rows, stride).at_most(most_pieces(*helpers));
        let occupied = &reach.summary.occupied;
        pieces.map_of(&mut states, stride, |slots, states| {
            self.end_games(&transitions, occupied, slots, states)
        });
        let moves = shared.tables.moves(&transitions);
        if let Some(best) = &mut best {
            begin_best_moves(moves, stride, best);
        }
        for group in &moves.groups {
            let occurring = OccurringMoves::new(group, |edge| occupied.contains(edge.from));
            for target in self.open.lane.after(group.step, shared.tables.params()) {
                let best = best.as_deref_mut();
                self.raise(target, &occurring, &reach, &pieces, (&mut states[..], best), &mut task.maps)?;
            }
        }
        Ok(MaxValues { reach, transitions, states, best })
    }

    fn settle(
        &self,
        made: Option<Self::Made>,
        task: &mut StageResources<'_>,
    ) -> Result<Outcome, WorkerError> {
        let (open, store) = (self.open, &self.drain.shared.store);
        let Some(MaxValues { reach, transitions, states, best }) = made else {
            store.hold_state_values(open.layer, open.lane, ValueBlock::empty());
            return Ok(Outcome::default());
        };
        let best = best.as_deref();
        let block = BackedUp { open, transitions: &transitions, reach: &reach, states: &states, best };
        let outcome = self.drain.values(&block, &mut task.maps)?;
        store.settle_maps(&mut task.maps);
        let values = store.settle_state_values(reach, open.tables.stride(), states)?;
        store.hold_state_values(open.layer, open.lane, values);
        Ok(outcome)
    }
}

impl<V: Value> BackUpStates<'_, V> {
    /// Raises the values of states to those of the afterstates in one lane that occurring moves lead to.
    fn raise(
        &self,
        target: Lane,
        occurring: &OccurringMoves,
        reach: &Entries,
        pieces: &Pieces,
        (states, mut best): (&mut [V], Option<&mut [Direction]>),
        cache: &mut MapCache,
    ) -> Result<(), WorkerError> {
        let (OpenBlock { layer, tables, .. }, shared) = (self.open, self.drain.shared);
        let after = shared.store.after_values(*layer, target);
        if after.is_none() && !shared.backup.can_win() {
            return Ok(());
        }
        let target = shared.tables.lane_or_empty(target);
        // A row of zeros with its padding stands for rows of afterstates that were not computed.
        let mut nothing = vec![V::default(); target.stride()];
        nothing[target.columns.len() + 1] = shared.backup.won();
        let (no_rows, none) = (RowSet::all(0), BitSet::default());
        let not_computed = Rows { stride: nothing.len(), set: &no_rows, occupied: &none, values: &[] };
        let after = after.as_ref().map_or(not_computed, |block| block.rows());
        let (stride, wanted) = (tables.stride(), reach.source());
        // If memory is short, maps are dropped, and made again for the next layer.
        shared.store.make_free(0)?;
        shared.tables.maps(cache, tables, &target).for_each_some(&occurring.patterns, |patterns, maps| {
            let runs = occurring.runs(patterns, maps);
            let plan = Maxima { runs: &runs, wanted, stride, after, nothing: &nothing };
            match &mut best {
                None => pieces.map_of(states, stride, |slots, states| {
                    shared.kernels.maxima(&plan, slots, states);
                }),
                Some(best) => pieces.map_of_both((states, best), stride, |slots, states, best| {
                    shared.kernels.best_moves(&plan, slots, states, best);
                }),
            };
        });
        Ok(())
    }

    /// Sets the values of the states in some slots as if no move were legal. Rows with a move that wins get the value
    /// of a won game.
    fn end_games(
        &self,
        transitions: &Transitions,
        occupied: &BitSet<Slot>,
        slots: Range<usize>,
        states: &mut [V],
    ) {
        let (tables, shared) = (&self.open.tables, self.drain.shared);
        let (columns, stride, backup) = (tables.columns.len(), tables.stride(), &shared.backup);
        let potential = &shared.tables.skeletons(transitions).potential;
        let rows = states.chunks_exact_mut(stride).zip(slots.clone().map(Slot::from_index));
        for (values, slot) in rows.filter(|&(_, slot)| occupied.contains(slot)) {
            let small = potential[slot.index()];
            for (value, large) in values[..columns].iter_mut().zip(tables.columns.potential()) {
                *value = backup.terminal(small + large);
            }
        }
        let won = of_slots(&shared.tables.moves(transitions).won_rows, slots.clone(), |&(slot, _)| slot);
        for &(slot, _) in won.iter().filter(|(slot, _)| occupied.contains(*slot)) {
            states[(slot.index() - slots.start) * stride..][..columns].fill(backup.won());
        }
    }
}

/// Sets the best moves as if no move were legal. Rows with a move that wins get the first such move.
fn begin_best_moves(moves: &Moves, stride: usize, best: &mut [Direction]) {
    best.fill(0);
    for &(slot, direction) in &moves.won_rows {
        best[slot.index() * stride..][..stride].fill(direction);
    }
}
