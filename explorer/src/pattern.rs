//! Patterns of boards. Some cells are given, others are open.

use exact2048_game::Stone;
use exact2048_game::board::{Board, BoardSize, MAX_EXPONENT, cells_of, rows_of};
use exact2048_game::symmetry::Symmetries;

/// Largest length of a pattern's text in bytes.
const MAX_TEXT_BYTES: usize = 512;

/// Required contents of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// A tile or an empty cell.
    Open,
    /// Any tile.
    Tile,
    /// The given exponent; 0 is an empty cell.
    Exponent(u8),
}

/// A pattern that boards match directly, turned or mirrored.
#[derive(Clone, Debug)]
pub struct BoardPattern(Vec<Cell>);

impl BoardPattern {
    /// Parses a pattern.
    ///
    /// As in boards, rows are separated by `/` and cells by blanks or commas. A cell is a tile, `0` or `.` for empty, `+` for
    /// any tile, or `*` for anything. The cell of a stone is its symbol or `*`. A loose stone is `x`.
    ///
    /// # Errors
    ///
    /// The expected and the found text.
    pub fn parse(text: &str, size: BoardSize) -> Result<Self, String> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(format!(
                "expected a pattern of at most {MAX_TEXT_BYTES} bytes, found {} bytes",
                text.len()
            ));
        }
        let rows: Vec<Vec<&str>> = rows_of(text).map(cells_of).collect();
        if rows.len() != size.rows() || rows.iter().any(|row| row.len() != size.cols()) {
            return Err(format!(
                "{text:?} is not a pattern of {size}: expected {} rows of {} cells, separated by /",
                size.rows(),
                size.cols()
            ));
        }
        let cells = rows.into_iter().flatten().enumerate().map(|(place, text)| match size.stone() {
            Some(stone) if size.is_stone(place) => of_stone(text, stone),
            None if size.loose() > 0 && Stone::of_text(text) == Some(Stone::Locked) => {
                Ok(Cell::Exponent(MAX_EXPONENT))
            }
            _ => cell(text),
        });
        cells.collect::<Result<_, _>>().map(Self)
    }

    /// The first matching image of a board.
    pub fn image_that_matches(&self, board: Board, symmetries: &Symmetries) -> Option<Board> {
        symmetries.images(board).find(|&image| {
            self.0.iter().enumerate().all(|(at, cell)| match *cell {
                Cell::Open => true,
                Cell::Tile => image.get(at) != 0,
                Cell::Exponent(exponent) => image.get(at) == exponent,
            })
        })
    }
}

fn of_stone(text: &str, stone: Stone) -> Result<Cell, String> {
    if text == "*" || Stone::of_text(text) == Some(stone) {
        return Ok(Cell::Open);
    }
    Err(format!("{text:?} in the cell of a stone: expected {} or *", stone.symbol()))
}

fn cell(text: &str) -> Result<Cell, String> {
    match text {
        "*" => return Ok(Cell::Open),
        "+" => return Ok(Cell::Tile),
        "." | "0" => return Ok(Cell::Exponent(0)),
        _ => {}
    }
    let tile: Option<u32> =
        text.parse().ok().filter(|tile: &u32| tile.is_power_of_two() && (2..=32_768).contains(tile));
    let wrong =
        || format!("{text:?} in a pattern: expected a tile, 0 or . for an empty cell, + for any tile, or *");
    tile.map(|tile| Cell::Exponent(tile.trailing_zeros() as u8)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_all_images() {
        let size: BoardSize = "2x3".parse().unwrap();
        let symmetries = Symmetries::new(size);
        let board = |text| Board::parse(text, size).unwrap();
        let matches = |pattern: &str, text| {
            let pattern = BoardPattern::parse(pattern, size).unwrap();
            pattern.image_that_matches(board(text), &symmetries)
        };
        assert_eq!(matches("64 * * / * * *", "2 0 64 / 0 0 0"), Some(board("64 0 2 / 0 0 0")));
        assert_eq!(matches("64,*,*/. + *", "2 0 64 / 0 0 0"), None);
        assert!(matches("* 64 * / * * *", "2 0 64 / 0 0 0").is_none());
        assert!(matches("* + * / * * *", "2 4 64 / 0 0 0").is_some());
    }

    #[test]
    fn patterns_show_stones_or_leave_them_open() {
        let size: BoardSize = "2x2:.x/..".parse().unwrap();
        let board = Board::parse("4 x / 2 0", size).unwrap();
        for (pattern, matches) in [("4 x / * *", true), ("4 * / 2 0", true), ("+ X / 4 *", false)] {
            let pattern = BoardPattern::parse(pattern, size).unwrap();
            assert_eq!(pattern.image_that_matches(board, &Symmetries::new(size)).is_some(), matches);
        }
        for pattern in ["4 2 / * *", "4 # / * *", "x * / * *"] {
            assert!(BoardPattern::parse(pattern, size).is_err(), "{pattern}");
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        let size: BoardSize = "2x2".parse().unwrap();
        for text in
            ["", "2 2", "2 2 / 2", "3 * / * *", "65536 * / * *", "<b> * / * *", "-2 * / * *", "1 * / * *"]
        {
            assert!(BoardPattern::parse(text, size).is_err(), "{text}");
        }
        assert!(BoardPattern::parse(&"* ".repeat(1000), size).is_err());
    }
}
