//! Huge tiles: what tells apart the lanes of one number and one sum of large tiles.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::board::MAX_EXPONENT;
use crate::columns::Sequence;

/// The smallest exponent that tiles can be huge from.
pub const LEAST_HUGE: u8 = 8;

/// In place of the exponent from which tiles are huge: no tile is huge.
pub const NO_HUGE: u8 = MAX_EXPONENT + 1;

/// How many tiles of each huge exponent a board has: four bits an exponent, [`LEAST_HUGE`] lowest. By the tile bound
/// reachable boards have at most ten of each. Sixteen equal tiles, which any caller may ask about, count as 15: no lane
/// has as many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct HugeTiles(pub(crate) u32);

impl HugeTiles {
    /// No huge tile.
    pub const NONE: Self = Self(0);

    /// The huge tiles of a sequence, where tiles of at least `2^from` are huge.
    pub fn of(sequence: Sequence, from: u8) -> Self {
        let exponents = (0..16).map(|place| (sequence >> (4 * place)) as u8 & 15);
        exponents.filter(|&exponent| exponent >= from).fold(Self::NONE, Self::with)
    }

    /// These tiles and one more of this exponent, of which there are at most 15.
    pub(crate) fn with(self, exponent: u8) -> Self {
        if self.count(exponent) == 15 { self } else { Self(self.0 + (1 << shift(exponent))) }
    }

    /// How many there are of an exponent.
    pub fn count(self, exponent: u8) -> u8 {
        (self.0 >> shift(exponent)) as u8 & 15
    }

    /// How many there are.
    pub fn len(self) -> u8 {
        (LEAST_HUGE..=MAX_EXPONENT).map(|exponent| self.count(exponent)).sum()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// The sum of the tiles.
    pub fn sum(self) -> u32 {
        (LEAST_HUGE..=MAX_EXPONENT).map(|exponent| u32::from(self.count(exponent)) << exponent).sum()
    }

    /// What these tiles can become by one move with `merges` merges of large tiles. Each merge makes a tile that is not
    /// huge, or a huge tile out of two that are not huge, or out of two that are.
    pub fn after(self, merges: u8, from: u8) -> BTreeSet<Self> {
        self.changed(merges, from, |exponent| {
            let pairs = if exponent < from { merges } else { self.count(exponent) / 2 };
            Change { most: pairs, halves: -2, made: 1 }
        })
    }

    /// What these tiles can have been before one move with `merges` merges of large tiles.
    pub fn before(self, merges: u8, from: u8) -> BTreeSet<Self> {
        self.changed(merges, from, |exponent| Change { most: self.count(exponent + 1), halves: 2, made: -1 })
    }

    /// These tiles after each way to choose at most `merges` pairs of tiles that make a huge one.
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

    /// These tiles with `more` of an exponent added, or taken away where `more` is negative; `None` where their number
    /// would be below 0 or above 15.
    fn add(self, exponent: u8, more: i8) -> Option<Self> {
        if more == 0 {
            return Some(self);
        }
        let count =
            u32::try_from(i32::from(self.count(exponent)) + i32::from(more)).ok().filter(|&n| n < 16)?;
        Some(Self(self.0 & !(15 << shift(exponent)) | count << shift(exponent)))
    }
}

/// What merging pairs of one exponent does: how many pairs there can be, and what each adds to the number of tiles of
/// that exponent, the halves, and to the number of tiles made.
struct Change {
    most: u8,
    halves: i8,
    made: i8,
}

/// The tiles, largest first, with plus signs between them.
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
    use crate::columns::pack;

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
    fn merges_change_huge_tiles_or_do_not() {
        let of = |all: &[&[u8]]| all.iter().map(|exponents| huge(exponents)).collect::<BTreeSet<_>>();
        let (none, pair) = (HugeTiles::NONE, huge(&[9, 9]));
        assert_eq!(pair.after(0, 9), of(&[&[9, 9]]));
        assert_eq!(pair.after(1, 9), of(&[&[9, 9], &[9, 9, 9], &[10]]));
        // A tile that was made does not merge again.
        assert_eq!(none.after(2, 9), of(&[&[], &[9], &[9, 9]]));
        assert_eq!(none.after(3, NO_HUGE), of(&[&[]]));
    }

    #[test]
    fn what_comes_after_comes_from_what_was_before() {
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
