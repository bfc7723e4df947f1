//! Exporting: from layers to files.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use exact2048_game::{Layer, Params};
use exact2048_solution::{Oracle, QueryError, Run};

use crate::columns::{ExportRows, ExportTable};
use crate::files::{FileRange, Folder, FolderError, cut};
use crate::format::{FileFormat, TableFiles, TableFormat};
use crate::groups::{Group, Groups, Work};

/// A file with at least this many rows gets no further layer.
const FILE_ROWS: u64 = 8 << 20;

/// What is exported, and how.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// What rows are of.
    pub table: ExportTable,
    /// The layers; all of them if `None`.
    pub layers: Option<RangeInclusive<Layer>>,
    /// Only this many rows, spread evenly; all rows if `None`.
    pub sample: Option<u64>,
    /// The format of the files.
    pub format: FileFormat,
    /// The folder that the files are written to.
    pub folder: PathBuf,
    /// Bytes of memory that the layers that are worked on may take.
    pub memory_bytes: u64,
}

/// How far an export is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportProgress {
    /// The layer that is worked on.
    pub layer: Layer,
    /// Rows of the layers before it, those in files that were there already included.
    pub rows: u64,
    /// All rows, before a sample is taken of them.
    pub all_rows: u64,
}

/// What was exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exported {
    /// Number of files, those that were there already included.
    pub files: usize,
    /// Number of files that were there already and are whole.
    pub files_before: usize,
    /// Number of files that were written again because they, or another column of their rows, were damaged.
    pub files_damaged: usize,
    /// Rows in all files.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run does not answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// No layer of the run is asked for.
    #[error(
        "layers {first} to {} are asked for, and the run has layers {run_first} to {run_last}, which are even",
        if *last == Layer(u32::MAX) { "the last".to_owned() } else { last.to_string() }
    )]
    NoLayers {
        /// As asked for.
        first: Layer,
        /// As asked for.
        last: Layer,
        /// Of the run.
        run_first: Layer,
        /// Of the run.
        run_last: Layer,
    },
    /// It takes more memory than it may.
    #[error(
        "the largest layers that are exported take up to {needed_bytes} bytes of memory, and {limit_bytes} are allowed: allow \
         more, or export fewer layers"
    )]
    Memory {
        /// Bytes that are taken at most.
        needed_bytes: u64,
        /// Bytes that may be taken.
        limit_bytes: u64,
    },
    /// A layer has other rows than the run counted.
    #[error("layer {layer} has {found} rows, expected {expected} as the run counted them: verify the run")]
    Count {
        /// The layer.
        layer: Layer,
        /// Rows that were found.
        found: u64,
        /// As they were counted.
        expected: u64,
    },
    /// The folder holds something else.
    #[error("{} holds {held}; expected an empty folder, or one of {wanted}", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What it holds.
        held: String,
        /// What is exported.
        wanted: String,
    },
    /// Another process exports to the folder.
    #[error("expected no other export into {}, found one that runs; wait for its end, or name another folder", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or the folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Writes an export, or what is missing of it. A file gets its name only when it is whole; one that was cut off or
/// overwritten since is written again. The threads of the rayon pool that this is called in share the work.
///
/// # Errors
///
/// See [`ExportError`]; what is written stays, and another call with the same options goes on from there.
pub fn export(
    run: &Run,
    oracle: &Oracle,
    options: &ExportOptions,
    mut progress: impl FnMut(ExportProgress) + Send,
) -> Result<Exported, ExportError> {
    let work = Work::new(run, oracle, options)?;
    let description = describe(run, options);
    let folder = Folder::open(&options.folder, &description).map_err(|error| match error {
        FolderError::Occupied(held) => {
            ExportError::Occupied { folder: options.folder.clone(), held, wanted: description.clone() }
        }
        FolderError::Busy => ExportError::Busy { folder: options.folder.clone() },
        FolderError::Io(path, error) => ExportError::Io { path, error },
    })?;
    let format = TableFormat { format: options.format, columns: ExportRows::none(work.table), description };
    let ranges = cut(work.layers.iter().map(|counts| (counts.layer, work.rows(counts))), FILE_ROWS);
    let names: Vec<String> = ranges.iter().flat_map(|range| format.names(&work.stem(range))).collect();
    let (mut to_write, mut files_before, mut files_damaged) = (Vec::new(), 0, 0);
    for range in &ranges {
        let names = format.names(&work.stem(range));
        let is_there = |name: &String| folder.place(name).exists();
        if !names.iter().all(is_there) {
            to_write.push(*range);
        } else if is_whole(&folder, &format, &names, work.rows_of(range))? {
            files_before += names.len();
        } else {
            files_damaged += names.len();
            to_write.push(*range);
        }
    }
    let mut groups = Groups::new(&work, to_write);
    let mut writer = Writer { work: &work, folder: &folder, format: &format, open: None };
    let mut next = groups.next(&mut progress).inspect_err(|_| folder.leave())?;
    while let Some(group) = next {
        let (written, following) = rayon::join(|| writer.write(&group), || groups.next(&mut progress));
        written?;
        next = following?;
    }
    let bytes = names.iter().filter_map(|name| folder.place(name).metadata().ok()).map(|file| file.len());
    let rows = ranges.iter().map(|range| work.rows_of(range)).sum();
    Ok(Exported { files: names.len(), files_before, files_damaged, rows, bytes: bytes.sum() })
}

