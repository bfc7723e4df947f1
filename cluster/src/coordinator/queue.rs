//! The queue of jobs, in the journal of a place of its own: the process that writes there owns the store.

use std::collections::{BTreeMap, HashMap, HashSet};

use exact2048_coordinator::cluster::{JobId, JobState, JobSummary};
use exact2048_game::Params;
use exact2048_storage::{ErrorKind, Location, Place, RunDir, RunId, StorageError, TypedRun};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::AppendError;
use super::owned::{Broken, Journal, OpenJournal, OwnedJournal};
use crate::names;
use crate::wire::OpeningId;

/// Record of the queue's journal. New kinds of records of later versions have new names, so this version refuses them
/// instead of overlooking them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueRecord {
    /// A job was accepted.
    Submitted {
        /// The job.
        job: JobId,
        /// Parameters of the run.
        params: Params,
        /// How many bytes its run may take of the disk, if there is a limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk_bytes: Option<u64>,
    },
    /// The run of a job was made, or found: from now on none is made for this job.
    Begun {
        /// The job.
        job: JobId,
    },
    /// A job is not to be worked on.
    Cancelled {
        /// The job.
        job: JobId,
    },
    /// A job is to be worked on again, after those that are in the queue.
    Resumed {
        /// The job.
        job: JobId,
    },
    /// A job has ended. Noted afterwards: without this record the next coordinator finds out what is missing of the job
    /// when it opens its run.
    Ended {
        /// The job.
        job: JobId,
        /// How.
        outcome: JobOutcome,
        /// How far it is.
        summary: JobSummary,
    },
    /// The progress of a job that has not ended. Written now and then: the run of the job knows what is committed, and
    /// only this record knows the retries and epochs.
    Progress {
        /// The job.
        job: JobId,
        /// Its progress.
        summary: JobSummary,
    },
    /// A job is not in the queue any more. Its run stays.
    Forgotten {
        /// The job.
        job: JobId,
    },
}

impl QueueRecord {
    /// The progress that it holds.
    fn summary(&self) -> Option<&JobSummary> {
        match self {
            Self::Ended { summary, .. } | Self::Progress { summary, .. } => Some(summary),
            Self::Submitted { .. }
            | Self::Begun { .. }
            | Self::Cancelled { .. }
            | Self::Resumed { .. }
            | Self::Forgotten { .. } => None,
        }
    }

    fn job(&self) -> &JobId {
        match self {
            Self::Submitted { job, .. }
            | Self::Begun { job }
            | Self::Cancelled { job }
            | Self::Resumed { job }
            | Self::Ended { job, .. }
            | Self::Progress { job, .. }
            | Self::Forgotten { job } => job,
        }
    }
}

/// How a job has ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// Everything is committed.
    Done,
    /// By request.
    Cancelled,
    /// By failures, the last of which was this.
    Failed(String),
}

impl JobOutcome {
    /// How a job in this state has ended, if it has.
    pub fn of(state: &JobState) -> Option<Self> {
        match state {
            JobState::Queued | JobState::Running => None,
            JobState::Done => Some(Self::Done),
            JobState::Cancelled => Some(Self::Cancelled),
            JobState::Failed { reason } => Some(Self::Failed(reason.clone())),
        }
    }
}

impl From<JobOutcome> for JobState {
    fn from(outcome: JobOutcome) -> Self {
        match outcome {
            JobOutcome::Done => Self::Done,
            JobOutcome::Cancelled => Self::Cancelled,
            JobOutcome::Failed(reason) => Self::Failed { reason },
        }
    }
}

/// A job that was accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct QueuedJob {
    /// The job.
    pub job: JobId,
    /// Parameters of the run.
    pub params: Params,
    /// How many bytes its run may take of the disk, if there is a limit.
    pub disk_limit: Option<u64>,
    /// Its outcome; [`JobState::Queued`] if it is to be worked on.
    pub state: JobState,
    /// Its progress when it ended, or when that was written last.
    pub summary: JobSummary,
    /// Whether its run was made.
    pub has_run: bool,
}

