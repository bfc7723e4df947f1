//! Options and progress for the computation of values that a run does not store.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_game::KeptLayers;
use exact2048_solution::{ConeProgress, KernelsOfRun, OracleOptions, Run};
use exact2048_stats::KeptStatistics;
use exact2048_storage::Location;
use parking_lot::Mutex;
use serde::Serialize;

use crate::display::ProgressLine;
use crate::{limits, units};

/// Default limit of cached cones on disk, in bytes.
const KEPT_BYTES: u64 = 4 << 30;

/// Folder of cached cones inside the folder of a run.
const FOLDER: &str = "cones";

/// Options of the cache of computed values.
#[derive(clap::Args, Default, Debug)]
pub struct ConeOptions {
    /// Cache computed values and statistics in this folder for later commands; several runs can share the folder
    /// [default: cones in the folder of the run, none for a run in a store]
    #[arg(long, value_name = "DIR", value_parser = crate::parsing::local_path())]
    cone_cache: Option<PathBuf>,
    /// Limit the total size of cached values, 0 to cache nothing; the least recently used are evicted first [default: 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    cone_cache_size: Option<ByteSize>,
}

impl ConeOptions {
    /// The folder and the size limit of the cache for a run; `None` if nothing is cached. Creates a folder given by
    /// `--cone-cache`.
    pub fn files(&self, location: &Location) -> Option<(PathBuf, u64)> {
        let bytes = self.cone_cache_size.map_or(KEPT_BYTES, |size| size.as_u64());
        let own = || location.as_folder().map(|folder| folder.join(FOLDER));
        if let (Some(folder), true) = (&self.cone_cache, bytes > 0) {
            // If the folder cannot be created, nothing is cached, as with a folder that is not writable.
            let _ = std::fs::create_dir_all(folder);
        }
        let folder = self.cone_cache.clone().or_else(own)?;
        (bytes > 0).then_some((folder, bytes))
    }

    /// The file for the statistics of an open run; `None` if nothing is cached.
    pub fn kept_statistics(&self, run: &Run, location: &Location) -> Option<KeptStatistics> {
        self.files(location).map(|(folder, _)| KeptStatistics::of_run(&folder, run))
    }

    /// Refuses these options for queries to a server, because a server has its own cache.
    pub fn refuse(&self) -> Result<()> {
        if self.cone_cache.is_some() || self.cone_cache_size.is_some() {
            let what = "--cone-cache and --cone-cache-size require --run, because a server has its own cache";
            return Err(crate::Failure::usage(what.to_owned()).into());
        }
        Ok(())
    }
}

/// Whether answers should report their cost, because the run stores few layers.
pub fn should_report_cost(kept: KeptLayers) -> bool {
    kept.period() > KeptLayers::TWO_IN_FOUR.period()
}

/// Cost of answers, as `--json` prints it.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Cost {
    /// Number of states with computed values.
    pub computed_states: u64,
    /// Number of stored values that these computations used.
    pub stored_states: u64,
    /// Number of values found in the cache of computed values.
    pub found_states: u64,
    /// Computing time in seconds.
    pub seconds: f64,
    /// Number of boards that were answered together at this cost.
    pub boards: usize,
}

impl Cost {
    /// The cost in words.
    pub fn text(&self) -> String {
        let time = units::time(self.seconds);
        let with = if self.boards > 1 {
            format!(", for {} boards", units::count(self.boards))
        } else {
            String::new()
        };
        let what = match (self.computed_states, self.found_states) {
            (0, 0) => "looked up".to_owned(),
            (0, _) => "looked up in earlier results".to_owned(),
            (computed, _) => {
                let stored = units::several(self.stored_states, "stored value");
                format!("{} computed from {stored}", units::several(computed, "state"))
            }
        };
        format!("{what}, {time}{with}")
    }
}

/// Progress line of a computation. It appears if the computation takes longer than a second.
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

/// Time after which the progress line appears.
const SILENT: Duration = Duration::from_secs(1);

/// Approximate share of the upward pass in the work.
const UP: f64 = 0.4;

impl ConeWatch {
    /// Shows the progress. `kept` determines the end of the cone.
    pub fn show(&self, at: ConeProgress, kept: KeptLayers, last_layer: u32) {
        let mut now = self.now.lock();
        let layer = if let ConeProgress::Up(layer, _) = at { layer.0 } else { 0 };
        let shown = now.get_or_insert_with(|| Shown { begun: Instant::now(), first: layer, line: None });
        if let ConeProgress::Up(layer, _) = at {
            // If states must be enumerated again, the enumeration begins below the requested layers.
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

    /// Removes the line, if any.
    pub fn finish(&self) {
        let shown = self.now.lock().take();
        if let Some(line) = shown.and_then(|shown| shown.line) {
            line.finish();
        }
    }
}

/// Returns the options of an oracle with kernels, within a memory limit of the process. Several threads may ask at once, so
/// each cone that the kernels cannot solve gets only the default memory.
pub fn options(memory_bytes: u64) -> OracleOptions {
    OracleOptions { kernels: Some(kernels(memory_bytes)), ..OracleOptions::default() }
}

/// Returns the kernels for values that a run does not store, within a memory limit of the process.
pub fn kernels(memory_bytes: u64) -> KernelsOfRun {
    KernelsOfRun::new(move |run| {
        exact2048_run::kernels(run, limits::worker_tuning(memory_bytes, rayon::current_num_threads()))
    })
}
