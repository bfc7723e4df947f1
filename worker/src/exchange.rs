//! Blocks as payloads, sent from the worker that made them to one that needs them.
//!
//! The payload of states has the items of all parts of a block as [`Parts`] stores them, without compression. The
//! payload of afterstates' values has one bit a row of the class, set if the row is sent. Then it has for each sent row
//! one bit a column, and the values of the columns with a set bit. A short row is sent with all its values and no bits.
//! Bits are in words of 8 bytes, and all numbers are little endian. An empty payload is a block without entries. Other
//! machines send payloads, so this module checks all of them.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use exact2048_game::bitset::{BitSet, any, last_word, ones};
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer};
use exact2048_solution::packing::{WORD, pack_row, unpack_row};
use exact2048_solution::{Parts, PayloadError};

use crate::bits::BitMatrix;
use crate::blocks::{Entries, ValueBlock};
use crate::bytes_list::BytesList;
use crate::enumerate::{move_sources, moved, rows_after};
use crate::error::WorkerError;
use crate::open_block::OpenBlock;
use crate::pieces::Pieces;
use crate::shared::Shared;

/// Rows of at most this many columns are sent whole, because packing them would take longer than sending them.
const SHORT_ROW_COLUMNS: usize = 64;

/// Bytes before each item: its part and its length, 4 bytes each, little endian.
const ITEM_HEAD_BYTES: usize = 8;

/// The states of a block that this worker enumerated, for other workers. Empty if the block has none.
pub fn states_payload<V: Value>(shared: &Shared<V>, layer: Layer, lane: Lane) -> BytesList {
    let open = OpenBlock::new(&shared.tables, layer, lane, 0);
    let (Some(block), Some(open)) = (shared.store.states(layer, lane), open) else {
        return BytesList::default();
    };
    let parts = open.parts();
    let mut payload = BytesList::writer(8 * block.bits.len());
    if !block.is_empty() {
        for part in 0..parts.count() {
            let item = parts.encode_reach(part, &block.rows, &block.bits);
            if !item.is_empty() {
                payload.put(&part.to_le_bytes());
                payload.put(&(item.len() as u32).to_le_bytes());
                payload.put(&item);
            }
        }
    }
    payload.finish()
}

/// Reads and holds the states of a block that another worker enumerated.
///
/// # Errors
///
/// If the payload is not one that [`states_payload`] makes for a block of this run, or if the block cannot be written
/// to a scratch file.
pub fn accept_states<V: Value>(
    shared: &Shared<V>,
    layer: Layer,
    lane: Lane,
    mut payload: BytesList,
) -> Result<(), WorkerError> {
    let open = OpenBlock::new(&shared.tables, layer, lane, 0).ok_or_else(|| unknown(layer, lane))?;
    let (class, parts) = (open.class, open.parts());
    let (bytes, words, mut least_part) = (payload.remaining(), parts.words(), 0);
    let mut next_item = || -> Result<Option<_>, PayloadError> {
        if !payload.has_remaining() {
            return Ok(None);
        }
        let (part, item) = split_item(&mut payload).ok_or_else(|| cut_off(layer, lane, bytes))?;
        // A part may occur only once, because a short payload must not fill the memory.
        if part < least_part {
            return Err(out_of_order(layer, lane, part));
        }
        let key = Parts::key(layer, lane, part);
        let rows = parts.rows_of(key)?;
        least_part = part + 1;
        Ok(Some((key, rows, item)))
    };
    let matrix = if let Some(all) = shared.tables.all_rows(class) {
        let mut matrix = BitMatrix::new(all, words);
        while let Some((key, rows, item)) = next_item()? {
            let bits = &mut matrix.bits_mut()[rows.start * words..rows.end * words];
            parts.decode_reach_part(key, &item, bits)?;
        }
        matrix
    } else {
        let mut found = Vec::new();
        while let Some((key, rows, item)) = next_item()? {
            let mut bits = vec![0u64; rows.len() * words];
            parts.decode_reach_part(key, &item, &mut bits)?;
            found.push((key.part, bits));
        }
        BitMatrix::of_parts(class, parts, &found)
    };
    // This thread counts all entries, because the others compute.
    let whole = Pieces::whole(matrix.rows().len());
    let entries = Entries::of(matrix, &whole);
    shared.store.hold_states(layer, lane, entries)?;
    Ok(())
}

