//! Answers of `query` and `serve` for values that a run does not store.

use crate::common;

use std::collections::HashSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::query_calls::{client, packed, values_of};
use common::serving::Server;
use common::{Place, Solved, exact2048, files, on_run, text, whole};
use exact2048_game::packed::PackedRules;
use exact2048_game::rules;
use exact2048_game::{Board, BoardSize, Layer};
use exact2048_solution::{
    CostSum, Evaluation, KernelsOfRun, Oracle, OracleOptions, QueryError, QuestionLimits, ReachSource,
    Recipe, Run,
};
use exact2048_worker::{Heap, Tuning};
use tokio::task::JoinSet;
use tonic::{Code, Request};
use tonic_types::StatusExt;

/// Tuning without a memory limit.
const UNLIMITED: Tuning = Tuning {
    limit_bytes: usize::MAX / 2,
    heap: Heap::of(|| 0),
    dense_rows: Tuning::DENSE_ROWS,
    piece_bytes: Tuning::PIECE_BYTES,
};

static FEW: LazyLock<Solved> = LazyLock::new(|| Solved::new("--board 4x2 --keep 128"));
static USUAL: LazyLock<Solved> = LazyLock::new(|| Solved::new("--board 4x2"));

fn size() -> BoardSize {
    "4x2".parse().unwrap()
}

/// A run that stores half of all values.
static ORACLE: LazyLock<Oracle> = LazyLock::new(|| Oracle::new(&Run::open(&USUAL.run()).unwrap()).unwrap());

/// An oracle with kernels.
fn with_kernels(run: &Run, tuning: Tuning) -> Oracle {
    with_kernels_within(run, tuning, OracleOptions::default().cone_bytes)
}

/// An oracle with kernels and a memory limit for each cone.
fn with_kernels_within(run: &Run, tuning: Tuning, cone_bytes: u64) -> Oracle {
    let kernels = Some(KernelsOfRun::new(move |run| exact2048_run::kernels(run, tuning)));
    Oracle::with_options(run, OracleOptions { kernels, cone_bytes, ..OracleOptions::default() }).unwrap()
}

/// Threads that play games need cones at the same time. Their games are those of a run with all values.
#[test]
fn perfect_games_do_not_depend_on_the_stored_values() {
    let [few, all] = ["64", "all"].map(|keep| Solved::new(&format!("--board 3x3 --keep {keep}")));
    let options = ["--player", "perfect", "--games", "4", "--threads", "4", "--until", "64", "--json"];
    let [few, all] = [few, all].map(|solved| on_run(&solved.run(), "play", &options).exits(0).json());
    for field in ["games", "moves", "score", "merges_a_game"] {
        assert_eq!(few[field], all[field], "{field}");
    }
}

/// A reachable state of a layer. It depends on the seed.
fn state(layer: u32, seed: u64) -> Board {
    let packed = PackedRules::new(size());
    let mut seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    loop {
        let mut board = Board::default().with(random(4), 1).with(4 + random(4), 1);
        while board.tile_sum(size()) < layer {
            // Random moves rarely reach high layers, so the game follows best moves.
            let Some(best) = ORACLE.evaluate(board, &|| true).unwrap().best else { break };
            let (after, _) = packed.moves(board).get(best).unwrap();
            let cells: Vec<usize> = rules::empty_cells(after, size()).collect();
            board = after.with(cells[random(cells.len())], 1 + u8::from(random(10) == 0));
        }
        if board.tile_sum(size()) == layer && !packed.moves(board).is_empty() {
            return board;
        }
    }
}

/// The value of a board in the run that stores half of all values.
fn expected(board: Board) -> f64 {
    ORACLE.evaluate(board, &|| true).unwrap().value
}

