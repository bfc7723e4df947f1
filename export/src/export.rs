//! Exports the layers of a run to files.

use std::io;
use std::path::Path;

use exact2048_files::open;
use exact2048_solution::{Oracle, Run};

use crate::columns::{ExportRows, ExportTable};
use crate::error::ExportError;
use crate::files::{FileRange, Folder, FolderError, create_own, cut};
use crate::format::{TableFiles, TableFormat};
use crate::groups::{ExportProgress, Group, Groups, Work};
use crate::options::ExportOptions;

/// Number of rows at which a file gets no further layer.
const FILE_ROWS: u64 = 8 << 20;

/// Result of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exported {
    /// Number of files, including existing files.
    pub files: usize,
    /// Number of existing, undamaged files.
    pub files_before: usize,
    /// Number of files that were written again, because they or files with other columns of the same rows were
    /// damaged.
    pub files_damaged: usize,
    /// Number of rows in all files.
    pub rows: u64,
    /// Total size of all files in bytes.
    pub bytes: u64,
}

/// Writes an export, or its missing files.
///
/// A file gets its name only when it is complete. Existing files that were truncated or overwritten are written again. The
/// export uses the threads of the caller's rayon pool.
///
/// # Errors
///
/// See [`ExportError`]. Written files stay, so another call with the same options resumes.
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
    let bytes = names.iter().map(|name| {
        let place = folder.place(name);
        place.metadata().map(|file| file.len()).map_err(|error| failed(&place, error))
    });
    let bytes = bytes.sum::<Result<u64, _>>()?;
    let rows = ranges.iter().map(|range| work.rows_of(range)).sum();
    Ok(Exported { files: names.len(), files_before, files_damaged, rows, bytes })
}

/// Whether the existing files of a range match this export and are complete.
fn is_whole(folder: &Folder, format: &TableFormat, names: &[String], rows: u64) -> Result<bool, ExportError> {
    let open_finished = |name: &String| {
        let place = folder.place(name);
        open(&place).map_err(|error| failed(&place, error))
    };
    let files = names.iter().map(open_finished).collect::<Result<_, _>>()?;
    format.are_whole(files, rows).map_err(|error| failed(&folder.place(&names.join(", ")), error))
}

/// Describes an export in one line.
fn describe(run: &Run, options: &ExportOptions) -> String {
    let (game, split) = (run.params().game(), run.params().split());
    let (board, objective, spawn4) = (game.board(), game.objective(), game.spawn4());
    let (discount, spawner) = (game.discount(), game.spawner());
    let layers = options.layers.as_ref().map_or_else(
        || "all layers".to_owned(),
        |layers| format!("layers {} to {}", layers.start(), layers.end()),
    );
    let sample = options.sample.map_or_else(String::new, |rows| format!(", a sample of {rows} rows"));
    // The exponents from which tiles are large or huge decide which of several best moves a run stores.
    let split = match options.table {
        ExportTable::BestMoves => format!(", tiles split at 2^{} and 2^{}", split.large(), split.huge()),
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
    /// The open files, with their names.
    open: Option<(Vec<String>, Box<dyn TableFiles>)>,
}

impl Writer<'_> {
    /// Writes the rows of a group to their files. The first group of a range creates the files, and the last group
    /// finishes them.
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
            create_own(&place).map_err(|error| failed(&place, error))
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
