//! Formations: boards with locked stones, and boards with walls.
//!
//! The slow reference follows the definition of the moves. Published numbers of another program confirm both.

use crate::{common, published, reference};

use std::collections::BTreeMap;

use common::cluster::Cluster;
use common::http::{escape, get_json};
use common::query_calls;
use common::serving::{Server, answer_of_both};
use common::{Place, Solved, close, exact2048, files, layers, number, on_run, query, solve, text, try_solve};
use exact2048_proto::v1;
use exact2048_reference::{Board, DIRECTIONS, Game, Layer, Solution};
use reference::{ALL, Case, USUAL};
use tonic::Code;

/// Random numbers from a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// A board with this number of random stones of one kind.
    fn board(&mut self, [rows, cols]: [usize; 2], stones: usize, stone: char) -> String {
        let mut places: Vec<usize> = (0..rows * cols).collect();
        let mut picture = vec!['.'; rows * cols];
        for _ in 0..stones {
            picture[places.swap_remove(self.below(places.len()))] = stone;
        }
        let rows_of: Vec<String> = picture.chunks(cols).map(|row| row.iter().collect()).collect();
        format!("{rows}x{cols}:{}", rows_of.join("/"))
    }
}

/// Checks that the verifier accepts a run. Also checks dead states and a sample if the run keeps only some layers.
fn check_run(solved: &Solved, solution: &Solution, job: &str) {
    let verified = on_run(&solved.run(), "verify", &["--json"]).exits(0).json();
    assert_eq!(verified["verdict"], "right", "{job}");
    for field in ["states", "afterstates", "fingerprint"] {
        assert_eq!(verified[field], solved.summary[field], "{field} of {job}");
    }
    if job.contains("--keep") {
        assert_eq!(published::dead_states(&solved.run()), published::dead_of(&solution.layers), "{job}");
        on_run(&solved.run(), "verify", &["--sample", "20"]).exits(0);
    }
}

/// Compares all results of a formation with the reference.
fn check(board: &str, objective: &str, rules: (&str, bool), variants: &[&str], most_states: usize) {
    Case { board, objective, spawn4: "1/10", rules, variants, most_states }.check_and(check_run);
}

#[test]
fn random_formations_of_few_cells() {
    let mut random = Random(1);
    let variants = ["--large 3", "--large 5 --keep 2/16", "--precision 64 --large 4"];
    for (size, stones) in [([2, 2], 1), ([1, 5], 1), ([2, 3], 2), ([3, 2], 2), ([3, 3], 5), ([4, 4], 12)] {
        check(&random.board(size, stones, 'x'), "score", USUAL, &variants, ALL);
        check(&random.board(size, stones, '#'), "score", USUAL, &variants[1..2], ALL);
        // A board of three cells cannot reach more than a 16.
        check(&random.board(size, stones, 'x'), "lose:16", USUAL, &variants[..2], ALL);
    }
}

#[test]
fn random_formations_of_five_and_six_cells() {
    let mut random = Random(2);
    for (size, stones) in [([2, 4], 3), ([4, 2], 2), ([3, 3], 4), ([3, 3], 3), ([3, 4], 6), ([2, 8], 10)] {
        for (stone, objective) in [('x', "reach:32"), ('#', "reach:16")] {
            let variants = ["--large 3", "--large 4 --keep 2/16", "--large 5 --precision 64"];
            check(&random.board(size, stones, stone), objective, USUAL, &variants, 400);
        }
    }
}

/// A sample of at most so many states of all layers.
fn sample(layers: BTreeMap<u32, Layer>, most: usize) -> Vec<Board> {
    let mut states: Vec<Board> = layers.into_values().flat_map(|layer| layer.states).collect();
    states.sort();
    let every = states.len().div_ceil(most);
    states.into_iter().step_by(every).collect()
}

