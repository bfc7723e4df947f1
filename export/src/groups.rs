//! Rows of an export, in groups of layers that are written together.

use std::borrow::Cow;

use exact2048_game::value::Stored;
use exact2048_game::{Board, BoardSize, Layer};
use exact2048_solution::{LayerCounts, Oracle, Run, StateReader};
use rayon::prelude::*;

use crate::columns::{BoardAnswers, ExportRows, ExportTable};
use crate::error::ExportError;
use crate::files::FileRange;
use crate::options::ExportOptions;
use crate::sample::Sample;

/// Bytes of memory for each unwritten row. At most the rows of a group or of the largest layer are unwritten.
const ROW_BYTES: u64 = 3 * 64;

/// Number of rows at which a group gets no further layer. Groups are small, because readers of Parquet files read a
/// whole group at once.
const GROUP_ROWS: usize = 1 << 20;

/// Progress of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportProgress {
    /// The current layer.
    pub layer: Layer,
    /// Number of rows in the layers before the current one, including rows in existing files.
    pub rows: u64,
    /// Number of all rows, before sampling.
    pub all_rows: u64,
}

/// Rows that are written together.
pub(crate) struct Group {
    /// The file of the rows.
    pub(crate) file: FileRange,
    /// The rows of some layers, in their order.
    pub(crate) rows: Vec<ExportRows>,
    /// Whether this is the file's last group.
    pub(crate) is_last: bool,
}

/// Makes the rows of some files, group by group.
pub(crate) struct Groups<'a> {
    work: &'a Work<'a>,
    reader: StateReader<'a>,
    files: std::vec::IntoIter<FileRange>,
    /// The file with further groups, its remaining layers, and the number of the first remaining row.
    open: Option<(FileRange, &'a [LayerCounts], u64)>,
}

impl<'a> Groups<'a> {
    /// The groups of all or some files of an export.
    pub(crate) fn new(work: &'a Work<'a>, files: Vec<FileRange>) -> Self {
        Self { work, reader: StateReader::new(work.oracle, &|| true), files: files.into_iter(), open: None }
    }

    /// The next group; `None` after the last group of the last file. Calls `progress` at the start of each layer.
    pub(crate) fn next(
        &mut self,
        progress: &mut impl FnMut(ExportProgress),
    ) -> Result<Option<Group>, ExportError> {
        let work = self.work;
        let begin = |file: FileRange| (file, work.layers_of(&file), file.rows_before);
        let Some((file, mut layers, mut first)) = self.open.take().or_else(|| self.files.next().map(begin))
        else {
            return Ok(None);
        };
        let mut rows: Vec<ExportRows> = Vec::new();
        while rows.iter().map(ExportRows::rows).sum::<usize>() < GROUP_ROWS {
            let Some((counts, rest)) = layers.split_first() else { break };
            let (layer, count) = (counts.layer, work.rows(counts));
            progress(ExportProgress { layer, rows: first, all_rows: work.all_rows });
            let sampled: Option<Vec<usize>> = work.sample.map(|sample| sample.within(first, count).collect());
            (layers, first) = (rest, first + count);
            if count > 0 && !sampled.as_ref().is_some_and(Vec::is_empty) {
                rows.push(work.layer(&mut self.reader, counts, sampled.as_deref())?);
            }
        }
        let is_last = layers.is_empty();
        self.open = (!is_last).then_some((file, layers, first));
        Ok(Some(Group { file, rows, is_last }))
    }
}

/// Contents of an export.
pub(crate) struct Work<'a> {
    oracle: &'a Oracle,
    pub(crate) table: ExportTable,
    pub(crate) layers: Vec<LayerCounts>,
    pub(crate) all_rows: u64,
    pub(crate) sample: Option<Sample>,
    /// Size of the boards.
    size: BoardSize,
}

impl<'a> Work<'a> {
    /// Determines the contents of an export, and checks the memory limit.
    pub(crate) fn new(run: &Run, oracle: &'a Oracle, options: &ExportOptions) -> Result<Self, ExportError> {
        let counts = run.layer_counts();
        let all = run.params().first_layer()..=run.params().last_layer();
        let wanted = options.layers.clone().unwrap_or_else(|| all.clone());
        let layers: Vec<LayerCounts> =
            counts.iter().filter(|counts| wanted.contains(&counts.layer)).copied().collect();
        if layers.is_empty() {
            let (first, last) = wanted.into_inner();
            let (run_first, run_last) = all.into_inner();
            return Err(ExportError::NoLayers { first, last, run_first, run_last });
        }
        let table = options.table;
        let size = run.params().game().board();
        let mut work = Self { oracle, table, layers, all_rows: 0, sample: None, size };
        work.all_rows = work.layers.iter().map(|counts| work.rows(counts)).sum();
        work.sample = options.sample.map(|wanted| Sample::new(wanted, work.all_rows));
        let range = work.layers[0].layer..=work.layers[work.layers.len() - 1].layer;
        let largest = work.layers.iter().map(|counts| work.rows(counts)).max().unwrap_or(0);
        let needed_bytes =
            StateReader::new(oracle, &|| true).bytes(range) + ROW_BYTES * largest.max(GROUP_ROWS as u64);
        if needed_bytes > options.memory_bytes {
            return Err(ExportError::Memory { needed_bytes, limit_bytes: options.memory_bytes });
        }
        Ok(work)
    }

