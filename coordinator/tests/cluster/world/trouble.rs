//! Kinds and frequencies of faults.

use super::*;

/// Frequencies of faults, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Faults {
    /// Messages that are lost, doubled, or late.
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
    /// Per step: workers that die, hang, fail, join, or leave.
    pub die: u64,
    pub hang: u64,
    pub fail: u64,
    pub join: u64,
    pub leave: u64,
    /// Per step: the coordinator restarts, or a second one starts next to it.
    pub restart: u64,
    pub usurp: u64,
    /// Per step: the coordinator hangs.
    pub coordinator_hangs: u64,
    /// Per append: the request or the answer is lost.
    pub append: u64,
    /// Per step: a committed shard is lost; a job is cancelled, resumed or forgotten.
    pub lose: u64,
    pub meddle: u64,
    /// Per layer: data changes in transit to a member.
    pub flip: u64,
    /// Per step: a worker gets stuck but keeps pulling.
    pub stick: u64,
    /// Per start of an epoch: a worker cannot read an intact shard.
    pub misread: u64,
    /// Per step: a made-up worker pulls.
    pub stranger: u64,
    /// Per step: the journal of a job becomes unwritable, or another process writes to it.
    pub locked: u64,
    pub foreign: u64,
    /// Per step: the store disappears for a while; the run of a job is moved aside.
    pub away: u64,
    pub aside: u64,
    /// Per step: coordinators and workers are starved for a while.
    pub starve: u64,
}

impl Faults {
    /// Returns whether jobs may fail. They must not if the only faults are an unavailable store or starvation.
    pub fn may_fail_jobs(&self) -> bool {
        let harmless = Self { away: self.away, starve: self.starve, ..Self::default() };
        *self != harmless
    }
}

impl World {
    /// Injects the faults of one step.
    pub(super) fn inject_faults(&mut self) {
        let faults = self.faults;
        let now = Duration::from_millis(self.now);
        if self.random.per_mille(faults.join) && self.workers.len() < 8 {
            self.join();
        }
        if !self.workers.is_empty() {
            let at = self.random.below(self.workers.len() as u64) as usize;
            let other = self.workers[self.random.below(self.workers.len() as u64) as usize].0.id;
            let (worker, target) = &mut self.workers[at];
            if self.random.per_mille(faults.die) {
                if self.random.per_mille(500) {
                    let newest = self.coordinators.len() - 1;
                    let incarnation = worker.incarnation.next();
                    let again = Worker::new(worker.id, incarnation, worker.threads, self.now + 300);
                    let old = std::mem::replace(worker, again);
                    let old_target = std::mem::replace(target, newest);
                    // The earlier process may still be alive and continue to pull after a while.
                    if self.random.per_mille(500) {
                        let hung_until = self.now + self.random.below(4000);
                        self.workers.push((old.hung(hung_until), old_target));
                    }
                } else {
                    self.workers.remove(at);
                }
            } else if self.random.per_mille(faults.hang) {
                worker.hung_until = self.now + self.random.below(4000);
            } else if self.random.per_mille(faults.fail) {
                match self.random.below(4) {
                    0 => worker.fail(WorkerFailure::Peer(other), 0),
                    1 => worker.fail(WorkerFailure::Other("it is not well".to_owned()), self.now + 1000),
                    _ => worker.fail(WorkerFailure::DiskFull("/".to_owned()), self.now + 500),
                }
            } else if self.random.per_mille(faults.leave) {
                worker.leaving = true;
            } else if self.random.per_mille(faults.stick) {
                worker.stuck_until = self.now + self.random.below(20_000);
            }
        }
        if self.random.per_mille(faults.stranger) {
            let made_up = Worker::new(WorkerId(u64::MAX - self.random.below(3)), Incarnation(1), 4, self.now);
            let to = self.coordinators.len() - 1;
            self.put(self.now, Message::Pull { to, pull: made_up.pull() });
        }
        if self.random.per_mille(faults.starve) {
            self.starved_until = self.now + self.random.below(30_000);
        }
        if !self.store.is_there() {
            // A coordinator starts only if its queue is available.
        } else if self.random.per_mille(faults.restart) {
            self.coordinators.iter_mut().for_each(|coordinator| coordinator.alive = false);
            self.start_coordinator();
        } else if self.random.per_mille(faults.usurp) {
            self.start_coordinator();
        } else if self.random.per_mille(faults.coordinator_hangs) {
            let newest = self.coordinators.len() - 1;
            self.coordinators[newest].hung_until = self.now + self.random.below(3000);
        }
        let jobs: Vec<JobId> = self.queue.keys().cloned().collect();
        let job = &jobs[self.random.below(jobs.len() as u64) as usize];
        self.move_stores(job);
        if !self.store.is_reached(job) {
            return;
        }
        if self.random.per_mille(faults.lose) {
            let choice = self.random.next();
            self.store.lose(job, choice);
        }
        if self.random.per_mille(faults.locked) {
            let until = self.now + self.random.below(10_000);
            self.locked.insert(job.clone(), until);
        }
        if self.random.per_mille(faults.foreign) && self.store.has(job) {
            self.store.write_foreign(job);
        }
        if self.random.per_mille(faults.meddle) {
            let by = self.coordinators.len() - 1;
            let damaged = self.store.damaged(job);
            let cluster = &mut self.coordinators[by].cluster;
            // The coordinator may refuse each of these requests, depending on the job's state.
            match self.random.below(7) {
                0 | 1 => drop(cluster.cancel(now, job)),
                2 | 3 => drop(cluster.resume(now, job)),
                4 => {
                    drop(cluster.shards_lost(now, job, &damaged));
                }
                5 if jobs.len() > 1 => drop(cluster.forget(now, job)),
                // A new job may reuse a forgotten name. It then resumes the run with that name.
                _ if jobs.len() < 3 && self.random.per_mille(500) => {
                    let mut forgotten =
                        self.store.journals.keys().filter(|job| !self.queue.contains_key(*job));
                    if let Some(JobId(name)) = forgotten.next().cloned() {
                        self.submit(&name);
                    }
                }
                _ if jobs.len() < 3 => self.submit(&format!("job {}", self.now)),
                _ => {}
            }
            self.act(by);
        }
    }
}

/// Returns settings that vary with the seed, with shorter times than the defaults.
pub(super) fn config(seed: u64) -> ClusterConfig {
    let pick = |choices: [u64; 4], what: u64| choices[mix(seed ^ what << 32) as usize % 4];
    ClusterConfig {
        max_jobs: 1000,
        lease: Duration::from_millis(1000),
        settle: Duration::from_millis(200),
        commit_interval: Duration::from_millis(500),
        shard_bytes: pick([1, 1000, 5000, 100_000], 1),
        window_layers: pick([1, 3, 8, 512], 2) as u32,
        step: Duration::from_secs(4),
        stall: Duration::from_secs(20),
        max_failed_epochs: 5,
        backoff: Duration::from_millis(200),
        retry: Duration::from_millis(200),
        journal_patience: Duration::from_secs(2),
        reopen: Duration::from_millis(500),
        worth_rebalancing: Duration::from_millis(500),
        hold_busy: Duration::from_millis(100),
        hold_idle: Duration::from_millis(200),
    }
}
