//! Errors of boards and of their sizes.

use super::{BoardSize, MAX_EXPONENT, MAX_EXPONENT_BESIDE_STONES};

/// Largest number of characters of an input that an error quotes.
const QUOTED: usize = 80;

/// Error of parsing a board or a board size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// The size is not written as rows×columns.
    #[error(
        "board size {} is not ROWSxCOLUMNS; write for example 3x3 or 4x3",
        exact2048_text::quoted(.0, QUOTED)
    )]
    SizeSyntax(String),
    /// The size is outside the range of a packed board.
    #[error("board {0}x{1} is out of range: sides must be 1 to 8 and the board must have 2 to 16 cells")]
    SizeRange(u64, u64),
    /// The picture of the stones does not fit the board.
    #[error("picture {}: {reason}", exact2048_text::quoted(text, QUOTED))]
    Picture {
        /// Input text.
        text: String,
        /// The expected picture, the one found, and the remedy.
        reason: String,
    },
    /// The number of loose stones does not fit the board.
    #[error(
        "board {size} with {found} loose stones: expected {expected}; correct the number of loose stones"
    )]
    LooseStones {
        /// Size without loose stones.
        size: BoardSize,
        /// Given number.
        found: u64,
        /// The numbers that fit, as words.
        expected: String,
    },
    /// A board shows another number of loose stones than its size.
    #[error("board {board} has {found} loose stones, expected {expected}; write x for each loose stone")]
    LooseStonesShown {
        /// The board.
        board: String,
        /// Number of shown stones.
        found: usize,
        /// Number that the size requires.
        expected: u8,
    },
    /// A board shows a stone in another cell than its size, or no stone in a stone's cell.
    #[error(
        "cell {place} is {}, expected {expected}, because the board is {size}; write x or # exactly in the cells of its stones",
        exact2048_text::quoted(cell, QUOTED)
    )]
    Stone {
        /// Number of the cell, counted from 1.
        place: usize,
        /// Input text of the cell.
        cell: String,
        /// Text that the size requires.
        expected: String,
        /// Expected size of the board.
        size: BoardSize,
    },
    /// A position of the real game does not fit the formation.
    #[error("board {board}: {reason}")]
    NotOfFormation {
        /// The position.
        board: String,
        /// The expected position, the one found, and the remedy.
        reason: String,
    },
    /// A board with stones has a tile that is too large.
    #[error(
        "expected tiles of at most {most} on a board with stones, found {found}; correct the tile",
        most = 1u32 << MAX_EXPONENT_BESIDE_STONES,
        found = 1u32 << MAX_EXPONENT
    )]
    TileBesideStones,
    /// The text does not have the rows and columns of the board.
    #[error(
        "{found} in {}, expected {expected} for a {size} board (rows separated by '/', cells by spaces or commas, 0 or '.' for empty)",
        exact2048_text::quoted(text, QUOTED)
    )]
    Shape {
        /// Input text.
        text: String,
        /// Shape that the size requires.
        expected: String,
        /// Shape of the text.
        found: String,
        /// Expected size of the board.
        size: BoardSize,
    },
    /// A cell is neither empty nor a power of two from 2 to 32,768.
    #[error(
        "cell {} is not a tile: expected 0 or '.' for empty, or a power of two from 2 to 32768",
        exact2048_text::quoted(cell, QUOTED)
    )]
    Tile {
        /// Input text of the cell.
        cell: String,
    },
}
