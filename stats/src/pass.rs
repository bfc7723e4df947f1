//! The pass upward through the layers, along best moves.
//!
//! A state sends its chance to the afterstate of its best move, and an afterstate its own to the states after a spawn.
//! All numbers are positive, so that the error of a sum is bounded by counting roundings; chances below a limit are not
//! followed, and their sum bounds what is lost by that (`docs/dev/error-bound.md`, "Chances").

use std::collections::BTreeMap;

use exact2048_game::packed::PackedRules;
use exact2048_game::spawn_images::{SpawnImages, Spawned};
use exact2048_game::{Board, Discount, Layer, Objective, Params, SpawnKind, Spawner, rules};
use exact2048_solution::{Asking, Oracle, OracleOptions, QueryError};

use crate::best::{BestMoves, BestOfLayer};
use crate::chances::{
    BUCKETS, Buckets, Chance, ChanceBucket, ChanceList, ChanceLists, ChanceTable, LEAST_CHANCE, SpawnChances,
};
use crate::outcome::{EXPONENTS, LayerStatistics, PlayStatistics};

/// Chances below this are not followed unless told otherwise.
pub const LEAST_FOLLOWED: f64 = 1e-18;

/// Whether games by chance are worth what the values of a run say of them: others have no statistics.
#[must_use]
pub fn has_usual_rules(params: &Params) -> bool {
    let is_loss = matches!(params.objective, Objective::Lose { .. });
    !is_loss && params.discount == Discount::NONE && params.spawner == Spawner::Random
}

/// What the statistics may take, and how far chances are followed.
#[derive(Clone, Copy, Debug)]
pub struct StatsLimits {
    /// Bytes of states that are held at once, beside what the oracle takes.
    pub bytes: u64,
    /// Chances below this are not followed; at least [`LEAST_CHANCE`].
    pub least_chance: f64,
}

impl StatsLimits {
    /// Shares some memory out: what the states may take, and the oracle that is asked about them with its parts of the run, a
    /// cone that is being solved, and those that were.
    #[must_use]
    pub fn within(memory_bytes: u64, least_chance: f64) -> (Self, OracleOptions) {
        let options = OracleOptions {
            cache_bytes: memory_bytes / 8,
            cone_bytes: memory_bytes / 8 * 3,
            solved_bytes: memory_bytes / 4,
            cone_files: None,
        };
        (Self { bytes: memory_bytes / 4, least_chance }, options)
    }
}

/// How far the statistics are.
#[derive(Clone, Copy, Debug)]
pub struct StatsProgress {
    /// The layer that was finished.
    pub layer: u32,
    /// The last layer that there can be.
    pub last_layer: u32,
    /// States so far.
    pub states: u64,
    /// The share of the work that is done: that of the run's states in the layers so far.
    pub share: f64,
}

/// Why there are no statistics.
#[derive(Debug, thiserror::Error)]
pub enum StatsError {
    /// The run does not answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The states of a few layers take too much memory.
    #[error(
        "the states around layer {layer} that games come to take {bytes} bytes, and {limit} are allowed: allow more, or \
         do not follow such small chances"
    )]
    Memory {
        /// The layer.
        layer: u32,
        /// Bytes that are taken.
        bytes: u64,
        /// Bytes that may be taken.
        limit: u64,
    },
}

