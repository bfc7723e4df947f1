//! Solved cones in memory.

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
