//! Tests that every kind of port handles the same hostile requests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use exact2048_net::client::{ClientOptions, connect};
use exact2048_net::gate::Allowed;
use exact2048_net::limits::ServerLimits;
use exact2048_net::monitoring;
use exact2048_net::pages::{RequestFailure, require_token};
use exact2048_net::serve::{Bound, ServerOptions};
use exact2048_net::services;
use exact2048_net::shutdown::Stop;
use exact2048_net::tls::TlsFiles;
use exact2048_net::token::{RequiredToken, Token};
use http::HeaderValue;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet, ServiceDescriptorProto};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Code, Request, Status};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tower::Service;

const PATIENCE: Duration = Duration::from_secs(30);

const TOKEN: &str = "0123456789abcdef";

/// Addresses of a server's ports.
struct Ports {
    grpc: SocketAddr,
    http: SocketAddr,
    stop: Stop,
}

impl Drop for Ports {
    fn drop(&mut self) {
        self.stop.begun.cancel();
        self.stop.over.cancel();
    }
}

fn allowed() -> Allowed {
    let origins = vec![HeaderValue::from_static("https://allowed.example")];
    Allowed { hosts: vec!["allowed.example".to_owned()], origins }
}

async fn serve(token: Option<&str>) -> Ports {
    exact2048_net::install_crypto();
    let token = RequiredToken::from(token.map(|token| Token::new(token, "a test").unwrap()));
    let (listen, limits, tls) = (([127, 0, 0, 1], 0).into(), ServerLimits::default(), TlsFiles::default());
    let (is_health_open, insecure, allowed) = (true, false, allowed());
    let options = ServerOptions { listen, tls, token, is_health_open, insecure, limits, allowed };
    let bound = Bound::new(options).await.unwrap();
    let beside = bound.bind_http(listen).await.unwrap();
    let ports = Ports { grpc: bound.options.listen, http: beside.options.listen, stop: Stop::default() };
    let (_, health) = tonic_health::server::health_reporter();
    let router = Router::new().route("/metrics", get(async || "an answer"));
    let nothing = async || RequestFailure::from(Status::not_found("there is nothing here"));
    let router = require_token(router, beside.check_token()).fallback(nothing);
    tokio::spawn(beside.serve_http(router, &["/metrics"], ports.stop.clone()));
    tokio::spawn(services::serve(bound, health, Nothing, descriptors(), ports.stop.clone()));
    ports
}

/// The server's only specific service.
#[derive(Clone)]
struct Nothing;

impl NamedService for Nothing {
    const NAME: &'static str = "test.Nothing";
}

impl Service<http::Request<Body>> for Nothing {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        ready(Ok(http::Response::new(Body::empty())))
    }
}

/// Describes that service and a service that this server does not have.
fn descriptors() -> &'static [u8] {
    let service = |name: &str| ServiceDescriptorProto { name: Some(name.to_owned()), ..Default::default() };
    let file = FileDescriptorProto {
        name: Some("test.proto".to_owned()),
        package: Some("test".to_owned()),
        service: vec![service("Nothing"), service("OfAnother")],
        ..Default::default()
    };
    Box::leak(FileDescriptorSet { file: vec![file] }.encode_to_vec().into_boxed_slice())
}

