//! Streams to the other workers of an epoch. They carry finished blocks in the order in which these were finished.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use exact2048_coordinator::cluster::{EpochMember, PROTOCOL_VERSION};
use exact2048_game::{Lane, Layer};
use exact2048_net::client::{ClientOptions, ConnectError, connect};
use exact2048_net::status::words_of;
use exact2048_net::text::with_causes;
use exact2048_proto::v1::exchange_client::ExchangeClient;
use exact2048_proto::v1::push_request::Content;
use exact2048_proto::v1::{PushBlock, PushHello, PushRequest};
use exact2048_run::member;
use exact2048_worker::BytesList;
use metrics::{counter, gauge};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::coding::coded;
use super::leader::RemoteLeader;
use super::observe;
use super::room::Room;

/// Maximum number of bytes that wait for one peer. A larger block waits alone. Threads that finish a block wait for
/// space.
const WAITING_BYTES: u64 = 64 << 20;

/// Time that a block waits if the network is slower than the threads that finish blocks. On a fast network, blocks wait
/// only while others are written.
const SLOW: Duration = Duration::from_millis(20);

/// Number of attempts to reach a peer, and the pause between two attempts.
const ATTEMPTS: u32 = 10;
const RETRY: Duration = Duration::from_millis(300);

/// Interval at which a thread that waits for space checks whether the epoch must end.
const PAUSE: Duration = Duration::from_millis(100);

/// An item sent to a peer.
enum Parcel {
    Block {
        layer: Layer,
        lane: Lane,
        checksum: u64,
        /// Number of bytes before coding.
        bytes: usize,
        /// The block, coded if it has fewer bytes.
        payload: BytesList,
        held: Waiting,
    },
    Frontier(Layer),
}

/// The stream to one peer.
pub struct PeerLink {
    parcels: UnboundedSender<Parcel>,
    /// Limit of the bytes that wait to be sent.
    room: Room,
    /// Whether the last sent block had waited for [`SLOW`].
    is_slow: Arc<AtomicBool>,
    /// Whether the epoch must end.
    stop: Arc<AtomicBool>,
    runtime: Handle,
}

/// The space of a block that waits to be sent.
struct Waiting {
    bytes: usize,
    since: Instant,
    _room: OwnedSemaphorePermit,
}

impl Waiting {
    fn new(bytes: usize, room: OwnedSemaphorePermit) -> Self {
        gauge!(observe::SENDING_BYTES).increment(bytes as f64);
        Self { bytes, since: Instant::now(), _room: room }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        gauge!(observe::SENDING_BYTES).decrement(self.bytes as f64);
    }
}

impl PeerLink {
    /// Opens a stream to a peer of an epoch. The stream ends with the link or when `ended` is cancelled. If it breaks
    /// before, `lost` is called.
    pub fn open(
        leader: &RemoteLeader,
        client: &ClientOptions,
        peer: &EpochMember,
        ended: CancellationToken,
        lost: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        let (parcels, queue) = unbounded_channel();
        let hello = PushHello {
            protocol_version: PROTOCOL_VERSION,
            epoch: leader.share.epoch.0,
            worker: leader.worker.0,
            secret: leader.share.secret.bytes().to_vec(),
        };
        let peer = ClientOptions { server: peer.address.clone(), ..client.clone() };
        let link = Self::new(parcels, Arc::clone(&leader.stop));
        let is_slow = Arc::clone(&link.is_slow);
        tokio::spawn(async move {
            let pushed = ended.run_until_cancelled(push(&peer, hello, pieces(queue, is_slow))).await;
            if let Some(Err(error)) = pushed {
                lost(error);
            }
        });
        link
    }

    fn new(parcels: UnboundedSender<Parcel>, stop: Arc<AtomicBool>) -> Self {
        let (room, is_slow) = (Room::new(WAITING_BYTES), Arc::default());
        Self { parcels, room, is_slow, stop, runtime: Handle::current() }
    }

    /// Waits for space for a block. Returns `None` when the epoch or the stream has ended.
    async fn enter(&self, bytes: usize) -> Option<Waiting> {
        loop {
            if self.stop.load(Ordering::Relaxed) || self.parcels.is_closed() {
                return None;
            }
            if let Ok(room) = timeout(PAUSE, self.room.enter(bytes as u64)).await {
                return Some(Waiting::new(bytes, room.ok()?));
            }
        }
    }
}

impl member::Link for PeerLink {
    fn send(&self, layer: Layer, lane: Lane, checksum: u64, payload: BytesList) {
        let bytes = payload.len();
        // If blocks wait, this one is coded before its turn comes.
        let coded = if self.is_slow.load(Ordering::Relaxed) { coded(&payload) } else { None };
        let payload = coded.unwrap_or(payload);
        // If the stream has ended, the peer does not need the block.
        if let Some(held) = self.runtime.block_on(self.enter(payload.len())) {
            let _ = self.parcels.send(Parcel::Block { layer, lane, checksum, bytes, payload, held });
        }
    }

