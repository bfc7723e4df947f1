//! All parameters of a run, and the rules that the parts obey together.

use crate::board::{Board, BoardSize, MAX_EXPONENT};
use crate::discount::Discount;
use crate::fixed::Scale;
use crate::huge::{LEAST_HUGE, NO_HUGE};
use crate::kept::KeptLayers;
use crate::layer::Layer;
use crate::objective::{Objective, Spawner};
use crate::rules::{self, Move};
use crate::sector::{MOST_SECTORS, Sectors};
use crate::skeleton;
use crate::symmetry::Symmetries;
use crate::unreachable::why_unreachable;
use crate::value_step::ValueStep;

use super::contents::RunContents;
use super::error::{MOST_LAYERS_OF_BEST_MOVES, MOST_ROWS, ParamsError};
use super::game::Game;
use super::precision::Precision;
use super::split::TileSplit;

/// Largest number of characters of a position that an error quotes.
const QUOTED: usize = 80;

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

    /// Sectors of the lanes.
    pub fn sectors(&self) -> Sectors {
        Sectors::new(self.game.board, self.split.sectors)
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

    /// Lowest layer of the run: see [`Game::first_layer`].
    pub fn first_layer(&self) -> Layer {
        self.game.first_layer()
    }

    /// All layers that the run can have, ascending.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = Layer> + ExactSizeIterator + Clone + use<> {
        self.first_layer().to(self.last_layer())
    }

    /// Number format of the values that the run stores, with the error of a value step.
    pub fn stored_scale(&self) -> Scale {
        let scale = Scale::new(&self.game);
        self.contents.value_step.map_or(scale, |step| scale.rounded(step.number()))
    }

    /// Returns the reason why the run does not count a board, as the end of a sentence. Returns `None` if the tiles of
    /// the board show no reason. Such a board may still be unreachable.
    #[must_use]
    pub fn why_unreachable(&self, board: Board) -> Option<&'static str> {
        why_unreachable(board, &self.game, self.last_layer())
    }

    /// Combines the parts, after checking them and the rules that they obey together.
    pub(super) fn checked(
        game: Game,
        split: TileSplit,
        until: Option<u32>,
        contents: RunContents,
    ) -> Result<Self, ParamsError> {
        let bound = game.tile_bound();
        let (board, largest) = (game.board, 1u64 << bound);
        if game.winning_exponent().is_some_and(|exponent| exponent > bound) {
            return Err(ParamsError::OutOfReach { objective: game.objective, board, largest });
        }
        let until = until.map(|layer| until_layer(&game, layer)).transpose()?;
        let kept = contents.kept.of_run_from(game.first_layer());
        let params = Self { game, split, contents: RunContents { until, kept, ..contents } };
        require_small_tiles(&params)?;
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
        if !(1..=MOST_SECTORS).contains(&split.sectors) {
            return Err(ParamsError::Sectors(split.sectors));
        }
        if board.has_stones() && split.sectors > 1 {
            return Err(ParamsError::SectorsBesideStones(split.sectors));
        }
        if board.loose() > 0 && split.huge != NO_HUGE {
            return Err(ParamsError::HugeBesideLooseStones(split.huge));
        }
        if board.loose() > 0 && game.winning_exponent().is_none() {
            return Err(ParamsError::ScoreWithLooseStones(board));
        }
        if game.discount != Discount::NONE && !matches!(game.objective, Objective::Reach { .. }) {
            return Err(ParamsError::Discount(game.objective));
        }
        if game.spawner == Spawner::Worst && matches!(game.objective, Objective::Lose { .. }) {
            return Err(ParamsError::CertainLoss(game.objective));
        }
        let RunContents { kept, best_moves, .. } = contents;
        let layers = kept.period().min(params.last_layer().number());
        if best_moves && layers > MOST_LAYERS_OF_BEST_MOVES {
            return Err(ParamsError::BestMovesTooFarApart { layers });
        }
        if let Some(step) = contents.value_step {
            check_step(&game, until.is_some(), step)?;
        }
        if let Some(board) = game.from {
            require_state(board, &params)?;
        }
        Ok(params)
    }
}

