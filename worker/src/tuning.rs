//! Settings that change the speed and the memory of a worker, and no result.

/// The heap of the process, as its allocator reports it.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// Counts the live bytes.
    pub live_bytes: fn() -> usize,
    /// Counts the resident bytes of the process without mapped files; 0 if the system does not report them.
    pub resident_bytes: fn() -> usize,
    /// Gives free pages between live blocks back to the system, if the allocator can. It may take a tenth of a second.
    pub give_back: fn(),
}

impl Heap {
    /// A heap whose allocator gives free pages back without a call.
    #[must_use]
    pub const fn of(live_bytes: fn() -> usize) -> Self {
        Self { live_bytes, resident_bytes: || 0, give_back: || () }
    }
}

/// Settings that change the speed and the memory of a worker, and no result.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The limit on live bytes of the heap.
    pub limit_bytes: usize,
    /// The heap of the process.
    pub heap: Heap,
    /// Classes with at most this many rows keep the transitions of all their rows, and most of their blocks hold all
    /// rows. Blocks of larger classes hold only the rows that occur.
    pub dense_rows: usize,
    /// The least length, in bytes, of the pieces of a block of values. Pieces of a block of bits are an eighth as long.
    pub piece_bytes: usize,
}

impl Tuning {
    /// The `dense_rows` that measured well on all boards; see `docs/dev/performance.md`, and [`Tuning::for_run`].
    pub const DENSE_ROWS: usize = 1 << 18;

    /// The length of a piece that takes so long that handing it to another thread adds hardly any time.
    pub const PIECE_BYTES: usize = 512 << 10;

    /// The usual tuning for a limit on live bytes of the heap.
    #[must_use]
    pub fn within(limit_bytes: u64, heap: Heap) -> Self {
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        Self { limit_bytes, heap, dense_rows: Self::DENSE_ROWS, piece_bytes: Self::PIECE_BYTES }
    }
}
