//! The memory limit: the bytes that the heap may hold, and scratch files for data that does not fit.
//!
//! The limit applies to the live heap of the whole process, as its allocator reports it, so every allocation counts. A
//! task reserves its memory before it starts. If the reservation does not fit, data that no task uses moves to scratch
//! files. These files are mapped, and their pages are clean once written. So the operating system may drop the pages at
//! any time and read them again.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::Pod;
use exact2048_arena::{Area, Pool};
use exact2048_game::table::{Store, Table};
use exact2048_storage::{MappedFile, ScratchPlace, StorageError};
use parking_lot::{Condvar, Mutex};

use crate::tuning::Heap;

/// Lists below this length stay on the heap, because a separate file and map would cost more than they free.
const LEAST_SPILLED_BYTES: usize = 16 << 10;

/// Free pages that take more than one part in this many of the memory limit are worth giving back.
const MUCH_FREE: usize = 16;

/// The least ratio of all time to the time of giving pages back.
const GIVING_BACK: u32 = 10;

/// The least time between two questions to the system about resident memory.
const ASKING: Duration = Duration::from_millis(10);

/// The memory of a worker.
#[derive(Debug)]
pub struct Memory {
    limit_bytes: usize,
    scratch: ScratchPlace,
    pool: Arc<Pool>,
    heap: Heap,
    /// The earliest time of the next question about resident memory.
    ask_from: Mutex<Instant>,
    tasks: Mutex<Tasks>,
    /// Notified when a task ends.
    ended: Condvar,
}

/// Tasks that hold a reservation.
#[derive(Debug, Default)]
struct Tasks {
    running: usize,
    reserved_bytes: usize,
}

/// The memory that a task needs, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Need {
    /// Bytes in lists of [`Reservation::area`], which may reuse kept memory.
    pub areas: usize,
    /// Bytes outside these lists.
    pub other: usize,
}

/// The right of a task to use this many more bytes, until the reservation is dropped.
#[derive(Debug)]
pub struct Reservation<'a> {
    memory: &'a Memory,
    bytes: usize,
}

impl Memory {
    /// A limit of `limit_bytes` on the live bytes of the heap, with a folder to spill to.
    pub fn new(limit_bytes: usize, heap: Heap, scratch: ScratchPlace) -> Self {
        let (pool, ask_from) = (Pool::new(limit_bytes, heap.live_bytes), Mutex::new(Instant::now()));
        let (tasks, ended) = (Mutex::default(), Condvar::new());
        Self { limit_bytes, scratch, pool, heap, ask_from, tasks, ended }
    }

    /// Gives free pages of the allocator back to the system, if they are many and `bytes` more would exceed the limit.
    fn give_back(&self, bytes: usize) {
        // If the lock is held, another task gives pages back.
        let Some(mut ask_from) = self.ask_from.try_lock() else { return };
        let now = Instant::now();
        // Asking takes as long as a small task. So it waits until used and wanted bytes exceed half of the limit.
        if now < *ask_from || self.fits(bytes.saturating_add(self.limit_bytes / 2)) {
            return;
        }
        let resident = (self.heap.resident_bytes)();
        let free = resident.saturating_sub(self.pool.held_bytes());
        if resident.saturating_add(bytes) > self.limit_bytes && free > self.limit_bytes / MUCH_FREE {
            (self.heap.give_back)();
        }
        *ask_from = now + ASKING.max(GIVING_BACK * now.elapsed());
    }

    /// Bytes that the heap may hold.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Whether `bytes` more fit within the limit. Freed memory that the pool keeps for reuse does not count.
    pub fn fits(&self, bytes: usize) -> bool {
        self.pool.used_bytes().saturating_add(bytes) <= self.limit_bytes
    }

    /// Bytes to leave free for memory that no task reserves.
    pub fn unreserved_bytes(&self) -> usize {
        self.pool.unreserved_bytes()
    }

    /// The folder of scratch files.
    pub fn scratch(&self) -> &ScratchPlace {
        &self.scratch
    }

    /// A long list. Its elements hold the old contents of its memory.
    pub fn area<T: Pod>(&self, len: usize) -> Area<T> {
        self.pool.area(len)
    }

    /// Reserves memory for a task, and waits for other tasks to end if the memory does not suffice for all.
    ///
    /// `make_free` gets the number of bytes to make free. A task that runs alone never waits.
    pub fn reserve<E>(
        &self,
        need: Need,
        make_free: impl Fn(usize) -> Result<(), E>,
    ) -> Result<Reservation<'_>, E> {
        let bytes = need.areas + need.other;
        loop {
            let reserved = self.tasks.lock().reserved_bytes;
            make_free(reserved + bytes)?;
            let mut tasks = self.tasks.lock();
            if tasks.running == 0 || self.fits(tasks.reserved_bytes + bytes) {
                tasks.running += 1;
                tasks.reserved_bytes += bytes;
                drop(tasks);
                self.pool.trim(need.other);
                self.give_back(bytes);
                return Ok(Reservation { memory: self, bytes });
            }
            let pause = Duration::from_millis(50);
            self.ended.wait_for(&mut tasks, pause);
        }
    }

    /// Keeps finished data: on the heap if it fits, otherwise in a mapped scratch file.
    pub fn settle<T: Pod>(&self, data: impl Into<Buffer<T>>) -> Result<Buffer<T>, StorageError> {
        let data = data.into();
        if self.fits(0) { Ok(data) } else { self.spilled(&data) }
    }

    /// Keeps finished data in a mapped scratch file, unless it is short.
    pub fn spill<T: Pod>(&self, data: &[T]) -> Result<Buffer<T>, StorageError> {
        if size_of_val(data) < LEAST_SPILLED_BYTES {
            return Ok(Buffer(Inner::Heap(data.to_vec())));
        }
        let mut file = self.scratch.create()?;
        file.append(bytemuck::cast_slice(data))?;
        Ok(Buffer(Inner::Mapped { map: Arc::new(file.map()?), element: std::marker::PhantomData }))
    }

    /// The same data in a mapped scratch file, if it is on the heap and not short.
    pub fn spilled<T: Pod>(&self, data: &Buffer<T>) -> Result<Buffer<T>, StorageError> {
        match &data.0 {
            Inner::Heap(list) => self.spill(list),
            Inner::Area(list) => self.spill(list),
            Inner::Mapped { map, element } => {
                Ok(Buffer(Inner::Mapped { map: Arc::clone(map), element: *element }))
            }
        }
    }
}

