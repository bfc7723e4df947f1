//! Estimates the disk space of a run, both for the whole run before it begins and for the remaining work.

use exact2048_game::fixed::Scale;
use exact2048_game::{Game, KeptLayers, Layer, Params, Precision, RunContents, ValueUnit};
use exact2048_solution::{Holdings, LayerCounts, LayerRange, Phase, ReachSource, Recipe, Segment};

use crate::Workload;

/// Number of bytes of a stored, compressed 32-bit score, by the decimal logarithm of the number of states in its
/// layer. Measured on 3x3 and 5x2; the last one is estimated. Larger layers repeat more values.
const SCORE_BYTES: [(f64, f64); 3] = [(4.7, 1.58), (6.0, 1.5), (8.2, 1.36)];

/// The same for 64 bits. Measured on 4x3; the others are 1.46 times the
/// 32-bit scores at level 1, which finds as much in 64 bits.
const WIDE_SCORE_BYTES: [(f64, f64); 3] = [(4.7, 2.73), (6.0, 2.41), (8.2, 1.99)];

/// Number of bytes of a stored 32-bit probability, by the excess of the target tile's exponent over half the
/// number of cells. Measured on 4x2, 3x3, 5x2, 4x3 and 4x4. For a low exponent, nearly every state reaches
/// the tile with certainty.
const PROBABILITY_BYTES: [(f64, f64); 7] =
    [(-1.0, 0.013), (0.0, 0.08), (1.0, 0.3), (1.5, 0.55), (2.0, 1.35), (3.0, 1.95), (4.0, 2.15)];

/// Number of bytes of a stored probability of the board's largest tile. Hardly any state reaches that tile.
const BYTES_OF_LARGEST: f64 = 1.75;

/// Ratio of the size of 64-bit probabilities to the size of 32-bit ones.
const WIDE: f64 = 1.46;

/// Ratio of the size of rounded values to the size of values with 32 bits, by the number of bits that rounding drops from
/// the latter. Measured on 3x3 with the objectives score and reach:512, which differ by at most 0.03. For 19, 21
/// and 25 bits, the ratio is 0.35, 0.29 and 0.13 with reach:512 on 4x3.
const ROUNDED: [(f64, f64); 13] = [
    (0.0, 1.0),
    (7.0, 0.92),
    (11.0, 0.82),
    (13.0, 0.77),
    (14.0, 0.7),
    (15.0, 0.61),
    (17.0, 0.53),
    (19.0, 0.45),
    (21.0, 0.35),
    (23.0, 0.26),
    (25.0, 0.19),
    (27.0, 0.14),
    (29.0, 0.09),
];

/// Number of bytes of a state's coded best move. Measured: 0.08 on 5x2, 0.1 on 3x3.
const BEST_MOVE_BYTES: f64 = 0.09;

/// Number of bits after the point that stand for those of floating-point values with 32 bits.
const FLOATING_BITS: u32 = 24;

/// Ratio of the disk use of files to the size of their contents. The excess is partly filled blocks, names, and
/// the journal.
const OVERHEAD: f64 = 1.01;

/// Number of bytes of a run without layers: manifest, lock, folders, and some records.
const FIXED_BYTES: f64 = 200e3;

/// Number of bytes of reach per state, by the decimal logarithm of the number of states in the layer. Measured on
/// whole runs of 4x2, 3x3, 5x2, 4x3 and 4x4. In larger layers a larger part of the entries is reachable, so each
/// state takes fewer bits.
const REACH_BYTES: [(f64, f64); 4] = [(4.0, 0.12), (4.7, 0.087), (6.0, 0.057), (8.2, 0.0325)];

/// Largest reach of a row, in units of the reach of a state. A row takes most bytes in layers in which half of the rows
/// contain a state.
const STATES_A_ROW: f64 = 0.8;

/// Interpolates linearly between measurements.
fn interpolated(measured: &[(f64, f64)], x: f64) -> f64 {
    let at = measured.partition_point(|point| point.0 < x).clamp(1, measured.len() - 1);
    let ((low, below), (high, above)) = (measured[at - 1], measured[at]);
    let share = ((x - low) / (high - low)).clamp(0.0, 1.0);
    below + share * (above - below)
}

/// Returns the entropy in bits of an event with this probability.
fn bits(probability: f64) -> f64 {
    let of = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    of(probability) + of(1.0 - probability)
}

/// Estimated sizes of the layers of a run.
#[derive(Clone, Debug)]
pub struct Forecast {
    layers: Vec<LayerBytes>,
    /// Bytes of two checkpoints, the older of which is removed after the newer is committed.
    checkpoints: f64,
    params: Params,
}

/// Estimated sizes of a layer, in bytes.
#[derive(Clone, Copy, Default, Debug)]
struct LayerBytes {
    reach: f64,
    values: f64,
    /// Best moves, if the run stores them.
    best_moves: f64,
}

impl LayerBytes {
    /// Returns the number of bytes that the downward pass adds.
    fn of_downward_pass(self, keeps_values: bool) -> f64 {
        self.best_moves + if keeps_values { self.values } else { 0.0 }
    }
}

