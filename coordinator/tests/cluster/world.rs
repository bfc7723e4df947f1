//! A cluster with all kinds of faults, chosen by a seed.

mod away;
mod ending;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use exact2048_coordinator::cluster::{
    Append, AppendFailure, Claim, Cluster, ClusterConfig, DiskUse, EpochId, Errand, Event, Examined,
    Incarnation, JobId, JobState, JobSummary, LeastMemory, OpenFailure, OpenTicket, Opened, Pull, PullReply,
    Refusal, RunBytes, Secret, Secrets, Share, StoreCheck, Submission, Ticket, WorkerFailure, WorkerId,
};
use exact2048_coordinator::{PassCost, Workload};
use exact2048_solution::{Commit, Phase, Recipe};

use crate::random::{Random, mix};
use crate::store::{EPOCHS, Journal, Store};
use crate::truth::Truth;
use crate::worker::Worker;
pub use trouble::Faults;
use trouble::config;

/// Milliseconds per step.
const STEP: u64 = 50;

/// Maximum number of workers at a time.
const MOST_WORKERS: u64 = 9;

enum Message {
    Pull { to: usize, pull: Pull },
    Reply { worker: WorkerId, incarnation: Incarnation, reply: Result<PullReply, Refusal> },
    Append { by: usize, slot: usize, append: Append, answered: bool, is_copy: bool },
    Appended { by: usize, ticket: Ticket, job: JobId, done: bool },
    Unknown { by: usize, ticket: Ticket, job: JobId, failure: AppendFailure },
    Open { by: usize, ticket: OpenTicket, job: JobId, times: u64, may_make: bool },
    Look { by: usize, job: JobId },
    Examine { by: usize, claim: Claim },
}

/// A coordinator with the state of its shell.
struct Coordinator {
    cluster: Cluster,
    /// Number of the next entry of each journal.
    slots: BTreeMap<JobId, usize>,
    /// The last requested and the last answered append of each journal.
    issued: BTreeMap<JobId, Ticket>,
    answered: BTreeMap<JobId, Ticket>,
    alive: bool,
    hung_until: u64,
    /// Fencing number of the coordinator. It differs from the store's number once another coordinator owns the store.
    fence: u64,
    /// Events that wait because the queue is unavailable.
    to_note: Vec<Event>,
}

pub struct World {
    pub now: u64,
    pub events: u64,
    truth: Truth,
    /// Disk limit of the runs.
    limit: Option<u64>,
    store: Store,
    faults: Faults,
    /// Whether jobs may fail.
    may_fail: bool,
    config: ClusterConfig,
    random: Random,
    coordinators: Vec<Coordinator>,
    workers: Vec<(Worker, usize)>,
    next_worker: u64,
    next_message: u64,
    messages: BTreeMap<(u64, u64), Message>,
    /// All epochs so far.
    shares: BTreeMap<EpochId, Arc<Share>>,
    /// Secrets of the epochs.
    secrets: BTreeSet<[u8; Secret::BYTES]>,
    /// Contents of the queue's journal: the jobs, and the outcomes of ended jobs.
    queue: BTreeMap<JobId, (JobState, JobSummary)>,
    workload: Arc<Workload>,
    cost: Arc<PassCost>,
    /// Time before which the journals of jobs cannot be written.
    locked: BTreeMap<JobId, u64>,
    /// Jobs with a run, according to the queue.
    with_runs: BTreeSet<JobId>,
    /// Times before which the store, and the run of a job, are unavailable.
    away_until: u64,
    aside_until: u64,
    /// Time before which coordinators and workers are starved.
    starved_until: u64,
}

impl World {
    pub fn new(board: &str, seed: u64, workers: u64, faults: Faults) -> Self {
        let truth = Truth::new(board, seed);
        let limit = truth.tight_limit(MOST_WORKERS);
        let is_sound = faults == Faults::default();
        let mut world = Self {
            now: 0,
            events: 0,
            workload: Arc::new(Workload::new(&truth.params)),
            cost: Arc::new(PassCost::new(&truth.params, 1 << 18)),
            truth,
            limit,
            queue: BTreeMap::new(),
            locked: BTreeMap::new(),
            with_runs: BTreeSet::new(),
            away_until: 0,
            aside_until: 0,
            starved_until: 0,
            store: Store::new(limit.filter(|_| is_sound)),
            faults,
            may_fail: faults.may_fail_jobs(),
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

    /// Runs this number of steps.
    pub fn run(&mut self, steps: u64) {
        (0..steps).for_each(|_| self.step());
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
                if self.now < self.starved_until {
                    coordinator.hung_until = self.now + 300 + self.random.below(150);
                }
                self.act(by);
            }
        }
        self.step_workers();
        self.inject_faults();
    }

