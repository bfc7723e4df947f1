//! Packing of best moves: the items of a block for the shard of its layer.

use std::ops::Range;

use exact2048_game::bitset::{self, Number};
use exact2048_game::legal::{Legality, MaskLegality};
use exact2048_game::rowset::Slot;
use exact2048_game::skeleton::Config;
use exact2048_game::transitions::Direction;
use exact2048_game::value::Value;
use exact2048_solution::ItemKind;
use exact2048_solution::best_moves::{self, StateRow};

use crate::backup::BackedUp;
use crate::bits::BitMatrix;
use crate::open_block::OpenBlock;
use crate::pieces::map_parts;
use crate::{Worker, WorkerError};

impl<V: Value> Worker<V> {
    /// Packs the best moves of a block, which are given in rows as those of its values. Cost: some nanoseconds a state.
    pub(crate) fn pack_best_moves(
        &self,
        legality: &Legality,
        block: &BackedUp<'_, V>,
        best: &[Direction],
    ) -> Result<(), WorkerError> {
        let items =
            self.best_moves_items(legality, block, best, |columns, rows| best_moves::encode(columns, rows));
        let lengths: Vec<usize> = items.iter().map(Vec::len).collect();
        let item = |part: u32| items[part as usize].clone();
        self.pack(ItemKind::BestMoves, block.open.layer, block.open.lane, &lengths, item)
    }

    /// The items of the parts of a block, each encoded from the number of columns and the part's rows; may be empty.
    pub(crate) fn best_moves_items(
        &self,
        legality: &Legality,
        block: &BackedUp<'_, V>,
        best: &[Direction],
        encode: impl Fn(usize, &mut RowsOfMoves<'_>) -> Vec<u8> + Sync,
    ) -> Vec<Vec<u8>> {
        let BackedUp { open, transitions, reach, .. } = *block;
        let (parts, columns) = (open.parts(), open.tables.columns.len());
        let (configs, stride) = (self.tables.configs(transitions), open.tables.stride());
        map_parts(parts, |part| {
            let masks = self.state_masks(legality, open, &reach.matrix, parts.rows(part));
            let rows = state_rows(&masks, configs, &reach.matrix);
            let mut rows = rows.map(|(row, slot)| (row, &best[slot.index() * stride..][..columns]));
            encode(columns, &mut rows)
        })
    }

    /// The rows that have states, of some rows of a block, by their masks.
    pub(crate) fn state_masks<'a>(
        &'a self,
        legality: &'a Legality,
        open: &OpenBlock<'_>,
        matrix: &BitMatrix,
        rows: Range<usize>,
    ) -> Vec<StateMask<'a>> {
        let held = matrix.rows();
        let masks = self.tables.space.masks(open.lane.k).iter().enumerate();
        let with_states = |(index, mask)| {
            let all = open.class.mask_rows(index);
            let here = all.start.max(rows.start)..all.end.min(rows.end);
            let slots = held.rows_in(here).map(|row| held.slot(row));
            let slots: Vec<Slot> = slots.filter(|&slot| bitset::any(matrix.slot(slot))).collect();
            (!slots.is_empty())
                .then(|| StateMask { legality: legality.of_mask(mask, &open.tables.columns), slots })
        };
        masks.filter_map(with_states).collect()
    }
}

/// Rows of a part that have states, with the best move of each column.
pub(crate) type RowsOfMoves<'a> = dyn Iterator<Item = (StateRow<'a>, &'a [Direction])> + 'a;

/// Rows of one mask that have states.
pub struct StateMask<'a> {
    legality: MaskLegality<'a>,
    slots: Vec<Slot>,
}

/// The rows of some masks, in order, as best moves are coded, and their slots.
pub fn state_rows<'a>(
    masks: &'a [StateMask<'_>],
    configs: &'a [Config],
    matrix: &'a BitMatrix,
) -> impl Iterator<Item = (StateRow<'a>, Slot)> {
    masks.iter().flat_map(move |StateMask { legality, slots }| {
        slots.iter().map(move |&slot| {
            let legality = legality.row(configs[slot.index()]);
            (StateRow { legality, states: matrix.slot(slot) }, slot)
        })
    })
}
