//! Boards and their sizes, packed and as text.

mod error;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::error::BoardError;
use crate::stones::{self, Stone};

/// Largest exponent that the four bits of a cell can hold: tiles up to 32,768.
pub const MAX_EXPONENT: u8 = 15;

/// Largest exponent of a tile on a board with stones, because [`MAX_EXPONENT`] stands for a stone.
pub const MAX_EXPONENT_BESIDE_STONES: u8 = MAX_EXPONENT - 1;

/// Number of exponents that a cell can have, including the 0 of an empty cell.
pub const EXPONENTS: usize = MAX_EXPONENT as usize + 1;

/// Largest number of cells of a board.
pub const MOST_CELLS: usize = 16;

/// Rows, columns and stones of a board: sides of 1 to 8, 2 to 16 places in all, at least two of them playable.
///
/// A *place* is a cell by its number, row by row. A place is a playable cell or holds a stone. The stones of a board
/// are all of one kind. Loose stones have no place: they slide among the tiles of the playable cells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BoardSize {
    rows: u8,
    cols: u8,
    /// Places of the stones, one bit each.
    stones: u16,
    /// Kind of the stones; `None` without stones.
    stone: Option<Stone>,
    /// Number of loose stones.
    loose: u8,
}

/// Rows in the text of a board or of a pattern, separated by `/`, or by line ends in a text without `/`.
pub fn rows_of(text: &str) -> impl Iterator<Item = &str> {
    text.trim().split(if text.contains('/') { '/' } else { '\n' })
}

/// Cells in the text of a row, separated by blanks or commas.
pub fn cells_of(row: &str) -> Vec<&str> {
    row.split(|c: char| c == ',' || c.is_whitespace()).filter(|cell| !cell.is_empty()).collect()
}

impl BoardSize {
    /// Creates a size of `rows` by `cols`.
    ///
    /// # Errors
    ///
    /// [`BoardError::SizeRange`] if a side is outside 1 to 8 or the number of cells is outside 2 to 16.
    pub fn new(rows: u64, cols: u64) -> Result<Self, BoardError> {
        let fits = (1..=8).contains(&rows) && (1..=8).contains(&cols) && (2..=16).contains(&(rows * cols));
        if !fits {
            return Err(BoardError::SizeRange(rows, cols));
        }
        Ok(Self { rows: rows as u8, cols: cols as u8, stones: 0, stone: None, loose: 0 })
    }

    /// Creates a size of `rows` by `cols` with stones of one kind. `stones` has one bit for each place. Without a
    /// stone, the size is that of [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and [`BoardError::Picture`] if a stone is beyond the board or fewer than two cells
    /// stay playable.
    pub fn with_stones(rows: u64, cols: u64, stones: u16, kind: Stone) -> Result<Self, BoardError> {
        let plain = Self::new(rows, cols)?;
        let size = Self { stones, stone: (stones != 0).then_some(kind), ..plain };
        let refused = |reason: &str| {
            let text = size.to_string();
            Err(BoardError::Picture { text, reason: format!("{reason}; remove a stone") })
        };
        if u32::from(stones) >> plain.places() != 0 {
            return refused("expected stones on the board, found one beyond it");
        }
        if size.cells() < 2 {
            return refused("expected at least two playable cells, because a game starts with two tiles");
        }
        Ok(size)
    }

    /// Returns the size with the stones of a picture such as `..../..../.xxx/.xxx` in place of its stones.
    ///
    /// # Errors
    ///
    /// [`BoardError::Picture`] if the picture has other rows or columns, or stones of two kinds.
    pub fn with_picture(self, picture: &str) -> Result<Self, BoardError> {
        let found = stones::parse_picture(picture, self.rows(), self.cols());
        let (stones, kind) =
            found.map_err(|reason| BoardError::Picture { text: picture.to_owned(), reason })?;
        let (rows, cols) = (self.rows.into(), self.cols.into());
        kind.map_or_else(|| Self::new(rows, cols), |kind| Self::with_stones(rows, cols, stones, kind))
    }

