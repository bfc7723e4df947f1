//! Long lists in memory that was used before: fresh pages cost about as much as filling them, and the blocks of
//! a layer are about as large as those of the layer before.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

use bytemuck::Pod;

/// Shorter lists are not kept: the allocator has memory for them at hand.
const LEAST_BYTES: usize = 16 << 10;

/// Lists that are kept at once.
const MOST_KEPT: usize = 256;

/// Memory that waits to be used again.
#[derive(Debug)]
pub struct Pool {
    most_bytes: usize,
    /// Live bytes of the process up to which memory is kept.
    most_heap_bytes: usize,
    heap_bytes: fn() -> usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// What was used last is at the back.
    lists: VecDeque<Vec<u64>>,
    bytes: usize,
}

/// A list whose memory goes back to its pool.
#[derive(Debug)]
pub struct Area<T> {
    words: Vec<u64>,
    len: usize,
    pool: Arc<Pool>,
    element: PhantomData<T>,
}

impl Pool {
    /// A pool beside a heap of `limit_bytes` at most, of which `heap_bytes` says how much is in use. It keeps up to
    /// a quarter of that, and nothing where the heap is three quarters full.
    pub fn new(limit_bytes: usize, heap_bytes: fn() -> usize) -> Arc<Self> {
        let (most_bytes, most_heap_bytes) = (limit_bytes / 4, limit_bytes / 4 * 3);
        Arc::new(Self { most_bytes, most_heap_bytes, heap_bytes, kept: Mutex::default() })
    }

    /// A list of `len` elements, whatever they are: zeros, or what was there before.
    pub fn area<T: Pod>(self: &Arc<Self>, len: usize) -> Area<T> {
        let words = (len * size_of::<T>()).div_ceil(size_of::<u64>());
        let kept = self.lock().take(words);
        let words = kept.unwrap_or_else(|| vec![0; words]);
        Area { words, len, pool: Arc::clone(self), element: PhantomData }
    }

    /// Frees what waits.
    pub fn clear(&self) {
        let kept = std::mem::take(&mut *self.lock());
        drop(kept); // after the lock
    }

    fn give(&self, words: Vec<u64>) {
        let bytes = size_of_val(&*words);
        if (LEAST_BYTES..=self.most_bytes).contains(&bytes) && (self.heap_bytes)() <= self.most_heap_bytes {
            let freed = self.lock().add(words, self.most_bytes);
            drop(freed); // after the lock
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Kept {
    /// What was used last of those that are long enough, and at most twice as long.
    fn take(&mut self, words: usize) -> Option<Vec<u64>> {
        let fits = |list: &Vec<u64>| (words..=2 * words).contains(&list.len());
        let found = self.lists.iter().rposition(fits)?;
        let list = self.lists.remove(found)?;
        self.bytes -= size_of_val(&*list);
        Some(list)
    }

    /// Adds a list; gives those that are too much then, longest unused first.
    fn add(&mut self, list: Vec<u64>, most_bytes: usize) -> Vec<Vec<u64>> {
        self.bytes += size_of_val(&*list);
        self.lists.push_back(list);
        let mut freed = Vec::new();
        while (self.bytes > most_bytes || self.lists.len() > MOST_KEPT)
            && let Some(list) = self.lists.pop_front()
        {
            self.bytes -= size_of_val(&*list);
            freed.push(list);
        }
        freed
    }
}

impl<T> Area<T> {
    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

impl<T: Pod> Deref for Area<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let bytes = &bytemuck::cast_slice::<u64, u8>(&self.words)[..self.len * size_of::<T>()];
        bytemuck::cast_slice(bytes)
    }
}

impl<T: Pod> DerefMut for Area<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut self.words)[..self.len * size_of::<T>()];
        bytemuck::cast_slice_mut(bytes)
    }
}

impl<T> Drop for Area<T> {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_where_it_fits() {
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
        assert_ne!(pool.area::<u32>(4_000).as_ptr(), at, "much too long for it");
        assert_eq!(pool.area::<u64>(4_000).as_ptr().cast(), at);
    }

    #[test]
    fn little_is_kept_and_nothing_when_memory_is_short() {
        let pool = Pool::new(1 << 20, || 0);
        let lists: Vec<Area<u64>> = (0..12).map(|_| pool.area(4_000)).collect();
        drop(lists);
        assert_eq!(pool.lock().lists.len(), 8, "a quarter of the limit holds eight");
        pool.clear();
        drop(pool.area::<u64>(100));
        assert_eq!(pool.lock().bytes, 0, "short lists are not kept");
        let full = Pool::new(1 << 20, || (1 << 20) - 1);
        drop(full.area::<u64>(4_000));
        assert_eq!(full.lock().bytes, 0);
    }
}
