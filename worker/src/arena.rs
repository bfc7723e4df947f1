//! A stretch of addresses for long lists. Blocks of values come and go by the gigabyte; their sizes differ, so that the
//! memory of a freed list seldom fits the next one. Here the next list takes a part of that memory, or joins it with
//! its neighbours, and the system does not clear pages again that have memory already.

use std::ops::Range;
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use parking_lot::Mutex;

use crate::extents::Extents;

/// Bytes of a page, as large as the system's huge pages: fewer of them have to be handed out, and addresses that lie
/// far apart are translated faster.
pub const PAGE_BYTES: usize = 2 << 20;

/// The longest stretch of addresses that the system is asked for, in bytes. Addresses that are not used cost nothing.
const MOST_BYTES: usize = 1 << 42;

/// The stretch, and what of it is in use.
#[derive(Debug)]
pub struct Arena {
    map: MmapRaw,
    /// Where the first whole page begins.
    first: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    extents: Extents,
    used: usize,
}

/// Some pages of an arena, which no other extent has.
#[derive(Debug)]
pub struct Extent {
    arena: Arc<Arena>,
    pages: Range<usize>,
}

impl Arena {
    /// Reserves addresses for lists of `limit_bytes` together, and as much again for gaps between them. `None` where
    /// the system does not give them, or is not Linux.
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

    /// Takes pages for `bytes` bytes, which hold zeros or whatever was there before. `None` where no free range is long
    /// enough.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Extent> {
        let mut state = self.state.lock();
        let pages = state.extents.take(bytes.div_ceil(PAGE_BYTES))?;
        state.used += pages.len();
        Some(Extent { arena: Arc::clone(self), pages })
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.state.lock().used * PAGE_BYTES
    }

    /// Bytes that are not in use and have memory.
    pub fn idle_bytes(&self) -> usize {
        self.state.lock().extents.resident() * PAGE_BYTES
    }

    /// Gives memory that is not in use back to the system: at least `bytes` bytes, or all of it.
    pub fn trim(&self, bytes: usize) {
        let mut state = self.state.lock();
        // With the lock: no thread may take pages that are about to lose their memory.
        for pages in state.extents.forget(bytes.div_ceil(PAGE_BYTES)) {
            self.clear(&pages);
        }
    }

    /// Gives the memory of free pages back to the system. They read as zeros, and have no memory until they are written
    /// to.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code, reason = "memory is lost that may be in use")]
    fn clear(&self, pages: &Range<usize>) {
        use memmap2::UncheckedAdvice::DontNeed;
        let first = self.first + pages.start * PAGE_BYTES;
        // SAFETY: no extent has these pages, so that there is no reference to them. Where the system does not do it, they
        // keep their memory, and are as good.
        let _ = unsafe { self.map.unchecked_advise_range(DontNeed, first, pages.len() * PAGE_BYTES) };
    }

    #[cfg(not(target_os = "linux"))]
    fn clear(&self, _: &Range<usize>) {}
}

#[cfg(target_os = "linux")]
fn in_huge_pages(map: &MmapMut) {
    // Where there are none, pages are small.
    let _ = map.advise(memmap2::Advice::HugePage);
}

#[cfg(not(target_os = "linux"))]
fn in_huge_pages(_: &MmapMut) {}

impl Extent {
    /// Bytes of its pages.
    pub fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// The memory.
    #[inline]
    #[allow(unsafe_code, reason = "a slice of what is mapped")]
    pub fn words(&self) -> &[u64] {
        // SAFETY: see `start`; no thread writes while `self` is shared.
        unsafe { std::slice::from_raw_parts(self.start(), self.bytes() / size_of::<u64>()) }
    }

    /// The memory, to write to.
    #[inline]
    #[allow(unsafe_code, reason = "a slice of what is mapped")]
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: see `start`; no other extent has the pages, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.bytes() / size_of::<u64>()) }
    }

    /// Where the pages begin: aligned, and within the map, which `arena` keeps. The pages are mapped to read and to write,
    /// hold zeros or what was written before, and belong to this extent alone until it is dropped.
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
    fn memory_is_used_again_in_other_lengths() {
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
    fn what_is_not_in_use_goes_back_to_the_system() {
        let arena = Arena::new(16 << 20).unwrap();
        let mut extents = [4 << 20, 4 << 20].map(|bytes| arena.take(bytes).unwrap());
        extents.iter_mut().for_each(|extent| extent.words_mut().fill(1));
        let [first, second] = extents;
        drop(second);
        arena.trim(usize::MAX);
        assert_eq!((arena.used_bytes(), arena.idle_bytes()), (4 << 20, 0));
        assert!(first.words().iter().all(|&word| word == 1), "what is in use stays");
        let second = arena.take(4 << 20).unwrap();
        assert!(second.words().iter().all(|&word| word == 0), "its memory is new");
    }

    #[test]
    fn extents_outlive_who_made_the_arena() {
        let extent = Arena::new(16 << 20).unwrap().take(1).unwrap();
        assert_eq!(extent.words().len(), PAGE_BYTES / 8);
    }
}
