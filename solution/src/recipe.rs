//! The steps that a run still needs, and the data that it no longer needs to store.
//!
//! Both follow from the parameters, above all the kept layers, and from the committed ranges. Before each [`Segment`],
//! the caller computes the recipe anew and runs its first step. Reach that was removed is enumerated again, starting
//! from the nearest two neighbouring layers below whose reach is stored. Kept layers always have stored reach, so every
//! cut is a checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use exact2048_game::{Layer, Params, RunContents};
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
    /// Whether the range contains all layers of a commit.
    pub fn covers(self, commit: &Commit) -> bool {
        self.first <= commit.first && commit.last <= self.last
    }
}

/// The source of the reach of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReachSource {
    /// The reach is in shards.
    Stored,
    /// The reach was enumerated and removed. A later step enumerates it again if it is needed.
    Recomputed,
    /// The reach was never enumerated, its shards are lost, or a record removed it although the run keeps it.
    Missing,
}

/// A committed range of layers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedRange {
    /// The commit.
    pub commit: Commit,
    /// Whether the shards of the range count. They no longer do after the reach of the range was removed.
    pub is_stored: bool,
    /// Whether the checkpoint of the range counts. Only runs that round values have checkpoints.
    pub has_checkpoint: bool,
}

/// The committed ranges of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Holdings {
    ranges: Vec<CommittedRange>,
}

impl Holdings {
    /// The holdings of a run with these ranges, in the order of the journal.
    pub fn new(ranges: Vec<CommittedRange>) -> Self {
        Self { ranges }
    }

    /// Adds a range of a run with these contents. Its shards count.
    pub fn add(&mut self, commit: Commit, contents: &RunContents) {
        let has_checkpoint = commit.phase == Phase::BackUp && contents.has_checkpoint(commit.first);
        self.ranges.push(CommittedRange { commit, is_stored: true, has_checkpoint });
        self.drop_checkpoints();
    }

    /// Marks the checkpoints that no later step needs as no longer counting.
    fn drop_checkpoints(&mut self) {
        let ranges = self.ranges.iter().map(|range| (&range.commit, range.has_checkpoint));
        let needed = needed_checkpoint(ranges);
        for range in &mut self.ranges {
            range.has_checkpoint &= Some(range.commit.first) == needed;
        }
    }

    /// Removes and returns the commits whose shards count and for which `hit` is true.
    pub fn take(&mut self, hit: impl Fn(&Commit) -> bool) -> Vec<Commit> {
        let taken = self.ranges.extract_if(.., |held| held.is_stored && hit(&held.commit));
        taken.map(|held| held.commit).collect()
    }

    /// Marks every enumerated range inside one of `removed` as no longer stored.
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
            ranges: commits
                .into_iter()
                .map(|commit| CommittedRange { commit, is_stored: true, has_checkpoint: false })
                .collect(),
        }
    }
}

/// Whether a commit enumerates layers and lies within one of these ranges.
pub fn is_removed(commit: &Commit, removed: &[LayerRange]) -> bool {
    commit.phase == Phase::Enumerate && removed.iter().any(|range| range.covers(commit))
}

