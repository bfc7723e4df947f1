//! Access to servers: certificates, tokens, and addresses that other machines can reach.

use crate::common;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use common::certificates::{Ca, token_file};
use common::serving::Server;
use common::{Finished, Place, Solved, command, events, exact2048, has_openssl};

const BOARD: &str = "2 0 / 0 2";
const TOKEN: &str = "a-token-which-is-hard-to-guess";

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

/// Requires that `serve` refuses options.
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
    let foreign = other.trust();
    fails(query(&server, std::slice::from_ref(&foreign)), &[&foreign[1], "--tls-ca"], "another CA");
    fails(query(&server, &[]), &["--tls-ca"], "no CA");
    let plain = server.url.replace("https", "http");
    // The server's alert may arrive or the closed connection alone, so the cause is not always known.
    exact2048(["query", "--server", &plain, BOARD]).exits(1).says(&["TLS", "https://"]);
    let log = server.stop().stderr;
    for words in ["protection=TLS", "peer=127.0.0.1:", events::CLIENT_WITHOUT_TLS] {
        assert!(log.contains(words), "{words:?} is missing from {log}");
    }
    // A certificate for another name is refused.
    let server = serve(&[ca.identity("192.0.2.1")]);
    let asked = query(&server, &[ca.trust()]);
    fails(asked, &["192.0.2.1", "subjectAltName"], "certificate for another name");
    assert!(server.stop().stderr.contains(events::CERTIFICATE_REFUSED));
    // A server without TLS refuses a client with TLS.
    let server = serve(&[]);
    let encrypted = server.url.replace("http", "https");
    let asked =
        exact2048([&["query", "--server", &encrypted, BOARD][..], &[&foreign[0], &foreign[1]]].concat());
    fails(asked, &["http://"], "server without TLS");
    assert!(server.stop().stderr.contains(events::CLIENT_WITH_TLS));
}

/// Requires that a failure names each fact once, has no texts from libraries, and equals a section of the snapshots.
#[track_caller]
fn fails(finished: Finished, facts: &[&str], section: &str) {
    let finished = finished.exits(1).prints(section);
    let text = &finished.stderr;
    for fact in facts {
        assert_eq!(text.matches(fact).count(), 1, "{fact:?} in {text}");
    }
    for raw in
        ["transport error", "UnknownIssuer", "Other(", "h2 ", "KeyMismatch", "invalid peer certificate"]
    {
        assert!(!text.contains(raw), "{raw:?} in {text}");
    }
}

/// The server warns of certificates that clients refuse, and clients explain the refusal.
#[test]
fn certificates_that_clients_refuse() {
    let ca = Ca::new();
    let expired = ca.identity_with("127.0.0.1", |params| {
        params.not_before = rcgen::date_time_ymd(2001, 2, 3);
        params.not_after = rcgen::date_time_ymd(2002, 3, 4);
    });
    let server = serve(&[expired]);
    fails(query(&server, &[ca.trust()]), &["2002-03-04"], "expired certificate");
    let log = server.stop().stderr;
    assert!(log.lines().any(|line| line.contains("WARN") && line.contains("2002-03-04")), "{log}");

    let of_ca = Ca::new();
    let own = of_ca.identity_with("127.0.0.1", |params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    });
    let server = serve(&[own]);
    fails(query(&server, &[of_ca.trust()]), &["docs/tls.md"], "certificate of a CA");
    let log = server.stop().stderr;
    assert!(log.lines().any(|line| line.contains("WARN") && line.contains("CA")), "{log}");

    let other = Ca::new();
    let for_clients = other.identity_with("127.0.0.1", |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    });
    let server = serve(&[for_clients]);
    fails(query(&server, &[other.trust()]), &[], "certificate for another purpose");
    assert!(server.stop().stderr.contains("extendedKeyUsage without serverAuth"));
}

#[test]
fn mutual_tls_asks_clients_for_a_certificate() {
    let (ca, other) = (Ca::new(), Ca::new());
    let server = serve(&[ca.identity("127.0.0.1"), ca.trust()]);
    query(&server, &[ca.trust(), ca.identity("client")]).exits(0);
    fails(query(&server, &[ca.trust()]), &["--tls-cert"], "no certificate of the client");
    let foreign = other.identity("client");
    fails(
        query(&server, &[ca.trust(), foreign.clone()]),
        &[&foreign[1]],
        "foreign certificate of the client",
    );
    let log = server.stop().stderr;
    for words in ["WARN", "peer=127.0.0.1:", events::NO_CERTIFICATE, events::CLIENT_CERTIFICATE_REFUSED] {
        assert!(log.contains(words), "{words:?} is missing from {log}");
    }
}

