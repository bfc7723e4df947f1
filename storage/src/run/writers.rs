//! Starts of shards in a run.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Shards, TypedRun};
use crate::allowance::Taken;
use crate::{Attempt, ShardIdentity, ShardWriter, StorageError};

impl ShardWriter {
    /// Starts the shard `identity` of `run`.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] if the run is not open for writing. [`StorageError::InvalidInput`] if the identity
    /// is of another run or its layers are in the wrong order. Or an I/O error.
    pub fn create<R>(run: &TypedRun<R>, identity: ShardIdentity) -> Result<Self, StorageError>
    where
        R: Serialize + DeserializeOwned + Clone,
    {
        let taken = Taken::nothing(run.allowance().cloned());
        Self::begin(run.shard_target(&identity)?, run.run_id(), identity, taken)
    }

    /// Starts a shard to be committed by another process, which has the run open for writing.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] if the identity is of another run or its layers are in the wrong order, or an
    /// I/O error.
    pub fn create_as(
        shards: &Shards,
        identity: ShardIdentity,
        attempt: Attempt,
    ) -> Result<Self, StorageError> {
        let target = shards.target(&identity, attempt);
        Self::begin(target, shards.run_id(), identity, Taken::nothing(None))
    }
}
