//! How a limit of the disk is kept: what stays free of it, what is removed for that, and how large shards are within it.

use exact2048_solution::{LayerRange, Recipe};

/// The most bytes that are left free for what is written next: shards do not wait for room.
const MOST_HEADROOM: u64 = 64 << 20;

/// At most one part in this many of a limit is left free.
const HEADROOM_SHARE: u64 = 8;

/// A range is worth a shard once it takes one part in `SHARD_SHARE` of a limit, or less; reach that may be removed is
/// worth shards of its own from one part in `APART_SHARE` on, or less.
const SHARD_SHARE: u64 = 32;
const APART_SHARE: u64 = 256;

/// Bytes of reach that are worth shards of their own, where the limit is large.
const MOST_APART: u64 = 1 << 20;

/// What a shard takes of a disk beside its frames and what the index says of them, at most: its header and that of the index,
/// what is missing to whole blocks of the file system, its name.
pub const BESIDE_FRAMES: u64 = 8 << 10;

/// How often in a row more room is made than last time, before a limit counts as too small.
pub const MOST_SHORT: u64 = 4;

/// How many bytes of a limit are left free for what is written next.
pub fn headroom(limit_bytes: u64) -> u64 {
    (limit_bytes / HEADROOM_SHARE).min(MOST_HEADROOM)
}

/// The reach of a run that goes next, until nothing does: all that no step needs any more; and then, on the way up, one range
/// after the other that can be enumerated again, until `times` times the usual headroom is free.
pub fn goes_next(recipe: &Recipe<'_>, limit_bytes: u64, free_bytes: i64, times: u64) -> Vec<LayerRange> {
    let passed = recipe.passed();
    let is_short = free_bytes < (times * headroom(limit_bytes)).cast_signed();
    if passed.is_empty() && is_short && recipe.is_climbing() {
        return recipe.repeatable().into_iter().take(1).collect();
    }
    passed
}

/// The least limit that leaves this many bytes beside its headroom.
pub fn with_headroom(bytes: u64) -> u64 {
    let share = bytes.div_ceil(HEADROOM_SHARE - 1);
    bytes + share.min(MOST_HEADROOM)
}

/// Bytes from which on a range is worth writing, where the shards of one are worth `usual`.
pub fn range_bytes(limit_bytes: Option<u64>, usual: u64) -> u64 {
    limit_bytes.map_or(usual, |limit| (limit / SHARD_SHARE).min(usual))
}

/// Bytes from which on reach that may be removed is written apart from that of kept layers: none where the disk has no limit,
/// since nothing is removed then.
pub fn least_apart(limit_bytes: Option<u64>) -> Option<u64> {
    limit_bytes.map(|limit| (limit / APART_SHARE).min(MOST_APART))
}

#[cfg(test)]
mod tests {
    use exact2048_game::{Layer, Objective, Params, Precision, Spawn4};
    use exact2048_solution::{Commit, Holdings, LayerCounts, Phase};

    use super::*;
    use crate::ranges::SHARD_BYTES;

    /// Kept are 4, 6, 8, and 16 and 18, 32 and 34, 48 and 50.
    #[test]
    fn reach_goes_by_ranges_until_there_is_room_to_climb() {
        let (board, spawn4) = ("2x2".parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap();
        let params = params.with_kept("8".parse().unwrap());
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
        let goes = |held: &Holdings, free, times| goes_next(&Recipe::new(&params, held), limit, free, times);

        let mut held: Holdings =
            vec![up(4, 8), up(10, 14), up(16, 18), up(20, 30), up(32, 34), up(36, 40)].into();
        assert_eq!(goes(&held, usual, 1), []);
        assert_eq!(goes(&held, usual, 2), [range(10, 14)]);
        assert_eq!(goes(&held, usual - 1, 1), [range(10, 14)]);
        held.remove(&[range(10, 14)]);
        assert_eq!(goes(&held, -usual, 1), [range(20, 30)]);
        held.remove(&[range(20, 30)]);
        assert_eq!(goes(&held, -usual, 1), [], "36 to 40 are what the way up goes on from");

        // All is counted: what is needed again stays until it is passed, however little is free.
        let mut held: Holdings = vec![up(4, 18), up(20, 30), up(32, 34), up(36, 44), up(46, 60)].into();
        assert_eq!(goes(&held, -usual, 1), []);
        held.add(commit(Phase::BackUp, 32, 60));
        assert_eq!(goes(&held, usual, 1), [range(36, 44)]);
    }

    #[test]
    fn what_is_asked_for_fits_beside_the_headroom() {
        for bytes in [0, 1, 7_000, 1 << 20, 450 << 20, 1 << 40] {
            let limit = with_headroom(bytes);
            assert!(limit - headroom(limit) >= bytes, "{bytes}: {limit}");
            assert!(limit <= bytes + bytes / 7 + 1);
        }
    }

    #[test]
    fn shards_are_small_where_the_limit_is() {
        assert_eq!((range_bytes(None, SHARD_BYTES), least_apart(None)), (SHARD_BYTES, None));
        assert_eq!(range_bytes(Some(1 << 40), 3 * SHARD_BYTES), 3 * SHARD_BYTES);
        assert_eq!(range_bytes(Some(64 << 20), 3 * SHARD_BYTES), 2 << 20);
        assert_eq!(least_apart(Some(64 << 20)), Some(256 << 10));
    }
}