/// Estimated disk space of a run, for one choice of kept layers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForecastTotals {
    /// Peak bytes if the reach of a layer is removed only after the downward pass has finished the layer.
    pub peak_bytes: u64,
    /// Peak bytes if as much reach as possible is enumerated twice. A smaller disk cannot hold the run.
    pub least_bytes: u64,
    /// Bytes of the finished run.
    pub end_bytes: u64,
}

/// Reach to remove so that the rest of the downward pass fits on the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relief {
    /// Ranges of reach to remove and to enumerate again later.
    pub removed: Vec<LayerRange>,
    /// Number of bytes that are missing even after the removal.
    pub missing_bytes: u64,
}

impl Forecast {
    /// Estimates the sizes of a run's layers.
    pub fn new(params: &Params, workload: &Workload) -> Self {
        let ratio = rounded_ratio(params);
        let of_layer = |layer: Layer| {
            let (states, (rows, occurring)) = (workload.states(layer), workload.occurring(layer));
            let tens = states.max(1.0).log10();
            let of_value = |precision| value_bytes(params.game(), precision, tens);
            let exact = of_value(params.game().precision());
            let value = ratio.map_or(exact, |ratio| exact.min(ratio * of_value(Precision::Bits32)));
            let described = states + STATES_A_ROW * rows * bits(occurring);
            let reach = described * interpolated(&REACH_BYTES, tens) * OVERHEAD;
            let best_moves =
                if params.contents().stores_best_moves() { states * BEST_MOVE_BYTES * OVERHEAD } else { 0.0 };
            let [values, exact_values] = [value, exact].map(|bytes| states * bytes * OVERHEAD);
            (LayerBytes { reach, values, best_moves }, exact_values)
        };
        let (layers, exact): (Vec<LayerBytes>, Vec<f64>) =
            Layer::FIRST.to(params.last_layer()).map(of_layer).unzip();
        let of_two = exact.windows(2).map(|two| two[0] + two[1]);
        let checkpoints = if ratio.is_some() { 2.0 * of_two.fold(0.0, f64::max) } else { 0.0 };
        Self { layers, checkpoints, params: params.clone() }
    }

    /// Estimates the sizes of an enumerated run with known numbers of states. Cost: that of [`Workload::new`].
    pub fn of_counts(params: &Params, counts: &[LayerCounts]) -> Self {
        let mut states = vec![0.0; params.last_layer().index() + 1];
        for counts in counts {
            if let Some(states) = states.get_mut(counts.layer.index()) {
                *states = counts.states as f64;
            }
        }
        Self::new(params, &Workload::new(params).with_states(states))
    }

    /// Returns the space of the whole run if it keeps these layers. The result excludes free space for files being
    /// written.
    pub fn whole(&self, kept: KeptLayers) -> ForecastTotals {
        let enumerates_only = self.params.contents().enumerates_only();
        let contents = self.params.contents().with_kept(kept);
        let stays = |n: usize| contents.stores_reachability(Layer::nth(n));
        let all: f64 = self.layers.iter().map(|layer| layer.reach).sum();
        let (mut taken, mut peak, mut end, mut between, mut most_between) =
            (all, all, 0.0_f64, 0.0_f64, 0.0_f64);
        for (n, bytes) in self.layers.iter().enumerate().rev() {
            if stays(n) {
                let added =
                    if enumerates_only { 0.0 } else { bytes.of_downward_pass(kept.keeps(Layer::nth(n))) };
                taken += added;
                end += added + bytes.reach;
            } else {
                between += bytes.reach;
                most_between = most_between.max(between);
            }
            peak = peak.max(taken);
            if ends_cut(&contents, n) {
                taken -= between;
                between = 0.0;
            }
        }
        let with = |bytes: f64| (FIXED_BYTES + bytes) as u64;
        ForecastTotals {
            peak_bytes: with(peak + self.checkpoints),
            least_bytes: with(end + most_between + self.checkpoints),
            end_bytes: with(end),
        }
    }

    /// Replaces the estimated bytes per stored value with a measured number.
    #[must_use]
    pub fn with_value_bytes(mut self, counts: &[LayerCounts], value_bytes: f64) -> Self {
        for counts in counts {
            if let Some(layer) = self.layers.get_mut(counts.layer.index()) {
                layer.values = counts.states as f64 * value_bytes * OVERHEAD;
            }
        }
        self
    }

    /// Returns the number of bytes that a segment adds to the run.
    pub fn added_bytes(&self, segment: Segment) -> u64 {
        let of_layer = |layer: Layer| {
            let bytes = self.layers.get(layer.index()).copied().unwrap_or_default();
            match segment.phase {
                Phase::Enumerate => bytes.reach,
                Phase::BackUp => bytes.of_downward_pass(self.params.contents().kept().keeps(layer)),
            }
        };
        segment.first.to(segment.last).map(of_layer).sum::<f64>() as u64
    }

