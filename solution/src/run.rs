//! Opening a run: its parameters and its catalog.

use std::collections::HashMap;
use std::sync::Arc;

use exact2048_game::{Params, ParamsError};
use exact2048_storage::{
    ErrorKind, FORMAT_VERSION, Location, Place, RunDir, ShardRecord, StorageError, TypedRun,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::{Blame, ShardArchive};
use crate::catalog::{Catalog, JournalRecord, Record};
use crate::commit::{Commit, LayerCounts, Phase};
use crate::leftovers;
use crate::segment::{Segment, missing_segments};

/// Why a run cannot be opened or continued.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The directory or one of its files.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The parameters in the manifest.
    #[error("the manifest of {place} does not describe a run: {reason}")]
    Manifest {
        /// The run.
        place: Place,
        /// What is wrong.
        reason: String,
    },
    /// A journal record.
    #[error("record {number} of the journal of {place} is not understood: {reason}")]
    Journal {
        /// The run.
        place: Place,
        /// Its number in the journal.
        number: u64,
        /// What is wrong.
        reason: String,
    },
    /// There are more shards that no record of the journal names than an interrupted command leaves.
    #[error(
        "{place} lacks records of its journal: {shards} of its shards ({bytes} bytes) are named by none, more than an \
         interrupted command leaves. Restore the folder journal from a copy; or have these shards discarded: \
         what they hold is computed again"
    )]
    UnnamedShards {
        /// The run.
        place: Place,
        /// How many.
        shards: usize,
        /// Their bytes together.
        bytes: u64,
    },
    /// The run is to be written to, and an earlier program made it.
    #[error(
        "{place} is a run of format {found}, which this program reads but does not continue: finish it with version 0.1, \
         or solve anew in another place"
    )]
    OlderFormat {
        /// The run.
        place: Place,
        /// Its format version.
        found: u32,
    },
    /// The parameters asked for.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The directory holds a run with other parameters.
    #[error(
        "{place} holds another job: its {field} is {found}, and {wanted} was asked for; choose another place, or ask for \
         what it holds"
    )]
    OtherJob {
        /// The run.
        place: Place,
        /// The parameter that differs.
        field: &'static str,
        /// Its value in the run.
        found: String,
        /// The value asked for.
        wanted: String,
    },
}

impl RunError {
    /// What can be done about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Manifest { .. } | Self::Journal { .. } | Self::UnnamedShards { .. } => ErrorKind::DataLoss,
            Self::Params(_) | Self::OlderFormat { .. } => ErrorKind::Refused,
            Self::OtherJob { .. } => ErrorKind::Occupied,
        }
    }

    /// What is to blame.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            _ => None,
        }
    }
}

/// Why the states of a run have no values, or not all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotSolved {
    /// It was never to have any.
    #[error(
        "this run is not solved: it only enumerates, up to layer {0}; a run of the whole board has values"
    )]
    OnlyEnumerates(u32),
    /// They are still to be computed, this segment first.
    #[error(
        "this run is not solved: there is still to {} layers {} to {}; continue it", .0.phase.name(), .0.first, .0.last
    )]
    Unfinished(Segment),
    /// The same, and this program does not continue the run.
    #[error(
        "this run is not solved: there is still to {} layers {} to {}, and it has an older format; finish it with version \
         0.1, or solve anew in another place", .0.phase.name(), .0.first, .0.last
    )]
    OlderFormat(Segment),
}

/// What becomes of shards that no record of the journal names, where there are more than an interrupted command leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unnamed {
    /// The run is not opened.
    Refuse,
    /// They are removed.
    Discard,
}

/// An open run.
#[derive(Debug)]
pub struct Run {
    dir: TypedRun<JournalRecord>,
    params: Params,
    catalog: Arc<Catalog>,
    archive: Arc<ShardArchive>,
    /// Records in the journal, without those of openings.
    records: usize,
    last_record: Option<JournalRecord>,
}

impl Run {
    /// Whether there is a run, or something that keeps this from being known: opening it says what.
    pub fn exists(location: impl Into<Location>) -> bool {
        !matches!(RunDir::find(location), Ok(None))
    }

