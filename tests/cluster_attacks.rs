//! Clusters with faulty or hostile members: real processes that get false messages.

use crate::common;

use std::time::{Duration, Instant};

use common::access::{connect_with, token_of};
use common::cluster::{Cluster, start_coordinator, start_worker};
use common::script::Script;
use common::serving::Server;
use common::snapshots::assert_section;
use common::{Place, Solved, events, exact2048, on_run, text, whole};
use exact2048_cluster::wire::Assignment;
use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::{
    EpochId, LayerPart, PROTOCOL_VERSION, WorkerFailure, WorkerId, WorkerReport, WriteShard,
};
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::{Lane, Layer};
use exact2048_net::token::Token;
use exact2048_proto::v1::exchange_client::ExchangeClient;
use exact2048_proto::v1::push_request::Content;
use exact2048_proto::v1::{PushBlock, PushHello, PushRequest};
use exact2048_solution::{Phase, Run};
use exact2048_storage::{Attempt, Location, ShardWriter};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status};

/// The number of the first epoch of a store's first coordinator. An attacker can guess it.
const FIRST_EPOCH: EpochId = EpochId::first_of(1);

/// Timeout of each step. It only ends tests that hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A block without entries, with the right checksum.
fn empty_block(layer: Layer, lane: Lane) -> Content {
    let checksum = xxhash_rust::xxh3::xxh3_64(&[]);
    Content::Block(PushBlock {
        layer: layer.0,
        lane: lane.code(),
        bytes: 0,
        first: Vec::new().into(),
        checksum,
    })
}

fn hello(epoch: EpochId, worker: u64, secret: &[u8]) -> Content {
    let (protocol_version, secret) = (PROTOCOL_VERSION, secret.to_vec());
    Content::Hello(PushHello { protocol_version, epoch: epoch.0, worker, secret })
}

/// Sends these messages in a stream, and returns the answer.
async fn push(url: &str, token: Token, contents: Vec<Content>) -> Result<u64, Status> {
    let mut client = ExchangeClient::new(connect_with(url, Some(token)).await);
    let messages: Vec<_> =
        contents.into_iter().map(|content| PushRequest { content: Some(content) }).collect();
    Ok(client.push(tokio_stream::iter(messages)).await?.into_inner().blocks)
}

