//! Solved cones in memory, and their landings.
//!
//! A *landing* is two neighbouring layers of a large cone, at which the cones of later questions can end. A game that leaves
//! the kept lower layers of a cone needs another cone. It contains few states if it ends at a landing of the first cone,
//! and all its final states have values there.

use std::collections::VecDeque;
use std::sync::Arc;

use exact2048_cone::Solved;
use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer};
use parking_lot::Mutex;

use super::ladder::ValueSource;
use super::{QueryError, QuestionLimits};

/// Most solved cones in memory. Each look-up of a state may search all of them.
const MOST_IN_MEMORY: usize = 64;

/// Solved cones in memory, the most recently used first.
#[derive(Debug)]
pub(super) struct SolvedCones {
    most_bytes: u64,
    cones: Mutex<VecDeque<Arc<Solved>>>,
}

impl SolvedCones {
    pub(super) fn new(most_bytes: u64) -> Self {
        Self { most_bytes, cones: Mutex::default() }
    }

    /// Keeps a cone, unless it is larger than the limit. Removes the cones that were used least recently.
    pub(super) fn keep(&self, solved: Arc<Solved>) {
        if solved.bytes() > self.most_bytes {
            return;
        }
        let mut cones = self.cones.lock();
        cones.push_front(solved);
        let mut bytes = cones.iter().map(|cone| cone.bytes()).sum::<u64>();
        while bytes > self.most_bytes || cones.len() > MOST_IN_MEMORY {
            bytes -= cones.pop_back().map_or(0, |cone| cone.bytes());
        }
    }

    /// Most bytes of the cones in memory.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Bytes of the cones in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.cones.lock().iter().map(|cone| cone.bytes()).sum()
    }

    /// The lowest landing above some layer and below a cut, with its lower layer. It may belong to another game.
    pub(super) fn between(&self, last: Layer, cut: Layer) -> Option<(Layer, Arc<Solved>)> {
        let cones = self.cones.lock();
        let lower = |landing: &Arc<Solved>| Some((landing.layers().first()?.layer, Arc::clone(landing)));
        let fits = |(layer, _): &(Layer, Arc<Solved>)| last < *layer && *layer < cut;
        cones.iter().filter_map(lower).filter(fits).min_by_key(|(layer, _)| *layer)
    }
}

impl ValueSource for SolvedCones {
    fn fill(
        &self,
        states: &[(Layer, Board)],
        values: &mut [Option<Stored>],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let cones = self.cones.lock().clone();
        for cone in cones {
            let mut found = 0;
            for (&(layer, board), value) in
                states.iter().zip(&mut *values).filter(|(_, value)| value.is_none())
            {
                *value = cone.value(layer, board);
                found += u64::from(value.is_some());
            }
            if found > 0 {
                question.spent.add_found(found);
                let mut cones = self.cones.lock();
                // Another thread may have removed the cone.
                if let Some(at) = cones.iter().position(|other| Arc::ptr_eq(other, &cone)) {
                    cones.remove(at);
                    cones.push_front(cone);
                }
            }
        }
        Ok(())
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
        let landings = SolvedCones::new(2 * landing(40, 100).bytes());
        let found = |last, cut| landings.between(Layer(last), Layer(cut)).map(|(layer, _)| layer.0);
        landings.keep(Arc::new(landing(60, 100)));
        landings.keep(Arc::new(landing(40, 100)));
        assert_eq!(
            [found(20, 128), found(40, 128), found(60, 128), found(20, 40)],
            [Some(40), Some(60), None, None]
        );
        landings.keep(Arc::new(landing(80, 50)));
        assert_eq!([found(40, 128), found(20, 128)], [Some(80), Some(40)]);
        landings.keep(Arc::new(landing(90, 300)));
        assert_eq!((found(80, 128), landings.bytes() <= landings.most_bytes()), (None, true));
    }
}