    fn send_frontier(&self, layer: Layer) {
        // If the stream has ended, the peer does not need the frontier.
        let _ = self.parcels.send(Parcel::Frontier(layer));
    }
}

async fn push(
    peer: &ClientOptions,
    hello: PushHello,
    blocks: impl Stream<Item = PushRequest> + Send + 'static,
) -> Result<(), String> {
    let connected = connect_to(peer).await.map_err(|error| with_causes(&error))?;
    let first = tokio_stream::once(PushRequest { content: Some(Content::Hello(hello)) });
    let requests = first.chain(blocks);
    match ExchangeClient::new(connected).push(requests).await {
        Ok(_) => Ok(()),
        Err(status) => Err(text(&status)),
    }
}

async fn connect_to(options: &ClientOptions) -> Result<exact2048_net::client::Connected, ConnectError> {
    let mut attempt = 1;
    loop {
        match connect(options).await {
            Err(ConnectError::Transport { .. }) if attempt < ATTEMPTS => tokio::time::sleep(RETRY).await,
            connected => return connected,
        }
        attempt += 1;
    }
}

/// Converts parcels to messages, and notes whether they had to wait. A block becomes several pieces, none of which is too
/// long for a message.
fn pieces(queue: UnboundedReceiver<Parcel>, is_slow: Arc<AtomicBool>) -> impl Stream<Item = PushRequest> {
    let parcels = tokio_stream::wrappers::UnboundedReceiverStream::new(queue);
    let messages = parcels.map(move |parcel| match parcel {
        Parcel::Frontier(layer) => vec![Content::Frontier(layer.0)],
        Parcel::Block { layer, lane, checksum, bytes, payload, held } => {
            counter!(observe::PUSHED_BYTES).increment(payload.len() as u64);
            is_slow.store(held.since.elapsed() >= SLOW, Ordering::Relaxed);
            drop(held);
            let coded_bytes = if payload.len() < bytes { payload.len() as u64 } else { 0 };
            let mut pieces = payload.into_pieces();
            let first = pieces.next().unwrap_or_default();
            let (layer, lane, bytes) = (layer.0, lane.code(), bytes as u64);
            let block = PushBlock { layer, lane, bytes, first, checksum, coded_bytes };
            let mut contents = vec![Content::Block(block)];
            contents.extend(pieces.map(Content::More));
            contents
        }
    });
    futures_util::StreamExt::flat_map(messages, |contents| {
        tokio_stream::iter(contents.into_iter().map(|content| PushRequest { content: Some(content) }))
    })
}

fn text(status: &Status) -> String {
    match status.code() {
        _ if status.source().is_some() => format!("the connection broke: {}", words_of(status)),
        Code::Unavailable | Code::Unknown => format!("the peer ended the stream: {}", words_of(status)),
        code => format!("{code}: {}", status.message()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The peer receives nothing more, but keeps the stream open.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn no_thread_waits_for_space_when_the_epoch_must_end() {
        let stop = Arc::new(AtomicBool::new(false));
        let (parcels, _queue) = unbounded_channel();
        let link = Arc::new(PeerLink::new(parcels, Arc::clone(&stop)));
        let _all = link.enter(WAITING_BYTES as usize).await.unwrap();
        let (sent, sends) = channel();
        let of_thread = Arc::clone(&link);
        std::thread::spawn(move || {
            let payload = BytesList::from(bytes::Bytes::from_static(b"1"));
            member::Link::send(&*of_thread, Layer(4), Lane::new(0, 0), 0, payload);
            sent.send(()).unwrap();
        });
        assert!(sends.recv_timeout(Duration::from_millis(200)).is_err(), "there was no space");
        stop.store(true, Ordering::Relaxed);
        sends.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn blocks_are_coded_after_one_that_waited() {
        let (parcels, queue) = unbounded_channel();
        let link = Arc::new(PeerLink::new(parcels, Arc::default()));
        let messages = pieces(queue, Arc::clone(&link.is_slow));
        tokio::pin!(messages);
        let send = || {
            let of_thread = Arc::clone(&link);
            tokio::task::spawn_blocking(move || {
                let payload = BytesList::from(bytes::Bytes::from_static(&[7; 5000]));
                member::Link::send(&*of_thread, Layer(4), Lane::new(0, 0), 0, payload);
            })
        };
        let mut coded_bytes = Vec::new();
        for wait in [SLOW, Duration::ZERO] {
            send().await.unwrap();
            tokio::time::sleep(wait).await;
            let Some(PushRequest { content: Some(Content::Block(block)) }) = messages.next().await else {
                panic!("expected a block")
            };
            assert_eq!(block.bytes, 5000);
            coded_bytes.push(block.coded_bytes);
        }
        assert!(coded_bytes[0] == 0 && (1..100).contains(&coded_bytes[1]), "{coded_bytes:?}");
    }
}
