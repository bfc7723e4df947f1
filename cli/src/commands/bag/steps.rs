//! Progress of the steps on stderr. For large targets, each step takes from seconds to minutes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::display::ProgressLine;
use crate::units;

const INTERVAL: Duration = Duration::from_millis(100);

/// Progress line of the current step, shown until dropped.
pub struct Steps {
    at: Arc<At>,
    /// Ends the thread when dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Progress that the display thread reads.
#[derive(Default)]
struct At {
    /// Number of the step, from 1, and its name.
    step: Mutex<(u32, &'static str)>,
    /// Bits of the finished share of the step, as an `f64`; 0 for steps without progress.
    share: AtomicU64,
}

impl Steps {
    /// Starts to show the progress of `all` steps.
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

    /// Begins the next step.
    pub fn begin(&self, what: &'static str) {
        let mut step = self.at.step.lock();
        *step = (step.0 + 1, what);
        self.reach(0.0);
    }

    /// Sets the finished share of the step.
    pub fn reach(&self, share: f64) {
        self.at.share.store(share.to_bits(), Ordering::Relaxed);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the display no longer matters.
            let _ = thread.join();
        }
    }
}
