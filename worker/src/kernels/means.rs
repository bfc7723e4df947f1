//! The values of afterstates: means over spawns.

use std::ops::Range;

use exact2048_game::SpawnKind;
use exact2048_game::backup::Backup;
use exact2048_game::bitset::Number;
use exact2048_game::rowset::Slot;
use exact2048_game::spawning::{SpawnRule, Spawning};
use exact2048_game::transitions::{SpawnEdge, Spawns};
use exact2048_game::value::{Divisor, Value};
use multiversion::multiversion;

use super::index_map::{LANES, Permutation};
use super::wanted::{LONG_ROW_VALUES, WantedVectors};
use super::{COLUMNS_AT_ONCE, Rows, rows_at_once};
use crate::pieces::SlotBits;

/// The spawns of a block.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a, V> {
    /// The constants of the run.
    pub backup: &'a Backup,
    /// The rows that spawns lead to.
    pub spawns: &'a Spawns,
    /// Their effects on columns, by the numbers in `spawns`.
    pub maps: &'a [&'a Permutation],
    /// The states' rows after a spawned 2.
    pub twos: Rows<'a, V>,
    /// The states' rows after a spawned 4.
    pub fours: Rows<'a, V>,
    /// The entries of `twos` that are states, slot by slot, if they are known.
    pub reached: Option<Marks<'a>>,
}

/// One bit a column, for rows of values.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// Words a row.
    pub words: usize,
    /// The words of all rows.
    pub bits: &'a [u64],
}

/// A row of afterstates, and the rows that its spawns lead to.
struct Sources<'a> {
    /// Its number among the rows that are worked on.
    row: usize,
    divisor: &'a Divisor,
    /// The range in [`AllSources::sources`] of the rows after a spawned 2.
    twos: Range<usize>,
    /// The range of the rows after a spawned 4, with the same length.
    fours: Range<usize>,
    /// The range in [`AllSources::marked`] that marks the states in the rows after a spawned 2.
    ///
    /// It covers the spawns that leave columns in order, and is empty if the states are unknown.
    marked: Range<usize>,
    /// Whether no spawn exchanges columns.
    plain: bool,
}

/// A row of states, and the effect on columns of the spawn that leads to it.
type Source<'a, V> = (&'a [V], &'a Permutation);

/// The sources of some rows.
struct AllSources<'a, V> {
    sources: Vec<Source<'a, V>>,
    /// See [`Sources::marked`].
    marked: Vec<&'a [u64]>,
}

/// [`Kernels::means`](super::Kernels::means).
pub fn means<V: Value>(plan: &Means<'_, V>, slots: Range<usize>, after: &mut [V]) -> SlotBits {
    let mut computed = SlotBits::new(&slots);
    let stride = plan.twos.stride;
    let rows_each = rows_at_once(stride);
    // Short rows are nearly full.
    let plan = &Means { reached: plan.reached.filter(|_| stride >= LONG_ROW_VALUES), ..*plan };
    let (mut rows, mut all) = (Vec::new(), AllSources { sources: Vec::new(), marked: Vec::new() });
    for (first, after) in slots.clone().step_by(rows_each).zip(after.chunks_mut(rows_each * stride)) {
        rows.clear();
        all.sources.clear();
        all.marked.clear();
        for slot in first..(first + rows_each).min(slots.end) {
            if let Some(row) = sources_of(plan, slot, slot - first, &mut all) {
                computed.set(Slot::from_index(slot));
                rows.push(row);
            }
        }
        match plan.backup.rule() {
            SpawnRule::Mean(rule) => of_all_rows(plan, rule, &rows, &all, after),
            SpawnRule::Floating(rule) => of_all_rows(plan, rule, &rows, &all, after),
            SpawnRule::Worst(rule) => of_all_rows(plan, rule, &rows, &all, after),
        }
    }
    computed
}

