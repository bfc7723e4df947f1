//! Runs that store best moves. With all kernels, every stored move is a best move, and play by these moves is perfect.

use crate::common;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use common::forge::Forge;
use common::{Place, Solved, close, number, on_run, shards, solve, text};
use exact2048_game::class::{ClassId, Space};
use exact2048_game::packed::PackedRules;
use exact2048_game::rules::{Move, empty_cells};
use exact2048_game::{Board, Params};
use exact2048_reference::Game;
use exact2048_solution::{Advice, Oracle, QueryError, Run};
use exact2048_storage::ShardKind;

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

fn oracle(run: &Path) -> Oracle {
    Oracle::new(&Run::open(run).unwrap()).unwrap()
}

/// All states of a game, by the slow reference.
fn states(board: &str, objective: &str) -> Vec<Board> {
    let game = Game::new(board, objective, "1/10");
    let size = board.parse().unwrap();
    let reachable = game.solve().values;
    reachable.keys().map(|state| Board::parse(&game.text(state), size).unwrap()).collect()
}

fn advice(oracle: &Oracle, states: &[Board]) -> Vec<Advice> {
    oracle.advise_all(states, ALWAYS).unwrap().into_iter().map(Result::unwrap).collect()
}

/// The image that a run stores of a board, by the tables of the solver.
fn stored_image(space: &Space, board: Board) -> Board {
    let (lane, layer, row, sequence) = space.locate(board).unwrap();
    space.board(space.class(ClassId::of(layer, lane).unwrap()).unwrap(), row, sequence)
}

/// Requires that the advice for some states is a best move by value of their stored images. Ties go to the first move.
fn check(values: &Oracle, advice: &[Advice]) -> usize {
    let (space, rules) = (Space::new(values.params()), PackedRules::new(values.params().game().board()));
    let boards: Vec<Board> = advice.iter().map(|advice| stored_image(&space, advice.board)).collect();
    let answers = values.evaluate_all(&boards, ALWAYS).unwrap();
    let mut ties = 0;
    for (advice, answer) in advice.iter().zip(answers) {
        let answer = answer.unwrap();
        let after = |board, direction: Option<Move>| {
            direction.map(|direction| rules.canonical(rules.moves(board).get(direction).unwrap().0))
        };
        let board = advice.board.to_text(rules.size());
        assert_eq!(after(advice.board, advice.best), after(answer.board, answer.best), "{board}");
        assert_eq!(advice.canonical, answer.canonical, "{board}");
        ties += usize::from(answer.moves.iter().filter(|m| m.outcome.is_some_and(|o| o.is_best)).count() > 1);
    }
    ties
}

/// Checks every state of small boards, and every image of some states, with every rule and both precisions.
#[test]
fn best_moves_are_those_of_the_values() {
    for (board, objective, options) in [
        ("2x2", "score", ""),
        ("3x2", "score", "--large 3"),
        ("2x3", "score", "--precision 64"),
        ("3x2", "reach:32", "--precision 64"),
        ("3x2", "reach:8", ""),
        ("4x2", "reach:64", "--large 3"),
        ("3x2", "lose:32", ""),
        ("3x2", "reach:64", "--discount 9/10"),
        ("3x2", "score", "--spawner worst"),
    ] {
        let job = format!("--board {board} --objective {objective} {options}");
        let (with_values, with_moves) =
            (Solved::new(&format!("{job} --keep all")), Solved::new(&format!("{job} --values best-move")));
        assert_eq!(with_values.fingerprint(), with_moves.fingerprint(), "{job}");
        let (values, moves) = (oracle(&with_values.run()), oracle(&with_moves.run()));
        let states = states(board, objective);
        let chosen = advice(&moves, &states);
        let ties = check(&values, &chosen);
        assert!(ties > 0, "{job}: there are no ties, which would be worth to be looked at");
        let rules = PackedRules::new(board.parse().unwrap());
        let images: Vec<Board> = states.iter().step_by(11).flat_map(|&state| rules.images(state)).collect();
        check(&values, &advice(&moves, &images));
        assert!(matches!(values.advise(states[0]), Err(QueryError::NoBestMoves)));
        let nothing = moves.advise(Board::default());
        assert!(matches!(nothing, Err(QueryError::Unreachable { .. })), "{nothing:?}");
    }
}

