//! Symmetries of a board: 8 for a square board, at most 4 for any other board.

use crate::board::{Board, BoardSize};

/// Symmetry as a permutation of cells: cell `i` of the image has the tile of cell `perm[i]`.
pub type Symmetry = Vec<u8>;

/// All symmetries of a board, the identity first. On a board with stones, they map stones to stones.
#[derive(Clone, Debug)]
pub struct Symmetries(Vec<Symmetry>);

impl Symmetries {
    /// Lists the symmetries that map a board of this size to a board of the same size, stones to stones. On boards with
    /// a side of 1 some of them coincide, so each distinct permutation is listed once.
    pub fn new(size: BoardSize) -> Self {
        let (rows, cols) = (size.rows(), size.cols());
        let permutation = |from: &dyn Fn(usize, usize) -> (usize, usize)| -> Symmetry {
            (0..rows * cols)
                .map(|i| {
                    let (r, c) = from(i / cols, i % cols);
                    (r * cols + c) as u8
                })
                .collect()
        };
        let mut all = vec![
            permutation(&|r, c| (r, c)),
            permutation(&|r, c| (r, cols - 1 - c)),
            permutation(&|r, c| (rows - 1 - r, c)),
            permutation(&|r, c| (rows - 1 - r, cols - 1 - c)),
        ];
        if rows == cols {
            all.push(permutation(&|r, c| (c, r)));
            all.push(permutation(&|r, c| (c, rows - 1 - r)));
            all.push(permutation(&|r, c| (cols - 1 - c, r)));
            all.push(permutation(&|r, c| (cols - 1 - c, rows - 1 - r)));
        }
        let mut distinct: Vec<Symmetry> = Vec::new();
        let keeps_stones = |perm: &Symmetry| {
            (0..).zip(perm).all(|(to, &from)| size.is_stone(to) == size.is_stone(usize::from(from)))
        };
        for symmetry in all.into_iter().filter(keeps_stones) {
            if !distinct.contains(&symmetry) {
                distinct.push(symmetry);
            }
        }
        Self(distinct)
    }

    /// Permutations, the identity first.
    pub fn permutations(&self) -> &[Symmetry] {
        &self.0
    }

    /// Iterates over all images of `board`. Images repeat if the board is symmetric.
    pub fn images(&self, board: Board) -> impl Iterator<Item = Board> + '_ {
        self.0.iter().map(move |perm| {
            perm.iter()
                .enumerate()
                .fold(Board::default(), |b, (i, &from)| b.with(i, board.get(from as usize)))
        })
    }

    /// Returns the canonical form: the image with the smallest packed number.
    pub fn canonical(&self, board: Board) -> Board {
        self.images(board).min().unwrap_or(board)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_the_right_order_and_are_closed() {
        for (size, order) in [("3x3", 8), ("4x4", 8), ("4x3", 4), ("2x5", 4), ("1x4", 2), ("3x1", 2)]
            .into_iter()
            .chain([("4x4:..../..../.xxx/.xxx", 1), ("4x4:..../..../..xx/..xx", 2), ("3x3:.../.#./...", 8)])
        {
            let group = Symmetries::new(size.parse().unwrap());
            let perms = group.permutations();
            assert_eq!(perms.len(), order, "{size}");
            for a in perms {
                for b in perms {
                    let product: Symmetry = a.iter().map(|&i| b[i as usize]).collect();
                    assert!(perms.contains(&product));
                }
            }
        }
    }
}
