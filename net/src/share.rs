//! Permits that no address can use up alone.
//!
//! An address gets another permit while it holds fewer than three times those that are free. So one that takes all it
//! can get holds three quarters and leaves a quarter, two such hold three sevenths each and leave a seventh, and there
//! is always something left for the next: the more who take all they can, the less each of them gets. While there is
//! no need, nobody notices. (In switches this is the dynamic threshold of Choudhury and Hahne.)

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// How many times the free permits an address may hold.
const TIMES_FREE: usize = 3;

/// A number of permits.
#[derive(Clone, Debug)]
pub struct PermitPool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// Notified when a permit is given back, and when there are more permits.
    vacant: Notify,
}

#[derive(Debug)]
struct State {
    most: usize,
    held: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// Why there is no permit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// All are held.
    Full,
    /// This address holds its share.
    Share,
}

/// Given back when dropped.
#[derive(Debug)]
pub struct Permit {
    pool: PermitPool,
    client: IpAddr,
}

impl PermitPool {
    /// A pool of `most` permits.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let state = Mutex::new(State { most, held: 0, by_client: HashMap::new() });
        Self(Arc::new(Inner { state, vacant: Notify::new() }))
    }

    /// How many permits there are.
    #[must_use]
    pub fn most(&self) -> usize {
        self.state().most
    }

    /// Makes more permits, so that there are `most`; never fewer.
    pub fn at_least(&self, most: usize) {
        let mut state = self.state();
        state.most = state.most.max(most);
        drop(state);
        self.0.vacant.notify_waiters();
    }

    /// A permit for a client at this address.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why there is none.
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

    /// A permit as from [`take`](Self::take), as soon as not all are held; `None` where the address holds its share.
    pub async fn take_when_vacant(&self, address: IpAddr) -> Option<Permit> {
        loop {
            match self.take(address) {
                Ok(permit) => return Some(permit),
                Err(Refused::Share) => return None,
                Err(Refused::Full) => self.vacancy().await,
            }
        }
    }

    /// Waits until not all permits are held.
    pub async fn vacancy(&self) {
        loop {
            let told = self.0.vacant.notified();
            tokio::pin!(told);
            // Enabled before the look, so that nothing that happens in between is missed.
            told.as_mut().enable();
            let full = {
                let state = self.state();
                state.held >= state.most
            };
            if !full {
                return;
            }
            told.await;
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

/// Who an address stands for: in version 6 of IP one client has all addresses of a network of 64 bits.
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

    /// The permits that an address gets if it takes all that it can.
    fn take_all(pool: &PermitPool, address: &str) -> Vec<Permit> {
        std::iter::from_fn(|| pool.take(address.parse().unwrap()).ok()).collect()
    }

    #[test]
    fn whoever_takes_all_leaves_something() {
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
        assert!(pool.state().by_client.is_empty(), "who holds nothing is forgotten");
    }

    #[test]
    fn one_permit_can_be_had_by_anyone() {
        let pool = PermitPool::new(1);
        let only = pool.take("::1".parse().unwrap()).unwrap();
        assert_eq!(pool.take("192.0.2.1".parse().unwrap()).unwrap_err(), Refused::Full);
        drop(only);
        pool.take("192.0.2.1".parse().unwrap()).unwrap();
    }

    #[test]
    fn a_network_of_version_6_is_one_client() {
        let pool = PermitPool::new(8);
        let first = take_all(&pool, "2001:db8::1");
        assert_eq!(first.len(), 6);
        assert_eq!(pool.take("2001:db8::2:3:4:5".parse().unwrap()).unwrap_err(), Refused::Share);
        assert!(pool.take("2001:db8:0:1::1".parse().unwrap()).is_ok());
        assert_eq!(client_of("::ffff:192.0.2.1".parse().unwrap()), "192.0.2.1".parse::<IpAddr>().unwrap());
    }

    #[tokio::test]
    async fn whoever_waits_is_told_of_room() {
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
