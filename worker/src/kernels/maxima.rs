//! The values of states: maxima over moves, and the best moves.

use std::ops::Range;

use exact2048_game::bitset::Number;
use exact2048_game::rowset::Slot;
use exact2048_game::transitions::{Direction, MoveEdge};
use exact2048_game::value::Value;
use multiversion::multiversion;

use super::index_map::{IndexMap, LANES};
use super::wanted::{LONG_ROW_VALUES, WantedVectors};
use super::{COLUMNS_AT_ONCE, MoveRun, Rows, rows_at_once};
use crate::bits::Source;
use crate::pieces::of_slots;

/// The moves of a block into another.
#[derive(Clone, Copy, Debug)]
pub struct Maxima<'a, V> {
    /// The moves, by their effect on columns.
    pub runs: &'a [MoveRun<'a>],
    /// The wanted states. The kernel may write any value to other entries.
    pub wanted: Source<'a>,
    /// Values a row of states.
    pub stride: usize,
    /// The afterstates' rows.
    pub after: Rows<'a, V>,
    /// Stands for each row of afterstates that was not computed. Only moves that win and moves from holes lead to such
    /// rows.
    pub nothing: &'a [V],
}

/// Data about the best move of a state, kept in addition to its value.
trait Best: Copy {
    /// Notes a move to an afterstate of value `after`. Called before `after` may raise the state's value `state`.
    fn note<V: Value>(&mut self, state: V, after: V, direction: Direction);
}

/// Nothing is kept.
impl Best for () {
    #[inline(always)]
    fn note<V: Value>(&mut self, _: V, _: V, _: Direction) {}
}

/// Of the moves with the largest value, the one with the lowest number, in any order of the calls. Unchanged if no move
/// raises the value.
impl Best for Direction {
    #[inline(always)]
    fn note<V: Value>(&mut self, state: V, after: V, direction: Direction) {
        let is_better = (after > state) | ((after == state) & (direction < *self));
        *self = if is_better { direction } else { *self };
    }
}

/// [`Kernels::maxima`](super::Kernels::maxima).
pub fn maxima<V: Value>(plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]) {
    in_blocks(plan, slots, states, &mut vec![(); states.len()]);
}

/// [`Kernels::best_moves`](super::Kernels::best_moves).
pub fn best_moves<V: Value>(
    plan: &Maxima<'_, V>,
    slots: Range<usize>,
    states: &mut [V],
    best: &mut [Direction],
) {
    in_blocks(plan, slots, states, best);
}

