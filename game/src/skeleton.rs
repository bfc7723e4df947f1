//! Skeletons: the small tiles and the cells of the large tiles.
//!
//! A skeleton describes each cell as empty, as a small exponent (below `large`), or as *L* for a large tile. The
//! sequence holds the exponents of the large tiles. A skeleton consists of a *mask* (the set of its L cells) and a
//! *config* (the digits of the other cells, in cell order). A skeleton is canonical if its mask is the smallest among
//! its images and its config is the smallest among the images with that mask. The mask is compared first, so a spawn
//! does not move the L cells. Most spawns therefore map a row to another row without permuting the columns.

use crate::board::BoardSize;
use crate::configs::half_tile;
use crate::symmetry::Symmetries;

/// Canonical mask: the representative of an orbit of sets of L cells.
#[derive(Clone, Debug)]
pub struct Mask {
    /// L cells, in cell order.
    pub large_cells: Vec<u8>,
    /// Other cells, in cell order.
    pub small_cells: Vec<u8>,
    /// Indices of the symmetries that preserve the mask, without the identity.
    pub stabiliser: Vec<usize>,
}

/// Canonical image of a mask, and the symmetries that map the mask to this image.
#[derive(Clone, Copy, Debug)]
pub struct MaskImage {
    /// Index of the canonical mask among the masks with the same number of L cells.
    pub index: u32,
    /// Bit `g` is set if symmetry `g` maps the mask to its canonical image. 0 for a set of cells with a stone.
    pub symmetries: u8,
}

/// All masks of a board.
#[derive(Debug)]
pub struct Masks {
    canonical: Vec<Vec<Mask>>,
    images: Vec<MaskImage>,
}

impl Masks {
    /// Lists all masks of a board. Cost: 2^places times the number of symmetries.
    pub fn new(board: BoardSize, symmetries: &Symmetries) -> Self {
        let (cells, stones) = (board.places(), u32::from(board.stones()));
        let image = |mask: u32, perm: &[u8]| -> u32 {
            perm.iter().enumerate().map(|(i, &from)| (mask >> from & 1) << i).sum()
        };
        let mut canonical: Vec<Vec<Mask>> = vec![Vec::new(); board.cells() + 1];
        let mut index_of = vec![0u32; 1 << cells];
        let mut images = Vec::with_capacity(1 << cells);
        for mask in 0u32..1 << cells {
            if mask & stones != 0 {
                images.push(MaskImage { index: 0, symmetries: 0 });
                continue;
            }
            let all: Vec<u32> = symmetries.permutations().iter().map(|p| image(mask, p)).collect();
            let smallest = all.iter().copied().min().unwrap_or(mask);
            if smallest == mask {
                let group = &mut canonical[mask.count_ones() as usize];
                index_of[mask as usize] = group.len() as u32;
                let in_set = |set: u32| move |&cell: &u8| set >> cell & 1 == 1;
                group.push(Mask {
                    large_cells: (0..cells as u8).filter(in_set(mask)).collect(),
                    small_cells: (0..cells as u8).filter(in_set(!mask & !stones)).collect(),
                    stabiliser: (1..all.len()).filter(|&g| all[g] == mask).collect(),
                });
            }
            let symmetries = (0..all.len()).filter(|&g| all[g] == smallest).map(|g| 1u8 << g).sum();
            images.push(MaskImage { index: index_of[smallest as usize], symmetries });
        }
        Self { canonical, images }
    }

    /// Returns the canonical masks with `k` L cells.
    pub fn canonical(&self, k: usize) -> &[Mask] {
        &self.canonical[k]
    }

    /// Returns the canonical image of a set of L cells, given as bits.
    pub fn image(&self, mask: u32) -> MaskImage {
        self.images[mask as usize]
    }
}

/// Upper bound on the number of rows of any class, if tiles of at least `2^large` are large.
///
/// If there are fewer than 2^30 skeletons, the bound is their number. Otherwise it is the largest product of masks and
/// configs over all classes. Cost: that of [`Masks::new`] on boards of 12 cells and more, else nothing.
pub fn max_rows(board: BoardSize, large: u8) -> u64 {
    let cells = board.cells();
    // Bounds the skeletons of all classes together: `large` digits or L in each cell.
    let all = (u64::from(large) + 1).pow(cells as u32);
    if all < 1 << 30 {
        return all;
    }
    let masks = Masks::new(board, &Symmetries::new(board));
    let (mut of_half_sums, mut most) = (vec![1u64], 0);
    for small_cells in 0..=cells {
        let configs = of_half_sums.iter().copied().max().unwrap_or(0);
        most = most.max(configs * masks.canonical(cells - small_cells).len() as u64);
        let mut more = vec![0; of_half_sums.len() + half_tile(large - 1)];
        for digit in 0..large {
            let sums = more[half_tile(digit)..].iter_mut().zip(&of_half_sums);
            sums.for_each(|(sum, configs)| *sum += configs);
        }
        of_half_sums = more;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configs::Configs;

    #[test]
    fn masks_are_counted_by_burnside() {
        for (size, orbits) in [("3x3", 102), ("5x2", 288), ("4x3", 1120), ("4x4", 8548)] {
            let size: crate::BoardSize = size.parse().unwrap();
            let masks = Masks::new(size, &Symmetries::new(size));
            let total: usize = (0..=size.cells()).map(|k| masks.canonical(k).len()).sum();
            assert_eq!(total, orbits);
        }
    }

    /// Compares the bound with the largest product of masks and configs over all sums and numbers of large tiles.
    #[test]
    fn most_rows_is_the_size_of_the_largest_class_or_small() {
        for (size, large) in [("4x3", 5), ("3x4", 6), ("5x3", 4), ("4x4", 4), ("2x8", 3)] {
            let size: BoardSize = size.parse().unwrap();
            let (masks, configs) =
                (Masks::new(size, &Symmetries::new(size)), Configs::new(size.cells(), large));
            let rows = |k: usize, sum: u32| {
                masks.canonical(k).len() as u64 * u64::from(configs.count(size.cells() - k, sum))
            };
            let most = (0..=size.cells()).flat_map(|k| (0..1 << 10).map(move |half| rows(k, 2 * half))).max();
            assert_eq!(most, Some(max_rows(size, large)), "{size} {large}");
        }
        let size: BoardSize = "4x4".parse().unwrap();
        assert!(max_rows(size, 4) < 1 << 30 && max_rows(size, 5) > 1 << 30);
        assert!(max_rows("2x8".parse().unwrap(), 4) < 1 << 30);
        assert!(max_rows("3x3".parse().unwrap(), 6) < 1 << 30);
    }
}
