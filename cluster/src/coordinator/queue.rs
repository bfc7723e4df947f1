//! The queue of jobs, in the journal of a place of its own: whoever writes there owns the store.

use exact2048_coordinator::cluster::JobId;
use exact2048_game::Params;
use exact2048_storage::{Location, RunDir, StorageError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AppendError;
use crate::names;

/// How often a record is tried to be appended before whoever asked for it is told.
const TRIES: u32 = 2;

/// What the queue's journal holds. A kind of record that a later version adds has another name, so that this one
/// refuses it instead of overlooking it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueRecord {
    /// A job was accepted.
    Submitted {
        /// The job.
        job: JobId,
        /// What is to be computed.
        params: Params,
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
}

/// A job that was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuedJob {
    /// The job.
    pub job: JobId,
    /// What is to be computed.
    pub params: Params,
    /// Whether it is not to be worked on.
    pub cancelled: bool,
}

/// The jobs that the records of a journal leave, in order of their turns. The error names the record.
fn replay(records: &[Value]) -> Result<Vec<QueuedJob>, String> {
    let mut jobs: Vec<QueuedJob> = Vec::new();
    for (number, record) in records.iter().enumerate() {
        let wrong = |what: String| format!("record {number} of the queue is not understood: {what}");
        let record = QueueRecord::deserialize(record).map_err(|error| wrong(error.to_string()))?;
        let (QueueRecord::Submitted { job, .. }
        | QueueRecord::Cancelled { job }
        | QueueRecord::Resumed { job }) = &record;
        names::parse(&job.0).map_err(|error| wrong(error.to_string()))?;
        let known = jobs.iter().position(|queued| queued.job == *job);
        match (record, known) {
            (QueueRecord::Submitted { job, params }, None) => {
                params.check().map_err(|error| wrong(error.to_string()))?;
                jobs.push(QueuedJob { job, params, cancelled: false });
            }
            // An answer was lost, and the job submitted again.
            (QueueRecord::Submitted { .. }, Some(_)) => {}
            (QueueRecord::Cancelled { .. }, Some(at)) => jobs[at].cancelled = true,
            (QueueRecord::Resumed { .. }, Some(at)) => {
                let job = jobs.remove(at);
                jobs.push(QueuedJob { cancelled: false, ..job });
            }
            (QueueRecord::Cancelled { job } | QueueRecord::Resumed { job }, None) => {
                return Err(wrong(format!("there is no job {job}")));
            }
        }
    }
    Ok(jobs)
}

/// The queue, open for writing.
#[derive(Debug)]
pub struct Queue {
    location: Location,
    /// `None` while it could not be opened again after a failure.
    dir: Option<RunDir>,
    fence: u64,
    /// The number of the next entry of the journal, if nobody else writes there.
    next: u64,
    /// A record that may or may not be the next entry.
    uncertain: Option<Value>,
    /// Why nothing is written any more, once that is so.
    fenced: Option<String>,
}

impl Queue {
    /// Takes over the queue of a store, or begins one: from now on no other coordinator that has it open can append.
    /// Returns the jobs as well.
    ///
    /// # Errors
    ///
    /// Those of opening a [`RunDir`] for writing, among them [`StorageError::Locked`] where another coordinator on
    /// this machine has it open; and what is wrong with what the place holds.
    pub fn open(store: &Location) -> anyhow::Result<(Self, Vec<QueuedJob>)> {
        let location = store.child(names::QUEUE)?;
        let purpose = json!({ "purpose": "coordinator" });
        let dir = match RunDir::find_params(&location)? {
            None => RunDir::create(&location, &purpose)?,
            Some(found) if found == purpose => RunDir::open_for_writing(&location)?,
            Some(_) => anyhow::bail!("{location} is not the queue of a coordinator: choose another --store"),
        };
        let jobs = replay(dir.records()).map_err(|what| anyhow::anyhow!("{location}: {what}"))?;
        let mut queue = Self { location, dir: None, fence: 0, next: 0, uncertain: None, fenced: None };
        queue.fence = queue.share(dir)? + 1;
        Ok((queue, jobs))
    }

