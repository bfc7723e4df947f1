//! A store that disappears and returns, like a renamed or unmounted folder, and the run of a job that is moved
//! aside. An empty store may take the place of the missing store, so any file created there breaks I12.

use super::*;

impl World {
    /// Lets the store, or the run of a job, disappear or return.
    pub(super) fn move_stores(&mut self, job: &JobId) {
        if self.now >= self.away_until && !self.store.is_there() {
            self.store.come_back();
        }
        if self.now >= self.aside_until {
            self.store.put_back();
        }
        if self.random.per_mille(self.faults.away) && self.store.is_there() {
            self.store.go_away();
            self.away_until = self.now + self.random.below(15_000);
        }
        // A run unknown to the queue is empty and is created again.
        let is_known = self.with_runs.contains(job);
        if self.random.per_mille(self.faults.aside) && is_known && self.store.put_aside(job) {
            self.aside_until = self.now + self.random.below(5_000);
        }
    }

    /// Finds the run of a job. If allowed, creates a missing run and records the creation in the queue.
    pub(super) fn find_run(&mut self, job: &JobId, may_make: bool) -> Result<(), OpenFailure> {
        let later = |why: &str| Err(OpenFailure::Later(why.to_owned()));
        if !self.store.is_there() {
            return later("the store is away");
        }
        if self.random.per_mille(self.faults.append) {
            return later("no answer");
        }
        if !self.store.has(job) {
            if !may_make {
                return Err(OpenFailure::Never("its run is missing".to_owned()));
            }
            assert!(!self.with_runs.contains(job), "I12: the queue knows the run of {job}");
            self.store.make(job);
        }
        // With some probability, the queue does not answer.
        if self.random.per_mille(self.faults.append) {
            return later("the queue does not answer");
        }
        self.with_runs.insert(job.clone());
        Ok(())
    }

    /// Checks the store and the run of a job.
    pub(super) fn look(&mut self, by: usize, job: &JobId) {
        let found = if self.store.has(job) {
            StoreCheck::There
        } else {
            StoreCheck::Away("it is missing".to_owned())
        };
        if self.coordinators[by].alive {
            self.coordinators[by].cluster.store_checked(Duration::from_millis(self.now), job, found);
            self.act(by);
        }
    }

    /// Returns the failure of an append to a missing run.
    pub(super) fn missing_run_failure(&self) -> AppendFailure {
        if self.store.is_there() {
            AppendFailure::Journal("the run is missing".to_owned())
        } else {
            AppendFailure::Store("the store is away".to_owned())
        }
    }
}
