//! The numbers of a report on a run.

use exact2048_game::board::EXPONENTS;
use exact2048_game::{Layer, Params, certainty};
use exact2048_solution::{StartValues, ValueSums};
use exact2048_stats::PlayStatistics;

/// Number of possible counts of empty cells, from 0 to the 16 cells of the largest board.
pub const EMPTIES: usize = 17;

/// The report on a solved run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunReport {
    /// The run's name in the report.
    pub name: String,
    /// Its parameters.
    pub params: Params,
    /// Its identity.
    pub identity: RunIdentity,
    /// Values of the starts.
    pub starts: StartValues,
    /// Mean value of the starts up to symmetry. Each start counts once, as in some publications.
    pub canonical_starts: f64,
    /// The layers, ascending.
    pub layers: Vec<LayerReport>,
    /// Layers whose values are reported.
    pub values: ReportedValues,
    /// Statistics of perfect play.
    pub play: ReportedPlay,
}

/// Facts that identify a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunIdentity {
    /// Its random identifier.
    pub run_id: String,
    /// The program that created it.
    pub created_by: String,
    /// The version of its format.
    pub format_version: u32,
    /// Its fingerprint.
    pub fingerprint: u128,
    /// Number and bytes of its shards of reachable states.
    pub reach_shards: (u64, u64),
    /// Number and bytes of its shards of values and best moves.
    pub values_shards: (u64, u64),
}

/// Layers whose values are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportedValues {
    /// All layers; values that are not stored are computed.
    All,
    /// The layers whose values are stored.
    Stored,
    /// No layer.
    None,
}

/// Report on perfect play.
#[derive(Clone, PartialEq, Debug)]
pub enum ReportedPlay {
    /// The statistics.
    Statistics(PlayStatistics),
    /// The caller did not request statistics.
    LeftOut,
    /// The run's values do not describe random games, because it has a discount, worst-case spawns, or probabilities of
    /// losing.
    OtherRules,
}

impl ReportedPlay {
    /// The statistics, if reported.
    pub fn statistics(&self) -> Option<&PlayStatistics> {
        match self {
            Self::Statistics(found) => Some(found),
            Self::LeftOut | Self::OtherRules => None,
        }
    }
}

/// A layer of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct LayerReport {
    /// The layer.
    pub layer: Layer,
    /// Number of its states, up to symmetry.
    pub states: u64,
    /// Number of its afterstates, up to symmetry.
    pub afterstates: u64,
    /// Number of its states without a legal move; `None` if the run no longer stores its states.
    pub dead: Option<u64>,
    /// Number of entries of its blocks (rows × columns), reachable or not.
    pub entries: u64,
    /// Number of boards with this tile sum that could be states, up to symmetry.
    pub boards: u128,
    /// Whether its values are stored.
    pub is_stored: bool,
    /// Sums over its reported states.
    pub sums: StateSums,
}

/// Sums over the states of a layer, or of all layers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StateSums {
    /// Sums of their values.
    pub values: ValueSums,
    /// Sums of their values, by the exponent of the largest tile.
    pub by_largest: [ValueSums; EXPONENTS],
    /// Number of states by the number of empty cells.
    pub empties: [u64; EMPTIES],
    /// Counts of their moves.
    pub moves: MoveCounts,
}

/// Counts of the moves of states, on their canonical boards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MoveCounts {
    /// Number of states by the number of legal moves.
    pub legal: [u64; 5],
    /// Number of states by best move: left, right, up, down.
    ///
    /// The first of several best moves counts. If only best moves are stored and no values are computed, the stored move
    /// counts.
    pub best: [u64; 4],
    /// Number of states with several best moves; 0 if values are unknown.
    pub several_best: u64,
}

impl StateSums {
    /// Adds the sums over later states.
    pub fn append(&mut self, other: &Self) {
        self.values.append(&other.values);
        self.by_largest.iter_mut().zip(&other.by_largest).for_each(|(sum, more)| sum.append(more));
        add(&mut self.empties, &other.empties);
        add(&mut self.moves.legal, &other.moves.legal);
        add(&mut self.moves.best, &other.moves.best);
        self.moves.several_best += other.moves.several_best;
    }

    /// Number of reported states.
    pub fn states(&self) -> u64 {
        self.empties.iter().sum()
    }

    /// Number of states with reported moves.
    pub fn moved(&self) -> u64 {
        self.moves.legal.iter().sum()
    }
}

fn add(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl RunReport {
    /// Number of all states.
    pub fn states(&self) -> u64 {
        self.layers.iter().map(|layer| layer.states).sum()
    }

    /// Number of all afterstates.
    pub fn afterstates(&self) -> u64 {
        self.layers.iter().map(|layer| layer.afterstates).sum()
    }

    /// The value of the starts, with its error bound or its proof.
    #[must_use]
    pub fn start_text(&self) -> String {
        let (game, starts) = (self.params.game(), &self.starts);
        let last =
            self.layers.iter().rev().find(|layer| layer.states > 0).map_or(Layer(0), |layer| layer.layer);
        let proved = certainty::proved_of_starts(game, starts.expected, last);
        certainty::value_text(game, starts.expected, starts.error_bound, proved)
    }

    /// Number of states without a legal move, if known for all layers.
    pub fn dead(&self) -> Option<u64> {
        self.layers.iter().map(|layer| layer.dead).sum()
    }

    /// Sums over the reported states of all layers.
    pub fn sums(&self) -> StateSums {
        let mut sums = StateSums::default();
        self.layers.iter().for_each(|layer| sums.append(&layer.sums));
        sums
    }

    /// Layers that the report should cover completely, but cannot.
    ///
    /// The run no longer stores their states, or the states of higher layers that determine their values or moves.
    pub fn gaps(&self) -> Vec<Layer> {
        let is_gap = |layer: &&LayerReport| match self.values {
            ReportedValues::All => layer.sums.moved() < layer.states,
            ReportedValues::Stored => layer.is_stored && layer.sums.states() < layer.states,
            ReportedValues::None => false,
        };
        self.layers.iter().filter(is_gap).map(|layer| layer.layer).collect()
    }

    /// The first and the last layer.
    pub fn range(&self) -> (u32, u32) {
        let of = |layer: Option<&LayerReport>| layer.map_or(Layer::FIRST.0, |layer| layer.layer.0);
        (of(self.layers.first()), of(self.layers.last()))
    }
}
