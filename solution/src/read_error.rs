//! Reasons why published data cannot be read.

use exact2048_storage::{ErrorKind, ItemKey, ShardId, ShardKind, StorageError};

use crate::parts::{ItemKind, PayloadError};

/// The shard to blame for an error. Computing it again mends the run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Blame {
    /// This shard.
    Shard(ShardId),
    /// The shard of this item, even if the item is missing.
    Item(ShardKind, ItemKey),
}

/// Reason why published data cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A shard cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An item does not parse.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// A required item is missing.
    #[error(
        "expected {} of lane {:#x}, part {}, in the {} shard that covers layer {}, found none; remove the shard and \
         resume the run to recompute it",
        .kind, .part.lane, .part.part, .kind.shard(), .part.layer
    )]
    ItemMissing {
        /// The kind of the missing item.
        kind: ItemKind,
        /// The part of the missing item.
        part: ItemKey,
    },
    /// The successor of a reachable state is not marked as reachable.
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
    /// The error of a part that lacks values.
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

    /// The shard or item to blame.
    ///
    /// An item that does not parse blames nothing, because its shard is intact, and computing it again would not
    /// change it.
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

    /// The error blames the shard to be computed again, and names the part.
    #[test]
    fn a_missing_item_blames_the_shard_of_its_kind() {
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
