//! Tests of the service over a connection, with messages of all kinds.

use bytes::Buf;
use exact2048_coordinator::cluster::{PROTOCOL_VERSION, Secret};
use exact2048_proto::v1::exchange_client::ExchangeClient;
use exact2048_proto::v1::exchange_server::ExchangeServer;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::{Channel, Server, server::TcpIncoming};

use super::*;
use crate::wire::Answer;

const EPOCH: u64 = 7;
const SENDER: u64 = 3;
const SECRET: [u8; 16] = [7; 16];
const LANE: Lane = Lane::new(1, 16);
const MOST_BYTES: u64 = 1 << 20;

/// A block: sender, layer, lane, checksum and bytes.
type Taken = (usize, Layer, Lane, u64, Vec<u8>);

/// An epoch that records the blocks and frontiers that it receives.
#[derive(Default)]
struct Memo {
    blocks: Mutex<Vec<Taken>>,
    frontiers: Mutex<Vec<Layer>>,
}

impl Epoch for Memo {
    fn member(&self, worker: WorkerId) -> Option<usize> {
        (worker.0 == SENDER).then_some(1)
    }

    fn membership(&self) -> Membership {
        Membership { epoch: EpochId(EPOCH), secret: Secret::new(SECRET) }
    }

    fn accept(&self, from: usize, block: PeerBlock) -> Result<(), BlockError> {
        let PeerBlock { layer, lane, checksum, mut payload } = block;
        let bytes = payload.copy_to_bytes(payload.len()).to_vec();
        self.blocks.lock().push((from, layer, lane, checksum, bytes));
        Ok(())
    }

    fn has_spare_memory(&self) -> bool {
        true
    }

    fn frontier_of(&self, _: usize, layer: Layer) {
        self.frontiers.lock().push(layer);
    }

    fn follow(&self, _: &Answer) {}
    fn stop(&self) {}

    fn is_waiting(&self) -> bool {
        false
    }

    fn ended(&self) -> CancellationToken {
        CancellationToken::new()
    }
}

/// Starts a worker in an epoch, and connects a peer to it.
async fn connected() -> (Arc<Memo>, ExchangeClient<Channel>) {
    let memo = Arc::new(Memo::default());
    let current: Arc<dyn Epoch> = Arc::clone(&memo) as _;
    let present = Present::default();
    present.joined.send_replace(Some(current.membership()));
    present.running.send_replace(Some(current));
    let client = connected_to(Arc::new(present)).await;
    (memo, client)
}

/// Starts a worker with these epochs, and connects a peer to it.
async fn connected_to(present: Arc<Present>) -> ExchangeClient<Channel> {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", incoming.local_addr().unwrap());
    let service = ExchangeServer::new(ExchangeService::new(present, MOST_BYTES, Default::default()));
    tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    ExchangeClient::connect(url).await.unwrap()
}

async fn push(client: &mut ExchangeClient<Channel>, contents: Vec<Content>) -> Result<u64, Status> {
    let messages = contents.into_iter().map(|content| PushRequest { content: Some(content) });
    let messages: Vec<PushRequest> = messages.collect();
    Ok(client.push(tokio_stream::iter(messages)).await?.into_inner().blocks)
}

fn hello() -> Content {
    Content::Hello(PushHello {
        protocol_version: PROTOCOL_VERSION,
        epoch: EPOCH,
        worker: SENDER,
        secret: SECRET.to_vec(),
    })
}

fn block(bytes: u64, first: &[u8]) -> Content {
    let first = Bytes::copy_from_slice(first);
    Content::Block(PushBlock { layer: 20, lane: LANE.code(), bytes, first, checksum: 77 })
}

fn more(bytes: &[u8]) -> Content {
    Content::More(Bytes::copy_from_slice(bytes))
}

