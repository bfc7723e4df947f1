//! Tests that hostile and dead clients cost the server little, and that other clients are served.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use exact2048_net::client::{ClientOptions, Connected, connect};
use exact2048_net::gate::Allowed;
use exact2048_net::keepalive::KeepAlive;
use exact2048_net::limits::ServerLimits;
use exact2048_net::requests::deadline;
use exact2048_net::serve::{Bound, ServerOptions};
use exact2048_net::services;
use exact2048_net::shutdown::Stop;
use exact2048_net::tls::TlsFiles;
use exact2048_net::token::RequiredToken;
use http::{Request, Response};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tonic::body::Body;
use tonic::codegen::{Bytes, StdError as BoxError};
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Service, ServiceExt};

/// Timeout for operations that must not hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers with more bytes than any HTTP/2 window accepts, in pieces. A header has the seconds until the deadline.
#[derive(Clone)]
struct Flood;

impl NamedService for Flood {
    const NAME: &'static str = "test.Flood";
}

impl Service<Request<Body>> for Flood {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let pieces = if request.uri().path().ends_with("Little") { 1 } else { 64 };
        let pieces = std::iter::repeat_n(Ok::<_, Infallible>(Bytes::from_static(&[0; 64 << 10])), pieces);
        let body = axum::body::Body::from_stream(tokio_stream::iter(pieces));
        let mut response = Response::new(Body::new(body));
        let left = deadline().unwrap().saturating_duration_since(Instant::now());
        response.headers_mut().insert("left", left.as_secs().into());
        ready(Ok(response))
    }
}

struct Server {
    address: SocketAddr,
    stop: Stop,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.begun.cancel();
        self.stop.over.cancel();
    }
}

/// Returns short timeouts for quick tests.
fn quick() -> ServerLimits {
    let time = Duration::from_millis(300);
    let keepalive = KeepAlive { interval: time, timeout: time };
    ServerLimits { hello_time: time, keepalive, ..ServerLimits::default() }
}

async fn serve(limits: ServerLimits, tls: TlsFiles) -> Server {
    exact2048_net::install_crypto();
    let (listen, allowed) = (([0, 0, 0, 0], 0).into(), Allowed::default());
    let (token, is_health_open, insecure) = (RequiredToken::None, true, true);
    let options = ServerOptions { listen, tls, token, is_health_open, insecure, limits, allowed };
    let bound = Bound::new(options).await.unwrap();
    let (address, stop) = (bound.options.listen, Stop::default());
    let (_, health) = tonic_health::server::health_reporter();
    let descriptors = tonic_health::pb::FILE_DESCRIPTOR_SET;
    tokio::spawn(services::serve(bound, health, Flood, descriptors, stop.clone()));
    Server { address: ([127, 0, 0, 1], address.port()).into(), stop }
}

async fn client(server: &Server) -> Connected {
    let server = format!("http://{}", server.address);
    connect(&ClientOptions { server, tls: TlsFiles::default(), token: None, insecure: false }).await.unwrap()
}

async fn ask<S, B>(client: S, call: &str) -> Result<Response<Body>, Status>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>>,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let uri = format!("http://server/test.Flood/{call}");
    let request = Request::post(uri).body(Body::empty()).unwrap();
    let answer = client.oneshot(request).await.map_err(|error| Status::from_error(error.into()))?;
    match Status::from_header_map(answer.headers()) {
        Some(status) => Err(status),
        None => Ok(answer.map(Body::new)),
    }
}

/// Returns the time until the server closes a connection.
fn kept(mut stream: TcpStream) -> Duration {
    let begun = Instant::now();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = [0; 1024];
    // A reset also ends the connection.
    while let Ok(1..) = stream.read(&mut bytes) {}
    let kept = begun.elapsed();
    assert!(kept < PATIENCE, "the connection is still open");
    kept
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_are_closed() {
    let server = serve(quick(), TlsFiles::default()).await;
    let address = server.address;
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let whole = [PREFACE, settings].concat();
    let kept_for = tokio::task::spawn_blocking(move || {
        // No byte, half a preface, and an HTTP/2 connection that answers no ping.
        [&[][..], &PREFACE[..10], &whole].map(|bytes| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(bytes).unwrap();
            kept(stream)
        })
    });
    let kept_for = kept_for.await.unwrap();
    assert!(kept_for.iter().all(|kept| *kept >= Duration::from_millis(200)), "{kept_for:?}");
    // A client that answers pings may stay.
    let client = client(&server).await;
    ask(client.clone(), "Little").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    ask(client.clone(), "Little").await.unwrap();
}

/// Requests beyond the limit are refused. The end of a connection ends the answers that its client does not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_lose_their_connection() {
    let time = Some(Duration::from_secs(1));
    let limits = ServerLimits { requests: 4, connection_time: time, ..ServerLimits::default() };
    let server = serve(limits, TlsFiles::default()).await;
    let slow = client(&server).await;
    // The bodies are stored and never read.
    let mut unread = Vec::new();
    let refused = loop {
        match ask(slow.clone(), "Get").await {
            Ok(answer) => unread.push(answer),
            Err(status) => break status,
        }
    };
    assert_eq!((unread.len(), refused.code()), (4, Code::ResourceExhausted), "{refused:?}");
    let begun = Instant::now();
    while ask(client(&server).await, "Little").await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "unread answers still hold their permits");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(unread);
}