    /// Prefix of the names of the files that hold these layers.
    pub(crate) fn stem(&self, file: &FileRange) -> String {
        format!("{}-{:06}-{:06}", self.table.name(), file.first.0, file.last.0)
    }

    /// Number of rows in the files that hold these layers, after sampling.
    pub(crate) fn rows_of(&self, file: &FileRange) -> u64 {
        self.sample.map_or(file.rows, |sample| sample.within(file.rows_before, file.rows).count() as u64)
    }

    /// The layers of a file.
    fn layers_of(&self, file: &FileRange) -> &[LayerCounts] {
        let first = self.layers.partition_point(|counts| counts.layer < file.first);
        let end = self.layers.partition_point(|counts| counts.layer <= file.last);
        &self.layers[first..end]
    }

    /// Number of rows of a layer, before sampling.
    pub(crate) fn rows(&self, counts: &LayerCounts) -> u64 {
        match self.table {
            ExportTable::States | ExportTable::Policy | ExportTable::BestMoves => counts.states,
            ExportTable::Afterstates => counts.afterstates,
        }
    }

    /// The sampled rows of a layer, or all rows without a sample.
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
                self.valued(&states.boards, &states.values, counts, sampled)?
            }
            ExportTable::Afterstates => {
                let (boards, values): (Vec<_>, Vec<_>) =
                    reader.moves(layer)?.afterstates().into_iter().unzip();
                self.valued(&boards, &values, counts, sampled)?
            }
            ExportTable::Policy => {
                let (states, moves) = (reader.states(layer)?, reader.moves(layer)?);
                let numbered: Vec<_> = states.boards.iter().copied().enumerate().collect();
                let states = self.pick(&numbered, counts, sampled)?;
                let actions: Vec<_> =
                    states.par_iter().map(|&(at, state)| self.actions(state, moves.values(at))).collect();
                let best = actions.iter().map(|(best, _)| *best).collect();
                let numbers =
                    (0..4).map(|nth| actions.iter().map(|(_, values)| values[nth]).collect()).collect();
                BoardAnswers { boards: states.iter().map(|&(_, state)| state).collect(), best, numbers }
            }
            ExportTable::BestMoves => {
                let all = reader.best_moves(layer)?;
                let rows = self.pick(&all, counts, sampled)?;
                let best = rows.iter().map(|(_, best)| best.map_or(0, |best| 1 << best as u8)).collect();
                let boards = rows.iter().map(|&(board, _)| board).collect();
                BoardAnswers { boards, best, numbers: Vec::new() }
            }
        };
        Ok(ExportRows::of(self.table, layer.0, self.size, answers))
    }

    /// The columns of boards with values.
    fn valued(
        &self,
        boards: &[Board],
        values: &[Stored],
        counts: &LayerCounts,
        sampled: Option<&[usize]>,
    ) -> Result<BoardAnswers, ExportError> {
        let (boards, bits) = (self.pick(boards, counts, sampled)?, self.pick(values, counts, sampled)?);
        let numbers = boards.par_iter().zip(bits.par_iter());
        let numbers = numbers.map(|(&board, &bits)| self.oracle.seen_from(board, bits)).collect();
        Ok(BoardAnswers { boards: boards.into_owned(), best: Vec::new(), numbers: vec![numbers] })
    }

    /// Picks the sampled rows, or all rows without a sample.
    ///
    /// # Errors
    ///
    /// [`ExportError::Count`] if the number of rows differs from the run's count.
    fn pick<'b, T: Copy>(
        &self,
        rows: &'b [T],
        counts: &LayerCounts,
        sampled: Option<&[usize]>,
    ) -> Result<Cow<'b, [T]>, ExportError> {
        let (found, expected) = (rows.len() as u64, self.rows(counts));
        if found != expected {
            return Err(ExportError::Count { layer: counts.layer, found, expected });
        }
        Ok(match sampled {
            Some(sampled) => sampled.iter().map(|&row| rows[row]).collect(),
            None => Cow::Borrowed(rows),
        })
    }

    /// The best moves of a state as bits, and the value of each move.
    fn actions(&self, state: Board, bits: [Option<Stored>; 4]) -> (u8, [f64; 4]) {
        let most = bits.iter().flatten().max();
        let is_best = |bits: &Option<Stored>| bits.is_some() && bits.as_ref() == most;
        let best = bits.iter().enumerate().map(|(nth, bits)| u8::from(is_best(bits)) << nth).sum();
        (best, bits.map(|bits| bits.map_or(f64::NAN, |bits| self.oracle.seen_from(state, bits))))
    }
}
