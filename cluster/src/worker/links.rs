//! Streams to the other workers of an epoch. They carry finished blocks in the order in which these were finished.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

use super::leader::RemoteLeader;
use super::observe;
use super::room::Room;

/// Maximum number of bytes that wait for one peer. A larger block waits alone. Threads that finish a block wait for
/// space.
const WAITING_BYTES: u64 = 64 << 20;

/// Number of attempts to reach a peer, and the pause between two attempts.
const ATTEMPTS: u32 = 10;
const RETRY: Duration = Duration::from_millis(300);

/// Interval at which a thread that waits for space checks whether the epoch must end.
const PAUSE: Duration = Duration::from_millis(100);

/// An item sent to a peer.
enum Parcel {
    Block { layer: Layer, lane: Lane, checksum: u64, payload: BytesList, held: Waiting },
    Frontier(Layer),
}

/// The stream to one peer.
pub struct PeerLink {
    parcels: UnboundedSender<Parcel>,
    /// Limit of the bytes that wait to be sent.
    room: Room,
    /// Whether the epoch must end.
    stop: Arc<AtomicBool>,
    runtime: Handle,
}

/// The space of a block that waits to be sent.
struct Waiting {
    bytes: usize,
    _room: OwnedSemaphorePermit,
}

impl Waiting {
    fn new(bytes: usize, room: OwnedSemaphorePermit) -> Self {
        gauge!(observe::SENDING_BYTES).increment(bytes as f64);
        Self { bytes, _room: room }
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
        tokio::spawn(async move {
            let pushed = ended.run_until_cancelled(push(&peer, hello, queue)).await;
            if let Some(Err(error)) = pushed {
                lost(error);
            }
        });
        Self::new(parcels, Arc::clone(&leader.stop))
    }

    fn new(parcels: UnboundedSender<Parcel>, stop: Arc<AtomicBool>) -> Self {
        Self { parcels, room: Room::new(WAITING_BYTES), stop, runtime: Handle::current() }
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
        // If the stream has ended, the peer does not need the block.
        if let Some(held) = self.runtime.block_on(self.enter(payload.len())) {
            let _ = self.parcels.send(Parcel::Block { layer, lane, checksum, payload, held });
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
    queue: UnboundedReceiver<Parcel>,
) -> Result<(), String> {
    let connected = connect_to(peer).await.map_err(|error| with_causes(&error))?;
    let first = tokio_stream::once(PushRequest { content: Some(Content::Hello(hello)) });
    let requests = first.chain(pieces(queue));
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

/// Converts parcels to messages. A block becomes several pieces, none of which is too long for a message.
fn pieces(queue: UnboundedReceiver<Parcel>) -> impl Stream<Item = PushRequest> {
    let parcels = tokio_stream::wrappers::UnboundedReceiverStream::new(queue);
    let messages = parcels.map(|parcel| match parcel {
        Parcel::Frontier(layer) => vec![Content::Frontier(layer.0)],
        Parcel::Block { layer, lane, checksum, payload, held } => {
            let bytes = payload.len();
            counter!(observe::PUSHED_BYTES).increment(bytes as u64);
            drop(held);
            let mut pieces = payload.into_pieces();
            let first = pieces.next().unwrap_or_default();
            let (layer, lane, bytes) = (layer.0, lane.code(), bytes as u64);
            let mut contents = vec![Content::Block(PushBlock { layer, lane, bytes, first, checksum })];
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
}
