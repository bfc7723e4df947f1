//! Permits that no single address can exhaust.
//!
//! An address gets another permit while it holds fewer than three times the number of free permits. So a greedy
//! address gets three quarters of the permits and leaves a quarter free. Two greedy addresses get three sevenths
//! each and leave a seventh. As more addresses compete, their shares and the number of free permits shrink.
//! The limit never affects an address that holds no permit. (In switches this method is the dynamic threshold of
//! Choudhury and Hahne.)

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Multiple of the free permits that an address may hold.
const TIMES_FREE: usize = 3;

/// A pool of permits.
#[derive(Clone, Debug)]
pub struct PermitPool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// Notified when a permit is returned, and when the pool grows.
    vacant: Notify,
}

#[derive(Debug)]
struct State {
    most: usize,
    held: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// Reason for a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// All permits are in use.
    Full,
    /// This address already has its share.
    Share,
}

/// A permit. Dropping it returns it to the pool.
#[derive(Debug)]
pub struct Permit {
    pool: PermitPool,
    client: IpAddr,
}

impl PermitPool {
    /// Creates a pool of `most` permits.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let state = Mutex::new(State { most, held: 0, by_client: HashMap::new() });
        Self(Arc::new(Inner { state, vacant: Notify::new() }))
    }

    /// Returns the size of the pool.
    #[must_use]
    pub fn most(&self) -> usize {
        self.state().most
    }

    /// Grows the pool to `most` permits. Never shrinks the pool.
    pub fn at_least(&self, most: usize) {
        let mut state = self.state();
        state.most = state.most.max(most);
        drop(state);
        self.0.vacant.notify_waiters();
    }

    /// Takes a permit for a client at this address.
    ///
    /// # Errors
    ///
    /// [`Refused`] gives the reason.
    pub fn take(&self, address: IpAddr) -> Result<Permit, Refused> {
        let client = client_of(address);
        let mut state = self.state();
        let free = state.most.saturating_sub(state.held);
        let held = state.by_client.get(&client).copied().unwrap_or(0);
        if free == 0 {
            return Err(Refused::Full);
        }
        if held >= TIMES_FREE * free {
            return Err(Refused::Share);
        }
        state.held += 1;
        state.by_client.insert(client, held + 1);
        Ok(Permit { pool: self.clone(), client })
    }

    /// Takes a permit like [`take`](Self::take), but waits while all permits are in use. Returns `None` if the
    /// address already has its share.
    pub async fn take_when_vacant(&self, address: IpAddr) -> Option<Permit> {
        loop {
            match self.take(address) {
                Ok(permit) => return Some(permit),
                Err(Refused::Share) => return None,
                Err(Refused::Full) => self.vacancy().await,
            }
        }
    }

    /// Waits until a permit is free.
    pub async fn vacancy(&self) {
        loop {
            let notified = self.0.vacant.notified();
            tokio::pin!(notified);
            // The notification is enabled before the check, so none in between is missed.
            notified.as_mut().enable();
            let full = {
                let state = self.state();
                state.held >= state.most
            };
            if !full {
                return;
            }
            notified.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.held -= 1;
        if let Some(held) = state.by_client.get_mut(&self.client) {
            *held -= 1;
            if *held == 0 {
                state.by_client.remove(&self.client);
            }
        }
        drop(state);
        self.pool.0.vacant.notify_waiters();
    }
}

/// Returns the client of an address. In IPv6, all addresses of a /64 network count as one client.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Takes all permits that this address can get.
    fn take_all(pool: &PermitPool, address: &str) -> Vec<Permit> {
        std::iter::from_fn(|| pool.take(address.parse().unwrap()).ok()).collect()
    }

    #[test]
    fn greedy_addresses_leave_some_permits() {
        let pool = PermitPool::new(256);
        let first = take_all(&pool, "192.0.2.1");
        assert_eq!(first.len(), 192);
        let second = take_all(&pool, "192.0.2.2");
        let third = take_all(&pool, "192.0.2.3");
        assert_eq!((second.len(), third.len()), (48, 12));
        assert!(pool.take("192.0.2.4".parse().unwrap()).is_ok());
        assert_eq!(pool.take("192.0.2.1".parse().unwrap()).unwrap_err(), Refused::Share);
        drop((first, second, third));
        assert_eq!(take_all(&pool, "192.0.2.4").len(), 192);
        assert!(pool.state().by_client.is_empty(), "addresses without permits are removed");
    }

    #[test]
    fn any_address_can_take_the_only_permit() {
        let pool = PermitPool::new(1);
        let only = pool.take("::1".parse().unwrap()).unwrap();
        assert_eq!(pool.take("192.0.2.1".parse().unwrap()).unwrap_err(), Refused::Full);
        drop(only);
        pool.take("192.0.2.1".parse().unwrap()).unwrap();
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let pool = PermitPool::new(8);
        let first = take_all(&pool, "2001:db8::1");
        assert_eq!(first.len(), 6);
        assert_eq!(pool.take("2001:db8::2:3:4:5".parse().unwrap()).unwrap_err(), Refused::Share);
        assert!(pool.take("2001:db8:0:1::1".parse().unwrap()).is_ok());
        assert_eq!(client_of("::ffff:192.0.2.1".parse().unwrap()), "192.0.2.1".parse::<IpAddr>().unwrap());
    }

    #[tokio::test]
    async fn waiting_clients_are_notified_of_room() {
        let pool = PermitPool::new(1);
        pool.vacancy().await;
        let only = pool.take("::1".parse().unwrap()).unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(20), pool.vacancy());
        assert!(waiting.await.is_err());
        let (given_back, ()) = tokio::join!(pool.vacancy(), async { drop(only) });
        let _held = pool.take("::1".parse().unwrap()).unwrap();
        let (more, ()) = tokio::join!(pool.vacancy(), async { pool.at_least(2) });
        assert_eq!((given_back, more), ((), ()));
        let other = "192.0.2.1".parse().unwrap();
        let last = pool.take(other).unwrap();
        let (taken, ()) = tokio::join!(pool.take_when_vacant(other), async { drop(last) });
        assert!(taken.is_some());
    }
}
