//! A worker from the view of its operators and its peers: real processes.

use crate::common;

use std::collections::BTreeSet;
use std::error::Error;
use std::time::{Duration, Instant};

use common::certificates::{Ca, token_file};
use common::cluster::{Cluster, start_worker};
use common::serving::Server;
use common::snapshots::assert_section;
use common::{Place, Solved, events, text};
use exact2048_cluster::wire::{self, refusal_status};
use exact2048_coordinator::cluster::{PROTOCOL_VERSION, Refusal};
use exact2048_net::client::{ClientOptions, Connected, connect};
use exact2048_net::tls::TlsFiles;
use exact2048_net::token::Token;
use exact2048_proto::v1::coordinator_server::{Coordinator, CoordinatorServer};
use exact2048_proto::v1::exchange_client::ExchangeClient;
use exact2048_proto::v1::push_request::Content;
use exact2048_proto::v1::{self, FetchRequest, PushHello, PushRequest};
use serde_json::Value;
use tonic::{Code, Request, Response, Status};

const TOKEN: &str = "a-token-that-nobody-guesses";

/// Prefix of the metrics of all servers. These metrics exist after the first request.
const OF_ALL_SERVERS: &str = "exact2048_request";

/// Waits until the metrics contain a text.
#[track_caller]
fn scrape_until(server: &Server, wanted: &str) -> String {
    let begun = Instant::now();
    loop {
        let metrics = server.scrape();
        if metrics.contains(wanted) {
            return metrics;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{wanted} is missing from\n{metrics}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The names with a description, and the names with samples. A histogram has the name of its count.
fn names(metrics: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let helped = metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next());
    let sampled = metrics.lines().filter(|line| line.starts_with("exact2048_"));
    let sampled = sampled.filter_map(|line| line.split(['{', ' ']).next());
    let sampled = sampled.filter(|name| !name.ends_with("_sum") && !name.ends_with("_bucket"));
    let is_own = |name: &&str| !name.starts_with(OF_ALL_SERVERS);
    let sampled = sampled.map(|name| name.strip_suffix("_count").unwrap_or(name));
    (helped.filter(is_own).collect(), sampled.filter(is_own).collect())
}

#[test]
fn metrics_of_a_worker() {
    let mut cluster = Cluster::new(0);
    cluster.add_worker(&["--metrics-listen", "127.0.0.1:0"]);
    let fresh = scrape_until(&cluster.workers[0], "exact2048_pull_seconds_count");
    let expected = BTreeSet::from([
        "exact2048_cached_shards_total",
        "exact2048_denied_total",
        "exact2048_epochs_failed_total",
        "exact2048_epochs_total",
        "exact2048_fetched_bytes_total",
        "exact2048_fetched_shards_total",
        "exact2048_given_bytes_total",
        "exact2048_in_epoch",
        "exact2048_pull_seconds",
        "exact2048_pushed_bytes_total",
        "exact2048_received_bytes_total",
        "exact2048_reports_waiting",
        "exact2048_sending_bytes",
        "exact2048_states_total",
        "exact2048_unwritten_bytes",
        "exact2048_written_bytes_total",
    ]);
    assert_eq!(names(&fresh), (expected.clone(), expected), "{fresh}");
    for line in [
        "exact2048_states_total{phase=\"enumerate\"} 0",
        "exact2048_states_total{phase=\"back up\"} 0",
        "exact2048_fetched_shards_total{from=\"peer\"} 0",
        "exact2048_fetched_shards_total{from=\"store\"} 0",
        "exact2048_epochs_failed_total 0",
    ] {
        assert!(fresh.lines().any(|found| found == line), "{line} is missing from\n{fresh}");
    }

    // Two workers count their work, and their queues become empty.
    cluster.add_worker(&["--metrics-listen", "127.0.0.1:0"]);
    let job = cluster.submit("--board 3x2");
    cluster.wait(&job);
    let worked = scrape_until(&cluster.workers[0], "exact2048_in_epoch 0");
    for queue in ["exact2048_sending_bytes", "exact2048_unwritten_bytes", "exact2048_reports_waiting"] {
        scrape_until(&cluster.workers[0], &format!("\n{queue} 0\n"));
    }
    for counter in ["exact2048_epochs_total", "exact2048_written_bytes_total", "exact2048_pushed_bytes_total"]
    {
        assert!(!worked.contains(&format!("\n{counter} 0\n")), "{counter} is 0 in\n{worked}");
    }
    assert!(!worked.contains("exact2048_states_total{phase=\"back up\"} 0"), "{worked}");
}

/// Waits for lines of an event in the JSON log of a worker, and returns them.
#[track_caller]
fn logged_until(worker: &Server, words: &str) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let log = worker.log();
        let lines = log.lines().filter(|line| line.ends_with('}')).map(serde_json::from_str);
        let lines = lines.map(|line: Result<Value, _>| line.unwrap());
        let found: Vec<Value> =
            lines.filter(|line| line["message"].as_str().is_some_and(|text| text.contains(words))).collect();
        if !found.is_empty() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{words:?} is missing from\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn lines_of_an_epoch_name_job_and_worker() {
    let mut cluster = Cluster::new(0);
    cluster.add_worker(&["--log-format", "json"]);
    let job = cluster.submit("--board 2x2");
    cluster.wait(&job);
    let worker = &cluster.workers[0];
    for words in [events::EPOCH_BEGINS, events::SHARD_WRITTEN, events::EPOCH_ENDS] {
        for line in logged_until(worker, words) {
            assert_eq!(line["job"], "2x2", "{line}");
            // The epoch has the same name as in the log of the coordinator and in `status`.
            assert!(text(&line["epoch"]).starts_with("1."), "{line}");
            assert_eq!(line["worker"], logged_until(worker, events::WORKER_STARTS)[0]["worker"], "{line}");
        }
    }
}

#[test]
fn an_absent_coordinator_is_logged_once() {
    let mut cluster = Cluster::new(0);
    cluster.add_worker(&["--log-format", "json", "--metrics-listen", "127.0.0.1:0"]);
    scrape_until(&cluster.workers[0], "exact2048_pull_seconds_count");
    cluster.coordinator.kill();
    std::thread::sleep(Duration::from_secs(2));
    cluster.restart_coordinator();
    let back = logged_until(&cluster.workers[0], events::COORDINATOR_BACK);
    assert!(back[0]["seconds"].as_f64().is_some_and(|seconds| seconds > 1.0), "{back:?}");
    assert_eq!(logged_until(&cluster.workers[0], events::NO_COORDINATOR).len(), 1);
}

/// Starts a worker with a token, for a server that is no coordinator of this user.
fn start_with_token(place: &Place, url: &str, options: &[&str]) -> Server {
    let token = token_file(place, TOKEN);
    let token: Vec<&str> = token.iter().map(String::as_str).collect();
    start_worker(url, &place.join("cache"), &[&token, options].concat())
}

#[test]
fn a_worker_of_another_kind_of_server_ends() {
    let (solved, place) = (Solved::new("--board 2x2"), Place::new());
    let server = Server::start(&solved.run(), &[]);
    let worker = start_with_token(&place, &server.url, &[]);
    let ended = worker.end().exits(1);
    let ended = ended.says(&[&server.url]);
    assert_section("no coordinator at this address", ended.last_line());
    server.stop();
}

/// A caller with these TLS files and this token.
async fn caller(worker: &Server, tls: TlsFiles, token: Option<&str>) -> ExchangeClient<Connected> {
    let token = token.map(|token| Token::new(token, "a test").unwrap());
    let options = ClientOptions { server: worker.url.clone(), tls, token, insecure: false };
    ExchangeClient::new(connect(&options).await.unwrap())
}

/// Answers to a fetch without the secret of the epoch, and to a stream of an unknown version.
async fn answers(mut caller: ExchangeClient<Connected>) -> [Status; 2] {
    let request = FetchRequest { protocol_version: PROTOCOL_VERSION, ..FetchRequest::default() };
    let hello = PushHello { protocol_version: PROTOCOL_VERSION + 1, ..PushHello::default() };
    let hello = PushRequest { content: Some(Content::Hello(hello)) };
    let fetched = caller.fetch(request).await.map(drop).unwrap_err();
    [fetched, caller.push(tokio_stream::iter([hello])).await.map(drop).unwrap_err()]
}

/// The blocks and shards of a job pass through this port, so it has the same protection as the coordinator's port.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_authorised_callers_push_and_fetch() {
    exact2048_net::install_crypto();
    let (place, ca, other) = (Place::new(), Ca::new(), Ca::new());
    let file = |options: &[String], index: usize| Some(options[index].clone().into());
    let trusting = |ca: &Ca| TlsFiles { ca: file(&ca.trust(), 1), ..TlsFiles::default() };
    let start = |options: &[Vec<String>]| {
        let options = options.concat();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        // The worker accepts peers even without a coordinator.
        start_worker("https://127.0.0.1:9", &place.join("cache"), &options)
    };
    let of = |statuses: [Status; 2]| statuses.map(|status| status.code());

    let worker = start(&[ca.identity("127.0.0.1"), ca.trust(), token_file(&place, TOKEN)]);
    let identity = ca.identity("peer");
    let known = || TlsFiles { cert: file(&identity, 1), key: file(&identity, 3), ..trusting(&ca) };
    let well = [Code::PermissionDenied, Code::FailedPrecondition];
    assert_eq!(of(answers(caller(&worker, known(), Some(TOKEN)).await).await), well);
    for token in [None, Some("another-token-that-nobody-knows")] {
        let refused = of(answers(caller(&worker, known(), token).await).await);
        assert_eq!(refused, [Code::Unauthenticated; 2], "{token:?}");
    }
    // Tests callers with the token, but without a certificate or with a certificate of another CA.
    let identity = other.identity("peer");
    let stranger = TlsFiles { cert: file(&identity, 1), key: file(&identity, 3), ..trusting(&ca) };
    for tls in [trusting(&ca), stranger] {
        let token = Some(Token::new(TOKEN, "a test").unwrap());
        let options = ClientOptions { server: worker.url.clone(), tls, token, insecure: false };
        // With TLS 1.3, a client finishes the handshake before the server has checked the client's certificate.
        if let Ok(connected) = connect(&options).await {
            let refused = answers(ExchangeClient::new(connected)).await;
            // An error with a source is from the connection, not from the worker.
            assert!(refused.iter().all(|status| status.source().is_some()), "{refused:?}");
        }
    }
    let log = worker.stop().stderr;
    assert!(!log.contains("nobody"), "{log}");
}

/// The part of a coordinator that a worker needs, with scripted answers to pulls.
struct Scripted(fn(v1::PullRequest) -> Answer<v1::PullResponse>);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Coordinator for Scripted {
    type WatchStream = tokio_stream::Empty<Result<v1::WatchResponse, Status>>;

    async fn pull(&self, request: Request<v1::PullRequest>) -> Answer<v1::PullResponse> {
        (self.0)(request.into_inner())
    }

    async fn submit(&self, _: Request<v1::SubmitRequest>) -> Answer<v1::SubmitResponse> {
        Err(Status::unimplemented(""))
    }

    async fn get(&self, _: Request<v1::GetRequest>) -> Answer<v1::GetResponse> {
        Err(Status::unimplemented(""))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Answer<v1::ListResponse> {
        Err(Status::unimplemented(""))
    }

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Answer<Self::WatchStream> {
        Err(Status::unimplemented(""))
    }

    async fn cancel(&self, _: Request<v1::CancelRequest>) -> Answer<v1::CancelResponse> {
        Err(Status::unimplemented(""))
    }

    async fn forget(&self, _: Request<v1::ForgetRequest>) -> Answer<v1::ForgetResponse> {
        Err(Status::unimplemented(""))
    }

    async fn resume(&self, _: Request<v1::ResumeRequest>) -> Answer<v1::ResumeResponse> {
        Err(Status::unimplemented(""))
    }
}

impl Scripted {
    /// Serves until the runtime ends, and returns the URL.
    async fn start(self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        let service = tonic::transport::Server::builder().add_service(CoordinatorServer::new(self));
        tokio::spawn(service.serve_with_incoming(incoming));
        format!("http://{address}")
    }
}

/// An idle worker stops even without an answer, because it has no work that other workers must repeat.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_idle_worker_stops_without_an_answer() {
    let coordinator = Scripted(|pull| {
        let nothing = wire::Answer {
            acknowledged: 0,
            withdrawn: None,
            share: None,
            progress: None,
            write: None,
            needed_memory: None,
            hold: Duration::ZERO,
        };
        if pull.leaving {
            Err(Status::unavailable("no coordinator"))
        } else {
            Ok(Response::new(wire::answer_message(&nothing)))
        }
    });
    let (url, place) = (coordinator.start().await, Place::new());
    let worker = start_with_token(&place, &url, &["--metrics-listen", "127.0.0.1:0"]);
    scrape_until(&worker, "exact2048_pull_seconds_count");
    let ended = worker.stop();
    ended.says(&[events::STOPPED_CLEANLY]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_of_another_version_ends() {
    let later_version = Scripted(|pull| {
        let got = pull.protocol_version;
        Err(refusal_status(&Refusal::Version { expected: got + 1, got }))
    });
    let (url, place) = (later_version.start().await, Place::new());
    let worker = start_with_token(&place, &url, &[]);
    let versions = [PROTOCOL_VERSION, PROTOCOL_VERSION + 1].map(|version| version.to_string());
    let ended = worker.end().exits(1);
    assert!(versions.iter().all(|version| ended.last_line().contains(version)), "{ended:?}");
}
