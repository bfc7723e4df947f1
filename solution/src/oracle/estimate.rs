//! Estimates of the work for a large cone, before the kernels begin it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exact2048_cone::TooLarge;
use exact2048_game::Layer;

/// A cone grows by this power of its number of layers. On 4×3, a cone of twice as many layers has about 400 times as many
/// states.
const GROWTH: f64 = 8.6;

/// Nanoseconds for a state of a cone until one was solved: on two cores of 4×3, 30 to 100 were measured.
const NANOSECONDS: u64 = 60;

/// Least number of states of a cone from which the pace is measured. Smaller cones mostly take the time to make tables.
const MEASURED_STATES: u64 = 10_000_000;

/// Fixed time of a cone, mostly to read parts of the run.
const FIXED: Duration = Duration::from_millis(500);

/// An estimate of the work for a cone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConeEstimate {
    /// Number of states to compute.
    pub states: u64,
    /// Time that they take.
    pub time: Duration,
    /// Time until the deadline of the question.
    pub left: Duration,
}

/// Estimates the states of a cone that ends at `cut`, from the layers in which hash tables enumerated it. `of_layer` returns
/// the number of states of a layer of the run, which no cone exceeds.
pub(super) fn states_of_cone(found: &TooLarge, cut: Layer, of_layer: impl Fn(Layer) -> u64) -> u64 {
    let layers = |last: Layer| f64::from((last.0 - found.first.0) / Layer::STEP + 1);
    let growth = layers(cut) / layers(found.reached.min(cut));
    let estimate = found.states as f64 * growth.powf(GROWTH);
    let all: u64 = found.first.to(cut).filter(|&layer| layer < cut).map(of_layer).sum();
    (estimate as u64).min(all).max(found.states)
}

/// The pace of the kernels, as measured in the cones that were solved.
#[derive(Debug)]
pub(super) struct ConePace(AtomicU64);

impl Default for ConePace {
    fn default() -> Self {
        Self(AtomicU64::new(NANOSECONDS))
    }
}

impl ConePace {
    /// The time that a cone takes.
    pub(super) fn time(&self, states: u64) -> Duration {
        FIXED + Duration::from_nanos(states.saturating_mul(self.0.load(Ordering::Relaxed)))
    }

    /// Notes the time of a cone that was solved, if the cone is large.
    pub(super) fn note(&self, states: u64, took: Duration) {
        if states < MEASURED_STATES {
            return;
        }
        let nanoseconds = took.saturating_sub(FIXED).as_nanos() as u64 / states;
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.midpoint(nanoseconds.clamp(1, 10_000)), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(first: u32, reached: u32, states: u64) -> TooLarge {
        let (first, reached) = (Layer(first), Layer(reached));
        TooLarge { limit_bytes: 0, needed_bytes: 0, first, reached, states }
    }

    #[test]
    fn cones_grow_by_a_power_of_their_layers_up_to_whole_layers() {
        let states = |cut, of_layer| states_of_cone(&found(100, 118, 1_000_000), Layer(cut), |_| of_layer);
        assert_eq!(states(118, u64::MAX >> 10), 1_000_000);
        let doubled = states(138, u64::MAX >> 10);
        assert!((380_000_000..400_000_000).contains(&doubled), "{doubled}");
        assert_eq!(states(138, 1_000_000), 19_000_000);
    }

    #[test]
    fn the_pace_follows_the_cones() {
        let pace = ConePace::default();
        let before = pace.time(1_000_000_000);
        (0..20).for_each(|_| pace.note(1_000_000_000, Duration::from_secs(600)));
        let after = pace.time(1_000_000_000);
        assert!(
            before < Duration::from_secs(61) && after > Duration::from_secs(590),
            "{before:?}, {after:?}"
        );
        assert!(pace.time(u64::MAX) > after);
    }

    /// A small cone takes much longer than its states, because the kernels make tables for it.
    #[test]
    fn small_cones_do_not_change_the_pace() {
        let pace = ConePace::default();
        let before = pace.time(1_000_000_000);
        for states in [0, 100_000, MEASURED_STATES - 1] {
            pace.note(states, Duration::from_secs(3));
        }
        assert_eq!(pace.time(1_000_000_000), before);
    }
}
