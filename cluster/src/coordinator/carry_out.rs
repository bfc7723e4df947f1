//! Carries out the orders of the pure code: appends, opening and release of runs, and reading of shards. Calls that
//! block on the store run on separate threads, so the coordinator answers pulls in the meantime.

use std::sync::Arc;

use exact2048_coordinator::cluster::{
    Append, AppendFailure, Claim, Errand, Examined, JobId, OpenFailure, OpenTicket, Opened, RunBytes,
    RunTrouble, StoreCheck, TroubleKind,
};
use exact2048_net::text::with_causes;
use exact2048_solution::RunError;
use exact2048_storage::{ErrorKind, RunDir};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;

use super::driver::Work;
use super::estimates::JobEstimate;
use super::job_run::{Contents, DiskLimit, JobRun, RecordError};
use super::known::HeldRun;
use super::queue_records::QueueRecord;
use super::shell::Shell;
use super::statuses::gone;
use super::{AppendError, is_out_of_files, observe, recheck, records};

impl Shell {
    /// Carries out orders one at a time until the coordinator stops. The order under way is finished then. Examinations
    /// of runs go on beside the orders.
    pub(super) async fn carry_out(self: Arc<Self>, mut work: UnboundedReceiver<Work>) {
        let stop = &self.driver.stop;
        while let Some(Some(work)) = stop.run_until_cancelled(work.recv()).await {
            if let Work::Errand(Errand::Examine(claim)) = work {
                // Reading a shard takes long, so other orders do not wait for it.
                tokio::spawn(Arc::clone(&self).examine(claim));
                continue;
            }
            let (shell, ordered) = (Arc::clone(&self), work.clone());
            let done = tokio::task::spawn_blocking(move || match ordered {
                Work::Append(append) => shell.append_for(&append),
                Work::Errand(Errand::Open { ticket, job, times, may_make }) => {
                    shell.open_for(ticket, &job, times, may_make)
                }
                Work::Errand(Errand::Look(job)) => shell.find_run(&job),
                Work::Errand(Errand::Examine(_)) => {}
                Work::Release => shell.release(),
            });
            if let Err(panic) = done.await {
                tracing::error!(%panic, "work on a journal panicked");
                self.give_up(&work);
            }
        }
    }

    /// Answers the cluster in place of work that panicked.
    fn give_up(&self, work: &Work) {
        let why = || "the coordinator failed; see its log".to_owned();
        self.driver.with(|state, now| match work {
            Work::Append(append) => {
                state.cluster.append_failed(now, append.ticket(), AppendFailure::Journal(why()));
            }
            Work::Errand(Errand::Open { ticket, .. }) => {
                state.cluster.not_opened(now, *ticket, OpenFailure::Never(why()));
            }
            Work::Errand(Errand::Look(job)) => state.cluster.store_checked(now, job, StoreCheck::There),
            Work::Errand(Errand::Examine(_)) | Work::Release => {}
        });
    }

    /// Makes an append, and reports its outcome to the cluster. Blocks on the store.
    fn append_for(&self, append: &Append) {
        let ticket = append.ticket();
        match self.append(append) {
            Ok(stored) => self.driver.with(|state, now| state.cluster.committed(now, ticket, stored)),
            Err(RecordError::Never { shard, reason }) => {
                let worker = match append {
                    Append::Commit { shards, .. } => shard.and_then(|number| shards.get(number)),
                    Append::Retract { .. } | Append::Remove { .. } => None,
                };
                let worker = worker.map(|shard| shard.worker);
                let reason = worker.map_or(reason.clone(), |worker| format!("worker {worker} {reason}"));
                tracing::error!(job = %append.job(), reason, "cannot commit a range");
                self.driver.with(|state, now| state.cluster.commit_refused(now, ticket, worker, reason));
            }
            Err(RecordError::Other(error)) => {
                match &error {
                    AppendError::Foreign(reason) => {
                        tracing::error!(job = %append.job(), reason, "another process writes to a journal");
                    }
                    AppendError::Failed(error) => observe::append_failed(append, error),
                    AppendError::Fenced(_) => {}
                }
                let Some(trouble) = self.trouble(error) else { return };
                self.driver.with(|state, now| state.cluster.append_failed(now, ticket, trouble.into()));
            }
        }
    }

    /// Collects the facts about a failure; `None` if another coordinator owns the store. Blocks on the store.
    fn trouble(&self, error: AppendError) -> Option<RunTrouble> {
        let kind = match &error {
            AppendError::Fenced(reason) => {
                self.driver.fence(reason.clone());
                return None;
            }
            AppendError::Foreign(_) => TroubleKind::Foreign,
            AppendError::Failed(error) => trouble_kind(error),
        };
        Some(RunTrouble { reason: with_causes(&error), kind, store: self.ledger.check_store()? })
    }

    /// Makes an append, and returns the size of the run after it.
    fn append(&self, append: &Append) -> Result<RunBytes, RecordError> {
        let run = self.run_of(append.job())?;
        let mut run = run.lock();
        let record = records::of_append(append, |range, threads| run.lanes_by_member(range, threads));
        let record = record.map_err(|reason| RecordError::Never { shard: None, reason })?;
        let appended = run.append(&record, || self.ledger.confirm());
        let (opening, stored) = (run.opening(), run.stored());
        drop(run);
        self.driver.with(|state, _| {
            if let Some(held) = state.jobs.get_mut(append.job()).and_then(|known| known.held.as_mut()) {
                held.opening = opening;
            }
        });
        appended.map(|()| stored)
    }

