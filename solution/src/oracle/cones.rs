//! Finds the values of any states of a run. Looks up stored values, and computes the others from cones. Keeps solved
//! cones for later questions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use exact2048_cone::{ConeError, Limits, Progress, Solved, TooLarge};
use exact2048_game::placer::Placer;
use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer};
use exact2048_storage::ItemKey;
use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::cone_files::ConeFiles;
use super::estimate::{ConeEstimate, states_of_cone};
use super::{Entry, Oracle, QueryError, Wanted};
use crate::read_error::ReadError;

/// Largest number of states whose cones are solved together if the next cut is near. The number is large enough that
/// their common parts are read once, and small enough that their successors take some MiB.
const SHALLOW_TOGETHER: usize = 512;

/// Number of layers below a cut whose computed values are kept with the decoded parts of the run. Values of lower
/// layers would need too many parts, so whole solved cones are kept instead.
const SHALLOW_LAYERS: u32 = 2;

/// Least number of states of a cone that is kept. Solving a smaller cone takes no longer than finding it.
const LEAST_KEPT_STATES: u64 = 256;

/// Largest number of solved cones in memory. Each look-up of a state may search all of them.
const MOST_IN_MEMORY: usize = 64;

/// Size in bytes above which the kernels solve a cone. For a smaller cone, hash tables are faster, because its blocks
/// have few entries.
const SMALL_BYTES: u64 = 8 << 20;

/// Largest size in bytes of the lower layers of a cone that the kernels list for later questions. These layers contain
/// the states that follow an asked state. Listing all states would take longer than solving the cone.
const MOST_KEPT_BYTES: u64 = 48 << 20;

/// From this number of states on, threads share the search for their entries.
const SHARED_STATES: usize = 4096;

/// Number of states that one thread looks up together. The number is large, because states of one part are often far
/// apart in the list. It is small enough that the places of the states take some MiB.
const LOOKED_UP_TOGETHER: usize = 1 << 14;

/// The place of a state of a layer in the order of the run, and the index of its board among the requested ones. There
/// are fewer than 2^32 boards.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct PlaceOfBoard {
    lane: u64,
    part: u32,
    number: usize,
    at: u32,
}

/// The limits of a question, and its callbacks.
#[derive(Clone, Copy)]
pub struct QuestionLimits<'a> {
    /// Whether the answer is still wanted.
    pub wanted: Wanted<'a>,
    /// Receives the progress of cones and layers.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Most bytes of memory that a cone may take.
    pub cone_bytes: u64,
    /// The cost of the answer so far.
    pub spent: &'a CostSum,
    /// The time at which the answer is of no use any more.
    pub deadline: Option<Instant>,
}

impl<'a> QuestionLimits<'a> {
    /// Limits without a report of progress. The answer is wanted until `wanted` returns false. Each cone may take
    /// `cone_bytes` bytes.
    pub fn new(wanted: Wanted<'a>, cone_bytes: u64, spent: &'a CostSum) -> Self {
        Self { wanted, progress: &|_| (), cone_bytes, spent, deadline: None }
    }

    fn limits(&self, bytes: u64) -> Limits<'a> {
        Limits { bytes, wanted: self.wanted, progress: self.progress }
    }
}

/// The cost of answers.
#[derive(Debug, Default)]
pub struct CostSum {
    computed: AtomicU64,
    stored: AtomicU64,
    found: AtomicU64,
}

impl CostSum {
    pub(super) fn add_stored(&self, states: u64) {
        self.stored.fetch_add(states, Ordering::Relaxed);
    }

