//! Fields four columns wide, as bits.

use std::fmt;
use std::str::FromStr;

use crate::piece::Cell;

/// Number of columns of a field.
pub const WIDTH: i8 = 4;
/// Number of rows that fit into the bits.
const ROWS: i8 = 16;
/// Bits of one full row.
const ROW: u64 = 0b1111;

/// The filled cells between two high walls, four bits a row, from the bottom left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field(u64);

/// Error of an invalid field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A row does not have four cells.
    #[error("row {0:?} is not four cells wide: expected X for a filled and . for an empty cell, as in X..X")]
    Row(String),
    /// The field has more rows than a combo can use.
    #[error("expected at most 10 rows, the top one first, found {0}")]
    Height(usize),
    /// An empty row is below a filled row.
    #[error(
        "expected rows without a gap, found an empty row below a filled row; no piece can leave such a gap"
    )]
    Gap,
    /// A row is full.
    #[error(
        "expected an empty cell in each row, found full row {0:?}, which would be cleared before a piece enters"
    )]
    Full(String),
}

impl Field {
    /// Creates a field without holes from the heights of its columns.
    #[must_use]
    pub fn of_heights(heights: [u8; 4]) -> Self {
        let cells = |x: i8| (0..heights[x as usize] as i8).map(move |y| (x, y));
        (0..WIDTH).flat_map(cells).filter_map(bit).fold(Self(0), |Self(bits), bit| Self(bits | bit))
    }

    /// Number of filled cells.
    #[must_use]
    pub fn cells(self) -> u32 {
        self.0.count_ones()
    }

    /// Number of rows up to the highest filled cell.
    #[must_use]
    pub fn height(self) -> i8 {
        self.0.checked_ilog2().map_or(0, |top| top as i8 / 4 + 1)
    }

    /// The mirror image of the field.
    #[must_use]
    pub fn mirrored(self) -> Self {
        let (a, b) = (0x1111_1111_1111_1111, 0x2222_2222_2222_2222);
        Self((self.0 & a) << 3 | (self.0 & b) << 1 | self.0 >> 1 & b | self.0 >> 3 & a)
    }

    /// The cells of a shape at a place, as bits; `None` if the shape overlaps a wall, the floor or a filled cell.
    pub(crate) fn fit(self, shape: &[Cell; 4], (dx, dy): Cell) -> Option<Self> {
        let mut bits = 0;
        for &(x, y) in shape {
            bits |= bit((x + dx, y + dy))?;
        }
        (bits & self.0 == 0).then_some(Self(bits))
    }

    /// This field with the cells of a piece filled and full rows removed; `None` if no row is full.
    pub(crate) fn cleared_with(self, piece: Self) -> Option<Self> {
        let filled = self.0 | piece.0;
        let rows = (0..ROWS).map(|y| filled >> (4 * y) & ROW);
        let kept = rows.clone().filter(|&row| row != ROW).enumerate();
        rows.clone().any(|row| row == ROW).then(|| Self(kept.fold(0, |bits, (y, row)| bits | row << (4 * y))))
    }
}

/// The bit of a cell; `None` for a cell outside the walls, below the floor or above all rows.
fn bit((x, y): Cell) -> Option<u64> {
    ((0..WIDTH).contains(&x) && (0..ROWS).contains(&y)).then(|| 1 << (4 * y + x))
}

/// Writes the rows from the top, separated by slashes: `X.../X.../X...`. With the flag `#`, each row is a line.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if f.alternate() { "\n" } else { "/" };
        let cell = |x: i8, y: i8| if self.0 >> (4 * y + x) & 1 == 1 { 'X' } else { '.' };
        let row = |y: i8| (0..WIDTH).map(move |x| cell(x, y)).collect::<String>();
        f.write_str(&(0..self.height().max(1)).rev().map(row).collect::<Vec<_>>().join(separator))
    }
}

impl FromStr for Field {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let rows: Vec<&str> = text.split(['/', '\n']).map(str::trim).filter(|row| !row.is_empty()).collect();
        if rows.len() > 10 {
            return Err(FieldError::Height(rows.len()));
        }
        let mut bits = 0_u64;
        for row in rows {
            if row.chars().count() != 4 || row.chars().any(|c| !"Xx#._-".contains(c)) {
                return Err(FieldError::Row(row.to_owned()));
            }
            let filled = row.chars().enumerate().filter(|(_, c)| "Xx#".contains(*c));
            let filled = filled.fold(0, |filled, (x, _)| filled | 1 << x);
            if bits != 0 && filled == 0 {
                return Err(FieldError::Gap);
            }
            if filled == 15 {
                return Err(FieldError::Full(row.to_owned()));
            }
            bits = bits << 4 | filled;
        }
        Ok(Self(bits))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn fields_parse_as_they_are_printed() {
        let field: Field = "X.../XX.X".parse().unwrap();
        assert_eq!(field.to_string(), "X.../XX.X");
        assert_eq!(format!("{field:#}"), "X...\nXX.X");
        assert_eq!("X...\n##.x\n".parse(), Ok(field));
        assert_eq!((field.cells(), field.height()), (4, 2));
        assert_eq!(field.mirrored().to_string(), "...X/X.XX");
        assert_eq!(Field::of_heights([3, 0, 0, 0]).to_string(), "X.../X.../X...");
        assert_eq!(Field::default().to_string(), "....");
        assert_eq!("X.../..../X...".parse::<Field>(), Err(FieldError::Gap));
        assert_eq!("X.../XXXX".parse::<Field>(), Err(FieldError::Full("XXXX".to_owned())));
        assert_eq!("XXX".parse::<Field>(), Err(FieldError::Row("XXX".to_owned())));
        assert_eq!("X...\n".repeat(13).parse::<Field>(), Err(FieldError::Height(13)));
    }

    #[test]
    fn full_rows_are_removed() {
        let field: Field = "X.../XX.X".parse().unwrap();
        let shown = |piece| field.cleared_with(Field(piece)).map(|after| after.to_string());
        assert_eq!(shown(0b0100).as_deref(), Some("X..."));
        assert_eq!(shown(0b0010_0000), None);
        assert_eq!(shown(0b0001_1110_0100).as_deref(), Some("X..."), "two rows");
    }
}
