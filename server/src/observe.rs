//! Names and descriptions of the query service's metrics.

use metrics::{Unit, counter, describe_counter, describe_gauge};

/// Number of answered states, by status.
pub const STATES: &str = "exact2048_states_answered_total";
/// Number of look-ups of decoded parts that were in memory.
pub const CACHE_HITS: &str = "exact2048_cache_hits_total";
/// Number of look-ups of decoded parts that had to be read.
pub const CACHE_MISSES: &str = "exact2048_cache_misses_total";
/// Number of bytes of decoded parts in memory.
pub const CACHE_BYTES: &str = "exact2048_cache_bytes";
/// Capacity for decoded parts in memory, in bytes.
pub const CACHE_CAPACITY_BYTES: &str = "exact2048_cache_capacity_bytes";
/// Number of states with values that were computed because they are not stored.
pub const CONE_STATES: &str = "exact2048_cone_states_total";
/// Number of bytes of computed values in memory.
pub const CONE_BYTES: &str = "exact2048_cone_bytes";
/// Whether the run can answer requests for values.
pub const RUN_SOLVED: &str = "exact2048_run_solved";

/// Whether all requested data was readable.
pub const RUN_READABLE: &str = "exact2048_run_readable";

/// A state with a value.
pub const OK: &str = "ok";
/// An unreachable state.
pub const UNREACHABLE: &str = "unreachable";
/// A number that is not a board of the run's size.
pub const INVALID: &str = "invalid";

/// Registers the descriptions of the metrics, and sets counters to 0 so that they are visible before their first
/// event. Call it once.
pub fn describe() {
    describe_counter!(STATES, "States answered, by status: ok, unreachable or invalid");
    describe_counter!(CACHE_HITS, "Look-ups of decoded parts that were in memory");
    describe_counter!(CACHE_MISSES, "Look-ups of decoded parts that had to be read");
    describe_gauge!(CACHE_BYTES, Unit::Bytes, "Bytes of decoded parts in memory");
    describe_gauge!(CACHE_CAPACITY_BYTES, Unit::Bytes, "Bytes of decoded parts that may be in memory");
    describe_counter!(CONE_STATES, "States whose values were computed because they are not stored");
    describe_gauge!(CONE_BYTES, Unit::Bytes, "Bytes of computed values in memory");
    describe_gauge!(RUN_SOLVED, "1 when the run can answer requests for values");
    describe_gauge!(RUN_READABLE, "0 while a requested shard is damaged or missing");
    for status in [OK, UNREACHABLE, INVALID] {
        counter!(STATES, "status" => status).increment(0);
    }
    for name in [CACHE_HITS, CACHE_MISSES, CONE_STATES] {
        counter!(name).increment(0);
    }
}
