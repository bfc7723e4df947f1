//! Options that define a job, shared by `solve`, `plan` and `submit`.

use std::str::FromStr;

use anyhow::Result;
use exact2048_game::formation::Formation;
use exact2048_game::value_step::ParseValueStepError;
use exact2048_game::{
    BoardSize, Discount, Game, KeptLayers, Objective, OpenChoices, Params, Precision, Spawn4, Spawner,
    ValueStep, position,
};
use exact2048_stats::has_usual_rules;

use crate::{Failure, exit};

/// Options that define a job.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct JobArgs {
    /// Set the rows and columns, for example 3x3: 2 to 16 cells, sides of 1 to 8
    #[arg(long, value_name = "RxC", allow_negative_numbers = true, group = "which")]
    board: Option<BoardSize>,
    /// Solve the formation of 4x4 with this name; see exact2048 formations
    #[arg(long, value_name = "NAME", group = "which", conflicts_with = "locked")]
    formation: Option<Formation>,
    /// Place stones by a picture, one symbol a cell, rows separated by /: . for a playable cell, x for a large tile locked
    /// in its cell, # for a wall. See docs/endgames.md
    #[arg(long, value_name = "PICTURE")]
    locked: Option<String>,
    /// Place this number of loose stones: large tiles that slide and never merge. With --objective reach:TILE. See
    /// docs/endgames.md
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    loose: Option<u64>,
    #[arg(long, default_value = "score", value_name = "WHAT", help = Objective::HELP)]
    objective: Objective,
    /// Begin at this position instead of the starts of games, and solve all that follows from it. Rows are separated by /.
    /// The position and its images are the same run. See docs/from.md
    #[arg(long, value_name = "BOARD", allow_hyphen_values = true)]
    from: Option<String>,
    /// Set the probability that a spawned tile is a 4: a decimal or a fraction, stored exactly. With 0 or 1, states that
    /// need the impossible tile are still enumerated and have values
    #[arg(long, default_value = "0.1", value_name = "P", allow_negative_numbers = true)]
    spawn4: Spawn4,
    /// Set the discount of each move with reach:TILE: a win after n moves counts P^n
    #[arg(long, default_value = "1", value_name = "P", allow_negative_numbers = true)]
    discount: Discount,
    /// Choose how tiles are placed: random, or worst for an adversary that minimises the value of perfect play
    #[arg(long, default_value = "random", value_name = "WHO")]
    spawner: Spawner,
    /// Enumerate without backing up, up to this layer (tile sum), for boards too large to finish
    #[arg(long, value_name = "LAYER", allow_negative_numbers = true)]
    until_layer: Option<u32>,
    /// Set the bits of a stored value; a run without values can be resumed with a different precision [default: 32, or as in
    /// the existing run]
    #[arg(long, value_parser = ["32", "64"])]
    precision: Option<String>,
    /// Separate tiles of at least 2^N from the rest of the board: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    large: Option<u8>,
    /// Divide the work by tiles of at least 2^N: changes speed and memory, not results
    #[arg(long, value_name = "N", hide = true)]
    huge: Option<u8>,
    /// Divide each lane into up to N sectors (1 to 8), so that many workers share the work evenly and each needs less
    /// memory. Changes speed and memory, not results [default: 1, more in solve if the memory is small, or as in the
    /// existing run]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    sectors: Option<u8>,
    /// Choose the layers whose values are stored: N for 2 layers in every N (3 or more), all, or starts for only the
    /// layers of the starts. Other values are computed on demand. Changes the size of the run and the time of queries,
    /// not results [default: 4, or as many as fit in --disk; 128 with --values best-move; or as in the existing run]
    #[arg(long, value_name = "N|all|starts", allow_negative_numbers = true)]
    keep: Option<KeptLayers>,
    /// Choose what is stored: layers for the values of the layers that --keep chooses, or best-move to add the best move of
    /// every state in all layers. A player needs only best moves, which take about 0.1 bytes per state. Changes sizes, not
    /// results [default: layers, or as in the existing run]
    #[arg(long, value_name = "WHAT", value_enum)]
    values: Option<StoredValues>,
    /// Round stored values to multiples of this number of points, or of probability, for example 0.25; rounded down to a
    /// power of two. Takes less space, and adds half of the step to the error bound of answers. The run computes and
    /// resumes with all bits. With auto, --disk chooses the smallest step that keeps the most layers [default: all bits,
    /// or as in the existing run]
    #[arg(long, value_name = "STEP|auto", allow_negative_numbers = true)]
    value_step: Option<StepOption>,
}

/// Value of `--value-step`.
#[derive(Clone, Copy, Debug)]
enum StepOption {
    /// The step that suits `--disk`.
    Auto,
    /// This step.
    Step(ValueStep),
}

impl FromStr for StepOption {
    type Err = ParseValueStepError;

    fn from_str(text: &str) -> Result<Self, ParseValueStepError> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Step) }
    }
}

/// Choices of `--values`.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum StoredValues {
    /// Store the values of the layers that --keep chooses
    Layers,
    /// Store the best move of every state, and few values
    BestMove,
}

impl JobArgs {
    /// Whether `--keep` is given.
    #[cfg(feature = "net")]
    pub fn has_keep(&self) -> bool {
        self.keep.is_some()
    }

    /// The layers to keep with these parameters, if chosen. For a run that only enumerates, `params` determines them.
    pub fn keep_of(&self, params: &Params) -> Option<KeptLayers> {
        self.keep.or(params.contents().until().map(|_| params.contents().kept()))
    }

