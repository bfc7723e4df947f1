//! The best moves of a block as items, one for each part.

use std::ops::Range;

use exact2048_game::bitset::{self, Number};
use exact2048_game::configs::Config;
use exact2048_game::legal::{Legality, MaskLegality};
use exact2048_game::rowset::Slot;
use exact2048_game::transitions::Direction;
use exact2048_solution::best_moves::StateRow;

use crate::bits::BitMatrix;
use crate::open_block::{BackedUp, OpenBlock};
use crate::pieces::map_parts;
use crate::tables::Tables;

/// The items of the parts of a block, each encoded from the number of columns and the part's rows. They may be empty.
///
/// `best` has the same rows as the block's values.
pub fn best_moves_items<V: Sync>(
    tables: &Tables,
    legality: &Legality,
    block: &BackedUp<'_, V>,
    best: &[Direction],
    encode: impl Fn(usize, &mut RowsOfMoves<'_>) -> Vec<u8> + Sync,
) -> Vec<Vec<u8>> {
    let BackedUp { open, transitions, reach, .. } = *block;
    let (parts, columns) = (open.parts(), open.tables.columns.len());
    let (configs, stride) = (tables.configs(transitions), open.tables.stride());
    map_parts(parts, |part| {
        let masks = state_masks(tables, legality, open, &reach.matrix, parts.rows(part));
        let rows = state_rows(&masks, configs, &reach.matrix);
        let mut rows = rows.map(|(row, slot)| (row, &best[slot.index() * stride..][..columns]));
        encode(columns, &mut rows)
    })
}

/// The masks of some rows of a block, each with the rows that have states.
pub fn state_masks<'a>(
    tables: &'a Tables,
    legality: &'a Legality,
    open: &OpenBlock<'_>,
    matrix: &BitMatrix,
    rows: Range<usize>,
) -> Vec<StateMask<'a>> {
    let held = matrix.rows();
    let masks = tables.space.masks(open.lane.k).iter().enumerate();
    let with_states = |(index, mask)| {
        let all = open.class.mask_rows(index);
        let here = all.start.max(rows.start)..all.end.min(rows.end);
        let slots = held.rows_in(here).map(|row| held.slot(row));
        let slots: Vec<Slot> = slots.filter(|&slot| bitset::any(matrix.slot(slot))).collect();
        let legality = || legality.of_mask(mask, &open.tables.columns);
        (!slots.is_empty()).then(|| StateMask { legality: legality(), slots })
    };
    masks.filter_map(with_states).collect()
}

/// Rows of a part that have states, with the best move of each column.
pub(crate) type RowsOfMoves<'a> = dyn Iterator<Item = (StateRow<'a>, &'a [Direction])> + 'a;

/// Rows of one mask that have states.
pub struct StateMask<'a> {
    legality: MaskLegality<'a>,
    slots: Vec<Slot>,
}

/// The rows of some masks, in the order in which best moves are coded, and their slots.
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
