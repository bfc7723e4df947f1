//! Number of connections or requests that a server allows at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits for connections or requests. A dropped permit is free again. The number of permits may grow.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    free: Arc<Semaphore>,
    most: Arc<AtomicUsize>,
}

impl Quota {
    pub fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), most: Arc::new(AtomicUsize::new(most)) }
    }

    /// Returns the number of all permits.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Grows to `most` permits. Never shrinks.
    pub fn at_least(&self, most: usize) {
        let before = self.most.fetch_max(most, Ordering::Relaxed);
        self.free.add_permits(most.saturating_sub(before));
    }

    /// Takes a permit, if one is free.
    pub fn try_take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Waits for a permit. Callers get permits in the order of their calls.
    pub async fn take(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.free).acquire_owned().await {
            Ok(permit) => permit,
            // Only a closed semaphore has no permits, and this one is never closed.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_quota_grows_and_takes_permits_back() {
        let quota = Quota::new(1);
        let only = quota.take().await;
        assert!(quota.try_take().is_none());
        quota.at_least(2);
        quota.at_least(1);
        assert_eq!(quota.most(), 2);
        let second = quota.try_take().unwrap();
        assert!(quota.try_take().is_none());
        drop((only, second));
        assert!(quota.try_take().is_some());
    }
}
