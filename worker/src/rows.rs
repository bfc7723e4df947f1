//! The two operations of backward induction, on rows of values.
//!
//! Rows are padded to whole vectors of [`LANES`] values, so that loops have no remainder, and the padding
//! holds what index maps lead to where a column takes no part or wins. The functions are compiled for
//! several instruction sets and picked at run time; integer sums and maxima, and f64 operations that are
//! never contracted, give the same bits in all of them.

use std::ops::Range;

use exact2048_game::maps::{DenseMap, IndexMap};
use exact2048_game::rowset::{RowSet, is_set};
use exact2048_game::transitions::{MoveEdge, Spawns};
use exact2048_game::value::{Backup, Value};
use multiversion::multiversion;

use crate::pieces::SlotBits;

/// Values that a row is padded to a multiple of.
pub const LANES: usize = IndexMap::LANES;

/// Rows of values, and which of them were computed.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, V> {
    /// Values a row, a multiple of [`LANES`].
    pub stride: usize,
    /// The rows that there are.
    pub set: &'a RowSet,
    /// One bit a row of the class: whether its values were computed.
    pub occupied: &'a [u64],
    /// The rows.
    pub values: &'a [V],
}

impl<'a, V> Rows<'a, V> {
    #[inline(always)]
    fn has(&self, row: u32) -> bool {
        is_set(self.occupied, row)
    }

    #[inline(always)]
    fn row(&self, row: u32) -> &'a [V] {
        &self.values[self.set.slot(row) * self.stride..][..self.stride]
    }
}

/// Some rows of a block, to be changed by one thread.
#[derive(Debug)]
pub struct RowsMut<'a, V> {
    /// The slot of the first of them.
    pub first: usize,
    /// Values a row, a multiple of [`LANES`].
    pub stride: usize,
    /// The rows.
    pub values: &'a mut [V],
}

/// For each edge whose source slot is in `wanted`: `state[c] = max(state[c], after[map[c]])`. Where the
/// afterstate's row was not computed, `nothing` stands for it: holes lead there, or won games.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
pub fn max_over_edges<V: Value>(
    states: &mut RowsMut<'_, V>,
    wanted: &[u64],
    edges: &[MoveEdge],
    after: Rows<'_, V>,
    nothing: &[V],
    map: &IndexMap,
) {
    let RowsMut { first, stride, ref mut values } = *states;
    for &MoveEdge { from, to } in edges {
        if !is_set(wanted, from) {
            continue;
        }
        let state = &mut values[(from as usize - first) * stride..][..stride];
        let after = if after.has(to) { after.row(to) } else { nothing };
        match map {
            IndexMap::Identity => {
                let (state, _) = state.as_chunks_mut::<LANES>();
                for (state, after) in state.iter_mut().zip(after.as_chunks::<LANES>().0) {
                    for lane in 0..LANES {
                        state[lane] = state[lane].max(after[lane]);
                    }
                }
            }
            IndexMap::Dense(map) => max_dense(state, after, map),
            IndexMap::Sparse(map) => {
                for &(from, to) in map.pairs() {
                    let state = &mut state[from as usize];
                    *state = (*state).max(after[to as usize]);
                }
            }
        }
    }
}

#[inline(always)]
fn max_dense<V: Value>(state: &mut [V], after: &[V], map: &DenseMap) {
    let (state, _) = state.as_chunks_mut::<LANES>();
    map.gather_from(after, |chunk, gathered| {
        let state = &mut state[chunk];
        for lane in 0..LANES {
            state[lane] = state[lane].max(gathered[lane]);
        }
    });
}

/// Means over spawns for each of some slots whose spawns all lead to rows that were computed; gives these slots. `after` are
/// the rows of all. That covers the reachable afterstates; others are read by no reachable state.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
pub fn means_over_spawns<V: Value>(
    after: &mut [V],
    slots: Range<usize>,
    backup: &Backup,
    spawns: &Spawns,
    twos: Rows<'_, V>,
    fours: Rows<'_, V>,
    maps: &[&IndexMap],
) -> SlotBits {
    let mut computed = SlotBits::new(&slots);
    let stride = twos.stride;
    let starts = &spawns.start[slots.start..slots.end + 1];
    let ranges = starts.windows(2).map(|w| w[0] as usize..w[1] as usize);
    let rows = after.chunks_exact_mut(stride).zip(slots);
    for ((after, slot), range) in rows.zip(ranges) {
        let (to2, to4) = (&spawns.twos[range.clone()], &spawns.fours[range.clone()]);
        let all_there = !range.is_empty()
            && to2.iter().all(|edge| twos.has(edge.row))
            && to4.iter().all(|edge| fours.has(edge.row));
        if !all_there {
            continue;
        }
        computed.set(slot);
        let divisor = backup.divisor(range.len());
        let (after, _) = after.as_chunks_mut::<LANES>();
        for (chunk, after) in after.iter_mut().enumerate() {
            let mut sum2 = [V::Sum::default(); LANES];
            let mut sum4 = [V::Sum::default(); LANES];
            for edge in to2 {
                add_chunk(&mut sum2, twos.row(edge.row), chunk, maps[edge.pattern as usize]);
            }
            for edge in to4 {
                add_chunk(&mut sum4, fours.row(edge.row), chunk, maps[edge.pattern as usize]);
            }
            for lane in 0..LANES {
                after[lane] = V::mean(sum2[lane], sum4[lane], divisor);
            }
        }
    }
    computed
}

#[inline(always)]
fn add_chunk<V: Value>(sums: &mut [V::Sum; LANES], state: &[V], chunk: usize, map: &IndexMap) {
    match map {
        IndexMap::Identity => {
            let values = &state.as_chunks::<LANES>().0[chunk];
            for lane in 0..LANES {
                values[lane].add_to(&mut sums[lane]);
            }
        }
        IndexMap::Dense(map) => {
            let values = map.gather_chunk(state, chunk);
            for lane in 0..LANES {
                values[lane].add_to(&mut sums[lane]);
            }
        }
        // A spawn permutes columns: all of them take part.
        IndexMap::Sparse(_) => {}
    }
}