/// Pictures with symmetries, pictures whose stones fill a border, and stones in the middle.
#[test]
fn formations_with_symmetries() {
    for board in [
        "3x3:.../.x./...",
        "3x3:x.x/.../x.x",
        "3x3:x../.x./..x",
        "3x3:..x/..x/xxx",
        "3x4:xxxx/..../xxxx",
        "4x4:x..x/x..x/x..x/xxxx",
        "1x8:x.x.x...",
    ] {
        let walls = board.replace('x', "#").replacen('#', "x", 1);
        check(board, "reach:16", USUAL, &["--large 3", "--precision 64 --keep 2/16"], 300);
        check(&walls, "reach:16", USUAL, &["--large 3 --keep 2/16"], 300);
    }
}

/// Discounts, an adversary, and other spawns.
#[test]
fn formations_under_other_rules() {
    let variants = &["", "--large 3 --keep 2/16", "--precision 64"];
    for (board, rules) in [
        ("3x3:x../.x./...", ("19/20", false)),
        ("2x4:.#../....", ("99/100", true)),
        ("3x3:.../.../xxx", ("1/1", true)),
    ] {
        check(board, "reach:32", rules, variants, 300);
    }
    check("2x3:.x./...", "score", ("1/1", true), variants, 300);
    for spawn4 in ["0/1", "1/1", "1/3"] {
        let board = "2x4:..x./..x.";
        Case { board, objective: "reach:32", spawn4, rules: USUAL, variants, most_states: 300 }
            .check_and(check_run);
    }
}

/// Stored best moves are best by the values, and the run has the same fingerprint.
#[test]
fn best_moves_are_those_of_the_values() {
    for (board, objective) in [
        ("3x3:x../.../..x", "reach:32"),
        ("2x4:.xx./....", "score"),
        ("3x3:.#./.../...", "reach:64"),
        ("2x3:x../...", "lose:16"),
    ] {
        let job = format!("--board {board} --objective {objective}");
        let values = Solved::new(&format!("{job} --keep all"));
        let game = Game::new(board, objective, "1/10");
        let solution = game.solve();
        let boards: Vec<String> = sample(solution.layers, 800).iter().map(|state| game.text(state)).collect();
        for options in ["--values best-move", "--values best-move --large 3"] {
            let moves = Solved::new(&format!("{job} {options}"));
            assert_eq!(moves.fingerprint(), values.fingerprint(), "{job} {options}");
            for (stored, valued) in query(&moves.run(), &boards).iter().zip(query(&values.run(), &boards)) {
                let is_best = valued["moves"].as_array().unwrap().iter();
                let mut best = is_best.filter(|way| way["best"] == true).map(|way| &way["move"]);
                let agrees = best.any(|best| *best == stored["best"]);
                assert!(agrees || stored["best"].is_null() && valued["best"].is_null(), "{job}: {stored}");
            }
            on_run(&moves.run(), "verify", &[]).exits(0);
            on_run(&moves.run(), "verify", &["--sample", "20"]).exits(0);
        }
    }
}

/// A rectangle between walls is the game of its size. Only the symmetries of the whole board may differ.
#[test]
fn walls_around_a_rectangle_change_no_value() {
    for (walled, plain, objective, has_same_symmetries) in [
        ("4x4:...#/...#/...#/####", "3x3", "reach:32", false),
        ("3x4:#..#/#..#/#..#", "3x2", "score", true),
        ("3x4:####/..../####", "1x4", "score", true),
        ("2x3:#../#..", "2x2", "score", false),
    ] {
        let game = Game::new(plain, objective, "1/10");
        let states = sample(game.enumerate(80), 2000);
        let runs =
            [walled, plain].map(|board| Solved::new(&format!("--board {board} --objective {objective}")));
        let in_walls: Vec<String> =
            states.iter().map(|state| between_walls(walled, &game.text(state))).collect();
        let alone: Vec<String> = states.iter().map(|state| game.text(state)).collect();
        for (ours, theirs) in query(&runs[0].run(), &in_walls).iter().zip(query(&runs[1].run(), &alone)) {
            assert_eq!(ours["value"], theirs["value"], "{ours}");
            assert_eq!(ours["best"].is_null(), theirs["best"].is_null(), "{ours}");
            let (ours, theirs) = (&ours["moves"].as_array().unwrap(), theirs["moves"].as_array().unwrap());
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_eq!([&ours["legal"], &ours["value"]], [&theirs["legal"], &theirs["value"]], "{ours}");
            }
        }
        assert_eq!(runs[0].summary["start"]["expected"], runs[1].summary["start"]["expected"], "{walled}");
        let counts = [0, 1].map(|run| layers(&runs[run].run()));
        assert_eq!(counts[0] == counts[1], has_same_symmetries, "{walled}");
    }
}

