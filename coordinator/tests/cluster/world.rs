//! A cluster with everything that can go wrong: what happens is decided by a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use exact2048_coordinator::cluster::{
    Action, Cluster, Config, Failure, JobId, JobState, LeastMemory, Pull, PullReply, Refusal, Secret,
    Secrets, Share, Submission, WorkerId,
};
use exact2048_coordinator::{Commit, Phase, missing_segments};

use crate::random::{Random, mix};
use crate::store::{EPOCHS, Store};
use crate::truth::Truth;
use crate::worker::Worker;

/// Milliseconds of a step.
const STEP: u64 = 50;

/// How often things go wrong, in a thousand.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// Messages that are lost, that arrive twice, and that are late.
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
    /// In each step: workers that die, that hang, that fail, that join, that leave.
    pub die: u64,
    pub hang: u64,
    pub fail: u64,
    pub join: u64,
    pub leave: u64,
    /// In each step: the coordinator is started again, or a second one is started beside it.
    pub restart: u64,
    pub usurp: u64,
    /// In each step: the coordinator hangs.
    pub coordinator_hangs: u64,
    /// Of appends: the request, or the answer, is lost.
    pub append: u64,
    /// In each step: a committed shard is lost; a job is cancelled or resumed.
    pub lose: u64,
    pub meddle: u64,
    /// Of layers: something changes on its way to a member.
    pub flip: u64,
}

enum Message {
    Pull { to: usize, pull: Pull },
    Reply { worker: WorkerId, incarnation: u64, reply: Result<PullReply, Refusal> },
    Append { by: usize, slot: usize, action: Action, answered: bool },
    Appended { by: usize, ticket: u64, job: JobId, done: bool },
    Unknown { by: usize, ticket: u64 },
}

/// A coordinator and what its shell knows.
struct Coordinator {
    cluster: Cluster,
    /// Number of the next entry of each journal.
    slots: BTreeMap<JobId, usize>,
    /// The append that was answered last.
    answered: u64,
    alive: bool,
    hung_until: u64,
}

pub struct World {
    pub now: u64,
    pub events: u64,
    truth: Truth,
    store: Store,
    faults: Faults,
    config: Config,
    random: Random,
    coordinators: Vec<Coordinator>,
    workers: Vec<(Worker, usize)>,
    next_worker: u64,
    next_message: u64,
    messages: BTreeMap<(u64, u64), Message>,
    /// All epochs that there ever were.
    shares: BTreeMap<u64, Arc<Share>>,
    /// Their secrets.
    secrets: BTreeSet<[u8; Secret::BYTES]>,
}

impl World {
    pub fn new(board: &str, seed: u64, workers: u64, faults: Faults) -> Self {
        let mut world = Self {
            now: 0,
            events: 0,
            truth: Truth::new(board),
            store: Store::new(),
            faults,
            config: config(seed),
            random: Random::new(seed),
            coordinators: Vec::new(),
            workers: Vec::new(),
            next_worker: 0,
            next_message: 0,
            messages: BTreeMap::new(),
            shares: BTreeMap::new(),
            secrets: BTreeSet::new(),
        };
        world.start_coordinator();
        world.submit("first");
        (0..workers).for_each(|_| world.join());
        world
    }

    /// Lets so many steps pass.
    pub fn run(&mut self, steps: u64) {
        (0..steps).for_each(|_| self.step());
    }