/// Whether the files of a range, all of which are there, are what this export writes.
fn is_whole(folder: &Folder, format: &TableFormat, names: &[String], rows: u64) -> Result<bool, ExportError> {
    let open = |name: &String| {
        let place = folder.place(name);
        File::open(&place).map_err(|error| failed(&place, error))
    };
    let files = names.iter().map(open).collect::<Result<_, _>>()?;
    format.are_whole(files, rows).map_err(|error| failed(&folder.place(&names.join(", ")), error))
}

/// What an export is of, in a line.
fn describe(run: &Run, options: &ExportOptions) -> String {
    let Params { board, objective, spawn4, discount, spawner, .. } = run.params();
    let layers = options.layers.as_ref().map_or_else(
        || "all layers".to_owned(),
        |layers| format!("layers {} to {}", layers.start(), layers.end()),
    );
    let sample = options.sample.map_or_else(String::new, |rows| format!(", a sample of {rows} rows"));
    // Which of several best moves a run stores follows from how its tiles are split.
    let Params { large, huge, .. } = run.params();
    let split = match options.table {
        ExportTable::BestMoves => format!(", tiles split at 2^{large} and 2^{huge}"),
        _ => String::new(),
    };
    format!(
        "{} of a run of {board}, {objective}, spawn4 {spawn4}, discount {discount}, {spawner} spawner, fingerprint {:032x}: \
         {layers}{sample}{split}, as {} in data/",
        options.table.name(),
        run.fingerprint().unwrap_or_default(),
        options.format,
    )
}

/// Writes the files of ranges, one range after the other.
struct Writer<'a> {
    work: &'a Work<'a>,
    folder: &'a Folder,
    format: &'a TableFormat,
    /// The files that are being written, with their names.
    open: Option<(Vec<String>, Box<dyn TableFiles>)>,
}

impl Writer<'_> {
    /// Writes the rows of a group to their files, which are begun with the first and finished with the last of their
    /// groups.
    fn write(&mut self, group: &Group) -> Result<(), ExportError> {
        let (names, mut files) = match self.open.take() {
            Some(open) => open,
            None => self.create(&group.file)?,
        };
        let place = self.folder.unfinished(&names[0]);
        files.write(&group.rows).map_err(|error| failed(&place, error))?;
        if group.is_last {
            let finished = files.finish().and_then(|files| self.folder.finish(&names, &files));
            return finished.map_err(|error| failed(&place, error));
        }
        self.open = Some((names, files));
        Ok(())
    }

    fn create(&self, range: &FileRange) -> Result<(Vec<String>, Box<dyn TableFiles>), ExportError> {
        let names = self.format.names(&self.work.stem(range));
        let create = |name: &String| {
            let place = self.folder.unfinished(name);
            File::create(&place).map_err(|error| failed(&place, error))
        };
        let files = names.iter().map(create).collect::<Result<_, _>>()?;
        let files = self.format.create(files);
        let files = files.map_err(|error| failed(&self.folder.unfinished(&names[0]), error))?;
        Ok((names, files))
    }
}

fn failed(path: &Path, error: io::Error) -> ExportError {
    ExportError::Io { path: path.to_path_buf(), error }
}
