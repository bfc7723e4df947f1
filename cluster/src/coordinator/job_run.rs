//! The run of a job, open for writing: the one place from which its journal grows.

use std::time::{Duration, Instant};

use exact2048_game::Params;
use exact2048_solution::{Commit, JournalRecord, Record, Retraction, Run, RunError, Unnamed};
use exact2048_storage::{Location, StorageError};

use super::AppendError;

/// For how long a shard may stay unseen that its worker has written: file systems on a network show files late.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Why a record was not appended to the journal of a run.
#[derive(Debug, thiserror::Error)]
pub enum NotAppended {
    /// A shard that it names is not there, or is not what it says: it never will be.
    #[error("{error}")]
    Shard {
        /// Which one of the record's shards.
        number: usize,
        /// What is wrong with it.
        error: StorageError,
    },
    /// As for any journal.
    #[error(transparent)]
    Other(#[from] AppendError),
}

/// What a run holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Its parameters. Those that do not change results may differ from what was asked for.
    pub params: Params,
    /// What is committed and not retracted.
    pub commits: Vec<Commit>,
    /// Bytes of the committed shards.
    pub bytes: u64,
}

impl Contents {
    /// What an open run holds.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self { params: run.params().clone(), commits: run.catalog().commits(), bytes: bytes_of(run) }
    }
}

fn bytes_of(run: &Run) -> u64 {
    run.catalog().shards().iter().map(|shard| shard.record.bytes).sum()
}

/// A run that is open for writing, and that opens itself again after a failure.
#[derive(Debug)]
pub struct JobRun {
    location: Location,
    /// `None` while it could not be opened again after a failure.
    run: Option<Run>,
    opening: u64,
    /// Records in the journal, as far as their appends were answered.
    records: usize,
    /// Whether the last append failed: then one more record may be there.
    uncertain: bool,
}

impl JobRun {
    /// Opens the run of a job, or begins it, and fences off whoever had it open before. Removes shards that nothing
    /// refers to, and retracts commits whose shards are not there.
    ///
    /// # Errors
    ///
    /// As for [`Run::open_or_create`] and [`Run::share`].
    pub fn begin(location: &Location, params: &Params) -> Result<(Self, Contents), RunError> {
        let mut run = Run::open_or_create(location, params, Unnamed::Refuse)?;
        run.share()?;
        for retracted in run.absent()? {
            tracing::warn!(run = %location, phase = retracted.phase.name(), first = %retracted.first,
                last = %retracted.last, "a shard of this range is not there: it is computed again");
            run.append(JournalRecord::Retraction(Retraction { retracted }))?;
        }
        Self::new(location, run)
    }

    /// Opens the run of a job to append to it, and removes nothing.
    ///
    /// # Errors
    ///
    /// As for [`Run::open_again`] and [`Run::share`].
    pub fn go_on(location: &Location) -> Result<(Self, Contents), RunError> {
        Self::new(location, Run::open_again(location)?)
    }

    fn new(location: &Location, mut run: Run) -> Result<(Self, Contents), RunError> {
        let (opening, contents) = (run.share()?, Contents::of(&run));
        let records = run.records();
        let location = location.clone();
        Ok((Self { location, run: Some(run), opening, records, uncertain: false }, contents))
    }

    /// The number of the opening record, which workers name in their shards.
    #[must_use]
    pub fn opening(&self) -> u64 {
        self.opening
    }

    /// Bytes of the committed shards; 0 while the run could not be opened again after a failure.
    #[must_use]
    pub fn committed_bytes(&self) -> u64 {
        self.run.as_ref().map_or(0, bytes_of)
    }

