//! The API of the explorer: real servers, real connections, and the same answers as from other commands.

use crate::common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use common::certificates::{Ca, token_file};
use common::http::{HttpReply, escape, get, get_json, get_with, request};
use common::query_calls::{run, serve};
use common::serving::Server;
use common::{Place, Solved, close, exact2048, has_openssl, number, on_run, query, solve, text, whole};
use exact2048_game::board::{Board, BoardSize};
use exact2048_game::symmetry::Symmetries;
use serde_json::Value;

const HTTP: [&str; 2] = ["--http", "127.0.0.1:0"];

/// A server of the 3x2 run that all tests read, and the URL of its explorer.
fn explorer(options: &[&str]) -> (Server, String) {
    let server = serve(&[&HTTP, options].concat());
    let url = server.page.clone().unwrap();
    (server, url)
}

/// The API answers like `query --json`, with some additional fields.
#[test]
fn values_are_those_of_query() {
    let (server, url) = explorer(&[]);
    let boards =
        ["2 0 / 0 2 / 0 0", "4 2 / 8 16 / 0 2", "32 8 / 2 4 / 0 0", "2 4 / 4 2 / 2 4", "64 32 / 8 16 / 4 2"];
    let expected = query(&run().run(), &boards.map(str::to_owned));
    for (board, expected) in boards.iter().zip(expected) {
        let mut told = get_json(&url, &format!("api/v1/values?spawns=true&board={}", escape(board)));
        let cost = told.as_object_mut().unwrap().remove("cost").unwrap();
        assert!((0.0..10.0).contains(&number(&cost["seconds"])), "{cost}");
        let spawns = told.as_object_mut().unwrap().remove("spawns").unwrap();
        assert_eq!(told, expected, "{board}");
        for made in told["moves"].as_array().unwrap().iter().filter(|made| made["legal"] == true) {
            let spawns = spawns[text(&made["move"])].as_array().unwrap();
            let mean: f64 = spawns.iter().map(|s| number(&s["chance"]) * number(&s["value"])).sum();
            let bound = 2.0 * number(&told["error_bound"]) + 1e-9;
            close(mean + number(&made["score"]), number(&made["value"]), bound, board);
        }
    }
    let (run, board) = (run().run(), "64 64 / 64 64 / 64 64");
    let refused = get(&url, &format!("api/v1/values?board={}", escape(board)));
    let told = exact2048(["query", "--run", run.to_str().unwrap(), board]).exits(3);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (404, &Value::from("NOT_FOUND")));
    told.says(&[text(&refused.json()["error"]["message"])]);
    server.stop();
}

/// A disk limit removed the reachability of most layers. Positions of these layers come from random games.
#[test]
fn positions_of_limited_runs_are_reachable() {
    let (limited, whole_run) =
        (Solved::new("--board 4x2 --keep 16 --disk 1.9MB"), Solved::new("--board 4x2 --keep all"));
    let info = on_run(&limited.run(), "info", &["--json"]).exits(0).json();
    let ranges = info["passes"][0]["removed"].as_array().unwrap();
    let is_removed =
        |layer: u64| ranges.iter().any(|range| (whole(&range[0])..=whole(&range[1])).contains(&layer));
    let server = Server::start(&limited.run(), &HTTP);
    let url = server.page.clone().unwrap();
    let told = get_json(&url, "api/v1/positions?kind=any&sample=160&limit=40");
    let layers: Vec<u64> = told["layers"].as_array().unwrap().iter().map(whole).collect();
    assert!(layers.iter().filter(|&&layer| is_removed(layer)).count() > 2, "{layers:?}, removed {ranges:?}");
    let boards =
        told["positions"].as_array().unwrap().iter().map(|position| text(&position["board"]).to_owned());
    let boards: Vec<String> = boards.collect();
    assert!(boards.len() > 10, "{told}");
    // The whole run refuses boards that no game reaches.
    query(&whole_run.run(), &boards);
    // Values are shown for layers whose values are stored.
    let layers = get_json(&url, "api/v1/layers");
    let stored: Vec<&Value> =
        layers["layers"].as_array().unwrap().iter().filter(|of| of["stores_values"] == true).collect();
    assert!(stored.len() > 2);
    let layer = whole(&stored[stored.len() / 2]["layer"]);
    assert!(number(&get_json(&url, &format!("api/v1/layer?layer={layer}"))["mean"]) > 0.0);
    server.stop();
}

