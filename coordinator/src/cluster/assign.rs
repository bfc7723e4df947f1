//! Which worker owns which lane in an epoch.

use std::cmp::Reverse;

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::{Lane, Layer, Params};
use rustc_hash::FxHashMap;

/// Which member of an epoch owns which lane.
///
/// It follows from the parameters and the members' threads alone, so that a share need not hold it: every worker builds the
/// same with [`assign`]. It is part of the format of runs: it says which shard of a commit holds a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owners {
    /// Indices of members. Where there is one member, or none has dealt a lane, its owner is the first.
    of: FxHashMap<Lane, u16>,
}

/// Deals the lanes of a run to the members of an epoch; `threads` are theirs, in order of members.
///
/// A layer takes as long as its busiest owner, and few lanes are alive in one, of which a few hold most of its states. So
/// lanes are dealt one after the other, the largest first, each to the member with which the squares of what
/// members have in one layer, by thread, grow least: the rule of largest first for machines in parallel (Graham, Bounds on
/// Multiprocessing Timing Anomalies, 1969), here for all layers at once. Sizes are entries, as far as they can be told without
/// making the classes.
///
/// Cost: for each block one step for each lane alive in its layer; 0.05 s for 4x3.
///
/// # Panics
///
/// Where there is no member, or more than 65,536.
pub fn assign(params: &Params, threads: &[u32]) -> Owners {
    assert!(!threads.is_empty() && threads.len() <= 1 << 16, "an epoch has between 1 and 65,536 members");
    if threads.len() == 1 {
        return Owners { of: FxHashMap::default() };
    }
    let mut table = Table::new(params, threads);
    let of = lanes_by_size(params).into_iter().map(|blocks| (blocks.lane, table.deal(&blocks))).collect();
    Owners { of }
}

impl Owners {
    /// The member that owns a lane, by its index.
    pub fn owner(&self, lane: Lane) -> usize {
        self.of.get(&lane).map_or(0, |&owner| owner.into())
    }
}

/// The blocks of a lane.
struct LaneBlocks {
    lane: Lane,
    first: Layer,
    /// Entries of each, about.
    entries: Vec<u64>,
}

/// All lanes of a run, from the one with most entries to the one with fewest.
fn lanes_by_size(params: &Params) -> Vec<LaneBlocks> {
    let space = Space::new(params);
    let blocks_of = |lane| {
        let columns = Columns::count(params, lane);
        let (first, last) = layer_range(params, lane);
        let rows = |layer| ClassId::of(Layer(layer), lane).map_or(0, |class| space.rows_about(class));
        let entries = (first.0..=last.0).step_by(2).map(|layer| rows(layer).saturating_mul(columns));
        LaneBlocks { lane, first, entries: entries.collect() }
    };
    let mut all: Vec<LaneBlocks> = lanes(params).into_iter().map(blocks_of).collect();
    all.sort_by_cached_key(|blocks| {
        Reverse(blocks.entries.iter().fold(0u64, |sum, &block| sum.saturating_add(block)))
    });
    all
}

/// What members have been dealt.
struct Table {
    /// Threads of each member, at least one.
    threads: Vec<f64>,
    /// Entries of each member in all layers.
    dealt: Vec<f64>,
    /// For every layer, the entries of the members that have some.
    layers: Vec<Vec<(u16, f64)>>,
    lowest: Layer,
}

impl Table {
    fn new(params: &Params, threads: &[u32]) -> Self {
        let lowest = Layer(4);
        let layers = (params.last_layer().0.saturating_sub(lowest.0) / 2 + 1) as usize;
        Self {
            threads: threads.iter().map(|&threads| f64::from(threads.max(1))).collect(),
            dealt: vec![0.0; threads.len()],
            layers: vec![Vec::new(); layers],
            lowest,
        }
    }

