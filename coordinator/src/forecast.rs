//! What a run takes of the disk: as a whole before it begins, and what is left of it while it is worked on.

use exact2048_game::{KeptLayers, Layer, Params, Precision};
use exact2048_solution::{Holdings, LayerCounts, LayerRange, Phase, ReachSource, Recipe, Segment};

use crate::Workload;

/// Bytes that a score of 32 bits takes when it is stored and compressed, by the decimal logarithm of the number of
/// states of its layer: measured on 3x3, 5x2 and, with 64 bits, 4x3. The more states there are, the more values occur
/// more than once.
const SCORE_BYTES: [(f64, f64); 3] = [(4.7, 1.87), (6.0, 1.65), (8.2, 1.36)];

/// Bytes that a probability of 32 bits takes when it is stored, by how many exponents the wanted tile is above half the
/// number of cells: measured on 4x2, 3x3, 5x2, 4x3 and 4x4. A tile far below is certain from nearly everywhere.
const PROBABILITY_BYTES: [(f64, f64); 7] =
    [(-1.0, 0.013), (0.0, 0.08), (1.0, 0.3), (1.5, 0.55), (2.0, 1.35), (3.0, 1.95), (4.0, 2.15)];

/// The same of the largest tile of a board, which hardly any state comes to.
const BYTES_OF_LARGEST: f64 = 1.75;

/// How many times as many bytes a value of 64 bits takes.
const WIDE: f64 = 1.46;

/// Bytes of the best move of a state, coded, measured: 0.08 on 5x2, 0.1 on 3x3.
const BEST_MOVE_BYTES: f64 = 0.09;

/// How many times the bytes of their contents files take: there are blocks that are not full, names, and the journal.
const OVERHEAD: f64 = 1.01;

/// Bytes of a run without a layer: manifest, lock, folders, and some records.
const FIXED_BYTES: f64 = 200e3;

/// Bytes that the reach takes for each state, by the decimal logarithm of the number of states of the layer: measured
/// on whole runs of 4x2, 3x3, 5x2, 4x3 and 4x4. The more states a layer has, the larger is the part of its entries that is
/// reachable, and the less there is to say about each.
const REACH_BYTES: [(f64, f64); 4] = [(4.0, 0.12), (4.7, 0.087), (6.0, 0.057), (8.2, 0.0325)];

/// Rows for each of which the reach takes as much as for a state, at most: where half of them occur it has to say which.
const STATES_A_ROW: f64 = 0.8;

/// Interpolates measurements between these points.
fn interpolated(measured: &[(f64, f64)], x: f64) -> f64 {
    let at = measured.partition_point(|point| point.0 < x).clamp(1, measured.len() - 1);
    let ((low, below), (high, above)) = (measured[at - 1], measured[at]);
    let share = ((x - low) / (high - low)).clamp(0.0, 1.0);
    below + share * (above - below)
}

/// The bits that it takes to say for something that is so with this probability whether it is so.
fn bits(probability: f64) -> f64 {
    let of = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    of(probability) + of(1.0 - probability)
}

/// What the layers of a run take.
#[derive(Clone, Debug)]
pub struct Forecast {
    layers: Vec<LayerBytes>,
    params: Params,
}

/// What a layer takes, in bytes.
#[derive(Clone, Copy, Default, Debug)]
struct LayerBytes {
    reach: f64,
    values: f64,
    /// Best moves, where the run stores them.
    best_moves: f64,
}

impl LayerBytes {
    /// What is added on the way down.
    fn of_the_way_down(self, keeps_values: bool) -> f64 {
        self.best_moves + if keeps_values { self.values } else { 0.0 }
    }
}

/// What a run that keeps some layers takes of the disk.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForecastTotals {
    /// Bytes at most, where reach stays until the way down has passed it.
    pub peak_bytes: u64,
    /// Bytes at most where as much reach as possible is enumerated twice: with less disk it cannot be solved.
    pub least_bytes: u64,
    /// Bytes of the finished run.
    pub end_bytes: u64,
}

/// The reach that has to be removed so that the rest of a way down fits on the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relief {
    /// Ranges of reach that are to be enumerated again, later.
    pub removed: Vec<LayerRange>,
    /// Bytes that are missing even so.
    pub missing_bytes: u64,
}

