//! The sinks of a stage's result, which the store holds in any case.

use exact2048_game::legal::Legality;
use exact2048_game::value::Value;
use exact2048_game::value_step::Rounding;
use exact2048_solution::best_moves;
use exact2048_solution::{ItemKind, Parts};
use exact2048_storage::ItemKey;

use crate::bits::BitMatrix;
use crate::error::WorkerError;
use crate::fingerprint::fingerprint;
use crate::moves;
use crate::open_block::{BackedUp, OpenBlock};
use crate::pieces::map_parts;
use crate::policy::best_moves_items;
use crate::seal::Sealer;
use crate::shared::Shared;
use crate::tables::MapCache;

/// The use of the states or values that a stage found, in addition to holding them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sink {
    /// The shards of the layer: packs the states or values if `keep` is set, and best moves if the run stores them.
    ///
    /// It rounds values if the run does, and then also packs the unrounded values of layers that may be in a checkpoint.
    /// It also computes the block's share of the fingerprint.
    Shards {
        /// Whether the shards have the states or values of the layer.
        keep: bool,
    },
    /// The [`Outcome`] gets the reachable states or values, in the form of shards.
    Items,
    /// The [`Outcome`] gets the best moves, in the form that a [`Follower`](crate::Follower) reads. It gets none if the
    /// run stores no best moves.
    BestMoves,
    /// No further use: only later stages read the block.
    Nothing,
}

/// The items of a block: one for each part that has entries.
pub type EncodedItems = Vec<(ItemKey, Vec<u8>)>;

/// The outcome of a stage.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The number of entries up to symmetry, if the stage counted them.
    pub count: u64,
    /// The block's share of the fingerprint, for [`Sink::Shards`] of values.
    pub fingerprint: u128,
    /// The items, for [`Sink::Items`] and [`Sink::BestMoves`].
    pub items: EncodedItems,
}

/// A sink with the parts of the worker that it uses.
pub struct Drain<'a, V> {
    pub sink: Sink,
    pub shared: &'a Shared<V>,
    pub sealer: &'a Sealer,
    /// The legal moves, if the run stores best moves.
    pub legality: Option<&'a Legality>,
}

impl<V: Value> Drain<'_, V> {
    /// Hands over the reachable states of a block. Returns their items if the sink makes some.
    ///
    /// # Errors
    ///
    /// If they cannot be packed.
    pub fn reach(&self, open: &OpenBlock<'_>, matrix: &BitMatrix) -> Result<EncodedItems, WorkerError> {
        let (parts, rows, bits) = (open.parts(), matrix.rows(), matrix.bits());
        let item = |part| parts.encode_reach(part, rows, bits);
        match self.sink {
            Sink::Shards { keep: true } => {
                let lengths = map_parts(parts, |part| parts.reach_bytes(part, rows, bits));
                self.sealer.pack(ItemKind::Reach, open.layer, open.lane, &lengths, item)?;
            }
            Sink::Items => return Ok(items_of(open, item)),
            Sink::Shards { keep: false } | Sink::BestMoves | Sink::Nothing => {}
        }
        Ok(EncodedItems::new())
    }

    /// Hands over the values and best moves of a block's states.
    ///
    /// # Errors
    ///
    /// If they cannot be packed.
    pub fn values(&self, block: &BackedUp<'_, V>, maps: &mut MapCache) -> Result<Outcome, WorkerError> {
        match self.sink {
            Sink::Shards { keep } => {
                self.pack_best_moves(block)?;
                let contents = self.shared.tables.params().contents();
                if keep {
                    self.pack_values(ItemKind::Values, block, self.shared.rounding)?;
                }
                if contents.is_in_checkpoint(block.open.layer) {
                    self.pack_values(ItemKind::Checkpoint, block, None)?;
                }
                let found = fingerprint(self.shared, block, maps);
                Ok(Outcome { count: found.states, fingerprint: found.sum, items: EncodedItems::new() })
            }
            Sink::Items => {
                Ok(Outcome { items: items_of(block.open, block.encoded_values(None)), ..Outcome::default() })
            }
            Sink::BestMoves => Ok(Outcome { items: self.best_moves(block), ..Outcome::default() }),
            Sink::Nothing => Ok(Outcome::default()),
        }
    }

    /// Packs the values of a block for the shard of its layer.
    fn pack_values(
        &self,
        kind: ItemKind,
        block: &BackedUp<'_, V>,
        rounding: Option<Rounding>,
    ) -> Result<(), WorkerError> {
        let (open, matrix, parts) = (block.open, &block.reach.matrix, block.open.parts());
        let lengths = map_parts(parts, |part| parts.values_bytes::<V>(part, matrix.rows(), matrix.bits()));
        self.sealer.pack(kind, open.layer, open.lane, &lengths, block.encoded_values(rounding))
    }

    /// Packs the best moves of a block for the shard of its layer. Cost: some nanoseconds a state.
    fn pack_best_moves(&self, block: &BackedUp<'_, V>) -> Result<(), WorkerError> {
        let Some((legality, best)) = self.legality.zip(block.best) else { return Ok(()) };
        let tables = &self.shared.tables;
        let items = best_moves_items(tables, legality, block, best, |columns, rows| {
            best_moves::encode(columns, rows)
        });
        let lengths: Vec<usize> = items.iter().map(Vec::len).collect();
        let item = |part: u32| items[part as usize].clone();
        self.sealer.pack(ItemKind::BestMoves, block.open.layer, block.open.lane, &lengths, item)
    }

    /// The best moves of a block in the form that a follower reads.
    fn best_moves(&self, block: &BackedUp<'_, V>) -> EncodedItems {
        let Some((legality, best)) = self.legality.zip(block.best) else { return EncodedItems::new() };
        let items = best_moves_items(&self.shared.tables, legality, block, best, |_, rows| moves::pack(rows));
        let (layer, lane) = (block.open.layer, block.open.lane);
        let keys = (0..).map(|part| ItemKind::BestMoves.key(Parts::key(layer, lane, part)));
        keys.zip(items).filter(|(_, item)| !item.is_empty()).collect()
    }
}

/// The items of the parts of a block that are not empty.
fn items_of(open: &OpenBlock<'_>, item: impl Fn(u32) -> Vec<u8>) -> EncodedItems {
    let items = (0..open.parts().count()).map(|part| (Parts::key(open.layer, open.lane, part), item(part)));
    items.filter(|(_, item)| !item.is_empty()).collect()
}
