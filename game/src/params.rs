//! Parameters that determine the results of a run, checked once.

use serde::{Deserialize, Serialize};

use crate::board::{BoardSize, MAX_EXPONENT};
use crate::discount::Discount;
use crate::fixed::Scale;
use crate::huge::{LEAST_HUGE, NO_HUGE};
use crate::kept::KeptLayers;
use crate::layer::Layer;
use crate::objective::{Objective, Spawn4, Spawner};
use crate::skeleton;
use crate::transitions::ROW_BITS;

/// Number of bits of a stored value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Precision {
    /// 32 bits per value.
    Bits32,
    /// 64 bits per value.
    Bits64,
}

impl Precision {
    /// Number of bytes of a stored value.
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(u8::from(self)) / 8
    }
}

impl From<Precision> for u8 {
    fn from(precision: Precision) -> u8 {
        match precision {
            Precision::Bits32 => 32,
            Precision::Bits64 => 64,
        }
    }
}

impl TryFrom<u8> for Precision {
    type Error = String;

    fn try_from(bits: u8) -> Result<Self, String> {
        match bits {
            32 => Ok(Precision::Bits32),
            64 => Ok(Precision::Bits64),
            _ => Err(format!("precision {bits} is not known; expected 32 or 64")),
        }
    }
}

/// Parameters of a run. Two runs with the same parameters hold the same values, bit for bit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Size of the board.
    pub board: BoardSize,
    /// Objective that the player optimises.
    pub objective: Objective,
    /// Probability that a spawned tile is a 4.
    pub spawn4: Spawn4,
    /// Number of bits of a stored value.
    pub precision: Precision,
    /// Last layer of a run that only enumerates; `None` for a run that enumerates and solves the whole game.
    pub until_layer: Option<u32>,
    /// Smallest exponent of *large* tiles. The sequence holds their exponents instead of the skeleton.
    pub large: u8,
    /// Smallest exponent of *huge* tiles. Boards with different huge tiles are in different lanes.
    #[serde(default = "no_huge", skip_serializing_if = "is_no_huge")]
    pub huge: u8,
    /// Layers whose values are stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kept: KeptLayers,
    /// Factor by which each move reduces the value of a win.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discount: Discount,
    /// Rule that places the tiles.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spawner: Spawner,
    /// Whether the best move of every state of every layer is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub best_moves: bool,
}

/// Default for manifests. They omit the exponent if no tile is huge.
fn no_huge() -> u8 {
    NO_HUGE
}

fn is_no_huge(huge: &u8) -> bool {
    *huge == NO_HUGE
}

/// Whether a manifest omits a choice. Manifests omit defaults, so manifests that are older than a choice stay valid.
fn is_default<T: Default + PartialEq>(choice: &T) -> bool {
    *choice == T::default()
}

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
    /// Best moves of too many layers would be in one shard.
    #[error(
        "best moves of {layers} layers would be in one shard, because they are committed with the kept layers; expected two \
         kept layers in every {MOST_LAYERS_OF_BEST_MOVES} or fewer"
    )]
    BestMovesTooFarApart {
        /// Number of layers from one kept pair to the next.
        layers: u32,
    },
}

