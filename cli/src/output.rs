//! Text for people on stdout, fitted to the terminal.

use std::ffi::OsStr;
use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use crate::display::{cut, paragraph};
use crate::{shell, terminal};

/// Width of the names of fields, in characters.
const NAMES: usize = 14;

/// Number of columns of the terminal on stdout; `None` if stdout is not a terminal.
pub fn columns() -> Option<usize> {
    terminal::of_stdout()
}

/// A table without ruled lines. Columns are aligned right, except the columns in `left`.
pub fn table(header: &[&str], left: &[usize], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec()).add_rows(rows);
    for (_, column) in table.column_iter_mut().enumerate().filter(|(number, _)| !left.contains(number)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Writes a table without trailing blanks.
pub fn write_table(out: &mut impl Write, table: &Table) -> io::Result<()> {
    writeln!(out, "{}", table.trim_fmt())
}

/// Writes a table with all columns. If the table is wider than the terminal, stacks each row: the first cell, then a line
/// for each other nonempty cell.
pub fn write_all_columns(
    out: &mut impl Write,
    header: &[&str],
    left: &[usize],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let whole: Vec<usize> = (0..header.len()).collect();
    match columns() {
        Some(columns) if width(&widths(header, rows, &whole)) > columns => {
            rows.iter().try_for_each(|row| write!(out, "{}", stacked(header, row, columns)))
        }
        _ => write_columns(out, header, left, rows, &whole),
    }
}

/// A row as stacked lines of at most `columns` characters.
fn stacked(header: &[&str], row: &[String], columns: usize) -> String {
    let named = header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
    let names = header.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or(0);
    let first = row.first().map(String::as_str).filter(|cell| !cell.is_empty());
    let head = first.or(header.first().copied()).map(str::to_owned);
    let lines = named.map(|(name, cell)| folded(&format!("  {name:<names$}  {cell}"), names + 4, columns));
    head.into_iter().chain(lines).map(|line| line + "\n").collect()
}

/// Writes a table that fits the terminal, and returns the headers of omitted columns.
///
/// Omits the columns in `drop` one by one, in that order, until the table fits. If the table is still too wide, cuts
/// the texts of the widest column. If stdout is not a terminal, writes the whole table.
pub fn write_fitting<'a>(
    out: &mut impl Write,
    header: &[&'a str],
    left: &[usize],
    rows: &[Vec<String>],
    drop: &[usize],
) -> io::Result<Vec<&'a str>> {
    let mut kept: Vec<usize> = (0..header.len()).collect();
    let Some(columns) = columns() else {
        write_columns(out, header, left, rows, &kept)?;
        return Ok(Vec::new());
    };
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
    write_columns(out, header, left, &rows, &kept)?;
    Ok(header
        .iter()
        .enumerate()
        .filter(|(column, _)| !kept.contains(column))
        .map(|(_, head)| *head)
        .collect())
}

fn widths(header: &[&str], rows: &[Vec<String>], kept: &[usize]) -> Vec<usize> {
    let width = |text: &str| text.chars().count();
    let of =
        |&column: &usize| rows.iter().map(|row| width(&row[column])).chain([width(header[column])]).max();
    kept.iter().map(|column| of(column).unwrap_or(0)).collect()
}

/// Width of a table. Each cell has a blank on both sides, except at the end of a line.
fn width(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(1)
}

fn write_columns(
    out: &mut impl Write,
    header: &[&str],
    left: &[usize],
    rows: &[Vec<String>],
    kept: &[usize],
) -> io::Result<()> {
    let names: Vec<&str> = kept.iter().map(|&column| header[column]).collect();
    let left: Vec<usize> = (0..kept.len()).filter(|&place| left.contains(&kept[place])).collect();
    let rows = rows.iter().map(|row| kept.iter().map(|&column| row[column].clone()).collect());
    write_table(out, &table(&names, &left, rows))
}

/// Writes a name and its value as one of several aligned lines, wrapped between words on a terminal.
pub fn write_field(out: &mut impl Write, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    let line = format!("{name:<NAMES$}{value}");
    // Values can contain text from files and command lines.
    let line = exact2048_text::plain(&line);
    match columns() {
        Some(columns) if line.chars().count() > columns => writeln!(out, "{}", folded(&line, NAMES, columns)),
        _ => writeln!(out, "{line}"),
    }
}

/// Wraps a line at `columns` characters and indents the continuation lines.
fn folded(line: &str, indent: usize, columns: usize) -> String {
    let indent = " ".repeat(indent);
    textwrap::fill(line, textwrap::Options::new(columns).subsequent_indent(&indent).break_words(false))
}

/// Writes a sentence, wrapped on a terminal.
pub fn write_sentence(out: &mut impl Write, sentence: &str) -> io::Result<()> {
    match columns() {
        Some(columns) => writeln!(out, "{}", paragraph(sentence, columns)),
        None => writeln!(out, "{sentence}"),
    }
}

/// Writes the command that queries a solved run. The command is on its own lines, so a user can copy it.
pub fn write_next(out: &mut impl Write, run: &OsStr) -> io::Result<()> {
    let command = format!("  exact2048 query --run {} \"BOARD\"", shell::quote(run));
    let command = columns().map_or(command.clone(), |columns| shell::folded(&command, columns));
    writeln!(out, "\nAsk for any state's value:\n{command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_fields_wrap_between_words() {
        let text = folded("trouble       a disk is full and cannot be written to", NAMES, 30);
        assert_eq!(
            text,
            "trouble       a disk is full\n              and cannot be\n              written to"
        );
    }

    #[test]
    fn wide_rows_are_stacked() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned);
        let header = ["boards", "each", "up to symmetry", "to tile sum"];
        assert_eq!(
            stacked(&header, &row(["all", "1,234", "56", ""]), 30),
            "all\n  each            1,234\n  up to symmetry  56\n"
        );
        let long = stacked(&header, &row(["", "2 4 8 / 16 32 64 / 128 256 512", "56", "7"]), 30);
        assert!(long.starts_with("boards\n  each            2 4 8 / 16\n                  32"), "{long}");
        assert!(long.lines().all(|line| line.chars().count() <= 30), "{long}");
    }
}
