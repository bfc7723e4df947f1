//! Content of a shard's items: the reachable entries of a block and their values (`docs/dev/format.md`).
//!
//! A block is cut into parts of whole rows, so a query about one state reads one part of each kind. The number of
//! columns determines the rows of a part.

use std::fmt;

use exact2048_game::bitset::{Number, any, for_each_bit, last_word, ones};
use exact2048_game::rowset::{Row, RowSet};
use exact2048_game::value::Value;
use exact2048_game::value_step::Rounding;
use exact2048_game::{Lane, Layer};
use exact2048_storage::{ItemKey, ShardKind};

use crate::packing::pack_row;

/// Entries (rows × columns) that a part has at most, unless a single row has more.
pub const PART_ENTRIES: usize = 1 << 16;

/// Bit of the part number that marks the key of a best moves item. No block has that many parts.
const BEST_MOVES: u32 = 1 << 31;

/// Content of an item of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// The set of reachable entries of the part.
    Reach,
    /// The values of the reachable entries.
    Values,
    /// The best moves of the reachable entries.
    BestMoves,
    /// The values of the reachable entries with all their bits.
    Checkpoint,
}

impl ItemKind {
    /// The kind of the shards that hold such items.
    pub fn shard(self) -> ShardKind {
        match self {
            Self::Reach => ShardKind::Reach,
            Self::Values | Self::BestMoves => ShardKind::Values,
            Self::Checkpoint => ShardKind::Checkpoint,
        }
    }

    /// The kind of an item, from the kind of its shard and its key.
    pub fn of(shard: ShardKind, key: ItemKey) -> Self {
        match shard {
            ShardKind::Reach => Self::Reach,
            ShardKind::Values if key.part & BEST_MOVES != 0 => Self::BestMoves,
            ShardKind::Values => Self::Values,
            ShardKind::Checkpoint => Self::Checkpoint,
        }
    }

    /// The key of a part's item of this kind. `part` is the key of the part's reach and values items.
    pub fn key(self, part: ItemKey) -> ItemKey {
        match self {
            Self::Reach | Self::Values | Self::Checkpoint => part,
            // Values and best moves of a part are in the same shard, with different part numbers.
            Self::BestMoves => ItemKey { part: part.part | BEST_MOVES, ..part },
        }
    }

    /// The key of the part that an item of any kind belongs to.
    pub fn part(item: ItemKey) -> ItemKey {
        ItemKey { part: item.part & !BEST_MOVES, ..item }
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reach => "states",
            Self::Values => "values",
            Self::BestMoves => "best moves",
            Self::Checkpoint => "unrounded values",
        })
    }
}

/// An item that does not parse. Its file passed the checksums, so other code wrote the item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("item of layer {layer}, lane {lane}, part {part}: expected {expected}, found {found}")]
pub struct PayloadError {
    layer: u32,
    lane: Lane,
    part: u32,
    expected: String,
    found: String,
}

impl PayloadError {
    /// The error for the item of a key, with its expected and its found content.
    pub fn new(key: ItemKey, expected: String, found: String) -> Self {
        let lane = Lane::from_code(key.lane).unwrap_or(Lane::new(u8::MAX, 0));
        Self { layer: key.layer, lane, part: ItemKind::part(key).part, expected, found }
    }

    /// The error for an item of a block in which the run has no boards.
    pub(crate) fn no_boards(key: ItemKey) -> Self {
        Self::new(key, "a lane with boards in this layer".to_owned(), "a lane without boards".to_owned())
    }
}

/// The division of a block into parts.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    rows: usize,
    columns: usize,
}

