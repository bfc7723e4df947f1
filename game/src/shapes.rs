//! Shapes: what a pattern does to all multisets of exponents that are alike.
//!
//! What a pattern does to the arrangements of a multiset does not depend on the exponents themselves,
//! only on which are equal, where it merges tiles on which differ by one, and where tiles are born on
//! whether the smallest is as small as can be. So a multiset is squeezed to a *shape* with just these
//! properties, and a pattern meets each shape once, however many lanes have multisets of that shape.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::board::MAX_EXPONENT;
use crate::columns::{Sequence, arrangements, pack, unpack};
use crate::maps::Pattern;
use crate::params::Params;

/// A pattern and what it does to the shapes that it has met.
#[derive(Debug)]
pub struct PatternShapes {
    pattern: Pattern,
    merges: bool,
    births: bool,
    maps: Mutex<FxHashMap<Sequence, Arc<ShapeMap>>>,
}

/// What a pattern does to the arrangements of one shape, in pieces that share a target multiset.
#[derive(Debug, Default)]
pub struct ShapeMap {
    /// The pieces; arrangements in none of them do not take part.
    pub pieces: Vec<Piece>,
}

/// Arrangements of a shape that lead to arrangements of one target multiset.
#[derive(Debug)]
pub struct Piece {
    /// The target's exponents, squeezed as the shape's are, sorted downward.
    pub target: Sequence,
    /// Pairs of the number of an arrangement and of the one it leads to.
    pub leads_to: Vec<(u32, u32)>,
}

/// A multiset of exponents, squeezed.
#[derive(Debug)]
pub struct Shape {
    squeezed: Sequence,
    tiles: u8,
    /// The exponent that each squeezed one stands for.
    actual: [u8; 17],
}

impl Shape {
    /// The shape of a multiset, with the properties that the pattern can tell apart.
    pub fn new(params: &Params, pattern: &PatternShapes, multiset: Sequence, k: u8) -> Self {
        let mut actual = [0; 17];
        let mut squeezed = 0;
        let (mut last, mut squeezed_last): (Option<u8>, u8) = (None, params.large);
        // The exponents are sorted downward: the lowest nibble is the smallest.
        for i in 0..k {
            let exponent = (multiset >> (4 * i)) as u8 & 15;
            let gap = match last {
                Some(last) if pattern.merges => (exponent - last).min(2),
                Some(last) => (exponent - last).min(1),
                None if pattern.births => (exponent - params.large).min(1),
                None => 0,
            };
            squeezed_last += gap;
            last = Some(exponent);
            actual[squeezed_last as usize] = exponent;
            if actual[squeezed_last as usize + 1] == 0 {
                actual[squeezed_last as usize + 1] = exponent + 1;
            }
            squeezed |= Sequence::from(squeezed_last) << (4 * i);
        }
        if pattern.births {
            actual[params.large as usize] = params.large;
        }
        Self { squeezed, tiles: k, actual }
    }

    /// The multiset that a squeezed one of the same shape map stands for.
    pub fn actual(&self, squeezed: Sequence) -> Sequence {
        let (mut rest, mut multiset, mut shift) = (squeezed, 0, 0);
        while rest != 0 {
            multiset |= Sequence::from(self.actual[(rest & 15) as usize]) << shift;
            (rest, shift) = (rest >> 4, shift + 4);
        }
        multiset
    }

    /// Whether a multiset, sorted downward, holds the wanted tile.
    pub fn wins(&self, params: &Params, mut multiset: Sequence) -> bool {
        while multiset > 15 {
            multiset >>= 4;
        }
        params.winning_exponent().is_some_and(|e| Sequence::from(e) == multiset)
    }
}

impl PatternShapes {
    /// A pattern that has met no shape yet.
    pub fn new(pattern: Pattern) -> Self {
        Self { merges: pattern.merges(), births: pattern.births(), pattern, maps: Mutex::default() }
    }

    /// The pattern.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// What the pattern does to a shape. Cost: about 100 ns an arrangement, the first time.
    pub fn shape_map(&self, shape: &Shape, large: u8) -> Arc<ShapeMap> {
        let mut maps = self.maps.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(
            maps.entry(shape.squeezed)
                .or_insert_with(|| Arc::new(ShapeMap::new(&self.pattern, shape.squeezed, shape.tiles, large))),
        )
    }
}

