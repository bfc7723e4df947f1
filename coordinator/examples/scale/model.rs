//! Costs as options: rates, delays and bytes.

use std::collections::HashMap;
use std::time::Duration;

use exact2048_game::{Lane, TileSplit};
use exact2048_solution::Phase;

/// Ratio of the pushed bytes of a run to those of [`Model::pushed_values`] with separate values for every lane. A value
/// is sent only once to a member that needs it in several lanes. With this ratio, two workers push 0.90 bytes a state in
/// the downward pass, as in `docs/results/4x3-cluster.md`.
const COMMON: f64 = 0.83;

/// Model of machines, network and store.
pub struct Model {
    /// Number of threads of a worker.
    pub threads: u32,
    /// Number of a worker's threads that share one block.
    pub split: u32,
    /// Number of layers that a lane may be ahead of the worker's slowest lane.
    pub run_ahead: u32,
    enumerate_ns: f64,
    back_up_ns: f64,
    latency_ms: f64,
    gbit: f64,
    store_ms: f64,
    store_gbit: f64,
}

impl Model {
    pub const HELP: &str = "options, each with its default:
  --board 4x3            --workers 1,8,64,100   --states 1152817492752 (published for 4x3)
  --huge N               tiles of at least 2^N split lanes, 16 for none; default as for solve
  --sectors 1            --keep 4               sectors of a lane; values are stored for two layers in this many
  --threads 32           --split 32             threads of a worker; threads that share a block
  --run-ahead 4          layers that a lane may be ahead of the worker's slowest lane
  --enumerate-ns 13      --back-up-ns 29        time per state on one thread
  --latency-ms 1         --gbit 10              one-way delay between machines; sending rate of a worker
  --store-ms 50          --store-gbit 5         delay of a store request; rate from a worker to the store";

    pub fn new(mut options: HashMap<String, String>) -> Result<Self, String> {
        let mut number = |name: &str, default: f64| match options.remove(name) {
            Some(value) => {
                value.parse().map_err(|_| format!("expected a number after --{name}, found {value}"))
            }
            None => Ok(default),
        };
        let model = Self {
            threads: number("threads", 32.0)? as u32,
            split: number("split", 32.0)? as u32,
            run_ahead: number("run-ahead", 4.0)? as u32,
            enumerate_ns: number("enumerate-ns", 13.0)?,
            back_up_ns: number("back-up-ns", 29.0)?,
            latency_ms: number("latency-ms", 1.0)?,
            gbit: number("gbit", 10.0)?,
            store_ms: number("store-ms", 50.0)?,
            store_gbit: number("store-gbit", 5.0)?,
        };
        match options.keys().next() {
            Some(unknown) => Err(format!("unknown option --{unknown}")),
            None => Ok(model),
        }
    }

    /// Returns the number of blocks that a worker can work on at once.
    pub fn slots(&self) -> u32 {
        (self.threads / self.split).max(1)
    }

    /// Returns the seconds that one thread needs for this number of states.
    pub fn work(&self, phase: Phase, states: f64) -> f64 {
        let ns = match phase {
            Phase::Enumerate => self.enumerate_ns,
            Phase::BackUp => self.back_up_ns,
        };
        states * ns * 1e-9
    }

    /// Returns the time of a block.
    pub fn block(&self, phase: Phase, states: f64) -> Duration {
        Duration::from_secs_f64(self.work(phase, states) / f64::from(self.split.min(self.threads)))
    }

    /// Returns the number of bytes pushed in the upward pass to a worker that needs a block with this number of
    /// states.
    pub fn pushed_states(&self, states: f64) -> f64 {
        0.27 * states
    }

    /// Returns the number of bytes pushed in the downward pass for the values that this number of states needs
    /// from another lane. Measured on 4x3 for each pair of lanes at layer 3,000, as if every entry were reachable. The
    /// moves lead to all sectors alike. Half of the moves within a lane leave the sector unchanged.
    pub fn pushed_values(&self, (from, to): (Lane, Lane), split: &TileSplit, states: f64) -> f64 {
        let births = (to.large_sum - from.large_sum) >> split.large();
        let merges = u32::from(from.k) + births - u32::from(to.k);
        let a_state = match (births, merges) {
            (0, 0) => 1.2,
            (0, 1) | (1, 0) => 1.3,
            (0, 2) | (1, 1) => 0.4,
            _ => 0.1,
        };
        COMMON * a_state * states / f64::from(split.sectors())
    }

    /// Returns the stored bytes of a layer, measured on 4x3 up to layer 224 and on the whole of 3x3.
    pub fn stored_bytes(&self, phase: Phase, kept: bool, states: f64) -> f64 {
        states
            * match phase {
                Phase::Enumerate => 0.04,
                Phase::BackUp if kept => 1.9,
                Phase::BackUp => 0.0,
            }
    }

    pub fn latency(&self) -> Duration {
        Duration::from_secs_f64(self.latency_ms * 1e-3)
    }

    pub fn transfer(&self, bytes: f64) -> Duration {
        Duration::from_secs_f64(bytes * 8e-9 / self.gbit)
    }

    pub fn store_request(&self, bytes: f64) -> Duration {
        Duration::from_secs_f64(self.store_ms * 1e-3 + bytes * 8e-9 / self.store_gbit)
    }
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} threads per worker, {} per block; {} and {} ns per state and thread; network {} ms, {} Gbit/s; \
             store {} ms, {} Gbit/s",
            self.threads,
            self.split,
            self.enumerate_ns,
            self.back_up_ns,
            self.latency_ms,
            self.gbit,
            self.store_ms,
            self.store_gbit
        )
    }
}