impl QueuedJob {
    fn new(job: JobId, params: Params, disk_limit: Option<u64>) -> Self {
        let (state, summary) = (JobState::Queued, JobSummary::default());
        Self { job, params, disk_limit, state, summary, has_run: false }
    }
}

/// The jobs that are left after these records of a journal, in order of their turns. Each record comes with its number;
/// the error names the one that is wrong.
///
/// Where the answer to an append was lost, the coordinator went on as if there were no such record, which may be there
/// all the same. So a job that is there may be submitted once more, and with other parameters: the later submission
/// counts, as the coordinator knew of that one. And there may be records of a job that was forgotten: they change
/// nothing.
fn replay(records: Vec<(u64, QueueRecord)>) -> Result<Vec<QueuedJob>, String> {
    let (mut jobs, mut places, mut forgotten) = (BTreeMap::new(), HashMap::new(), HashSet::new());
    for (number, record) in records {
        let wrong = |what: String| format!("cannot read record {number} of the queue: {what}");
        names::parse(&record.job().0).map_err(|error| wrong(error.to_string()))?;
        if let Some(what) = record.summary().and_then(JobSummary::fault) {
            return Err(wrong(what));
        }
        let known = places.get(record.job()).copied();
        match (record, known) {
            (QueueRecord::Submitted { job, params, disk_bytes }, known) => {
                params.check().map_err(|error| wrong(error.to_string()))?;
                known.and_then(|at| jobs.remove(&at));
                places.insert(job.clone(), number);
                jobs.insert(number, QueuedJob::new(job, params, disk_bytes));
            }
            (QueueRecord::Begun { .. }, Some(at)) => {
                jobs.entry(at).and_modify(|job| job.has_run = true);
            }
            (QueueRecord::Cancelled { .. }, Some(at)) => {
                jobs.entry(at).and_modify(|job| job.state = JobState::Cancelled);
            }
            (QueueRecord::Ended { outcome, summary, .. }, Some(at)) => {
                jobs.entry(at).and_modify(|job| (job.state, job.summary) = (outcome.into(), summary));
            }
            (QueueRecord::Progress { summary, .. }, Some(at)) => {
                jobs.entry(at).and_modify(|job| {
                    if !job.state.has_ended() {
                        job.summary = summary;
                    }
                });
            }
            (QueueRecord::Resumed { job }, Some(at)) => {
                if let Some(resumed) = jobs.remove(&at) {
                    jobs.insert(number, QueuedJob { state: JobState::Queued, ..resumed });
                }
                places.insert(job, number);
            }
            (QueueRecord::Forgotten { job }, Some(at)) => {
                jobs.remove(&at);
                places.remove(&job);
                forgotten.insert(job);
            }
            (record, None) if forgotten.contains(record.job()) => {}
            (record, None) => return Err(wrong(format!("expected an existing job, found {}", record.job()))),
        }
    }
    Ok(jobs.into_values().collect())
}

/// Why a queue cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Another coordinator has it open.
    #[error(
        "a coordinator already runs on {store}: {} holds the lock of its queue; stop it first, or choose another place",
        pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Owned {
        /// The store.
        store: Place,
        /// The process that has it open, when it could be read.
        pid: Option<u32>,
    },
    /// The place holds something else.
    #[error("{place} is not the queue of a coordinator; choose another place")]
    NotAQueue {
        /// Where the queue would be.
        place: Place,
    },
    /// The store would lie within a run.
    #[error(
        "expected a store at {place}, found a run; choose the place that contains this run, or \
         another one"
    )]
    IsARun {
        /// The intended store.
        place: Place,
    },
    /// A record makes no sense after those before it.
    #[error("{place}: {what}")]
    Record {
        /// The queue.
        place: Place,
        /// Description of the error.
        what: String,
    },
    /// The directory or one of its files.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl QueueError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Owned { .. } => ErrorKind::Busy,
            Self::NotAQueue { .. } | Self::IsARun { .. } => ErrorKind::Occupied,
            Self::Record { .. } => ErrorKind::DataLoss,
            Self::Storage(error) => error.kind(),
        }
    }
}

