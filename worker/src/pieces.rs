//! Blocks cut into pieces of whole rows, on which the threads of a pool work in parallel.
//!
//! No two pieces share a row, so no result depends on which thread computes a piece. The pool of the calling thread
//! ([`rayon`]) works on the pieces. The calling thread computes a block of one piece without the pool.

use std::ops::Range;

use exact2048_game::bitset::{self, BitSet, Number, for_each_bit};
use exact2048_game::rowset::Slot;
use exact2048_solution::Parts;
use rayon::prelude::*;

/// Pieces for each thread that works on a block, so that the threads end at about the same time.
const PIECES_A_THREAD: usize = 4;

/// The most pieces of a block if `helpers` threads may help with it.
///
/// Every piece reads the index maps again. So a block without helpers is one piece.
pub fn most_pieces(helpers: usize) -> usize {
    if helpers == 0 { 1 } else { PIECES_A_THREAD * (helpers + 1) }
}

/// The least length of pieces of values, in bytes; see [`Tuning::piece_bytes`](crate::Tuning::piece_bytes).
#[derive(Clone, Copy, Debug)]
pub struct PieceLength(pub usize);

impl PieceLength {
    /// Cuts a block of rows of `stride` values of type `V`.
    pub fn of_values<V>(self, rows: usize, stride: usize) -> Pieces {
        Pieces::of_bytes(rows, stride * size_of::<V>(), self.0)
    }

    /// Cuts a block of rows of `words` words of bits.
    ///
    /// The pieces are few, so that searching all edges once for each piece costs little.
    pub fn of_bits(self, rows: usize, words: usize) -> Pieces {
        Pieces::of_bytes(rows, words * size_of::<u64>(), self.0 / 8).at_most(words / 4)
    }

    /// Whether a block of `rows` rows of values should hold only its `occurring` rows, which have an entry. That
    /// is so if the block is large and at most three quarters of its rows occur.
    ///
    /// No game reaches most rows of 4×3.
    pub fn is_sparse<V>(self, rows: usize, stride: usize, occurring: usize) -> bool {
        rows * stride * size_of::<V>() >= self.0 && occurring * 4 <= rows * 3
    }
}

/// A way to cut rows into pieces.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    rows: usize,
    rows_each: usize,
}

impl Pieces {
    /// Pieces of `rows_each` rows.
    pub fn new(rows: usize, rows_each: usize) -> Self {
        Self { rows, rows_each: rows_each.max(1) }
    }

    /// Pieces of about `piece_bytes` bytes, and at least one row, where a row has `row_bytes`.
    pub fn of_bytes(rows: usize, row_bytes: usize, piece_bytes: usize) -> Self {
        Self::new(rows, piece_bytes / row_bytes.max(1))
    }

    /// One piece, for the calling thread.
    pub fn whole(rows: usize) -> Self {
        Self::new(rows, rows)
    }

    /// The parts of a block.
    pub fn of_parts(parts: Parts) -> Self {
        Self::new(parts.row_count(), parts.rows_each())
    }

    /// These pieces, made longer if there would be more than `most`.
    pub fn at_most(self, most: usize) -> Self {
        Self::new(self.rows, self.rows_each.max(self.rows.div_ceil(most.max(1))))
    }

    /// Number of pieces.
    pub fn count(&self) -> usize {
        self.rows.div_ceil(self.rows_each)
    }

    /// Calls `visit` with the slots of each piece. Returns the results in order.
    pub fn map<R: Send>(&self, visit: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
        match self.count() {
            1 => vec![visit(0..self.rows)],
            count => (0..count).into_par_iter().map(|i| visit(self.slots(i))).collect(),
        }
    }

    /// Calls `visit` with the slots of each piece and its part of a list that has `width` elements a row.
    ///
    /// Returns the results in order.
    pub fn map_of<T: Send, R: Send>(
        &self,
        list: &mut [T],
        width: usize,
        visit: impl Fn(Range<usize>, &mut [T]) -> R + Sync,
    ) -> Vec<R> {
        if self.count() == 1 {
            return vec![visit(0..self.rows, list)];
        }
        let chunks = list.par_chunks_mut((self.rows_each * width).max(1)).enumerate();
        chunks.map(|(i, piece)| visit(self.slots(i), piece)).collect()
    }

    /// Like [`Pieces::map_of`], with two lists that both have `width` elements a row.
    pub fn map_of_both<T: Send, U: Send, R: Send>(
        &self,
        (list, other): (&mut [T], &mut [U]),
        width: usize,
        visit: impl Fn(Range<usize>, &mut [T], &mut [U]) -> R + Sync,
    ) -> Vec<R> {
        if self.count() == 1 {
            return vec![visit(0..self.rows, list, other)];
        }
        let length = (self.rows_each * width).max(1);
        let chunks = list.par_chunks_mut(length).zip(other.par_chunks_mut(length)).enumerate();
        chunks.map(|(i, (piece, other))| visit(self.slots(i), piece, other)).collect()
    }

