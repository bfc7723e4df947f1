//! The coordinator as workers see it, and as those do who send it what they should not: real servers, generated
//! clients, workers that follow a script and compute nothing.

use crate::common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::certificates::{Ca, token_file};
use common::script::Script;
use common::serving::Server;
use common::{Finished, Place, exact2048, text, whole};
use exact2048_cluster::wire::{pull_message, refusal_of};
use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::{
    EpochId, Incarnation, LayerPart, PROTOCOL_VERSION, Refusal, WorkerFailure, WorkerReport,
};
use exact2048_net::status::field_of;
use exact2048_proto::v1;
use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use exact2048_solution::Run;
use exact2048_storage::{Attempt, Location, ShardWriter};
use serde_json::Value;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

type Client = CoordinatorClient<Channel>;

/// A coordinator that loses workers fast.
struct Coordinator {
    place: Place,
    server: Server,
}

impl Coordinator {
    #[track_caller]
    fn new() -> Self {
        Self::with(&[])
    }

    #[track_caller]
    fn with(options: &[&str]) -> Self {
        let place = Place::new();
        let server = Self::launch(&place.join("store"), options);
        Self { place, server }
    }

    #[track_caller]
    fn launch(store: &Path, options: &[&str]) -> Server {
        let store = store.to_str().unwrap();
        let args = ["coordinator", "--store", store, "--listen", "127.0.0.1:0", "--lease", "1"];
        Server::launch(&[&args, options].concat(), &[])
    }

    fn ask(&self, args: &[&str]) -> Finished {
        exact2048([&args[..1], &["--coordinator", &self.server.url], &args[1..]].concat())
    }

    #[track_caller]
    fn status(&self, job: &str) -> Value {
        self.ask(&["status", job, "--json"]).exits(0).json()
    }

