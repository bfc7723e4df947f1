//! Queue of jobs, stored as a journal in its own folder of the store. The process that writes the journal owns the
//! store.

use exact2048_coordinator::cluster::Submission;
use exact2048_solution::RunError;
use exact2048_storage::{ErrorKind, Location, Place, RunDir, RunId, StorageError, TypedRun};
use serde_json::json;

use super::AppendError;
use super::owned::{Journal, OpenJournal, OwnedJournal};
use super::queue_records::{QueueRecord, replay};
use crate::names;
use crate::wire::OpeningId;

/// Reason why a queue cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Another coordinator has the queue open.
    #[error(
        "a coordinator already runs on {store}: {} holds the lock of its queue; stop it first, or choose another place",
        pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Owned {
        /// The store.
        store: Place,
        /// The process that has the queue open, if its id is readable.
        pid: Option<u32>,
    },
    /// The intended place of the queue contains something else.
    #[error("{0} is not the queue of a coordinator; choose another place")]
    NotAQueue(Place),
    /// The intended store would lie within a run.
    #[error(
        "expected a store at {0}, found a run; choose the folder or prefix above this run, or \
         another place"
    )]
    IsARun(Place),
    /// A record is invalid, or contradicts the records before it.
    #[error("{place}: {what}")]
    Record {
        /// The queue.
        place: Place,
        /// Description of the error.
        what: String,
    },
    /// An error of the queue's directory or of one of its files.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl QueueError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Owned { .. } => ErrorKind::Busy,
            Self::NotAQueue(_) | Self::IsARun(_) => ErrorKind::Occupied,
            Self::Record { .. } => ErrorKind::DataLoss,
            Self::Storage(error) => error.kind(),
        }
    }
}

impl Journal for TypedRun<QueueRecord> {
    type Record = QueueRecord;

    fn open_again(
        location: &Location,
        run: RunId,
        is_expected: &dyn Fn(u64, Option<&QueueRecord>) -> bool,
    ) -> Result<Option<OpenJournal<Self>>, AppendError> {
        Self::require_at(location, run)?;
        let Some(mut journal) = Self::open_for_writing_if(location, is_expected)? else { return Ok(None) };
        let last = journal.take_records().pop();
        Ok(Some(opened(journal, last)?))
    }

    fn append(&mut self, record: &QueueRecord) -> Result<(), AppendError> {
        self.commit(record)?;
        drop(self.take_records());
        Ok(())
    }
}

/// Fences off earlier writers. `last` is the last record with its number, if there is any.
///
/// Opening records count as entries too. So this coordinator notices if another coordinator has owned the queue since
/// its last append. In that case the epochs of this coordinator are no longer valid.
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
    /// Number of this coordinator, at least 1: the number of its opening record, plus 1. The number grows with every
    /// opening of the queue by any process.
    pub fence: u64,
    /// Reason why this coordinator writes no more records; `None` as long as it owns the queue.
    fenced: Option<String>,
}

impl Queue {
    /// Takes over the queue of a store, or creates one, and returns the jobs as well. Other coordinators that have the
    /// queue open can no longer append.
    ///
    /// # Errors
    ///
    /// [`QueueError::Owned`] if another coordinator on this machine has the queue open. Otherwise an error of opening a
    /// [`TypedRun`] for writing, or of the contents of the place.
    pub fn open(store: &Location) -> Result<(Self, Vec<Submission>), QueueError> {
        if RunDir::find(store)?.is_some() {
            return Err(QueueError::IsARun(store.place()));
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
            Some(_) => return Err(QueueError::NotAQueue(location.place())),
        };
        let jobs = replay(dir.take_records())
            .map_err(|what| QueueError::Record { place: location.place(), what })?;
        let run = dir.run_id();
        let opened = opened(dir, None)?;
        let fence = opened.opening.0 + 1;
        Ok((Self { journal: OwnedJournal::new(location, run, opened), fence, fenced: None }, jobs))
    }

    /// Appends a record, which then survives a restart. Retries a failed append once.
    ///
    /// # Errors
    ///
    /// [`AppendError::Fenced`] if another coordinator has taken over. After [`AppendError::Failed`], the queue may
    /// contain the record or not, and the caller may append the record again.
    pub fn append(&mut self, record: &QueueRecord) -> Result<(), AppendError> {
        self.require_ownership()?;
        let mut appended = self.journal.append(record);
        // If even the opening of the journal failed, the caller decides about a retry, because the attempt took long.
        let is_open = self.journal.open.is_some();
        if is_open && matches!(&appended, Err(AppendError::Failed(error)) if !is_taken_over(error)) {
            appended = self.journal.append(record);
        }
        appended.map_err(|error| self.interpreted(error))
    }