    /// Returns the open run of a job. Opens a closed run without removing anything from it.
    fn run_of(&self, job: &JobId) -> Result<Arc<Mutex<JobRun>>, RecordError> {
        let Some(known) = self.driver.with(|state, _| state.jobs.get(job).cloned()) else {
            return Err(RecordError::Never { shard: None, reason: format!("job {job} does not exist") });
        };
        if let Some(held) = known.held {
            return Ok(held.run);
        }
        self.ledger.confirm()?;
        let (run, _) = JobRun::reopen(&known.location, known.disk_limit).map_err(AppendError::Failed)?;
        let held = HeldRun::new(run);
        let run = Arc::clone(&held.run);
        self.driver.with(|state, _| {
            if let Some(known) = state.jobs.get_mut(job) {
                known.held = Some(held);
            }
        });
        Ok(run)
    }

    /// Opens the run of a job at its turn, and reports its contents to the cluster. Blocks on the store.
    fn open_for(&self, ticket: OpenTicket, job: &JobId, times: u64, may_make: bool) {
        match self.open_run(ticket, job, times, may_make) {
            Ok(Some(opened)) => self.driver.with(|state, now| state.cluster.opened(now, ticket, opened)),
            // The job was cancelled in the meantime.
            Ok(None) => {}
            Err(error) => {
                let Some(trouble) = self.trouble(error) else { return };
                tracing::warn!(%job, reason = trouble.reason, "cannot open the run of a job");
                self.driver.with(|state, now| state.cluster.not_opened(now, ticket, trouble.into()));
            }
        }
    }

    /// Opens a run; `None` if the order is withdrawn. A run is created only while the queue, which is in the same
    /// store, is in its place. The queue then records the creation.
    fn open_run(
        &self,
        ticket: OpenTicket,
        job: &JobId,
        times: u64,
        may_make: bool,
    ) -> Result<Option<Opened>, AppendError> {
        let found = self.driver.with(|state, _| {
            let known = state.jobs.get_mut(job).filter(|_| state.cluster.is_opening(ticket))?;
            // An open run is released first, because it holds the lock.
            drop(known.held.take());
            Some((known.location.clone(), known.params.clone(), known.disk_limit))
        });
        let Some((location, params, limit_bytes)) = found else { return Ok(None) };
        self.ledger.confirm()?;
        let limit = limit_bytes.map(|bytes| DiskLimit { bytes, times });
        let opened = JobRun::open(&location, &params, limit, may_make);
        let opened = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound if !may_make => AppendError::Foreign(gone(job)),
            _ => AppendError::Failed(error),
        })?;
        if may_make {
            self.ledger.append(&QueueRecord::Begun { job: job.clone() })?;
        }
        let (run, contents, missing_bytes) = opened;
        let Contents { params, holdings, stored } = contents;
        let JobEstimate { least_memory, workload, cost } = self.estimates.of(&params);
        let held = HeldRun::new(run);
        let is_held = self.driver.with(|state, _| {
            // Another job may have this name by now.
            let known = state.jobs.get_mut(job).filter(|_| state.cluster.is_opening(ticket))?;
            known.held = Some(held);
            known.params = params.clone();
            Some(())
        });
        Ok(is_held.map(|()| Opened { params, holdings, stored, missing_bytes, least_memory, workload, cost }))
    }

    /// Checks that the store and the run of a job are in place, and reports to the cluster. Blocks on the store.
    fn find_run(&self, job: &JobId) {
        let location = self.driver.with(|state, _| state.jobs.get(job).map(|known| known.location.clone()));
        let Some(location) = location else { return };
        let Some(store) = self.ledger.check_store() else { return };
        let found = match (store, RunDir::find(&location)) {
            (StoreCheck::There, Ok(Some(_))) => StoreCheck::There,
            (StoreCheck::There, Ok(None)) => StoreCheck::Away(gone(job)),
            (StoreCheck::There, Err(error)) => StoreCheck::Away(with_causes(&error)),
            (away, _) => away,
        };
        self.driver.with(|state, now| state.cluster.store_checked(now, job, found));
    }

    /// Releases the runs that are no longer needed, so that other processes can open them.
    fn release(&self) {
        let runs: Vec<HeldRun> = self.driver.with(|state, _| {
            let not_needed = state.not_needed();
            not_needed.iter().filter_map(|job| state.jobs.get_mut(job)?.held.take()).collect()
        });
        drop(runs);
    }

    /// Reads a shard that a worker cannot read.
    async fn examine(self: Arc<Self>, claim: Claim) {
        let location = self.driver.with(|state, _| Some(state.jobs.get(&claim.job)?.location.clone()));
        let asked = claim.clone();
        let found = tokio::task::spawn_blocking(move || match location {
            Some(location) => recheck::examine(&location, &asked),
            None => Examined::Unknown(format!("job {} does not exist", asked.job)),
        });
        let found = found.await.unwrap_or_else(|panic| Examined::Unknown(panic.to_string()));
        self.driver.with(|state, now| state.cluster.examined(now, &claim, found));
    }
}

/// Translates the kind of an error.
pub(super) fn trouble_kind(error: &RunError) -> TroubleKind {
    match error.kind() {
        _ if is_out_of_files(error) => TroubleKind::Full,
        ErrorKind::Full => TroubleKind::Full,
        ErrorKind::Busy | ErrorKind::Fenced | ErrorKind::Unavailable => TroubleKind::Passing,
        _ => TroubleKind::Other,
    }
}