#[test]
fn a_query_reports_its_cost_and_the_next_costs_nothing() {
    let place = Place::new();
    let cache = place.join("cache");
    let own = FEW.run().join("cones");
    let board = state(130, 1);
    let asked = board.to_text(size());
    let query =
        |options: &[&str]| on_run(&FEW.run(), "query", &[&[asked.as_str(), "--json"], options].concat());
    let cost = |options: &[&str]| {
        let answer = query(options).exits(0).json();
        assert_eq!(common::number(&answer["value"]).to_bits(), expected(board).to_bits());
        let cost = &answer["cost"];
        assert!(common::number(&cost["seconds"]) > 0.0 && whole(&cost["boards"]) == 1, "{cost}");
        ["computed_states", "stored_states", "found_states"].map(|field| whole(&cost[field]))
    };
    let folder = ["--cone-cache", cache.to_str().unwrap()];
    let [computed, stored, found] = cost(&folder);
    assert!(computed > 10_000 && stored > 1000 && found == 0, "{computed} from {stored}");
    assert_eq!(files(&cache).len(), 1);
    assert!(!own.exists());
    assert_eq!(cost(&folder)[0], 0, "it was solved before");
    // The next query of the same game needs no computation.
    let packed_rules = PackedRules::new(size());
    let (_, after, _) = packed_rules.moves(board).iter().next().unwrap();
    let cell = rules::empty_cells(after, size()).next().unwrap();
    let on = after.with(cell, 1);
    let answer =
        on_run(&FEW.run(), "query", &[&on.to_text(size()), "--json", folder[0], folder[1]]).exits(0).json();
    assert_eq!(whole(&answer["cost"]["computed_states"]), 0, "{answer}");
    assert_eq!(common::number(&answer["value"]).to_bits(), expected(on).to_bits());
    // By default, cones are stored with the run. With a cache size of 0, they are not stored.
    assert_eq!(cost(&["--cone-cache-size", "0"])[0], computed);
    assert!(!own.exists());
    assert_eq!(cost(&[])[0], computed);
    assert_eq!((files(&own).len(), cost(&[])[0]), (1, 0));
    on_run(&FEW.run(), "verify", &["--layers", "4..20"]).exits(0);
    for board in [asked.as_str(), "2 0 / 0 0 / 0 0 / 0 2"] {
        let shown = on_run(&FEW.run(), "query", &[board, "--cone-cache-size", "0"]).exits(0).stdout;
        assert!(shown.lines().any(|line| line.starts_with("cost ")), "{shown}");
    }
    // Too little memory is an error that names the option.
    query(&["--memory", "1MB", "--cone-cache-size", "0"]).exits(1).says(&["1000000 bytes", "--memory"]);
    exact2048(["query", "--server", "http://127.0.0.1:1", "--cone-cache", "x", &asked])
        .exits(2)
        .says(&["--run"]);
    // An answer from stored values has no cost.
    let usual = on_run(&USUAL.run(), "query", &[&asked, "--json"]).exits(0).json();
    assert!(usual["cost"].is_null() && !USUAL.run().join("cones").exists());
    assert_eq!(text(&usual["board"]), asked);
    std::fs::remove_dir_all(own).unwrap();
}