impl Parts {
    /// The parts of a block.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns }
    }

    /// Rows of each part but the last, which may have fewer.
    pub fn rows_each(self) -> usize {
        (PART_ENTRIES / self.columns.max(1)).max(1)
    }

    /// Number of parts.
    pub fn count(self) -> u32 {
        self.rows.div_ceil(self.rows_each()) as u32
    }

    /// The rows of a part.
    pub fn rows(self, part: u32) -> std::ops::Range<usize> {
        let start = part as usize * self.rows_each();
        start..(start + self.rows_each()).min(self.rows)
    }

    /// The rows of the part of a key. Checks the key, which may come from outside.
    pub fn rows_of(self, key: ItemKey) -> Result<std::ops::Range<usize>, PayloadError> {
        let no_such_part = || {
            let expected = format!("a part below {}", self.count());
            PayloadError::new(key, expected, format!("part {}", key.part))
        };
        if key.part < self.count() { Ok(self.rows(key.part)) } else { Err(no_such_part()) }
    }

    /// Number of rows.
    pub fn row_count(self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(self) -> usize {
        self.columns
    }

    /// The part of a row.
    pub fn of_row(self, row: usize) -> u32 {
        (row / self.rows_each()) as u32
    }

    fn row_bytes(self) -> usize {
        self.columns.div_ceil(8)
    }

    /// Number of words that hold a row of bits.
    pub fn words(self) -> usize {
        self.columns.div_ceil(64)
    }

    /// Length of the reach item of a part; 0 if the part has no item, because none of its entries is reachable.
    pub fn reach_bytes(self, part: u32, held: &RowSet, bits: &[u64]) -> usize {
        let rows = self.rows(part);
        let occupancy_bytes = rows.len().div_ceil(8);
        match slots_in(held, rows, bits, self.words()).filter(|(_, row)| any(row)).count() {
            0 => 0,
            occupied => occupancy_bytes + occupied * self.row_bytes(),
        }
    }

    /// The reach item of a part: the occupancy of its rows, then the bits of the occupied rows, which have a reachable
    /// entry. Empty if no row is occupied. `bits` holds the rows of the set `held`.
    pub fn encode_reach(self, part: u32, held: &RowSet, bits: &[u64]) -> Vec<u8> {
        let bytes = self.reach_bytes(part, held, bits);
        if bytes == 0 {
            return Vec::new();
        }
        let rows = self.rows(part);
        let (first, words) = (rows.start, self.words());
        let mut item = Vec::with_capacity(bytes);
        item.resize(rows.len().div_ceil(8), 0u8);
        for (row, row_bits) in slots_in(held, rows, bits, words) {
            if any(row_bits) {
                let i = row.index() - first;
                item[i / 8] |= 1 << (i % 8);
                item.extend_from_slice(&bytemuck::cast_slice(row_bits)[..self.row_bytes()]);
            }
        }
        item
    }

    /// The rows of bits of a part, from its reach item.
    pub fn reach_rows(self, key: ItemKey, item: &[u8]) -> Result<Vec<u64>, PayloadError> {
        let mut rows = vec![0u64; self.rows(key.part).len() * self.words()];
        self.decode_reach_part(key, item, &mut rows)?;
        Ok(rows)
    }

    /// The rows of a part that have states, each with its bits. `states` has the bits of all rows of the part.
    pub fn occupied(self, part: u32, states: &[u64]) -> impl Iterator<Item = (Row, &[u64])> {
        let rows = (self.rows(part).start as u32..).map(Row);
        // A block without columns has no states.
        rows.zip(states.chunks_exact(self.words().max(1))).filter(|(_, bits)| any(bits))
    }

    /// Reads a reach item into `bits`, which holds only the rows of the item's part.
    pub fn decode_reach_part(self, key: ItemKey, item: &[u8], bits: &mut [u64]) -> Result<(), PayloadError> {
        let (rows, words) = (self.rows(key.part).len(), self.words());
        if words == 0 {
            return Err(PayloadError::no_boards(key));
        }
        if rows == 0 || bits.len() != rows * words {
            let expected = format!("a part below {}", self.count());
            return Err(PayloadError::new(key, expected, format!("part {}", key.part)));
        }
        let occupancy_bytes = rows.div_ceil(8);
        let occupied = |i: usize| item.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1);
        let count = (0..rows).filter(|&i| occupied(i)).count();
        let expected = occupancy_bytes + count * self.row_bytes();
        if item.len() != expected {
            return Err(PayloadError::new(key, format!("{expected} bytes"), format!("{} bytes", item.len())));
        }
        let mut packed = item[occupancy_bytes..].chunks_exact(self.row_bytes());
        for (i, row) in bits.chunks_exact_mut(words).enumerate().filter(|&(i, _)| occupied(i)) {
            let packed = packed.next().unwrap_or_default();
            let (bytes, padding) = bytemuck::cast_slice_mut(row).split_at_mut(packed.len());
            bytes.copy_from_slice(packed);
            padding.fill(0);
            if row.last().is_some_and(|last| last & !last_word(self.columns) != 0) {
                let expected = format!("bits of {} columns only", self.columns);
                return Err(PayloadError::new(key, expected, format!("a bit beyond them in row {i}")));
            }
        }
        Ok(())
    }

    /// Length of the values item of a part.
    pub fn values_bytes<V>(self, part: u32, held: &RowSet, bits: &[u64]) -> usize {
        let rows = slots_in(held, self.rows(part), bits, self.words());
        rows.map(|(_, row)| ones(row) as usize).sum::<usize>() * size_of::<V>()
    }

    /// The values item of a part: the values of the reachable entries, row by row, rounded if `rounding` is given.
    /// `bits` and `values` hold the rows of the set `held`.
    pub fn encode_values<V: Value>(
        self,
        part: u32,
        held: &RowSet,
        bits: &[u64],
        stride: usize,
        values: &[V],
        rounding: Option<Rounding>,
    ) -> Vec<u8> {
        let rows = self.rows(part);
        let mut packed = Vec::new();
        let row_values = slots_in(held, rows.clone(), values, stride);
        for ((_, row_bits), (_, row_values)) in slots_in(held, rows, bits, self.words()).zip(row_values) {
            pack_row(&mut packed, &row_values[..self.columns], row_bits);
        }
        if let Some(rounding) = rounding {
            rounding.round(&mut packed);
        }
        bytemuck::cast_slice(&packed).to_vec()
    }

    /// Reads a values item into the rows of the set `held`, for the entries that `bits` marks.
    pub fn decode_values<V: Value>(
        self,
        key: ItemKey,
        item: &[u8],
        held: &RowSet,
        bits: &[u64],
        stride: usize,
        values: &mut [V],
    ) -> Result<(), PayloadError> {
        let width = size_of::<V>();
        let (rows, words) = (self.rows(key.part), self.words());
        let bytes = self.values_bytes::<V>(key.part, held, bits);
        if item.len() != bytes {
            let expected = format!("{} values of {width} bytes", bytes / width);
            return Err(PayloadError::new(key, expected, format!("{} bytes", item.len())));
        }
        let mut next = item.chunks_exact(width);
        for (row, row_bits) in slots_in(held, rows, bits, words) {
            let row_values = &mut values[held.slot(row).index() * stride..][..self.columns];
            for_each_bit(row_bits, |column| {
                if let Some(bytes) = next.next() {
                    row_values[column] = V::read_from(bytes);
                }
            });
        }
        Ok(())
    }

    /// The key of a part.
    pub fn key(layer: Layer, lane: Lane, part: u32) -> ItemKey {
        ItemKey { layer: layer.0, lane: lane.code(), part }
    }
}

