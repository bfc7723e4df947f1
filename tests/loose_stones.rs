//! Loose stones: tiles that slide and never merge, for the large tiles of a game.
//!
//! The slow reference knows them as tiles with a mark. Published numbers of another program confirm it.

use crate::{common, reference};

use common::query_calls;
use common::serving::{Server, answer_of_both};
use common::{Place, Solved, close, number, on_run, query, solve, text, try_solve};
use exact2048_game::{Board as PackedBoard, BoardSize};
use exact2048_proto::v1;
use exact2048_reference::{Game, Solution};
use reference::{ALL, Case, USUAL};

/// Checks that the verifier accepts a run.
fn check_run(solved: &Solved, _: &Solution, job: &str) {
    let verified = on_run(&solved.run(), "verify", &["--json"]).exits(0).json();
    assert_eq!(verified["verdict"], "right", "{job}");
    assert_eq!(verified["fingerprint"], solved.summary["fingerprint"], "{job}");
    if job.contains("--keep") {
        on_run(&solved.run(), "verify", &["--sample", "20"]).exits(0);
    }
}

#[test]
fn small_boards_have_the_values_of_the_reference() {
    let variants = &["--large 3", "--large 4 --keep 2/16", "--precision 64"];
    for (board, objective, most_states) in [
        ("2x2+1x", "reach:16", ALL),
        ("1x5+2x", "reach:16", ALL),
        ("2x3+2x", "reach:32", ALL),
        ("2x3+3x", "lose:16", ALL),
        ("3x3+5x", "reach:32", 400),
        ("3x3+4x", "reach:16", 400),
        ("2x4+3x", "lose:32", 400),
    ] {
        Case { board, objective, spawn4: "1/10", rules: USUAL, variants, most_states }.check_and(check_run);
    }
}

#[test]
fn other_rules_hold_beside_loose_stones() {
    let variants = &["--keep 2/16", "--large 3 --precision 64"];
    for (board, rules, spawn4) in
        [("3x3+5x", ("19/20", false), "1/10"), ("2x3+2x", ("1/1", true), "1/10"), ("2x4+3x", USUAL, "1/3")]
    {
        Case { board, objective: "reach:16", spawn4, rules, variants, most_states: 300 }.check_and(check_run);
    }
}

/// Best moves, statistics, players and exports of one run agree with its values.
#[test]
fn every_question_is_answered() {
    let options = "--board 3x3+4x --objective reach:32";
    let solved = Solved::new(options);
    let moves = Solved::new(&format!("{options} --values best-move"));
    assert_eq!(moves.fingerprint(), solved.fingerprint());
    on_run(&moves.run(), "verify", &[]).exits(0);
    let expected = number(&solved.summary["start"]["expected"]);
    let stats = on_run(&solved.run(), "stats", &["--json"]).exits(0).json();
    close(number(&stats["value"]["value"]), expected, 1e-6, "statistics");
    let played = on_run(&solved.run(), "play", &["--player", "perfect", "--games", "4000", "--json"]);
    close(number(&played.exits(0).json()["won"]["share"]["share"]), expected, 0.04, "games");
    let exact = on_run(&solved.run(), "evaluate", &["--player", "perfect", "--json"]).exits(0).json();
    close(number(&exact["exact"]["value"]), expected, 1e-6, "evaluation");
    let place = Place::new();
    let tables = place.join("tables");
    let options =
        ["--what", "states", "--layers", "16..16", "--format", "csv", "-o", tables.to_str().unwrap()];
    on_run(&solved.run(), "export", &options).exits(0);
    let size: BoardSize = "3x3+4x".parse().unwrap();
    let file = std::fs::read_dir(tables.join("data")).unwrap().next().unwrap().unwrap().path();
    let table = std::fs::read_to_string(file).unwrap();
    assert!(table.lines().count() > 100);
    for row in table.lines().skip(1).step_by(50) {
        let [board, value, layer, largest, empties] = row.split(',').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let board = PackedBoard(board.parse().unwrap());
        let answer = query(&solved.run(), &[board.to_text(size)]).remove(0);
        close(number(&answer["value"]), value.parse().unwrap(), 1e-12, &board.to_text(size));
        let cells = |of: &dyn Fn(u8) -> bool| (0..9).filter(|&cell| of(board.get(cell))).count();
        assert_eq!((layer, empties), ("16", &*cells(&|exponent| exponent == 0).to_string()), "{row}");
        assert!(cells(&|exponent| exponent == 15) == 4 && ["2", "4", "8", "16"].contains(&largest), "{row}");
    }
}