/// Texts of the explorer about the values of a run.
fn words(run: &Value) -> [&str; 3] {
    ["goal", "unit", "value_name"].map(|field| text(&run[field]))
}

#[test]
fn runs_and_layers_are_listed() {
    let (server, url) = explorer(&[]);
    let told = &get_json(&url, "api/v1/runs")["runs"][0];
    let info = on_run(&run().run(), "info", &["--json"]).exits(0).json();
    assert_eq!((&told["name"], &told["rows"], &told["columns"]), (&"run".into(), &3.into(), &2.into()));
    assert_eq!(told["fingerprint"], info["fingerprint"]);
    assert_eq!((&told["phase"], &told["not_solved"]), (&"solved".into(), &Value::Null));
    assert_eq!(words(told), ["score", "points", "Remaining score"]);
    assert_eq!(whole(&told["states"]), 21_752);
    close(number(&told["start"]["expected"]), 480.26, 0.01, "start");
    let layers = get_json(&url, "api/v1/layers");
    let layers: Vec<_> = layers["layers"].as_array().unwrap().iter().collect();
    let expected = common::layers(&run().run());
    let told = layers.iter().map(|of| (whole(&of["layer"]), whole(&of["states"]), whole(&of["afterstates"])));
    assert_eq!(told.collect::<Vec<_>>(), expected);
    server.stop();
}

/// With every step size, search finds each state of a layer once. It also finds every match of a pattern.
#[test]
fn search_finds_every_state_of_a_layer_once() {
    let (server, url) = explorer(&[]);
    let size: BoardSize = "3x2".parse().unwrap();
    let symmetries = Symmetries::new(size);
    let search = |pattern: &str, limit: usize| {
        let (mut found, mut from) = (Vec::new(), String::new());
        loop {
            let pattern = escape(pattern);
            let answer =
                get_json(&url, &format!("api/v1/search?layer=60&limit={limit}&pattern={pattern}{from}"));
            let states = answer["states"].as_array().unwrap();
            assert!(states.len() <= limit);
            found.extend(states.iter().map(|of| (text(&of["board"]).to_owned(), number(&of["value"]))));
            match &answer["next"] {
                Value::Null => return found,
                next => from = format!("&from={}", text(next)),
            }
        }
    };
    let all = search("* * / * * / * *", 1000);
    let states = common::layers(&run().run()).into_iter().find(|of| of.0 == 60).unwrap().1;
    let canonical = |text: &str| symmetries.canonical(Board::parse(text, size).unwrap());
    let distinct: BTreeSet<u64> = all.iter().map(|(board, _)| canonical(board).0).collect();
    assert_eq!((all.len() as u64, distinct.len() as u64), (states, states));
    assert_eq!(search("* * / * * / * *", 7), all);
    let boards: Vec<String> = all.iter().map(|(board, _)| board.clone()).collect();
    for ((board, value), expected) in all.iter().zip(query(&run().run(), &boards)) {
        assert_eq!(*value, number(&expected["value"]), "{board}");
    }
    let in_corner = search("32 * / * * / * *", 1000);
    assert!(in_corner.iter().all(|(board, _)| board.starts_with("32 ")));
    let has_corner = |board: &&String| {
        symmetries.images(Board::parse(board, size).unwrap()).any(|image| image.get(0) == 5)
    };
    assert_eq!(in_corner.len(), boards.iter().filter(has_corner).count());
    assert!(!in_corner.is_empty() && in_corner.len() < all.len());
    server.stop();
}

#[test]
fn layers_are_sampled_and_positions_sorted() {
    let (server, url) = explorer(&[]);
    let all = get_json(&url, "api/v1/layer?layer=60&sample=10000");
    assert_eq!(all["sampled"], all["states"]);
    let [least, mean, most] = ["least", "mean", "most"].map(|name| number(&all[name]));
    assert!(least < mean && mean < most, "{all}");
    let some = get_json(&url, "api/v1/layer?layer=60&sample=20");
    assert_eq!(whole(&some["sampled"]), 20);
    assert!(number(&some["least"]) >= least && number(&some["most"]) <= most);
    assert_eq!(get_json(&url, "api/v1/layer?layer=60&sample=20"), some, "the seed draws");
    assert_ne!(get_json(&url, "api/v1/layer?layer=60&sample=20&seed=2"), some);

    for (kind, by, falls) in [("gap", "gap", true), ("close", "gap", false), ("only", "share", true)] {
        let told = get_json(&url, &format!("api/v1/positions?kind={kind}&limit=10"));
        let positions = told["positions"].as_array().unwrap();
        assert_eq!(positions.len(), 10, "{told}");
        let order: Vec<f64> = positions.iter().map(|position| number(&position[by])).collect();
        assert!(order.is_sorted_by(|a, b| if falls { a >= b } else { a <= b }), "{kind}: {order:?}");
        let boards: Vec<String> = positions.iter().map(|of| text(&of["board"]).to_owned()).collect();
        for (position, expected) in positions.iter().zip(query(&run().run(), &boards)) {
            assert_eq!((&position["moves"], &position["value"]), (&expected["moves"], &expected["value"]));
            let mut values: Vec<f64> = expected["moves"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|made| made["value"].as_f64())
                .collect();
            values.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(values[0] - values[1], number(&position["gap"]));
        }
    }
    server.stop();
}

