//! Who is let in, and by what: certificates, tokens, and addresses that others can reach.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::path::PathBuf;
use std::sync::OnceLock;

use common::certificates::{Ca, token_file};
use common::serving::Server;
use common::{Finished, Place, Solved, command, exact2048};

const BOARD: &str = "2 0 / 0 2";
const TOKEN: &str = "a-token-that-nobody-guesses";

fn run() -> PathBuf {
    static RUN: OnceLock<Solved> = OnceLock::new();
    RUN.get_or_init(|| Solved::new("--board 2x2")).run()
}

fn serve(options: &[Vec<String>]) -> Server {
    let options = options.concat();
    Server::start(&run(), &options.iter().map(String::as_str).collect::<Vec<_>>())
}

fn query(server: &Server, options: &[Vec<String>]) -> Finished {
    let options = options.concat();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    exact2048([&["query", "--server", &server.url, "--json", BOARD], &options[..]].concat())
}

/// `serve` with options that it refuses.
#[track_caller]
fn refused(options: &[&str], code: i32, words: &[&str]) {
    let run = run();
    let mut command = command([&["serve", "--run", run.to_str().unwrap()], options].concat());
    command.env_remove("EXACT2048_TOKEN");
    let finished = Finished::new(command.output().unwrap()).exits(code).says(words);
    assert!(finished.stdout.is_empty(), "{finished:?}");
}

#[test]
fn tls_encrypts_and_names_the_server() {
    let (ca, other) = (Ca::new(), Ca::new());
    let server = serve(&[ca.identity("127.0.0.1")]);
    assert!(server.url.starts_with("https://"));
    query(&server, &[ca.trust()]).exits(0);
    query(&server, &[other.trust()]).exits(1).says(&["cannot connect"]);
    query(&server, &[]).exits(1).says(&["cannot connect"]);
    let plain = server.url.replace("https", "http");
    exact2048(["query", "--server", &plain, BOARD]).exits(1);
    server.stop();
    // A certificate for another name is not taken.
    let server = serve(&[ca.identity("192.0.2.1")]);
    query(&server, &[ca.trust()]).exits(1).says(&["cannot connect"]);
    server.stop();
}

#[test]
fn mutual_tls_asks_clients_for_a_certificate() {
    let (ca, other) = (Ca::new(), Ca::new());
    let server = serve(&[ca.identity("127.0.0.1"), ca.trust()]);
    query(&server, &[ca.trust(), ca.identity("client")]).exits(0);
    query(&server, &[ca.trust()]).exits(1);
    query(&server, &[ca.trust(), other.identity("client")]).exits(1);
    server.stop();
}

#[test]
fn a_token_is_asked_for_and_not_logged() {
    let place = Place::new();
    let ca = Ca::new();
    let server = serve(&[
        ca.identity("127.0.0.1"),
        token_file(&place, TOKEN),
        vec!["--log".to_owned(), "trace".to_owned()],
    ]);
    query(&server, &[ca.trust(), token_file(&place, TOKEN)]).exits(0);
    query(&server, &[ca.trust()]).exits(1).says(&[
        "Unauthenticated",
        "no token",
        "--token-file",
        "EXACT2048_TOKEN",
    ]);
    let wrong = "another-token-that-nobody-knows";
    query(&server, &[ca.trust(), token_file(&place, wrong)]).exits(1).says(&["Unauthenticated"]);
    let log = server.stop().stderr;
    assert!(!log.contains(TOKEN) && !log.contains(wrong), "{log}");

    // From the environment, on both sides, and over loopback without TLS.
    let variables = [("EXACT2048_TOKEN", TOKEN)];
    let server = Server::start_with(&run(), &[], &variables);
    query(&server, &[]).exits(1).says(&["Unauthenticated"]);
    let mut asked = command(["query", "--server", &server.url, BOARD]);
    Finished::new(asked.envs(variables).output().unwrap()).exits(0);
    server.stop();
}

/// Whoever starts and stops servers asks for health, and has no token.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_needs_no_token_and_reflection_does() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_reflection::pb::v1::ServerReflectionRequest;

    let server = Server::start_with(&run(), &[], &[("EXACT2048_TOKEN", TOKEN)]);
    let channel =
        tonic::transport::Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    health.check(HealthCheckRequest { service: String::new() }).await.unwrap();
    let mut reflection =
        tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(channel);
    let nothing = tokio_stream::iter([ServerReflectionRequest::default()]);
    let status = reflection.server_reflection_info(nothing).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
    drop((health, reflection));
    server.stop();
}

#[test]
fn off_loopback_protection_is_asked_for() {
    let (place, ca) = (Place::new(), Ca::new());
    let (identity, trust, token) = (ca.identity("127.0.0.1"), ca.trust(), token_file(&place, TOKEN));
    let options = |of: &[&Vec<String>]| of.iter().flat_map(|&of| of.clone()).collect::<Vec<String>>();
    let anywhere = ["--listen", "0.0.0.0:0"];
    for (more, lacks) in [
        (options(&[]), "not encrypted"),
        (options(&[&token]), "not encrypted"),
        (options(&[&identity]), "anyone could ask"),
    ] {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        refused(&[&anywhere, &more[..]].concat(), 2, &["refusing to listen", lacks, "--insecure"]);
    }
    for more in [options(&[&identity, &token]), options(&[&identity, &trust]), vec!["--insecure".to_owned()]]
    {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let options = [&["--grace", "0"], &more[..]].concat();
        let server = Server::start_anywhere(&run(), &options);
        assert!(server.url.contains("0.0.0.0"));
        server.stop();
    }
}

#[test]
fn files_and_tokens_that_are_none() {
    let (place, ca) = (Place::new(), Ca::new());
    let identity = ca.identity("127.0.0.1");
    let junk = place.join("junk");
    std::fs::write(&junk, "no PEM").unwrap();
    let junk = junk.to_str().unwrap();
    refused(&["--tls-cert", &identity[1]], 2, &["--tls-key"]);
    refused(&["--tls-key", &identity[3]], 2, &["--tls-cert"]);
    refused(&["--tls-ca", &ca.trust()[1]], 2, &["certificate"]);
    refused(&["--tls-cert", junk, "--tls-key", &identity[3]], 1, &[junk, "certificate"]);
    refused(&["--tls-cert", &identity[1], "--tls-key", junk], 1, &[junk, "private key"]);
    refused(&[&identity[0], &identity[1], &identity[2], &identity[3], "--tls-ca", junk], 1, &[junk]);
    refused(&["--tls-cert", "/no/such/file", "--tls-key", junk], 1, &["/no/such/file"]);
    refused(&["--token-file", "/no/such/file"], 1, &["/no/such/file"]);
    let short = token_file(&place, "short");
    refused(&["--token-file", &short[1]], 2, &["token", "openssl rand"]);
}