/// Sends an HTTP/1.1 request and returns the whole answer.
fn answer(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns status and body of the answer to a GET with these headers.
fn get_with(address: SocketAddr, path: &str, headers: &[String]) -> (u16, String) {
    let headers = headers.concat();
    let answer = answer(address, &format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Serves metrics on a separate port.
async fn serve_metrics(stop: &Stop) -> SocketAddr {
    let listen = ([127, 0, 0, 1], 0).into();
    monitoring::start(listen, allowed(), Arc::new(|| {}), stop.over.clone()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_http_ports_refuse_hostile_requests() {
    let open = serve(None).await;
    let ports = [("http", open.http), ("metrics", serve_metrics(&open.stop).await)];
    for (kind, address) in ports {
        let own = format!("host: {address}\r\n");
        let header = |text: &str| format!("{text}\r\n");
        let foreign = header("sec-fetch-site: cross-site");
        let link =
            foreign.clone() + &header("sec-fetch-mode: navigate") + &header("sec-fetch-dest: document");
        let of = |name: &str| header(&format!("host: {name}:{}", address.port()));
        let cases = [
            (200, vec![own.clone()]),
            (200, vec![of("localhost")]),
            (200, vec![of("allowed.example")]),
            (200, vec![own.clone(), header(&format!("origin: http://{address}"))]),
            (200, vec![own.clone(), header("origin: https://allowed.example"), foreign.clone()]),
            (200, vec![own.clone(), link.clone()]),
            (421, vec![]),
            (421, vec![of("evil.example")]),
            (421, vec![of("evil.example"), link]),
            (
                421,
                vec![of("evil.example"), header(&format!("origin: http://evil.example:{}", address.port()))],
            ),
            (421, vec![own.clone(), of("evil.example")]),
            (403, vec![own.clone(), header("origin: https://evil.example")]),
            (403, vec![own.clone(), header("origin: null")]),
            (403, vec![own.clone(), foreign]),
            (403, vec![own.clone(), header("sec-fetch-site: same-site")]),
            (431, vec![own.clone(), header("a: b").repeat(200)]),
            (400, vec![own.clone(), header("no header")]),
        ];
        for (expected, headers) in cases {
            let (status, body) = get_with(address, "/metrics", &headers);
            assert_eq!(status, expected, "{kind} {headers:?}: {body}");
            if status != 200 {
                assert_is_refusal(&body);
            }
        }
        for (expected, path) in [(404, "/nothing".to_owned()), (414, "/".to_owned() + &"x".repeat(70_000))] {
            let (status, body) = get_with(address, &path, std::slice::from_ref(&own));
            assert_eq!(status, expected, "{kind} {body}");
            assert_is_refusal(&body);
        }
        let posted = answer(address, &format!("POST /metrics HTTP/1.1\r\nconnection: close\r\n{own}\r\n"));
        assert!(posted.starts_with("HTTP/1.1 405"), "{kind} {posted}");
        assert_is_refusal(posted.split_once("\r\n\r\n").unwrap().1);
    }
}

#[track_caller]
fn assert_is_refusal(body: &str) {
    let json: serde_json::Value =
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body:?}"));
    assert!(json["error"]["code"].is_string() && json["error"]["message"].is_string(), "{json}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_scheme_is_case_insensitive_and_any_host_passes() {
    let ports = serve(Some(TOKEN)).await;
    for scheme in ["Bearer", "bearer", "BEARER "] {
        let headers = ["host: any.example\r\n".to_owned(), format!("authorization: {scheme} {TOKEN}\r\n")];
        assert_eq!(get_with(ports.http, "/metrics", &headers).0, 200, "{scheme}");
        let shown = ("authorization", format!("{scheme} {TOKEN}"));
        assert!(list(ports.grpc, &[shown]).await.is_ok(), "{scheme}");
    }
    for wrong in [TOKEN.to_owned(), format!("Basic {TOKEN}"), format!("Bearer{TOKEN}"), "Bearer".to_owned()] {
        let headers = ["host: localhost\r\n".to_owned(), format!("authorization: {wrong}\r\n")];
        let (status, body) = get_with(ports.http, "/metrics", &headers);
        assert_eq!(status, 401, "{wrong}");
        assert_is_refusal(&body);
        let refused = list(ports.grpc, &[("authorization", wrong)]).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
}

/// Lists the services that a gRPC port reports to a request with these headers.
async fn list(address: SocketAddr, headers: &[(&'static str, String)]) -> Result<Vec<String>, Status> {
    let options = ClientOptions {
        server: format!("http://{address}"),
        tls: TlsFiles::default(),
        token: None,
        insecure: false,
    };
    let mut client = ServerReflectionClient::new(connect(&options).await.unwrap());
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let asked = ServerReflectionRequest { host: String::new(), message_request };
    let mut request = Request::new(tokio_stream::iter([asked]));
    for (name, value) in headers {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    let answer = client.server_reflection_info(request).await?.into_inner().message().await?.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer.message_response.unwrap() else {
        panic!("no list of services");
    };
    let mut names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    Ok(names)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_ports_list_their_services_and_refuse_foreign_pages() {
    let ports = serve(None).await;
    let expected = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "test.Nothing",
    ];
    assert_eq!(list(ports.grpc, &[]).await.unwrap(), expected);
    let own = [("origin", format!("http://{}", ports.grpc))];
    assert_eq!(list(ports.grpc, &own).await.unwrap(), expected);
    for foreign in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        let refused = list(ports.grpc, &[(foreign.0, foreign.1.to_owned())]).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{foreign:?}");
    }
}
