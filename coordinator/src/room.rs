//! How a limit of the disk is divided: what stays free of it, and how large shards are within it.

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
    use super::*;
    use crate::ranges::SHARD_BYTES;

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
