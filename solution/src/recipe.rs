//! The steps that a run still needs, and the data that it no longer needs to store.
//!
//! Both follow from the parameters, above all from which layers are kept, and from what is committed. The passes know
//! nothing of it. They process one [`Segment`] after the other, each time the first step of the recipe as it is then.
//! Reach that is no longer stored is enumerated again, from the next two layers below whose reach is stored. Kept
//! layers always have theirs, so every cut is a checkpoint.

use std::collections::BTreeMap;
use std::ops::Range;

use exact2048_game::{Layer, Params};
use serde::{Deserialize, Serialize};

use crate::commit::{Commit, LayerCounts, Phase};
use crate::segment::Segment;

/// Consecutive layers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerRange {
    /// The lowest layer.
    pub first: Layer,
    /// The highest layer.
    pub last: Layer,
}

impl LayerRange {
    /// Whether all layers of a commit are among them.
    pub fn covers(self, commit: &Commit) -> bool {
        self.first <= commit.first && commit.last <= self.last
    }
}

/// Where the reach of a layer comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReachSource {
    /// From its shards.
    Stored,
    /// It was enumerated and removed: it is enumerated again where it is needed.
    Recomputed,
    /// It was not enumerated yet, its shards are lost, or a record removes it although the run keeps it.
    Missing,
}

/// A committed range of layers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedRange {
    /// The commit.
    pub commit: Commit,
    /// Whether its shards count; they do not if its reach was removed.
    pub is_stored: bool,
}

/// The committed ranges of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Holdings {
    ranges: Vec<CommittedRange>,
}

impl Holdings {
    /// Commits and whether their shards count, in the order of the journal.
    pub fn new(ranges: Vec<CommittedRange>) -> Self {
        Self { ranges }
    }

    /// Adds a range whose shards count.
    pub fn add(&mut self, commit: Commit) {
        self.ranges.push(CommittedRange { commit, is_stored: true });
    }

    /// Takes out the commits whose shards count and for which `hit` is true, and returns them.
    pub fn take(&mut self, hit: impl Fn(&Commit) -> bool) -> Vec<Commit> {
        let taken = self.ranges.extract_if(.., |held| held.is_stored && hit(&held.commit));
        taken.map(|held| held.commit).collect()
    }

    /// Notes that the reach of each enumerated range that lies within one of `removed` is not stored any more.
    pub fn remove(&mut self, removed: &[LayerRange]) {
        for held in &mut self.ranges {
            if is_removed(&held.commit, removed) {
                held.is_stored = false;
            }
        }
    }

    /// All commits.
    pub fn commits(&self) -> impl Iterator<Item = &Commit> {
        self.ranges.iter().map(|held| &held.commit)
    }

    /// The commits whose shards count.
    pub fn stored(&self) -> impl Iterator<Item = &Commit> {
        self.ranges.iter().filter(|held| held.is_stored).map(|held| &held.commit)
    }

    /// The counts of all enumerated layers, each once.
    pub fn counts(&self) -> BTreeMap<Layer, LayerCounts> {
        self.commits().flat_map(|commit| &commit.layers).map(|counts| (counts.layer, *counts)).collect()
    }
}

impl From<Vec<Commit>> for Holdings {
    /// Commits whose shards all count.
    fn from(commits: Vec<Commit>) -> Self {
        Self {
            ranges: commits.into_iter().map(|commit| CommittedRange { commit, is_stored: true }).collect(),
        }
    }
}

/// Whether a commit is one of reach and lies within one of these ranges of layers.
pub fn is_removed(commit: &Commit, removed: &[LayerRange]) -> bool {
    commit.phase == Phase::Enumerate && removed.iter().any(|range| range.covers(commit))
}

/// The steps and removals of a run, computed from the layers it keeps and from its committed ranges.
#[derive(Debug)]
pub struct Recipe<'a> {
    params: &'a Params,
    holdings: &'a Holdings,
    /// By the number of the layer.
    layers: Vec<Standing>,
}

/// The committed data of a layer.
#[derive(Clone, Copy, Default, Debug)]
struct Standing {
    is_counted: bool,
    has_reach: bool,
    is_backed_up: bool,
}