    /// States whose values were computed.
    pub fn computed_states(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    /// Stored values that were looked up.
    pub fn stored_states(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Values that were found in previously solved cones.
    pub fn found_states(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }
}

/// Solved cones in memory, the most recently used first.
#[derive(Debug)]
pub(super) struct SolvedCones {
    most_bytes: u64,
    cones: Mutex<VecDeque<Arc<Solved>>>,
}

impl SolvedCones {
    pub(super) fn new(most_bytes: u64) -> Self {
        Self { most_bytes, cones: Mutex::default() }
    }

    /// Fills in the missing values that the cones have.
    fn fill(&self, states: &[(Layer, Board)], values: &mut [Option<Stored>]) {
        let cones = self.cones.lock().clone();
        for cone in cones {
            let mut was_used = false;
            for (&(layer, board), value) in
                states.iter().zip(&mut *values).filter(|(_, value)| value.is_none())
            {
                *value = cone.value(layer, board);
                was_used |= value.is_some();
            }
            if was_used {
                let mut cones = self.cones.lock();
                // Another thread may have removed the cone.
                if let Some(at) = cones.iter().position(|other| Arc::ptr_eq(other, &cone)) {
                    cones.remove(at);
                    cones.push_front(cone);
                }
            }
        }
    }

    fn keep(&self, solved: Arc<Solved>) {
        if solved.bytes() > self.most_bytes {
            return;
        }
        let mut cones = self.cones.lock();
        cones.push_front(solved);
        let mut bytes = cones.iter().map(|cone| cone.bytes()).sum::<u64>();
        while bytes > self.most_bytes || cones.len() > MOST_IN_MEMORY {
            bytes -= cones.pop_back().map_or(0, |cone| cone.bytes());
        }
    }

    /// Most bytes of the cones in memory.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Bytes of the cones in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.cones.lock().iter().map(|cone| cone.bytes()).sum()
    }
}

/// Values by canonical board.
pub(super) type Known = FxHashMap<Board, Stored>;

impl Oracle {
    /// The values of reachable states, given as canonical boards with their layers.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read, [`QueryError::TooLarge`], [`QueryError::GivenUp`].
    pub(super) fn settle(
        &self,
        mut states: Vec<(Layer, Board)>,
        question: &QuestionLimits<'_>,
    ) -> Result<Known, QueryError> {
        states.sort_unstable();
        states.dedup();
        let (mut known, mut open) = (Known::default(), Vec::new());
        for of_layer in states.chunk_by(|(a, _), (b, _)| a == b) {
            let layer = of_layer[0].0;
            if self.params.contents().kept().keeps(layer) {
                let boards: Vec<Board> = of_layer.iter().map(|(_, board)| *board).collect();
                let values = self.look_up(layer, &boards, question)?;
                known.extend(boards.into_iter().zip(values));
            } else if self.is_shallow(layer) {
                self.known_in_parts(of_layer, &mut known, &mut open, question)?;
            } else {
                open.extend_from_slice(of_layer);
            }
        }
        // The layers ascend, so the states below a cut are neighbours.
        for below_cut in open.chunk_by(|(a, _), (b, _)| {
            self.params.contents().kept().next_cut(*a) == self.params.contents().kept().next_cut(*b)
        }) {
            let is_shallow = self.is_shallow(below_cut[0].0);
            for some in below_cut.chunks(if is_shallow { SHALLOW_TOGETHER } else { usize::MAX }) {
                self.find_or_solve(some, &mut known, question)?;
            }
        }
        Ok(known)
    }

    /// Whether the next cut is so near that values are kept with the decoded parts.
    fn is_shallow(&self, layer: Layer) -> bool {
        self.params.contents().kept().next_cut(layer) <= layer.up(SHALLOW_LAYERS)
    }

    /// Adds the values of states to `known`, from solved cones or from a cone that is solved for these states.
    fn find_or_solve(
        &self,
        states: &[(Layer, Board)],
        known: &mut Known,
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let mut values = vec![None; states.len()];
        self.solved.fill(states, &mut values);
        let mut open = open_of(states, &values);
        if !open.is_empty()
            && !self.is_shallow(states[0].0)
            && let Some(files) = &self.cone_files
        {
            for (state, found) in open.iter().zip(files.values(&open)) {
                if let (Some(found), Ok(at)) = (found, states.binary_search(state)) {
                    values[at] = Some(found);
                }
            }
            open = open_of(states, &values);
        }
        question.spent.found.fetch_add((states.len() - open.len()) as u64, Ordering::Relaxed);
        known.extend(states.iter().zip(&values).filter_map(|(&(_, board), value)| Some((board, (*value)?))));
        if open.is_empty() { Ok(()) } else { self.solve(&open, known, question) }
    }

