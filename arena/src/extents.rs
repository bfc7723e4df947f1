//! Bookkeeping of the pages of an arena: the free pages, and the free pages that have memory.
//!
//! This module knows only numbers of pages. [`crate::arena`] has the memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// Free pages of an arena.
///
/// A freed range joins its free neighbours, so a long list can use the pages of several short lists.
#[derive(Debug)]
pub struct Extents {
    free: Ranges,
    /// Free pages that were in use before and still have memory.
    resident: Ranges,
}

impl Extents {
    /// Creates the pages of a new arena, all free and without memory.
    pub fn new(pages: usize) -> Self {
        let mut free = Ranges::default();
        free.insert(0..pages);
        Self { free, resident: Ranges::default() }
    }

    /// Takes `pages` pages from the first free range that has as many; `None` if no range has.
    ///
    /// Taking them from the first range keeps used pages together and reuses pages that have memory.
    pub fn take(&mut self, pages: usize) -> Option<Range<usize>> {
        let fitting = self.free.iter().find(|range| range.len() >= pages)?;
        let taken = fitting.start..fitting.start + pages;
        self.free.remove(taken.clone());
        self.resident.remove(taken.clone());
        Some(taken)
    }

    /// Frees a range that was taken. Its pages keep their memory.
    pub fn give(&mut self, range: Range<usize>) {
        self.free.insert(range.clone());
        self.resident.insert(range);
    }

    /// Number of free pages that have memory.
    pub fn resident(&self) -> usize {
        self.resident.pages
    }

    /// Removes the last `pages` pages from the free pages that have memory, or all of them if there are fewer.
    ///
    /// The pages stay free. The caller must return their memory to the system.
    pub fn forget(&mut self, pages: usize) -> Vec<Range<usize>> {
        let (mut forgotten, mut left) = (Vec::new(), pages);
        while left > 0
            && let Some(last) = self.resident.last()
        {
            let range = last.end - last.len().min(left)..last.end;
            left -= range.len();
            self.resident.remove(range.clone());
            forgotten.push(range);
        }
        forgotten
    }
}

/// Set of pages, as ranges that do not touch.
#[derive(Default, Debug)]
struct Ranges {
    ends: BTreeMap<usize, usize>,
    pages: usize,
}

impl Ranges {
    fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    fn last(&self) -> Option<Range<usize>> {
        self.ends.last_key_value().map(|(&start, &end)| start..end)
    }

    /// Adds pages. None of them may be in the set.
    fn insert(&mut self, range: Range<usize>) {
        self.pages += range.len();
        let before = self.ends.range(..range.start).next_back().filter(|&(_, &end)| end == range.start);
        let start = before.map_or(range.start, |(&start, _)| start);
        let end = self.ends.remove(&range.end).unwrap_or(range.end);
        self.ends.insert(start, end);
    }

    /// Removes pages. Some of them may be outside the set.
    fn remove(&mut self, range: Range<usize>) {
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back()
            && end > range.start
        {
            self.ends.remove(&start);
            self.pages -= end.min(range.end) - start.max(range.start);
            if end > range.end {
                self.ends.insert(range.end, end);
            }
            if start < range.start {
                self.ends.insert(start, range.start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const PAGES: usize = 40;

    #[test]
    fn freed_neighbours_become_a_long_range() {
        let mut extents = Extents::new(10);
        let [first, second, third] = [3, 3, 3].map(|pages| extents.take(pages).unwrap());
        assert_eq!((first.clone(), second.clone()), (0..3, 3..6));
        assert_eq!(extents.take(2), None);
        extents.give(first);
        extents.give(third);
        assert_eq!(extents.take(5), None, "the free ranges do not touch");
        extents.give(second);
        assert_eq!(extents.resident(), 9);
        assert_eq!(extents.take(10), Some(0..10));
        assert_eq!(extents.resident(), 0);
    }

    #[test]
    fn the_last_pages_are_forgotten_first() {
        let mut extents = Extents::new(10);
        let taken = [2, 2, 2].map(|pages| extents.take(pages).unwrap());
        let [first, _, last] = taken;
        extents.give(first);
        extents.give(last);
        assert_eq!(extents.forget(3), [4..6, 1..2]);
        assert_eq!(
            (extents.resident(), extents.forget(9).into_iter().flatten().collect::<Vec<_>>()),
            (1, vec![0])
        );
        assert!(extents.forget(1).is_empty());
        assert_eq!(extents.take(4), Some(4..8), "forgotten pages are still free");
    }

    proptest! {
        /// A model that tracks single pages gives the same results.
        #[test]
        fn pages_are_those_of_a_model(steps in proptest::collection::vec((0usize..3, 1usize..9), 0..60)) {
            let mut extents = Extents::new(PAGES);
            let (mut taken, mut resident) = (Vec::<Range<usize>>::new(), BTreeSet::new());
            for (step, number) in steps {
                match step {
                    0 => {
                        let used: BTreeSet<usize> = taken.iter().cloned().flatten().collect();
                        let is_free = |start: &usize| (*start..start + number).all(|page| !used.contains(&page));
                        let first = (0..=PAGES - number).find(is_free);
                        let got = extents.take(number);
                        prop_assert_eq!(got.clone(), first.map(|start| start..start + number));
                        resident.retain(|page| !got.as_ref().is_some_and(|got| got.contains(page)));
                        taken.extend(got);
                    }
                    1 if !taken.is_empty() => {
                        let range = taken.swap_remove(number % taken.len());
                        resident.extend(range.clone());
                        extents.give(range);
                    }
                    _ => {
                        for page in extents.forget(number).into_iter().flatten() {
                            prop_assert!(resident.remove(&page) && resident.range(page..).count() < number);
                        }
                    }
                }
                prop_assert_eq!(extents.resident(), resident.len());
            }
        }
    }
}