    /// Returns the size with this number of loose stones.
    ///
    /// # Errors
    ///
    /// [`BoardError::LooseStones`] if fewer than two cells are left for tiles, or if the board has locks or walls.
    pub fn with_loose(self, loose: u64) -> Result<Self, BoardError> {
        let size = Self { loose: 0, ..self };
        let most = size.cells() as u64 - 2;
        let expected = match (self.stone, loose) {
            (Some(_), 1..) => "none beside locks or walls".to_owned(),
            _ if loose > most => format!("at most {most}, because a game starts with two tiles"),
            _ => return Ok(Self { loose: loose as u8, ..size }),
        };
        Err(BoardError::LooseStones { size, found: loose, expected })
    }

    /// Rows, columns and stones that the text of a board shows. An `x` counts as a lock.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new) and [`with_picture`](Self::with_picture).
    pub fn of_text(board: &str) -> Result<Self, BoardError> {
        let rows: Vec<Vec<&str>> = rows_of(board).map(cells_of).collect();
        let plain = Self::new(rows.len() as u64, rows[0].len() as u64)?;
        let cells = rows.iter().map(|row| row.iter().map(|cell| Stone::of_text(cell)));
        if !cells.clone().flatten().any(|stone| stone.is_some()) {
            return Ok(plain);
        }
        let symbols = cells.map(|row| row.map(stones::symbol_of).collect::<String>());
        plain.with_picture(&symbols.collect::<Vec<_>>().join("/"))
    }

    /// Number of rows.
    pub fn rows(self) -> usize {
        self.rows as usize
    }

    /// Number of columns.
    pub fn cols(self) -> usize {
        self.cols as usize
    }

    /// Number of places, 2 to 16: playable cells and stones.
    pub fn places(self) -> usize {
        self.rows() * self.cols()
    }

    /// Number of playable cells, 2 to 16.
    pub fn cells(self) -> usize {
        self.places() - self.stones.count_ones() as usize
    }

    /// Number of playable cells that loose stones leave for tiles, 2 to 16.
    pub fn tile_cells(self) -> usize {
        self.cells() - usize::from(self.loose)
    }

    /// Number of loose stones.
    pub fn loose(self) -> u8 {
        self.loose
    }

    /// Whether an exponent on this board is a loose stone.
    #[inline]
    pub fn is_loose_stone(self, exponent: u8) -> bool {
        self.loose > 0 && exponent == MAX_EXPONENT
    }

    /// Tile of an exponent of this board: 0 for an empty cell and for a loose stone.
    #[inline]
    pub fn tile(self, exponent: u8) -> u32 {
        if self.is_loose_stone(exponent) { 0 } else { tile(exponent) }
    }

    /// Exponent of the largest tile of a board; 0 without tiles.
    #[inline]
    pub fn largest(self, board: Board) -> u8 {
        self.tiles_of(board).largest()
    }

    /// Returns the board without its loose stones.
    #[inline]
    #[must_use]
    pub fn tiles_of(self, board: Board) -> Board {
        if self.loose == 0 { board } else { board.without_loose_stones() }
    }

    /// Places of the stones, one bit each.
    pub fn stones(self) -> u16 {
        self.stones
    }

    /// Kind of the stones; `None` if the board has no stones.
    pub fn stone(self) -> Option<Stone> {
        self.stone
    }

    /// Whether a place holds a stone.
    pub fn is_stone(self, place: usize) -> bool {
        self.stones >> place & 1 == 1
    }

    /// Iterates over the places of the playable cells, ascending.
    pub fn playable(self) -> impl Iterator<Item = usize> + Clone {
        (0..self.places()).filter(move |&place| !self.is_stone(place))
    }

    /// Lowest bit of each place of a stone in a packed board.
    pub fn packed_stones(self) -> u64 {
        (0..self.places())
            .filter(|&place| self.is_stone(place))
            .fold(0, |bits, place| bits | 1 << (4 * place))
    }

    /// The size without its stones.
    #[must_use]
    pub fn without_stones(self) -> Self {
        Self { stones: 0, stone: None, loose: 0, ..self }
    }

    /// Whether the board has stones of any kind.
    #[must_use]
    pub fn has_stones(self) -> bool {
        self.stone.is_some() || self.loose > 0
    }

