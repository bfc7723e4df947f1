//! Text for people on stdout, as wide as the terminal is at most.

use std::io::{self, IsTerminal, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use terminal_size::{Width, terminal_size_of};

use crate::display::cut;

/// Columns that names of fields take.
const NAMES: usize = 14;

/// Columns of the terminal that stdout is; `None` where it is none.
pub fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    Some(terminal_size_of(io::stdout()).map_or(80, |(Width(columns), _)| usize::from(columns).max(20)))
}

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

/// Writes a table of at most as many columns as a terminal has: columns that do not fit are left out, those in `drop`
/// first and in that order; then the widest texts are cut. Where stdout is no terminal, all of it is written.
pub fn write_fitting(
    out: &mut impl Write,
    header: &[&str],
    left: usize,
    rows: &[Vec<String>],
    drop: &[usize],
) -> io::Result<()> {
    let whole: Vec<usize> = (0..header.len()).collect();
    let Some(columns) = columns() else { return write_columns(out, header, left, rows, &whole) };
    let mut kept = whole;
    let mut drop = drop.iter();
    while width(&widths(header, rows, &kept)) > columns
        && let Some(next) = drop.next()
    {
        kept.retain(|column| column != next);
    }
    let mut rows = rows.to_vec();
    let widths = widths(header, &rows, &kept);
    let excess = width(&widths).saturating_sub(columns);
    if excess > 0
        && let Some((place, widest)) = widths.iter().enumerate().max_by_key(|(_, width)| **width)
    {
        let column = kept[place];
        rows.iter_mut().for_each(|row| row[column] = cut(&row[column], widest.saturating_sub(excess).max(4)));
    }
    write_columns(out, header, left, &rows, &kept)
}

fn widths(header: &[&str], rows: &[Vec<String>], kept: &[usize]) -> Vec<usize> {
    let width = |text: &str| text.chars().count();
    let of =
        |&column: &usize| rows.iter().map(|row| width(&row[column])).chain([width(header[column])]).max();
    kept.iter().map(|column| of(column).unwrap_or(0)).collect()
}

/// Columns of a table: a blank on each side of a cell, but not at the end of a line.
fn width(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(1)
}

fn write_columns(
    out: &mut impl Write,
    header: &[&str],
    left: usize,
    rows: &[Vec<String>],
    kept: &[usize],
) -> io::Result<()> {
    let names: Vec<&str> = kept.iter().map(|&column| header[column]).collect();
    let left = kept.iter().filter(|&&column| column < left).count();
    let rows = rows.iter().map(|row| kept.iter().map(|&column| row[column].clone()).collect());
    write_table(out, &table(&names, left, rows))
}

/// Writes a name and what it is, as one of several aligned lines. On a terminal what does not fit goes on below, between
/// words.
pub fn write_field(out: &mut impl Write, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    let line = format!("{name:<NAMES$}{value}");
    match columns() {
        Some(columns) if line.chars().count() > columns => writeln!(out, "{}", folded(&line, columns)),
        _ => writeln!(out, "{line}"),
    }
}

fn folded(line: &str, columns: usize) -> String {
    let indent = " ".repeat(NAMES);
    textwrap::fill(line, textwrap::Options::new(columns).subsequent_indent(&indent).break_words(false))
}

/// Writes how to ask a solved run; the command is on a line of its own, to be copied.
pub fn write_next(out: &mut impl Write, run: &str) -> io::Result<()> {
    writeln!(out, "\nAsk for any state's value:\n  exact2048 query --run {run} \"BOARD\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_fields_go_on_between_words() {
        let text = folded("trouble       a disk is full and cannot be written to", 30);
        assert_eq!(
            text,
            "trouble       a disk is full\n              and cannot be\n              written to"
        );
    }
}