fn of_all_rows<V: Value, R: Spawning<V>>(
    plan: &Means<'_, V>,
    rule: R,
    rows: &[Sources<'_>],
    all: &AllSources<'_, V>,
    after: &mut [V],
) {
    match plan.reached {
        Some(_) => of_rows::<V, R, true>(rule, rows, all, plan.twos.stride, after),
        None => of_rows::<V, R, false>(rule, rows, all, plan.twos.stride, after),
    }
}

/// The sources of a slot, added to a list; `None` if some of them were not computed, or there is none.
fn sources_of<'a, V: Value>(
    plan: &Means<'a, V>,
    slot: usize,
    row: usize,
    all: &mut AllSources<'a, V>,
) -> Option<Sources<'a>> {
    let spawns = plan.spawns;
    let range = spawns.start[slot] as usize..spawns.start[slot + 1] as usize;
    let (twos, fours) =
        (&spawns.edges(SpawnKind::Two)[range.clone()], &spawns.edges(SpawnKind::Four)[range.clone()]);
    let all_there = !range.is_empty()
        && twos.iter().all(|edge| plan.twos.has(edge.row))
        && fours.iter().all(|edge| plan.fours.has(edge.row));
    if !all_there {
        return None;
    }
    let AllSources { sources, marked } = all;
    let (begin, first_marked) = (sources.len(), marked.len());
    let source = |rows: Rows<'a, V>, edge: &SpawnEdge| (rows.row(edge.row), plan.maps[edge.pattern as usize]);
    sources.extend(twos.iter().map(|edge| source(plan.twos, edge)));
    let middle = sources.len();
    sources.extend(fours.iter().map(|edge| source(plan.fours, edge)));
    let is_plain = |map: &Permutation| map.map().is_none();
    let plain = sources[begin..].iter().all(|(_, map)| is_plain(map));
    if let Some(Marks { words, bits }) = plan.reached {
        let in_order = twos.iter().filter(|edge| is_plain(plan.maps[edge.pattern as usize]));
        let slots = in_order.map(|edge| plan.twos.set.slot(edge.row).index());
        marked.extend(slots.map(|slot| &bits[slot * words..][..words]));
    }
    let marked = first_marked..marked.len();
    let divisor = plan.backup.divisor(range.len());
    let (twos, fours) = (begin..middle, middle..sources.len());
    Some(Sources { row, divisor, twos, fours, marked, plain })
}

#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn of_rows<V: Value, R: Spawning<V>, const MARKED: bool>(
    rule: R,
    rows: &[Sources<'_>],
    all: &AllSources<'_, V>,
    stride: usize,
    after: &mut [V],
) {
    let mut wanted = WantedVectors::default();
    for begin in (0..stride).step_by(COLUMNS_AT_ONCE) {
        let columns = begin..(begin + COLUMNS_AT_ONCE).min(stride);
        let vectors = columns.start / LANES..columns.end / LANES;
        for row in rows {
            let (twos, fours) = (&all.sources[row.twos.clone()], &all.sources[row.fours.clone()]);
            let after = after[row.row * stride..][..stride].as_chunks_mut::<LANES>().0;
            if MARKED {
                wanted.clear();
                add_vectors_leading_to_states(&all.marked[row.marked.clone()], &columns, &mut wanted);
                if !wanted.is_all(0) {
                    after[vectors.clone()].as_flattened_mut().fill(V::default());
                }
                for &number in wanted.of_row(0, vectors.len()) {
                    let vector = vectors.start + usize::from(number);
                    after[vector] = of_vector(rule, twos, fours, row, vector);
                }
            } else {
                for vector in vectors.clone() {
                    after[vector] = of_vector(rule, twos, fours, row, vector);
                }
            }
        }
    }
}

/// The means of a vector of columns.
#[inline(always)]
fn of_vector<V: Value, R: Spawning<V>>(
    rule: R,
    twos: &[Source<'_, V>],
    fours: &[Source<'_, V>],
    row: &Sources<'_>,
    vector: usize,
) -> [V; LANES] {
    let (twos, fours) = if row.plain {
        (sums::<V, R, true>(rule, twos, vector), sums::<V, R, true>(rule, fours, vector))
    } else {
        (sums::<V, R, false>(rule, twos, vector), sums::<V, R, false>(rule, fours, vector))
    };
    let mut means = [V::default(); LANES];
    for lane in 0..LANES {
        means[lane] = rule.value([twos[lane], fours[lane]], row.divisor);
    }
    means
}

/// Adds the vectors of some columns that may hold afterstates from which all spawns lead to states.
#[inline(always)]
fn add_vectors_leading_to_states(marked: &[&[u64]], columns: &Range<usize>, wanted: &mut WantedVectors) {
    let Some(first) = marked.first() else { return wanted.add_all() };
    let words = columns.start / 64..columns.end.div_ceil(64).min(first.len());
    let mut all = [u64::MAX; COLUMNS_AT_ONCE / 64];
    for marked in marked {
        all.iter_mut().zip(&marked[words.clone()]).for_each(|(all, marked)| *all &= marked);
    }
    wanted.add(&all[..words.len()], columns.len());
}

/// Sums up the values of a vector of columns over all sources. `PLAIN` says that no spawn exchanges columns.
#[inline(always)]
fn sums<V: Value, R: Spawning<V>, const PLAIN: bool>(
    rule: R,
    sources: &[Source<'_, V>],
    vector: usize,
) -> [R::Sum; LANES] {
    let mut looks = [R::Scan::default(); LANES];
    if R::NEEDS_SCAN {
        for_each::<V, PLAIN>(sources, vector, |values| {
            for lane in 0..LANES {
                rule.scan(values[lane], &mut looks[lane]);
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
        match map.map() {
            Some(map) if !PLAIN => {
                visit(&map.gather(row, vector..vector + 1).vector(0));
            }
            _ => visit(&row.as_chunks::<LANES>().0[vector]),
        }
    }
}
