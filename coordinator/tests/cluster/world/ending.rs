//! The end of a schedule, when faults stop and all jobs must finish.

use super::*;

impl World {
    /// Stops all faults, and requires that all jobs finish.
    pub fn finish(&mut self) {
        self.faults = Faults::default();
        let newest = self.coordinators.len() - 1;
        self.coordinators[..newest].iter_mut().for_each(|coordinator| coordinator.alive = false);
        self.workers.retain(|(worker, _)| !worker.leaving);
        for (worker, _) in &mut self.workers {
            worker.stuck_until = 0;
        }
        self.locked.clear();
        (self.away_until, self.aside_until, self.starved_until) = (0, 0, 0);
        while self.workers.len() < 2 {
            self.join();
        }
        // A stuck worker that pulls forever must not prevent the end.
        if self.random.per_mille(300) {
            self.join();
            self.workers.last_mut().unwrap().0.stuck_until = u64::MAX;
        }
        let end = self.now + 600_000;
        while !self.is_done() {
            if self.now.is_multiple_of(1000) {
                self.mend();
            }
            self.step();
            assert!(self.now < end, "not done in ten minutes: {:#?}", self.coordinators[newest].cluster);
        }
        for job in self.queue.keys() {
            let journal = &self.store.journals[job];
            let commits: Vec<Commit> = journal.live.iter().map(|live| live.commit.clone()).collect();
            let holdings = journal.holdings();
            let recipe = Recipe::new(&self.truth.params, &holdings);
            assert_eq!(recipe.steps(), [], "I7: done but incomplete");
            assert!(self.limit.is_none() || recipe.passed().is_empty(), "I14: done but with unneeded data");
            let of = |phase| commits.iter().filter(move |commit| commit.phase == phase);
            let layers = holdings.counts().len();
            assert_eq!(layers as u32, (self.truth.params.last_layer().0 - 4) / 2 + 1, "I7: every layer once");
            let sum = of(Phase::BackUp).fold(0u128, |sum, c| sum.wrapping_add(c.fingerprint.unwrap_or(0)));
            let all = (4..=self.truth.params.last_layer().0).step_by(2).fold(0u128, |sum, layer| {
                let part = self.truth.layer(Phase::BackUp, exact2048_game::Layer(layer));
                sum.wrapping_add(part.totals.fingerprint)
            });
            assert_eq!(sum, all, "I7: the true fingerprint");
        }
    }

    /// Returns the number of layers of all jobs that were enumerated more often than necessary.
    pub fn enumerated_again(&self) -> usize {
        let again = |journal: &Journal| {
            let up = journal.live.iter().filter(|live| live.commit.phase == Phase::Enumerate);
            let layers: usize = up.map(|live| live.commit.layers.len()).sum();
            layers - journal.holdings().counts().len()
        };
        self.store.journals.values().map(again).sum()
    }

    /// Acts as an operator: reports unreadable shards, and resumes failed jobs.
    fn mend(&mut self) {
        let now = Duration::from_millis(self.now);
        let jobs: Vec<JobId> = self.queue.keys().cloned().collect();
        for job in jobs {
            let damaged = self.store.damaged(&job);
            let Some(Coordinator { cluster, .. }) = self.coordinators.last_mut() else { continue };
            cluster.shards_lost(now, &job, &damaged).unwrap();
            let _ = cluster.resume(now, &job);
        }
        self.act(self.coordinators.len() - 1);
    }

    fn is_done(&self) -> bool {
        let Some(coordinator) = self.coordinators.last() else { return false };
        let status = coordinator.cluster.status(Duration::from_millis(self.now));
        let whole = self.queue.keys().all(|job| self.store.damaged(job).is_empty());
        whole
            && status.jobs.iter().all(|job| job.state == JobState::Done)
            && self.messages.is_empty_of_appends()
    }
}

trait Appends {
    fn is_empty_of_appends(&self) -> bool;
}

impl Appends for BTreeMap<(u64, u64), Message> {
    fn is_empty_of_appends(&self) -> bool {
        !self.values().any(|message| matches!(message, Message::Append { .. }))
    }
}
