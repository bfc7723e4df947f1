//! Huge tiles: the tiles that distinguish lanes with the same number and the same sum of large tiles.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::board::MAX_EXPONENT;
use crate::sequence::Sequence;

/// Smallest exponent from which tiles can be huge.
pub const LEAST_HUGE: u8 = 8;

/// Value of [`TileSplit::huge`](crate::TileSplit::huge) for runs without huge tiles. No tile has such a large exponent.
pub const NO_HUGE: u8 = MAX_EXPONENT + 1;

/// Number of tiles of each huge exponent on a board: four bits per exponent, with [`LEAST_HUGE`] in the lowest bits.
///
/// A reachable board of n cells has at most n + 2 − e tiles of exponent e, so at most ten of each huge exponent.
/// A caller may pass a board with sixteen equal tiles. These count as 15 tiles, which match no lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct HugeTiles(pub(crate) u32);

impl HugeTiles {
    /// No huge tile.
    pub const NONE: Self = Self(0);

    /// Returns the huge tiles of a sequence, if tiles of at least `2^from` are huge.
    pub fn of(sequence: Sequence, from: u8) -> Self {
        let exponents = (0..16).map(|place| (sequence >> (4 * place)) as u8 & 15);
        exponents.filter(|&exponent| exponent >= from).fold(Self::NONE, Self::with)
    }

    /// Adds one tile of this exponent, unless there are 15 such tiles already.
    pub(crate) fn with(self, exponent: u8) -> Self {
        if self.count(exponent) == 15 { self } else { Self(self.0 + (1 << shift(exponent))) }
    }

    /// Number of tiles of an exponent.
    pub fn count(self, exponent: u8) -> u8 {
        (self.0 >> shift(exponent)) as u8 & 15
    }

    /// Number of huge tiles.
    pub fn len(self) -> u8 {
        (LEAST_HUGE..=MAX_EXPONENT).map(|exponent| self.count(exponent)).sum()
    }

    /// Whether there is no huge tile.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Sum of the tiles.
    pub fn sum(self) -> u32 {
        (LEAST_HUGE..=MAX_EXPONENT).map(|exponent| u32::from(self.count(exponent)) << exponent).sum()
    }

    /// Returns the huge tiles that a move with `merges` merges of large tiles can lead to. The result of a merge may
    /// be huge. A huge result is made of two huge tiles, or of two large tiles that are not huge.
    pub fn after(self, merges: u8, from: u8) -> BTreeSet<Self> {
        self.changed(merges, from, |exponent| {
            let pairs = if exponent < from { merges } else { self.count(exponent) / 2 };
            Change { most: pairs, halves: -2, made: 1 }
        })
    }

    /// Returns the huge tiles from which a move with `merges` merges of large tiles can lead to these huge tiles.
    pub fn before(self, merges: u8, from: u8) -> BTreeSet<Self> {
        self.changed(merges, from, |exponent| Change { most: self.count(exponent + 1), halves: 2, made: -1 })
    }

    /// Returns the tiles after each choice of at most `merges` merges with a huge result. `change` gives the effect of
    /// a merge of two tiles of an exponent.
    fn changed(self, merges: u8, from: u8, change: impl Fn(u8) -> Change) -> BTreeSet<Self> {
        let mut found = vec![(self, merges)];
        for exponent in (from - 1..MAX_EXPONENT).filter(|_| from <= MAX_EXPONENT) {
            let Change { most, halves, made } = change(exponent);
            let with = |&(tiles, left): &(Self, u8)| {
                (0..=most.min(left)).filter_map(move |pairs| {
                    let of_halves = if exponent < from { 0 } else { halves };
                    let tiles = tiles.add(exponent, of_halves * pairs as i8)?;
                    Some((tiles.add(exponent + 1, made * pairs as i8)?, left - pairs))
                })
            };
            found = found.iter().flat_map(with).collect();
        }
        found.into_iter().map(|(tiles, _)| tiles).collect()
    }