impl Forecast {
    /// The forecast for a run.
    pub fn new(params: &Params, workload: &Workload) -> Self {
        let wide = match params.precision {
            Precision::Bits32 => 1.0,
            Precision::Bits64 => WIDE,
        };
        let of_layer = |layer: Layer| {
            let (states, (rows, occurring)) = (workload.states(layer), workload.occurring(layer));
            let tens = states.max(1.0).log10();
            let value = match params.winning_exponent() {
                None => interpolated(&SCORE_BYTES, tens),
                Some(exponent) => probability_bytes(params, exponent),
            };
            let described = states + STATES_A_ROW * rows * bits(occurring);
            let reach = described * interpolated(&REACH_BYTES, tens) * OVERHEAD;
            let best_moves = if params.best_moves { states * BEST_MOVE_BYTES * OVERHEAD } else { 0.0 };
            LayerBytes { reach, values: states * wide * value * OVERHEAD, best_moves }
        };
        let layers = Layer::FIRST.to(params.last_layer()).map(of_layer).collect();
        Self { layers, params: params.clone() }
    }

    /// The forecast for an enumerated run, whose numbers of states are known. Cost: as [`Workload::new`].
    pub fn of_counts(params: &Params, counts: &[LayerCounts]) -> Self {
        let mut states = vec![0.0; params.last_layer().index() + 1];
        for counts in counts {
            if let Some(states) = states.get_mut(counts.layer.index()) {
                *states = counts.states as f64;
            }
        }
        Self::new(params, &Workload::new(params).with_states(states))
    }

    /// What the whole run takes if it keeps these layers, without what has to be free for what is being written.
    pub fn whole(&self, kept: KeptLayers) -> ForecastTotals {
        let enumerates_only = self.params.until_layer.is_some();
        let params = self.params.clone().with_kept(kept);
        let stays = |n: usize| params.keeps_reach(Layer::nth(n));
        let all: f64 = self.layers.iter().map(|layer| layer.reach).sum();
        let (mut taken, mut peak, mut end, mut between, mut most_between) =
            (all, all, 0.0_f64, 0.0_f64, 0.0_f64);
        for (n, bytes) in self.layers.iter().enumerate().rev() {
            if stays(n) {
                let added =
                    if enumerates_only { 0.0 } else { bytes.of_the_way_down(kept.keeps(Layer::nth(n))) };
                taken += added;
                end += added + bytes.reach;
            } else {
                between += bytes.reach;
                most_between = most_between.max(between);
            }
            peak = peak.max(taken);
            if ends_cut(&params, n) {
                taken -= between;
                between = 0.0;
            }
        }
        let with = |bytes: f64| (FIXED_BYTES + bytes) as u64;
        ForecastTotals { peak_bytes: with(peak), least_bytes: with(end + most_between), end_bytes: with(end) }
    }

    /// This forecast, if a stored value turns out to take `value_bytes` bytes.
    #[must_use]
    pub fn with_value_bytes(mut self, counts: &[LayerCounts], value_bytes: f64) -> Self {
        for counts in counts {
            if let Some(layer) = self.layers.get_mut(counts.layer.index()) {
                layer.values = counts.states as f64 * value_bytes * OVERHEAD;
            }
        }
        self
    }

    /// Bytes that a segment adds in a run that keeps what the parameters say.
    pub fn added_bytes(&self, segment: Segment) -> u64 {
        let of_layer = |layer: Layer| {
            let bytes = self.layers.get(layer.index()).copied().unwrap_or_default();
            match segment.phase {
                Phase::Enumerate => bytes.reach,
                Phase::BackUp => bytes.of_the_way_down(self.params.kept.keeps(layer)),
            }
        };
        segment.first.to(segment.last).map(of_layer).sum::<f64>() as u64
    }

    /// The most bytes that the reach of layers between two cuts takes.
    fn most_between(&self) -> f64 {
        let add = |(sum, most): (f64, f64), (n, bytes): (usize, &LayerBytes)| {
            let sum = if self.params.keeps_reach(Layer::nth(n)) { 0.0 } else { sum + bytes.reach };
            (sum, most.max(sum))
        };
        self.layers.iter().enumerate().fold((0.0, 0.0), add).1
    }

