//! Every byte of every shard, against its checksums and the journal.

use super::{Outcome, Problem, Progress, parallel};
use crate::Run;
use crate::catalog::CatalogShard;

/// Reads every frame of every committed shard.
pub fn shards(run: &Run, threads: usize, progress: &dyn Fn(Progress)) -> Outcome {
    let mut outcome = Outcome::default();
    for shard in run.catalog().shards() {
        match check(&shard, threads) {
            Ok(()) => {
                outcome.checked.shards += 1;
                outcome.checked.bytes += shard.record.bytes;
                outcome.checked.frames += shard.record.frames;
            }
            Err(problem) => outcome.problems.push(problem),
        }
        progress(Progress::Bytes(outcome.checked.bytes));
    }
    outcome
}

/// Checks one shard, all threads together: a run may have few, and large ones.
fn check(shard: &CatalogShard, threads: usize) -> Result<(), Problem> {
    let reader = shard.original()?;
    compare(shard, "bytes", shard.record.bytes, reader.file_bytes())?;
    compare(shard, "frames", shard.record.frames, reader.frames().len() as u64)?;
    compare(shard, "items", shard.record.items, reader.items().len() as u64)?;
    let results = parallel::ranges(threads, reader.frames().len(), |mut range| {
        range.try_for_each(|number| reader.read_frame(number as u32).map(drop))
    });
    results.into_iter().collect::<Result<(), _>>().map_err(Problem::from)
}

fn compare(shard: &CatalogShard, of: &str, journal: u64, found: u64) -> Result<(), Problem> {
    if journal == found {
        return Ok(());
    }
    Err(Problem::Content {
        file: shard.path.clone(),
        offset: None,
        what: format!("number of {of}"),
        expected: format!("{journal} as in the journal"),
        found: found.to_string(),
    })
}