#[tokio::test]
async fn blocks_arrive_whole_and_in_order() {
    let (memo, mut client) = connected().await;
    let long: Vec<u8> = (0..300_000).map(|i| (i % 251) as u8).collect();
    let (first, rest) = long.split_at(100_000);
    let (second, third) = rest.split_at(199_999);
    let contents = vec![
        hello(),
        block(0, &[]),
        Content::Frontier(22),
        block(3, &[1, 2, 3]),
        block(300_000, first),
        more(second),
        more(third),
        Content::Frontier(24),
    ];
    assert_eq!(push(&mut client, contents).await.unwrap(), 3);
    let blocks: Vec<Vec<u8>> = memo.blocks.lock().iter().map(|b| b.4.clone()).collect();
    assert!(blocks == [vec![], vec![1, 2, 3], long]);
    assert!(memo.blocks.lock().iter().all(|b| (b.0, b.1, b.2, b.3) == (1, Layer(20), LANE, 77)));
    assert_eq!(*memo.frontiers.lock(), [Layer(22), Layer(24)]);
}

#[tokio::test]
async fn messages_out_of_order_are_refused() {
    let (memo, mut client) = connected().await;
    let piece = vec![0u8; LEAST_PIECE_BYTES];
    let no_lane = PushBlock { lane: 17, ..PushBlock::default() };
    let refused = [
        ("hello", vec![block(0, &[])]),
        ("hello", vec![hello(), hello()]),
        ("more", vec![hello(), more(&piece)]),
        ("block", vec![hello(), block(100_000, &piece), block(0, &[])]),
        ("block.bytes", vec![hello(), block(2, &[1, 2, 3])]),
        ("block.bytes", vec![hello(), block(20_000, &piece), more(&piece)]),
        ("block.bytes", vec![hello(), block(MOST_BYTES + 1, &piece)]),
        ("block.lane", vec![hello(), Content::Block(no_lane)]),
        ("more", vec![hello(), block(100_000, &[1])]),
        ("more", vec![hello(), block(100_000, &piece), more(&[])]),
    ];
    for (field, contents) in refused {
        let shown = format!("{contents:.40?}");
        let status = push(&mut client, contents).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{shown}: {status}");
        assert_eq!(exact2048_net::status::field_of(&status).as_deref(), Some(field), "{shown}: {status}");
    }
    let empty = tokio_stream::iter([PushRequest { content: None }]);
    assert_eq!(client.push(empty).await.unwrap_err().code(), Code::InvalidArgument);
    assert!(memo.blocks.lock().is_empty());
}

#[tokio::test]
async fn only_members_of_the_epoch_are_heard() {
    let (memo, mut client) = connected().await;
    let hello = |protocol_version, epoch, worker, secret: &[u8]| {
        let hello = PushHello { protocol_version, epoch, worker, secret: secret.to_vec() };
        vec![Content::Hello(hello), block(0, &[])]
    };
    let other_version = hello(PROTOCOL_VERSION + 1, EPOCH, SENDER, &SECRET);
    assert_eq!(push(&mut client, other_version).await.unwrap_err().code(), Code::FailedPrecondition);
    let mut near = SECRET;
    near[15] ^= 1;
    for (worker, secret) in [
        (SENDER + 1, &SECRET[..]),
        (SENDER, &near),
        (SENDER, &[0; 16]),
        (SENDER, &[]),
        (SENDER, &SECRET[..15]),
        (SENDER, &[7; 17]),
    ] {
        let stranger = push(&mut client, hello(PROTOCOL_VERSION, EPOCH, worker, secret)).await.unwrap_err();
        assert_eq!(stranger.code(), Code::PermissionDenied, "{stranger}");
    }
    let late = push(&mut client, hello(PROTOCOL_VERSION, EPOCH - 1, SENDER, &SECRET)).await.unwrap();
    assert_eq!(late, 0, "the epoch is over, so the worker accepts nothing and reports no error");
    assert!(memo.blocks.lock().is_empty());
}

/// While a worker opens the run, peers that know the secret wait until the worker runs the epoch or leaves it. Other
/// peers are refused at once.
#[tokio::test]
async fn peers_wait_while_a_worker_opens_the_run() {
    let memo = Arc::new(Memo::default());
    for leaves in [false, true] {
        let present = Arc::new(Present::default());
        present.joined.send_replace(Some(memo.membership()));
        let mut client = connected_to(Arc::clone(&present)).await;
        let stranger = PushHello {
            protocol_version: PROTOCOL_VERSION,
            epoch: EPOCH,
            worker: SENDER,
            secret: [8; 16].to_vec(),
        };
        let refused = push(&mut client, vec![Content::Hello(stranger)]).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        let mut waiting = Box::pin(push(&mut client, vec![hello(), block(0, &[])]));
        tokio::time::timeout(Duration::from_millis(50), &mut waiting).await.unwrap_err();
        if leaves {
            present.joined.send_replace(None);
            assert_eq!(waiting.await.unwrap_err().code(), Code::Unavailable);
        } else {
            present.running.send_replace(Some(Arc::clone(&memo) as _));
            assert_eq!(waiting.await.unwrap(), 1);
        }
    }
}

