//! A multiset of tiles in one word.

use std::fmt;

/// A multiset of tiles, at most three of each kind. Each kind takes two bits, starting with the 2s in the lowest bits.
///
/// Three tiles of a kind suffice. A move leaves at most one tile of each kind unmerged and makes at most one tile of each
/// kind by merging. The spawn adds one tile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bag(u64);

/// The lower bit of each count.
const LOW: u64 = 0x5555_5555_5555_5555;

impl Bag {
    /// The bag before the first two tiles.
    pub const EMPTY: Bag = Bag(0);

    /// Largest exponent of a tile in a bag.
    pub const MAX_EXPONENT: u8 = 32;

    /// The bag with one more tile `2^exponent`.
    #[must_use]
    pub fn with(self, exponent: u8) -> Bag {
        debug_assert!(self.count(exponent) < 3 && (1..=Self::MAX_EXPONENT).contains(&exponent));
        Bag(self.0 + (1 << (2 * (exponent - 1))))
    }

    /// Number of tiles `2^exponent` in the bag.
    #[must_use]
    pub fn count(self, exponent: u8) -> u32 {
        (self.0 >> (2 * (exponent - 1))) as u32 & 3
    }

    /// Merges every pair once. Of n equal tiles, ⌊n/2⌋ pairs become tiles twice as large. These tiles do not merge again.
    #[must_use]
    pub fn merged(self) -> Bag {
        // Two or three tiles contain one pair. For these counts, the upper bit is set.
        let pairs = (self.0 >> 1) & LOW;
        Bag((self.0 & LOW) + (pairs << 2))
    }

    /// Exponent of the largest tile; 0 for the empty bag.
    #[must_use]
    pub fn largest(self) -> u8 {
        ((64 - self.0.leading_zeros()).div_ceil(2)) as u8
    }

    /// Number of tiles. A board with these tiles needs as many cells.
    #[must_use]
    pub fn len(self) -> u32 {
        (self.0 & LOW).count_ones() + 2 * ((self.0 >> 1) & LOW).count_ones()
    }

    /// Whether the bag has no tile.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Sum of the tiles.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.tiles().sum()
    }

    /// The tiles in ascending order.
    pub fn tiles(self) -> impl Iterator<Item = u64> {
        (1..=self.largest()).flat_map(move |e| std::iter::repeat_n(1 << e, self.count(e) as usize))
    }
}

impl fmt::Display for Bag {
    /// Prints the tiles in ascending order, separated by commas: `2,2,8,2048`. Prints `empty` for the empty bag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.pad("empty");
        }
        let tiles: Vec<String> = self.tiles().map(|tile| tile.to_string()).collect();
        f.pad(&tiles.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn bag(exponents: &[u8]) -> Bag {
        exponents.iter().fold(Bag::EMPTY, |bag, &e| bag.with(e))
    }

    #[test]
    fn every_pair_merges_once() {
        assert_eq!(bag(&[1, 1]).merged(), bag(&[2]));
        assert_eq!(bag(&[1, 1, 2]).merged(), bag(&[2, 2]), "a merged tile does not merge again");
        assert_eq!(bag(&[2, 2, 2, 3, 3]).merged(), bag(&[2, 3, 4]));
        assert_eq!(bag(&[1, 2, 3]).merged(), bag(&[1, 2, 3]));
    }

    #[test]
    fn merging_matches_the_definition() {
        for bits in 0..1u64 << 14 {
            let bag = Bag(bits);
            let mut want = BTreeMap::<u64, u32>::new();
            for e in 1..=7 {
                let n = bag.count(e);
                *want.entry(1 << e).or_default() += n % 2;
                *want.entry(2 << e).or_default() += n / 2;
            }
            let merged = bag.merged();
            assert!(
                want.into_iter().all(|(tile, n)| merged.tiles().filter(|&t| t == tile).count() == n as usize)
            );
            assert_eq!(merged.sum(), bag.sum());
        }
    }

    #[test]
    fn bags_have_properties_of_their_tiles() {
        let bag = bag(&[1, 1, 3, 11]);
        assert_eq!((bag.len(), bag.sum(), bag.largest()), (4, 2060, 11));
        assert_eq!(bag.to_string(), "2,2,8,2048");
        assert_eq!((Bag::EMPTY.largest(), Bag::EMPTY.to_string().as_str()), (0, "empty"));
    }
}