    /// Opens a run to read it.
    ///
    /// # Errors
    ///
    /// [`RunError::UnnamedShards`] where records of the journal must have been lost, and those of opening a [`TypedRun`].
    pub fn open(location: impl Into<Location>) -> Result<Self, RunError> {
        let mut run = Self::load(TypedRun::open_read_only(location)?)?;
        // Of a finished run no record is missing that matters, and its shards need not be listed.
        if !run.missing().is_empty() {
            // In this order: what was committed when the shards were listed is in the journal that is read afterwards.
            let files = run.dir.shard_files()?;
            run.reread()?;
            if let Some(loss) = run.loss(&files) {
                return Err(loss);
            }
        }
        Ok(run)
    }

    /// Opens a run to continue it, or begins one; refuses a place that holds another job.
    ///
    /// In a store this fences off every process that has the run open for writing, but not before the job is known to
    /// be the same. Removes the shards that do not count, as an interrupted command or one that mended the run leaves
    /// them.
    ///
    /// # Errors
    ///
    /// [`RunError::OtherJob`]; [`RunError::OlderFormat`]; [`RunError::UnnamedShards`] where records of the journal must have been lost, unless
    /// their shards are to be discarded; and those of opening or creating a [`TypedRun`].
    pub fn open_or_create(
        location: impl Into<Location>,
        wanted: &Params,
        unnamed: Unnamed,
    ) -> Result<Self, RunError> {
        let location = location.into();
        let place = location.place();
        let Some(held) = RunDir::find(&location)? else {
            let params = serde_json::to_value(wanted).map_err(|e| manifest_error(&place, &e))?;
            return match TypedRun::create(&location, &params) {
                // Another process has made it in between: it is as if that had been a little earlier.
                Err(StorageError::AlreadyARun { .. }) if RunDir::find(&location)?.is_some() => {
                    Self::open_or_create(location, wanted, unnamed)
                }
                made => Self::load(made?),
            };
        };
        require_same(&place, &parse_params(&place, held.params)?, wanted)?;
        let run = Self::open_again(location)?;
        let shards = run.catalog.shards();
        let referenced = shards.iter().map(|shard| shard.record.file.clone()).collect();
        match unnamed {
            Unnamed::Refuse => {
                run.require_journal()?;
                run.dir.remove_unreferenced_shards(&referenced)?;
            }
            Unnamed::Discard => {
                run.dir.discard_unreferenced_shards(&referenced)?;
            }
        }
        Ok(run)
    }

    /// Requires that no records of the journal were lost: with their shards work of hours would be thrown away.
    fn require_journal(&self) -> Result<(), RunError> {
        let Some(loss) = self.loss(&self.dir.shard_files()?) else { return Ok(()) };
        // They may be those of a process that opened the run after this one, of which this journal does not know.
        self.dir.confirm()?;
        Err(loss)
    }

    /// What is wrong where more of these shards than a crash leaves are named by no record.
    fn loss(&self, files: &HashMap<String, u64>) -> Option<RunError> {
        let unnamed = self.catalog.unnamed(files.keys().map(String::as_str));
        leftovers::shows_loss(&unnamed, self.dir.records_before()).then(|| RunError::UnnamedShards {
            place: self.dir.place().clone(),
            shards: unnamed.len(),
            bytes: unnamed.iter().filter_map(|file| files.get(*file)).sum(),
        })
    }

    /// Requires that this is the run of a job.
    ///
    /// # Errors
    ///
    /// [`RunError::OtherJob`] names the first parameter that differs, of those that change results.
    pub fn require(&self, wanted: &Params) -> Result<(), RunError> {
        require_same(self.dir.place(), &self.params, wanted)
    }

    /// Opens a run that there is to write to it, and removes nothing: what was opened before may still be going to
    /// commit shards that nothing refers to yet.
    ///
    /// # Errors
    ///
    /// [`RunError::OlderFormat`], those of [`TypedRun::open_for_writing`], and those of the records.
    pub fn open_again(location: impl Into<Location>) -> Result<Self, RunError> {
        let location = location.into();
        // Before others are fenced off.
        if let Some(found) = RunDir::find(&location)? {
            require_own_format(&location.place(), found.format_version)?;
        }
        Self::load(TypedRun::open_for_writing(location)?)
    }

    /// Requires that this program may go on with the run, and not only read it.
    ///
    /// # Errors
    ///
    /// [`RunError::OlderFormat`].
    pub fn require_own_format(&self) -> Result<(), RunError> {
        require_own_format(self.dir.place(), self.format_version())
    }

