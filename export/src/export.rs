//! Exporting: from layers to files.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer, Params};
use exact2048_solution::{LayerCounts, Oracle, QueryError, Run, StateReader};
use rayon::prelude::*;

use crate::columns::{BoardAnswers, ExportRows, ExportTable};
use crate::files::{FileRange, Folder, FolderError, cut};
use crate::format::{self, FileFormat, TableFile};
use crate::sample::Sample;

/// Rows from which on a file gets no further layer.
const FILE_ROWS: u64 = 8 << 20;

/// Bytes of rows that are about to be written, for each row of the largest layer or a group of rows.
const ROW_BYTES: u64 = 3 * 64;

/// Rows of a group of rows of a Parquet file.
const GROUP_ROWS: u64 = 1 << 20;

/// What is exported, and how.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// What rows are of.
    pub table: ExportTable,
    /// The layers, all of them unless this says which.
    pub layers: Option<RangeInclusive<Layer>>,
    /// Only so many rows, spread evenly.
    pub sample: Option<u64>,
    /// The format of the files.
    pub format: FileFormat,
    /// Where they come.
    pub folder: PathBuf,
    /// Bytes of memory that the layers may take that are worked on.
    pub memory_bytes: u64,
}

/// How far an export is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportProgress {
    /// The layer that is worked on.
    pub layer: Layer,
    /// Rows that are behind it, those of files that were there already too.
    pub rows: u64,
    /// All rows, before a sample is taken of them.
    pub all_rows: u64,
}

/// What was exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exported {
    /// Files, those that were there already too.
    pub files: usize,
    /// Those that were.
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
    #[error("layers {first} to {last} are asked for, and the run has layers {run_first} to {run_last}")]
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

/// Writes an export, or what is missing of it: files that are there are taken to be whole, since a file gets its name when
/// it is. Layers are worked on by the threads of the rayon pool that this is called in, files written by one more.
///
/// # Errors
///
/// See [`ExportError`]; what is written stays, and the same call goes on.
pub fn export(
    run: &Run,
    oracle: &Oracle,
    options: &ExportOptions,
    mut progress: impl FnMut(ExportProgress),
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
    let (to_write, rows) = sync_channel(1);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_files(&work, &folder, &description, rows));
        let sent = work.send(files.iter().filter(|file| !is_there(file)), &to_write, &mut progress);
        drop(to_write);
        // Where the writer ended early, that is why nothing more could be sent.
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        sent
    })?;
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
    format!(
        "{} of a run of {board}, {objective}, spawn4 {spawn4}, discount {discount}, {spawner} spawner, fingerprint {:032x}: \
         {layers}{sample}, as {}",
        options.table.name(),
        run.fingerprint().unwrap_or_default(),
        options.format,
    )
}

/// What the threads share.
struct Work<'a> {
    oracle: &'a Oracle,
    table: ExportTable,
    format: FileFormat,
    layers: Vec<LayerCounts>,
    all_rows: u64,
    sample: Option<Sample>,
    /// Cells of a board.
    cells: usize,
}

/// What the writer is told.
enum ToWrite {
    Begin(FileRange),
    Rows(ExportRows),
    Finish,
}

/// The writer has ended early; it says why.
struct WriterEnded;

impl<'a> Work<'a> {
    fn new(run: &Run, oracle: &'a Oracle, options: &ExportOptions) -> Result<Self, ExportError> {
        let counts = run.layer_counts();
        let all = Layer::FIRST..=run.params().last_layer();
        let wanted = options.layers.clone().unwrap_or_else(|| all.clone());
        let layers: Vec<LayerCounts> =
            counts.iter().filter(|counts| wanted.contains(&counts.layer)).copied().collect();
        if layers.is_empty() {
            let (first, last) = wanted.into_inner();
            let (run_first, run_last) = all.into_inner();
            return Err(ExportError::NoLayers { first, last, run_first, run_last });
        }
        let (table, format) = (options.table, options.format);
        let cells = run.params().cells();
        let mut work = Self { oracle, table, format, layers, all_rows: 0, sample: None, cells };
        work.all_rows = work.layers.iter().map(|counts| work.rows(counts)).sum();
        work.sample = options.sample.map(|wanted| Sample::new(wanted, work.all_rows));
        let range = work.layers[0].layer..=work.layers[work.layers.len() - 1].layer;
        let largest = work.layers.iter().map(|counts| work.rows(counts)).max().unwrap_or(0);
        let needed_bytes = oracle.state_reader(&|| true).bytes(range) + ROW_BYTES * largest.max(GROUP_ROWS);
        if needed_bytes > options.memory_bytes {
            return Err(ExportError::Memory { needed_bytes, limit_bytes: options.memory_bytes });
        }
        Ok(work)
    }

    fn name(&self, file: &FileRange) -> String {
        format!("{}-{:06}-{:06}.{}", self.table.name(), file.first.0, file.last.0, self.format)
    }

    /// Rows of a layer, before a sample is taken.
    fn rows(&self, counts: &LayerCounts) -> u64 {
        match self.table {
            ExportTable::States | ExportTable::Policy | ExportTable::BestMoves => counts.states,
            ExportTable::Afterstates => counts.afterstates,
        }
    }

