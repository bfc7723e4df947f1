//! Caches that are bounded by the bytes that their entries take.

use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};

/// Bytes that an entry of the cache takes beside what it holds, about.
const ENTRY_BYTES: u64 = 128;

/// The number of parts of a cache: enough that threads seldom wait for a lock, and few, since no entry can be larger
/// than a part.
const CACHE_SHARDS: usize = 4;

/// A cache whose entries weigh what they take.
pub type WeighedCache<K, V> = Cache<K, V, Weigh>;

/// Weighs by [`Bytes`].
#[derive(Clone, Debug)]
pub struct Weigh;

/// Size of an entry of a cache.
pub trait Bytes {
    /// Heap bytes, about.
    fn bytes(&self) -> u64;
}

impl Bytes for Arc<Vec<u8>> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl<K, V: Bytes> Weighter<K, V> for Weigh {
    fn weight(&self, _key: &K, value: &V) -> u64 {
        ENTRY_BYTES + value.bytes()
    }
}

/// A cache of at most `capacity_bytes`, for entries of about `entry_bytes`.
pub fn weighed_cache<K, V>(capacity_bytes: u64, entry_bytes: u64) -> WeighedCache<K, V>
where
    K: Eq + std::hash::Hash + Clone,
    V: Bytes + Clone,
{
    let mut options = OptionsBuilder::new();
    options.shards(CACHE_SHARDS).weight_capacity(capacity_bytes);
    options.estimated_items_capacity((capacity_bytes / entry_bytes).max(1) as usize);
    // Building fails only if one of the two capacities was not given.
    #[allow(clippy::expect_used, reason = "both are given")]
    let options = options.build().expect("capacities are given");
    Cache::with_options(options, Weigh, quick_cache::DefaultHashBuilder::default(), Default::default())
}
