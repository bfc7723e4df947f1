//! Index maps in few long lists.
//!
//! A large board has a million maps, of a kilobyte each. Separate lists would be scattered over the heap. Then the
//! allocator could give hardly any page between them back to the system, and would take a tenth of the time of a run
//! with little memory.

use std::sync::Arc;

use exact2048_game::bitset::for_each_bit;
use exact2048_game::maps::{ColumnMap, Pair};
use exact2048_game::patterns::KnownPattern;
use rayon::prelude::*;

use super::{COLUMNS_AT_ONCE, DenseMap, IndexMap, SparseMap, bound_of, stride};

/// Maps by number, in the order in which they were added.
#[derive(Debug, Default)]
pub struct MapList {
    maps: Vec<Map>,
    /// The words of the maps. No list grows beyond its first capacity, and maps without words are in none.
    lists: Vec<Vec<u32>>,
}

/// The form of a map, and its place in the lists.
#[derive(Clone, Copy, Debug)]
struct Map {
    form: Form,
    list: u32,
    start: u32,
    words: u32,
}

/// Meaning of a map's words.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// No words: each column leads to itself.
    Identity,
    /// The words of a [`DenseMap`].
    Dense { bound: u32 },
    /// The pairs of a [`SparseMap`], then its ends.
    Sparse { ends: u32, source_bound: u32, target_bound: u32 },
}

/// Maps that one thread made, one after the other.
#[derive(Default)]
struct Made {
    maps: Vec<(Form, usize)>,
    words: Vec<u32>,
}

/// The least and the most words of a list that is made with space for later maps.
const LIST_WORDS: (usize, usize) = (1 << 8, 1 << 18);

/// A new list has space for the words of all earlier lists divided by this number, within [`LIST_WORDS`].
const SPARE: usize = 8;

/// The most maps that are made before they are added. Adding them copies their words, so both copies exist for a while.
const MAPS_AT_ONCE: usize = 1024;

impl MapList {
    /// Number of maps.
    pub fn len(&self) -> usize {
        self.maps.len()
    }

    /// Whether there is no map.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// A map.
    ///
    /// # Panics
    ///
    /// If no map has this number.
    pub fn get(&self, number: usize) -> IndexMap<'_> {
        let Map { form, list, start, words } = self.maps[number];
        let words = match words {
            0 => &[],
            _ => &self.lists[list as usize][start as usize..][..words as usize],
        };
        match form {
            Form::Identity => IndexMap::Identity,
            Form::Dense { bound } => IndexMap::Dense(DenseMap { leads_to: words, bound: bound as usize }),
            Form::Sparse { ends, source_bound, target_bound } => {
                let (pairs, ends) = words.split_at(words.len() - ends as usize);
                IndexMap::Sparse(SparseMap {
                    pairs: pairs.as_chunks().0,
                    ends,
                    source_bound: source_bound as usize,
                    target_bound: target_bound as usize,
                })
            }
        }
    }

    /// Adds the maps of patterns from the columns of one lane to those of another; `None` stands for the pattern that
    /// leaves sequences unchanged. Cost: about a nanosecond a column and map.
    pub fn make(&mut self, between: &ColumnMap<'_>, patterns: &[Option<Arc<KnownPattern>>]) {
        for patterns in patterns.chunks(MAPS_AT_ONCE) {
            let together = patterns.len().div_ceil(4 * rayon::current_num_threads());
            let made: Vec<Made> =
                patterns.par_chunks(together).map(|some| Made::new(between, some)).collect();
            made.into_iter().for_each(|made| self.add(made));
        }
    }

    /// Adds a map by which each column leads to itself.
    pub fn push_identity(&mut self) {
        self.push(Form::Identity, &[]);
    }

    /// Adds a map with the given entries, to a lane with `target_columns` columns.
    pub fn push_dense(&mut self, leads_to: &[u32], target_columns: usize) {
        let mut made = Made::default();
        made.push_dense(leads_to, target_columns as u32);
        self.add(made);
    }

    /// Adds a map of pairs, ascending by column.
    pub fn push_sparse(&mut self, pairs: &[Pair]) {
        let mut made = Made::default();
        made.push_sparse(|words| words.extend_from_slice(pairs.as_flattened()));
        self.add(made);
    }

    /// Keeps the first `len` maps, and removes the others.
    pub fn truncate(&mut self, len: usize) {
        self.maps.truncate(len);
        let (lists, end) =
            self.maps.last().map_or((0, 0), |map| (map.list as usize + 1, map.start + map.words));
        self.lists.truncate(lists);
        if let Some(last) = self.lists.last_mut() {
            last.truncate(end as usize);
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let words: usize = self.lists.iter().map(Vec::capacity).sum();
        words * size_of::<u32>() + self.maps.capacity() * size_of::<Map>()
    }

    fn add(&mut self, mut made: Made) {
        // A long list is kept, not copied.
        if made.words.len() >= LIST_WORDS.1 {
            let (list, mut start) = (self.lists.len() as u32, 0);
            for (form, words) in made.maps {
                let words = words as u32;
                self.maps.push(Map { form, list, start, words });
                start += words;
            }
            made.words.shrink_to_fit();
            self.lists.push(made.words);
            return;
        }
        let mut words = &made.words[..];
        for &(form, len) in &made.maps {
            let (own, rest) = words.split_at(len);
            self.push(form, own);
            words = rest;
        }
    }

    /// Adds a map of a form, with the words of that form.
    fn push(&mut self, form: Form, words: &[u32]) {
        let has_room = |list: &Vec<u32>| list.capacity() - list.len() >= words.len();
        if !words.is_empty() && !self.lists.last().is_some_and(has_room) {
            let before: usize = self.lists.iter().map(Vec::capacity).sum();
            let (least, most) = LIST_WORDS;
            // The capacity is a multiple of this length, so maps of the same length fill the list.
            let maps = ((before / SPARE).clamp(least, most) / words.len()).max(1);
            self.lists.push(Vec::with_capacity(maps * words.len()));
        }
        let (list, start) =
            (self.lists.len().saturating_sub(1) as u32, self.lists.last().map_or(0, Vec::len));
        if let Some(last) = self.lists.last_mut() {
            last.extend_from_slice(words);
        }
        self.maps.push(Map { form, list, start: start as u32, words: words.len() as u32 });
    }
}

