//! Packs rows: the values of the marked columns, one after the other.
//!
//! Values are stored and sent in the order in which their bytes lie in memory. The format requires little-endian order,
//! so the program supports only little-endian machines.

use exact2048_game::bitset::for_each_bit;
use exact2048_game::value::Value;

#[cfg(target_endian = "big")]
compile_error!("values are stored and sent in memory order, which must be little-endian");

/// Number of columns whose marks fit into one word.
pub const WORD: usize = 64;

/// Appends the values of the marked columns.
pub fn pack_row<V: Value>(packed: &mut Vec<V>, row: &[V], marked: &[u64]) {
    let mut filled = packed.len();
    // The loop also writes values of unmarked columns, for which there must be space behind the last marked one.
    packed.resize(filled + row.len() + WORD, V::default());
    for (values, &word) in row.chunks(WORD).zip(marked) {
        if word == u64::MAX {
            packed[filled..filled + WORD].copy_from_slice(values);
        } else if let Some(room) = packed[filled..].first_chunk_mut::<WORD>() {
            // Every value is written, but the next one replaces it unless it is marked. A branch would be mispredicted,
            // because marks follow no pattern.
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

/// Writes values back into the marked columns, and 0 into the others. `packed` must have [`WORD`] more values than
/// there are marks.
pub fn unpack_row<V: Value>(packed: &[V], row: &mut [V], marked: &[u64]) {
    let mut rest = packed;
    for (values, &word) in row.chunks_mut(WORD).zip(marked) {
        if word == u64::MAX {
            values.copy_from_slice(&rest[..WORD]);
        } else if let Some(here) = rest.first_chunk::<WORD>() {
            // The loop visits only marked columns. A branch for each column would be mispredicted half of the time.
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
        fn packed_rows_are_unpacked(row in prop::collection::vec(1u32.., 1..300), seed: u64, full: bool) {
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
            prop_assert_eq!(&packed[1..], &wanted[..], "after the earlier values");
            packed.resize(packed.len() + WORD, 0);
            let mut unpacked = vec![9; row.len()];
            unpack_row(&packed[1..], &mut unpacked, &marked);
            for (column, &value) in unpacked.iter().enumerate() {
                prop_assert_eq!(value, if is_marked(column) { row[column] } else { 0 });
            }
        }
    }
}
