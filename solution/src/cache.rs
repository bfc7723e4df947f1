//! Caches with a limit on the total bytes of their entries.

use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};

/// Approximate bytes of an entry of the cache, without its content.
const ENTRY_BYTES: u64 = 128;

/// Number of separately locked parts of a cache. With several locks, threads seldom wait. With more parts, each part
/// would be smaller, and so would the largest possible entry.
const CACHE_SHARDS: usize = 4;

/// A cache that weighs its entries by their bytes.
pub type WeighedCache<K, V> = Cache<K, V, Weigh>;

/// Weighs entries by [`Bytes`].
#[derive(Clone, Debug)]
pub struct Weigh;

/// Size of an entry of a cache.
pub trait Bytes {
    /// Approximate bytes on the heap.
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