/// Checks a part of a board with more states. It has blocks of several parts and several rows, including symmetric rows.
#[test]
fn best_moves_of_3x3_are_those_of_the_values() {
    let job = "--board 3x3 --objective reach:256";
    let (with_values, with_moves) =
        (Solved::new(job), Solved::new(&format!("{job} --values best-move --keep 16")));
    assert_eq!(with_values.fingerprint(), with_moves.fingerprint());
    let (values, moves) = (oracle(&with_values.run()), oracle(&with_moves.run()));
    // Plays games to their ends, and asks about each of their states.
    let (params, mut seed) = (values.params().clone(), 7u64);
    let rules = PackedRules::new(params.game().board());
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut met = Vec::new();
    for _ in 0..60 {
        let mut board = Board::default().with(random(4), 1).with(4 + random(5), 1);
        while let Ok(advice) = moves.advise(board) {
            met.push(advice.clone());
            let legal: Vec<_> = advice.moves.iter().collect();
            let Some(best) = advice.best else { break };
            // Makes some moves that are not best, to reach more states.
            let (after, _) = match random(5) {
                0 => (legal[random(legal.len())].1, 0),
                _ => advice.moves.get(best).unwrap(),
            };
            let empty: Vec<usize> = empty_cells(after, rules.size()).collect();
            board = after.with(empty[random(empty.len())], 1 + u8::from(random(10) == 0));
        }
    }
    assert!(met.len() > 4_000, "{}", met.len());
    assert!(check(&values, &met) > 100);
}

/// Best moves do not depend on the method of their computation.
#[test]
fn best_moves_do_not_depend_on_how_they_are_computed() {
    let job = "--board 4x2 --objective reach:64 --values best-move";
    let states = states("4x2", "reach:64");
    let first = Solved::new(job);
    let wanted = advice(&oracle(&first.run()), &states);
    let least = common::least_memory(&format!("{job} --threads 1"));
    let least = format!("--threads 1 --memory {least}");
    for variant in [
        "--threads 1",
        "--threads 5 --keep 4",
        "--dense-rows 0",
        "--dense-rows 100 --keep all",
        "--piece-bytes 1 --threads 3",
        &least,
    ] {
        let other = Solved::new(&format!("{job} {variant}"));
        assert_eq!(other.fingerprint(), first.fingerprint(), "{variant}");
        assert!(advice(&oracle(&other.run()), &states) == wanted, "{variant}");
    }
}

/// The same command repairs a damaged shard. Until then, states in its damaged parts have no answer.
#[test]
fn damaged_best_moves_are_noticed_and_mended() {
    let job = "--board 3x3 --objective reach:128 --values best-move --keep 16";
    let healthy = Solved::new(job);
    let states: Vec<Board> = states("3x3", "reach:128").into_iter().step_by(101).collect();
    let wanted = advice(&oracle(&healthy.run()), &states);
    let run = healthy.run();
    let shard = shards(&run).into_iter().find(|path| path.to_string_lossy().contains("values-")).unwrap();
    let whole = fs::read(&shard).unwrap();
    for at in (104..whole.len()).step_by(whole.len() / 6) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&shard, &damaged).unwrap();
        let answers =
            Oracle::new(&Run::open(&run).unwrap()).and_then(|oracle| oracle.advise_all(&states, ALWAYS));
        match answers {
            Err(error) => assert!(matches!(error, QueryError::Read(_)), "byte {at}: {error}"),
            Ok(answers) => {
                let answers: Vec<Advice> = answers.into_iter().map(Result::unwrap).collect();
                assert!(answers == wanted, "byte {at}");
            }
        }
        on_run(&run, "verify", &["--sample", "1"]).exits(1);
        solve(&run, job);
        assert_eq!(fs::read(&shard).unwrap(), whole, "byte {at}");
    }
}

