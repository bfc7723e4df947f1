//! What a state is worth: looked up where its layer's values are kept, else by a short search.
//!
//! Values of two neighbouring layers in every four are stored. Any other state is backed up from them
//! exactly as the solver did, so that every answer is the solver's own value, bit for bit.

use std::sync::Arc;

use exact2048_game::board::{Board, BoardError};
use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::fixed::Scale;
use exact2048_game::rules::{self, Move};
use exact2048_game::{Lane, Layer, Objective, Params, Precision};
use exact2048_storage::ItemKey;
use exact2048_worker::{Archive, Backup, Parts, WorkerError};

use crate::parts::{Bytes, CacheUse, Part, PartCache, WeighedCache, weighed_cache};
use crate::run::Run;

/// Bytes of decoded parts that an oracle keeps unless told otherwise.
const CACHE_BYTES: u64 = 256 << 20;

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

/// Answers queries on a solved run. Any number of threads may ask at once.
///
/// Memory: the cache's bytes, some tens of MiB of frames, and the tables of the classes that were asked about.
pub struct Oracle {
    params: Params,
    scale: Scale,
    space: Space,
    backup: Backup,
    lines: [Vec<Vec<u8>>; 4],
    parts: PartCache,
    columns: WeighedCache<Lane, Arc<Columns>>,
}

impl Bytes for Arc<Columns> {
    fn bytes(&self) -> u64 {
        Columns::bytes(self) as u64
    }
}

impl Oracle {
    /// An oracle for a run, with a cache of 256 MiB.
    ///
    /// # Errors
    ///
    /// [`QueryError::NotSolved`] where the run is not solved.
    pub fn new(run: &Run) -> Result<Self, QueryError> {
        Self::with_cache(run, CACHE_BYTES)
    }

    /// An oracle for a run that keeps at most `cache_bytes` of decoded parts and columns.
    ///
    /// # Errors
    ///
    /// [`QueryError::NotSolved`] where the run is not solved.
    pub fn with_cache(run: &Run, cache_bytes: u64) -> Result<Self, QueryError> {
        if let Some(layer) = run.params().until_layer {
            let reason = format!(
                "it only enumerates, up to layer {layer}; solve without --until-layer in another directory"
            );
            return Err(QueryError::NotSolved { reason });
        }
        if let Some(next) = run.missing().first() {
            let reason = format!(
                "there is still to {} layers {} to {}; resume its job if a cluster works on it, else give the solve \
                 command that began it again",
                next.phase.name(),
                next.first,
                next.last
            );
            return Err(QueryError::NotSolved { reason });
        }
        let params = run.params().clone();
        let archive: Arc<dyn Archive> = Arc::clone(run.archive()) as Arc<dyn Archive>;
        Ok(Self {
            scale: params.scale(),
            space: Space::new(&params),
            backup: Backup::new(&params),
            lines: Move::ALL.map(|direction| direction.lines(params.board)),
            // Columns are few and small but on boards where blocks are large too.
            parts: PartCache::new(archive, params.precision, cache_bytes - cache_bytes / 4),
            columns: weighed_cache(cache_bytes / 4, 64 << 10),
            params,
        })
    }

    /// The parameters of the run.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// How the cache of decoded parts is used.
    pub fn cache_use(&self) -> CacheUse {
        self.parts.usage()
    }

