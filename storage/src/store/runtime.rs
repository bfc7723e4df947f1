//! Async requests for synchronous code.
//!
//! `object_store` is async and the rest of this crate is not. One small runtime in the process runs all requests. The
//! calling thread waits on a channel, not inside a runtime. So it may be any thread, even a thread of another runtime.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;

use futures_util::FutureExt;
use tokio::runtime::{Builder, Runtime};

/// Number of threads. Two suffice because requests mostly wait for the network.
const THREADS: usize = 2;

/// Name of the runtime's threads.
const NAME: &str = "store";

thread_local! {
    /// Code location of the last panic on this thread of the runtime.
    static PANICKED_AT: Cell<Option<String>> = const { Cell::new(None) };
}

/// Returns the runtime, which the first request creates. The runtime is never dropped, because dropping it would
/// block.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().worker_threads(THREADS).thread_name(NAME).enable_all().build()?;
    silence_panics();
    Ok(RUNTIME.get_or_init(|| made))
}

/// Suppresses panic messages of the runtime's threads on stderr, because the messages may quote secret keys.
///
/// The error of the request states the code location of the panic.
fn silence_panics() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().name() == Some(NAME) {
            PANICKED_AT.set(panic.location().map(place));
        } else {
            others(panic);
        }
    }));
}

/// Formats a code location without the folder in which the crate was built.
fn place(at: &Location) -> String {
    let file = match at.file().rsplit_once("/src/") {
        Some((folder, file)) => format!("{}/src/{file}", folder.rsplit('/').next().unwrap_or(folder)),
        None => at.file().to_owned(),
    };
    format!(" at {file}:{}", at.line())
}

/// Runs a future to completion and waits for it.
///
/// # Errors
///
/// The system refused threads, or the future panicked.
pub(super) fn wait_for<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        let end = AssertUnwindSafe(future).catch_unwind().await;
        // Fails only if the caller has stopped waiting.
        let _ = done.send(end.map_err(|_| PANICKED_AT.take().unwrap_or_default()));
    });
    let ended = result.recv().unwrap_or_else(|_| Err(String::new()));
    ended.map_err(|at| {
        io::Error::other(format!(
            "the request stopped at a bug in the program{at}; report it with this message"
        ))
    })
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
    fn a_panic_is_an_error_with_its_location() {
        let error = wait_for(async { panic!("on purpose") }).map(|()| "no error").unwrap_err().to_string();
        assert!(error.contains(" at storage/src/store/runtime.rs:") && !error.contains("purpose"), "{error}");
    }

    /// Runs the test above in its own process, where nothing else prints.
    #[test]
    fn a_panic_prints_no_message() {
        let name = "store::runtime::tests::a_panic_is_an_error_with_its_location";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let shown = again.args(["--exact", name, "--nocapture"]).output().unwrap();
        let shown =
            format!("{}{}", String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
        assert!(shown.contains("1 passed"), "{shown}");
        assert!(!shown.contains("purpose") && !shown.contains("panicked"), "{shown}");
    }
}