/// The server answers invalid requests with errors, and keeps running.
#[test]
fn garbage_is_refused() {
    let (mut server, url) = explorer(&[]);
    for (path, status) in [
        ("api/v1/values", 400),
        ("api/v1/values?board=", 400),
        ("api/v1/values?board=2+2", 400),
        ("api/v1/values?board=3+3+/+0+0+/+0+0", 400),
        ("api/v1/values?board=%3Cscript%3E", 400),
        ("api/v1/values?board=%00%ff%fe", 400),
        ("api/v1/values?board=2+0+/+0+0+/+0+0", 404),
        ("api/v1/values?board=2+0+/+0+2+/+0+0&spawns=perhaps", 400),
        ("api/v1/values?board=2+0+/+0+2+/+0+0&wrong=1", 400),
        ("api/v1/values?board=2+0+/+0+2+/+0+0&run=other", 404),
        ("api/v1/values?board=2+0+/+0+2+/+0+0&run=../../etc/passwd", 404),
        ("api/v1/layer", 400),
        ("api/v1/layer?layer=-1", 400),
        ("api/v1/layer?layer=60&sample=0", 400),
        ("api/v1/layer?layer=60&sample=10001", 400),
        ("api/v1/positions?kind=gap&limit=0", 400),
        ("api/v1/positions?kind=gap&first=31&last=31", 400),
        ("api/v1/layer?layer=61", 400),
        ("api/v1/layer?layer=4294967295", 400),
        ("api/v1/layer?layer=60&sample=x", 400),
        ("api/v1/positions?kind=odd", 400),
        ("api/v1/positions?first=60&last=20", 400),
        ("api/v1/positions?first=4294967295", 400),
        ("api/v1/search?layer=60", 400),
        ("api/v1/search?layer=60&pattern=5", 400),
        ("api/v1/search?layer=99999&pattern=*+*+/+*+*+/+*+*", 400),
        ("api/v1/search?layer=60&pattern=*+*+/+*+*+/+*+*&from=x", 400),
        ("api/v1/nothing", 404),
        ("api/v2/values", 404),
        ("..%2f..%2fetc%2fpasswd", 404),
        ("page/index.html", 404),
    ] {
        let answer = get(&url, path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        let error = &answer.json()["error"];
        assert!(!text(&error["message"]).is_empty() && !text(&error["code"]).is_empty(), "{path}");
        assert!(answer.headers.contains("content-type: application/json"), "{answer:?}");
    }
    let told = get(&url, "api/v1/layer?layer=60&sample=x").json();
    let message = text(&told["error"]["message"]);
    assert!(message.starts_with("sample: ") && message.contains("openapi.json"), "{message}");
    let long = get(&url, &format!("api/v1/values?board={}", "2+".repeat(3000)));
    assert_eq!(long.status, 400, "{long:?}");
    let last = get_json(&url, "api/v1/search?layer=60&pattern=*+*+/+*+*+/+*+*&from=99999999.0");
    assert_eq!((&last["states"], &last["next"]), (&Value::Array(Vec::new()), &Value::Null));
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let answer = request(&url, method, "api/v1/runs", &["Content-Length: 0"]);
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (405, &"UNIMPLEMENTED".into()),
            "{method}"
        );
    }
    for bytes in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01",
        b"PRI * HTTP/2.0\r\n\r\nXX",
    ] {
        let mut stream = TcpStream::connect(address_of(&url)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{bytes:?}");
    }
    assert!(server.runs());
    assert_eq!(get(&url, "api/v1/runs").status, 200);
    let finished = server.stop();
    assert!(
        !finished.stderr.contains("script"),
        "what clients write is not repeated to the log: {}",
        finished.stderr
    );
}

fn address_of(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().trim_end_matches('/')
}

