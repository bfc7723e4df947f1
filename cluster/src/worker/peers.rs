//! Asks the other workers of an epoch for copies of committed shards before the store.

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, BuildHasherDefault};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use exact2048_coordinator::cluster::{EpochMember, PROTOCOL_VERSION, WorkerId};
use exact2048_net::client::{ClientOptions, Connected, connect};
use exact2048_net::status::words_of;
use exact2048_net::text::with_causes;
use exact2048_proto::v1::FetchRequest;
use exact2048_proto::v1::exchange_client::ExchangeClient;
use exact2048_storage::{CopyOutcome, Peers, WantedCopy};
use metrics::counter;
use parking_lot::Mutex;
use rustc_hash::FxHasher;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::io::{StreamReader, SyncIoBridge};
use tonic::{Code, Status};

use super::membership::Membership;
use super::observe;

/// Maximum number of peers that are asked for one shard. With many workers, the store is faster than all of them.
const MOST_ASKED: usize = 2;

/// Time limit for each connection, answer or piece of a copy from a peer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Slowest accepted rate of a copy, in bytes a second.
const SLOWEST: u64 = 1 << 20;

/// Pieces of a copy that may wait to be written to the disk.
const WAITING_PIECES: usize = 2;

/// The other workers of this worker's epoch.
#[derive(Debug)]
pub struct PeerCopies {
    me: WorkerId,
    client: ClientOptions,
    runtime: Handle,
    patience: Duration,
    peers: Mutex<Vec<Arc<Peer>>>,
}

#[derive(Debug)]
struct Peer {
    member: EpochMember,
    membership: Membership,
    connection: OnceCell<ExchangeClient<Connected>>,
    /// Whether the peer was unreachable or gave an invalid answer. Such a peer is not asked again in this epoch.
    given_up: AtomicBool,
}

impl PeerCopies {
    /// Creates a value without peers. `client` has the credentials for connections to peers. Must be called within a
    /// runtime.
    pub fn new(me: WorkerId, client: ClientOptions) -> Self {
        Self { me, client, runtime: Handle::current(), patience: PATIENCE, peers: Mutex::default() }
    }

    /// Makes the other members of an epoch the peers to ask.
    pub fn join(&self, members: &[EpochMember], membership: Membership) {
        let others = members.iter().filter(|member| member.worker != self.me);
        let new = |member: &EpochMember| Peer {
            member: member.clone(),
            membership,
            connection: OnceCell::new(),
            given_up: AtomicBool::new(false),
        };
        *self.peers.lock() = others.map(|member| Arc::new(new(member))).collect();
    }

    /// Removes all peers.
    pub fn leave(&self) {
        self.peers.lock().clear();
    }

    /// Returns the peers to ask for a shard: first its writer, then others in an order that depends on the shard but
    /// not on the asking worker. So all workers ask the same few peers, and these soon have the shard even if its
    /// writer is gone.
    fn candidates(&self, wanted: &WantedCopy) -> Vec<Arc<Peer>> {
        let mut peers = self.peers.lock().clone();
        peers.retain(|peer| !peer.given_up.load(Ordering::Relaxed));
        peers.sort_by_cached_key(|peer| {
            let worker = peer.member.worker.0;
            let order = BuildHasherDefault::<FxHasher>::default().hash_one((wanted.header_checksum, worker));
            (wanted.writer != Some(worker), order)
        });
        peers.truncate(MOST_ASKED);
        peers
    }

    /// Begins to ask a peer. The returned reader reads the copy while its pieces arrive.
    fn ask(&self, peer: Arc<Peer>, wanted: &WantedCopy) -> impl Read + use<> {
        let (send, pieces) = mpsc::channel(WAITING_PIECES);
        let options = ClientOptions { server: peer.member.address.clone(), ..self.client.clone() };
        let (wanted, patience, worker) = (*wanted, self.patience, self.me);
        self.runtime.spawn(async move {
            let whole = patience + Duration::from_secs(wanted.bytes / SLOWEST);
            let received = timeout(whole, receive(&peer, &options, &wanted, patience, &send)).await;
            let received =
                received.unwrap_or_else(|_| Err(Status::deadline_exceeded("the copy took too long")));
            if let Err(status) = received {
                let (code, peer_id) = (status.code(), peer.member.worker);
                tracing::debug!(%worker, peer = %peer_id, ?code, "no copy: {}", words_of(&status));
                if !matches!(status.code(), Code::NotFound | Code::ResourceExhausted) {
                    peer.given_up.store(true, Ordering::Relaxed);
                }
                // A reader that has stopped does not need the error.
                let _ = send.send(Err(io::Error::other(words_of(&status)))).await;
            }
        });
        SyncIoBridge::new_with_handle(StreamReader::new(ReceiverStream::new(pieces)), self.runtime.clone())
    }
}

impl Peers for PeerCopies {
    fn copies<'a>(&'a self, wanted: &WantedCopy) -> Box<dyn Iterator<Item = Box<dyn Read + 'a>> + 'a> {
        let wanted = *wanted;
        let ask = move |peer| Box::new(self.ask(peer, &wanted)) as Box<dyn Read>;
        Box::new(self.candidates(&wanted).into_iter().map(ask))
    }

    fn note(&self, wanted: &WantedCopy, outcome: CopyOutcome<'_>) {
        let from = match outcome {
            CopyOutcome::Cached => return counter!(observe::CACHED_SHARDS).increment(1),
            CopyOutcome::Taken => observe::PEER,
            CopyOutcome::FromStore => observe::STORE,
            CopyOutcome::Refused(error) => {
                let (worker, shard) = (self.me, format!("{:016x}", wanted.header_checksum));
                return tracing::debug!(%worker, shard, error = with_causes(error), "peer's copy rejected");
            }
        };
        counter!(observe::FETCHED_SHARDS, "from" => from).increment(1);
        counter!(observe::FETCHED_BYTES, "from" => from).increment(wanted.bytes);
    }
}

/// Passes a peer's copy on, piece by piece.
async fn receive(
    peer: &Peer,
    options: &ClientOptions,
    wanted: &WantedCopy,
    patience: Duration,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), Status> {
    let silent = |_| Status::deadline_exceeded("the peer did not answer in time");
    let connected = peer.connection.get_or_try_init(async || connect(options).await.map(ExchangeClient::new));
    let connected = timeout(patience, connected).await.map_err(silent)?.cloned();
    let mut client = connected.map_err(|error| Status::unavailable(with_causes(&error)))?;
    let request = FetchRequest {
        protocol_version: PROTOCOL_VERSION,
        run: Bytes::copy_from_slice(&wanted.run.0),
        header_checksum: wanted.header_checksum,
        epoch: peer.membership.epoch.0,
        secret: Bytes::copy_from_slice(peer.membership.secret.bytes()),
    };
    let mut messages = timeout(patience, client.fetch(request)).await.map_err(silent)??.into_inner();
    while let Some(message) = timeout(patience, messages.message()).await.map_err(silent)?? {
        if message.data.is_empty() {
            return Err(Status::invalid_argument("the peer sent an empty piece"));
        }
        if pieces.send(Ok(message.data)).await.is_err() {
            // The reader has stopped early.
            return Ok(());
        }
    }
    Ok(())
}
