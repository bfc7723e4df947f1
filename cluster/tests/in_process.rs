//! Tests of the smallest cluster: a coordinator and workers in one process, connected by real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exact2048_cluster::client::open;
use exact2048_cluster::coordinator::{self, Shell};
use exact2048_cluster::worker::{self, WorkerOptions};
use exact2048_coordinator::cluster::ClusterConfig;
use exact2048_game::{KeptLayers, Params};
use exact2048_net::client::ClientOptions;
use exact2048_net::gate::Allowed;
use exact2048_net::limits::ServerLimits;
use exact2048_net::serve::{Bound, ServerOptions};
use exact2048_net::shutdown::Stop;
use exact2048_net::tls::TlsFiles;
use exact2048_net::token::RequiredToken;
use exact2048_proto::v1::{GetRequest, JobState, SubmitRequest};
use exact2048_solution::Run;
use exact2048_storage::{Location, StoreSettings};
use exact2048_worker::{Heap, Tuning};

async fn bind() -> Bound {
    let options = ServerOptions {
        listen: ([127, 0, 0, 1], 0).into(),
        tls: TlsFiles::default(),
        token: RequiredToken::None,
        is_health_open: false,
        insecure: false,
        limits: ServerLimits::default(),
        allowed: Allowed::default(),
    };
    Bound::new(options).await.unwrap()
}

fn client(server: &str) -> ClientOptions {
    ClientOptions { server: server.to_owned(), tls: TlsFiles::default(), token: None, insecure: false }
}

fn start_worker(coordinator: &str, bound: Bound, folder: &Path, stop: &Stop) -> tokio::task::JoinHandle<()> {
    let options = WorkerOptions {
        client: client(coordinator),
        advertise: bound.url(),
        threads: 1,
        memory_bytes: 1 << 30,
        tuning: Tuning {
            limit_bytes: 1 << 30,
            heap: Heap::of(|| 0),
            dense_rows: Tuning::DENSE_ROWS,
            piece_bytes: Tuning::PIECE_BYTES,
        },
        store: StoreSettings::default(),
        folder: folder.to_path_buf(),
    };
    let stop = stop.clone();
    tokio::spawn(async move {
        worker::run(bound, options, stop).await.unwrap();
    })
}

async fn solve(board: &str, kept: KeptLayers, workers: usize) -> u128 {
    let place = tempfile::tempdir().unwrap();
    let store = place.path().join("store");
    std::fs::create_dir(&store).unwrap();
    let stop = Stop::default();
    let location = Location::parse(store.as_os_str(), &StoreSettings::default()).unwrap();
    let begun = stop.begun.clone();
    let opened = tokio::task::spawn_blocking(|| Shell::open(location, ClusterConfig::default(), begun));
    let shell = opened.await.unwrap().unwrap();
    let bound = bind().await;
    let url = bound.url();
    let server = tokio::spawn(coordinator::serve(
        bound,
        None,
        Arc::clone(&shell),
        ServerLimits::default(),
        stop.clone(),
    ));
    let mut tasks = Vec::new();
    for _ in 0..workers {
        tasks.push(start_worker(&url, bind().await, &place.path().join("cache"), &stop));
    }
    let params = Params::usual(board, "score").kept(kept).build().unwrap();
    let mut client = open(&client(&url)).await.unwrap();
    let (parameters, name) = (Some((&params).into()), "job".to_owned());
    client.submit(SubmitRequest { parameters, name, ..SubmitRequest::default() }).await.unwrap();
    loop {
        let answer = client.get(GetRequest { job: "job".to_owned() }).await.unwrap();
        let status = answer.into_inner().job.unwrap();
        match status.state() {
            JobState::Done => break,
            JobState::Failed => panic!("{}", status.failure),
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    stop.begun.cancel();
    for task in tasks {
        task.await.unwrap();
    }
    stop.over.cancel();
    server.await.unwrap().unwrap();
    Run::open(&store.join("job")).unwrap().fingerprint().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_solve_a_board_together() {
    let kept = KeptLayers::default();
    let alone = solve("3x2", kept, 1).await;
    assert_eq!(format!("{alone:032x}"), "d824fa6f0a7d0cde64a79087a89cab66");
    for workers in 2..=3 {
        assert_eq!(solve("3x2", kept, workers).await, alone, "{workers} workers");
    }
    for kept in [KeptLayers::ALL, KeptLayers::new(16, 2).unwrap(), KeptLayers::STARTS] {
        assert_eq!(solve("3x2", kept, 2).await, alone, "{kept} layers kept");
    }
}