impl Params {
    /// Creates parameters. The split between small and large tiles is the fastest split in measurements of the board.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn new(
        board: BoardSize,
        objective: Objective,
        spawn4: Spawn4,
        precision: Precision,
        until_layer: Option<u32>,
    ) -> Result<Self, ParamsError> {
        let split_at = |large| Self::with_large(board, objective, spawn4, precision, until_layer, large);
        let params = split_at(4)?;
        match board.cells() {
            12.. if params.last_layer() <= FEW_SEQUENCES => split_at(3),
            12 if params.last_layer() > MANY_SEQUENCES => split_at(5)?.with_huge(HUGE_OF_MANY),
            _ => Ok(params),
        }
    }

    /// Returns the same run with a split that has more large tiles; `None` unless that split is faster with enough
    /// memory.
    ///
    /// The new split has about a tenth of the rows, and each row is longer. With so few rows, the run can keep their
    /// transitions.
    pub fn with_fewer_rows(&self) -> Option<Self> {
        let is_deep = self.board.cells() == 12 && self.last_layer() > MANY_SEQUENCES;
        (is_deep && self.large == 5).then(|| Self { large: 4, ..self.clone() })
    }

    /// Creates parameters with a given split between small and large tiles.
    ///
    /// The split changes speed and sizes, but no value and no count. If the objective has a winning tile, the split is
    /// at most that tile.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn with_large(
        board: BoardSize,
        objective: Objective,
        spawn4: Spawn4,
        precision: Precision,
        until_layer: Option<u32>,
        large: u8,
    ) -> Result<Self, ParamsError> {
        let kept = KeptLayers::default();
        let huge = NO_HUGE;
        let best_moves = false;
        let (discount, spawner) = (Discount::NONE, Spawner::Random);
        let mut params = Self {
            board,
            objective,
            spawn4,
            precision,
            until_layer,
            large,
            huge,
            kept,
            discount,
            spawner,
            best_moves,
        };
        if let Some(exponent) = objective.winning_exponent() {
            // If the winning tile is the smallest large tile, no board that the run counts has a large tile.
            params.large = large.min(exponent);
        }
        params.check()?;
        Ok(params)
    }

    /// Returns the same run with lanes divided by their huge tiles: tiles of at least `2^huge`.
    ///
    /// The division changes speed and sizes, but no value and no count.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn with_huge(self, huge: u8) -> Result<Self, ParamsError> {
        let params = Self { huge, ..self };
        params.check()?;
        Ok(params)
    }

    /// Returns the same run with other stored layers. Stored layers change no count and no value.
    pub fn with_kept(self, kept: KeptLayers) -> Self {
        Self { kept, ..self }
    }

    /// Returns the same game with a discount. A discount rewards wins in few moves.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn with_discount(self, discount: Discount) -> Result<Self, ParamsError> {
        let params = Self { discount, ..self };
        params.check()?;
        Ok(params)
    }

    /// Returns the same game with another rule that places the tiles.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn with_spawner(self, spawner: Spawner) -> Result<Self, ParamsError> {
        let params = Self { spawner, ..self };
        params.check()?;
        Ok(params)
    }

    /// Returns the same run with or without stored best moves. They change no count and no value.
    pub fn with_best_moves(self, best_moves: bool) -> Self {
        Self { best_moves, ..self }
    }

    /// Returns the same run with other stored layers and with or without best moves. `None` chooses the default layers.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn with_stored(self, kept: Option<KeptLayers>, best_moves: bool) -> Result<Self, ParamsError> {
        let usual = if best_moves { KeptLayers::KEPT_WITH_BEST_MOVES } else { KeptLayers::default() };
        let params = self.with_kept(kept.unwrap_or(usual)).with_best_moves(best_moves);
        params.check()?;
        Ok(params)
    }

    /// Whether the reachability of a layer's states stays stored. True if their values or best moves are stored, or if
    /// the run only enumerates.
    pub fn stores_reachability(&self, layer: Layer) -> bool {
        self.until_layer.is_some() || self.stores_on_the_way_down(layer)
    }

    /// Whether the solve stores values or best moves of a layer.
    pub fn stores_on_the_way_down(&self, layer: Layer) -> bool {
        self.best_moves || self.kept.keeps(layer)
    }

    /// Checks the parameters, which may come from a file.
    ///
    /// # Errors
    ///
    /// A [`ParamsError`] for the first rule that the parameters break.
    pub fn check(&self) -> Result<(), ParamsError> {
        let bound = self.tile_bound();
        let largest = 1u64 << bound;
        if self.winning_exponent().is_some_and(|exponent| exponent > bound) {
            return Err(ParamsError::OutOfReach { objective: self.objective, board: self.board, largest });
        }
        if let Some(layer) = self.until_layer {
            if layer < Layer::FIRST.0 {
                return Err(ParamsError::BelowFirstLayer(layer));
            }
            let last = Self { until_layer: None, ..self.clone() }.last_layer();
            if layer > last.0 {
                return Err(ParamsError::AboveLastLayer { layer, board: self.board, last: last.0 });
            }
            if Layer::of_sum(layer).is_none() {
                return Err(ParamsError::OddLayer(layer));
            }
        }
        if self.largest_exponent() > MAX_EXPONENT {
            return Err(ParamsError::TileTooLarge { board: self.board, largest });
        }
        if !(3..=6).contains(&self.large) {
            return Err(ParamsError::Large(self.large));
        }
        let rows = skeleton::max_rows(self.board, self.large);
        if rows > MOST_ROWS {
            return Err(ParamsError::TooManyRows { board: self.board, large: self.large, rows });
        }
        if !(LEAST_HUGE..=NO_HUGE).contains(&self.huge) {
            return Err(ParamsError::Huge(self.huge));
        }
        if self.discount != Discount::NONE && !matches!(self.objective, Objective::Reach { .. }) {
            return Err(ParamsError::Discount(self.objective));
        }
        if self.spawner == Spawner::Worst && matches!(self.objective, Objective::Lose { .. }) {
            return Err(ParamsError::CertainLoss(self.objective));
        }
        let layers = self.kept.period().min(self.last_layer().number());
        if self.best_moves && layers > MOST_LAYERS_OF_BEST_MOVES {
            return Err(ParamsError::BestMovesTooFarApart { layers });
        }
        Ok(())
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.board.cells()
    }

    /// Exponent of the largest tile that any game on the board can reach: cells + 1.
    pub fn tile_bound(&self) -> u8 {
        self.board.cells() as u8 + 1
    }

    /// Exponent of the largest tile that a board counted by the run can hold.
    pub fn largest_exponent(&self) -> u8 {
        let by_objective = self.winning_exponent().map_or(u8::MAX, |exponent| exponent - 1);
        let by_layer = self.until_layer.map_or(u8::MAX, |layer| layer.ilog2() as u8);
        self.tile_bound().min(by_objective).min(by_layer)
    }

    /// Exponent of the winning tile; `None` if the objective has none.
    pub fn winning_exponent(&self) -> Option<u8> {
        self.objective.winning_exponent()
    }

    /// Largest number of cells of a counted board that can hold a tile of at least `2^exponent`.
    ///
    /// The number is `cells` for a 2 or a 4, and `cells + 2 − exponent` for an 8 or a larger tile. The number is 0
    /// above [`largest_exponent`](Self::largest_exponent).
    pub fn most_cells_with(&self, exponent: u8) -> usize {
        if exponent > self.largest_exponent() {
            0
        } else if exponent < 3 {
            self.cells()
        } else {
            (self.cells() + 2).saturating_sub(exponent as usize)
        }
    }

    /// Largest tile sum that a counted board can have, by the tile bound.
    pub fn last_layer(&self) -> Layer {
        let sum: u64 = tile_bound_board(self).map(|e| 1u64 << e).sum();
        let sum = u32::try_from(sum).unwrap_or(u32::MAX);
        Layer(self.until_layer.map_or(sum, |layer| layer.min(sum)))
    }

    /// Number format of the values of the run.
    pub fn scale(&self) -> Scale {
        Scale::new(self)
    }
}