/// The kernels solve large cones. The values and the number of computed states are those of the hash tables, and states that
/// follow are known afterwards. Kernels that need more memory are not used. A caller that gives up gets an error.
#[test]
fn kernels_solve_large_cones() {
    let run = Solved::new("--board 3x3 --objective reach:256 --keep starts");
    let run = Run::open(&run.run()).unwrap();
    let size: BoardSize = "3x3".parse().unwrap();
    let [first, later] =
        ["2 2 0 / 4 0 0 / 0 0 0", "4 4 2 / 0 0 0 / 0 0 2"].map(|text| Board::parse(text, size).unwrap());
    let ask = |oracle: &Oracle, board, cone_bytes, wanted: &(dyn Fn() -> bool + Sync)| {
        let spent = CostSum::default();
        let asking = QuestionLimits::new(wanted, cone_bytes, &spent);
        let answer = oracle.evaluate_as(&[board], &asking).map(|mut answers| answers.remove(0).unwrap());
        answer.map(|answer| (answer, spent.computed_states(), spent.found_states()))
    };
    let (alone, kernels, most) = (Oracle::new(&run).unwrap(), with_kernels(&run, UNLIMITED), 1 << 30);
    let expected = ask(&alone, first, most, &|| true).unwrap();
    assert!(expected.1 > 1_000_000, "{expected:?}");
    assert_eq!(ask(&kernels, first, most, &|| true).unwrap(), expected);
    let (found, computed, known) = ask(&kernels, later, most, &|| true).unwrap();
    assert_eq!((&found, computed), (&ask(&alone, later, most, &|| true).unwrap().0, 0));
    assert!(known > 0);
    // Kernels without memory leave the cone to the hash tables, whose memory does not suffice either.
    let (little, all) = (Tuning { limit_bytes: 1 << 20, ..UNLIMITED }, 33 << 20);
    let refused = ask(&with_kernels_within(&run, little, all), first, all, &|| true).unwrap_err();
    assert!(matches!(refused, QueryError::TooLarge(_)), "{refused}");
    // With less than the whole memory, the question is a trial, for which the kernels do not work.
    let refused = ask(&with_kernels(&run, UNLIMITED), first, 16 << 20, &|| true).unwrap_err();
    assert!(matches!(refused, QueryError::TooLarge(_)), "{refused}");
    // A cone that takes longer than its deadline is refused before the work.
    let spent = CostSum::default();
    let soon = Some(Instant::now() + Duration::from_millis(100));
    let asking = QuestionLimits { deadline: soon, ..QuestionLimits::new(&|| true, most, &spent) };
    let refused = with_kernels(&run, UNLIMITED).evaluate_as(&[first], &asking).unwrap_err();
    assert!(refused.to_string().contains("longer deadline"), "{refused}");
    assert_eq!(spent.computed_states(), 0);
    let asking = QuestionLimits { deadline: soon.map(|soon| soon + Duration::from_secs(600)), ..asking };
    let answer = kernels.evaluate_as(&[first], &asking).unwrap().remove(0).unwrap();
    assert_eq!(answer, expected.0);
    // The hash tables call `wanted` until the cone is too large for them, and then the kernels do.
    let asked = AtomicU32::new(0);
    let count = || asked.fetch_add(1, Ordering::Relaxed) < u32::MAX;
    ask(&with_kernels(&run, UNLIMITED), first, most, &count).unwrap();
    let most_often = asked.into_inner() - 20;
    let asked = AtomicU32::new(0);
    let patient = || asked.fetch_add(1, Ordering::Relaxed) < most_often;
    let given_up = ask(&with_kernels(&run, UNLIMITED), first, most, &patient).unwrap_err();
    assert!(matches!(given_up, QueryError::GivenUp), "{given_up}");
}

/// The lower layers of a large cone are kept. A game that leaves them needs one new cone, which serves its next moves. With
/// more memory, later cones end at a landing of the first. The answers are those of a run with all values.
#[test]
fn games_need_few_cones() {
    let solved =
        ["128", "all"].map(|keep| Solved::new(&format!("--board 3x3 --objective reach:256 --keep {keep}")));
    let [few, all] = solved.each_ref().map(|solved| Run::open(&solved.run()).unwrap());
    let whole = Oracle::new(&all).unwrap();
    let size: BoardSize = "3x3".parse().unwrap();
    let packed = PackedRules::new(size);
    let computed_of = |solved_bytes| {
        let kernels = Some(KernelsOfRun::new(|run| exact2048_run::kernels(run, UNLIMITED)));
        let options = OracleOptions { kernels, solved_bytes, ..OracleOptions::default() };
        let oracle = Oracle::with_options(&few, options).unwrap();
        let (mut board, mut computed) = (Board::parse("2 2 0 / 4 0 0 / 0 0 0", size).unwrap(), Vec::new());
        while board.tile_sum(size) < 240 {
            let spent = CostSum::default();
            let asking = QuestionLimits::new(&|| true, 1 << 30, &spent);
            let answer = oracle.evaluate_as(&[board], &asking).unwrap().remove(0).unwrap();
            assert_eq!(answer, whole.evaluate(board, &|| true).unwrap());
            computed.push(spent.computed_states());
            let Some(best) = answer.best else { break };
            let (after, _) = packed.moves(board).get(best).unwrap();
            board = after.with(rules::empty_cells(after, size).next().unwrap(), 1);
        }
        computed
    };
    let computed = computed_of(1_000_000);
    let is_large = |&states: &u64| states > 100_000;
    assert!(computed.iter().filter(|states| is_large(states)).count() >= 2, "{computed:?}");
    assert!(!computed.windows(2).any(|two| two.iter().all(is_large)), "{computed:?}");
    let landed = computed_of(8_000_000);
    let [all, fewer] = [&computed, &landed].map(|computed| computed.iter().sum::<u64>());
    assert!(fewer < all / 2, "{fewer} of {all}");
}

