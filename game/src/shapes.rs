//! Shapes: the effect of a rearrangement on all similar multisets of exponents.
//!
//! A rearrangement reorders tiles and may insert new tiles. Its effect on the arrangements of a multiset does not
//! depend on the exponents themselves. The effect depends only on the equalities among the exponents, and on whether
//! the smallest exponent equals a new tile. So a multiset is squeezed to a *shape* with only these properties. A
//! rearrangement is computed once per shape, for any number of lanes with multisets of that shape.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::endings::{Endings, beginning, beginnings, ending, endings};
use crate::pattern::Items;
use crate::sequence::{Sequence, arrangements, pack, unpack};
use crate::shape::Shape;

/// Effects of patterns without merges on shapes, by shape. All patterns with the same items share one rearrangement.
#[derive(Debug, Default)]
pub(crate) struct Rearrangement {
    maps: Mutex<FxHashMap<Sequence, Arc<ShapeMap>>>,
}

/// Effect of a rearrangement on the arrangements of one shape.
#[derive(Debug, Default)]
pub(crate) struct ShapeMap {
    /// Exponents of the target, squeezed like the exponents of the shape and sorted downward.
    pub(crate) target: Sequence,
    /// For each arrangement of the shape, the number of the target's arrangement.
    pub(crate) leads_to: Vec<u32>,
}

impl Rearrangement {
    /// Returns the map of each shape, in order. Cost on first use of a shape: a few nanoseconds per arrangement.
    pub(crate) fn maps(
        &self,
        items: Items,
        shapes: &[Shape],
        cache: &ShapeCache,
        large: u8,
    ) -> Vec<Arc<ShapeMap>> {
        let mut maps = self.maps.lock();
        let mut map = |shape: &Shape| {
            let made = maps.entry(shape.squeezed);
            let map = made.or_insert_with(|| {
                let map = ShapeMap::new(items, shape, cache, large);
                cache.count_bytes(map.heap_bytes());
                Arc::new(map)
            });
            Arc::clone(map)
        };
        shapes.iter().map(&mut map).collect()
    }

    /// Drops all maps.
    pub(crate) fn forget(&self) {
        self.maps.lock().clear();
    }
}

impl ShapeMap {
    fn new(items: Items, shape: &Shape, cache: &ShapeCache, large: u8) -> Self {
        let source = cache.arrangements(shape.squeezed);
        let rewriting = items.on(shape.tiles, large);
        let image = |&sequence: &Sequence| rewriting.apply(sequence);
        let Some(first) = source.sequences.first().map(image) else { return Self::default() };
        let target = sorted_downward(first);
        let (arrangements, endings) = (cache.arrangements(target), endings());
        let number = |sequence: &Sequence| arrangements.number(endings, image(sequence)).unwrap_or_default();
        Self { target, leads_to: source.sequences.iter().map(number).collect() }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.leads_to)
    }
}

/// Arrangements that the maps of shapes share. The cache also counts the bytes of the arrangements and of the maps.
#[derive(Debug, Default)]
pub(crate) struct ShapeCache {
    arrangements: Mutex<FxHashMap<Sequence, Arc<Arrangements>>>,
    /// Approximate number of bytes of all maps and arrangements.
    bytes: AtomicUsize,
}

impl ShapeCache {
    /// Returns the arrangements of a multiset of exponents. The multiset must be sorted downward.
    fn arrangements(&self, multiset: Sequence) -> Arc<Arrangements> {
        let mut known = self.arrangements.lock();
        let arrangements = known.entry(multiset).or_insert_with(|| {
            let made = Arrangements::new(multiset);
            self.count_bytes(made.heap_bytes());
            Arc::new(made)
        });
        Arc::clone(arrangements)
    }

    fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Approximate number of bytes of all maps and arrangements.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Drops the arrangements. The caller drops the maps.
    pub(crate) fn clear(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.arrangements.lock().clear();
    }
}

/// Arrangements of a multiset of exponents, numbered in lexicographic order.
#[derive(Debug)]
struct Arrangements {
    sequences: Vec<Sequence>,
    /// Number of the first arrangement with each beginning.
    beginnings: FxHashMap<Sequence, u32>,
}

impl Arrangements {
    /// Lists the arrangements of a multiset that is sorted downward.
    fn new(multiset: Sequence) -> Self {
        let mut exponents = unpack(multiset, tiles_of(multiset));
        exponents.reverse();
        let sequences: Vec<Sequence> = arrangements(exponents).collect();
        let beginnings = beginnings(&sequences).collect();
        Self { sequences, beginnings }
    }

    /// Approximate size in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let beginnings = self.beginnings.capacity() * size_of::<(Sequence, u32)>();
        size_of::<Self>() + size_of_val(&*self.sequences) + beginnings
    }

    /// Returns the number of an arrangement of the multiset; `endings` is the table of [`endings`].
    fn number(&self, endings: &Endings, sequence: Sequence) -> Option<u32> {
        Some(self.beginnings.get(&beginning(sequence))? + ending(endings, sequence))
    }
}