    /// Whether `--disk` chooses the step of rounded values.
    pub fn has_open_step(&self) -> bool {
        matches!(self.value_step, Some(StepOption::Auto))
    }

    /// Requires that something decides the step of rounded values, if it is open: the disk limit of a whole game, or an
    /// existing run.
    ///
    /// # Errors
    ///
    /// A usage error.
    pub fn require_step(&self, has_limit: bool, has_run: bool) -> Result<(), Failure> {
        let is_whole = self.from.is_none() && self.board().is_ok_and(|board| !board.has_stones());
        if !self.has_open_step() || has_run || has_limit && is_whole {
            return Ok(());
        }
        let what = "--value-step auto: expected --disk for a whole game, which decides the step; give --disk SIZE without \
                    --from and --locked, or a step such as 0.25";
        Err(Failure::usage(what.to_owned()))
    }

    /// The parameters to resume an existing run. Omitted storage options take the values of that run.
    pub fn going_on(&self, params: Params, held: &Params) -> Params {
        let open = OpenChoices {
            kept: self.keep.is_none(),
            best_moves: self.values.is_none(),
            precision: self.precision.is_none(),
            value_step: !self.has_value_step(),
        };
        params.resuming(held, open)
    }

    /// Whether `--precision` is given.
    #[cfg(feature = "net")]
    pub fn has_precision(&self) -> bool {
        self.precision.is_some()
    }

    /// Whether `--values` is given.
    #[cfg(feature = "net")]
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Whether `--value-step` gives a step.
    pub fn has_value_step(&self) -> bool {
        matches!(self.value_step, Some(StepOption::Step(_)))
    }

    /// Whether `--large`, `--huge` or `--sectors` is given.
    pub fn has_split(&self) -> bool {
        self.large.is_some() || self.huge.is_some() || self.sectors.is_some()
    }

    /// The board with its stones.
    fn board(&self) -> Result<BoardSize, Failure> {
        let named = self.formation.map(Formation::size);
        let Some(board) = self.board.or(named) else {
            return Err(Failure::usage("expected --board or --formation".to_owned()));
        };
        let option = if self.locked.is_some() { "--locked" } else { "--loose" };
        if (self.locked.is_some() || self.loose.is_some()) && board.has_stones() {
            let what =
                format!("{option}: expected a --board without stones, found {board}; give the stones once");
            return Err(Failure::usage(what));
        }
        let locked = self.locked.as_ref().map_or(Ok(board), |picture| board.with_picture(picture));
        let with_stones =
            locked.and_then(|board| self.loose.map_or(Ok(board), |loose| board.with_loose(loose)));
        with_stones.map_err(|error| Failure::usage(format!("{option}: {error}")))
    }

    /// The parameters that the options describe.
    ///
    /// # Errors
    ///
    /// A usage error if the options contradict each other.
    pub fn params(&self) -> Result<Params> {
        let is_wide = self.precision.as_deref() == Some("64");
        let precision = if is_wide { Precision::Bits64 } else { Precision::Bits32 };
        let board = self.board()?;
        let params = Params::builder(board, self.objective)
            .spawn4(self.spawn4)
            .precision(precision)
            .discount(self.discount)
            .spawner(self.spawner)
            .until(self.until_layer)
            .large(self.large)
            .huge(self.huge)
            .sectors(self.sectors.unwrap_or(1))
            .kept(self.keep)
            .best_moves(self.values == Some(StoredValues::BestMove))
            .value_step(match self.value_step {
                Some(StepOption::Step(step)) => Some(step),
                Some(StepOption::Auto) | None => None,
            });
        let from = self.from.as_deref().map(|text| position(text, board)).transpose();
        let params = from.and_then(|from| params.from(from).build());
        params.map_err(|error| Failure::usage(exit::text(&error.into())).into())
    }
}

/// The position from which a run begins, in canonical form.
pub fn from_text(game: &Game) -> Option<String> {
    game.from().map(|board| board.to_text(game.board()))
}

/// The objective of a run in words, with its discount and adversary.
pub fn objective_text(game: &Game) -> String {
    let mut text = game.objective().to_string();
    if game.discount() != Discount::NONE {
        text += &format!(", discount {}", game.discount());
    }
    if game.spawner() == Spawner::Worst {
        text += ", against the worst tiles";
    }
    text
}

/// The rules of a run in words. Messages print them after the board and the objective.
pub fn rules_text(spawn4: &str, discount: Discount, spawner: Spawner) -> String {
    let tiles = match spawner {
        Spawner::Random => format!("4s spawn with {spawn4}"),
        Spawner::Worst => "the worst tiles spawn".to_owned(),
    };
    if discount == Discount::NONE { tiles } else { format!("{tiles}, discount {discount}") }
}

/// Requires a run whose values describe random games.
pub fn require_usual_rules(game: &Game) -> Result<()> {
    if has_usual_rules(game) {
        return Ok(());
    }
    let rules = rules_text(&game.spawn4().to_string(), game.discount(), game.spawner());
    Err(Failure::usage(format!(
        "--run: expected a run of score or reach:TILE with random tiles and without a discount, found {}, where {rules}",
        game.objective()
    ))
    .into())
}

/// The stored layers of a run in words, and whether it stores best moves.
pub fn kept_text(kept: KeptLayers, best_moves: bool) -> String {
    let values = match kept.policy() {
        KeptLayers::ALL => "all".to_owned(),
        KeptLayers::STARTS => "those of the starts".to_owned(),
        _ => format!("{} in every {}", kept.width(), kept.period()),
    };
    if best_moves { format!("{values}; best moves of all layers") } else { values }
}
