//! The formats of files.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::{
    ColumnCloseResult, ColumnWriter, get_column_writer, get_typed_column_writer_mut,
};
use parquet::data_type::{DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnPath, Type};
use rayon::prelude::*;

use crate::columns::{ExportColumn, ExportRows, each_type};

/// The format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFormat {
    /// Columns, compressed, with statistics.
    Parquet,
    /// One array of records, as `numpy.save` writes it.
    Npy,
    /// A line of text a row, with a header.
    Csv,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Parquet, Self::Npy, Self::Csv];

    /// How names of such files end.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Npy => "npy",
            Self::Csv => "csv",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("expected parquet, npy or csv, found {text}"))
    }
}

/// A file that rows are written to.
pub(crate) trait TableFile: Send {
    /// Adds the rows of some layers.
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()>;

    /// Writes what is left, and gives the file back.
    fn finish(self: Box<Self>) -> io::Result<File>;
}

/// A file without rows yet, with the columns of `none`. `description` says what its rows are of, in a format that has a
/// place for it.
pub(crate) fn create(
    format: FileFormat,
    file: File,
    none: &ExportRows,
    description: &str,
) -> io::Result<Box<dyn TableFile>> {
    Ok(match format {
        FileFormat::Parquet => Box::new(ParquetFile::create(file, none, description).map_err(io_error)?),
        FileFormat::Npy => Box::new(NpyFile::create(file, none)?),
        FileFormat::Csv => Box::new(CsvFile::create(file, none)?),
    })
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) if error.is::<io::Error>() => {
            *error.downcast().unwrap_or_else(|error| Box::new(io::Error::other(error)))
        }
        error => io::Error::other(error),
    }
}

/// Bytes of a column that are compressed together.
const PAGE_BYTES: usize = 1 << 20;

/// Rows of a page, which readers can skip by its least and its largest value.
const PAGE_ROWS: usize = 1 << 17;

/// Groups of rows, column by column.
struct ParquetFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    columns: usize,
}

impl ParquetFile {
    fn create(file: File, none: &ExportRows, description: &str) -> Result<Self, ParquetError> {
        let fields = none.all().iter().map(|column| field(column).map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        let writer = SerializedFileWriter::new(
            BufWriter::new(file),
            Arc::new(schema),
            properties(none, description)?,
        )?;
        Ok(Self { writer, columns: none.all().len() })
    }

    fn write_group(&mut self, group: &[ExportRows]) -> Result<(), ParquetError> {
        let columns = (0..self.columns).into_par_iter().map(|nth| self.encode(group, nth));
        let columns: Vec<_> = columns.collect::<Result<_, _>>()?;
        let mut writer = self.writer.next_row_group()?;
        columns.into_iter().try_for_each(|(bytes, column)| writer.append_column(&bytes, column))?;
        writer.close().map(drop)
    }

    /// A column of a group as it comes into the file.
    fn encode(&self, group: &[ExportRows], nth: usize) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let (description, properties) = (self.writer.schema_descr().column(nth), self.writer.properties());
        let mut encoded = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut encoded));
        let mut column = get_column_writer(description, Arc::clone(properties), pages);
        for rows in group {
            match &rows.all()[nth] {
                ExportColumn::U8(_, values) => put::<Int32Type>(&mut column, &widened(values))?,
                ExportColumn::U16(_, values) => put::<Int32Type>(&mut column, &widened(values))?,
                ExportColumn::U32(_, values) => put::<Int32Type>(&mut column, bytemuck::cast_slice(values))?,
                ExportColumn::U64(_, values) => put::<Int64Type>(&mut column, bytemuck::cast_slice(values))?,
                ExportColumn::F64(_, values) => put::<DoubleType>(&mut column, values)?,
            }
        }
        let closed = column.close()?;
        Ok((encoded.into_inner()?.into(), closed))
    }
}

impl TableFile for ParquetFile {
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()> {
        self.write_group(group).map_err(io_error)
    }

    fn finish(self: Box<Self>) -> io::Result<File> {
        Ok(self.writer.into_inner().map_err(io_error)?.into_inner()?)
    }
}

/// Adds values to a column of a group.
fn put<T: DataType>(column: &mut ColumnWriter<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    get_typed_column_writer_mut::<T>(column).write_batch(values, None, None).map(drop)
}

/// Small integers as Parquet knows them.
fn widened<T: Copy + Into<i32>>(values: &[T]) -> Vec<i32> {
    values.iter().map(|&value| value.into()).collect()
}

