//! Afterstates' values: means over spawns.

use std::ops::Range;

use exact2048_game::bitset::Number;
use exact2048_game::rowset::Slot;
use exact2048_game::spawning::{SpawnRule, Spawning};
use exact2048_game::transitions::{SpawnEdge, Spawns};
use exact2048_game::value::{Backup, Divisor, Value};
use multiversion::multiversion;

use super::index_map::{LANES, Permutation};
use super::{COLUMNS_AT_ONCE, Rows, rows_at_once};
use crate::pieces::SlotBits;

/// The spawns of a block.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a, V> {
    /// The constants of the run.
    pub backup: &'a Backup,
    /// Where spawns lead.
    pub spawns: &'a Spawns,
    /// What they do to columns, by the numbers in `spawns`.
    pub maps: &'a [&'a Permutation],
    /// The states' rows after a spawned 2.
    pub twos: Rows<'a, V>,
    /// The states' rows after a spawned 4.
    pub fours: Rows<'a, V>,
}

/// An afterstates' row and where its spawns lead.
struct Sources<'a> {
    /// Its number among those that are worked on.
    row: usize,
    divisor: &'a Divisor,
    /// States after a spawned 2, and as many after a spawned 4.
    twos: Range<usize>,
    fours: Range<usize>,
    /// Whether no spawn exchanges columns.
    plain: bool,
}

/// A row of states and what leads there does to columns.
type Source<'a, V> = (&'a [V], &'a Permutation);

/// [`Kernels::means`](super::Kernels::means).
pub fn means<V: Value>(plan: &Means<'_, V>, slots: Range<usize>, after: &mut [V]) -> SlotBits {
    let mut computed = SlotBits::new(&slots);
    let stride = plan.twos.stride;
    let rows_each = rows_at_once(stride);
    let (mut rows, mut sources) = (Vec::new(), Vec::new());
    for (first, after) in slots.clone().step_by(rows_each).zip(after.chunks_mut(rows_each * stride)) {
        rows.clear();
        sources.clear();
        for slot in first..(first + rows_each).min(slots.end) {
            if let Some(row) = sources_of(plan, slot, slot - first, &mut sources) {
                computed.set(Slot::from_index(slot));
                rows.push(row);
            }
        }
        match plan.backup.rule() {
            SpawnRule::Mean(rule) => of_rows(rule, &rows, &sources, stride, after),
            SpawnRule::Floating(rule) => of_rows(rule, &rows, &sources, stride, after),
            SpawnRule::Worst(rule) => of_rows(rule, &rows, &sources, stride, after),
        }
    }
    computed
}

/// The sources of a slot, added to a list; `None` where not all of them were computed, or there is none.
fn sources_of<'a, V: Value>(
    plan: &Means<'a, V>,
    slot: usize,
    row: usize,
    sources: &mut Vec<Source<'a, V>>,
) -> Option<Sources<'a>> {
    let spawns = plan.spawns;
    let range = spawns.start[slot] as usize..spawns.start[slot + 1] as usize;
    let (twos, fours) = (&spawns.twos[range.clone()], &spawns.fours[range.clone()]);
    let all_there = !range.is_empty()
        && twos.iter().all(|edge| plan.twos.has(edge.row))
        && fours.iter().all(|edge| plan.fours.has(edge.row));
    if !all_there {
        return None;
    }
    let begin = sources.len();
    let source = |rows: Rows<'a, V>, edge: &SpawnEdge| (rows.row(edge.row), plan.maps[edge.pattern as usize]);
    sources.extend(twos.iter().map(|edge| source(plan.twos, edge)));
    let middle = sources.len();
    sources.extend(fours.iter().map(|edge| source(plan.fours, edge)));
    let plain = sources[begin..].iter().all(|(_, map)| matches!(map, Permutation::Identity));
    let divisor = plan.backup.divisor(range.len());
    let (twos, fours) = (begin..middle, middle..sources.len());
    Some(Sources { row, divisor, twos, fours, plain })
}

#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn of_rows<V: Value, R: Spawning<V>>(
    rule: R,
    rows: &[Sources<'_>],
    sources: &[Source<'_, V>],
    stride: usize,
    after: &mut [V],
) {
    for begin in (0..stride).step_by(COLUMNS_AT_ONCE) {
        let vectors = begin / LANES..(begin + COLUMNS_AT_ONCE).min(stride) / LANES;
        for row in rows {
            let (twos, fours) = (&sources[row.twos.clone()], &sources[row.fours.clone()]);
            let after = after[row.row * stride..][..stride].as_chunks_mut::<LANES>().0;
            for vector in vectors.clone() {
                let (twos, fours) = if row.plain {
                    (sums::<V, R, true>(rule, twos, vector), sums::<V, R, true>(rule, fours, vector))
                } else {
                    (sums::<V, R, false>(rule, twos, vector), sums::<V, R, false>(rule, fours, vector))
                };
                for lane in 0..LANES {
                    after[vector][lane] = rule.value(twos[lane], fours[lane], row.divisor);
                }
            }
        }
    }
}

/// What the values of a vector of columns come to. `PLAIN` where no spawn exchanges columns.
#[inline(always)]
fn sums<V: Value, R: Spawning<V>, const PLAIN: bool>(
    rule: R,
    sources: &[Source<'_, V>],
    vector: usize,
) -> [R::Sum; LANES] {
    let mut looks = [R::Look::default(); LANES];
    if R::LOOKS {
        for_each::<V, PLAIN>(sources, vector, |values| {
            for lane in 0..LANES {
                rule.look(values[lane], &mut looks[lane]);
            }
        });
    }
    let mut sums = [R::NONE; LANES];
    for_each::<V, PLAIN>(sources, vector, |values| {
        for lane in 0..LANES {
            rule.add(values[lane], looks[lane], &mut sums[lane]);
        }
    });
    sums
}

/// Calls `visit` with the values of a vector of columns in each source.
#[inline(always)]
fn for_each<V: Value, const PLAIN: bool>(
    sources: &[Source<'_, V>],
    vector: usize,
    mut visit: impl FnMut(&[V; LANES]),
) {
    for (row, map) in sources {
        match map {
            Permutation::Of(map) if !PLAIN => {
                map.gather(row, vector, std::iter::once(()), |(), values| visit(&values));
            }
            _ => visit(&row.as_chunks::<LANES>().0[vector]),
        }
    }
}