/// Number of exponents in a sequence. No exponent may be 0.
fn tiles_of(sequence: Sequence) -> u8 {
    (Sequence::BITS - sequence.leading_zeros()).div_ceil(4) as u8
}

fn sorted_downward(sequence: Sequence) -> Sequence {
    let mut exponents = unpack(sequence, tiles_of(sequence));
    exponents.sort_unstable_by(|a, b| b.cmp(a));
    pack(&exponents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use crate::columns::Columns;
    use crate::lane::{Lane, lanes};
    use crate::maps::ColumnMap;
    use crate::pattern::Pattern;
    use crate::patterns::Patterns;
    use crate::sequence::{Column, Counts};
    use crate::slide::TileSource;

    #[test]
    fn arrangements_are_numbered_in_order() {
        for exponents in [&[][..], &[5], &[5, 4, 4], &[6, 6, 5, 5, 4], &[15, 9, 8, 7, 6, 5, 4]] {
            let arrangements = Arrangements::new(pack(exponents));
            for (number, &sequence) in (0..).zip(&arrangements.sequences) {
                assert_eq!(arrangements.number(endings(), sequence), Some(number), "{exponents:?}");
            }
        }
    }

    /// Sources of the target's tiles, and pairs that must be equal or differ.
    type Plan = (Vec<TileSource>, Vec<(u8, u8, bool)>);

    /// Patterns of three large tiles: two permutations, one of them with a condition; a merge; a birth; a merge and a
    /// birth.
    fn patterns() -> Vec<Plan> {
        use TileSource::{Born, Merged, Plain};
        vec![
            (vec![Plain(2), Plain(0), Plain(1)], vec![]),
            (vec![Plain(1), Plain(0), Plain(2)], vec![(0, 1, false)]),
            (vec![Plain(2), Merged(0)], vec![(0, 1, true)]),
            (vec![Plain(2), Born, Plain(1), Plain(0)], vec![(1, 2, false)]),
            (vec![Born, Merged(1), Plain(0)], vec![(1, 2, true)]),
        ]
    }

    /// Applies a pattern exponent by exponent.
    fn apply(pattern: &Plan, sequence: Sequence, params: &Params) -> Option<Sequence> {
        let exponents = unpack(sequence, 3);
        let met = |&(a, b, equal): &(u8, u8, bool)| (exponents[a as usize] == exponents[b as usize]) == equal;
        let image = pattern.0.iter().map(|source| match *source {
            TileSource::Plain(i) => exponents[i as usize],
            TileSource::Merged(i) => exponents[i as usize] + 1,
            TileSource::Born => params.split().large(),
        });
        pattern.1.iter().all(met).then(|| pack(&image.collect::<Vec<_>>()))
    }

    #[test]
    fn maps_made_by_shape_are_those_made_column_by_column() {
        for objective in ["score", "reach:512"] {
            let params = Params::usual("3x3", objective).large(3).build().unwrap();
            let mut checked = 0;
            for pattern in patterns() {
                let patterns = Patterns::default();
                let mut interned = Pattern::empty();
                pattern.0.iter().enumerate().for_each(|(i, &source)| interned.set_item(i, source));
                pattern.1.iter().for_each(|&(a, b, equal)| interned.set_condition(a, b, equal));
                let id = patterns.intern(&[interned])[0];
                let births = pattern.0.iter().filter(|&&s| s == TileSource::Born).count() as u8;
                for lane in lanes(&params).into_iter().filter(|lane| lane.k == 3) {
                    let k = pattern.0.len() as u8;
                    let target = Lane::new(k, lane.large_sum + (u32::from(births) << params.split().large()));
                    let (source, target) = (Columns::new(&params, lane), Columns::new(&params, target));
                    let none = target.len() as u32;
                    let expected: Vec<u32> = source
                        .sequences()
                        .iter()
                        .map(|&sequence| match apply(&pattern, sequence, &params) {
                            None => none,
                            Some(image)
                                if unpack(image, k)
                                    .iter()
                                    .any(|&e| params.game().winning_exponent() == Some(e)) =>
                            {
                                none + 1
                            }
                            Some(image) => {
                                let mut finder = target.finder();
                                let group = finder.group(Counts::of(image));
                                let column = group.and_then(|group| finder.column(group, image));
                                column.map_or(none, |Column(to)| to as u32)
                            }
                        })
                        .collect();
                    let between =
                        ColumnMap { params: &params, patterns: &patterns, source: &source, target: &target };
                    let known = patterns.known([id])[0].clone().unwrap();
                    let found = between.of_all_columns(&known);
                    assert_eq!(found, expected, "{pattern:?} {lane:?}");
                    checked += found.len();
                }
            }
            assert!(checked > 1000);
        }
    }
}
