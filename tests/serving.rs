//! Answers of the query service: real servers, real connections.

use crate::common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::query_calls::{client, health, packed, run, serve, text, values_of};
use common::serving::Server;
use common::snapshots::assert_section;
use common::{Place, Solved, events, exact2048, exact2048_reading, files, layers, on_run, solve};
use exact2048_game::board::{Board, BoardSize};
use exact2048_game::symmetry::Symmetries;
use exact2048_net::status::field_of;
use exact2048_proto::v1::query_client::QueryClient;
use exact2048_proto::v1::{
    self, BatchGetValuesRequest, BoardStatus, GetRunRequest, GetValueRequest, ListLayersRequest, RunPhase,
};
use exact2048_storage::ShardReader;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::health_check_response::ServingStatus;

/// All 3x2 boards with tiles up to 16 and at least two tiles, reachable or not.
fn some_boards() -> Vec<u64> {
    let boards = (0..5u64.pow(6)).map(|code| {
        let mut rest = code;
        (0..6).fold(Board::default(), |board, cell| {
            let exponent = (rest % 5) as u8;
            rest /= 5;
            board.with(cell, exponent)
        })
    });
    boards.map(|board| board.0).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn images_of_a_board_have_one_value() {
    let server = serve(&[]);
    let mut client = client(&server).await;
    let size: BoardSize = "3x2".parse().unwrap();
    let symmetries = Symmetries::new(size);
    for board in ["2 0 / 0 2 / 0 0", "4 2 / 8 16 / 0 2", "32 8 / 2 4 / 0 0"] {
        let board = Board::parse(board, size).unwrap();
        let asked = client.get_value(packed(board.0)).await.unwrap().into_inner();
        assert_eq!(Board(asked.packed_canonical), symmetries.canonical(board));
        assert_eq!(asked.moves.len(), 4);
        assert_eq!(asked.layer, board.tile_sum(size));
        let best = asked.moves.iter().filter(|m| m.legal).map(|m| m.value).fold(f64::MIN, f64::max);
        assert!((best - asked.value).abs() <= 2.0 * asked.error_bound, "{asked:?}");
        let mut move_values: Vec<u64> = asked.moves.iter().map(|m| m.value.to_bits()).collect();
        move_values.sort_unstable();
        for image in symmetries.images(board) {
            let answer = client.get_value(text(&image.to_text(size))).await.unwrap().into_inner();
            assert_eq!(answer.value.to_bits(), asked.value.to_bits());
            assert_eq!(answer.canonical, asked.canonical);
            assert_eq!(answer.packed_board, image.0);
            let mut of_image: Vec<u64> = answer.moves.iter().map(|m| m.value.to_bits()).collect();
            of_image.sort_unstable();
            assert_eq!(of_image, move_values);
        }
    }
    server.stop();
}

#[test]
fn query_prints_the_same_for_a_run_and_its_server() {
    let solved = run();
    let server = serve(&[]);
    let run = solved.run();
    let url = server.url.clone();
    let sources = [["--run", run.to_str().unwrap()], ["--server", &url]];
    let ask = |source: &[&str; 2], options: &[&str]| exact2048([&["query"], &source[..], options].concat());
    for board in [
        "2 0 / 0 2 / 0 0",
        "2,.,/4 2/ 8 .",
        "2 4 / 8 16 / 32 64",
        "64 64 / 64 64 / 64 64",
        "2 2",
        "3 3 / 0 0 / 0 0",
        "2 0 / 0 0 / 0 0",
    ] {
        for options in [&[board] as &[&str], &["--json", board]] {
            let [here, there] = [ask(&sources[0], options), ask(&sources[1], options)];
            assert_eq!(here.code, there.code, "{board}: {here:?} {there:?}");
            assert_eq!((here.stdout, here.stderr), (there.stdout, there.stderr), "{board}");
        }
    }
    assert_eq!(ask(&sources[1], &["64 64 / 64 64 / 64 64"]).code, Some(3));
    assert_eq!(ask(&sources[1], &["2 2"]).code, Some(2));
    let boards = "2 0 / 0 2 / 0 0\n\n2 2\n64 64 / 64 64 / 64 64\n4 2 / 8 16 / 0 2\n";
    for json in [&["-"] as &[&str], &["--json", "-"]] {
        let ask = |source: &[&str; 2]| {
            exact2048_reading([&["query"], &source[..], json].concat(), boards.to_owned())
        };
        let [here, there] = [ask(&sources[0]), ask(&sources[1])];
        assert_eq!((here.code, &here.stdout, &here.stderr), (there.code, &there.stdout, &there.stderr));
        assert_eq!(here.code, Some(2));
    }
    server.stop();
    let gone = ask(&sources[1], &["2 0 / 0 2 / 0 0"]).exits(1);
    gone.says(&[&url]).prints("no query server");
}

/// A server answers with error bounds of moves and with worst spawns, as a run does.
#[test]
fn other_rules_are_served() {
    for job in [
        "--board 3x2 --spawner worst",
        "--board 3x2 --objective lose:32",
        "--board 3x2 --objective reach:32 --discount 0.95 --precision 64",
    ] {
        let solved = Solved::new(job);
        let server = Server::start(&solved.run(), &[]);
        for board in ["2 0 / 0 2 / 0 0", "2 4 / 8 0 / 0 4", "2 4 / 8 2 / 4 16"] {
            for options in [&[board] as &[&str], &["--json", board]] {
                let run = solved.run();
                let here = exact2048([&["query", "--run", run.to_str().unwrap()], options].concat());
                let there = exact2048([&["query", "--server", &server.url], options].concat());
                assert_eq!((here.code, &here.stdout), (Some(0), &there.stdout), "{job}: {here:?} {there:?}");
            }
        }
        server.stop();
    }
}

#[test]
fn wrong_usage_of_clients() {
    let run = run().run();
    let run = run.to_str().unwrap();
    for filter in ["a=b=c", "warning", "info,verbose"] {
        exact2048(["serve", "--run", run, "--log", filter]).exits(2).says(&[filter, "warn, info"]);
    }
    exact2048(["serve", "--run", "/no/such/run"]).exits(1).says(&["/no/such/run"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn batches_are_answered_in_order() {
    let server = serve(&[]);
    let mut client = client(&server).await;
    // Asks for no board, then for all reachable and unreachable boards, in another order than by layers.
    let mut boards = some_boards();
    boards.sort_unstable_by_key(|board| board.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    boards.insert(0, u64::MAX);
    let messages: Vec<_> = boards.chunks(777).map(|boards| values_of(boards.to_vec())).collect();
    let empty = BatchGetValuesRequest::default();
    let messages = [&[empty], &messages[..]].concat();
    let lengths: Vec<usize> = messages.iter().map(|message| message.boards.len()).collect();
    let answers = client.batch_get_values(tokio_stream::iter(messages)).await.unwrap();
    let mut answers = answers.into_inner();
    let (mut values, mut statuses) = (Vec::new(), Vec::new());
    for length in lengths {
        let answer = answers.message().await.unwrap().unwrap();
        assert_eq!((answer.values.len(), answer.statuses.len()), (length, length));
        values.extend(answer.values);
        statuses.extend(answer.statuses);
    }
    assert!(answers.message().await.unwrap().is_none());
    assert_eq!(statuses[0], i32::from(BoardStatus::Invalid));
    let ok = statuses.iter().filter(|&&status| status == i32::from(BoardStatus::Ok)).count();
    assert!(ok > 1000 && ok < boards.len(), "{ok} of {}", boards.len());
    // Single queries in reverse order give the same answers.
    for i in (1..boards.len()).rev().step_by(37) {
        match client.get_value(packed(boards[i])).await {
            Ok(answer) => {
                assert_eq!(statuses[i], i32::from(BoardStatus::Ok));
                assert_eq!(answer.into_inner().value.to_bits(), values[i].to_bits());
            }
            Err(status) => {
                assert_eq!(status.code(), Code::NotFound);
                assert_eq!((statuses[i], values[i]), (i32::from(BoardStatus::Unreachable), 0.0));
            }
        }
    }
    server.stop();
}

/// A value that a small cache evicted has the same bits after it is read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn values_do_not_depend_on_the_cache() {
    let boards = some_boards();
    let mut all = Vec::new();
    for options in [&["--memory", "256MiB"], &["--memory", "4KiB"], &["--memory", "0B"]] {
        let server = serve(options);
        let mut client = client(&server).await;
        let messages = [values_of(boards.clone()), values_of(boards.clone())];
        let mut answers = client.batch_get_values(tokio_stream::iter(messages)).await.unwrap().into_inner();
        let mut next = async || {
            let answer = answers.message().await.unwrap().unwrap();
            assert!(answer.cost.is_some());
            v1::BatchGetValuesResponse { cost: None, ..answer }
        };
        let first = next().await;
        assert_eq!(next().await, first);
        all.push(first);
        server.stop();
    }
    assert!(all.iter().all(|answer| *answer == all[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wrong_requests_name_the_field() {
    let server = serve(&[]);
    let mut client = client(&server).await;
    let refused =
        async |client: &mut QueryClient<Channel>, request| client.get_value(request).await.unwrap_err();
    for (request, field) in [
        (GetValueRequest::default(), "board"),
        (GetValueRequest { board: Some(v1::Board::default()), with_values: false }, "board"),
        (text(""), "board.text"),
        (text("2 2"), "board.text"),
        (text("3 0 / 0 2 / 0 0"), "board.text"),
        (text(&"2 ".repeat(100_000)), "board.text"),
        (packed(1 << 24), "board.packed"),
    ] {
        let status = refused(&mut client, request).await;
        assert_eq!((status.code(), field_of(&status).as_deref()), (Code::InvalidArgument, Some(field)));
    }
    for board in ["0 0 / 0 0 / 0 0", "2 0 / 0 0 / 0 0", "64 64 / 64 64 / 64 64", "32768 32768 / 0 0 / 0 0"] {
        let status = refused(&mut client, text(board)).await;
        assert_eq!(status.code(), Code::NotFound);
        assert!(status.message().contains(board));
    }
    let status = client.list_layers(ListLayersRequest { first: 9, last: 8 }).await.unwrap_err();
    assert_eq!((status.code(), field_of(&status).as_deref()), (Code::InvalidArgument, Some("first")));

    let of_batch = async |client: &mut QueryClient<Channel>, boards: usize| {
        let message = values_of(vec![0; boards]);
        let mut answers = client.batch_get_values(tokio_stream::iter([message])).await?.into_inner();
        answers.message().await
    };
    let most = client.get_run(GetRunRequest {}).await.unwrap().into_inner().max_batch_boards as usize;
    assert_eq!(of_batch(&mut client, most).await.unwrap().unwrap().values.len(), most);
    let status: Status = of_batch(&mut client, most + 1).await.unwrap_err();
    assert_eq!((status.code(), field_of(&status).as_deref()), (Code::InvalidArgument, Some("boards")));
    // A message above the size limit is refused before it is read.
    let status = of_batch(&mut client, 600_000).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    assert!(of_batch(&mut client, 1).await.is_ok());
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_facts_of_a_run() {
    let server = serve(&[]);
    let mut client = client(&server).await;
    let found = client.get_run(GetRunRequest {}).await.unwrap().into_inner();
    let summary = &run().summary;
    assert_eq!(found.phase(), RunPhase::Solved);
    assert_eq!(found.fingerprint, run().fingerprint());
    assert_eq!(summary["states"].as_u64(), Some(found.states));
    assert_eq!(summary["afterstates"].as_u64(), Some(found.afterstates));
    let start = found.start.unwrap();
    assert_eq!(summary["start"]["expected"].as_f64(), Some(start.expected));
    assert_eq!(start.by_layer.iter().map(|of| of.layer).collect::<Vec<_>>(), [4, 6, 8]);
    let parameters = found.parameters.unwrap();
    assert_eq!((parameters.rows, parameters.columns, parameters.objective.as_str()), (3, 2, "score"));
    assert_eq!((parameters.spawn4_numerator, parameters.spawn4_denominator), (1, 10));
    assert_eq!((parameters.precision_bits, parameters.until_layer), (32, None));

    let expected = layers(&run().run());
    let mut list = async |first, last| {
        let mut answers = client.list_layers(ListLayersRequest { first, last }).await.unwrap().into_inner();
        let mut found = Vec::new();
        while let Some(of) = answers.message().await.unwrap() {
            found.push((u64::from(of.layer), of.states, of.afterstates));
        }
        found
    };
    assert_eq!(list(0, 0).await, expected);
    let some: Vec<_> = expected.iter().copied().filter(|of| (10..=20).contains(&of.0)).collect();
    assert_eq!(list(10, 20).await, some);
    server.stop();
}

/// A call uses the run that its metadata name, or else the first run.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn requests_name_one_of_several_runs() {
    let place = Place::new();
    solve(&place.join("small"), "--board 2x2");
    let [small, wide] = [place.join("small"), run().run()].map(|path| path.to_str().unwrap().to_owned());
    let named = format!("wide={wide}");
    let server = Server::launch(&["serve", "--run", &small, "--run", &named, "--listen", "127.0.0.1:0"], &[]);
    let mut client = client(&server).await;
    fn to<T>(run: &'static str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("exact2048-run", run.parse().unwrap());
        request
    }
    for (run, board, expected) in [
        ("small", "2 0 / 0 2", layers(Path::new(&small))),
        ("wide", "2 0 / 0 2 / 0 0", layers(Path::new(&wide))),
    ] {
        let found = client.get_run(to(run, GetRunRequest {})).await.unwrap().into_inner();
        assert_eq!(u64::from(found.layers), expected.len() as u64);
        let answer = client.get_value(to(run, text(board))).await.unwrap().into_inner();
        let boards = tokio_stream::iter([values_of(vec![answer.packed_board])]);
        let mut batch = client.batch_get_values(to(run, boards)).await.unwrap().into_inner();
        assert_eq!(batch.message().await.unwrap().unwrap().values, [answer.value]);
        let list = client.list_layers(to(run, ListLayersRequest { first: 0, last: 0 })).await.unwrap();
        let first = list.into_inner().message().await.unwrap().unwrap();
        assert_eq!((u64::from(first.layer), first.states, first.afterstates), expected[0]);
    }
    // A client without a name gets the first run.
    client.get_value(text("2 0 / 0 2")).await.unwrap();
    assert_eq!(client.get_value(text("2 0 / 0 2 / 0 0")).await.unwrap_err().code(), Code::InvalidArgument);
    let unknown = client.get_value(to("none", text("2 0 / 0 2"))).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert!(unknown.message().contains("small, wide"), "{unknown:?}");
    server.stop();
}

/// A server may start before its run is solved. Until then it answers with an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unsolved_run_is_an_error_and_read_again() {
    let place = Place::new();
    let path = place.join("run");
    solve(&path, "--board 2x2");
    let last = files(&path.join("journal")).pop().unwrap();
    let aside = place.join("aside.json");
    std::fs::rename(&last, &aside).unwrap();
    let server = Server::start(&path, &[]);
    let mut client = client(&server).await;
    let status = client.get_value(text("2 0 / 0 2")).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_section("query of an unsolved run", status.message());
    let nothing = tokio_stream::iter(Vec::<BatchGetValuesRequest>::new());
    assert_eq!(client.batch_get_values(nothing).await.unwrap_err().code(), Code::FailedPrecondition);
    let found = client.get_run(GetRunRequest {}).await.unwrap().into_inner();
    assert_eq!((found.phase(), found.not_solved.as_str()), (RunPhase::Unfinished, status.message()));
    assert!(found.start.is_none() && found.fingerprint.is_empty());
    assert_eq!(health(&server, "exact2048.v1.Query").await, ServingStatus::NotServing);
    assert_eq!(health(&server, "").await, ServingStatus::Serving);
    let board = "2 0 / 0 2";
    let here = on_run(&path, "query", &[board]).exits(1);
    let there = exact2048(["query", "--server", &server.url, board]).exits(1);
    // Only the error of a direct query has the command that solves the run. A client may lack access to the run.
    assert!(here.stderr.starts_with(there.stderr.trim_end()), "{here:?} {there:?}");
    assert!(here.stderr.contains("solve") && here.stderr.len() > there.stderr.len(), "{here:?} {there:?}");

    std::fs::rename(&aside, &last).unwrap();
    let begun = Instant::now();
    while client.get_value(text(board)).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.stop().says(&[events::RUN_READABLE]);

    solve(&place.join("enumerated"), "--board 2x2 --until-layer 20");
    let server = Server::start(&place.join("enumerated"), &[]);
    let found = self::client(&server).await.get_run(GetRunRequest {}).await.unwrap().into_inner();
    assert_eq!(found.phase(), RunPhase::Enumerated);
    server.stop();
}

/// Copies a run.
fn copy_of(run: &Path, to: &Path) {
    for folder in ["", "journal", "shards"] {
        std::fs::create_dir_all(to.join(folder)).unwrap();
        for file in files(&run.join(folder)).into_iter().filter(|path| path.is_file()) {
            std::fs::copy(&file, to.join(folder).join(file.file_name().unwrap())).unwrap();
        }
    }
}

/// Answers of a server for some boards: the bits of values, or the codes of errors.
async fn values_or_codes(client: &mut QueryClient<Channel>, boards: &[u64]) -> Vec<Result<u64, Code>> {
    let mut told = Vec::new();
    for &board in boards {
        let answer = client.get_value(packed(board)).await;
        if let Err(status) = &answer
            && status.code() == Code::DataLoss
        {
            // The message names the shard, but not its location.
            assert!(status.message().contains(".shard "), "{status:?}");
            assert!(!status.message().contains('/'), "{status:?}");
        }
        told.push(answer.map(|answer| answer.into_inner().value.to_bits()).map_err(|status| status.code()));
    }
    told
}

/// Waits until a condition is true. A failure prints the log of the server.
async fn until(server: &Server, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A server answers DATA_LOSS for states in a damaged, truncated or removed shard, and answers all other states with their
/// value. After `solve` has repaired the run, the server answers every state without a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_mended_run_is_served_again() {
    let boards: Vec<u64> = some_boards().into_iter().step_by(41).collect();
    let sound = serve(&[]);
    let expected = values_or_codes(&mut client(&sound).await, &boards).await;
    assert!(expected.iter().all(|told| !matches!(told, Err(code) if *code != Code::NotFound)));
    sound.stop();
    let flip = |shard: &Path| {
        let mut bytes = std::fs::read(shard).unwrap();
        for frame in ShardReader::open_any(shard).unwrap().frames().iter().step_by(2) {
            bytes[frame.file_offset as usize + 30] ^= 0x5a;
        }
        std::fs::write(shard, bytes).unwrap();
    };
    let remove = |shard: &Path| std::fs::remove_file(shard).unwrap();
    // The boards are in the lower half of the layers. These layers are at the start of the file.
    let cut = |shard: &Path| {
        let file = std::fs::File::options().write(true).open(shard).unwrap();
        file.set_len(file.metadata().unwrap().len() / 16).unwrap();
    };
    // A solve commits other shards. A restore of files from a copy changes nothing else.
    let solve_again = |run: &Path| drop(solve(run, "--board 3x2"));
    let restore = |path: &Path| {
        for shard in common::shards(&run().run()) {
            let name = path.join("shards").join(shard.file_name().unwrap());
            let copy = name.with_extension("restored");
            std::fs::copy(shard, &copy).unwrap();
            std::fs::rename(copy, name).unwrap();
        }
    };
    type Harm<'a> = (&'a str, &'a dyn Fn(&Path), &'a dyn Fn(&Path));
    let harms: [Harm<'_>; 4] = [
        ("flip", &flip, &solve_again),
        ("remove", &remove, &solve_again),
        ("cut", &cut, &solve_again),
        ("flip", &flip, &restore),
    ];
    for (harm, do_harm, mend) in harms {
        let place = Place::new();
        let path = place.join("run");
        copy_of(&run().run(), &path);
        let mut shards = common::shards(&path);
        shards.retain(|shard| shard.file_name().unwrap().to_str().unwrap().starts_with("values"));
        let start = || Server::start(&path, &["--metrics-listen", "127.0.0.1:0", "--memory", "0B"]);
        let harm_all = || shards.iter().for_each(|shard| do_harm(shard));
        let mut server = if harm == "remove" {
            // A server continues to read its open files, so this server starts after the removal.
            harm_all();
            start()
        } else {
            let server = start();
            harm_all();
            server
        };
        let mut client = client(&server).await;
        let answers = values_or_codes(&mut client, &boards).await;
        let is_lost = |answer: &Result<u64, Code>| *answer == Err(Code::DataLoss);
        assert!(answers.iter().any(is_lost), "{harm}");
        for (answer, expected) in answers.iter().zip(&expected).filter(|(answer, _)| !is_lost(answer)) {
            assert_eq!(answer, expected, "{harm}");
        }
        assert!(server.runs());
        until(&server, async || health(&server, "exact2048.v1.Query").await == ServingStatus::NotServing)
            .await;
        assert_eq!(health(&server, "").await, ServingStatus::Serving);
        assert!(server.scrape().contains("exact2048_run_readable 0"));

        mend(&path);
        until(&server, async || health(&server, "exact2048.v1.Query").await == ServingStatus::Serving).await;
        assert_eq!(values_or_codes(&mut client, &boards).await, expected, "{harm}");
        assert!(server.scrape().contains("exact2048_run_readable 1"));
        let lost = if harm == "remove" { events::STARTS_UNREADABLE } else { events::RUN_UNREADABLE };
        server.stop().says(&[lost, events::RUN_READABLE]);
    }
}

/// Batches answer with the same moves as single calls, without texts.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn batches_can_tell_of_moves() {
    let server = serve(&[]);
    let mut client = client(&server).await;
    let mut boards: Vec<u64> = some_boards().into_iter().step_by(17).collect();
    boards.insert(0, u64::MAX);
    let request = BatchGetValuesRequest { boards: boards.clone(), with_moves: true, with_values: false };
    let answers = client.batch_get_values(tokio_stream::iter([request])).await.unwrap();
    let batch = answers.into_inner().message().await.unwrap().unwrap();
    assert_eq!((batch.answers.len(), batch.statuses.len(), batch.values.len()), {
        let all = boards.len();
        (all, all, all)
    });
    let mut ties = 0;
    for (i, &board) in boards.iter().enumerate() {
        match client.get_value(packed(board)).await {
            Ok(alone) => {
                let mut alone = alone.into_inner();
                let best: Vec<_> = alone.moves.iter().filter(|m| m.best).collect();
                assert_eq!(best.first().map_or(0, |m| m.direction), alone.best);
                assert!(best.iter().all(|m| m.value.to_bits() == best[0].value.to_bits()));
                ties += usize::from(best.len() > 1);
                // If the game is over, the value is exactly 0.
                assert!(!best.is_empty() || (alone.value, alone.error_bound) == (0.0, 0.0));
                assert_eq!(batch.values[i].to_bits(), alone.value.to_bits());
                assert!(alone.cost.take().is_some() && batch.cost.is_some());
                (alone.board, alone.canonical) = (String::new(), String::new());
                alone.moves.iter_mut().for_each(|m| m.afterstate = String::new());
                assert_eq!((batch.statuses[i], &batch.answers[i]), (i32::from(BoardStatus::Ok), &alone));
            }
            Err(status) => {
                let told = if i == 0 { BoardStatus::Invalid } else { BoardStatus::Unreachable };
                let code = if i == 0 { Code::InvalidArgument } else { Code::NotFound };
                assert_eq!((status.code(), batch.statuses[i]), (code, told.into()));
                assert_eq!(batch.answers[i], v1::GetValueResponse::default());
            }
        }
    }
    assert!(ties > 10, "{ties} ties");
    let most = client.get_run(GetRunRequest {}).await.unwrap().into_inner().max_batch_boards_with_moves;
    for (count, code) in [(most, None), (most + 1, Some(Code::InvalidArgument))] {
        let request = BatchGetValuesRequest {
            boards: vec![0x11; count as usize],
            with_moves: true,
            with_values: false,
        };
        let answers = client.batch_get_values(tokio_stream::iter([request])).await.unwrap();
        assert_eq!(answers.into_inner().message().await.err().map(|status| status.code()), code);
    }
    server.stop();
}

/// The client sends many lines in few messages. A line that arrives alone is answered at once.
#[test]
fn lines_are_asked_together() {
    let server = serve(&["--metrics-listen", "127.0.0.1:0"]);
    let size: BoardSize = "3x2".parse().unwrap();
    let boards = some_boards().into_iter().step_by(13).map(|board| Board(board).to_text(size));
    let all = boards.collect::<Vec<_>>().join("\n");
    let run = run().run();
    let answers = exact2048_reading(["query", "--run", run.to_str().unwrap(), "--json", "-"], all);
    let answers = answers.json_lines().into_iter().filter(|answer| answer["value"].is_number());
    let lines: Vec<String> = answers.map(|answer| common::text(&answer["board"]).to_owned()).collect();
    let many = lines.join("\n") + "\n";
    let count = lines.len();
    assert!(count > 500);
    let here = exact2048_reading(["query", "--run", run.to_str().unwrap(), "--json", "-"], many.clone());
    let there = exact2048_reading(["query", "--server", &server.url, "--json", "-"], many);
    assert!(here.stdout == there.stdout && here.stderr == there.stderr);
    assert_eq!((here.code, there.code), (Some(0), Some(0)));
    assert_eq!(here.json_lines().len(), count);
    let metrics = server.scrape();
    let asked = |method: &str| -> usize {
        let name = format!("exact2048_requests_total{{method=\"exact2048.v1.Query/{method}\",code=\"Ok\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |number| number.parse().unwrap())
    };
    // A line that arrives alone is a separate request.
    let messages = asked("GetValue") + asked("BatchGetValues");
    assert!((1..=count / 4).contains(&messages) && asked("BatchGetValues") > 0, "{metrics}");

    for source in [["--run", run.to_str().unwrap()], ["--server", &server.url]] {
        let mut query = common::command([&["query"], &source[..], &["--json", "-"]].concat());
        let mut query = query.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, stdout) = (query.stdin.take().unwrap(), query.stdout.take().unwrap());
        let mut answers = BufReader::new(stdout).lines();
        for line in &lines[..3] {
            writeln!(stdin, "{line}").unwrap();
            let answer: serde_json::Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
            assert_eq!(common::text(&answer["board"]), line);
        }
        drop(stdin);
        assert!(query.wait().unwrap().success());
    }
    server.stop();
}

/// The reader of the log may end, like `head`. The server continues until it is stopped.
#[test]
fn a_log_without_a_reader_ends_nothing() {
    let solved = Solved::new("--board 2x2");
    let leaves = ["bash", "-c", "exec \"$@\" 2> >(head -c 1 > /dev/null)", "bash"];
    let run = solved.run();
    let server =
        Server::launch_within(&leaves, &["serve", "--run", run.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    server.stop();
}
