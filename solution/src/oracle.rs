//! The value of a state: looked up if the run stores the values of its layer, else computed.
//!
//! The oracle backs up any other state from the kept layers above it, exactly as the solver did. The states that it
//! needs for that are the *cone* (see the crate `exact2048-cone`). So every answer is the solver's own value, bit for
//! bit.

use std::path::PathBuf;

use exact2048_cone::Solver;
use exact2048_game::backup::Backup;
use exact2048_game::board::Board;
use exact2048_game::fixed::Scale;
use exact2048_game::packed::PackedRules;
use exact2048_game::rules::{self, Move};
use exact2048_game::value::Stored;
use exact2048_game::{Layer, Params, SpawnKind};
use exact2048_storage::ItemKey;

use crate::commit::LayerCounts;
use crate::read_error::ReadError;
use crate::run::Run;

mod best;
mod cone_files;
mod cones;
mod decoded;
mod error;
mod estimate;
mod evaluate;
mod kernels;
mod ladder;
mod layer_solver;
mod layers;
mod question;
mod solved_cones;
mod some_states;
mod sorting;
mod starts;
mod stored;

pub use best::Advice;
use best::BestMoves;
use cone_files::ConeFiles;
use cones::Cones;
pub use decoded::CacheUse;
pub use error::QueryError;
pub use estimate::ConeEstimate;
use estimate::ConePace;
pub use kernels::{ConeJob, ConeKernels, KernelCone, KernelsOfRun, RunKernels, StoredValues};
pub use layer_solver::{LayerItems, LayerSolver, LayerStep, WantedStep};
pub use layers::{LayerStates, StateReader};
pub use question::{CostSum, QuestionLimits, Wanted};
use solved_cones::SolvedCones;
pub use starts::StartValues;
use stored::{Entry, StoredStates};

/// Default limit on bytes of decoded parts that an oracle keeps.
const CACHE_BYTES: u64 = 256 << 20;

/// Default limit on bytes of a cone.
const CONE_BYTES: u64 = 1 << 30;

/// Default limit on bytes of solved cones that an oracle keeps in memory.
const SOLVED_BYTES: u64 = 256 << 20;

/// Most boards of a batch that are processed together. The number is large enough that their common parts are read and
/// solved once, and small enough that their successors take some tens of MiB.
const TOGETHER: usize = 1 << 16;

/// Like [`TOGETHER`], for questions that also ask about moves. Each such board leads to some tens of states.
const EVALUATED_TOGETHER: usize = 1 << 10;

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The board as asked for.
    pub board: Board,
    /// The canonical image of the board.
    pub canonical: Board,
    /// The layer of the board.
    pub layer: Layer,
    /// Whether the run stores that games reach the board. If false, the run no longer stores which boards of the layer
    /// games reach. The board may then be unreachable, and the value is that of play from this board on.
    pub is_known_reachable: bool,
    /// Expected score still to come, or the probability of reaching the tile, or of never reaching it.
    pub value: f64,
    /// Bound on the absolute error of `value`; 0 if `value` is exact.
    pub error_bound: f64,
    /// The first of the best moves; `None` if no move is legal.
    pub best: Option<Move>,
    /// All four moves, in the order of [`Move::ALL`].
    pub moves: Vec<MoveValue>,
}

/// One move of an [`Evaluation`].
#[derive(Debug, Clone, PartialEq)]
pub struct MoveValue {
    /// The move.
    pub direction: Move,
    /// The result of the move; `None` if the move changes nothing.
    pub outcome: Option<MoveOutcome>,
}

/// The result of a legal move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveOutcome {
    /// The board after the move and before the spawn.
    pub after: Board,
    /// The score that the move makes.
    pub score: u32,
    /// The value of making the move, its score included.
    pub value: f64,
    /// Bound on the absolute error of `value`.
    pub error_bound: f64,
    /// The board after the worst spawn, if an adversary spawns the tiles. Of equally bad spawns, it is the first by
    /// cell, with a 2 before a 4. `None` if tiles spawn by chance, or if the move wins.
    pub worst_spawn: Option<Board>,
    /// Whether no other move has a larger value, by the bits that are stored. Several moves may be best.
    pub is_best: bool,
    /// Whether the error bounds do not prove that another move is better; `None` unless stored values are rounded.
    ///
    /// Two moves that lead to images of one afterstate are equally good, so both may be best.
    pub may_be_best: Option<bool>,
}