/// Statistics of perfect play: in each state the best move of its canonical image, of equal ones the first, as the oracle
/// says. The result is the same whatever the threads, which are those of the rayon pool that this is called in.
///
/// Where whole layers fit the memory of the oracle, they are read one after the other, which costs half a microsecond for
/// each state of the run, and as much for each state that games come to. Elsewhere the oracle is asked about the latter
/// alone: some microseconds for each, and what it takes for the values that are not stored, those of all states that moves
/// from there lead to, up to the next stored layers. Memory: some 30 bytes for each state of about four layers that games
/// come to, beside the oracle's.
///
/// # Errors
///
/// [`StatsError::Memory`], and those of the oracle.
pub fn perfect_play(
    oracle: &Oracle,
    asking: &Asking<'_>,
    limits: StatsLimits,
    mut progress: impl FnMut(StatsProgress),
) -> Result<PlayStatistics, StatsError> {
    let pass = Pass::new(oracle, limits);
    let mut best = BestMoves::new(oracle, asking);
    let last_layer = pass.params.last_layer();
    let mut sums = Sums::default();
    let mut ahead: BTreeMap<Layer, ChanceTable> = BTreeMap::new();
    pass.start(&mut ahead);
    let mut lists = ChanceLists::new(&pass.buckets);
    let counts = oracle.layer_counts();
    let of_run: u64 = counts.iter().map(|counts| counts.states).sum();
    let (mut counts, mut passed, mut states_so_far) = (counts.into_iter().peekable(), 0, 0);
    while let Some((layer, states)) = ahead.pop_first() {
        states_so_far += states.len() as u64;
        let best = best.of_layer(layer, &states)?;
        let mut afters = ChanceTable::with_room_of(&states);
        let decide = |bucket: &ChanceBucket, sent: &mut ChanceList<'_>| pass.decide(bucket, sent, &best);
        let (found, _) = states.send_moves(&mut afters, &mut lists, 2, false, decide);
        sums.take_layer(layer, &states, found)?;
        let mut above = SpawnKind::ALL.map(|spawn| {
            let begun = ahead.remove(&layer.after(spawn));
            begun.unwrap_or_else(|| ChanceTable::with_room_of(&states))
        });
        let [with_2, with_4] = &mut above;
        let spawn = |bucket: &ChanceBucket, targets: &mut [SpawnChances<'_>; 2]| pass.spawn(bucket, targets);
        let (dropped, _) = afters.send_spawns([with_2, with_4], 2, false, spawn);
        sums.dropped += dropped.into_iter().sum::<f64>();
        sums.roundings = sums.roundings.max(afters.roundings()).max(states.roundings());
        sums.longest = sums.longest.max(states.longest() as u64);
        let tables = [&states, &afters].into_iter().chain(&above).map(ChanceTable::bytes);
        let bytes = (lists.bytes() + tables.sum::<usize>()) as u64;
        if bytes > limits.bytes {
            return Err(StatsError::Memory { layer: layer.0, bytes, limit: limits.bytes });
        }
        for (spawn, states) in SpawnKind::ALL.into_iter().zip(above) {
            if !states.is_empty() {
                ahead.insert(layer.after(spawn), states);
            }
        }
        while let Some(counts) = counts.next_if(|counts| counts.layer <= layer) {
            passed += counts.states;
        }
        let share = passed as f64 / of_run.max(1) as f64;
        progress(StatsProgress { layer: layer.0, last_layer: last_layer.0, states: states_so_far, share });
    }
    Ok(sums.into_statistics(pass.params))
}

/// What is the same for all layers.
struct Pass<'a> {
    params: &'a Params,
    packed: PackedRules,
    spawn_images: SpawnImages,
    buckets: Buckets,
    least_chance: f64,
    /// Weights of a spawned 2 and 4, and their sum.
    weights: [f64; 3],
}

impl<'a> Pass<'a> {
    fn new(oracle: &'a Oracle, limits: StatsLimits) -> Self {
        let params = oracle.params();
        let spawn4 = params.spawn4;
        let packed = PackedRules::new(params.board);
        Self {
            params,
            spawn_images: SpawnImages::new(&packed),
            buckets: Buckets::new(&packed),
            packed,
            least_chance: limits.least_chance.max(LEAST_CHANCE),
            weights: [spawn4.weight2(), spawn4.weight4(), spawn4.denominator()].map(f64::from),
        }
    }

    /// The chances of the states that a game starts with.
    fn start(&self, ahead: &mut BTreeMap<Layer, ChanceTable>) {
        let [two, four, all] = self.weights;
        let cells = self.params.cells();
        let weight = |exponent: u8| if exponent == 1 { two } else { four };
        for (board, [a, b]) in rules::starts(self.params.board) {
            let chance = weight(a) * weight(b) / (all * all * (cells * (cells - 1)) as f64);
            if chance > 0.0 {
                let states = ahead.entry(Layer(board.tile_sum(cells))).or_default();
                states.add(&self.buckets, self.packed.canonical(board), chance, 1);
            }
        }
    }

    /// Sends the chances of a bucket to its afterstates. Chances are rounded at most twice.
    fn decide(
        &self,
        bucket: &ChanceBucket,
        sent: &mut ChanceList<'_>,
        best: &BestOfLayer<'_>,
    ) -> Result<BucketSums, QueryError> {
        let mut sums = BucketSums::default();
        let (mut asked, mut open) = (Vec::new(), Vec::new());
        for &Chance { board, chance, .. } in &bucket.entries {
            sums.reached += chance;
            let moves = self.packed.moves(board);
            let mut legal = moves.iter();
            match (legal.next(), legal.next()) {
                (None, _) => sums.ended[self.largest(board)] += chance,
                // Nothing is to be chosen.
                (Some((_, after, score)), None) => self.make(after, score, chance, &mut sums, sent),
                _ => {
                    asked.push(board);
                    open.push((moves, chance));
                }
            }
        }
        for ((moves, chance), best) in open.into_iter().zip(best.of(&asked)?) {
            let best = best.and_then(|best| moves.get(best));
            let (after, score) = best.expect("one of several legal moves is best");
            self.make(after, score, chance, &mut sums, sent);
        }
        Ok(sums)
    }