    /// Adds `more` tiles of an exponent, or removes tiles if `more` is negative. Returns `None` if their number would
    /// be below 0 or above 15.
    fn add(self, exponent: u8, more: i8) -> Option<Self> {
        if more == 0 {
            return Some(self);
        }
        let count =
            u32::try_from(i32::from(self.count(exponent)) + i32::from(more)).ok().filter(|&n| n < 16)?;
        Some(Self(self.0 & !(15 << shift(exponent)) | count << shift(exponent)))
    }
}

/// Effect of merges of pairs of one exponent.
struct Change {
    /// Largest number of pairs.
    most: u8,
    /// Change per pair in the number of tiles of that exponent.
    halves: i8,
    /// Change per pair in the number of tiles of the next exponent.
    made: i8,
}

/// Formats the tiles, largest first, joined by plus signs.
impl std::fmt::Display for HugeTiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let each = (LEAST_HUGE..=MAX_EXPONENT).rev();
        let tiles = each.flat_map(|e| std::iter::repeat_n(1u32 << e, usize::from(self.count(e))));
        let texts: Vec<String> = tiles.map(|tile| tile.to_string()).collect();
        f.write_str(&texts.join("+"))
    }
}

fn shift(exponent: u8) -> u32 {
    4 * u32::from(exponent - LEAST_HUGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::pack;

    fn huge(exponents: &[u8]) -> HugeTiles {
        HugeTiles::of(pack(exponents), 9)
    }

    #[test]
    fn huge_tiles_are_those_from_an_exponent_on() {
        let tiles = huge(&[9, 5, 12, 8, 9]);
        assert_eq!((tiles.len(), tiles.sum()), (3, 2 * 512 + 4096));
        assert_eq!([8, 9, 10, 12].map(|exponent| tiles.count(exponent)), [0, 2, 0, 1]);
        assert_eq!(HugeTiles::of(pack(&[9, 15]), NO_HUGE), HugeTiles::NONE);
        assert_eq!(tiles.to_string(), "4096+512+512");
    }

    #[test]
    fn sixteen_equal_tiles_stay_tiles_of_their_exponent() {
        for exponent in [9, 14, 15] {
            let tiles = huge(&[exponent; 16]);
            assert_eq!((tiles.count(exponent), tiles.len()), (15, 15), "2^{exponent}");
            assert_eq!(tiles.with(exponent), tiles);
        }
    }

    #[test]
    fn merges_may_change_huge_tiles() {
        let of = |all: &[&[u8]]| all.iter().map(|exponents| huge(exponents)).collect::<BTreeSet<_>>();
        let (none, pair) = (HugeTiles::NONE, huge(&[9, 9]));
        assert_eq!(pair.after(0, 9), of(&[&[9, 9]]));
        assert_eq!(pair.after(1, 9), of(&[&[9, 9], &[9, 9, 9], &[10]]));
        // A merged tile does not merge again in the same move.
        assert_eq!(none.after(2, 9), of(&[&[], &[9], &[9, 9]]));
        assert_eq!(none.after(3, NO_HUGE), of(&[&[]]));
    }

    #[test]
    fn tiles_after_and_before_moves_are_inverse() {
        for exponents in [&[][..], &[9, 9], &[9, 10, 10, 12], &[8, 8, 8, 9, 9, 9], &[14, 14, 15]] {
            for (merges, from) in [(0, 9), (1, 9), (2, 9), (3, 8), (2, NO_HUGE)] {
                let tiles = HugeTiles::of(pack(exponents), from);
                for after in tiles.after(merges, from) {
                    assert!(
                        after.before(merges, from).contains(&tiles),
                        "{tiles:?} {merges} {from}: {after:?}"
                    );
                }
                for before in tiles.before(merges, from) {
                    assert!(
                        before.after(merges, from).contains(&tiles),
                        "{tiles:?} {merges} {from}: {before:?}"
                    );
                }
            }
        }
    }
}
