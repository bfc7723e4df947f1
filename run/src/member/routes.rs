//! Finds the members that need a block of another member.

use std::collections::BTreeSet;

use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::{Lane, Layer};
use rustc_hash::FxHashMap;

use super::seat::Seat;

/// Calls `call` with each pair of a lane and another lane that needs its blocks, and with the layers of the other lane.
fn for_each_use(seat: &Seat, mut call: impl FnMut(Lane, Lane, (Layer, Layer))) {
    let Seat { params, segment, .. } = seat;
    let all = lanes(params);
    let alive: FxHashMap<Lane, (Layer, Layer)> =
        all.iter().map(|&lane| (lane, layer_range(params, lane))).collect();
    for &lane in &all {
        for other in segment.phase.needed_by(lane, params) {
            if let Some(&layers) = alive.get(&other) {
                call(lane, other, layers);
            }
        }
    }
}

/// Whether each member of an epoch has blocks for this member, or needs blocks of it.
///
/// A member has links only to these neighbours, because a thousand members would need a million links between all of
/// them.
pub fn neighbours(seat: &Seat) -> Vec<bool> {
    let Seat { owners, me, .. } = seat;
    let mut neighbours = vec![false; seat.members.len()];
    for_each_use(seat, |lane, other, _| {
        let (from, to) = (owners.owner(lane), owners.owner(other));
        if from == *me || to == *me {
            (neighbours[from], neighbours[to]) = (true, true);
        }
    });
    neighbours[*me] = false;
    neighbours
}

/// The members that need the blocks of each lane.
#[derive(Debug)]
pub struct Routes {
    /// For each lane of this member, the lanes of other members that need its blocks.
    to: FxHashMap<Lane, Vec<Route>>,
}

/// A lane that needs blocks of another lane.
#[derive(Debug)]
struct Route {
    /// The member that owns the lane.
    member: usize,
    /// The first and last layer of the lane.
    first: Layer,
    last: Layer,
}

impl Routes {
    /// The routes of the lanes of this member.
    pub fn new(seat: &Seat) -> Self {
        let mut to: FxHashMap<Lane, Vec<Route>> = FxHashMap::default();
        for_each_use(seat, |lane, other, (first, last)| {
            let (from, member) = (seat.owners.owner(lane), seat.owners.owner(other));
            if from == seat.me && member != seat.me {
                to.entry(lane).or_default().push(Route { member, first, last });
            }
        });
        Self { to }
    }

    /// The other members that need a block, ascending.
    pub fn of(&self, layer: Layer, lane: Lane) -> Vec<usize> {
        let routes = self.to.get(&lane).map(Vec::as_slice).unwrap_or_default();
        let is_alive = |route: &&Route| (route.first..=route.last).contains(&layer);
        let members: BTreeSet<usize> = routes.iter().filter(is_alive).map(|route| route.member).collect();
        members.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_coordinator::cluster::WorkerId;
    use exact2048_game::Params;
    use exact2048_solution::{Phase, Segment, assign};

    /// Seats of members of one epoch, by their index.
    fn seats(board: &str, members: usize) -> impl Fn(usize) -> Seat {
        let params = Params::small(board);
        let segment = Segment { phase: Phase::BackUp, first: Layer(4), last: params.last_layer() };
        let owners = assign(&params, &vec![1; members]);
        let members: Vec<WorkerId> = (0..members as u64).map(WorkerId).collect();
        move |me| Seat {
            params: params.clone(),
            segment,
            members: members.clone(),
            owners: owners.clone(),
            me,
            window_layers: 4,
        }
    }

    #[test]
    fn neighbours_are_mutual_and_few() {
        for (board, members) in [("3x2", 4), ("4x3", 1000)] {
            let seat = seats(board, members);
            let mine = neighbours(&seat(0));
            assert!(!mine[0]);
            for (other, _) in mine.iter().enumerate().filter(|(_, is_neighbour)| **is_neighbour) {
                let theirs = neighbours(&seat(other));
                assert!(theirs[0], "{other} has no link to the first of {members}");
            }
            let links = mine.iter().filter(|is_neighbour| **is_neighbour).count();
            assert!(links > 0 && links <= 130, "{links} of {members}");
            // Each member that gets a block is a neighbour.
            let routes = Routes::new(&seat(0));
            assert!(routes.to.values().flatten().all(|route| mine[route.member]));
        }
    }

    #[test]
    fn a_single_member_has_no_neighbours_and_no_routes() {
        let seat = seats("3x2", 1)(0);
        assert_eq!(neighbours(&seat), [false]);
        assert!(Routes::new(&seat).to.is_empty());
    }
}
