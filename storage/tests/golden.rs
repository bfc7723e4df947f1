//! Files of every published format version, kept for good: `tests/data/v1` and so on.
//!
//! They are made by hand, once per version: `cargo test --test golden -- --ignored write_the_golden_run`.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::path::{Path, PathBuf};

use common::{identity, key, new_run, write_small_shard};
use exact2048_storage::{FORMAT_VERSION, RunDir, ShardReader, ShardRecord, StorageError};
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

#[test]
fn runs_of_every_version_are_read() {
    for version in 1..=FORMAT_VERSION {
        let run = RunDir::open_read_only(&golden(version)).unwrap();
        assert_eq!(*run.params(), json!({ "rows": 3, "cols": 4 }));
        let record: ShardRecord = serde_json::from_value(run.records()[0].clone()).unwrap();
        let reader = ShardReader::open(&run.shard_path(&record.file), &identity(run.run_id())).unwrap();
        reader.verify().unwrap();
        assert_eq!(reader.header_checksum(), record.header_checksum);
        assert_eq!(reader.read(key(9, 1, 0)).unwrap().unwrap(), [5; 200]);
        assert_eq!(reader.read(key(8, u64::MAX, 1)).unwrap().unwrap(), b"");
        assert_eq!(reader.read(key(4, 0, 0)).unwrap().unwrap(), b"raw bytes");
        assert_eq!(reader.read(key(120, 7, u32::MAX)).unwrap().unwrap(), [0; 3]);
    }
}

/// The damaged twin: the golden shard with one byte of its first frame changed.
#[test]
fn a_damaged_frame_is_named_by_its_offset() {
    let run = RunDir::open_read_only(&golden(1)).unwrap();
    let path = run.shard_path("reach-000004-000120.shard");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[104 + 24] ^= 1;
    let reader = ShardReader::from_bytes(&path, bytes, Some(&identity(run.run_id()))).unwrap();
    match reader.verify() {
        Err(error @ StorageError::Damaged { offset: 104, .. }) => {
            assert!(error.to_string().contains("computed again"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(reader.read(key(4, 0, 0)).unwrap().unwrap(), b"raw bytes", "the other frame is sound");
}
