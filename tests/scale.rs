//! One coordinator with very many workers and jobs: real connections, workers that compute nothing.
//!
//! The tests of large sizes are ignored. `cargo test -p exact2048 scale:: -- --ignored --nocapture` prints their figures.
//! `docs/dev/performance.md` has these figures.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::Place;
use common::access::{Connected, connect_to};
use common::cluster::start_coordinator;
use common::script::open_port;
use common::serving::Server;
use exact2048_cluster::wire::{answer_of, pull_message};
use exact2048_coordinator::cluster::{EpochStage, Incarnation, PROTOCOL_VERSION, Pull, WorkerId};
use exact2048_proto::v1;
use exact2048_proto::v1::coordinator_client::CoordinatorClient;

type Client = CoordinatorClient<Connected>;

async fn client(server: &Server) -> Client {
    CoordinatorClient::new(connect_to(&server.url).await).max_decoding_message_size(64 << 20)
}

fn board(rows: u32, columns: u32) -> Option<v1::RunParameters> {
    Some(v1::RunParameters {
        rows,
        columns,
        objective: "score".to_owned(),
        spawn4_numerator: 1,
        spawn4_denominator: 10,
        precision_bits: 32,
        ..v1::RunParameters::default()
    })
}

async fn submit(mut client: Client, name: String) {
    client.submit(v1::SubmitRequest { parameters: board(2, 2), name, ..Default::default() }).await.unwrap();
}

/// A worker that pulls, accepts all work, and computes nothing.
async fn pull_for_ever(mut client: Client, number: u64, in_epoch: Arc<AtomicU64>, pulls: Arc<AtomicU64>) {
    let mut pull = Pull {
        version: PROTOCOL_VERSION,
        worker: WorkerId(number),
        incarnation: Incarnation(1),
        threads: 1,
        memory_bytes: 8 << 30,
        address: open_port().await,
        leaving: false,
        epoch: None,
        stage: EpochStage::Waiting,
        first_report: 0,
        reports: Vec::new(),
    };
    loop {
        let answer = client.pull(pull_message(&pull)).await.unwrap();
        let answer = answer_of(answer.into_inner()).unwrap();
        pulls.fetch_add(1, Ordering::Relaxed);
        if answer.withdrawn.is_some() {
            pull.epoch = None;
        }
        if let Some(assignment) = answer.share {
            if pull.epoch.is_none() {
                in_epoch.fetch_add(1, Ordering::Relaxed);
            }
            pull.epoch = Some(assignment.share.epoch);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Requires that all workers are members of one epoch, and that status calls of many watchers are fast.
async fn workers(workers: u64, watchers: u64) {
    let place = Place::new();
    let server = start_coordinator(&place.join("store"), "127.0.0.1:0");
    let (in_epoch, pulls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for number in 0..workers {
        let one = pull_for_ever(client(&server).await, number, Arc::clone(&in_epoch), Arc::clone(&pulls));
        tasks.push(tokio::spawn(one));
    }
    let begun = Instant::now();
    let mut asking = client(&server).await;
    asking
        .submit(v1::SubmitRequest { parameters: board(3, 3), name: "job".to_owned(), ..Default::default() })
        .await
        .unwrap();
    while in_epoch.load(Ordering::Relaxed) < workers {
        assert!(begun.elapsed() < Duration::from_secs(120), "{in_epoch:?} of {workers} are in the epoch");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{workers} workers are in one epoch after {:?}", begun.elapsed());
    for _ in 0..watchers {
        let mut watching = client(&server).await;
        tasks.push(tokio::spawn(async move {
            let mut news =
                watching.watch(v1::WatchRequest { job: "job".to_owned() }).await.unwrap().into_inner();
            while news.message().await.unwrap().is_some() {}
        }));
    }
    let (since, before) = (Instant::now(), pulls.load(Ordering::Relaxed));
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let asked = Instant::now();
        let job =
            asking.get(v1::GetRequest { job: "job".to_owned() }).await.unwrap().into_inner().job.unwrap();
        slowest = slowest.max(asked.elapsed());
        assert_eq!(u64::from(job.workers), workers);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let rate = (pulls.load(Ordering::Relaxed) - before) as f64 / since.elapsed().as_secs_f64();
    println!(
        "{rate:.0} pulls a second, {watchers} watch; Get takes {slowest:?} at most; {} bytes",
        server.rss_bytes()
    );
    let all = asking.list(v1::ListRequest {}).await.unwrap().into_inner();
    assert_eq!(all.workers.len() as u64, workers);
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    server.stop();
}

/// Requires that jobs are accepted, survive a restart, and are listed. Too many jobs are refused.
async fn jobs(jobs: usize) {
    let place = Place::new();
    let mut server = start_coordinator(&place.join("store"), "127.0.0.1:0");
    let asking = client(&server).await;
    let begun = Instant::now();
    for first in (0..jobs).step_by(50) {
        let names = (first..jobs.min(first + 50)).map(|number| format!("job-{number}"));
        let submits: Vec<_> = names.map(|name| tokio::spawn(submit(asking.clone(), name))).collect();
        for submit in submits {
            submit.await.unwrap();
        }
    }
    println!("{jobs} jobs are submitted after {:?}; {} bytes", begun.elapsed(), server.rss_bytes());
    server.kill();
    let begun = Instant::now();
    let server = start_coordinator(&place.join("store"), "127.0.0.1:0");
    println!("started again in {:?}", begun.elapsed());
    let mut asking = client(&server).await;
    for _ in 0..2 {
        let begun = Instant::now();
        let all = asking.list(v1::ListRequest {}).await.unwrap().into_inner();
        assert_eq!(all.jobs.len(), jobs);
        println!("listed in {:?}; {} bytes", begun.elapsed(), server.rss_bytes());
    }
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.process_id())).unwrap().count();
    assert!(files < 100, "{files} files for {jobs} jobs");
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_workers_and_a_hundred_jobs() {
    workers(100, 20).await;
    jobs(100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and 2,100 connections: see the head of this file"]
async fn a_thousand_workers() {
    workers(1000, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: see the head of this file"]
async fn ten_thousand_jobs() {
    jobs(10_000).await;
}
