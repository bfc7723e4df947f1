//! The runs that are served, by name.

use std::sync::Arc;

use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::served::Served;

/// What names a run in the metadata of a request; without it, the first one is asked.
pub const RUN_HEADER: &str = "exact2048-run";

/// A run under the name that requests give.
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
    /// Serves these runs, the first of them where a request names none.
    #[must_use]
    pub fn new(first: NamedRun, others: impl IntoIterator<Item = NamedRun>) -> Self {
        Self(Arc::new([first].into_iter().chain(others).collect()))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &NamedRun> {
        self.0.iter()
    }

    /// The one that is asked where a request names none.
    #[must_use]
    pub fn first(&self) -> &Arc<Served> {
        &self.0[0].served
    }

    /// The run of a name.
    ///
    /// # Errors
    ///
    /// NOT_FOUND.
    pub fn named(&self, name: Option<&str>) -> Result<&Arc<Served>, Status> {
        let Some(name) = name else { return Ok(self.first()) };
        let names = || self.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(", ");
        let unknown =
            || Status::not_found(format!("no run of this name is served: expected one of {}", names()));
        Ok(&self.iter().find(|run| run.name == name).ok_or_else(unknown)?.served)
    }

    /// The run that a request names.
    pub(crate) fn asked_for(&self, metadata: &MetadataMap) -> Result<&Arc<Served>, Status> {
        // A name that is no text is the name of none.
        self.named(metadata.get(RUN_HEADER).map(|name| name.to_str().unwrap_or_default()))
    }
}
