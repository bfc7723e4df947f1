//! The options that say what is to be computed: the same for one machine and for a cluster.

use anyhow::Result;
use exact2048_game::{BoardSize, Discount, KeptLayers, Objective, Params, Precision, Spawn4, Spawner};
use exact2048_stats::has_usual_rules;

use crate::{Failure, failure};

/// What is to be computed.
#[derive(clap::Args, Debug)]
pub struct JobArgs {
    /// Rows x columns, for example 3x3: 2 to 16 cells, sides of 1 to 8
    #[arg(long, value_name = "RxC", allow_negative_numbers = true)]
    board: BoardSize,
    /// What to play for: score; reach:TILE, the highest probability of ever holding TILE; or lose:TILE, the lowest
    /// probability of never holding it, precise even where it is tiny
    #[arg(long, default_value = "score", value_name = "WHAT")]
    objective: Objective,
    /// Chance that a spawned tile is a 4, kept exactly: a decimal or a fraction. States are counted as if both tiles
    /// could spawn: with 0 or 1 too, those that no game can come to are enumerated and have values
    #[arg(long, default_value = "0.1", value_name = "P", allow_negative_numbers = true)]
    spawn4: Spawn4,
    /// Discount a move, with reach:TILE: a win after n moves counts P^n
    #[arg(long, default_value = "1", value_name = "P", allow_negative_numbers = true)]
    discount: Discount,
    /// Who places the tiles: random, or worst, an adversary that places those after which perfect play is worth least
    #[arg(long, default_value = "random", value_name = "WHO")]
    spawner: Spawner,
    /// Only enumerate, up to this layer (tile sum): for boards too large to finish
    #[arg(long, value_name = "LAYER", allow_negative_numbers = true)]
    until_layer: Option<u32>,
    /// Bits a stored value; a run that has no values yet may be continued with others [default: 32, or as the run that is there
    /// already]
    #[arg(long, value_parser = ["32", "64"])]
    precision: Option<String>,
    /// Tiles of at least 2^N are kept apart from the rest of the board: changes speed, not results
    #[arg(long, value_name = "N", hide = true)]
    large: Option<u8>,
    /// Tiles of at least 2^N divide what is worked on together: changes speed and memory, not results
    #[arg(long, value_name = "N", hide = true)]
    huge: Option<u8>,
    /// Which layers' values to store: N for two in every N (3 or more), all, or starts for those of the starts alone.
    /// Changes the size and how long queries take, not results: what is not stored is worked out when it is asked for
    /// [default: 4, or as many as --disk has room for; with --values best-move 128; or as the run that is there already]
    #[arg(long, value_name = "N|all|starts", allow_negative_numbers = true)]
    keep: Option<KeptLayers>,
    /// What to store: values of the layers that --keep says; or besides, with best-move, the best move of every state of all
    /// layers, which is what a player needs and takes a tenth of a byte a state. Changes sizes, not results
    /// [default: layers, or as the run that is there already]
    #[arg(long, value_name = "WHAT", value_enum)]
    values: Option<StoredValues>,
}

/// What is stored of states.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum StoredValues {
    /// Values of the layers that --keep says
    Layers,
    /// The best move of every state, and few values
    BestMove,
}

impl JobArgs {
    /// Whether it is said which layers to keep.
    #[cfg(feature = "net")]
    pub fn has_keep(&self) -> bool {
        self.keep.is_some()
    }

    /// Which layers to keep of a run with these parameters, where it is said; what a run that only enumerates keeps is no
    /// matter of choice.
    pub fn keep_of(&self, params: &Params) -> Option<KeptLayers> {
        self.keep.or(params.until_layer.map(|_| params.kept))
    }

    /// The parameters for a run that is there already: where it is not said what to store, the same as there.
    pub fn going_on(&self, params: Params, held: &Params) -> Params {
        let kept = if self.keep.is_none() { held.kept } else { params.kept };
        let best_moves = if self.values.is_none() { held.best_moves } else { params.best_moves };
        let precision = if self.precision.is_none() { held.precision } else { params.precision };
        Params { precision, ..params.with_kept(kept).with_best_moves(best_moves) }
    }

    /// Whether it is said how many bits a value has.
    #[cfg(feature = "net")]
    pub fn has_precision(&self) -> bool {
        self.precision.is_some()
    }

    /// Whether it is said whether to store best moves.
    #[cfg(feature = "net")]
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Whether it is said how boards are split.
    pub fn has_split(&self) -> bool {
        self.large.is_some() || self.huge.is_some()
    }

    /// The parameters; wrong usage where there is no such run.
    pub fn params(&self) -> Result<Params> {
        let is_wide = self.precision.as_deref() == Some("64");
        let precision = if is_wide { Precision::Bits64 } else { Precision::Bits32 };
        let (board, objective, spawn4) = (self.board, self.objective, self.spawn4);
        let params = match self.large {
            Some(large) => Params::with_large(board, objective, spawn4, precision, self.until_layer, large),
            None => Params::new(board, objective, spawn4, precision, self.until_layer),
        };
        let divided = |params: Params| match self.huge {
            Some(huge) => params.with_huge(huge),
            None => Ok(params),
        };
        let params = params.and_then(divided).and_then(|params| params.with_discount(self.discount));
        let params = params.and_then(|params| params.with_spawner(self.spawner));
        let best_moves = self.values == Some(StoredValues::BestMove);
        let params = params.and_then(|params| params.with_stored(self.keep, best_moves));
        params.map_err(|error| Failure::usage(failure::text(&error.into())).into())
    }
}

/// The objective of a run in words, with what else its values mean.
pub fn objective_text(params: &Params) -> String {
    let mut text = params.objective.to_string();
    if params.discount != Discount::NONE {
        text += &format!(", discount {}", params.discount);
    }
    if params.spawner == Spawner::Worst {
        text += ", against the worst tiles";
    }
    text
}

/// The rules of a run in words, behind its board and objective.
pub fn rules_text(spawn4: &str, discount: Discount, spawner: Spawner) -> String {
    let tiles = match spawner {
        Spawner::Random => format!("4s spawn with {spawn4}"),
        Spawner::Worst => "the worst tiles spawn".to_owned(),
    };
    if discount == Discount::NONE { tiles } else { format!("{tiles}, discount {discount}") }
}

/// Requires that games by chance are worth what the values of a run say of them.
pub fn require_usual_rules(params: &Params) -> Result<()> {
    if has_usual_rules(params) {
        return Ok(());
    }
    let rules = rules_text(&params.spawn4.to_string(), params.discount, params.spawner);
    Err(Failure::usage(format!(
        "--run: it is of {}, where {rules}: expected a run of score or reach:TILE, without a discount, where tiles come by \
         chance",
        params.objective
    ))
    .into())
}

/// Which layers' values a run stores, in words, and whether best moves.
pub fn kept_text(kept: KeptLayers, best_moves: bool) -> String {
    let values = match kept {
        KeptLayers::ALL => "all".to_owned(),
        KeptLayers::STARTS => "those of the starts".to_owned(),
        _ => format!("{} in every {}", kept.width(), kept.period()),
    };
    if best_moves { format!("{values}; of all layers best moves") } else { values }
}
