//! Text for people on stdout.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// A table without lines; all columns are aligned to the right but the first `left` ones.
pub fn table(header: &[&str], left: usize, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec()).add_rows(rows);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Writes a table, without blanks at the ends of lines.
pub fn write_table(out: &mut impl Write, table: &Table) -> io::Result<()> {
    writeln!(out, "{}", table.trim_fmt())
}

/// Writes a name and what it is, as one of several aligned lines.
pub fn write_field(out: &mut impl Write, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    writeln!(out, "{name:<14}{value}")
}