    /// Returns the largest number of bytes of reach between two cuts.
    fn most_between(&self) -> f64 {
        let add = |(sum, most): (f64, f64), (n, bytes): (usize, &LayerBytes)| {
            let sum = if self.params.contents().stores_reachability(Layer::nth(n)) {
                0.0
            } else {
                sum + bytes.reach
            };
            (sum, most.max(sum))
        };
        self.layers.iter().enumerate().fold((0.0, 0.0), add).1
    }

    /// Chooses the reach to remove before the downward pass continues, so that its remaining work fits into
    /// `free_bytes`. `holdings` are the committed ranges, and `reach_bytes` returns the size of a range of stored
    /// reach. `free_bytes` is negative if the run already exceeds its limit.
    pub fn relief(
        &self,
        holdings: &Holdings,
        reach_bytes: impl Fn(LayerRange) -> u64,
        free_bytes: i64,
    ) -> Relief {
        let recipe = Recipe::new(&self.params, holdings);
        let repeatable = recipe.repeatable();
        let levels = self.levels(holdings, &recipe, &reach_bytes);
        // The highest level among a layer and all higher layers. Removing reach of lower layers lowers this level.
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
                        // The removed reach between two cuts is enumerated again, and then needs space.
                        free -= self.most_between();
                    }
                    freed += reach_bytes(range) as f64;
                    removed.push(range);
                }
                None => return Relief { removed, missing_bytes: (level - freed - free) as u64 },
            }
        }
    }

    /// Returns the peak number of bytes that the downward pass of an enumerated run needs beyond its current
    /// bytes.
    pub fn still_needed(&self, holdings: &Holdings, reach_bytes: impl Fn(LayerRange) -> u64) -> u64 {
        let recipe = Recipe::new(&self.params, holdings);
        self.levels(holdings, &recipe, &reach_bytes).into_iter().fold(0.0, f64::max) as u64
    }

    /// Returns, for each layer, the number of bytes that the run takes beyond its current bytes when the downward
    /// pass reaches that layer.
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
        // Number of bytes of reach that become removable once a layer has values.
        let mut freed = vec![0.0; self.layers.len()];
        for range in recipe.removable() {
            freed[range.first.index()] += reach_bytes(range) as f64;
        }
        let (mut level, mut again, mut passed) = (0.0, 0.0, 0.0);
        let mut levels = vec![0.0; self.layers.len()];
        for n in (0..self.layers.len()).rev() {
            let bytes = self.layers[n];
            if self.params.contents().stores_reachability(Layer::nth(n)) {
                let added = bytes.of_downward_pass(self.params.contents().kept().keeps(Layer::nth(n)));
                level += if backed_up[n] { 0.0 } else { added };
            } else if !backed_up[n] && recipe.reach(Layer::nth(n)) == ReachSource::Recomputed {
                again += bytes.reach;
            }
            levels[n] = level + again + if backed_up[n] { 0.0 } else { self.checkpoints };
            passed += freed[n];
            if ends_cut(self.params.contents(), n) {
                level -= passed;
                (again, passed) = (0.0, 0.0);
            }
        }
        levels
    }
}

/// Bytes of a stored value in a layer with `tens` decimal digits of states.
fn value_bytes(game: &Game, precision: Precision, tens: f64) -> f64 {
    let target = game.winning_exponent().filter(|_| game.objective().unit() == ValueUnit::Probability);
    match (target, precision) {
        (None, Precision::Bits32) => interpolated(&SCORE_BYTES, tens),
        (None, Precision::Bits64) => interpolated(&WIDE_SCORE_BYTES, tens),
        (Some(exponent), Precision::Bits32) => probability_bytes(game, exponent),
        (Some(exponent), Precision::Bits64) => WIDE * probability_bytes(game, exponent),
    }
}

/// Ratio of the size of a run's rounded values to the size of values with 32 bits; `None` unless it rounds.
fn rounded_ratio(params: &Params) -> Option<f64> {
    let step = params.contents().value_step()?;
    let narrow = params.with_precision(Precision::Bits32);
    let bits = Scale::new(narrow.game()).fraction_bits().unwrap_or(FLOATING_BITS);
    Some(interpolated(&ROUNDED, step.number().log2() + f64::from(bits)))
}

/// Returns the number of bytes of a stored 32-bit probability of reaching this tile.
fn probability_bytes(game: &Game, exponent: u8) -> f64 {
    if exponent >= game.tile_bound() {
        return BYTES_OF_LARGEST;
    }
    interpolated(&PROBABILITY_BYTES, f64::from(exponent) - game.cells() as f64 / 2.0)
}

/// Returns whether the reach between a layer and the next kept layers above it is removable once the layer's values
/// are committed. The values of a cut are committed with its lower layer.
fn ends_cut(contents: &RunContents, n: usize) -> bool {
    let keeps = |n: usize| contents.stores_reachability(Layer::nth(n));
    let is_end = contents.value_step().is_none() || contents.is_resumable(Layer::nth(n)) || n == 0;
    is_end && keeps(n) && n.checked_sub(1).is_none_or(|below| !keeps(below))
}