    fn slots(&self, piece: usize) -> Range<usize> {
        piece * self.rows_each..((piece + 1) * self.rows_each).min(self.rows)
    }
}

/// Calls `of_part` for each part of a block, on all threads. Returns the results in order.
pub fn map_parts<R: Send>(parts: Parts, of_part: impl Fn(u32) -> R + Sync) -> Vec<R> {
    Pieces::of_parts(parts).map(|rows| of_part(parts.of_row(rows.start)))
}

/// Some of the slots of a piece, one bit each.
#[derive(Debug)]
pub struct SlotBits {
    /// The number of words before these in the bits of the whole block. Other pieces may have slots in the first and
    /// the last word.
    before: usize,
    words: Vec<u64>,
}

impl SlotBits {
    /// No bit set.
    pub fn new(slots: &Range<usize>) -> Self {
        let before = slots.start / 64;
        Self { before, words: vec![0; slots.end.div_ceil(64).saturating_sub(before)] }
    }

    /// Sets the bit of a slot.
    #[inline(always)]
    pub fn set(&mut self, slot: Slot) {
        bitset::set(&mut self.words, slot.index() - 64 * self.before);
    }

    /// Calls `visit` with each slot whose bit is set, ascending.
    pub fn for_each(&self, mut visit: impl FnMut(Slot)) {
        for_each_bit(&self.words, |bit| visit(Slot::from_index(self.before * 64 + bit)));
    }

    /// The bits of all pieces together, of a block with `slots` slots.
    pub fn of_all(slots: usize, pieces: impl IntoIterator<Item = SlotBits>) -> BitSet<Slot> {
        let mut all = vec![0; slots.div_ceil(64)];
        for piece in pieces {
            all[piece.before..].iter_mut().zip(&piece.words).for_each(|(all, word)| *all |= word);
        }
        BitSet::from_words(all)
    }
}

/// The part of a list, ascending by `slot_of`, that belongs to some slots.
#[inline]
pub fn of_slots<T>(list: &[T], slots: Range<usize>, slot_of: impl Fn(&T) -> Slot) -> &[T] {
    let slot_of = |item: &T| slot_of(item).index();
    // In most calls, the slots cover the whole list.
    if let [first, .., last] = list
        && slots.start <= slot_of(first)
        && slot_of(last) < slots.end
    {
        return list;
    }
    let start = list.partition_point(|item| slot_of(item) < slots.start);
    let end = list.partition_point(|item| slot_of(item) < slots.end);
    &list[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_piece(rows in 0usize..2000, width in 0usize..40, bytes in 0usize..5000, most in 1usize..30) {
            let pieces = Pieces::of_bytes(rows, width * 4, bytes).at_most(most);
            prop_assert!(pieces.count() <= most);
            let mut list = vec![0u32; rows * width];
            let seen = pieces.map_of(&mut list, width, |slots, piece| {
                assert_eq!(piece.len(), slots.len() * width);
                piece.iter_mut().enumerate().for_each(|(i, item)| *item += (slots.start * width + i) as u32 + 1);
                slots
            });
            prop_assert!(list.iter().enumerate().all(|(i, &item)| item == i as u32 + 1));
            prop_assert!(width == 0 || seen.into_iter().flatten().eq(0..rows));
            prop_assert!(pieces.map(|slots| slots).into_iter().flatten().eq(0..rows));
        }

        #[test]
        fn bits_of_pieces_are_joined(rows in 0usize..700, rows_each in 1usize..200, step in 1usize..70) {
            let pieces = Pieces::new(rows, rows_each).map(|slots| {
                let mut bits = SlotBits::new(&slots);
                let chosen = slots.map(Slot::from_index).filter(|slot| slot.index() % step == 0);
                chosen.clone().for_each(|slot| bits.set(slot));
                let mut set = Vec::new();
                bits.for_each(|slot| set.push(slot));
                assert!(set.into_iter().eq(chosen));
                bits
            });
            let all = SlotBits::of_all(rows, pieces);
            prop_assert!((0..rows).all(|slot| all.contains(Slot::from_index(slot)) == (slot % step == 0)));
        }

        #[test]
        fn items_of_slots_are_found(mut slots in prop::collection::vec(0u32..50, 0..100), range in (0usize..60, 0usize..60)) {
            slots.sort_unstable();
            let range = range.0.min(range.1)..range.0.max(range.1);
            let slots: Vec<Slot> = slots.into_iter().map(Slot).collect();
            let want: Vec<Slot> = slots.iter().copied().filter(|slot| range.contains(&slot.index())).collect();
            prop_assert_eq!(of_slots(&slots, range, |&slot| slot), &want[..]);
        }
    }
}
