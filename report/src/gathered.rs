//! What a report says of a run, as numbers.

use exact2048_game::board::EXPONENTS;
use exact2048_game::{Layer, Params, certainty};
use exact2048_solution::{StartValues, ValueSums};
use exact2048_stats::PlayStatistics;

/// How many numbers of empty cells there are, from 0 to the most cells of a board.
pub const EMPTIES: usize = 17;

/// A solved run, as it is reported.
#[derive(Clone, PartialEq, Debug)]
pub struct RunReport {
    /// What the run is called in the report.
    pub name: String,
    /// Its parameters.
    pub params: Params,
    /// What tells it from other runs.
    pub identity: RunIdentity,
    /// What the starts are worth.
    pub starts: StartValues,
    /// The mean over the starts up to symmetry, each counted once, as some publish it.
    pub canonical_starts: f64,
    /// The layers, ascending.
    pub layers: Vec<LayerReport>,
    /// Of which layers there are values.
    pub values: ReportedValues,
    /// What perfect play comes to.
    pub play: ReportedPlay,
}

/// What tells a run from others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunIdentity {
    /// The identity that it was given when it was begun.
    pub run_id: String,
    /// The program that began it.
    pub created_by: String,
    /// The version of its format.
    pub format_version: u32,
    /// Its fingerprint.
    pub fingerprint: u128,
    /// Its shards of reachable states: how many, and their bytes.
    pub reach_shards: (u64, u64),
    /// Its shards of values and best moves: how many, and their bytes.
    pub values_shards: (u64, u64),
}

/// Of which layers values are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportedValues {
    /// Of all: what is not stored is worked out.
    All,
    /// Of those whose values are stored.
    Stored,
    /// Of none.
    None,
}

/// What is reported of perfect play.
#[derive(Clone, PartialEq, Debug)]
pub enum ReportedPlay {
    /// What it comes to.
    Statistics(PlayStatistics),
    /// Statistics were not asked for.
    LeftOut,
    /// By the rules of the run games are not worth what values say: a discount, the worst tiles, or chances to lose.
    OtherRules,
}

impl ReportedPlay {
    /// The statistics, where there are some.
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
    /// Its states, up to symmetry.
    pub states: u64,
    /// Its afterstates, up to symmetry.
    pub afterstates: u64,
    /// Its states in which no move is legal; `None` where it is not stored any more which states there are.
    pub dead: Option<u64>,
    /// Entries of its blocks: rows × columns, reachable or not.
    pub entries: u64,
    /// Boards with this sum of tiles that could be states, up to symmetry.
    pub boards: u128,
    /// Whether its values are stored.
    pub is_stored: bool,
    /// What is summed up over its states, as far as that was looked at.
    pub sums: StateSums,
}

/// What is summed up over the states of a layer, or of all layers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StateSums {
    /// Their values.
    pub values: ValueSums,
    /// The same, by the exponent of the largest tile.
    pub by_largest: [ValueSums; EXPONENTS],
    /// How many states have each number of empty cells.
    pub empties: [u64; EMPTIES],
    /// Their moves.
    pub moves: MoveCounts,
}

/// Moves of states, on their canonical boards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MoveCounts {
    /// States by the number of their legal moves.
    pub legal: [u64; 5],
    /// States by their best move: left, right, up, down. Of several best ones the first is counted; of a run that stores best
    /// moves, and whose values are not worked out, the one that is stored.
    pub best: [u64; 4],
    /// States of which several moves are best, as far as values say so.
    pub several_best: u64,
}

impl StateSums {
    /// Adds what is summed up over other states, after these.
    pub fn append(&mut self, other: &Self) {
        self.values.append(&other.values);
        self.by_largest.iter_mut().zip(&other.by_largest).for_each(|(sum, more)| sum.append(more));
        add(&mut self.empties, &other.empties);
        add(&mut self.moves.legal, &other.moves.legal);
        add(&mut self.moves.best, &other.moves.best);
        self.moves.several_best += other.moves.several_best;
    }

    /// States that were looked at.
    pub fn states(&self) -> u64 {
        self.empties.iter().sum()
    }

    /// States whose moves were looked at.
    pub fn moved(&self) -> u64 {
        self.moves.legal.iter().sum()
    }
}

fn add(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl RunReport {
    /// All states.
    pub fn states(&self) -> u64 {
        self.layers.iter().map(|layer| layer.states).sum()
    }

    /// All afterstates.
    pub fn afterstates(&self) -> u64 {
        self.layers.iter().map(|layer| layer.afterstates).sum()
    }

    /// The value of the starts, with its bound or with the proof.
    #[must_use]
    pub fn start_text(&self) -> String {
        let (params, starts) = (&self.params, &self.starts);
        let last =
            self.layers.iter().rev().find(|layer| layer.states > 0).map_or(Layer(0), |layer| layer.layer);
        let proved = certainty::proved_of_starts(params, starts.expected, last);
        certainty::value_text(params, starts.expected, starts.error_bound, proved)
    }

    /// All states in which no move is legal, where that is known of all layers.
    pub fn dead(&self) -> Option<u64> {
        self.layers.iter().map(|layer| layer.dead).sum()
    }

    /// Sums over the states of all layers that were looked at.
    pub fn sums(&self) -> StateSums {
        let mut sums = StateSums::default();
        self.layers.iter().for_each(|layer| sums.append(&layer.sums));
        sums
    }

    /// Layers whose states should have been looked at, but not all were: it is not stored any more which states they
    /// have, or which states the layers above them have that their values or moves follow from.
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
