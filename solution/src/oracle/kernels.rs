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

/// The cone of some states.
#[derive(Clone, Copy, Debug)]
pub struct ConeJob<'a> {
    /// Canonical boards of unstored layers below the cut, with their layers, ascending.
    pub asked: &'a [(Layer, Board)],
    /// The lower of the two layers at which the cone ends.
    pub cut: Layer,
    /// Most bytes of the lower layers in the answer.
    pub keep_bytes: u64,
    /// Most bytes of the landing in the answer.
    pub landing_bytes: u64,
}

/// The values of a cone that the kernels solved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelCone {
    /// Values of the asked states and of the lowest layers.
    pub lower: Solved,
    /// Values of two neighbouring layers, at which later cones can end.
    pub landing: Option<Solved>,
    /// Number of computed states.
    pub states: u64,
}

/// Solves the cones of states.
pub trait ConeKernels: Send + Sync {
    /// Computes the values of the asked states, and of all states between them and the cut. `stored` has the values of the
    /// states at which the cone ends.
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
        job: ConeJob<'_>,
        limits: Limits<'_>,
        stored: StoredValues<'_>,
    ) -> Result<KernelCone, ConeError<QueryError>>;
}
