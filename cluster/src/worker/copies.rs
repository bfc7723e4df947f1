//! Copies of committed shards in this worker's cache, for other workers that miss them.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exact2048_net::status::invalid_argument as invalid;
use exact2048_proto::v1::{FetchRequest, FetchResponse};
use exact2048_storage::{RunId, StoreSettings};
use metrics::counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::observe;

/// Bytes of a piece, but for the last one of a copy. At most two are held for each peer.
const PIECE_BYTES: usize = 256 << 10;

/// Copies that are given at once: a worker that gets no copy asks the store.
const MOST_AT_ONCE: usize = 16;

/// A peer that takes nothing for this long gets no more.
const PATIENCE: Duration = Duration::from_secs(30);

/// A copy on its way.
pub type CopyPieces = ReceiverStream<Result<FetchResponse, Status>>;

/// Gives copies.
#[derive(Clone, Debug)]
pub struct Copies {
    cache: StoreSettings,
    at_once: Arc<Semaphore>,
}

impl Copies {
    /// Copies of the shards in a cache.
    pub fn new(cache: StoreSettings) -> Self {
        Self { cache, at_once: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }

    /// Begins to give a copy to a member of the epoch. Its bytes are not verified here: who takes them knows what they should be.
    ///
    /// # Errors
    ///
    /// A status of the call `Fetch`.
    pub async fn give(&self, request: FetchRequest) -> Result<CopyPieces, Status> {
        let FetchRequest { run, header_checksum, .. } = request;
        let run: [u8; 16] =
            run.as_ref().try_into().map_err(|_| invalid("run", "expected the 16 bytes of a run's id"))?;
        let run = RunId(run);
        let Ok(permit) = Arc::clone(&self.at_once).try_acquire_owned() else {
            let what =
                format!("this worker already sends {MOST_AT_ONCE} copies; fetch the shard from the store");
            return Err(exact2048_net::status::exhausted(what));
        };
        let cache = self.cache.clone();
        let opened = tokio::task::spawn_blocking(move || cache.open_copy(run, header_checksum)).await;
        let opened = opened.map_err(|error| Status::internal(error.to_string()))?;
        let found = opened.map_err(|error| Status::internal(format!("cannot read the copy: {error}")))?;
        let none = || {
            Status::not_found(format!("this worker has no copy of shard {header_checksum:016x} of run {run}"))
        };
        let (send, receive) = mpsc::channel(1);
        tokio::spawn(send_pieces(found.ok_or_else(none)?, send, permit));
        Ok(ReceiverStream::new(receive))
    }
}

/// Sends a file piece by piece, each read when the one before it is on its way.
async fn send_pieces(
    mut file: File,
    pieces: mpsc::Sender<Result<FetchResponse, Status>>,
    _permit: OwnedSemaphorePermit,
) {
    loop {
        let read =
            tokio::task::spawn_blocking(move || next_piece(&mut file).map(|piece| (piece, file))).await;
        let piece = match read.map_err(io::Error::other).flatten() {
            Ok((piece, _)) if piece.is_empty() => return,
            Ok((data, rest)) => {
                counter!(observe::GIVEN_BYTES).increment(data.len() as u64);
                file = rest;
                Ok(FetchResponse { data })
            }
            Err(error) => {
                // A peer that has stopped reading does not need the error.
                let _ = pieces.send(Err(Status::internal(format!("cannot read the copy: {error}")))).await;
                return;
            }
        };
        if !matches!(tokio::time::timeout(PATIENCE, pieces.send(piece)).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// The next bytes of a file; empty at its end.
fn next_piece(file: &mut File) -> io::Result<Bytes> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    file.take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
    Ok(piece.into())
}