#[tokio::test]
async fn copies_are_for_members_of_the_epoch() {
    let (_, mut client) = connected().await;
    let sound = FetchRequest {
        protocol_version: PROTOCOL_VERSION,
        run: Bytes::from_static(&[1; 16]),
        header_checksum: 1,
        epoch: EPOCH,
        secret: Bytes::from_static(&SECRET),
    };
    let unknown = client.fetch(sound.clone()).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound, "{unknown}");
    for (epoch, secret, code) in [
        (EPOCH, &[0; 16][..], Code::PermissionDenied),
        (EPOCH, &[], Code::PermissionDenied),
        (EPOCH - 1, &SECRET, Code::Unavailable),
        (EPOCH + 1, &SECRET, Code::Unavailable),
    ] {
        let request = FetchRequest { epoch, secret: Bytes::copy_from_slice(secret), ..sound.clone() };
        let refused = client.fetch(request).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
    }
    let other = FetchRequest { protocol_version: PROTOCOL_VERSION + 1, ..sound };
    assert_eq!(client.fetch(other).await.unwrap_err().code(), Code::FailedPrecondition);
}

/// An incomplete block keeps its space until its stream ends.
#[tokio::test]
async fn blocks_on_their_way_are_bounded_over_all_streams() {
    let (memo, client) = connected().await;
    let all = MOST_BYTES / INCOMING_SHARE;
    let (hold, held) = tokio::sync::oneshot::channel::<()>();
    let half = block(all, &vec![0; LEAST_PIECE_BYTES]);
    let begun = [hello(), half].map(|content| PushRequest { content: Some(content) });
    let rest = tokio_stream::StreamExt::chain(
        tokio_stream::iter(begun),
        futures_util::stream::once(async move {
            let _ = held.await;
            PushRequest { content: None }
        }),
    );
    let mut holder = client.clone();
    let holding = tokio::spawn(async move { holder.push(rest).await });
    let mut other = client.clone();
    let mut pushing =
        tokio::spawn(async move { push(&mut other, vec![hello(), block(3, &[1, 2, 3])]).await });
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut pushing).await;
    assert!(waited.is_err(), "{waited:?}");
    assert!(memo.blocks.lock().is_empty());
    hold.send(()).unwrap();
    assert_eq!(holding.await.unwrap().unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(pushing.await.unwrap().unwrap(), 1);
}

fn any_content() -> impl Strategy<Value = Content> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        (0..2 * LEAST_PIECE_BYTES).prop_map(|length| vec![0; length]),
    ];
    let length = prop_oneof![0..100u64, 0..100_000u64, any::<u64>()];
    prop_oneof![
        (any::<u32>(), prop_oneof![Just(LANE.code()), any::<u64>()], length, bytes.clone()).prop_map(
            |(layer, lane, bytes, first)| {
                Content::Block(PushBlock { layer, lane, bytes, first: first.into(), checksum: 0 })
            }
        ),
        bytes.prop_map(|bytes| Content::More(bytes.into())),
        any::<u32>().prop_map(Content::Frontier),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_messages_are_accepted_or_refused(contents in prop::collection::vec(any_content(), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (memo, mut client) = connected().await;
            let contents = [hello()].into_iter().chain(contents).collect();
            if let Err(status) = push(&mut client, contents).await {
                assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            }
            let taken = memo.blocks.lock().len();
            // The worker still accepts blocks.
            assert_eq!(push(&mut client, vec![hello(), block(1, &[9])]).await.unwrap(), 1);
            assert_eq!(memo.blocks.lock().len(), taken + 1);
        });
    }
}
