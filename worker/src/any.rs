//! Traits of workers and followers that hide how wide values are. The kernels are large, and generic over that width:
//! callers of these traits do not compile them anew.

use std::io::{self, Read, Write};
use std::sync::Arc;

use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params, Precision};
use exact2048_solution::Archive;
use exact2048_storage::{ItemKey, ScratchPlace, ShardKind};

use crate::{BestMoves, BlockValues, BytesList, FollowSums, Follower, Sealed, Tuning, Worker, WorkerError};

/// Declares a trait with some of the methods that a type has itself, and implements the trait by calling them.
macro_rules! of_own_methods {
    (
        $(#[$doc:meta])*
        pub trait $trait:ident of $type:ident<$($lifetime:lifetime,)? V>;
        $(fn $method:ident($($argument:ident: $of:ty),*) $(-> $result:ty)?;)*
    ) => {
        $(#[$doc])*
        pub trait $trait: Send + Sync {
            $(
                #[doc = concat!("See [`", stringify!($type), "::", stringify!($method), "`].")]
                fn $method(&self, $($argument: $of),*) $(-> $result)?;
            )*
        }

        impl<$($lifetime,)? V: Value> $trait for $type<$($lifetime,)? V> {
            $(
                fn $method(&self, $($argument: $of),*) $(-> $result)? {
                    self.$method($($argument),*)
                }
            )*
        }
    };
}

of_own_methods! {
    /// A [`Worker`] of either width of values.
    pub trait AnyWorker of Worker<V>;

    fn enumerate_states(layer: Layer, lane: Lane, helpers: usize) -> Result<u64, WorkerError>;
    fn enumerate_afterstates(layer: Layer, lane: Lane, helpers: usize) -> Result<u64, WorkerError>;
    fn back_up_afterstates(layer: Layer, lane: Lane, helpers: usize) -> Result<(), WorkerError>;
    fn back_up_states(layer: Layer, lane: Lane, keep: bool, helpers: usize) -> Result<BlockValues, WorkerError>;
    fn seal(kind: ShardKind, layer: Layer) -> Result<Sealed, WorkerError>;

    fn enumerate_items(layer: Layer, lane: Lane, helpers: usize) -> Result<Vec<(ItemKey, Vec<u8>)>, WorkerError>;
    fn back_up_items(layer: Layer, lane: Lane, helpers: usize) -> Result<Vec<(ItemKey, Vec<u8>)>, WorkerError>;
    fn back_up_values(layer: Layer, lane: Lane, helpers: usize) -> Result<(), WorkerError>;
    fn back_up_best_moves(layer: Layer, lane: Lane, helpers: usize) -> Result<Vec<(ItemKey, Vec<u8>)>, WorkerError>;
    fn follower(best_moves: BestMoves, least: f64) -> Box<dyn AnyFollower + '_>;

    fn states_payload(layer: Layer, lane: Lane) -> BytesList;
    fn accept_states(layer: Layer, lane: Lane, payload: BytesList) -> Result<(), WorkerError>;
    fn after_values_payload(layer: Layer, lane: Lane, readers: &[Lane]) -> Result<BytesList, WorkerError>;
    fn accept_after_values(layer: Layer, lane: Lane, payload: BytesList) -> Result<(), WorkerError>;

    fn release_states(layer: Layer);
    fn release_afterstates(layer: Layer);
    fn release_block_states(layer: Layer, lane: Lane);
    fn release_block_afterstates(layer: Layer, lane: Lane);
    fn release_lane(lane: Lane);
    fn release_all();

    fn has_pieces(layer: Layer, lane: Lane) -> bool;
    fn is_memory_short() -> bool;
    fn has_room_to_spare() -> bool;
}

of_own_methods! {
    /// A [`Follower`] of either width of values.
    pub trait AnyFollower of Follower<'a, V>;

    fn follow_states(layer: Layer, lane: Lane) -> Result<FollowSums, WorkerError>;
    fn follow_moves(layer: Layer, lane: Lane) -> Result<u32, WorkerError>;
    fn set_aside() -> Result<(), WorkerError>;
    fn write_afterstates(layer: Layer, out: &mut dyn Write) -> io::Result<()>;
    fn read_afterstates(layer: Layer, input: &mut dyn Read) -> io::Result<()>;
    fn release_states(layer: Layer);
    fn release_afterstates(layer: Layer);
    fn release_all();
}

/// A worker for a run, as [`Worker::new`] makes it, with the width of values that the run has. The function is not
/// generic, so that the kernels are compiled in this crate.
pub fn new_worker(
    params: &Params,
    tuning: Tuning,
    scratch: ScratchPlace,
    archive: Arc<dyn Archive>,
) -> Arc<dyn AnyWorker> {
    match params.game().precision() {
        Precision::Bits32 => Arc::new(Worker::<u32>::new(params, tuning, scratch, archive)),
        Precision::Bits64 => Arc::new(Worker::<u64>::new(params, tuning, scratch, archive)),
    }
}