    /// Which reach has to be removed before the way down goes on, so that the run, of which `holdings` is committed,
    /// fits into `free_bytes` to its end. `reach_bytes` says what a range of stored reach takes. `free_bytes` is
    /// negative where more is taken already than may be.
    pub fn relief(
        &self,
        holdings: &Holdings,
        reach_bytes: impl Fn(LayerRange) -> u64,
        free_bytes: i64,
    ) -> Relief {
        let recipe = Recipe::new(&self.params, holdings);
        let repeatable = recipe.repeatable();
        let levels = self.levels(holdings, &recipe, &reach_bytes);
        // The highest level from each layer upward: what is removed further below lowers all of it.
        let mut above = levels;
        for n in (0..above.len().saturating_sub(1)).rev() {
            above[n] = above[n].max(above[n + 1]);
        }
        let (mut free, mut freed, mut removed) = (free_bytes as f64, 0.0, Vec::new());
        let mut ranges = repeatable.into_iter().peekable();
        loop {
            let lowest = ranges.peek().map_or(0, |range| range.first.index());
            let level = above.get(lowest).copied().unwrap_or_default();
            if level - freed <= free {
                return Relief { removed, missing_bytes: 0 };
            }
            match ranges.next() {
                Some(range) => {
                    if removed.is_empty() {
                        // What is removed is enumerated again, the layers between two cuts at a time: these need room.
                        free -= self.most_between();
                    }
                    freed += reach_bytes(range) as f64;
                    removed.push(range);
                }
                None => return Relief { removed, missing_bytes: (level - freed - free) as u64 },
            }
        }
    }

    /// The most bytes beside what an enumerated run takes now that its way down takes at a time.
    pub fn still_needed(&self, holdings: &Holdings, reach_bytes: impl Fn(LayerRange) -> u64) -> u64 {
        let recipe = Recipe::new(&self.params, holdings);
        self.levels(holdings, &recipe, &reach_bytes).into_iter().fold(0.0, f64::max) as u64
    }

    /// For each layer, how many bytes more than now the run takes when the way down has come to it.
    fn levels(
        &self,
        holdings: &Holdings,
        recipe: &Recipe<'_>,
        reach_bytes: &impl Fn(LayerRange) -> u64,
    ) -> Vec<f64> {
        let mut backed_up = vec![false; self.layers.len()];
        for commit in holdings.commits().filter(|commit| commit.phase == Phase::BackUp) {
            let covered = (commit.last.index() + 1).saturating_sub(commit.first.index());
            backed_up.iter_mut().skip(commit.first.index()).take(covered).for_each(|layer| *layer = true);
        }
        // Bytes of reach that are removed when a layer has values.
        let mut freed = vec![0.0; self.layers.len()];
        for range in recipe.removable() {
            freed[range.first.index()] += reach_bytes(range) as f64;
        }
        let (mut level, mut again, mut passed) = (0.0, 0.0, 0.0);
        let mut levels = vec![0.0; self.layers.len()];
        for n in (0..self.layers.len()).rev() {
            let bytes = self.layers[n];
            if self.params.keeps_reach(Layer::nth(n)) {
                let added = bytes.of_the_way_down(self.params.kept.keeps(Layer::nth(n)));
                level += if backed_up[n] { 0.0 } else { added };
            } else if !backed_up[n] && recipe.reach(Layer::nth(n)) == ReachSource::Recomputed {
                again += bytes.reach;
            }
            levels[n] = level + again;
            passed += freed[n];
            if ends_cut(&self.params, n) {
                level -= passed;
                (again, passed) = (0.0, 0.0);
            }
        }
        levels
    }
}

/// Bytes of a stored probability of a run to this tile, with 32 bits.
fn probability_bytes(params: &Params, exponent: u8) -> f64 {
    if exponent >= params.tile_bound() {
        return BYTES_OF_LARGEST;
    }
    interpolated(&PROBABILITY_BYTES, f64::from(exponent) - params.cells() as f64 / 2.0)
}

/// Whether the reach above a layer, up to the next kept ones, goes when its values are committed: values of a cut are
/// committed with its lower layer.
fn ends_cut(params: &Params, n: usize) -> bool {
    let keeps = |n: usize| params.keeps_reach(Layer::nth(n));
    keeps(n) && n.checked_sub(1).is_none_or(|below| !keeps(below))
}
