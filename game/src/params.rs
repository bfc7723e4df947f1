//! The parameters that decide what a run computes, checked once.

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

/// Bits that a stored value takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Precision {
    /// 32 bits a value.
    Bits32,
    /// 64 bits a value.
    Bits64,
}

impl Precision {
    /// Bytes of a stored value.
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

/// What a run computes. Two runs with the same parameters hold the same values, bit for bit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Size of the board.
    pub board: BoardSize,
    /// What is maximised.
    pub objective: Objective,
    /// Probability that a spawned tile is a 4.
    pub spawn4: Spawn4,
    /// Bits a value.
    pub precision: Precision,
    /// Enumerate only, up to this layer; `None` enumerates and solves the whole game.
    pub until_layer: Option<u32>,
    /// Tiles of at least `2^large` are *large*: they are in the sequence, not in the skeleton.
    pub large: u8,
    /// Large tiles of at least `2^huge` are *huge*: boards with different ones are in different lanes.
    #[serde(default = "no_huge", skip_serializing_if = "is_no_huge")]
    pub huge: u8,
    /// Which layers' values are stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kept: KeptLayers,
    /// What a win is worth that takes one move more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discount: Discount,
    /// Who places the tiles.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spawner: Spawner,
    /// Whether the best move of every state is stored, of all layers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub best_moves: bool,
}

/// Manifests say nothing of huge tiles where there are none.
fn no_huge() -> u8 {
    NO_HUGE
}

fn is_no_huge(huge: &u8) -> bool {
    *huge == NO_HUGE
}

/// Manifests leave a choice out where it is the default, which is what all runs were before there was a choice.
fn is_default<T: Default + PartialEq>(choice: &T) -> bool {
    *choice == T::default()
}

/// Why parameters make no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// A tile of the game would not fit four bits.
    #[error(
        "a {board} board can reach the tile {largest}, and boards are packed for tiles up to 32,768: \
         give the objective reach:TILE with a tile of at most 32,768, or end at a layer below 65,536"
    )]
    TileTooLarge {
        /// The board asked for.
        board: BoardSize,
        /// The largest tile that the game can reach.
        largest: u64,
    },
    /// The wanted tile cannot be reached.
    #[error("{objective} is out of reach: the largest tile of a {board} board is {largest}")]
    OutOfReach {
        /// The objective asked for.
        objective: Objective,
        /// The board asked for.
        board: BoardSize,
        /// The largest tile that the game can reach.
        largest: u64,
    },
    /// The layer to stop at is below the first.
    #[error("layer {0} is below the first layer: a game starts with a tile sum of at least 4")]
    BelowFirstLayer(u32),
    /// The layer to stop at is odd.
    #[error("{0} is not a layer: tile sums are even, as {below} and {above} are",
        below = .0 - 1, above = .0.saturating_add(1))]
    OddLayer(u32),
    /// The last layer to enumerate lies above the last one that there is.
    #[error("layer {layer} is above the last layer of {board}: expected at most {last}")]
    AboveLastLayer {
        /// The layer asked for.
        layer: u32,
        /// The board.
        board: BoardSize,
        /// The last layer that can have a state, by the tile bound.
        last: u32,
    },
    /// The split between small and large tiles is out of range.
    #[error("large tiles cannot start at exponent {0}: expected 3 to 6")]
    Large(u8),
    /// The skeletons of a class would not be numbered in 30 bits.
    #[error(
        "large tiles of a {board} board cannot start at exponent {large}: there would be up to {rows} skeletons of one \
         sum, and {MOST_ROWS} can be numbered; expected fewer small tiles, that is a lower exponent"
    )]
    TooManyRows {
        /// The board.
        board: BoardSize,
        /// The exponent from which tiles are large.
        large: u8,
        /// The most skeletons of one class.
        rows: u64,
    },
    /// A discount without a win that it could count for.
    #[error(
        "a discount counts for wins alone, and {0} has none: expected reach:TILE, where a win after n moves then counts γ^n"
    )]
    Discount(Objective),
    /// An adversary leaves nothing to chance.
    #[error(
        "{0} is certain or out of the question where the worst tiles are spawned: expected reach:TILE, which is worth 1 \
         where the tile can be forced and else 0"
    )]
    CertainLoss(Objective),
    /// The exponent from which tiles are huge is out of range.
    #[error("huge tiles cannot start at exponent {0}: expected {LEAST_HUGE} to {NO_HUGE}")]
    Huge(u8),
    /// Best moves of too many layers would be in one shard.
    #[error(
        "best moves of {layers} layers would make one shard, which is too much to lose and to list: they are committed with \
         the kept layers; expected two kept layers in every {MOST_LAYERS_OF_BEST_MOVES} or fewer"
    )]
    BestMovesTooFarApart {
        /// Layers from one kept pair to the next.
        layers: u32,
    },
}

