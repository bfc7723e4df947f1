//! Chances that games reach entries: spawns and best moves send them from rows to rows.
//!
//! One thread fills a block. So chances are added up in the order of their source slots, for any number of threads.

use exact2048_game::bitset::{Number, for_each_bit};
use exact2048_game::rowset::{Row, RowSet};
use exact2048_game::transitions::{Direction, SpawnEdge};
use multiversion::multiversion;

use super::MoveRun;
use super::index_map::{IndexMap, Permutation};

/// Stands for a best move if a state has none, or sends nothing.
pub const NO_MOVE: Direction = 4;

/// Rows in which chances are summed up.
#[derive(Debug)]
pub struct ChanceSums<'a> {
    /// The rows that are held.
    pub set: &'a RowSet,
    /// Chances a row.
    pub stride: usize,
    /// The rows.
    pub chances: &'a mut [f64],
    /// The number of additions to each slot. No chance in the slot is the sum of more terms.
    pub terms: &'a mut [u32],
}

/// The chances of rows, to be sent.
#[derive(Clone, Copy, Debug)]
pub struct ChanceRows<'a> {
    /// Chances a row, a multiple of 8. Those of padding are 0.
    pub stride: usize,
    /// The rows.
    pub chances: &'a [f64],
}

/// The spawns of a block of afterstates.
#[derive(Clone, Copy, Debug)]
pub struct ChanceSpawns<'a> {
    /// For each slot of the afterstates, the index in `edges` at which its edges begin. The last number is the end of
    /// all.
    pub start: &'a [u32],
    /// The rows that the spawns lead to.
    pub edges: &'a [SpawnEdge],
    /// Their effects on columns, by the numbers in `edges`.
    pub maps: &'a [&'a Permutation],
    /// The afterstates.
    pub afterstates: ChanceRows<'a>,
    /// The weight of the spawned tile.
    pub weight: f64,
    /// The sum of the weights of both tiles.
    pub all: f64,
    /// Smaller chances are left out.
    pub least: f64,
}

/// The best moves of a block into another.
#[derive(Clone, Copy, Debug)]
pub struct ChanceMoves<'a> {
    /// The moves, by their effect on columns.
    pub runs: &'a [MoveRun<'a>],
    /// The states.
    pub states: ChanceRows<'a>,
    /// The best move of each state, in rows of the same stride as those of the states.
    pub best: &'a [Direction],
}

impl ChanceSums<'_> {
    /// The chances of a row, to be added to; the row must be held.
    #[inline(always)]
    pub fn add_to(&mut self, row: Row) -> &mut [f64] {
        let slot = self.set.slot(row).index();
        self.terms[slot] += 1;
        &mut self.chances[slot * self.stride..][..self.stride]
    }
}

impl<'a> ChanceRows<'a> {
    #[inline(always)]
    fn row(&self, slot: usize) -> &'a [f64] {
        &self.chances[slot * self.stride..][..self.stride]
    }
}

/// Adds the chances that spawns send to the rows of states. Returns the sum of the chances that were left out.
pub fn spawn_chances(plan: &ChanceSpawns<'_>, states: &mut ChanceSums<'_>) -> f64 {
    let (mut left_out, mut marks, mut shares) = (0.0, Vec::new(), Vec::new());
    for (slot, ends) in plan.start.windows(2).enumerate() {
        let edges = &plan.edges[ends[0] as usize..ends[1] as usize];
        if edges.is_empty() {
            continue;
        }
        let (cells, chances) = (edges.len() as f64, plan.afterstates.row(slot));
        // About one in seven columns has a chance, and sends it to some ten rows.
        mark_some(chances, &mut marks);
        shares.clear();
        for_each_bit(&marks, |column| {
            let share = chances[column] / (plan.all * cells) * plan.weight;
            if share >= plan.least {
                shares.push((column as u32, share));
            } else {
                left_out += share * cells;
            }
        });
        // Rows without a chance may lead to rows that are not held.
        if shares.is_empty() {
            continue;
        }
        for edge in edges {
            let state = states.add_to(edge.row);
            match plan.maps[edge.pattern as usize].map() {
                None => {
                    shares.iter().for_each(|&(column, share)| state[column as usize] += share);
                }
                Some(map) => {
                    let leads_to = map.leads_to();
                    shares.iter().for_each(|&(column, share)| {
                        state[leads_to[column as usize] as usize] += share;
                    });
                }
            }
        }
    }
    left_out
}

