//! The run of a job, open for writing. Only this module appends to the run's journal.

use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{DiskUse, RunBytes};
use exact2048_game::Params;
use exact2048_net::text::with_causes;
use exact2048_run::alone::disk;
use exact2048_solution::{
    Commit, Holdings, JournalRecord, Owners, Record, Removal, Retraction, Run, RunError, UnnamedPolicy,
    assign,
};
use exact2048_storage::{Location, RunDir, RunId, ShardRecord, StorageError};

use super::AppendError;
use super::owned::{Journal, OpenJournal, OwnedJournal};
use crate::wire::OpeningId;

/// Longest wait until a worker's shard becomes visible to the coordinator. Network file systems show files late.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Reason why a record was not appended to the journal of a run.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The append can never succeed.
    #[error("{reason}")]
    Never {
        /// Index of the shard in the record that is missing or differs from the record, if one is.
        shard: Option<usize>,
        /// The reason. With a shard, its subject is the shard's writer.
        reason: String,
    },
    /// The append failed for a reason that any journal may have.
    #[error(transparent)]
    Other(#[from] AppendError),
}

/// Contents of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Parameters of the run. Those that do not change results may differ from the requested ones.
    pub params: Params,
    /// Data that is committed and not retracted.
    pub holdings: Holdings,
    /// Size of the run.
    pub stored: RunBytes,
}

impl Contents {
    /// Reads the contents of an open run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self { params: run.params().clone(), holdings: run.holdings(), stored: stored(run) }
    }
}

/// Returns the size of an open run.
fn stored(run: &Run) -> RunBytes {
    let committed_bytes = run.catalog().shards().iter().map(|shard| shard.record.bytes).sum();
    let disk = run.dir().allowance().map(|allowance| DiskUse {
        limit_bytes: allowance.limit_bytes(),
        taken_bytes: allowance.taken_bytes(),
        peak_bytes: allowance.peak_bytes(),
        free_bytes: u64::try_from(allowance.free_bytes()).unwrap_or(0),
    });
    RunBytes { committed_bytes, disk }
}

/// Disk limit of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskLimit {
    /// Maximum size of all files or objects of the run together, in bytes.
    pub bytes: u64,
    /// Free space to leave within the limit when the run is opened, as a multiple of the usual free space.
    pub times: u64,
}

/// The journal of a run that a cluster solves. Opening records do not count as entries, because an opening by another
/// process without an append changes nothing.
impl Journal for Run {
    type Record = JournalRecord;

    /// The queue's owner also owns its runs; callers confirm ownership first.
    fn open_again(
        location: &Location,
        run: RunId,
        _: &dyn Fn(u64, Option<&JournalRecord>) -> bool,
    ) -> Result<Option<OpenJournal<Self>>, AppendError> {
        RunDir::require_at(location, run)?;
        Ok(Some(opened(Run::open_again(location)?)?))
    }

    fn append(&mut self, record: &JournalRecord) -> Result<(), AppendError> {
        Ok(Run::append(self, record.clone())?)
    }
}

/// Fences off earlier writers.
fn opened(mut run: Run) -> Result<OpenJournal<Run>, RunError> {
    let (opening, records) = (OpeningId(run.share()?), run.records() as u64);
    let last = run.last_record().cloned();
    Ok(OpenJournal { journal: run, opening, found: records, last, entries: records })
}

/// A run that is open for writing. After a failure, it reopens before the next append.
#[derive(Debug)]
pub struct JobRun {
    journal: OwnedJournal<Run>,
    /// Parameters that determine the blocks of the run.
    params: Params,
    /// The members' threads of the last commit, and the owners of lanes for these threads.
    owners: Option<(Vec<u32>, Owners)>,
    /// Disk limit of the run in bytes, if any.
    limit_bytes: Option<u64>,
    /// The commit whose shards count already, although the commit is not appended. All files were counted after the
    /// shards were written.
    counted: Option<Commit>,
    /// The shards that the removal under way releases. They are deleted as soon as the journal contains the removal.
    needless: Vec<ShardRecord>,
}