/// The rows of a set that lie in a range, each with its `width` elements of `data`.
fn slots_in<'a, T>(
    held: &'a RowSet,
    range: std::ops::Range<usize>,
    data: &'a [T],
    width: usize,
) -> impl Iterator<Item = (Row, &'a [T])> {
    held.rows_in(range).map(move |row| (row, &data[held.slot(row).index() * width..][..width]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_places_without_boards_are_refused() {
        let key = ItemKind::BestMoves.key(ItemKey { layer: 24, lane: Lane::new(1, 12).code(), part: 0 });
        let refused = Parts::new(5, 0).decode_reach_part(key, &[1], &mut []).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("part 0") && text.contains("a lane with boards"), "{text}");
    }

    fn random_bits(parts: Parts, seed: u64) -> Vec<u64> {
        let mut state = seed;
        let mut bits = vec![0u64; parts.rows * parts.words()];
        for row in 0..parts.rows {
            for column in 0..parts.columns {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if state >> 62 == 0 && row % 3 != 1 {
                    bits[row * parts.words() + column / 64] |= 1 << (column % 64);
                }
            }
        }
        bits
    }

    #[test]
    fn parts_round_trip() {
        for (rows, columns) in [(1, 1), (7, 3), (300, 1000), (2, 70_000), (90_000, 1), (5, 64), (9, 65)] {
            let parts = Parts::new(rows, columns);
            let bits = random_bits(parts, rows as u64);
            let stride = columns + 2;
            let values: Vec<u32> = (0..rows * stride).map(|i| i as u32 * 7).collect();
            let (mut bits_back, mut values_back) = (vec![0u64; bits.len()], vec![0u32; values.len()]);
            let held = RowSet::all(rows);
            let lane = Lane::new(1, 16);
            for part in 0..parts.count() {
                let key = Parts::key(Layer(100), lane, part);
                let item = parts.encode_reach(part, &held, &bits);
                assert_eq!(item.len(), parts.reach_bytes(part, &held, &bits));
                if item.is_empty() {
                    continue;
                }
                let part_rows = parts.rows(part);
                let part_bits = part_rows.start * parts.words()..part_rows.end * parts.words();
                parts.decode_reach_part(key, &item, &mut bits_back[part_bits.clone()]).unwrap();
                let values_item = parts.encode_values(part, &held, &bits, stride, &values, None);
                parts.decode_values(key, &values_item, &held, &bits, stride, &mut values_back).unwrap();
                let cut = &item[..item.len() - 1];
                assert!(parts.decode_reach_part(key, cut, &mut bits_back.clone()[part_bits]).is_err());
                let (cut, mut into) = (&values_item[1..], values.clone());
                assert!(parts.decode_values(key, cut, &held, &bits, stride, &mut into).is_err());
            }
            assert_eq!(bits_back, bits);
            for row in 0..rows {
                for column in 0..columns {
                    let marked = bits[row * parts.words() + column / 64] >> (column % 64) & 1 == 1;
                    let want = if marked { values[row * stride + column] } else { 0 };
                    assert_eq!(values_back[row * stride + column], want);
                }
            }
        }
    }
}
