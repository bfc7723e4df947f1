//! A worker that follows the protocol without computing.

use std::collections::VecDeque;
use std::sync::Arc;

use exact2048_coordinator::cluster::{
    EpochId, EpochStage, Incarnation, PROTOCOL_VERSION, Pull, PullReply, Refusal, Share, WorkerFailure,
    WorkerId, WorkerReport, WriteShard,
};
use exact2048_solution::{Owners, Phase};

use crate::random::Random;
use crate::store::{ShardName, Store};
use crate::truth::Truth;

pub struct Worker {
    pub id: WorkerId,
    pub incarnation: Incarnation,
    pub threads: u32,
    pub leaving: bool,
    pub working: Option<Working>,
    /// Time in milliseconds before which the worker does nothing at all.
    pub hung_until: u64,
    pub next_pull: u64,
    pub unwell_until: u64,
    /// Probability, in thousandths, that a layer changes in transit to the worker.
    pub flips: u64,
    /// Time before which the worker only pulls.
    pub stuck_until: u64,
    pub is_stuck: bool,
    highest_epoch: EpochId,
    first_report: u64,
    reports: VecDeque<WorkerReport>,
}

pub struct Working {
    pub share: Arc<Share>,
    owners: Owners,
    member: usize,
    /// Number of finished layers.
    pub position: u32,
    /// Number of layers that all members have finished, as last reported by the coordinator.
    finished_by_all: u32,
    /// Number of written layers.
    written: u32,
    write: Option<WriteShard>,
}

impl Worker {
    pub fn new(id: WorkerId, incarnation: Incarnation, threads: u32, now: u64) -> Self {
        Self {
            id,
            incarnation,
            threads,
            leaving: false,
            working: None,
            hung_until: 0,
            next_pull: now,
            unwell_until: 0,
            flips: 0,
            stuck_until: 0,
            is_stuck: false,
            highest_epoch: EpochId(0),
            first_report: 0,
            reports: VecDeque::new(),
        }
    }

    pub fn hung(self, until: u64) -> Self {
        Self { hung_until: until, ..self }
    }

    pub fn epoch(&self) -> Option<EpochId> {
        self.working.as_ref().map(|working| working.share.epoch)
    }

    pub fn pull(&self) -> Pull {
        Pull {
            version: PROTOCOL_VERSION,
            worker: self.id,
            incarnation: self.incarnation,
            threads: self.threads,
            memory_bytes: 1000,
            address: String::new(),
            leaving: self.leaving,
            epoch: self.epoch(),
            stage: EpochStage::Working,
            first_report: self.first_report,
            reports: self.reports.iter().cloned().collect(),
        }
    }

    /// Processes an answer. The answer may belong to a much earlier pull.
    pub fn hear(
        &mut self,
        reply: Result<PullReply, Refusal>,
        store: &Store,
        misread: u64,
        random: &mut Random,
    ) {
        let reply = match reply {
            Ok(reply) => reply,
            Err(Refusal::Superseded { .. }) => return,
            Err(refusal) => {
                self.leaving |= matches!(refusal, Refusal::OldIncarnation { .. });
                return self.working = None;
            }
        };
        while self.first_report < reply.acknowledged && self.reports.pop_front().is_some() {
            self.first_report += 1;
        }
        if self.is_stuck {
            return;
        }
        if reply.withdrawn.is_some() && reply.withdrawn == self.epoch() {
            self.working = None;
        }
        if let Some(share) = reply.share
            && share.epoch > self.highest_epoch
        {
            self.highest_epoch = share.epoch;
            self.begin(share, store, misread, random);
        }
        let Some(working) = &mut self.working else { return };
        if let Some(progress) = reply.progress.filter(|progress| progress.epoch == working.share.epoch) {
            working.finished_by_all = working.finished_by_all.max(progress.finished_layers);
        }
        if let Some(write) = reply.write.filter(|write| write.epoch == working.share.epoch) {
            // A late reply may repeat an order that was carried out long ago.
            if working.range(write).start == working.written {
                working.write = Some(write);
            }
        }
    }