    /// Appends a record to the journal, after a look at the shards that it names: 104 bytes of each. The same record may
    /// be appended again after a failure: it will be there once.
    /// `confirm` says whether this process still owns the store; it is asked before a run is opened again, which
    /// fences others off.
    ///
    /// # Errors
    ///
    /// [`NotAppended::Shard`] if a shard is not what the record says; [`AppendError::Fenced`] if another process owns the
    /// store; [`AppendError::Foreign`] if another has written to this
    /// journal, or removed records of it. After [`AppendError::Failed`] it is uncertain whether the record is there.
    pub fn append(
        &mut self,
        record: JournalRecord,
        confirm: impl FnOnce() -> Result<(), AppendError>,
    ) -> Result<(), NotAppended> {
        let run = match self.run.take() {
            Some(run) if !self.uncertain => run,
            broken => {
                confirm()?;
                // First, as it holds the lock.
                drop(broken);
                let mut run = Run::open_again(&self.location).map_err(AppendError::from)?;
                self.opening = run.share().map_err(AppendError::from)?;
                match compare(&run, self.records, &record) {
                    Found::Nothing => run,
                    Found::Record => {
                        self.records += 1;
                        self.uncertain = false;
                        self.run = Some(run);
                        return Ok(());
                    }
                    Found::Other => {
                        let what = format!(
                            "another process has written to the journal of {}: stop it, then resume the job",
                            self.location
                        );
                        return Err(AppendError::Foreign(what).into());
                    }
                    Found::Fewer(left) => {
                        let what = format!(
                            "records of the journal of {} were removed: {} were there, and {left} are left; restore \
                             them from a copy, then resume the job",
                            self.location, self.records
                        );
                        return Err(AppendError::Foreign(what).into());
                    }
                }
            }
        };
        let run = self.run.insert(run);
        if let JournalRecord::Commit(record) = &record {
            look(run, record)?;
        }
        self.uncertain = true;
        run.append(record).map_err(AppendError::from)?;
        self.uncertain = false;
        self.records += 1;
        Ok(())
    }
}

/// Looks whether the shards of a record that is to be appended are there, and are what it says.
fn look(run: &Run, record: &Record) -> Result<(), NotAppended> {
    let Commit { phase, first, last, .. } = record.commit;
    let identity = run.catalog().identity(phase, first, last);
    let shards: Vec<_> = record.shards.iter().map(|shard| (shard, identity)).collect();
    let begun = Instant::now();
    loop {
        let looked = run.catalog().files().look(&shards).map_err(AppendError::from)?;
        let wrong = looked.into_iter().enumerate().find_map(|(number, looked)| Some((number, looked.err()?)));
        match wrong {
            None => return Ok(()),
            Some((_, StorageError::ShardMissing { .. })) if begun.elapsed() < SHOWN_WITHIN => {
                std::thread::sleep(PAUSE);
            }
            Some((number, error)) if error.blames().is_some() => {
                return Err(NotAppended::Shard { number, error });
            }
            Some((_, error)) => return Err(AppendError::from(error).into()),
        }
    }
}

/// What a journal holds beyond the records that are known to be there.
#[derive(PartialEq, Eq, Debug)]
enum Found {
    /// Nothing: the append has to be made again.
    Nothing,
    /// The very record: the append has succeeded.
    Record,
    /// What somebody else wrote.
    Other,
    /// Not even those.
    Fewer(usize),
}