/// A run may not store which states its layers have. The kernels find the states of a cone from the asked one. Even with
/// little memory, values equal the values of a run that stores all states. Unreachable boards have the same answer as from
/// the hash tables.
#[test]
fn cones_need_no_stored_states() {
    let (job, size) = ("--board 3x3 --objective reach:256", "3x3".parse().unwrap());
    let whole = Solved::new(&format!("{job} --keep starts"));
    let alone = Oracle::new(&Run::open(&whole.run()).unwrap()).unwrap();
    let board = |text| Board::parse(text, size).unwrap();
    let reachable = [
        "2 2 0 / 4 0 0 / 0 0 0",
        "8 2 4 / 2 8 0 / 0 0 0",
        "64 8 2 / 2 0 0 / 0 0 0",
        "32 8 2 / 16 4 2 / 2 0 0",
    ]
    .map(board);
    let by_no_game = ["4 4 4 / 4 4 4 / 4 4 4", "32 32 16 / 16 8 8 / 2 2 4"].map(board);
    // The heap is always full, so all data that is not in use moves to scratch files.
    let little = Tuning { limit_bytes: 200 << 20, heap: Heap::of(|| 201 << 20), ..UNLIMITED };
    let limited = Solved::new(&format!("{job} --keep starts --disk 20MB"));
    let run = Run::open(&limited.run()).unwrap();
    for tuning in [UNLIMITED, little] {
        let kernels = with_kernels(&run, tuning);
        for asked in reachable {
            let expected = alone.evaluate(asked, &|| true).unwrap();
            let holdings = run.holdings();
            let reach = Recipe::new(run.params(), &holdings).reach(expected.layer);
            let is_known_reachable = reach == ReachSource::Stored;
            let expected = Evaluation { is_known_reachable, ..expected };
            assert_eq!(kernels.evaluate(asked, &|| true).unwrap(), expected);
        }
    }
    let (kernels, by_tables) = (with_kernels(&run, UNLIMITED), Oracle::new(&run).unwrap());
    for asked in by_no_game {
        let (found, expected) = (kernels.evaluate(asked, &|| true), by_tables.evaluate(asked, &|| true));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
}

/// Where a run no longer stores which boards games reach, some boards of a batch may lead to states that the run lacks.
/// The other boards of the batch get the same answers as alone.
#[test]
fn batches_leave_out_boards_that_lead_to_missing_states() {
    let limited = Solved::new("--board 3x3 --objective reach:64 --keep 16 --disk 1MB");
    let run = Run::open(&limited.run()).unwrap();
    let (oracle, holdings) = (Oracle::new(&run).unwrap(), run.holdings());
    let recipe = Recipe::new(run.params(), &holdings);
    let is_stored = |layer| recipe.reach(layer) == ReachSource::Stored;
    let boards: Vec<Board> = (0..40_000u64)
        .map(|seed| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 28, Board::default().with(8, 1)))
        .map(|(bits, board)| {
            (0..8).fold(board, |board, cell| board.with(cell, (bits >> (4 * cell) & 7) as u8 % 6))
        })
        .filter(|&board| run.params().why_unreachable(board).is_none())
        .filter(|board| {
            let layer = Layer(board.tile_sum(run.params().game().board()));
            !is_stored(layer) && is_stored(layer.up(1))
        })
        .take(1_000)
        .collect();
    let alone: Vec<_> = boards.iter().map(|&board| oracle.evaluate(board, &|| true)).collect();
    let refused = alone.iter().filter(|answer| answer.is_err()).count();
    assert!(refused > 5 && refused < 500, "{refused} of {}", alone.len());
    let together = oracle.evaluate_all(&boards, &|| true).unwrap();
    assert_eq!(format!("{together:?}"), format!("{alone:?}"));
    let expected: Vec<Option<f64>> =
        boards.iter().map(|&board| oracle.values(&[board], &|| true).unwrap()[0]).collect();
    assert_eq!(oracle.values(&boards, &|| true).unwrap(), expected);
}