    /// Lets nothing go wrong any more, and everything has to become done.
    pub fn finish(&mut self) {
        self.faults = Faults::default();
        let newest = self.coordinators.len() - 1;
        self.coordinators[..newest].iter_mut().for_each(|coordinator| coordinator.alive = false);
        self.workers.retain(|(worker, _)| !worker.leaving);
        while self.workers.len() < 2 {
            self.join();
        }
        let end = self.now + 600_000;
        while !self.is_done() {
            if self.now.is_multiple_of(1000) {
                self.mend();
            }
            self.step();
            assert!(self.now < end, "not done in ten minutes: {:#?}", self.coordinators[newest].cluster);
        }
        for journal in self.store.journals.values() {
            let commits: Vec<Commit> = journal.live.iter().map(|live| live.commit.clone()).collect();
            assert_eq!(
                missing_segments(&self.truth.params, &commits),
                [],
                "I7: done, and something is missing"
            );
            let of = |phase| commits.iter().filter(move |commit| commit.phase == phase);
            let layers = of(Phase::Enumerate).map(|commit| commit.layers.len()).sum::<usize>();
            assert_eq!(layers as u32, (self.truth.params.last_layer().0 - 4) / 2 + 1, "I7: every layer once");
            let sum = of(Phase::BackUp).fold(0u128, |sum, c| sum.wrapping_add(c.fingerprint.unwrap_or(0)));
            let all = (4..=self.truth.params.last_layer().0).step_by(2).fold(0u128, |sum, layer| {
                let part = self.truth.layer(Phase::BackUp, exact2048_game::Layer(layer));
                sum.wrapping_add(part.fingerprint)
            });
            assert_eq!(sum, all, "I7: the one fingerprint");
        }
    }

    /// What people do when something has stopped: report what cannot be read, and resume what has failed.
    fn mend(&mut self) {
        let now = Duration::from_millis(self.now);
        let jobs: Vec<JobId> = self.store.journals.keys().cloned().collect();
        for job in jobs {
            let damaged = self.store.damaged(&job);
            let Some(Coordinator { cluster, .. }) = self.coordinators.last_mut() else { continue };
            for commit in damaged {
                // Commits that overlap it may have been taken out already, with the append under way.
                cluster.shard_lost(now, &job, commit.phase, commit.first, commit.last).unwrap();
            }
            let _ = cluster.resume(now, &job);
        }
        self.act(self.coordinators.len() - 1);
    }

    fn is_done(&self) -> bool {
        let Some(coordinator) = self.coordinators.last() else { return false };
        let status = coordinator.cluster.status(Duration::from_millis(self.now));
        let whole = self.store.journals.keys().all(|job| self.store.damaged(job).is_empty());
        whole
            && status.jobs.iter().all(|job| job.state == JobState::Done)
            && self.messages.is_empty_of_appends()
    }

