//! What a state is worth: looked up where its layer's values are kept, else by a short search.
//!
//! Values of two neighbouring layers in every four are stored. Any other state is backed up from them
//! exactly as the solver did, so that every answer is the solver's own value, bit for bit.

use std::sync::Arc;

use exact2048_coordinator::is_kept;
use exact2048_game::board::{Board, BoardError};
use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::rules::{self, Move};
use exact2048_game::{Lane, Layer, Objective, Params, Precision};
use exact2048_storage::ShardKind;
use exact2048_worker::{Archive, Backup, Parts, Value, WorkerError, for_each_bit};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

use crate::archive::ShardArchive;
use crate::run::Run;

/// Why a state has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The text is no board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The board is none that the run reaches.
    #[error("{board} is not reachable in this run{reason}")]
    Unreachable {
        /// The board.
        board: String,
        /// Why, where it is plain to see.
        reason: String,
    },
    /// The run is not solved yet.
    #[error("this run is not solved: {reason}")]
    NotSolved {
        /// What is missing.
        reason: String,
    },
    /// A shard could not be read.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The board as asked for.
    pub board: Board,
    /// Its canonical image.
    pub canonical: Board,
    /// Its layer.
    pub layer: Layer,
    /// Expected score still to come, or the probability of reaching the tile.
    pub value: f64,
    /// Bound on the absolute error of `value`.
    pub error_bound: f64,
    /// The best move, `None` where no move is legal.
    pub best: Option<Move>,
    /// All four moves, in the order of [`Move::ALL`].
    pub moves: Vec<MoveValue>,
}

/// One move of an [`Evaluation`].
#[derive(Debug, Clone, PartialEq)]
pub struct MoveValue {
    /// The move.
    pub direction: Move,
    /// The board afterwards, its score and the value of making the move (score included); `None`
    /// where the move changes nothing.
    pub outcome: Option<(Board, u32, f64)>,
}

/// Values of the starts.
#[derive(Debug, Clone, PartialEq)]
pub struct StartValues {
    /// Mean over all starts with their probabilities.
    pub expected: f64,
    /// Bound on the absolute error of any of these values.
    pub error_bound: f64,
    /// Mean over the two-tile starts of layers 4, 6 and 8, each ordered placement counted once.
    pub by_layer: Vec<(Layer, f64)>,
}

/// Answers queries on a solved run.
pub struct Oracle {
    params: Params,
    space: Space,
    backup: Backup,
    archive: Arc<ShardArchive>,
    columns: Mutex<FxHashMap<Lane, Arc<Columns>>>,
}

impl Oracle {
    /// An oracle for a run; an error where the run is not solved.
    pub fn new(run: &Run) -> Result<Self, QueryError> {
        if let Some(layer) = run.params().until_layer {
            let reason = format!(
                "it only enumerates, up to layer {layer}; solve without --until-layer in another directory"
            );
            return Err(QueryError::NotSolved { reason });
        }
        if let Some(next) = run.missing().first() {
            let reason = format!(
                "layers {} to {} are not done ({:?}); give the solve command that began it again",
                next.first, next.last, next.phase
            );
            return Err(QueryError::NotSolved { reason });
        }
        Ok(Self {
            params: run.params().clone(),
            space: Space::new(run.params()),
            backup: Backup::new(run.params()),
            archive: Arc::clone(run.archive()),
            columns: Mutex::default(),
        })
    }

    /// The parameters of the run.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The value of a state and of each of its moves. The board must be one that the run reaches.
    pub fn evaluate(&self, board: Board) -> Result<Evaluation, QueryError> {
        let size = self.params.board;
        let layer = Layer(board.tile_sum(size.cells()));
        self.require_reachable(board)?;
        let mut known = FxHashMap::default();
        let mut moves = Vec::new();
        for direction in Move::ALL {
            let outcome = match rules::make_move(board, direction, size) {
                None => None,
                Some((after, score)) => {
                    let bits = self.afterstate_bits(after, &mut known)?;
                    Some((after, score, self.decode(bits, board)))
                }
            };
            moves.push(MoveValue { direction, outcome });
        }
        let best = moves.iter().filter(|m| m.outcome.is_some()).fold(None, |best: Option<&MoveValue>, m| {
            let value = |m: &MoveValue| m.outcome.map_or(f64::NEG_INFINITY, |(_, _, value)| value);
            if best.is_none_or(|best| value(m) > value(best)) { Some(m) } else { best }
        });
        Ok(Evaluation {
            board,
            canonical: self.space.symmetries().canonical(board),
            layer,
            value: self.decode(self.state_bits(board, &mut known)?, board),
            error_bound: self.params.scale().error_bound(layer),
            best: best.map(|m| m.direction),
            moves,
        })
    }

