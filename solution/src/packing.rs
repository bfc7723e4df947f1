//! Packs rows: the values of the marked columns, one after the other.
//!
//! Values are stored and sent as their bytes lie in memory. Only little-endian machines have them in the order that the
//! format asks for.

use exact2048_game::bitset::for_each_bit;
use exact2048_game::value::Value;

#[cfg(target_endian = "big")]
compile_error!("values are stored and sent as they lie in memory, which has to be little endian");

/// The number of columns whose marks are one word.
pub const WORD: usize = 64;

/// Appends the values of the columns that are marked.
pub fn pack_row<V: Value>(packed: &mut Vec<V>, row: &[V], marked: &[u64]) {
    let mut filled = packed.len();
    // There is room after the last value for values that are written but not counted.
    packed.resize(filled + row.len() + WORD, V::default());
    for (values, &word) in row.chunks(WORD).zip(marked) {
        if word == u64::MAX {
            packed[filled..filled + WORD].copy_from_slice(values);
        } else if let Some(room) = packed[filled..].first_chunk_mut::<WORD>() {
            // Every value is written, and stays if it is marked: marks follow no pattern that branches could be guessed by.
            let mut next = 0;
            for (column, &value) in values.iter().enumerate() {
                room[next % WORD] = value;
                next += (word >> column & 1) as usize;
            }
        }
        filled += word.count_ones() as usize;
    }
    packed.truncate(filled);
}

/// Puts values back into the columns that are marked; other columns become 0. `packed` must have [`WORD`] more values
/// than there are marks.
pub fn unpack_row<V: Value>(packed: &[V], row: &mut [V], marked: &[u64]) {
    let mut rest = packed;
    for (values, &word) in row.chunks_mut(WORD).zip(marked) {
        if word == u64::MAX {
            values.copy_from_slice(&rest[..WORD]);
        } else if let Some(here) = rest.first_chunk::<WORD>() {
            // From bit to bit: a branch for each column would be guessed wrong every other time.
            values.fill(V::default());
            let mut next = 0;
            for_each_bit(&[word], |column| {
                values[column] = here[next % WORD];
                next += 1;
            });
        }
        rest = &rest[word.count_ones() as usize..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(row in prop::collection::vec(1u32.., 1..300), seed: u64, full: bool) {
            let mut marked: Vec<u64> = (0..row.len().div_ceil(64) as u64)
                .map(|word| if full { u64::MAX } else { (seed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15) })
                .collect();
            if !row.len().is_multiple_of(64) {
                *marked.last_mut().unwrap() &= (1 << (row.len() % 64)) - 1;
            }
            let is_marked = |column: usize| marked[column / 64] >> (column % 64) & 1 == 1;
            let wanted: Vec<u32> = (0..row.len()).filter(|&c| is_marked(c)).map(|c| row[c]).collect();
            let mut packed = vec![7];
            pack_row(&mut packed, &row, &marked);
            prop_assert_eq!(&packed[1..], &wanted[..], "after what was there");
            packed.resize(packed.len() + WORD, 0);
            let mut unpacked = vec![9; row.len()];
            unpack_row(&packed[1..], &mut unpacked, &marked);
            for (column, &value) in unpacked.iter().enumerate() {
                prop_assert_eq!(value, if is_marked(column) { row[column] } else { 0 });
            }
        }
    }
}
