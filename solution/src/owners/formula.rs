//! The owners of lanes in records that name no lanes: a formula of the lane and of the members' threads.
//!
//! Clusters wrote such records before lanes were dealt by size. The formula is a part of the format of runs.

use exact2048_game::lane::lanes;
use exact2048_game::{Lane, Params};

/// Each family of lanes with the same huge tiles is shared by one in this many members.
const MEMBERS_A_SPLIT: usize = 4;

/// Most members that share a family.
const MOST_SPLIT: usize = 4;

/// The owner of each lane, lanes ascending.
pub(super) fn owners(params: &Params, threads: &[u32]) -> Vec<(Lane, u16)> {
    let (large, huge) = (params.split().large(), params.split().huge());
    let split = (threads.len() / MEMBERS_A_SPLIT).clamp(1, MOST_SPLIT);
    let turns = turns(threads);
    let owner = |lane: Lane| {
        let turn = (lane.large_sum >> large) as usize + usize::from(lane.k);
        let turn = if lane.huge.is_empty() {
            turn
        } else {
            let family = (lane.huge.sum() >> huge) as usize + usize::from(lane.huge.len());
            family * split + turn % split
        };
        turns[turn % turns.len()]
    };
    lanes(params).into_iter().map(|lane| (lane, owner(lane))).collect()
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
    use super::*;

    /// The first records of clusters have these owners, so they must stay.
    #[test]
    fn the_owners_of_older_records_stay() {
        let params = Params::small("3x3");
        let owner = |threads: &[u32], k, large_sum| {
            let owners = owners(&params, threads);
            owners[owners.binary_search_by_key(&Lane::new(k, large_sum), |&(lane, _)| lane).unwrap()].1
        };
        assert_eq!([(0, 0), (1, 16), (1, 32), (2, 32)].map(|(k, sum)| owner(&[1, 1], k, sum)), [0, 0, 1, 0]);
        assert_eq!(
            [(0, 0), (1, 16), (1, 32), (2, 32)].map(|(k, sum)| owner(&[2, 1, 1], k, sum)),
            [0, 2, 0, 0]
        );
        let params = Params::small("4x3");
        let owners = owners(&params, &[1; 8]);
        assert!(owners.iter().any(|(lane, owner)| !lane.huge.is_empty() && *owner == 7));
    }

    #[test]
    fn turns_are_spread_out() {
        assert_eq!(turns(&[2, 1, 1]), [0, 1, 2, 0]);
        assert_eq!(turns(&[8, 8]), [0, 1]);
        assert_eq!(turns(&[0]), [0], "0 threads count as one");
    }
}
