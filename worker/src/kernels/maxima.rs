//! States' values: maxima over moves.

use std::ops::Range;

use exact2048_game::rowset::is_set;
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
    /// One bit a slot: the states' rows that are wanted.
    pub wanted: &'a [u64],
    /// Values a row of states.
    pub stride: usize,
    /// The afterstates' rows.
    pub after: Rows<'a, V>,
    /// In place of an afterstates' row that was not computed: holes lead there, or won games.
    pub nothing: &'a [V],
}

/// For each edge from one of the slots, if that is wanted: `state[c] = max(state[c], after[map[c]])`. `states` are the rows of
/// the slots.
///
/// Rows of one mask are neighbours and share index maps, and their targets are neighbours too. So some rows and columns are
/// worked on at a time, which stay in a cache, as the maps' entries for these columns do.
pub fn maxima<V: Value>(plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]) {
    let rows_each = rows_at_once(plan.stride);
    // The edges of each run that were not worked on yet.
    let mut rest: Vec<MoveRun<'_>> = Vec::with_capacity(plan.runs.len());
    rest.extend(plan.runs.iter().filter_map(|run| {
        let edges = of_slots(run.edges, slots.clone(), |edge| edge.from);
        (!edges.is_empty()).then_some(MoveRun { edges, map: run.map })
    }));
    let (mut sources, mut runs) = (Vec::new(), Vec::new());
    for (first, states) in slots.step_by(rows_each).zip(states.chunks_mut(rows_each * plan.stride)) {
        sources.clear();
        runs.clear();
        for run in &mut rest {
            let end = first + rows_each;
            let here = run.edges.iter().take_while(|edge| (edge.from as usize) < end).count();
            let (edges, later) = run.edges.split_at(here);
            run.edges = later;
            let wanted = edges.iter().filter(|edge| is_set(plan.wanted, edge.from));
            let begin = sources.len();
            sources.extend(wanted.map(|edge| Source {
                at: (edge.from as usize - first) * plan.stride,
                after: if plan.after.has(edge.to) { plan.after.row(edge.to) } else { plan.nothing },
            }));
            if begin < sources.len() {
                runs.push((run.map, begin..sources.len()));
            }
        }
        of_rows(&runs, &sources, plan.stride, states);
    }
}

/// An edge: where the states' row begins, and the afterstates' row that it leads to.
struct Source<'a, V> {
    at: usize,
    after: &'a [V],
}

/// The same for rows whose edges are listed.
///
/// AVX-512 is left out: gathers of 16 values, which compilers then choose, take two to nine times as long as 16 loads (on
/// an AMD EPYC).
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn of_rows<V: Value>(
    runs: &[(&IndexMap, Range<usize>)],
    sources: &[Source<'_, V>],
    stride: usize,
    states: &mut [V],
) {
    for begin in (0..stride).step_by(COLUMNS_AT_ONCE) {
        let columns = begin..(begin + COLUMNS_AT_ONCE).min(stride);
        let vectors = columns.start / LANES..columns.end / LANES;
        for (map, edges) in runs {
            let edges = &sources[edges.clone()];
            match map {
                IndexMap::Identity => {
                    for edge in edges {
                        let state = &mut states[edge.at..][..stride][columns.clone()];
                        let after = edge.after[columns.clone()].as_chunks::<LANES>().0;
                        for (state, after) in state.as_chunks_mut::<LANES>().0.iter_mut().zip(after) {
                            for lane in 0..LANES {
                                state[lane] = state[lane].max(after[lane]);
                            }
                        }
                    }
                }
                IndexMap::Dense(map) => {
                    for edge in edges {
                        let state = states[edge.at..][..stride].as_chunks_mut::<LANES>().0;
                        map.gather(edge.after, vectors.clone(), |vector, after| {
                            let state = &mut state[vector];
                            for lane in 0..LANES {
                                state[lane] = state[lane].max(after[lane]);
                            }
                        });
                    }
                }
                IndexMap::Sparse(map) => {
                    let pairs = map.pairs_from(begin);
                    if pairs.is_empty() {
                        continue;
                    }
                    for edge in edges {
                        let state = &mut states[edge.at..][..stride];
                        pairs.for_each(state, edge.after, |state, after| *state = (*state).max(after));
                    }
                }
            }
        }
    }
}