/// The steps and removals of a run, computed from the layers it keeps and from its committed ranges.
#[derive(Debug)]
pub struct Recipe<'a> {
    params: &'a Params,
    holdings: &'a Holdings,
    /// Indexed by layer number.
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
    /// The recipe of a run with these parameters and committed ranges. Cost: linear in the layers of all ranges.
    pub fn new(params: &'a Params, holdings: &'a Holdings) -> Self {
        let mut layers = vec![Standing::default(); params.last_layer().index() + 1];
        // No layer below the first has a state, so all that is to know of these layers is known.
        let known = Standing { is_counted: true, has_reach: true, is_backed_up: true };
        layers[..params.first_layer().index()].fill(known);
        for CommittedRange { commit, is_stored, .. } in &holdings.ranges {
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
        if params.contents().value_step().is_some() {
            repeat_rounded(&mut layers, &holdings.ranges);
        }
        Self { params, holdings, layers }
    }

    /// The source of the reach of a layer.
    pub fn reach(&self, layer: Layer) -> ReachSource {
        match self.layers.get(layer.index()) {
            Some(Standing { has_reach: true, .. }) => ReachSource::Stored,
            Some(standing) if !self.is_missing(layer.index(), standing) => ReachSource::Recomputed,
            _ => ReachSource::Missing,
        }
    }

    /// Whether the reach of a layer has to be enumerated before the run is finished. `standing` is the committed data
    /// of the layer.
    fn is_missing(&self, number: usize, standing: &Standing) -> bool {
        !standing.is_counted || self.stores_reachability(number) && !standing.has_reach
    }

    /// The segments that complete the run, in the order of execution. A fresh run has one upward and one downward
    /// segment. A run that lost a shard repeats only the range of that shard. Removed reach is enumerated again just
    /// before its layers get values.
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

    /// Adds the steps that give values to the layers of a gap.
    fn back_up(&self, gap: Gap, steps: &mut Steps) {
        let mut last = gap.last;
        while let Some(lost) = (gap.first..=last).rev().find(|&n| !steps.layers[n].has_reach) {
            let end = self.params.contents().next_resumable(Layer::nth(lost + 1)).index();
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
    /// An upward segment needs the reach of the two layers below it. A downward segment needs the reach of all its
    /// layers and of the two layers above, and the values of all layers above.
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

    /// The committed ranges of reach that no later step needs. Their layers are backed up, and the next step does not
    /// start from their reach.
    pub fn passed(&self) -> Vec<LayerRange> {
        let start_layers = self.start_layers();
        self.ranges_of_reach(|n| {
            self.layers[n].is_backed_up && !self.stores_reachability(n) && !start_layers.contains(&n)
        })
    }

    /// The two layers from whose reach the next step starts, if it enumerates; else none.
    fn start_layers(&self) -> Range<usize> {
        let first = match self.steps().first() {
            Some(Segment { phase: Phase::Enumerate, first, .. }) => first.index(),
            _ => 0,
        };
        first.saturating_sub(LED_FROM)..first
    }

    /// The layers that get their values next: from the highest layer without values down to the next resumable layer.
    fn next_layers(&self) -> Range<usize> {
        let end = self.layers.iter().rposition(|layer| !layer.is_backed_up).map_or(0, |highest| highest + 1);
        let cut = (0..end).rev().find(|&n| self.params.contents().is_resumable(Layer::nth(n)));
        cut.unwrap_or(0)..end
    }

    /// The committed ranges of reach that a later step needs but can enumerate again from the cut below. The lowest
    /// ranges come first, because the downward pass needs them last.
    ///
    /// The list omits ranges above the highest cut whose reach is stored, because the upward pass resumes there. It
    /// also omits the ranges from which the next step starts, and those that get their values next. Otherwise the run
    /// would enumerate these ranges again at once and remove them again, forever.
    pub fn repeatable(&self) -> Vec<LayerRange> {
        let is_checkpoint =
            |n: usize| self.params.contents().kept().is_cut(Layer::nth(n)) && n + 1 < self.layers.len();
        let highest = (0..self.layers.len())
            .rev()
            .find(|&n| is_checkpoint(n) && self.layers[n].has_reach && self.layers[n + 1].has_reach);
        let Some(highest) = highest else { return Vec::new() };
        let is_passed = |n: usize| self.layers[n].is_backed_up;
        let (start_layers, next_layers) = (self.start_layers(), self.next_layers());
        let is_one = |n: usize| {
            n < highest
                && !self.stores_reachability(n)
                && !start_layers.contains(&n)
                && !next_layers.contains(&n)
        };
        let mut ranges = self.ranges_of_reach(is_one);
        ranges.retain(|range| (range.first.index()..=range.last.index()).any(|n| !is_passed(n)));
        ranges.sort_by_key(|range| range.first);
        ranges
    }

    /// The committed ranges of reach whose layers all satisfy `is_one`.
    fn ranges_of_reach(&self, is_one: impl Fn(usize) -> bool) -> Vec<LayerRange> {
        let enumerated = self.holdings.stored().filter(|commit| commit.phase == Phase::Enumerate);
        let all = enumerated.filter(|commit| {
            (commit.first.index()..=commit.last.index()).all(|n| n < self.layers.len() && is_one(n))
        });
        all.map(|commit| LayerRange { first: commit.first, last: commit.last }).collect()
    }

    /// Whether a finished run stores the reach of a layer: next to its values or best moves, or because the run only
    /// enumerates.
    fn stores_reachability(&self, number: usize) -> bool {
        self.params.contents().stores_reachability(Layer::nth(number))
    }
}

/// The first layer of the range whose checkpoint a later step needs; `None` if none does.
///
/// It is the lowest range with a checkpoint above the lowest layer without values. The others are needed no more.
pub fn needed_checkpoint<'a>(ranges: impl Iterator<Item = (&'a Commit, bool)> + Clone) -> Option<Layer> {
    let of_values = || ranges.clone().filter(|(commit, _)| commit.phase == Phase::BackUp);
    let mut covered: Vec<_> = of_values().map(|(commit, _)| (commit.first, commit.last)).collect();
    covered.sort_unstable();
    let mut lowest = Layer::FIRST;
    for (first, last) in covered {
        if first > lowest {
            break;
        }
        lowest = lowest.max(last.up(1));
    }
    of_values().filter(|&(commit, has)| has && commit.first > lowest).map(|(commit, _)| commit.first).min()
}

/// Marks the layers that must be backed up again because values above a layer without values are rounded: all layers up
/// to the next checkpoint, or to the last layer.
fn repeat_rounded(layers: &mut [Standing], ranges: &[CommittedRange]) {
    let checkpoints = ranges.iter().filter(|range| range.has_checkpoint);
    let checkpoints: BTreeSet<usize> = checkpoints.map(|range| range.commit.first.index()).collect();
    let gaps: Vec<Gap> = runs((0..layers.len()).filter(|&n| !layers[n].is_backed_up)).collect();
    for gap in gaps {
        let end = checkpoints.range(gap.last + 1..).next().copied().unwrap_or(layers.len());
        layers[gap.last + 1..end].iter_mut().for_each(|layer| layer.is_backed_up = false);
    }
}

/// Largest number of layers by which a spawn raises a board.
const LED_FROM: usize = Layer::RISE as usize;

/// Layers by their numbers, both ends included.
#[derive(Clone, Copy)]
struct Gap {
    first: usize,
    last: usize,
}

/// A list of steps, and the committed data of each layer after these steps.
struct Steps {
    layers: Vec<Standing>,
    steps: Vec<Segment>,
}

impl Steps {
    /// Adds the step that enumerates the layers of a gap. The step begins at the highest layer, at most the first of
    /// the gap, whose two lower neighbours have reach. Adds no step if all layers from there to the end of the gap have
    /// reach.
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

/// Groups ascending numbers into runs of consecutive numbers.
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
