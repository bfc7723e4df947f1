//! The formats of files.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::str::FromStr;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::columns::{ExportColumn, ExportRows, each_type};

/// The format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFormat {
    /// ExportRows, compressed, with statistics.
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
pub(crate) trait TableFile {
    /// Adds rows.
    fn write(&mut self, rows: ExportRows) -> io::Result<()>;

    /// Writes what is left, and gives the file back.
    fn finish(self: Box<Self>) -> io::Result<File>;
}

/// A file of no rows yet, like those of `none`; `description` says what they are of, where the format has a place for it.
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

/// Rows of a group of rows, which readers take at once: some MiB.
const GROUP_ROWS: usize = 1 << 20;

/// Bytes of a column that are compressed together.
const PAGE_BYTES: usize = 1 << 20;

/// Rows that readers can skip by the least and the largest value.
const PAGE_ROWS: usize = 1 << 17;

/// Rows of a Parquet file, of which the last group is not written yet.
struct ParquetFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    group: ExportRows,
    none: ExportRows,
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
        Ok(Self { writer, group: none.clone(), none: none.clone() })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let group = std::mem::replace(&mut self.group, self.none.clone());
        let mut writer = self.writer.next_row_group()?;
        for column in group.all() {
            match column {
                ExportColumn::U8(_, values) => {
                    put::<Int32Type>(&mut writer, values.iter().map(|&v| v.into()))?
                }
                ExportColumn::U16(_, values) => {
                    put::<Int32Type>(&mut writer, values.iter().map(|&v| v.into()))?
                }
                ExportColumn::U32(_, values) => {
                    put::<Int32Type>(&mut writer, values.iter().map(|v| v.cast_signed()))?
                }
                ExportColumn::U64(_, values) => {
                    put::<Int64Type>(&mut writer, values.iter().map(|v| v.cast_signed()))?
                }
                ExportColumn::F64(_, values) => put::<DoubleType>(&mut writer, values.iter().copied())?,
            }
        }
        writer.close().map(drop)
    }
}

impl TableFile for ParquetFile {
    fn write(&mut self, rows: ExportRows) -> io::Result<()> {
        self.group.append(rows);
        if self.group.rows() >= GROUP_ROWS { self.write_group().map_err(io_error) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<File> {
        if self.group.rows() > 0 {
            self.write_group().map_err(io_error)?;
        }
        Ok(self.writer.into_inner().map_err(io_error)?.into_inner()?)
    }
}

/// Writes the next column of a group.
fn put<T: DataType>(
    writer: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than the rows".to_owned());
    let mut column = writer.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values.collect::<Vec<_>>(), None, None)?;
    column.close()
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

/// How columns are coded: boards and layers as differences, since they ascend; small integers by a dictionary; numbers as
/// they are, since they repeat whole.
fn properties(none: &ExportRows, description: &str) -> Result<WriterPropertiesPtr, ParquetError> {
    let described = KeyValue::new("exact2048".to_owned(), description.to_owned());
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("exact2048 {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_key_value_metadata(Some(vec![described]));
    for column in none.all() {
        let path = || ColumnPath::from(column.name());
        properties = match column {
            ExportColumn::U64(..) | ExportColumn::U32(..) => properties
                .set_column_dictionary_enabled(path(), false)
                .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
            ExportColumn::F64(..) => properties
                .set_column_dictionary_enabled(path(), false)
                .set_column_encoding(path(), Encoding::PLAIN),
            _ => properties,
        };
    }
    Ok(Arc::new(properties.build()))
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
    fn write(&mut self, rows: ExportRows) -> io::Result<()> {
        for row in 0..rows.rows() {
            for column in rows.all() {
                each_type!(column, _, values => self.out.write_all(&values[row].to_le_bytes())?);
            }
        }
        self.rows += rows.rows() as u64;
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
    fn write(&mut self, rows: ExportRows) -> io::Result<()> {
        for row in 0..rows.rows() {
            for (nth, column) in rows.all().iter().enumerate() {
                let separator = if nth == 0 { "" } else { "," };
                // As short as they can be to be read back the same, tiny ones with an exponent.
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
