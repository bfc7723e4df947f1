//! Compares cones with the simplest computation of values: from the highest layer downward, state by state.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use exact2048_cone::{ConeError, Limits, Progress, Solved, Solver};
use exact2048_game::backup::Backup;
use exact2048_game::fixed::Scale;
use exact2048_game::rules::{self, Move};
use exact2048_game::symmetry::Symmetries;
use exact2048_game::value::Stored;
use exact2048_game::{Board, BoardSize, KeptLayers, Layer, Params, Precision, Spawn4};

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

fn limits(bytes: u64) -> Limits<'static> {
    Limits { bytes, wanted: ALWAYS, progress: &|_| () }
}

/// All states of a board with their values, by the reference rules.
struct Whole {
    params: Params,
    values: BTreeMap<Layer, HashMap<Board, Stored>>,
}

impl Whole {
    fn new(board: &str, objective: &str, spawn4: &str, precision: Precision, rules: (&str, &str)) -> Self {
        let spawn4: Spawn4 = spawn4.parse().unwrap();
        let params = Params::usual(board, objective).spawn4(spawn4).precision(precision);
        let params = params.discount(rules.0.parse().unwrap()).spawner(rules.1.parse().unwrap());
        let (params, board): (_, BoardSize) = (params.build().unwrap(), board.parse().unwrap());
        let (symmetries, backup) = (Symmetries::new(board), Backup::new(params.game()));
        let is_won = |board: Board| params.game().is_won(board);
        let afterstates =
            |state: Board| Move::ALL.into_iter().filter_map(move |d| rules::make_move(state, d, board));
        let spawned = |after: Board, tile: u8| {
            rules::empty_cells(after, board).map(move |cell| after.with(cell, tile)).collect::<Vec<_>>()
        };
        let mut values: BTreeMap<Layer, HashMap<Board, Stored>> = BTreeMap::new();
        let layer_of = |state: Board| Layer(state.tile_sum(board));
        for (start, _) in rules::starts(board).filter(|(start, _)| !is_won(*start)) {
            values.entry(layer_of(start)).or_default().insert(symmetries.canonical(start), Stored::default());
        }
        let mut next = values.keys().next().copied();
        while let Some(layer) = next {
            let states: Vec<Board> = values[&layer].keys().copied().collect();
            for after in states
                .into_iter()
                .flat_map(afterstates)
                .map(|(after, _)| after)
                .filter(|&after| !is_won(after))
            {
                for state in [1, 2].into_iter().flat_map(|tile| spawned(after, tile)) {
                    values
                        .entry(layer_of(state))
                        .or_default()
                        .insert(symmetries.canonical(state), Stored::default());
                }
            }
            next = values.range(layer.up(1)..).next().map(|(&layer, _)| layer);
        }
        for layer in values.keys().rev().copied().collect::<Vec<_>>() {
            let mean = |after: Board| {
                if is_won(after) {
                    return Scale::new(params.game()).won();
                }
                let spawns = |tile: u8| -> Vec<Stored> {
                    spawned(after, tile)
                        .into_iter()
                        .map(|s| values[&layer_of(s)][&symmetries.canonical(s)])
                        .collect()
                };
                match precision {
                    Precision::Bits32 => backup.of_spawns::<u32>([&spawns(1), &spawns(2)]),
                    Precision::Bits64 => backup.of_spawns::<u64>([&spawns(1), &spawns(2)]),
                }
            };
            let terminal = |state| Scale::new(params.game()).points(rules::potential(state));
            let best = |&state: &Board| {
                let best = afterstates(state).map(|(after, _)| mean(after)).max();
                (state, best.unwrap_or_else(|| terminal(state)))
            };
            let of_layer = values[&layer].keys().map(best).collect();
            values.insert(layer, of_layer);
        }
        Self { params, values }
    }

    fn solver(&self, kept: KeptLayers) -> Solver {
        Solver::new(self.params.game(), kept)
    }

    fn stored(&self, layer: Layer, boards: &[Board]) -> Result<Vec<Stored>, Layer> {
        boards.iter().map(|board| self.values[&layer].get(board).copied().ok_or(layer)).collect()
    }

    /// Solves the cone of some states, and checks every value of the result.
    fn check(&self, kept: KeptLayers, asked: &[(Layer, Board)]) -> Solved {
        let solved = self.solver(kept).solve(asked, limits(u64::MAX), |layer, boards| {
            assert!(kept.keeps(layer), "{layer} is not stored");
            self.stored(layer, boards)
        });
        let solved = solved.unwrap();
        for &(layer, board) in asked {
            assert_eq!(solved.value(layer, board), Some(self.values[&layer][&board]));
        }
        for of in solved.layers() {
            assert!(!kept.keeps(of.layer) && of.boards.is_sorted());
            for (at, board) in of.boards.iter().enumerate() {
                assert_eq!(of.values.get(at), self.values[&of.layer][board], "{board:?} of {}", of.layer);
            }
        }
        solved
    }

    /// All states of the layers that are not stored.
    fn open(&self, kept: KeptLayers) -> Vec<(Layer, Board)> {
        let layers = self.values.iter().filter(|(layer, _)| !kept.keeps(**layer));
        let mut open: Vec<_> =
            layers.flat_map(|(&layer, states)| states.keys().map(move |&s| (layer, s))).collect();
        open.sort_unstable();
        open
    }
}