impl JobRun {
    /// Opens the run of a job, and fences off every process that has it open. Creates a missing run if `may_make` is
    /// set.
    ///
    /// Removes shards that no record names, and retracts commits with missing shards. With a disk limit, also frees
    /// space for the remaining layers. Returns the estimated number of bytes that are still missing after that.
    ///
    /// # Errors
    ///
    /// As for [`Run::open_or_create`] or [`Run::resume`], [`Run::share`] and [`disk::make_room`].
    pub fn open(
        location: &Location,
        params: &Params,
        limit: Option<DiskLimit>,
        may_make: bool,
    ) -> Result<(Self, Contents, u64), RunError> {
        // The peak includes the files of killed workers, which the opening removes.
        let found_bytes = limit.map_or(Ok(0), |_| found_bytes(location))?;
        let mut run = if may_make {
            Run::open_or_create(location, params, UnnamedPolicy::Refuse)?
        } else {
            Run::resume(location, params, UnnamedPolicy::Refuse)?
        };
        run.share()?;
        for retracted in run.absent()? {
            tracing::warn!(run = %location, phase = retracted.phase.name(), first = %retracted.first,
                last = %retracted.last, "shard missing, recomputing its range");
            run.append(JournalRecord::Retraction(Retraction { retracted }))?;
        }
        let mut missing_bytes = 0;
        if let Some(limit) = limit {
            run.limit_disk(limit.bytes)?;
            run.dir().allowance().inspect(|allowance| allowance.note_peak(found_bytes));
            missing_bytes = disk::make_room(&mut run, limit.times)?.missing_bytes;
        }
        let (run, contents) = Self::new(location, run, limit.map(|limit| limit.bytes))?;
        Ok((run, contents, missing_bytes))
    }

    /// Opens the run of a job for appends, and removes nothing. `limit_bytes` is its disk limit, if any.
    ///
    /// # Errors
    ///
    /// As for [`Run::open_again`], [`Run::share`] and [`Run::limit_disk`].
    pub fn reopen(location: &Location, limit_bytes: Option<u64>) -> Result<(Self, Contents), RunError> {
        let mut run = Run::open_again(location)?;
        limit(&mut run, limit_bytes)?;
        Self::new(location, run, limit_bytes)
    }

    fn new(location: &Location, run: Run, limit_bytes: Option<u64>) -> Result<(Self, Contents), RunError> {
        let (id, opened) = (run.dir().run_id(), opened(run)?);
        let contents = Contents::of(&opened.journal);
        let journal = OwnedJournal::new(location.clone(), id, opened);
        let params = contents.params.clone();
        let run = Self { journal, params, owners: None, limit_bytes, counted: None, needless: Vec::new() };
        Ok((run, contents))
    }

    /// Returns the opening record, whose number is part of the file names of workers' shards.
    #[must_use]
    pub fn opening(&self) -> OpeningId {
        self.journal.opening
    }

    /// Returns the lanes of each member's shard of a range, in an epoch of members with these threads.
    pub fn lanes_by_member(&mut self, range: &Commit, threads: &[u32]) -> Vec<Vec<u64>> {
        if self.owners.as_ref().is_none_or(|(known, _)| known != threads) {
            self.owners = Some((threads.to_vec(), assign(&self.params, threads)));
        }
        let of_known = |(_, owners): &(_, Owners)| {
            owners.lanes_by_member(&self.params, threads.len(), (range.first, range.last))
        };
        self.owners.as_ref().map(of_known).unwrap_or_default()
    }

    /// Returns the size of the run, or zeros if the run could not be reopened after a failure.
    #[must_use]
    pub fn stored(&self) -> RunBytes {
        self.journal.open.as_ref().map(stored).unwrap_or_default()
    }

