//! The seven pieces, their turns and their kicks.

use std::fmt;
use std::str::FromStr;

/// A piece: four connected cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the letters are the names")]
pub enum Piece {
    I,
    O,
    T,
    S,
    Z,
    J,
    L,
}

/// All pieces, in the order of their numbers.
pub const PIECES: [Piece; 7] = [Piece::I, Piece::O, Piece::T, Piece::S, Piece::Z, Piece::J, Piece::L];

/// Error of an invalid letter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a piece: expected one of I, O, T, S, Z, J, L")]
pub struct PieceError(String);

/// Column and row, from the left and from the bottom.
pub(crate) type Cell = (i8, i8);

/// Quarter turns clockwise from the entering position: 0 to 3.
pub(crate) type Turn = usize;

impl Piece {
    /// The number of the piece: its place in [`PIECES`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The mirror image of the piece.
    #[must_use]
    pub fn mirrored(self) -> Self {
        match self {
            Self::S => Self::Z,
            Self::Z => Self::S,
            Self::J => Self::L,
            Self::L => Self::J,
            same => same,
        }
    }

    /// Side of the square in which the piece turns.
    fn side(self) -> i8 {
        match self {
            Self::I => 4,
            Self::O => 2,
            _ => 3,
        }
    }

    /// The cells of the piece within its square, after a number of quarter turns.
    pub(crate) fn cells(self, turn: Turn) -> [Cell; 4] {
        let upright = match self {
            Self::I => [(0, 2), (1, 2), (2, 2), (3, 2)],
            Self::O => [(0, 0), (1, 0), (0, 1), (1, 1)],
            Self::T => [(0, 1), (1, 1), (2, 1), (1, 2)],
            Self::S => [(0, 1), (1, 1), (1, 2), (2, 2)],
            Self::Z => [(1, 1), (2, 1), (0, 2), (1, 2)],
            Self::J => [(0, 1), (1, 1), (2, 1), (0, 2)],
            Self::L => [(0, 1), (1, 1), (2, 1), (2, 2)],
        };
        let last = self.side() - 1;
        upright.map(|cell| (0..turn).fold(cell, |(x, y), _| (y, last - x)))
    }

    /// The *kicks* of a quarter turn: five moves. The piece makes the first move that fits.
    pub(crate) fn kicks(self, from: Turn, to: Turn) -> [Cell; 5] {
        let offsets = if self == Self::I { &I_OFFSETS } else { &OFFSETS };
        std::array::from_fn(|test| {
            let ((ax, ay), (bx, by)) = (offsets[from][test], offsets[to][test]);
            (ax - bx, ay - by)
        })
    }
}

/// Offsets by turn. A kick is the difference of the offsets before and after a turn.
///
/// The usual table of SRS lists these differences.
const OFFSETS: [[Cell; 5]; 4] = [
    [(0, 0); 5],
    [(0, 0), (1, 0), (1, -1), (0, 2), (1, 2)],
    [(0, 0); 5],
    [(0, 0), (-1, 0), (-1, -1), (0, 2), (-1, 2)],
];

/// Offsets of the I. Unlike the other offsets, they have no left-right symmetry.
const I_OFFSETS: [[Cell; 5]; 4] = [
    [(0, 0); 5],
    [(0, 0), (2, 0), (-1, 0), (2, 1), (-1, -2)],
    [(0, 0), (3, 0), (-3, 0), (3, -1), (-3, -1)],
    [(0, 0), (1, 0), (-2, 0), (1, -2), (-2, 1)],
];

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Piece {
    type Err = PieceError;

    fn from_str(text: &str) -> Result<Self, PieceError> {
        let found = PIECES.into_iter().find(|piece| piece.to_string().eq_ignore_ascii_case(text));
        found.ok_or_else(|| PieceError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kicks_are_those_of_the_published_table() {
        // A clockwise turn from the entering position, and back. For the I, clockwise turns from each position.
        assert_eq!(Piece::T.kicks(0, 1), [(0, 0), (-1, 0), (-1, 1), (0, -2), (-1, -2)]);
        assert_eq!(Piece::T.kicks(1, 0), [(0, 0), (1, 0), (1, -1), (0, 2), (1, 2)]);
        assert_eq!(Piece::T.kicks(2, 3), [(0, 0), (1, 0), (1, 1), (0, -2), (1, -2)]);
        assert_eq!(Piece::T.kicks(3, 0), [(0, 0), (-1, 0), (-1, -1), (0, 2), (-1, 2)]);
        assert_eq!(Piece::I.kicks(0, 1), [(0, 0), (-2, 0), (1, 0), (-2, -1), (1, 2)]);
        assert_eq!(Piece::I.kicks(1, 2), [(0, 0), (-1, 0), (2, 0), (-1, 2), (2, -1)]);
        assert_eq!(Piece::I.kicks(2, 3), [(0, 0), (2, 0), (-1, 0), (2, 1), (-1, -2)]);
        assert_eq!(Piece::I.kicks(3, 0), [(0, 0), (1, 0), (-2, 0), (1, -2), (-2, 1)]);
    }

    #[test]
    fn four_quarter_turns_change_nothing() {
        for piece in PIECES {
            assert_eq!(piece.cells(4), piece.cells(0), "{piece}");
        }
        assert_eq!("t".parse(), Ok(Piece::T));
        assert!("X".parse::<Piece>().is_err());
    }
}