    /// Solves the cone of some states. If that takes too much memory, solves the cones of the two halves of the states,
    /// one after the other.
    fn solve(
        &self,
        states: &[(Layer, Board)],
        known: &mut Known,
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let (solved, computed) = match self.solve_cone(states, question) {
            Err(QueryError::TooLarge(_)) if states.len() > 1 && question.cone_bytes >= self.cone_bytes => {
                let (first, rest) = states.split_at(states.len() / 2);
                self.solve(first, known, question)?;
                return self.find_or_solve(rest, known, question);
            }
            solved => solved?,
        };
        question.spent.computed.fetch_add(computed, Ordering::Relaxed);
        let value = |&(layer, board): &(Layer, Board)| Some((board, solved.value(layer, board)?));
        known.extend(states.iter().filter_map(value));
        if self.is_shallow(states[0].0) {
            self.keep_in_parts(&solved)?;
        } else if solved.states() >= LEAST_KEPT_STATES {
            if let Some(files) = &self.cone_files {
                files.keep(&solved);
            }
            self.solved.keep(Arc::new(solved));
        }
        Ok(())
    }

    /// The cone of some states, and the number of states that were computed. Large cones are solved by the kernels, if
    /// there are any and memory suffices for them.
    fn solve_cone(
        &self,
        states: &[(Layer, Board)],
        question: &QuestionLimits<'_>,
    ) -> Result<(Solved, u64), QueryError> {
        let stored = |layer, boards: &[Board]| self.look_up(layer, boards, question);
        let by_tables = |bytes| {
            let solved = self.cones.solve(states, question.limits(bytes), stored)?;
            let states = solved.states();
            Ok((solved, states))
        };
        let kernels = self.kernels.as_ref().filter(|_| SMALL_BYTES < question.cone_bytes);
        let mut solved = by_tables(if kernels.is_some() { SMALL_BYTES } else { question.cone_bytes });
        if let (Err(ConeError::TooLarge(found)), Some(kernels)) = (&solved, kernels) {
            self.check_deadline(found, question)?;
            let begun = Instant::now();
            let kept_bytes = self.cone_files.as_ref().map_or(0, ConeFiles::most_bytes);
            let kept_bytes = kept_bytes.max(self.solved.most_bytes()).min(MOST_KEPT_BYTES);
            solved = kernels.cones.solve(states, question.limits(question.cone_bytes), kept_bytes, &stored);
            match &solved {
                Err(ConeError::TooLarge(_)) => solved = by_tables(question.cone_bytes),
                Ok((_, states)) => self.cone_pace.note(*states, begun.elapsed()),
                Err(_) => {}
            }
        }
        solved.map_err(|error| match error {
            ConeError::TooLarge(error) => QueryError::TooLarge(error),
            ConeError::GivenUp => QueryError::GivenUp,
            ConeError::Stored(error) => error,
        })
    }

    /// Checks that the kernels can solve a cone before the deadline of a question.
    fn check_deadline(&self, found: &TooLarge, question: &QuestionLimits<'_>) -> Result<(), QueryError> {
        let Some(deadline) = question.deadline else { return Ok(()) };
        let counts = self.catalog.holdings().counts();
        let of_layer = |layer| counts.get(&layer).map_or(0, |counts| counts.states);
        let states = states_of_cone(found, self.params.contents().kept().next_cut(found.first), of_layer);
        let (time, left) = (self.cone_pace.time(states), deadline.saturating_duration_since(Instant::now()));
        if time <= left { Ok(()) } else { Err(QueryError::TooSlow(ConeEstimate { states, time, left })) }
    }

    /// The stored values of states of a kept layer, in the order of their boards.
    fn look_up(
        &self,
        layer: Layer,
        boards: &[Board],
        question: &QuestionLimits<'_>,
    ) -> Result<Vec<Stored>, QueryError> {
        question.spent.add_stored(boards.len() as u64);
        let mut values = vec![Stored::default(); boards.len()];
        let look_up =
            |(values, boards): (&mut [Stored], &[Board])| self.look_up_some(layer, boards, values, question);
        if boards.len() < SHARED_STATES {
            look_up((&mut values, boards))?;
        } else {
            let values = values.par_chunks_mut(LOOKED_UP_TOGETHER);
            values.zip(boards.par_chunks(LOOKED_UP_TOGETHER)).try_for_each(look_up)?;
        }
        Ok(values)
    }

