//! Stones: cells of a board that hold no tile and never move.
//!
//! A *lock* stands for a large tile that the player keeps in its cell. Any move that would slide a lock is illegal. A
//! *wall* is an obstacle: tiles slide up to it, and it forbids no move.

/// Kind of the stones of a board.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stone {
    /// Lock: forbids each move that would slide it.
    Locked,
    /// Wall: stops tiles.
    Wall,
}

/// Symbol of a playable cell in a picture.
const PLAYABLE: char = '.';

impl Stone {
    const ALL: [Self; 2] = [Self::Locked, Self::Wall];

    /// Symbol of the stone in pictures and boards.
    #[must_use]
    pub fn symbol(self) -> char {
        match self {
            Self::Locked => 'x',
            Self::Wall => '#',
        }
    }

    /// Returns the stone of a symbol; `None` for other symbols.
    #[must_use]
    pub fn of_symbol(symbol: char) -> Option<Self> {
        Self::ALL.into_iter().find(|stone| stone.symbol() == symbol.to_ascii_lowercase())
    }

    /// Returns the stone that a cell of a board's text shows; `None` for other cells.
    #[must_use]
    pub fn of_text(cell: &str) -> Option<Self> {
        let mut symbols = cell.chars();
        symbols.next().filter(|_| symbols.next().is_none()).and_then(Self::of_symbol)
    }
}

/// Parses a picture such as `..../..../.xxx/.xxx`, one symbol a cell. Returns the places of the stones, one bit each,
/// and their kind. The kind is `None` without stones. An error names the expected picture, the one found, and the remedy.
pub(crate) fn parse_picture(text: &str, rows: usize, cols: usize) -> Result<(u16, Option<Stone>), String> {
    let lines: Vec<&str> = text.trim().split('/').map(str::trim).collect();
    if lines.len() != rows || lines.iter().any(|line| line.chars().count() != cols) {
        return Err(format!(
            "expected {rows} rows of {cols} symbols, separated by '/'; write one symbol for each cell"
        ));
    }
    let (mut stones, mut kind) = (0u16, None);
    for (place, symbol) in lines.iter().flat_map(|line| line.chars()).enumerate() {
        if symbol == PLAYABLE {
            continue;
        }
        let stone = Stone::of_symbol(symbol).ok_or_else(|| {
            format!(
                "expected '{PLAYABLE}' for a playable cell, 'x' for a lock or '#' for a wall, found {symbol:?}; correct it"
            )
        })?;
        if *kind.get_or_insert(stone) != stone {
            return Err("expected stones of one kind, found locks and walls; use only x or only #".to_owned());
        }
        stones |= 1 << place;
    }
    Ok((stones, kind))
}

/// Symbol of a cell in pictures.
pub(crate) fn symbol_of(stone: Option<Stone>) -> char {
    stone.map_or(PLAYABLE, Stone::symbol)
}

/// Formats a picture for [`parse_picture`].
pub(crate) fn picture(cols: usize, places: usize, (stones, stone): (u16, Stone)) -> String {
    let symbol = |place: usize| symbol_of(Some(stone).filter(|_| stones >> place & 1 == 1));
    let row = |first: usize| (first..first + cols).map(symbol).collect::<String>();
    (0..places).step_by(cols).map(row).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use crate::board::{Board, BoardError, BoardSize};

    use super::*;

    #[test]
    fn sizes_with_pictures_are_written_as_they_are_read() {
        for (text, cells) in [("4x4:..../..../.xxx/.xxx", 10), ("2x3:#../..#", 4), ("3x3", 9)] {
            let size: BoardSize = text.parse().unwrap();
            assert_eq!((size.to_string().as_str(), size.cells()), (text, cells));
            assert_eq!(size.picture().as_deref(), text.split_once(':').map(|(_, picture)| picture));
        }
        let plain: BoardSize = "2x2:../..".parse().unwrap();
        assert_eq!((plain, plain.stone()), (BoardSize::new(2, 2).unwrap(), None));
        let size: BoardSize = "2x2:X./..".parse().unwrap();
        assert_eq!(Ok(size), BoardSize::with_stones(2, 2, 1, Stone::Locked));
        assert!(size.is_stone(0) && !size.is_stone(1));
    }

    #[test]
    fn bad_pictures_are_refused() {
        for (text, reason) in [
            ("2x2:x.", "expected 2 rows of 2 symbols"),
            ("2x2:x../..", "expected 2 rows of 2 symbols"),
            ("2x2:x2/..", "found '2'"),
            ("2x3:x../..#", "found locks and walls"),
            ("2x2:xx/x.", "at least two playable cells"),
        ] {
            let error = text.parse::<BoardSize>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(BoardSize::with_stones(2, 2, 16, Stone::Wall).is_err(), "a stone beyond the board");
    }

    #[test]
    fn boards_name_their_stones() {
        let size: BoardSize = "2x3:..x/..x".parse().unwrap();
        let board = Board::parse("2 0 x / . 4 X", size).unwrap();
        assert_eq!((board, board.to_text(size).as_str()), (Board(1 | 2 << 16), "2 0 x / 0 4 x"));
        assert!(size.holds(board.0) && !size.holds(board.with(2, 1).0) && !size.holds(board.with(0, 15).0));
        for text in ["2 0 0 / 0 0 x", "2 0 2 / 0 0 x", "2 x x / 0 0 x", "2 0 # / 0 0 x"] {
            assert!(matches!(Board::parse(text, size), Err(BoardError::Stone { .. })), "{text}");
        }
        assert!(Board::parse("32768 0 x / 0 0 x", size).is_err());
    }
}