#[test]
fn a_key_of_another_certificate_is_refused_on_both_sides() {
    let ca = Ca::new();
    let (mut mixed, other) = (ca.identity("127.0.0.1"), ca.identity("other"));
    mixed[3].clone_from(&other[3]);
    let options: Vec<&str> = mixed.iter().map(String::as_str).collect();
    // The server ends before it listens.
    refused(&options, 1, &[&mixed[1], &mixed[3], "--tls-key"]);
    let server = serve(&[ca.identity("127.0.0.1"), ca.trust()]);
    let asked = query(&server, &[ca.trust(), mixed.clone()]);
    fails(asked, &[&mixed[1], &mixed[3]], "key of another certificate");
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
    query(&server, &[ca.trust()]).exits(1).says(&["Unauthenticated", "--token-file", "EXACT2048_TOKEN"]);
    let wrong = "another-token-which-is-wrong";
    query(&server, &[ca.trust(), token_file(&place, wrong)]).exits(1).says(&["Unauthenticated"]);
    let log = server.stop().stderr;
    assert!(!log.contains(TOKEN) && !log.contains(wrong), "{log}");
    for words in ["peer=127.0.0.1:", events::NO_TOKEN, events::WRONG_TOKEN] {
        assert!(log.contains(words), "{words:?} is missing from {log}");
    }

    // Both sides read the token from the environment and connect over loopback without TLS.
    let variables = [("EXACT2048_TOKEN", TOKEN)];
    let server = Server::start_with(&run(), &[], &variables);
    query(&server, &[]).exits(1).says(&["Unauthenticated"]);
    let mut asked = command(["query", "--server", &server.url, BOARD]);
    Finished::new(asked.envs(variables).output().unwrap()).exits(0);
    server.stop();
}

/// Process managers can request the health without a token.
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
        (options(&[]), "--tls-cert"),
        (options(&[&token]), "--tls-cert"),
        (options(&[&identity]), "--token-file"),
    ] {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        refused(&[&anywhere, &more[..]].concat(), 2, &["0.0.0.0", lacks, "--insecure"]);
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
fn invalid_files_and_tokens() {
    let (place, ca) = (Place::new(), Ca::new());
    let identity = ca.identity("127.0.0.1");
    let junk = place.join("junk");
    std::fs::write(&junk, "no PEM").unwrap();
    let junk = junk.to_str().unwrap();
    refused(&["--tls-cert", &identity[1]], 2, &["--tls-key"]);
    refused(&["--tls-key", &identity[3]], 2, &["--tls-cert"]);
    refused(&["--tls-ca", &ca.trust()[1]], 2, &["certificate"]);
    refused(&["--tls-cert", junk, "--tls-key", &identity[3]], 1, &[junk]);
    refused(&["--tls-cert", &identity[1], "--tls-key", junk], 1, &[junk]);
    refused(&[&identity[0], &identity[1], &identity[2], &identity[3], "--tls-ca", junk], 1, &[junk]);
    refused(&["--tls-cert", "/no/such/file", "--tls-key", junk], 1, &["/no/such/file"]);
    refused(&["--token-file", "/no/such/file"], 1, &["/no/such/file"]);
    let short = token_file(&place, "short");
    refused(&["--token-file", &short[1]], 2, &["token", "openssl rand"]);
}

/// Runs the commands of docs/tls.md unchanged.
#[test]
fn the_commands_of_the_guide_make_certificates_that_work() {
    if !has_openssl() {
        return;
    }
    let place = Place::new();
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tls.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks: Vec<&str> = guide.split("```").skip(1).step_by(2).collect();
    let block = |with: &str| {
        let block = blocks.iter().find(|block| block.contains(with)).unwrap();
        block.strip_prefix("sh\n").unwrap()
    };
    let run = |commands: &str| {
        let mut shell = Command::new("sh");
        let done = shell.args(["-euc", commands]).current_dir(place.join("")).output().unwrap();
        assert!(done.status.success(), "{commands}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    run(block("ca.key"));
    run(block("client.key"));
    let file = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let option = |option: &str, name: &str| vec![option.to_owned(), file(name)];
    let identity = |name: &str| {
        [option("--tls-cert", &format!("{name}.pem")), option("--tls-key", &format!("{name}.key"))].concat()
    };
    let trust = option("--tls-ca", "ca.pem");
    let server = serve(&[identity("server"), trust.clone()]);
    assert!(!server.log().contains("WARN"), "{}", server.log());
    query(&server, &[trust.clone(), identity("client")]).exits(0);
    // A worker is both a client and a server.
    query(&server, &[trust.clone(), identity("server")]).exits(0);
    let by_name = server.url.replace("127.0.0.1", "localhost");
    let asked = [trust.clone(), identity("client")].concat();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    exact2048([&["query", "--server", &by_name, BOARD], &asked[..]].concat()).exits(0);
    server.stop();
    // Runs the guide's command that prints the names of a certificate.
    assert!(run(block("-noout")).contains("X509v3 Subject Alternative Name"));

    // Makes a certificate of version 1, a common mistake.
    let of_version_1 =
        "openssl req -new -newkey rsa:2048 -nodes -keyout v1.key -out v1.csr -subj /CN=localhost 2>&1
        openssl x509 -req -in v1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out v1.pem 2>&1";
    run(of_version_1);
    refused(
        &["--tls-cert", &file("v1.pem"), "--tls-key", &file("v1.key")],
        1,
        &["version 1", &file("v1.pem"), "docs/tls.md"],
    );
}
