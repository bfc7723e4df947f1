//! Transfer of large objects in equal parts, several at once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};

use super::patience::{GivenUp, is_no_bucket};
use super::{ATTEMPT, Store};
use crate::StorageError;
use crate::error::READING;
use crate::publish::TempFile;

/// Length of a part in bytes. S3 allows 10,000 parts per object, so an object can have 78 GiB, far more than any shard.
const PART_BYTES: u32 = 8 << 20;

/// Number of parts transferred at once. This number times the part length bounds the memory of a transfer.
const PARTS: usize = 4;

/// Slowest accepted transfer rate in bytes per second.
const SLOWEST: u64 = 128 << 10;

impl Store {
    /// Writes the first `length` bytes of `file` as an object, replacing any object of that name.
    ///
    /// Unsuitable for objects that other processes may create, because the write is unconditional.
    pub(crate) fn upload(&self, object: &str, file: &File, length: u64) -> Result<(), StorageError> {
        let file =
            Arc::new(file.try_clone().map_err(|e| StorageError::io("open", self.place_of(object), e))?);
        let (store, place, patience) = (Arc::clone(&self.objects), self.key(object), self.persistently());
        let sent = self.wait("writing", async move {
            let attempt = || send(&store, &place, &file, length);
            patience.of(longest(length)).persist(attempt).await
        })?;
        sent.map_err(|given_up| self.failed("writing", object, given_up))
    }

    /// Fetches an object into an empty file and returns its length in bytes.
    ///
    /// Fetches nothing if the length differs from `expected`.
    pub(crate) fn download(
        &self,
        object: &str,
        temp: &mut TempFile,
        expected: Option<u64>,
    ) -> Result<u64, StorageError> {
        let file = temp.file().try_clone().map_err(|e| StorageError::io("open", temp.path(), e))?;
        let file = Arc::new(file);
        let (store, place, patience) = (Arc::clone(&self.objects), self.key(object), self.persistently());
        let fetched = self.wait(READING, async move {
            let length = patience.persist(|| store.head(&place)).await?.size;
            if expected.is_some_and(|expected| expected != length) {
                return Ok((length, Ok(())));
            }
            let attempt = || fetch(&store, &place, &file, length);
            patience.of(longest(length)).persist(attempt).await.map(|written| (length, written))
        })?;
        let (length, written) = fetched.map_err(|given_up| self.failed(READING, object, given_up))?;
        // This error comes from the local disk.
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        written.map_err(|e| StorageError::write(temp.path(), bytes, e))?;
        Ok(length)
    }

    /// Reads a range of an object; the result is shorter if the object ends earlier.
    pub(crate) fn read_range(&self, object: &str, range: Range<u64>) -> Result<Bytes, StorageError> {
        let (store, place, patience) = (Arc::clone(&self.objects), self.key(object), self.persistently());
        let each = longest(range.end.saturating_sub(range.start));
        let read = self.wait(READING, async move {
            // Clamp the range, because each store refuses a range beyond the end in a different way.
            let length = patience.persist(|| store.head(&place)).await?.size;
            let range = range.start.min(length)..range.end.min(length);
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            patience.of(each).persist(|| store.get_range(&place, range.clone())).await
        })?;
        read.map_err(|given_up: GivenUp| self.failed(READING, object, given_up))
    }
}

/// Returns the timeout of an attempt to move this many bytes.
fn longest(bytes: u64) -> Duration {
    ATTEMPT + Duration::from_secs(bytes / SLOWEST)
}

/// Returns the parts of an object of this length.
fn parts(length: u64) -> impl Iterator<Item = Range<u64>> {
    let part = u64::from(PART_BYTES);
    (0..length.div_ceil(part)).map(move |n| n * part..length.min((n + 1) * part))
}

async fn send(store: &Arc<dyn ObjectStore>, place: &Path, file: &File, length: u64) -> Result<(), Error> {
    // The file was just written, so reading it does not wait for a disk and may run on a request's thread.
    let read = |range: Range<u64>| {
        let mut part = vec![0; usize::try_from(range.end - range.start).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut part, range.start).map(|()| Bytes::from(part)).map_err(of_file)
    };
    if length <= u64::from(PART_BYTES) {
        return store.put(place, PutPayload::from(read(0..length)?)).await.map(drop);
    }
    let part_bytes = usize::try_from(PART_BYTES).unwrap_or(usize::MAX);
    let mut upload = WriteMultipart::new_with_chunk_size(store.put_multipart(place).await?, part_bytes);
    let mut outcome = Ok(());
    for range in parts(length) {
        outcome = upload.wait_for_capacity(PARTS).await;
        match outcome.and_then(|()| read(range)) {
            Ok(part) => upload.put(part),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
        outcome = Ok(());
    }
    match outcome {
        Ok(()) => match upload.finish().await {
            Err(error @ Error::NotFound { .. }) if !is_no_bucket(&error) => Err(forgotten()),
            finished => finished.map(drop),
        },
        Err(error) => {
            // If the abort fails, the store's own rules remove the parts; see docs/stores.md.
            let _ = upload.abort().await;
            Err(error)
        }
    }
}

/// Fetches an object into a file. The inner error is that of writing the file.
async fn fetch(
    store: &Arc<dyn ObjectStore>,
    place: &Path,
    file: &Arc<File>,
    length: u64,
) -> Result<io::Result<()>, Error> {
    let fetched = stream::iter(parts(length).map(Ok::<_, Error>)).map_ok(|range| async move {
        let bytes = store.get_range(place, range.clone()).await?;
        Ok(file.write_all_at(&bytes, range.start))
    });
    let written: Vec<io::Result<()>> = fetched.try_buffer_unordered(PARTS).try_collect().await?;
    Ok(written.into_iter().collect())
}

/// Error for an upload that the store no longer knows when asked to complete it.
///
/// Either the first request completed the upload and its answer was lost, or the store's rules removed the upload. In
/// both cases the upload is repeated.
fn forgotten() -> Error {
    Error::Generic { store: "upload", source: "the store no longer knows the upload".into() }
}

fn of_file(error: io::Error) -> Error {
    Error::Generic { store: "file", source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_an_object_without_overlap() {
        let part = u64::from(PART_BYTES);
        for length in [0, 1, part - 1, part, part + 1, 3 * part, 3 * part + 5] {
            let parts: Vec<_> = parts(length).collect();
            assert_eq!(parts.iter().map(|range| range.end - range.start).sum::<u64>(), length);
            assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
            assert!(parts.iter().all(|range| range.end - range.start <= part && !range.is_empty()));
        }
    }
}
