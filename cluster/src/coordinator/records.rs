//! Records for the journal of a job's run.

use exact2048_coordinator::cluster::{Append, MemberShard, WorkerId, WriteShard};
use exact2048_game::Layer;
use exact2048_solution::{Commit, JournalRecord, Record, Removal, Retraction, WorkTime, WrittenShards};
use exact2048_storage::{Attempt, ShardKind, ShardRecord};

/// Requires that a worker's record describes the shard that was ordered.
///
/// The coordinator compares the record with the shard's file later, before the commit.
///
/// # Errors
///
/// The error in the record.
pub fn check(record: &str, shard: &WriteShard, worker: WorkerId) -> Result<WrittenShards, String> {
    let written: WrittenShards = serde_json::from_str(record).map_err(|error| error.to_string())?;
    check_one(&written.shard, shard, shard.last, worker)?;
    if let Some(checkpoint) = &written.checkpoint {
        check_one(checkpoint, shard, shard.first.up(1), worker)?;
        if checkpoint.kind != ShardKind::Checkpoint {
            return Err(format!("expected kind {}, found {}", ShardKind::Checkpoint, checkpoint.kind));
        }
    }
    Ok(written)
}

fn check_one(record: &ShardRecord, shard: &WriteShard, to: Layer, worker: WorkerId) -> Result<(), String> {
    let (first, last) = (record.first_layer, record.last_layer);
    if (first, last) != (shard.first.0, to.0) {
        return Err(format!("expected layers {} to {to}, found {first} to {last}", shard.first));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !record.file.ends_with(".shard") || record.file.len() > 255 || !record.file.bytes().all(plain) {
        return Err("expected the file name of a shard".to_owned());
    }
    if !Attempt::has_made(&record.file, shard.epoch.0, worker.0) {
        return Err(format!("expected a file name of this worker's shards in epoch {}", shard.epoch));
    }
    Ok(())
}

/// Creates the journal record for an append. [`check`] has accepted the records of its shards. `lanes` returns the
/// lanes of each member's shard of a range, given the members' threads.
///
/// # Errors
///
/// The error in a worker's report of its shard; the range cannot be committed.
pub fn of_append(
    append: &Append,
    lanes: impl FnOnce(&Commit, &[u32]) -> Vec<Vec<u64>>,
) -> Result<JournalRecord, String> {
    let (commit, shards, took) = match append {
        Append::Commit { commit, shards, took, .. } => (commit, shards, took),
        Append::Retract { commit, .. } => {
            return Ok(JournalRecord::Retraction(Retraction { retracted: commit.clone() }));
        }
        Append::Remove { removed, .. } => {
            return Ok(JournalRecord::Removal(Removal { removed: removed.clone() }));
        }
    };
    let (mut records, mut checkpoint) = (Vec::with_capacity(shards.len()), Vec::new());
    for shard in shards {
        let wrong = |what| format!("worker {} reported an invalid shard: {what}", shard.worker);
        let written: WrittenShards =
            serde_json::from_str(&shard.record).map_err(|error| wrong(error.to_string()))?;
        let (expected, found) = (commit.phase.shard_kind(), written.shard.kind);
        if found != expected {
            return Err(wrong(format!("expected kind {expected}, found {found}")));
        }
        records.push(written.shard);
        checkpoint.extend(written.checkpoint);
    }
    let threads: Vec<u32> = shards.iter().map(|shard| shard.threads).collect();
    // Milliseconds suffice, because only people read the time.
    let took = WorkTime { seconds: took.as_millis() as f64 / 1e3, threads: threads.iter().sum() };
    let lanes = lanes(commit, &threads);
    let record = Record::new(commit.clone(), records);
    Ok(JournalRecord::Commit(Record { lanes, checkpoint, took: Some(took), ..record }))
}

/// Returns the total size of a commit's shards. Shards with unreadable records do not count.
pub fn bytes(shards: &[MemberShard]) -> u64 {
    let written = shards.iter().filter_map(|shard| serde_json::from_str::<WrittenShards>(&shard.record).ok());
    written.map(|of| of.shard.bytes + of.checkpoint.map_or(0, |shard| shard.bytes)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_coordinator::cluster::{EpochId, JobId, Ticket};
    use exact2048_solution::Phase;
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
        json!({ "shard": record }).to_string()
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
        let lanes =
            |range: &Commit, threads: &[u32]| vec![vec![u64::from(range.last.0)], vec![threads.len() as u64]];
        let Ok(JournalRecord::Commit(made)) = of_append(&commit(&[good.clone(), other]), lanes) else {
            panic!()
        };
        assert_eq!((made.shards.len(), made.lanes), (2, vec![vec![8], vec![2]]));
        assert_eq!(made.took, Some(WorkTime { seconds: 1.5, threads: 6 }));
        let other_kind = record("values-000004-000008-000000-1.1.shard", ShardKind::Reach, 4, 8);
        let refused = of_append(&commit(&[good, other_kind]), lanes).unwrap_err();
        assert!(refused.contains("worker 0000000000000001"), "{refused}");
        let range = WriteShard { epoch: EpochId(1), first: Layer(4), last: Layer(8) };
        for wrong in [
            String::new(),
            record("values-000004-000008-000000-1.1.shard", ShardKind::Values, 4, 10),
            record("values-000004-000008-000000-1.0.shard", ShardKind::Values, 4, 8),
            record("values-000004-000008-000000-2.1.shard", ShardKind::Values, 4, 8),
            record("values-000004-000008.shard", ShardKind::Values, 4, 8),
            record("../values-000004-000008-000000-1.1.shard", ShardKind::Values, 4, 8),
            record("journal", ShardKind::Values, 4, 8),
        ] {
            check(&wrong, &range, WorkerId(1)).unwrap_err();
        }
    }
}