    /// Sends the rows of some files to the writer, until that has ended.
    fn send<'b>(
        &self,
        files: impl Iterator<Item = &'b FileRange>,
        to_write: &SyncSender<ToWrite>,
        progress: &mut impl FnMut(ExportProgress),
    ) -> Result<(), ExportError> {
        let mut reader = self.oracle.state_reader(&|| true);
        let send = |what| to_write.send(what).map_err(|_| WriterEnded);
        for file in files {
            if let Err(WriterEnded) = send(ToWrite::Begin(*file)) {
                return Ok(());
            }
            let mut first = file.rows_before;
            let of_file =
                self.layers.iter().filter(|counts| (file.first..=file.last).contains(&counts.layer));
            for counts in of_file {
                let (layer, count) = (counts.layer, self.rows(counts));
                progress(ExportProgress { layer, rows: first, all_rows: self.all_rows });
                let sampled: Option<Vec<usize>> =
                    self.sample.map(|sample| sample.within(first, count).collect());
                first += count;
                if count == 0 || sampled.as_ref().is_some_and(Vec::is_empty) {
                    continue;
                }
                let rows = self.layer(&mut reader, counts, sampled.as_deref())?;
                if let Err(WriterEnded) = send(ToWrite::Rows(rows)) {
                    return Ok(());
                }
            }
            if let Err(WriterEnded) = send(ToWrite::Finish) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The rows of a layer, or those of them that are in the sample.
    fn layer(
        &self,
        reader: &mut StateReader<'_>,
        counts: &LayerCounts,
        sampled: Option<&[usize]>,
    ) -> Result<ExportRows, ExportError> {
        let layer = counts.layer;
        let answers = match self.table {
            ExportTable::States => {
                let states = reader.states(layer)?;
                let rows: Vec<_> = states.boards.iter().copied().zip(states.values.iter().copied()).collect();
                self.valued(rows, counts, sampled)?
            }
            ExportTable::Afterstates => {
                let rows = reader.moves(layer)?.afterstates();
                self.valued(rows, counts, sampled)?
            }
            ExportTable::Policy => {
                let (states, moves) = (reader.states(layer)?, reader.moves(layer)?);
                let numbered: Vec<_> = states.boards.iter().copied().enumerate().collect();
                let states = self.pick(numbered, counts, sampled)?;
                let actions: Vec<_> =
                    states.par_iter().map(|&(at, state)| self.actions(state, moves.values(at))).collect();
                let best = actions.iter().map(|(best, _)| *best).collect();
                let numbers =
                    (0..4).map(|nth| actions.iter().map(|(_, values)| values[nth]).collect()).collect();
                BoardAnswers { boards: states.into_iter().map(|(_, state)| state).collect(), best, numbers }
            }
            ExportTable::BestMoves => {
                let rows = self.pick(reader.best_moves(layer)?, counts, sampled)?;
                let best = rows.iter().map(|(_, best)| best.map_or(0, |best| 1 << best as u8)).collect();
                let boards = rows.into_iter().map(|(board, _)| board).collect();
                BoardAnswers { boards, best, numbers: Vec::new() }
            }
        };
        Ok(ExportRows::of(self.table, layer.0, self.cells, answers))
    }

    /// The columns of boards with values.
    fn valued(
        &self,
        rows: Vec<(Board, Stored)>,
        counts: &LayerCounts,
        sampled: Option<&[usize]>,
    ) -> Result<BoardAnswers, ExportError> {
        let rows = self.pick(rows, counts, sampled)?;
        let values = rows.par_iter().map(|&(board, bits)| self.oracle.seen_from(board, bits)).collect();
        let boards = rows.into_iter().map(|(board, _)| board).collect();
        Ok(BoardAnswers { boards, best: Vec::new(), numbers: vec![values] })
    }

    /// The rows that are in the sample, of as many as were counted.
    fn pick<T: Copy>(
        &self,
        rows: Vec<T>,
        counts: &LayerCounts,
        sampled: Option<&[usize]>,
    ) -> Result<Vec<T>, ExportError> {
        let (found, expected) = (rows.len() as u64, self.rows(counts));
        if found != expected {
            return Err(ExportError::Count { layer: counts.layer, found, expected });
        }
        Ok(match sampled {
            Some(sampled) => sampled.iter().map(|&row| rows[row]).collect(),
            None => rows,
        })
    }

    /// The best moves of a state as bits, and what each move is worth.
    fn actions(&self, state: Board, bits: [Option<Stored>; 4]) -> (u8, [f64; 4]) {
        let most = bits.iter().flatten().max();
        let is_best = |bits: &Option<Stored>| bits.is_some() && bits.as_ref() == most;
        let best = bits.iter().enumerate().map(|(nth, bits)| u8::from(is_best(bits)) << nth).sum();
        (best, bits.map(|bits| bits.map_or(f64::NAN, |bits| self.oracle.seen_from(state, bits))))
    }
}

/// Writes files as they are sent.
fn write_files(
    work: &Work<'_>,
    folder: &Folder,
    description: &str,
    rows: Receiver<ToWrite>,
) -> Result<(), ExportError> {
    let none = ExportRows::none(work.table);
    let mut open: Option<(String, Box<dyn TableFile>)> = None;
    for what in rows {
        match what {
            ToWrite::Begin(range) => {
                let name = work.name(&range);
                let file = File::create(folder.unfinished(&name))
                    .and_then(|file| format::create(work.format, file, &none, description));
                let file = file.map_err(|error| failed(&folder.unfinished(&name), error))?;
                open = Some((name, file));
            }
            ToWrite::Rows(rows) => {
                if let Some((name, file)) = &mut open {
                    file.write(rows).map_err(|error| failed(&folder.unfinished(name), error))?;
                }
            }
            ToWrite::Finish => {
                if let Some((name, file)) = open.take() {
                    let finished = file.finish().and_then(|file| folder.finish(&name, &file));
                    finished.map_err(|error| failed(&folder.place(&name), error))?;
                }
            }
        }
    }
    Ok(())
}

fn failed(path: &Path, error: io::Error) -> ExportError {
    ExportError::Io { path: path.to_path_buf(), error }
}