    /// Appends a record to the journal. After a failure, the same record may be appended again.
    ///
    /// 1. After a failure, reopens the run. If the journal already contains the record, only step 4 is left.
    /// 2. Checks the shards that the record names, by 104 bytes of each shard.
    /// 3. Appends the record.
    /// 4. Deletes the reach shards that the record removes. The next opening of the run deletes those that remain.
    ///
    /// So the journal contains a repeated record once. `confirm` checks that this process still owns the store. It is
    /// called before the run is reopened, because reopening fences off other processes.
    ///
    /// # Errors
    ///
    /// * [`RecordError::Never`] if a shard differs from its record, or counts from an earlier enumeration.
    /// * [`AppendError::Fenced`] if another process owns the store.
    /// * [`AppendError::Foreign`] if another process has written to this journal, or has removed records from it.
    /// * [`AppendError::Failed`] otherwise. The journal may contain the record or not.
    pub fn append(
        &mut self,
        record: &JournalRecord,
        confirm: impl FnOnce() -> Result<(), AppendError>,
    ) -> Result<(), RecordError> {
        if self.journal.is_uncertain() {
            confirm()?;
        }
        let (run, found) = self.journal.heal()?;
        let is_counted_anew = limit(run, self.limit_bytes).map_err(AppendError::from)?;
        if let (JournalRecord::Commit(record), true) = (record, is_counted_anew) {
            self.counted = Some(record.commit.clone());
        }
        if found.as_ref() == Some(record) {
            self.note_appended(record);
            return Ok(());
        }
        match record {
            JournalRecord::Commit(record) => {
                let counts = run.require_same_counts(&record.commit);
                counts.map_err(|error| RecordError::Never { shard: None, reason: with_causes(&error) })?;
                look(run, record)?;
            }
            JournalRecord::Removal(Removal { removed }) => self.needless = run.catalog().reach_of(removed),
            _ => {}
        }
        self.journal.append(record)?;
        self.note_appended(record);
        Ok(())
    }

    /// Counts the shards that a record has added, or deletes the shards that it has released.
    fn note_appended(&mut self, record: &JournalRecord) {
        let Some(run) = self.journal.open.as_ref() else { return };
        let counted = self.counted.take();
        match record {
            JournalRecord::Commit(record) if counted.as_ref() != Some(&record.commit) => {
                run.dir().count_shards(&record.shards);
            }
            JournalRecord::Removal(_) => remove(run, &std::mem::take(&mut self.needless)),
            _ => {}
        }
    }
}

/// Returns the size of a job's run before the run is opened; 0 if there is no run yet.
fn found_bytes(location: &Location) -> Result<u64, StorageError> {
    match RunDir::find(location)? {
        Some(_) => RunDir::open_read_only(location)?.taken_bytes(),
        None => Ok(0),
    }
}

/// Sets the disk limit of a run, unless it is already set. Returns whether the call counted the run's files.
fn limit(run: &mut Run, limit_bytes: Option<u64>) -> Result<bool, RunError> {
    match limit_bytes.filter(|_| run.dir().allowance().is_none()) {
        Some(bytes) => run.limit_disk(bytes).map(|()| true),
        None => Ok(false),
    }
}

/// Deletes shards that no record of the journal needs any longer.
fn remove(run: &Run, needless: &[ShardRecord]) {
    if let Err(error) = run.dir().remove_needless_shards(needless) {
        let (run, error) = (run.dir().place(), with_causes(&error));
        tracing::warn!(%run, error, "unneeded shards stay until the run is reopened");
    }
}