    /// The value of a state and of each of its moves. The board must be one that the run reaches.
    ///
    /// # Errors
    ///
    /// [`QueryError::Unreachable`], or [`QueryError::Worker`] where a shard cannot be read.
    pub fn evaluate(&self, board: Board) -> Result<Evaluation, QueryError> {
        let size = self.params.board;
        let layer = Layer(board.tile_sum(size.cells()));
        self.require_reachable(board)?;
        let mut moves = Vec::new();
        for (direction, lines) in Move::ALL.into_iter().zip(&self.lines) {
            let outcome = match rules::slide(board, lines) {
                None => None,
                Some((after, score)) => {
                    Some((after, score, self.decode(self.afterstate_bits(after)?, board)))
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
            value: self.decode(self.state_bits(board)?, board),
            error_bound: self.scale.error_bound(layer),
            best: best.map(|m| m.direction),
            moves,
        })
    }

    /// The values of many states, in their order; `None` where the run does not reach the board.
    ///
    /// Boards are taken part by part, so that many boards at once cost less each than one by one.
    ///
    /// # Errors
    ///
    /// [`QueryError::Worker`] where a shard cannot be read.
    pub fn values(&self, boards: &[Board]) -> Result<Vec<Option<f64>>, QueryError> {
        let mut values = vec![None; boards.len()];
        let mut entries = Vec::with_capacity(boards.len());
        for (i, &board) in boards.iter().enumerate() {
            if self.why_out_of_range(board).is_none()
                && let Some(entry) = self.entry(board)?
            {
                entries.push((entry, i));
            }
        }
        entries.sort_unstable_by_key(|(entry, _)| (entry.key, entry.number));
        for same_part in entries.chunk_by(|(a, _), (b, _)| a.key == b.key) {
            let first = &same_part[0].0;
            let Some(part) = self.parts.get(first.key, first.parts, first.columns)? else { continue };
            for (entry, i) in same_part {
                if let Some(rank) = part.rank(entry.number) {
                    let bits = self.bits_in(&part, rank, boards[*i])?;
                    values[*i] = Some(self.decode(bits, boards[*i]));
                }
            }
        }
        Ok(values)
    }

    /// Values of the starts of the game: exact sums of the stored values, each divided once.
    ///
    /// # Errors
    ///
    /// [`QueryError::Worker`] where a shard cannot be read.
    pub fn starts(&self) -> Result<StartValues, QueryError> {
        let (cells, spawn4) = (self.params.cells(), self.params.spawn4);
        let weight = |e: u8| u128::from(if e == 2 { spawn4.weight4() } else { spawn4.weight2() });
        let mut layers = [(0u128, 0u32); 3];
        let mut weighted = 0u128;
        for (board, exponents) in rules::starts(self.params.board) {
            let bits = u128::from(self.value_bits(self.state_bits(board)?, board));
            weighted += bits * weight(exponents[0]) * weight(exponents[1]);
            let slot = &mut layers[(board.tile_sum(cells) / 2 - 2) as usize];
            *slot = (slot.0 + bits, slot.1 + 1);
        }
        let mean = |(i, (sum, count)): (usize, (u128, u32))| {
            (Layer(4 + 2 * i as u32), self.scale.decode_sum(sum, u128::from(count)))
        };
        let weights = u128::from(spawn4.denominator()).pow(2) * (cells * (cells - 1)) as u128;
        Ok(StartValues {
            expected: self.scale.decode_sum(weighted, weights),
            error_bound: self.scale.error_bound(Layer(4)),
            by_layer: layers.into_iter().enumerate().map(mean).collect(),
        })
    }

    /// The fixed-point value that is stored of a state whose layer's values are kept
    /// ([`is_kept`](exact2048_coordinator::is_kept)), by any of its images.
    ///
    /// # Errors
    ///
    /// [`QueryError::Unreachable`], or [`QueryError::Worker`] where a shard cannot be read.
    pub fn stored_bits(&self, board: Board) -> Result<u64, QueryError> {
        let (part, rank) = self.place(board)?.ok_or_else(|| self.unreachable(board, ""))?;
        self.bits_in(&part, rank, board)
    }

    /// The fixed-point value of a reachable state: `W = V + Φ`, or the probability.
    fn state_bits(&self, board: Board) -> Result<u64, QueryError> {
        if self.is_won(board) {
            return Ok(self.one());
        }
        let (part, rank) = self.place(board)?.ok_or_else(|| self.unreachable(board, ""))?;
        self.bits_in(&part, rank, board)
    }

    /// The fixed-point value of a state whose place is known: kept there, or backed up and kept from now on.
    fn bits_in(&self, part: &Part, rank: usize, board: Board) -> Result<u64, QueryError> {
        if let Some(bits) = part.value(rank)? {
            return Ok(bits);
        }
        let mut best = None;
        for lines in &self.lines {
            if let Some((after, _)) = rules::slide(board, lines) {
                best = best.max(Some(self.afterstate_bits(after)?));
            }
        }
        let bits = best.unwrap_or_else(|| self.terminal(board));
        part.keep(rank, bits);
        Ok(bits)
    }

    /// The fixed-point value of an afterstate: the rounded mean over its spawns.
    fn afterstate_bits(&self, after: Board) -> Result<u64, QueryError> {
        if self.is_won(after) {
            return Ok(self.one());
        }
        let (mut twos, mut fours, mut empty) = ([0; 16], [0; 16], 0);
        for cell in rules::empty_cells(after, self.params.board) {
            twos[empty] = self.state_bits(after.with(cell, 1))?;
            fours[empty] = self.state_bits(after.with(cell, 2))?;
            empty += 1;
        }
        let (twos, fours) = (&twos[..empty], &fours[..empty]);
        Ok(match self.params.precision {
            Precision::Bits32 => self.backup.mean_of::<u32>(twos, fours),
            Precision::Bits64 => self.backup.mean_of::<u64>(twos, fours),
        })
    }

    fn require_reachable(&self, board: Board) -> Result<(), QueryError> {
        if let Some(reason) = self.why_out_of_range(board) {
            return Err(self.unreachable(board, reason));
        }
        self.place(board)?.map(drop).ok_or_else(|| self.unreachable(board, ""))
    }

    /// Why a board cannot be reachable, where that is plain to see.
    fn why_out_of_range(&self, board: Board) -> Option<&'static str> {
        if self.is_won(board) {
            return Some(": it holds the wanted tile, and won boards are not expanded");
        }
        let layer = board.tile_sum(self.params.cells());
        if layer < 4 {
            return Some(": a game starts with two tiles");
        }
        (layer > self.params.last_layer().0).then_some(": its tiles sum to more than any reachable board's")
    }