impl ShapeMap {
    fn new(pattern: &Pattern, squeezed: Sequence, k: u8, large: u8) -> Self {
        let mut exponents = unpack(squeezed, k);
        exponents.reverse();
        let mut map = Self::default();
        // For each target: the numbers of its arrangements.
        let mut numbers: Vec<FxHashMap<Sequence, u32>> = Vec::new();
        for (from, sequence) in arrangements(exponents).enumerate() {
            let Some(mut image) = pattern.apply(&unpack(sequence, k), large) else { continue };
            if image.iter().any(|&e| e > MAX_EXPONENT) {
                continue; // a hole: such a tile is on no reachable board
            }
            let arranged = pack(&image);
            image.sort_unstable_by(|a, b| b.cmp(a));
            let target = pack(&image);
            let piece = map.pieces.iter().position(|piece| piece.target == target).unwrap_or_else(|| {
                image.reverse();
                numbers.push(arrangements(image).enumerate().map(|(i, s)| (s, i as u32)).collect());
                map.pieces.push(Piece { target, leads_to: Vec::new() });
                map.pieces.len() - 1
            });
            if let Some(&to) = numbers[piece].get(&arranged) {
                map.pieces[piece].leads_to.push((from as u32, to));
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;
    use crate::lane::{Lane, lanes};
    use crate::maps::IndexMap;
    use crate::slide::Source;
    use crate::{Objective, Precision, Spawn4};

    /// Patterns of three large tiles: a permutation, one with a condition, a merge, a birth, a
    /// merge with a birth.
    fn patterns() -> Vec<(Pattern, i8, u8)> {
        let pattern = |items: &[Source], conditions: &[(u8, u8, bool)]| {
            let mut pattern = Pattern::empty();
            items.iter().enumerate().for_each(|(i, &source)| pattern.set_item(i, source));
            conditions.iter().for_each(|&(a, b, equal)| pattern.set_condition(a, b, equal));
            pattern
        };
        use Source::{Born, Merged, Plain};
        vec![
            (pattern(&[Plain(2), Plain(0), Plain(1)], &[]), 0, 0),
            (pattern(&[Plain(1), Plain(0), Plain(2)], &[(0, 1, false)]), 0, 0),
            (pattern(&[Plain(2), Merged(0)], &[(0, 1, true)]), 1, 0),
            (pattern(&[Plain(2), Born, Plain(1), Plain(0)], &[(1, 2, false)]), 0, 1),
            (pattern(&[Born, Merged(1), Plain(0)], &[(1, 2, true)]), 1, 1),
        ]
    }

    #[test]
    fn maps_made_by_shape_are_those_made_column_by_column() {
        for objective in [Objective::Score, Objective::Reach { exponent: 9 }] {
            let (board, spawn4) = ("3x3".parse().unwrap(), Spawn4::default());
            let params = Params::with_large(board, objective, spawn4, Precision::Bits32, None, 3).unwrap();
            let mut checked = 0;
            for (pattern, merges, births) in patterns() {
                let shapes = PatternShapes::new(pattern);
                for lane in lanes(&params).into_iter().filter(|lane| lane.k == 3) {
                    let k = 3 - merges as u8 + births;
                    let target = Lane { k, large_sum: lane.large_sum + (u32::from(births) << params.large) };
                    let (source, target) = (Columns::new(&params, lane), Columns::new(&params, target));
                    let expected: Vec<u32> = source
                        .sequences()
                        .iter()
                        .map(|&sequence| match pattern.apply(&unpack(sequence, 3), params.large) {
                            None => IndexMap::none(&target),
                            Some(image) if image.iter().any(|&e| params.winning_exponent() == Some(e)) => {
                                IndexMap::won(&target)
                            }
                            Some(image) => target.column(pack(&image)).unwrap_or(IndexMap::none(&target)),
                        })
                        .collect();
                    let found = match IndexMap::new(&params, &shapes, &source, &target) {
                        IndexMap::Identity => (0..source.len() as u32).collect(),
                        IndexMap::Dense(to) => to,
                        IndexMap::Sparse(pairs) => {
                            let mut to = vec![IndexMap::none(&target); source.len()];
                            pairs.into_iter().for_each(|(from, t)| to[from as usize] = t);
                            to
                        }
                    };
                    assert_eq!(found, expected, "{pattern:?} {lane:?}");
                    checked += found.len();
                }
            }
            assert!(checked > 1000);
        }
    }
}
