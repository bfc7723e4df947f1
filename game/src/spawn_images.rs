//! Fast enumeration of the states after spawns.

use crate::board::{Board, MOST_CELLS};
use crate::layer::{PerSpawn, SpawnKind};
use crate::packed::PackedRules;

/// Finds the canonical states after spawns.
///
/// A cell of the board corresponds to one cell of each image, so the images are computed once for all cells.
#[derive(Debug)]
pub struct SpawnImages {
    /// For each cell, the lowest bit of its place in each image.
    cells: [[u64; 8]; MOST_CELLS],
    /// Whether boards are square. The last four images of other boards repeat the first four.
    is_square: bool,
}

/// States after a 2 and after a 4 in each empty cell.
#[derive(Debug, Default)]
pub struct Spawned {
    states: [[Board; MOST_CELLS]; 2],
    count: usize,
}

impl Spawned {
    /// Finds the states after spawns without replacing them by their canonical forms.
    #[inline]
    pub fn find(&mut self, packed: &PackedRules, after: Board) {
        self.find_by_cell(packed, after, |cell, exponent| after.with(cell, exponent));
    }

    #[inline]
    fn find_by_cell(&mut self, packed: &PackedRules, after: Board, state: impl Fn(usize, u8) -> Board) {
        self.count = 0;
        let mut empty = packed.empty(after);
        while empty != 0 {
            let cell = empty.trailing_zeros() as usize / 4;
            for (states, kind) in self.states.iter_mut().zip(SpawnKind::ALL) {
                states[self.count] = state(cell, kind.exponent());
            }
            self.count += 1;
            empty &= empty - 1;
        }
    }

    /// Returns the states after a 2 and the states after a 4, one state for each empty cell. Some states may be equal.
    #[inline]
    pub fn each(&self) -> PerSpawn<&[Board]> {
        self.states.each_ref().map(|states| &states[..self.count])
    }
}

impl SpawnImages {
    /// Computes the place of each cell in each image, for boards of the size that the rules use.
    pub fn new(packed: &PackedRules) -> Self {
        let size = packed.size();
        let mut cells = [[0; 8]; MOST_CELLS];
        for (cell, images) in cells.iter_mut().enumerate().take(size.places()) {
            *images = packed.images(Board(1 << (4 * cell))).map(|image| image.0);
        }
        Self { cells, is_square: size.rows() == size.cols() }
    }

    /// Returns the canonical states after spawns in an afterstate.
    #[inline]
    pub fn spawned(&self, packed: &PackedRules, after: Board) -> Spawned {
        let mut spawned = Spawned::default();
        self.find(packed, after, &mut spawned);
        spawned
    }

    /// Does the same as [`spawned`](Self::spawned), but overwrites `spawned`. Cost: a few nanoseconds per empty cell.
    #[inline]
    pub fn find(&self, packed: &PackedRules, after: Board, spawned: &mut Spawned) {
        if self.is_square {
            self.find_in::<8>(packed, after, spawned);
        } else {
            self.find_in::<4>(packed, after, spawned);
        }
    }

    #[inline]
    fn find_in<const IMAGES: usize>(&self, packed: &PackedRules, after: Board, spawned: &mut Spawned) {
        let images = packed.images(after);
        spawned.find_by_cell(packed, after, |cell, exponent| {
            let (cells, tile) = (&self.cells[cell], u64::from(exponent));
            let image = |image: usize| images[image].0 | (cells[image] * tile);
            Board((1..IMAGES).map(image).fold(image(0), u64::min))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::empty_cells;

    #[test]
    fn spawns_are_those_of_the_rules() {
        for size in ["2x2", "3x2", "5x2", "3x3", "4x4", "1x8", "3x3:..x/.../x..", "4x3:.../#../#../..."]
            .map(|size| size.parse().unwrap_or_else(|_| panic!("{size}")))
        {
            let packed = PackedRules::new(size);
            let spawn_images = SpawnImages::new(&packed);
            let mut seed = 7u64;
            for _ in 0..500 {
                let board = size.playable().fold(Board::default(), |board, cell| {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    board.with(cell, ((seed >> 33) % 4) as u8)
                });
                let spawned = spawn_images.spawned(&packed, board);
                for (kind, found) in SpawnKind::ALL.into_iter().zip(spawned.each()) {
                    let with = |cell| packed.canonical(board.with(cell, kind.exponent()));
                    assert!(empty_cells(board, size).map(with).eq(found.iter().copied()), "{size} {board:?}");
                }
                let mut spawned = Spawned::default();
                spawned.find(&packed, board);
                for (kind, found) in SpawnKind::ALL.into_iter().zip(spawned.each()) {
                    let with = |cell| board.with(cell, kind.exponent());
                    assert!(empty_cells(board, size).map(with).eq(found.iter().copied()), "{size} {board:?}");
                }
            }
        }
    }
}