impl Journal for TypedRun<QueueRecord> {
    type Record = QueueRecord;
    type Error = StorageError;

    fn open_again(
        location: &Location,
        run: RunId,
        is_expected: &dyn Fn(u64, Option<&QueueRecord>) -> bool,
    ) -> Result<Option<OpenJournal<Self>>, StorageError> {
        Self::require_at(location, run)?;
        let Some(mut journal) = Self::open_for_writing_if(location, is_expected)? else { return Ok(None) };
        let last = journal.take_records().pop();
        opened(journal, last).map(Some)
    }

    fn append(&mut self, record: &QueueRecord) -> Result<(), StorageError> {
        self.commit(record)?;
        drop(self.take_records());
        Ok(())
    }
}

/// Fences earlier writers off. `last` is the last record with its number, if there is any.
///
/// Opening records count as entries, too. So it is noticed if another coordinator has owned the queue in between:
/// epochs that were given out would be wrong then.
fn opened(
    mut journal: TypedRun<QueueRecord>,
    last: Option<(u64, QueueRecord)>,
) -> Result<OpenJournal<TypedRun<QueueRecord>>, StorageError> {
    let found = journal.share()?;
    let last = last.filter(|(number, _)| number + 1 == found).map(|(_, record)| record);
    Ok(OpenJournal { journal, opening: OpeningId(found), found, last, entries: found + 1 })
}

/// The queue, open for writing.
#[derive(Debug)]
pub struct Queue {
    journal: OwnedJournal<TypedRun<QueueRecord>>,
    /// The number of this coordinator: that of its opening record, plus 1.
    fence: u64,
    /// Why nothing is written any more, once that is so.
    fenced: Option<String>,
}

impl Queue {
    /// Takes over the queue of a store, or begins one: from now on no other coordinator that has it open can append.
    /// Returns the jobs as well.
    ///
    /// # Errors
    ///
    /// [`QueueError::Owned`] where another coordinator on this machine has it open; those of opening a [`TypedRun`] for
    /// writing; and what is wrong with what the place holds.
    pub fn open(store: &Location) -> Result<(Self, Vec<QueuedJob>), QueueError> {
        if RunDir::find(store)?.is_some() {
            return Err(QueueError::IsARun { place: store.place() });
        }
        let location = store.child(names::QUEUE)?;
        let purpose = json!({ "purpose": "coordinator" });
        let mut dir = match TypedRun::<QueueRecord>::find(&location)? {
            None => TypedRun::create(&location, &purpose)?,
            Some(found) if found.params == purpose => match TypedRun::open_for_writing(&location) {
                Err(StorageError::Locked { pid, .. }) => {
                    return Err(QueueError::Owned { store: store.place(), pid });
                }
                opened => opened?,
            },
            Some(_) => return Err(QueueError::NotAQueue { place: location.place() }),
        };
        let jobs = replay(dir.take_records())
            .map_err(|what| QueueError::Record { place: location.place(), what })?;
        let run = dir.run_id();
        let opened = opened(dir, None)?;
        let fence = opened.opening.0 + 1;
        Ok((Self { journal: OwnedJournal::new(location, run, opened), fence, fenced: None }, jobs))
    }

    /// The number of this coordinator, at least 1: it grows with every opening of the queue, by any process.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Appends a record; what is appended survives a restart. It is tried twice.
    ///
    /// # Errors
    ///
    /// [`AppendError::Fenced`] if another coordinator has taken over. After [`AppendError::Failed`] it is uncertain
    /// whether the record is there; it may be appended again.
    pub fn append(&mut self, record: &QueueRecord) -> Result<(), AppendError> {
        self.require_ownership()?;
        let mut appended = self.journal.append(record);
        // A journal that could not even be opened is left to the caller: the attempt has taken its time already.
        let is_open = self.journal.journal().is_some();
        if is_open && matches!(&appended, Err(Broken::Failed(error)) if !is_taken_over(error)) {
            appended = self.journal.append(record);
        }
        appended.map_err(|broken| self.broken(broken))
    }