    /// Values of the starts of the game: exact sums of the stored values, each divided once.
    pub fn starts(&self) -> Result<StartValues, QueryError> {
        let (cells, spawn4) = (self.params.cells(), self.params.spawn4);
        let scale = self.params.scale();
        let weight = |e: u8| u128::from(if e == 2 { spawn4.weight4() } else { spawn4.weight2() });
        let mut layers = [(0u128, 0u32); 3];
        let mut weighted = 0u128;
        let mut known = FxHashMap::default();
        for (board, exponents) in rules::starts(self.params.board) {
            let bits = u128::from(self.value_bits(self.state_bits(board, &mut known)?, board));
            weighted += bits * weight(exponents[0]) * weight(exponents[1]);
            let slot = &mut layers[(board.tile_sum(cells) / 2 - 2) as usize];
            *slot = (slot.0 + bits, slot.1 + 1);
        }
        let mean = |(i, (sum, count)): (usize, (u128, u32))| {
            (Layer(4 + 2 * i as u32), scale.decode_sum(sum, u128::from(count)))
        };
        let weights = u128::from(spawn4.denominator()).pow(2) * (cells * (cells - 1)) as u128;
        Ok(StartValues {
            expected: scale.decode_sum(weighted, weights),
            error_bound: scale.error_bound(Layer(4)),
            by_layer: layers.into_iter().enumerate().map(mean).collect(),
        })
    }

    /// The fixed-point value of a reachable state: `W = V + Φ`, or the probability.
    pub fn state_bits(&self, board: Board, known: &mut FxHashMap<Board, u64>) -> Result<u64, QueryError> {
        if self.is_won(board) {
            return Ok(self.one());
        }
        let canonical = self.space.symmetries().canonical(board);
        if let Some(&bits) = known.get(&canonical) {
            return Ok(bits);
        }
        let layer = Layer(canonical.tile_sum(self.params.cells()));
        let bits = if is_kept(layer) {
            self.stored_bits(canonical)?
        } else {
            let mut best = None;
            for direction in Move::ALL {
                if let Some((after, _)) = rules::make_move(canonical, direction, self.params.board) {
                    best = best.max(Some(self.afterstate_bits(after, known)?));
                }
            }
            best.unwrap_or_else(|| self.terminal(canonical))
        };
        known.insert(canonical, bits);
        Ok(bits)
    }

    /// The fixed-point value that is stored of a state whose layer's values are kept
    /// ([`is_kept`]), by any of its images.
    pub fn stored_bits(&self, board: Board) -> Result<u64, QueryError> {
        match self.params.precision {
            Precision::Bits32 => Ok(self.stored::<u32>(board)?.to_bits()),
            Precision::Bits64 => self.stored::<u64>(board),
        }
    }

    /// The fixed-point value of an afterstate: the rounded mean over its spawns.
    fn afterstate_bits(&self, after: Board, known: &mut FxHashMap<Board, u64>) -> Result<u64, QueryError> {
        if self.is_won(after) {
            return Ok(self.one());
        }
        let (mut twos, mut fours) = (Vec::new(), Vec::new());
        for cell in rules::empty_cells(after, self.params.board) {
            twos.push(self.state_bits(after.with(cell, 1), known)?);
            fours.push(self.state_bits(after.with(cell, 2), known)?);
        }
        Ok(match self.params.precision {
            Precision::Bits32 => self.backup.mean_of::<u32>(&twos, &fours),
            Precision::Bits64 => self.backup.mean_of::<u64>(&twos, &fours),
        })
    }

    fn require_reachable(&self, board: Board) -> Result<(), QueryError> {
        let unreachable = |reason: &str| QueryError::Unreachable {
            board: board.to_text(self.params.board),
            reason: reason.to_owned(),
        };
        if self.is_won(board) {
            return Err(unreachable(": it holds the wanted tile, and won boards are not expanded"));
        }
        let layer = board.tile_sum(self.params.cells());
        if layer < 4 {
            return Err(unreachable(": a game starts with two tiles"));
        }
        if layer > self.params.last_layer().0 {
            return Err(unreachable(": its tiles sum to more than any reachable board's"));
        }
        match self.reach_part(board)? {
            Some(place) if place.is_marked() => Ok(()),
            _ => Err(unreachable("")),
        }
    }

