//! Held blocks as lists of boards and values, for callers that do not use rows and columns.

use std::sync::Arc;

use exact2048_game::bitset::{Number, for_each_bit};
use exact2048_game::locate::with_tiles;
use exact2048_game::rowset::Slot;
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Lane, Layer};

use crate::bits::Source;
use crate::error::WorkerError;
use crate::footprint::{means_input_need, shape};
use crate::open_block::OpenBlock;
use crate::shared::Shared;

/// An image of each held state of a block, in the order of the block's entries. A state in a symmetric row has several.
pub fn boards<V: Value>(shared: &Shared<V>, layer: Layer, lane: Lane) -> Vec<Board> {
    let open = OpenBlock::new(&shared.tables, layer, lane, 0);
    let Some((open, block)) = open.zip(shared.store.states(layer, lane)) else { return Vec::new() };
    let (space, sequences) = (&shared.tables.space, open.tables.columns.sequences());
    let mut boards = Vec::with_capacity(block.summary.ones as usize);
    for (slot, bits) in rows(block.source()) {
        let (small, large_cells) = space.skeleton(open.class, block.rows.row(slot));
        for_each_bit(bits, |column| {
            boards.push(with_tiles(small, large_cells, sequences[column]));
        });
    }
    boards
}

/// The held values of the states of a block, in the order of [`boards`].
pub fn values<V: Value>(shared: &Shared<V>, layer: Layer, lane: Lane) -> Vec<Stored> {
    let (store, mut found) = (&shared.store, Vec::new());
    let (Some(block), Some(held)) = (store.states(layer, lane), store.state_values(layer, lane)) else {
        return found;
    };
    let held = held.unpacked(store.memory()).map_or(held, Arc::new);
    for (slot, bits) in rows(block.source()) {
        let row = held.rows.slot(block.rows.row(slot));
        let of_row = &held.values[row.index() * held.stride..][..held.stride];
        for_each_bit(bits, |column| found.push(of_row[column].stored()));
    }
    found
}

/// Adds values to the held states of a block, in the order of [`boards`].
///
/// # Errors
///
/// If they cannot be written to a scratch file.
pub fn hold_values<V: Value>(
    shared: &Shared<V>,
    layer: Layer,
    lane: Lane,
    values: &[Stored],
) -> Result<(), WorkerError> {
    let store = &shared.store;
    let mut reserved = store.reserve(means_input_need::<V>(shape(&shared.tables, layer, lane), 1))?;
    let entries = shared.sources.occurring_states(layer, lane)?;
    let Some((entries, tables)) = entries.zip(shared.tables.lane(lane)) else { return Ok(()) };
    let (stride, mut next) = (tables.stride(), values.iter());
    let mut area = reserved.area::<V>(entries.matrix.rows().len() * stride);
    for (slot, bits) in rows(entries.source()) {
        let row = &mut area[slot.index() * stride..][..stride];
        for_each_bit(bits, |column| {
            row[column] = next.next().map_or(V::default(), |&value| V::of_stored(value));
        });
    }
    store.hold_state_values(layer, lane, store.settle_state_values(entries, stride, area)?);
    Ok(())
}

/// The rows of a block that have entries, with their bits.
fn rows(block: Source<'_>) -> impl Iterator<Item = (Slot, &[u64])> {
    let rows = (0..).map(Slot).zip(block.bits.chunks_exact(block.words.max(1)));
    rows.filter(move |(slot, _)| block.occupied.contains(*slot))
}
