//! Bounds on the counts in workers' reports, known before any computation.

use exact2048_game::Layer;
use exact2048_solution::{Phase, Segment};

use super::plan::Plan;
use crate::task::Totals;

/// Bound on the states of a layer, as a multiple of its estimated entries ([`Workload`](crate::Workload)).
const MARGIN: f64 = 2.0;

/// Possible counts of a layer, over all members of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PossibleCounts {
    /// Upper bound on the number of states and on the number of afterstates, derived from the entries.
    pub most: u64,
    /// Number of states, if counted before: in the downward pass, or if the layer is enumerated again.
    pub states: Option<u64>,
    /// Number of afterstates, if the layer is enumerated again. The downward pass does not count afterstates.
    pub afterstates: Option<u64>,
}

impl PossibleCounts {
    /// Returns the possible counts of the layers of a segment, ascending.
    pub fn of_segment(plan: &Plan, segment: Segment) -> Vec<Self> {
        let layers = segment.first.to(segment.last);
        let most = |layer: Layer| plan.workload.entries(layer, layer.up(1));
        let mut possible: Vec<Self> = layers
            .map(|layer| Self { most: (MARGIN * most(layer)).ceil() as u64, states: None, afterstates: None })
            .collect();
        // Counts of the upward pass. If layers are enumerated again, these are the counts of the first
        // enumeration.
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

    /// Returns why a layer, or a part of it, cannot have these counts; `None` if it can.
    pub fn exceeded(&self, layer: Layer, totals: Totals) -> Option<String> {
        let most = self.most;
        let counts = [("states", totals.states), ("afterstates", totals.afterstates)];
        let (what, count) = counts.into_iter().find(|&(_, count)| count > most)?;
        Some(format!("expected at most {most} {what} in layer {layer}, found {count}"))
    }

    /// Returns why a whole layer cannot have these counts; `None` if it can.
    pub fn refuse(&self, layer: Layer, totals: Totals) -> Option<String> {
        let counts =
            [("states", totals.states, self.states), ("afterstates", totals.afterstates, self.afterstates)];
        let differs = counts.into_iter().find_map(|(what, now, first)| {
            let first = first.filter(|&first| first != now)?;
            Some(format!("expected {first} {what} in layer {layer} as counted before, found {now}"))
        });
        self.exceeded(layer, totals).or(differs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_counts_are_refused() {
        let up = PossibleCounts { most: 100, states: None, afterstates: None };
        let again = PossibleCounts { states: Some(7), afterstates: Some(5), ..up };
        let down = PossibleCounts { states: Some(7), ..up };
        let refuse = |possible: PossibleCounts, states, afterstates| {
            possible.refuse(Layer(4), Totals { states, afterstates, ..Totals::default() })
        };
        assert_eq!(refuse(up, 100, 100), None);
        assert_eq!(refuse(down, 7, 0), None);
        assert_eq!(refuse(again, 7, 5), None);
        for (refused, word) in [
            (refuse(up, 101, 0), "100 states in layer 4, found 101"),
            (refuse(up, 0, 101), "100 afterstates in layer 4, found 101"),
            (refuse(down, 6, 0), "expected 7 states"),
            (refuse(down, 8, 0), "expected 7 states"),
            (refuse(again, 8, 5), "expected 7 states"),
            (refuse(again, 7, 4), "expected 5 afterstates in layer 4 as counted before, found 4"),
        ] {
            assert!(refused.as_ref().is_some_and(|refused| refused.contains(word)), "{refused:?}");
        }
    }
}
