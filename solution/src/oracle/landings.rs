//! Landings: two neighbouring layers of a large cone, at which the cones of later questions can end.
//!
//! A game that leaves the kept lower layers of a cone needs another cone. It contains few states if it ends at a landing
//! of the first cone, and all its final states have values there.

use std::collections::VecDeque;
use std::sync::Arc;

use exact2048_cone::Solved;
use exact2048_game::Layer;
use parking_lot::Mutex;

/// Most landings in memory.
const MOST: usize = 16;

/// Landings in memory, the last kept first.
#[derive(Debug)]
pub(super) struct Landings {
    most_bytes: u64,
    kept: Mutex<VecDeque<Arc<Solved>>>,
}

impl Landings {
    pub(super) fn new(most_bytes: u64) -> Self {
        Self { most_bytes, kept: Mutex::default() }
    }

    /// Most bytes of all landings together.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Bytes of all landings together.
    pub(super) fn bytes(&self) -> u64 {
        self.kept.lock().iter().map(|landing| landing.bytes()).sum()
    }

    /// Keeps a landing, unless it is larger than the limit. Removes the oldest landings.
    pub(super) fn keep(&self, landing: Solved) {
        if landing.bytes() > self.most_bytes {
            return;
        }
        let mut kept = self.kept.lock();
        kept.push_front(Arc::new(landing));
        let mut bytes = kept.iter().map(|landing| landing.bytes()).sum::<u64>();
        while bytes > self.most_bytes || kept.len() > MOST {
            bytes -= kept.pop_back().map_or(0, |landing| landing.bytes());
        }
    }

    /// The lowest landing above some layer and below a cut, with its lower layer. It may belong to another game.
    pub(super) fn between(&self, last: Layer, cut: Layer) -> Option<(Layer, Arc<Solved>)> {
        let kept = self.kept.lock();
        let lower = |landing: &Arc<Solved>| Some((landing.layers().first()?.layer, Arc::clone(landing)));
        let fits = |(layer, _): &(Layer, Arc<Solved>)| last < *layer && *layer < cut;
        kept.iter().filter_map(lower).filter(fits).min_by_key(|(layer, _)| *layer)
    }
}

#[cfg(test)]
mod tests {
    use exact2048_cone::{SolvedLayer, Values};
    use exact2048_game::Board;

    use super::*;

    fn landing(layer: u32, states: usize) -> Solved {
        let boards: Box<[Board]> = (0..states as u64).map(Board).collect();
        let values = Values::Bits32(vec![0; states].into());
        Solved::new(vec![SolvedLayer { layer: Layer(layer), boards, values }])
    }

    #[test]
    fn the_lowest_landing_above_is_found_and_the_oldest_goes() {
        let landings = Landings::new(2 * landing(40, 100).bytes());
        let found = |last, cut| landings.between(Layer(last), Layer(cut)).map(|(layer, _)| layer.0);
        landings.keep(landing(60, 100));
        landings.keep(landing(40, 100));
        assert_eq!(
            [found(20, 128), found(40, 128), found(60, 128), found(20, 40)],
            [Some(40), Some(60), None, None]
        );
        landings.keep(landing(80, 50));
        assert_eq!([found(40, 128), found(20, 128)], [Some(80), Some(40)]);
        landings.keep(landing(90, 300));
        assert_eq!((found(80, 128), landings.bytes() <= landings.most_bytes()), (None, true));
    }
}
