//! Opening the run that answers questions: the one place that turns `--run` into a run.

use std::path::Path;

use anyhow::Result;
use exact2048_run::Run;

/// Opens a run to read it.
pub fn open(run: &Path) -> Result<Run> {
    Ok(Run::open(run)?)
}