/// The verifier computes best moves with separate code. It refuses sealed files with wrong moves.
#[test]
fn wrong_best_moves_are_refused_and_right_ones_are_counted() {
    for (job, states) in [
        ("--board 3x2 --large 3", 21_752),
        ("--board 3x2 --objective reach:32 --precision 64", 0),
        ("--board 2x3 --objective lose:16", 0),
        ("--board 3x3 --objective reach:64 --keep 16 --large 3", 0),
    ] {
        let solved = Solved::new(&format!("{job} --values best-move"));
        let found = on_run(&solved.run(), "verify", &["--json"]).exits(0).json();
        assert_eq!(found["best_moves"], found["states"], "{job}");
        assert_eq!(found["best_moves_left_out"], 0, "{job}");
        assert!(states == 0 || found["states"] == states, "{job}");
        let sampled = on_run(&solved.run(), "verify", &["--sample", "50", "--json"]).exits(0).json();
        assert!(sampled["best_moves"].as_u64() >= sampled["values"].as_u64(), "{sampled}");
    }
    let solved = Solved::new("--board 3x2 --values best-move");
    let run = solved.run();
    let states = states("3x2", "score");
    let wanted = advice(&oracle(&run), &states);
    let whole = Forge::open(&run);
    let (mut refused, mut unread) = (0, 0);
    for shard in whole.of_kind(ShardKind::Values).collect::<Vec<_>>() {
        for (item, (key, bytes)) in whole.shards[shard].items.iter().enumerate() {
            // Changes one bit in each of some items.
            for bit in (61 * item % 499..8 * bytes.len()).step_by(997).filter(|_| key.part >> 31 == 1) {
                let mut forge = whole.clone();
                forge.shards[shard].items[item].1[bit / 8] ^= 1 << (bit % 8);
                forge.write_shard(shard);
                if on_run(&run, "verify", &[]).code == Some(1) {
                    refused += 1;
                } else {
                    // Of two images in a symmetric row, no query reads one.
                    assert!(advice(&oracle(&run), &states) == wanted, "bit {bit} of {key:?}");
                    unread += 1;
                }
            }
        }
        whole.clone().write_shard(shard);
    }
    assert!(refused > 50 && unread < refused / 5, "{refused} refused, {unread} changed nothing");
    on_run(&run, "verify", &[]).exits(0);
}

/// `--sample` also checks the moves of the sampled states. In this test, the sample has all states.
#[test]
fn wrong_best_moves_are_found_by_samples() {
    let solved = Solved::new("--board 2x2 --values best-move --keep all");
    let sampled = on_run(&solved.run(), "verify", &["--sample", "1000", "--json"]).exits(0).json();
    // Of the 110 states, five occur twice in symmetric rows.
    assert_eq!((&sampled["values"], &sampled["best_moves"]), (&115.into(), &115.into()), "{sampled}");
    let printed = on_run(&solved.run(), "verify", &["--sample", "1000"]).exits(0).stdout;
    assert!(printed.contains("115"), "{printed}");
    let whole = Forge::open(&solved.run());
    let (mut refused, mut all) = (0, 0);
    for shard in whole.of_kind(ShardKind::Values).collect::<Vec<_>>() {
        for (item, (_, bytes)) in
            whole.shards[shard].items.iter().enumerate().filter(|(_, (key, _))| key.part >> 31 == 1)
        {
            for bit in 0..8 * bytes.len() {
                let mut forge = whole.clone();
                forge.shards[shard].items[item].1[bit / 8] ^= 1 << (bit % 8);
                forge.write_shard(shard);
                let found = on_run(&solved.run(), "verify", &["--sample", "1000"]);
                if found.code == Some(1) {
                    assert!(found.stderr.contains("move"), "{}", found.stderr);
                    refused += 1;
                }
                all += 1;
            }
        }
        whole.clone().write_shard(shard);
    }
    assert!(refused > all / 4, "{refused} of {all}");
}

/// Moves are committed with the kept layers. In a run without kept layers between its starts and its last layer, all moves
/// would be in one shard.
#[test]
fn best_moves_of_more_layers_than_a_shard_holds_are_refused_at_once() {
    let place = Place::new();
    let job = ["--board", "4x3", "--values", "best-move", "--keep", "starts"];
    let run = place.join("run");
    let solve = [&["solve", "--run", run.to_str().unwrap()][..], &job].concat();
    for args in [solve, [&["plan"][..], &job].concat()] {
        common::exact2048(args).exits(2).says(&["8188", "4096"]);
    }
    assert!(!run.exists());
}