    fn unreachable(&self, board: Board, reason: &str) -> QueryError {
        QueryError::Unreachable { board: board.to_text(self.params.board), reason: reason.to_owned() }
    }

    /// The decoded part that a reachable board is in, and its rank there; `None` where it is not reachable.
    fn place(&self, board: Board) -> Result<Option<(Arc<Part>, usize)>, QueryError> {
        let Some(entry) = self.entry(board)? else { return Ok(None) };
        let Some(part) = self.parts.get(entry.key, entry.parts, entry.columns)? else { return Ok(None) };
        Ok(part.rank(entry.number).map(|rank| (part, rank)))
    }

    /// Where a board's entry is, whether or not it is reachable; `None` where no block has an entry for it.
    fn entry(&self, board: Board) -> Result<Option<Entry>, QueryError> {
        let Some((lane, layer, row, sequence)) = self.space.locate(board) else { return Ok(None) };
        let columns = self.columns(lane)?;
        let Some(column) = columns.column(sequence) else { return Ok(None) };
        let Some(class) = ClassId::of(layer, lane).and_then(|id| self.space.class(id)) else {
            return Ok(None);
        };
        let parts = Parts::new(class.rows(), columns.len());
        let part = parts.of_row(row as usize);
        let row = row as usize - parts.rows(part).start;
        let number = row * columns.len() + column as usize;
        Ok(Some(Entry { key: Parts::key(layer, lane, part), parts, columns: columns.len(), number }))
    }

    fn columns(&self, lane: Lane) -> Result<Arc<Columns>, QueryError> {
        self.columns.get_or_insert_with(&lane, || Ok(Arc::new(Columns::new(&self.params, lane))))
    }

    fn is_won(&self, board: Board) -> bool {
        let wins = self.params.winning_exponent();
        wins.is_some_and(|e| (0..self.params.cells()).any(|cell| board.get(cell) >= e))
    }

    fn one(&self) -> u64 {
        self.scale.encode(1)
    }

    fn terminal(&self, board: Board) -> u64 {
        match self.params.objective {
            Objective::Score => self.scale.encode(rules::potential(board, self.params.board)),
            Objective::Reach { .. } => 0,
        }
    }

    /// The value that fixed-point bits stand for, seen from `board`.
    fn decode(&self, bits: u64, board: Board) -> f64 {
        self.scale.decode(self.value_bits(bits, board))
    }

    /// What is still to come, in fixed point: the stored value without the potential of `board`.
    fn value_bits(&self, bits: u64, board: Board) -> u64 {
        let past = match self.params.objective {
            Objective::Score => self.scale.encode(rules::potential(board, self.params.board)),
            Objective::Reach { .. } => 0,
        };
        // W is at least Φ: no rounding takes a value below the score already made.
        bits.saturating_sub(past)
    }
}

/// Where an entry of a block is.
struct Entry {
    key: ItemKey,
    parts: Parts,
    columns: usize,
    /// Row × columns + column, within the part.
    number: usize,
}
