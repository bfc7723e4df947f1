//! What spawns lead to, at speed.

use crate::board::{Board, MOST_CELLS};
use crate::layer::SpawnKind;
use crate::packed::PackedRules;

/// Finds the canonical states after spawns. A tile in a cell is a tile in one cell of each image of the board: so the images
/// are made once for all cells.
#[derive(Debug)]
pub struct SpawnImages {
    /// Where each image has a cell, by cell: as the lowest bit of that cell.
    cells: [[u64; 8]; MOST_CELLS],
    /// Images of a board that is not square: the others are the same again.
    is_square: bool,
}

/// The canonical states that a 2 and a 4 in each empty cell lead to.
#[derive(Debug)]
pub struct Spawned {
    states: [[Board; MOST_CELLS]; 2],
    count: usize,
}

impl Spawned {
    /// Those of a 2, and those of a 4: as many as there are empty cells, so that some may be equal.
    #[inline]
    pub fn each(&self) -> [&[Board]; 2] {
        self.states.each_ref().map(|states| &states[..self.count])
    }
}

impl SpawnImages {
    /// For boards of the size of the rules.
    pub fn new(packed: &PackedRules) -> Self {
        let size = packed.size();
        let mut cells = [[0; 8]; MOST_CELLS];
        for (cell, images) in cells.iter_mut().enumerate().take(size.cells()) {
            *images = packed.images(Board(1 << (4 * cell))).map(|image| image.0);
        }
        Self { cells, is_square: size.rows() == size.cols() }
    }

    /// What spawns lead to from an afterstate.
    #[inline]
    pub fn spawned(&self, packed: &PackedRules, after: Board) -> Spawned {
        let mut spawned = Spawned { states: [[Board(0); MOST_CELLS]; 2], count: 0 };
        self.for_each(packed, after, |states| {
            for (all, state) in spawned.states.iter_mut().zip(states) {
                all[spawned.count] = state;
            }
            spawned.count += 1;
        });
        spawned
    }

    /// Calls `visit` with the states that a 2 and a 4 lead to, cell by cell.
    #[inline]
    pub fn for_each(&self, packed: &PackedRules, after: Board, visit: impl FnMut([Board; 2])) {
        if self.is_square {
            self.for_each_in::<8>(packed, after, visit);
        } else {
            self.for_each_in::<4>(packed, after, visit);
        }
    }

    #[inline]
    fn for_each_in<const IMAGES: usize>(
        &self,
        packed: &PackedRules,
        after: Board,
        mut visit: impl FnMut([Board; 2]),
    ) {
        let images = packed.images(after);
        let mut empty = packed.empty(after);
        while empty != 0 {
            let cells = &self.cells[empty.trailing_zeros() as usize / 4];
            visit(SpawnKind::ALL.map(|kind| {
                let tile = u64::from(kind.exponent());
                let image = |image: usize| images[image].0 | (cells[image] * tile);
                Board((1..IMAGES).map(image).fold(image(0), u64::min))
            }));
            empty &= empty - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::empty_cells;

    #[test]
    fn spawns_are_those_of_the_rules() {
        for size in ["2x2", "3x2", "5x2", "3x3", "4x4", "1x8"]
            .map(|size| size.parse().unwrap_or_else(|_| panic!("{size}")))
        {
            let packed = PackedRules::new(size);
            let spawn_images = SpawnImages::new(&packed);
            let mut seed = 7u64;
            for _ in 0..500 {
                let board = (0..size.cells()).fold(Board::default(), |board, cell| {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    board.with(cell, ((seed >> 33) % 4) as u8)
                });
                let spawned = spawn_images.spawned(&packed, board);
                for (kind, found) in SpawnKind::ALL.into_iter().zip(spawned.each()) {
                    let with = |cell| packed.canonical(board.with(cell, kind.exponent()));
                    assert!(empty_cells(board, size).map(with).eq(found.iter().copied()), "{size} {board:?}");
                }
            }
        }
    }
}
