//! The committed shards of a run, and the layers that they cover.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_game::{Lane, Layer, Params};
use exact2048_storage::{ItemKey, ShardIdentity, ShardKind, ShardRecord, Shards, StorageError, TypedRun};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::commit::{Commit, LayerCounts, Phase};
use crate::owners::{MOST_MEMBERS, Owners};
use crate::read_error::Blame;
use crate::recipe::{CommittedRange, Holdings, LayerRange, is_removed, needed_checkpoint};
use crate::records::{JournalRecord, Record, Removal, Retraction, WorkTime};
use open::OpenShards;
use ranges::{Range, Ranges};
pub use shard::CatalogShard;

mod open;
mod ranges;
mod shard;

/// Time that all committed work of a phase took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassTime {
    /// Seconds of wall-clock time.
    pub seconds: f64,
    /// Number of computing threads; `None` if it changed.
    pub threads: Option<u32>,
}

/// The committed shards of a run. Grows while the run is written.
#[derive(Debug)]
pub struct Catalog {
    files: Arc<Shards>,
    params: Params,
    rule_hash: u64,
    ranges: RwLock<Ranges>,
    open: Arc<OpenShards>,
    next_serial: AtomicU64,
    /// Work times of repeated enumerations whose shards were removed later.
    again: Mutex<Vec<Option<WorkTime>>>,
    old: OldShards,
    /// The members' threads of the last record that has them, and the owners of lanes for these threads.
    last_owners: Mutex<Option<(Vec<u32>, Arc<Owners>)>>,
}

/// The shards that no longer count.
#[derive(Default, Debug)]
struct OldShards {
    /// Shards of checkpoints whose files may still exist.
    dropped: Mutex<Vec<ShardRecord>>,
    /// All of them, by the names of their files. `Some` as long as a replaced file may still exist.
    superseded: Mutex<HashMap<String, Option<Superseded>>>,
}

/// A shard that no longer counts, and its range.
#[derive(Debug)]
struct Superseded {
    commit: Arc<Commit>,
    record: ShardRecord,
}

/// The layers whose states a commit counts.
fn layers_of(commit: &Commit) -> impl Iterator<Item = Layer> + '_ {
    commit.layers.iter().map(|counts| counts.layer)
}

impl Catalog {
    /// An empty catalog for an open run.
    pub fn new(dir: &TypedRun<JournalRecord>, params: &Params, rule_hash: u64) -> Self {
        Self {
            files: Arc::new(dir.shards()),
            params: params.clone(),
            rule_hash,
            ranges: RwLock::default(),
            open: Arc::default(),
            next_serial: AtomicU64::new(0),
            again: Mutex::default(),
            old: OldShards::default(),
            last_owners: Mutex::default(),
        }
    }

    /// The files or objects of the shards.
    pub fn files(&self) -> &Shards {
        &self.files
    }

    /// The identity of a shard of this phase and range.
    pub fn identity(&self, phase: Phase, first: Layer, last: Layer) -> ShardIdentity {
        self.identity_of(phase.shard_kind(), first, last)
    }

    /// The identity of a shard of this kind that belongs to a range. A checkpoint has the two lowest layers of its range.
    pub fn identity_of(&self, kind: ShardKind, first: Layer, last: Layer) -> ShardIdentity {
        let last = if kind == ShardKind::Checkpoint { first.up(1) } else { last };
        ShardIdentity {
            run: self.files.run_id(),
            kind,
            rows: self.params.game().board().rows() as u8,
            cols: self.params.game().board().cols() as u8,
            first_layer: first.0,
            last_layer: last.0,
            rule_hash: self.rule_hash,
        }
    }