    /// The number of this coordinator, at least 1: it grows with every opening of the queue, by whomever.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Appends a record; what is appended survives a restart.
    ///
    /// # Errors
    ///
    /// [`AppendError::Fenced`] if another coordinator has taken over. After [`AppendError::Failed`] it is uncertain
    /// whether the record is there; it may be appended again.
    pub fn append(&mut self, record: &QueueRecord) -> Result<(), AppendError> {
        let value = json!(record);
        let mut tried = 1;
        loop {
            let appended = match self.heal()? {
                // A failed append that has succeeded after all.
                Some(found) if found == value => return Ok(()),
                _ => self.writable()?.commit(&value),
            };
            match appended {
                Ok(number) => {
                    self.next = number + 1;
                    return Ok(());
                }
                Err(error) => {
                    self.uncertain = Some(value.clone());
                    if tried == TRIES {
                        return Err(error.into());
                    }
                }
            }
            tried += 1;
        }
    }

    /// Requires that no other coordinator has taken over.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub fn confirm(&mut self) -> Result<(), AppendError> {
        self.heal()?;
        match self.writable()?.confirm() {
            Err(error @ (StorageError::TakenOver { .. } | StorageError::Conflict { .. })) => {
                Err(self.give_up(error.to_string()))
            }
            confirmed => Ok(confirmed?),
        }
    }

    /// Opens the queue again after a failure. Returns the record that was uncertain, if it is there.
    fn heal(&mut self) -> Result<Option<Value>, AppendError> {
        if let Some(reason) = &self.fenced {
            return Err(AppendError::Fenced(reason.clone()));
        }
        if self.dir.is_some() && self.uncertain.is_none() {
            return Ok(None);
        }
        let (uncertain, expected) = (self.uncertain.clone(), self.next);
        // The old one first, as it holds the lock.
        drop(self.dir.take());
        let dir = match RunDir::open_for_writing(&self.location) {
            Err(error @ StorageError::Locked { .. }) => return Err(self.give_up(error.to_string())),
            opened => opened?,
        };
        let last = dir.records().len().checked_sub(1).and_then(|last| dir.record_number(last));
        let found = dir.records().last().filter(|_| last == Some(expected)).cloned();
        let opening = self.share(dir)?;
        // Nobody else may have opened it in between: epochs that were given out would have become wrong.
        match found {
            None if opening == expected => {}
            Some(ref found) if opening == expected + 1 && Some(found) == uncertain.as_ref() => {}
            _ => {
                self.dir = None;
                return Err(self.give_up(format!("{} was taken over meanwhile", self.location)));
            }
        }
        self.uncertain = None;
        Ok(found)
    }

    fn give_up(&mut self, reason: String) -> AppendError {
        self.fenced = Some(reason.clone());
        AppendError::Fenced(reason)
    }

    fn share(&mut self, mut dir: RunDir) -> Result<u64, StorageError> {
        let opening = dir.share()?;
        self.next = opening + 1;
        self.dir = Some(dir);
        Ok(opening)
    }

    fn writable(&mut self) -> Result<&mut RunDir, AppendError> {
        let closed = || StorageError::EarlierFailure { path: self.location.to_string().into() };
        self.dir.as_mut().ok_or_else(|| AppendError::Failed(closed().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Objective, Precision, Spawn4};

    fn params(board: &str) -> Params {
        let board = board.parse().unwrap();
        Params::new(board, Objective::Score, Spawn4::default(), Precision::Bits32, None).unwrap()
    }

    fn job(name: &str) -> JobId {
        JobId(name.to_owned())
    }

    fn submitted(name: &str) -> QueueRecord {
        QueueRecord::Submitted { job: job(name), params: params("2x2") }
    }

    fn names(jobs: &[QueuedJob]) -> Vec<(&str, bool)> {
        jobs.iter().map(|queued| (queued.job.0.as_str(), queued.cancelled)).collect()
    }

    #[test]
    fn records_keep_their_shape() {
        let submitted = json!(submitted("a"));
        assert_eq!(submitted["submitted"]["job"], "a");
        assert_eq!(submitted["submitted"]["params"]["board"], "2x2");
        assert_eq!(json!(QueueRecord::Cancelled { job: job("a") }), json!({ "cancelled": { "job": "a" } }));
        assert_eq!(json!(QueueRecord::Resumed { job: job("a") }), json!({ "resumed": { "job": "a" } }));
    }

    #[test]
    fn what_a_journal_leaves() {
        let cancelled = |name| json!(QueueRecord::Cancelled { job: job(name) });
        let resumed = |name| json!(QueueRecord::Resumed { job: job(name) });
        let [a, b] = ["a", "b"].map(|name| json!(submitted(name)));
        let of = |records: &[&Value]| {
            let records: Vec<Value> = records.iter().map(|&record| record.clone()).collect();
            replay(&records)
        };
        assert_eq!(names(&of(&[&a, &b, &a]).unwrap()), [("a", false), ("b", false)]);
        assert_eq!(names(&of(&[&a, &b, &cancelled("a")]).unwrap()), [("a", true), ("b", false)]);
        assert_eq!(
            names(&of(&[&a, &b, &cancelled("a"), &resumed("a")]).unwrap()),
            [("b", false), ("a", false)]
        );
        for wrong in [
            cancelled("x"),
            json!({ "submitted": { "job": "../x", "params": params("2x2") } }),
            json!({ "submitted": { "job": "x" } }),
            json!({ "of a later version": { "job": "a" } }),
            json!({ "cancelled": { "job": "a", "why": "of a later version" } }),
        ] {
            let error = of(&[&a, &wrong]).unwrap_err();
            assert!(error.contains("record 1"), "{error}");
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
        assert!(matches!(error.downcast_ref(), Some(StorageError::Locked { .. })), "{error}");
        let first = queue.fence();
        drop(queue);
        let (mut queue, jobs) = Queue::open(&store).unwrap();
        assert_eq!(names(&jobs), [("a", false)]);
        assert!(queue.fence() > first);
        queue.append(&QueueRecord::Cancelled { job: job("a") }).unwrap();
        drop(queue);
        assert_eq!(names(&Queue::open(&store).unwrap().1), [("a", true)]);
    }

    /// A coordinator whose append failed, as one looks to whom the store did not answer.
    fn failed(queue: &mut Queue, record: &QueueRecord) {
        queue.uncertain = Some(json!(record));
    }

    #[test]
    fn an_append_that_failed_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        let (mut queue, _) = Queue::open(&store).unwrap();
        let (a, b) = (submitted("a"), submitted("b"));
        // It is not there.
        failed(&mut queue, &a);
        queue.append(&a).unwrap();
        // It is there.
        let expected = queue.next;
        queue.writable().unwrap().commit(&json!(b)).unwrap();
        failed(&mut queue, &b);
        assert_eq!(queue.next, expected);
        queue.append(&b).unwrap();
        // It is there, and nobody asks for it again.
        queue.writable().unwrap().commit(&json!(submitted("c"))).unwrap();
        failed(&mut queue, &submitted("c"));
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
        drop(queue.dir.take());
        drop(Queue::open(&store).unwrap());
        for _ in 0..2 {
            assert!(matches!(queue.append(&submitted("a")), Err(AppendError::Fenced(_))));
        }
        assert!(Queue::open(&store).unwrap().1.is_empty());
    }

    #[test]
    fn other_places_are_no_queues() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        RunDir::create(store.child(names::QUEUE).unwrap(), &json!(params("2x2"))).unwrap();
        assert!(Queue::open(&store).unwrap_err().to_string().contains("not the queue"));
    }
}