    /// Makes a move.
    fn make(&self, after: Board, score: u32, chance: f64, sums: &mut BucketSums, sent: &mut ChanceList) {
        sums.moves += chance;
        sums.score += chance * f64::from(score);
        match self.params.winning_exponent() {
            Some(target) if self.packed.has(after, target) => {
                sums.won += chance;
                sums.ended[usize::from(target)] += chance;
            }
            _ => sent.push(self.packed.canonical(after), chance),
        }
    }

    /// Sends the chances of afterstates to the states after a spawn; gives what was too little to be sent. Chances are
    /// rounded twice.
    fn spawn(&self, bucket: &ChanceBucket, targets: &mut [SpawnChances<'_>; 2]) -> f64 {
        let [two, four, all] = self.weights;
        let (mut dropped, mut spawned) = (0.0, Spawned::default());
        for &Chance { board, chance, .. } in &bucket.entries {
            let share = chance / (all * f64::from(self.packed.empty(board).count_ones()));
            let shares = [share * two, share * four];
            self.spawn_images.find(&self.packed, board, &mut spawned);
            for ((states, share), target) in spawned.each().into_iter().zip(shares).zip(&mut *targets) {
                if share >= self.least_chance {
                    target.push_all(states, share);
                } else {
                    dropped += share * states.len() as f64;
                }
            }
        }
        dropped
    }

    /// The exponent of the largest tile.
    fn largest(&self, board: Board) -> usize {
        (0..self.params.cells()).map(|cell| usize::from(board.get(cell))).max().unwrap_or(0)
    }
}

/// What the states of a bucket add up to.
#[derive(Default)]
struct BucketSums {
    reached: f64,
    score: f64,
    moves: f64,
    won: f64,
    ended: [f64; EXPONENTS],
}

/// What layers add up to.
#[derive(Default)]
struct Sums {
    layers: Vec<LayerStatistics>,
    score: f64,
    moves: f64,
    won: f64,
    /// Chances that were too small to be followed.
    dropped: f64,
    /// Roundings that went into any chance.
    roundings: u64,
    /// Most states whose contributions were added one after the other.
    longest: u64,
}

impl Sums {
    fn take_layer(
        &mut self,
        layer: Layer,
        states: &ChanceTable,
        found: Vec<Result<BucketSums, QueryError>>,
    ) -> Result<(), QueryError> {
        let mut of_layer = LayerStatistics {
            layer: layer.0,
            states: states.len() as u64,
            reached: 0.0,
            ended: [0.0; EXPONENTS],
        };
        for bucket in found {
            let BucketSums { reached, score, moves, won, ended } = bucket?;
            of_layer.reached += reached;
            self.score += score;
            self.moves += moves;
            self.won += won;
            of_layer.ended.iter_mut().zip(ended).for_each(|(sum, more)| *sum += more);
        }
        self.layers.push(of_layer);
        Ok(())
    }

    fn into_statistics(self, params: &Params) -> PlayStatistics {
        // A game scores at most the potential of its last board, which is less than this.
        let (value, largest) = match params.objective {
            Objective::Score => (self.score, f64::from(params.last_layer().0) * params.cells() as f64),
            Objective::Reach { .. } | Objective::Lose { .. } => (self.won, 1.0),
        };
        // A chance, its product with a score, sums of a bucket, of buckets and of layers.
        let layers = u64::from(params.last_layer().0) / 2;
        let roundings = self.roundings + 1 + self.longest + BUCKETS as u64 * layers;
        let relative = roundings as f64 * f64::EPSILON / 2.0;
        let rounding = relative / (1.0 - relative);
        // A move adds at least 2 to the tile sum. The factor covers the roundings of what was dropped.
        let dropped = 2.0 * self.dropped;
        let most_moves = f64::from(params.last_layer().0) / 2.0;
        PlayStatistics {
            layers: self.layers,
            value,
            value_error: value * rounding + dropped * largest,
            moves: self.moves,
            moves_error: self.moves * rounding + dropped * most_moves,
            dropped,
            rounding,
        }
    }
}
