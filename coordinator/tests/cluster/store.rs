//! The store shared by all coordinators and workers: journals, shards and the fencing record. Every append checks the
//! invariants of `docs/dev/cluster-protocol.md` that concern the store.

use std::collections::{BTreeMap, BTreeSet};

use exact2048_coordinator::cluster::{Append, EpochId, JobId, WorkerId};
use exact2048_coordinator::room::{headroom, next_removals};
use exact2048_game::Layer;
use exact2048_solution::{Commit, CommittedRange, Holdings, LayerRange, Phase, Recipe};

use crate::truth::Truth;

/// Epochs of one fencing number.
pub const EPOCHS: u64 = 1 << 32;

/// Name of a shard.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ShardName {
    pub epoch: EpochId,
    pub worker: WorkerId,
    pub first: Layer,
    pub last: Layer,
    pub phase: Phase,
    pub job: JobId,
}

impl ShardName {
    /// Returns the name of the shard's file.
    pub fn file(&self) -> String {
        let Self { epoch, worker, first, last, phase, job } = self;
        format!("{job}/{epoch}/{worker}/{phase:?}-{first}-{last}.shard")
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    Fence(u64),
    Append(Append),
    /// A record by a process that is not a coordinator.
    Foreign,
}

/// A commit that is not retracted, with its shards.
#[derive(Clone, Debug)]
pub struct LiveCommit {
    pub commit: Commit,
    pub shards: Vec<ShardName>,
    /// Whether the commit's reach is still stored.
    pub is_stored: bool,
}

#[derive(Default)]
pub struct Journal {
    pub entries: Vec<Entry>,
    pub live: Vec<LiveCommit>,
    pub has_lost: bool,
}

impl Journal {
    pub fn holdings(&self) -> Holdings {
        let holding = |live: &LiveCommit| CommittedRange {
            commit: live.commit.clone(),
            is_stored: live.is_stored,
            has_checkpoint: false,
        };
        Holdings::new(self.live.iter().map(holding).collect())
    }

