//! All parameters of a run, and the rules that the parts obey together.

use crate::board::MAX_EXPONENT;
use crate::discount::Discount;
use crate::huge::{LEAST_HUGE, NO_HUGE};
use crate::kept::KeptLayers;
use crate::layer::Layer;
use crate::objective::{Objective, Spawner};
use crate::skeleton;

use super::contents::RunContents;
use super::error::{MOST_LAYERS_OF_BEST_MOVES, MOST_ROWS, ParamsError};
use super::game::Game;
use super::precision::Precision;
use super::split::TileSplit;

/// Parameters of a run. Two runs with the same parameters hold the same values, bit for bit.
///
/// Parameters are always valid, because builders and manifests check them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Params {
    pub(super) game: Game,
    pub(super) split: TileSplit,
    pub(super) contents: RunContents,
}

impl Params {
    /// Game that the run solves.
    pub fn game(&self) -> &Game {
        &self.game
    }

    /// Split of the boards into skeletons, sequences and lanes.
    pub fn split(&self) -> &TileSplit {
        &self.split
    }

    /// Contents of the run.
    pub fn contents(&self) -> &RunContents {
        &self.contents
    }

    /// Returns the same run with another precision.
    #[must_use]
    pub fn with_precision(&self, precision: Precision) -> Self {
        Self { game: Game { precision, ..self.game }, ..self.clone() }
    }

    /// Returns the same run with a split that has more large tiles; `None` unless that split is faster with enough
    /// memory.
    pub fn with_fewer_rows(&self) -> Option<Self> {
        let split = self.split.with_fewer_rows(&self.game, self.last_layer())?;
        Some(Self { split, ..self.clone() })
    }

    /// Returns the same run without huge tiles, so huge tiles divide none of its lanes.
    #[must_use]
    pub fn without_huge_tiles(&self) -> Self {
        Self { split: TileSplit { huge: NO_HUGE, ..self.split }, ..self.clone() }
    }

    /// Returns the same run without best moves.
    #[must_use]
    pub fn without_best_moves(&self) -> Self {
        Self { contents: RunContents { best_moves: false, ..self.contents }, ..self.clone() }
    }

    /// Returns the same run with the values and the best moves of all layers.
    #[must_use]
    pub fn with_all_contents(&self) -> Self {
        let contents = RunContents { kept: KeptLayers::ALL, best_moves: true, ..self.contents };
        Self { contents, ..self.clone() }
    }

    /// Exponent of the largest tile that a board counted by the run can hold.
    pub fn largest_exponent(&self) -> u8 {
        let by_layer = self.contents.until.map_or(u8::MAX, |layer| layer.0.ilog2() as u8);
        self.game.largest_exponent().min(by_layer)
    }

    /// Largest number of cells of a board counted by the run that can hold a tile of at least `2^exponent`: see
    /// [`Game::most_cells_with`].
    pub fn most_cells_with(&self, exponent: u8) -> usize {
        if exponent > self.largest_exponent() { 0 } else { self.game.most_cells_with(exponent) }
    }

    /// Last layer of the run: the largest tile sum by the tile bound, or the last layer to enumerate.
    pub fn last_layer(&self) -> Layer {
        self.contents.until.unwrap_or_else(|| self.game.last_layer())
    }

    /// Combines the parts, after checking them and the rules that they obey together.
    pub(super) fn checked(
        game: Game,
        split: TileSplit,
        until: Option<u32>,
        kept: KeptLayers,
        best_moves: bool,
    ) -> Result<Self, ParamsError> {
        let bound = game.tile_bound();
        let (board, largest) = (game.board, 1u64 << bound);
        if game.winning_exponent().is_some_and(|exponent| exponent > bound) {
            return Err(ParamsError::OutOfReach { objective: game.objective, board, largest });
        }
        let until = until.map(|layer| until_layer(&game, layer)).transpose()?;
        let params = Self { game, split, contents: RunContents { until, kept, best_moves } };
        if params.largest_exponent() > MAX_EXPONENT {
            return Err(ParamsError::TileTooLarge { board, largest });
        }
        if !(3..=6).contains(&split.large) {
            return Err(ParamsError::Large(split.large));
        }
        let rows = skeleton::max_rows(board, split.large);
        if rows > MOST_ROWS {
            return Err(ParamsError::TooManyRows { board, large: split.large, rows });
        }
        if !(LEAST_HUGE..=NO_HUGE).contains(&split.huge) {
            return Err(ParamsError::Huge(split.huge));
        }
        if game.discount != Discount::NONE && !matches!(game.objective, Objective::Reach { .. }) {
            return Err(ParamsError::Discount(game.objective));
        }
        if game.spawner == Spawner::Worst && matches!(game.objective, Objective::Lose { .. }) {
            return Err(ParamsError::CertainLoss(game.objective));
        }
        let layers = kept.period().min(params.last_layer().number());
        if best_moves && layers > MOST_LAYERS_OF_BEST_MOVES {
            return Err(ParamsError::BestMovesTooFarApart { layers });
        }
        Ok(params)
    }
}

/// Checks the last layer of a run that only enumerates.
fn until_layer(game: &Game, layer: u32) -> Result<Layer, ParamsError> {
    let last = game.last_layer().0;
    if layer < Layer::FIRST.0 {
        Err(ParamsError::BelowFirstLayer(layer))
    } else if layer > last {
        Err(ParamsError::AboveLastLayer { layer, board: game.board, last })
    } else {
        Layer::of_sum(layer).ok_or(ParamsError::OddLayer(layer))
    }
}
