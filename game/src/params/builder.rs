//! The builder of parameters.

use crate::board::{Board, BoardSize};
use crate::discount::Discount;
use crate::huge::NO_HUGE;
use crate::kept::KeptLayers;
use crate::layer::Layer;
use crate::objective::{Objective, Spawn4, Spawner};
use crate::symmetry::Symmetries;
use crate::value_step::ValueStep;

use super::contents::RunContents;
use super::error::ParamsError;
use super::game::Game;
use super::precision::Precision;
use super::split::TileSplit;
use super::whole::Params;

/// Builder of [`Params`]. It checks nothing before [`build`](Self::build).
#[derive(Clone, Debug)]
pub struct ParamsBuilder {
    game: Game,
    large: Option<u8>,
    huge: Option<u8>,
    sectors: u8,
    until: Option<u32>,
    kept: Option<KeptLayers>,
    best_moves: bool,
    value_step: Option<ValueStep>,
}

impl Params {
    /// Returns a builder with the usual rules, the fastest split and the default contents.
    pub fn builder(board: BoardSize, objective: Objective) -> ParamsBuilder {
        let (spawn4, precision) = (Spawn4::default(), Precision::Bits32);
        let (discount, spawner) = (Discount::NONE, Spawner::Random);
        let game = Game { board, objective, spawn4, discount, spawner, precision, from: None };
        ParamsBuilder {
            game,
            large: None,
            huge: None,
            sectors: 1,
            until: None,
            kept: None,
            best_moves: false,
            value_step: None,
        }
    }

    /// Returns a builder with these parameters.
    pub fn to_builder(&self) -> ParamsBuilder {
        ParamsBuilder {
            game: self.game,
            large: Some(self.split.large),
            huge: Some(self.split.huge),
            sectors: self.split.sectors,
            until: self.contents.until.map(|layer| layer.0),
            kept: Some(self.contents.kept),
            best_moves: self.contents.best_moves,
            value_step: self.contents.value_step,
        }
    }

    /// Returns a builder from texts, for tests and examples.
    ///
    /// # Panics
    ///
    /// Panics if a text is not a size or not an objective.
    pub fn usual(board: &str, objective: &str) -> ParamsBuilder {
        let (board, objective) = (board.parse(), objective.parse());
        Self::builder(board.expect("a size such as 3x3"), objective.expect("an objective such as reach:64"))
    }

    /// Returns the parameters of the score on a small board, for tests and examples.
    ///
    /// # Panics
    ///
    /// Panics if the text is not a size, or if the tiles of the board do not fit in four bits.
    pub fn small(board: &str) -> Self {
        Self::usual(board, "score").build().expect("a board of at most 14 cells")
    }
}

impl ParamsBuilder {
    /// Sets the probability that a spawned tile is a 4. The default is 1/10.
    #[must_use]
    pub fn spawn4(mut self, spawn4: Spawn4) -> Self {
        self.game.spawn4 = spawn4;
        self
    }