    /// The stored value of a state in a kept layer.
    fn stored<V: Value>(&self, board: Board) -> Result<V, QueryError> {
        let unreachable =
            || QueryError::Unreachable { board: board.to_text(self.params.board), reason: String::new() };
        let place = self.reach_part(board)?.filter(Place::is_marked).ok_or_else(unreachable)?;
        let item =
            self.archive.read(ShardKind::Values, place.key)?.ok_or(WorkerError::ItemMissing(place.key))?;
        let width = size_of::<V>();
        let bytes = item.get(place.rank() * width..).and_then(|rest| rest.get(..width));
        Ok(V::read_from(bytes.ok_or(WorkerError::ItemMissing(place.key))?))
    }

    /// Reads the part of the reachable entries that a board is in; `None` where it can be in none.
    fn reach_part(&self, board: Board) -> Result<Option<Place>, QueryError> {
        let Some((lane, layer, row, sequence)) = self.space.locate(board) else { return Ok(None) };
        let columns = self.columns(lane);
        let Some(column) = columns.column(sequence) else { return Ok(None) };
        let Some(class) = ClassId::of(layer, lane).and_then(|id| self.space.class(id)) else {
            return Ok(None);
        };
        let parts = Parts::new(class.rows(), columns.len());
        let part = parts.of_row(row as usize);
        let key = Parts::key(layer, lane, part);
        let Some(item) = self.archive.read(ShardKind::Reach, key)? else { return Ok(None) };
        let words = columns.len().div_ceil(64);
        let rows = parts.rows(part);
        let mut bits = vec![0u64; rows.len() * words];
        parts.decode_reach_part(key, &item, &mut bits).map_err(WorkerError::from)?;
        let row = row as usize - rows.start;
        Ok(Some(Place { key, bits, words, row, column: column as usize }))
    }

    fn columns(&self, lane: Lane) -> Arc<Columns> {
        let mut columns = self.columns.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(columns.entry(lane).or_insert_with(|| Arc::new(Columns::new(&self.params, lane))))
    }

    fn is_won(&self, board: Board) -> bool {
        let wins = self.params.winning_exponent();
        wins.is_some_and(|e| (0..self.params.cells()).any(|cell| board.get(cell) >= e))
    }

    fn one(&self) -> u64 {
        self.params.scale().encode(1)
    }

    fn terminal(&self, board: Board) -> u64 {
        match self.params.objective {
            Objective::Score => self.params.scale().encode(rules::potential(board, self.params.board)),
            Objective::Reach { .. } => 0,
        }
    }

    /// The value that fixed-point bits stand for, seen from `board`.
    fn decode(&self, bits: u64, board: Board) -> f64 {
        self.params.scale().decode(self.value_bits(bits, board))
    }

    /// What is still to come, in fixed point: the stored value without the potential of `board`.
    fn value_bits(&self, bits: u64, board: Board) -> u64 {
        let past = match self.params.objective {
            Objective::Score => self.params.scale().encode(rules::potential(board, self.params.board)),
            Objective::Reach { .. } => 0,
        };
        // W is at least Φ: no rounding takes a value below the score already made.
        bits.saturating_sub(past)
    }
}

/// A board's entry in its part of a block.
struct Place {
    key: exact2048_storage::ItemKey,
    bits: Vec<u64>,
    words: usize,
    row: usize,
    column: usize,
}

impl Place {
    fn row_bits(&self) -> &[u64] {
        &self.bits[self.row * self.words..][..self.words]
    }

    fn is_marked(&self) -> bool {
        self.row_bits()[self.column / 64] >> (self.column % 64) & 1 == 1
    }

    /// Marked entries of the part before this one.
    fn rank(&self) -> usize {
        let before: u32 = self.bits[..self.row * self.words].iter().map(|w| w.count_ones()).sum();
        let mut in_row = 0;
        for_each_bit(self.row_bits(), |column| in_row += usize::from(column < self.column));
        before as usize + in_row
    }
}