    fn step_workers(&mut self) {
        for at in 0..self.workers.len() {
            let newest = self.coordinators.len() - 1;
            let slowest = self.slowest(at);
            let (worker, target) = &mut self.workers[at];
            if self.now < worker.hung_until {
                continue;
            }
            worker.is_stuck = self.now < worker.stuck_until;
            if worker.unwell_until != 0 && self.now >= worker.unwell_until {
                worker.recover();
            }
            worker.flips = self.faults.flip;
            worker.work(&self.truth, &mut self.store, slowest, &mut self.random);
            if self.now >= worker.next_pull {
                let starved = if self.now < self.starved_until { self.random.below(2000) } else { 0 };
                worker.next_pull = self.now + 50 + self.random.below(150) + starved;
                if !self.coordinators[*target].alive || self.random.per_mille(100) {
                    *target = newest;
                }
                let message = (*target, worker.pull());
                self.send(|| Message::Pull { to: message.0, pull: message.1.clone() });
            }
        }
        self.workers.retain(|(worker, _)| !(worker.leaving && worker.working.is_none()));
    }

    /// Returns the lowest position of the members of a worker's epoch. A member that has not begun is at position 0.
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
                    worker.hear(reply, &self.store, self.faults.misread, &mut self.random);
                }
            }
            Message::Append { by, slot, append, answered, .. } => {
                let job = append.job().clone();
                if !self.store.has(&job) {
                    if answered {
                        let failure = self.missing_run_failure();
                        self.put(
                            self.now + 1,
                            Message::Unknown { by, ticket: append.ticket(), job, failure },
                        );
                    }
                    return;
                }
                let done = self.store.append(&self.truth, &job, slot, &append);
                if answered {
                    let at = self.now + self.random.below(200);
                    self.put(at, Message::Appended { by, ticket: append.ticket(), job, done });
                }
            }
            Message::Appended { by, ticket, job, done } => {
                let coordinator = &mut self.coordinators[by];
                if !coordinator.alive {
                    return;
                }
                if !done && self.store.fence != coordinator.fence {
                    coordinator.cluster.fence(now);
                } else if !done {
                    let foreign = AppendFailure::Foreign("another process has written".to_owned());
                    coordinator.cluster.append_failed(now, ticket, foreign);
                } else {
                    let answered = coordinator.answered.entry(job.clone()).or_default();
                    if *answered < ticket {
                        *answered = ticket;
                        *coordinator.slots.entry(job.clone()).or_default() += 1;
                    }
                    let stored = stored(&self.store, &job, self.limit);
                    coordinator.cluster.committed(now, ticket, stored);
                }
                self.act(by);
            }
            Message::Unknown { by, ticket, failure, .. } => {
                if self.coordinators[by].alive {
                    self.coordinators[by].cluster.append_failed(now, ticket, failure);
                    self.act(by);
                }
            }
            Message::Open { by, ticket, job, times, may_make } => self.open(by, ticket, job, times, may_make),
            Message::Look { by, job } => self.look(by, &job),
            Message::Examine { by, claim } => {
                let files = self.store.lost_files(&claim.job);
                let lost = files.into_iter().find(|(file, _)| *file == claim.file);
                let found = if !self.store.has(&claim.job) {
                    Examined::Unknown("its run is missing".to_owned())
                } else if let Some((_, lost)) = lost {
                    Examined::Lost(lost)
                } else if self.random.per_mille(self.faults.append) {
                    Examined::Unknown("no answer".to_owned())
                } else {
                    Examined::Sound
                };
                if self.coordinators[by].alive {
                    self.coordinators[by].cluster.examined(now, &claim, found);
                    self.act(by);
                }
            }
        }
    }

    /// Opens the journal of a job for a coordinator, once the job's pending appends are answered.
    fn open(&mut self, by: usize, ticket: OpenTicket, job: JobId, times: u64, may_make: bool) {
        let now = Duration::from_millis(self.now);
        let is_busy = self.messages.values().any(|message| match message {
            Message::Append { by: of, append, is_copy: false, .. } => *of == by && *append.job() == job,
            Message::Appended { by: of, job: other, .. } | Message::Unknown { by: of, job: other, .. } => {
                *of == by && *other == job
            }
            _ => false,
        });
        if is_busy {
            return self.put(self.now + STEP, Message::Open { by, ticket, job, times, may_make });
        }
        let coordinator = &mut self.coordinators[by];
        if !coordinator.alive || !coordinator.cluster.is_opening(ticket) {
            return;
        }
        if self.store.fence != coordinator.fence {
            coordinator.cluster.fence(now);
        } else if let Err(why) = self.find_run(&job, may_make) {
            self.coordinators[by].cluster.not_opened(now, ticket, why);
        } else {
            let coordinator = &mut self.coordinators[by];
            let slot = self.store.open(&job, self.store.fence);
            self.store.clean(&job);
            if let Some(limit) = self.limit {
                self.store.make_room(&self.truth, &job, limit, times);
            }
            coordinator.slots.insert(job.clone(), slot);
            let issued = coordinator.issued.get(&job).copied().unwrap_or_default();
            coordinator.answered.insert(job.clone(), issued);
            let least_memory = Arc::new(LeastMemory::new(vec![(1, 100)]));
            let (workload, cost) = (Arc::clone(&self.workload), Arc::clone(&self.cost));
            let holdings = self.store.journals[&job].holdings();
            let stored = stored(&self.store, &job, self.limit);
            let params = self.truth.params.clone();
            let opened = Opened { params, holdings, stored, missing_bytes: 0, least_memory, workload, cost };
            coordinator.cluster.opened(now, ticket, opened);
        }
        self.act(by);
    }

    /// Writes the outcomes of jobs to the queue, as long as the coordinator owns it.
    fn note(&mut self, by: usize) {
        let coordinator = &mut self.coordinators[by];
        let events = coordinator.cluster.take_events();
        if self.store.fence != coordinator.fence {
            return;
        }
        coordinator.to_note.extend(events);
        if !self.store.is_there() {
            return;
        }
        for event in std::mem::take(&mut coordinator.to_note) {
            match event {
                Event::Job { job, state } => {
                    if state == JobState::Done {
                        let holdings = self.store.journals[&job].holdings();
                        let left = Recipe::new(&self.truth.params, &holdings).steps();
                        assert_eq!(left, [], "I12: {job} is done but its run is not");
                    }
                    let is_failed = matches!(state, JobState::Failed { .. });
                    assert!(!is_failed || self.may_fail, "I12: {job}: {state:?}");
                    let known = self.queue.get_mut(&job).unwrap();
                    if state.has_ended() {
                        let summary = coordinator.cluster.job_summary(&job).unwrap_or(&known.1).clone();
                        *known = (state, summary);
                    } else {
                        known.0 = JobState::Queued;
                    }
                }
                Event::Progress { job } => {
                    // The job may be forgotten by now, because records wait while the store is unavailable.
                    let Some(now) = coordinator.cluster.job_summary(&job) else { continue };
                    let known = self.queue.get_mut(&job).unwrap();
                    assert!(
                        now.epochs >= known.1.epochs && now.retries >= known.1.retries,
                        "{known:?}, {now:?}"
                    );
                    known.1 = now.clone();
                }
                Event::Forgotten { job } => drop(self.queue.remove(&job)),
                _ => {}
            }
        }
    }

    /// Carries out a coordinator's requests.
    fn act(&mut self, by: usize) {
        self.note(by);
        for errand in self.coordinators[by].cluster.take_errands() {
            let at = self.now + self.random.below(300);
            match errand {
                Errand::Open { ticket, job, times, may_make } => {
                    self.put(at, Message::Open { by, ticket, job, times, may_make });
                }
                Errand::Look(job) => self.put(at, Message::Look { by, job }),
                Errand::Examine(claim) => self.put(at, Message::Examine { by, claim }),
            }
        }
        for append in self.coordinators[by].cluster.take_appends() {
            // The run of a done job is not open yet. It is opened for the append.
            let job = append.job().clone();
            if !self.store.has(&job) {
                let (ticket, failure) = (append.ticket(), self.missing_run_failure());
                self.put(self.now + 1, Message::Unknown { by, ticket, job, failure });
                continue;
            }
            if !self.coordinators[by].slots.contains_key(&job) {
                if self.store.fence != self.coordinators[by].fence {
                    self.coordinators[by].cluster.fence(Duration::from_millis(self.now));
                    continue;
                }
                let slot = self.store.open(&job, self.store.fence);
                self.coordinators[by].slots.insert(job.clone(), slot);
            }
            let slot = self.coordinators[by].slots[&job];
            let ticket = append.ticket();
            self.coordinators[by].issued.insert(job.clone(), ticket);
            let (lost, silent) =
                (self.random.per_mille(self.faults.append), self.random.per_mille(self.faults.append));
            let at = self.now + self.random.below(100);
            if self.locked.get(&job).is_some_and(|until| self.now < *until) {
                let failure = AppendFailure::Journal("it is locked".to_owned());
                self.put(at, Message::Unknown { by, ticket, job, failure });
                continue;
            }
            if lost || silent {
                let later = at + 200 + self.random.below(500);
                let failure = AppendFailure::Store("no answer".to_owned());
                self.put(later, Message::Unknown { by, ticket, job, failure });
            }
            if !lost {
                if self.random.per_mille(self.faults.doubled) {
                    let late = at + self.random.below(3000);
                    self.put(
                        late,
                        Message::Append { by, slot, append: append.clone(), answered: true, is_copy: true },
                    );
                }
                self.put(at, Message::Append { by, slot, append, answered: !silent, is_copy: false });
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
        let cluster = Cluster::new(EpochId(fence * EPOCHS), self.config.clone(), secrets, now);
        let slots = BTreeMap::new();
        self.coordinators.push(Coordinator {
            cluster,
            slots,
            issued: BTreeMap::new(),
            answered: BTreeMap::new(),
            alive: true,
            hung_until: 0,
            fence,
            to_note: Vec::new(),
        });
        let by = self.coordinators.len() - 1;
        for (job, (state, summary)) in self.queue.clone() {
            let submission = Submission { state, summary, ..self.submission(&job) };
            self.coordinators[by].cluster.restore(now, submission).unwrap();
        }
        self.act(by);
    }

    /// Submits a job to the newest coordinator.
    fn submit(&mut self, name: &str) {
        let (job, by) = (JobId(name.to_owned()), self.coordinators.len() - 1);
        let submission = self.submission(&job);
        self.queue.insert(job, (JobState::Queued, JobSummary::default()));
        self.coordinators[by].cluster.submit(Duration::from_millis(self.now), submission).unwrap();
        self.act(by);
    }

    fn submission(&self, job: &JobId) -> Submission {
        Submission {
            job: job.clone(),
            params: self.truth.params.clone(),
            disk_limit: self.limit,
            // A run with the job's name may exist, from a forgotten job.
            has_run: self.with_runs.contains(job),
            least_memory: None,
            state: JobState::Queued,
            summary: JobSummary::default(),
        }
    }

    fn join(&mut self) {
        self.next_worker += 1;
        let (id, threads) = (WorkerId(self.next_worker), 1 + self.random.below(4) as u32);
        self.workers.push((Worker::new(id, Incarnation(1), threads, self.now), self.coordinators.len() - 1));
    }
}

/// Returns the size of a job's run, as counted by the process that has it open.
fn stored(store: &Store, job: &JobId, limit: Option<u64>) -> RunBytes {
    let taken = store.taken(job);
    let disk = limit.map(|limit_bytes| DiskUse {
        limit_bytes,
        taken_bytes: taken,
        peak_bytes: taken,
        free_bytes: limit_bytes.saturating_sub(taken),
    });
    RunBytes { committed_bytes: taken, disk }
}
