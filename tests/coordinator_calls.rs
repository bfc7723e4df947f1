//! The coordinator from the view of workers: real servers, generated clients, and scripted workers that compute nothing.

use crate::common;

use std::time::{Duration, Instant};

use common::access::connect_to;
use common::bare_coordinator::Coordinator;
use common::certificates::{Ca, token_file};
use common::script::Script;
use common::{Place, events, text, whole};
use exact2048_cluster::wire::refusal_of;
use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::{
    EpochId, Incarnation, LayerPart, PROTOCOL_VERSION, Refusal, WorkerFailure, WorkerReport,
};
use exact2048_net::status::field_of;
use exact2048_proto::v1;
use exact2048_solution::Run;
use exact2048_storage::{Attempt, Location, ShardWriter};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn workers_get_shares_and_lose_them_with_their_lease() {
    let coordinator = Coordinator::new();
    let (mut one, mut two) =
        (Script::new(&coordinator.server.url, 1).await, Script::new(&coordinator.server.url, 2).await);
    coordinator.ask(&["submit", "--board", "3x2"]).exits(0);
    let (first, second) =
        tokio::join!(one.until(|answer| answer.share.is_some()), two.until(|answer| answer.share.is_some()));
    let (first, second) = (first.share.unwrap(), second.share.unwrap());
    assert_eq!(first, second, "a share is the same for all");
    assert_eq!(first.run_url, format!("file://{}/store/3x2", coordinator.place.path().display()));
    assert_eq!((first.share.job.0.as_str(), first.share.members.len()), ("3x2", 2));
    assert!(first.share.epoch > EpochId(0));
    let status = coordinator.status("3x2");
    assert_eq!((whole(&status["worker_count"]), whole(&status["retries"])), (2, 0));
    assert_eq!(status["workers"][0]["activity"], "working");
    // One worker falls silent. The other worker learns that the epoch is over, and gets the next epoch alone.
    let over = one.until(|answer| answer.withdrawn.is_some()).await;
    assert_eq!(over.withdrawn, Some(first.share.epoch));
    let next = match over.share {
        Some(next) => next,
        None => one.until(|answer| answer.share.is_some()).await.share.unwrap(),
    };
    assert!(next.share.epoch > first.share.epoch);
    assert_eq!(next.share.members.len(), 1);
    assert_eq!(whole(&coordinator.status("3x2")["retries"]), 1);
    // The silent worker returns, and the coordinator withdraws its epoch.
    let back = two.pull().await.unwrap();
    assert_eq!(back.withdrawn, Some(first.share.epoch));
    coordinator.server.stop().says(&[events::WORKER_LOST, events::EPOCH_BEGAN, events::EPOCH_FAILED]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pulls_wait_for_news_and_get_it_at_once() {
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
    // The worker joined long ago, so the coordinator assigns the job without a delay.
    let submitted = coordinator.ask(&["submit", "--board", "2x2"]);
    let begun = Instant::now();
    submitted.exits(0);
    worker.until(|answer| answer.share.is_some()).await;
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    coordinator.server.stop();
}

/// All reports of a worker up to a commit, and the answers to reports that make no commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reports_lead_to_orders_and_nonsense_is_refused() {
    let coordinator = Coordinator::new();
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    coordinator.ask(&["submit", "--board", "2x2", "--until-layer", "8"]).exits(0);
    let assignment = worker.until(|answer| answer.share.is_some()).await.share.unwrap();
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
        serde_json::json!({ "shard": {
            "file": file, "kind": "reach", "first_layer": 4, "last_layer": last, "bytes": 100, "frames": 1, "items": 3,
            "header_checksum": "0123456789abcdef",
        } })
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
    let good = serde_json::json!({ "shard": written }).to_string();
    worker.pull.reports = vec![WorkerReport::ShardWritten { shard: order, record: good }];
    worker.until(|answer| answer.withdrawn == Some(epoch)).await;
    let status = coordinator.status("2x2-to8");
    assert_eq!((text(&status["state"]), whole(&status["states"])), ("done", 6));
    coordinator.server.stop().says(&[events::COMMITTED]);
}

/// A record of another kind than its range can never be committed. So the epoch fails, and the next epoch begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_record_of_another_kind_fails_its_epoch() {
    let coordinator = Coordinator::new();
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    coordinator.ask(&["submit", "--board", "2x2", "--until-layer", "4"]).exits(0);
    let epoch = worker.until(|answer| answer.share.is_some()).await.share.unwrap().share.epoch;
    let layer = exact2048_game::Layer(4);
    let part = LayerPart {
        layer,
        totals: Totals { states: 2, afterstates: 1, fingerprint: 0, sealed_bytes: 10 },
        sent: 0,
        received: 0,
    };
    worker.pull.reports.push(WorkerReport::LayerDone { epoch, part });
    let shard = worker.until(|answer| answer.write.is_some()).await.write.unwrap();
    let record = serde_json::json!({ "shard": {
        "file": format!("values-000004-000004-000001-{:x}.{:x}.shard", epoch.0, worker.pull.worker.0),
        "kind": "values", "first_layer": 4, "last_layer": 4,
        "bytes": 100, "frames": 1, "items": 3, "header_checksum": "0123456789abcdef",
    } });
    worker.pull.reports.push(WorkerReport::ShardWritten { shard, record: record.to_string() });
    let over = worker.until(|answer| answer.withdrawn == Some(epoch)).await;
    let next = match over.share {
        Some(next) => next,
        None => worker.until(|answer| answer.share.is_some()).await.share.unwrap(),
    };
    assert!(next.share.epoch > epoch);
    assert_eq!(whole(&coordinator.status("2x2-to4")["retries"]), 1);
    coordinator.server.stop().says(&[events::NOT_COMMITTED, "values", "reach"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_job_that_fits_no_worker_is_refused_with_the_number() {
    let coordinator = Coordinator::new();
    // Without workers, the coordinator accepts the job.
    coordinator.ask(&["submit", "--board", "3x3", "--name", "earlier"]).exits(0);
    coordinator.ask(&["cancel", "earlier"]).exits(0);
    let mut worker = Script::new(&coordinator.server.url, 1).await;
    worker.pull.memory_bytes = 1 << 20;
    worker.pull().await.unwrap();
    let refused = coordinator.ask(&["submit", "--board", "3x3"]).exits(1);
    refused.says(&["2 threads", "68.7 MiB", "1.0 MiB", "--memory"]);
    let all = coordinator.ask(&["status", "--json"]).exits(0).json();
    assert_eq!(all["jobs"].as_array().unwrap().len(), 1);
    assert!(!coordinator.place.join("store/3x3").exists(), "nothing was made for it");
    let refused = coordinator.ask(&["resume", "earlier"]).exits(1);
    refused.says(&["2 threads", "68.7 MiB", "1.0 MiB", "--memory"]);
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
    assert!(for_people.stdout.contains("no space in /scratch"), "{for_people:?}");
    worker.pull.reports.push(WorkerReport::Well);
    let begun = Instant::now();
    let activity =
        || coordinator.ask(&["status", "--json"]).exits(0).json()["workers"][0]["activity"].clone();
    // After this report, the worker still gets no work for a second.
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
    // Any other version is refused, with any contents of the message.
    for version in [0, PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1, u32::MAX] {
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
async fn calls_with_a_wrong_token_are_refused() {
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
    ask("submit", &[ca.trust(), token.clone(), board]).exits(0);
    // The user that runs the coordinator needs no option for the token.
    ask("status", &[ca.trust()]).exits(0);
    let wrong = token_file(&place, "another-token-which-is-wrong");
    ask("status", &[ca.trust(), wrong]).exits(1).says(&["Unauthenticated", "--token-file"]);
    ask("status", &[Ca::new().trust(), token]).exits(1).says(&["--tls-ca"]);
    ask("status", &[]).exits(1).says(&["--tls-ca"]);
    let log = coordinator.server.stop().stderr;
    assert!(!log.contains("which-is-wrong"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopping_coordinator_answers_all_workers() {
    let coordinator = Coordinator::new();
    coordinator.ask(&["submit", "--board", "2x2"]).exits(0);
    let mut health = HealthClient::new(connect_to(&coordinator.server.url).await);
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
    let mut reflection = ServerReflectionClient::new(connect_to(&coordinator.server.url).await);
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = ServerReflectionRequest { host: String::new(), message_request };
    let mut answers =
        reflection.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    let answer = format!("{:?}", answers.message().await.unwrap().unwrap());
    assert!(answer.contains("exact2048.v1.Coordinator"), "{answer}");
    assert!(!answer.contains("exact2048.v1.Query") && !answer.contains("exact2048.v1.Exchange"), "{answer}");
    drop((reflection, answers));
    coordinator.server.stop();
}

#[test]
fn fields_of_json_stay() {
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
