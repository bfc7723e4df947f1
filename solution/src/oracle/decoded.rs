//! A cache of decoded parts of blocks, with a limit on its bytes. It makes the second question about a part cheap.
//!
//! A part has the set of its reachable entries, and a value for each of these. If the run stores the values of the
//! layer, they are read from the shard. Else each value is added when it is computed. So a value is computed only once
//! while its part stays in the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use exact2048_game::bitset::{Ranks, is_set};
use exact2048_game::value::{Stored, Value};
use exact2048_game::{KeptLayers, Layer, Precision};
use exact2048_storage::{ItemKey, ShardKind};
use parking_lot::{Mutex, MutexGuard};

use crate::archive::Archive;
use crate::cache::{Bytes, WeighedCache, weighed_cache};
use crate::parts::{ItemKind, Parts};
use crate::read_error::ReadError;

/// Approximate bytes of a part.
const PART_BYTES: u64 = 64 << 10;

/// Most unreadable items that the cache remembers. A few are enough to detect that a run was repaired.
const MOST_UNREADABLE: usize = 64;

/// Statistics of a cache of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// Look-ups that found their part in the cache.
    pub hits: u64,
    /// Look-ups that had to read their part.
    pub misses: u64,
    /// Bytes kept.
    pub bytes: u64,
    /// Most bytes that may be kept.
    pub capacity_bytes: u64,
}

/// Reads parts, and keeps the most recently and most often used ones.
pub(crate) struct PartCache {
    archive: Arc<dyn Archive>,
    precision: Precision,
    kept: KeptLayers,
    parts: WeighedCache<ItemKey, Option<Arc<Part>>>,
    /// Items that could not be read, at most [`MOST_UNREADABLE`].
    unreadable: Mutex<Vec<(ShardKind, ItemKey)>>,
}

impl PartCache {
    pub(crate) fn new(
        archive: Arc<dyn Archive>,
        precision: Precision,
        kept: KeptLayers,
        capacity_bytes: u64,
    ) -> Self {
        Self {
            archive,
            precision,
            kept,
            parts: weighed_cache(capacity_bytes, PART_BYTES),
            unreadable: Mutex::default(),
        }
    }

    /// A part of a block; `None` if none of its entries is reachable. If the values of its layer are not stored and
    /// `keeps_values` is true, the part has memory for computed values.
    pub(crate) fn get(
        &self,
        key: ItemKey,
        parts: Parts,
        keeps_values: bool,
    ) -> Result<Option<Arc<Part>>, ReadError> {
        self.parts.get_or_insert_with(&key, || self.load(key, parts, keeps_values))
    }

    pub(crate) fn usage(&self) -> CacheUse {
        CacheUse {
            hits: self.parts.hits(),
            misses: self.parts.misses(),
            bytes: self.parts.weight(),
            capacity_bytes: self.parts.capacity(),
        }
    }

    /// Items that could not be read, and were not read successfully since.
    pub(crate) fn unreadable(&self) -> Vec<(ShardKind, ItemKey)> {
        self.lock_unreadable().clone()
    }

    /// The reachable entries of a part, row by row; `None` if there are none.
    pub(crate) fn states(&self, key: ItemKey, parts: Parts) -> Result<Option<Vec<u64>>, ReadError> {
        let Some(item) = self.read(ItemKind::Reach, key)? else { return Ok(None) };
        Ok(Some(parts.reach_rows(key, &item)?))
    }

    fn load(&self, key: ItemKey, parts: Parts, keeps_values: bool) -> Result<Option<Arc<Part>>, ReadError> {
        let Some(rows) = self.states(key, parts)? else { return Ok(None) };
        let marked = Marked::new(&rows, parts.columns());
        let values = if self.kept.keeps(Layer(key.layer)) {
            let item = self.read(ItemKind::Values, key)?.ok_or(ReadError::no_values(key))?;
            PartValues::Stored(item)
        } else if keeps_values {
            PartValues::computed(self.precision, marked.count())
        } else {
            PartValues::Unkept
        };
        Ok(Some(Arc::new(Part { key, precision: self.precision, marked, values })))
    }

    /// Reads an item of a part, and records whether the item is readable.
    pub(crate) fn read(&self, kind: ItemKind, part: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        self.read_again(kind.shard(), kind.key(part))
    }

    /// Reads an item by its key in a shard, and records whether the item is readable.
    pub(crate) fn read_again(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        let item = self.archive.read(kind, key);
        let mut unreadable = self.lock_unreadable();
        let noted = unreadable.iter().position(|&noted| noted == (kind, key));
        match (&item, noted) {
            (Ok(_), Some(at)) => drop(unreadable.swap_remove(at)),
            (Err(_), None) if unreadable.len() < MOST_UNREADABLE => unreadable.push((kind, key)),
            _ => {}
        }
        item
    }

    fn lock_unreadable(&self) -> MutexGuard<'_, Vec<(ShardKind, ItemKey)>> {
        self.unreadable.lock()
    }
}

/// The reachable entries of a part, and their values.
#[derive(Debug)]
pub(crate) struct Part {
    key: ItemKey,
    precision: Precision,
    marked: Marked,
    values: PartValues,
}

impl Part {
    /// The number of an entry (row × columns + column, within the part) among the reachable ones; `None` if it is not
    /// reachable.
    pub(crate) fn rank(&self, entry: usize) -> Option<usize> {
        self.marked.rank(entry)
    }

