//! The token of a cluster: who has it, where it is found, and what others get.

use crate::common;

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::access::{Connected, connect_with, token_of};
use common::certificates::{Ca, token_file};
use common::cluster::{Cluster, start_coordinator, start_worker, watch};
use common::http::{get, get_with};
use common::serving::Server;
use common::{Finished, Place, command, exact2048, text};
use exact2048_proto::v1::{GetRunRequest, GetRunResponse};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// Paths of all methods that the ports of a cluster may have, and of one that no port has.
fn methods() -> Vec<String> {
    let sets = [
        exact2048_proto::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let files = sets.into_iter().flat_map(|set| FileDescriptorSet::decode(set).unwrap().file);
    let of_file = |file: prost_types::FileDescriptorProto| {
        let package = file.package().to_owned();
        let services = file.service.into_iter();
        services.flat_map(move |service| {
            let name = format!("/{package}.{}", service.name());
            service.method.into_iter().map(move |method| format!("{name}/{}", method.name()))
        })
    };
    files.flat_map(of_file).chain(["/no.such.Service/Method".to_owned()]).collect()
}

/// Calls a method with an empty message.
async fn call(client: Connected, path: &str) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(client);
    client.ready().await.unwrap();
    let codec = ProstCodec::<GetRunRequest, GetRunResponse>::default();
    client.unary(Request::new(GetRunRequest {}), path.parse().unwrap(), codec).await.map(drop)
}

/// Calls every method at every port of a cluster, without the token and with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_of_every_port_requires_the_token() {
    let place = Place::new();
    let store = place.join("store");
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let coordinator = Server::launch(&[&args[..], &["--http", "127.0.0.1:0"]].concat(), &[]);
    let worker = start_worker(&coordinator.url, &place.join("cache"), &[]);
    let token = token_of(&coordinator.url);
    let methods = methods();
    for name in ["Coordinator/Pull", "Exchange/Push", "Health/Check", "ServerReflectionInfo"] {
        assert!(methods.iter().any(|method| method.contains(name)), "{methods:?}");
    }
    for port in [&coordinator, &worker] {
        let (stranger, member) =
            (connect_with(&port.url, None).await, connect_with(&port.url, Some(token.clone())).await);
        for method in &methods {
            let refused = call(stranger.clone(), method).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{method}: {refused:?}");
            assert!(refused.details().is_empty(), "{method}: {refused:?}");
            if let Err(status) = call(member.clone(), method).await {
                assert_ne!(status.code(), Code::Unauthenticated, "{method}: {status:?}");
            }
        }
    }
    // A browser needs the files of the page to ask for the token. They are the same in every installation.
    let page = coordinator.page.clone().unwrap();
    assert_eq!(get(&page, "").status, 200);
    for path in ["api/v1/status", "api/v1/jobs", "favicon.ico", "metrics"] {
        let refused = get(&page, path);
        assert_eq!(
            (refused.status, text(&refused.json()["error"]["code"])),
            (401, "UNAUTHENTICATED"),
            "{path}"
        );
    }
    let known = format!("authorization: Bearer {}", token.secret());
    assert_eq!(get_with(&page, "api/v1/status", &[&known]).status, 200);
    worker.stop();
    coordinator.stop();
}

