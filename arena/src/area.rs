//! Pool of lists: long lists are pages of the arena, shorter lists reuse the memory of dropped lists.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::Pod;
use parking_lot::Mutex;

use crate::arena::{Arena, Extent, PAGE_BYTES};

/// Size of the smallest lists whose memory the pool keeps. The allocator serves smaller lists quickly.
const LEAST_BYTES: usize = 16 << 10;

/// Largest number of kept lists.
const MOST_KEPT: usize = 256;

/// Length in words up to which a kept list serves requests for at least half its length, even if memory is scarce.
const SHORT_WORDS: usize = 1 << 17;

/// Size of the smallest lists that are pages of the arena. Such a list fills at least one page.
const LEAST_EXTENT_BYTES: usize = PAGE_BYTES;

/// Pool of memory for lists. It keeps the memory of dropped lists for later lists.
///
/// The pool may free kept memory at any time, so kept memory does not count as used. Code that needs memory for other
/// data calls [`Pool::trim`] first.
#[derive(Debug)]
pub struct Pool {
    limit_bytes: usize,
    heap_bytes: fn() -> usize,
    kept: Mutex<Kept>,
    arena: Option<Arc<Arena>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Kept lists, the most recently used list at the back.
    lists: VecDeque<Vec<u64>>,
    bytes: usize,
}

/// List that returns its memory to its pool when it is dropped.
#[derive(Debug)]
pub struct Area<T> {
    words: Place,
    len: usize,
    pool: Arc<Pool>,
    element: PhantomData<T>,
}

/// Memory of a list.
#[derive(Debug)]
enum Place {
    List(Vec<u64>),
    Extent(Extent),
}

impl Pool {
    /// Creates a pool for a process that may use `limit_bytes` bytes. `heap_bytes` counts the live bytes of its heap.
    ///
    /// The pool keeps the memory of lists in the arena, and of shorter lists up to a quarter of the limit.
    pub fn new(limit_bytes: usize, heap_bytes: fn() -> usize) -> Arc<Self> {
        let arena = Arena::new(limit_bytes);
        Arc::new(Self { limit_bytes, heap_bytes, kept: Mutex::default(), arena })
    }

    /// Creates a list of `len` elements. The elements are zeros or old contents of the memory.
    pub fn area<T: Pod>(self: &Arc<Self>, len: usize) -> Area<T> {
        let bytes = len * size_of::<T>();
        let words = self.extent(bytes).map_or_else(|| Place::List(self.list(bytes)), Place::Extent);
        Area { words, len, pool: Arc::clone(self), element: PhantomData }
    }

    fn extent(&self, bytes: usize) -> Option<Extent> {
        let arena = self.arena.as_ref().filter(|_| bytes >= LEAST_EXTENT_BYTES)?;
        let extent = arena.take(bytes);
        self.trim(0);
        extent
    }

    fn list(&self, bytes: usize) -> Vec<u64> {
        let words = bytes.div_ceil(size_of::<u64>());
        let is_half_free = self.live_bytes() <= self.limit_bytes / 2;
        let kept = self.kept.lock().take(words, is_half_free);
        kept.unwrap_or_else(|| {
            self.trim(words * size_of::<u64>());
            vec![0; words]
        })
    }

    /// Counts the live bytes of the heap and the used bytes of the arena, without the kept lists.
    pub fn used_bytes(&self) -> usize {
        self.live_bytes().saturating_sub(self.kept.lock().bytes)
    }

    /// Counts the live bytes of the heap, which include the kept lists, and the used bytes of the arena.
    fn live_bytes(&self) -> usize {
        (self.heap_bytes)().saturating_add(self.arena.as_ref().map_or(0, |arena| arena.used_bytes()))
    }

    /// Counts the used bytes and all kept memory: the kept lists and the free pages that have memory.
    pub fn held_bytes(&self) -> usize {
        self.live_bytes().saturating_add(self.arena.as_ref().map_or(0, |arena| arena.idle_bytes()))
    }

    /// Frees kept memory until `bytes` more bytes fit or no memory is kept.
    ///
    /// Lists are freed first, beginning with the least recently used list, and then pages.
    pub fn trim(&self, bytes: usize) {
        let needed = self.held_bytes().saturating_add(bytes).saturating_sub(self.limit_bytes);
        if needed == 0 {
            return;
        }
        let freed = self.kept.lock().free(needed);
        let freed_bytes: usize = freed.iter().map(|list| size_of_val(&**list)).sum();
        drop(freed); // after the lock is released
        if let Some(arena) = self.arena.as_ref().filter(|_| needed > freed_bytes) {
            arena.trim(needed - freed_bytes);
        }
    }

