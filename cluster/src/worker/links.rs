//! Streams to the other workers of an epoch. They carry finished blocks in the order in which these were finished.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use exact2048_coordinator::cluster::{EpochMember, PROTOCOL_VERSION, WorkerId};
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
use parking_lot::{Condvar, Mutex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::leader::RemoteLeader;
use super::observe;

/// Maximum number of bytes that wait for one peer. A larger block waits alone. Threads that finish a block wait for
/// space.
const WAITING_BYTES: usize = 64 << 20;

/// Number of attempts to reach a peer, and the pause between two attempts.
const ATTEMPTS: u32 = 10;
const RETRY: Duration = Duration::from_millis(300);

/// An item sent to a peer.
enum Parcel {
    Block { layer: Layer, lane: Lane, checksum: u64, payload: BytesList },
    Frontier(Layer),
}

/// The stream to one peer.
pub struct PeerLink {
    parcels: UnboundedSender<Parcel>,
    room: Arc<Room>,
}

/// Limit of the bytes that wait to be sent.
#[derive(Debug)]
struct Room {
    waiting: Mutex<usize>,
    sent: Condvar,
    /// Whether the epoch must end.
    stop: Arc<AtomicBool>,
    /// Whether the stream has ended.
    closed: AtomicBool,
}

impl Room {
    fn new(stop: Arc<AtomicBool>) -> Self {
        Self { waiting: Mutex::new(0), sent: Condvar::new(), stop, closed: AtomicBool::new(false) }
    }

    /// Waits until there is space for this many bytes, or until the epoch or the stream ends.
    fn enter(&self, bytes: usize) {
        let is_over = || self.closed.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed);
        let mut waiting = self.waiting.lock();
        while *waiting > 0 && *waiting + bytes > WAITING_BYTES && !is_over() {
            self.sent.wait_for(&mut waiting, Duration::from_millis(100));
        }
        *waiting += bytes;
        gauge!(observe::SENDING_BYTES).increment(bytes as f64);
    }

    fn leave(&self, bytes: usize) {
        gauge!(observe::SENDING_BYTES).decrement(bytes as f64);
        *self.waiting.lock() -= bytes;
        self.sent.notify_all();
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.sent.notify_all();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // The metric must not count the bytes that an ended stream has not sent.
        let waiting = *self.waiting.get_mut();
        gauge!(observe::SENDING_BYTES).decrement(waiting as f64);
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
        let room = Arc::new(Room::new(Arc::clone(&leader.stop)));
        let hello = PushHello {
            protocol_version: PROTOCOL_VERSION,
            epoch: leader.share.epoch.0,
            worker: leader.worker.0,
            secret: leader.share.secret.bytes().to_vec(),
        };
        let peer = ClientOptions { server: peer.address.clone(), ..client.clone() };
        let closing = Arc::clone(&room);
        tokio::spawn(async move {
            let pushed = ended.run_until_cancelled(push(&peer, hello, queue, &closing)).await;
            closing.close();
            if let Some(Err(error)) = pushed {
                lost(error);
            }
        });
        Self { parcels, room }
    }
}

impl member::Link for PeerLink {
    fn send(&self, layer: Layer, lane: Lane, checksum: u64, payload: BytesList) {
        self.room.enter(payload.len());
        let bytes = payload.len();
        if self.parcels.send(Parcel::Block { layer, lane, checksum, payload }).is_err() {
            self.room.leave(bytes);
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
    room: &Arc<Room>,
) -> Result<(), String> {
    let connected = connect_to(peer).await.map_err(|error| with_causes(&error))?;
    let first = tokio_stream::once(PushRequest { content: Some(Content::Hello(hello)) });
    let requests = first.chain(pieces(queue, Arc::clone(room)));
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
fn pieces(queue: UnboundedReceiver<Parcel>, room: Arc<Room>) -> impl Stream<Item = PushRequest> {
    let parcels = tokio_stream::wrappers::UnboundedReceiverStream::new(queue);
    let messages = parcels.map(move |parcel| match parcel {
        Parcel::Frontier(layer) => vec![Content::Frontier(layer.0)],
        Parcel::Block { layer, lane, checksum, payload } => {
            let bytes = payload.len();
            counter!(observe::PUSHED_BYTES).increment(bytes as u64);
            room.leave(bytes);
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
    #[test]
    fn no_thread_waits_for_space_when_the_epoch_must_end() {
        let stop = Arc::new(AtomicBool::new(false));
        let room = Arc::new(Room::new(Arc::clone(&stop)));
        room.enter(WAITING_BYTES);
        let (entered, enters) = channel();
        let of_thread = Arc::clone(&room);
        std::thread::spawn(move || {
            of_thread.enter(1);
            entered.send(()).unwrap();
        });
        assert!(enters.recv_timeout(Duration::from_millis(200)).is_err(), "there was no space");
        stop.store(true, Ordering::Relaxed);
        enters.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
