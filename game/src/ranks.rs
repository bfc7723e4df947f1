//! Number of a column from its sequence, without a table of the lane's columns.
//!
//! [`Columns`](crate::columns::Columns) lists all sequences of a lane. There may be millions of sequences. The solver
//! needs all sequences, but a query for one board does not. This module lists only the multisets of exponents, a few
//! hundred per lane, and counts their arrangements.

use crate::board::MAX_EXPONENT;
use crate::huge::LEAST_HUGE;
use crate::lane::Lane;
use crate::params::Params;
use crate::sequence::{Column, Sequence, pack};

/// Numbers of the columns of a lane: the same as in [`Columns`](crate::columns::Columns).
#[derive(Clone, Debug)]
pub struct ColumnRanks {
    k: u8,
    /// Multisets of exponents in ascending order, each with its first column. A multiset is sorted downward and packed.
    groups: Box<[(Sequence, u64)]>,
    len: u64,
}

impl ColumnRanks {
    /// Counts the columns of a lane. Cost: a few microseconds, at most about a hundred.
    pub fn new(params: &Params, lane: Lane) -> Self {
        let mut multisets = Vec::new();
        if let Some((mut chosen, left, sum)) = above_all(params, lane) {
            let highest = params.largest_exponent().min(params.split().huge() - 1);
            multisets_of(params, left, sum, highest, &mut chosen, &mut multisets);
        }
        multisets.sort_unstable();
        let mut len = 0;
        let groups = multisets.into_iter().map(|multiset| {
            let first = len;
            len += Left::of(multiset, lane.k).arrangements;
            (multiset, first)
        });
        Self { k: lane.k, groups: groups.collect(), len }
    }

    /// Number of columns.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the lane has no column.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the multisets of exponents, each sorted downward, in the order of their columns.
    pub fn multisets(&self) -> impl Iterator<Item = Sequence> + '_ {
        self.groups.iter().map(|&(multiset, _)| multiset)
    }

    /// Returns the column of a sequence of `k` exponents; `None` if the lane has no such sequence. Cost: about a tenth
    /// of a microsecond.
    pub fn column(&self, sequence: Sequence) -> Option<Column> {
        let mut left = Left::of(sequence, self.k);
        let multiset = left.sorted_downward();
        let group = self.groups.binary_search_by_key(&multiset, |&(multiset, _)| multiset).ok()?;
        let mut column = self.groups[group].1;
        for place in (0..self.k).rev() {
            let exponent = (sequence >> (4 * place) & 15) as usize;
            column += left.that_begin_below(exponent);
            left.take(exponent);
        }
        Some(Column(column))
    }
}

/// Multiset of the exponents that are still to be arranged.
struct Left {
    /// Number of remaining occurrences of each exponent.
    counts: [u8; 16],
    total: u64,
    /// Number of arrangements of the remaining exponents: total! / Π count!.
    arrangements: u64,
}

impl Left {
    /// Counts the `k` exponents of a sequence.
    fn of(sequence: Sequence, k: u8) -> Self {
        let mut left = Self { counts: [0; 16], total: 0, arrangements: 1 };
        for place in 0..k {
            let count = &mut left.counts[(sequence >> (4 * place) & 15) as usize];
            *count += 1;
            left.total += 1;
            // The division is exact, because the result is the number of arrangements of the exponents counted so far.
            left.arrangements = left.arrangements * left.total / u64::from(*count);
        }
        left
    }

    /// Returns the largest arrangement.
    fn sorted_downward(&self) -> Sequence {
        let each = self.counts.iter().enumerate().rev();
        each.fold(0, |sorted, (exponent, &count)| {
            (0..count).fold(sorted, |sorted, _| sorted << 4 | exponent as Sequence)
        })
    }

    /// Returns the number of arrangements that begin with a smaller exponent.
    fn that_begin_below(&self, exponent: usize) -> u64 {
        let below: u64 = self.counts[..exponent].iter().map(|&count| u64::from(count)).sum();
        // The division is exact, because for each exponent a share of count / total of all arrangements begins with
        // that exponent.
        self.arrangements * below / self.total
    }

    /// Removes the first exponent of an arrangement. It must be one of the remaining exponents.
    fn take(&mut self, exponent: usize) {
        self.arrangements = self.arrangements * u64::from(self.counts[exponent]) / self.total;
        self.counts[exponent] -= 1;
        self.total -= 1;
    }
}