impl<'a> Recipe<'a> {
    /// The recipe of a run with these parameters, of which `holdings` is committed. Cost: a step a layer.
    pub fn new(params: &'a Params, holdings: &'a Holdings) -> Self {
        let mut layers = vec![Standing::default(); params.last_layer().index() + 1];
        for CommittedRange { commit, is_stored } in &holdings.ranges {
            let covered = (commit.last.index() + 1).saturating_sub(commit.first.index());
            for standing in layers.iter_mut().skip(commit.first.index()).take(covered) {
                match commit.phase {
                    Phase::Enumerate => {
                        standing.is_counted = true;
                        standing.has_reach |= is_stored;
                    }
                    Phase::BackUp => standing.is_backed_up = true,
                }
            }
        }
        Self { params, holdings, layers }
    }

    /// Where the reach of a layer comes from.
    pub fn reach(&self, layer: Layer) -> ReachSource {
        match self.layers.get(layer.index()) {
            Some(Standing { has_reach: true, .. }) => ReachSource::Stored,
            Some(standing) if !self.is_missing(layer.index(), standing) => ReachSource::Recomputed,
            _ => ReachSource::Missing,
        }
    }

    /// Whether the reach of a layer has to be enumerated before the run is finished. `Standing` says what is committed of it.
    fn is_missing(&self, number: usize, standing: &Standing) -> bool {
        !standing.is_counted || self.stores_reachability(number) && !standing.has_reach
    }

    /// The segments that complete the run, in the order in which they must be done. A fresh run has one upward and one
    /// downward; one that lost a shard needs just that range again. Reach that was removed and is needed is enumerated
    /// again just before the values of its layers are computed.
    pub fn steps(&self) -> Vec<Segment> {
        let mut steps = Steps { layers: self.layers.clone(), steps: Vec::new() };
        let all = 0..self.layers.len();
        for gap in runs(all.clone().filter(|&n| self.is_missing(n, &self.layers[n]))) {
            steps.enumerate(gap);
        }
        if !self.params.contents().enumerates_only() {
            let gaps: Vec<_> = runs(all.filter(|&n| !self.layers[n].is_backed_up)).collect();
            gaps.into_iter().rev().for_each(|gap| self.back_up(gap, &mut steps));
        }
        steps.steps
    }

    /// Adds the steps that give values to some layers.
    fn back_up(&self, gap: Gap, steps: &mut Steps) {
        let mut last = gap.last;
        while let Some(lost) = (gap.first..=last).rev().find(|&n| !steps.layers[n].has_reach) {
            let end = self.params.contents().kept().next_cut(Layer::nth(lost + 1)).index();
            if end <= last {
                steps.push(Phase::BackUp, end, last);
                last = end - 1;
            }
            steps.enumerate(Gap { first: lost, last: lost });
        }
        steps.push(Phase::BackUp, gap.first, last);
    }

    /// Whether all inputs of a segment are stored.
    ///
    /// In the upward pass, these are the reach of the two layers below it. In the downward pass, they are its own
    /// reach, and the values of all layers above.
    pub fn has_inputs(&self, segment: Segment) -> bool {
        let (first, last) = (segment.first.index(), segment.last.index());
        let have_reach =
            |mut layers: Range<usize>| layers.all(|n| self.layers.get(n).is_none_or(|layer| layer.has_reach));
        match segment.phase {
            Phase::Enumerate => have_reach(first.saturating_sub(LED_FROM)..first),
            Phase::BackUp => {
                have_reach(first..last + 1 + LED_FROM)
                    && self.layers.iter().skip(last + 1).all(|layer| layer.is_backed_up)
            }
        }
    }

    /// The committed ranges of reach that need not stay stored when the run is finished.
    pub fn removable(&self) -> Vec<LayerRange> {
        self.ranges_of_reach(|n| !self.stores_reachability(n))
    }

    /// Whether some layers were never enumerated.
    pub fn is_climbing(&self) -> bool {
        self.layers.iter().any(|layer| !layer.is_counted)
    }

    /// The committed ranges of reach that nothing needs any more: their layers have values, or follow from those of
    /// other layers, and the next step does not begin on them.
    pub fn passed(&self) -> Vec<LayerRange> {
        let begun_on = self.begun_on();
        self.ranges_of_reach(|n| {
            self.layers[n].is_backed_up && !self.stores_reachability(n) && !begun_on.contains(&n)
        })
    }

