//! Rereading of the shards of done jobs, at a client's request.

use super::{Cluster, ClusterError, JobId};

/// Check of a job's shards.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) enum ShardCheck {
    #[default]
    None,
    UnderWay,
    /// The shards could not be reread, for this reason.
    Failed(String),
}

impl ShardCheck {
    pub fn is_under_way(&self) -> bool {
        *self == Self::UnderWay
    }

    /// Describes a failed check for users.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(format!("cannot reread its shards: {why}")),
            Self::None | Self::UnderWay => None,
        }
    }
}

impl Cluster {
    /// Records that the shell rereads the shards of a job. Returns false if the shell already rereads them.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Unknown`].
    pub fn begin_check(&mut self, id: &JobId) -> Result<bool, ClusterError> {
        let job = self.jobs.get_mut(id).ok_or_else(|| ClusterError::Unknown(id.clone()))?;
        let is_new = !job.check.is_under_way();
        job.check = ShardCheck::UnderWay;
        self.changed.insert(id.clone());
        Ok(is_new)
    }

    /// Records the end of a check. `failure` is the reason why the shards could not be reread.
    pub fn end_check(&mut self, id: &JobId, failure: Option<String>) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.check = failure.map_or(ShardCheck::None, ShardCheck::Failed);
            self.changed.insert(id.clone());
        }
    }
}