    /// Gives a lane to a member. Sums and products of doubles in one order: the same everywhere.
    fn deal(&mut self, blocks: &LaneBlocks) -> u16 {
        let first = (blocks.first.0 - self.lowest.0) as usize / 2;
        let (mut alone, mut beside) = (0.0, vec![0.0; self.threads.len()]);
        for (layer, &entries) in self.layers[first..].iter().zip(&blocks.entries) {
            let entries = entries as f64;
            alone += entries * entries;
            layer.iter().for_each(|&(member, has)| beside[usize::from(member)] += 2.0 * entries * has);
        }
        let grows = |member: usize| (alone + beside[member]) / self.threads[member];
        let has = |member: usize| self.dealt[member] / self.threads[member];
        let member = (0..self.threads.len())
            .min_by(|&a, &b| grows(a).total_cmp(&grows(b)).then(has(a).total_cmp(&has(b))))
            .unwrap_or_default();
        for (layer, &entries) in self.layers[first..].iter_mut().zip(&blocks.entries) {
            let entries = entries as f64;
            self.dealt[member] += entries;
            match layer.iter_mut().find(|(other, _)| usize::from(*other) == member) {
                Some((_, has)) => *has += entries,
                None => layer.push((member as u16, entries)),
            }
        }
        member as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Objective, Precision, Spawn4};
    use proptest::prelude::*;

    fn params(board: &str) -> Params {
        let (board, spawn4) = (board.parse().unwrap(), Spawn4::default());
        Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap()
    }

    /// What each member has in each layer, in entries by thread.
    fn shares(params: &Params, threads: &[u32]) -> Vec<Vec<f64>> {
        let owners = assign(params, threads);
        let mut shares = vec![vec![0.0; threads.len()]; params.last_layer().0 as usize / 2 + 1];
        for LaneBlocks { lane, first, entries } in lanes_by_size(params) {
            let owner = owners.owner(lane);
            for (share, entries) in shares[first.0 as usize / 2..].iter_mut().zip(entries) {
                share[owner] += entries as f64 / f64::from(threads[owner]);
            }
        }
        shares
    }

    proptest! {
        #[test]
        fn every_lane_has_one_owner_and_everybody_agrees(threads in prop::collection::vec(0u32..300, 1..40)) {
            let params = params("3x2");
            let (here, there) = (assign(&params, &threads), assign(&params, &threads));
            prop_assert_eq!(&here, &there);
            for lane in lanes(&params) {
                prop_assert!(here.owner(lane) < threads.len());
            }
        }
    }

    #[test]
    fn layers_are_shared_out_by_entries() {
        // In parts of what all members would take if each layer could be cut anywhere.
        for (board, threads, most) in [
            ("3x3", vec![1, 1], 1.13),
            ("5x2", vec![1, 1], 1.13),
            ("4x3", vec![1, 1], 1.10),
            ("4x3", vec![4, 2, 2], 1.2),
            ("4x3", vec![1; 4], 1.35),
        ] {
            let all: f64 = threads.iter().map(|&threads| f64::from(threads)).sum();
            let (mut busiest, mut fair) = (0.0, 0.0);
            for share in shares(&params(board), &threads) {
                busiest += share.iter().copied().fold(0.0, f64::max);
                fair += share
                    .iter()
                    .zip(&threads)
                    .map(|(share, &threads)| share * f64::from(threads))
                    .sum::<f64>()
                    / all;
            }
            assert!(busiest <= most * fair, "{board} {threads:?}: {:.3}", busiest / fair);
        }
    }

    #[test]
    fn members_that_are_not_needed_in_one_layer_have_others() {
        let threads = vec![1; 64];
        let shares = shares(&params("4x3"), &threads);
        let has = |member: usize| shares.iter().any(|share| share[member] > 0.0);
        assert!((0..threads.len()).all(has));
    }

    #[test]
    fn a_worker_that_says_no_threads_counts_as_one() {
        let params = params("3x2");
        assert_eq!(assign(&params, &[0, 3]), assign(&params, &[1, 3]));
        assert!(lanes(&params).into_iter().all(|lane| assign(&params, &[7]).owner(lane) == 0));
    }
}
