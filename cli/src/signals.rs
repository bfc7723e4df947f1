//! Handles requests to stop, by Ctrl-C or SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::display;

/// Returns a flag for requests to stop. The first request prints `message` and sets the flag. The second request ends the
/// process.
pub fn stop_on_signals(message: &'static str) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        display::print_note(message);
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}
