//! Authentication of peers. Only the members of an epoch know its secret.

use std::time::Duration;

use exact2048_coordinator::cluster::{EpochId, Secret, Share};
use exact2048_net::log_limiter::LogLimiter;
use metrics::counter;
use tokio::sync::watch;
use tonic::Status;

use super::observe;
use crate::wire::secret_of;

/// Credentials of an epoch's members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    /// The epoch.
    pub epoch: EpochId,
    /// Secret that only its members know.
    pub secret: Secret,
}

impl Membership {
    /// Takes the credentials of this share's epoch.
    pub fn of(share: &Share) -> Self {
        Self { epoch: share.epoch, secret: share.secret }
    }

    /// Reads the credentials in a message.
    ///
    /// # Errors
    ///
    /// PERMISSION_DENIED if the bytes do not have the length of a secret, as for a wrong secret.
    pub fn shown(epoch: EpochId, secret: &[u8]) -> Result<Self, Status> {
        let secret = secret_of("secret", secret).map_err(|_| denied(epoch))?;
        Ok(Self { epoch, secret })
    }
}

/// The epoch in which this worker has a share. The epoch is known before this worker runs it.
pub type Joined = watch::Sender<Option<Membership>>;

/// Admits a caller with the credentials of this worker's epoch. Returns whether this worker is still in that epoch. If
/// this worker does not know the epoch yet, the caller waits for up to `patience`.
///
/// # Errors
///
/// PERMISSION_DENIED for a wrong secret, UNAVAILABLE after `patience`.
pub async fn admit(joined: &Joined, shown: Membership, patience: Duration) -> Result<bool, Status> {
    let mut known = joined.subscribe();
    let is_reached = |known: &Option<Membership>| known.is_some_and(|known| known.epoch >= shown.epoch);
    let waited = tokio::time::timeout(patience, known.wait_for(is_reached)).await;
    match waited.ok().and_then(Result::ok).and_then(|known| *known) {
        Some(found) if found.epoch > shown.epoch => Ok(false),
        Some(found) if found != shown => Err(denied(shown.epoch)),
        Some(_) => Ok(true),
        None => Err(not_in(shown.epoch)),
    }
}

/// Returns the status for a caller from an epoch that this worker is not in.
pub fn not_in(epoch: EpochId) -> Status {
    Status::unavailable(format!("this worker is not in epoch {epoch}"))
}

/// Returns the status for a caller with a wrong secret. Counts and logs the refusal.
fn denied(epoch: EpochId) -> Status {
    static LINES: LogLimiter = LogLimiter::new();
    counter!(observe::DENIED).increment(1);
    LINES.pass(|left_out| tracing::warn!(%epoch, left_out, "caller refused, wrong secret of the epoch"));
    Status::permission_denied(format!("expected the secret of epoch {epoch}, found another"))
}