    /// Requires that the store is in its place and writable. Its file system may have become read-only.
    ///
    /// # Errors
    ///
    /// As for [`confirm`](Self::confirm), and [`AppendError::Failed`] if the store is not writable.
    pub fn require_store(&mut self) -> Result<(), AppendError> {
        self.confirm()?;
        Ok(self.journal.open.as_ref().map_or(Ok(()), TypedRun::require_writable)?)
    }

    /// Requires that the queue is in its place, and that no other coordinator has taken over.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub fn confirm(&mut self) -> Result<(), AppendError> {
        self.require_ownership()?;
        let confirmed = self.journal.heal().and_then(|(journal, _)| Ok(journal.confirm()?));
        confirmed.map_err(|error| self.interpreted(error))
    }

    fn require_ownership(&self) -> Result<(), AppendError> {
        match &self.fenced {
            Some(reason) => Err(AppendError::Fenced(reason.clone())),
            None => Ok(()),
        }
    }

    /// Interprets a failure. A coordinator that another one has replaced never writes again.
    fn interpreted(&mut self, error: AppendError) -> AppendError {
        let reason = match error {
            AppendError::Failed(error) if is_taken_over(&error) => error.to_string(),
            AppendError::Foreign(_) => {
                format!("another coordinator has taken over {}", self.journal.location)
            }
            error => return error,
        };
        self.fenced = Some(reason.clone());
        AppendError::Fenced(reason)
    }
}

/// Returns whether an error shows that another coordinator owns the queue or is opening it.
fn is_taken_over(error: &RunError) -> bool {
    matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Busy)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use exact2048_storage::{RunDir, StoreSettings};
    use object_store::memory::InMemory;

    use super::*;
    use crate::coordinator::queue_records::tests::{job, names, params, submitted};

    /// The error names the file. The queue keeps no records in memory after their replay.
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
            assert_eq!(queue.journal.open.as_ref().unwrap().records(), []);
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
        let first = queue.fence;
        drop(queue);
        let (mut queue, jobs) = Queue::open(&store).unwrap();
        assert_eq!(names(&jobs), [("a", false)]);
        assert!(queue.fence > first);
        queue.append(&QueueRecord::Cancelled { job: job("a") }).unwrap();
        drop(queue);
        assert_eq!(names(&Queue::open(&store).unwrap().1), [("a", true)]);
    }

    /// A missing queue does not mean another owner. So this coordinator retries, and creates nothing in its place.
    #[test]
    fn a_missing_queue_is_not_replaced() {
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

    /// Checks the promises of [`OwnedJournal`] with a real journal.
    #[test]
    fn an_append_whose_answer_was_lost_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        let (mut queue, _) = Queue::open(&store).unwrap();
        let (a, b) = (submitted("a"), submitted("b"));
        // The journal does not contain the record.
        queue.journal.lose_answer(&a, true);
        queue.append(&a).unwrap();
        // The journal contains the record.
        Journal::append(queue.journal.heal().unwrap().0, &b).unwrap();
        queue.journal.lose_answer(&b, true);
        queue.append(&b).unwrap();
        // The journal contains the record, and no call appends the record again.
        Journal::append(queue.journal.heal().unwrap().0, &submitted("c")).unwrap();
        queue.journal.lose_answer(&submitted("c"), false);
        queue.append(&submitted("d")).unwrap();
        queue.confirm().unwrap();
        drop(queue);
        let jobs = Queue::open(&store).unwrap().1;
        assert_eq!(names(&jobs), [("a", false), ("b", false), ("c", false), ("d", false)]);
    }

    #[test]
    fn a_replaced_coordinator_does_not_take_over_again() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        let (mut queue, _) = Queue::open(&store).unwrap();
        // On a file system without working locks, another coordinator opens the queue, and ends.
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

    /// An object store has no lock. The new owner stays the owner, whether the failed append of the old one arrived or
    /// not.
    #[test]
    fn the_new_owner_of_an_object_store_stays_the_owner() {
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
    fn other_places_are_not_queues() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        RunDir::create(store.child(names::QUEUE).unwrap(), &json!(params("2x2"))).unwrap();
        assert!(Queue::open(&store).unwrap_err().to_string().contains("not the queue"));
    }
}
