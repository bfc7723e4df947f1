//! Which counts workers can report: known before anybody computes.

use exact2048_game::Layer;
use exact2048_solution::{Phase, Segment};

use super::job::Plan;
use crate::task::Totals;

/// [`Workload`](crate::Workload) says about how many entries a layer has. No layer has more states than this many times
/// that number.
const MARGIN: f64 = 2.0;

/// Which counts a layer can have, over all members of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Possible {
    /// The most states, and the most afterstates, that it can have: these follow from its entries.
    pub most: u64,
    /// The number of its states, where that was counted before: on the way down, or when the layer is enumerated again.
    pub states: Option<u64>,
    /// The number of its afterstates, where it is enumerated again. On the way down they are not counted.
    pub afterstates: Option<u64>,
}

impl Possible {
    /// The possible counts of the layers of a segment, ascending.
    pub fn of_segment(plan: &Plan, segment: Segment) -> Vec<Self> {
        let layers = segment.first.to(segment.last);
        let most = |layer: Layer| plan.workload.entries(layer, layer.up(1));
        let mut possible: Vec<Self> = layers
            .map(|layer| Self { most: (MARGIN * most(layer)).ceil() as u64, states: None, afterstates: None })
            .collect();
        // What the way up has counted; where layers are enumerated again, what the first way up has counted.
        for counted in plan.holdings.commits().flat_map(|commit| &commit.layers) {
            let place =
                counted.layer.number().checked_sub(segment.first.number()).map(|above| above as usize);
            if let Some(possible) = place.and_then(|place| possible.get_mut(place)) {
                possible.states = Some(counted.states);
                possible.afterstates =
                    Some(counted.afterstates).filter(|_| segment.phase == Phase::Enumerate);
            }
        }
        possible
    }

    /// Why a layer, or a part of it, cannot have these counts.
    pub fn exceeded(&self, layer: Layer, totals: Totals) -> Option<String> {
        let most = self.most;
        let counts = [("states", totals.states), ("afterstates", totals.afterstates)];
        let (what, count) = counts.into_iter().find(|&(_, count)| count > most)?;
        Some(format!("layer {layer} cannot have {count} {what}: it has room for {most}"))
    }

    /// Why a whole layer cannot have these counts.
    pub fn refuse(&self, layer: Layer, totals: Totals) -> Option<String> {
        let counts =
            [("states", totals.states, self.states), ("afterstates", totals.afterstates, self.afterstates)];
        let differs = counts.into_iter().find_map(|(what, now, first)| {
            let first = first.filter(|&first| first != now)?;
            Some(format!("layer {layer} has {now} {what}, and had {first} when it was counted first"))
        });
        self.exceeded(layer, totals).or(differs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let up = Possible { most: 100, states: None, afterstates: None };
        let again = Possible { states: Some(7), afterstates: Some(5), ..up };
        let down = Possible { states: Some(7), ..up };
        let refuse = |possible: Possible, states, afterstates| {
            possible.refuse(Layer(4), Totals { states, afterstates, ..Totals::default() })
        };
        assert_eq!(refuse(up, 100, 100), None);
        assert_eq!(refuse(down, 7, 0), None);
        assert_eq!(refuse(again, 7, 5), None);
        for (refused, word) in [
            (refuse(up, 101, 0), "101 states"),
            (refuse(up, 0, 101), "101 afterstates"),
            (refuse(down, 6, 0), "had 7"),
            (refuse(down, 8, 0), "had 7"),
            (refuse(again, 8, 5), "had 7"),
            (refuse(again, 7, 4), "4 afterstates, and had 5"),
        ] {
            assert!(refused.as_ref().is_some_and(|refused| refused.contains(word)), "{refused:?}");
        }
    }
}