#[test]
fn every_state_has_the_value_of_a_run_that_stores_all() {
    let usual = ("1", "random");
    for (board, objective, spawn4, precision, rules) in [
        ("3x2", "score", "1/10", Precision::Bits32, usual),
        ("2x3", "score", "1/3", Precision::Bits64, usual),
        ("3x2", "reach:32", "1/10", Precision::Bits32, usual),
        ("1x5", "score", "0", Precision::Bits32, usual),
        ("2x2", "reach:16", "1", Precision::Bits64, usual),
        ("3x2", "lose:32", "1/10", Precision::Bits32, usual),
        ("3x2+2x", "reach:16", "1/10", Precision::Bits32, usual),
        ("3x2", "reach:32", "1/10", Precision::Bits64, ("0.95", "random")),
        ("2x2", "score", "1/10", Precision::Bits32, ("1", "worst")),
    ] {
        let whole = Whole::new(board, objective, spawn4, precision, rules);
        for kept in ["4", "3/7", "16", "starts"] {
            let kept: KeptLayers = kept.parse().unwrap();
            let open = whole.open(kept);
            // Asks for some states one by one, and for all states together.
            for state in open.iter().step_by(1 + open.len() / 300) {
                whole.check(kept, &[*state]);
            }
            assert_eq!(whole.check(kept, &open).states(), open.len() as u64, "{board} {kept}");
        }
        whole.check(KeptLayers::ALL, &[]);
    }
}

#[test]
fn samples_of_4x2_for_any_number_of_threads() {
    let whole = Whole::new("4x2", "reach:64", "1/10", Precision::Bits32, ("1", "random"));
    let kept = KeptLayers::new(32, 2).unwrap();
    let open = whole.open(kept);
    for state in open.iter().step_by(1 + open.len() / 200) {
        whole.check(kept, &[*state]);
    }
    let some: Vec<_> = open.iter().copied().step_by(3).collect();
    let of_threads = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| whole.check(kept, &some))
    };
    assert_eq!(of_threads(1), of_threads(5));
}

/// A cone above the memory limit fails, and the error reports a need above the limit.
#[test]
fn memory_is_bounded() {
    let whole = Whole::new("3x2", "score", "1/10", Precision::Bits32, ("1", "random"));
    let kept = KeptLayers::new(64, 2).unwrap();
    let asked = [*whole.open(kept).first().unwrap()];
    let solve =
        |bytes| whole.solver(kept).solve(&asked, limits(bytes), |layer, boards| whole.stored(layer, boards));
    let whole_bytes = solve(u64::MAX).unwrap().bytes();
    let mut least = 0;
    for bytes in (0..40).map(|step| whole_bytes * step / 4) {
        match solve(bytes) {
            Ok(solved) => assert!(solved.bytes() <= bytes),
            Err(ConeError::TooLarge(error)) => {
                assert!(
                    error.needed_bytes > bytes && error.limit_bytes == bytes && error.first == asked[0].0
                );
                least = bytes;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(least < 4 * whole_bytes, "{least} bytes are too few for a cone of {whole_bytes}");
    assert!(solve(10 * whole_bytes).is_ok());
}

#[test]
fn a_cone_stops_when_cancelled_or_without_stored_values() {
    let whole = Whole::new("3x2", "score", "1/10", Precision::Bits32, ("1", "random"));
    let kept = KeptLayers::new(32, 2).unwrap();
    let asked: Vec<_> = whole.open(kept).into_iter().step_by(50).collect();
    let count = AtomicUsize::new(0);
    let solve = |patience: usize| {
        count.store(0, Ordering::Relaxed);
        let wanted = || count.fetch_add(1, Ordering::Relaxed) < patience;
        let limits = Limits { wanted: &wanted, ..limits(u64::MAX) };
        whole.solver(kept).solve(&asked, limits, |layer, boards| whole.stored(layer, boards))
    };
    solve(usize::MAX).unwrap();
    let all = count.load(Ordering::Relaxed);
    for patience in [0, 1, all / 2, all - 1] {
        assert!(matches!(solve(patience), Err(ConeError::GivenUp)), "{patience} of {all}");
    }
    let failing = whole.solver(kept).solve(&asked, limits(u64::MAX), |layer, _| Err::<Vec<Stored>, _>(layer));
    assert!(matches!(failing, Err(ConeError::Stored(layer)) if kept.keeps(layer)));
}

#[test]
fn progress_goes_up_and_then_down() {
    let whole = Whole::new("3x2", "score", "1/10", Precision::Bits32, ("1", "random"));
    let kept = KeptLayers::new(16, 2).unwrap();
    let asked = [whole.open(kept)[0]];
    let reports = std::sync::Mutex::new(Vec::new());
    let report = |progress| reports.lock().unwrap().push(progress);
    let limits = Limits { progress: &report, ..limits(u64::MAX) };
    let solved =
        whole.solver(kept).solve(&asked, limits, |layer, boards| whole.stored(layer, boards)).unwrap();
    let reports = reports.into_inner().unwrap();
    let turn = reports.iter().position(|at| matches!(at, Progress::Stored(_))).unwrap();
    assert_eq!(turn, solved.layers().len());
    assert!(reports[..turn].iter().all(|at| matches!(at, Progress::Up(..))));
    assert_eq!(reports[turn + 1], Progress::Down(solved.states(), solved.states()));
    assert!(reports[turn + 1..].iter().all(|at| matches!(at, Progress::Down(..))));
}