/// A board of the plain game in the playable cells of a board with walls.
fn between_walls(walled: &str, plain: &str) -> String {
    let mut tiles = plain.split([' ', '/']).filter(|word| !word.is_empty());
    let (_, picture) = walled.split_once(':').unwrap();
    let word = |symbol| match symbol {
        '.' => tiles.next().unwrap().to_owned(),
        other => other.to_string(),
    };
    picture.chars().map(word).collect::<Vec<_>>().join(" ")
}

/// The value of a move of a board.
fn value_of_move(solved: &Solved, board: &str, direction: &str) -> (f64, f64) {
    let answer = query(&solved.run(), &[board.to_owned()]).remove(0);
    let at = DIRECTIONS.iter().position(|name| *name == direction).unwrap();
    (number(&answer["moves"][at]["value"]), number(&answer["error_bound"]))
}

/// Values of the formation L3, which another program computed: each seed is the board after a move.
#[test]
fn published_values_of_l3() {
    for (tile, values) in [
        (8, [1.0, 1.0]),
        (16, [0.999_999_917_365_830_8, 0.999_951_573_560_736_2]),
        (32, [0.999_999_889_613_438_8, 0.999_951_304_026_864_5]),
    ] {
        let solved =
            Solved::new(&format!("--board 4x4:..../..../.xxx/.xxx --objective reach:{tile} --precision 64"));
        for ((board, direction), expected) in [
            ("0 2 0 0 / 0 0 0 0 / 2 x x x / 4 x x x", "left"),
            ("0 0 0 0 / 0 0 2 0 / 4 x x x / 2 x x x", "right"),
        ]
        .into_iter()
        .zip(values)
        {
            let (found, bound) = value_of_move(&solved, board, direction);
            close(found, expected, bound + 1e-15, &format!("L3 to {tile}, {board}"));
        }
    }
}

/// Values of the formation 44, which another program computed: the seed is a single 2, before the spawn of a second
/// tile.
#[test]
fn published_values_of_44() {
    let board = "4x4:..../..../xxxx/xxxx";
    for (tile, expected) in
        [(64, 0.992_517_834_036_123_4), (128, 0.794_168_886_585_764), (256, 0.124_852_514_447_298_1)]
    {
        let objective = format!("reach:{tile}");
        let solved = Solved::new(&format!("--board {board} --objective {objective} --precision 64"));
        let game = Game::new(board, &objective, "1/10");
        let seed = game.board("0 0 0 0 / 2 0 0 0 / x x x x / x x x x");
        let spawned = [1, 2].map(|exponent| game.spawns(&seed, exponent));
        let means = spawned.map(|boards| {
            let boards: Vec<String> = boards.iter().map(|board| game.text(board)).collect();
            let values = query(&solved.run(), &boards);
            values.iter().map(|answer| number(&answer["value"])).sum::<f64>() / boards.len() as f64
        });
        close(0.9 * means[0] + 0.1 * means[1], expected, 1e-12, &objective);
    }
}

#[test]
fn bad_pictures_are_refused() {
    for (board, words) in [
        ("2x2:x.", "2 rows"),
        ("2x2:x../..", "2 rows"),
        ("2x2:x2/..", "found '2'"),
        ("2x3:x../..#", "one kind"),
        ("2x2:xx/x.", "two playable cells"),
        ("2x2:", "2 rows"),
    ] {
        let place = Place::new();
        try_solve(&place.join("run"), &format!("--board {board}")).exits(2).says(&["--board", words]);
        assert!(files(place.path()).is_empty(), "{board}");
    }
    let place = Place::new();
    let large = "--board 4x4:..../..../..../...x --objective reach:32768";
    try_solve(&place.join("run"), large).exits(2).says(&["16384"]);
}

