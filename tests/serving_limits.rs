//! A query server from the view of its operators: health, deadlines, limits, metrics, its end, and invalid bytes.

use crate::common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use common::cluster::start_coordinator;
use common::query_calls::{channel, client, health, serve, text, values_of};
use common::{Place, events, exact2048};
use exact2048_proto::v1::{self, BatchGetValuesRequest, BoardStatus, GetRunRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_and_reflection() {
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    use tonic_reflection::pb::v1::{ServerReflectionRequest, ServiceResponse};

    let server = serve(&[]);
    for service in ["", "exact2048.v1.Query"] {
        assert_eq!(health(&server, service).await, ServingStatus::Serving, "{service:?}");
    }
    let mut health = HealthClient::new(channel(&server).await);
    let unknown = HealthCheckRequest { service: "unknown".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);

    let mut client = ServerReflectionClient::new(channel(&server).await);
    let mut ask = async |request| {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
        let mut answers =
            client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
        answers.message().await.unwrap().unwrap().message_response.unwrap()
    };
    let MessageResponse::ListServicesResponse(list) = ask(MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list of services");
    };
    let names: Vec<String> = list.service.into_iter().map(|ServiceResponse { name }| name).collect();
    for name in ["exact2048.v1.Query", "grpc.health.v1.Health"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    assert!(
        names.iter().all(|name| name == "exact2048.v1.Query" || !name.contains("exact2048")),
        "{names:?}"
    );
    let symbol = MessageRequest::FileContainingSymbol("exact2048.v1.Query.GetValue".to_owned());
    assert!(matches!(ask(symbol).await, MessageResponse::FileDescriptorResponse(_)));
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn deadlines_are_kept_by_the_server() {
    let server = serve(&[]);
    let mut client = client(&server).await;
    let (sender, receiver) = mpsc::channel(1);
    let mut request = Request::new(ReceiverStream::new(receiver));
    request.set_timeout(Duration::from_millis(200));
    let begun = Instant::now();
    let mut answers = client.batch_get_values(request).await.unwrap().into_inner();
    sender.send(values_of(vec![0])).await.unwrap();
    assert!(answers.message().await.unwrap().is_some());
    let status = answers.message().await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert!((Duration::from_millis(190)..Duration::from_secs(5)).contains(&begun.elapsed()));
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn more_requests_than_may_run_are_turned_away() {
    let server = serve(&["--max-requests", "1", "--metrics-listen", "127.0.0.1:0"]);
    let mut client = client(&server).await;
    let (sender, receiver) = mpsc::channel(1);
    let mut answers = client.batch_get_values(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    let status = client.get_run(GetRunRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(health(&server, "").await, ServingStatus::Serving);
    assert!(server.scrape().contains("code=\"ResourceExhausted\""));
    // After the stream ends, the server accepts other calls again.
    sender.send(values_of(vec![0])).await.unwrap();
    assert!(answers.message().await.unwrap().is_some());
    drop(sender);
    assert!(answers.message().await.unwrap().is_none());
    client.get_run(GetRunRequest {}).await.unwrap();
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn requests_are_counted() {
    let server = serve(&["--metrics-listen", "127.0.0.1:0", "--log-format", "json", "--log", "debug"]);
    let mut client = client(&server).await;
    for _ in 0..3 {
        client.get_value(text("2 0 / 0 2 / 0 0")).await.unwrap();
    }
    client.get_value(text("64 64 / 64 64 / 64 64")).await.unwrap_err();
    // An unknown path is counted, but not by its name.
    let mut unknown = tonic::client::Grpc::new(channel(&server).await);
    unknown.ready().await.unwrap();
    let path = "/exact2048.v1.Query/NoSuchCall".parse().unwrap();
    let codec = tonic_prost_codec();
    let status = unknown.unary(Request::new(GetRunRequest {}), path, codec).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    let metrics = server.scrape();
    for line in [
        "exact2048_requests_total{method=\"exact2048.v1.Query/GetValue\",code=\"Ok\"} 3",
        "exact2048_requests_total{method=\"exact2048.v1.Query/GetValue\",code=\"NotFound\"} 1",
        "exact2048_requests_total{method=\"other\",code=\"Unimplemented\"} 1",
        "exact2048_request_seconds_count{method=\"exact2048.v1.Query/GetValue\"} 4",
        "exact2048_requests_running{method=\"exact2048.v1.Query/GetValue\"} 0",
        "exact2048_states_answered_total{status=\"ok\"} 3",
        "exact2048_states_answered_total{status=\"unreachable\"} 1",
        "exact2048_run_solved 1",
        "exact2048_states_answered_total{status=\"invalid\"} 0",
        "exact2048_cache_hits_total ",
        "exact2048_cache_bytes ",
        "# HELP exact2048_states_answered_total ",
        "# HELP exact2048_cache_hits_total ",
        "# HELP exact2048_cache_misses_total ",
        "# HELP exact2048_cache_bytes ",
        "# HELP exact2048_cache_capacity_bytes ",
        "# HELP exact2048_run_solved ",
    ] {
        assert!(metrics.contains(line), "{line} is missing from {metrics}");
    }
    assert!(!metrics.contains("NoSuchCall"));
    let log = server.stop().stderr;
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
    }
    assert!(log.contains("\"method\":\"exact2048.v1.Query/GetValue\""), "{log}");
}

fn tonic_prost_codec() -> tonic_prost::ProstCodec<GetRunRequest, v1::GetRunResponse> {
    tonic_prost::ProstCodec::default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopping_server_lets_requests_end() {
    for signal in ["TERM", "INT"] {
        let server = serve(&["--grace", "20"]);
        let mut client = client(&server).await;
        let (sender, receiver) = mpsc::channel(1);
        let mut answers = client.batch_get_values(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        server.signal(signal);
        let address = server.address();
        let begun = Instant::now();
        while TcpStream::connect(address).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(5), "{}", server.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The server still answers running requests.
        for _ in 0..3 {
            sender.send(values_of(vec![0x11])).await.unwrap();
            assert_eq!(answers.message().await.unwrap().unwrap().statuses, [i32::from(BoardStatus::Ok)]);
        }
        drop(sender);
        assert!(answers.message().await.unwrap().is_none());
        server.end().exits(0).says(&[events::ALL_ANSWERED]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn grace_has_an_end() {
    let server = serve(&["--grace", "1"]);
    let mut client = client(&server).await;
    let (sender, receiver) = mpsc::channel::<BatchGetValuesRequest>(1);
    let mut answers = client.batch_get_values(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    server.signal("TERM");
    let status = answers.message().await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    drop(sender);
    server.end().exits(0).says(&[events::STOPPING]);

    // A second signal ends the server at once, despite the grace period.
    let mut server = serve(&["--grace", "3600"]);
    let idle = TcpStream::connect(server.address()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    // Two signals within a second count once.
    server.signal("TERM");
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(1200));
    assert!(server.runs(), "{}", server.log());
    server.signal("TERM");
    server.end().exits(0).says(&[events::SECOND_SIGNAL]);
    drop(idle);
}

#[test]
fn calls_to_the_wrong_kind_of_server() {
    let (server, place) = (serve(&[]), Place::new());
    let coordinator = start_coordinator(&place.join("store"), "127.0.0.1:0");
    for ask in [&["status"][..], &["status", "3x2", "--watch"], &["submit", "--board", "2x2"]] {
        let asked = exact2048([ask, &["--coordinator", &server.url]].concat()).exits(1);
        asked.prints("no coordinator at this address");
    }
    let token = place.join("store/coordinator/token");
    let query = ["query", "--server", &coordinator.url, "--token-file", token.to_str().unwrap()];
    let asked = exact2048([&query[..], &["2 0 0 / 0 2 0"]].concat()).exits(1);
    asked.prints("no query server at this address");
    coordinator.stop();
    server.stop();
}

/// Invalid HTTP/2 is answered with an error or dropped, and does no harm.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn any_bytes_are_survived() {
    let mut server = serve(&["--max-connections", "64"]);
    let mut seed = 2048u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut send = |prefix: &[u8], bytes: usize| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let junk: Vec<u8> = (0..bytes).map(|_| random()).collect();
        // The server may close at any byte.
        let _ = stream.write_all(prefix).and_then(|()| stream.write_all(&junk));
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0; 1024]);
    };
    let mut round = |lengths: std::ops::Range<usize>| {
        for length in lengths {
            send(&[], length * 37);
            send(preface, length * 11);
            send(&[preface, settings].concat(), length * 23);
            // Sends a frame of each kind with a false length.
            send(
                &[preface, settings, &[0, 0xff, length as u8, length as u8 % 12, 5, 0, 0, 0, 1]].concat(),
                length,
            );
            send(b"GET /exact2048.v1.Query/GetValue HTTP/1.1\r\nHost: x\r\n\r\n", length);
            send(b"\x16\x03\x01\x02\x00", length);
        }
    };
    round(0..30);
    let before = server.rss_bytes();
    round(0..120);
    let after = server.rss_bytes();
    assert!(after < before + (16 << 20), "memory grew from {before} to {after} bytes");
    assert!(server.runs());
    let mut client = client(&server).await;
    client.get_value(text("2 0 / 0 2 / 0 0")).await.unwrap();

    // Sends well-formed requests with junk messages.
    let mut raw = tonic::client::Grpc::new(channel(&server).await);
    for round in 0..50u8 {
        // Announces field 1, a message of 250 bytes, but sends fewer bytes.
        let junk: Vec<u8> = [0x0a, 250].into_iter().chain((0..round).map(|i| i.wrapping_mul(37))).collect();
        raw.ready().await.unwrap();
        let path = "/exact2048.v1.Query/GetValue".parse().unwrap();
        let answer = raw.unary(Request::new(junk), path, Junk).await;
        assert_eq!(answer.unwrap_err().code(), Code::Internal);
    }
    server.stop();
}

/// A codec that sends bytes unchanged.
struct Junk;

impl tonic::codec::Codec for Junk {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl tonic::codec::Encoder for Junk {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut tonic::codec::EncodeBuf<'_>) -> Result<(), Status> {
        prost::bytes::BufMut::put_slice(to, &item);
        Ok(())
    }
}

impl tonic::codec::Decoder for Junk {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut tonic::codec::DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        use prost::bytes::Buf;
        let bytes = from.copy_to_bytes(from.remaining());
        Ok(Some(bytes.to_vec()))
    }
}
