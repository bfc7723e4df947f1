//! The values of any states of a run: stored, known from earlier questions, or computed from a cone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use exact2048_cone::{ConeError, Solved, Solver, TooLarge};
use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer};
use rustc_hash::FxHashMap;

use super::cone_files::ConeFiles;
use super::estimate::{ConeEstimate, ConePace, states_of_cone};
use super::kernels::{ConeJob, ConeKernels, KernelCone, StoredValues};
use super::ladder::{ValueSource, fill_from};
use super::solved_cones::SolvedCones;
use super::stored::StoredStates;
use super::{QueryError, QuestionLimits};

/// Largest number of states whose cones are solved together if the next cut is near. The number is large enough that
/// their common parts are read once, and small enough that their successors take some MiB.
const SHALLOW_TOGETHER: usize = 512;

/// Number of layers below a cut whose computed values are kept with the decoded parts of the run. Values of lower
/// layers would need too many parts, so whole solved cones are kept instead.
const SHALLOW_LAYERS: u32 = 2;

/// Least number of states of a cone that is kept. Solving a smaller cone takes no longer than finding it.
const LEAST_KEPT_STATES: u64 = 256;

/// Size in bytes above which the kernels solve a cone, about a million states with the stored ones. For a smaller cone,
/// hash tables are faster, because its blocks have few entries, and the kernels need tables for each of its lanes.
const SMALL_BYTES: u64 = 32 << 20;

/// [`SMALL_BYTES`] on boards of at most [`FEW_CELLS`] cells. Their few lanes have full blocks. On 3x3, the kernels solve
/// a cone of 2.3 million states in an eighth of the time.
const SMALL_BYTES_OF_FEW_CELLS: u64 = 2 << 20;

const FEW_CELLS: usize = 10;

/// Largest size in bytes of the lower layers of a cone that the kernels list for later questions. These layers contain
/// the states that follow an asked state. Listing all states would take longer than solving the cone.
const MOST_KEPT_BYTES: u64 = 48 << 20;

/// Most states of a question for which a new cone begins at all of them, known or not. So few states are mostly those
/// after the moves of one state. The known ones may end an earlier cone, and the next questions need the states after
/// them. On 4x3 `reach:512 --keep 64`, a game then needs one new cone where it needed two.
const MOST_OF_ONE_STATE: usize = 128;

/// Values by canonical board.
pub(super) type Known = FxHashMap<Board, Stored>;

/// Solves cones, and keeps them for later questions in memory and in files.
pub(super) struct Cones {
    pub(super) solver: Solver,
    pub(super) kernels: Option<Box<dyn ConeKernels>>,
    pub(super) pace: ConePace,
    /// Bytes that a cone may take, unless a question has its own limit.
    pub(super) most_bytes: u64,
    pub(super) memory: SolvedCones,
    pub(super) landings: SolvedCones,
    pub(super) files: Option<ConeFiles>,
}

impl Cones {
    /// The values of reachable states, given as canonical boards with their layers.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read, [`QueryError::TooLarge`], [`QueryError::TooSlow`],
    /// [`QueryError::GivenUp`].
    pub(super) fn settle(
        &self,
        stored: &StoredStates,
        mut states: Vec<(Layer, Board)>,
        question: &QuestionLimits<'_>,
    ) -> Result<Known, QueryError> {
        states.sort_unstable();
        states.dedup();
        let kept = stored.params.contents().kept();
        let mut known = Known::default();
        let belong_together =
            |a: Layer, b: Layer| !kept.keeps(a) && !kept.keeps(b) && kept.next_cut(a) == kept.next_cut(b);
        for some in states.chunk_by(|(a, _), (b, _)| a == b || belong_together(*a, *b)) {
            let layer = some[0].0;
            if kept.keeps(layer) {
                let boards: Vec<Board> = some.iter().map(|(_, board)| *board).collect();
                let values = stored.look_up(layer, &boards, question)?;
                known.extend(boards.into_iter().zip(values));
            } else {
                let mut values = vec![None; some.len()];
                self.fill(stored, some, &mut values, question)?;
                known
                    .extend(some.iter().zip(values).filter_map(|(&(_, board), value)| Some((board, value?))));
            }
        }
        Ok(known)
    }