/// Limits on the memory of an oracle, and on data that it keeps for later questions in memory and on disk.
#[derive(Clone, Debug)]
pub struct OracleOptions {
    /// Bytes of decoded parts of the run that are kept in memory.
    pub cache_bytes: u64,
    /// Bytes of memory that the cone of a state may take while it is solved, unless a question has its own limit.
    pub cone_bytes: u64,
    /// Bytes of solved cones that are kept in memory.
    pub solved_bytes: u64,
    /// Folder of solved cones on disk, and the most bytes of all cones in it. Processes and runs may share a folder.
    pub cone_files: Option<(PathBuf, u64)>,
    /// The kernels, if the program links them. They are made on first use.
    pub kernels: Option<KernelsOfRun>,
}

impl Default for OracleOptions {
    /// 256 MiB of parts, 1 GiB for a cone, 256 MiB of solved cones, nothing on disk, and no kernels.
    fn default() -> Self {
        let (cache_bytes, cone_bytes, solved_bytes) = (CACHE_BYTES, CONE_BYTES, SOLVED_BYTES);
        Self { cache_bytes, cone_bytes, solved_bytes, cone_files: None, kernels: None }
    }
}

/// Answers queries on a solved run. Any number of threads may ask at once.
///
/// Memory: the limits in the [options](OracleOptions), some tens of MiB of frames, and a cone for each question that is
/// being answered.
pub struct Oracle {
    stored: StoredStates,
    cones: Cones,
    /// `None` unless the run stores best moves.
    best: Option<BestMoves>,
    /// `None` if the program has no kernels.
    layers: Option<Box<dyn LayerSolver>>,
    scale: Scale,
    backup: Backup,
}

impl Oracle {
    /// An oracle for a run, with the default options.
    ///
    /// # Errors
    ///
    /// [`QueryError::MissingValues`] if the run is not solved.
    pub fn new(run: &Run) -> Result<Self, QueryError> {
        Self::with_options(run, OracleOptions::default())
    }

    /// An oracle for a run.
    ///
    /// # Errors
    ///
    /// [`QueryError::MissingValues`] if the run is not solved.
    pub fn with_options(run: &Run, options: OracleOptions) -> Result<Self, QueryError> {
        if let Some(reason) = run.why_not_solved() {
            return Err(reason.into());
        }
        let OracleOptions { cache_bytes, cone_bytes, solved_bytes, cone_files, kernels } = options;
        let stored = StoredStates::new(run, cache_bytes);
        let (game, contents) = (stored.params.game(), stored.params.contents());
        let mut key = [0; 48];
        key[..32].copy_from_slice(run.dir().run_id().to_string().as_bytes());
        key[32..].copy_from_slice(&run.fingerprint().unwrap_or_default().to_le_bytes());
        let width = game.precision().bytes() as usize;
        let open = |(folder, most_bytes)| ConeFiles::open(folder, most_bytes, key, width);
        let (kernels, layers) = kernels
            .map(|kernels| kernels.of(run))
            .map_or((None, None), |RunKernels { cones, layers }| (Some(cones), Some(layers)));
        Ok(Self {
            cones: Cones {
                solver: Solver::new(game, contents.kept()),
                kernels,
                pace: ConePace::default(),
                most_bytes: cone_bytes,
                memory: SolvedCones::new(solved_bytes / 2),
                landings: SolvedCones::new(solved_bytes / 2),
                files: cone_files.map(open),
            },
            best: contents.stores_best_moves().then(|| BestMoves::new(&stored.params)),
            layers,
            scale: stored.params.stored_scale(),
            backup: Backup::new(game),
            stored,
        })
    }

    /// The parameters of the run.
    pub fn params(&self) -> &Params {
        &self.stored.params
    }

    /// The counts of the layers that have states, ascending.
    pub fn layer_counts(&self) -> Vec<LayerCounts> {
        self.stored.catalog.layer_counts()
    }

    /// Bytes of solved cones in memory.
    pub fn solved_bytes(&self) -> u64 {
        self.cones.memory.bytes() + self.cones.landings.bytes()
    }

    /// Statistics of the cache of decoded parts.
    pub fn cache_use(&self) -> CacheUse {
        self.stored.parts.usage()
    }

    /// The value of a state and of each of its moves. The board must be one that the run reaches.
    ///
    /// # Errors
    ///
    /// [`QueryError::Unreachable`], [`QueryError::Read`] if a shard cannot be read, [`QueryError::TooLarge`],
    /// [`QueryError::GivenUp`].
    pub fn evaluate(&self, board: Board, wanted: Wanted<'_>) -> Result<Evaluation, QueryError> {
        self.evaluate_all(&[board], wanted)?.swap_remove(0)
    }

