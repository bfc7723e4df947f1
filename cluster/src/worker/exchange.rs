//! The service for the other workers of an epoch: it accepts their blocks, and gives them copies of shards.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exact2048_coordinator::cluster::{EpochId, PROTOCOL_VERSION, WorkerId};
use exact2048_game::{Lane, Layer};
use exact2048_net::status::invalid_argument as invalid;
use exact2048_proto::v1::exchange_server::Exchange;
use exact2048_proto::v1::push_request::Content;
use exact2048_proto::v1::{FetchRequest, PushBlock, PushHello, PushRequest, PushResponse};
use exact2048_run::member::{BlockError, PeerBlock};
use exact2048_worker::BytesList;
use metrics::counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::{Request, Response, Status, Streaming};

use super::copies::{Copies, CopyPieces};
use super::epoch::Epoch;
use super::membership::{Joined, Membership, admit, denied, not_in, reached};
use super::observe;

/// Size in bytes below which a block is accepted on the receiving thread.
///
/// This needs memory to spare, and takes some milliseconds at most. Waking another thread for each block would take
/// longer.
const SMALL_BYTES: usize = 4 << 20;

/// All pieces of a block but the last have at least this many bytes, so that little is kept beside each.
const LEAST_PIECE_BYTES: usize = 16 << 10;

/// How long a sender waits here that begins an epoch before this worker has heard of it, and how long it may take to say
/// which epoch that is.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a worker waits here that asks for a copy before this worker has heard of the epoch: it may go on without a
/// copy.
const FETCH_PATIENCE: Duration = Duration::from_secs(1);

/// Divisor of the memory: the share for all incoming blocks together. A larger block is accepted alone.
const INCOMING_SHARE: u64 = 8;

/// Room for blocks is counted in units of this many bytes, so that 32 bits are enough for more than 4 GiB.
const UNIT_BYTES: u64 = 1 << 10;

/// The epoch that a worker is in.
pub type Current = watch::Sender<Option<Arc<dyn Epoch>>>;

/// Accepts blocks for the epoch that the worker is in, and gives copies.
pub struct ExchangeService {
    joined: Arc<Joined>,
    current: Arc<Current>,
    /// Length that a block may have: none can be larger than the memory that it goes into.
    most_bytes: u64,
    /// Room for the blocks that are on their way, of all senders together.
    room: Room,
    copies: Copies,
}

impl ExchangeService {
    /// For a worker that may hold `most_bytes`, with the epoch that it has a share of, and the one that it runs.
    pub fn new((joined, current): (Arc<Joined>, Arc<Current>), most_bytes: u64, copies: Copies) -> Self {
        Self { joined, current, most_bytes, room: Room::new(most_bytes / INCOMING_SHARE), copies }
    }

    /// The epoch that a sender shows to be a member of, once this worker runs it; `None` if it is over here. How long
    /// this worker may take to open the run is for the coordinator to say, who ends the epoch then.
    async fn epoch(&self, shown: Membership) -> Result<Option<Arc<dyn Epoch>>, Status> {
        match reached(&self.joined, shown.epoch, PATIENCE).await {
            Some(found) if found.epoch > shown.epoch => return Ok(None),
            Some(found) if found != shown => return Err(denied(shown.epoch)),
            Some(_) => {}
            None => return Err(not_in(shown.epoch)),
        }
        let (mut joined, mut current) = (self.joined.subscribe(), self.current.subscribe());
        let runs = |epoch: &Option<Arc<dyn Epoch>>| epoch.as_ref().is_some_and(|e| e.number() >= shown.epoch);
        tokio::select! {
            biased;
            running = current.wait_for(runs) => match running {
                Ok(epoch) => Ok(epoch.clone().filter(|epoch| epoch.membership() == shown)),
                Err(_) => Err(Status::unavailable("this worker is stopping")),
            },
            _ = joined.wait_for(|joined| *joined != Some(shown)) => Err(not_in(shown.epoch)),
        }
    }

    /// Accepts what comes from one sender, until its stream ends. Returns how many blocks it was.
    async fn take_in(
        &self,
        epoch: &Arc<dyn Epoch>,
        from: usize,
        messages: &mut Streaming<PushRequest>,
    ) -> Result<u64, Status> {
        let (mut blocks, mut begun) = (0, None);
        while let Some(message) = messages.message().await? {
            match message.content {
                Some(Content::Frontier(layer)) => epoch.frontier_of(from, Layer(layer)),
                Some(Content::Block(block)) if begun.is_none() => {
                    let mut block = Incoming::new(block, self.most_bytes)?;
                    block.room = Some(self.room.enter(block.whole as u64).await?);
                    begun = Some(block);
                }
                Some(Content::More(bytes)) => match &mut begun {
                    Some(block) => block.add(bytes)?,
                    None => return Err(invalid("more", "expected a block before its continuation")),
                },
                Some(Content::Block(_)) => {
                    return Err(invalid(
                        "block",
                        "expected the rest of the previous block, found another block",
                    ));
                }
                Some(Content::Hello(_)) => {
                    return Err(invalid("hello", "expected a single hello, found a second one"));
                }
                None => return Err(invalid("content", "expected content, found an empty message")),
            }
            if let Some(block) = begun.take_if(|block| block.is_whole()) {
                counter!(observe::RECEIVED_BYTES).increment(block.bytes.len() as u64);
                accept(epoch, from, block).await?;
                blocks += 1;
            }
        }
        Ok(blocks)
    }
}

#[tonic::async_trait]
impl Exchange for ExchangeService {
    type FetchStream = CopyPieces;