/// Of ten thousand simultaneous requests, each gets an answer or a request to retry. Memory stays within bounds.
#[test]
fn many_requests_at_once_are_bounded() {
    const CONNECTIONS: usize = 250;
    const REQUESTS: usize = 40;

    let (server, url) = explorer(&["--threads", "2", "--max-requests", "8"]);
    let board = escape("2 0 / 0 2 / 0 0");
    let one = format!("GET /api/v1/values?spawns=true&board={board} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let last = one.replace("Host: localhost", "Host: localhost\r\nConnection: close");
    let all = one.repeat(REQUESTS - 1) + &last;
    let mut streams: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = TcpStream::connect(address_of(&url)).unwrap();
            stream.write_all(all.as_bytes()).unwrap();
            stream
        })
        .collect();
    let (mut answered, mut turned_away) = (0, 0);
    for stream in &mut streams {
        let mut answers = String::new();
        stream.read_to_string(&mut answers).unwrap();
        answered += answers.matches("HTTP/1.1 200").count();
        let away = answers.matches("HTTP/1.1 429").count();
        assert_eq!(away, answers.to_lowercase().matches("retry-after: 1").count());
        turned_away += away;
    }
    assert_eq!(answered + turned_away, CONNECTIONS * REQUESTS, "{answered} answered");
    assert!(answered > 0 && turned_away > 0, "{answered} answered, {turned_away} turned away");
    assert!(server.rss_bytes() < 300 << 20, "{} bytes", server.rss_bytes());
    assert_eq!(get(&url, "api/v1/runs").status, 200);
    server.stop();
}

#[test]
fn the_api_asks_for_the_token_and_the_page_does_not() {
    let place = Place::new();
    let options = token_file(&place, "0123456789abcdef");
    let (server, url) = explorer(&options.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(get(&url, "").status, 200);
    for path in ["api/v1/runs", "api/v1/values?board=x", "api/v1/openapi.json"] {
        for headers in
            [&[][..], &["authorization: Bearer 0123456789abcdeX"], &["authorization: Basic 0123456789abcdef"]]
        {
            let refused = get_with(&url, path, headers);
            assert_eq!((refused.status, &refused.json()["error"]["code"]), (401, &"UNAUTHENTICATED".into()));
            assert!(refused.headers.contains("www-authenticate: bearer"), "{refused:?}");
        }
    }
    let token = "authorization: Bearer 0123456789abcdef";
    assert_eq!(get_with(&url, "api/v1/runs", &[token]).status, 200);
    assert!(!server.stop().stderr.contains("0123456789abcde"));
}

#[test]
fn tls_and_its_rules_are_those_of_grpc() {
    if !has_openssl() {
        return;
    }
    let ca = Ca::new();
    // The certificate needs another name than its CA. With the same name, openssl treats it as self-signed.
    let identity = ca.identity_with("127.0.0.1", |params| {
        params.distinguished_name.push(rcgen::DnType::CommonName, "a server");
    });
    let (server, url) = explorer(&identity.iter().map(String::as_str).collect::<Vec<_>>());
    let address = url.strip_prefix("https://").unwrap().trim_end_matches('/').to_owned();
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(["s_client", "-quiet", "-verify_return_error", "-alpn", "http/1.1", "-connect", &address]);
    openssl
        .args(["-CAfile", &ca.trust()[1]])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = openssl.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"GET /api/v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    drop(stdin);
    child.wait().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"states\":21752"), "{answer}");
    server.stop();

    let run = run().run();
    let open = ["serve", "--run", run.to_str().unwrap(), "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"];
    exact2048(open).exits(2).says(&["0.0.0.0", "--insecure"]);
}