fn field(column: &ExportColumn) -> Result<Type, ParquetError> {
    let (physical, bits) = match column {
        ExportColumn::U8(..) => (Physical::INT32, Some(8)),
        ExportColumn::U16(..) => (Physical::INT32, Some(16)),
        ExportColumn::U32(..) => (Physical::INT32, Some(32)),
        ExportColumn::U64(..) => (Physical::INT64, Some(64)),
        ExportColumn::F64(..) => (Physical::DOUBLE, None),
    };
    Type::primitive_type_builder(column.name(), physical)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(bits.map(|bits| LogicalType::integer(bits, false)))
        .build()
}

/// How columns are coded: integers as differences, since boards and layers ascend and what is said of neighbouring boards is
/// much the same; floating-point numbers as they are, since equal ones repeat as a whole.
fn properties(none: &ExportRows, description: &str) -> Result<WriterPropertiesPtr, ParquetError> {
    let described = KeyValue::new("exact2048".to_owned(), description.to_owned());
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("exact2048 {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_dictionary_enabled(false)
        .set_key_value_metadata(Some(vec![described]));
    for column in none.all() {
        let path = || ColumnPath::from(column.name());
        let encoding = match column {
            ExportColumn::F64(..) => Encoding::PLAIN,
            _ => Encoding::DELTA_BINARY_PACKED,
        };
        properties = properties.set_column_encoding(path(), encoding);
    }
    Ok(Arc::new(properties.build()))
}

/// All rows of a group, each as the [`ExportRows`] that it is in and its number there.
fn rows_of(group: &[ExportRows]) -> impl Iterator<Item = (&ExportRows, usize)> {
    group.iter().flat_map(|rows| (0..rows.rows()).map(move |row| (rows, row)))
}

/// Bytes of the header of an array: enough for all tables, and what follows is aligned.
const NPY_HEADER: usize = 384;

/// An array of records: NumPy's format, version 1.0.
struct NpyFile {
    out: BufWriter<File>,
    header: String,
    rows: u64,
}

impl NpyFile {
    fn create(file: File, none: &ExportRows) -> io::Result<Self> {
        let kind = |column: &ExportColumn| match column {
            ExportColumn::U8(..) => "|u1",
            ExportColumn::U16(..) => "<u2",
            ExportColumn::U32(..) => "<u4",
            ExportColumn::U64(..) => "<u8",
            ExportColumn::F64(..) => "<f8",
        };
        let fields = none.all().iter().map(|column| format!("('{}', '{}'), ", column.name(), kind(column)));
        let header = format!("{{'descr': [{}], 'fortran_order': False, ", fields.collect::<String>());
        let mut file = Self { out: BufWriter::new(file), header, rows: 0 };
        file.write_header()?;
        Ok(file)
    }

    fn write_header(&mut self) -> io::Result<()> {
        let text = format!("{}'shape': ({},), }}", self.header, self.rows);
        self.out.write_all(b"\x93NUMPY\x01\x00")?;
        self.out.write_all(&(NPY_HEADER as u16 - 10).to_le_bytes())?;
        writeln!(self.out, "{text:<width$}", width = NPY_HEADER - 11)
    }
}

impl TableFile for NpyFile {
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()> {
        for (rows, row) in rows_of(group) {
            for column in rows.all() {
                each_type!(column, _, values => self.out.write_all(&values[row].to_le_bytes())?);
            }
        }
        self.rows += rows_of(group).count() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<File> {
        self.out.seek(SeekFrom::Start(0))?;
        self.write_header()?;
        Ok(self.out.into_inner()?)
    }
}

/// Lines of text.
struct CsvFile {
    out: BufWriter<File>,
}

impl CsvFile {
    fn create(file: File, none: &ExportRows) -> io::Result<Self> {
        let mut out = BufWriter::new(file);
        let names: Vec<&str> = none.all().iter().map(ExportColumn::name).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(Self { out })
    }
}

impl TableFile for CsvFile {
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()> {
        for (rows, row) in rows_of(group) {
            for (nth, column) in rows.all().iter().enumerate() {
                let separator = if nth == 0 { "" } else { "," };
                // Numbers are as short as they can be to be read back the same, tiny ones with an exponent.
                each_type!(column, _, values => write!(self.out, "{separator}{:?}", values[row])?);
            }
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
    fn finish(self: Box<Self>) -> io::Result<File> {
        Ok(self.out.into_inner()?)
    }
}
