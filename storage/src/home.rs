//! Place of a run: a directory, or a store with its cache.

use std::path::PathBuf;
use std::sync::Arc;

use crate::manifest::Manifest;
use crate::store::{Cache, Store};
use crate::{Place, RunId, StorageError};

/// Place that holds a run.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    Folder(PathBuf),
    Store(Arc<Store>, Arc<Cache>),
}

impl Home {
    fn place(&self) -> Place {
        match self {
            Self::Folder(path) => path.into(),
            Self::Store(store, _) => store.place(),
        }
    }
}

/// A run and its place. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct RunPlace {
    pub(crate) home: Home,
    pub(crate) run: RunId,
}

impl RunPlace {
    /// Checks that the run is in its place, because an open folder may be moved, unmounted or replaced.
    ///
    /// Costs reading one file, or a request.
    ///
    /// # Errors
    ///
    /// [`StorageError::Away`], and errors of reading a manifest.
    pub(crate) fn require_run(&self) -> Result<(), StorageError> {
        let manifest = match &self.home {
            Home::Folder(path) => Manifest::read(path),
            Home::Store(store, _) => Manifest::read_in_store(store),
        };
        let found = match manifest {
            Ok(manifest) if manifest.run_id == self.run => return Ok(()),
            Ok(_) => "another run",
            Err(StorageError::NotARun { .. } | StorageError::NotADirectory { .. }) => "no run",
            Err(error) => return Err(error),
        };
        Err(StorageError::Away { place: self.home.place(), run: self.run, found })
    }

    /// Returns the error, or the error that makes the whole run unavailable. In the latter case no shard is lost.
    ///
    /// Costs reading one file, or a request, if a missing run can cause such an error.
    pub(crate) fn explain(&self, error: StorageError) -> StorageError {
        if error.blames().is_none() && !matches!(error, StorageError::Io { .. }) {
            return error;
        }
        self.require_run().err().unwrap_or(error)
    }
}