    /// Asks the sources of values below a cut, from the fastest to the slowest.
    fn fill(
        &self,
        stored: &StoredStates,
        states: &[(Layer, Board)],
        values: &mut [Option<Stored>],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let layer = states[0].0;
        let is_shallow = stored.params.contents().kept().next_cut(layer) <= layer.up(SHALLOW_LAYERS);
        let mut known: Vec<&dyn ValueSource> = Vec::with_capacity(3);
        if is_shallow {
            known.push(stored);
        }
        known.push(&self.memory);
        if let Some(files) = self.files.as_ref().filter(|_| !is_shallow) {
            known.push(files);
        }
        let solving = Solving { cones: self, stored, is_shallow, known: &known };
        fill_from(&known, states, values, question)?;
        solving.fill(states, values, question)
    }
}

/// The last source, which computes values.
struct Solving<'a> {
    cones: &'a Cones,
    stored: &'a StoredStates,
    /// Whether values are kept with the decoded parts.
    is_shallow: bool,
    /// The sources of values that were computed before.
    known: &'a [&'a dyn ValueSource],
}

impl ValueSource for Solving<'_> {
    fn fill(
        &self,
        states: &[(Layer, Board)],
        values: &mut [Option<Stored>],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let mut open: Vec<usize> = (0..states.len()).filter(|&at| values[at].is_none()).collect();
        let goes_on = open.len() < states.len();
        if !open.is_empty() && !self.is_shallow && states.len() <= MOST_OF_ONE_STATE {
            open = (0..states.len()).collect();
        }
        for some in open.chunks(if self.is_shallow { SHALLOW_TOGETHER } else { usize::MAX }) {
            let asked: Vec<(Layer, Board)> = some.iter().map(|&at| states[at]).collect();
            for (&at, value) in some.iter().zip(self.solve(&asked, goes_on, question)?) {
                values[at] = value;
            }
        }
        Ok(())
    }
}

