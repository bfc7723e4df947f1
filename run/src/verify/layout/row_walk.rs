//! The rows of a block, one after the other, and the boards of their entries.

use super::{Block, Layout, is_canonical, numbered};

/// Reads rows of a block in ascending order, and returns the boards of their entries.
pub struct RowWalk<'a> {
    layout: &'a Layout<'a>,
    block: &'a Block,
    mask: usize,
    /// The large tiles of each column, in the cells of the mask.
    placed: Vec<u64>,
}

/// Effect on a row of the symmetries that keep its mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowSymmetry {
    /// No symmetry except the identity maps the row to itself or to a smaller row. So no two boards of the row are
    /// images of each other.
    None,
    /// A symmetry other than the identity maps the row to itself, and none to a smaller row. So some boards of the row
    /// may be images of each other.
    Itself,
    /// A symmetry maps the row to a smaller row. So its boards belong to that row.
    Smaller,
}

/// One row.
pub struct LayoutRow {
    /// The small tiles of the row.
    pub small: u64,
    /// All four bits of the cells without a large tile and without a stone.
    pub small_cells: u64,
    /// Whether a symmetry other than the identity keeps the mask.
    is_symmetric: bool,
}

impl<'a> RowWalk<'a> {
    /// The rows of a block.
    pub fn new(layout: &'a Layout<'a>, block: &'a Block) -> Self {
        Self { layout, block, mask: usize::MAX, placed: Vec::new() }
    }

    /// Returns a row of the block. Calls must ask for rows in ascending order.
    pub fn get(&mut self, row: usize) -> LayoutRow {
        let class = &*self.block.class;
        let masks = &self.layout.masks[class.large_tiles];
        let mut mask = self.mask;
        if mask == usize::MAX {
            mask = class.first_row.partition_point(|&first| first <= row as u64) - 1;
        }
        while class.first_row[mask + 1] <= row as u64 {
            mask += 1;
        }
        if mask != self.mask {
            self.mask = mask;
            self.placed.clear();
            self.placed.extend(self.block.columns.iter().map(|&sequence| masks[mask].place(sequence)));
        }
        let within = row as u64 - class.first_row[mask];
        let listed = class.listed[mask].get(within as usize).copied();
        let small = listed.unwrap_or_else(|| self.layout.nth_config(&masks[mask], class.small_sum, within));
        let playable = self.layout.game.geometry().playable_bits();
        let small_cells = playable & !masks[mask].skeleton(0);
        LayoutRow { small, small_cells, is_symmetric: masks[mask].is_symmetric }
    }

    /// For each column, the large tiles of its board in the last row that [`Self::get`] returned.
    pub fn large_tiles(&self) -> &[u64] {
        &self.placed
    }

    /// Effect of the symmetries on `row`, which must be the last row that [`Self::get`] returned.
    pub fn symmetry(&self, row: &LayoutRow) -> RowSymmetry {
        if !row.is_symmetric {
            return RowSymmetry::None;
        }
        let mask = &self.layout.masks[self.block.class.large_tiles][self.mask];
        let skeleton = mask.skeleton(row.small);
        let geometry = self.layout.game.geometry();
        let kept = |board: u64| geometry.images(board).iter().filter(|&&image| image == board).count();
        if !is_canonical(geometry, skeleton) {
            RowSymmetry::Smaller
        } else if kept(skeleton) > kept(numbered(geometry.places())) {
            RowSymmetry::Itself
        } else {
            RowSymmetry::None
        }
    }
}
