//! Records for the journal of a job's run.

use std::collections::HashSet;

use exact2048_coordinator::cluster::{Append, MemberShard, WorkerId, WriteShard};
use exact2048_solution::{JournalRecord, Record, Removal, Retraction, WorkTime};
use exact2048_storage::{Attempt, ShardRecord};

/// Requires that a worker's record describes the shard that was ordered.
///
/// The coordinator compares the record with the shard's file later, before the commit.
///
/// # Errors
///
/// The error in the record.
pub fn check(record: &str, shard: &WriteShard, worker: WorkerId) -> Result<ShardRecord, String> {
    let record: ShardRecord = serde_json::from_str(record).map_err(|error| error.to_string())?;
    let (first, last) = (record.first_layer, record.last_layer);
    if (first, last) != (shard.first.0, shard.last.0) {
        return Err(format!("expected layers {} to {}, found {first} to {last}", shard.first, shard.last));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !record.file.ends_with(".shard") || record.file.len() > 255 || !record.file.bytes().all(plain) {
        return Err("expected the file name of a shard".to_owned());
    }
    if !Attempt::has_made(&record.file, shard.epoch.0, worker.0) {
        return Err(format!("expected a file name of this worker's shards in epoch {}", shard.epoch));
    }
    Ok(record)
}

/// Creates the journal record for an append.
///
/// # Errors
///
/// The error in a worker's report of its shard; the range cannot be committed.
pub fn of_append(append: &Append) -> Result<JournalRecord, String> {
    let (epoch, commit, shards, took) = match append {
        Append::Commit { epoch, commit, shards, took, .. } => (*epoch, commit, shards, took),
        Append::Retract { commit, .. } => {
            return Ok(JournalRecord::Retraction(Retraction { retracted: commit.clone() }));
        }
        Append::Remove { removed, .. } => {
            return Ok(JournalRecord::Removal(Removal { removed: removed.clone() }));
        }
    };
    let range = WriteShard { epoch, first: commit.first, last: commit.last };
    let mut files = HashSet::new();
    let mut records = Vec::with_capacity(shards.len());
    for shard in shards {
        let wrong = |what| format!("worker {} reported an invalid shard: {what}", shard.worker);
        let record = check(&shard.record, &range, shard.worker).map_err(wrong)?;
        let expected = commit.phase.shard_kind();
        if record.kind != expected {
            return Err(wrong(format!("expected kind {expected}, found {}", record.kind)));
        }
        if !files.insert(record.file.clone()) {
            return Err(wrong(format!(
                "expected a file that no other worker has written, found {}",
                record.file
            )));
        }
        records.push(record);
    }
    let threads: Vec<u32> = shards.iter().map(|shard| shard.threads).collect();
    // Milliseconds suffice, because only people read the time.
    let took = WorkTime { seconds: took.as_millis() as f64 / 1e3, threads: threads.iter().sum() };
    Ok(JournalRecord::Commit(Record { commit: commit.clone(), shards: records, threads, took: Some(took) }))
}

/// Returns the total size of a commit's shards. Shards with unreadable records do not count.
pub fn bytes(shards: &[MemberShard]) -> u64 {
    let records = shards.iter().filter_map(|shard| serde_json::from_str(&shard.record).ok());
    records.map(|record: ShardRecord| record.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_coordinator::cluster::{EpochId, JobId, Ticket};
    use exact2048_game::Layer;
    use exact2048_solution::{Commit, Phase};
    use exact2048_storage::ShardKind;
    use serde_json::json;
    use std::time::Duration;

    fn record(file: &str, kind: ShardKind, first: u32, last: u32) -> String {
        let record = ShardRecord {
            file: file.to_owned(),
            kind,
            first_layer: first,
            last_layer: last,
            bytes: 100,
            frames: 1,
            items: 1,
            header_checksum: 7,
        };
        json!(record).to_string()
    }

    fn commit(records: &[String]) -> Append {
        let shard = |(at, record): (usize, &String)| MemberShard {
            worker: WorkerId(at as u64),
            threads: 3,
            record: record.clone(),
        };
        let (phase, first, last) = (Phase::BackUp, Layer(4), Layer(8));
        Append::Commit {
            ticket: Ticket(1),
            job: JobId("a".to_owned()),
            epoch: EpochId(1),
            commit: Commit { phase, first, last, layers: vec![], fingerprint: Some(3) },
            shards: records.iter().enumerate().map(shard).collect(),
            took: Duration::from_millis(1_500),
        }
    }

    #[test]
    fn only_the_shards_of_the_range_are_committed() {
        let good = record("values-000004-000008-000000-1.0.shard", ShardKind::Values, 4, 8);
        let other = record("values-000004-000008-000000-1.1.shard", ShardKind::Values, 4, 8);
        let Ok(JournalRecord::Commit(made)) = of_append(&commit(&[good.clone(), other])) else { panic!() };
        assert_eq!((made.shards.len(), made.threads), (2, vec![3, 3]));
        assert_eq!(made.took, Some(WorkTime { seconds: 1.5, threads: 6 }));
        for wrong in [
            String::new(),
            record("values-000004-000008-000000-1.1.shard", ShardKind::Reach, 4, 8),
            record("values-000004-000008-000000-1.1.shard", ShardKind::Values, 4, 10),
            record("values-000004-000008-000000-1.0.shard", ShardKind::Values, 4, 8),
            record("values-000004-000008-000000-2.1.shard", ShardKind::Values, 4, 8),
            record("values-000004-000008.shard", ShardKind::Values, 4, 8),
            record("../values-000004-000008-000000-1.1.shard", ShardKind::Values, 4, 8),
            record("journal", ShardKind::Values, 4, 8),
        ] {
            let refused = of_append(&commit(&[good.clone(), wrong])).unwrap_err();
            assert!(refused.contains("worker 0000000000000001"), "{refused}");
        }
    }
}
