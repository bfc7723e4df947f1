//! Opening a run: its parameters and its catalog.

use std::path::Path;
use std::sync::Arc;

use exact2048_coordinator::{LayerCounts, Phase, Segment, missing_segments};
use exact2048_game::{Params, ParamsError};
use exact2048_storage::{RunDir, StorageError};
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::ShardArchive;
use crate::catalog::{Catalog, Record};

/// Why a run cannot be opened or continued.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The directory or one of its files.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The parameters in the manifest.
    #[error("the manifest of {path} does not describe a run: {reason}")]
    Manifest {
        /// The run directory.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A journal record.
    #[error("record {number} of the journal of {path} is not understood: {reason}")]
    Journal {
        /// The run directory.
        path: String,
        /// The record, counted from 0.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// The parameters asked for.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The directory holds a run with other parameters.
    #[error(
        "{path} holds another job: its {field} is {found}, and {wanted} was asked for; choose another --run, or ask for what it holds"
    )]
    OtherJob {
        /// The run directory.
        path: String,
        /// The parameter that differs.
        field: &'static str,
        /// Its value in the run.
        found: String,
        /// The value asked for.
        wanted: String,
    },
}

/// An open run.
#[derive(Debug)]
pub struct Run {
    dir: RunDir,
    params: Params,
    catalog: Arc<Catalog>,
    archive: Arc<ShardArchive>,
}

impl Run {
    /// Opens a run to read it.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        Self::load(RunDir::open_read_only(path)?)
    }

    /// Opens a run to continue it, or begins one; refuses a directory that holds another job.
    pub fn open_or_create(path: &Path, wanted: &Params) -> Result<Self, RunError> {
        if !path.join("manifest.json").exists() {
            let params = serde_json::to_value(wanted).map_err(|e| manifest_error(path, &e))?;
            return Self::load(RunDir::create(path, &params)?);
        }
        let run = Self::load(RunDir::open_for_writing(path)?)?;
        run.require(wanted)?;
        // A crash between publishing a shard and committing it leaves one that nothing refers to, and a
        // shard that was made again in other bounds leaves the old one.
        let shards = run.catalog.shards();
        let referenced = shards.iter().map(|shard| shard.record.shard.file.clone()).collect();
        run.dir.remove_unreferenced_shards(&referenced)?;
        Ok(run)
    }

    fn load(dir: RunDir) -> Result<Self, RunError> {
        let params: Params =
            serde_json::from_value(dir.params().clone()).map_err(|e| manifest_error(dir.path(), &e))?;
        params.check()?;
        let parse = |(number, record): (usize, &serde_json::Value)| {
            serde_json::from_value::<Record>(record.clone()).map_err(|e| RunError::Journal {
                path: dir.path().display().to_string(),
                number,
                reason: e.to_string(),
            })
        };
        let records = dir.records().iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
        let catalog = Arc::new(Catalog::new(&dir, &params, rule_hash(&params), records));
        let archive = Arc::new(ShardArchive::new(Arc::clone(&catalog)));
        Ok(Self { dir, params, catalog, archive })
    }

    fn require(&self, wanted: &Params) -> Result<(), RunError> {
        let held = &self.params;
        let until = |p: &Params| p.until_layer.map_or("none".to_owned(), |layer| layer.to_string());
        let fields = [
            ("board", held.board.to_string(), wanted.board.to_string()),
            ("objective", held.objective.to_string(), wanted.objective.to_string()),
            ("spawn4", held.spawn4.to_string(), wanted.spawn4.to_string()),
            ("precision", u8::from(held.precision).to_string(), u8::from(wanted.precision).to_string()),
            ("until-layer", until(held), until(wanted)),
        ];
        for (field, found, wanted) in fields {
            if found != wanted {
                let path = self.dir.path().display().to_string();
                return Err(RunError::OtherJob { path, field, found, wanted });
            }
        }
        Ok(())
    }

    /// The run directory.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// The run directory, to write it.
    pub fn dir_mut(&mut self) -> &mut RunDir {
        &mut self.dir
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The committed shards.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The items of the committed shards.
    pub fn archive(&self) -> &Arc<ShardArchive> {
        &self.archive
    }

    /// What is still to be done.
    pub fn missing(&self) -> Vec<Segment> {
        missing_segments(&self.params, &self.catalog.commits())
    }

    /// States and afterstates of the layers that have any, ascending; of an unfinished run, of what is committed.
    pub fn layer_counts(&self) -> Vec<LayerCounts> {
        let commits = self.catalog.commits();
        let mut layers: Vec<_> = commits.iter().flat_map(|commit| commit.layers.iter().copied()).collect();
        layers.sort_by_key(|counts| counts.layer);
        layers.retain(|counts| counts.states > 0);
        layers
    }

    /// Whether every state has a value.
    pub fn is_solved(&self) -> bool {
        self.params.until_layer.is_none() && self.missing().is_empty()
    }

    /// The fingerprint of a solved run.
    pub fn fingerprint(&self) -> Option<u128> {
        self.is_solved().then(|| {
            let commits = self.catalog.commits();
            let parts = commits.iter().filter(|c| c.phase == Phase::BackUp).filter_map(|c| c.fingerprint);
            parts.fold(0u128, u128::wrapping_add)
        })
    }
}

/// Identifies the rules by which a shard's content follows from its place: the parameters.
fn rule_hash(params: &Params) -> u64 {
    let text = serde_json::to_string(params).unwrap_or_default();
    xxh3_64(text.as_bytes())
}

fn manifest_error(path: &Path, error: &serde_json::Error) -> RunError {
    RunError::Manifest { path: path.display().to_string(), reason: error.to_string() }
}
