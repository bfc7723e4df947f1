//! Held blocks as lists of boards and values, for callers that do not use rows and columns.

use exact2048_game::bitset::for_each_bit;
use exact2048_game::locate::with_tiles;
use exact2048_game::rowset::Slot;
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Lane, Layer};

use crate::blocks::{Entries, ReachBlock};
use crate::error::WorkerError;
use crate::footprint::{means_input_need, shape};
use crate::open_block::OpenBlock;
use crate::shared::Shared;

/// The canonical boards of the held states of a block, in the order of its entries.
pub fn boards<V: Value>(shared: &Shared<V>, layer: Layer, lane: Lane) -> Vec<Board> {
    let open = OpenBlock::new(&shared.tables, layer, lane, 0);
    let Some((open, block)) = open.zip(shared.store.states(layer, lane)) else { return Vec::new() };
    let (space, sequences) = (&shared.tables.space, open.tables.columns.sequences());
    let mut boards = Vec::with_capacity(block.summary.ones as usize);
    for (slot, bits) in rows(&block) {
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
    let held = held.unpacked(store.memory()).map_or(held, std::sync::Arc::new);
    for (slot, bits) in rows(&block) {
        let row = held.rows.slot(block.rows.row(slot));
        let of_row = &held.values[row.0 as usize * held.stride..][..held.stride];
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
    let (store, open) = (&shared.store, OpenBlock::new(&shared.tables, layer, lane, 0));
    let Some((open, block)) = open.zip(store.states(layer, lane)) else { return Ok(()) };
    let Some(entries) = Entries::of_block(&block) else { return Ok(()) };
    let mut reserved = store.reserve(means_input_need::<V>(shape(&shared.tables, layer, lane), 1))?;
    let stride = open.tables.stride();
    let (mut area, mut next) = (reserved.area::<V>(block.rows.len() * stride), values.iter());
    for (slot, bits) in rows(&block) {
        let row = &mut area[slot.0 as usize * stride..][..stride];
        for_each_bit(bits, |column| {
            row[column] = next.next().map_or(V::default(), |&value| V::of_stored(value))
        });
    }
    store.hold_state_values(layer, lane, store.settle_state_values(entries, stride, area)?);
    Ok(())
}

/// The rows of a block that have entries, with their bits.
fn rows(block: &ReachBlock) -> impl Iterator<Item = (Slot, &[u64])> {
    let rows = (0..).map(Slot).zip(block.bits.chunks_exact(block.words.max(1)));
    rows.filter(|(slot, _)| block.summary.occupied.contains(*slot))
}
