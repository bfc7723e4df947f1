//! How far a chain is, on stderr: for large targets each step takes from seconds to minutes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::display::ProgressLine;
use crate::units;

const INTERVAL: Duration = Duration::from_millis(100);

/// Shows which of some steps is at work, until it is dropped.
pub struct Steps {
    at: Arc<At>,
    /// Dropped, it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Where the work is.
#[derive(Default)]
struct At {
    /// The number of the step, from 1 on, and what it does.
    step: Mutex<(u32, &'static str)>,
    /// Bits of the part of the step that is done; 0 for steps that cannot tell.
    share: AtomicU64,
}

impl Steps {
    /// Shows `all` steps from now on.
    pub fn new(all: u32) -> Self {
        let at = Arc::new(At::default());
        let (stop, stopped) = mpsc::channel();
        let of_thread = Arc::clone(&at);
        let thread = std::thread::spawn(move || {
            let (line, begun) = (ProgressLine::new("bag"), Instant::now());
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let (step, what) = *of_thread.step.lock();
                let share = f64::from_bits(of_thread.share.load(Ordering::Relaxed));
                let passed = format!("{} so far", units::about(begun.elapsed().as_secs_f64()));
                line.show(share, &[format!("step {step} of {all}: {what}"), passed]);
            }
            line.finish();
        });
        Self { at, stop: Some(stop), thread: Some(thread) }
    }

    /// The next step begins.
    pub fn begin(&self, what: &'static str) {
        let mut step = self.at.step.lock();
        *step = (step.0 + 1, what);
        self.reach(0.0);
    }

    /// This part of the step is done.
    pub fn reach(&self, share: f64) {
        self.at.share.store(share.to_bits(), Ordering::Relaxed);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A display that panicked has nothing more to show.
            let _ = thread.join();
        }
    }
}