impl Store for &Memory {
    type Error = StorageError;

    fn store<T: Pod + Send + Sync>(&mut self, list: &[T]) -> Result<Table<T>, StorageError> {
        Ok(Table::elsewhere(self.spill(list)?))
    }
}

impl Reservation<'_> {
    /// A long list, as [`Memory::area`] makes it. Its bytes are now in memory, and no longer reserved.
    pub fn area<T: Pod>(&mut self, len: usize) -> Area<T> {
        let area = self.memory.area(len);
        let taken = size_of_val(&*area).min(self.bytes);
        self.bytes -= taken;
        self.memory.tasks.lock().reserved_bytes -= taken;
        area
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut tasks = self.memory.tasks.lock();
        tasks.running -= 1;
        tasks.reserved_bytes -= self.bytes;
        drop(tasks);
        self.memory.ended.notify_all();
    }
}

/// Immutable data, on the heap or mapped.
#[derive(Debug)]
pub struct Buffer<T>(Inner<T>);

#[derive(Debug)]
enum Inner<T> {
    Heap(Vec<T>),
    Area(Area<T>),
    Mapped { map: Arc<MappedFile>, element: std::marker::PhantomData<T> },
}

impl<T> Buffer<T> {
    /// The bytes that moving the data to a file would free.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Inner::Heap(list) if size_of_val(&**list) >= LEAST_SPILLED_BYTES => size_of_val(&**list),
            Inner::Area(list) if list.heap_bytes() >= LEAST_SPILLED_BYTES => list.heap_bytes(),
            _ => 0,
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Inner::Heap(list))
    }
}

impl<T> From<Area<T>> for Buffer<T> {
    fn from(list: Area<T>) -> Self {
        Self(Inner::Area(list))
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self(Inner::Heap(Vec::new()))
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Inner::Heap(list) => list,
            Inner::Area(list) => list,
            Inner::Mapped { map, .. } => bytemuck::cast_slice(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn memory(limit: usize) -> Memory {
        Memory::new(limit, Heap::of(|| 1000), std::env::temp_dir().into())
    }

    #[test]
    fn data_is_the_same_in_each_place() {
        let data: Vec<u32> = (0..10_000).collect();
        let held = memory(1000).settle(data.clone()).unwrap();
        assert_eq!(held.heap_bytes(), 40_000);
        let spilled = memory(999).settle(data.clone()).unwrap();
        assert_eq!(spilled.heap_bytes(), 0);
        let again = memory(1000).spilled(&held).unwrap();
        assert_eq!((&*held, &*spilled, &*again), (&data[..], &data[..], &data[..]));
        assert_eq!(memory(0).spilled(&spilled).unwrap()[..], data[..]);
        assert_eq!(&*(&memory(0)).store(&data).unwrap(), &data[..]);
        assert!(memory(0).settle(Vec::<u64>::new()).unwrap().is_empty());
    }

    #[test]
    fn free_pages_are_given_back_if_they_are_many_and_wanted() {
        static TIMES: AtomicUsize = AtomicUsize::new(0);
        static RESIDENT: AtomicUsize = AtomicUsize::new(0);
        let give_back = || {
            TIMES.fetch_add(1, Ordering::Relaxed);
        };
        let heap =
            Heap { live_bytes: || 2000, resident_bytes: || RESIDENT.load(Ordering::Relaxed), give_back };
        let memory = Memory::new(3200, heap, std::env::temp_dir().into());
        let times = |(resident, need)| {
            RESIDENT.store(resident, Ordering::Relaxed);
            *memory.ask_from.lock() = Instant::now();
            memory.give_back(need);
            TIMES.swap(0, Ordering::Relaxed)
        };
        let cases = [(0, 4000), (2100, 3000), (2300, 100), (2300, 1000), (3300, 0)];
        assert_eq!(cases.map(times), [0, 0, 0, 1, 1], "unknown, few, not wanted, wanted, too many already");
        *memory.ask_from.lock() = Instant::now() + Duration::from_secs(3600);
        memory.give_back(0);
        assert_eq!(TIMES.load(Ordering::Relaxed), 0, "pages were given back a moment ago");
    }

    #[test]
    fn a_task_waits_for_memory_unless_it_is_alone() {
        let memory = memory(1500);
        let no_data = |_| Ok::<_, StorageError>(());
        let other = |other| Need { other, ..Need::default() };
        let alone = memory.reserve(other(10_000), no_data).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| memory.reserve(other(100), no_data).map(|r| r.bytes));
            std::thread::sleep(Duration::from_millis(120));
            assert!(!second.is_finished(), "it would exceed the limit");
            drop(alone);
            assert_eq!(second.join().unwrap().unwrap(), 100);
        });
        let (first, second) =
            (memory.reserve(other(200), no_data).unwrap(), memory.reserve(other(300), no_data).unwrap());
        assert_eq!(memory.tasks.lock().reserved_bytes, 500);
        drop((first, second));
        assert_eq!(memory.tasks.lock().running, 0);
    }
}