/// The values of the afterstates of a block that this worker backed up, for each of some other members.
///
/// A payload has only the afterstates to which moves from states of the member's lanes lead. It is empty if there are
/// none. If the block has no note, these states are read.
///
/// # Errors
///
/// If the states cannot be read.
pub fn after_values_payloads<V: Value>(
    shared: &Shared<V>,
    layer: Layer,
    lane: Lane,
    members: &[usize],
) -> Result<Vec<BytesList>, WorkerError> {
    let open = OpenBlock::new(&shared.tables, layer, lane, 0);
    let (Some(block), Some(open)) = (shared.store.after_values(layer, lane), open) else {
        return Ok(vec![BytesList::default(); members.len()]);
    };
    let mut noted = shared.notes.take(layer, lane);
    let payload = |&member: &usize| {
        let wanted = match &mut noted {
            Some(noted) => noted.remove(&member),
            None => wanted_by(shared, &open, member)?,
        };
        Ok(wanted.map_or_else(BytesList::default, |wanted| values_payload(&open, &block, wanted)))
    };
    members.iter().map(payload).collect()
}

/// The afterstates of a block to which states of a member lead; `None` if it has no such states.
fn wanted_by<V: Value>(
    shared: &Shared<V>,
    open: &OpenBlock<'_>,
    member: usize,
) -> Result<Option<BitMatrix>, WorkerError> {
    let (owners, _) = shared.notes.owners();
    let sources = move_sources(shared, open, |from| owners.owner(from) == member)?;
    if sources.is_empty() {
        return Ok(None);
    }
    let rows = rows_after(shared, open, &sources)?;
    moved(shared, open, rows, &sources, &mut open.tables.maps()).map(Some)
}

/// The values of wanted afterstates of a block.
fn values_payload<V: Value>(open: &OpenBlock<'_>, block: &ValueBlock<V>, mut needed: BitMatrix) -> BytesList {
    let (class, tables) = (open.class, &open.tables);
    let columns = tables.columns.len();
    needed.map_pieces(&Pieces::whole(needed.rows().len()), |rows| rows.clear_padding(columns));
    let mut sent = BitSet::with_room(class.rows());
    let rows = || needed.rows().iter().zip((0..).map(Slot)).map(|(row, slot)| (row, needed.slot(slot)));
    let is_needed = |&(row, bits): &(Row, &[u64])| block.occupied.contains(row) && any(bits);
    rows().filter(is_needed).for_each(|(row, _)| sent.insert(row));
    let entries: u64 = rows().map(|(_, bits)| ones(bits)).sum();
    let rows_sent = sent.len();
    let row_bytes = if columns <= SHORT_ROW_COLUMNS { columns * size_of::<V>() } else { 8 * needed.words() };
    let mut payload =
        BytesList::writer(8 * sent.words().len() + rows_sent * row_bytes + entries as usize * size_of::<V>());
    payload.put(bytemuck::cast_slice(sent.words()));
    let mut packed = Vec::new();
    for (row, bits) in rows().filter(is_needed) {
        let values = &block.rows().row(row)[..columns];
        if columns <= SHORT_ROW_COLUMNS {
            payload.put(bytemuck::cast_slice(values));
            continue;
        }
        packed.clear();
        pack_row(&mut packed, values, bits);
        payload.put(bytemuck::cast_slice(bits));
        payload.put(bytemuck::cast_slice(&packed));
    }
    payload.finish()
}

