//! The symmetries of a board as permutations of its playable cells.

use std::collections::BTreeMap;

use exact2048_game::BoardSize;
use exact2048_game::symmetry::Symmetries;

/// Numbers of cycles of each length in a permutation of playable cells.
///
/// A board is its own image if all cells of each cycle have the same contents.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CycleType(BTreeMap<usize, usize>);

impl CycleType {
    /// The identity on `cells` cells.
    pub fn identity(cells: usize) -> Self {
        Self(BTreeMap::from([(1, cells)]))
    }

    fn of(permutation: &[u8], size: BoardSize) -> Self {
        let mut cycles = BTreeMap::new();
        let mut seen: Vec<bool> = (0..permutation.len()).map(|place| size.is_stone(place)).collect();
        for start in 0..permutation.len() {
            let (mut at, mut length) = (start, 0);
            while !std::mem::replace(&mut seen[at], true) {
                at = usize::from(permutation[at]);
                length += 1;
            }
            if length > 0 {
                *cycles.entry(length).or_default() += 1;
            }
        }
        Self(cycles)
    }

    /// Lengths of cycles, each with the number of cycles.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().map(|(&length, &count)| (length, count))
    }

    /// Number of fixed cells.
    pub fn fixed_cells(&self) -> usize {
        self.0.get(&1).copied().unwrap_or(0)
    }

    /// The cycles without one fixed cell, if there is one.
    pub fn without_fixed_cell(&self) -> Self {
        let mut cycles = self.0.clone();
        cycles.entry(1).and_modify(|count| *count -= 1);
        Self(cycles)
    }
}

/// The cycle types of all symmetries of a board, each with its number of symmetries.
pub fn cycle_types(size: BoardSize) -> BTreeMap<CycleType, u128> {
    let mut types = BTreeMap::new();
    for permutation in Symmetries::new(size).permutations() {
        *types.entry(CycleType::of(permutation, size)).or_default() += 1;
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_known_groups() {
        let types = |size: &str| -> Vec<(Vec<(usize, usize)>, u128)> {
            let types = cycle_types(size.parse().unwrap());
            types.into_iter().map(|(cycles, count)| (cycles.iter().collect(), count)).collect()
        };
        // The identity, four reflections and a half turn, two quarter turns.
        assert_eq!(
            types("2x2"),
            [(vec![(1, 2), (2, 1)], 2), (vec![(1, 4)], 1), (vec![(2, 2)], 3), (vec![(4, 1)], 2)]
        );
        assert_eq!(
            types("3x3"),
            [
                (vec![(1, 1), (2, 4)], 1),
                (vec![(1, 1), (4, 2)], 2),
                (vec![(1, 3), (2, 3)], 4),
                (vec![(1, 9)], 1)
            ]
        );
        assert_eq!(types("1x2"), [(vec![(1, 2)], 1), (vec![(2, 1)], 1)]);
    }
}
