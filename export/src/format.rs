//! File formats of exports.

mod csv;
mod npy;
mod parquet;
mod table_files;

use std::fmt;
use std::fs::File;
use std::io;
use std::str::FromStr;

use crate::columns::ExportRows;
pub(crate) use table_files::TableFiles;

/// The format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFormat {
    /// Compressed columns with statistics.
    Parquet,
    /// One array for each column, in separate files, as `numpy.save` writes them.
    Npy,
    /// One line of text for each row, with a header.
    Csv,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Parquet, Self::Npy, Self::Csv];

    /// Extension of files in this format.
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

/// The properties that all files of an export share.
#[derive(Clone, Debug)]
pub(crate) struct TableFormat {
    pub(crate) format: FileFormat,
    /// The columns, without rows.
    pub(crate) columns: ExportRows,
    /// The description of the export, for formats that can store it.
    pub(crate) description: String,
}

impl TableFormat {
    /// Names of the files of a range, with the prefix `stem`.
    pub(crate) fn names(&self, stem: &str) -> Vec<String> {
        match self.format {
            FileFormat::Parquet | FileFormat::Csv => vec![format!("{stem}.{}", self.format)],
            FileFormat::Npy => {
                npy::names(&self.columns).map(|column| format!("{stem}.{column}.npy")).collect()
            }
        }
    }

    /// Creates tables without rows in `files`. The files are in the order of [`names`](Self::names).
    pub(crate) fn create(&self, files: Vec<File>) -> io::Result<Box<dyn TableFiles>> {
        let (columns, description) = (&self.columns, &self.description);
        Ok(match self.format {
            FileFormat::Parquet => {
                Box::new(parquet::ParquetFile::create(only(files)?, columns, description)?)
            }
            FileFormat::Csv => Box::new(csv::CsvFile::create(only(files)?, columns)?),
            FileFormat::Npy => Box::new(npy::NpyFiles::create(files, columns)?),
        })
    }

    /// Whether `files` are complete files of this format with `rows` rows, in the order of [`names`](Self::names).
    ///
    /// Checks the beginning, the end and the length of each file. Reads a CSV file completely to count its lines.
    pub(crate) fn are_whole(&self, files: Vec<File>, rows: u64) -> io::Result<bool> {
        match self.format {
            FileFormat::Parquet => parquet::is_whole(only(files)?, &self.description, rows),
            FileFormat::Csv => csv::is_whole(only(files)?, &self.columns, rows),
            FileFormat::Npy => npy::are_whole(files, &self.columns, rows),
        }
    }
}

fn only(mut files: Vec<File>) -> io::Result<File> {
    files.pop().ok_or_else(|| io::Error::other("expected a file, found none"))
}