impl Made {
    fn new(between: &ColumnMap<'_>, patterns: &[Option<Arc<KnownPattern>>]) -> Self {
        let mut made = Self::default();
        for pattern in patterns {
            match pattern {
                Some(pattern) => made.push_map(between, pattern),
                None => made.maps.push((Form::Identity, 0)),
            }
        }
        made
    }

    fn push_map(&mut self, between: &ColumnMap<'_>, pattern: &KnownPattern) {
        let matching_columns = between.matching_columns(pattern);
        if pattern.merges() {
            return self.push_sparse(|words| {
                between.for_each_pair(pattern, matching_columns, |pair| words.extend_from_slice(&pair));
            });
        }
        let columns = between.source.len();
        let mut leads_to = vec![0; columns];
        between.write_targets(pattern, &mut leads_to);
        let none = between.none();
        let taking_part: u32 = matching_columns.iter().map(|word| word.count_ones()).sum();
        if (taking_part as usize) < columns / 4 {
            return self.push_sparse(|words| {
                for_each_bit(&matching_columns, |column| {
                    if leads_to[column] != none {
                        words.extend_from_slice(&[column as u32, leads_to[column]]);
                    }
                });
            });
        }
        for (leads_to, &matching_columns) in leads_to.chunks_mut(64).zip(&matching_columns) {
            if matching_columns != u64::MAX {
                let columns = leads_to.iter_mut().enumerate();
                columns.filter(|(bit, _)| matching_columns >> bit & 1 == 0).for_each(|(_, to)| *to = none);
            }
        }
        self.push_dense(&leads_to, none);
    }

    fn push_dense(&mut self, leads_to: &[u32], none: u32) {
        let start = self.words.len();
        self.words.extend_from_slice(leads_to);
        self.words.resize(start + stride(leads_to.len()), none);
        let bound = bound_of(self.words[start..].iter().copied());
        self.maps.push((Form::Dense { bound }, self.words.len() - start));
    }

    /// Adds a map of the pairs that `append` appends.
    fn push_sparse(&mut self, append: impl FnOnce(&mut Vec<u32>)) {
        let start = self.words.len();
        append(&mut self.words);
        let pairs: &[Pair] = self.words[start..].as_chunks().0;
        // The bounds come from all pairs, because they keep reads within rows, and nothing checks the order of the
        // pairs.
        let source_bound = bound_of(pairs.iter().map(|&[column, _]| column));
        let target_bound = bound_of(pairs.iter().map(|&[_, to]| to));
        let runs = (source_bound as usize).div_ceil(COLUMNS_AT_ONCE);
        let end =
            |run| pairs.partition_point(|&[column, _]| (column as usize) < run * COLUMNS_AT_ONCE) as u32;
        let ends: Vec<u32> = if runs > 1 { (1..=runs).map(end).collect() } else { Vec::new() };
        self.words.extend_from_slice(&ends);
        let form = Form::Sparse { ends: ends.len() as u32, source_bound, target_bound };
        self.maps.push((form, self.words.len() - start));
    }
}

#[cfg(test)]
mod tests {
    use super::super::LANES;
    use super::*;

