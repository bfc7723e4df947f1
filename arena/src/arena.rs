//! Arena: one long range of addresses for long lists.
//!
//! A solver creates and frees gigabytes of lists. Their sizes differ, so the memory of a freed list seldom fits the
//! next list. In an arena, the next list takes a part of the freed memory, or joins it with free neighbours. So the
//! lists reuse pages that have memory, and the system need not clear fresh pages for them.

use std::ops::Range;
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use parking_lot::Mutex;

use crate::extents::Extents;

/// Size of a page in bytes: that of the system's huge pages.
///
/// So the arena manages few pages, and the processor translates distant addresses faster.
pub const PAGE_BYTES: usize = 2 << 20;

/// Longest range of addresses to request from the system, in bytes. Unused addresses cost nothing.
const MOST_BYTES: usize = 1 << 42;

/// Range of addresses, with the state of its pages.
#[derive(Debug)]
pub struct Arena {
    map: MmapRaw,
    /// Offset of the first whole page from the start of the map, in bytes.
    first: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    extents: Extents,
    used: usize,
}

/// Pages of an arena that belong to no other extent.
#[derive(Debug)]
pub struct Extent {
    arena: Arc<Arena>,
    pages: Range<usize>,
}

impl Arena {
    /// Reserves addresses for lists of `limit_bytes` bytes in all, and as many again for gaps between the lists.
    /// Returns `None` if the system refuses or is not Linux.
    pub fn new(limit_bytes: usize) -> Option<Arc<Self>> {
        if cfg!(not(target_os = "linux")) {
            return None;
        }
        let pages = limit_bytes.saturating_mul(2).min(MOST_BYTES) / PAGE_BYTES;
        let map = MmapOptions::new().len((pages + 1) * PAGE_BYTES).no_reserve_swap().map_anon().ok()?;
        let first = map.as_ptr().align_offset(PAGE_BYTES);
        in_huge_pages(&map);
        let state = Mutex::new(State { extents: Extents::new(pages), used: 0 });
        Some(Arc::new(Self { map: map.into(), first, state }))
    }

    /// Takes pages for `bytes` bytes. The pages hold zeros or old contents. Returns `None` if no free range is long
    /// enough.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Extent> {
        let mut state = self.state.lock();
        let pages = state.extents.take(bytes.div_ceil(PAGE_BYTES))?;
        state.used += pages.len();
        Some(Extent { arena: Arc::clone(self), pages })
    }

    /// Number of bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.state.lock().used * PAGE_BYTES
    }

    /// Number of bytes of free pages that have memory.
    pub fn idle_bytes(&self) -> usize {
        self.state.lock().extents.resident() * PAGE_BYTES
    }

    /// Returns at least `bytes` bytes of memory of free pages to the system; all such memory if there is less.
    pub fn trim(&self, bytes: usize) {
        let mut state = self.state.lock();
        // The lock stays held, because no thread may take pages that are about to lose their memory.
        for pages in state.extents.forget(bytes.div_ceil(PAGE_BYTES)) {
            self.clear(&pages);
        }
    }

    /// Returns the memory of free pages to the system.
    ///
    /// The pages then read as zeros, and have no memory until the next write to them.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code, reason = "a page in use would lose its contents")]
    fn clear(&self, pages: &Range<usize>) {
        use memmap2::UncheckedAdvice::DontNeed;
        let first = self.first + pages.start * PAGE_BYTES;
        // SAFETY: no extent has these pages, so no reference to them exists. If the system refuses, the pages keep
        // their memory, which does no harm.
        let _ = unsafe { self.map.unchecked_advise_range(DontNeed, first, pages.len() * PAGE_BYTES) };
    }

    #[cfg(not(target_os = "linux"))]
    fn clear(&self, _: &Range<usize>) {}
}

#[cfg(target_os = "linux")]
fn in_huge_pages(map: &MmapMut) {
    // A system without huge pages uses small pages.
    let _ = map.advise(memmap2::Advice::HugePage);
}

#[cfg(not(target_os = "linux"))]
fn in_huge_pages(_: &MmapMut) {}

impl Extent {
    /// Number of bytes of the pages.
    pub fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// Words of the pages.
    #[inline]
    #[allow(unsafe_code, reason = "a slice of mapped memory")]
    pub fn words(&self) -> &[u64] {
        // SAFETY: see `start`; no thread writes while `self` is shared.
        unsafe { std::slice::from_raw_parts(self.start(), self.bytes() / size_of::<u64>()) }
    }

    /// Words of the pages, for reading and writing.
    #[inline]
    #[allow(unsafe_code, reason = "a slice of mapped memory")]
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: see `start`; no other extent has the pages, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.bytes() / size_of::<u64>()) }
    }

    /// Start of the pages: aligned, and within the map, which `arena` keeps alive.
    ///
    /// The pages are mapped for reading and writing, and hold zeros or earlier contents. They belong to no other extent
    /// until this extent is dropped.
    #[inline]
    fn start(&self) -> *mut u64 {
        self.arena.map.as_mut_ptr().wrapping_add(self.arena.first + self.pages.start * PAGE_BYTES).cast()
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        let mut state = self.arena.state.lock();
        state.used -= self.pages.len();
        state.extents.give(self.pages.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_serves_lists_of_other_lengths() {
        let arena = Arena::new(16 << 20).unwrap();
        let [mut first, second, third] = [5 << 20, 3 << 20, 1].map(|bytes| arena.take(bytes).unwrap());
        assert_eq!([&first, &second, &third].map(Extent::bytes), [6 << 20, 4 << 20, 2 << 20]);
        assert!(first.words().iter().all(|&word| word == 0), "new memory is zeros");
        first.words_mut().fill(7);
        assert!(second.words().iter().chain(third.words()).all(|&word| word == 0));
        let at = first.words().as_ptr();
        drop((first, second));
        assert_eq!((arena.used_bytes(), arena.idle_bytes()), (2 << 20, 10 << 20));
        let again = arena.take(7 << 20).unwrap();
        assert_eq!((again.words().as_ptr(), again.words()[0]), (at, 7));
        assert_eq!((arena.used_bytes(), arena.idle_bytes()), (10 << 20, 2 << 20));
        assert!(arena.take(32 << 20).is_none(), "there are 32 MiB in all");
    }

    #[test]
    fn the_system_gets_the_memory_of_free_pages() {
        let arena = Arena::new(16 << 20).unwrap();
        let mut extents = [4 << 20, 4 << 20].map(|bytes| arena.take(bytes).unwrap());
        extents.iter_mut().for_each(|extent| extent.words_mut().fill(1));
        let [first, second] = extents;
        drop(second);
        arena.trim(usize::MAX);
        assert_eq!((arena.used_bytes(), arena.idle_bytes()), (4 << 20, 0));
        assert!(first.words().iter().all(|&word| word == 1), "used pages keep their contents");
        let second = arena.take(4 << 20).unwrap();
        assert!(second.words().iter().all(|&word| word == 0), "the second extent has new memory");
    }

    #[test]
    fn extents_outlive_the_last_other_user_of_the_arena() {
        let extent = Arena::new(16 << 20).unwrap().take(1).unwrap();
        assert_eq!(extent.words().len(), PAGE_BYTES / 8);
    }
}