    fn give(&self, words: Place) {
        let most_bytes = self.limit_bytes / 4;
        match words {
            Place::Extent(extent) => drop(extent),
            Place::List(list) if (LEAST_BYTES..=most_bytes).contains(&size_of_val(&*list)) => {
                let freed = self.kept.lock().add(list, most_bytes);
                drop(freed); // after the lock is released
            }
            Place::List(_) => return,
        }
        self.trim(self.unreserved_bytes());
    }

    /// Returns the number of bytes to leave free for memory that no task reserves.
    pub fn unreserved_bytes(&self) -> usize {
        self.limit_bytes / 16
    }
}

impl Kept {
    /// Removes the shortest list that has at least `words` words, unless it is much too long. Of equally long lists,
    /// removes the most recently used list.
    fn take(&mut self, words: usize, is_half_free: bool) -> Option<Vec<u64>> {
        let most = if is_half_free || 2 * words <= SHORT_WORDS { 2 * words } else { words + words / 4 };
        let lists = self.lists.iter().enumerate().rev();
        let fitting = lists.filter(|(_, list)| (words..=most).contains(&list.len()));
        let (found, _) = fitting.min_by_key(|(_, list)| list.len())?;
        let list = self.lists.remove(found)?;
        self.bytes -= size_of_val(&*list);
        Some(list)
    }

    /// Adds a list. Returns the lists to free if the kept lists are too many or have too many bytes.
    fn add(&mut self, list: Vec<u64>, most_bytes: usize) -> Vec<Vec<u64>> {
        self.bytes += size_of_val(&*list);
        self.lists.push_back(list);
        let mut freed = self.free(self.bytes.saturating_sub(most_bytes));
        if self.lists.len() > MOST_KEPT {
            freed.extend(self.pop());
        }
        freed
    }

    /// Removes the least recently used lists that have at least `bytes` bytes in all; all lists if they have fewer.
    fn free(&mut self, bytes: usize) -> Vec<Vec<u64>> {
        let least = self.bytes.saturating_sub(bytes);
        let mut freed = Vec::new();
        while self.bytes > least
            && let Some(list) = self.pop()
        {
            freed.push(list);
        }
        freed
    }

    fn pop(&mut self) -> Option<Vec<u64>> {
        let list = self.lists.pop_front()?;
        self.bytes -= size_of_val(&*list);
        Some(list)
    }
}

impl Place {
    #[inline]
    fn get(&self) -> &[u64] {
        match self {
            Self::List(list) => list,
            Self::Extent(extent) => extent.words(),
        }
    }

    #[inline]
    fn get_mut(&mut self) -> &mut [u64] {
        match self {
            Self::List(list) => list,
            Self::Extent(extent) => extent.words_mut(),
        }
    }
}

impl<T> Area<T> {
    /// Returns the number of bytes of memory that the list takes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(self.words.get())
    }
}

impl<T: Pod> Deref for Area<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let bytes = &bytemuck::cast_slice::<u64, u8>(self.words.get())[..self.len * size_of::<T>()];
        bytemuck::cast_slice(bytes)
    }
}

impl<T: Pod> DerefMut for Area<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes =
            &mut bytemuck::cast_slice_mut::<u64, u8>(self.words.get_mut())[..self.len * size_of::<T>()];
        bytemuck::cast_slice_mut(bytes)
    }
}