/// Returns the loose stones or the huge exponents of a lane, sorted downward, with the number and the sum of its other
/// large tiles. Returns `None` if the huge tiles break the tile bound.
fn above_all(params: &Params, lane: Lane) -> Option<(Vec<u8>, u8, u32)> {
    let loose = params.game().board().loose();
    if loose > 0 {
        // No tile beside loose stones is huge.
        return Some((vec![MAX_EXPONENT; loose.into()], lane.k.checked_sub(loose)?, lane.large_sum));
    }
    let mut chosen = Vec::new();
    for exponent in (LEAST_HUGE..=MAX_EXPONENT).rev() {
        chosen.extend(std::iter::repeat_n(exponent, usize::from(lane.huge.count(exponent))));
        let has = lane.huge.count(exponent) > 0;
        if has && (exponent < params.split().huge() || chosen.len() > params.most_cells_with(exponent)) {
            return None;
        }
    }
    let left = lane.k.checked_sub(lane.huge.len())?;
    Some((chosen, left, lane.large_sum.checked_sub(lane.huge.sum())?))
}

/// Collects each multiset of the exponents in `chosen` and `left` more exponents up to `highest`. The tiles of the
/// further exponents sum to `sum`. Every multiset is sorted downward.
fn multisets_of(
    params: &Params,
    left: u8,
    sum: u32,
    highest: u8,
    chosen: &mut Vec<u8>,
    found: &mut Vec<Sequence>,
) {
    if left == 0 {
        if sum == 0 {
            found.push(pack(chosen));
        }
        return;
    }
    let tiles = chosen.len() - usize::from(params.game().board().loose());
    for exponent in (params.split().large()..=highest).rev() {
        let fits = sum >> exponent > 0 && tiles < params.most_cells_with(exponent);
        // The remaining exponents are at most `exponent`. If they cannot reach the sum, smaller exponents cannot reach
        // it either.
        if u64::from(left) << exponent < u64::from(sum) {
            return;
        }
        if fits {
            chosen.push(exponent);
            multisets_of(params, left - 1, sum - (1 << exponent), exponent, chosen, found);
            chosen.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;

    use crate::lane::lanes;

    fn params(board: &str, objective: &str) -> Params {
        Params::usual(board, objective).build().unwrap()
    }

    /// Compares the number of every `step`-th column of a lane with the solver's number. Returns the number of
    /// columns.
    fn agree(params: &Params, lane: Lane, step: usize) -> u64 {
        let (ranks, columns) = (ColumnRanks::new(params, lane), Columns::new(params, lane));
        assert_eq!(ranks.len(), columns.len() as u64, "{lane:?}");
        for (column, &sequence) in columns.sequences().iter().enumerate().step_by(step) {
            assert_eq!(ranks.column(sequence), Some(Column(column as u64)), "{lane:?} {sequence:x}");
        }
        ranks.len()
    }

    /// Returns the lane with the largest number of columns below a limit.
    fn largest_lane(params: &Params, below: u64) -> Lane {
        let sizes = lanes(params).into_iter().map(|lane| (ColumnRanks::new(params, lane).len(), lane));
        sizes.filter(|&(columns, _)| columns < below).max().unwrap().1
    }

    #[test]
    fn columns_have_the_numbers_of_the_solver() {
        for (board, objective) in [("2x2", "score"), ("3x3", "score"), ("4x2", "score"), ("3x3", "reach:256")]
        {
            let params = params(board, objective);
            let columns: u64 = lanes(&params).into_iter().map(|lane| agree(&params, lane, 1)).sum();
            assert!(columns > 0);
            let divided = params.to_builder().huge(LEAST_HUGE).build().unwrap();
            let of_divided: u64 = lanes(&divided).into_iter().map(|lane| agree(&divided, lane, 1)).sum();
            assert_eq!(of_divided, columns, "{board} {objective}");
        }
    }

    #[test]
    fn columns_of_the_largest_lanes_have_the_numbers_of_the_solver() {
        // If tiles of at least 16 are large and no tile is huge, the lanes of 4x3 have the largest numbers of columns.
        let of_4x3 = Params::usual("4x3", "score").large(4).build().unwrap();
        assert_eq!(agree(&of_4x3, largest_lane(&of_4x3, u64::MAX), 997), 6_451_200);
        let of_4x4 = params("4x4", "reach:64");
        assert_eq!(agree(&of_4x4, largest_lane(&of_4x4, u64::MAX), 101), 1_167_621);
        let far = params("4x4", "reach:2048");
        assert!(agree(&far, largest_lane(&far, 2_000_000), 101) > 1_000_000);
    }

    #[test]
    fn sequences_of_other_lanes_have_no_number() {
        let params = params("3x3", "score");
        let ranks = ColumnRanks::new(&params, Lane::new(3, 64));
        assert_eq!(ranks.len(), 3);
        assert_eq!(ranks.column(pack(&[4, 4, 5])), Some(Column(0)));
        assert_eq!(ranks.column(pack(&[4, 4, 4])), None);
        assert_eq!(ranks.column(pack(&[5, 5, 5])), None);
        assert!(ColumnRanks::new(&params, Lane::new(1, 48)).is_empty());
    }
}
