//! Files of every published format version, kept permanently in `tests/data/v1` and so on.
//!
//! Written manually, once per version: `cargo test --test golden -- --ignored write_the_golden_run`.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{identity, key, new_run, shard_path, write_small_shard};
use exact2048_storage::{
    FORMAT_VERSION, Location, RunDir, ShardReader, ShardRecord, StorageError, StoreSettings,
};
use futures_util::{FutureExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::json;

fn golden(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/v{version}"))
}

#[test]
#[ignore = "writes the golden run of the present version, which must not exist yet"]
fn write_the_golden_run() {
    let folder = golden(FORMAT_VERSION);
    let mut run = new_run(&folder);
    let record = write_small_shard(&run);
    run.commit(&json!(record)).unwrap();
    std::fs::remove_file(folder.join("lock")).unwrap();
}

/// Writes the golden run of a store, copied to a folder unchanged.
#[test]
#[ignore = "writes the golden run of a store, which must not exist yet"]
fn write_the_golden_run_of_a_store() {
    let folder = golden_of_a_store(FORMAT_VERSION);
    let (store, cache) = (Arc::new(InMemory::new()), tempfile::tempdir().unwrap());
    let settings =
        StoreSettings { cache_folder: Some(cache.path().to_path_buf()), ..StoreSettings::default() };
    let location = Location::objects(store.clone(), "memory://", "", &settings).unwrap();
    let mut run = RunDir::create(&location, &json!({ "rows": 3, "cols": 4 })).unwrap();
    let record = write_small_shard(&run);
    run.commit(&json!(record)).unwrap();
    RunDir::open_for_writing(&location).unwrap();
    let objects: Vec<_> = store.list(None).try_collect().now_or_never().unwrap().unwrap();
    for object in objects {
        let contents = async { store.get(&object.location).await?.bytes().await };
        let path = folder.join(object.location.to_string());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents.now_or_never().unwrap().unwrap()).unwrap();
    }
}

fn golden_of_a_store(version: u32) -> PathBuf {
    golden(version).with_file_name(format!("v{version}-store"))
}

#[test]
fn runs_of_every_version_are_read() {
    for folder in (1..=FORMAT_VERSION).flat_map(|version| [golden(version), golden_of_a_store(version)]) {
        let run = RunDir::open_read_only(&folder).unwrap();
        assert_eq!(run.records().len(), 1);
        assert_eq!(*run.params(), json!({ "rows": 3, "cols": 4 }));
        let record: ShardRecord = serde_json::from_value(run.records()[0].clone()).unwrap();
        let reader = ShardReader::open(&shard_path(&run, &record.file), &identity(run.run_id())).unwrap();
        reader.verify().unwrap();
        assert_eq!(reader.header_checksum(), record.header_checksum);
        assert_eq!(reader.read(key(9, 1, 0)).unwrap().unwrap(), [5; 200]);
        assert_eq!(reader.read(key(8, u64::MAX, 1)).unwrap().unwrap(), b"");
        assert_eq!(reader.read(key(4, 0, 0)).unwrap().unwrap(), b"raw bytes");
        assert_eq!(reader.read(key(120, 7, u32::MAX)).unwrap().unwrap(), [0; 3]);
    }
}

/// Damages a copy of the golden shard by changing one byte of its first frame.
#[test]
fn a_damaged_frame_is_named_by_its_offset() {
    let run = RunDir::open_read_only(&golden(1)).unwrap();
    let path = shard_path(&run, "reach-000004-000120.shard");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[104 + 24] ^= 1;
    let reader = ShardReader::from_bytes(&path, bytes, Some(&identity(run.run_id()))).unwrap();
    match reader.verify() {
        Err(error @ StorageError::Damaged { offset: 104, .. }) => {
            assert!(error.to_string().contains("is recomputed"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(reader.read(key(4, 0, 0)).unwrap().unwrap(), b"raw bytes", "the other frame is intact");
}
