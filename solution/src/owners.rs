//! Which member of an epoch owns which lane.

use std::sync::Arc;

use exact2048_game::lane::layer_range;
use exact2048_game::{Lane, Layer, Params};

mod deal;
mod formula;
mod work;

pub use work::LaneWork;

/// The most members of an epoch, and so the most shards of a commit.
pub const MOST_MEMBERS: usize = 1 << 16;

/// The owner of each lane among the members of an epoch.
///
/// A lane has one owner for a whole epoch, because each of its blocks needs its blocks of the two layers before.
///
/// The owners of an epoch depend only on the parameters and on the threads of the members. So members exchange no table
/// of owners: each makes the same with [`assign`]. Another version of the program may deal the lanes otherwise, because
/// each commit of several members names the lanes of its shards.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Owners {
    /// The owner of each lane, lanes ascending. Empty if the first member owns all lanes.
    owners: Arc<[(Lane, u16)]>,
}

/// Deals the lanes of a run to the members of an epoch. `threads` has the number of threads of each member.
///
/// # Panics
///
/// If there is no member, or if there are more than [`MOST_MEMBERS`].
pub fn assign(params: &Params, threads: &[u32]) -> Owners {
    assert!((1..=MOST_MEMBERS).contains(&threads.len()), "an epoch has between 1 and {MOST_MEMBERS} members");
    Owners { owners: if threads.len() == 1 { Arc::default() } else { deal::deal(params, threads).into() } }
}

impl Owners {
    /// The owners of lanes in records that name no lanes. Such records are older than the dealing by size.
    pub fn by_formula(params: &Params, threads: &[u32]) -> Self {
        Self { owners: formula::owners(params, threads).into() }
    }

    /// The owners of the lanes of a record, which names the lanes of each shard.
    ///
    /// # Errors
    ///
    /// If a number is not the code of a lane, or is there twice.
    pub(crate) fn of_record(lanes: &[Vec<u64>]) -> Result<Self, String> {
        let named =
            (0u16..).zip(lanes).flat_map(|(owner, codes)| codes.iter().map(move |&code| (code, owner)));
        let mut owners = Vec::new();
        for (code, owner) in named {
            let lane = Lane::from_code(code);
            owners.push((lane.ok_or_else(|| format!("expected the code of a lane, found {code}"))?, owner));
        }
        owners.sort_unstable();
        if let Some(twice) = owners.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("expected lane {} in one shard, found it in two", twice[0].0.code()));
        }
        Ok(Self { owners: owners.into() })
    }

    /// The member that owns a lane, by its index. Lanes without boards belong to the first member.
    pub fn owner(&self, lane: Lane) -> usize {
        let found = self.owners.binary_search_by_key(&lane, |&(lane, _)| lane);
        found.map_or(0, |at| usize::from(self.owners[at].1))
    }

    /// The lanes of each member that can have boards in a range of layers, by their codes, for the record of a commit.
    /// Empty if there is only one member.
    pub fn lanes_by_member(
        &self,
        params: &Params,
        members: usize,
        (first, last): (Layer, Layer),
    ) -> Vec<Vec<u64>> {
        if members == 1 {
            return Vec::new();
        }
        let mut lanes = vec![Vec::new(); members];
        for &(lane, owner) in &*self.owners {
            let (low, high) = layer_range(params, lane);
            if low <= last && first <= high {
                lanes[usize::from(owner)].push(lane.code());
            }
        }
        lanes
    }
}

#[cfg(test)]
mod tests {
    use exact2048_game::lane::lanes;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_lane_has_one_owner_and_all_members_agree(threads in prop::collection::vec(0u32..300, 1..40)) {
            let params = Params::small("3x3");
            let (here, there) = (assign(&params, &threads), assign(&params, &threads));
            prop_assert_eq!(&here, &there);
            let owners: Vec<usize> = lanes(&params).into_iter().map(|lane| here.owner(lane)).collect();
            prop_assert!(owners.iter().all(|&owner| owner < threads.len()));
            let has_a_share = |&member: &usize| 8 * threads[member] >= threads.iter().sum();
            let mut with_shares = (0..threads.len()).filter(has_a_share);
            prop_assert!(with_shares.all(|member| owners.contains(&member)), "each has some lane");
        }

        /// A record names the owners of all lanes of its range.
        #[test]
        fn a_record_names_the_owners(members in 2usize..9, first in 2u32..900, count in 1u32..300) {
            let params = Params::small("3x3");
            let owners = assign(&params, &vec![1; members]);
            let range = (Layer(2 * first), Layer(2 * (first + count)).min(params.last_layer()));
            let named = owners.lanes_by_member(&params, members, range);
            prop_assert_eq!(named.len(), members);
            let read = Owners::of_record(&named).unwrap();
            let is_within = |&lane: &Lane| {
                let (low, high) = layer_range(&params, lane);
                low <= range.1 && range.0 <= high
            };
            let within: Vec<Lane> = lanes(&params).into_iter().filter(is_within).collect();
            prop_assert_eq!(read.owners.len(), within.len());
            prop_assert!(within.iter().all(|&lane| read.owner(lane) == owners.owner(lane)));
        }
    }
}
