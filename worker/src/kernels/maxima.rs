//! States' values: maxima over moves.

use std::ops::Range;

use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::rowset::Slot;
use exact2048_game::transitions::MoveEdge;
use exact2048_game::value::Value;
use multiversion::multiversion;

use super::index_map::{IndexMap, LANES};
use super::{COLUMNS_AT_ONCE, MoveRun, Rows, rows_at_once};
use crate::pieces::of_slots;

/// The moves of a block into another.
#[derive(Clone, Copy, Debug)]
pub struct Maxima<'a, V> {
    /// The moves, by what they do to columns.
    pub runs: &'a [MoveRun<'a>],
    /// The states' rows that are wanted.
    pub wanted: &'a BitSet<Slot>,
    /// Values a row of states.
    pub stride: usize,
    /// The afterstates' rows.
    pub after: Rows<'a, V>,
    /// In place of an afterstates' row that was not computed: holes lead there, or won games.
    pub nothing: &'a [V],
}

/// [`Kernels::maxima`](super::Kernels::maxima).
///
/// Rows of one mask are neighbours and share index maps, and their targets are neighbours too. So some rows and columns are
/// worked on at a time, which stay in a cache, as the maps' entries for these columns do.
pub fn maxima<V: Value>(plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]) {
    let rows_each = rows_at_once(plan.stride);
    let of_slots = plan.runs.iter().filter_map(|run| {
        let edges = of_slots(run.edges, slots.clone(), |edge| edge.from);
        (!edges.is_empty()).then_some(MoveRun { edges, map: run.map })
    });
    if slots.len() <= rows_each {
        let runs: Vec<MoveRun<'_>> = of_slots.collect();
        return of_rows(plan, &runs, slots.start, states);
    }
    let (mut rest, mut runs): (Vec<MoveRun<'_>>, _) = (of_slots.collect(), Vec::new());
    for (first, states) in slots.step_by(rows_each).zip(states.chunks_mut(rows_each * plan.stride)) {
        runs.clear();
        for run in &mut rest {
            let end = first + rows_each;
            let here = run.edges.iter().take_while(|edge| edge.from.index() < end).count();
            let (edges, later) = run.edges.split_at(here);
            run.edges = later;
            if here > 0 {
                runs.push(MoveRun { edges, map: run.map });
            }
        }
        of_rows(plan, &runs, first, states);
    }
}

/// The same for rows from slot `first` on, with the edges that are theirs.
///
/// AVX-512 is left out: gathers of 16 values, which compilers then choose, take two to nine times as long as 16 loads (on
/// an AMD EPYC).
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn of_rows<V: Value>(plan: &Maxima<'_, V>, runs: &[MoveRun<'_>], first: usize, states: &mut [V]) {
    let stride = plan.stride;
    for begin in (0..stride).step_by(COLUMNS_AT_ONCE) {
        let columns = begin..(begin + COLUMNS_AT_ONCE).min(stride);
        for run in runs {
            match run.map {
                IndexMap::Identity => for_each_edge(plan, run.edges, |from, after| {
                    let state = &mut states[(from - first) * stride..][..stride][columns.clone()];
                    let after = after[columns.clone()].as_chunks::<LANES>().0;
                    for (state, after) in state.as_chunks_mut::<LANES>().0.iter_mut().zip(after) {
                        for lane in 0..LANES {
                            state[lane] = state[lane].max(after[lane]);
                        }
                    }
                }),
                IndexMap::Dense(map) => for_each_edge(plan, run.edges, |from, after| {
                    let state = &mut states[(from - first) * stride..][..stride][columns.clone()];
                    map.gather(
                        after,
                        columns.start / LANES,
                        state.as_chunks_mut::<LANES>().0,
                        |state, after| {
                            for lane in 0..LANES {
                                state[lane] = state[lane].max(after[lane]);
                            }
                        },
                    );
                }),
                IndexMap::Sparse(map) => {
                    let pairs = map.pairs_from(begin);
                    if pairs.is_empty() {
                        continue;
                    }
                    for_each_edge(plan, run.edges, |from, after| {
                        let state = &mut states[(from - first) * stride..][..stride];
                        pairs.for_each(state, after, |state, after| *state = (*state).max(after));
                    });
                }
            }
        }
    }
}

/// Calls `visit` with each edge's slot and the afterstates' values that it leads to.
#[inline(always)]
fn for_each_edge<'a, V>(plan: &Maxima<'a, V>, edges: &[MoveEdge], mut visit: impl FnMut(usize, &'a [V])) {
    for &MoveEdge { from, to } in edges {
        if plan.wanted.contains(from) {
            visit(from.index(), if plan.after.has(to) { plan.after.row(to) } else { plan.nothing });
        }
    }
}