/// Reads and holds the values of the afterstates of a block that another worker backed up.
///
/// # Errors
///
/// If the payload is not one that [`after_values_payloads`] makes for a block of this run, or if the block cannot be
/// written to a scratch file.
pub fn accept_after_values<V: Value>(
    shared: &Shared<V>,
    layer: Layer,
    lane: Lane,
    mut payload: BytesList,
) -> Result<(), WorkerError> {
    let open = OpenBlock::new(&shared.tables, layer, lane, 0).ok_or_else(|| unknown(layer, lane))?;
    let (class, tables) = (open.class, &open.tables);
    let bytes = payload.remaining();
    if bytes == 0 {
        shared.store.hold_after_values(layer, lane, ValueBlock::empty());
        return Ok(());
    }
    let is_cut_off = || cut_off(layer, lane, bytes);
    let occupied = take_bits(&mut payload, class.rows()).ok_or_else(is_cut_off)?;
    let occupied = BitSet::<Row>::from_words(occupied);
    let (columns, stride) = (tables.columns.len(), tables.stride());
    // The payload must have a row for every set bit. Its length is checked before the rows take memory.
    let is_short = columns <= SHORT_ROW_COLUMNS;
    let least_row_bytes = if is_short { columns * size_of::<V>() } else { 8 * tables.words() };
    if payload.remaining() < occupied.len() * least_row_bytes {
        return Err(is_cut_off().into());
    }
    let is_sparse = |rows| shared.piece_length.is_sparse::<V>(rows, stride, occupied.len());
    let rows = match shared.tables.all_rows(class) {
        Some(all) if !is_sparse(all.len()) => all,
        _ => Arc::new(RowSet::new(occupied.clone())),
    };
    shared.store.make_free(rows.len() * stride * size_of::<V>())?;
    let mut values = shared.store.memory().area::<V>(rows.len() * stride);
    let mut packed = Vec::new();
    for (slot, _) in rows.iter().enumerate().filter(|&(_, row)| occupied.contains(row)) {
        let values = &mut values[slot * stride..][..stride];
        if is_short {
            payload.copy_to_slice(bytemuck::cast_slice_mut(&mut values[..columns]));
        } else {
            let marked = take_bits(&mut payload, columns).ok_or_else(is_cut_off)?;
            let count = ones(&marked) as usize;
            packed.resize(count + WORD, V::default());
            let sent: &mut [u8] = bytemuck::cast_slice_mut(&mut packed[..count]);
            if payload.remaining() < sent.len() {
                return Err(is_cut_off().into());
            }
            payload.copy_to_slice(sent);
            unpack_row(&packed, &mut values[..columns], &marked);
        }
        (values[columns], values[columns + 1]) = (V::default(), shared.backup.won());
    }
    if payload.has_remaining() {
        return Err(is_cut_off().into());
    }
    let values = shared.store.memory().settle(values)?;
    let block = ValueBlock { rows, stride, occupied, values, marks: None, is_packed: false };
    shared.store.hold_after_values(layer, lane, block);
    Ok(())
}

/// The first `count` bits of a payload, taken off its front. `None` if it is too short, or a later bit is set.
fn take_bits(payload: &mut BytesList, count: usize) -> Option<Vec<u64>> {
    let words = count.div_ceil(64);
    if payload.remaining() < 8 * words {
        return None;
    }
    let mut bits = vec![0u64; words];
    payload.copy_to_slice(bytemuck::cast_slice_mut(&mut bits));
    let is_within = bits.last().is_none_or(|last| last & !last_word(count) == 0);
    is_within.then_some(bits)
}

/// The next item of a payload, taken off its front.
fn split_item(payload: &mut BytesList) -> Option<(u32, Bytes)> {
    if payload.remaining() < ITEM_HEAD_BYTES {
        return None;
    }
    let (part, bytes) = (payload.get_u32_le(), payload.get_u32_le() as usize);
    (payload.remaining() >= bytes).then(|| (part, payload.copy_to_bytes(bytes)))
}

fn unknown(layer: Layer, lane: Lane) -> PayloadError {
    PayloadError::new(Parts::key(layer, lane, 0), "a block of this run".into(), "an unknown block".into())
}

fn out_of_order(layer: Layer, lane: Lane, part: u32) -> PayloadError {
    PayloadError::new(Parts::key(layer, lane, part), "ascending parts".into(), "a lower part".into())
}

fn cut_off(layer: Layer, lane: Lane, bytes: usize) -> PayloadError {
    let expected = "a whole block of this run".into();
    PayloadError::new(Parts::key(layer, lane, 0), expected, format!("another payload of {bytes} bytes"))
}
