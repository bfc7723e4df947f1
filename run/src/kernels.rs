//! The kernels of a run, for an oracle.

use exact2048_solution::{Run, RunKernels};
use exact2048_worker::Tuning;

use crate::cones::cone_kernels;
use crate::layers::layer_solver;

/// The kernels for values that a run does not store, for [`OracleOptions::kernels`]. They are set up on first use. Data that
/// does not fit into memory moves to files in the folder for temporary files.
///
/// [`OracleOptions::kernels`]: exact2048_solution::OracleOptions::kernels
pub fn kernels(run: &Run, tuning: Tuning) -> RunKernels {
    RunKernels { cones: cone_kernels(run, tuning), layers: layer_solver(run, tuning) }
}
