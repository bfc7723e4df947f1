//! Exporting: from layers to files.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use exact2048_game::{Layer, Params};
use exact2048_solution::{Oracle, QueryError, Run};

use crate::columns::{ExportRows, ExportTable};
use crate::files::{FileRange, Folder, FolderError, cut};
use crate::format::{self, FileFormat, TableFile};
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
    /// Number of files that were there already.
    pub files_before: usize,
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
    /// A file cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or the folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Writes an export, or what is missing of it: files that are there are taken to be whole, since a file gets its name
/// only when it is whole. The threads of the rayon pool that this is called in share the work.
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
        FolderError::Io(path, error) => ExportError::Io { path, error },
    })?;
    let files = cut(work.layers.iter().map(|counts| (counts.layer, work.rows(counts))), FILE_ROWS);
    let is_there = |file: &&FileRange| folder.place(&work.name(file)).exists();
    let files_before = files.iter().filter(is_there).count();
    let to_write: Vec<FileRange> = files.iter().filter(|file| !is_there(file)).copied().collect();
    let mut groups = Groups::new(&work, to_write);
    let mut writer = Writer { work: &work, folder: &folder, description: &description, open: None };
    let mut next = groups.next(&mut progress).inspect_err(|_| folder.leave())?;
    while let Some(group) = next {
        let (written, following) = rayon::join(|| writer.write(&group), || groups.next(&mut progress));
        written?;
        next = following?;
    }
    let bytes =
        files.iter().filter_map(|file| folder.place(&work.name(file)).metadata().ok()).map(|file| file.len());
    let rows = work.sample.map_or(work.all_rows, |sample| sample.within(0, work.all_rows).count() as u64);
    Ok(Exported { files: files.len(), files_before, rows, bytes: bytes.sum() })
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
         {layers}{sample}{split}, as {}",
        options.table.name(),
        run.fingerprint().unwrap_or_default(),
        options.format,
    )
}

/// Writes files, one after the other.
struct Writer<'a> {
    work: &'a Work<'a>,
    folder: &'a Folder,
    description: &'a str,
    /// The file that is being written, with its name.
    open: Option<(String, Box<dyn TableFile>)>,
}

impl Writer<'_> {
    /// Writes the rows of a group to their file, which is begun with the first and finished with the last of its groups.
    fn write(&mut self, group: &Group) -> Result<(), ExportError> {
        let (name, mut file) = match self.open.take() {
            Some(open) => open,
            None => {
                let name = self.work.name(&group.file);
                let place = self.folder.unfinished(&name);
                let none = ExportRows::none(self.work.table);
                let created = File::create(&place)
                    .and_then(|file| format::create(self.work.format, file, &none, self.description));
                (name, created.map_err(|error| failed(&place, error))?)
            }
        };
        file.write(&group.rows).map_err(|error| failed(&self.folder.unfinished(&name), error))?;
        if group.is_last {
            let finished = file.finish().and_then(|file| self.folder.finish(&name, &file));
            return finished.map_err(|error| failed(&self.folder.place(&name), error));
        }
        self.open = Some((name, file));
        Ok(())
    }
}

fn failed(path: &Path, error: io::Error) -> ExportError {
    ExportError::Io { path: path.to_path_buf(), error }
}
