//! NumPy's format, version 1.0: one array for each column.
//!
//! The arrays are in separate files with aligned elements, so a program that maps one column reads no other column.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use super::table_files::TableFiles;
use crate::columns::{ExportColumn, ExportRows, each_type};

/// Number of bytes of an array's header. This size suffices for all types and aligns the elements.
const HEADER: usize = 128;

/// An array of a column.
#[derive(Clone, Copy)]
struct Array {
    column: usize,
    /// Whether the array is the column's mask. A mask is true for missing numbers, as in NumPy's masked arrays.
    is_mask: bool,
}

fn arrays(columns: &ExportRows) -> impl Iterator<Item = Array> {
    columns.all().iter().enumerate().flat_map(|(column, of)| {
        let mask = matches!(of, ExportColumn::OptionalF64(..)).then_some(Array { column, is_mask: true });
        std::iter::once(Array { column, is_mask: false }).chain(mask)
    })
}

/// The names of the arrays.
pub(super) fn names(columns: &ExportRows) -> impl Iterator<Item = String> {
    arrays(columns).map(|Array { column, is_mask }| {
        let name = columns.all()[column].name();
        if is_mask { format!("{name}.mask") } else { name.to_owned() }
    })
}

impl Array {
    /// NumPy's name for the element type, and the bytes of an element.
    fn element(self, columns: &ExportRows) -> (&'static str, u64) {
        match columns.all()[self.column] {
            _ if self.is_mask => ("|b1", 1),
            ExportColumn::U8(..) => ("|u1", 1),
            ExportColumn::U16(..) => ("<u2", 2),
            ExportColumn::U32(..) => ("<u4", 4),
            ExportColumn::U64(..) => ("<u8", 8),
            ExportColumn::F64(..) | ExportColumn::OptionalF64(..) => ("<f8", 8),
        }
    }

    fn header(self, columns: &ExportRows, rows: u64) -> Vec<u8> {
        let (element, _) = self.element(columns);
        let text = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': ({rows},), }}");
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend((HEADER as u16 - 10).to_le_bytes());
        header.extend(format!("{text:<width$}\n", width = HEADER - 11).bytes());
        header
    }

    fn write(self, out: &mut impl Write, rows: &ExportRows) -> io::Result<()> {
        match &rows.all()[self.column] {
            ExportColumn::OptionalF64(_, values) if self.is_mask => {
                values.iter().try_for_each(|value| out.write_all(&[u8::from(value.is_nan())]))
            }
            column => each_type!(column, _, values => {
                values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
            }),
        }
    }
}

/// Arrays of equal length.
pub(super) struct NpyFiles {
    arrays: Vec<(Array, BufWriter<File>)>,
    columns: ExportRows,
    rows: u64,
}

impl NpyFiles {
    pub(super) fn create(files: Vec<File>, columns: &ExportRows) -> io::Result<Self> {
        let arrays = arrays(columns).zip(files.into_iter().map(BufWriter::new)).collect();
        let mut files = Self { arrays, columns: columns.clone(), rows: 0 };
        files.write_headers()?;
        Ok(files)
    }

    fn write_headers(&mut self) -> io::Result<()> {
        let (columns, rows) = (&self.columns, self.rows);
        self.arrays.iter_mut().try_for_each(|(array, out)| out.write_all(&array.header(columns, rows)))
    }
}

impl TableFiles for NpyFiles {
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()> {
        for rows in group {
            self.arrays.iter_mut().try_for_each(|(array, out)| array.write(out, rows))?;
            self.rows += rows.rows() as u64;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Vec<File>> {
        self.arrays.iter_mut().try_for_each(|(_, out)| out.seek(SeekFrom::Start(0)).map(drop))?;
        self.write_headers()?;
        self.arrays.into_iter().map(|(_, out)| Ok(out.into_inner()?)).collect()
    }
}

/// Whether files have the headers for `rows` rows, and the lengths that their headers imply.
pub(super) fn are_whole(files: Vec<File>, columns: &ExportRows, rows: u64) -> io::Result<bool> {
    for (array, mut file) in arrays(columns).zip(files) {
        let (_, width) = array.element(columns);
        if file.metadata()?.len() != HEADER as u64 + rows * width {
            return Ok(false);
        }
        let mut header = [0; HEADER];
        file.read_exact(&mut header)?;
        if header[..] != array.header(columns, rows) {
            return Ok(false);
        }
    }
    Ok(true)
}