    /// Adds the next record of the journal.
    ///
    /// A commit replaces all older ranges of its phase that share a layer with it. The shards of such a range must have
    /// been lost, because only then is a layer computed again. Ranges whose shards were removed stay for their counts,
    /// even if the same layers are enumerated again and that commit is retracted.
    ///
    /// # Errors
    ///
    /// If the record is malformed, or changes parameters after values were committed; the text describes the
    /// fault.
    pub fn add(&self, record: JournalRecord) -> Result<(), String> {
        let record = match record {
            JournalRecord::Commit(record) => record,
            JournalRecord::Retraction(Retraction { retracted }) => {
                self.retain(|range| !range.is_stored() || *range.commit != retracted);
                return Ok(());
            }
            JournalRecord::Amendment(_) if self.has_values() => {
                return Err(
                    "expected an amendment only before committed values, found one after them".to_owned()
                );
            }
            JournalRecord::Amendment(_) => return Ok(()),
            JournalRecord::Removal(Removal { removed }) => {
                self.remove_reach(&removed);
                return Ok(());
            }
        };
        let Record { commit, shards, lanes, threads, checkpoint, took } = record;
        if let Some(fault) = took.and_then(WorkTime::fault) {
            return Err(fault);
        }
        if !lanes.is_empty() && !threads.is_empty() {
            return Err("expected lanes or threads of several shards, found both".to_owned());
        }
        let expected = lanes.len().max(threads.len()).max(1);
        if shards.len() != expected || expected > MOST_MEMBERS {
            return Err(format!("expected {} shards, found {}", expected.min(MOST_MEMBERS), shards.len()));
        }
        let has_checkpoint =
            commit.phase == Phase::BackUp && self.params.contents().has_checkpoint(commit.first);
        let expected = if has_checkpoint { expected } else { 0 };
        if checkpoint.len() != expected {
            return Err(format!("expected {expected} shards of a checkpoint, found {}", checkpoint.len()));
        }
        // A name must not lead out of the run's folder, because shards are read and removed by name.
        let is_name = |shard: &ShardRecord| !shard.file.is_empty() && shard.id().file() == shard.file;
        if let Some(shard) = shards.iter().chain(&checkpoint).find(|shard| !is_name(shard)) {
            return Err(format!("expected the name of a shard in the run's folder, found {:?}", shard.file));
        }
        let Commit { first, last, .. } = commit;
        if [first, last].iter().any(|layer| Layer::of_sum(layer.0).is_none())
            || first > last
            || last > self.params.last_layer()
        {
            return Err(format!("expected a range of layers of the board, found {first} to {last}"));
        }
        let owners = match (lanes.is_empty(), threads.is_empty()) {
            (true, true) => None,
            (false, _) => Some(Arc::new(Owners::of_record(&lanes)?)),
            (true, false) => Some(self.older_owners(threads)),
        };
        let commit = Arc::new(commit);
        let cataloged = |records: Vec<ShardRecord>| -> Vec<Arc<CatalogShard>> {
            records.into_iter().map(|record| Arc::new(self.shard(&commit, record))).collect()
        };
        let (shards, checkpoint) = (cataloged(shards), cataloged(checkpoint));
        self.retain(|old| {
            !old.is_stored() || !old.commit.has_any_of(commit.phase, commit.first, commit.last)
        });
        self.write().all_mut().push(Range { commit, shards, checkpoint, owners, took });
        self.drop_checkpoints();
        Ok(())
    }

    /// Removes the checkpoints that no later step needs.
    fn drop_checkpoints(&self) {
        let mut ranges = self.write();
        if ranges.all().iter().all(|range| range.checkpoint.is_empty()) {
            return;
        }
        let all = ranges.all().iter().map(|range| (&*range.commit, !range.checkpoint.is_empty()));
        let needed = needed_checkpoint(all);
        let (mut dropped, mut superseded) = (self.old.dropped.lock(), self.old.superseded.lock());
        for range in ranges.all_mut().iter_mut().filter(|range| Some(range.commit.first) != needed) {
            for shard in range.checkpoint.drain(..) {
                superseded.insert(shard.record.file.clone(), None);
                dropped.push(shard.record.clone());
            }
        }
    }

    /// Returns the shards of checkpoints that no longer count, each only once, so that the caller can remove their files.
    pub fn take_dropped(&self) -> Vec<ShardRecord> {
        std::mem::take(&mut *self.old.dropped.lock())
    }

    /// Returns the owners of lanes in a record that names the members' threads. Keeps the result, because the next
    /// record usually has the same members.
    fn older_owners(&self, threads: Vec<u32>) -> Arc<Owners> {
        let mut last = self.last_owners.lock();
        match &*last {
            Some((same, owners)) if *same == threads => Arc::clone(owners),
            _ => {
                let owners = Arc::new(Owners::by_formula(&self.params, &threads));
                *last = Some((threads, Arc::clone(&owners)));
                owners
            }
        }
    }

    /// Whether values are committed.
    pub fn has_values(&self) -> bool {
        self.read().all().iter().any(|range| range.commit.phase == Phase::BackUp)
    }

    /// Removes from the catalog all ranges for which `keep` is false.
    fn retain(&self, keep: impl Fn(&Range) -> bool) {
        let mut ranges = self.write();
        let mut superseded = self.old.superseded.lock();
        for range in ranges.all_mut().extract_if(.., |range| !keep(range)) {
            superseded.extend(range.all_shards().map(|shard| {
                let (commit, record) = (Arc::clone(&shard.commit), shard.record.clone());
                (record.file.clone(), Some(Superseded { commit, record }))
            }));
        }
    }

    /// Records that the files of all shards that no longer count are removed, or that the next opening of the run
    /// removes them.
    pub fn forget_superseded(&self) {
        self.old.superseded.lock().values_mut().for_each(|shard| *shard = None);
        self.old.dropped.lock().clear();
    }

