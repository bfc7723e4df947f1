//! A place for a run in a store with planned faults, and the cache of one process.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exact2048_storage::{Location, RunDir, ShardReader, ShardRecord, StorageError, StoreSettings};
use serde_json::json;
use tempfile::TempDir;

use crate::common::{identity, key, names};
use crate::faulty::Faulty;

/// A store and a cache.
pub struct Place {
    pub store: Arc<Faulty>,
    pub local: TempDir,
    pub patience: Duration,
}

impl Place {
    pub fn new() -> Self {
        Self { store: Faulty::new(), local: tempfile::tempdir().unwrap(), patience: Duration::from_secs(10) }
    }

    pub fn settings(&self) -> StoreSettings {
        StoreSettings {
            cache_folder: Some(self.local.path().join("cache")),
            patience: Some(self.patience),
            ..StoreSettings::default()
        }
    }

    pub fn location(&self) -> Location {
        let store = Arc::clone(&self.store);
        Location::objects(store, "s3://bucket/a/run", "/a/run", &self.settings()).unwrap()
    }

    pub fn create(&self) -> RunDir {
        RunDir::create(self.location(), &json!({ "rows": 3 })).unwrap()
    }

    pub fn read(&self) -> Result<RunDir, StorageError> {
        RunDir::open_read_only(self.location())
    }

    pub fn cached(&self) -> Vec<String> {
        names(&self.local.path().join("cache"))
    }

    pub fn forget_copies(&self) {
        for name in self.cached() {
            fs::remove_file(self.local.path().join("cache").join(name)).unwrap();
        }
    }

    /// Copies all objects of the run into a folder.
    pub fn copy_to(&self, folder: &Path) {
        for name in self.store.names() {
            let path = folder.join(name.strip_prefix("a/run/").unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, self.store.contents(&name)).unwrap();
        }
    }
}

pub fn open_shard(run: &RunDir, record: &ShardRecord) -> Result<ShardReader, StorageError> {
    run.shards().open(record, &identity(run.run_id()))
}

pub fn is_sound(reader: &ShardReader) {
    reader.verify().unwrap();
    assert_eq!(reader.read(key(9, 1, 0)).unwrap().unwrap(), [5; 200]);
}