    /// Sets the number of bits of a value. The default is 32.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.game.precision = precision;
        self
    }

    /// Sets the factor by which each move reduces the value of a win. A discount rewards wins in few moves.
    #[must_use]
    pub fn discount(mut self, discount: Discount) -> Self {
        self.game.discount = discount;
        self
    }

    /// Sets the rule that places the tiles. The default is chance.
    #[must_use]
    pub fn spawner(mut self, spawner: Spawner) -> Self {
        self.game.spawner = spawner;
        self
    }

    /// Makes the run begin at this position. The position and its images are the same run. `None` makes a run that
    /// begins with the starts of games.
    #[must_use]
    pub fn from(mut self, board: impl Into<Option<Board>>) -> Self {
        self.game.from = board.into().map(|board| Symmetries::new(self.game.board).canonical(board));
        self
    }

    /// Makes the run only enumerate, up to this layer. `None` makes a run that solves the whole game.
    #[must_use]
    pub fn until(mut self, layer: impl Into<Option<u32>>) -> Self {
        self.until = layer.into();
        self
    }

    /// Sets the smallest exponent of large tiles. An exponent above that of the winning tile is reduced to the latter.
    ///
    /// `None` chooses the split that was fastest in measurements of the board.
    #[must_use]
    pub fn large(mut self, large: impl Into<Option<u8>>) -> Self {
        self.large = large.into().map(|large| TileSplit::within(&self.game, large));
        self
    }

    /// Sets the smallest exponent of huge tiles.
    ///
    /// If the builder also chooses the large tiles, `None` chooses the exponent that was fastest in measurements.
    /// Otherwise `None` makes no tile huge.
    #[must_use]
    pub fn huge(mut self, huge: impl Into<Option<u8>>) -> Self {
        self.huge = huge.into();
        self
    }

    /// Sets the number of sectors into which the places of large tiles divide the lanes. The default is one.
    #[must_use]
    pub fn sectors(mut self, sectors: u8) -> Self {
        self.sectors = sectors;
        self
    }

    /// Divides layers into the blocks of another run.
    #[must_use]
    pub fn split(mut self, split: TileSplit) -> Self {
        (self.large, self.huge, self.sectors) = (Some(split.large), Some(split.huge), split.sectors);
        self
    }

    /// Sets the layers whose values are stored. `None` chooses the default layers.
    #[must_use]
    pub fn kept(mut self, kept: impl Into<Option<KeptLayers>>) -> Self {
        self.kept = kept.into();
        self
    }

    /// Sets whether the best move of every state is stored.
    #[must_use]
    pub fn best_moves(mut self, best_moves: bool) -> Self {
        self.best_moves = best_moves;
        self
    }

    /// Sets the step to which stored values are rounded. `None`, the default, stores all bits.
    #[must_use]
    pub fn value_step(mut self, step: impl Into<Option<ValueStep>>) -> Self {
        self.value_step = step.into();
        self
    }

    /// Builds the parameters.
    ///
    /// # Errors
    ///
    /// A [`ParamsError`] for the first rule that the parameters break.
    pub fn build(self) -> Result<Params, ParamsError> {
        let last = self.game.last_layer();
        let last = self.until.map_or(last, |layer| last.min(Layer(layer)));
        let usual = TileSplit::usual(&self.game, last);
        let split = match self.large {
            Some(large) => TileSplit { large, huge: self.huge.unwrap_or(NO_HUGE), sectors: self.sectors },
            None => TileSplit { huge: self.huge.unwrap_or(usual.huge), sectors: self.sectors, ..usual },
        };
        let kept = if self.best_moves { KeptLayers::KEPT_WITH_BEST_MOVES } else { KeptLayers::default() };
        let contents = RunContents {
            until: None,
            kept: self.kept.unwrap_or(kept),
            best_moves: self.best_moves,
            value_step: self.value_step,
        };
        Params::checked(self.game, split, self.until, contents)
    }
}

/// Choices that a job leaves open. The run that the job resumes decides them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenChoices {
    /// Whether the stored layers are open.
    pub kept: bool,
    /// Whether the choice to store best moves is open.
    pub best_moves: bool,
    /// Whether the precision is open.
    pub precision: bool,
    /// Whether the step of stored values is open.
    pub value_step: bool,
}

impl Params {
    /// Returns the parameters of a job that resumes the run `held`, which decides the open choices.
    ///
    /// If the result is not valid, the job keeps its own stored layers and best moves. Then it differs from the run.
    #[must_use]
    pub fn resuming(self, held: &Self, open: OpenChoices) -> Self {
        let params = if open.precision { self.with_precision(held.game.precision) } else { self };
        let mut builder = params.to_builder();
        if open.kept {
            builder = builder.kept(held.contents.kept);
        }
        if open.best_moves {
            builder = builder.best_moves(held.contents.best_moves);
        }
        if open.value_step {
            builder = builder.value_step(held.contents.value_step);
        }
        builder.build().unwrap_or(params)
    }
}
