//! Sends copies of committed shards in this worker's cache to other workers that lack them.

use std::sync::Arc;
use std::time::Duration;

use exact2048_net::status::invalid_argument as invalid;
use exact2048_proto::v1::{FetchRequest, FetchResponse};
use exact2048_storage::{RunId, StoreSettings};
use metrics::counter;
use tokio::fs::File;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::io::ReaderStream;
use tonic::Status;

use super::observe;

/// Size in bytes of all pieces of a copy but the last. This worker holds at most three pieces for each copy.
const PIECE_BYTES: usize = 256 << 10;

/// Maximum number of copies that are sent at the same time. A worker that gets no copy reads the store.
const MOST_AT_ONCE: usize = 16;

/// Time without progress after which the transfer of a copy is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pieces of a copy that is being sent.
pub type CopyPieces = ReceiverStream<Result<FetchResponse, Status>>;

/// Sends copies from a cache.
pub struct SentCopies {
    /// Settings of the cache.
    cache: StoreSettings,
    /// Permits for copies that are sent at the same time.
    permits: Arc<Semaphore>,
}

impl SentCopies {
    /// Creates the sender of copies from a cache.
    pub fn new(cache: StoreSettings) -> Self {
        Self { cache, permits: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }

    /// Begins to send a copy to a member of the epoch. Does not verify the copy, because the receiver does.
    ///
    /// # Errors
    ///
    /// A status of the call `Fetch`.
    pub async fn give(&self, request: FetchRequest) -> Result<CopyPieces, Status> {
        let FetchRequest { run, header_checksum, .. } = request;
        let run: [u8; 16] =
            run.as_ref().try_into().map_err(|_| invalid("run", "expected the 16 bytes of a run's id"))?;
        let run = RunId(run);
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
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
        tokio::spawn(send_pieces(found.ok_or_else(none)?.into(), send, permit));
        Ok(ReceiverStream::new(receive))
    }
}

/// Sends a file piece by piece. Reads each piece after the piece before was accepted for sending.
async fn send_pieces(
    file: File,
    pieces: mpsc::Sender<Result<FetchResponse, Status>>,
    _permit: OwnedSemaphorePermit,
) {
    let mut read = ReaderStream::with_capacity(file, PIECE_BYTES);
    while let Some(piece) = read.next().await {
        let piece = piece
            .inspect(|data| counter!(observe::GIVEN_BYTES).increment(data.len() as u64))
            .map(|data| FetchResponse { data })
            .map_err(|error| Status::internal(format!("cannot read the copy: {error}")));
        if !matches!(tokio::time::timeout(PATIENCE, pieces.send(piece)).await, Ok(Ok(()))) {
            return;
        }
    }
}
