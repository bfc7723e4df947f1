//! Policy for a disk limit: the free space to leave, the reach to remove, and the sizes of shards.

use exact2048_solution::{LayerRange, Recipe};

/// Largest headroom, in bytes. The headroom is free space for the next shards, so that they do not wait.
const MOST_HEADROOM: u64 = 64 << 20;

/// Divisor of a disk limit. The headroom is at most one part in this number of the limit.
const HEADROOM_SHARE: u64 = 8;

/// Divisors of a disk limit. A range is large enough for a shard at one part in `SHARD_SHARE` of the limit. Removable
/// reach gets separate shards at one part in `APART_SHARE` of the limit.
const SHARD_SHARE: u64 = 32;
const APART_SHARE: u64 = 256;

/// Size in bytes at which removable reach gets separate shards under a large limit.
const MOST_APART: u64 = 1 << 20;

/// Upper bound on a shard's disk space beyond its frames and their index entries. It covers the headers of shard and
/// index, the rest of the last file-system block, and the name.
pub const BESIDE_FRAMES: u64 = 8 << 10;

/// Number of attempts in a row to free more space before a limit counts as too small. Each attempt frees more than
/// the last.
pub const MOST_SHORT: u64 = 4;

/// Returns the number of bytes of a limit to leave free for the next shards.
pub fn headroom(limit_bytes: u64) -> u64 {
    (limit_bytes / HEADROOM_SHARE).min(MOST_HEADROOM)
}

/// Returns the reach to remove next, if any. Reach that no step needs is removed first. In the upward pass, ranges
/// that can be enumerated again follow one by one, until `times` times the usual headroom is free.
pub fn next_removals(recipe: &Recipe<'_>, limit_bytes: u64, free_bytes: i64, times: u64) -> Vec<LayerRange> {
    let passed = recipe.passed();
    let is_short = free_bytes < (times * headroom(limit_bytes)).cast_signed();
    if passed.is_empty() && is_short && recipe.is_climbing() {
        return recipe.repeatable().into_iter().take(1).collect();
    }
    passed
}

/// Returns the smallest limit that leaves this number of bytes in addition to its headroom.
pub fn with_headroom(bytes: u64) -> u64 {
    let share = bytes.div_ceil(HEADROOM_SHARE - 1);
    bytes + share.min(MOST_HEADROOM)
}

/// Returns the minimum size at which a range is written. `usual` is that size without a limit.
pub fn range_bytes(limit_bytes: Option<u64>, usual: u64) -> u64 {
    limit_bytes.map_or(usual, |limit| (limit / SHARD_SHARE).min(usual))
}

/// Returns the minimum size at which removable reach is separated from the reach of kept layers. Returns `None`
/// without a limit, because nothing is removed then.
pub fn least_apart(limit_bytes: Option<u64>) -> Option<u64> {
    limit_bytes.map(|limit| (limit / APART_SHARE).min(MOST_APART))
}

#[cfg(test)]
mod tests {
    use exact2048_game::{KeptLayers, Layer, Params};
    use exact2048_solution::{Commit, Holdings, LayerCounts, Phase};

    use super::*;
    use crate::ranges::SHARD_BYTES;

    /// The run keeps the layers 4, 6, 8, 16, 18, 32, 34, 48 and 50.
    #[test]
    fn reach_is_removed_range_by_range_until_enough_space_is_free() {
        let kept: KeptLayers = "8".parse().unwrap();
        let params = Params::usual("2x2", "score").kept(kept).build().unwrap();
        let commit = |phase, first, last| {
            let layers = first..=last;
            let counts = |layer| LayerCounts { layer: Layer(layer), states: 1, afterstates: 2 };
            Commit {
                phase,
                first: Layer(first),
                last: Layer(last),
                layers: if phase == Phase::Enumerate {
                    layers.step_by(2).map(counts).collect()
                } else {
                    Vec::new()
                },
                fingerprint: (phase == Phase::BackUp).then_some(0),
            }
        };
        let up = |first, last| commit(Phase::Enumerate, first, last);
        let range = |first, last| LayerRange { first: Layer(first), last: Layer(last) };
        let limit = 80 << 20;
        let usual = headroom(limit).cast_signed();
        let removals =
            |held: &Holdings, free, times| next_removals(&Recipe::new(&params, held), limit, free, times);

        let mut held: Holdings =
            vec![up(4, 8), up(10, 14), up(16, 18), up(20, 30), up(32, 34), up(36, 40)].into();
        assert_eq!(removals(&held, usual, 1), []);
        assert_eq!(removals(&held, usual, 2), [range(10, 14)]);
        assert_eq!(removals(&held, usual - 1, 1), [range(10, 14)]);
        held.remove(&[range(10, 14)]);
        assert_eq!(removals(&held, -usual, 1), [range(20, 30)]);
        held.remove(&[range(20, 30)]);
        assert_eq!(removals(&held, -usual, 1), [], "the upward pass continues from 36 to 40");

        // After enumeration, reach that is needed again stays until the downward pass has finished its layers,
        // even if little space is free.
        let mut held: Holdings = vec![up(4, 18), up(20, 30), up(32, 34), up(36, 44), up(46, 60)].into();
        assert_eq!(removals(&held, -usual, 1), []);
        held.add(commit(Phase::BackUp, 32, 60), params.contents());
        assert_eq!(removals(&held, usual, 1), [range(36, 44)]);
    }

    #[test]
    fn requested_bytes_fit_next_to_the_headroom() {
        for bytes in [0, 1, 7_000, 1 << 20, 450 << 20, 1 << 40] {
            let limit = with_headroom(bytes);
            assert!(limit - headroom(limit) >= bytes, "{bytes}: {limit}");
            assert!(limit <= bytes + bytes / 7 + 1);
        }
    }

    #[test]
    fn shards_are_small_under_a_small_limit() {
        assert_eq!((range_bytes(None, SHARD_BYTES), least_apart(None)), (SHARD_BYTES, None));
        assert_eq!(range_bytes(Some(1 << 40), 3 * SHARD_BYTES), 3 * SHARD_BYTES);
        assert_eq!(range_bytes(Some(64 << 20), 3 * SHARD_BYTES), 2 << 20);
        assert_eq!(least_apart(Some(64 << 20)), Some(256 << 10));
    }
}