/// A sample of such a run reports the covered part.
#[test]
fn samples_report_their_coverage() {
    let verify =
        |options: &[&str]| on_run(&FEW.run(), "verify", &[&["--sample", "60", "--json"], options].concat());
    let all = verify(&[]).exits(0).json();
    let [values, too_far, answers] = ["values", "values_too_far", "answers"].map(|field| whole(&all[field]));
    assert!((values, too_far) == (60, 0) && answers > 4, "{all}");
    let some = verify(&["--memory", "2MiB", "--threads", "1"]).json();
    let [values, too_far] = ["values", "values_too_far"].map(|field| whole(&some[field]));
    assert!(values + too_far == 60 && too_far > 0, "{some}");
    let few = verify(&["--memory", "1KiB", "--threads", "1"]).json();
    assert!(whole(&few["values_too_far"]) > too_far, "{few}");
    let sampled = on_run(&FEW.run(), "verify", &["--sample", "60", "--memory", "1KiB"]).exits(1);
    assert!(sampled.stdout.contains("--memory"), "{sampled:?}");
    sampled.says(&["60", "--partial"]);
    verify(&["--memory", "1KiB", "--partial"]).exits(0);
}

/// Of hundreds of simultaneous slow queries, each gets the right value or an error. Meanwhile, the server answers queries of
/// stored values, and memory stays within the limits of the options.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_slow_queries_at_once() {
    let options = ["--cone-memory", "128MiB", "--cones", "1", "--cone-cache-size", "0", "--threads", "2"];
    let server = Server::start(&FEW.run(), &options);
    let clients = [client(&server).await, client(&server).await, client(&server).await];
    let mut asking = JoinSet::new();
    for nth in 0..150u64 {
        let mut client = clients[nth as usize % 3].clone();
        let board = state(40 + 2 * (nth as u32 % 80), nth);
        asking.spawn(async move {
            let mut request = Request::new(packed(board.0));
            request.set_timeout(Duration::from_secs(300));
            (board, client.get_value(request).await)
        });
    }
    let start = state(4, 1);
    let mut early = clients[0].clone();
    let stored = tokio::time::timeout(
        Duration::from_secs(120),
        early.batch_get_values(tokio_stream::iter([values_of(vec![start.0])])),
    );
    let stored = stored.await.unwrap().unwrap().into_inner().message().await.unwrap().unwrap();
    assert_eq!(stored.values[0].to_bits(), expected(start).to_bits());
    let (mut answered, mut late, mut turned_away, mut costs) = (0, 0, 0, HashSet::new());
    while let Some(joined) = asking.join_next().await {
        match joined.unwrap() {
            (board, Ok(answer)) => {
                let answer = answer.into_inner();
                assert_eq!(answer.value.to_bits(), expected(board).to_bits());
                costs.insert(answer.cost.unwrap().computed_states > 0);
                answered += 1;
            }
            // A slow machine exceeds the deadline of some requests.
            (_, Err(status)) if status.code() == Code::DeadlineExceeded => late += 1,
            (_, Err(status)) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                assert!(status.get_details_retry_info().is_some(), "{status}");
                turned_away += 1;
            }
        }
        assert!(server.rss_bytes() < 256 << 20, "{} bytes", server.rss_bytes());
    }
    let counts = format!("{answered} had an answer, {late} were late, {turned_away} were turned away");
    assert!(answered > 0 && answered + late >= 33, "{counts}");
    assert!(costs.contains(&true), "no value was computed");
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cone_that_does_not_fit_and_a_deadline_that_passes() {
    let server = Server::start(&FEW.run(), &["--cone-memory", "2MiB", "--cone-cache-size", "0"]);
    let mut few = client(&server).await;
    let refused = few.get_value(packed(state(130, 1).0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("bytes") && refused.get_details_retry_info().is_none());
    // A state near the next stored layers needs hardly any memory.
    let near = state(250, 2);
    let answer = few.get_value(packed(near.0)).await.unwrap().into_inner();
    assert_eq!(answer.value.to_bits(), expected(near).to_bits());
    server.stop();
    let server = Server::start(&FEW.run(), &["--cone-cache-size", "0"]);
    let mut client = client(&server).await;
    for nth in 0..20 {
        let mut request = Request::new(packed(state(20, nth).0));
        request.set_timeout(Duration::from_millis(1));
        let late = client.get_value(request).await;
        assert!(late.is_err_and(|status| [Code::DeadlineExceeded, Code::Cancelled].contains(&status.code())));
    }
    let board = state(200, 3);
    assert_eq!(
        client.get_value(packed(board.0)).await.unwrap().into_inner().value.to_bits(),
        expected(board).to_bits()
    );
    server.stop();
}