    /// Picture of the stones for [`with_picture`](Self::with_picture); `None` without stones.
    pub fn picture(self) -> Option<String> {
        self.stone.map(|stone| stones::picture(self.cols(), self.places(), (self.stones, stone)))
    }

    /// Largest exponent that a tile of the board can have.
    pub fn most_exponent(self) -> u8 {
        if self.has_stones() { MAX_EXPONENT_BESIDE_STONES } else { MAX_EXPONENT }
    }

    /// Whether a packed number is a board of this size: no tile beyond the board, in a stone's cell, or above
    /// [`most_exponent`](Self::most_exponent), and each loose stone.
    pub fn holds(self, packed: u64) -> bool {
        packed.checked_shr(4 * self.places() as u32).unwrap_or(0) == 0
            && packed & (15 * self.packed_stones()) == 0
            && self.largest(Board(packed)) <= self.most_exponent()
            && (self.loose == 0 || Board(packed).loose_stones().count_ones() == u32::from(self.loose))
    }
}

impl fmt::Display for BoardSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.cols)?;
        self.picture().map_or(Ok(()), |picture| write!(f, ":{picture}"))?;
        if self.loose == 0 { Ok(()) } else { write!(f, "+{}x", self.loose) }
    }
}

impl FromStr for BoardSize {
    type Err = BoardError;

    fn from_str(text: &str) -> Result<Self, BoardError> {
        let syntax = || BoardError::SizeSyntax(text.to_owned());
        if let Some((size, loose)) = text.split_once('+') {
            let loose = loose.strip_suffix(['x', 'X']).and_then(|number| number.parse::<u32>().ok());
            return size.parse::<Self>()?.with_loose(loose.ok_or_else(syntax)?.into());
        }
        let (sides, picture) = text.split_once(':').map_or((text, None), |(sides, of)| (sides, Some(of)));
        let (rows, cols) = sides.split_once(['x', 'X', '×']).ok_or_else(syntax)?;
        let side = |s: &str| s.trim().parse::<u32>().map(u64::from).map_err(|_| syntax());
        let plain = Self::new(side(rows)?, side(cols)?)?;
        picture.map_or(Ok(plain), |picture| plain.with_picture(picture))
    }
}

impl TryFrom<String> for BoardSize {
    type Error = BoardError;

    fn try_from(text: String) -> Result<Self, BoardError> {
        text.parse()
    }
}

impl From<BoardSize> for String {
    fn from(size: BoardSize) -> String {
        size.to_string()
    }
}

/// Board with the exponent of each tile in four bits (0 = empty), row by row, cell 0 in the lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Board(pub u64);

impl Board {
    /// Exponent of the tile in `cell`; 0 if the cell is empty.
    pub fn get(self, cell: usize) -> u8 {
        (self.0 >> (4 * cell)) as u8 & 15
    }

    /// Returns the board with `exponent` in `cell`.
    #[must_use]
    pub fn with(self, cell: usize, exponent: u8) -> Self {
        Self(self.0 & !(15 << (4 * cell)) | (u64::from(exponent) << (4 * cell)))
    }

    /// Largest exponent of a cell; 0 if the board is empty.
    #[inline]
    #[must_use]
    pub fn largest(self) -> u8 {
        // The loop finds the bits of the exponent from the highest to the lowest. `cells` marks the cells that agree
        // with the largest exponent in all bits so far.
        let (mut cells, mut exponent) = (0x1111_1111_1111_1111, 0);
        for bit in (0..4).rev() {
            let with_bit = self.0 >> bit & cells;
            cells = if with_bit == 0 { cells } else { with_bit };
            exponent |= u8::from(with_bit != 0) << bit;
        }
        exponent
    }

    /// Number of tiles.
    #[inline]
    #[must_use]
    pub fn tiles(self) -> u32 {
        let b = self.0 | self.0 >> 1;
        ((b | b >> 2) & 0x1111_1111_1111_1111).count_ones()
    }

    /// Sum of the tiles of a board of a size: its layer.
    pub fn tile_sum(self, size: BoardSize) -> u32 {
        (0..size.places()).map(|place| size.tile(self.get(place))).sum()
    }

