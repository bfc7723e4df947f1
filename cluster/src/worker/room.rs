//! Memory for blocks on their way between workers.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// Unit of the space for blocks, in bytes. A request to a [`Semaphore`] is a 32-bit number, so a unit of one byte would
/// limit the space to 4 GiB.
const UNIT_BYTES: u64 = 1 << 10;

/// Space for blocks on their way.
pub struct Room {
    units: Arc<Semaphore>,
    most: u32,
}

impl Room {
    pub fn new(bytes: u64) -> Self {
        let most = u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        Self { units: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// Waits for the space that a block needs. A block that is larger than all space waits until it is the only one.
    /// Blocks get space in the order in which they began to wait.
    pub async fn enter(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.most);
        let room = Arc::clone(&self.units).acquire_many_owned(units).await;
        room.map_err(|error| Status::internal(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Each of two blocks fits, but not both together. So the second block waits until the first is accepted.
    #[tokio::test]
    async fn blocks_wait_for_space() {
        let room = Room::new(64 << 10);
        let first = room.enter(40 << 10).await.unwrap();
        let second = room.enter(40 << 10);
        tokio::pin!(second);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut second).await.is_err());
        drop(first);
        let second = second.await.unwrap();
        // A block that is larger than all space waits until no other block has space.
        let large = room.enter(1 << 30);
        tokio::pin!(large);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut large).await.is_err());
        drop(second);
        drop(large.await.unwrap());
        assert_eq!(room.units.available_permits(), 64);
    }
}
