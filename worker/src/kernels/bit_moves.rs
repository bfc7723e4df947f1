//! The reachable entries: the effect of spawns and moves on rows of bits.

use exact2048_game::bitset::{Number, any};
use exact2048_game::maps::Pair;
use exact2048_game::rowset::Slot;
use exact2048_game::transitions::MoveEdge;
use multiversion::multiversion;

use super::index_map::{IndexMap, Permutation};
use super::{BitMoves, BitSpawns};
use crate::bits::{BitRows, Source};

/// The number of rows that are moved together: as many as a word has bits.
const ROWS_TOGETHER: usize = 64;

/// The least number of edges for which rows are moved together, measured for rows with a third of their bits set.
const LEAST_TOGETHER: usize = 6;

/// Like [`LEAST_TOGETHER`], for maps in which few columns take part. Moving such rows one by one costs less, but a
/// group transposes all columns.
const LEAST_TOGETHER_OF_FEW: usize = 24;

/// Sets the bits of the states that spawns lead to.
pub fn spawn_bits(plan: &BitSpawns<'_>, states: &mut BitRows<'_>) {
    for (slot, edges) in (0..).map(Slot).zip(plan.start.windows(2)) {
        let Some(from) = plan.afterstates.row(slot) else { continue };
        for edge in &plan.edges[edges[0] as usize..edges[1] as usize] {
            if let Some(to) = states.row_mut(edge.row) {
                or_permuted(to, from, plan.maps[edge.pattern as usize]);
            }
        }
    }
}

/// Sets the bits of the afterstates that moves lead to.
pub fn move_bits(plan: &BitMoves<'_>, afterstates: &mut BitRows<'_>) {
    let mut columns = Vec::new();
    for run in plan.runs {
        or_mapped(afterstates, plan.states, run.edges, run.map, &mut columns);
    }
}

/// For each edge from a slot of the source to a row of the target, sets the target bits to which the map leads the
/// source's bits. Bits that lead to a padding column are dropped, or cleared by [`BitRows::clear_padding`]. Rows
/// without entries are skipped, so their targets need not be rows of the target's set. `columns` is working memory.
///
/// Many rows are moved together. They are transposed, so that a word has one column of 64 rows and moves as a whole.
/// That costs about an eighth of moving each bit separately.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
fn or_mapped(
    target: &mut BitRows<'_>,
    source: Source<'_>,
    edges: &[MoveEdge],
    map: IndexMap<'_>,
    columns: &mut Vec<u64>,
) {
    match map {
        IndexMap::Identity => for_each_edge(target, source, edges, |target, source| {
            for (t, &s) in target.iter_mut().zip(source) {
                *t |= s;
            }
        }),
        IndexMap::Dense(map) if edges.len() >= LEAST_TOGETHER => {
            let leads_to = map.leads_to();
            for_each_group(target, source, edges, |group| {
                columns.clear();
                columns.resize(target_columns(group.target.words()), 0);
                // The map is padded, perhaps to more words than a row has.
                for (word, leads_to) in leads_to.chunks(ROWS_TOGETHER).enumerate().take(source.words) {
                    let Some(moved) = group.source_columns(word) else { continue };
                    for (&moved, &to) in moved.iter().zip(leads_to) {
                        if let Some(column) = columns.get_mut(to as usize) {
                            *column |= moved;
                        }
                    }
                }
                group.add(columns);
            });
        }
        IndexMap::Sparse(map)
            if edges.len() >= LEAST_TOGETHER_OF_FEW && map.pairs().len() >= 4 * source.words =>
        {
            for_each_group(target, source, edges, |group| {
                columns.clear();
                columns.resize(target_columns(group.target.words()), 0);
                let mut moved = (usize::MAX, None);
                for &[from, to] in map.pairs() {
                    let word = from as usize / ROWS_TOGETHER;
                    if moved.0 != word {
                        moved = (word, group.source_columns(word));
                    }
                    if let (Some(moved), Some(column)) = (&moved.1, columns.get_mut(to as usize)) {
                        *column |= moved[from as usize % ROWS_TOGETHER];
                    }
                }
                group.add(columns);
            });
        }
        IndexMap::Dense(map) => {
            for_each_edge(target, source, edges, |target, source| or_dense(target, source, map.leads_to()));
        }
        IndexMap::Sparse(map) => {
            for_each_edge(target, source, edges, |target, source| or_sparse(target, source, map.pairs()));
        }
    }
}

/// The number of columns in a row of `words` words.
fn target_columns(words: usize) -> usize {
    words * ROWS_TOGETHER
}

#[inline(always)]
fn for_each_edge(
    target: &mut BitRows<'_>,
    source: Source<'_>,
    edges: &[MoveEdge],
    mut visit: impl FnMut(&mut [u64], &[u64]),
) {
    for (from, to) in edges.iter().map(|edge| (edge.from, edge.to())) {
        if let Some(from) = source.row(from)
            && let Some(to) = target.row_mut(to)
        {
            visit(to, from);
        }
    }
}