    /// The value of a reachable entry; `None` if it was not computed yet.
    ///
    /// # Errors
    ///
    /// [`ReadError::ItemMissing`] if the shard holds fewer values than there are entries.
    pub(crate) fn value(&self, rank: usize) -> Result<Option<Stored>, ReadError> {
        let missing = ReadError::no_values(self.key);
        Ok(match &self.values {
            PartValues::Stored(bytes) => Some(match self.precision {
                Precision::Bits32 => read::<u32>(bytes, rank).ok_or(missing)?,
                Precision::Bits64 => read::<u64>(bytes, rank).ok_or(missing)?,
            }),
            // A value whose complement is 0 reads as not computed, and is computed again.
            PartValues::Computed32(slots) => {
                let bits = slots.get(rank).ok_or(missing)?.load(Ordering::Relaxed);
                (bits != 0).then_some((!bits).stored())
            }
            PartValues::Computed64(slots) => {
                let bits = slots.get(rank).ok_or(missing)?.load(Ordering::Relaxed);
                (bits != 0).then_some((!bits).stored())
            }
            PartValues::Unkept => None,
        })
    }

    /// Keeps the computed value of an entry. Threads that compute the same value store the same bits.
    pub(crate) fn keep(&self, rank: usize, value: Stored) {
        match &self.values {
            PartValues::Stored(_) | PartValues::Unkept => {}
            PartValues::Computed32(slots) => slots[rank].store(!u32::of_stored(value), Ordering::Relaxed),
            PartValues::Computed64(slots) => slots[rank].store(!u64::of_stored(value), Ordering::Relaxed),
        }
    }
}

impl Bytes for Option<Arc<Part>> {
    fn bytes(&self) -> u64 {
        let Some(part) = self else { return 0 };
        let values = match &part.values {
            PartValues::Stored(bytes) => bytes.len(),
            PartValues::Computed32(slots) => size_of_val(&**slots),
            PartValues::Computed64(slots) => size_of_val(&**slots),
            PartValues::Unkept => 0,
        };
        (values + size_of::<Part>()) as u64 + part.marked.bytes()
    }
}

/// Values by rank.
#[derive(Debug)]
enum PartValues {
    /// The bytes of the values item in the shard.
    Stored(Vec<u8>),
    /// The complement of each value; 0 if the value is not computed yet.
    Computed32(Box<[AtomicU32]>),
    /// Like `Computed32`, in 64 bits.
    Computed64(Box<[AtomicU64]>),
    /// Neither stored nor kept.
    Unkept,
}

impl PartValues {
    fn computed(precision: Precision, count: usize) -> Self {
        match precision {
            Precision::Bits32 => Self::Computed32((0..count).map(|_| AtomicU32::new(0)).collect()),
            Precision::Bits64 => Self::Computed64((0..count).map(|_| AtomicU64::new(0)).collect()),
        }
    }
}

fn read<V: Value>(bytes: &[u8], rank: usize) -> Option<Stored> {
    let width = size_of::<V>();
    Some(V::read_from(bytes.get(rank * width..)?.get(..width)?).stored())
}

/// A set of entries. The *rank* of an entry is its number in the set, in order.
#[derive(Debug)]
pub(super) struct Marked {
    words: Vec<u64>,
    numbers: Ranks,
}

impl Marked {
    /// Creates the set from rows of `columns` bits, each of which begins with a new word.
    pub(super) fn new(rows: &[u64], columns: usize) -> Self {
        let per_row = columns.div_ceil(64).max(1);
        let mut words = vec![0u64; (rows.len() / per_row * columns).div_ceil(64)];
        for (row, bits) in rows.chunks_exact(per_row).enumerate() {
            for (i, &bits) in bits.iter().enumerate().filter(|&(_, &bits)| bits != 0) {
                let at = row * columns + i * 64;
                words[at / 64] |= bits << (at % 64);
                let rest = bits.checked_shr(64 - (at % 64) as u32).unwrap_or(0);
                if rest != 0 {
                    words[at / 64 + 1] |= rest;
                }
            }
        }
        Self { numbers: Ranks::of(&words), words }
    }

    fn count(&self) -> usize {
        self.numbers.ones()
    }

    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(&*self.words) + self.numbers.bytes()) as u64
    }

    pub(super) fn rank(&self, entry: usize) -> Option<usize> {
        let is_marked = entry < 64 * self.words.len() && is_set(&self.words, entry);
        is_marked.then(|| self.numbers.before(&self.words, entry) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_the_marked_entries_before() {
        for columns in [1, 5, 63, 64, 65, 130, 200] {
            let (per_row, rows) = (usize::div_ceil(columns, 64), 9);
            let marked = |row: usize, column: usize| (row * 31 + column * 7) % 5 < 2 && row != 4;
            let mut bits = vec![0u64; rows * per_row];
            for (row, column) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                bits[row * per_row + column / 64] |= u64::from(marked(row, column)) << (column % 64);
            }
            let set = Marked::new(&bits, columns);
            let mut count = 0;
            for entry in 0..rows * columns {
                let expected = marked(entry / columns, entry % columns).then_some(count);
                assert_eq!(set.rank(entry), expected, "entry {entry} of rows of {columns}");
                count += usize::from(expected.is_some());
            }
            assert_eq!((set.count(), set.rank(rows * columns + 64)), (count, None));
        }
    }

    #[test]
    fn computed_values_are_kept() {
        let rows = [0b101u64];
        for precision in [Precision::Bits32, Precision::Bits64] {
            let marked = Marked::new(&rows, 3);
            let values = PartValues::computed(precision, marked.count());
            let part = Part { key: ItemKey { layer: 6, lane: 0, part: 0 }, precision, marked, values };
            let rank = part.rank(2).unwrap();
            assert_eq!(part.value(rank).unwrap(), None);
            for value in [0, 1, u64::from(u32::MAX) - 1].map(Stored) {
                part.keep(rank, value);
                assert_eq!(part.value(rank).unwrap(), Some(value));
            }
            assert_eq!(part.value(0).unwrap(), None);
            assert!(part.value(2).is_err());
        }
    }
}
