//! Blocks on their way from the worker that made them to one that needs them.
//!
//! A payload is what [`Parts`] stores of a block, without compression: of states the items of all parts, of
//! afterstates' values which rows were computed, then those rows. An empty payload is a block without entries.
//! Payloads come from other machines, so nothing in them is trusted.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use exact2048_game::class::Class;
use exact2048_game::rowset::{RowSet, is_set};
use exact2048_game::{Lane, Layer};

use crate::bits::BitMatrix;
use crate::blocks::{Entries, ValueBlock};
use crate::bytes_list::BytesList;
use crate::enumerate::occurring_rows;
use crate::payload::{Parts, PayloadError};
use crate::pieces::Pieces;
use crate::{Value, Worker, WorkerError};

/// Bytes before each item: its part and its length, 4 bytes each, little endian.
const ITEM_HEAD_BYTES: usize = 8;

impl<V: Value> Worker<V> {
    /// The states of a block that was enumerated here, for other workers. Empty where there are none.
    pub fn states_payload(&self, layer: Layer, lane: Lane) -> BytesList {
        let (Some(block), Some(parts)) = (self.reach.get(layer, lane), self.parts_of(layer, lane)) else {
            return BytesList::default();
        };
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

    /// Takes in the states of a block that another worker enumerated.
    pub fn accept_states(&self, layer: Layer, lane: Lane, mut payload: impl Buf) -> Result<(), WorkerError> {
        let (Some(class), Some(parts)) = (self.tables.class(layer, lane), self.parts_of(layer, lane)) else {
            return Err(unknown(layer, lane).into());
        };
        let (bytes, words) = (payload.remaining(), parts.words());
        let mut next_item = || -> Result<Option<_>, PayloadError> {
            if !payload.has_remaining() {
                return Ok(None);
            }
            let (part, item) = split_item(&mut payload).ok_or_else(|| cut_off(layer, lane, bytes))?;
            let key = Parts::key(layer, lane, part);
            Ok(Some((key, parts.rows_of(key)?, item)))
        };
        let matrix = if let Some(all) = self.tables.all_rows(class) {
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
            occurring_rows(class, parts, &found)
        };
        // On the thread that received it: the others compute.
        let whole = Pieces::whole(matrix.rows().len());
        let entries = Entries::of(matrix, &whole);
        self.reach.insert(layer, lane, self.settle_reach(entries)?);
        Ok(())
    }

    /// The values of the afterstates of a block that was backed up here, for other workers: of the rows that
    /// moves from other lanes may lead to.
    pub fn after_values_payload(&self, layer: Layer, lane: Lane) -> BytesList {
        let (Some(block), Some(class)) = (self.after_values.get(layer, lane), self.tables.class(layer, lane))
        else {
            return BytesList::default();
        };
        if block.values.is_empty() {
            return BytesList::default();
        }
        let sent = self.rows_for_others(class, &block);
        let columns = self.tables.lane(lane).map_or(0, |tables| tables.columns.len());
        let rows: usize = sent.iter().map(|word| word.count_ones() as usize).sum();
        let mut payload = BytesList::writer(8 * sent.len() + rows * columns * size_of::<V>());
        sent.iter().for_each(|word| payload.put(&word.to_le_bytes()));
        for (slot, _) in block.rows.iter().enumerate().filter(|&(_, row)| is_set(&sent, row)) {
            let row = &block.values[slot * block.stride..][..columns];
            payload.put(bytemuck::cast_slice(row));
        }
        payload.finish()
    }

    /// Takes in the values of the afterstates of a block that another worker backed up.
    pub fn accept_after_values(
        &self,
        layer: Layer,
        lane: Lane,
        mut payload: impl Buf,
    ) -> Result<(), WorkerError> {
        let (Some(class), Some(tables)) = (self.tables.class(layer, lane), self.tables.lane(lane)) else {
            return Err(unknown(layer, lane).into());
        };
        let bytes = payload.remaining();
        if bytes == 0 {
            self.after_values.insert(layer, lane, self.no_values()?);
            return Ok(());
        }
        let (columns, words) = (tables.columns.len(), class.rows().div_ceil(64));
        if bytes < 8 * words {
            return Err(cut_off(layer, lane, bytes).into());
        }
        let occupied: Vec<u64> = (0..words).map(|_| payload.get_u64_le()).collect();
        let behind = class.rows() % 64;
        if behind != 0 && occupied.last().is_some_and(|&word| word >> behind != 0) {
            return Err(cut_off(layer, lane, bytes).into());
        }
        let rows = match self.tables.all_rows(class) {
            Some(all) => all,
            None => Arc::new(RowSet::new(occupied.clone())),
        };
        let count: usize = occupied.iter().map(|word| word.count_ones() as usize).sum();
        if payload.remaining() != count * columns * size_of::<V>() {
            return Err(cut_off(layer, lane, bytes).into());
        }
        let stride = crate::backup::stride(&tables);
        self.make_room(rows.len() * stride * size_of::<V>())?;
        let mut values = self.memory.area::<V>(rows.len() * stride);
        for (slot, _) in rows.iter().enumerate().filter(|&(_, row)| is_set(&occupied, row)) {
            let values = &mut values[slot * stride..][..stride];
            payload.copy_to_slice(bytemuck::cast_slice_mut(&mut values[..columns]));
            (values[columns], values[columns + 1]) = (V::default(), self.backup.won());
        }
        let values = self.memory.settle(values)?;
        self.after_values.insert(layer, lane, ValueBlock { rows, stride, occupied, values });
        Ok(())
    }

    /// The rows of afterstates' values that other lanes may need, one bit each.
    fn rows_for_others(&self, class: &Class, block: &ValueBlock<V>) -> Vec<u64> {
        // Where blocks hold all rows of their class, what is known of these is kept, and rows are slots.
        match self.tables.kept_transitions(class.id()) {
            Some(kept) => block.occupied.iter().zip(&*kept.entered).map(|(o, e)| o & e).collect(),
            None => block.occupied.clone(),
        }
    }

    fn parts_of(&self, layer: Layer, lane: Lane) -> Option<Parts> {
        let columns = self.tables.lane(lane)?.columns.len();
        Some(Parts::new(self.tables.class(layer, lane)?.rows(), columns))
    }
}

/// The next item of a payload, taken off its front.
fn split_item(payload: &mut impl Buf) -> Option<(u32, Bytes)> {
    if payload.remaining() < ITEM_HEAD_BYTES {
        return None;
    }
    let (part, bytes) = (payload.get_u32_le(), payload.get_u32_le() as usize);
    (payload.remaining() >= bytes).then(|| (part, payload.copy_to_bytes(bytes)))
}

fn unknown(layer: Layer, lane: Lane) -> PayloadError {
    PayloadError::new(Parts::key(layer, lane, 0), "a block of this run".into(), "one that it has not".into())
}

fn cut_off(layer: Layer, lane: Lane, bytes: usize) -> PayloadError {
    let expected = "a whole block of this run".into();
    PayloadError::new(Parts::key(layer, lane, 0), expected, format!("another payload of {bytes} bytes"))
}