/// Requires that all tiles of a game fit in a packed board.
fn require_small_tiles(params: &Params) -> Result<(), ParamsError> {
    let (board, largest) = (params.game.board, params.largest_exponent());
    let wins = params.game.winning_exponent().unwrap_or(largest);
    if board.has_stones() && largest.max(wins) > board.most_exponent() {
        return Err(ParamsError::TileBesideStones { board, largest: 1 << largest.max(wins) });
    }
    if largest > MAX_EXPONENT {
        return Err(ParamsError::TileTooLarge { board, largest: 1 << params.game.tile_bound() });
    }
    Ok(())
}

/// Checks the step to which a run rounds its values.
fn check_step(game: &Game, enumerates_only: bool, step: ValueStep) -> Result<(), ParamsError> {
    if enumerates_only {
        return Err(ParamsError::StepWithoutValues(step));
    }
    let [least, most] = ValueStep::limits(game);
    if step < least {
        return Err(ParamsError::StepTooSmall { step, least });
    }
    if step > most {
        return Err(ParamsError::StepTooLarge { step, most, objective: game.objective() });
    }
    Ok(())
}

/// Checks the last layer of a run that only enumerates.
fn until_layer(game: &Game, layer: u32) -> Result<Layer, ParamsError> {
    let last = game.last_layer().0;
    let first = game.first_layer().0;
    if layer < Layer::FIRST.0 {
        Err(ParamsError::BelowFirstLayer(layer))
    } else if layer < first {
        Err(ParamsError::BelowPosition { layer, first })
    } else if layer > last {
        Err(ParamsError::AboveLastLayer { layer, board: game.board, last })
    } else {
        Layer::of_sum(layer).ok_or(ParamsError::OddLayer(layer))
    }
}

/// Parses the position from which a run begins. Returns its canonical form.
///
/// # Errors
///
/// [`ParamsError::Position`] if the text is no board of the size.
pub fn position(text: &str, size: BoardSize) -> Result<Board, ParamsError> {
    let board = Board::parse(text, size).map_err(|error| ParamsError::Position {
        board: exact2048_text::quoted(text, QUOTED),
        reason: error.to_string(),
    })?;
    Ok(Symmetries::new(size).canonical(board))
}

/// Requires that a run can begin at a board: the board is unfinished, fits the game, and can stand after a spawn.
///
/// No search proves that games reach the board. Any board within the bounds of the game is a state for this purpose,
/// because all boards that follow from it are within these bounds, too.
fn require_state(board: Board, params: &Params) -> Result<(), ParamsError> {
    let size = params.game.board;
    let refused = |reason: String| Err(ParamsError::Position { board: board.to_text(size), reason });
    let (largest, most) = (size.largest(board), params.game.tile_bound());
    if let Some(wins) = params.game.winning_exponent().filter(|&wins| largest >= wins) {
        let (wins, found) = (1u64 << wins, 1u64 << largest);
        return refused(format!(
            "expected no tile of {wins} or more, because the game is won with {wins}, found {found}; give a position \
             before the win, or reach:TILE with a larger tile"
        ));
    }
    if largest > most {
        let (most, found) = (1u64 << most, 1u64 << largest);
        return refused(format!(
            "expected tiles of at most {most}, the largest of a {size} board, found {found}; correct the tile, or give a \
             larger --board"
        ));
    }
    if let Some(why) = params.why_unreachable(board) {
        return refused(format!(
            "expected a board right after a new tile appeared, found that {why}; correct the board"
        ));
    }
    if Move::ALL.into_iter().all(|way| rules::make_move(board, way, size).is_none()) {
        return refused(
            "expected a legal move, found none, because this game is over; give an earlier position"
                .to_owned(),
        );
    }
    Ok(())
}