    /// Requires that the store is in its place and takes what is written: its file system may be read-only by now.
    ///
    /// # Errors
    ///
    /// As for [`confirm`](Self::confirm).
    pub fn require_store(&mut self) -> Result<(), AppendError> {
        self.confirm()?;
        Ok(self.journal.journal().map_or(Ok(()), TypedRun::require_writable)?)
    }

    /// Requires that the queue is in its place, and that no other coordinator has taken over.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub fn confirm(&mut self) -> Result<(), AppendError> {
        self.require_ownership()?;
        let confirmed = match self.journal.heal() {
            Ok((journal, _)) => journal.confirm().map_err(Broken::Failed),
            Err(broken) => Err(broken),
        };
        confirmed.map_err(|broken| self.broken(broken))
    }

    fn require_ownership(&self) -> Result<(), AppendError> {
        match &self.fenced {
            Some(reason) => Err(AppendError::Fenced(reason.clone())),
            None => Ok(()),
        }
    }

    /// Interprets a failure: a coordinator that was replaced gives up.
    fn broken(&mut self, broken: Broken<StorageError>) -> AppendError {
        let reason = match broken {
            Broken::Failed(error) if is_taken_over(&error) => error.to_string(),
            Broken::Failed(error) => return error.into(),
            Broken::Foreign | Broken::Fewer { .. } => {
                format!("another coordinator has taken over {}", self.journal.location())
            }
        };
        self.fenced = Some(reason.clone());
        AppendError::Fenced(reason)
    }
}