/// Exponents of the board with the largest tile sum within the tile bound.
pub(crate) fn tile_bound_board(params: &Params) -> impl Iterator<Item = u8> + '_ {
    (1..=params.cells()).map(|cell| {
        (2..=params.largest_exponent()).rev().find(|&e| params.most_cells_with(e) >= cell).unwrap_or(1)
    })
}

/// Highest last layer of runs that split boards of at least 12 cells at tile 8.
///
/// Such runs have few sequences of large tiles, so a small number of skeletons matters more. A run with a higher last
/// layer would have too many sequences.
const FEW_SEQUENCES: Layer = Layer(1024);

/// Runs with a higher last layer than this split boards of 12 cells at tile 32.
///
/// Nearly all states of such runs have many large tiles. With a lower split, maps between sequences would cost more than
/// the rows (`docs/dev/performance.md`).
const MANY_SEQUENCES: Layer = Layer(8192);

/// Smallest exponent of huge tiles on these boards: tiles of at least 512 are huge.
///
/// This exponent halves the number of states of the largest block of a layer. A lower exponent would give more lanes
/// without a smaller largest block (`docs/dev/performance.md`).
const HUGE_OF_MANY: u8 = 9;

/// Largest number of rows of a class, because edges have 30 bits for a row.
const MOST_ROWS: u64 = (1 << ROW_BITS) - 1;