    fn begin(&mut self, share: Arc<Share>, store: &Store, misread: u64, random: &mut Random) {
        if !store.has(&share.job) {
            let failure = WorkerFailure::Other("the run is missing".to_owned());
            self.reports.push_back(WorkerReport::Failed { epoch: Some(share.epoch), failure });
            return self.reports.push_back(WorkerReport::Well);
        }
        // Reading the inputs reveals lost shards, unless a copy is available.
        let damaged = store.lost_files(&share.job).into_iter().find(|_| random.per_mille(700));
        // A worker with bad memory reports intact shards as lost.
        let sound = store.any_file(&share.job, random.next()).filter(|_| random.per_mille(misread));
        if let Some(file) = damaged.map(|(file, _)| file).or(sound) {
            let failure = WorkerFailure::ShardLost { job: share.job.clone(), file };
            self.reports.push_back(WorkerReport::Failed { epoch: Some(share.epoch), failure });
        }
        let (owners, member) = (share.owners(), share.member(self.id).expect("the share of a member"));
        self.working =
            Some(Working { share, owners, member, position: 0, finished_by_all: 0, written: 0, write: None });
    }

    /// Does a random amount of work. `slowest` is the lowest position of all members of the worker's epoch.
    pub fn work(&mut self, truth: &Truth, store: &mut Store, slowest: u32, random: &mut Random) {
        if self.is_stuck {
            return;
        }
        let Some(working) = &mut self.working else { return };
        let share = &working.share;
        let layers = share.segment.layers();
        let furthest = (working.finished_by_all + share.window_layers)
            .min(slowest + 1 + random.below(4) as u32)
            .min(layers);
        let mut steps = random.below(6);
        while working.position < layers {
            let layer = share.segment.layer(working.position);
            let members = share.members.len();
            let mut part = truth.part(share.segment.phase, layer, &working.owners, working.member, members);
            // Layers without a block of this worker take no step.
            if part.totals.fingerprint != 0 {
                if steps == 0 || working.position >= furthest {
                    break;
                }
                steps -= 1;
            }
            working.position += 1;
            if random.per_mille(self.flips) {
                part.received = part.received.wrapping_add(random.next() | 1);
                store.spoil(share.epoch, layer);
            }
            self.reports.push_back(WorkerReport::LayerDone { epoch: share.epoch, part });
        }
        if working.write.is_some() && !store.has(&share.job) {
            self.fail(WorkerFailure::Other("the run is missing".to_owned()), 0);
            return self.recover();
        }
        if let Some(shard) = working.write.take_if(|_| random.per_mille(600)) {
            let name = ShardName {
                job: share.job.clone(),
                phase: share.segment.phase,
                epoch: shard.epoch,
                worker: self.id,
                first: shard.first,
                last: shard.last,
            };
            let range = working.range(shard);
            assert!(range.end <= working.position, "I8: ordered to write unfinished layers");
            let record = format!("{name:?}");
            let part = |position| {
                let layer = share.segment.layer(position);
                let members = share.members.len();
                truth.part(share.segment.phase, layer, &working.owners, working.member, members)
            };
            store.write(name, range.clone().map(|position| part(position).totals.sealed_bytes).sum());
            working.written = range.end;
            self.reports.push_back(WorkerReport::ShardWritten { shard, record });
        }
    }

    /// Fails and drops the worker's work.
    pub fn fail(&mut self, failure: WorkerFailure, until: u64) {
        self.reports.push_back(WorkerReport::Failed { epoch: self.epoch(), failure });
        self.working = None;
        self.unwell_until = until;
    }

    pub fn recover(&mut self) {
        self.unwell_until = 0;
        self.reports.push_back(WorkerReport::Well);
    }
}

impl Working {
    /// Returns the positions of an ordered shard.
    fn range(&self, shard: WriteShard) -> std::ops::Range<u32> {
        let segment = self.share.segment;
        let (start, layers) = match segment.phase {
            Phase::Enumerate => (shard.first.0 - segment.first.0, shard.last.0 - shard.first.0),
            Phase::BackUp => (segment.last.0 - shard.last.0, shard.last.0 - shard.first.0),
        };
        start / 2..start / 2 + layers / 2 + 1
    }
}
