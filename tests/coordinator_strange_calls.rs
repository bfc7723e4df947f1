//! Calls with arbitrary contents. The coordinator answers or refuses them without harm.

use crate::common;

use common::bare_coordinator::Coordinator;
use common::script::Script;
use common::text;
use exact2048_cluster::wire::pull_message;
use exact2048_coordinator::cluster::PROTOCOL_VERSION;
use exact2048_net::status::field_of;
use exact2048_proto::v1;
use tonic::Code;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wrong_and_oversized_requests_do_no_harm() {
    let coordinator = Coordinator::new();
    let mut client = coordinator.client().await;
    let script = Script::new(&coordinator.server.url, 1).await;
    let good = pull_message(&script.pull);
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
    // A message above the size limit is refused before it is read.
    let reports =
        vec![v1::WorkerReport { report: Some(v1::worker_report::Report::Well(v1::WorkerWell {})) }; 2 << 20];
    let refused = client.pull(v1::PullRequest { reports, ..good.clone() }).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    client.pull(good).await.unwrap();
    coordinator.server.stop();
}

/// Sends many pulls with arbitrary contents at once. The coordinator does not panic (`stop` checks this), does not grow, and
/// still answers.
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

/// A reproducible sequence of numbers. Many are small or at the limits, because such numbers tend to reveal errors.
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

/// Clients' calls with arbitrary contents get an answer or an error with a reason, and make no files outside the store.
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
        // Does not use the lowest bits, because they are correlated.
        let mut among = |count: usize| (random() / 7 % count as u64) as usize;
        let job = names[among(names.len())].to_owned();
        // Boards with a quick estimate of their memory, and invalid boards.
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
            sectors: [0, 1, 2, u32::MAX][among(4)],
            until_layer: [None, Some(12), None, Some(u32::MAX)][among(4)],
            large_exponent: [0, 3, 0, u32::MAX][among(4)],
            huge_exponent: [0, 8, 0, u32::MAX][among(4)],
            kept: [None, Some((1, 1)), Some((4, u32::MAX))][among(3)]
                .map(|(period, width)| v1::KeptLayers { period, width }),
            best_moves: among(2) == 1,
            value_step: ["", "", "1/4", "0"][among(4)].to_owned(),
            picture: ["", "", "x./..", "x./.", "\u{fc}"][among(5)].to_owned(),
            loose_stones: [0, 0, 1, 3, u32::MAX][among(5)],
            position: [None, None, Some("2 0 / 0 2"), Some("2 2"), Some("\u{fc}")][among(5)]
                .map(str::to_owned),
        });
        let answer = match among(6) {
            0 | 1 => {
                let disk_bytes = [None, None, Some(0), Some(1 << 20), Some(u64::MAX)][among(5)];
                let [any_kept, any_values, any_precision] = [among(2) == 1, among(2) == 1, among(2) == 1];
                let any_value_step = among(2) == 1;
                let must_exist = among(4) == 0;
                let request = v1::SubmitRequest {
                    parameters,
                    name: job,
                    disk_bytes,
                    any_kept,
                    any_values,
                    any_precision,
                    any_value_step,
                    must_exist,
                };
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
    // Waiting jobs have no run yet.
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
                file: "x.shard".to_owned(),
            })),
        })),
        4 => Some(Report::Well(v1::WorkerWell {})),
        _ => None,
    };
    let reports = (0..random() % 3).map(|_| v1::WorkerReport { report: report(random) }).collect();
    v1::PullRequest {
        protocol_version: PROTOCOL_VERSION,
        worker: random() % 32,
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