/// Checks that the shards of a record exist and match it, before the record is appended.
fn look(run: &Run, record: &Record) -> Result<(), RecordError> {
    let begun = Instant::now();
    loop {
        let looked = run.look(record).map_err(AppendError::from)?;
        let wrong = looked.into_iter().enumerate().find_map(|(number, looked)| Some((number, looked.err()?)));
        match wrong {
            None => return Ok(()),
            Some((_, StorageError::ShardMissing { .. })) if begun.elapsed() < SHOWN_WITHIN => {
                std::thread::sleep(PAUSE);
            }
            Some((number, error)) if error.blames().is_some() => {
                let causes = with_causes(&error);
                let reason = format!("reported a shard that does not match its file: {causes}");
                return Err(RecordError::Never { shard: Some(number), reason });
            }
            Some((_, error)) => return Err(AppendError::from(error).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Layer;
    use exact2048_solution::{LayerCounts, LayerRange, Phase};
    use exact2048_storage::{Attempt, ErrorKind, ShardWriter};
    use serde_json::{Value, json};

    fn params() -> Params {
        Params::small("2x2")
    }

    /// Creates a record that the catalog accepts without shards.
    fn record(last: u32) -> JournalRecord {
        let (phase, first, last) = (Phase::BackUp, Layer(4), Layer(last));
        let retracted = Commit { phase, first, last, layers: vec![], fingerprint: None };
        JournalRecord::Retraction(Retraction { retracted })
    }

    fn journal(location: &Location) -> Vec<Value> {
        RunDir::open_read_only(location).unwrap().records().to_vec()
    }

    /// Checks the promises of [`OwnedJournal`] with a real run.
    #[test]
    fn an_append_whose_answer_was_lost_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, contents, _) = JobRun::open(&location, &params(), None, true).unwrap();
        let empty = (params(), Holdings::default(), RunBytes::default());
        assert_eq!((contents.params, contents.holdings, contents.stored), empty);
        run.append(&record(8), || panic!("nothing has failed")).unwrap();
        // The append was not made.
        let first = run.opening();
        run.journal.lose_answer(&record(16), true);
        run.append(&record(16), || Ok(())).unwrap();
        assert!(run.opening() > first);
        // The append was made, but its answer was lost.
        Run::append(run.journal.heal().unwrap().0, record(24)).unwrap();
        run.journal.lose_answer(&record(24), true);
        run.append(&record(24), || Ok(())).unwrap();
        // The run could not be reopened for a while.
        run.journal.lose_answer(&record(32), false);
        run.append(&record(32), || Ok(())).unwrap();
        assert_eq!(journal(&location), [8, 16, 24, 32].map(|last| json!(record(last))));
    }

    /// Creates a commit of the first layer with one shard. The test may change the shard's record.
    fn commit(run: &JobRun, change: impl FnOnce(&mut ShardRecord)) -> JournalRecord {
        let open = Run::open(&run.journal.location).unwrap();
        let (phase, first, last) = (Phase::Enumerate, Layer(4), Layer(4));
        let identity = open.catalog().identity(phase, first, last);
        let attempt = Attempt { opening: run.opening().0, epoch: 1, member: 1 };
        let mut shard =
            ShardWriter::create_as(open.catalog().files(), identity, attempt).unwrap().finish().unwrap();
        change(&mut shard);
        let layers = vec![LayerCounts { layer: first, states: 1, afterstates: 1 }];
        let commit = Commit { phase, first, last, layers, fingerprint: None };
        JournalRecord::Commit(Record::new(commit, vec![shard]))
    }

    #[test]
    fn only_shards_that_match_their_records_are_committed() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, ..) = JobRun::open(&location, &params(), None, true).unwrap();
        type Change = fn(&mut ShardRecord);
        let changes: [(Change, &str); 5] = [
            (|shard| shard.file = shard.file.replace("1.1.shard", "1.2.shard"), "1.2.shard"),
            (|shard| shard.header_checksum ^= 1, "header checksum"),
            (|shard| shard.bytes = u64::MAX >> 1, "length"),
            (|shard| shard.items += 1, "number of items"),
            (|shard| shard.frames += 1, "number of frames"),
        ];
        for (change, word) in changes {
            let made_up = commit(&run, change);
            let refused = run.append(&made_up, || panic!("nothing has failed")).unwrap_err();
            assert!(matches!(refused, RecordError::Never { shard: Some(0), .. }), "{refused:?}");
            assert!(refused.to_string().contains(word), "{refused}");
        }
        assert_eq!(journal(&location), [] as [Value; 0]);
        let sound = commit(&run, |_| {});
        run.append(&sound, || panic!("nothing has failed")).unwrap();
        assert_eq!(journal(&location).len(), 1);
    }

    /// Shards count from their commit to their removal, even if the run is reopened in between.
    #[test]
    fn the_use_of_a_disk_limit_is_known_after_each_append() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let limit = DiskLimit { bytes: 1 << 20, times: 1 };
        let (mut run, contents, missing_bytes) =
            JobRun::open(&location, &params(), Some(limit), true).unwrap();
        assert_eq!(missing_bytes, 0);
        let disk = |stored: RunBytes| {
            let disk = stored.disk.unwrap();
            assert_eq!(disk.limit_bytes, 1 << 20);
            assert!(
                disk.taken_bytes <= disk.peak_bytes && disk.free_bytes < disk.limit_bytes - disk.taken_bytes
            );
            disk
        };
        let empty = disk(contents.stored);
        let sound = commit(&run, |_| {});
        let JournalRecord::Commit(Record { shards, .. }) = &sound else { panic!() };
        let file = place.path().join("job/shards").join(&shards[0].file);
        run.append(&sound, || panic!("nothing has failed")).unwrap();
        let with_shard = disk(run.stored());
        assert!(with_shard.taken_bytes >= empty.taken_bytes + shards[0].bytes && file.exists());
        // The run is reopened, which counts all files again.
        run.journal.lose_answer(&record(8), true);
        run.append(&record(8), || Ok(())).unwrap();
        let again = disk(run.stored()).taken_bytes;
        assert!((with_shard.taken_bytes..with_shard.taken_bytes + 20_000).contains(&again), "{again}");
        // If the answer to a removal was lost, its shards are deleted all the same.
        let removed = vec![LayerRange { first: Layer(4), last: Layer(4) }];
        let open = run.journal.heal().unwrap().0;
        let needless = open.catalog().reach_of(&removed);
        let removal = JournalRecord::Removal(Removal { removed });
        Run::append(open, removal.clone()).unwrap();
        run.needless = needless;
        run.journal.lose_answer(&removal, true);
        run.append(&removal, || Ok(())).unwrap();
        // The removal's record and another opening record take as much as the deleted shard.
        assert!(disk(run.stored()).taken_bytes <= again + 5_000 && !file.exists());
        assert_eq!(run.stored().committed_bytes, 0);
    }

    /// Killed workers leave files that no commit counts: a part of a shard, and a shard that no record names.
    #[test]
    fn files_of_killed_workers_count_towards_the_peak() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let limit = Some(DiskLimit { bytes: 1 << 20, times: 1 });
        let (run, ..) = JobRun::open(&location, &params(), limit, true).unwrap();
        let uncommitted = commit(&run, |_| {});
        let JournalRecord::Commit(Record { shards, .. }) = &uncommitted else { panic!() };
        drop(run);
        let folder = place.path().join("job/shards");
        let part = folder.join(format!(".tmp-{}-{:032x}", shards[0].file, 7));
        std::fs::write(&part, [0; 130_000]).unwrap();
        let (run, contents, _) = JobRun::open(&location, &params(), limit, true).unwrap();
        assert!(!part.exists() && !folder.join(&shards[0].file).exists());
        for disk in [contents.stored.disk.unwrap(), run.stored().disk.unwrap()] {
            assert!(disk.peak_bytes >= disk.taken_bytes + 130_000, "{disk:?}");
        }
    }

    /// If a repeated enumeration of layers has different counts, the repetition is wrong, and the journal is right.
    #[test]
    fn different_counts_do_not_blame_the_journal() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, ..) = JobRun::open(&location, &params(), None, true).unwrap();
        let fine = || panic!("nothing has failed");
        run.append(&commit(&run, |_| {}), fine).unwrap();
        let removed = vec![LayerRange { first: Layer(4), last: Layer(4) }];
        run.append(&JournalRecord::Removal(Removal { removed }), fine).unwrap();
        let sound = commit(&run, |_| {});
        let JournalRecord::Commit(mut other) = sound.clone() else { panic!() };
        other.commit.layers[0].states = 2;
        let error = run.append(&JournalRecord::Commit(other), fine).unwrap_err();
        assert!(matches!(error, RecordError::Never { shard: None, .. }), "{error}");
        for counts in ["expected 1 states and 1 afterstates", "found 2 and 1"] {
            assert!(error.to_string().contains(counts), "{error}");
        }
        run.append(&sound, fine).unwrap();
    }

    /// A run that was created once is not created again while it is missing.
    #[test]
    fn a_missing_run_is_not_created_again() {
        let place = tempfile::tempdir().unwrap();
        let (folder, aside) = (place.path().join("job"), place.path().join("aside"));
        let location = Location::from(&folder);
        let missing = JobRun::open(&location, &params(), None, false).unwrap_err();
        assert!(missing.kind() == ErrorKind::NotFound && !folder.exists(), "{missing}");
        let (mut run, ..) = JobRun::open(&location, &params(), None, true).unwrap();
        std::fs::rename(&folder, &aside).unwrap();
        for _ in 0..2 {
            let refused = run.append(&record(8), || Ok(())).unwrap_err();
            assert!(matches!(refused, RecordError::Other(AppendError::Failed(_))), "{refused}");
            assert!(!folder.exists());
        }
        std::fs::rename(&aside, &folder).unwrap();
        run.append(&record(8), || Ok(())).unwrap();
        drop(run);
        JobRun::open(&location, &params(), None, false).unwrap();
        assert_eq!(journal(&location), [json!(record(8))]);
    }

    /// After a failed append, the count of all files includes the uncommitted shards. Their commit must not count them
    /// again.
    #[test]
    fn shards_of_a_repeated_commit_count_once() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let limit = Some(DiskLimit { bytes: 1 << 20, times: 1 });
        let (mut run, ..) = JobRun::open(&location, &params(), limit, true).unwrap();
        let sound = commit(&run, |_| {});
        run.journal.lose_answer(&sound, true);
        // The run is reopened. Then the shard has other contents for a moment.
        let JournalRecord::Commit(Record { shards, .. }) = &sound else { panic!() };
        let file = place.path().join("job/shards").join(&shards[0].file);
        let aside = place.path().join("aside");
        std::fs::copy(&file, &aside).unwrap();
        std::fs::write(&file, b"another").unwrap();
        assert!(run.append(&sound, || Ok(())).is_err());
        std::fs::copy(&aside, &file).unwrap();
        run.append(&sound, || Ok(())).unwrap();
        let taken = run.stored().disk.unwrap().taken_bytes;
        drop(run);
        let (run, ..) = JobRun::open(&location, &params(), limit, true).unwrap();
        let counted = run.stored().disk.unwrap().taken_bytes;
        // The opening has added a file that takes as much as the shard. So both sums would be equal if the shard had
        // counted twice.
        assert!(taken + 4_000 < counted, "the shard counts twice: {taken} against {counted}");
    }

    #[test]
    fn a_process_that_does_not_own_the_store_opens_nothing() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, ..) = JobRun::open(&location, &params(), None, true).unwrap();
        run.journal.lose_answer(&record(8), true);
        let opening = run.opening();
        let taken_over = || Err(AppendError::Fenced("another".to_owned()));
        let refused = run.append(&record(8), taken_over);
        assert!(matches!(refused, Err(RecordError::Other(AppendError::Fenced(_)))));
        assert_eq!((run.opening(), journal(&location)), (opening, vec![]));
    }

    #[test]
    fn records_that_others_wrote_are_noticed() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, ..) = JobRun::open(&location, &params(), None, true).unwrap();
        run.append(&record(8), || Ok(())).unwrap();
        run.journal.lose_answer(&record(24), false);
        let (mut other, _) = JobRun::reopen(&location, None).unwrap();
        other.append(&record(16), || Ok(())).unwrap();
        drop(other);
        let refused = run.append(&record(24), || Ok(()));
        assert!(matches!(refused, Err(RecordError::Other(AppendError::Foreign(_)))));
        assert_eq!(journal(&location).len(), 2);
    }
}