impl Params {
    /// Parameters with the split between small and large tiles that measured fastest for the board.
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

    /// The same run with more tiles counted as large, where that is faster given enough memory: it has about a tenth of
    /// the rows, so few that their transitions can be kept, and they are longer. `None` where there is no such split.
    pub fn roomy(&self) -> Option<Self> {
        let is_deep = self.board.cells() == 12 && self.last_layer() > MANY_SEQUENCES;
        (is_deep && self.large == 5).then(|| Self { large: 4, ..self.clone() })
    }

    /// Parameters with a chosen split; values and counts do not depend on it, speed and sizes do.
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
            // With the wanted tile as the only large one, no board that counts has a large tile.
            params.large = large.min(exponent);
        }
        params.check()?;
        Ok(params)
    }

    /// The same run, with lanes divided by tiles that are huge from an exponent on; values and counts do not depend on it,
    /// speed and sizes do.
    pub fn with_huge(self, huge: u8) -> Result<Self, ParamsError> {
        let params = Self { huge, ..self };
        params.check()?;
        Ok(params)
    }

    /// The same run, but for the layers whose values it stores; counts and values do not depend on them.
    pub fn with_kept(self, kept: KeptLayers) -> Self {
        Self { kept, ..self }
    }

    /// The same game, played for wins in few moves.
    pub fn with_discount(self, discount: Discount) -> Result<Self, ParamsError> {
        let params = Self { discount, ..self };
        params.check()?;
        Ok(params)
    }

    /// The same game with another choice of who places the tiles.
    pub fn with_spawner(self, spawner: Spawner) -> Result<Self, ParamsError> {
        let params = Self { spawner, ..self };
        params.check()?;
        Ok(params)
    }

    /// The same run, with the best move of every state stored, or not; counts and values do not depend on it.
    pub fn with_best_moves(self, best_moves: bool) -> Self {
        Self { best_moves, ..self }
    }

    /// The same run, storing the values of these layers, or where none are named of the usual ones, and best moves or not.
    pub fn with_stored(self, kept: Option<KeptLayers>, best_moves: bool) -> Result<Self, ParamsError> {
        let usual = if best_moves { KeptLayers::BESIDE_BEST_MOVES } else { KeptLayers::default() };
        let params = self.with_kept(kept.unwrap_or(usual)).with_best_moves(best_moves);
        params.check()?;
        Ok(params)
    }

    /// Whether it stays stored which states of a layer are reachable: because their values or best moves are stored
    /// with them, or because the run only enumerates.
    pub fn keeps_reach(&self, layer: Layer) -> bool {
        self.until_layer.is_some() || self.stores_on_the_way_down(layer)
    }

    /// Whether something is stored of a layer on the way down: values, or best moves.
    pub fn stores_on_the_way_down(&self, layer: Layer) -> bool {
        self.best_moves || self.kept.keeps(layer)
    }

    /// Checks parameters that were read from a file.
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
        let rows = skeleton::most_rows(self.board, self.large);
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

    /// Exponent of the largest tile that the board can reach in any game: cells + 1.
    pub fn tile_bound(&self) -> u8 {
        self.board.cells() as u8 + 1
    }

    /// Exponent of the largest tile on a board that the run counts.
    pub fn largest_exponent(&self) -> u8 {
        let by_objective = self.winning_exponent().map_or(u8::MAX, |exponent| exponent - 1);
        let by_layer = self.until_layer.map_or(u8::MAX, |layer| layer.ilog2() as u8);
        self.tile_bound().min(by_objective).min(by_layer)
    }

    /// Exponent of the tile that wins, where the objective has one.
    pub fn winning_exponent(&self) -> Option<u8> {
        self.objective.winning_exponent()
    }

    /// The most cells of a reachable board that can hold a tile of at least `2^exponent`: all cells for a 2 or a 4, and
    /// `cells + 2 − exponent` from an 8 on.
    pub fn most_cells_with(&self, exponent: u8) -> usize {
        if exponent > self.largest_exponent() {
            0
        } else if exponent < 3 {
            self.cells()
        } else {
            (self.cells() + 2).saturating_sub(exponent as usize)
        }
    }

    /// The largest tile sum that a counted board can have, by the tile bound.
    pub fn last_layer(&self) -> Layer {
        let sum: u64 = tile_bound_board(self).map(|e| 1u64 << e).sum();
        let sum = u32::try_from(sum).unwrap_or(u32::MAX);
        Layer(self.until_layer.map_or(sum, |layer| layer.min(sum)))
    }

    /// How the run's values are written as integers.
    pub fn scale(&self) -> Scale {
        Scale::new(self)
    }
}

