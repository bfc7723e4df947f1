//! The fingerprint: a sum over all states that depends on nothing but boards and values.
//!
//! It adds, modulo 2^128, the hash of every state once. So it does not depend on order, on shards, or on the split
//! between skeleton and sequence.

use exact2048_game::value::Value;

use crate::kernels::block_hashes::{BlockHashes, HashSum, OrbitColumns};
use crate::open_block::BackedUp;
use crate::pieces::most_pieces;
use crate::shared::Shared;
use crate::tables::MapCache;

/// Counts the states of a block, up to symmetry, and sums their hashes.
pub fn fingerprint<V: Value>(shared: &Shared<V>, block: &BackedUp<'_, V>, cache: &mut MapCache) -> HashSum {
    let BackedUp { open, transitions, reach, states, .. } = *block;
    let tables = &shared.tables;
    let occurs = |slot| reach.summary.occupied.contains(slot);
    let symmetric = tables.symmetric_rows(cache, &open.tables, transitions, occurs);
    let orbits = symmetric.iter().map(|row| OrbitColumns { slot: row.slot, marked: &row.representatives });
    let plan = BlockHashes {
        space: &tables.space,
        class: open.class,
        columns: &open.tables.columns,
        rows: reach.matrix.rows(),
        configs: tables.configs(transitions),
        skeletons: tables.skeletons(transitions),
        orbits: &orbits.collect::<Vec<_>>(),
        states: reach.source(),
        stride: open.tables.stride(),
        values: states,
    };
    // Every piece makes the words of a mask's columns again.
    let pieces = shared.piece_length.of_values::<V>(plan.rows.len(), plan.stride);
    let pieces = pieces.at_most(most_pieces(open.helpers));
    let found = pieces.map(|slots| shared.kernels.hashes(&plan, slots));
    found.into_iter().fold(HashSum::default(), |all, piece| HashSum {
        states: all.states + piece.states,
        sum: all.sum.wrapping_add(piece.sum),
    })
}
