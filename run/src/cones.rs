//! Solves cones with the kernels that solve runs.
//!
//! A cone is a small solve. It begins at the *asked* states, which a caller asks about, in place of the starts of
//! games. It ends at the next stored layers, and the caller supplies their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use exact2048_game::board::{MAX_EXPONENT, MOST_CELLS};
use exact2048_game::huge::LEAST_HUGE;
use exact2048_game::packed::PackedRules;
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Lane, Layer, Params, Precision, SpawnKind};
use exact2048_solution::cone::{ConeError, Limits, Progress, Solved, SolvedLayer, TooLarge, Values};
use exact2048_solution::{ConeJob, ConeKernels, KernelCone, NoItems, QueryError, Run, StoredValues};
use exact2048_worker::{BlockEngine, BlockTask, Holding, Sink, Tuning, least_heap_bytes, new_block_engine};
use parking_lot::{Mutex, MutexGuard};
use rayon::slice::ParallelSliceMut;
use rustc_hash::FxHashMap;

use crate::lanes::{OfLane, for_lanes};

/// Smallest exponent of large tiles in cones, if memory suffices. Few sequences of large tiles occur in a cone, so rows
/// are long only if many tiles are large. The engine allows no smaller exponent, because a spawned 4 must not be a
/// large tile.
const LARGE: u8 = 3;

/// Number of sequences of a board's large tiles from which the smallest exponent of large tiles in its cone is one more than
/// [`LARGE`]. On 4x3, cones of such boards then take a third less time. Other cones would take up to three times as long.
const MANY_SEQUENCES: u64 = 300;

/// Most states of a cone for each state below its landing. The next cone of a game takes as many times less.
const BELOW_LANDING: u64 = 4;

/// Time after which a waiting question checks whether its answer is still wanted.
const WAIT: Duration = Duration::from_millis(100);

/// The kernels for cones of a run. The first cone of each kind of board creates its engine.
pub fn cone_kernels(run: &Run, tuning: Tuning) -> Box<dyn ConeKernels> {
    let params = run.params().without_best_moves();
    Box::new(ConeSolver { params, tuning, many: MANY_SEQUENCES, engines: Mutex::default() })
}

/// Solves one cone at a time.
struct ConeSolver {
    params: Params,
    tuning: Tuning,
    /// [`MANY_SEQUENCES`], except in tests.
    many: u64,
    engines: Mutex<Engines>,
}

/// The engines for boards with few and with many sequences of large tiles, each once it was needed: the engine, or the
/// least memory in bytes that it needs.
type Engines = [Option<Result<Engine, u64>>; 2];