/// Largest number of layers from one kept pair to the next in runs that store best moves.
///
/// One commit and one shard hold all these layers. A layer of 4x3 has about nine thousand items, and a shard lists at
/// most 44 million (`docs/dev/format.md`).
const MOST_LAYERS_OF_BEST_MOVES: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn params(board: &str, objective: &str, until: Option<u32>) -> Result<Params, ParamsError> {
        Params::new(
            board.parse().unwrap(),
            objective.parse().unwrap(),
            Spawn4::default(),
            Precision::Bits32,
            until,
        )
    }

    #[test]
    fn last_layers_are_the_published_ones() {
        for (board, last) in [("2x2", 60), ("3x2", 252), ("4x2", 1020), ("3x3", 2044), ("4x3", 16380)] {
            assert_eq!(params(board, "score", None).unwrap().last_layer(), Layer(last), "{board}");
        }
    }

    /// Every packable board has a split whose rows can be numbered, and the default split is such a split.
    #[test]
    fn splits_with_too_many_rows_are_refused() {
        let split = |board: &str, large| {
            let (board, objective) = (board.parse().unwrap(), "reach:32".parse().unwrap());
            Params::with_large(board, objective, Spawn4::default(), Precision::Bits32, None, large)
        };
        for (board, large) in [("4x4", 5), ("2x8", 5), ("3x5", 6)] {
            let refused = split(board, large).unwrap_err();
            assert!(
                matches!(refused, ParamsError::TooManyRows { rows, .. } if rows > MOST_ROWS),
                "{refused}"
            );
        }
        for board in ["4x4", "2x8", "3x5", "7x2"] {
            assert_eq!(params(board, "reach:2048", None).unwrap().large, 4, "{board}");
        }
    }

    /// A shard of best moves holds the layers from one kept pair to the next.
    #[test]
    fn best_moves_of_large_boards_need_kept_layers() {
        let stored = |board: &str, until, kept: &str, best_moves| {
            params(board, "score", until).unwrap().with_stored(Some(kept.parse().unwrap()), best_moves)
        };
        let refused = Err(ParamsError::BestMovesTooFarApart { layers: 8188 });
        assert_eq!(stored("4x3", None, "starts", true), refused);
        assert_eq!(
            stored("4x3", None, "4097", true),
            Err(ParamsError::BestMovesTooFarApart { layers: 4097 })
        );
        for (board, until, kept, best_moves) in [
            ("4x3", None, "4096", true),
            ("4x3", None, "starts", false),
            ("4x3", Some(8196), "starts", true),
            ("3x3", None, "starts", true),
        ] {
            assert!(stored(board, until, kept, best_moves).is_ok(), "{board} {until:?} {kept}");
        }
    }

    /// Default policies with and without best moves.
    #[test]
    fn fewer_layers_are_kept_with_best_moves() {
        let kept = |best_moves| {
            params("3x3", "score", None).unwrap().with_stored(None, best_moves).unwrap().kept.to_string()
        };
        assert_eq!((kept(false).as_str(), kept(true).as_str()), ("4", "128"));
    }

    /// Manifests of runs with two layers in every four equal manifests from before the policy existed.
    #[test]
    fn kept_layers_are_written_unless_they_are_the_default() {
        let usual = params("3x3", "score", None).unwrap();
        let text = serde_json::to_string(&usual).unwrap();
        assert_eq!(
            text,
            r#"{"board":"3x3","objective":"score","spawn4":"1/10","precision":32,"until_layer":null,"large":4}"#
        );
        let others = usual.clone().with_kept(KeptLayers::new(16, 2).unwrap());
        let with = |kept: &str| text.replace("\"large\":4", &format!("\"large\":4,\"kept\":{kept}"));
        assert_eq!(serde_json::to_string(&others).unwrap(), with(r#"{"period":16,"width":2}"#));
        let best_moves = usual.clone().with_best_moves(true);
        assert_eq!(
            serde_json::to_string(&best_moves).unwrap(),
            text.replace("\"large\":4", "\"large\":4,\"best_moves\":true")
        );
        for params in [usual, others, best_moves] {
            let text = serde_json::to_string(&params).unwrap();
            assert_eq!(serde_json::from_str::<Params>(&text).unwrap(), params);
        }
        for wrong in [r#"{"period":4,"width":1}"#, r#"{"period":4}"#, r#"{"period":4,"width":2,"from":1}"#] {
            assert!(serde_json::from_str::<Params>(&with(wrong)).is_err(), "{wrong}");
        }
    }

    /// Manifests of runs without discount and adversary equal manifests from before these options existed.
    #[test]
    fn discounts_and_adversaries_are_written_unless_they_are_the_default() {
        let usual = params("3x3", "reach:64", None).unwrap();
        let text = serde_json::to_string(&usual).unwrap();
        assert!(!text.contains("discount") && !text.contains("spawner"), "{text}");
        let with = |more: &str| text.replace("\"large\":4", &format!("\"large\":4,{more}"));
        let discounted = usual.clone().with_discount("0.95".parse().unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&discounted).unwrap(), with(r#""discount":"19/20""#));
        let worst = usual.with_spawner(Spawner::Worst).unwrap();
        assert_eq!(serde_json::to_string(&worst).unwrap(), with(r#""spawner":"worst""#));
        for params in [discounted, worst] {
            let text = serde_json::to_string(&params).unwrap();
            assert_eq!(serde_json::from_str::<Params>(&text).unwrap(), params);
        }
        for wrong in [r#""discount":"0""#, r#""discount":0.95"#, r#""spawner":"best""#] {
            assert!(serde_json::from_str::<Params>(&with(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn discounts_and_adversaries_need_an_objective_that_supports_them() {
        let with = |objective: &str| params("3x3", objective, None).unwrap();
        let discount: Discount = "0.95".parse().unwrap();
        for objective in ["score", "lose:64"] {
            assert!(matches!(with(objective).with_discount(discount), Err(ParamsError::Discount(_))));
        }
        assert!(matches!(with("lose:64").with_spawner(Spawner::Worst), Err(ParamsError::CertainLoss(_))));
        assert!(with("score").with_spawner(Spawner::Worst).is_ok());
        assert!(with("reach:64").with_spawner(Spawner::Worst).unwrap().with_discount(discount).is_ok());
    }

    #[test]
    fn tiles_must_fit() {
        assert!(params("7x2", "score", None).is_ok());
        assert!(matches!(params("4x4", "score", None), Err(ParamsError::TileTooLarge { .. })));
        assert!(params("4x4", "reach:2048", None).is_ok());
        assert!(params("4x4", "score", Some(100)).is_ok());
        assert!(matches!(params("2x2", "reach:64", None), Err(ParamsError::OutOfReach { .. })));
        assert!(matches!(params("2x2", "score", Some(5)), Err(ParamsError::OddLayer(5))));
    }
}