/// Works on some rows and columns at a time, so that they and the maps' entries for these columns stay in a cache. That
/// saves time because rows of one mask are neighbours and share index maps, and their targets are neighbours too.
fn in_blocks<V: Value, B: Best>(plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V], best: &mut [B]) {
    let rows_each = rows_at_once(plan.stride);
    let of_rows = if plan.stride >= LONG_ROW_VALUES { of_rows::<V, B, true> } else { of_rows::<V, B, false> };
    let of_slots = plan.runs.iter().filter_map(|run| {
        let edges = of_slots(run.edges, slots.clone(), |edge| edge.from);
        (!edges.is_empty()).then_some(MoveRun { edges, map: run.map })
    });
    if slots.len() <= rows_each {
        let runs: Vec<MoveRun<'_>> = of_slots.collect();
        return of_rows(plan, &runs, slots.start, states, best);
    }
    let (mut rest, mut runs): (Vec<MoveRun<'_>>, _) = (of_slots.collect(), Vec::new());
    let values_each = rows_each * plan.stride;
    let blocks = states.chunks_mut(values_each).zip(best.chunks_mut(values_each));
    for (first, (states, best)) in slots.step_by(rows_each).zip(blocks) {
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
        of_rows(plan, &runs, first, states, best);
    }
}

/// Takes the maxima in the rows from slot `first` on; `runs` has only edges from these rows. In `LONG` rows, vectors
/// without a wanted state are skipped.
///
/// AVX-512 is left out, because compilers would then choose gathers of 16 values. On an AMD EPYC, these take two to
/// nine times as long as 16 loads.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn of_rows<V: Value, B: Best, const LONG: bool>(
    plan: &Maxima<'_, V>,
    runs: &[MoveRun<'_>],
    first: usize,
    states: &mut [V],
    best: &mut [B],
) {
    let stride = plan.stride;
    let slots = first..first + states.len() / stride;
    let (mut wanted, mut wanted_pairs) = (WantedVectors::default(), Vec::new());
    for begin in (0..stride).step_by(COLUMNS_AT_ONCE) {
        let columns = begin..(begin + COLUMNS_AT_ONCE).min(stride);
        wanted.clear();
        if LONG {
            let words = columns.start / 64..columns.end.div_ceil(64).min(plan.wanted.words);
            let rows = slots.clone().map(|slot| &plan.wanted.slot(Slot::from_index(slot))[words.clone()]);
            rows.for_each(|words| wanted.add(words, columns.len()));
        }
        for run in runs {
            match run.map {
                IndexMap::Identity => for_each_edge(plan, run.edges, |from, direction, after| {
                    let row = (from - first) * stride..(from - first + 1) * stride;
                    let state = states[row.clone()][columns.clone()].as_chunks_mut::<LANES>().0;
                    let best = best[row][columns.clone()].as_chunks_mut::<LANES>().0;
                    let after = after[columns.clone()].as_chunks::<LANES>().0;
                    if LONG {
                        for &at in wanted.of_row(from - first, state.len()) {
                            let at = usize::from(at);
                            take_all(&mut state[at], &mut best[at], &after[at], direction);
                        }
                    } else {
                        for ((state, best), after) in state.iter_mut().zip(best).zip(after) {
                            take_all(state, best, after, direction);
                        }
                    }
                }),
                IndexMap::Dense(map) => for_each_edge(plan, run.edges, |from, direction, after| {
                    let row = (from - first) * stride..(from - first + 1) * stride;
                    let state = states[row.clone()][columns.clone()].as_chunks_mut::<LANES>().0;
                    let best = best[row][columns.clone()].as_chunks_mut::<LANES>().0;
                    let after = map.gather(after, columns.start / LANES..columns.end / LANES);
                    if LONG {
                        for &at in wanted.of_row(from - first, state.len()) {
                            let at = usize::from(at);
                            take_all(&mut state[at], &mut best[at], &after.vector(at), direction);
                        }
                    } else {
                        for (at, (state, best)) in state.iter_mut().zip(best).enumerate() {
                            take_all(state, best, &after.vector(at), direction);
                        }
                    }
                }),
                IndexMap::Sparse(map) => {
                    let pairs = map.pairs_from(begin);
                    if pairs.is_empty() {
                        continue;
                    }
                    for_each_edge(plan, run.edges, |from, direction, after| {
                        let row = (from - first) * stride..(from - first + 1) * stride;
                        let pairs = if LONG && !wanted.is_all(from - first) {
                            pairs.of_marked(plan.wanted.slot(Slot::from_index(from)), &mut wanted_pairs)
                        } else {
                            pairs
                        };
                        pairs.for_each((&mut states[row.clone()], &mut best[row]), after, |target, after| {
                            take(target, after, direction);
                        });
                    });
                }
            }
        }
    }
}

/// Raises the values of some columns to those that a move leads to, where these are larger.
#[inline(always)]
fn take_all<V: Value, B: Best>(
    states: &mut [V; LANES],
    best: &mut [B; LANES],
    after: &[V; LANES],
    direction: Direction,
) {
    for lane in 0..LANES {
        take((&mut states[lane], &mut best[lane]), after[lane], direction);
    }
}

#[inline(always)]
fn take<V: Value, B: Best>((state, best): (&mut V, &mut B), after: V, direction: Direction) {
    best.note(*state, after, direction);
    *state = (*state).max(after);
}

/// Calls `visit` with each edge's slot, its direction and the afterstates' values that it leads to.
#[inline(always)]
fn for_each_edge<'a, V>(
    plan: &Maxima<'a, V>,
    edges: &[MoveEdge],
    mut visit: impl FnMut(usize, Direction, &'a [V]),
) {
    for edge in edges.iter().filter(|edge| plan.wanted.occupied.contains(edge.from)) {
        let after = if plan.after.has(edge.to()) { plan.after.row(edge.to()) } else { plan.nothing };
        visit(edge.from.index(), edge.direction(), after);
    }
}