impl ConeKernels for ConeSolver {
    fn solve(
        &self,
        job: ConeJob<'_>,
        limits: Limits<'_>,
        stored: StoredValues<'_>,
    ) -> Result<KernelCone, ConeError<QueryError>> {
        let mut engines = self.lock(limits)?;
        let engine = self.engine(&mut engines, job.asked)?;
        // A new thread belongs to no pool, so the global pool solves the cone. A caller from another pool waits without
        // beginning other work of its pool, which might ask for a cone and so wait for this one.
        std::thread::scope(|scope| {
            let solving = scope.spawn(|| engine.solve(job, limits, stored));
            solving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl ConeSolver {
    /// Waits until no other cone is being solved.
    fn lock(&self, limits: Limits<'_>) -> Result<MutexGuard<'_, Engines>, ConeError<QueryError>> {
        loop {
            if let Some(engines) = self.engines.try_lock_for(WAIT) {
                return Ok(engines);
            }
            if !(limits.wanted)() {
                return Err(ConeError::GivenUp);
            }
        }
    }

    /// The engine for the cone of some states, by the number of sequences of the first state's large tiles.
    fn engine<'a>(
        &self,
        engines: &'a mut Engines,
        asked: &[(Layer, Board)],
    ) -> Result<&'a mut Engine, ConeError<QueryError>> {
        let has_many = asked.first().is_some_and(|&(_, board)| sequences(board) >= self.many);
        let [few, many] = engines;
        let (engine, other) = if has_many { (many, few) } else { (few, many) };
        let is_memory_short = |other: &Engine| !other.blocks.has_spare_memory();
        if other.as_ref().is_some_and(|other| other.as_ref().is_ok_and(is_memory_short)) {
            *other = None;
        }
        let new = || Engine::new(&self.params, self.tuning, LARGE + u8::from(has_many));
        engine.get_or_insert_with(new).as_mut().map_err(|needed_bytes| {
            let (limit_bytes, states) = (self.tuning.limit_bytes as u64, asked.len() as u64);
            let first = asked.first().map_or(Layer::FIRST, |&(layer, _)| layer);
            TooLarge { limit_bytes, needed_bytes: *needed_bytes, first, reached: first, states }.into()
        })
    }
}

/// Number of sequences of a board's tiles of exponent [`LARGE`] or more.
fn sequences(board: Board) -> u64 {
    let factorial = |number: u64| (1..=number).product::<u64>();
    let count = |exponent: u8| (0..MOST_CELLS).filter(|&cell| board.get(cell) == exponent).count() as u64;
    let counts = (LARGE..=MAX_EXPONENT).map(count);
    factorial(counts.clone().sum()) / counts.map(factorial).product::<u64>()
}

/// The block engine, and data that later cones reuse.
struct Engine {
    params: Params,
    blocks: Arc<dyn BlockEngine>,
    /// For each lane, the lane and the target lanes of its moves.
    targets: FxHashMap<Lane, Vec<Lane>>,
}

impl Engine {
    /// An engine with the smallest exponent of large tiles, from `least` on, at which the blocks fit into the memory. Other
    /// data moves to scratch files, so the size of a cone does not matter. Fails with the least memory in bytes if no blocks
    /// fit.
    fn new(params: &Params, tuning: Tuning, least: u8) -> Result<Self, u64> {
        let large = params.split().large();
        let splits = (least.min(large)..=large)
            .filter_map(|large| params.to_builder().large(large).huge(LEAST_HUGE).sectors(1).build().ok());
        let mut least_bytes = u64::MAX;
        for params in splits.chain([params.clone()]) {
            let needed_bytes = least_heap_bytes(&params, tuning.dense_rows);
            if needed_bytes <= tuning.limit_bytes as u64 {
                let blocks =
                    new_block_engine(&params, tuning, std::env::temp_dir().into(), Arc::new(NoItems));
                return Ok(Self { params, blocks, targets: FxHashMap::default() });
            }
            least_bytes = least_bytes.min(needed_bytes);
        }
        Err(least_bytes)
    }

    fn solve(
        &mut self,
        job: ConeJob<'_>,
        limits: Limits<'_>,
        stored: StoredValues<'_>,
    ) -> Result<KernelCone, ConeError<QueryError>> {
        // After a panic, blocks of an earlier cone may be left.
        self.blocks.release(Holding::All);
        let found = Pass::new(self, job, limits).run(stored);
        self.blocks.release(Holding::All);
        found
    }

    fn targets(&mut self, lane: Lane) -> &[Lane] {
        let params = &self.params;
        self.targets
            .entry(lane)
            .or_insert_with(|| lane.target_lanes(params).into_iter().chain([lane]).collect())
    }
}

/// The lanes of each layer that have entries.
type Occurring = BTreeMap<Layer, BTreeSet<Lane>>;

/// The computation of one cone.
struct Pass<'a> {
    engine: &'a mut Engine,
    job: ConeJob<'a>,
    limits: Limits<'a>,
    first: Layer,
    states: Occurring,
    afterstates: Occurring,
    /// Number of states of each layer.
    counts: BTreeMap<Layer, u64>,
}

impl<'a> Pass<'a> {
    fn new(engine: &'a mut Engine, job: ConeJob<'a>, limits: Limits<'a>) -> Self {
        let first = job.asked.iter().map(|&(layer, _)| layer).min().unwrap_or(Layer::FIRST);
        let boards: Vec<Board> = job.asked.iter().map(|&(_, board)| board).collect();
        engine.blocks.begin_at(&boards);
        let (states, afterstates, counts) = Default::default();
        Self { engine, job, limits, first, states, afterstates, counts }
    }

    fn run(mut self, stored: StoredValues<'_>) -> Result<KernelCone, ConeError<QueryError>> {
        self.enumerate()?;
        self.look_up(stored)?;
        self.back_up()
    }

    /// Finds the states from the asked ones up to the cut.
    fn enumerate(&mut self) -> Result<(), ConeError<QueryError>> {
        let mut begins = Occurring::new();
        for &(layer, board) in self.job.asked {
            begins.entry(layer).or_default().extend(self.engine.blocks.lane_of(board));
        }
        let last = self.job.cut.up(1).min(self.engine.params.last_layer());
        let mut found = 0;
        for layer in self.first.to(last) {
            (self.limits.progress)(Progress::Up(layer, found));
            let mut lanes = begins.remove(&layer).unwrap_or_default();
            for spawn in SpawnKind::ALL {
                let below = layer.before(spawn).and_then(|below| self.afterstates.get(&below));
                lanes.extend(below.into_iter().flatten());
            }
            let (occurring, states) = self.count(layer, lanes, BlockTask::FindStates(Sink::Nothing))?;
            found += states;
            self.counts.insert(layer, states);
            if layer < self.job.cut {
                let targets: BTreeSet<Lane> =
                    occurring.iter().flat_map(|&lane| self.engine.targets(lane).to_vec()).collect();
                let (after, _) = self.count(layer, targets, BlockTask::FindAfterstates)?;
                self.afterstates.insert(layer, after);
            }
            self.states.insert(layer, occurring);
        }
        Ok(())
    }

    /// Looks up the values of the states of the stored layers.
    fn look_up(&mut self, stored: StoredValues<'_>) -> Result<(), ConeError<QueryError>> {
        let ends: Vec<Layer> = self.counts.keys().copied().filter(|&layer| layer >= self.job.cut).collect();
        (self.limits.progress)(Progress::Stored(ends.iter().map(|layer| self.counts[layer]).sum()));
        for layer in ends {
            let blocks = &self.engine.blocks;
            self.for_lanes(self.states[&layer].clone(), &|lane, _| {
                let values = stored(layer, &blocks.held_boards(layer, lane))?;
                Ok(blocks.hold_values(layer, lane, &values)?)
            })?;
        }
        Ok(())
    }

    /// Backs up the values of the cone.
    fn back_up(&mut self) -> Result<KernelCone, ConeError<QueryError>> {
        let inner: Vec<Layer> = self.counts.keys().copied().filter(|&layer| layer < self.job.cut).collect();
        let all: u64 = inner.iter().map(|layer| self.counts[layer]).sum();
        let asked = self.job.asked;
        let mut listed = self.listed(&inner);
        let landing = self.landing(&inner, &listed, all);
        listed.extend(landing.iter().flatten());
        let rules = PackedRules::new(self.engine.params.game().board());
        let (mut left, mut solved) = (all, Vec::new());
        for &layer in inner.iter().rev() {
            (self.limits.progress)(Progress::Down(left, all));
            left -= self.counts[&layer];
            let blocks = &self.engine.blocks;
            let after = self.afterstates.remove(&layer).unwrap_or_default();
            let states = self.states.remove(&layer).unwrap_or_default();
            self.for_lanes(after, &|lane, helpers| {
                blocks.compute(BlockTask::BackUpAfterstates, layer, lane, helpers)?;
                Ok(())
            })?;
            let above = layer.up(Layer::RISE);
            blocks.release(Holding::States(above));
            let kept = |board: Board| listed.contains(&layer) || asked.binary_search(&(layer, board)).is_ok();
            let is_kept = listed.contains(&layer) || asked.iter().any(|&(of, _)| of == layer);
            let values = self.for_lanes(states, &|lane, helpers| {
                blocks.compute(BlockTask::BackUpStates(Sink::Nothing), layer, lane, helpers)?;
                if !is_kept {
                    return Ok(Vec::new());
                }
                let values = blocks.held_boards(layer, lane).into_iter().zip(blocks.held_values(layer, lane));
                let values = values.map(|(board, value)| (rules.canonical(board), value));
                Ok(values.filter(|&(board, _)| kept(board)).collect())
            })?;
            blocks.release(Holding::Afterstates(layer));
            solved.extend(self.solved(layer, values.concat()));
            self.go_on()?;
        }
        solved.reverse();
        let is_landing = |of: &SolvedLayer| landing.is_some_and(|layers| layers.contains(&of.layer));
        let (landing, lower): (Vec<_>, Vec<_>) = solved.into_iter().partition(is_landing);
        let landing = (!landing.is_empty()).then(|| Solved::new(landing));
        Ok(KernelCone { lower: Solved::new(lower), landing, states: all })
    }

    /// A layer with its values in the order of the boards; `None` without states.
    fn solved(&self, layer: Layer, mut values: Vec<(Board, Stored)>) -> Option<SolvedLayer> {
        values.par_sort_unstable();
        // A state in a symmetric row has an entry for each of its images there.
        values.dedup_by_key(|(board, _)| *board);
        let boards: Box<[Board]> = values.iter().map(|&(board, _)| board).collect();
        let values = values.iter().map(|&(_, value)| value);
        let values = match self.engine.params.game().precision() {
            Precision::Bits32 => Values::Bits32(values.map(u32::of_stored).collect()),
            Precision::Bits64 => Values::Bits64(values.map(u64::of_stored).collect()),
        };
        (!boards.is_empty()).then_some(SolvedLayer { layer, boards, values })
    }

    /// Bytes of the boards and values of a layer.
    fn bytes(&self, layer: Layer) -> u64 {
        self.counts[&layer] * (size_of::<Board>() as u64 + self.engine.params.game().precision().bytes())
    }

    /// The lowest layers that take at most the bytes to keep.
    fn listed(&self, inner: &[Layer]) -> BTreeSet<Layer> {
        let sums = inner.iter().scan(0, |sum, &layer| {
            *sum += self.bytes(layer);
            Some((layer, *sum))
        });
        sums.take_while(|&(_, sum)| sum <= self.job.keep_bytes).map(|(layer, _)| layer).collect()
    }

    /// The landing: the highest two neighbouring layers that fit into its bytes, with at most one state in
    /// [`BELOW_LANDING`] below them. `None` if no two such layers are above the listed and the asked ones.
    fn landing(&self, inner: &[Layer], listed: &BTreeSet<Layer>, all: u64) -> Option<[Layer; 2]> {
        let highest_asked = self.job.asked.last().map(|&(layer, _)| layer);
        let mut below = 0;
        let mut found = None;
        for pair in inner.windows(2) {
            let &[layer, above] = pair else { continue };
            let is_free = Some(layer) > highest_asked && !listed.contains(&layer) && above == layer.up(1);
            let fits = self.bytes(layer) + self.bytes(above) <= self.job.landing_bytes;
            if is_free && fits && below <= all / BELOW_LANDING {
                found = Some([layer, above]);
            }
            below += self.counts[&layer];
        }
        found
    }

    /// Runs a task that counts entries on some lanes. Returns the lanes with entries, and the number of entries.
    fn count(
        &self,
        layer: Layer,
        lanes: BTreeSet<Lane>,
        task: BlockTask,
    ) -> Result<(BTreeSet<Lane>, u64), ConeError<QueryError>> {
        let blocks = &self.engine.blocks;
        let found = self.for_lanes(lanes, &|lane, helpers| {
            Ok((lane, blocks.compute(task, layer, lane, helpers)?.count))
        })?;
        let occurring = found.iter().filter(|(_, count)| *count > 0).map(|&(lane, _)| lane).collect();
        Ok((occurring, found.iter().map(|(_, count)| count).sum()))
    }

    /// Calls `of_lane` in parallel for each lane, while the answer is wanted.
    fn for_lanes<T: Send>(
        &self,
        lanes: BTreeSet<Lane>,
        of_lane: OfLane<'_, T, QueryError>,
    ) -> Result<Vec<T>, ConeError<QueryError>> {
        let lanes: Vec<Lane> = lanes.into_iter().collect();
        let wanted = |lane, helpers| {
            if (self.limits.wanted)() { of_lane(lane, helpers) } else { Err(QueryError::GivenUp) }
        };
        let found = for_lanes(&lanes, &wanted);
        self.go_on()?;
        found.map_err(ConeError::Stored)
    }

    fn go_on(&self) -> Result<(), ConeError<QueryError>> {
        if (self.limits.wanted)() { Ok(()) } else { Err(ConeError::GivenUp) }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;
    use std::sync::atomic::{AtomicU32, Ordering};

    use exact2048_game::backup::Backup;
    use exact2048_game::{KeptLayers, ParamsBuilder, Spawner, rules};
    use exact2048_solution::cone::Solver;
    use exact2048_worker::Heap;
    use rustc_hash::FxBuildHasher;

    use super::*;

    fn solver(params: &Params, dense_rows: usize) -> ConeSolver {
        let tuning = Tuning { dense_rows, ..Tuning::within(1 << 40, Heap::of(|| 0)) };
        ConeSolver { params: params.clone(), tuning, many: MANY_SEQUENCES, engines: Mutex::default() }
    }

    fn limits(wanted: &(dyn Fn() -> bool + Sync)) -> Limits<'_> {
        Limits { bytes: 1 << 30, wanted, progress: &|_| () }
    }

    /// Canonical states of a layer and the next one, from random games.
    fn states(params: &Params, layer: Layer, count: u64) -> Vec<(Layer, Board)> {
        let rules = PackedRules::new(params.game().board());
        let mut found = BTreeSet::new();
        for game in 0..400 * count {
            let random = |number: u64| FxBuildHasher.hash_one((game, number)) as usize >> 8;
            let starts: Vec<Board> = rules::starts(params.game().board()).map(|(board, _)| board).collect();
            let (mut board, mut number) = (starts[random(0) % starts.len()], 1);
            while Layer(board.tile_sum(params.game().board())) < layer {
                let moves: Vec<Board> = rules.moves(board).iter().map(|(_, after, _)| after).collect();
                if moves.is_empty() {
                    break;
                }
                let after = moves[random(number) % moves.len()];
                let cells: Vec<usize> = rules::empty_cells(after, params.game().board()).collect();
                board = after
                    .with(cells[random(number + 1) % cells.len()], 1 + u8::from(random(number + 2) % 4 == 0));
                number += 3;
            }
            let of = Layer(board.tile_sum(params.game().board()));
            let is_counted =
                of >= layer && !params.game().is_won(board) && !params.contents().kept().keeps(of);
            if is_counted && found.len() < count as usize {
                found.insert((of, rules.canonical(board)));
            }
        }
        found.into_iter().collect()
    }

    /// The kernels find the same states and values as the hash tables, for any stored values.
    #[test]
    fn cones_are_those_of_the_tables() {
        let job = |board: &str, objective: &str| Params::usual(board, objective);
        let every = |builder: ParamsBuilder, period| builder.kept(KeptLayers::new(period, 2).unwrap());
        let worst = job("2x4", "reach:64").spawner(Spawner::Worst);
        let cases = [
            (every(job("2x3", "score"), 16), 20),
            // The next cut lies beyond the last layer.
            (job("2x3", "score").kept(KeptLayers::STARTS), 12),
            (every(job("3x3", "reach:64"), 24), 40),
            (every(job("3x3", "score").spawn4("1/2".parse().unwrap()), 16), 40),
            (every(job("5x2", "score").precision(Precision::Bits64), 12), 100),
            (every(job("4x2", "lose:64"), 32), 40),
            (every(worst, 24), 30),
            (every(job("3x3", "reach:128").discount("0.95".parse().unwrap()), 20), 50),
            (every(job("1x6", "score"), 16), 12),
        ];
        let mut landings = 0;
        for (builder, layer) in cases {
            let params = builder.build().unwrap();
            let (rules, backup) = (PackedRules::new(params.game().board()), Backup::new(params.game()));
            let stored = |_: Layer, boards: &[Board]| {
                // No stored value is less than that of a dead state with the same potential.
                let past = |board| backup.terminal::<u64>(rules::potential(board) as u32).stored().0;
                let some = |board| FxBuildHasher.hash_one(rules.canonical(board)) >> 48;
                let value = |&board: &Board| Stored(past(board) + some(board));
                Ok(boards.iter().map(value).collect())
            };
            for count in [1, 5] {
                let asked = states(&params, Layer(layer), count);
                let cut = params.contents().kept().next_cut(asked[0].0);
                let asked: Vec<_> = asked.into_iter().filter(|&(layer, _)| layer < cut).collect();
                let tables = Solver::new(params.game(), params.contents().kept());
                let expected = tables.solve(&asked, limits(&|| true), stored).unwrap();
                for (dense_rows, many) in
                    [(0, u64::MAX), (Tuning::DENSE_ROWS, u64::MAX), (Tuning::DENSE_ROWS, 0)]
                {
                    let kernels = ConeSolver { many, ..solver(&params, dense_rows) };
                    let solve = |cut, keep_bytes, landing_bytes, stored: StoredValues<'_>| {
                        let job = ConeJob { asked: &asked, cut, keep_bytes, landing_bytes };
                        kernels.solve(job, limits(&|| true), stored).unwrap()
                    };
                    let case = format!("{params:?} from {asked:?}, dense rows {dense_rows}, many {many}");
                    let all = solve(cut, u64::MAX, 0, &stored);
                    assert_eq!((all.states, &all.landing), (expected.states(), &None), "{case}");
                    assert!(all.lower == expected, "the values differ: {case}");
                    // If only the lower layers are kept, the asked states still have values.
                    let few = solve(cut, expected.bytes() / 4, u64::MAX, &stored);
                    assert_eq!(few.states, expected.states(), "{case}");
                    assert!(few.lower.states() < few.states, "{case}");
                    for &(layer, board) in &asked {
                        assert_eq!(few.lower.value(layer, board), expected.value(layer, board), "{case}");
                    }
                    let used = kernels.engines.lock().each_ref().map(Option::is_some);
                    assert_eq!(used, [many > 0, many == 0], "{case}");
                    // A cone that ends at the landing has the same values.
                    let Some(landing) = few.landing else { continue };
                    landings += 1;
                    let [lower, upper] = landing.layers() else { panic!("{case}") };
                    assert_eq!(upper.layer, lower.layer.up(1), "{case}");
                    let on_landing = |layer: Layer, boards: &[Board]| {
                        let value = |&board| landing.value(layer, rules.canonical(board)).unwrap();
                        Ok(boards.iter().map(value).collect())
                    };
                    let landed = solve(lower.layer, u64::MAX, 0, &on_landing);
                    assert!(landed.states < few.states, "{case}");
                    for of in landed.lower.layers() {
                        let found = expected.layers().iter().find(|other| other.layer == of.layer);
                        assert_eq!(Some(of), found, "{case}");
                    }
                }
            }
        }
        assert!(landings > 10, "{landings}");
    }

    #[test]
    fn sequences_of_large_tiles_are_counted() {
        let count = |text: &str| sequences(Board::parse(text, "4x3".parse().unwrap()).unwrap());
        assert_eq!(count("2 4 0 / 0 0 0 / 0 0 0 / 0 0 0"), 1);
        assert_eq!(count("8 32 64 / 2 8 16 / 0 0 8 / 0 2 2"), 120);
        assert_eq!(count("32768 16384 8192 / 4096 2048 1024 / 512 256 128 / 64 32 16"), 479_001_600);
    }

    #[test]
    fn a_question_that_is_given_up_ends() {
        let params = Params::usual("3x3", "score").kept(KeptLayers::new(32, 2).unwrap()).build().unwrap();
        let asked = states(&params, Layer(20), 1);
        let stored = |_: Layer, boards: &[Board]| Ok(vec![Stored(1); boards.len()]);
        let kernels = solver(&params, Tuning::DENSE_ROWS);
        let calls = AtomicU32::new(0);
        let count = || calls.fetch_add(1, Ordering::Relaxed) < u32::MAX;
        let cut = params.contents().kept().next_cut(Layer(20));
        let job = ConeJob { asked: &asked, cut, keep_bytes: u64::MAX, landing_bytes: 0 };
        let whole = kernels.solve(job, limits(&count), &stored).unwrap();
        let all = calls.into_inner();
        for most in [0, 1, all / 3, all / 2, all - 1] {
            let calls = AtomicU32::new(0);
            let patient = || calls.fetch_add(1, Ordering::Relaxed) < most;
            let given_up = kernels.solve(job, limits(&patient), &stored);
            assert!(matches!(given_up, Err(ConeError::GivenUp)), "{most} of {all}");
        }
        // Data of abandoned cones does not change the next cone.
        assert_eq!(kernels.solve(job, limits(&|| true), &stored).unwrap(), whole);
    }

    #[test]
    fn too_little_memory_is_refused_before_the_work() {
        let params = Params::usual("3x3", "score").kept(KeptLayers::new(32, 2).unwrap()).build().unwrap();
        let tuning = Tuning::within(1 << 20, Heap::of(|| 0));
        let kernels = ConeSolver { tuning, ..solver(&params, 0) };
        let asked = states(&params, Layer(20), 1);
        let cut = params.contents().kept().next_cut(Layer(20));
        let job = ConeJob { asked: &asked, cut, keep_bytes: 0, landing_bytes: 0 };
        let refused = kernels.solve(job, limits(&|| true), &|_, _| unreachable!());
        assert!(matches!(refused, Err(ConeError::TooLarge(_))));
    }
}