/// Whether an error says that another coordinator owns the queue, or opens it.
fn is_taken_over(error: &StorageError) -> bool {
    matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Busy)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use exact2048_game::{Objective, Precision, Spawn4};
    use exact2048_storage::{RunDir, StoreSettings};
    use object_store::memory::InMemory;

    use super::*;

    fn params(board: &str) -> Params {
        let board = board.parse().unwrap();
        Params::new(board, Objective::Score, Spawn4::default(), Precision::Bits32, None).unwrap()
    }

    fn job(name: &str) -> JobId {
        JobId(name.to_owned())
    }

    fn submitted(name: &str) -> QueueRecord {
        QueueRecord::Submitted { job: job(name), params: params("2x2"), disk_bytes: None }
    }

    fn names(jobs: &[QueuedJob]) -> Vec<(&str, bool)> {
        let is_cancelled = |queued: &QueuedJob| queued.state == JobState::Cancelled;
        jobs.iter().map(|queued| (queued.job.0.as_str(), is_cancelled(queued))).collect()
    }

    #[test]
    fn records_keep_their_shape() {
        let submitted = json!(submitted("a"));
        assert_eq!(submitted["submitted"]["job"], "a");
        assert_eq!(submitted["submitted"]["params"]["board"], "2x2");
        assert_eq!(json!(QueueRecord::Cancelled { job: job("a") }), json!({ "cancelled": { "job": "a" } }));
        assert_eq!(json!(QueueRecord::Begun { job: job("a") }), json!({ "begun": { "job": "a" } }));
        assert_eq!(json!(QueueRecord::Resumed { job: job("a") }), json!({ "resumed": { "job": "a" } }));
        assert_eq!(json!(QueueRecord::Forgotten { job: job("a") }), json!({ "forgotten": { "job": "a" } }));
        let (outcome, summary) = (JobOutcome::Failed("full".to_owned()), JobSummary::default());
        let ended = json!(QueueRecord::Ended { job: job("a"), outcome, summary });
        let summary = json!({ "states_done": 0, "done": 0.0, "bytes": 0 });
        assert_eq!(
            ended,
            json!({ "ended": { "job": "a", "outcome": { "failed": "full" }, "summary": summary } })
        );
        let summary =
            JobSummary { done: 0.5, retries: 3, epochs: 5, peak_disk_bytes: 7, ..JobSummary::default() };
        let fields = json!({
            "states_done": 0, "done": 0.5, "bytes": 0, "retries": 3, "epochs": 5, "peak_disk_bytes": 7
        });
        assert_eq!(
            json!(QueueRecord::Progress { job: job("a"), summary }),
            json!({ "progress": { "job": "a", "summary": fields } })
        );
    }

    /// Records as the first coordinators wrote them.
    #[test]
    fn queues_without_counts_are_read() {
        let summary = r#"{"phase":"back_up","states_done":7,"states_total":9,"done":0.25,"bytes":3}"#;
        let ended = format!(r#"{{"ended":{{"job":"a","outcome":"cancelled","summary":{summary}}}}}"#);
        let record: QueueRecord = serde_json::from_str(&ended).unwrap();
        let jobs = replay(vec![(0, submitted("a")), (1, record)]).unwrap();
        assert_eq!((jobs[0].state.clone(), jobs[0].summary.states_done), (JobState::Cancelled, 7));
        assert_eq!((jobs[0].summary.epochs, jobs[0].summary.retries, jobs[0].summary.done), (0, 0, 0.25));
    }

    #[test]
    fn progress_is_kept_until_the_job_has_more() {
        let progress = |done, retries| {
            let summary = JobSummary { done, retries, ..JobSummary::default() };
            QueueRecord::Progress { job: job("a"), summary }
        };
        let of = |records: &[QueueRecord]| replay((0..).zip(records.iter().cloned()).collect());
        let jobs = of(&[submitted("a"), progress(0.1, 0), progress(0.3, 2)]).unwrap();
        assert_eq!(
            (&jobs[0].state, jobs[0].summary.done, jobs[0].summary.retries),
            (&JobState::Queued, 0.3, 2)
        );
        let stopped = [submitted("a"), progress(0.3, 2), QueueRecord::Cancelled { job: job("a") }];
        let resumed = QueueRecord::Resumed { job: job("a") };
        let jobs = of(&[&stopped[..], &[resumed, submitted("b")]].concat()).unwrap();
        assert_eq!((&jobs[0].state, jobs[0].summary.retries), (&JobState::Queued, 2));
        let ended =
            QueueRecord::Ended { job: job("a"), outcome: JobOutcome::Done, summary: JobSummary::default() };
        let jobs = of(&[submitted("a"), ended, progress(0.5, 3)]).unwrap();
        assert_eq!(jobs[0].summary.retries, 0, "an ended job makes no progress");
        for wrong in [-0.1, 1.5, 1e300] {
            let error = of(&[submitted("a"), progress(wrong, 0)]).unwrap_err();
            assert!(error.contains("record 1") && error.contains("from 0 to 1"), "{error}");
        }
    }

    #[test]
    fn what_a_journal_leaves() {
        let cancelled = |name| QueueRecord::Cancelled { job: job(name) };
        let resumed = |name| QueueRecord::Resumed { job: job(name) };
        let [a, b] = ["a", "b"].map(submitted);
        let of = |records: &[&QueueRecord]| replay((0..).zip(records.iter().copied().cloned()).collect());
        assert_eq!(names(&of(&[&a, &b, &cancelled("a")]).unwrap()), [("a", true), ("b", false)]);
        assert_eq!(
            names(&of(&[&a, &b, &cancelled("a"), &resumed("a")]).unwrap()),
            [("b", false), ("a", false)]
        );
        let ended = |outcome| {
            let summary =
                JobSummary { states_done: 7, fingerprint: Some(u128::MAX), ..JobSummary::default() };
            QueueRecord::Ended { job: job("a"), outcome, summary }
        };
        let failed =
            of(&[&a, &ended(JobOutcome::Done), &ended(JobOutcome::Failed("full".to_owned()))]).unwrap();
        assert_eq!(failed[0].state, JobState::Failed { reason: "full".to_owned() });
        assert_eq!((failed[0].summary.states_done, failed[0].summary.fingerprint), (7, Some(u128::MAX)));
        let again = of(&[&a, &ended(JobOutcome::Done), &resumed("a")]).unwrap();
        assert_eq!((&again[0].state, again[0].has_run), (&JobState::Queued, false));
        // A job that is submitted once more under its name begins anew.
        let begun = QueueRecord::Begun { job: job("a") };
        assert!(of(&[&a, &begun, &cancelled("a"), &resumed("a")]).unwrap()[0].has_run);
        assert!(!of(&[&a, &begun, &QueueRecord::Forgotten { job: job("a") }, &a]).unwrap()[0].has_run);
        let forgotten = QueueRecord::Forgotten { job: job("a") };
        assert_eq!(names(&of(&[&a, &b, &forgotten]).unwrap()), [("b", false)]);
        assert_eq!(names(&of(&[&a, &b, &forgotten, &a]).unwrap()), [("b", false), ("a", false)]);
        // Answers that were lost.
        assert_eq!(names(&of(&[&a, &b, &a]).unwrap()), [("b", false), ("a", false)]);
        let other =
            QueueRecord::Submitted { job: job("a"), params: params("3x2"), disk_bytes: Some(1 << 30) };
        assert_eq!(of(&[&a, &other]).unwrap()[0].params, params("3x2"));
        for late in [&forgotten, &cancelled("a"), &resumed("a"), &ended(JobOutcome::Done)] {
            assert_eq!(names(&of(&[&a, &b, &forgotten, late]).unwrap()), [("b", false)], "{late:?}");
            assert_eq!(names(&of(&[&a, &b, &forgotten, late, &a]).unwrap()), [("b", false), ("a", false)]);
        }
        for wrong in [cancelled("x"), submitted("../x")] {
            let error = of(&[&a, &wrong]).unwrap_err();
            assert!(error.contains("record 1"), "{error}");
        }
    }

    /// The error names the file. Nothing is held of the records once they are replayed.
    #[test]
    fn records_that_are_not_understood_are_refused_and_no_record_is_held() {
        for wrong in [
            json!({ "submitted": { "job": "x" } }),
            json!({ "of a later version": { "job": "a" } }),
            json!({ "cancelled": { "job": "a", "why": "of a later version" } }),
        ] {
            let place = tempfile::tempdir().unwrap();
            let store = Location::from(place.path());
            let (mut queue, _) = Queue::open(&store).unwrap();
            queue.append(&submitted("a")).unwrap();
            assert_eq!(queue.journal.journal().unwrap().records(), []);
            drop(queue);
            RunDir::open_for_writing(store.child(names::QUEUE).unwrap()).unwrap().commit(&wrong).unwrap();
            let error = Queue::open(&store).unwrap_err();
            let QueueError::Storage(StorageError::NotUnderstood { file, .. }) = &error else {
                panic!("{error:?}")
            };
            assert!(file.to_string().ends_with("000002.json"), "{error:?}");
        }
    }

    #[test]
    fn the_queue_survives_and_has_one_owner() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        let (mut queue, jobs) = Queue::open(&store).unwrap();
        assert!(jobs.is_empty());
        queue.append(&submitted("a")).unwrap();
        queue.confirm().unwrap();
        let error = Queue::open(&store).unwrap_err();
        assert!(matches!(error, QueueError::Owned { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Busy);
        let first = queue.fence();
        drop(queue);
        let (mut queue, jobs) = Queue::open(&store).unwrap();
        assert_eq!(names(&jobs), [("a", false)]);
        assert!(queue.fence() > first);
        queue.append(&QueueRecord::Cancelled { job: job("a") }).unwrap();
        drop(queue);
        assert_eq!(names(&Queue::open(&store).unwrap().1), [("a", true)]);
    }

    /// A queue that is away is nobody else's: this coordinator waits for it, and makes nothing in its place (finding B1).
    #[test]
    fn a_queue_that_is_away_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let (store, aside) = (place.path().join("store"), place.path().join("aside"));
        let (mut queue, _) = Queue::open(&Location::from(&store)).unwrap();
        queue.append(&submitted("a")).unwrap();
        for in_place in ["nothing", "an empty folder", "another queue"] {
            std::fs::rename(&store, &aside).unwrap();
            let mut others = 0;
            match in_place {
                "nothing" => {}
                "an empty folder" => std::fs::create_dir(&store).unwrap(),
                _ => {
                    drop(Queue::open(&Location::from(&store)).unwrap());
                    others = 1;
                }
            }
            let away = |result: Result<(), AppendError>| {
                let Err(AppendError::Failed(error)) = result else { panic!("{in_place}: {result:?}") };
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{in_place}: {error}");
            };
            for _ in 0..2 {
                away(queue.confirm());
                away(queue.require_store());
                away(queue.append(&QueueRecord::Begun { job: job("a") }));
            }
            let journal = store.join(names::QUEUE).join("journal");
            let found = std::fs::read_dir(journal).map_or(0, |found| found.count());
            assert_eq!((found, store.exists()), (others, in_place != "nothing"), "{in_place}");
            let _ = std::fs::remove_dir_all(&store);
            std::fs::rename(&aside, &store).unwrap();
            queue.require_store().unwrap();
        }
        queue.append(&QueueRecord::Begun { job: job("a") }).unwrap();
        drop(queue);
        let jobs = Queue::open(&Location::from(&store)).unwrap().1;
        assert_eq!((names(&jobs), jobs[0].has_run), (vec![("a", false)], true));
    }

    /// Over a real journal, what [`OwnedJournal`] promises.
    #[test]
    fn an_append_whose_answer_was_lost_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        let (mut queue, _) = Queue::open(&store).unwrap();
        let (a, b) = (submitted("a"), submitted("b"));
        // It is not there.
        queue.journal.lose_answer(&a, true);
        queue.append(&a).unwrap();
        // It is there.
        Journal::append(queue.journal.heal().unwrap().0, &b).unwrap();
        queue.journal.lose_answer(&b, true);
        queue.append(&b).unwrap();
        // It is there, and nobody asks for it again.
        Journal::append(queue.journal.heal().unwrap().0, &submitted("c")).unwrap();
        queue.journal.lose_answer(&submitted("c"), false);
        queue.append(&submitted("d")).unwrap();
        queue.confirm().unwrap();
        drop(queue);
        let jobs = Queue::open(&store).unwrap().1;
        assert_eq!(names(&jobs), [("a", false), ("b", false), ("c", false), ("d", false)]);
    }

    #[test]
    fn whoever_was_taken_over_does_not_take_over_again() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        let (mut queue, _) = Queue::open(&store).unwrap();
        // On a file system that does not keep the lock, another opens the queue, and ends.
        queue.journal.lose_answer(&submitted("a"), false);
        drop(Queue::open(&store).unwrap());
        let entries = || std::fs::read_dir(place.path().join(names::QUEUE).join("journal")).unwrap().count();
        let before = entries();
        for _ in 0..2 {
            assert!(matches!(queue.append(&submitted("a")), Err(AppendError::Fenced(_))));
        }
        assert_eq!(entries(), before, "the other one is not fenced off");
        assert!(Queue::open(&store).unwrap().1.is_empty());
    }

    /// In a store, which has no lock: the new owner stays the owner, whatever the append was that had failed.
    #[test]
    fn who_has_taken_over_in_a_store_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for is_there in [false, true] {
            let settings =
                StoreSettings { cache_folder: Some(folder.path().into()), ..StoreSettings::default() };
            let objects = Arc::new(InMemory::new());
            let store = Location::objects(objects, "s3://bucket/jobs", "jobs", &settings).unwrap();
            let (mut old, _) = Queue::open(&store).unwrap();
            if is_there {
                Journal::append(old.journal.heal().unwrap().0, &submitted("a")).unwrap();
            }
            old.journal.lose_answer(&submitted("a"), true);
            let (mut new, jobs) = Queue::open(&store).unwrap();
            assert_eq!(jobs.len(), usize::from(is_there));
            for _ in 0..2 {
                assert!(matches!(old.confirm(), Err(AppendError::Fenced(_))));
                assert!(matches!(old.append(&submitted("a")), Err(AppendError::Fenced(_))));
            }
            new.confirm().unwrap();
            new.append(&submitted("b")).unwrap();
        }
    }

    #[test]
    fn other_places_are_no_queues() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        RunDir::create(store.child(names::QUEUE).unwrap(), &json!(params("2x2"))).unwrap();
        assert!(Queue::open(&store).unwrap_err().to_string().contains("not the queue"));
    }
}
