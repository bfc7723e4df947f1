//! Rereads the shards of a finished job on request. Lost and damaged shards are computed again. Workers read the shards
//! of other jobs, and report those that they cannot read.

use std::collections::HashSet;

use exact2048_coordinator::cluster::{Claim, Examined, JobId};
use exact2048_game::Params;
use exact2048_net::text::with_causes;
use exact2048_run::damaged_shards;
use exact2048_solution::{Commit, Run, RunError};
use exact2048_storage::{Location, StorageError};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::ledger::Ledger;
use super::queue_records::QueueRecord;
use crate::wire::cluster_status;

/// Number of threads that read shards. Each thread keeps one shard on the disk and one frame in memory. The number is
/// small, because a coordinator runs on a small machine and must answer calls in the meantime.
const THREADS: usize = 2;

/// Begins to read all shards of a finished job, unless a recheck is under way. The log and the state of the job show
/// the result.
///
/// # Errors
///
/// NOT_FOUND.
pub(super) fn begin(ledger: &Ledger, job: &JobId) -> Result<(), Status> {
    let driver = &ledger.driver;
    let begun = driver.with(|state, _| {
        let is_new = state.cluster.begin_check(job)?;
        let known = state.jobs.get(job).filter(|_| is_new);
        Ok(known.map(|known| (known.location.clone(), known.params.clone())))
    });
    driver.board.mark_stale();
    let Some((location, params)) = begun.map_err(|error| cluster_status(&error))? else { return Ok(()) };
    tracing::info!(%job, "rereading shards of a job");
    let (ledger, job, stop) = (ledger.clone(), job.clone(), driver.stop.clone());
    tokio::spawn(async move {
        let read = spawn_blocking(move || {
            let read = damaged_commits(&location, &params, &stop).map_err(|error| with_causes(&error));
            // Some shards were not read, so the job stays done.
            if stop.is_cancelled() { Err("the coordinator is stopping".to_owned()) } else { read }
        });
        let read = read.await.unwrap_or_else(|panic| Err(panic.to_string()));
        end(&ledger, &job, read).await;
    });
    Ok(())
}

async fn end(ledger: &Ledger, job: &JobId, read: Result<Vec<Commit>, String>) {
    let requeued = match read {
        Ok(commits) => {
            tracing::info!(%job, damaged_ranges = commits.len(), "shards of a job reread");
            requeue_damaged(ledger, job, &commits).await
        }
        Err(error) => Err(error),
    };
    let failure = requeued.err();
    if let Some(error) = &failure {
        tracing::warn!(%job, error, "cannot reread shards of a job");
    }
    ledger.driver.with(|state, _| state.cluster.end_check(job, failure));
    ledger.driver.board.mark_stale();
}

/// Returns a finished job to the queue, to compute the layers of these commits again.
async fn requeue_damaged(ledger: &Ledger, job: &JobId, commits: &[Commit]) -> Result<(), String> {
    if commits.is_empty() {
        return Ok(());
    }
    let _turn = ledger.turn().await;
    // The queue is written first. Otherwise the next coordinator would consider the job done.
    let noted = ledger.note(QueueRecord::Resumed { job: job.clone() }).await;
    noted.map_err(|status| status.message().to_owned())?;
    let lost = ledger.driver.with(|state, now| state.cluster.shards_lost(now, job, commits));
    lost.map(drop).map_err(|error| error.to_string())
}

/// Returns the commits of a run with a lost or damaged shard. Reads every byte of all shards.
fn damaged_commits(
    location: &Location,
    params: &Params,
    stop: &CancellationToken,
) -> Result<Vec<Commit>, RunError> {
    let run = Run::open(location)?;
    run.require(params)?;
    let warn = |error: &StorageError| {
        tracing::warn!(run = %location, error = with_causes(error), "shard damaged, recomputing it");
    };
    let damaged = damaged_shards(run.catalog(), THREADS, &|| stop.is_cancelled(), &warn, &|_| {})?;
    let mut met = HashSet::new();
    let commits = damaged.iter().map(|shard| &*shard.commit);
    Ok(commits.filter(|commit| met.insert((commit.phase, commit.first))).cloned().collect())
}

/// Reads the committed shard of a claim in the store. Copies of the shard do not count.
pub(super) fn examine(location: &Location, claim: &Claim) -> Examined {
    let run = match Run::open(location) {
        Ok(run) => run,
        Err(error) => return Examined::Unknown(with_causes(&error)),
    };
    let shards = run.catalog().shards();
    let Some(shard) = shards.iter().find(|shard| shard.record.file == claim.file) else {
        return Examined::Unknown("the shard is not in the journal".to_owned());
    };
    match shard.check() {
        Ok(()) => Examined::Sound,
        Err(error) if error.blames().is_some() => {
            tracing::warn!(run = %location, error = with_causes(&error), "shard damaged, recomputing it");
            Examined::Lost((*shard.commit).clone())
        }
        Err(error) => Examined::Unknown(with_causes(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use exact2048_coordinator::cluster::WorkerId;
    use exact2048_game::Layer;
    use exact2048_solution::{JournalRecord, Phase, Record, UnnamedPolicy};
    use exact2048_storage::{Frame, ItemKey, ShardWriter, StoreSettings};
    use futures_util::FutureExt;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    /// Only damage of the committed shard causes recomputation; reports of workers and other copies do not.
    #[test]
    fn shards_are_judged_by_what_is_committed() {
        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(InMemory::new());
        let settings = StoreSettings { cache_folder: Some(place.path().into()), ..StoreSettings::default() };
        let location = Location::objects(store.clone(), "s3://bucket/run", "run", &settings).unwrap();
        let params = Params::small("2x2");
        let mut run = Run::open_or_create(&location, &params, UnnamedPolicy::Refuse).unwrap();
        let (phase, first, last) = (Phase::Enumerate, Layer(4), Layer(60));
        let identity = run.catalog().identity(phase, first, last);
        let mut writer = ShardWriter::create(run.dir(), identity).unwrap();
        let key = ItemKey { layer: first.0, lane: 0, part: 0 };
        writer.push(Frame::encode(&[(key, b"states")], 1).unwrap()).unwrap();
        let shards = vec![writer.finish().unwrap()];
        let file = shards[0].file.clone();
        let commit = Commit { phase, first, last, layers: Vec::new(), fingerprint: None };
        let record = Record::new(commit.clone(), shards);
        run.append(JournalRecord::Commit(record)).unwrap();

        let claim =
            |file: &str| Claim { worker: WorkerId(1), job: JobId("job".to_owned()), file: file.to_owned() };
        let damaged = || damaged_commits(&location, &params, &CancellationToken::new()).unwrap();
        // The shard is intact, so the worker has misread it.
        assert_eq!(examine(&location, &claim(&file)), Examined::Sound);
        assert_eq!(damaged(), []);
        let other = examine(&location, &claim("another.shard"));
        assert!(matches!(&other, Examined::Unknown(why) if why.contains("not in the journal")), "{other:?}");

        // The shard in the store is damaged. The copy that the writer kept in its cache is intact.
        let object = format!("run/shards/{file}").into();
        let read = store.get(&object).now_or_never().unwrap().unwrap();
        let mut bytes = read.bytes().now_or_never().unwrap().unwrap().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        store.put(&object, bytes.into()).now_or_never().unwrap().unwrap();
        Run::open(&location).unwrap().catalog().shards()[0].reader().unwrap().verify().unwrap();
        assert_eq!(examine(&location, &claim(&file)), Examined::Lost(commit.clone()));
        assert_eq!(damaged(), [commit]);
    }
}