    /// The layers whose reach the next step begins on, if it enumerates.
    fn begun_on(&self) -> Range<usize> {
        let first = match self.steps().first() {
            Some(Segment { phase: Phase::Enumerate, first, .. }) => first.index(),
            _ => 0,
        };
        first.saturating_sub(LED_FROM)..first
    }

    /// The layers that get their values next: down from the highest without, as far as the next cut.
    fn come_to(&self) -> Range<usize> {
        let end = self.layers.iter().rposition(|layer| !layer.is_backed_up).map_or(0, |highest| highest + 1);
        let cut = (0..end).rev().find(|&n| self.params.contents().kept().is_cut(Layer::nth(n)));
        cut.unwrap_or(0)..end
    }

    /// The committed ranges of reach that are needed later, and that can then be enumerated again from the cut below
    /// them. The ranges that the downward pass needs last come first.
    ///
    /// The list omits ranges above the highest cut whose reach is stored, because the upward pass resumes there. It also
    /// omits the ranges that the next step begins on, and those that the downward pass has reached. The run would
    /// enumerate these ranges again at once, and remove them again, without end.
    pub fn repeatable(&self) -> Vec<LayerRange> {
        let is_checkpoint =
            |n: usize| self.params.contents().kept().is_cut(Layer::nth(n)) && n + 1 < self.layers.len();
        let highest = (0..self.layers.len())
            .rev()
            .find(|&n| is_checkpoint(n) && self.layers[n].has_reach && self.layers[n + 1].has_reach);
        let Some(highest) = highest else { return Vec::new() };
        let is_passed = |n: usize| self.layers[n].is_backed_up;
        let (begun_on, come_to) = (self.begun_on(), self.come_to());
        let is_one = |n: usize| {
            n < highest && !self.stores_reachability(n) && !begun_on.contains(&n) && !come_to.contains(&n)
        };
        let mut ranges = self.ranges_of_reach(is_one);
        ranges.retain(|range| (range.first.index()..=range.last.index()).any(|n| !is_passed(n)));
        ranges.sort_by_key(|range| range.first);
        ranges
    }

    /// The committed ranges of reach all of whose layers are of a kind.
    fn ranges_of_reach(&self, is_one: impl Fn(usize) -> bool) -> Vec<LayerRange> {
        let enumerated = self.holdings.stored().filter(|commit| commit.phase == Phase::Enumerate);
        let all = enumerated.filter(|commit| {
            (commit.first.index()..=commit.last.index()).all(|n| n < self.layers.len() && is_one(n))
        });
        all.map(|commit| LayerRange { first: commit.first, last: commit.last }).collect()
    }

    /// Whether the reach of a layer stays stored: with its values or best moves, or where the run is nothing but reach.
    fn stores_reachability(&self, number: usize) -> bool {
        self.params.contents().stores_reachability(Layer::nth(number))
    }
}

/// From how many layers below a layer states can lead to it, and to how many above it can lead.
const LED_FROM: usize = Layer::RISE as usize;

/// Layers by their numbers, both ends included.
#[derive(Clone, Copy)]
struct Gap {
    first: usize,
    last: usize,
}

/// A list of steps, and how the layers stand after them.
struct Steps {
    layers: Vec<Standing>,
    steps: Vec<Segment>,
}

impl Steps {
    /// Adds the step that enumerates the layers of a gap; it begins above the next two layers below whose reach is
    /// stored. Adds none if all these layers have reach.
    fn enumerate(&mut self, gap: Gap) {
        let can_begin = |n: usize| (n.saturating_sub(LED_FROM)..n).all(|below| self.layers[below].has_reach);
        let first = (0..=gap.first).rev().find(|&n| can_begin(n)).unwrap_or(0);
        if (first..=gap.last).all(|n| self.layers[n].has_reach) {
            return;
        }
        self.layers[first..=gap.last].iter_mut().for_each(|layer| layer.has_reach = true);
        self.push(Phase::Enumerate, first, gap.last);
    }

    fn push(&mut self, phase: Phase, first: usize, last: usize) {
        self.steps.push(Segment { phase, first: Layer::nth(first), last: Layer::nth(last) });
    }
}

/// The runs of consecutive numbers among ascending ones.
fn runs(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = Gap> {
    let mut numbers = numbers.peekable();
    std::iter::from_fn(move || {
        let first = numbers.next()?;
        let mut last = first;
        while numbers.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        Some(Gap { first, last })
    })
}

#[cfg(test)]
mod tests;