/// The largest tiles of a position of the real game are the stones. A server answers as the program does.
#[tokio::test]
async fn positions_of_the_real_game_are_answered() {
    let solved = Solved::new("--board 3x3 --loose 3 --objective reach:32");
    let server = Server::start(&solved.run(), &[]);
    let ask = |board: &str| answer_of_both(&solved.run(), &server, board);
    let (real, formation) = (ask("2 0 128 / 64 2 0 / 0 32 0"), ask("2 0 x / x 2 0 / 0 x 0"));
    assert_eq!(real["value"], formation["value"]);
    assert_eq!(text(&real["board"]), "2 0 128 / 64 2 0 / 0 32 0");
    for (real, formation) in
        real["moves"].as_array().unwrap().iter().zip(formation["moves"].as_array().unwrap())
    {
        assert_eq!([&real["move"], &real["value"]], [&formation["move"], &formation["value"]]);
        let (Some(after), Some(in_run)) = (real["afterstate"].as_str(), formation["afterstate"].as_str())
        else {
            continue;
        };
        let stones = after.split([' ', '/']).map(|cell| match cell {
            "32" | "64" | "128" => "x",
            other => other,
        });
        let in_words: Vec<&str> = in_run.split([' ', '/']).collect();
        assert_eq!(stones.collect::<Vec<_>>(), in_words, "{after}");
    }
    for (outside, words) in [
        ("2 0 128 / 64 2 0 / 0 16 0", "found 16 as number 3"),
        ("2 0 128 / 64 2 0 / 0 64 0", "found 64 twice"),
        ("2 0 x / 64 2 0 / 0 x 0", "2 loose stones"),
    ] {
        on_run(&solved.run(), "query", &[outside]).exits(2).says(&[words]);
    }
    let mut client = query_calls::client(&server).await;
    let run = client.get_run(v1::GetRunRequest {}).await.unwrap().into_inner();
    assert_eq!(run.parameters.unwrap().loose_stones, 3);
    let answer = client.get_value(query_calls::text("2 0 x / x 2 0 / 0 x 0")).await.unwrap().into_inner();
    let packed = client.get_value(query_calls::packed(answer.packed_board)).await.unwrap().into_inner();
    assert_eq!(packed.value, answer.value);
    server.stop();
}

#[test]
fn bad_loose_stones_are_refused() {
    let place = Place::new();
    let refused = |options: &str, words: &[&str]| {
        try_solve(&place.join("run"), options).exits(2).says(words);
    };
    refused("--board 2x2 --loose 3 --objective reach:8", &["--loose", "at most 2"]);
    refused("--board 2x2+9x --objective reach:8", &["at most 2"]);
    refused("--board 2x2+x --objective reach:8", &["2x2+x"]);
    refused("--board 2x3 --locked ..x/... --loose 1 --objective reach:8", &["none beside locks"]);
    refused("--board 2x3+1x --loose 1 --objective reach:8", &["once"]);
    refused("--board 3x3 --loose 2", &["reach:TILE"]);
    refused("--board 4x4 --loose 1 --objective reach:32768", &["16384"]);
    refused("--board 3x3 --loose 2 --sectors 2 --objective reach:8", &["sector"]);
    // The stones are a part of the game that a run solves.
    let run = place.join("run");
    let solved = solve(&run, "--board 2x3 --loose 2 --objective reach:16");
    let again = solve(&run, "--board 2x3+2x --objective reach:16");
    assert_eq!(solved["fingerprint"], again["fingerprint"]);
    try_solve(&run, "--board 2x3 --loose 1 --objective reach:16").exits(2).says(&["board"]);
}

#[test]
fn reference_slides_loose_stones() {
    let game = Game::new("1x4+2x", "reach:8", "1/10");
    let after =
        |text: &str, direction| game.slide(&game.board(text), direction).map(|(after, _)| game.text(&after));
    assert_eq!(after("x . x 2", 0).as_deref(), Some("x x 2 0"));
    assert_eq!(after("x 2 2 x", 1).as_deref(), Some("0 x 4 x"));
    assert_eq!(after("x x 2 4", 0), None);
}