    async fn fetch(&self, request: Request<FetchRequest>) -> Result<Response<CopyPieces>, Status> {
        let request = request.into_inner();
        require_version(request.protocol_version)?;
        let shown = Membership::shown(EpochId(request.epoch), &request.secret)?;
        admit(&self.joined, shown, FETCH_PATIENCE).await?;
        self.copies.give(request).await.map(Response::new)
    }

    async fn push(&self, request: Request<Streaming<PushRequest>>) -> Result<Response<PushResponse>, Status> {
        let mut messages = request.into_inner();
        let first = tokio::time::timeout(PATIENCE, messages.message()).await;
        let first = first.map_err(|_| {
            Status::deadline_exceeded(format!("expected a hello within {} s, found none", PATIENCE.as_secs()))
        })??;
        let Some(PushRequest { content: Some(Content::Hello(hello)) }) = first else {
            return Err(invalid("hello", "expected a hello at the start of the stream"));
        };
        let PushHello { protocol_version, epoch, worker, secret } = hello;
        require_version(protocol_version)?;
        let shown = Membership::shown(EpochId(epoch), &secret)?;
        let Some(epoch) = self.epoch(shown).await? else {
            return Ok(Response::new(PushResponse { blocks: 0 }));
        };
        let worker = WorkerId(worker);
        let Some(from) = epoch.member(worker) else {
            let what = format!("expected another member of epoch {}, found worker {worker}", epoch.number());
            return Err(Status::permission_denied(what));
        };
        let blocks = tokio::select! {
            blocks = self.take_in(&epoch, from, &mut messages) => blocks?,
            () = epoch.ended().cancelled_owned() => 0,
        };
        Ok(Response::new(PushResponse { blocks }))
    }
}

/// Room for blocks that are on their way.
struct Room {
    units: Arc<Semaphore>,
    most: u32,
}

impl Room {
    fn new(bytes: u64) -> Self {
        let most = u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        Self { units: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// Waits until there is room for a block; for one that is larger than all of it, until no other is on its way.
    /// Blocks enter in the order in which they began to wait. While one waits, nothing more is received from its
    /// sender.
    async fn enter(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.most);
        let room = Arc::clone(&self.units).acquire_many_owned(units).await;
        room.map_err(|error| Status::internal(error.to_string()))
    }
}

/// A block that is on its way.
struct Incoming {
    layer: Layer,
    lane: Lane,
    checksum: u64,
    whole: usize,
    bytes: BytesList,
    /// Its part of the space for incoming blocks, until it is accepted.
    room: Option<OwnedSemaphorePermit>,
}

impl Incoming {
    fn new(block: PushBlock, most_bytes: u64) -> Result<Self, Status> {
        let lane = Lane::from_code(block.lane)
            .ok_or_else(|| invalid("block.lane", "expected the code of a lane"))?;
        if block.bytes > most_bytes {
            let what = format!(
                "expected at most {most_bytes} bytes, the memory of this worker, found {}",
                block.bytes
            );
            return Err(invalid("block.bytes", what));
        }
        let (layer, checksum, whole) = (Layer(block.layer), block.checksum, block.bytes as usize);
        let mut incoming = Self { layer, lane, checksum, whole, bytes: BytesList::default(), room: None };
        incoming.add(block.first)?;
        Ok(incoming)
    }

    fn add(&mut self, bytes: Bytes) -> Result<(), Status> {
        let left = self.whole - self.bytes.len();
        if bytes.len() > left {
            let what = format!("expected at most {left} more bytes of the block, found {}", bytes.len());
            return Err(invalid("block.bytes", what));
        }
        let length = bytes.len();
        self.bytes.push(bytes);
        if length < LEAST_PIECE_BYTES && !self.is_whole() {
            let what = format!("expected at least {LEAST_PIECE_BYTES} bytes in this piece, found {length}");
            return Err(invalid("more", what));
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.bytes.len() == self.whole
    }
}

/// Has an epoch accept a block: on another thread if that takes long, since this one has other messages to receive. Where
/// memory may be short, a small block may wait as well, until others are in scratch files.
async fn accept(epoch: &Arc<dyn Epoch>, from: usize, block: Incoming) -> Result<(), Status> {
    let is_quick = block.bytes.len() < SMALL_BYTES && epoch.has_room_to_spare();
    let ended = epoch.ended();
    let accept = move |epoch: &dyn Epoch| {
        let Incoming { layer, lane, checksum, bytes: payload, room: _room, .. } = block;
        epoch.accept(from, PeerBlock { layer, lane, checksum, payload })
    };
    let accepted = if is_quick {
        accept(&**epoch)
    } else {
        let epoch = Arc::clone(epoch);
        let accepted = tokio::task::spawn_blocking(move || accept(&*epoch));
        accepted.await.map_err(|error| Status::internal(error.to_string()))?
    };
    match accepted {
        Ok(()) => Ok(()),
        Err(BlockError::Bad(what)) => {
            // The coordinator is to hear of it from this worker, before the sender complains that it was cut off.
            ended.cancelled().await;
            Err(Status::invalid_argument(what))
        }
        Err(BlockError::Worker(error)) => Err(Status::internal(error.to_string())),
    }
}

/// Requires that a peer speaks this protocol.
fn require_version(protocol_version: u32) -> Result<(), Status> {
    if protocol_version == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(Status::failed_precondition(format!(
        "expected protocol {PROTOCOL_VERSION}, found {protocol_version} at the sender; use the same build for both"
    )))
}