/// Rows that are moved together.
struct RowGroup<'a, 'b> {
    target: &'a mut BitRows<'b>,
    source: Source<'a>,
    /// The edges whose source rows have a bit and whose target rows are in `target`.
    edges: &'a [MoveEdge],
}

#[inline(always)]
fn for_each_group(
    target: &mut BitRows<'_>,
    source: Source<'_>,
    edges: &[MoveEdge],
    mut visit: impl FnMut(&mut RowGroup<'_, '_>),
) {
    let mut there = [MoveEdge::default(); ROWS_TOGETHER];
    let mut filled = 0;
    for &edge in edges {
        if source.occupied.contains(edge.from) && target.row_mut(edge.to()).is_some() {
            there[filled] = edge;
            filled += 1;
        }
        if filled == ROWS_TOGETHER {
            visit(&mut RowGroup { target, source, edges: &there });
            filled = 0;
        }
    }
    if filled > 0 {
        visit(&mut RowGroup { target, source, edges: &there[..filled] });
    }
}

impl RowGroup<'_, '_> {
    /// The columns of one word of all source rows, each with one bit a row. The lowest bit belongs to the first edge.
    /// `None` if no bit is set.
    #[inline(always)]
    fn source_columns(&self, word: usize) -> Option<[u64; ROWS_TOGETHER]> {
        let mut block = [0; ROWS_TOGETHER];
        let mut any = 0;
        for (row, edge) in block.iter_mut().zip(self.edges) {
            *row = self.source.bits[edge.from.index() * self.source.words + word];
            any |= *row;
        }
        (any != 0).then(|| {
            transpose(&mut block);
            block
        })
    }

    /// Adds columns to the target rows.
    #[inline(always)]
    fn add(&mut self, columns: &[u64]) {
        for (word, columns) in
            columns.as_chunks::<ROWS_TOGETHER>().0.iter().enumerate().take(self.target.words())
        {
            if columns.iter().all(|&column| column == 0) {
                continue;
            }
            let mut block = *columns;
            transpose(&mut block);
            for (&row, edge) in block.iter().zip(self.edges) {
                if let Some(target) = self.target.row_mut(edge.to()) {
                    target[word] |= row;
                }
            }
        }
    }
}

/// Transposes a matrix of bits by exchanging halves, then quarters, and so on (Warren, Hacker's Delight, 7-3). Column 0
/// is the lowest bit of each row.
#[inline(always)]
fn transpose(rows: &mut [u64; ROWS_TOGETHER]) {
    exchange::<32>(rows, 0x0000_0000_ffff_ffff);
    exchange::<16>(rows, 0x0000_ffff_0000_ffff);
    exchange::<8>(rows, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(rows, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(rows, 0x3333_3333_3333_3333);
    exchange::<1>(rows, 0x5555_5555_5555_5555);
}

/// Of each square of 2·N rows and columns, exchanges the upper right quarter with the lower left one.
#[inline(always)]
fn exchange<const N: usize>(rows: &mut [u64; ROWS_TOGETHER], low: u64) {
    for square in rows.chunks_exact_mut(2 * N) {
        let (upper, lower) = square.split_at_mut(N);
        for (upper, lower) in upper.iter_mut().zip(lower) {
            let differ = (*upper >> N ^ *lower) & low;
            *lower ^= differ;
            *upper ^= differ << N;
        }
    }
}

/// Sets the bits of a target row to which a permutation leads the bits of a source row.
pub fn or_permuted(target: &mut [u64], source: &[u64], permutation: &Permutation) {
    match permutation.map() {
        None => target.iter_mut().zip(source).for_each(|(t, &s)| *t |= s),
        Some(map) => or_dense(target, source, map.leads_to()),
    }
}

#[inline(always)]
fn or_dense(target: &mut [u64], source: &[u64], leads_to: &[u32]) {
    for (w, &word) in source.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            let to = leads_to[w * 64 + rest.trailing_zeros() as usize] as usize;
            rest &= rest - 1;
            set(target, to);
        }
    }
}

#[inline(always)]
fn or_sparse(target: &mut [u64], source: &[u64], pairs: &[Pair]) {
    if !any(source) {
        return;
    }
    // No branch on the bit, which cannot be predicted.
    for &[from, to] in pairs {
        let bit = source[from as usize / 64] >> (from % 64) & 1;
        if let Some(word) = target.get_mut(to as usize / 64) {
            *word |= bit << (to % 64);
        }
    }
}

