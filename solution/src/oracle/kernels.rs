//! The kernels of the solver, for values that a run does not store.
//!
//! This crate has no kernels. A program that links kernels passes them in [`OracleOptions::kernels`]. Without kernels,
//! hash tables do the same work, and take ten times as long.
//!
//! [`OracleOptions::kernels`]: super::OracleOptions::kernels

use std::fmt;
use std::sync::Arc;

use exact2048_cone::{ConeError, Limits, Solved};
use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer};

use super::QueryError;
use super::layer_solver::LayerSolver;
use crate::run::Run;

/// The kernels for a run.
pub struct RunKernels {
    /// For questions about states.
    pub cones: Box<dyn ConeKernels>,
    /// For whole layers.
    pub layers: Box<dyn LayerSolver>,
}

/// Makes the kernels for a run.
#[derive(Clone)]
pub struct KernelsOfRun(Arc<dyn Fn(&Run) -> RunKernels + Send + Sync>);

impl KernelsOfRun {
    /// Makes kernels by calling a function.
    pub fn new(make: impl Fn(&Run) -> RunKernels + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(super) fn of(&self, run: &Run) -> RunKernels {
        (self.0)(run)
    }
}

impl fmt::Debug for KernelsOfRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelsOfRun")
    }
}

/// Looks up the stored values of boards of a layer, in their order.
pub type StoredValues<'a> = &'a (dyn Fn(Layer, &[Board]) -> Result<Vec<Stored>, QueryError> + Sync);

/// Solves the cones of states.
pub trait ConeKernels: Send + Sync {
    /// Computes the values of the states in `asked`, and of all states between them and the next stored layers.
    ///
    /// `asked` is ascending, and lists canonical boards of unstored layers below one cut. Returns the values of the
    /// asked states and of the lowest layers that fit in `keep_bytes` bytes, and the number of computed states.
    ///
    /// One cone is solved at a time, by all threads of rayon's global pool. No caller may belong to that pool: a thread
    /// that waits for its turn would block the cone that is being solved.
    ///
    /// # Errors
    ///
    /// [`ConeError::TooLarge`] if the kernels need more memory than the limit, [`ConeError::GivenUp`], and errors of
    /// `stored`.
    fn solve(
        &self,
        asked: &[(Layer, Board)],
        limits: Limits<'_>,
        keep_bytes: u64,
        stored: StoredValues<'_>,
    ) -> Result<(Solved, u64), ConeError<QueryError>>;
}