    /// Returns the shards that a new commit replaces, each only once, so that the caller can remove their files. A
    /// shard that was only reported lost still counts in the journal until a commit replaces it.
    pub fn take_superseded(&self, by: &Commit) -> Vec<ShardRecord> {
        let ranges = self.read();
        let mut superseded = self.old.superseded.lock();
        let is_replaced = |shard: &mut Superseded| shard.commit.has_any_of(by.phase, by.first, by.last);
        let replaced = superseded.values_mut().filter_map(|shard| shard.take_if(is_replaced));
        let mut replaced: Vec<ShardRecord> = replaced.map(|shard| shard.record).collect();
        if !replaced.is_empty() {
            // A recomputed shard may have the name of the shard that it replaces.
            let counting = ranges.all().iter().flat_map(Range::all_shards);
            let counting: HashSet<&str> = counting.map(|shard| shard.record.file.as_str()).collect();
            replaced.retain(|shard| !counting.contains(shard.file.as_str()));
        }
        replaced
    }

    /// Removes the shards of the enumerated ranges inside one of `removed` from the catalog. The counts of these ranges
    /// stay, once for each layer.
    fn remove_reach(&self, removed: &[LayerRange]) {
        let mut ranges = self.write();
        let mut superseded = self.old.superseded.lock();
        let counted: HashSet<Layer> = ranges
            .all()
            .iter()
            .filter(|range| !range.is_stored())
            .flat_map(|range| layers_of(&range.commit))
            .collect();
        ranges.all_mut().retain_mut(|range| {
            // Other ranges stay, and so do ranges of which only the counts are left.
            if !range.is_stored() || !is_removed(&range.commit, removed) {
                return true;
            }
            // `Run::remove_reach` removes the files, so no later commit has to.
            superseded.extend(range.shards.drain(..).map(|shard| (shard.record.file.clone(), None)));
            let is_counted = range.commit.first.to(range.commit.last).all(|layer| counted.contains(&layer));
            // An earlier range already has the counts of layers that were enumerated again.
            if is_counted {
                self.again.lock().push(range.took);
            }
            !is_counted
        });
    }

    /// The shard records of the enumerated ranges inside one of `ranges`.
    pub fn reach_of(&self, ranges: &[LayerRange]) -> Vec<ShardRecord> {
        let held = self.read();
        let those = held.all().iter().filter(|range| is_removed(&range.commit, ranges));
        those.flat_map(|range| &range.shards).map(|shard| shard.record.clone()).collect()
    }

    /// Returns the known and the new counts of the first layer whose counts in a new commit differ from the known ones.
    /// Every enumeration of a layer finds the same states, so a difference is a fault.
    pub fn counted_otherwise(&self, commit: &Commit) -> Option<(LayerCounts, LayerCounts)> {
        let counts = self.holdings().counts();
        let mut pairs = commit.layers.iter().filter_map(|now| Some((*counts.get(&now.layer)?, *now)));
        pairs.find(|(before, now)| before != now)
    }

    /// The counts of the layers that have states, ascending.
    pub fn layer_counts(&self) -> Vec<LayerCounts> {
        self.holdings().counts().into_values().filter(|counts| counts.states > 0).collect()
    }

    /// The ranges that the journal holds.
    pub fn holdings(&self) -> Holdings {
        let held = |range: &Range| CommittedRange {
            commit: Commit::clone(&range.commit),
            is_stored: range.is_stored(),
            has_checkpoint: !range.checkpoint.is_empty(),
        };
        Holdings::new(self.read().all().iter().map(held).collect())
    }