/// Answers of a run with few values, and of its server.
#[test]
fn best_moves_are_answered_and_values_where_they_are_asked_for() {
    let solved = Solved::new("--board 3x2 --values best-move");
    let run = solved.run();
    let board = "2 0 / 4 2 / 0 8";
    let shown = on_run(&run, "query", &[board]).exits(0).stdout;
    assert!(shown.contains("--value") && !shown.contains("cost"), "{shown}");
    let best = on_run(&run, "query", &["--json", board]).exits(0).json();
    assert!(best.get("value").is_none() && best.get("cost").is_none(), "{best}");
    assert_eq!(best["moves"].as_array().unwrap().len(), 4);
    let valued = on_run(&run, "query", &["--json", "--value", board]).exits(0).json();
    assert!(number(&valued["value"]) > 0.0 && valued.get("cost").is_some(), "{valued}");
    let marked = |answer: &serde_json::Value| -> Vec<String> {
        let moves = answer["moves"].as_array().unwrap();
        moves.iter().filter(|m| m["best"] == true).map(|m| text(&m["move"]).to_owned()).collect()
    };
    assert_eq!(marked(&best), [text(&best["best"]).to_owned()]);
    assert!(marked(&valued).contains(&marked(&best)[0]));
    on_run(&run, "query", &["128 128 / 128 128 / 128 128"]).exits(3);
    let info = on_run(&run, "info", &[]).exits(0).stdout;
    assert!(info.contains("2 in every 128"), "{info}");
    on_run(&run, "solve", &["--board", "3x2", "--values", "layers"]).exits(2).says(&[
        "best-move",
        "layers",
        "--values",
    ]);
    assert_eq!(solve(&run, "--board 3x2")["fingerprint"], solved.summary["fingerprint"]);

    #[cfg(feature = "net")]
    {
        use common::serving::Server;
        let server = Server::start(&run, &[]);
        let url = format!("http://{}", server.address());
        let ask = |options: &[&str]| {
            let args = [&["query", "--server", &url][..], options].concat();
            common::exact2048(args).exits(0)
        };
        assert_eq!(ask(&["--json", board]).json(), best);
        let mut from_server = ask(&["--json", "--value", board]).json();
        assert_eq!(marked(&from_server), marked(&valued));
        assert_eq!(from_server["value"].take(), valued["value"]);
        assert_eq!(ask(&[board]).stdout, shown);
        let both = format!("{board}\n2 2 / 0 0 / 0 0\n");
        let args = ["query", "--server", &url, "--json", "-"];
        let lines = common::exact2048_reading(args, both).exits(0).json_lines();
        assert_eq!(lines[0], best);
        assert!(lines.len() == 2 && lines[1].get("value").is_none());
        server.stop();
    }
}

/// Games with the stored moves have exactly the expected value, and the perfect player makes these moves.
#[test]
fn play_by_stored_moves_is_perfect() {
    let (board, job) = ("3x2", "--board 3x2");
    let with_moves = Solved::new(&format!("{job} --values best-move"));
    let with_values = Solved::new(job);
    let (values, moves) = (oracle(&with_values.run()), oracle(&with_moves.run()));
    let params: &Params = moves.params();
    let rules = PackedRules::new(params.game().board());
    let mut states = states(board, "score");
    states.sort_by_key(|state| std::cmp::Reverse(state.tile_sum(params.game().board())));
    let mut worth: HashMap<Board, f64> = HashMap::new();
    for advice in advice(&moves, &states) {
        let after = advice.best.map(|best| advice.moves.get(best).unwrap());
        let value = after.map_or(0.0, |(after, score)| {
            let cells: Vec<usize> = empty_cells(after, rules.size()).collect();
            let of = |cell: usize, exponent| worth[&rules.canonical(after.with(cell, exponent))];
            let sum: f64 = cells.iter().map(|&cell| 0.9 * of(cell, 1) + 0.1 * of(cell, 2)).sum();
            f64::from(score) + sum / cells.len() as f64
        });
        worth.insert(rules.canonical(advice.board), value);
    }
    for (state, value) in states.iter().zip(values.values(&states, ALWAYS).unwrap()) {
        close(worth[&rules.canonical(*state)], value.unwrap(), 1e-4, &state.to_text(rules.size()));
    }
    let options = ["--player", "perfect", "--games", "200", "--seed", "3", "--json"];
    let played = on_run(&with_moves.run(), "play", &options).exits(0);
    assert!(played.stdout.contains("mean"), "{played:?}");
}