/// The option `--locked` and a picture in `--board` describe the same run.
#[test]
fn locked_is_a_part_of_the_board() {
    let place = Place::new();
    let run = place.join("run");
    let solved = solve(&run, "--board 2x3 --locked ..x/... --objective reach:16");
    let again = solve(&run, "--board 2x3:..x/... --objective reach:16");
    assert_eq!(solved["fingerprint"], again["fingerprint"]);
    let twice = "--board 2x3:..x/... --locked ..x/... --objective reach:16";
    try_solve(&run, twice).exits(2).says(&["--locked", "once"]);
    try_solve(&run, "--board 2x3 --locked ..x --objective reach:16").exits(2).says(&["--locked", "2 rows"]);
}

/// Images of a position, with the directions that the moves left, right, up and down become.
const IMAGES: [(&str, [&str; 4]); 4] = [
    ("2 0 4 / 0 2 64 / 8 32 128", ["left", "right", "up", "down"]),
    ("4 0 2 / 64 2 0 / 128 32 8", ["right", "left", "up", "down"]),
    ("8 0 2 / 32 2 0 / 128 64 4", ["up", "down", "right", "left"]),
    ("128 32 8 / 64 2 0 / 4 0 2", ["right", "left", "down", "up"]),
];

/// The largest tiles of a position of the real game are the locks, in any image. A server answers as the program does.
#[test]
fn positions_of_the_real_game_are_answered() {
    let board = "--board 3x3:.../..x/.xx --objective reach:32";
    for options in ["", "--values best-move"] {
        let solved = Solved::new(&format!("{board} {options}"));
        let server = Server::start(&solved.run(), &[]);
        let ask = |board: &str| answer_of_both(&solved.run(), &server, board);
        let formation = ask("2 0 4 / 0 2 x / 8 x x");
        for (image, directions) in IMAGES {
            let real = ask(image);
            assert_eq!([&real["value"], &real["canonical"]], [&formation["value"], &formation["canonical"]]);
            assert_eq!(text(&real["board"]), image);
            for (shown, of_run) in directions.into_iter().zip(formation["moves"].as_array().unwrap()) {
                let moves = real["moves"].as_array().unwrap();
                let found = moves.iter().find(|way| way["move"] == shown).unwrap();
                for field in ["legal", "value", "score", "best"] {
                    assert_eq!(found[field], of_run[field], "{field} of {shown} on {image}");
                }
                let after = found["afterstate"].as_str();
                assert!(
                    after.is_none_or(|after| ["32", "64", "128"].iter().all(|tile| after.contains(tile)))
                );
            }
            let page = on_run(&solved.run(), "query", &[image]).exits(0).stdout;
            assert!(page.contains("formation     2 0 "), "{page}");
        }
        for (outside, words) in [
            ("2 0 4 / 0 2 64 / 8 16 128", "found 16 as number 3"),
            ("2 0 4 / 0 2 64 / 8 64 128", "found 64 twice"),
            ("2 0 32 / 0 2 64 / 8 4 128", "found them elsewhere"),
        ] {
            on_run(&solved.run(), "query", &[outside]).exits(2).says(&[words]);
            exact2048(["query", "--server", &server.url, outside]).exits(2).says(&[words]);
        }
        server.stop();
    }
}