    /// Lowest bit of each cell with [`MAX_EXPONENT`], which are the loose stones of a board with loose stones.
    #[inline]
    pub(crate) fn loose_stones(self) -> u64 {
        let pairs = self.0 & self.0 >> 1;
        pairs & pairs >> 2 & 0x1111_1111_1111_1111
    }

    #[inline]
    fn without_loose_stones(self) -> Self {
        Self(self.0 & !(self.loose_stones() * u64::from(MAX_EXPONENT)))
    }

    /// Parses a board. Rows are separated by `/`, or by line ends if there is no `/`. Cells are separated by spaces or
    /// commas, and `0` or `.` is an empty cell. A lock is `x`, a wall is `#`, each in its place. A loose stone is `x`,
    /// in any place.
    ///
    /// # Errors
    ///
    /// [`BoardError::Shape`] if the text has a different number of rows or columns. [`BoardError::Tile`] for a cell that
    /// is not a tile. [`BoardError::Stone`] for a cell that differs from the stones of the size,
    /// [`BoardError::LooseStonesShown`], and [`BoardError::TileBesideStones`].
    pub fn parse(text: &str, size: BoardSize) -> Result<Self, BoardError> {
        let shape = |expected: String, found: String| BoardError::Shape {
            text: text.trim().to_owned(),
            expected,
            found,
            size,
        };
        let rows: Vec<&str> = rows_of(text).collect();
        if rows.len() != size.rows() {
            return Err(shape(several(size.rows(), "row"), several(rows.len(), "row")));
        }
        let mut board = Board::default();
        for (r, row) in rows.iter().enumerate() {
            // Skipping a missing cell between commas would shift all later cells.
            if row.contains(',') && row.split(',').any(|cells| cells.trim().is_empty()) {
                return Err(BoardError::Tile { cell: String::new() });
            }
            let cells = cells_of(row);
            if cells.len() != size.cols() {
                let found = format!("{} in row {}", several(cells.len(), "cell"), r + 1);
                return Err(shape(format!("{} a row", several(size.cols(), "cell")), found));
            }
            for (c, cell) in cells.iter().enumerate() {
                let place = r * size.cols() + c;
                board = board.with(place, parse_cell(cell, place, size)?);
            }
        }
        let found = board.loose_stones().count_ones();
        if size.loose > 0 && found != u32::from(size.loose) {
            let (board, found) = (board.to_text(size), found as usize);
            return Err(BoardError::LooseStonesShown { board, found, expected: size.loose });
        }
        Ok(board)
    }

    /// Formats the board for [`Board::parse`]: rows separated by ` / `, cells by spaces, tiles as numbers.
    pub fn to_text(self, size: BoardSize) -> String {
        let row = |r: usize| {
            let cells = (0..size.cols()).map(|c| self.cell_text(r * size.cols() + c, size));
            cells.collect::<Vec<_>>().join(" ")
        };
        (0..size.rows()).map(row).collect::<Vec<_>>().join(" / ")
    }

    /// Formats a place: its stone or its tile, 0 for an empty cell.
    pub fn cell_text(self, place: usize, size: BoardSize) -> String {
        let exponent = self.get(place);
        let stone = size.stone().filter(|_| size.is_stone(place));
        let stone = stone.or_else(|| size.is_loose_stone(exponent).then_some(Stone::Locked));
        stone.map_or_else(|| tile(exponent).to_string(), |stone| stone.symbol().to_string())
    }
}

/// Returns the tile of an exponent: 0 for an empty cell, else `2^exponent`.
pub fn tile(exponent: u8) -> u32 {
    if exponent == 0 { 0 } else { 1 << exponent }
}

