//! Reasons why published data cannot be read.

use exact2048_storage::{ErrorKind, ItemKey, ShardId, ShardKind, StorageError};

use crate::parts::{ItemKind, PayloadError};

/// The shard to blame for an error: making it again helps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Blame {
    /// This shard.
    Shard(ShardId),
    /// The shard that has this item, or should have it.
    Item(ShardKind, ItemKey),
}

/// Why published data cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A shard cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An item that does not parse.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// An item that must be there is not.
    #[error(
        "expected {} of lane {:#x}, part {}, in the {} shard that covers layer {}, found none; remove the shard and \
         resume the run to recompute it",
        .kind, .part.lane, .part.part, .kind.shard(), .part.layer
    )]
    ItemMissing {
        /// The kind of the missing item.
        kind: ItemKind,
        /// The part that the item would belong to.
        part: ItemKey,
    },
    /// A state that others lead to is not among those that are reachable.
    #[error(
        "expected all reachable states of lane {:#x}, part {}, in the reach shard that covers layer {}, found one \
         missing; remove the shard and resume the run to recompute it",
        .0.lane, .0.part, .0.layer
    )]
    StateMissing(ItemKey),
    /// No shard covers the layer.
    #[error("no {kind} shard covers layer {layer}; resume the run to compute it")]
    NotCovered {
        /// Kind of shard.
        kind: ShardKind,
        /// The layer.
        layer: u32,
    },
}

impl ReadError {
    /// The error that the values of a part, or some of them, are missing.
    #[must_use]
    pub fn no_values(part: ItemKey) -> Self {
        Self::ItemMissing { kind: ItemKind::Values, part }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Payload(_) | Self::ItemMissing { .. } | Self::StateMissing(_) => ErrorKind::DataLoss,
            Self::NotCovered { .. } => ErrorKind::NotComputed,
        }
    }

    /// The shard or item to blame. An item that does not parse blames nothing: its shard is whole, and would
    /// be made the same again.
    #[must_use]
    pub fn blames(&self) -> Option<Blame> {
        match self {
            Self::Storage(error) => error.blames().cloned().map(Blame::Shard),
            Self::ItemMissing { kind, part } => Some(Blame::Item(kind.shard(), kind.key(*part))),
            Self::StateMissing(key) => Some(Blame::Item(ShardKind::Reach, *key)),
            Self::Payload(_) | Self::NotCovered { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Making that shard again is what helps, and its part is named as people know it.
    #[test]
    fn what_is_missing_is_missed_in_its_own_shard() {
        let part = ItemKey { layer: 8, lane: 2, part: 3 };
        for (kind, shard, word) in [
            (ItemKind::Reach, ShardKind::Reach, "expected states"),
            (ItemKind::Values, ShardKind::Values, "expected values"),
            (ItemKind::BestMoves, ShardKind::Values, "expected best moves"),
        ] {
            let error = ReadError::ItemMissing { kind, part };
            assert_eq!(error.blames(), Some(Blame::Item(shard, kind.key(part))));
            assert_eq!(ItemKind::part(kind.key(part)), part);
            let text = error.to_string();
            assert!(text.contains(&format!("the {shard} shard")) && text.contains(word), "{text}");
            assert!(text.contains("part 3,"), "{text}");
        }
    }
}