/// A service knows the deadline of its request: the client's, up to ten minutes, or that of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_know_the_deadline() {
    let server = serve(quick(), TlsFiles::default()).await;
    for (timeout, expected) in
        [(None, 8..=30), (Some("7S"), 0..=7), (Some("90S"), 31..=90), (Some("99999999H"), 91..=600)]
    {
        let request = Request::post("http://server/test.Flood/Little");
        let request = timeout.into_iter().fold(request, |request, time| request.header("grpc-timeout", time));
        let answer = client(&server).await.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let left: u64 = answer.headers()["left"].to_str().unwrap().parse().unwrap();
        assert!(expected.contains(&left), "{timeout:?}: {left} s");
    }
}

/// Silent calls: two calls that accept one message, and one call that accepts many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_requests_are_ended() {
    let limits = ServerLimits { request_time: Duration::from_millis(300), ..ServerLimits::default() };
    let server = serve(limits, TlsFiles::default()).await;
    let health = "grpc.health.v1.Health";
    let reflection = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    for call in [&format!("{health}/Check"), &format!("{health}/Watch"), reflection] {
        let silence = tokio_stream::pending::<Result<Bytes, Infallible>>();
        let request = Request::post(format!("http://server/{call}"))
            .header("content-type", "application/grpc")
            .body(Body::new(axum::body::Body::from_stream(silence)));
        let answer = client(&server).await.oneshot(request.unwrap());
        let answer = tokio::time::timeout(PATIENCE, answer).await.unwrap().unwrap();
        let status = match Status::from_header_map(answer.headers()) {
            Some(status) => status,
            None => {
                let rest = http_body_util::BodyExt::collect(answer.into_body());
                let rest = tokio::time::timeout(PATIENCE, rest).await.unwrap().unwrap();
                Status::from_header_map(rest.trailers().unwrap()).unwrap()
            }
        };
        assert_eq!(status.code(), Code::DeadlineExceeded, "{call}: {status:?}");
    }
    // A started stream of answers continues.
    let mut watching = HealthClient::new(client(&server).await);
    let mut watched = watching.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watched.message().await.unwrap().unwrap();
    tokio::time::timeout(limits.request_time * 4, watched.message()).await.unwrap_err();
}

/// Connections beyond the limit wait. Silent ones are closed, so later clients are served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_make_room() {
    let server = serve(ServerLimits { connections: 16, ..quick() }, TlsFiles::default()).await;
    let idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let answered = tokio::time::timeout(PATIENCE, async { ask(client(&server).await, "Little").await }).await;
    answered.unwrap().unwrap();
    drop(idle);
}

/// Writes a certificate and key signed by a CA to files in a folder.
fn identity(folder: &Path, ca: &CertifiedIssuer<'static, KeyPair>, name: &str) -> TlsFiles {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let file = |kind: &str, text: String| {
        let path = folder.join(format!("{name}.{kind}"));
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    TlsFiles {
        cert: file("pem", params.signed_by(&key, ca).unwrap().pem()),
        key: file("key", key.serialize_pem()),
        ca: None,
    }
}

/// Creates a CA.
fn issuer() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The HTTP/2 preface is not expected before the TLS handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_do_not_begin_tls_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(quick(), identity(folder.path(), &issuer(), "server")).await;
    let address = server.address;
    let kept_for = tokio::task::spawn_blocking(move || {
        // No byte, and the first bytes of a handshake.
        [&[][..], &[0x16, 3, 1, 2, 0]].map(|bytes| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(bytes).unwrap();
            kept(stream)
        })
    });
    let kept_for = kept_for.await.unwrap();
    assert!(kept_for.iter().all(|kept| *kept >= Duration::from_millis(200)), "{kept_for:?}");
}

/// In TLS 1.3 a client's handshake ends before the server has checked the client's certificate. Even so, the
/// client must learn of every refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_a_wrong_certificate_get_the_reason_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, other) = (issuer(), issuer());
    let trusted = folder.path().join("ca.pem");
    std::fs::write(&trusted, ca.pem()).unwrap();
    let trusting = |files: TlsFiles| TlsFiles { ca: Some(trusted.clone()), ..files };
    let server = serve(ServerLimits::default(), trusting(identity(folder.path(), &ca, "server"))).await;
    let attempt = async |tls: TlsFiles, scheme: &str| {
        let server = format!("{scheme}://{}", server.address);
        let connected = connect(&ClientOptions { server, tls, token: None, insecure: false }).await;
        match connected {
            Ok(client) => ask(client, "Little").await.map(drop).map_err(|status| status.message().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    };
    let (known, foreign) =
        (identity(folder.path(), &ca, "known"), identity(folder.path(), &other, "foreign"));
    for _ in 0..20 {
        attempt(trusting(known.clone()), "https").await.unwrap();
        let error = attempt(trusting(TlsFiles::default()), "https").await.unwrap_err();
        assert!(error.contains("asks clients for a certificate"), "{error}");
        let error = attempt(trusting(foreign.clone()), "https").await.unwrap_err();
        assert!(error.contains("foreign.pem") && error.contains("does not trust"), "{error}");
        let error = attempt(TlsFiles::default(), "http").await.unwrap_err();
        assert!(error.contains("write https:// instead of http://"), "{error}");
    }
}
