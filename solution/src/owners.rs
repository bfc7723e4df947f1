//! Which worker owns which lane in an epoch.

use exact2048_game::{Lane, Params};

/// The rule that gives every lane its one owner among the members of an epoch.
///
/// A layer has blocks of few lanes, and a few of these hold most of its states. So the rule gives lanes that are
/// neighbours in the sum or the number of their large tiles to different members. In the simulation
/// `coordinator/examples/scale`, 5x2 on two threads takes 1.2 times as long if one member owns all lanes of a sum.
/// Members then push a quarter fewer blocks, but this does not help enough.
///
/// If lanes are split by huge tiles, all lanes with the same huge tiles are a *family*, and few moves lead from one
/// family to another. So the rule then deals out families instead of lanes: each to one member, or to a few if there
/// are many members.
///
/// The rule is part of the format of runs, because it determines which shard of a commit holds a lane. It depends only
/// on the parameters and on the threads of the members. So members exchange no table of owners: each builds the same
/// rule with [`assign`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owners {
    large: u8,
    huge: u8,
    /// Number of members that share a family.
    split: usize,
    /// The order in which members get lanes: their indices, each in proportion to the threads of the member.
    turns: Vec<u16>,
}

/// Each family is shared by one in this many members of the epoch. A layer has about a dozen families, some of them
/// large, so many members cannot each have whole families.
const MEMBERS_A_SPLIT: usize = 4;

/// Most members that share a family. With more of them, more moves inside the family would lead to another member.
const MOST_SPLIT: usize = 4;

/// Deals the lanes of a run to the members of an epoch. `threads` has the number of threads of each member.
///
/// # Panics
///
/// If there is no member, or if there are more than 65,536.
pub fn assign(params: &Params, threads: &[u32]) -> Owners {
    assert!(!threads.is_empty() && threads.len() <= 1 << 16, "an epoch has between 1 and 65,536 members");
    let split = (threads.len() / MEMBERS_A_SPLIT).clamp(1, MOST_SPLIT);
    Owners { large: params.split().large(), huge: params.split().huge(), split, turns: turns(threads) }
}

impl Owners {
    /// The member that owns a lane, by its index.
    pub fn owner(&self, lane: Lane) -> usize {
        let turn = (lane.large_sum >> self.large) as usize + usize::from(lane.k);
        let turn = if lane.huge.is_empty() {
            turn
        } else {
            let family = (lane.huge.sum() >> self.huge) as usize + usize::from(lane.huge.len());
            family * self.split + turn % self.split
        };
        usize::from(self.turns[turn % self.turns.len()])
    }
}

/// Turns of a smooth weighted round robin.
///
/// Each member has turns in proportion to its weight. The turns are spread out as evenly as possible, so even a few
/// consecutive turns are divided about fairly.
fn turns(threads: &[u32]) -> Vec<u16> {
    let mut weights: Vec<u64> =
        threads.iter().map(|&threads| u64::from(threads.clamp(1, MOST_WEIGHT))).collect();
    let divisor = weights.iter().copied().fold(0, gcd);
    weights.iter_mut().for_each(|weight| *weight /= divisor);
    let total: u64 = weights.iter().sum();
    let mut credit = vec![0i64; weights.len()];
    (0..total)
        .map(|_| {
            let mut best = 0;
            for (member, &weight) in weights.iter().enumerate() {
                credit[member] += weight as i64;
                if credit[member] > credit[best] {
                    best = member;
                }
            }
            credit[best] -= total as i64;
            best as u16
        })
        .collect()
}

/// Largest weight of a member, also for members with more threads. It bounds the number of turns.
const MOST_WEIGHT: u32 = 256;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use exact2048_game::class::Space;

    use exact2048_game::{HugeTiles, Layer, lane};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_lane_has_one_owner_and_all_members_agree(threads in prop::collection::vec(0u32..300, 1..40)) {
            let params = Params::small("3x3");
            let (here, there) = (assign(&params, &threads), assign(&params, &threads));
            for lane in lane::lanes(&params) {
                prop_assert!(here.owner(lane) < threads.len());
                prop_assert_eq!(here.owner(lane), there.owner(lane));
            }
        }
    }

    #[test]
    fn the_lanes_of_a_layer_are_divided() {
        let params = Params::small("4x3").without_huge_tiles();
        for members in [2, 3, 4] {
            let owners = assign(&params, &vec![1; members]);
            for layer in (100..16000).step_by(200).map(Layer) {
                let range = |&lane: &Lane| lane::layer_range(&params, lane);
                let alive = lane::lanes(&params).into_iter().filter(|lane| {
                    let (first, last) = range(lane);
                    (first..=last).contains(&layer)
                });
                let mut owned = vec![0; members];
                alive.for_each(|lane| owned[owners.owner(lane)] += 1);
                let (all, most): (u32, _) = (owned.iter().sum(), owned.iter().max());
                assert!(
                    most.is_some_and(|&most| most * members as u32 <= 2 * all),
                    "layer {layer}: {owned:?}"
                );
            }
        }
    }

    #[test]
    fn families_stay_together_and_are_divided() {
        let params = Params::small("4x3");
        let space = Space::new(&params);
        for members in [2, 3, 7, 8] {
            let owners = assign(&params, &vec![1; members]);
            let mut families = BTreeMap::<HugeTiles, BTreeSet<usize>>::new();
            let mut entries = vec![0.0; members];
            for lane in lane::lanes(&params).into_iter().filter(|lane| !lane.huge.is_empty()) {
                families.entry(lane.huge).or_default().insert(owners.owner(lane));
                entries[owners.owner(lane)] +=
                    space.estimate_entries(lane).map(|(_, n)| n as f64).sum::<f64>();
            }
            let split = if members < 8 { 1 } else { 2 };
            assert!(families.values().all(|owners| owners.len() <= split), "{members}");
            let (all, most) = (entries.iter().sum::<f64>(), entries.iter().copied().fold(0.0, f64::max));
            assert!(most * members as f64 <= 1.25 * all, "{members}: {entries:?}");
        }
    }

    #[test]
    fn lanes_are_dealt_by_threads() {
        let params = Params::small("4x3");
        for threads in [vec![1, 1], vec![4, 2, 2], vec![3, 1], vec![1; 7], vec![2; 20], vec![1, 64]] {
            let owners = assign(&params, &threads);
            let mut lanes = vec![0f64; threads.len()];
            lane::lanes(&params).into_iter().for_each(|lane| lanes[owners.owner(lane)] += 1.0);
            let all: f64 = lanes.iter().sum();
            for (member, &owned) in lanes.iter().enumerate() {
                let fair = all * f64::from(threads[member]) / f64::from(threads.iter().sum::<u32>());
                assert!(owned > 0.6 * fair && owned < 1.6 * fair, "{threads:?}: {lanes:?}");
            }
        }
    }

    #[test]
    fn turns_are_spread_out() {
        assert_eq!(turns(&[2, 1, 1]), [0, 1, 2, 0]);
        assert_eq!(turns(&[8, 8]), [0, 1]);
        assert_eq!(turns(&[0]), [0], "0 threads count as one");
    }
}