    fn stored(&self) -> impl Iterator<Item = &LiveCommit> {
        self.live.iter().filter(|live| live.is_stored)
    }
}

/// Disk space of a file in addition to its contents.
pub const FILE_BYTES: u64 = 100;

pub struct Store {
    pub fence: u64,
    pub journals: BTreeMap<JobId, Journal>,
    /// The shards, with their disk space.
    pub shards: BTreeMap<ShardName, u64>,
    /// Disk limit of a job's shards; `None` if faults may exceed it.
    limit: Option<u64>,
    lost: BTreeSet<ShardName>,
    /// Layers, by epoch, for which a member received data that differs from the sent data.
    spoilt: BTreeSet<(EpochId, Layer)>,
    is_away: bool,
    /// The run that was moved aside.
    aside: Option<JobId>,
}

impl Store {
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            fence: 0,
            journals: BTreeMap::new(),
            shards: BTreeMap::new(),
            limit,
            lost: BTreeSet::new(),
            spoilt: BTreeSet::new(),
            is_away: false,
            aside: None,
        }
    }

    /// Returns whether the store is available.
    pub fn is_there(&self) -> bool {
        !self.is_away
    }

    /// Returns whether the store and the run of a job exist.
    pub fn has(&self, job: &JobId) -> bool {
        self.is_reached(job) && self.journals.contains_key(job)
    }

    /// Returns whether the place of a job's run is available, with or without a run.
    pub fn is_reached(&self, job: &JobId) -> bool {
        !self.is_away && self.aside.as_ref() != Some(job)
    }

    pub fn go_away(&mut self) {
        self.is_away = true;
    }

    pub fn come_back(&mut self) {
        self.is_away = false;
    }

    /// Moves the run of a job aside. Returns whether the run exists.
    pub fn put_aside(&mut self, job: &JobId) -> bool {
        let is_there = self.has(job);
        if is_there {
            self.aside = Some(job.clone());
        }
        is_there
    }

    /// Restores the run that was moved aside.
    pub fn put_back(&mut self) {
        self.aside = None;
    }

    /// Creates the run of a job.
    pub fn make(&mut self, job: &JobId) {
        assert!(!self.is_away, "I12: the run of {job} is created while the store is unavailable");
        let before = self.journals.insert(job.clone(), Journal::default());
        assert!(before.is_none(), "I12: the run of {job} is created twice");
    }

    /// Records that a member received data for a layer that differs from the sent data.
    pub fn spoil(&mut self, epoch: EpochId, layer: Layer) {
        self.spoilt.insert((epoch, layer));
    }

    /// Opens the journal of a job for a coordinator, so that earlier owners can no longer append. Returns the
    /// number of entries.
    pub fn open(&mut self, job: &JobId, fence: u64) -> usize {
        assert!(self.has(job), "I12: the run of {job} is opened but missing");
        let journal = self.journals.get_mut(job).unwrap();
        journal.entries.push(Entry::Fence(fence));
        journal.entries.len()
    }

    /// Deletes a job's shards that no commit names.
    pub fn clean(&mut self, job: &JobId) {
        let journal = &self.journals[job];
        let named: BTreeSet<&ShardName> = journal.live.iter().flat_map(|live| &live.shards).collect();
        self.shards.retain(|name, _| name.job != *job || named.contains(name));
    }

    /// Removes unneeded data of a job's run, and then repeatable reach until `times` times the usual headroom is
    /// free.
    pub fn make_room(&mut self, truth: &Truth, job: &JobId, limit: u64, times: u64) {
        loop {
            let holdings = self.journals[job].holdings();
            let recipe = Recipe::new(&truth.params, &holdings);
            let free = limit.cast_signed() - self.taken(job).cast_signed();
            let mut removed = next_removals(&recipe, limit, free, times);
            // After enumeration, the real coordinator decides by an estimate. The simulation uses the free space
            // instead.
            if removed.is_empty() && free < (times * headroom(limit)).cast_signed() {
                removed = recipe.repeatable().into_iter().take(1).collect();
            }
            if removed.is_empty() {
                return;
            }
            self.remove(truth, job, &removed);
        }
    }

    /// Returns the space of a job's committed shards.
    pub fn taken(&self, job: &JobId) -> u64 {
        let stored = self.journals[job].stored();
        stored.flat_map(|live| &live.shards).filter_map(|name| self.shards.get(name)).sum()
    }

    fn remove(&mut self, truth: &Truth, job: &JobId, removed: &[LayerRange]) {
        let journal = self.journals.get_mut(job).unwrap();
        for range in removed {
            let mut layers = (range.first.0..=range.last.0).step_by(2).map(Layer);
            assert!(
                layers.all(|layer| !truth.params.contents().stores_reachability(layer)),
                "I13: {range:?} must be kept"
            );
            let is_of_it = |live: &&mut LiveCommit| {
                live.is_stored && live.commit.phase == Phase::Enumerate && range.covers(&live.commit)
            };
            for live in journal.live.iter_mut().filter(is_of_it) {
                live.is_stored = false;
                self.shards.retain(|name, _| !live.shards.contains(name));
            }
        }
    }

    /// Creates entry `slot` of a journal if it does not exist. Returns whether the entry is now this append.
    pub fn append(&mut self, truth: &Truth, job: &JobId, slot: usize, append: &Append) -> bool {
        let entries = &self.journals[job].entries;
        assert!(slot <= entries.len(), "an entry after a gap");
        if let Some(entry) = entries.get(slot) {
            return *entry == Entry::Append(append.clone());
        }
        self.check_and_apply(truth, job, append);
        let journal = self.journals.get_mut(job).unwrap();
        journal.entries.push(Entry::Append(append.clone()));
        true
    }

    /// Writes a record to a journal as a process that is not a coordinator.
    pub fn write_foreign(&mut self, job: &JobId) {
        self.journals.get_mut(job).unwrap().entries.push(Entry::Foreign);
    }

    /// Writes a shard with this many bytes of blocks.
    pub fn write(&mut self, name: ShardName, bytes: u64) {
        assert!(self.has(&name.job), "I12: {name:?} is written but its run is missing");
        let journal = self.journals.get(&name.job);
        let mut live = journal.iter().flat_map(|journal| &journal.live).flat_map(|live| &live.shards);
        assert!(live.all(|shard| *shard != name), "I6: {name:?} is committed, and written again");
        let of_job = self.shards.iter().filter(|(other, _)| other.job == name.job);
        let taken = of_job.map(|(_, bytes)| bytes).sum::<u64>() + bytes + FILE_BYTES;
        let limit = self.limit.unwrap_or(u64::MAX);
        assert!(taken <= limit, "I14: {taken} bytes with {name:?} exceed {limit}");
        self.shards.insert(name, bytes + FILE_BYTES);
    }

    /// Loses a shard of a live commit.
    pub fn lose(&mut self, job: &JobId, choice: u64) {
        let Some(journal) = self.journals.get_mut(job).filter(|_| !self.is_away) else { return };
        let stored: Vec<&LiveCommit> = journal.stored().collect();
        if stored.is_empty() {
            return;
        }
        let live = stored[choice as usize % stored.len()];
        let shard = &live.shards[(choice >> 32) as usize % live.shards.len()];
        self.shards.remove(shard);
        self.lost.insert(shard.clone());
        journal.has_lost = true;
    }

    /// Returns the file of a shard of a random live commit of a job.
    pub fn any_file(&self, job: &JobId, choice: u64) -> Option<String> {
        let stored: Vec<_> = self.journals.get(job)?.stored().collect();
        Some(stored.get(choice as usize % stored.len().max(1))?.shards[0].file())
    }

    /// Returns a job's live commits with a lost shard.
    pub fn damaged(&self, job: &JobId) -> Vec<Commit> {
        self.lost_files(job).into_iter().map(|(_, commit)| commit).collect()
    }

    /// Returns each of a job's live commits with a lost shard, and the file of that shard.
    pub fn lost_files(&self, job: &JobId) -> Vec<(String, Commit)> {
        let Some(journal) = self.journals.get(job).filter(|journal| journal.has_lost) else {
            return Vec::new();
        };
        let lost = |live: &LiveCommit| {
            let shard = live.shards.iter().find(|shard| self.lost.contains(shard))?;
            Some((shard.file(), live.commit.clone()))
        };
        journal.stored().filter_map(lost).collect()
    }

    fn check_and_apply(&mut self, truth: &Truth, job: &JobId, append: &Append) {
        let journal = self.journals.get_mut(job).unwrap();
        let fence = journal.entries.iter().rev().find_map(|entry| match entry {
            Entry::Fence(fence) => Some(*fence),
            Entry::Append(_) | Entry::Foreign => None,
        });
        match append {
            Append::Commit { epoch, commit, shards, .. } => {
                let by = Some(epoch.0 / EPOCHS);
                assert_eq!(by, fence, "I5: only the coordinator of the last fence commits");
                let earlier = journal.entries.iter().filter_map(|entry| match entry {
                    Entry::Append(Append::Commit { epoch, .. } | Append::Retract { epoch, .. }) => {
                        Some(*epoch)
                    }
                    Entry::Append(Append::Remove { .. }) | Entry::Fence(_) | Entry::Foreign => None,
                });
                assert!(earlier.max().is_none_or(|earlier| earlier <= *epoch), "I4: epochs never go back");
                for live in journal.stored().filter(|live| live.commit.phase == commit.phase) {
                    let apart = live.commit.last < commit.first || live.commit.first > commit.last;
                    assert!(apart, "I1: {commit:?} overlaps {:?}", live.commit);
                }
                let spoilt = self.spoilt.range((*epoch, commit.first)..=(*epoch, commit.last)).next();
                assert_eq!(spoilt, None, "I10: {commit:?} contains wrongly received data");
                check_order(truth, journal, commit);
                check_sums(truth, commit);
                let name = |worker| ShardName {
                    job: job.clone(),
                    phase: commit.phase,
                    epoch: *epoch,
                    worker,
                    first: commit.first,
                    last: commit.last,
                };
                let names: Vec<ShardName> = shards.iter().map(|shard| name(shard.worker)).collect();
                for (name, shard) in names.iter().zip(shards) {
                    assert_eq!(format!("{name:?}"), shard.record, "I6: the record of another shard");
                    assert!(self.shards.contains_key(name), "I6: {name:?} is not in the store");
                }
                journal.live.push(LiveCommit { commit: commit.clone(), shards: names, is_stored: true });
            }
            Append::Retract { epoch, commit, .. } => {
                assert_eq!(Some(epoch.0 / EPOCHS), fence, "I5: only the last coordinator retracts");
                let at = journal.live.iter().position(|live| live.is_stored && live.commit == *commit);
                let live = journal.live.swap_remove(at.expect("I3: a retracted commit was live"));
                let lost = live.shards.iter().any(|shard| self.lost.contains(shard));
                assert!(lost, "I3: {commit:?} is retracted though it is complete");
            }
            Append::Remove { removed, .. } => self.remove(truth, job, removed),
        }
    }
}

