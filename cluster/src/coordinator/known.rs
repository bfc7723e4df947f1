//! The shell's data about jobs, in addition to the data of the pure code.

use std::collections::BTreeMap;
use std::sync::Arc;

use exact2048_coordinator::cluster::{Cluster, JobId, PullReply, Share};
use exact2048_game::Params;
use exact2048_storage::{Location, StorageError};
use parking_lot::Mutex;

use super::job_run::JobRun;
use crate::wire::{Answer, Assignment, OpeningId};

/// State of the pure code and of the shell, under one lock.
pub(super) struct State {
    pub cluster: Cluster,
    pub jobs: BTreeMap<JobId, Known>,
}

/// Location and open run of a job.
#[derive(Clone)]
pub(super) struct Known {
    pub params: Params,
    /// Disk limit of the run in bytes, if any.
    pub disk_limit: Option<u64>,
    pub location: Location,
    /// The URL of the location, for workers and people.
    pub url: String,
    /// The run, while it is open for writing. It is closed soon after the cluster no longer needs it.
    pub held: Option<HeldRun>,
}

/// The run of a job that is open for writing.
#[derive(Clone)]
pub(super) struct HeldRun {
    pub run: Arc<Mutex<JobRun>>,
    /// The latest opening record.
    pub opening: OpeningId,
}

impl Known {
    /// Creates the data of a job whose run is not open.
    pub fn new(params: Params, disk_limit: Option<u64>, location: Location) -> Result<Self, StorageError> {
        let url = location.url()?;
        Ok(Self { params, disk_limit, location, url, held: None })
    }
}

impl HeldRun {
    pub fn new(run: JobRun) -> Self {
        Self { opening: run.opening(), run: Arc::new(Mutex::new(run)) }
    }
}

impl State {
    /// Adds the location and the opening of the run to a reply.
    pub fn answer(&self, reply: PullReply) -> Answer {
        let PullReply { acknowledged, withdrawn, share, progress, write, needed_memory, hold } = reply;
        let share = share.and_then(|share| {
            let known = self.jobs.get(&share.job)?;
            let (run_url, opening) = (known.url.clone(), known.held.as_ref()?.opening);
            Some(Assignment { share: Share::clone(&share), run_url, opening })
        });
        Answer { acknowledged, withdrawn, share, progress, write, needed_memory, hold }
    }

    /// Returns the jobs with open runs that are no longer needed.
    pub fn not_needed(&self) -> Vec<JobId> {
        let held = self.jobs.iter().filter(|(_, known)| known.held.is_some());
        held.filter(|(job, _)| !self.cluster.holds(job)).map(|(job, _)| job.clone()).collect()
    }
}