    /// Returns those of the given files that no journal record names.
    pub fn unnamed<'a>(&self, files: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let ranges = self.read();
        let superseded = self.old.superseded.lock();
        let shards = ranges.all().iter().flat_map(Range::all_shards);
        let counting: HashSet<&str> = shards.map(|shard| shard.record.file.as_str()).collect();
        files.into_iter().filter(|file| !counting.contains(file) && !superseded.contains_key(*file)).collect()
    }

    fn shard(&self, commit: &Arc<Commit>, record: ShardRecord) -> CatalogShard {
        let identity = self.identity_of(record.kind, commit.first, commit.last);
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        CatalogShard::new((commit, record, serial), identity, &self.files, &self.open)
    }

    /// Replaces the shard that holds an item by an unopened one. The next use then opens the file again, which may have
    /// been repaired.
    pub fn reopen(&self, kind: ShardKind, key: ItemKey) {
        let Some(open) = self.find(kind, key) else { return };
        let unopened = Arc::new(self.shard(&open.commit, open.record.clone()));
        let mut ranges = self.write();
        let shards = ranges
            .all_mut()
            .iter_mut()
            .flat_map(|range| range.shards.iter_mut().chain(&mut range.checkpoint));
        shards.filter(|shard| shard.serial == open.serial).for_each(|shard| *shard = Arc::clone(&unopened));
    }

    /// Removes the range of a lost or damaged shard from the catalog, or only the checkpoint if the shard is part of it.
    pub fn remove(&self, shard: &CatalogShard) {
        let is_same = |other: &Arc<CatalogShard>| other.serial == shard.serial;
        let mut ranges = self.write();
        ranges.all_mut().iter_mut().for_each(|range| {
            if range.checkpoint.iter().any(is_same) {
                let lost = range.checkpoint.drain(..).map(|shard| (shard.record.file.clone(), None));
                self.old.superseded.lock().extend(lost);
            }
        });
        drop(ranges);
        self.retain(|range| range.shards.iter().all(|other| other.serial != shard.serial));
    }

    /// The shard that an error blames, if the shard counts.
    pub fn blamed(&self, blame: &Blame) -> Option<Arc<CatalogShard>> {
        match blame {
            Blame::Shard(id) => {
                let ranges = self.read();
                ranges
                    .all()
                    .iter()
                    .flat_map(Range::all_shards)
                    .find(|shard| shard.record.id() == *id)
                    .cloned()
            }
            Blame::Item(kind, key) => self.find(*kind, *key),
        }
    }

    /// All shards, in order of phase and first layer.
    pub fn shards(&self) -> Vec<Arc<CatalogShard>> {
        let mut shards: Vec<_> = self
            .read()
            .all()
            .iter()
            .flat_map(|range| range.all_shards().cloned().collect::<Vec<_>>())
            .collect();
        shards.sort_by_key(|shard| (shard.commit.phase, shard.commit.first));
        shards
    }

    /// All commits, in order of phase and first layer, including those of ranges whose shards were removed.
    pub fn commits(&self) -> Vec<Commit> {
        let mut commits: Vec<_> =
            self.read().all().iter().map(|range| Commit::clone(&range.commit)).collect();
        commits.sort_by_key(|commit| (commit.phase, commit.first));
        commits
    }

    /// Total time of the committed ranges of a phase, including repeated enumerations; `None` if a range has no
    /// recorded time, or if there are no ranges.
    pub fn took(&self, phase: Phase) -> Option<PassTime> {
        let ranges = self.read();
        let of_phase = ranges.all().iter().filter(|range| range.commit.phase == phase);
        let again = self.again.lock();
        let again = again.iter().filter(|_| phase == Phase::Enumerate);
        let took = of_phase.map(|range| range.took).chain(again.copied());
        let took: Vec<WorkTime> = took.collect::<Option<_>>()?;
        let threads = took.first()?.threads;
        let is_same = took.iter().all(|took| took.threads == threads);
        Some(PassTime {
            seconds: took.iter().map(|took| took.seconds).sum(),
            threads: is_same.then_some(threads),
        })
    }

    /// Whether shards that count hold a layer.
    pub fn covers(&self, kind: ShardKind, layer: u32) -> bool {
        !self.find_layer(kind, layer).is_empty()
    }

    /// The shards that hold a layer; none if no stored range covers it.
    pub fn find_layer(&self, kind: ShardKind, layer: u32) -> Vec<Arc<CatalogShard>> {
        self.in_range(kind, layer, |range| range.of_kind(kind).to_vec()).unwrap_or_default()
    }

    /// The parts of a layer that have states, shard by shard and in order; `None` if the reach of the layer is not
    /// stored. Reads the indexes of the shards.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub fn parts_of(&self, layer: Layer) -> Result<Option<Vec<ItemKey>>, StorageError> {
        let shards = self.find_layer(ShardKind::Reach, layer.0);
        let mut parts = Vec::new();
        for shard in &shards {
            let reader = shard.reader()?;
            let items = reader.items();
            let first = items.partition_point(|item| item.key.layer < layer.0);
            let of_layer = items[first..].iter().take_while(|item| item.key.layer == layer.0);
            parts.extend(of_layer.map(|item| item.key));
        }
        Ok((!shards.is_empty()).then_some(parts))
    }

    /// The shard that holds an item if the item exists; `None` if no shard covers the layer and lane of the item.
    pub fn find(&self, kind: ShardKind, key: ItemKey) -> Option<Arc<CatalogShard>> {
        let holder = |range: &Range| {
            let owner = match &range.owners {
                Some(owners) => owners.owner(Lane::from_code(key.lane)?),
                None => 0,
            };
            range.of_kind(kind).get(owner).cloned()
        };
        self.in_range(kind, key.layer, holder).flatten()
    }

    fn in_range<T>(&self, kind: ShardKind, layer: u32, get: impl FnOnce(&Range) -> T) -> Option<T> {
        self.read().find(kind, layer).map(get)
    }

    fn read(&self) -> RwLockReadGuard<'_, Ranges> {
        self.ranges.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Ranges> {
        self.ranges.write()
    }
}

#[cfg(test)]
mod tests;