    /// Looks up the values of some states. Each part of the run is read once.
    fn look_up_some(
        &self,
        layer: Layer,
        boards: &[Board],
        values: &mut [Stored],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let mut placer = Placer::new(&self.locator);
        let mut places = Vec::with_capacity(boards.len());
        for (at, &board) in (0..).zip(boards) {
            let entry = placer.place(board).map(Entry::of).ok_or_else(|| self.no_place(layer, board))?;
            let ItemKey { lane, part, .. } = entry.key;
            places.push(PlaceOfBoard { lane, part, number: entry.number, at });
        }
        places.sort_unstable();
        for of_part in places.chunk_by(|a, b| (a.lane, a.part) == (b.lane, b.part)) {
            self.check(question)?;
            let board = boards[of_part[0].at as usize];
            let first = self.entry(board).ok_or_else(|| self.no_place(layer, board))?;
            let key = first.key;
            let part = self.part(&first)?.ok_or(ReadError::StateMissing(key))?;
            for place in of_part {
                let rank = part.rank(place.number).ok_or(ReadError::StateMissing(key))?;
                values[place.at as usize] = part.value(rank)?.ok_or(ReadError::no_values(key))?;
            }
        }
        Ok(())
    }

    /// Adds the values that are kept with the decoded parts to `known`, and the other states to `open`.
    fn known_in_parts(
        &self,
        states: &[(Layer, Board)],
        known: &mut Known,
        open: &mut Vec<(Layer, Board)>,
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let first_open = open.len();
        let mut entries = Vec::with_capacity(states.len());
        for &(layer, board) in states {
            entries.push((self.entry(board).ok_or_else(|| self.no_place(layer, board))?, (layer, board)));
        }
        entries.sort_unstable_by_key(|(entry, _)| (entry.key, entry.number));
        for of_part in entries.chunk_by(|(a, _), (b, _)| a.key == b.key) {
            self.check(question)?;
            let entry = &of_part[0].0;
            // A part that keeps no values need not be read.
            let part = if entry.keeps_values() { self.part(entry)? } else { None };
            for (entry, state) in of_part {
                let rank = part.as_ref().and_then(|part| Some((part, part.rank(entry.number)?)));
                match rank.map(|(part, rank)| part.value(rank)).transpose()?.flatten() {
                    Some(value) => drop(known.insert(state.1, value)),
                    None => open.push(*state),
                }
            }
        }
        open[first_open..].sort_unstable();
        Ok(())
    }

    /// Keeps the values of a cone with the decoded parts.
    fn keep_in_parts(&self, solved: &Solved) -> Result<(), QueryError> {
        for layer in solved.layers() {
            let places =
                layer.boards.iter().enumerate().filter_map(|(at, &board)| Some((self.entry(board)?, at)));
            let mut entries: Vec<_> = places.filter(|(entry, _)| entry.keeps_values()).collect();
            entries.sort_unstable_by_key(|(entry, _)| (entry.key, entry.number));
            for of_part in entries.chunk_by(|(a, _), (b, _)| a.key == b.key) {
                let Some(part) = self.part(&of_part[0].0)? else { continue };
                for (entry, at) in of_part {
                    if let Some(rank) = part.rank(entry.number) {
                        part.keep(rank, layer.values.get(*at));
                    }
                }
            }
        }
        Ok(())
    }

    /// The error for a state that the run must have, but for which no block has an entry.
    fn no_place(&self, layer: Layer, board: Board) -> QueryError {
        self.unreachable(
            board,
            &format!(": layer {layer} has no place for it, so a shard of a lower layer is wrong"),
        )
    }

    pub(super) fn check(&self, question: &QuestionLimits<'_>) -> Result<(), QueryError> {
        if (question.wanted)() { Ok(()) } else { Err(QueryError::GivenUp) }
    }
}

/// The states without a value.
fn open_of(states: &[(Layer, Board)], values: &[Option<Stored>]) -> Vec<(Layer, Board)> {
    states.iter().zip(values).filter(|(_, value)| value.is_none()).map(|(state, _)| *state).collect()
}