/// A command of a user whose runtime folder is empty.
fn elsewhere(place: &Place, args: &[&str]) -> Command {
    let mut command = command(args);
    command.env("XDG_RUNTIME_DIR", place.join("elsewhere")).env_remove("EXACT2048_TOKEN");
    command
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_worker_takes_the_token_from_the_store() {
    let place = Place::new();
    let (store, cache) = (place.join("store"), place.join("cache"));
    std::fs::create_dir(&store).unwrap();
    let (store, cache) = (store.to_str().unwrap(), cache.to_str().unwrap());
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let url = format!("http://{free}");
    let elsewhere = place.join("elsewhere");
    let variables = [("XDG_RUNTIME_DIR", elsewhere.to_str().unwrap())];
    let args =
        ["worker", "--coordinator", &url, "--listen", "127.0.0.1:0", "--cache", cache, "--threads", "1"];
    let args = [&args[..], &["--memory", "1GiB"]].concat();
    // Without a store, nothing tells the worker the token.
    let mut alone = command(&args);
    alone.env_remove("EXACT2048_TOKEN").envs(variables);
    Finished::new(alone.output().unwrap()).exits(2).says(&[&url, "--store", "--token-file"]);
    std::thread::scope(|scope| {
        // The worker waits for the first start of the coordinator.
        let worker = scope.spawn(|| Server::launch(&[&args[..], &["--store", store]].concat(), &variables));
        std::thread::sleep(Duration::from_millis(500));
        let coordinator = start_coordinator(Path::new(store), &free);
        let worker = worker.join().unwrap();
        exact2048(["submit", "--coordinator", &url, "--board", "2x2"]).exits(0);
        watch(&url, "2x2");
        worker.stop().says(&["waiting for its coordinator"]);
        coordinator.stop();
    });
}

#[test]
fn clients_of_the_same_user_find_the_token_and_others_need_the_file() {
    let (place, runtime) = (Place::new(), Place::new());
    let store = place.join("store");
    let variables = [("XDG_RUNTIME_DIR", runtime.path().to_str().unwrap())];
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut coordinator = Server::launch(&args, &variables);
    let (url, folder) = (coordinator.url.clone(), runtime.join("exact2048"));
    let announced = folder.join(coordinator.address().to_string());
    let token = store.join("coordinator/token");
    assert_eq!([mode(&token), mode(&announced), mode(&folder)], [0o600, 0o600, 0o700]);
    assert_eq!(std::fs::read(&token).unwrap(), std::fs::read(&announced).unwrap());

    let status = ["status", "--coordinator", &url];
    let run = |mut command: Command| Finished::new(command.output().unwrap());
    let mut own = command(status);
    own.envs(variables);
    run(own).exits(0);
    let by_name = url.replace("127.0.0.1", "localhost");
    let mut own = command(["status", "--coordinator", &by_name]);
    own.envs(variables);
    run(own).exits(0);
    let refused = run(elsewhere(&place, &status)).exits(1);
    refused.says(&["Unauthenticated", "--token-file", "STORE/coordinator/token", "EXACT2048_TOKEN"]);
    run(elsewhere(&place, &[&status[..], &["--token-file", token.to_str().unwrap()]].concat())).exits(0);

    // A killed coordinator leaves the file. Another server at the address does not get the token.
    coordinator.kill();
    let impostor = TcpListener::bind(coordinator.address()).unwrap();
    let mut asking = command(status);
    let mut asking = asking.envs(variables).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let (mut stream, _) = impostor.accept().unwrap();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let shown = std::fs::read_to_string(&token).unwrap();
    let mut heard = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = std::io::Read::read_to_end(&mut stream, &mut heard);
    assert!(!String::from_utf8_lossy(&heard).contains(shown.trim()));
    drop((stream, impostor));
    asking.wait().unwrap();

    // The next coordinator has the same token, and takes the file away at its end.
    let address = announced.file_name().unwrap().to_str().unwrap().to_owned();
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", &address];
    let coordinator = Server::launch(&args, &variables);
    assert_eq!(std::fs::read_to_string(&announced).unwrap(), shown);
    coordinator.stop();
    assert!(!announced.exists());
}

/// A token of the operator replaces that of the store.
#[test]
fn a_given_token_is_the_token() {
    let place = Place::new();
    let given = token_file(&place, "a-token-of-the-operator");
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let store = place.join("store");
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let coordinator = Server::launch(&[&args[..], &given].concat(), &[]);
    assert!(!store.join("coordinator/token").exists());
    let status = ["status", "--coordinator", &coordinator.url];
    exact2048(status).exits(0);
    let refused = Finished::new(elsewhere(&place, &status).output().unwrap()).exits(1);
    refused.says(&["Unauthenticated"]);
    Finished::new(elsewhere(&place, &[&status[..], &given].concat()).output().unwrap()).exits(0);
    coordinator.stop();
}

/// Client certificates take the place of the token.
#[test]
fn certificates_need_no_token() {
    let (place, ca) = (Place::new(), Ca::new());
    let store = place.join("store");
    let options = [ca.identity("127.0.0.1"), ca.trust()].concat();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let coordinator = Server::launch(&[&args[..], &options].concat(), &[]);
    assert!(!store.join("coordinator/token").exists());
    let worker = start_worker(&coordinator.url, &place.join("cache"), &options);
    let client = |args: &[&str]| {
        let all = [&args[..1], &["--coordinator", &coordinator.url], &options, &args[1..]].concat();
        Finished::new(elsewhere(&place, &all).output().unwrap())
    };
    client(&["submit", "--board", "2x2"]).exits(0);
    client(&["status", "2x2", "--watch"]).exits(0);
    worker.stop();
    coordinator.stop();
}

/// `--insecure` allows connections without encryption, and none without the token.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_option_opens_a_cluster() {
    let place = Place::new();
    let store = place.join("store");
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "0.0.0.0:0"];
    exact2048(args).exits(2).says(&["0.0.0.0", "not encrypted", "--insecure"]);
    let coordinator = Server::launch(&[&args[..], &["--insecure"]].concat(), &[]);
    assert!(coordinator.log().contains("protection=a token"), "{}", coordinator.log());
    let url = format!("http://127.0.0.1:{}", coordinator.address().port());
    let refused = call(connect_with(&url, None).await, "/exact2048.v1.Coordinator/List").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    exact2048(["status", "--coordinator", &url]).exits(0);
    coordinator.stop();
}

/// Another user of the machine reads neither the token nor the announcement.
#[test]
fn another_user_gets_nothing() {
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let may = Command::new(as_nobody[0]).args(&as_nobody[1..]).arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|done| done.success()) {
        assert!(std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "only root can become another user");
        eprintln!("skipped: only root can become another user");
        return;
    }
    let (place, cluster) = (Place::new(), Cluster::new(0));
    // The other user may enter the folders around the store, and start the program.
    for path in [place.path(), cluster.store().parent().unwrap()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let program = place.join("exact2048");
    std::fs::copy(env!("CARGO_BIN_EXE_exact2048"), &program).unwrap();
    let url = &cluster.coordinator.url;
    let run = |more: &[&str]| {
        let mut other = Command::new(as_nobody[0]);
        other.args(&as_nobody[1..]).arg(&program).args(["status", "--coordinator", url]).args(more);
        Finished::new(other.env_remove("EXACT2048_TOKEN").stdin(Stdio::null()).output().unwrap())
    };
    let begun = Instant::now();
    run(&[]).exits(1).says(&["Unauthenticated"]);
    run(&["--token-file", &cluster.token_file()]).exits(1).says(&["denied", &cluster.token_file()]);
    assert!(begun.elapsed() < Duration::from_secs(20));
    cluster.client(&["status"]).exits(0);
}