    fn step(&mut self) {
        self.now += STEP;
        while let Some(entry) = self.messages.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let message = entry.remove();
            self.events += 1;
            self.deliver(message);
        }
        let now = Duration::from_millis(self.now);
        for by in 0..self.coordinators.len() {
            let coordinator = &mut self.coordinators[by];
            if coordinator.alive && self.now >= coordinator.hung_until {
                coordinator.cluster.tick(now);
                self.act(by);
            }
        }
        self.step_workers();
        self.go_wrong();
    }

    fn step_workers(&mut self) {
        for at in 0..self.workers.len() {
            let newest = self.coordinators.len() - 1;
            let slowest = self.slowest(at);
            let (worker, target) = &mut self.workers[at];
            if self.now < worker.hung_until {
                continue;
            }
            if worker.unwell_until != 0 && self.now >= worker.unwell_until {
                worker.recover();
            }
            worker.flips = self.faults.flip;
            worker.work(&self.truth, &mut self.store, slowest, &mut self.random);
            if self.now >= worker.next_pull {
                worker.next_pull = self.now + 50 + self.random.below(150);
                if !self.coordinators[*target].alive || self.random.per_mille(100) {
                    *target = newest;
                }
                let message = (*target, worker.pull());
                self.send(|| Message::Pull { to: message.0, pull: message.1.clone() });
            }
        }
        self.workers.retain(|(worker, _)| !(worker.leaving && worker.working.is_none()));
    }

    /// The lowest position of the members of a worker's epoch; who is not in it has none.
    fn slowest(&self, at: usize) -> u32 {
        let Some(working) = &self.workers[at].0.working else { return 0 };
        let of = |id: WorkerId| {
            let peers = self.workers.iter().filter(|(peer, _)| peer.id == id);
            let mut at_work = peers.filter_map(|(peer, _)| peer.working.as_ref());
            Some(at_work.find(|peer| peer.share.epoch == working.share.epoch)?.position)
        };
        working.share.members.iter().map(|member| of(member.worker).unwrap_or(0)).min().unwrap_or(0)
    }

    fn deliver(&mut self, message: Message) {
        let now = Duration::from_millis(self.now);
        match message {
            Message::Pull { to, pull } => {
                let coordinator = &mut self.coordinators[to];
                if !coordinator.alive {
                    return;
                }
                if self.now < coordinator.hung_until {
                    let at = coordinator.hung_until;
                    return self.put(at, Message::Pull { to, pull });
                }
                let reply = coordinator.cluster.pull(now, &pull);
                if let Ok(PullReply { share: Some(share), .. }) = &reply {
                    let known = self.shares.entry(share.epoch).or_insert_with(|| {
                        assert!(
                            self.secrets.insert(*share.secret.bytes()),
                            "I11: two epochs with one secret"
                        );
                        share.clone()
                    });
                    assert_eq!(known, share, "I4: two shares of one epoch");
                    assert!(share.member(pull.worker).is_some(), "I4: a share for a stranger");
                }
                self.act(to);
                let (worker, incarnation) = (pull.worker, pull.incarnation);
                self.send(|| Message::Reply { worker, incarnation, reply: reply.clone() });
            }
            Message::Reply { worker, incarnation, reply } => {
                let is_it = |(known, _): &&mut (Worker, usize)| {
                    known.id == worker && known.incarnation == incarnation
                };
                if let Some((worker, _)) = self.workers.iter_mut().find(is_it) {
                    worker.hear(reply, &self.store, &mut self.random);
                }
            }
            Message::Append { by, slot, action, answered } => {
                let job = job_of(&action);
                let done = self.store.append(&self.truth, &job, slot, &action);
                if answered {
                    let at = self.now + self.random.below(200);
                    self.put(at, Message::Appended { by, ticket: action.ticket(), job, done });
                }
            }
            Message::Appended { by, ticket, job, done } => {
                let coordinator = &mut self.coordinators[by];
                if !coordinator.alive {
                    return;
                }
                if !done {
                    coordinator.cluster.commit_failed(now, ticket, true);
                } else {
                    if coordinator.answered < ticket {
                        coordinator.answered = ticket;
                        *coordinator.slots.entry(job).or_default() += 1;
                    }
                    coordinator.cluster.committed(now, ticket, 0);
                }
                self.act(by);
            }
            Message::Unknown { by, ticket } => {
                if self.coordinators[by].alive {
                    self.coordinators[by].cluster.commit_failed(now, ticket, false);
                    self.act(by);
                }
            }
        }
    }

    /// Carries out what a coordinator wants.
    fn act(&mut self, by: usize) {
        for action in self.coordinators[by].cluster.take_actions() {
            let slot = self.coordinators[by].slots[&job_of(&action)];
            let ticket = action.ticket();
            let (lost, silent) =
                (self.random.per_mille(self.faults.append), self.random.per_mille(self.faults.append));
            let at = self.now + self.random.below(100);
            if lost || silent {
                let later = at + 200 + self.random.below(500);
                self.put(later, Message::Unknown { by, ticket });
            }
            if !lost {
                if self.random.per_mille(self.faults.doubled) {
                    let late = at + self.random.below(3000);
                    self.put(late, Message::Append { by, slot, action: action.clone(), answered: true });
                }
                self.put(at, Message::Append { by, slot, action, answered: !silent });
            }
        }
    }

    fn send(&mut self, message: impl Fn() -> Message) {
        let copies = 1 + usize::from(self.random.per_mille(self.faults.doubled));
        for _ in 0..copies {
            if self.random.per_mille(self.faults.lost) {
                continue;
            }
            let late = self.random.per_mille(self.faults.late);
            let delay = self.random.below(if late { 4000 } else { 60 });
            self.put(self.now + delay, message());
        }
    }

    fn put(&mut self, at: u64, message: Message) {
        self.next_message += 1;
        self.messages.insert((at, self.next_message), message);
    }

    fn start_coordinator(&mut self) {
        self.store.fence += 1;
        let fence = self.store.fence;
        let now = Duration::from_millis(self.now);
        let mut random = Random::new(self.random.next());
        let secrets = Secrets::new(move || {
            let (high, low) = (random.next(), random.next());
            Secret::new((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
        });
        let cluster = Cluster::new(fence * EPOCHS, self.config.clone(), secrets, now);
        let slots = BTreeMap::new();
        self.coordinators.push(Coordinator { cluster, slots, answered: 0, alive: true, hung_until: 0 });
        let jobs: Vec<JobId> = self.store.journals.keys().cloned().collect();
        jobs.iter().for_each(|job| self.submit(&job.0));
    }

    /// Hands a job to the newest coordinator.
    fn submit(&mut self, name: &str) {
        let (job, by) = (JobId(name.to_owned()), self.coordinators.len() - 1);
        let (slot, commits) = self.store.open(&job, self.store.fence);
        let submission = Submission {
            job: job.clone(),
            params: self.truth.params.clone(),
            commits,
            committed_bytes: 0,
            least_memory: LeastMemory::new(vec![(1, 100)]),
        };
        self.coordinators[by].slots.insert(job, slot);
        self.coordinators[by].cluster.submit(Duration::from_millis(self.now), submission).unwrap();
        self.act(by);
    }

    fn join(&mut self) {
        self.next_worker += 1;
        let (id, threads) = (WorkerId(self.next_worker), 1 + self.random.below(4) as u32);
        self.workers.push((Worker::new(id, 1, threads, self.now), self.coordinators.len() - 1));
    }

    fn go_wrong(&mut self) {
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
                    let again =
                        Worker::new(worker.id, worker.incarnation + 1, worker.threads, self.now + 300);
                    let old = std::mem::replace(worker, again);
                    let old_target = std::mem::replace(target, newest);
                    // The earlier process may not be dead: it wakes up as a zombie.
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
                    0 => worker.fail(Failure::Peer(other), 0),
                    1 => worker.fail(Failure::Memory("none left".to_owned()), self.now + 1000),
                    _ => worker.fail(Failure::DiskFull("/".to_owned()), self.now + 500),
                }
            } else if self.random.per_mille(faults.leave) {
                worker.leaving = true;
            }
        }
        if self.random.per_mille(faults.restart) {
            self.coordinators.iter_mut().for_each(|coordinator| coordinator.alive = false);
            self.start_coordinator();
        } else if self.random.per_mille(faults.usurp) {
            self.start_coordinator();
        } else if self.random.per_mille(faults.coordinator_hangs) {
            let newest = self.coordinators.len() - 1;
            self.coordinators[newest].hung_until = self.now + self.random.below(3000);
        }
        let jobs: Vec<JobId> = self.store.journals.keys().cloned().collect();
        let job = &jobs[self.random.below(jobs.len() as u64) as usize];
        if self.random.per_mille(faults.lose) {
            let choice = self.random.next();
            self.store.lose(job, choice);
        }
        if self.random.per_mille(faults.meddle) {
            let by = self.coordinators.len() - 1;
            let damaged = self.store.damaged(job);
            let cluster = &mut self.coordinators[by].cluster;
            // Any of these may be refused: the state of the job decides.
            match self.random.below(6) {
                0 | 1 => drop(cluster.cancel(now, job)),
                2 | 3 => drop(cluster.resume(now, job)),
                4 => {
                    for commit in damaged {
                        drop(cluster.shard_lost(now, job, commit.phase, commit.first, commit.last));
                    }
                }
                _ if jobs.len() < 3 => self.submit(&format!("job {}", self.now)),
                _ => {}
            }
            self.act(by);
        }
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

fn job_of(action: &Action) -> JobId {
    match action {
        Action::Commit { job, .. } | Action::Retract { job, .. } => job.clone(),
    }
}

fn config(seed: u64) -> Config {
    let pick = |choices: [u64; 4], what: u64| choices[mix(seed ^ what << 32) as usize % 4];
    Config {
        lease: Duration::from_millis(1000),
        settle: Duration::from_millis(200),
        commit_interval: Duration::from_millis(500),
        shard_bytes: pick([1, 1000, 5000, 100_000], 1),
        window_layers: pick([1, 3, 8, 512], 2) as u32,
        stall: Duration::from_secs(10),
        max_failed_epochs: 5,
        backoff: Duration::from_millis(200),
        retry: Duration::from_millis(200),
        worth_rebalancing: Duration::from_millis(500),
        pause_busy: Duration::from_millis(100),
        pause_idle: Duration::from_millis(200),
    }
}
