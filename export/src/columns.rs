//! Columns and rows of tables.

use exact2048_game::board::tile;
use exact2048_game::{Board, BoardSize};

/// Kind of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportTable {
    /// States with their values.
    States,
    /// Afterstates with their values.
    Afterstates,
    /// States with the value of each move, and the best moves.
    Policy,
    /// States with one best move each, from a run that stores best moves.
    BestMoves,
}

impl ExportTable {
    /// Name of the table, which is also the prefix of its files' names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::States => "states",
            Self::Afterstates => "afterstates",
            Self::Policy => "policy",
            Self::BestMoves => "best-moves",
        }
    }
}

/// A column: its name, and values of one type.
#[derive(Clone, PartialEq, Debug)]
pub enum ExportColumn {
    /// Unsigned 8-bit integers.
    U8(&'static str, Vec<u8>),
    /// Unsigned 16-bit integers.
    U16(&'static str, Vec<u16>),
    /// Unsigned 32-bit integers.
    U32(&'static str, Vec<u32>),
    /// Unsigned 64-bit integers.
    U64(&'static str, Vec<u64>),
    /// 64-bit floating-point numbers.
    F64(&'static str, Vec<f64>),
    /// Optional 64-bit floating-point numbers. NaN stands for a missing number. Each format writes missing numbers
    /// differently.
    OptionalF64(&'static str, Vec<f64>),
}

/// Evaluates an expression on the name and the values of a column of any type.
macro_rules! each_type {
    ($column:expr, $name:pat, $values:pat => $do:expr) => {
        match $column {
            $crate::columns::ExportColumn::U8($name, $values) => $do,
            $crate::columns::ExportColumn::U16($name, $values) => $do,
            $crate::columns::ExportColumn::U32($name, $values) => $do,
            $crate::columns::ExportColumn::U64($name, $values) => $do,
            $crate::columns::ExportColumn::F64($name, $values) => $do,
            $crate::columns::ExportColumn::OptionalF64($name, $values) => $do,
        }
    };
}
pub(crate) use each_type;

impl ExportColumn {
    /// Name of the column.
    #[must_use]
    pub fn name(&self) -> &'static str {
        each_type!(self, name, _ => name)
    }

    fn len(&self) -> usize {
        each_type!(self, _, values => values.len())
    }
}

/// Boards of a layer, their best moves, and the numbers of each floating-point column.
///
/// `best` and `numbers` are empty if the table has no such columns.
#[derive(Debug)]
pub(crate) struct BoardAnswers {
    pub(crate) boards: Vec<Board>,
    pub(crate) best: Vec<u8>,
    pub(crate) numbers: Vec<Vec<f64>>,
}

/// Rows of a table, column by column.
#[derive(Clone, PartialEq, Debug)]
pub struct ExportRows(Vec<ExportColumn>);

impl ExportRows {
    /// The columns of a table, without rows.
    #[must_use]
    pub fn none(table: ExportTable) -> Self {
        let board = ExportColumn::U64("board", Vec::new());
        let of_table: Vec<ExportColumn> = match table {
            ExportTable::States | ExportTable::Afterstates => vec![ExportColumn::F64("value", Vec::new())],
            ExportTable::Policy => {
                let moves = ["left", "right", "up", "down"];
                let moves = moves.map(|name| ExportColumn::OptionalF64(name, Vec::new()));
                std::iter::once(ExportColumn::U8("best", Vec::new())).chain(moves).collect()
            }
            ExportTable::BestMoves => vec![ExportColumn::U8("best", Vec::new())],
        };
        let board_facts = [
            ExportColumn::U32("layer", Vec::new()),
            ExportColumn::U16("largest", Vec::new()),
            ExportColumn::U8("empties", Vec::new()),
        ];
        Self(std::iter::once(board).chain(of_table).chain(board_facts).collect())
    }

    /// The rows of some boards of a layer.
    pub(crate) fn of(table: ExportTable, layer: u32, size: BoardSize, answers: BoardAnswers) -> Self {
        let mut rows = Self::none(table);
        let BoardAnswers { boards, best, numbers } = answers;
        let (mut best, mut numbers) = (Some(best), numbers.into_iter());
        for column in &mut rows.0 {
            match column {
                // Filled last, because filling this column consumes `boards`.
                ExportColumn::U64(..) => {}
                ExportColumn::F64(_, to) | ExportColumn::OptionalF64(_, to) => {
                    *to = numbers.next().unwrap_or_default()
                }
                ExportColumn::U32(_, to) => *to = vec![layer; boards.len()],
                ExportColumn::U16(_, to) => {
                    *to = boards.iter().map(|board| tile(size.largest(*board)) as u16).collect()
                }
                ExportColumn::U8("best", to) => *to = best.take().unwrap_or_default(),
                ExportColumn::U8(_, to) => {
                    *to = boards.iter().map(|board| size.cells() as u8 - board.tiles() as u8).collect()
                }
            }
        }
        if let Some(ExportColumn::U64(_, to)) = rows.0.first_mut() {
            *to = boards.into_iter().map(|board| board.0).collect();
        }
        debug_assert!(rows.0.iter().all(|column| column.len() == rows.rows()));
        rows
    }

    /// The columns.
    #[must_use]
    pub fn all(&self) -> &[ExportColumn] {
        &self.0
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.first().map_or(0, ExportColumn::len)
    }
}