/// A server describes the stones, and takes boards with and without their symbols.
#[tokio::test]
async fn formations_are_served() {
    let solved = Solved::new("--board 2x3:..x/... --objective reach:16");
    let server = Server::start(&solved.run(), &[]);
    let mut client = query_calls::client(&server).await;
    let run = client.get_run(v1::GetRunRequest {}).await.unwrap().into_inner();
    assert_eq!(run.parameters.unwrap().picture, "..x/...");
    let answer = client.get_value(query_calls::text("2 4 x / 0 2 0")).await.unwrap().into_inner();
    let expected = query(&solved.run(), &["2 4 x / 0 2 0".to_owned()]).remove(0);
    assert_eq!((answer.value, answer.board.as_str()), (number(&expected["value"]), "2 4 x / 0 2 0"));
    let packed = client.get_value(query_calls::packed(answer.packed_board)).await.unwrap().into_inner();
    assert_eq!(packed.value, answer.value);
    for wrong in [query_calls::text("2 4 0 / 0 2 0"), query_calls::packed(1 << 8)] {
        assert_eq!(client.get_value(wrong).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let boards = query_calls::values_of(vec![answer.packed_board, 1 << 8]);
    let batch =
        client.batch_get_values(tokio_stream::once(boards)).await.unwrap().into_inner().message().await;
    let statuses = batch.unwrap().unwrap().statuses;
    assert_eq!(statuses, [v1::BoardStatus::Ok as i32, v1::BoardStatus::Invalid as i32]);
    server.stop();
}

/// A cluster job of a formation has the results of one process. Its name has no picture, because names are no paths.
#[test]
fn formations_are_solved_by_clusters() {
    let cluster = Cluster::new(2);
    for (board, named) in [("3x3:.../..x/.xx", "3x3-locked1a0"), ("2x4:.#../...#", "2x4-walls82")] {
        let options = format!("--board {board} --objective reach:32");
        let job = cluster.submit(&options);
        assert!(job.starts_with(named), "{job}");
        let done = cluster.wait(&job);
        assert_eq!((text(&done["state"]), text(&done["board"])), ("done", board));
        let alone = Solved::new(&options);
        assert_eq!(cluster.verified_fingerprint(&job), alone.fingerprint());
    }
}

/// No estimate of a formation exists, so a plan has the bound on its states.
#[test]
fn plans_have_bounds() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let options = ["--board", "3x3:.../..x/.xx", "--objective", "reach:32"];
    let bounds = exact2048([&["plan", "--json"], &options[..]].concat()).exits(0).json();
    let solved = [&["solve", "--json", "--run", run.to_str().unwrap()], &options[..]].concat();
    let states = exact2048(solved).exits(0).json()["states"].as_f64().unwrap();
    let at_most: f64 = text(&bounds["states_at_most"]).parse().unwrap();
    assert!((states..100.0 * states).contains(&at_most), "{states} states, at most {at_most}");
    let plan = exact2048([&["plan"], &options[..]].concat()).exits(0);
    assert!(plan.stdout.contains("at most"), "{plan:?}");
    exact2048([&["plan", "--disk", "1GB"], &options[..]].concat()).exits(2).says(&["--disk", "stones"]);
}

/// Games of all players follow the moves of the reference. The perfect player wins as often as the values say.
#[test]
fn games_are_played() {
    for board in ["3x3:.../..x/.xx", "2x4:.#../...#"] {
        let game = Game::new(board, "reach:32", "1/10");
        let solved = Solved::new(&format!("--board {board} --objective reach:32"));
        let place = Place::new();
        for player in ["random", "greedy", "corner", "expectimax:depth=1", "minimax:positions=20", "perfect"]
        {
            let file = place.join(&player.replace(':', "-"));
            let options = ["--player", player, "--games", "40", "--record", file.to_str().unwrap(), "--json"];
            on_run(&solved.run(), "play", &options).exits(0);
            for line in std::fs::read_to_string(&file).unwrap().lines() {
                check_game(&game, board, &serde_json::from_str(line).unwrap());
            }
        }
        let options = ["--player", "perfect", "--games", "4000", "--json"];
        let played = on_run(&solved.run(), "play", &options).exits(0).json();
        let expected = number(&solved.summary["start"]["expected"]);
        close(number(&played["won"]["share"]["share"]), expected, 0.04, board);
        let exact = on_run(&solved.run(), "evaluate", &["--player", "perfect", "--json"]).exits(0).json();
        close(number(&exact["exact"]["value"]), expected, 1e-6, board);
    }
}

/// Replays a recorded game by the rules of the reference.
fn check_game(game: &Game, board: &str, record: &serde_json::Value) {
    let tile = |of: &serde_json::Value| {
        (of[0].as_u64().unwrap() as usize, of[1].as_u64().unwrap().trailing_zeros() as u8)
    };
    let with = |board: &Board, (cell, exponent): (usize, u8)| -> Board {
        let spawned = game.spawns(board, exponent);
        spawned.into_iter().find(|after| after[cell] != board[cell]).unwrap()
    };
    let starts = record["start"].as_array().unwrap();
    let (_, picture) = board.split_once(':').unwrap();
    let cells: Vec<String> = picture.chars().filter(|symbol| *symbol != '/').map(String::from).collect();
    let empty = game.board(&cells.join(" "));
    let mut board = starts.iter().fold(empty, |board, start| with(&board, tile(start)));
    let spawns = record["spawns"].as_array().unwrap();
    for (letter, spawned) in text(&record["moves"]).chars().zip(spawns) {
        let direction = "LRUD".find(letter).unwrap();
        let (after, _) = game.slide(&board, direction).unwrap();
        board = if spawned.is_null() { after } else { with(&after, tile(spawned)) };
    }
    assert_eq!(game.text(&board), text(&record["last"]), "{record}");
}

/// Formulas bound the states of a formation, and `solve` prints the bound before it begins.
#[test]
fn formations_have_a_bound_on_their_states() {
    for board in ["2x3:..x/...", "3x3:.../..x/.xx", "2x4:.#../...#"] {
        let place = Place::new();
        let run = place.join("run");
        try_solve(&run, &format!("--board {board} --objective reach:32"))
            .exits(0)
            .says(&["at most", "states", "0.1 µs"]);
        let totals = &on_run(&run, "count", &["--json"]).exits(0).json()["totals"];
        let states: f64 = text(&totals["states"]).parse().unwrap();
        let bound: f64 = text(&totals["within_tile_bound"]["orbits"]).parse().unwrap();
        assert!(states <= bound && bound < 20.0 * states, "{board}: {states} of {bound}");
    }
}

/// A board must show exactly the stones of the formation.
#[test]
fn boards_with_other_stones_are_refused() {
    let solved = Solved::new("--board 2x3:..x/..x --objective reach:16");
    let ask = |board: &str| on_run(&solved.run(), "query", &[board]);
    ask("2 2 x / 0 0 x").exits(0);
    for board in ["2 2 0 / 0 0 x", "2 2 2 / 0 0 x", "2 x x / 2 0 x", "2 2 # / 0 0 #", "2 2 / 0 0"] {
        assert!(!ask(board).exits(2).stderr.contains("not reachable"), "{board}");
    }
}

/// The picture belongs to the game, so another picture is another game.
#[test]
fn a_run_belongs_to_its_picture() {
    let solved = Solved::new("--board 2x3:..x/... --objective reach:16");
    let info = on_run(&solved.run(), "info", &["--json"]).exits(0).json();
    assert_eq!(text(&info["params"]["board"]), "2x3:..x/...");
    for other in ["2x3", "2x3:..#/...", "2x3:x../..."] {
        let job = format!("--board {other} --objective reach:16");
        try_solve(&solved.run(), &job).exits(2).says(&["board", other, "2x3:..x/..."]);
    }
}

/// Servers answer positions of the real game as the program does, over gRPC and over HTTP. Of all runs, they find those
/// that fit, the best value first.
#[tokio::test]
async fn runs_of_a_server_are_compared() {
    let jobs = [
        ("row", "--board 3x3:.../.../xxx --objective reach:32"),
        ("rounded", "--board 3x3:.../..x/.xx --objective reach:32 --value-step 1/64"),
        ("moves", "--board 3x3:.../..x/.xx --objective reach:32 --values best-move"),
        ("corner", "--board 3x3:.../..x/.xx --objective reach:32"),
        ("lose", "--board 3x3:.../..x/.xx --objective lose:32"),
        ("small", "--board 2x2"),
    ];
    let solved = jobs.map(|(name, job)| (name, Solved::new(job)));
    let runs: Vec<String> =
        solved.iter().map(|(name, solved)| format!("{name}={}", solved.run().display())).collect();
    let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    runs.iter().for_each(|run| args.extend(["--run", run]));
    let server = Server::launch(&args, &[]);
    let url = server.page.clone().unwrap();
    let mut client = query_calls::client(&server).await;
    for (position, _) in IMAGES {
        let board = query_calls::text(position).board;
        let request = v1::CompareRunsRequest { board, with_values: false };
        let compared = client.compare_runs(request).await.unwrap().into_inner();
        let shown = get_json(&url, &format!("api/v1/compare?board={}", escape(position)));
        let names = |list: &serde_json::Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|of| text(&of["run"]).to_owned()).collect()
        };
        let [answered, refused] = [names(&shown["answers"]), names(&shown["refusals"])];
        assert_eq!(answered, compared.answers.iter().map(|of| of.run.clone()).collect::<Vec<_>>());
        assert_eq!(refused, compared.refusals.iter().map(|of| of.run.clone()).collect::<Vec<_>>());
        assert_eq!(refused, ["row", "small"]);
        let (same, other) = answered.split_at(3);
        assert_eq!([same[2].as_str(), other[0].as_str()], ["moves", "lose"], "{answered:?}");
        assert!(
            compared.answers[0].answer.as_ref().unwrap().value
                >= compared.answers[1].answer.as_ref().unwrap().value
        );
        for (of, there) in shown["answers"].as_array().unwrap().iter().zip(&compared.answers) {
            let run = &solved.iter().find(|(name, _)| *name == of["run"]).unwrap().1;
            let told = on_run(&run.run(), "query", &["--json", position]).exits(0).json();
            for field in ["board", "canonical", "layer", "value", "error_bound", "best", "moves"] {
                assert_eq!(of[field], told[field], "{field} of {}", there.run);
            }
            let there = there.answer.as_ref().unwrap();
            assert_eq!(
                [there.board.as_str(), &there.canonical],
                [text(&told["board"]), text(&told["canonical"])]
            );
            for (way, told) in there.moves.iter().zip(told["moves"].as_array().unwrap()) {
                assert_eq!(way.legal, told["legal"], "{told}");
                assert_eq!(way.best, told["best"], "{told}");
                assert_eq!(way.afterstate, told["afterstate"].as_str().unwrap_or_default(), "{told}");
                if !there.best_move_only && way.legal {
                    assert_eq!(way.value, number(&told["value"]), "{told}");
                }
            }
        }
        // New tiles appear in empty cells of the position.
        let asked = format!("api/v1/values?run=corner&spawns=true&board={}", escape(position));
        let valued = get_json(&url, &asked);
        for way in valued["moves"].as_array().unwrap().iter().filter(|way| way["legal"] == true) {
            let after: Vec<&str> =
                text(&way["afterstate"]).split([' ', '/']).filter(|word| !word.is_empty()).collect();
            let spawns = valued["spawns"][text(&way["move"])].as_array().unwrap();
            let empty = after.iter().filter(|word| **word == "0").count();
            assert_eq!(spawns.len(), 2 * empty, "{way}");
            assert!(
                spawns.iter().all(|spawn| after[spawn["cell"].as_u64().unwrap() as usize] == "0"),
                "{way}"
            );
            let mean: f64 =
                spawns.iter().map(|spawn| number(&spawn["chance"]) * number(&spawn["value"])).sum();
            close(mean, number(&way["value"]), 1e-6, &way.to_string());
        }
    }
    let nothing = client.compare_runs(v1::CompareRunsRequest::default()).await.unwrap_err();
    assert_eq!(nothing.code(), Code::InvalidArgument);
    server.stop();
}