    async fn client(&self) -> Client {
        let channel = Channel::from_shared(self.server.url.clone()).unwrap().connect().await.unwrap();
        CoordinatorClient::new(channel)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn workers_get_shares_and_lose_them_with_their_lease() {
    let coordinator = Coordinator::new();
    let (mut one, mut two) =
        (Script::new(&coordinator.server.url, 1).await, Script::new(&coordinator.server.url, 2).await);
    coordinator.ask(&["submit", "--board", "3x2"]).exits(0);
    let (first, second) = tokio::join!(
        one.until(|answer| answer.assignment.is_some()),
        two.until(|answer| answer.assignment.is_some()),
    );
    let (first, second) = (first.assignment.unwrap(), second.assignment.unwrap());
    assert_eq!(first, second, "a share is the same for all");
    assert_eq!(first.run_url, format!("file://{}/store/3x2", coordinator.place.path().display()));
    assert_eq!((first.share.job.0.as_str(), first.share.members.len()), ("3x2", 2));
    assert!(first.share.epoch > EpochId(0));
    let status = coordinator.status("3x2");
    assert_eq!((whole(&status["worker_count"]), whole(&status["retries"])), (2, 0));
    assert_eq!(status["workers"][0]["activity"], "working");
    // One goes silent: the other is told that the epoch is over, and gets the next one alone.
    let over = one.until(|answer| answer.withdrawn.is_some()).await;
    assert_eq!(over.withdrawn, Some(first.share.epoch));
    let next = match over.assignment {
        Some(next) => next,
        None => one.until(|answer| answer.assignment.is_some()).await.assignment.unwrap(),
    };
    assert!(next.share.epoch > first.share.epoch);
    assert_eq!(next.share.members.len(), 1);
    assert_eq!(whole(&coordinator.status("3x2")["retries"]), 1);
    // It comes back: what it was at is withdrawn.
    let back = two.pull().await.unwrap();
    assert_eq!(back.withdrawn, Some(first.share.epoch));
    coordinator.server.stop().says(&["a worker is lost", "an epoch began", "an epoch failed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pulls_without_news_are_held_and_news_is_told_at_once() {
    let coordinator = Coordinator::new();
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    worker.pull().await.unwrap();
    let begun = Instant::now();
    let pulls = 4;
    for _ in 0..pulls {
        worker.pull().await.unwrap();
    }
    let each = begun.elapsed() / pulls;
    assert!(each > Duration::from_millis(200), "{each:?} a pull");
    tokio::time::sleep(Duration::from_millis(300)).await;
    // No time for it to settle: the worker has been there for long.
    let submitted = coordinator.ask(&["submit", "--board", "2x2"]);
    let begun = Instant::now();
    submitted.exits(0);
    worker.until(|answer| answer.assignment.is_some()).await;
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    coordinator.server.stop();
}

/// All that a worker says on the way to a commit, and what becomes of words that make no commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reports_lead_to_orders_and_nonsense_is_refused() {
    let coordinator = Coordinator::new();
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    coordinator.ask(&["submit", "--board", "2x2", "--until-layer", "8"]).exits(0);
    let assignment = worker.until(|answer| answer.assignment.is_some()).await.assignment.unwrap();
    let epoch = assignment.share.epoch;
    for layer in [4, 6, 8] {
        let layer = exact2048_game::Layer(layer);
        let part = LayerPart {
            layer,
            totals: Totals { states: 2, afterstates: 1, fingerprint: 0, sealed_bytes: 10 },
            sent: 0,
            received: 0,
        };
        worker.pull.reports.push(WorkerReport::LayerDone { epoch, part });
    }
    let order = worker.until(|answer| answer.write.is_some()).await.write.unwrap();
    assert_eq!((order.epoch, order.first.0, order.last.0), (epoch, 4, 8));
    assert!(worker.pull.reports.is_empty(), "they are acknowledged");
    assert_eq!(whole(&coordinator.status("2x2-to8")["states"]), 6);
    let me = worker.pull.worker.0;
    let file = format!("reach-000004-000008-000001-{:x}.{me:x}.shard", epoch.0);
    let record = |file: &str, last: u32| {
        serde_json::json!({
            "file": file, "kind": "reach", "first_layer": 4, "last_layer": last, "bytes": 100, "frames": 1, "items": 3,
            "header_checksum": "0123456789abcdef",
        })
        .to_string()
    };
    for wrong in [
        "no JSON".to_owned(),
        "{}".to_owned(),
        record(&format!("../{file}"), 8),
        record("../../etc/passwd.shard", 8),
        record(&file, 10),
    ] {
        worker.pull.reports = vec![WorkerReport::ShardWritten { shard: order, record: wrong }];
        let refused = worker.pull().await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert_eq!(field_of(&refused).as_deref(), Some("reports[0].shard_written.record"));
    }
    let run = Run::open(Location::from(&*coordinator.place.join("store/2x2-to8"))).unwrap();
    let identity = run.catalog().identity(assignment.share.segment.phase, order.first, order.last);
    let attempt = Attempt { opening: assignment.opening.0, epoch: epoch.0, member: me };
    let written = ShardWriter::create_as(run.catalog().files(), identity, attempt).unwrap().finish().unwrap();
    let good = serde_json::json!(written).to_string();
    worker.pull.reports = vec![WorkerReport::ShardWritten { shard: order, record: good }];
    worker.until(|answer| answer.withdrawn == Some(epoch)).await;
    let status = coordinator.status("2x2-to8");
    assert_eq!((text(&status["state"]), whole(&status["states"])), ("done", 6));
    coordinator.server.stop().says(&["committed"]);
}

/// A record that is of another kind than the range can never be committed: the epoch has failed, and the next begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_can_never_be_committed_fails_its_epoch() {
    let coordinator = Coordinator::new();
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    coordinator.ask(&["submit", "--board", "2x2", "--until-layer", "4"]).exits(0);
    let epoch = worker.until(|answer| answer.assignment.is_some()).await.assignment.unwrap().share.epoch;
    let layer = exact2048_game::Layer(4);
    let part = LayerPart {
        layer,
        totals: Totals { states: 2, afterstates: 1, fingerprint: 0, sealed_bytes: 10 },
        sent: 0,
        received: 0,
    };
    worker.pull.reports.push(WorkerReport::LayerDone { epoch, part });
    let shard = worker.until(|answer| answer.write.is_some()).await.write.unwrap();
    let record = serde_json::json!({
        "file": format!("values-000004-000004-000001-{:x}.{:x}.shard", epoch.0, worker.pull.worker.0),
        "kind": "values", "first_layer": 4, "last_layer": 4,
        "bytes": 100, "frames": 1, "items": 3, "header_checksum": "0123456789abcdef",
    });
    worker.pull.reports.push(WorkerReport::ShardWritten { shard, record: record.to_string() });
    let over = worker.until(|answer| answer.withdrawn == Some(epoch)).await;
    let next = match over.assignment {
        Some(next) => next,
        None => worker.until(|answer| answer.assignment.is_some()).await.assignment.unwrap(),
    };
    assert!(next.share.epoch > epoch);
    assert_eq!(whole(&coordinator.status("2x2-to4")["retries"]), 1);
    coordinator.server.stop().says(&["cannot be committed", "it is of kind values, expected reach"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_job_that_fits_no_worker_is_refused_with_the_number() {
    let coordinator = Coordinator::new();
    // Where there are no workers yet, it is taken.
    coordinator.ask(&["submit", "--board", "3x3", "--name", "earlier"]).exits(0);
    coordinator.ask(&["cancel", "earlier"]).exits(0);
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    worker.pull.memory_bytes = 1 << 20;
    worker.pull().await.unwrap();
    let refused = coordinator.ask(&["submit", "--board", "3x3"]).exits(1);
    refused.says(&["the job fits no worker", "2 threads", "68.7 MiB", "1.0 MiB", "--memory"]);
    let all = coordinator.ask(&["status", "--json"]).exits(0).json();
    assert_eq!(all["jobs"].as_array().unwrap().len(), 1);
    assert!(!coordinator.place.join("store/3x3").exists(), "nothing was made for it");
    let refused = coordinator.ask(&["resume", "earlier"]).exits(1);
    refused.says(&["the job fits no worker", "2 threads", "68.7 MiB", "1.0 MiB", "--memory"]);
    let job = coordinator.ask(&["status", "earlier", "--json"]).exits(0).json();
    assert_eq!(job["state"], "cancelled");
    coordinator.server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn failures_of_workers_are_shown() {
    let coordinator = Coordinator::new();
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    let failure = WorkerFailure::DiskFull("no space in /scratch".to_owned());
    worker.pull.reports.push(WorkerReport::Failed { epoch: None, failure });
    worker.pull().await.unwrap();
    let all = coordinator.ask(&["status", "--json"]).exits(0).json();
    assert_eq!(all["workers"][0]["activity"], "unwell");
    assert!(text(&all["workers"][0]["reason"]).contains("/scratch"), "{all}");
    let for_people = coordinator.ask(&["status"]).exits(0);
    assert!(for_people.stdout.contains("cannot work: disk full: no space in /scratch"), "{for_people:?}");
    worker.pull.reports.push(WorkerReport::Well);
    let begun = Instant::now();
    let activity =
        || coordinator.ask(&["status", "--json"]).exits(0).json()["workers"][0]["activity"].clone();
    // It gets no work for a second yet.
    while activity() != "waiting" {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", activity());
        worker.pull().await.unwrap();
    }
    coordinator.server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_versions_and_old_processes_are_refused() {
    let coordinator = Coordinator::new();
    let mut worker = Script::new(&coordinator.server.url, 7).await;
    // Of whatever version, and whatever the rest of the message means there.
    for version in [0, PROTOCOL_VERSION + 1, u32::MAX] {
        let message = v1::PullRequest { protocol_version: version, ..v1::PullRequest::default() };
        let refused = worker.client.pull(message).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        let expected = Refusal::Version { expected: PROTOCOL_VERSION, got: version };
        assert_eq!(refusal_of(&refused), Some(expected));
        assert!(refused.message().contains(&version.to_string()), "{refused:?}");
    }
    worker.pull.incarnation = Incarnation(5);
    worker.pull().await.unwrap();
    worker.pull.incarnation = Incarnation(4);
    let refused = worker.pull().await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    let (expected, got) = (Incarnation(5), Incarnation(4));
    let old = Refusal::OldIncarnation { worker: worker.pull.worker, expected, got };
    assert_eq!(refusal_of(&refused), Some(old));
    worker.pull.incarnation = Incarnation(5);
    let epoch = EpochId(1 << 60);
    worker.pull.epoch = Some(epoch);
    let refused = worker.pull().await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    assert_eq!(refusal_of(&refused), Some(Refusal::Superseded { epoch }));
    coordinator.server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wrong_and_oversized_requests_do_no_harm() {
    let coordinator = Coordinator::new();
    let mut client = coordinator.client().await;
    let script = Script::new(&coordinator.server.url, 1).await;
    let good = pull_message(&script.pull, &script.secret);
    for (wrong, field) in [
        (v1::PullRequest { threads: 0, ..good.clone() }, "threads"),
        (v1::PullRequest { address: "x".repeat(1000), ..good.clone() }, "address"),
        (v1::PullRequest { first_report: u64::MAX, ..good.clone() }, "first_report"),
        (v1::PullRequest { reports: vec![v1::WorkerReport::default()], ..good.clone() }, "reports[0].report"),
    ] {
        let refused = client.pull(wrong).await.unwrap_err();
        assert_eq!((refused.code(), field_of(&refused).as_deref()), (Code::InvalidArgument, Some(field)));
    }
    let refused = client.submit(v1::SubmitRequest::default()).await.unwrap_err();
    assert_eq!(field_of(&refused).as_deref(), Some("parameters"));
    let parameters =
        Some(v1::RunParameters { objective: "x".repeat(1 << 20), rows: 2, columns: 2, ..Default::default() });
    let refused = client.submit(v1::SubmitRequest { parameters, ..Default::default() }).await.unwrap_err();
    assert_eq!(field_of(&refused).as_deref(), Some("objective"));
    let refused = client.get(v1::GetRequest { job: "x".repeat(1 << 20) }).await.unwrap_err();
    assert_eq!((refused.code(), field_of(&refused).as_deref()), (Code::InvalidArgument, Some("job")));
    assert!(refused.message().len() < 1000);
    // Larger than a message may be: refused before it is read.
    let reports =
        vec![v1::WorkerReport { report: Some(v1::worker_report::Report::Well(v1::WorkerWell {})) }; 2 << 20];
    let refused = client.pull(v1::PullRequest { reports, ..good.clone() }).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    client.pull(good).await.unwrap();
    coordinator.server.stop();
}

/// Pulls of any content, many at once: no panic (which `stop` looks for), no growth, and it still answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pulls_of_any_content_do_no_harm() {
    let mut coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "3x2"]).exits(0);
    let client = coordinator.client().await;
    let mut random = random_numbers();
    let mut before = 0;
    for round in 0..60 {
        let mut pulls = Vec::new();
        for _ in 0..50 {
            let pull = random_pull(&mut random);
            let mut client = client.clone();
            pulls.push(tokio::spawn(async move { client.pull(pull).await.map(drop) }));
        }
        for pull in pulls {
            let _ = pull.await.unwrap();
        }
        if round == 10 {
            before = coordinator.server.rss_bytes();
        }
    }
    let after = coordinator.server.rss_bytes();
    assert!(after < before + (32 << 20), "{before} bytes, then {after}");
    assert!(coordinator.server.runs());
    coordinator.ask(&["status"]).exits(0);
    coordinator.server.stop();
}

/// The same numbers each time, of which many are small or at the edges: those are the ones that hurt.
fn random_numbers() -> impl FnMut() -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state % 4 {
            0 => state >> 60,
            1 => u64::MAX - (state >> 61),
            2 => (1 << 32) + (state >> 61),
            _ => state,
        }
    }
}

/// What clients ask for, of any content: an answer or a refusal that says what is wrong, and nothing is made outside of
/// the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_of_any_content_do_no_harm() {
    let coordinator = Coordinator::new();
    let mut client = coordinator.client().await;
    let mut random = random_numbers();
    let names = [
        "",
        "a",
        "b",
        "c-1.2_3",
        "..",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "coordinator",
        "A",
        "a\0b",
        "\u{fc}",
    ];
    let mut before = 0;
    for round in 0..600 {
        // Not the lowest bits, which go in step.
        let mut among = |count: usize| (random() / 7 % count as u64) as usize;
        let job = names[among(names.len())].to_owned();
        // Boards whose memory is worked out at once, and those that are none.
        let side = |among: &mut dyn FnMut(usize) -> usize| [2, 3, 2, 1, 0, u32::MAX][among(6)];
        let parameters = Some(v1::RunParameters {
            rows: side(&mut among),
            columns: side(&mut among),
            objective: ["score", "reach:16", "score", "reach:7", "reach:", "\u{fc}"][among(6)].to_owned(),
            spawn4_numerator: [1, 1, 0, u32::MAX][among(4)],
            spawn4_denominator: [10, 10, 1, 0][among(4)],
            discount_numerator: [0, 0, 19, u32::MAX][among(4)],
            discount_denominator: [0, 0, 20, u32::MAX][among(4)],
            spawner: ["", "", "worst", "best"][among(4)].to_owned(),
            precision_bits: [32, 64, 32, 33][among(4)],
            until_layer: [None, Some(12), None, Some(u32::MAX)][among(4)],
            large_exponent: [0, 3, 0, u32::MAX][among(4)],
            huge_exponent: [0, 8, 0, u32::MAX][among(4)],
            kept: [None, Some((1, 1)), Some((4, u32::MAX))][among(3)]
                .map(|(period, width)| v1::KeptLayers { period, width }),
            best_moves: among(2) == 1,
        });
        let answer = match among(6) {
            0 | 1 => {
                let disk_bytes = [None, None, Some(0), Some(1 << 20), Some(u64::MAX)][among(5)];
                let (any_kept, must_exist) = (among(2) == 1, among(4) == 0);
                let request = v1::SubmitRequest { parameters, name: job, disk_bytes, any_kept, must_exist };
                client.submit(request).await.map(drop)
            }
            2 => client.get(v1::GetRequest { job }).await.map(drop),
            3 => client.cancel(v1::CancelRequest { job }).await.map(drop),
            4 => client.resume(v1::ResumeRequest { job }).await.map(drop),
            _ => client.watch(v1::WatchRequest { job }).await.map(drop),
        };
        if let Err(refused) = answer {
            let expected =
                [Code::InvalidArgument, Code::NotFound, Code::AlreadyExists, Code::FailedPrecondition];
            assert!(expected.contains(&refused.code()), "{refused}");
            assert!(!refused.message().is_empty(), "{refused}");
        }
        if round == 300 {
            before = coordinator.server.rss_bytes();
        }
    }
    let after = coordinator.server.rss_bytes();
    assert!(after < before + (32 << 20), "{before} bytes, then {after}");
    let jobs = coordinator.ask(&["status", "--json"]).exits(0).json();
    let made: Vec<&str> = jobs["jobs"].as_array().unwrap().iter().map(|job| text(&job["job"])).collect();
    assert!(made.len() > 1, "some of it is sound: {made:?}");
    let mut found: Vec<String> = std::fs::read_dir(coordinator.place.join("store"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "coordinator")
        .collect();
    let mut made: Vec<String> = made.into_iter().map(str::to_owned).collect();
    found.sort();
    made.sort();
    // Those that wait have no run yet.
    assert!(found.iter().all(|name| made.contains(name)), "{found:?} beside {made:?}");
    assert_eq!(std::fs::read_dir(coordinator.place.join("store").parent().unwrap()).unwrap().count(), 1);
    coordinator.server.stop();
}

fn random_pull(random: &mut impl FnMut() -> u64) -> v1::PullRequest {
    use v1::worker_failed::Failure as Failed;
    use v1::worker_report::Report;

    let shard = |random: &mut dyn FnMut() -> u64| v1::WriteShard {
        epoch: random(),
        first_layer: random() as u32,
        last_layer: random() as u32,
    };
    let report = |random: &mut dyn FnMut() -> u64| match random() % 6 {
        0 => Some(Report::LayerDone(v1::LayerDone {
            epoch: random(),
            layer: random() as u32,
            states: random(),
            afterstates: random() % (1 << 40),
            sealed_bytes: random() % (1 << 40),
            ..Default::default()
        })),
        1 => Some(Report::ShardWritten(v1::ShardWritten {
            shard: Some(shard(random)),
            record: "{}".to_owned(),
        })),
        2 => Some(Report::Failed(v1::WorkerFailed {
            epoch: Some(random()),
            failure: Some(Failed::Peer(random())),
        })),
        3 => Some(Report::Failed(v1::WorkerFailed {
            epoch: None,
            failure: Some(Failed::ShardLost(v1::ShardLost {
                job: "3x2".to_owned(),
                pass: (random() % 4) as i32,
                first_layer: random() as u32,
                last_layer: random() as u32,
                file: "x.shard".to_owned(),
            })),
        })),
        4 => Some(Report::Well(v1::WorkerWell {})),
        _ => None,
    };
    let reports = (0..random() % 3).map(|_| v1::WorkerReport { report: report(random) }).collect();
    v1::PullRequest {
        protocol_version: PROTOCOL_VERSION,
        secret: vec![(random() % 32) as u8; 16],
        incarnation: random(),
        threads: (random() % 5) as u32,
        memory_bytes: random(),
        address: format!("{}:1", "a".repeat((random() % 600) as usize)),
        leaving: random().is_multiple_of(2),
        epoch: (random().is_multiple_of(2)).then(&mut *random),
        stage: (random() % 5) as i32,
        first_report: random(),
        reports,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whoever_has_no_token_gets_nothing() {
    let place = Place::new();
    let ca = Ca::new();
    let token = token_file(&place, "a-token-that-nobody-guesses");
    let options =
        [ca.identity("127.0.0.1"), token.clone(), vec!["--log".to_owned(), "trace".to_owned()]].concat();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let coordinator = Coordinator::with(&options);
    assert!(coordinator.server.url.starts_with("https://"));
    let ask = |command: &str, options: &[Vec<String>]| {
        let options = options.concat();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        coordinator.ask(&[&[command], &options[..]].concat())
    };
    let board = vec!["--board".to_owned(), "2x2".to_owned()];
    ask("submit", &[ca.trust(), token.clone(), board.clone()]).exits(0);
    ask("status", &[ca.trust(), token.clone()]).exits(0);
    ask("submit", &[ca.trust(), board]).exits(1).says(&["no token"]);
    ask("status", &[ca.trust(), token_file(&place, "another-token-that-nobody-knows")]).exits(1);
    ask("status", &[Ca::new().trust(), token]).exits(1).says(&["cannot connect"]);
    ask("status", &[]).exits(1).says(&["cannot connect"]);
    let log = coordinator.server.stop().stderr;
    assert!(!log.contains("nobody"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_coordinator_that_stops_lets_go_of_everybody() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2"]).exits(0);
    let channel = Channel::from_shared(coordinator.server.url.clone()).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    for service in ["", "exact2048.v1.Coordinator"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        assert_eq!(health.check(request).await.unwrap().into_inner().status, 1, "{service}");
    }
    drop(health);
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    let mut watching = worker.client.clone();
    let mut watched = watching.watch(v1::WatchRequest::default()).await.unwrap().into_inner();
    watched.message().await.unwrap().unwrap();
    let pulling = tokio::spawn(async move {
        loop {
            if let Err(status) = worker.pull().await {
                return status;
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    coordinator.server.signal("TERM");
    let ended = loop {
        match watched.message().await {
            Ok(message) => assert!(message.is_some()),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(pulling.await.unwrap().code(), Code::Unavailable);
    let Coordinator { server, place: _place } = coordinator;
    server.end().exits(0);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// grpcurl works without files.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_service_describes_itself() {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

    let coordinator = Coordinator::new();
    let channel = Channel::from_shared(coordinator.server.url.clone()).unwrap().connect().await.unwrap();
    let mut reflection = ServerReflectionClient::new(channel);
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = ServerReflectionRequest { host: String::new(), message_request };
    let mut answers =
        reflection.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    let answer = format!("{:?}", answers.message().await.unwrap().unwrap());
    assert!(answer.contains("exact2048.v1.Coordinator"), "{answer}");
    drop((reflection, answers));
    coordinator.server.stop();
}

#[test]
fn what_is_printed_as_json_stays() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2"]).exits(0);
    let job = coordinator.status("2x2");
    for key in [
        "job",
        "state",
        "cancelling",
        "checking",
        "trouble",
        "board",
        "objective",
        "spawn4",
        "precision",
        "until_layer",
        "run",
        "phase",
        "layer",
        "first_layer",
        "last_layer",
        "states",
        "states_total",
        "states_per_second",
        "done",
        "eta_seconds",
        "job_eta_seconds",
        "bytes",
        "retries",
        "epochs",
        "worker_count",
        "workers",
    ] {
        assert!(job.get(key).is_some(), "{key} is missing from {job}");
    }
    coordinator.server.stop();
}