/// The attacker has the token, and knows workers, addresses and epochs. It sends blocks before the epoch begins, so they would arrive first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_members_put_blocks_into_an_epoch() {
    let cluster = Cluster::new(2);
    let begun = Instant::now();
    let workers = loop {
        let all = cluster.client(&["status", "--json"]).exits(0).json();
        let workers = all["workers"].as_array().unwrap().clone();
        if workers.len() == 2 {
            break workers;
        }
        assert!(begun.elapsed() < PATIENCE, "{all}");
    };
    let alone = Solved::new("--board 3x2");
    let params = Run::open(Location::from(&*alone.run())).unwrap().params().clone();
    let blocks: Vec<Content> = lanes(&params)
        .into_iter()
        .flat_map(|lane| {
            let (first, last) = layer_range(&params, lane);
            (first.0..=last.0).step_by(2).map(move |layer| empty_block(Layer(layer), lane))
        })
        .collect();
    let id = |worker: &Value| u64::from_str_radix(text(&worker["worker"]), 16).unwrap();
    let mut forgers = Vec::new();
    for (victim, other) in [(0, 1), (1, 0)] {
        for epoch in [FIRST_EPOCH, EpochId(FIRST_EPOCH.0 + 1)] {
            for secret in [vec![0; 16], id(&workers[other]).to_be_bytes().repeat(2), vec![]] {
                let url = text(&workers[victim]["address"]).to_owned();
                let mut contents = vec![hello(epoch, id(&workers[other]), &secret)];
                contents.extend(blocks.iter().cloned());
                let token = token_of(&cluster.coordinator.url);
                forgers.push(tokio::spawn(async move { push(&url, token, contents).await }));
            }
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let job = cluster.submit("--board 3x2");
    let done = cluster.wait(&job);
    assert_eq!(whole(&done["retries"]), 0, "{done}");
    assert_eq!(cluster.verified_fingerprint(&job), alone.fingerprint());
    let mut denied = 0;
    for forger in forgers {
        match forger.await.unwrap() {
            Err(status) if status.code() == Code::PermissionDenied => denied += 1,
            // The epoch was over, or never existed.
            Ok(0) => {}
            Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Internal) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(denied >= 2, "{denied} forgers were denied");
    assert!(cluster.workers[0].log().contains(events::WRONG_SECRET), "{}", cluster.logs());
}

/// A cluster in its first epoch, with a genuine worker and a member that the test controls.
struct Pair {
    place: Place,
    coordinator: Server,
    genuine: Server,
    member: Script,
    assignment: Assignment,
}

impl Pair {
    async fn new() -> Self {
        let place = Place::new();
        std::fs::create_dir(place.join("store")).unwrap();
        let coordinator = start_coordinator(&place.join("store"), "127.0.0.1:0");
        let genuine = start_worker(&coordinator.url, &place.join("cache"), &[]);
        let mut member = Script::new(&coordinator.url, 1).await;
        let begun = Instant::now();
        loop {
            member.pull().await.unwrap();
            let all = ask(&coordinator, &["status", "--json"]);
            if all["workers"].as_array().unwrap().len() == 2 {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{all}");
        }
        exact2048(["submit", "--coordinator", &coordinator.url, "--board", "3x2"]).exits(0);
        let assignment = member.until(|answer| answer.share.is_some()).await.share.unwrap();
        assert_eq!(assignment.share.members.len(), 2);
        Self { place, coordinator, genuine, member, assignment }
    }

    /// A block that the genuine worker may expect from the member.
    fn own_block(&self) -> (Layer, Lane) {
        let share = &self.assignment.share;
        let (owners, me) = (share.owners(), share.member(self.member.pull.worker).unwrap());
        let lane = lanes(&share.params).into_iter().find(|&lane| owners.owner(lane) == me).unwrap();
        (layer_range(&share.params, lane).0.max(share.segment.first), lane)
    }

    /// Begins a stream to the genuine worker as a member does.
    async fn open(&self) -> UnboundedSender<PushRequest> {
        let (send, messages) = unbounded_channel();
        let token = token_of(&self.coordinator.url);
        let mut client = ExchangeClient::new(connect_with(&self.genuine.url, Some(token)).await);
        tokio::spawn(async move { client.push(UnboundedReceiverStream::new(messages)).await });
        let share = &self.assignment.share;
        let shown = hello(share.epoch, self.member.pull.worker.0, share.secret.bytes());
        send.send(PushRequest { content: Some(shown) }).unwrap();
        send
    }

    /// Sends messages, and waits until the epoch has failed without a commit. The logged reason must equal a section of the
    /// snapshots.
    async fn fails_with(mut self, contents: Vec<Content>, section: &str) {
        let stream = self.open().await;
        for content in contents {
            stream.send(PushRequest { content: Some(content) }).unwrap();
        }
        let epoch = self.assignment.share.epoch;
        self.member.until(|answer| answer.withdrawn == Some(epoch)).await;
        let log = self.coordinator.log();
        let failed = log.lines().find(|line| line.contains(events::EPOCH_FAILED));
        let reason = failed.and_then(|line| line.split_once("reason=")).unwrap_or_else(|| panic!("{log}"));
        // Layer and lane of the block depend on the random ids of the workers.
        assert_section(section, reason.1.rsplit("}: ").next().unwrap());
        let job = ask(&self.coordinator, &["status", "3x2", "--json"]);
        assert!(whole(&job["retries"]) >= 1, "{job}");
        // The run has none of the sent data, so the genuine worker can solve it.
        drop(self.member);
        let begun = Instant::now();
        while ask(&self.coordinator, &["status", "3x2", "--json"])["state"] != "done" {
            assert!(begun.elapsed() < PATIENCE, "{}", self.coordinator.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let run = self.place.join("store/3x2");
        on_run(&run, "verify", &[]).exits(0);
        let info = on_run(&run, "info", &["--json"]).exits(0).json();
        assert_eq!(info["fingerprint"], Solved::new("--board 3x2").fingerprint(), "{info}");
    }
}

fn ask(coordinator: &Server, args: &[&str]) -> Value {
    exact2048([&args[..1], &["--coordinator", &coordinator.url], &args[1..]].concat()).exits(0).json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_block_that_changed_on_its_way_ends_the_epoch() {
    let pair = Pair::new().await;
    let (layer, lane) = pair.own_block();
    let first = vec![1, 2, 3].into();
    let block = PushBlock { layer: layer.0, lane: lane.code(), bytes: 3, first, checksum: 4 };
    pair.fails_with(vec![Content::Block(block)], "sent a bad block").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_block_with_other_contents_ends_the_epoch() {
    let pair = Pair::new().await;
    let (layer, lane) = pair.own_block();
    let first = vec![1, 2, 3];
    let checksum = xxhash_rust::xxh3::xxh3_64(&first);
    let other = PushBlock { layer: layer.0, lane: lane.code(), bytes: 3, first: first.into(), checksum };
    // Sending the same block again is allowed.
    let again = [empty_block(layer, lane), empty_block(layer, lane), Content::Block(other)];
    pair.fails_with(again.to_vec(), "a second block").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_member_that_pushes_the_block_of_another_ends_the_epoch() {
    let pair = Pair::new().await;
    let share = &pair.assignment.share;
    let (owners, me) = (share.owners(), share.member(pair.member.pull.worker).unwrap());
    let lane = lanes(&share.params).into_iter().find(|&lane| owners.owner(lane) != me).unwrap();
    let layer = layer_range(&share.params, lane).0.max(share.segment.first);
    pair.fails_with(vec![empty_block(layer, lane)], "a block of another").await;
}

/// Sent and received bytes differ, as after a lost or forged block.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn received_bytes_equal_sent_bytes() {
    let mut pair = Pair::new().await;
    let share = &pair.assignment.share;
    assert_eq!((share.segment.phase, share.segment.first), (Phase::Enumerate, Layer(4)));
    let part = LayerPart { layer: Layer(4), totals: Totals::default(), sent: 12_345, received: 0 };
    pair.member.pull.reports.push(WorkerReport::LayerDone { epoch: share.epoch, part });
    let (layer, lane) = pair.own_block();
    let contents = if layer == Layer(4) { vec![empty_block(layer, lane)] } else { Vec::new() };
    let contents = contents.into_iter().chain([Content::Frontier(6)]).collect();
    pair.fails_with(contents, "a lost block").await;
}

/// Starts a coordinator with a job of one layer, and its only worker. The worker has reported this layer.
async fn to_the_order(place: &Place, part: LayerPart) -> (Server, Script, EpochId, Option<WriteShard>) {
    std::fs::create_dir(place.join("store")).unwrap();
    let coordinator = start_coordinator(&place.join("store"), "127.0.0.1:0");
    let mut worker = Script::new(&coordinator.url, 1).await;
    let submit = ["submit", "--coordinator", &coordinator.url, "--board", "2x2", "--until-layer", "4"];
    exact2048(submit).exits(0);
    let assignment = worker.until(|answer| answer.share.is_some()).await.share.unwrap();
    let epoch = assignment.share.epoch;
    worker.pull.reports.push(WorkerReport::LayerDone { epoch, part });
    let ordered = |epoch| {
        move |answer: &exact2048_cluster::wire::Answer| {
            answer.write.is_some() || answer.withdrawn == Some(epoch)
        }
    };
    let order = worker.until(ordered(epoch)).await.write;
    (coordinator, worker, epoch, order)
}

const PART: LayerPart = LayerPart {
    layer: Layer(4),
    totals: Totals { states: 2, afterstates: 1, fingerprint: 0, sealed_bytes: 10 },
    sent: 0,
    received: 0,
};

/// The journal never names a missing shard.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn shards_that_are_made_up_are_not_committed() {
    let place = Place::new();
    let (coordinator, mut worker, epoch, order) = to_the_order(&place, PART).await;
    let order = order.unwrap();
    let me = worker.pull.worker.0;
    let record = |file: &str, header_checksum: &str, bytes: u64| {
        json!({ "shard": {
            "file": file, "kind": "reach", "first_layer": 4, "last_layer": 4, "bytes": bytes, "frames": 1, "items": 3,
            "header_checksum": header_checksum,
        } })
        .to_string()
    };
    // The coordinator refuses a report that names a shard after another epoch or another worker.
    for file in [format!("reach-000004-000004-000000-1.{me:x}.shard"), "reach-000004-000004.shard".to_owned()]
    {
        let made_up = record(&file, "0000000000000007", 100);
        worker.pull.reports = vec![WorkerReport::ShardWritten { shard: order, record: made_up }];
        assert_eq!(worker.pull().await.unwrap_err().code(), Code::InvalidArgument);
    }
    // Reports a shard that does not exist.
    let file = format!("reach-000004-000004-000001-{:x}.{me:x}.shard", epoch.0);
    let made_up = record(&file, "0000000000000007", 100);
    worker.pull.reports = vec![WorkerReport::ShardWritten { shard: order, record: made_up }];
    worker.until(|answer| answer.withdrawn == Some(epoch)).await;
    let store = Location::from(&*place.join("store/2x2-to4"));
    let commits = || Run::open(&store).unwrap().catalog().commits().len();
    assert_eq!(commits(), 0);
    let all = ask(&coordinator, &["status", "--json"]);
    assert_eq!(all["workers"][0]["activity"], "backing_off", "{all}");

    // The next shard exists, so it is committed.
    let assignment = worker.until(|answer| answer.share.is_some()).await.share.unwrap();
    let epoch = assignment.share.epoch;
    worker.pull.reports.push(WorkerReport::LayerDone { epoch, part: PART });
    let shard = worker.until(|answer| answer.write.is_some()).await.write.unwrap();
    let run = Run::open(&store).unwrap();
    let identity = run.catalog().identity(Phase::Enumerate, shard.first, shard.last);
    let attempt = Attempt { opening: assignment.opening.0, epoch: epoch.0, member: me };
    let written = ShardWriter::create_as(run.catalog().files(), identity, attempt).unwrap().finish().unwrap();
    worker
        .pull
        .reports
        .push(WorkerReport::ShardWritten { shard, record: json!({ "shard": written }).to_string() });
    worker.until(|answer| answer.withdrawn == Some(epoch)).await;
    assert_eq!(commits(), 1);
    coordinator.stop().says(&[events::SHARD_DIFFERS, events::COMMITTED]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn counts_that_cannot_be_end_the_epoch() {
    let place = Place::new();
    let (coordinator, .., order) =
        to_the_order(&place, LayerPart { totals: Totals { states: 1 << 45, ..PART.totals }, ..PART }).await;
    assert_eq!(order, None);
    coordinator.stop().says(&[events::EPOCH_FAILED, "35184372088832"]);
}

/// Whether a text has control characters for a terminal.
fn commands(text: &str) -> bool {
    text.chars().any(|char| char.is_control() && char != '\n')
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_of_workers_command_no_terminal() {
    let place = Place::new();
    let coordinator = start_coordinator(&place.join("store"), "127.0.0.1:0");
    let mut worker = Script::new(&coordinator.url, 1).await;
    let address =
        std::mem::replace(&mut worker.pull.address, "\x1b[31mEVIL\x1b[0m\n\x1b]0;pwned\x07host:1".to_owned());
    let refused = worker.pull().await.unwrap_err();
    assert_eq!((refused.code(), commands(refused.message())), (Code::InvalidArgument, false), "{refused}");
    worker.pull.address = address;
    let what = "\x1b[2J\x1b[31mfail\n2026-01-01T00:00:00Z ERROR forged\x07".to_owned();
    worker.pull.reports.push(WorkerReport::Failed { epoch: None, failure: WorkerFailure::Other(what) });
    worker.pull().await.unwrap();
    let shown = exact2048(["status", "--coordinator", &coordinator.url]).exits(0);
    assert!(shown.stdout.contains("fail"), "{shown:?}");
    let log = coordinator.stop().stderr;
    assert!(log.contains(events::WORKER_FAILED), "{log}");
    for text in [&shown.stdout, &shown.stderr, &log] {
        assert!(!commands(text), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("2026-01-01T00:00:00Z ERROR")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_pulls_do_not_fill_the_disk_with_logs() {
    let place = Place::new();
    let coordinator = start_coordinator(&place.join("store"), "127.0.0.1:0");
    let mut worker = Script::new(&coordinator.url, 1).await;
    let begun = Instant::now();
    for number in 0..1000 {
        worker.pull.worker = WorkerId(number);
        worker.pull().await.unwrap();
    }
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let log = coordinator.stop().stderr;
    let lines = log.lines().filter(|line| line.contains(events::WORKER_JOINED)).count();
    assert!((100..=101 + seconds).contains(&lines), "{lines} lines in {seconds} s");
}
