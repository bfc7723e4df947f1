//! Errors of parameters.

use crate::board::{BoardSize, MAX_EXPONENT_BESIDE_STONES};
use crate::huge::{LEAST_HUGE, NO_HUGE};
use crate::objective::Objective;
use crate::rowset::ROW_BITS;
use crate::sector::MOST_SECTORS;
use crate::value_step::ValueStep;

/// Largest number of rows of a class, because an edge of a transition has 30 bits for its target row.
pub(super) const MOST_ROWS: u64 = (1 << ROW_BITS) - 1;

/// Largest number of layers from one kept pair to the next in runs that store best moves.
///
/// One commit and one shard hold all these layers. A layer of 4x3 has about nine thousand items, and a shard lists at
/// most 44 million items (`docs/dev/format.md`).
pub(super) const MOST_LAYERS_OF_BEST_MOVES: u32 = 4096;

/// Error of parameters that are not valid for a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// A tile of the game would not fit in four bits.
    #[error(
        "a {board} board can reach the tile {largest}, expected at most 32,768; \
         give reach:TILE with a smaller tile, or end at a layer below 65,536"
    )]
    TileTooLarge {
        /// Size of the board.
        board: BoardSize,
        /// Largest tile that the game can reach.
        largest: u64,
    },
    /// A tile of a game with stones would have the exponent that stands for a stone.
    #[error(
        "a game on {board} can reach the tile {largest}, expected at most {most} on a board with stones; \
         give reach:TILE with a smaller tile, or end at a layer below {above}",
        most = 1u64 << MAX_EXPONENT_BESIDE_STONES,
        above = 2u64 << MAX_EXPONENT_BESIDE_STONES
    )]
    TileBesideStones {
        /// Size of the board.
        board: BoardSize,
        /// Largest tile that the game can reach.
        largest: u64,
    },
    /// The board has stones, and its lanes are divided into sectors.
    #[error("expected one sector on a board with stones, found {0}; omit the sectors")]
    SectorsBesideStones(u8),
    /// The board has loose stones, and huge tiles divide its lanes.
    #[error(
        "expected no huge tiles on a board with loose stones, found them from exponent {0}; omit the huge tiles"
    )]
    HugeBesideLooseStones(u8),
    /// The board has loose stones, and the objective is the score.
    #[error(
        "expected reach:TILE or lose:TILE on the board {0} with loose stones, found score; give a tile to reach"
    )]
    ScoreWithLooseStones(BoardSize),
    /// The winning tile cannot be reached.
    #[error("{objective} is out of reach: the largest tile of a {board} board is {largest}")]
    OutOfReach {
        /// Requested objective.
        objective: Objective,
        /// Size of the board.
        board: BoardSize,
        /// Largest tile that the game can reach.
        largest: u64,
    },
    /// The last layer to enumerate is below the first layer.
    #[error("layer {0} is below the first layer: a game starts with a tile sum of at least 4")]
    BelowFirstLayer(u32),
    /// The last layer to enumerate is below the position from which the run begins.
    #[error(
        "layer {layer} is below layer {first}, in which the given position is: expected at least {first}"
    )]
    BelowPosition {
        /// Requested layer.
        layer: u32,
        /// Layer of the position.
        first: u32,
    },
    /// A run cannot begin at a position.
    #[error("a run cannot begin at {board}: {reason}")]
    Position {
        /// Text of the position, as it was given or in canonical form.
        board: String,
        /// The expected position, the one found, and the remedy.
        reason: String,
    },
    /// The last layer to enumerate is odd.
    #[error("{0} is not a layer: tile sums are even, as {below} and {above} are",
        below = .0 - 1, above = .0.saturating_add(1))]
    OddLayer(u32),
    /// The last layer to enumerate is above the last layer of the board.
    #[error("layer {layer} is above the last layer of {board}: expected at most {last}")]
    AboveLastLayer {
        /// Requested layer.
        layer: u32,
        /// Size of the board.
        board: BoardSize,
        /// Last layer that can have a state, by the tile bound.
        last: u32,
    },
    /// The split between small and large tiles is out of range.
    #[error("large tiles cannot start at exponent {0}: expected 3 to 6")]
    Large(u8),
    /// The numbers of the skeletons of a class would not fit in 30 bits.
    #[error(
        "large tiles of a {board} board cannot start at exponent {large}: a class could have {rows} skeletons, expected at \
         most {MOST_ROWS}; choose a lower exponent"
    )]
    TooManyRows {
        /// Size of the board.
        board: BoardSize,
        /// Exponent from which tiles are large.
        large: u8,
        /// Upper bound on the skeletons of one class.
        rows: u64,
    },
    /// The objective has no win to discount.
    #[error(
        "a discount γ applies only to wins, and {0} has none: expected reach:TILE, where the value of a win after n moves \
         is γ^n"
    )]
    Discount(Objective),
    /// The objective is the probability of losing, but an adversary makes a loss certain or impossible.
    #[error(
        "{0} is certain or impossible against the worst spawns: expected reach:TILE, whose value is 1 if the tile can be \
         forced and 0 otherwise"
    )]
    CertainLoss(Objective),
    /// The exponent from which tiles are huge is out of range.
    #[error("huge tiles cannot start at exponent {0}: expected {LEAST_HUGE} to {NO_HUGE}")]
    Huge(u8),
    /// The number of sectors is out of range.
    #[error("expected between 1 and {MOST_SECTORS} sectors of a lane, found {0}")]
    Sectors(u8),
    /// Best moves of too many layers would be in one shard.
    #[error(
        "best moves of {layers} layers would be in one shard, because they are committed with the kept layers; expected two \
         kept layers in every {MOST_LAYERS_OF_BEST_MOVES} or fewer"
    )]
    BestMovesTooFarApart {
        /// Number of layers from one kept pair to the next.
        layers: u32,
    },
    /// The run stores no value that could be rounded.
    #[error("expected no value step for a run that only enumerates and stores no values, found {0}; omit it")]
    StepWithoutValues(ValueStep),
    /// Rounding to the step would change no value.
    #[error(
        "expected a value step of at least {least}, because values have no digits below {unit}, found {step}; choose a \
         larger step, or none", unit = .least.half()
    )]
    StepTooSmall {
        /// Requested step, rounded down.
        step: ValueStep,
        /// Smallest step of the game.
        least: ValueStep,
    },
    /// The step is too large for the values.
    #[error(
        "expected a value step of at most {most} with the objective {objective}, found {step}; choose a smaller step"
    )]
    StepTooLarge {
        /// Requested step, rounded down.
        step: ValueStep,
        /// Largest step of the game.
        most: ValueStep,
        /// Objective of the game.
        objective: Objective,
    },
}
