//! Rows of bits in words of 64, the lowest bit of the first word first.

/// Number of bits set.
#[inline]
pub fn ones(row: &[u64]) -> u64 {
    row.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Whether a row has any bit set.
#[inline]
pub fn any(row: &[u64]) -> bool {
    row.iter().any(|&w| w != 0)
}

/// Calls `visit` with the column of each bit, ascending.
#[inline]
pub fn for_each_bit(row: &[u64], mut visit: impl FnMut(usize)) {
    for (w, &word) in row.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            visit(w * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}