/// Checks I2 and I13: the inputs of a range are committed before the range, and the reach among them is stored.
fn check_order(truth: &Truth, journal: &Journal, commit: &Commit) {
    let holds = |phase, layer: u32| {
        let covers = |live: &LiveCommit| {
            live.commit.phase == phase && (live.commit.first.0..=live.commit.last.0).contains(&layer)
        };
        journal.live.iter().any(covers)
    };
    let stores = |layer: u32| {
        let covers = |live: &LiveCommit| {
            live.commit.phase == Phase::Enumerate
                && (live.commit.first.0..=live.commit.last.0).contains(&layer)
        };
        journal.stored().any(covers)
    };
    let last = truth.params.last_layer().0;
    match commit.phase {
        Phase::Enumerate => {
            let first = commit.first.0;
            assert!((4..first).step_by(2).all(|below| holds(Phase::Enumerate, below)), "I2: {commit:?}");
            let mut below = (4..first).step_by(2).rev().take(2);
            assert!(below.all(stores), "I13: reach below {commit:?} is removed");
        }
        Phase::BackUp => {
            assert!((4..=last).step_by(2).all(|layer| holds(Phase::Enumerate, layer)), "I2: {commit:?}");
            let first = commit.first;
            let mut above = (first.0..=last.min(commit.last.0 + 4)).step_by(2);
            assert!(above.all(stores), "I13: reach of {commit:?} is removed");
            assert!(
                truth.params.contents().kept().is_cut(first) || first.0 == 4,
                "I2: {commit:?} does not end in a cut"
            );
            let above = (commit.last.0 + 2..=last).step_by(2);
            assert!(above.into_iter().all(|layer| holds(Phase::BackUp, layer)), "I2: {commit:?}");
        }
    }
}

/// Checks I7: counts and fingerprint of a range equal the true values, whichever worker computed the range.
fn check_sums(truth: &Truth, commit: &Commit) {
    let layers = (commit.first.0..=commit.last.0).step_by(2).map(Layer);
    match commit.phase {
        Phase::Enumerate => {
            let counts: Vec<_> = layers.map(|layer| truth.counts(layer)).collect();
            assert_eq!(commit.layers, counts, "I7");
        }
        Phase::BackUp => {
            let sum = layers.fold(0u128, |sum, layer| {
                sum.wrapping_add(truth.layer(Phase::BackUp, layer).totals.fingerprint)
            });
            assert_eq!(commit.fingerprint, Some(sum), "I7");
        }
    }
}
