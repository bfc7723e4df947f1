//! Parquet files.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom};
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
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnPath, Type};
use rayon::prelude::*;

use super::table_files::{TableFiles, read_all};
use crate::columns::{ExportColumn, ExportRows};

/// Magic number of Parquet, at both ends of a file.
const PARQUET: &[u8] = b"PAR1";

/// Whether a file has a number of rows of an export with this description, and is complete.
pub(super) fn is_whole(mut file: File, description: &str, rows: u64) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let (mut first, mut last) = ([0; PARQUET.len()], [0; 8]);
    if length < 12 || !read_all(&mut file, &mut first)? || first != PARQUET {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut last)?;
    let [a, b, c, d, ..] = last;
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    let Ok(reader) = SerializedFileReader::new(file) else { return Ok(false) };
    let metadata = reader.metadata();
    // The last bytes before the footer belong to a column or to the index of a column.
    let of_index = |at: Option<i64>, bytes: Option<i32>| Some(at? as u64 + bytes? as u64);
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let ends = columns.flat_map(|column| {
        let (begin, bytes) = column.byte_range();
        let indexes = [
            of_index(column.column_index_offset(), column.column_index_length()),
            of_index(column.offset_index_offset(), column.offset_index_length()),
        ];
        indexes.into_iter().flatten().chain([begin + bytes])
    });
    let end = ends.max().unwrap_or(PARQUET.len() as u64);
    let mut described = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let is_of_this = described.any(|entry| entry.value.as_deref() == Some(description));
    Ok(is_of_this && metadata.file_metadata().num_rows() as u64 == rows && end + footer + 8 == length)
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) if error.is::<io::Error>() => {
            *error.downcast().unwrap_or_else(|error| Box::new(io::Error::other(error)))
        }
        error => io::Error::other(error),
    }
}

/// Number of bytes of a column that are compressed together.
const PAGE_BYTES: usize = 1 << 20;

/// Number of rows of a page. Readers can skip a page by its smallest and largest value.
const PAGE_ROWS: usize = 1 << 17;

/// A Parquet file, which stores groups of rows column by column.
pub(super) struct ParquetFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    columns: usize,
}

impl ParquetFile {
    /// Creates a table without rows in `file`.
    pub(super) fn create(file: File, none: &ExportRows, description: &str) -> io::Result<Self> {
        Self::begin(file, none, description).map_err(io_error)
    }

    fn begin(file: File, none: &ExportRows, description: &str) -> Result<Self, ParquetError> {
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

    /// Encodes a column of a group for the file.
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
                ExportColumn::OptionalF64(_, values) => put_some(&mut column, values)?,
            }
        }
        let closed = column.close()?;
        Ok((encoded.into_inner()?.into(), closed))
    }
}

impl TableFiles for ParquetFile {
    fn write(&mut self, group: &[ExportRows]) -> io::Result<()> {
        self.write_group(group).map_err(io_error)
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<File>> {
        Ok(vec![self.writer.into_inner().map_err(io_error)?.into_inner()?])
    }
}

/// Adds values to a column of a group.
fn put<T: DataType>(column: &mut ColumnWriter<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    get_typed_column_writer_mut::<T>(column).write_batch(values, None, None).map(drop)
}

/// Adds optional numbers. Missing numbers have definition level 0 and take no space.
fn put_some(column: &mut ColumnWriter<'_>, values: &[f64]) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(!value.is_nan())).collect();
    let some: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    get_typed_column_writer_mut::<DoubleType>(column).write_batch(&some, Some(&levels), None).map(drop)
}

/// Widens small integers to the 32 bits of Parquet.
fn widened<T: Copy + Into<i32>>(values: &[T]) -> Vec<i32> {
    values.iter().map(|&value| value.into()).collect()
}

fn field(column: &ExportColumn) -> Result<Type, ParquetError> {
    let (physical, bits) = match column {
        ExportColumn::U8(..) => (Physical::INT32, Some(8)),
        ExportColumn::U16(..) => (Physical::INT32, Some(16)),
        ExportColumn::U32(..) => (Physical::INT32, Some(32)),
        ExportColumn::U64(..) => (Physical::INT64, Some(64)),
        ExportColumn::F64(..) | ExportColumn::OptionalF64(..) => (Physical::DOUBLE, None),
    };
    let repetition = match column {
        ExportColumn::OptionalF64(..) => Repetition::OPTIONAL,
        _ => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(column.name(), physical)
        .with_repetition(repetition)
        .with_logical_type(bits.map(|bits| LogicalType::integer(bits, false)))
        .build()
}

/// Sets the encoding of the columns.
///
/// Integers are stored as differences, because boards and layers ascend and neighbouring rows have similar numbers.
/// Floating-point numbers are stored plainly, because equal numbers then have equal bytes, which compress well.
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
            ExportColumn::F64(..) | ExportColumn::OptionalF64(..) => Encoding::PLAIN,
            _ => Encoding::DELTA_BINARY_PACKED,
        };
        properties = properties.set_column_encoding(path(), encoding);
    }
    Ok(Arc::new(properties.build()))
}