    /// The values of many states and of each of their moves, in their order; [`QueryError::Unreachable`] for each board
    /// that the run does not reach. Reads common parts once, and solves common cones once.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read, [`QueryError::TooLarge`], [`QueryError::GivenUp`].
    pub fn evaluate_all(
        &self,
        boards: &[Board],
        wanted: Wanted<'_>,
    ) -> Result<Vec<Result<Evaluation, QueryError>>, QueryError> {
        self.evaluate_as(boards, &QuestionLimits::new(wanted, self.cones.most_bytes, &CostSum::default()))
    }

    /// Like [`evaluate_all`](Self::evaluate_all), with the limits of `question`.
    ///
    /// # Errors
    ///
    /// As for [`evaluate_all`](Self::evaluate_all).
    pub fn evaluate_as(
        &self,
        boards: &[Board],
        question: &QuestionLimits<'_>,
    ) -> Result<Vec<Result<Evaluation, QueryError>>, QueryError> {
        let mut answers: Vec<_> = boards.iter().map(|&board| Err(self.stored.refusal(board))).collect();
        for entries in self.stored.entries(boards).chunks(EVALUATED_TOGETHER) {
            self.ask(entries, &mut |some| self.evaluate_some(boards, some, question, &mut answers))?;
        }
        Ok(answers)
    }

    /// Asks about some entries together. If the run does not store the reach of their layer, one of them may lead to
    /// states that the run does not reach. Then asks about each half, and omits a single entry of this kind.
    fn ask(
        &self,
        entries: &[(Entry, usize)],
        ask: &mut impl FnMut(&[(Entry, usize)]) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let asked = ask(entries);
        if !matches!(asked, Err(QueryError::Read(ReadError::StateMissing(_)))) {
            return asked;
        }
        match entries {
            [(entry, _)] if self.stored.has_reach(entry.layer()) => asked,
            [_] => Ok(()),
            _ => {
                let (first, rest) = entries.split_at(entries.len() / 2);
                self.ask(first, ask)?;
                self.ask(rest, ask)
            }
        }
    }

