//! Helpers shared by the tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use exact2048_storage::{
    Frame, ItemKey, RunDir, RunId, ShardId, ShardIdentity, ShardKind, ShardRecord, ShardWriter,
};
use serde_json::json;

pub fn key(layer: u32, lane: u64, part: u32) -> ItemKey {
    ItemKey { layer, lane, part }
}

pub fn identity(run: RunId) -> ShardIdentity {
    ShardIdentity {
        run,
        kind: ShardKind::Reach,
        rows: 3,
        cols: 4,
        first_layer: 4,
        last_layer: 120,
        rule_hash: 0x0123_4567_89ab_cdef,
    }
}

pub fn frame(items: &[(ItemKey, &[u8])]) -> Frame {
    Frame::encode(items, 3).unwrap()
}

/// Writes a small shard with one compressed and one raw frame, out of key order.
pub fn write_small_shard(run: &RunDir) -> ShardRecord {
    let mut writer = ShardWriter::create(run, identity(run.run_id())).unwrap();
    writer.push(frame(&[(key(9, 1, 0), &[5; 200]), (key(8, u64::MAX, 1), b"")])).unwrap();
    writer.push(frame(&[(key(4, 0, 0), b"raw bytes"), (key(120, 7, u32::MAX), &[0; 3])])).unwrap();
    writer.finish().unwrap()
}

pub fn new_run(folder: &Path) -> RunDir {
    RunDir::create(folder, &json!({ "rows": 3, "cols": 4 })).unwrap()
}

/// Returns the file of a shard in a run directory.
pub fn shard_path(run: &RunDir, file: &str) -> PathBuf {
    run.shards().place(&ShardId::of(file)).as_path().unwrap().to_path_buf()
}

/// Returns the names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
