//! Ways to fill cells with tiles, by the sum of the tiles.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::cycles::CycleType;

/// Numbers of boards by half their tile sum.
pub type BySum = Vec<u128>;

/// Counts the boards that are their own image under a symmetry, by half their tile sum.
///
/// The boards have `loose` loose stones, only tiles with `exponents`, and at most `most(e)` tiles of at least `2^e`.
///
/// The function places the tiles in descending order, so only the number of occupied cycles of each length matters. It
/// makes about exponents × cells² × largest sum additions.
///
/// Calls `placed` after each exponent. Counts are at most 18^16 < 2^67, the number of boards with 16 cells.
pub fn fillings(
    cycles: &CycleType,
    loose: usize,
    exponents: RangeInclusive<u8>,
    most: impl Fn(u8) -> usize,
    placed: &mut impl FnMut(),
) -> BySum {
    let cycles: Vec<(usize, usize)> = cycles.iter().collect();
    let mut partial: BTreeMap<Vec<usize>, BySum> =
        placements(&cycles, loose).map(|(stones, ways)| (stones, vec![ways])).collect();
    for exponent in exponents.rev() {
        let mut next = BTreeMap::<Vec<usize>, BySum>::new();
        for (taken, sums) in &partial {
            for more in choices(&cycles, taken) {
                let now: Vec<usize> = taken.iter().zip(&more).map(|(a, b)| a + b).collect();
                if cells(&cycles, &now) - loose > most(exponent) {
                    continue;
                }
                let ways = ways(&cycles, taken, &more);
                let shift = cells(&cycles, &more) << (exponent - 1);
                add(next.entry(now).or_default(), sums, ways, shift);
            }
        }
        partial = next;
        placed();
    }
    let mut total = BySum::new();
    for sums in partial.values() {
        add(&mut total, sums, 1, 0);
    }
    total
}

/// Number of ways to place loose stones so that a symmetry maps them to themselves.
pub fn stone_placements(cycles: &CycleType, loose: usize) -> u128 {
    let cycles: Vec<(usize, usize)> = cycles.iter().collect();
    placements(&cycles, loose).map(|(_, ways)| ways).sum()
}

/// All choices of cycles for loose stones, each with its number of ways.
fn placements(cycles: &[(usize, usize)], loose: usize) -> impl Iterator<Item = (Vec<usize>, u128)> {
    let nothing = vec![0; cycles.len()];
    let stones = choices(cycles, &nothing).into_iter().filter(move |stones| cells(cycles, stones) == loose);
    stones.map(move |stones| {
        let ways = ways(cycles, &nothing, &stones);
        (stones, ways)
    })
}

/// Number of ways to choose `more` of the cycles that are not taken.
fn ways(cycles: &[(usize, usize)], taken: &[usize], more: &[usize]) -> u128 {
    (0..cycles.len()).map(|i| binomial(cycles[i].1 - taken[i], more[i])).product()
}

/// All choices of some of the remaining cycles, as numbers of cycles by length.
fn choices(cycles: &[(usize, usize)], taken: &[usize]) -> Vec<Vec<usize>> {
    cycles.iter().zip(taken).fold(vec![Vec::new()], |choices, (&(_, count), &taken)| {
        let longer = |choice: &Vec<usize>, more| choice.iter().copied().chain([more]).collect();
        choices.iter().flat_map(|choice| (0..=count - taken).map(move |more| longer(choice, more))).collect()
    })
}

/// Number of cells of some cycles, given the number of cycles of each length.
fn cells(cycles: &[(usize, usize)], numbers: &[usize]) -> usize {
    cycles.iter().zip(numbers).map(|(&(length, _), &number)| length * number).sum()
}

/// `sum[i + shift] += ways · of[i]`.
fn add(sum: &mut BySum, of: &[u128], ways: u128, shift: usize) {
    if sum.len() < of.len() + shift {
        sum.resize(of.len() + shift, 0);
    }
    for (sum, of) in sum[shift..].iter_mut().zip(of) {
        *sum += ways * of;
    }
}

fn binomial(n: usize, k: usize) -> u128 {
    (0..k as u128).fold(1, |product, i| product * (n as u128 - i) / (i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_fillings_match_a_list() {
        // Three cells, tiles 2, 4 and 8, at most two tiles of at least 8.
        let most = |e: u8| if e >= 3 { 2 } else { 3 };
        let mut want = vec![0; 13];
        for board in 0..4u32.pow(3) {
            let exponents: Vec<u8> = (0..3).map(|cell| (board / 4u32.pow(cell) % 4) as u8).collect();
            if exponents.iter().filter(|&&e| e >= 3).count() <= 2 {
                want[exponents.iter().map(|&e| if e == 0 { 0 } else { 1 << e >> 1 }).sum::<usize>()] += 1;
            }
        }
        let counted = fillings(&CycleType::identity(3), 0, 1..=3, most, &mut || ());
        assert!(want.iter().zip(counted.iter().chain(std::iter::repeat(&0))).all(|(a, b)| a == b));
        assert_eq!(counted.iter().sum::<u128>(), want.iter().sum::<u128>());
    }

    #[test]
    fn binomials() {
        assert_eq!([0, 1, 2, 3, 4].map(|k| binomial(4, k)), [1, 4, 6, 4, 1]);
        assert_eq!(binomial(16, 8), 12_870);
    }
}
