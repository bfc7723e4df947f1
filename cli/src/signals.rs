//! Requests to stop, by Ctrl-C or SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::display;

/// Becomes true at the first request, which is answered by what is `said`. The second one ends the process at once.
pub fn stop_on_signals(said: &'static str) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        display::say(said);
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}
