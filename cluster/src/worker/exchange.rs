//! The service for the other workers of an epoch. It accepts their blocks, and sends them copies of shards.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exact2048_coordinator::cluster::{EpochId, WorkerId};
use exact2048_game::{Lane, Layer};
use exact2048_net::status::invalid_argument as invalid;
use exact2048_proto::v1::exchange_server::Exchange;
use exact2048_proto::v1::push_request::Content;
use exact2048_proto::v1::{FetchRequest, PushBlock, PushHello, PushRequest, PushResponse};
use exact2048_run::member::{BlockError, PeerBlock};
use exact2048_storage::StoreSettings;
use exact2048_worker::BytesList;
use metrics::counter;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Request, Response, Status, Streaming};

use super::copies::{CopyPieces, SentCopies};
use super::epoch::{Epoch, Present};
use super::membership::{Membership, admit, not_in};
use super::observe;
use super::room::Room;
use crate::wire::check_version;

/// Size in bytes below which a block is accepted on the receiving thread, if there is memory to spare.
///
/// Accepting such a block takes a few milliseconds at most. Waking another thread for each block would take longer.
const SMALL_BYTES: usize = 4 << 20;

/// Minimum size of all pieces of a block but the last, in bytes. So the overhead of each piece is small.
const LEAST_PIECE_BYTES: usize = 16 << 10;

/// Longest wait of a sender whose epoch this worker does not know yet. Also the time limit for a sender's hello.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest wait of a request for a copy whose epoch this worker does not know yet. It is short, because the other
/// worker can read the shard from the store.
const FETCH_PATIENCE: Duration = Duration::from_secs(1);

/// Divisor of the memory that gives the space for all incoming blocks together. A block larger than this space is
/// received alone.
const INCOMING_SHARE: u64 = 8;

/// Accepts blocks for the epoch that the worker is in, and sends copies of shards.
pub struct ExchangeService {
    present: Arc<Present>,
    /// Maximum size of a block in bytes: the memory of this worker.
    most_bytes: u64,
    /// Space for the incoming blocks of all senders together.
    room: Room,
    copies: SentCopies,
}

impl ExchangeService {
    /// Creates the service of a worker that may use `most_bytes` of memory, and that sends copies from a cache.
    pub fn new(present: Arc<Present>, most_bytes: u64, cache: StoreSettings) -> Self {
        let (room, copies) = (Room::new(most_bytes / INCOMING_SHARE), SentCopies::new(cache));
        Self { present, most_bytes, room, copies }
    }

    /// Waits until this worker runs the epoch of a sender's credentials; `None` if this worker has left that epoch.
    /// There is no time limit for opening the run, because the coordinator ends the epoch if that takes too long.
    async fn epoch(&self, shown: Membership) -> Result<Option<Arc<dyn Epoch>>, Status> {
        if !admit(&self.present.joined, shown, PATIENCE).await? {
            return Ok(None);
        }
        let (mut joined, mut current) = (self.present.joined.subscribe(), self.present.running.subscribe());
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

    /// Accepts the messages of one sender until the stream ends. Returns the number of blocks.
    async fn receive(
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
                    // While a block waits, this worker receives nothing else from its sender.
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
                counter!(observe::RECEIVED_BYTES).increment(block.whole as u64);
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
        if !admit(&self.present.joined, shown, FETCH_PATIENCE).await? {
            return Err(not_in(shown.epoch));
        }
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
            blocks = self.receive(&epoch, from, &mut messages) => blocks?,
            () = epoch.ended().cancelled_owned() => 0,
        };
        Ok(Response::new(PushResponse { blocks }))
    }
}

/// An incoming block.
struct Incoming {
    /// The part of the block that has arrived.
    block: PeerBlock,
    whole: usize,
    /// The block's part of the space for incoming blocks, until the block is accepted.
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
        let (layer, checksum, payload) = (Layer(block.layer), block.checksum, BytesList::default());
        let begun = PeerBlock { layer, lane, checksum, payload };
        let mut incoming = Self { block: begun, whole: block.bytes as usize, room: None };
        incoming.add(block.first)?;
        Ok(incoming)
    }

    fn add(&mut self, bytes: Bytes) -> Result<(), Status> {
        let left = self.whole - self.block.payload.len();
        if bytes.len() > left {
            let what = format!("expected at most {left} more bytes of the block, found {}", bytes.len());
            return Err(invalid("block.bytes", what));
        }
        let length = bytes.len();
        self.block.payload.push(bytes);
        if length < LEAST_PIECE_BYTES && !self.is_whole() {
            let what = format!("expected at least {LEAST_PIECE_BYTES} bytes in this piece, found {length}");
            return Err(invalid("more", what));
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.block.payload.len() == self.whole
    }
}

/// Passes a block to an epoch. Uses another thread if that may take long, because this thread must receive other
/// messages. If memory is short, even a small block may have to wait until other blocks are in scratch files.
async fn accept(epoch: &Arc<dyn Epoch>, from: usize, block: Incoming) -> Result<(), Status> {
    let is_quick = block.whole < SMALL_BYTES && epoch.has_spare_memory();
    let ended = epoch.ended();
    let accept = move |epoch: &dyn Epoch| {
        let Incoming { block, room: _room, .. } = block;
        epoch.accept(from, block)
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
            // This worker must report the bad block before the sender reports a broken stream.
            ended.cancelled().await;
            Err(Status::invalid_argument(what))
        }
        Err(BlockError::Worker(error)) => Err(Status::internal(error.to_string())),
    }
}

/// Requires that a peer uses this version of the protocol.
fn require_version(protocol_version: u32) -> Result<(), Status> {
    check_version(protocol_version).map_err(|error| Status::failed_precondition(error.to_string()))
}
