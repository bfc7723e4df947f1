//! Blocks on their way from the worker that made them to one that needs them.
//!
//! A payload is what [`Parts`] stores of a block, without compression: of states the items of all parts, of
//! afterstates' values which rows were computed, then those rows. An empty payload is a block without entries.
//! Payloads come from other machines, so nothing in them is trusted.

use std::sync::Arc;

use exact2048_game::rowset::{RowSet, is_set};
use exact2048_game::{Lane, Layer};

use crate::blocks::ValueBlock;
use crate::payload::{Parts, PayloadError};
use crate::{Value, Worker, WorkerError};

/// Bytes before each item: its part and its length, 4 bytes each, little endian.
const ITEM_HEAD_BYTES: usize = 8;

impl<V: Value> Worker<V> {
    /// The states of a block that was enumerated here, for other workers. Empty where there are none.
    pub fn states_payload(&self, layer: Layer, lane: Lane) -> Vec<u8> {
        let (Some(block), Some(parts)) = (self.reach.get(layer, lane), self.parts_of(layer, lane)) else {
            return Vec::new();
        };
        let mut payload = Vec::new();
        if !block.is_empty() {
            for part in 0..parts.count() {
                if let Some(item) = parts.encode_reach(part, &block.rows, &block.bits) {
                    payload.extend_from_slice(&part.to_le_bytes());
                    payload.extend_from_slice(&(item.len() as u32).to_le_bytes());
                    payload.extend_from_slice(&item);
                }
            }
        }
        payload
    }

    /// Takes in the states of a block that another worker enumerated.
    pub fn accept_states(&self, layer: Layer, lane: Lane, payload: &[u8]) -> Result<(), WorkerError> {
        let (Some(class), Some(parts)) = (self.tables.class(layer, lane), self.parts_of(layer, lane)) else {
            return Err(unknown(layer, lane).into());
        };
        let mut found: Vec<(u32, Vec<u64>)> = Vec::new();
        let mut rest = payload;
        while !rest.is_empty() {
            let (part, item) = split_item(&mut rest).ok_or_else(|| cut_off(layer, lane, payload.len()))?;
            let key = Parts::key(layer, lane, part);
            let mut bits = vec![0u64; parts.rows_of(key)?.len() * parts.words()];
            parts.decode_reach_part(key, item, &mut bits)?;
            found.push((part, bits));
        }
        let matrix = self.matrix_of_parts(class, parts, &found)?;
        self.reach.insert(layer, lane, self.settle_bits(matrix)?);
        Ok(())
    }

    /// The values of the afterstates of a block that was backed up here, for other workers.
    pub fn after_values_payload(&self, layer: Layer, lane: Lane) -> Vec<u8> {
        let (Some(block), Some(parts)) = (self.after_values.get(layer, lane), self.parts_of(layer, lane))
        else {
            return Vec::new();
        };
        let mut payload = Vec::new();
        if block.values.is_empty() {
            return payload;
        }
        block.occupied.iter().for_each(|word| payload.extend_from_slice(&word.to_le_bytes()));
        for (slot, _) in block.rows.iter().enumerate().filter(|&(_, row)| is_set(&block.occupied, row)) {
            let row = &block.values[slot * block.stride..][..parts.columns()];
            payload.extend_from_slice(bytemuck::cast_slice(row));
        }
        payload
    }

    /// Takes in the values of the afterstates of a block that another worker backed up.
    pub fn accept_after_values(&self, layer: Layer, lane: Lane, payload: &[u8]) -> Result<(), WorkerError> {
        let (Some(class), Some(tables)) = (self.tables.class(layer, lane), self.tables.lane(lane)) else {
            return Err(unknown(layer, lane).into());
        };
        if payload.is_empty() {
            self.after_values.insert(layer, lane, self.no_values()?);
            return Ok(());
        }
        let (columns, words) = (tables.columns.len(), class.rows().div_ceil(64));
        let (head, mut rest) =
            payload.split_at_checked(8 * words).ok_or_else(|| cut_off(layer, lane, payload.len()))?;
        let occupied: Vec<u64> = head.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let behind = class.rows() % 64;
        if behind != 0 && occupied.last().is_some_and(|&word| word >> behind != 0) {
            return Err(cut_off(layer, lane, payload.len()).into());
        }
        let rows = match self.tables.all_rows(class) {
            Some(all) => all,
            None => Arc::new(RowSet::new(occupied.clone())),
        };
        let count: usize = occupied.iter().map(|word| word.count_ones() as usize).sum();
        let row_bytes = columns * size_of::<V>();
        if rest.len() != count * row_bytes {
            return Err(cut_off(layer, lane, payload.len()).into());
        }
        let stride = crate::backup::stride(&tables);
        self.make_room(rows.len() * stride * size_of::<V>())?;
        let mut values = vec![V::default(); rows.len() * stride];
        for (slot, row) in rows.iter().enumerate() {
            let values = &mut values[slot * stride..][..stride];
            if is_set(&occupied, row) {
                let (bytes, behind) = rest.split_at(row_bytes);
                rest = behind;
                bytemuck::cast_slice_mut::<V, u8>(&mut values[..columns]).copy_from_slice(bytes);
            }
            values[columns + 1] = self.backup.won();
        }
        let values = self.memory.settle(values)?;
        self.after_values.insert(layer, lane, ValueBlock { rows, stride, occupied, values });
        Ok(())
    }

    fn parts_of(&self, layer: Layer, lane: Lane) -> Option<Parts> {
        let columns = self.tables.lane(lane)?.columns.len();
        Some(Parts::new(self.tables.class(layer, lane)?.rows(), columns))
    }
}

/// The next item of a payload, taken off its front.
fn split_item<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let (head, behind) = rest.split_at_checked(ITEM_HEAD_BYTES)?;
    let number = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
    let (item, behind) = behind.split_at_checked(number(&head[4..])? as usize)?;
    *rest = behind;
    Some((number(&head[..4])?, item))
}

fn unknown(layer: Layer, lane: Lane) -> PayloadError {
    PayloadError::new(Parts::key(layer, lane, 0), "a block of this run".into(), "one that it has not".into())
}

fn cut_off(layer: Layer, lane: Lane, bytes: usize) -> PayloadError {
    let expected = "a whole block of this run".into();
    PayloadError::new(Parts::key(layer, lane, 0), expected, format!("another payload of {bytes} bytes"))
}
