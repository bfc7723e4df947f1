//! Measures the kernels in deep layers, without solving the layers below and above:
//! `cargo run --release -p exact2048-worker --example deep -- 4x3 9568`.
//!
//! The program fills two neighbouring layers with every entry of every block and with made-up values. From these, it
//! enumerates or backs up a few layers. Nearly all states of a large board lie in such layers, which no short run
//! reaches. It prints the core time for each entry of the blocks (rows × columns), reachable or not.
//!
//! With the folder of an enumerated run in place of the board, the states are those of the run, and only the values are
//! made up: `cargo run --release -p exact2048-worker --example deep -- runs/4x3 1000`. Then the program prints the core
//! time for each state. No game reaches most rows of a large board, and these rows take no time in this mode.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::rowset::RowSet;
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Lane, Layer, Objective, Params, ParamsError, Precision};
use exact2048_solution::{Archive, Parts, ReadError, Run};
use exact2048_storage::{ItemKey, ShardKind};
use exact2048_worker::{BlockEngine, BlockTask, Heap, Holding, Sink, Tuning, Worker, WorkerError};
use rayon::prelude::*;
use rustix::time::{ClockId, clock_gettime};

const USAGE: &str = "usage: deep BOARD|RUN LAYER [LAYERS [THREADS [LARGE [HUGE [PRECISION [DENSE_ROWS]]]]]]
  BOARD    rows x columns, for example 4x3
  RUN      folder of a run that is enumerated beyond LAYER; it determines LARGE, HUGE and PRECISION
  LAYER    tile sum of the first layer that is timed
  LAYERS   number of timed layers, upward and then downward (default 4; values of two of these are packed)
  THREADS  compute threads (default 1)
  LARGE    tiles of at least 2^LARGE are large (default: as solve would choose)
  HUGE     tiles of at least 2^HUGE divide lanes, 16 for none (default: as solve would choose)
  PRECISION  bits a value, 32 or 64 (default 32)
  DENSE_ROWS  classes of at most this many rows keep their transitions (default: as solve would choose)";

/// An archive of made-up values. Every entry of every block is reachable, or the states of a run are.
struct Filled {
    space: Space,
    run: Option<Run>,
}

impl Filled {
    fn params(&self) -> &Params {
        self.space.params()
    }

    /// The reach item of a part, and its number of entries; `None` if it has none.
    fn reach(&self, key: ItemKey, parts: &Parts) -> Result<Option<(Vec<u8>, usize)>, ReadError> {
        let (rows, columns) = (parts.rows(key.part).len(), parts.columns());
        let Some(run) = &self.run else { return Ok(Some((full_rows(rows, columns), rows * columns))) };
        let Some(item) = run.archive().read(ShardKind::Reach, key)? else { return Ok(None) };
        let mut bits = vec![0; rows * parts.words()];
        parts.decode_reach_part(key, &item, &mut bits)?;
        Ok(Some((item, bits.iter().map(|word| word.count_ones() as usize).sum())))
    }

    fn parts(&self, layer: Layer, lane: Lane) -> Option<(Parts, RowSet)> {
        let class = self.space.class(ClassId::of(layer, lane)?)?;
        let columns = Columns::count(self.space.params(), lane) as usize;
        (class.rows() > 0 && columns > 0)
            .then(|| (Parts::new(class.rows(), columns), RowSet::all(class.rows())))
    }
}

impl Archive for Filled {
    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(lane) = Lane::from_code(key.lane) else { return Ok(None) };
        let Some((parts, _)) = self.parts(Layer(key.layer), lane) else { return Ok(None) };
        let Some((reach, entries)) = self.reach(key, &parts)? else { return Ok(None) };
        Ok(Some(match kind {
            ShardKind::Reach => reach,
            ShardKind::Values | ShardKind::Checkpoint
                if self.params().game().precision() == Precision::Bits32 =>
            {
                made_up_values::<u32>(key, entries)
            }
            ShardKind::Values | ShardKind::Checkpoint => made_up_values::<u64>(key, entries),
        }))
    }
}

/// A reach item with all entries: one bit a row that has an entry, then the bits of these rows.
fn full_rows(rows: usize, columns: usize) -> Vec<u8> {
    let ones = |bits: usize| {
        let mut bytes = vec![u8::MAX; bits.div_ceil(8)];
        if !bits.is_multiple_of(8) {
            *bytes.last_mut().expect("at least one bit") = (1 << (bits % 8)) - 1;
        }
        bytes
    };
    let mut item = ones(rows);
    let row = ones(columns);
    (0..rows).for_each(|_| item.extend_from_slice(&row));
    item
}