/// Sets a bit. A padding column may lie in the last word, where [`BitRows::clear_padding`] clears it, or after it,
/// where it is dropped.
#[inline(always)]
fn set(target: &mut [u64], column: usize) {
    if let Some(word) = target.get_mut(column / 64) {
        *word |= 1 << (column % 64);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bits::BitMatrix;
    use crate::kernels::index_map::MapList;
    use crate::pieces::Pieces;
    use exact2048_game::bitset::BitSet;
    use exact2048_game::rowset::{Row, RowSet};

    /// A matrix of `rows` rows of two words, after a map moved the bits along the edges, in pieces of one row.
    fn moved(rows: usize, source: &[u64], edges: &[MoveEdge], map: IndexMap<'_>) -> BitMatrix {
        let mut target = BitMatrix::new(Arc::new(RowSet::all(rows)), 2);
        let source = Source { words: 2, bits: source, occupied: &BitSet::from_words(vec![u64::MAX]) };
        target.map_pieces(&Pieces::new(rows, 1), |rows| {
            or_mapped(rows, source, edges, map, &mut Vec::new());
            rows.clear_padding(70);
        });
        target
    }

    #[test]
    fn maps_move_bits_and_drop_padding() {
        // 70 columns, reversed; column 3 leads to no column, column 4 to a won game.
        let mut to: Vec<u32> = (0..70).rev().collect();
        (to[3], to[4]) = (70, 71);
        let source = [u64::MAX, 0x3f];
        let edge = [MoveEdge::new(Slot(0), 0, Row(1))];
        let mut maps = MapList::default();
        maps.push_dense(&to, 70);
        let target = moved(2, &source, &edge, maps.get(0));
        assert_eq!(target.slot(Slot(0)), [0, 0]);
        assert_eq!(target.slot(Slot(1)), [u64::MAX, 0x3f & !(1 << 1 | 1 << 2)]);
        let mut target = vec![0, 0];
        or_sparse(&mut target, &source, &[[65, 0], [1, 71]]);
        assert_eq!(target, [1, 1 << 7]);
    }

    /// Pseudorandom numbers, the same in each run.
    fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed ^ seed >> 29
        }
    }

    #[test]
    fn transposing_exchanges_rows_and_columns() {
        let mut number = numbers(3);
        let rows: [u64; ROWS_TOGETHER] = std::array::from_fn(|_| number());
        let mut transposed = rows;
        transpose(&mut transposed);
        for (row, column) in
            (0..ROWS_TOGETHER).flat_map(|row| (0..ROWS_TOGETHER).map(move |column| (row, column)))
        {
            assert_eq!(transposed[column] >> row & 1, rows[row] >> column & 1, "{row}, {column}");
        }
    }

    /// The kernel moves few rows one by one, and many together. Each bit moves as its map says, in pieces and in whole
    /// blocks. Some columns take no part in the maps, and some rows have no bit.
    #[test]
    fn rows_moved_together_reach_the_same_targets() {
        let mut number = numbers(1);
        for edges in [1, LEAST_TOGETHER, LEAST_TOGETHER_OF_FEW, ROWS_TOGETHER, ROWS_TOGETHER + 1, 200] {
            for (columns, target_columns) in [(70usize, 70usize), (64, 130), (200, 150), (1000, 1000)] {
                let (words, target_words) = (columns.div_ceil(64), target_columns.div_ceil(64));
                let source_rows = 2 * edges;
                let mut source: Vec<u64> = (0..source_rows * words).map(|_| number() & number()).collect();
                let last = |columns: usize| u64::MAX >> (columns.next_multiple_of(64) - columns);
                source.iter_mut().skip(words - 1).step_by(words).for_each(|word| *word &= last(columns));
                let occupied = (0..source_rows.div_ceil(64)).map(|_| number() | number()).collect();
                let occupied = BitSet::from_words(occupied);
                let rows = edges + 1;
                let list: Vec<MoveEdge> = (0..edges as u32)
                    .map(|i| MoveEdge::new(Slot(2 * i + 1), i as u8 % 4, Row(number() as u32 % rows as u32)))
                    .collect();
                let leads_to: Vec<u32> =
                    (0..columns).map(|_| number() as u32 % (target_columns as u32 + 2)).collect();
                let mut pairs: Vec<Pair> =
                    (0..columns as u32).zip(&leads_to).map(|(from, &to)| [from, to]).collect();
                pairs.retain(|_| number().is_multiple_of(3));
                let mut maps = MapList::default();
                maps.push_dense(&leads_to, target_columns);
                maps.push_sparse(&pairs);
                for map in [maps.get(0), maps.get(1)] {
                    let mut wanted = vec![0u64; rows * target_words];
                    for edge in list.iter().filter(|edge| occupied.contains(edge.from)) {
                        let to = &mut wanted[edge.to().index() * target_words..][..target_words];
                        let from = &source[edge.from.index() * words..][..words];
                        match map {
                            IndexMap::Sparse(map) => or_sparse(to, from, map.pairs()),
                            _ => or_dense(to, from, &leads_to),
                        }
                    }
                    wanted
                        .iter_mut()
                        .skip(target_words - 1)
                        .step_by(target_words)
                        .for_each(|word| *word &= last(target_columns));
                    for rows_each in [1, 13, rows] {
                        let mut target = BitMatrix::new(Arc::new(RowSet::all(rows)), target_words);
                        let from = Source { words, bits: &source, occupied: &occupied };
                        target.map_pieces(&Pieces::new(rows, rows_each), |rows| {
                            or_mapped(rows, from, &list, map, &mut Vec::new());
                            rows.clear_padding(target_columns);
                        });
                        assert_eq!(
                            target.bits(),
                            wanted,
                            "{edges} edges, {columns} columns, {rows_each} rows"
                        );
                    }
                }
            }
        }
    }
}