impl Solving<'_> {
    /// Solves the cone of some states, and keeps it. If that takes too much memory, solves the cones of the two halves of
    /// the states, one after the other. `goes_on` says whether an earlier cone has some states of the question.
    fn solve(
        &self,
        asked: &[(Layer, Board)],
        goes_on: bool,
        question: &QuestionLimits<'_>,
    ) -> Result<Vec<Option<Stored>>, QueryError> {
        let (solved, computed) = match self.solve_cone(asked, goes_on, question) {
            Err(QueryError::TooLarge(_)) if asked.len() > 1 && self.is_whole(question) => {
                let (first, rest) = asked.split_at(asked.len() / 2);
                let mut values = self.solve(first, goes_on, question)?;
                let mut others = vec![None; rest.len()];
                fill_from(self.known, rest, &mut others, question)?;
                self.fill(rest, &mut others, question)?;
                values.append(&mut others);
                return Ok(values);
            }
            solved => solved?,
        };
        question.spent.add_computed(computed);
        let values = asked.iter().map(|&(layer, board)| solved.value(layer, board)).collect();
        if self.is_shallow {
            self.stored.keep(&solved)?;
        } else if solved.states() >= LEAST_KEPT_STATES {
            if let Some(files) = &self.cones.files {
                files.keep(&solved);
            }
            self.cones.memory.keep(Arc::new(solved));
        }
        Ok(values)
    }

    /// Whether a question may use the whole memory for a cone. Otherwise it is a trial.
    fn is_whole(&self, question: &QuestionLimits<'_>) -> bool {
        question.cone_bytes >= self.cones.most_bytes
    }

    /// The cone of some states, and the number of states that were computed. Large cones are solved by the kernels, if
    /// there are any and memory suffices for them. They take long, so they do not work for trials, which often run without
    /// a turn or a way to stop them.
    fn solve_cone(
        &self,
        asked: &[(Layer, Board)],
        goes_on: bool,
        question: &QuestionLimits<'_>,
    ) -> Result<(Solved, u64), QueryError> {
        let cones = self.cones;
        let stored = |layer, boards: &[Board]| self.stored.look_up(layer, boards, question);
        let by_tables = |bytes| {
            let solved = cones.solver.solve(asked, question.limits(bytes), stored)?;
            let states = solved.states();
            Ok((solved, states))
        };
        let has_few_cells = self.stored.params.game().cells() <= FEW_CELLS;
        let small_bytes = if has_few_cells { SMALL_BYTES_OF_FEW_CELLS } else { SMALL_BYTES };
        let kernels = cones.kernels.as_ref().filter(|_| small_bytes < cones.most_bytes);
        let table_bytes = if kernels.is_some() { small_bytes } else { u64::MAX };
        let mut solved = by_tables(table_bytes.min(question.cone_bytes));
        let kernels = kernels.filter(|_| self.is_whole(question));
        if let (Err(ConeError::TooLarge(found)), Some(kernels)) = (&solved, kernels) {
            if let Some(landed) = self.land(asked, goes_on, &**kernels, question).transpose()? {
                return Ok(landed);
            }
            let cut = self.stored.params.contents().kept().next_cut(found.first);
            self.check_deadline(found, cut, question)?;
            solved = self.by_kernels(&**kernels, (asked, cut), question, &stored);
            if let Err(ConeError::TooLarge(_)) = &solved {
                solved = by_tables(question.cone_bytes);
            }
        }
        solved.map_err(of_cone)
    }

    /// Solves a cone up to a landing of an earlier cone; `None` if no landing fits.
    fn land(
        &self,
        asked: &[(Layer, Board)],
        goes_on: bool,
        kernels: &dyn ConeKernels,
        question: &QuestionLimits<'_>,
    ) -> Option<Result<(Solved, u64), QueryError>> {
        let (&(first, _), &(last, _)) = (asked.first()?, asked.last()?);
        let cut = self.stored.params.contents().kept().next_cut(first);
        let (landing_layer, landing) = self.cones.landings.between(last, cut).filter(|_| goes_on)?;
        let is_missing = AtomicBool::new(false);
        let values = |layer, boards: &[Board]| {
            let value = |&board| landing.value(layer, self.cones.solver.packed().canonical(board));
            let found: Option<Vec<Stored>> = boards.iter().map(value).collect();
            found.ok_or_else(|| {
                is_missing.store(true, Ordering::Relaxed);
                QueryError::GivenUp
            })
        };
        match self.by_kernels(kernels, (asked, landing_layer), question, &values) {
            // The landing belongs to another game.
            Err(ConeError::Stored(QueryError::GivenUp)) if is_missing.load(Ordering::Relaxed) => None,
            Err(ConeError::TooLarge(_)) => None,
            solved => Some(solved.map_err(of_cone)),
        }
    }

    /// Solves a cone by the kernels, and keeps its landing.
    fn by_kernels(
        &self,
        kernels: &dyn ConeKernels,
        (asked, cut): (&[(Layer, Board)], Layer),
        question: &QuestionLimits<'_>,
        stored: StoredValues<'_>,
    ) -> Result<(Solved, u64), ConeError<QueryError>> {
        let (cones, begun) = (self.cones, Instant::now());
        let keep_bytes = cones.files.as_ref().map_or(0, ConeFiles::most_bytes);
        let keep_bytes = keep_bytes.max(cones.memory.most_bytes()).min(MOST_KEPT_BYTES);
        let job = ConeJob { asked, cut, keep_bytes, landing_bytes: cones.landings.most_bytes() };
        let KernelCone { lower, landing, states } =
            kernels.solve(job, question.limits(question.cone_bytes), stored)?;
        cones.pace.note(states, begun.elapsed());
        if let Some(landing) = landing {
            cones.landings.keep(Arc::new(landing));
        }
        Ok((lower, states))
    }

    /// Checks that the kernels can solve a cone before the deadline of a question.
    fn check_deadline(
        &self,
        found: &TooLarge,
        cut: Layer,
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let Some(deadline) = question.deadline else { return Ok(()) };
        let counts = self.stored.catalog.holdings().counts();
        let of_layer = |layer| counts.get(&layer).map_or(0, |counts| counts.states);
        let states = states_of_cone(found, cut, of_layer);
        let (time, left) = (self.cones.pace.time(states), deadline.saturating_duration_since(Instant::now()));
        if time <= left { Ok(()) } else { Err(QueryError::TooSlow(ConeEstimate { states, time, left })) }
    }
}

fn of_cone(error: ConeError<QueryError>) -> QueryError {
    match error {
        ConeError::TooLarge(error) => QueryError::TooLarge(error),
        ConeError::GivenUp => QueryError::GivenUp,
        ConeError::Stored(error) => error,
    }
}
