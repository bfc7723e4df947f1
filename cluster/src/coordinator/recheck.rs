//! The shards of a job that is done, read again because somebody asks for it: what is lost or damaged of them is
//! computed again. Those of other jobs are read by their workers, which say what they cannot read.

use std::sync::Arc;

use anyhow::Result;
use exact2048_coordinator::Commit;
use exact2048_coordinator::cluster::{JobId, LeastMemory};
use exact2048_game::Params;
use exact2048_net::logs::with_causes;
use exact2048_run::{CatalogShard, Run, damaged_shards};
use exact2048_storage::{Location, StorageError};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::restore::least_memory;
use super::shell::Shell;

/// Threads that read shards, and so shards that are on the disk and frames that are in memory at once. A coordinator
/// is small, and has its calls to answer meanwhile.
const THREADS: usize = 2;

impl Shell {
    /// Begins to read all shards of a job that is done, unless that is under way. What comes of it is in the log and
    /// in the state of the job.
    pub(super) fn recheck(self: &Arc<Self>, job: &JobId) {
        let begun = self.with(|state, _| {
            let known = state.jobs.get_mut(job).filter(|known| !known.checking)?;
            known.checking = true;
            known.trouble = None;
            Some((known.location.clone(), known.params.clone()))
        });
        let Some((location, params)) = begun else { return };
        tracing::info!(%job, "the shards of a job are read again");
        let (shell, job, stop) = (Arc::clone(self), job.clone(), self.stop_token());
        tokio::spawn(async move {
            let read = spawn_blocking(move || damaged_commits(&location, &params, &stop)).await;
            shell.end_recheck(&job, read.unwrap_or_else(|panic| Err(panic.into())));
        });
    }

    fn end_recheck(&self, job: &JobId, read: Result<Damaged>) {
        let trouble = match &read {
            Ok(Damaged { commits, .. }) => {
                tracing::info!(%job, damaged_ranges = commits.len(), "the shards of a job were read again");
                None
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(%job, error, "the shards of a job cannot be read");
                Some(format!("its shards could not be read again: {error}"))
            }
        };
        self.with(|state, now| {
            state.trouble(job, trouble);
            state.jobs.get_mut(job).into_iter().for_each(|known| known.checking = false);
            let Ok(Damaged { commits, least_memory }) = read else { return };
            if !commits.is_empty() {
                // It may have been done when this coordinator started. If it fits no worker, it waits for one.
                let _ = state.cluster.learn_memory(now, job, least_memory);
            }
            for commit in commits {
                let lost = state.cluster.shard_lost(now, job, commit.phase, commit.first, commit.last);
                if let Err(error) = lost {
                    tracing::warn!(%job, %error, "a damaged shard stays");
                }
            }
        });
    }
}

/// What is to be done again of a run.
struct Damaged {
    commits: Vec<Commit>,
    /// Of a worker that is to do it.
    least_memory: LeastMemory,
}

/// The commits of a run of which a shard is lost or damaged. Reads every byte of it.
fn damaged_commits(location: &Location, params: &Params, stop: &CancellationToken) -> Result<Damaged> {
    let run = Run::open(location)?;
    run.require(params)?;
    let warn = |error: &StorageError| {
        tracing::warn!(run = %location, error = with_causes(error), "a shard is computed again");
    };
    let damaged =
        damaged_shards(run.catalog(), THREADS, CatalogShard::check, &|| stop.is_cancelled(), &warn)?;
    let least_memory = if damaged.is_empty() { LeastMemory::new(Vec::new()) } else { least_memory(params) };
    Ok(Damaged { commits: damaged.iter().map(|shard| Commit::clone(&shard.commit)).collect(), least_memory })
}