    /// A list of `maps` maps. The pairs of each map hold its number.
    fn numbered(maps: u32) -> MapList {
        let mut list = MapList::default();
        (0..maps).for_each(|map| list.push_sparse(&pairs(map)));
        list
    }

    fn pairs(map: u32) -> Vec<Pair> {
        (0..map % 50).map(|column| [column, map]).collect()
    }

    fn pairs_of(map: IndexMap<'_>) -> &[Pair] {
        let IndexMap::Sparse(map) = map else { panic!("{map:?}") };
        map.pairs()
    }

    #[test]
    fn bounds_are_those_of_all_pairs_in_any_order() {
        let mut list = MapList::default();
        list.push_sparse(&[[70, 0], [1, 9]]);
        let IndexMap::Sparse(map) = list.get(0) else { panic!("a sparse map") };
        assert_eq!((map.source_bound, map.target_bound), (71, 10));
    }

    #[test]
    fn pairs_are_found_by_their_columns() {
        let (far, farther) = (COLUMNS_AT_ONCE as u32, 3 * COLUMNS_AT_ONCE as u32);
        let pairs = [[0, 1], [far - 1, 2], [far, 3], [farther + 5, 4]];
        let mut list = MapList::default();
        list.push_sparse(&pairs);
        let IndexMap::Sparse(map) = list.get(0) else { panic!("a sparse map") };
        let of_run = |run: usize| map.pairs_from(run * COLUMNS_AT_ONCE).pairs;
        assert_eq!([0, 1, 2, 3].map(of_run), [&pairs[..2], &pairs[2..3], &[], &pairs[3..]]);
    }

    #[test]
    fn maps_of_all_kinds_are_found_by_number() {
        let mut list = MapList::default();
        list.push_identity();
        list.push_dense(&[2, 0, 1], 7);
        list.push_sparse(&[]);
        list.push_identity();
        assert!(matches!(list.get(0), IndexMap::Identity) && matches!(list.get(3), IndexMap::Identity));
        let IndexMap::Dense(map) = list.get(1) else { panic!("a dense map") };
        assert_eq!((map.leads_to.len(), map.bound), (LANES, 8));
        assert_eq!((&map.leads_to[..3], &map.leads_to[3..]), (&[2, 0, 1][..], &[7; LANES - 3][..]));
        assert!(list.get(2).is_empty() && !list.get(0).is_empty());
    }

    #[test]
    fn the_first_maps_stay() {
        let mut list = numbered(3000);
        let all_bytes = list.heap_bytes();
        for (kept, added) in [(2900, 1000), (1, 500), (0, 300)] {
            list.truncate(kept);
            (kept as u32..kept as u32 + added).for_each(|map| list.push_sparse(&pairs(map)));
            assert_eq!(list.len(), kept + added as usize);
            (0..list.len()).for_each(|map| assert_eq!(pairs_of(list.get(map)), pairs(map as u32)));
        }
        assert!(list.heap_bytes() < all_bytes / 2, "lists that no map is in are freed");
    }

    /// Reads without a check of bounds must not depend on the content of a map.
    #[test]
    #[should_panic(expected = "no lane has so many columns")]
    fn a_column_beyond_all_numbers_is_refused() {
        MapList::default().push_sparse(&[[0, u32::MAX]]);
    }

    #[test]
    fn long_maps_are_found_and_leave_no_gaps() {
        let mut list = numbered(100);
        let lengths = [150_000, 299_984, 150_000, 20_000, 150_000];
        for (map, columns) in (0..).zip(lengths) {
            list.push_dense(&vec![map; columns], 10);
        }
        list.push_sparse(&pairs(7));
        for (map, columns) in (0..).zip(lengths) {
            let IndexMap::Dense(found) = list.get(100 + map as usize) else { panic!("a dense map") };
            assert!(
                found.leads_to()[..columns].iter().all(|&to| to == map)
                    && found.leads_to().len() == stride(columns)
            );
        }
        assert_eq!(pairs_of(list.get(105)), pairs(7));
        let used: usize = lengths.map(|columns| 4 * stride(columns)).iter().sum();
        assert!(list.heap_bytes() < used + used / 4, "{} bytes for {used}", list.heap_bytes());
        list.truncate(101);
        list.push_sparse(&pairs(9));
        assert_eq!((pairs_of(list.get(101)), list.len()), (&pairs(9)[..], 102));
    }

    #[test]
    fn lists_have_little_unused_memory() {
        let list = numbered(20_000);
        let used: usize = (0..list.len()).map(|map| size_of_val(pairs_of(list.get(map)))).sum();
        let held: usize = list.lists.iter().map(|list| 4 * list.capacity()).sum();
        assert!(held < used + used / 4, "{held} bytes for {used}");
        assert!(list.lists.len() < 100, "{} lists", list.lists.len());
    }
}