    /// The canonical states that a spawn of this kind can produce from an afterstate.
    fn spawned(&self, after: Board, spawn: SpawnKind) -> impl Iterator<Item = Board> + '_ {
        let cells = rules::empty_cells(after, self.params().game().board());
        cells.map(move |cell| self.rules().canonical(after.with(cell, spawn.exponent())))
    }

    /// The values of many states, in their order; `None` if the run does not reach the board.
    ///
    /// Boards are processed part by part, so a board of a large batch costs less than a single board. The order of the
    /// boards does not matter.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read, [`QueryError::TooLarge`], [`QueryError::GivenUp`].
    pub fn values(&self, boards: &[Board], wanted: Wanted<'_>) -> Result<Vec<Option<f64>>, QueryError> {
        self.values_as(boards, &QuestionLimits::new(wanted, self.cones.most_bytes, &CostSum::default()))
    }

    /// Like [`values`](Self::values), with the limits of `question`.
    ///
    /// # Errors
    ///
    /// As for [`values`](Self::values).
    pub fn values_as(
        &self,
        boards: &[Board],
        question: &QuestionLimits<'_>,
    ) -> Result<Vec<Option<f64>>, QueryError> {
        let mut values = vec![None; boards.len()];
        for (some, values) in boards.chunks(TOGETHER).zip(values.chunks_mut(TOGETHER)) {
            let stored = self.stored_values(some, question)?;
            for ((value, &board), stored) in values.iter_mut().zip(some).zip(stored) {
                *value = stored.map(|stored| self.seen_from(board, stored));
            }
        }
        Ok(values)
    }

    /// The values of boards in the form in which runs store them; `None` for a board that the run does not reach.
    fn stored_values(
        &self,
        boards: &[Board],
        question: &QuestionLimits<'_>,
    ) -> Result<Vec<Option<Stored>>, QueryError> {
        let mut values = vec![None; boards.len()];
        let entries = self.stored.entries(boards);
        self.ask(&entries, &mut |some| self.value_some(boards, some, question, &mut values))?;
        Ok(values)
    }

    /// Fills in the values of some entries.
    fn value_some(
        &self,
        boards: &[Board],
        entries: &[(Entry, usize)],
        question: &QuestionLimits<'_>,
        values: &mut [Option<Stored>],
    ) -> Result<(), QueryError> {
        let (mut states, mut open) = (Vec::new(), Vec::new());
        for of_part in entries.chunk_by(|(a, _), (b, _)| a.key == b.key) {
            question.check()?;
            let part = self.stored.part(&of_part[0].0)?;
            if part.is_none() && self.stored.has_reach(of_part[0].0.layer()) {
                continue;
            }
            for (entry, i) in of_part {
                if let Some(part) = &part {
                    let Some(rank) = part.rank(entry.number) else { continue };
                    values[*i] = part.value(rank)?;
                }
                if values[*i].is_none() {
                    let state = self.rules().canonical(boards[*i]);
                    states.push((self.stored.layer(state), state));
                    open.push((*i, state));
                }
            }
        }
        let known = self.cones.settle(&self.stored, states, question)?;
        for (i, state) in open {
            values[i] = known.get(&state).copied();
        }
        Ok(())
    }

    /// The value of a state in the form in which runs store it. Any image of the board may be given.
    ///
    /// # Errors
    ///
    /// [`QueryError::Unreachable`], [`QueryError::Read`] if a shard cannot be read, [`QueryError::TooLarge`].
    pub fn stored_value(&self, board: Board) -> Result<Stored, QueryError> {
        let spent = CostSum::default();
        let values =
            self.stored_values(&[board], &QuestionLimits::new(&|| true, self.cones.most_bytes, &spent))?;
        values[0].ok_or_else(|| self.stored.refusal(board))
    }

    /// A best move of a state, from a run that stores best moves. The call computes no value.
    ///
    /// # Errors
    ///
    /// As for [`advise_all`](Self::advise_all).
    pub fn advise(&self, board: Board) -> Result<Advice, QueryError> {
        self.advise_all(&[board], &|| true)?.swap_remove(0)
    }

    /// Best moves of many states, in their order; [`QueryError::Unreachable`] for each board that the run does not
    /// reach. Reads each part of the run once.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoBestMoves`], [`QueryError::Read`] if a shard cannot be read, [`QueryError::GivenUp`].
    pub fn advise_all(
        &self,
        boards: &[Board],
        wanted: Wanted<'_>,
    ) -> Result<Vec<Result<Advice, QueryError>>, QueryError> {
        let best = self.best.as_ref().ok_or(QueryError::NoBestMoves)?;
        best.advise_all(&self.stored, self.rules(), boards, wanted)
    }

    /// The parts of a layer that have states, in their order; none if the run has no such layer.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read, [`QueryError::ReachRemoved`].
    pub fn parts_of(&self, layer: Layer) -> Result<Vec<ItemKey>, QueryError> {
        self.stored.parts_of(layer)
    }

    /// The states of a part as canonical boards, each once, in no particular order. Cost: reading the part, listing the
    /// columns of its lane, and about a microsecond per state.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] if a shard cannot be read.
    pub fn states_of(&self, part: ItemKey) -> Result<Vec<Board>, QueryError> {
        self.stored.states_of(self.rules(), part)
    }

    /// Whether no item of the run is known to be unreadable.
    pub fn is_sound(&self) -> bool {
        self.stored.parts.unreadable().is_empty()
    }

    /// Opens the shards of unreadable items again, because they may have been repaired. Then reads these items again,
    /// up to the first that fails. Blocks on files.
    pub fn read_again(&self) {
        let unreadable = self.stored.parts.unreadable();
        unreadable.iter().for_each(|&(kind, key)| self.stored.catalog.reopen(kind, key));
        for (kind, key) in unreadable {
            if self.stored.parts.read_again(kind, key).is_err() {
                break;
            }
        }
    }

    /// Bytes that a cone may take, unless a question has its own limit.
    pub fn cone_bytes(&self) -> u64 {
        self.cones.most_bytes
    }

    /// The rules of the game, on packed boards.
    fn rules(&self) -> &PackedRules {
        self.cones.solver.packed()
    }

    /// Whether a board holds a tile that wins.
    pub(crate) fn is_won(&self, board: Board) -> bool {
        self.params().game().is_won(board)
    }

    /// The part of a stored value that stands for the score made so far.
    #[inline]
    pub(crate) fn past(&self, board: Board) -> Stored {
        self.scale.points(rules::potential(board))
    }

    /// The number that a stored value stands for, as seen from the state `board`: the part that is still to come.
    ///
    /// `stored` is the value of that state or of one of its afterstates. For an afterstate, the number includes the
    /// score of the move, because it is seen from the state before the move.
    #[inline]
    pub fn seen_from(&self, board: Board, stored: Stored) -> f64 {
        self.scale.number(stored.future_value(self.past(board)))
    }
}
