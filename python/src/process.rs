//! Signals and forks of the interpreter's process.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use exact2048_solution::Wanted;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::Exact2048Error;

/// Time between two checks for signals.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// The process that owns the threads of rayon's global pool: the first process that needed them.
static OWNER: OnceLock<u32> = OnceLock::new();

thread_local! {
    /// The pool of this thread, in a fork of [`OWNER`].
    static POOL: RefCell<Option<ThreadPool>> = const { RefCell::new(None) };
}

/// Whether this process is a fork of [`OWNER`].
fn is_fork() -> bool {
    *OWNER.get_or_init(std::process::id) != std::process::id()
}

/// Prepares the calling thread for work that rayon may share.
///
/// A fork has none of rayon's threads and would wait for them forever. So in a fork, the calling thread becomes the only
/// thread of a new pool.
///
/// # Errors
///
/// If rayon cannot create the pool.
pub(crate) fn prepare() -> PyResult<()> {
    if !is_fork() {
        return Ok(());
    }
    POOL.with_borrow_mut(|pool| {
        if pool.is_none() {
            let alone = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            *pool = Some(alone.map_err(|error| Exact2048Error::new_err(error.to_string()))?);
        }
        Ok(())
    })
}

/// Runs long work that the user can interrupt. The caller must have released the interpreter.
///
/// Python handles signals only on the caller's thread. So another thread runs `work`, and the caller's thread checks
/// for signals. `work` gets a function that returns whether the result is still wanted. Starting the thread takes about
/// 20 µs.
///
/// In a fork, the caller's thread runs `work`, because [`prepare`] provides no other thread. Signals then wait until the
/// end of the work.
///
/// # Errors
///
/// The exception that a signal handler raises, usually `KeyboardInterrupt`.
pub(crate) fn interruptible<T: Send>(work: impl FnOnce(Wanted<'_>) -> T + Send) -> PyResult<T> {
    if is_fork() {
        return Ok(work(&|| true));
    }
    let is_wanted = AtomicBool::new(true);
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        let worker = scope.spawn(|| {
            let _running = running;
            work(&|| is_wanted.load(Ordering::Relaxed))
        });
        let mut checked = Ok(());
        loop {
            if checked.is_ok() {
                checked = Python::attach(|py| py.check_signals());
                is_wanted.store(checked.is_ok(), Ordering::Relaxed);
            }
            // The channel closes when the worker ends.
            if ended.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        checked.map(|()| result)
    })
}