#[test]
fn pages_of_others_may_ask_only_where_that_is_allowed() {
    let (server, url) = explorer(&[]);
    let from = "origin: https://example.org";
    let has =
        |answer: &HttpReply| answer.headers.contains("access-control-allow-origin: https://example.org");
    for path in ["", "api/v1/runs", "nothing"] {
        let answer = get_with(&url, path, &[from]);
        assert!(!answer.headers.contains("access-control"), "{answer:?}");
        let policy = "content-security-policy: default-src 'none'; script-src 'self'";
        assert!(
            answer.headers.contains(policy) && answer.headers.contains("x-content-type-options: nosniff")
        );
    }
    // Requests from pages of other origins, with and without a name.
    let status = |url: &str, headers: &[&str]| get_with(url, "api/v1/runs", headers).status;
    let [own, foreign] = ["sec-fetch-site: same-origin", "sec-fetch-site: cross-site"];
    assert_eq!(
        (status(&url, &[own]), status(&url, &[foreign]), status(&url, &[from, foreign])),
        (200, 403, 403)
    );
    let link = [foreign, "sec-fetch-mode: navigate", "sec-fetch-dest: document"];
    assert_eq!(get_with(&url, "", &link).status, 200, "a link to the page");
    assert_eq!(get_with(&url, "api/v1/runs", &["origin: https://example.com"]).status, 403);
    server.stop();
    let (server, url) = explorer(&["--allow-origin", "https://example.org"]);
    assert!(has(&get_with(&url, "api/v1/runs", &[from])));
    assert_eq!((status(&url, &[from, foreign]), status(&url, &[foreign])), (200, 403));
    assert!(!has(&get_with(&url, "api/v1/runs", &["origin: https://example.com"])));
    let asks = ["access-control-request-method: GET", "access-control-request-headers: authorization"];
    let before = request(&url, "OPTIONS", "api/v1/runs", &[&[from][..], &asks].concat());
    assert!(before.status == 200 && has(&before), "{before:?}");
    server.stop();
}

