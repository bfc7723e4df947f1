//! Greedy clients: files, connections and requests are bounded, and other clients are still answered.

use crate::common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::query_calls::client;
use common::serving::Server;
use common::{Finished, Solved, command, exact2048};
use exact2048_proto::v1::BatchGetValuesRequest;
use exact2048_proto::v1::query_client::QueryClient;
use tokio::runtime::Builder;
use tonic::transport::Channel;

const BOARD: &str = "2 0 / 0 2";

/// A server within limits of the shell's `ulimit`.
fn serve_within(limits: &str, solved: &Solved) -> Server {
    let shell = format!("ulimit {limits}; exec \"$@\"");
    let run = solved.run();
    let args = ["serve", "--run", run.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let metrics = ["--metrics-listen", "127.0.0.1:0"];
    Server::launch_within(&["sh", "-c", &shell, "sh"], &[&args[..], &metrics].concat())
}

fn connect(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(to).unwrap()).collect()
}

/// Repeats a request until the server answers. Fails after a minute.
#[track_caller]
fn answered(server: &Server) {
    let begun = Instant::now();
    while exact2048(["query", "--server", &server.url, BOARD]).code != Some(0) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn connections_to_the_metrics_do_not_stop_the_service() {
    let solved = Solved::new("--board 2x2");
    let server = serve_within("-n 200", &solved);
    let url = server.metrics.clone().unwrap();
    let metrics = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().parse().unwrap();
    let idle = connect(metrics, 260);
    exact2048(["query", "--server", &server.url, BOARD]).exits(0);
    assert!(!server.log().contains("Too many open files"), "{}", server.log());
    // The server answers requests for metrics, at the latest after it has closed the idle connections.
    let begun = Instant::now();
    loop {
        let scraped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.scrape()));
        if scraped.is_ok() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.log());
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(idle);
    server.stop();
}

#[test]
fn silent_connections_leave_files_and_are_given_up() {
    let solved = Solved::new("--board 2x2");
    let server = serve_within("-n 200", &solved);
    let log = server.log();
    assert!(["104", "1024", "ulimit -n"].iter().all(|fact| log.contains(fact)), "{log}");
    let idle = connect(server.address(), 300);
    // The server answers a client of the same address after it has closed the first connections.
    answered(&server);
    let log = server.log();
    assert!(!log.contains("Too many open files"), "{log}");
    // The burst of the limiter, and one line per second.
    assert!(log.lines().count() < 200, "others fill the log: {log}");
    drop(idle);
    server.stop();
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let solved = Solved::new("--board 2x2");
    // Sets only the soft limit. The server can raise it to the hard limit.
    let server = serve_within("-Sn 64", &solved);
    let idle = connect(server.address(), 200);
    exact2048(["query", "--server", &server.url, BOARD]).exits(0);
    drop(idle);
    server.stop();
}

#[test]
fn workers_make_room_for_all_members_of_an_epoch() {
    let mut cluster = Cluster::new(0);
    (0..4).for_each(|_| cluster.add_worker(&["--max-requests", "1", "--max-connections", "1"]));
    let job = cluster.submit("--board 3x2");
    cluster.wait(&job);
    cluster.verified_fingerprint(&job);
}

/// Between two boards, the server pings the client.
#[test]
fn idle_clients_stay_connected() {
    let solved = Solved::new("--board 2x2");
    let server = Server::start(&solved.run(), &[]);
    let mut asking = command(["query", "--server", &server.url, "--json", "-"]);
    let asking = asking.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut asking = asking.spawn().unwrap();
    let mut boards = asking.stdin.take().unwrap();
    boards.write_all(b"2 0 / 0 2\n").unwrap();
    std::thread::sleep(Duration::from_secs(15));
    boards.write_all(b"2 2 / 0 0\n").unwrap();
    drop(boards);
    let answers = Finished::new(asking.wait_with_output().unwrap()).exits(0).json_lines();
    assert_eq!(answers.len(), 2);
    server.stop();
}

/// Streams whose clients read no answers take little memory, and other clients are served.
#[test]
fn slow_readers_cost_little() {
    /// The limit in docs/serving.md.
    const MOST_BYTES: u64 = 8 << 20;

    let solved = Solved::new("--board 2x2");
    let server = Server::start(&solved.run(), &["--metrics-listen", "127.0.0.1:0"]);
    // The clients' connections close with their runtime. Otherwise, the server would answer all streams before it stops.
    let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let each = clients.block_on(bytes_of_unread_streams(&server));
    drop(clients);
    eprintln!("{each} bytes a stream");
    assert!(each < MOST_BYTES, "{each} bytes a stream");
    server.stop();
}

/// Memory in bytes that a server needs for a stream whose client reads no answers.
async fn bytes_of_unread_streams(server: &Server) -> u64 {
    const STREAMS: usize = 48;

    let before = server.rss_bytes();
    let channel = Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap();
    let mut unread = Vec::new();
    for _ in 0..STREAMS {
        let mut client = QueryClient::new(channel.clone());
        let messages = (0..16).map(|_| BatchGetValuesRequest {
            boards: vec![0x11; 65_536],
            with_moves: false,
            with_values: false,
        });
        unread.push(client.batch_get_values(tokio_stream::iter(messages)).await.unwrap());
    }
    let running = "exact2048_requests_running{method=\"exact2048.v1.Query/BatchGetValues\"} ";
    let count = || server.scrape().lines().find_map(|line| line.strip_prefix(running).map(str::to_owned));
    assert_eq!(count().as_deref(), Some("48"));
    // Other clients do not wait for these streams, not even for a thread.
    let mut other = client(server).await;
    let message = BatchGetValuesRequest { boards: vec![0x11], ..BatchGetValuesRequest::default() };
    let mut answers = other.batch_get_values(tokio_stream::iter([message])).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().values.len(), 1);
    drop(answers);
    // The server hears of the end of a call a moment later.
    let begun = Instant::now();
    while count().as_deref() != Some("48") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?} calls are running", count());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The server fills the windows of the streams within a second.
    let mut most = 0;
    for _ in 0..20 {
        most = most.max(server.rss_bytes());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    most.saturating_sub(before) / STREAMS as u64
}

#[test]
fn an_invalid_url_is_refused_first() {
    let asked = exact2048(["worker", "--coordinator", "localhost:2049", "--listen", "127.0.0.1:0"]).exits(2);
    let asked = asked.says(&["localhost:2049", "http://HOST:PORT"]);
    assert!(asked.stderr.lines().count() < 4 && asked.stdout.is_empty(), "{asked:?}");
}
