//! Records of the queue's journal, and the jobs that follow from them.

use std::collections::{BTreeMap, HashMap, HashSet};

use exact2048_coordinator::cluster::{JobId, JobState, JobSummary, Submission};
use exact2048_game::Params;
use serde::{Deserialize, Serialize};

use crate::names;

/// Record of the queue's journal. Later versions must name new kinds of records differently, so that this version
/// refuses them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueRecord {
    /// A job was accepted.
    Submitted {
        /// The job.
        job: JobId,
        /// Parameters of the run.
        params: Params,
        /// Disk limit of the run in bytes, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk_bytes: Option<u64>,
    },
    /// The run of a job was created or found. From now on, no other run is created for this job.
    Begun {
        /// The job.
        job: JobId,
    },
    /// A job was stopped on request.
    Cancelled {
        /// The job.
        job: JobId,
    },
    /// A job was returned to the end of the queue.
    Resumed {
        /// The job.
        job: JobId,
    },
    /// A job has ended. This record is written after the end. Without it, the next coordinator opens the job's run to
    /// find out which layers are missing.
    Ended {
        /// The job.
        job: JobId,
        /// How the job ended.
        outcome: JobOutcome,
        /// Progress of the job at its end.
        summary: JobSummary,
    },
    /// The progress of a job that has not ended. Written only occasionally, because the job's run records the commits.
    /// Only this record contains the numbers of retries and epochs.
    Progress {
        /// The job.
        job: JobId,
        /// Progress of the job.
        summary: JobSummary,
    },
    /// A job was removed from the queue. Its run stays.
    Forgotten {
        /// The job.
        job: JobId,
    },
}

impl QueueRecord {
    /// Returns the progress in the record, if any.
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

/// Outcome of an ended job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// All layers are committed.
    Done,
    /// The job was stopped on request.
    Cancelled,
    /// The job failed. The text is its last failure.
    Failed(String),
}

impl JobOutcome {
    /// Returns the outcome of a job in this state; `None` if the job has not ended.
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

/// Replays the numbered records of a journal. Returns the jobs in order of their turns, or an error that names the
/// invalid record.
///
/// If the answer to an append was lost, the coordinator continued without the record, although the journal may contain
/// it. So a journal may submit an existing job again, even with other parameters. Then the later submission counts,
/// because the coordinator knew only that one. A journal may also contain records of a forgotten job, which change
/// nothing.
pub(super) fn replay(records: Vec<(u64, QueueRecord)>) -> Result<Vec<Submission>, String> {
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
                known.and_then(|at| jobs.remove(&at));
                places.insert(job.clone(), number);
                jobs.insert(number, new_job(job, params, disk_bytes));
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
                    jobs.insert(number, Submission { state: JobState::Queued, ..resumed });
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

/// Creates a submitted job whose run was not created yet.
pub(super) fn new_job(job: JobId, params: Params, disk_limit: Option<u64>) -> Submission {
    let (state, summary) = (JobState::Queued, JobSummary::default());
    Submission { job, params, disk_limit, least_memory: None, state, summary, has_run: false }
}

#[cfg(test)]
pub(super) mod tests {

    use serde_json::json;

    use super::*;

    pub fn params(board: &str) -> Params {
        Params::small(board)
    }

    pub fn job(name: &str) -> JobId {
        JobId(name.to_owned())
    }

    pub fn submitted(name: &str) -> QueueRecord {
        QueueRecord::Submitted { job: job(name), params: params("2x2"), disk_bytes: None }
    }

    pub fn names(jobs: &[Submission]) -> Vec<(&str, bool)> {
        let is_cancelled = |queued: &Submission| queued.state == JobState::Cancelled;
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

    /// Early versions wrote records without the counts of retries and epochs.
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
    fn a_journal_replays_to_its_jobs() {
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
        // A job that is forgotten and submitted again under the same name has no run yet.
        let begun = QueueRecord::Begun { job: job("a") };
        assert!(of(&[&a, &begun, &cancelled("a"), &resumed("a")]).unwrap()[0].has_run);
        assert!(!of(&[&a, &begun, &QueueRecord::Forgotten { job: job("a") }, &a]).unwrap()[0].has_run);
        let forgotten = QueueRecord::Forgotten { job: job("a") };
        assert_eq!(names(&of(&[&a, &b, &forgotten]).unwrap()), [("b", false)]);
        assert_eq!(names(&of(&[&a, &b, &forgotten, &a]).unwrap()), [("b", false), ("a", false)]);
        // Records whose answers were lost.
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
}