fn compare(run: &Run, known: usize, pending: &JournalRecord) -> Found {
    match run.records().checked_sub(known) {
        Some(0) => Found::Nothing,
        Some(1) if run.last_record() == Some(pending) => Found::Record,
        Some(_) => Found::Other,
        None => Found::Fewer(run.records()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Layer, Objective, Precision, Spawn4};
    use exact2048_solution::{LayerCounts, Phase};
    use exact2048_storage::{Attempt, RunDir, ShardRecord, ShardWriter};
    use serde_json::{Value, json};

    fn params() -> Params {
        let (board, spawn4) = ("2x2".parse().unwrap(), Spawn4::default());
        Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap()
    }

    /// A record that the catalog takes without shards.
    fn record(last: u32) -> JournalRecord {
        let (phase, first, last) = (Phase::BackUp, Layer(4), Layer(last));
        let retracted = Commit { phase, first, last, layers: vec![], fingerprint: None };
        JournalRecord::Retraction(Retraction { retracted })
    }

    fn journal(location: &Location) -> Vec<Value> {
        RunDir::open_read_only(location).unwrap().records().to_vec()
    }

    #[test]
    fn an_append_that_failed_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, contents) = JobRun::begin(&location, &params()).unwrap();
        assert_eq!((contents.params, contents.commits, contents.bytes), (params(), vec![], 0));
        run.append(record(8), || panic!("nothing has failed")).unwrap();
        // The append was not made.
        let first = run.opening();
        run.uncertain = true;
        run.append(record(16), || Ok(())).unwrap();
        assert!(run.opening() > first);
        // It was made, and the answer was lost.
        run.run.as_mut().unwrap().append(record(24)).unwrap();
        run.uncertain = true;
        run.append(record(24), || Ok(())).unwrap();
        // The run could not be opened again for a while.
        run.uncertain = true;
        run.run = None;
        run.append(record(32), || Ok(())).unwrap();
        assert_eq!(journal(&location), [8, 16, 24, 32].map(|last| json!(record(last))));
    }

    /// A commit of the first layer with one shard, whose record is as in the store but for what a test changes.
    fn commit(run: &JobRun, change: impl FnOnce(&mut ShardRecord)) -> JournalRecord {
        let open = Run::open(&run.location).unwrap();
        let (phase, first, last) = (Phase::Enumerate, Layer(4), Layer(4));
        let identity = open.catalog().identity(phase, first, last);
        let attempt = Attempt { opening: run.opening(), epoch: 1, member: 1 };
        let mut shard =
            ShardWriter::create_as(open.catalog().files(), identity, attempt).unwrap().finish().unwrap();
        change(&mut shard);
        let layers = vec![LayerCounts { layer: first, states: 1, afterstates: 1 }];
        let commit = Commit { phase, first, last, layers, fingerprint: None };
        JournalRecord::Commit(Record { commit, shards: vec![shard], threads: vec![1], took: None })
    }

    #[test]
    fn only_shards_that_are_there_are_committed() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, _) = JobRun::begin(&location, &params()).unwrap();
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
            let refused = run.append(made_up, || panic!("nothing has failed")).unwrap_err();
            assert!(matches!(refused, NotAppended::Shard { number: 0, .. }), "{refused:?}");
            assert!(refused.to_string().contains(word), "{refused}");
        }
        assert_eq!(journal(&location), [] as [Value; 0]);
        let sound = commit(&run, |_| {});
        run.append(sound, || panic!("nothing has failed")).unwrap();
        assert_eq!(journal(&location).len(), 1);
    }

    #[test]
    fn whoever_does_not_own_the_store_opens_nothing() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, _) = JobRun::begin(&location, &params()).unwrap();
        run.uncertain = true;
        let opening = run.opening();
        let taken_over = || Err(AppendError::Fenced("another".to_owned()));
        let refused = run.append(record(8), taken_over);
        assert!(matches!(refused, Err(NotAppended::Other(AppendError::Fenced(_)))));
        assert_eq!((run.opening(), journal(&location)), (opening, vec![]));
    }

    #[test]
    fn what_others_wrote_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        let location = Location::from(place.path()).child("job").unwrap();
        let (mut run, _) = JobRun::begin(&location, &params()).unwrap();
        run.append(record(8), || Ok(())).unwrap();
        run.run = None;
        run.uncertain = true;
        let (mut other, _) = JobRun::go_on(&location).unwrap();
        other.append(record(16), || Ok(())).unwrap();
        drop(other);
        let refused = run.append(record(24), || Ok(()));
        assert!(matches!(refused, Err(NotAppended::Other(AppendError::Foreign(_)))));
        assert_eq!(journal(&location).len(), 2);
    }
}
