//! Disks that fill up or break while a shard is written. This test is alone in its file, because fail points affect
//! the whole process.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use common::{frame, identity, key, names, new_run, write_small_shard};
use exact2048_storage::{ShardWriter, StorageError};

#[test]
fn a_full_or_broken_disk_is_reported_and_leaves_no_files() {
    let place = tempfile::tempdir().unwrap();
    let run = new_run(place.path());
    let small = || frame(&[(key(4, 0, 0), b"raw bytes")]);

    // The writes of this shard in order: space for the header, frame, index, header.
    for good_writes in 0..4 {
        fail::cfg("shard.write", &format!("{good_writes}*off->return(enospc)")).unwrap();
        let written = ShardWriter::create(&run, identity(run.run_id())).and_then(|mut writer| {
            writer.push(small())?;
            writer.finish()
        });
        let error = written.unwrap_err();
        assert!(matches!(error, StorageError::Full { needed: Some(1..), .. }), "{error}");
        assert!(error.to_string().contains("to resume"), "{error}");
        assert!(names(&place.path().join("shards")).is_empty());
    }

    // After a failure the writer stays unusable, even if the disk has space again.
    fail::cfg("shard.write", "1*off->1*return->off").unwrap();
    let mut writer = ShardWriter::create(&run, identity(run.run_id())).unwrap();
    assert!(matches!(writer.push(small()), Err(StorageError::Io { .. })));
    assert!(matches!(writer.push(small()), Err(StorageError::EarlierFailure { .. })));
    assert!(matches!(writer.finish(), Err(StorageError::EarlierFailure { .. })));

    fail::remove("shard.write");
    write_small_shard(&run);
}
