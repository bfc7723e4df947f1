//! Which shard covers which layer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use exact2048_coordinator::{Commit, Phase};
use exact2048_game::{Layer, Params};
use exact2048_storage::{
    RunDir, RunId, ShardIdentity, ShardKind, ShardReader, ShardRecord, Shards, StorageError,
};
use serde::{Deserialize, Serialize};

/// A journal record: a finished range of layers and the shard that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The range, its counts or its share of the fingerprint.
    pub commit: Commit,
    /// The shard.
    pub shard: ShardRecord,
}

/// A committed shard, opened when it is first needed.
#[derive(Debug)]
pub struct CatalogShard {
    /// The record that committed it.
    pub record: Record,
    /// Its file, or the URL of its object in the form of a path.
    pub path: PathBuf,
    /// Tells it from every other shard that the catalog ever held.
    pub serial: u64,
    identity: ShardIdentity,
    shards: Shards,
    reader: OnceLock<ShardReader>,
    /// Held while it is opened: to fetch a shard from a store twice would be a waste.
    opening: Mutex<()>,
}

impl CatalogShard {
    /// The open shard; header and index are checked when it is opened.
    pub fn reader(&self) -> Result<&ShardReader, StorageError> {
        self.open(Shards::open)
    }

    /// The same, opened from where it is committed, whatever copies of it there are: to check the shard itself. Has
    /// that effect only if it is not open yet.
    pub fn original(&self) -> Result<&ShardReader, StorageError> {
        self.open(Shards::open_anew)
    }

    fn open(
        &self,
        open: fn(&Shards, &ShardRecord, &ShardIdentity) -> Result<ShardReader, StorageError>,
    ) -> Result<&ShardReader, StorageError> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let _opening = self.opening.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let reader = open(&self.shards, &self.record.shard, &self.identity)?;
        Ok(self.reader.get_or_init(|| reader))
    }
}

/// The committed shards of a run. Grows while the run is written.
#[derive(Debug)]
pub struct Catalog {
    files: Shards,
    run: RunId,
    board: (u8, u8),
    rule_hash: u64,
    shards: RwLock<Vec<Arc<CatalogShard>>>,
    next_serial: AtomicU64,
}

/// Whether two commits cover a layer of the same phase.
fn overlap(a: &Commit, b: &Commit) -> bool {
    a.phase == b.phase && a.first <= b.last && b.first <= a.last
}

/// The shard kind that a phase writes.
pub fn kind_of(phase: Phase) -> ShardKind {
    match phase {
        Phase::Enumerate => ShardKind::Reach,
        Phase::BackUp => ShardKind::Values,
    }
}

impl Catalog {
    /// The catalog of an open run.
    pub fn new(dir: &RunDir, params: &Params, rule_hash: u64, records: Vec<Record>) -> Self {
        let catalog = Self {
            files: dir.shards(),
            run: dir.run_id(),
            board: (params.board.rows() as u8, params.board.cols() as u8),
            rule_hash,
            shards: RwLock::default(),
            next_serial: AtomicU64::new(0),
        };
        for record in records {
            catalog.add(record);
        }
        catalog
    }

    /// The identity of the shard of a range.
    pub fn identity(&self, phase: Phase, first: Layer, last: Layer) -> ShardIdentity {
        ShardIdentity {
            run: self.run,
            kind: kind_of(phase),
            rows: self.board.0,
            cols: self.board.1,
            first_layer: first.0,
            last_layer: last.0,
            rule_hash: self.rule_hash,
        }
    }

    /// Adds a committed shard. It takes the place of all older ones that cover any of its layers: those were
    /// lost, or it would not have been made.
    pub fn add(&self, record: Record) {
        let path = self.files.path(&record.shard.file);
        let commit = &record.commit;
        let identity = self.identity(commit.phase, commit.first, commit.last);
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        let shard = Arc::new(CatalogShard {
            record,
            path,
            serial,
            identity,
            shards: self.files.clone(),
            reader: OnceLock::new(),
            opening: Mutex::new(()),
        });
        let mut shards = self.shards.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        shards.retain(|old| !overlap(&old.record.commit, &shard.record.commit));
        shards.push(shard);
    }

    /// Forgets a shard that is lost or damaged.
    pub fn remove(&self, path: &Path) {
        let mut shards = self.shards.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        shards.retain(|shard| shard.path != path);
    }

    /// All shards, by phase and first layer.
    pub fn shards(&self) -> Vec<Arc<CatalogShard>> {
        let mut shards = self.shards.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        shards.sort_by_key(|shard| (shard.record.commit.phase, shard.record.commit.first));
        shards
    }

    /// The commits of all shards.
    pub fn commits(&self) -> Vec<Commit> {
        self.shards().iter().map(|shard| shard.record.commit.clone()).collect()
    }

    /// The shard that covers a layer.
    pub fn find(&self, kind: ShardKind, layer: u32) -> Option<Arc<CatalogShard>> {
        let shards = self.shards.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let covers = |shard: &&Arc<CatalogShard>| {
            let commit = &shard.record.commit;
            kind_of(commit.phase) == kind && (commit.first.0..=commit.last.0).contains(&layer)
        };
        shards.iter().rev().find(covers).cloned()
    }
}