/// Values like those of a game: large, and different from their neighbours.
fn made_up_values<V: Value>(key: ItemKey, count: usize) -> Vec<u8> {
    let seed = key.lane ^ u64::from(key.part) << 40;
    let value = |i: u64| V::of_stored(Stored(1 << 30 | (seed + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40));
    (0..count as u64).flat_map(|i| bytemuck::bytes_of(&value(i)).to_vec()).collect()
}

/// Processor time of all threads, by phase.
#[derive(Default)]
struct Phases(BTreeMap<&'static str, Duration>);

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Phases {
    fn time<R>(&mut self, phase: &'static str, work: impl FnOnce() -> R) -> R {
        let begun = processor_time();
        let result = work();
        *self.0.entry(phase).or_default() += processor_time() - begun;
        result
    }

    fn print(&self, entries: u64, what: &str) {
        for (phase, time) in &self.0 {
            let ns = time.as_secs_f64() * 1e9 / entries as f64;
            println!("  {phase:<24}{:>9.2} core-s {ns:>9.2} core-ns {what}", time.as_secs_f64());
        }
    }
}

struct Bench {
    filled: Arc<Filled>,
    threads: usize,
    dense_rows: usize,
}

impl Bench {
    fn worker<V: Value>(&self) -> Worker<V> {
        let tuning = Tuning {
            limit_bytes: usize::MAX / 2,
            heap: Heap::of(|| 0),
            dense_rows: self.dense_rows,
            piece_bytes: Tuning::PIECE_BYTES,
        };
        Worker::new(self.filled.params(), tuning, std::env::temp_dir(), self.filled.clone())
    }

    fn alive(&self, layer: Layer) -> Vec<Lane> {
        let mut alive = lanes(self.filled.params());
        alive.retain(|&lane| {
            let (first, last) = layer_range(self.filled.params(), lane);
            (first..=last).contains(&layer) && self.filled.parts(layer, lane).is_some()
        });
        alive
    }

    /// The number of layers before the timed ones. In a run, all classes have occurred after these layers, as in nearly
    /// all layers of a whole run.
    fn untimed(&self) -> u32 {
        if self.filled.run.is_some() { 1 << (self.filled.params().split().large() - 1) } else { 0 }
    }

    /// Whether the values of a layer are packed: those of kept layers, by default two in four.
    fn keeps(&self, layer: Layer) -> bool {
        self.filled.params().contents().kept().keeps(layer)
    }

    /// The unit of the times.
    fn what(&self) -> &'static str {
        if self.filled.run.is_some() { "a state" } else { "an entry" }
    }

    /// Rows × columns of all blocks of a layer, or its states in the run.
    fn entries(&self, layer: Layer) -> u64 {
        if let Some(run) = &self.filled.run {
            return run.layer_counts().iter().find(|counts| counts.layer == layer).map_or(0, |c| c.states);
        }
        let parts = self.alive(layer).into_iter().filter_map(|lane| self.filled.parts(layer, lane));
        parts.map(|(parts, rows)| (rows.len() * parts.columns()) as u64).sum()
    }

    /// Runs a task for every block of a layer.
    fn each(
        &self,
        layer: Layer,
        task: impl Fn(Lane) -> Result<(), WorkerError> + Sync,
    ) -> Result<(), WorkerError> {
        let helpers = self.threads - 1;
        if helpers == 0 {
            return self.alive(layer).into_iter().try_for_each(task);
        }
        self.alive(layer).into_par_iter().try_for_each(&task)
    }

    fn up(&self, first: Layer, layers: u32) -> Result<(), WorkerError> {
        let (worker, helpers) = (self.worker::<u32>(), self.threads - 1);
        // The afterstates of the two full layers. This also makes the tables for later layers.
        for layer in [Layer(first.0 - 4), Layer(first.0 - 2)] {
            self.each(layer, |lane| {
                worker.compute(BlockTask::FindAfterstates, layer, lane, helpers).map(drop)
            })?;
            worker.release(Holding::States(layer));
        }
        let (mut timed, mut entries, mut states) = (Phases::default(), 0, 0);
        for (i, layer) in (0..self.untimed() + layers).map(|i| (i, Layer(first.0 + 2 * i))) {
            let is_timed = i >= self.untimed();
            let mut untimed = Phases::default();
            let phases = if is_timed { &mut timed } else { &mut untimed };
            let found = std::sync::atomic::AtomicU64::new(0);
            phases.time("states from spawns", || {
                self.each(layer, |lane| {
                    let task = BlockTask::FindStates(Sink::Shards { keep: true });
                    let count = worker.compute(task, layer, lane, helpers)?.count;
                    found.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
                    Ok(())
                })
            })?;
            if is_timed {
                entries += self.entries(layer);
                states += found.into_inner();
            }
            phases.time("afterstates from moves", || {
                self.each(layer, |lane| {
                    worker.compute(BlockTask::FindAfterstates, layer, lane, helpers).map(drop)
                })
            })?;
            phases.time("seal", || worker.seal(ShardKind::Reach, layer))?;
            worker.release(Holding::States(layer));
            worker.release(Holding::Afterstates(Layer(layer.0 - 4)));
        }
        println!("up: {layers} layers, {entries} times {}, {states} states found", self.what());
        timed.print(entries, self.what());
        print_maps(&worker);
        Ok(())
    }

    fn down<V: Value>(&self, last: Layer, layers: u32) -> Result<(), WorkerError> {
        let (worker, helpers) = (self.worker::<V>(), self.threads - 1);
        let (mut timed, mut entries) = (Phases::default(), 0);
        // These layers are not timed, because they make the tables, and the first one reads the made-up values.
        let before = self.untimed().max(1);
        for (i, layer) in (0..before + layers).map(|i| (i, Layer(last.0 - 2 * i))) {
            let mut untimed = Phases::default();
            let phases = if i < before { &mut untimed } else { &mut timed };
            entries += if i < before { 0 } else { self.entries(layer) };
            phases.time("afterstates: means", || {
                self.each(layer, |lane| {
                    worker.compute(BlockTask::BackUpAfterstates, layer, lane, helpers).map(drop)
                })
            })?;
            worker.release(Holding::States(Layer(layer.0 + 4)));
            phases.time("states: maxima", || {
                self.each(layer, |lane| {
                    let task = BlockTask::BackUpStates(Sink::Shards { keep: self.keeps(layer) });
                    worker.compute(task, layer, lane, helpers).map(drop)
                })
            })?;
            phases.time("seal", || worker.seal(ShardKind::Values, layer))?;
            worker.release(Holding::Afterstates(layer));
        }
        println!("down: {layers} layers, {entries} times {}", self.what());
        timed.print(entries, self.what());
        print_maps(&worker);
        Ok(())
    }
}

fn params(
    board: &str,
    layer: u32,
    large: Option<u8>,
    huge: Option<u8>,
    precision: Precision,
) -> Result<Params, ParamsError> {
    let board = board.parse().map_err(|_| ParamsError::BelowFirstLayer(0))?;
    let with =
        |objective| Params::builder(board, objective).precision(precision).large(large).huge(huge).build();
    // For boards whose largest tiles do not fit the format, the wanted tile is above all tiles that the layer can hold.
    with(Objective::Score).or_else(|_| with(Objective::Reach { exponent: layer.ilog2() as u8 + 1 }))
}

/// Prints the memory of the index maps. Tasks keep all of them, because this program has no memory limit.
fn print_maps<V: Value>(worker: &Worker<V>) {
    println!("  {:<24}{:>9.1} MB", "index maps", worker.map_bytes() as f64 / 1e6);
}

/// The peak resident memory of this process so far.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or(" unknown").trim().to_owned()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| args.get(at).map_or(Some(default), |text| text.parse().ok());
    let (Some(board), Some(layer), Some(layers), Some(threads)) = (
        args.first(),
        number(1, 0).filter(|&layer| layer >= 8 && layer % 2 == 0),
        number(2, 4),
        number(3, 1),
    ) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let exponent = |at: usize| args.get(at).and_then(|text| text.parse().ok());
    let Some(precision) = exponent(6).map_or(Some(Precision::Bits32), |bits: u8| bits.try_into().ok()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let of_board = || Ok((params(board, layer, exponent(4), exponent(5), precision)?, None));
    let of_run = || Run::open(Path::new(board)).map(|run| (run.params().clone(), Some(run)));
    let found: Result<(Params, Option<Run>), Box<dyn Error>> =
        if Path::new(board).is_dir() { of_run().map_err(Into::into) } else { of_board() };
    let (params, run) = match found {
        Ok(found) => found,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let (large, huge) = (params.split().large(), params.split().huge());
    let precision = params.game().precision();
    println!("{board}, layer {layer}, large tiles from 2^{large}, huge from 2^{huge}, {threads} threads");
    let filled = Arc::new(Filled { space: Space::new(&params), run });
    let dense_rows = args.get(7).and_then(|text| text.parse().ok()).unwrap_or(Tuning::DENSE_ROWS);
    let bench = Bench { filled, threads: threads.max(1) as usize, dense_rows };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(bench.threads).build().expect("threads start");
    let result = pool.install(|| {
        bench.up(Layer(layer), layers)?;
        println!("  peak so far {}", peak());
        match precision {
            Precision::Bits32 => bench.down::<u32>(Layer(layer), layers),
            Precision::Bits64 => bench.down::<u64>(Layer(layer), layers),
        }
    });
    println!("  peak {}", peak());
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
