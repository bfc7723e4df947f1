//! The open shards of a catalog: the most recently used ones, within bounded memory. The indexes of all shards of a
//! whole 4x3 run take 2 GB.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use exact2048_storage::{ErrorKind, Place, ShardReader, StorageError};
use parking_lot::{Mutex, RwLock};

/// Most bytes of the indexes of open shards.
const OPEN_BYTES: usize = 64 << 20;

/// At least this many shards stay open, however large their indexes are, because a reader may alternate between them.
const LEAST_OPEN: usize = 4;

/// A shard that may be open.
#[derive(Debug, Default)]
pub(super) struct Handle {
    reader: RwLock<Option<Arc<ShardReader>>>,
    /// Time of the last failed opening. The lock is held while the shard is opened, so that two threads do not fetch it
    /// from a store twice.
    opening: Mutex<Option<Instant>>,
    /// The value of [`OpenShards::opened`] at the last request for the shard.
    used: AtomicU64,
}

impl Handle {
    fn get(&self) -> Option<Arc<ShardReader>> {
        self.reader.read().clone()
    }

    fn set(&self, reader: Option<Arc<ShardReader>>) {
        *self.reader.write() = reader;
    }
}

/// The open shards of a catalog.
#[derive(Debug)]
pub(super) struct OpenShards {
    /// Most bytes of the indexes of open shards, unless only [`LEAST_OPEN`] shards are open.
    most_bytes: usize,
    /// Number of openings so far.
    opened: AtomicU64,
    open: Mutex<Vec<OpenShard>>,
}

#[derive(Debug)]
struct OpenShard {
    handle: Weak<Handle>,
    bytes: usize,
}

impl Default for OpenShards {
    fn default() -> Self {
        Self { most_bytes: OPEN_BYTES, opened: AtomicU64::default(), open: Mutex::default() }
    }
}

impl OpenShards {
    /// Returns the reader of a handle, which it opens if necessary. Then closes the least recently requested shards if
    /// the indexes of all open shards are too large.
    pub(super) fn reader(
        &self,
        handle: &Arc<Handle>,
        place: &Place,
        open: impl FnOnce() -> Result<ShardReader, StorageError>,
    ) -> Result<Arc<ShardReader>, StorageError> {
        handle.used.store(self.opened.load(Ordering::Relaxed), Ordering::Relaxed);
        if let Some(reader) = handle.get() {
            return Ok(reader);
        }
        let asked = Instant::now();
        let mut failed = handle.opening.lock();
        if let Some(reader) = handle.get() {
            return Ok(reader);
        }
        if failed.is_some_and(|failed| failed > asked) {
            // This thread has waited for another attempt, which failed. Another attempt could take as long.
            return Err(not_opened(place));
        }
        let opened = open();
        if opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
            *failed = Some(Instant::now());
        }
        let reader = Arc::new(opened?);
        handle.set(Some(Arc::clone(&reader)));
        handle.used.store(self.opened.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.add(handle, &reader);
        Ok(reader)
    }

    fn add(&self, handle: &Arc<Handle>, reader: &ShardReader) {
        let bytes = size_of_val(reader.items()) + size_of_val(reader.frames());
        let mut open = self.open.lock();
        open.retain(|open| open.handle.strong_count() > 0);
        open.push(OpenShard { handle: Arc::downgrade(handle), bytes });
        if open.iter().map(|open| open.bytes).sum::<usize>() <= self.most_bytes {
            return;
        }
        // The most recently used shard comes first.
        open.sort_by_cached_key(|open| {
            std::cmp::Reverse(open.handle.upgrade().map_or(0, |handle| handle.used.load(Ordering::Relaxed)))
        });
        let (mut kept, mut sum) = (0, 0);
        open.retain(|open| {
            (kept, sum) = (kept + 1, sum + open.bytes);
            let stays = kept <= LEAST_OPEN || sum <= self.most_bytes;
            if let (false, Some(handle)) = (stays, open.handle.upgrade()) {
                handle.set(None);
            }
            stays
        });
    }
}

