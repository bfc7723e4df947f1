//! Served runs, by name.

use std::sync::Arc;

use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::served::Served;

/// Metadata key that names a run in a request. Without this key, the first run answers.
pub const RUN_HEADER: &str = "exact2048-run";

/// A run and its name in requests.
pub struct NamedRun {
    /// The name.
    pub name: String,
    /// The run.
    pub served: Arc<Served>,
}

/// The runs of a server, at least one.
#[derive(Clone)]
pub struct Runs(Arc<Vec<NamedRun>>);

impl Runs {
    /// Creates the set of served runs. The first run answers requests that name no run.
    #[must_use]
    pub fn new(first: NamedRun, others: impl IntoIterator<Item = NamedRun>) -> Self {
        Self(Arc::new([first].into_iter().chain(others).collect()))
    }

    /// Returns all runs.
    pub fn iter(&self) -> impl Iterator<Item = &NamedRun> {
        self.0.iter()
    }

    /// Returns the run that answers requests without a name.
    #[must_use]
    pub fn first(&self) -> &Arc<Served> {
        &self.0[0].served
    }

    /// Returns the run with a name.
    ///
    /// # Errors
    ///
    /// NOT_FOUND.
    pub fn named(&self, name: Option<&str>) -> Result<&Arc<Served>, Status> {
        let Some(name) = name else { return Ok(self.first()) };
        let names = || self.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(", ");
        let unknown =
            || Status::not_found(format!("expected the name of a served run ({}), found another", names()));
        Ok(&self.iter().find(|run| run.name == name).ok_or_else(unknown)?.served)
    }

    /// Returns the run that a request names.
    pub(crate) fn asked_for(&self, metadata: &MetadataMap) -> Result<&Arc<Served>, Status> {
        // A name that is not text matches no run.
        self.named(metadata.get(RUN_HEADER).map(|name| name.to_str().unwrap_or_default()))
    }
}