    /// The version of the format, which says what the fingerprint is a sum of.
    pub fn format_version(&self) -> u32 {
        self.dir.format_version()
    }

    fn load(dir: TypedRun<JournalRecord>) -> Result<Self, RunError> {
        let params = parse_params(dir.place(), dir.params().clone())?;
        let catalog = Arc::new(Catalog::new(&dir, &params, rule_hash(&params)));
        let archive = Arc::new(ShardArchive::new(Arc::clone(&catalog)));
        let mut run = Self { dir, params, catalog, archive, records: 0, last_record: None };
        run.take_records()?;
        Ok(run)
    }

    /// Reads what another process has committed since this was opened or read again.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn reread(&mut self) -> Result<(), RunError> {
        self.dir.reread()?;
        self.take_records()
    }

    /// Takes new records of the journal into the catalog, which holds them in less memory.
    fn take_records(&mut self) -> Result<(), RunError> {
        let records = self.dir.take_records();
        self.records += records.len();
        if let Some((_, last)) = records.last() {
            self.last_record = Some(last.clone());
        }
        for (number, record) in records {
            let place = || self.dir.place().clone();
            self.catalog.add(record).map_err(|reason| RunError::Journal {
                place: place(),
                number,
                reason,
            })?;
        }
        Ok(())
    }

    /// How many records the journal holds, as far as it was read, without those of openings.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The last of them.
    pub fn last_record(&self) -> Option<&JournalRecord> {
        self.last_record.as_ref()
    }

    /// The files or objects of the run.
    pub fn dir(&self) -> &TypedRun<JournalRecord> {
        &self.dir
    }

    /// Lets members of a cluster make shards of the run; see [`TypedRun::share`].
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::share`].
    pub fn share(&mut self) -> Result<u64, RunError> {
        Ok(self.dir.share()?)
    }

    /// Appends a record to the journal; from then on it counts.
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::commit`].
    pub fn append(&mut self, record: JournalRecord) -> Result<(), RunError> {
        self.dir.commit(&record)?;
        self.take_records()
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The committed shards.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The items of the committed shards.
    pub fn archive(&self) -> &Arc<ShardArchive> {
        &self.archive
    }

    /// What is still to be done.
    pub fn missing(&self) -> Vec<Segment> {
        missing_segments(&self.params, &self.catalog.commits())
    }

    /// The commits of which a shard is not there, or is not the one of its record by its length and its header. Costs a
    /// list of the shards, and a look at each that the list misses; what is in them is not looked at.
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::shard_files`], and what keeps a shard from being looked at.
    pub fn absent(&self) -> Result<Vec<Commit>, RunError> {
        let shards = self.catalog.shards();
        if shards.is_empty() {
            return Ok(Vec::new());
        }
        let files = self.dir.shard_files()?;
        let is_listed = |record: &ShardRecord| files.get(&record.file) == Some(&record.bytes);
        // One list may be wrong, and to make a shard again may take hours.
        let doubtful: Vec<_> = shards.iter().filter(|shard| !is_listed(&shard.record)).collect();
        let look: Vec<_> = doubtful.iter().map(|shard| (&shard.record, *shard.identity())).collect();
        let mut commits = Vec::new();
        for (shard, looked) in doubtful.iter().zip(self.catalog.files().look(&look)?) {
            match looked {
                Ok(()) => {}
                Err(error) if error.blames().is_some() => commits.push(Commit::clone(&shard.commit)),
                Err(error) => return Err(error.into()),
            }
        }
        commits.dedup();
        Ok(commits)
    }

    /// Requires that each shard of a record is there, with the length and the header that the record says. Meant for
    /// records that are to be appended. Costs 104 bytes a shard; what follows the headers is not looked at.
    ///
    /// # Errors
    ///
    /// As for [`Shards::look`](exact2048_storage::Shards::look), of the first shard that is wrong.
    pub fn look(&self, record: &Record) -> Result<(), StorageError> {
        let Commit { phase, first, last, .. } = record.commit;
        let identity = self.catalog.identity(phase, first, last);
        let shards: Vec<_> = record.shards.iter().map(|shard| (shard, identity)).collect();
        self.catalog.files().look(&shards)?.into_iter().collect()
    }

    /// The counts of all enumerated layers that have states, ascending.
    pub fn layer_counts(&self) -> Vec<LayerCounts> {
        let commits = self.catalog.commits();
        let mut layers: Vec<_> = commits.iter().flat_map(|commit| commit.layers.iter().copied()).collect();
        layers.sort_by_key(|counts| counts.layer);
        layers.retain(|counts| counts.states > 0);
        layers
    }

    /// Whether every state has a value.
    pub fn is_solved(&self) -> bool {
        self.params.until_layer.is_none() && self.missing().is_empty()
    }

    /// Why states have no values, or not all of them; `None` for a solved run.
    pub fn why_not_solved(&self) -> Option<NotSolved> {
        match (self.params.until_layer, self.missing().first()) {
            (Some(layer), _) => Some(NotSolved::OnlyEnumerates(layer)),
            (None, Some(&next)) if self.require_own_format().is_err() => Some(NotSolved::OlderFormat(next)),
            (None, Some(&next)) => Some(NotSolved::Unfinished(next)),
            (None, None) => None,
        }
    }

    /// The fingerprint of a solved run.
    pub fn fingerprint(&self) -> Option<u128> {
        self.is_solved().then(|| {
            let commits = self.catalog.commits();
            let parts = commits.iter().filter(|c| c.phase == Phase::BackUp).filter_map(|c| c.fingerprint);
            parts.fold(0u128, u128::wrapping_add)
        })
    }
}

/// The parameters in a manifest.
fn parse_params(place: &Place, params: serde_json::Value) -> Result<Params, RunError> {
    let params: Params = serde_json::from_value(params).map_err(|e| manifest_error(place, &e))?;
    params.check()?;
    Ok(params)
}

/// Requires that a run has the format that this program writes: another has other fingerprints.
fn require_own_format(place: &Place, found: u32) -> Result<(), RunError> {
    if found == FORMAT_VERSION { Ok(()) } else { Err(RunError::OlderFormat { place: place.clone(), found }) }
}

/// Requires that a run has the parameters asked for.
fn require_same(place: &Place, held: &Params, wanted: &Params) -> Result<(), RunError> {
    let until = |p: &Params| p.until_layer.map_or("none".to_owned(), |layer| layer.to_string());
    let fields = [
        ("board", held.board.to_string(), wanted.board.to_string()),
        ("objective", held.objective.to_string(), wanted.objective.to_string()),
        ("spawn4", held.spawn4.to_string(), wanted.spawn4.to_string()),
        ("precision", u8::from(held.precision).to_string(), u8::from(wanted.precision).to_string()),
        ("until-layer", until(held), until(wanted)),
        ("choice of kept layers", held.kept.to_string(), wanted.kept.to_string()),
    ];
    for (field, found, wanted) in fields {
        if found != wanted {
            return Err(RunError::OtherJob { place: place.clone(), field, found, wanted });
        }
    }
    Ok(())
}

/// Identifies the rules by which a shard's content follows from its place: the parameters.
fn rule_hash(params: &Params) -> u64 {
    let text = serde_json::to_string(params).unwrap_or_default();
    xxh3_64(text.as_bytes())
}

fn manifest_error(place: &Place, error: &serde_json::Error) -> RunError {
    RunError::Manifest { place: place.clone(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use exact2048_game::{Layer, Objective, Precision, Spawn4};
    use exact2048_storage::{ErrorKind, Frame, ItemKey, ShardReader, ShardWriter, StoreSettings};
    use object_store::memory::InMemory;
    use tempfile::TempDir;

    use super::*;
    use crate::catalog::{Retraction, Took, kind_of};

    fn params() -> Params {
        let (board, spawn4) = ("2x2".parse().unwrap(), Spawn4::default());
        Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap()
    }

    fn open(location: &Location) -> Result<Run, RunError> {
        Run::open_or_create(location, &params(), Unnamed::Refuse)
    }

    /// Writes a shard of one item, and commits it where that is asked for.
    fn publish(run: &mut Run, phase: Phase, first: u32, last: u32, commits: bool) {
        let record = write(run, phase, first, last);
        if commits {
            run.append(JournalRecord::Commit(record)).unwrap();
        }
    }

    fn write(run: &mut Run, phase: Phase, first: u32, last: u32) -> Record {
        let (first, last) = (Layer(first), Layer(last));
        let identity = run.catalog().identity(phase, first, last);
        let mut writer = ShardWriter::create(run.dir(), identity).unwrap();
        let key = ItemKey { layer: first.0, lane: 0, part: 0 };
        writer.push(Frame::encode(&[(key, kind_of(phase).to_string().as_bytes())], 1).unwrap()).unwrap();
        let shards = vec![writer.finish().unwrap()];
        let commit = Commit { phase, first, last, layers: Vec::new(), fingerprint: None };
        let record = Record { commit, shards, threads: Vec::new(), took: None };
        run.look(&record).unwrap();
        record
    }

    /// The same run in a directory and in a store, with a way to remove records of its journal.
    fn places() -> (TempDir, Vec<(Location, RemoveRecord)>) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        let store = Arc::new(InMemory::new());
        let cache_folder = Some(place.path().join("cache"));
        let settings = StoreSettings { cache_folder, ..StoreSettings::default() };
        let in_store = Location::objects(store.clone(), "s3://bucket/run", "run", &settings).unwrap();
        let journal = folder.join("journal");
        let of_folder: RemoveRecord =
            Box::new(move |n| std::fs::remove_file(journal.join(format!("{n:06}.json"))).unwrap());
        let of_store: RemoveRecord = Box::new(move |n| {
            use futures_util::FutureExt;
            use object_store::ObjectStoreExt;
            let object = format!("run/journal/{n:06}.json").into();
            store.delete(&object).now_or_never().unwrap().unwrap();
        });
        (place, vec![(Location::from(&folder), of_folder), (in_store, of_store)])
    }

    type RemoveRecord = Box<dyn Fn(u64)>;

    /// (C1) Also in a store, where each opening adds a record.
    #[test]
    fn a_run_that_lost_its_journal_is_not_begun_anew_in_silence() {
        for (location, remove) in places().1 {
            let mut run = open(&location).unwrap();
            publish(&mut run, Phase::Enumerate, 4, 60, true);
            publish(&mut run, Phase::BackUp, 32, 60, true);
            publish(&mut run, Phase::BackUp, 4, 30, true);
            // In a store there is an opening record too.
            let entries = 3 + u64::from(location.as_folder().is_none());
            drop(run);
            (0..entries).rev().for_each(remove);
            match open(&location) {
                Err(RunError::UnnamedShards { shards: 3, bytes, .. }) => assert!(bytes > 300),
                other => panic!("{location}: {other:?}"),
            }
            // Readers get the same error.
            assert!(matches!(Run::open(&location), Err(RunError::UnnamedShards { shards: 3, .. })));
            let run = Run::open_or_create(&location, &params(), Unnamed::Discard).unwrap();
            assert!(run.dir().shard_files().unwrap().is_empty());
        }
    }

    /// What a crash leaves is no sign of a loss: a shard without a record, one that was made again, one that was retracted.
    #[test]
    fn what_a_crash_leaves_is_removed() {
        for (location, _) in places().1 {
            let mut run = open(&location).unwrap();
            publish(&mut run, Phase::Enumerate, 4, 60, true);
            publish(&mut run, Phase::BackUp, 32, 60, true);
            publish(&mut run, Phase::BackUp, 4, 60, true);
            let retracted = run.catalog().commits().pop().unwrap();
            run.append(JournalRecord::Retraction(Retraction { retracted })).unwrap();
            publish(&mut run, Phase::BackUp, 40, 60, false);
            drop(run);
            let run = open(&location).unwrap();
            assert_eq!(run.dir().shard_files().unwrap().len(), 1);
            assert_eq!((run.records(), run.catalog().shards().len()), (4, 1));
        }
    }

    /// (C4) The time of a pass is that of all its ranges, also where different processes computed them.
    #[test]
    fn times_of_ranges_add_up() {
        let place = tempfile::tempdir().unwrap();
        let mut run = open(&Location::from(&*place.path().join("run"))).unwrap();
        let mut time_with = |first, last, took: Option<(f64, u32)>| {
            let took = took.map(|(seconds, threads)| Took { seconds, threads });
            let record = Record { took, ..write(&mut run, Phase::Enumerate, first, last) };
            run.append(JournalRecord::Commit(record)).unwrap();
            run.catalog().took(Phase::Enumerate).map(|time| (time.seconds, time.threads))
        };
        assert_eq!(time_with(4, 10, Some((1.5, 2))), Some((1.5, Some(2))));
        assert_eq!(time_with(12, 20, Some((0.25, 2))), Some((1.75, Some(2))));
        assert_eq!(time_with(22, 30, Some((2.0, 4))), Some((3.75, None)), "by different numbers of threads");
        assert_eq!(time_with(32, 60, None), None, "not all of it is known");
        assert_eq!(run.catalog().took(Phase::BackUp), None);
    }

    /// A record is not appended for shards that are not there, or that are others.
    #[test]
    fn shards_of_a_record_are_looked_at() {
        for (location, _) in places().1 {
            let mut run = open(&location).unwrap();
            publish(&mut run, Phase::Enumerate, 4, 60, true);
            let shard = run.catalog().shards().remove(0);
            let record = |forge: fn(&mut ShardRecord)| {
                let mut shards = vec![shard.record.clone()];
                forge(&mut shards[0]);
                Record { commit: Commit::clone(&shard.commit), shards, threads: Vec::new(), took: None }
            };
            run.look(&record(|_| {})).unwrap();
            let forgeries: [fn(&mut ShardRecord); 3] =
                [|r| r.file.insert(0, 'x'), |r| r.bytes = 1 << 63, |r| r.header_checksum = 7];
            for forge in forgeries {
                assert_eq!(run.look(&record(forge)).unwrap_err().kind(), ErrorKind::DataLoss);
            }
        }
    }

    /// (A M10) The copy in the cache may be whole where the shard itself is not.
    #[test]
    fn shards_are_checked_where_they_are_committed() {
        use futures_util::FutureExt;
        use object_store::ObjectStoreExt;

        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(InMemory::new());
        let settings = StoreSettings { cache_folder: Some(place.path().into()), ..StoreSettings::default() };
        let location = Location::objects(store.clone(), "s3://bucket/run", "run", &settings).unwrap();
        publish(&mut open(&location).unwrap(), Phase::Enumerate, 4, 60, true);
        // A shard of a catalog of its own each time: what is open stays open.
        let shard = || Run::open(&location).unwrap().catalog().shards().remove(0);
        shard().original().unwrap().verify().unwrap();
        let object = format!("run/shards/{}", shard().record.file).into();
        let read = store.get(&object).now_or_never().unwrap().unwrap();
        let mut bytes = read.bytes().now_or_never().unwrap().unwrap().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        store.put(&object, bytes.into()).now_or_never().unwrap().unwrap();
        shard().reader().unwrap().verify().unwrap();
        let is_lost = |read: Result<(), StorageError>| read.unwrap_err().blames().is_some();
        assert!(is_lost(shard().check()));
        assert!(is_lost(shard().original().and_then(ShardReader::verify)));
    }

    /// In a store, opening a run for writing fences others off: one of an older format is refused before that.
    #[test]
    fn a_run_of_an_older_format_is_read_and_its_writer_left_alone() {
        use futures_util::FutureExt;
        use object_store::ObjectStoreExt;

        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(InMemory::new());
        let settings = StoreSettings { cache_folder: Some(place.path().into()), ..StoreSettings::default() };
        let location = Location::objects(store.clone(), "s3://bucket/run", "run", &settings).unwrap();
        let mut writer = open(&location).unwrap();
        let manifest = "run/manifest.json".into();
        let read = store.get(&manifest).now_or_never().unwrap().unwrap();
        let sealed = String::from_utf8(read.bytes().now_or_never().unwrap().unwrap().to_vec()).unwrap();
        let body = sealed.split_once("\"body\":").unwrap().1.trim_end().strip_suffix('}').unwrap();
        let body = body.replacen("\"format_version\": 2", "\"format_version\": 1", 1);
        let older = format!("{{\"xxh3\":\"{:016x}\",\"body\":{body}}}\n", xxh3_64(body.as_bytes()));
        assert_ne!(older, sealed);
        store.put(&manifest, older.into()).now_or_never().unwrap().unwrap();

        for refused in [open(&location).map(drop), Run::open_again(&location).map(drop)] {
            assert!(matches!(refused, Err(RunError::OlderFormat { found: 1, .. })), "{refused:?}");
        }
        // Its writer is still the one.
        publish(&mut writer, Phase::Enumerate, 4, 60, true);
        let run = Run::open(&location).unwrap();
        assert_eq!((run.format_version(), run.records()), (1, 1));
        assert!(matches!(run.why_not_solved(), Some(NotSolved::OlderFormat(_))));
    }
}