/// The error of threads that waited for an attempt of another thread, which failed.
fn not_opened(place: &Place) -> StorageError {
    let source = io::Error::new(io::ErrorKind::TimedOut, "another attempt to open it has just failed");
    StorageError::Io { doing: "open", place: place.clone(), source }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use std::cell::Cell;

    use exact2048_game::{Layer, Params};
    use exact2048_storage::{Frame, ItemKey, ShardWriter};

    use super::*;
    use crate::{Phase, Run, UnnamedPolicy};

    /// The most recently requested shards stay open. The others are closed, and opened again on request.
    #[test]
    fn least_recently_used_shards_are_closed() {
        let place = tempfile::tempdir().unwrap();
        let params = Params::small("2x2");
        let run =
            Run::open_or_create(place.path().join("run").as_path(), &params, UnnamedPolicy::Refuse).unwrap();
        let identity = run.catalog().identity(Phase::Enumerate, Layer(4), Layer(60));
        let mut writer = ShardWriter::create(run.dir(), identity).unwrap();
        let items: Vec<_> =
            (0..1000).map(|part| (ItemKey { layer: 4, lane: 0, part }, &b"item"[..])).collect();
        writer.push(Frame::encode(&items, 1).unwrap()).unwrap();
        let file = place.path().join("run/shards").join(writer.finish().unwrap().file);

        let bytes = 1000 * size_of::<exact2048_storage::Entry>();
        let open = OpenShards { most_bytes: 10 * bytes, ..OpenShards::default() };
        let handles: Vec<Arc<Handle>> = (0..20).map(|_| Arc::default()).collect();
        let (opened, nowhere) = (Cell::new(0), Place::from(&*file));
        let ask = |nth: usize| {
            let reader = open.reader(&handles[nth], &nowhere, || {
                opened.set(opened.get() + 1);
                ShardReader::open(&file, &identity)
            });
            reader.unwrap().items().len()
        };
        let is_open = |nth: usize| handles[nth].get().is_some();
        for nth in 0..9 {
            assert_eq!((ask(nth), ask(0)), (1000, 1000));
        }
        assert_eq!((opened.get(), (0..9).filter(|&nth| is_open(nth)).count()), (9, 9));
        for nth in 9..20 {
            assert_eq!((ask(nth), ask(0)), (1000, 1000));
            assert!((0..20).filter(|&nth| is_open(nth)).count() <= 10);
        }
        assert!(opened.get() == 20 && is_open(0) && is_open(19) && !is_open(1));
        assert_eq!((ask(1), opened.get()), (1000, 21));

        // Some shards stay open, however large their indexes are.
        let open = OpenShards { most_bytes: 1, ..OpenShards::default() };
        let handles: Vec<Arc<Handle>> = (0..20).map(|_| Arc::default()).collect();
        handles.iter().for_each(|handle| {
            drop(open.reader(handle, &nowhere, || ShardReader::open(&file, &identity)).unwrap())
        });
        assert_eq!(handles.iter().filter(|handle| handle.get().is_some()).count(), LEAST_OPEN);
    }

    /// Otherwise the waiting threads would try one after the other, each until the store times out.
    #[test]
    fn threads_that_waited_for_a_failed_attempt_make_none() {
        let nowhere = Place::from(std::path::Path::new("nowhere"));
        let (open, handle) = (OpenShards::default(), Arc::default());
        let (attempts, asking) = (AtomicU64::default(), AtomicU64::default());
        let pause = |millis| std::thread::sleep(std::time::Duration::from_millis(millis));
        let ask = || {
            asking.fetch_add(1, Ordering::Relaxed);
            let opened = open.reader(&handle, &nowhere, || {
                attempts.fetch_add(1, Ordering::Relaxed);
                // The first attempt fails only after all threads have asked, however late they start.
                while asking.load(Ordering::Relaxed) < 4 {
                    pause(1);
                }
                pause(300);
                Err(not_opened(&nowhere))
            });
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::Unavailable);
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(ask))));
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
        ask();
        assert_eq!(attempts.load(Ordering::Relaxed), 2, "a later request tries again");
    }
}
