//! Index maps from one lane to another, made in batches that fit into memory.

use std::ops::Range;

use exact2048_game::maps::ColumnMap;
use exact2048_game::patterns::PatternId;

use super::{LaneTables, PatternMaps, Tables};
use crate::kernels::index_map::IndexMap;

/// One batch of maps, after which memory is checked, takes at most one part in this many of the memory limit.
const MADE_AT_ONCE: usize = 32;

/// The index maps from one lane to another, made when a task needs them.
pub struct LaneMaps<'a> {
    pub(super) tables: &'a Tables,
    pub(super) source: &'a LaneTables,
    pub(super) target: &'a LaneTables,
    pub(super) maps: &'a mut PatternMaps,
}

impl LaneMaps<'_> {
    /// Calls `apply` with the maps of patterns, in order, and with their indices.
    ///
    /// It calls `apply` once with all maps, unless memory is short. Then it calls several times, each time with as many
    /// maps as fit.
    pub fn for_each_some(
        &mut self,
        patterns: &[PatternId],
        mut apply: impl FnMut(Range<usize>, &[IndexMap<'_>]),
    ) {
        let mut next = 0;
        while next < patterns.len() {
            if !self.tables.memory.fits(0) && !self.has(patterns[next]) {
                *self.maps = PatternMaps::default();
            }
            let numbers = self.numbers(&patterns[next..], || !self.tables.memory.fits(0));
            let maps = self.maps.numbered(&numbers);
            apply(next..next + maps.len(), &maps);
            next += maps.len();
        }
    }

    fn has(&self, pattern: PatternId) -> bool {
        self.maps.numbers.contains_key(&pattern)
    }

    /// The numbers of the maps of patterns. Missing maps are made in batches. If `enough` is true after a batch, the
    /// later patterns get no numbers.
    fn numbers(&mut self, patterns: &[PatternId], enough: impl Fn() -> bool) -> Vec<u32> {
        let at_once =
            self.tables.memory.limit_bytes() / MADE_AT_ONCE / (4 * self.source.columns.len()).max(1);
        let (mut numbers, mut unmade) = (Vec::with_capacity(patterns.len()), Vec::new());
        for &pattern in patterns {
            let next = (self.maps.maps.len() + unmade.len()) as u32;
            let number = *self.maps.numbers.entry(pattern).or_insert(next);
            if number == next {
                unmade.push(pattern);
            }
            numbers.push(number);
            if unmade.len() > at_once {
                self.make(&mut unmade);
                if enough() {
                    break;
                }
            }
        }
        self.make(&mut unmade);
        numbers
    }

    fn make(&mut self, unmade: &mut Vec<PatternId>) {
        if unmade.is_empty() {
            return;
        }
        let (source, target) = (&self.source.columns, &self.target.columns);
        let patterns = &self.tables.patterns;
        let between = ColumnMap { params: self.tables.params(), patterns, source, target };
        self.maps.maps.make(&between, &patterns.known(unmade.drain(..)));
    }
}
