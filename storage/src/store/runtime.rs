//! Async requests for code without async.
//!
//! `object_store` is async and the rest of this crate is not. One small runtime of the process runs all requests;
//! the thread that asks for one waits on a channel, not inside a runtime, so that the caller may be any thread: a plain
//! one, or one of another runtime.

use std::future::Future;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

use tokio::runtime::{Builder, Runtime};

/// Requests wait for the network and do next to nothing themselves.
const THREADS: usize = 2;

/// The runtime, made when the first run in a store is opened. Never dropped: that would have to wait.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made =
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("store").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// Runs a future to its end and waits for it.
///
/// # Errors
///
/// The system grants no threads, or the future panicked.
pub(super) fn wait_for<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Fails only if nobody waits any more.
        let _ = done.send(future.await);
    });
    result.recv().map_err(|_| io::Error::other("a request to the store panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_can_be_made_from_within_another_runtime() {
        let other = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        assert_eq!(other.block_on(async { wait_for(async { 1 }).unwrap() }), 1);
        let blocking = other.spawn_blocking(|| wait_for(async { 2 }).unwrap());
        assert_eq!(other.block_on(blocking).unwrap(), 2);
    }

    #[test]
    fn a_panic_is_an_error() {
        assert!(wait_for(async { panic!("on purpose") }).is_err());
    }
}