/// Marks the chances of a row that are not 0, one bit each.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"
))]
pub fn mark_some(chances: &[f64], marks: &mut Vec<u64>) {
    let of_eight =
        |chances: &[f64; 8]| (0..8).fold(0, |marks: u8, at| marks | u8::from(chances[at] != 0.0) << at);
    marks.clear();
    marks.extend(chances.chunks(64).map(|chances| {
        // Rows are padded.
        let (eights, _) = chances.as_chunks::<8>();
        eights.iter().rev().fold(0, |marks: u64, chances| marks << 8 | u64::from(of_eight(chances)))
    }));
}

/// Adds the chances that the best moves of some runs send to the rows of afterstates. It may also add to padding.
pub fn move_chances(plan: &ChanceMoves<'_>, afterstates: &mut ChanceSums<'_>) {
    let ChanceMoves { states, best, .. } = *plan;
    for run in plan.runs {
        for edge in run.edges {
            let (slot, direction) = (edge.from.index(), edge.direction());
            let state = states.row(slot);
            let best = &best[slot * states.stride..][..states.stride];
            let after = afterstates.add_to(edge.to());
            match run.map {
                IndexMap::Identity => {
                    for_each_equal(best, direction, |column| after[column] += state[column])
                }
                IndexMap::Dense(map) => {
                    let leads_to = map.leads_to();
                    for_each_equal(best, direction, |column| {
                        after[leads_to[column] as usize] += state[column]
                    });
                }
                IndexMap::Sparse(map) => {
                    for &[column, to] in map.pairs().iter().filter(|pair| best[pair[0] as usize] == direction)
                    {
                        after[to as usize] += state[column as usize];
                    }
                }
            }
        }
    }
}

/// Calls `visit` with the index of each byte that equals `wanted`. The number of bytes is a multiple of 8.
#[inline(always)]
fn for_each_equal(bytes: &[u8], wanted: u8, mut visit: impl FnMut(usize)) {
    const LOW: u64 = u64::MAX / 0xff * 0x7f;
    let wanted = u64::from_le_bytes([wanted; 8]);
    for (word, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let differs = u64::from_le_bytes(*bytes) ^ wanted;
        // The highest bit of each byte that is 0.
        let mut equal = !(((differs & LOW) + LOW) | differs | LOW);
        while equal != 0 {
            visit(8 * word + equal.trailing_zeros() as usize / 8);
            equal &= equal - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_marked() {
        for length in [0, 8, 56, 64, 72, 136] {
            let chances: Vec<f64> = (0..length).map(|at| [0.0, 1e-300, 0.5][(at * at / 3) % 3]).collect();
            let mut marks = vec![7];
            mark_some(&chances, &mut marks);
            let mut marked = Vec::new();
            for_each_bit(&marks, |column| marked.push(column));
            assert!((0..length).filter(|&at| chances[at] > 0.0).eq(marked), "of {length}");
            assert_eq!(marks.len(), length.div_ceil(64));
        }
    }

    #[test]
    fn equal_bytes_are_found() {
        let bytes = [0, 1, 2, 3, 4, 1, 0, 255, 1, 129, 127, 0, 128, 1, 4, 3];
        for wanted in [0, 1, 2, 3, NO_MOVE, 5] {
            let mut found = Vec::new();
            for_each_equal(&bytes, wanted, |place| found.push(place));
            let all: Vec<usize> = (0..bytes.len()).filter(|&place| bytes[place] == wanted).collect();
            assert_eq!(found, all, "{wanted}");
        }
    }
}
