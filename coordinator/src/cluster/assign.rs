//! Which worker owns which lane in an epoch.

use exact2048_game::{Lane, Params};

/// The rule that gives every lane its one owner among the members of an epoch.
///
/// Lanes with the same sum of large tiles belong together, because merges keep the sum: only births
/// lead to blocks of other owners. Few sums are alive in one layer, about half as many as the board
/// has cells, so that for more workers than that a sum is split by the number of its large tiles.
///
/// The rule follows from the parameters and the members' threads alone. So a share need not hold a
/// table: every worker builds the same rule with [`assign`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owners {
    large: u8,
    /// Parts that the lanes of one sum are split into.
    parts: u32,
    /// Whose turn it is: indices of members, each as often as its threads say.
    turns: Vec<u16>,
}

/// Deals the lanes of a run to the members of an epoch; `threads` are theirs, in order of members.
///
/// # Panics
///
/// Where there is no member, or more than 65,536.
pub fn assign(params: &Params, threads: &[u32]) -> Owners {
    assert!(!threads.is_empty() && threads.len() <= 1 << 16, "an epoch has between 1 and 65,536 members");
    let sums_alive = params.cells() as u32 / 2 + 1;
    let turns = turns(threads);
    let parts = (threads.len() as u32).div_ceil(sums_alive).min(params.cells() as u32);
    Owners { large: params.large, parts, turns }
}

impl Owners {
    /// The member that owns a lane, by its index.
    pub fn owner(&self, lane: Lane) -> usize {
        let sum = u64::from(lane.large_sum >> self.large);
        let part = u64::from(u32::from(lane.k) % self.parts);
        let turn = (sum * u64::from(self.parts) + part) % self.turns.len() as u64;
        usize::from(self.turns[turn as usize])
    }
}

/// Turns of a smooth weighted round robin: each member as often as its weight says, spread out as evenly
/// as that allows, so that few consecutive turns are already shared out about fairly.
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

/// More threads than this count as this many: it bounds the number of turns.
const MOST_WEIGHT: u32 = 256;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::lane;
    use exact2048_game::{Objective, Precision, Spawn4};
    use proptest::prelude::*;

    fn params(board: &str) -> Params {
        let (board, spawn4) = (board.parse().unwrap(), Spawn4::default());
        Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap()
    }

    proptest! {
        #[test]
        fn every_lane_has_one_owner_and_everybody_agrees(threads in prop::collection::vec(0u32..300, 1..40)) {
            let params = params("3x3");
            let (here, there) = (assign(&params, &threads), assign(&params, &threads));
            for lane in lane::lanes(&params) {
                prop_assert!(here.owner(lane) < threads.len());
                prop_assert_eq!(here.owner(lane), there.owner(lane));
            }
        }
    }

    #[test]
    fn a_sum_stays_together_while_workers_are_few() {
        let params = params("4x3");
        let owners = assign(&params, &[8, 8, 16]);
        for lane in lane::lanes(&params) {
            assert_eq!(owners.owner(lane), owners.owner(Lane { k: 0, ..lane }));
        }
    }

    #[test]
    fn lanes_are_dealt_by_threads() {
        let params = params("4x3");
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
        assert_eq!(turns(&[0]), [0], "a worker that says 0 threads counts as one thread");
    }
}