#[test]
fn several_runs_have_names() {
    let place = Place::new();
    solve(&place.join("small"), "--board 2x2");
    let (small, other_run) = (place.join("small"), run().run());
    let [small, other] = [&small, &other_run].map(|path| path.to_str().unwrap().to_owned());
    let named = format!("wide={other}");
    let server = Server::launch(
        &["serve", "--run", &small, "--run", &named, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
        &[],
    );
    let url = server.page.clone().unwrap();
    let runs = get_json(&url, "api/v1/runs");
    let names: Vec<&str> = runs["runs"].as_array().unwrap().iter().map(|run| text(&run["name"])).collect();
    assert_eq!(names, ["small", "wide"]);
    let value =
        |of: &str, board: &str| get(&url, &format!("api/v1/values?board={}{of}", escape(board))).status;
    assert_eq!((value("", "2 0 / 0 2"), value("&run=small", "2 0 / 0 2")), (200, 200));
    assert_eq!((value("&run=wide", "2 0 / 0 2"), value("&run=wide", "2 0 / 0 2 / 0 0")), (400, 200));
    let first = exact2048(["query", "--server", &server.url, "2 0 / 0 2"]);
    first.exits(0);
    let by_name = |name| {
        exact2048(["query", "--server", &server.url, "--server-run", name, "2 0 / 0 2 / 0 0", "--json"])
    };
    assert_eq!(by_name("wide").exits(0).json(), query(&other_run, &["2 0 / 0 2 / 0 0".to_owned()])[0]);
    by_name("small").exits(2).prints("board of another run");
    by_name("none").exits(2).says(&["small, wide"]);
    by_name("no\nne").exits(2).prints("invalid name of a run");
    server.stop();
    let twice = ["serve", "--run", &small, "--run", &small, "--listen", "127.0.0.1:0"];
    exact2048(twice).exits(2).says(&["small"]);
}

#[test]
fn runs_of_best_moves_answer_with_them() {
    let solved = Solved::new("--board 3x2 --values best-move");
    let server = Server::start(&solved.run(), &HTTP);
    let url = server.page.clone().unwrap();
    assert_eq!(get_json(&url, "api/v1/runs")["runs"][0]["best_moves"], true);
    let board = escape("4 2 / 8 16 / 0 2");
    let told = get_json(&url, &format!("api/v1/values?spawns=true&board={board}"));
    assert!(
        told.get("value").is_none() && told.get("spawns").is_none() && told["best"].is_string(),
        "{told}"
    );
    let worked_out = get_json(&url, &format!("api/v1/values?values=true&board={board}"));
    let expected = query(&run().run(), &["4 2 / 8 16 / 0 2".to_owned()]);
    assert_eq!(worked_out["value"], expected[0]["value"]);
    for path in ["api/v1/layer?layer=60", "api/v1/positions"] {
        assert_eq!(get(&url, path).status, 409, "{path}");
    }
    let found = get_json(&url, "api/v1/search?layer=60&pattern=32+*+/+*+*+/+*+*");
    assert_eq!(found["states"][0]["value"], Value::Null);
    // The answer has positions with their best moves, as for a run with values. The losses of the other moves are unknown.
    let told = get_json(&url, "api/v1/positions?kind=any&sample=100&limit=10");
    let positions = told["positions"].as_array().unwrap();
    assert_eq!(positions.len(), 10, "{told}");
    let boards: Vec<String> = positions.iter().map(|of| text(&of["board"]).to_owned()).collect();
    for (position, known) in positions.iter().zip(query(&run().run(), &boards)) {
        assert_eq!((&position["gap"], &position["share"]), (&Value::Null, &Value::Null));
        assert!(position.get("value").is_none(), "{position}");
        for (told, known) in
            position["moves"].as_array().unwrap().iter().zip(known["moves"].as_array().unwrap())
        {
            assert_eq!((&told["legal"], &told["value"]), (&known["legal"], &Value::Null));
            assert!(told["best"] != true || known["best"] == true, "{position} {known}");
        }
    }
    for kind in ["gap", "close", "only"] {
        let refused = get(&url, &format!("api/v1/positions?kind={kind}"));
        assert!(refused.status == 409 && refused.body.contains("kind=any"), "{refused:?}");
    }
    server.stop();
}

/// Waits for the statistics of perfect play, and returns them.
fn perfect_play(url: &str) -> Value {
    let begun = Instant::now();
    loop {
        let told = get_json(url, "api/v1/perfect-play");
        assert!((0.0..=1.0).contains(&number(&told["progress"])), "{told}");
        if !told["statistics"].is_null() {
            return told["statistics"].clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{told}");
    }
}

/// The server and `stats` compute the same statistics of perfect games. The server stores them, and recomputes them after
/// damage.
#[test]
fn perfect_play_is_computed_once_and_kept() {
    let solved = Solved::new("--board 3x2 --values best-move");
    let stats = || {
        let mut told = on_run(&solved.run(), "stats", &["--again", "--json"]).exits(0).json();
        (told["seconds"].take(), told)
    };
    let ask = || {
        let server = Server::start(&solved.run(), &HTTP);
        let mut told = perfect_play(server.page.as_ref().unwrap());
        assert_eq!(perfect_play(server.page.as_ref().unwrap()), told, "asked again");
        server.stop();
        (told["seconds"].take(), told)
    };
    let (took, told) = ask();
    let kept: Vec<_> =
        std::fs::read_dir(solved.run().join("cones")).unwrap().map(|file| file.unwrap().path()).collect();
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(ask(), (took.clone(), told.clone()), "it was kept");
    let text = std::fs::read_to_string(kept).unwrap();
    std::fs::write(kept, text.replacen("0.9", "0.8", 1)).unwrap();
    let (anew, same) = ask();
    assert!(anew != took && same == told, "damaged, and computed again");
    let (took, same) = stats();
    assert_eq!(same, told);
    assert_eq!(ask(), (took, told), "the server uses the result of the command");

    let losses = Solved::new("--board 2x2 --objective lose:16");
    let server = Server::start(&losses.run(), &HTTP);
    let told = &get_json(server.page.as_ref().unwrap(), "api/v1/runs")["runs"][0];
    assert_eq!(words(told), ["not to lose 16", "probability", "Risk of losing"]);
    let refused = get(server.page.as_ref().unwrap(), "api/v1/perfect-play");
    assert!(refused.status == 409 && refused.body.contains("reach"), "{refused:?}");
    server.stop();
}

/// Solves a run while the server has it open, then replaces it. The server follows without a restart.
#[test]
fn runs_are_followed() {
    let place = Place::new();
    let path = place.join("run");
    solve(&path, "--board 2x2 --until-layer 8");
    let server = Server::start(&path, &HTTP);
    let url = server.page.clone().unwrap();
    let ask = || get(&url, &format!("api/v1/values?board={}", escape("2 0 / 0 2")));
    let waiting = ask();
    assert_eq!((waiting.status, &waiting.json()["error"]["code"]), (409, &"FAILED_PRECONDITION".into()));
    assert!(get_json(&url, "api/v1/runs")["runs"][0]["not_solved"].is_string());
    replace(&path, "--board 2x2");
    let begun = Instant::now();
    while ask().status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", ask());
        std::thread::sleep(Duration::from_millis(100));
    }
    let value = ask().json()["value"].clone();
    assert_eq!(value, query(&path, &["2 0 / 0 2".to_owned()])[0]["value"]);
    // The server has opened the solved run, so it continues to read the old files.
    replace(&path, "--board 2x2");
    assert_eq!((ask().status, &ask().json()["value"]), (200, &value));
    server.stop();
}

fn replace(path: &Path, options: &str) {
    std::fs::remove_dir_all(path).unwrap();
    solve(path, options);
}
