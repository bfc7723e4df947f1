//! CSV: one line of text for each row, with a header.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use super::table_files::{TableFiles, read_all};
use crate::columns::{ExportColumn, ExportRows, each_type};

/// A CSV file.
pub(super) struct CsvFile {
    out: BufWriter<File>,
}

fn header(columns: &ExportRows) -> String {
    let names: Vec<&str> = columns.all().iter().map(ExportColumn::name).collect();
    names.join(",")
}

impl CsvFile {
    pub(super) fn create(file: File, columns: &ExportRows) -> io::Result<Self> {
        let mut out = BufWriter::new(file);
        writeln!(out, "{}", header(columns))?;
        Ok(Self { out })
    }

    fn write_row(&mut self, columns: &[ExportColumn], row: usize) -> io::Result<()> {
        for (nth, column) in columns.iter().enumerate() {
            let separator = if nth == 0 { "" } else { "," };
            match column {
                ExportColumn::OptionalF64(_, values) if values[row].is_nan() => {
                    self.out.write_all(separator.as_bytes())?;
                }
                // Debug formatting gives the shortest text that parses to the same number. Tiny numbers get an exponent.
                column => each_type!(column, _, values => write!(self.out, "{separator}{:?}", values[row])?),
            }
        }
        self.out.write_all(b"\n")
    }
}

impl TableFiles for CsvFile {
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()> {
        let mut rows = group.iter().flat_map(|rows| (0..rows.rows()).map(move |row| (rows.all(), row)));
        rows.try_for_each(|(columns, row)| self.write_row(columns, row))
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<File>> {
        Ok(vec![self.out.into_inner()?])
    }
}

/// Whether a file has the header and one terminated line for each row.
pub(super) fn is_whole(file: File, columns: &ExportRows, rows: u64) -> io::Result<bool> {
    let mut file = BufReader::with_capacity(1 << 20, file);
    let expected = header(columns) + "\n";
    let mut first = vec![0; expected.len()];
    if !read_all(&mut file, &mut first)? {
        return Ok(false);
    }
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let bytes = file.fill_buf()?;
        let Some(&end) = bytes.last() else { break };
        lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        last = end;
        let length = bytes.len();
        file.consume(length);
    }
    Ok(first == expected.as_bytes() && lines == rows && last == b'\n')
}