/// Exponents of the heaviest board that the tile bound allows.
pub(crate) fn tile_bound_board(params: &Params) -> impl Iterator<Item = u8> + '_ {
    (1..=params.cells()).map(|cell| {
        (2..=params.largest_exponent()).rev().find(|&e| params.most_cells_with(e) >= cell).unwrap_or(1)
    })
}

/// Boards of 12 cells and more are split at tile 8 where no layer is above this one: there are few sequences of large
/// tiles then, and to have few skeletons gains more. Above it there would be too many sequences.
const FEW_SEQUENCES: Layer = Layer(1024);

/// Boards of 12 cells are split at tile 32 where there are layers above this one: nearly all their states have so many
/// large tiles that, with more tiles counted as large, maps between sequences would cost more than the rows
/// (`docs/dev/performance.md`).
const MANY_SEQUENCES: Layer = Layer(8192);

/// Tiles that are huge on these boards: of at least 512. With them the largest block of a layer has half as many
/// states. If smaller tiles were huge too, there would be more lanes, but the largest block would be no smaller
/// (`docs/dev/performance.md`).
const HUGE_OF_MANY: u8 = 9;

/// The most rows that a class may have: edges have 30 bits for a row.
const MOST_ROWS: u64 = (1 << ROW_BITS) - 1;

/// The most layers from one kept pair to the next where best moves are stored, all of which one commit and one shard of
/// 4x3 can hold: it has some nine thousand items a layer, and a shard lists at most 44 million (`docs/dev/format.md`).
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

    /// Every board that can be packed has a split whose rows can be numbered, and the usual one is such a split.
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

    /// A shard of best moves reaches from one kept pair to the next.
    #[test]
    fn best_moves_of_a_large_board_need_kept_layers_between_its_first_and_its_last() {
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

    /// Which layers are kept where nobody names any.
    #[test]
    fn fewer_layers_are_kept_beside_best_moves() {
        let kept = |best_moves| {
            params("3x3", "score", None).unwrap().with_stored(None, best_moves).unwrap().kept.to_string()
        };
        assert_eq!((kept(false).as_str(), kept(true).as_str()), ("4", "128"));
    }

    /// Manifests of runs that keep two layers in every four are what they were before there was a choice.
    #[test]
    fn kept_layers_are_written_where_they_are_others() {
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

    /// Manifests of runs that know neither discounts nor adversaries are what they were before there were any.
    #[test]
    fn discounts_and_adversaries_are_written_where_they_are() {
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
    fn discounts_and_adversaries_need_an_objective_that_knows_them() {
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
