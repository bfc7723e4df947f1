//! Options for values that a run does not store, and how far working one out is.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_game::KeptLayers;
use exact2048_solution::{ConeProgress, LayerSolver, Run};
use exact2048_stats::KeptStatistics;
use exact2048_storage::Location;
use parking_lot::Mutex;
use serde::Serialize;

use crate::display::ProgressLine;
use crate::{limits, units};

/// Bytes that kept cones may take on disk unless told otherwise.
const KEPT_BYTES: u64 = 4 << 30;

/// Folder of kept cones in that of a run.
const FOLDER: &str = "cones";

/// Where values are kept that were worked out.
#[derive(clap::Args, Default, Debug)]
pub struct ConeOptions {
    /// Folder where values and statistics are kept that had to be worked out, for the next who asks; may be shared by runs
    /// [default: cones in the run's own folder, none for a run in a store]
    #[arg(long, value_name = "DIR", value_parser = crate::parsing::local_path())]
    cone_cache: Option<PathBuf>,
    /// Most that such values may take together, 0 to keep nothing: what was not used for longest goes first [default: 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    cone_cache_size: Option<ByteSize>,
}

impl ConeOptions {
    /// The folder and the bytes, if anything is to be kept of the run at a location. A folder that was asked for is made.
    pub fn files(&self, location: &Location) -> Option<(PathBuf, u64)> {
        let bytes = self.cone_cache_size.map_or(KEPT_BYTES, |size| size.as_u64());
        let own = || location.as_folder().map(|folder| folder.join(FOLDER));
        if let (Some(folder), true) = (&self.cone_cache, bytes > 0) {
            // Where it cannot be made nothing is kept, as where it cannot be written to.
            let _ = std::fs::create_dir_all(folder);
        }
        let folder = self.cone_cache.clone().or_else(own)?;
        (bytes > 0).then_some((folder, bytes))
    }

    /// The file that keeps the statistics of an open run, if anything is to be kept of it.
    pub fn kept_statistics(&self, run: &Run, location: &Location) -> Option<KeptStatistics> {
        self.files(location).map(|(folder, _)| KeptStatistics::of_run(&folder, run))
    }

    /// Refuses them for a server, which has its own.
    pub fn refuse(&self) -> Result<()> {
        if self.cone_cache.is_some() || self.cone_cache_size.is_some() {
            let what =
                "--cone-cache and --cone-cache-size are for a run that is read here: give --run with them";
            return Err(crate::Failure::usage(what.to_owned()).into());
        }
        Ok(())
    }
}

/// Whether a run stores so few layers that it is worth saying what a value cost.
pub fn are_worth_saying(kept: KeptLayers) -> bool {
    kept.period() > KeptLayers::TWO_IN_FOUR.period()
}

/// What answers cost, as `--json` prints it.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Cost {
    /// States whose values were computed.
    pub computed_states: u64,
    /// Stored values that these were computed from.
    pub stored_states: u64,
    /// Values that were taken from what was computed before.
    pub found_states: u64,
    /// Seconds of work.
    pub seconds: f64,
    /// Boards that were answered together, for this.
    pub boards: usize,
}

impl Cost {
    /// In words.
    pub fn text(&self) -> String {
        let time = units::time(self.seconds);
        let with = if self.boards > 1 {
            format!(", for {} boards", units::count(self.boards))
        } else {
            String::new()
        };
        let what = match (self.computed_states, self.found_states) {
            (0, 0) => "looked up".to_owned(),
            (0, _) => "looked up in what was worked out before".to_owned(),
            (computed, _) => {
                let stored = units::several(self.stored_states, "stored value");
                format!("{} worked out from {stored}", units::several(computed, "state"))
            }
        };
        format!("{what}, {time}{with}")
    }
}

/// Shows how far the work is where it takes longer than a second.
#[derive(Default)]
pub struct ConeWatch {
    now: Mutex<Option<Shown>>,
}

struct Shown {
    begun: Instant,
    /// The lowest layer of the cone.
    first: u32,
    line: Option<ProgressLine>,
}

/// Work that takes longer is shown.
const SILENT: Duration = Duration::from_secs(1);

/// The way up is so much of the work, about.
const UP: f64 = 0.4;

impl ConeWatch {
    /// Takes in how far it is. `kept` tells where the cone ends.
    pub fn show(&self, at: ConeProgress, kept: KeptLayers, last_layer: u32) {
        let mut now = self.now.lock();
        let layer = if let ConeProgress::Up(layer, _) = at { layer.0 } else { 0 };
        let shown = now.get_or_insert_with(|| Shown { begun: Instant::now(), first: layer, line: None });
        if let ConeProgress::Up(layer, _) = at {
            // Where states have to be found again, that begins below those that are asked for.
            shown.first = shown.first.min(layer.0);
        }
        if shown.begun.elapsed() < SILENT {
            return;
        }
        let line = shown.line.get_or_insert_with(|| ProgressLine::new("states"));
        let (share, words) = match at {
            ConeProgress::Up(layer, states) => {
                let end = kept.next_cut(layer).0.min(last_layer);
                let share = f64::from(layer.0 - shown.first) / f64::from((end - shown.first).max(1));
                (UP * share, vec![format!("layer {} of {}", layer, end), units::several(states, "state")])
            }
            ConeProgress::Stored(states) => {
                (UP, vec![format!("{} to look up", units::several(states, "stored value"))])
            }
            ConeProgress::Down(left, all) => {
                let share = 1.0 - left as f64 / all.max(1) as f64;
                (UP + (1.0 - UP) * share, vec![format!("{} left", units::several(left, "state"))])
            }
        };
        line.show(share, &words);
    }

    /// Takes the line away, if there is one.
    pub fn finish(&self) {
        let shown = self.now.lock().take();
        if let Some(line) = shown.and_then(|shown| shown.line) {
            line.finish();
        }
    }
}

/// What backs up whole layers of a run for this process, which may take so many bytes of memory.
pub fn layer_solver(run: &Run, memory_bytes: u64) -> Box<dyn LayerSolver> {
    exact2048_run::layer_solver(run, limits::worker_tuning(memory_bytes, rayon::current_num_threads()))
}