/// Formats a number with a noun in the singular or plural.
fn several(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Returns the exponent of a place from its text; 0 in the cell of a stone.
fn parse_cell(cell: &str, place: usize, size: BoardSize) -> Result<u8, BoardError> {
    let wanted = size.stone().filter(|_| size.is_stone(place)).map(Stone::symbol);
    if !size.has_stones() {
        return parse_tile(cell);
    }
    let found = Stone::of_text(cell).map(Stone::symbol);
    if size.loose > 0 && found == Some(Stone::Locked.symbol()) {
        return Ok(MAX_EXPONENT);
    }
    if wanted != found {
        let expected = wanted.map_or_else(|| "a tile or 0".to_owned(), |symbol| symbol.to_string());
        return Err(BoardError::Stone { place: place + 1, cell: cell.to_owned(), expected, size });
    }
    if wanted.is_some() {
        return Ok(0);
    }
    let exponent = parse_tile(cell)?;
    if exponent > size.most_exponent() { Err(BoardError::TileBesideStones) } else { Ok(exponent) }
}

fn parse_tile(cell: &str) -> Result<u8, BoardError> {
    let bad = || BoardError::Tile { cell: cell.to_owned() };
    if cell == "." {
        return Ok(0);
    }
    match cell.parse::<u32>().map_err(|_| bad())? {
        0 => Ok(0),
        t if t.is_power_of_two() && (2..=1 << MAX_EXPONENT).contains(&t) => Ok(t.trailing_zeros() as u8),
        _ => Err(bad()),
    }
}

/// Φ of one tile of this exponent: `(e − 1)·2^e`.
pub const fn exponent_potential(exponent: u8) -> u64 {
    if exponent == 0 { 0 } else { (exponent as u64 - 1) << exponent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_counted_and_compared_in_any_cell() {
        for cell in 0..16 {
            let board = Board(1 << 20).with(cell, 15);
            assert_eq!((board.largest(), board.tiles()), (15, if cell == 5 { 1 } else { 2 }));
        }
        assert_eq!((Board::default().largest(), Board::default().tiles()), (0, 0));
    }

    #[test]
    fn boards_are_parsed_from_their_text() {
        let size: BoardSize = "2x3".parse().unwrap();
        let board = Board::parse("2 0 4 / ., 1024 ,8", size).unwrap();
        assert_eq!(board.to_text(size), "2 0 4 / 0 1024 8");
        assert_eq!(board.tile_sum(size), 1038);
        assert_eq!(Board::parse("\n2 0 4\n. 1024 8\n", size), Ok(board));
        assert_eq!(Board::parse("2 0 4 /\n. 1024 8", size), Ok(board));
    }

    #[test]
    fn sizes_are_read_from_boards() {
        for (text, size) in
            [("2 0 4\n. 8,8", "2x3"), ("2 X / . x / 4 0", "3x2:.x/.x/.."), ("#,# / 0,0", "2x2:##/..")]
        {
            assert_eq!(BoardSize::of_text(text), size.parse(), "{text}");
        }
        for text in ["", "2", "2 x / x", "x x / x 2", "x # / 0 2"] {
            assert!(BoardSize::of_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_in_errors_are_grammatical() {
        let error = |text: &str| Board::parse(text, "2x2".parse().unwrap()).unwrap_err().to_string();
        assert!(error("2 2").starts_with("1 row in"), "{}", error("2 2"));
        assert!(error("2 2 / 2").starts_with("1 cell in row 2 in"), "{}", error("2 2 / 2"));
        assert!(error("2 2 / 2").contains("expected 2 cells a row"), "{}", error("2 2 / 2"));
    }

    #[test]
    fn invalid_boards_are_refused() {
        let size: BoardSize = "2x2".parse().unwrap();
        for text in
            ["2 2", "2 2 / 2", "3 0 / 0 0", "1 0 / 0 0", "65536 0 / 0 0", "-2 0 / 0 0", "x 0 / 0 0", ""]
        {
            assert!(Board::parse(text, size).is_err(), "{text}");
        }
        for text in ["2,,0 / 0 2", "2,,0 / 0,2", ",2,0 / 0,2", "2 0 / 0,2,", "2 0 / ,"] {
            assert_eq!(Board::parse(text, size), Err(BoardError::Tile { cell: String::new() }), "{text}");
        }
        for size in ["3", "0x3", "9x1", "5x4", "1x1", "ax3", "3x", "99999999999x3"] {
            assert!(size.parse::<BoardSize>().is_err(), "{size}");
        }
    }
}