impl<T> Drop for Area<T> {
    fn drop(&mut self) {
        self.pool.give(std::mem::replace(&mut self.words, Place::List(Vec::new())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_if_it_fits() {
        let pool = Pool::new(1 << 20, || 0);
        let mut first = pool.area::<u32>(9_001);
        assert_eq!(first.len(), 9_001);
        first.fill(7);
        let at = first.as_ptr();
        drop(first);
        let larger = pool.area::<u64>(9_000);
        assert_ne!(larger.as_ptr().cast(), at);
        let again = pool.area::<u32>(5_000);
        assert_eq!((again.as_ptr(), again.len()), (at, 5_000));
        drop(again);
        assert_ne!(pool.area::<u32>(4_000).as_ptr(), at, "the list is much too long");
        assert_eq!(pool.area::<u64>(4_000).as_ptr().cast(), at);
    }

    #[test]
    fn long_lists_do_not_serve_much_shorter_lists_if_memory_is_scarce() {
        let taken_for = |words: usize, heap_bytes: fn() -> usize| {
            let pool = Pool::new(1 << 30, heap_bytes);
            let list = pool.area::<u64>(7 << 15);
            let at = list.as_ptr();
            drop(list);
            pool.area::<u64>(words).as_ptr() == at
        };
        let half_free: fn() -> usize = || 1 << 29;
        let scarce: fn() -> usize = || (1 << 29) + 1;
        assert!(!taken_for(5 << 15, scarce) && taken_for(6 << 15, scarce));
        assert!(!taken_for(3 << 15, half_free) && taken_for(4 << 15, half_free));
    }

    #[test]
    fn long_lists_reuse_the_memory_of_other_lists() {
        let pool = Pool::new(64 << 20, || 0);
        let mut lists = [8, 10, 12].map(|megabytes| pool.area::<u64>(megabytes << 17));
        lists.iter_mut().for_each(|list| list.fill(1));
        let at = lists[0].as_ptr();
        drop(lists);
        assert_eq!(pool.used_bytes(), 0);
        let long = pool.area::<u64>(30 << 17);
        assert_eq!((long.as_ptr(), long.len(), long.heap_bytes()), (at, 30 << 17, 30 << 20));
        assert!(long.iter().all(|&word| word == 1), "the pages keep their contents");
        assert_eq!((pool.used_bytes(), pool.live_bytes()), (30 << 20, 30 << 20));
    }

    #[test]
    fn long_lists_keep_no_more_than_the_limit() {
        let pool = Pool::new(64 << 20, || 40 << 20);
        let arena = pool.arena.clone().unwrap();
        drop([pool.area::<u64>(10 << 17), pool.area::<u64>(10 << 17)]);
        assert_eq!(arena.idle_bytes(), 20 << 20, "a sixteenth of the limit stays free");
        pool.trim(10 << 20);
        assert_eq!(arena.idle_bytes(), 14 << 20);
        let whole = pool.area::<u64>(60 << 17);
        assert_eq!((arena.used_bytes(), arena.idle_bytes()), (60 << 20, 0));
        drop(whole);
        assert_eq!(arena.idle_bytes(), 20 << 20);
    }

    #[test]
    fn the_shortest_list_that_fits_is_taken() {
        let pool = Pool::new(1 << 30, || 0);
        let lists = [5_000, 4_000, 4_000, 6_000].map(|words| pool.area::<u64>(words));
        let second = lists[2].as_ptr();
        lists.into_iter().for_each(drop);
        assert_eq!(pool.area::<u64>(3_500).as_ptr(), second, "the later of two equally long lists");
    }

    #[test]
    fn kept_lists_take_at_most_a_quarter_of_the_limit() {
        let pool = Pool::new(1 << 20, || 0);
        let lists: Vec<Area<u64>> = (0..12).map(|_| pool.area(4_000)).collect();
        drop(lists);
        assert_eq!(pool.kept.lock().lists.len(), 8, "a quarter of the limit holds eight");
        assert_eq!(pool.kept.lock().bytes, 8 * 32_000);
        drop(pool.kept.lock().free(usize::MAX));
        drop(pool.area::<u64>(100));
        assert_eq!(pool.kept.lock().bytes, 0, "short lists are not kept");
    }

    #[test]
    fn kept_memory_is_freed_if_other_code_needs_memory() {
        let pool = Pool::new(1 << 20, || 900_000);
        let lists: Vec<Area<u64>> = (0..4).map(|_| pool.area(4_000)).collect();
        drop(lists);
        assert_eq!(pool.kept.lock().bytes, 128_000);
        assert_eq!(pool.used_bytes(), 772_000);
        pool.trim(100_000);
        assert_eq!(pool.kept.lock().bytes, 128_000, "the bytes fit");
        pool.trim(200_000);
        assert_eq!(pool.kept.lock().bytes, 64_000, "51,424 bytes were missing");
        let full = Pool::new(1 << 20, || (1 << 20) - 1);
        drop(full.area::<u64>(4_000));
        assert_eq!(full.kept.lock().bytes, 0, "some bytes stay free for unreserved memory");
    }
}
