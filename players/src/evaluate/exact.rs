//! A player's exact expected result, from a pass over all boards that the player can reach.
//!
//! The pass visits the layers in upward order and computes the probability that a game reaches each board. A move adds
//! a board's probability to the afterstate. A spawn divides the afterstate's probability among the boards after the
//! spawn. The expected score is the sum over boards of the board's probability times the score of the chosen move.
//!
//! All terms are positive, so the relative error of a sum is at most 2⁻⁵³ times the largest number of roundings of any
//! term. The pass counts these roundings. `docs/dev/error-bound.md` has the proof ("Chances").
//!
//! The losses of a layer need the values of its boards and of its afterstates under perfect play. The pass looks up the
//! values of the boards. It computes the values of the afterstates once the next two layers are complete.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use exact2048_game::rules::Move;
use exact2048_game::spawn_images::{SpawnImages, Spawned};
use exact2048_game::{Board, Layer, SpawnKind, ValueUnit};
use exact2048_solution::Oracle;
use exact2048_stats::chances::{
    BUCKETS, Buckets, Chance, ChanceBucket, ChanceList, ChanceLists, ChancePlace, ChancePlaces, ChanceTable,
    LEAST_CHANCE, LEFT_OUT, SpawnChances,
};
use parking_lot::Mutex;
use rayon::prelude::*;

use super::EvaluateError;
use super::losses::{ChosenMove, LossTable};
use crate::engine::Engine;
use crate::player::{Decides, Player, PlayerError, PlayerSpec, Turn};

/// Limits and options of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationLimits {
    /// Largest number of bytes of boards in memory at once.
    pub bytes: u64,
    /// Smallest probability to follow; at least [`LEAST_CHANCE`] in any case. The error accounts for games not
    /// followed.
    pub least_chance: f64,
    /// Whether to compute the loss of each move, by looking up every board in the run.
    pub losses: bool,
}

/// Progress of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationProgress {
    /// The layer just finished.
    pub layer: u32,
    /// The highest layer possible.
    pub last_layer: u32,
    /// Number of boards so far.
    pub boards: u64,
}

/// Exact result of a player, without sampling.
#[derive(Clone, PartialEq, Debug)]
pub struct ExactEvaluation {
    /// Expected score, or the probability of reaching the tile.
    pub value: f64,
    /// Bound on the absolute error of `value`.
    pub error: f64,
    /// Share of games that the pass does not follow, because they reach a board that is too unlikely.
    pub left_out: f64,
    /// Number of boards that the pass follows.
    ///
    /// It counts boards up to symmetry, unless the player's moves depend on the board's orientation.
    pub boards: u64,
    /// Mean number of moves per game.
    pub moves: f64,
    /// Exponents in descending order, each with the share of games that reach it.
    ///
    /// Over all games, they range from the largest to the smallest exponent of the largest tile, without gaps.
    pub reached: Vec<(u8, f64)>,
    /// Losses of the moves, if [`EvaluationLimits::losses`] is set.
    pub losses: Option<LossTable>,
}

/// Bound on the effect of f64 rounding on the difference of two values, as a share of the larger value.
///
/// The bound allows for a few dozen roundings.
const F64_ROUNDS: f64 = 64.0 * f64::EPSILON;

/// Number of boards in one query to the oracle.
const ASKED_TOGETHER: usize = 4096;

/// Evaluates a player whose moves follow from the board, or are uniformly random.
///
/// Uses the threads of the caller's rayon pool. The result does not depend on the number of threads.
///
/// Each board takes a few hundred nanoseconds plus the player's time for a move. With losses, it takes about a
/// microsecond more. Memory holds the boards of about four layers, at about 30 bytes a board.
///
/// # Errors
///
/// [`EvaluateError::Memory`] if the boards exceed the memory limit; errors of the player and of the run.
///
/// # Panics
///
/// If the player [decides freely](Decides::Freely).
pub fn exactly(
    engine: &Engine,
    player: &PlayerSpec,
    oracle: &Arc<Oracle>,
    limits: EvaluationLimits,
    mut progress: impl FnMut(EvaluationProgress),
) -> Result<ExactEvaluation, EvaluateError> {
    assert!(player.decides() != Decides::Freely, "a player that decides freely must be sampled");
    let pass = Pass::new(engine, player, oracle, limits);
    let (first, last_layer) = (oracle.params().first_layer(), oracle.params().last_layer().0);
    let mut sums = Sums::default();
    let mut table = LossTable::new(oracle.params().game().objective());
    let mut ahead: BTreeMap<Layer, ChanceTable> = BTreeMap::from([(first, ChanceTable::default())]);
    pass.start(&mut ahead);
    // Layers whose losses are still unknown, the lowest first.
    let mut waiting: VecDeque<WaitingLayer> = VecDeque::new();
    let mut lists = ChanceLists::new(&pass.buckets);
    let mut layer = first;
    while !ahead.is_empty() {
        let states = ahead.remove(&layer).unwrap_or_default();
        sums.boards += states.len() as u64;
        let values = if limits.losses { pass.look_up(&states)? } else { Vec::new() };
        let mut afters = ChanceTable::with_room_of(&states);
        let mut choices = Vec::with_capacity(BUCKETS);
        let decide = |bucket: &ChanceBucket, sent: &mut ChanceList<'_>| pass.decide(bucket, sent);
        let (decided, moved) = states.send_moves(&mut afters, &mut lists, 2, limits.losses, decide);
        for decided in decided {
            let (found, chosen) = decided?;
            sums.take_in(&found);
            choices.push(chosen);
        }
        let [mut with_2, mut with_4] = SpawnKind::ALL.map(|spawn| {
            ahead.remove(&layer.after(spawn)).unwrap_or_else(|| ChanceTable::with_room_of(&states))
        });
        let spawn = |bucket: &ChanceBucket, targets: &mut [SpawnChances<'_>; 2]| pass.spawn(bucket, targets);
        let (dropped, spawned) = afters.send_spawns([&mut with_2, &mut with_4], 2, limits.losses, spawn);
        sums.dropped += dropped.into_iter().sum::<f64>();
        sums.roundings = sums.roundings.max(afters.roundings()).max(states.roundings());
        sums.longest = sums.longest.max(states.longest() as u64);
        let next = SpawnKind::ALL.map(|spawn| layer.after(spawn)).into_iter().zip([with_2, with_4]);
        ahead.extend(next.filter(|(_, boards)| !boards.is_empty()));
        if limits.losses {
            waiting.push_back(WaitingLayer {
                layer: layer.0,
                states,
                values,
                choices,
                moved,
                afters,
                spawned,
            });
            if waiting.len() == 3 {
                pass.settle_first(&mut waiting, &mut table);
            }
        }
        let tables = ahead.values().map(ChanceTable::bytes).chain(waiting.iter().map(WaitingLayer::bytes));
        let held = lists.bytes() + tables.sum::<usize>();
        if held as u64 > limits.bytes {
            return Err(EvaluateError::Memory { layer: layer.0, bytes: held as u64, limit: limits.bytes });
        }
        progress(EvaluationProgress { layer: layer.0, last_layer, boards: sums.boards });
        layer = layer.up(1);
    }
    while !waiting.is_empty() {
        pass.settle_first(&mut waiting, &mut table);
    }
    Ok(sums.into_exact(&pass, limits.losses.then_some(table)))
}

/// A layer with chosen moves. The pass computes the losses of these moves after the next two layers.
#[derive(Default)]
struct WaitingLayer {
    layer: u32,
    states: ChanceTable,
    /// Values of the states under perfect play, bucket by bucket.
    values: Vec<Vec<f64>>,
    /// The chosen moves, bucket by bucket; empty if the moves are random.
    choices: Vec<Vec<Option<Move>>>,
    /// Places of the states' afterstates, without the won afterstates.
    moved: Vec<ChancePlaces>,
    afters: ChanceTable,
    /// Entries of the boards after a spawned 2 and after a spawned 4, bucket by bucket and cell by cell.
    ///
    /// A board has the same bucket as its afterstate.
    spawned: Vec<[Vec<u32>; 2]>,
}

impl WaitingLayer {
    fn bytes(&self) -> usize {
        let values = size_of::<f64>() * self.states.len();
        let moved = size_of::<ChancePlace>() * self.moved.iter().map(Vec::capacity).sum::<usize>();
        let spawned = size_of::<u32>() * self.spawned.iter().flatten().map(Vec::capacity).sum::<usize>();
        self.states.bytes() + values + self.states.len() + self.afters.bytes() + moved + spawned
    }

    /// The value of a state under perfect play; `None` if its probability was too small to keep.
    fn value(&self, bucket: usize, entry: u32) -> Option<f64> {
        if entry == LEFT_OUT { None } else { Some(self.values[bucket][entry as usize]) }
    }
}

/// Context shared by all layers of an evaluation.
struct Pass<'a> {
    engine: &'a Engine,
    spawn_images: SpawnImages,
    buckets: Buckets,
    spec: &'a PlayerSpec,
    oracle: &'a Arc<Oracle>,
    decides: Decides,
    least_chance: f64,
    /// Idle players. Any thread can borrow one.
    idle: Mutex<Vec<Box<dyn Player>>>,
}

impl<'a> Pass<'a> {
    fn new(
        engine: &'a Engine,
        spec: &'a PlayerSpec,
        oracle: &'a Arc<Oracle>,
        limits: EvaluationLimits,
    ) -> Self {
        let spawn_images = SpawnImages::new(engine.packed());
        let buckets = Buckets::new(engine.packed());
        let (decides, idle) = (spec.decides(), Mutex::default());
        let least_chance = limits.least_chance.max(LEAST_CHANCE);
        Self { engine, spawn_images, buckets, spec, oracle, decides, least_chance, idle }
    }

    /// Returns the canonical form of a board if the player treats the board's images alike; otherwise the board.
    fn normal(&self, board: Board) -> Board {
        if self.is_symmetric() { self.engine.canonical(board) } else { board }
    }

    /// Whether the player treats a board and its images alike.
    fn is_symmetric(&self) -> bool {
        self.decides != Decides::ByTurnedBoard
    }

    fn is_won(&self, board: Board) -> bool {
        self.oracle.params().game().is_won(board)
    }

    /// Weights of a spawned 2 and 4, and their sum.
    fn weights(&self) -> [f64; 3] {
        let spawn4 = self.engine.spawn4();
        [spawn4.weight2(), spawn4.weight4(), spawn4.denominator()].map(f64::from)
    }

    /// Adds the probabilities of the start boards.
    fn start(&self, ahead: &mut BTreeMap<Layer, ChanceTable>) {
        let size = self.engine.size();
        for (board, chance) in self.oracle.params().game().start_probabilities() {
            if chance > 0.0 {
                let boards = ahead.entry(Layer(board.tile_sum(size))).or_default();
                boards.add(&self.buckets, self.normal(board), chance, 1);
            }
        }
    }

    /// Asks the player for moves, and adds the probabilities of a bucket's boards to their afterstates.
    ///
    /// Rounds each probability twice.
    #[allow(clippy::type_complexity, reason = "what a bucket adds to the sums, and its moves")]
    fn decide(
        &self,
        bucket: &ChanceBucket,
        sent: &mut ChanceList<'_>,
    ) -> Result<(Sums, Vec<Option<Move>>), PlayerError> {
        let by_lots = self.decides == Decides::ByEvenLots;
        let mut player =
            if by_lots || bucket.entries.is_empty() { None } else { Some(self.borrow_player()?) };
        // Players whose moves follow from the board draw no random numbers.
        let mut generator = rand::SeedableRng::seed_from_u64(0);
        let (mut sums, mut chosen) = (Sums::default(), Vec::new());
        for &Chance { board, chance, .. } in &bucket.entries {
            let moves = self.engine.moves(board);
            if moves.is_empty() {
                sums.ended[usize::from(self.engine.size().largest(board))] += chance;
                chosen.extend(player.is_some().then_some(None));
                continue;
            }
            sums.moves += chance;
            let mut make = |after: Board, score: u32, chance: f64| {
                sums.score += chance * f64::from(score);
                if self.is_won(after) {
                    sums.won += chance;
                } else {
                    sent.push(self.normal(after), chance);
                }
            };
            let Some(player) = &mut player else {
                let share = chance * (1.0 / moves.iter().count() as f64);
                for (_, after, score) in moves.iter() {
                    make(after, score, share);
                }
                continue;
            };
            let (engine, takes_idle_moves) = (self.engine, false);
            let mut turn = Turn { engine, board, moves: &moves, takes_idle_moves, generator: &mut generator };
            let direction = player.choose(&mut turn)?;
            let illegal = || PlayerError::Illegal { direction, board: board.to_text(engine.size()) };
            let (after, score) = moves.get(direction).ok_or_else(illegal)?;
            make(after, score, chance);
            chosen.push(Some(direction));
        }
        if let Some(player) = player {
            self.idle.lock().push(player);
        }
        Ok((sums, chosen))
    }

    fn borrow_player(&self) -> Result<Box<dyn Player>, PlayerError> {
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| self.spec.player(self.engine, Some(self.oracle)), Ok)
    }

    /// Adds the probabilities of afterstates to the boards after a spawn.
    ///
    /// Drops the probabilities that are too small, and returns the sum of the dropped ones.
    ///
    /// Rounds each probability twice.
    fn spawn(&self, bucket: &ChanceBucket, targets: &mut [SpawnChances<'_>; 2]) -> f64 {
        let [two, four, all] = self.weights();
        let (mut dropped, mut spawned) = (0.0, Spawned::default());
        for &Chance { board, chance, .. } in &bucket.entries {
            let share = chance / (all * f64::from(self.engine.empty_cells(board)));
            let shares = [share * two, share * four];
            if self.is_symmetric() {
                self.spawn_images.find(self.engine.packed(), board, &mut spawned);
            } else {
                spawned.find(self.engine.packed(), board);
            }
            for ((states, share), target) in spawned.each().into_iter().zip(shares).zip(&mut *targets) {
                if share >= self.least_chance {
                    target.push_all(states, share);
                } else {
                    target.skip(states.len());
                    dropped += share * states.len() as f64;
                }
            }
        }
        dropped
    }

    /// The values of states under perfect play, bucket by bucket.
    fn look_up(&self, states: &ChanceTable) -> Result<Vec<Vec<f64>>, EvaluateError> {
        let of = |bucket: &ChanceBucket| {
            let mut values = Vec::with_capacity(bucket.entries.len());
            for entries in bucket.entries.chunks(ASKED_TOGETHER) {
                let boards: Vec<Board> = entries.iter().map(|entry| entry.board).collect();
                for (value, board) in self.oracle.values(&boards, &|| true)?.into_iter().zip(boards) {
                    match value {
                        Some(value) => values.push(value),
                        // This query returns the reason why the value is missing.
                        None => {
                            return Err(self
                                .oracle
                                .evaluate(board, &|| true)
                                .map_or_else(EvaluateError::from, |_| {
                                    unreachable!("an oracle answers consistently")
                                }));
                        }
                    }
                }
            }
            Ok(values)
        };
        states.buckets.par_iter().map(of).collect()
    }

    /// Adds the losses of the moves of the first waiting layer. The next two layers, if they exist, must be complete.
    fn settle_first(&self, waiting: &mut VecDeque<WaitingLayer>, table: &mut LossTable) {
        let empty = WaitingLayer::default();
        if let Some(first) = waiting.pop_front() {
            let [next, after_next] = [0, 1].map(|at| waiting.get(at).unwrap_or(&empty));
            self.settle(&first, next, after_next, table);
        }
    }

    /// Adds the losses of the moves of a layer, given the next two layers.
    fn settle(
        &self,
        done: &WaitingLayer,
        next: &WaitingLayer,
        after_next: &WaitingLayer,
        table: &mut LossTable,
    ) {
        let worth: Vec<Vec<Option<f64>>> = {
            let of = |(bucket, spawned): (usize, &[Vec<u32>; 2])| {
                self.worth(&done.afters.buckets[bucket], bucket, spawned, [next, after_next])
            };
            done.spawned.par_iter().enumerate().map(of).collect()
        };
        // Stored values cannot resolve a difference of at most their last place, or their step if they are rounded, plus
        // the f64 roundings. Such a difference counts as no loss.
        let last_place = self.oracle.params().stored_scale().resolution();
        let scores = self.oracle.params().game().objective().unit() == ValueUnit::Points;
        let of_bucket = |(bucket, states): (usize, &ChanceBucket)| {
            let mut table = LossTable::new(self.oracle.params().game().objective());
            let mut places = done.moved[bucket].iter();
            let mut chosen = done.choices[bucket].iter();
            for (&Chance { board, chance, .. }, &value) in states.entries.iter().zip(&done.values[bucket]) {
                let moves = self.engine.moves(board);
                let chosen = chosen.next().copied().flatten();
                let times =
                    if chosen.is_some() { chance } else { chance / moves.iter().count().max(1) as f64 };
                let made =
                    moves.iter().filter(|&(direction, ..)| chosen.is_none_or(|chosen| chosen == direction));
                for (direction, after, score) in made {
                    let after = if self.is_won(after) {
                        Some(1.0)
                    } else {
                        let place = places.next();
                        place.and_then(|place| worth[usize::from(place.bucket)][place.entry as usize])
                    };
                    let Some(after) = after else { continue };
                    let loss = value - after - if scores { f64::from(score) } else { 0.0 };
                    let loss = (loss > last_place + value * F64_ROUNDS).then_some(loss);
                    table.add(self.engine, &ChosenMove { layer: done.layer, board, direction, times, loss });
                }
            }
            table
        };
        let tables: Vec<_> = done.states.buckets.par_iter().enumerate().map(of_bucket).collect();
        tables.iter().for_each(|found| table.take_in(self.engine, found));
    }

    /// Values of a bucket's afterstates under perfect play, from the entries of their spawns in the next two layers.
    ///
    /// `None` if the pass dropped one of these entries.
    fn worth(
        &self,
        afters: &ChanceBucket,
        bucket: usize,
        spawned: &[Vec<u32>; 2],
        layers: [&WaitingLayer; 2],
    ) -> Vec<Option<f64>> {
        let [two, four, all] = self.weights();
        let mut spawned = spawned.each_ref().map(|entries| entries.iter());
        let mut of = |after: &Chance| {
            let empty = self.engine.empty_cells(after.board);
            let mut sum = Some(0.0);
            for _ in 0..empty {
                for ((entries, weight), layer) in spawned.iter_mut().zip([two, four]).zip(layers) {
                    let entry = entries.next().copied().unwrap_or(LEFT_OUT);
                    if weight > 0.0 {
                        sum = sum.zip(layer.value(bucket, entry)).map(|(sum, value)| sum + weight * value);
                    }
                }
            }
            sum.map(|sum| sum / (all * f64::from(empty)))
        };
        afters.entries.iter().map(&mut of).collect()
    }
}

/// Sums over boards.
#[derive(Default)]
struct Sums {
    boards: u64,
    score: f64,
    moves: f64,
    won: f64,
    /// Shares of games that end without a legal move, by the exponent of the game's largest tile.
    ended: [f64; 16],
    /// Sum of the probabilities that are too small to follow.
    dropped: f64,
    /// Largest number of roundings of any probability.
    roundings: u64,
    /// Largest number of boards in a bucket. One thread adds their contributions in sequence.
    longest: u64,
}

impl Sums {
    fn take_in(&mut self, other: &Self) {
        self.score += other.score;
        self.moves += other.moves;
        self.won += other.won;
        for (sum, more) in self.ended.iter_mut().zip(other.ended) {
            *sum += more;
        }
    }

    fn into_exact(self, pass: &Pass<'_>, losses: Option<LossTable>) -> ExactEvaluation {
        let params = pass.oracle.params();
        // Making a tile 2^e scores at most (e − 1)·2^e, and e is at most the number of cells plus one.
        let most_points = f64::from(params.last_layer().0) * params.game().cells() as f64;
        let scores = params.game().objective().unit() == ValueUnit::Points;
        let (value, largest) = if scores { (self.score, most_points) } else { (self.won, 1.0) };
        // Adds the roundings of a probability, its product with a score, the sum of a bucket (up to four moves a
        // board), and the sums over buckets and layers.
        let layers = u64::from(params.last_layer().0 / Layer::STEP);
        let roundings = self.roundings + 1 + 4 * self.longest + BUCKETS as u64 * layers;
        let relative = roundings as f64 * f64::EPSILON / 2.0;
        // The factor 2 covers the roundings of the dropped sum.
        let error = value * (relative / (1.0 - relative)) + 2.0 * self.dropped * largest;
        let mut reached = Vec::new();
        let mut share = self.won;
        let target = params.game().winning_exponent();
        reached.extend(target.filter(|_| share > 0.0).map(|target| (target, share)));
        // The target tile ends the game, so no larger tile occurs.
        for exponent in (1..target.unwrap_or(16)).rev() {
            let ended = self.ended[usize::from(exponent)];
            share += ended;
            if ended > 0.0 || !reached.is_empty() && exponent > self.least_largest() {
                reached.push((exponent, share));
            }
        }
        let Self { boards, moves, dropped: left_out, .. } = self;
        ExactEvaluation { value, error, left_out, boards, moves, reached, losses }
    }

    /// The smallest exponent of a game's largest tile, among games that end without a legal move; 16 without such
    /// games.
    fn least_largest(&self) -> u8 {
        self.ended.iter().position(|&ended| ended > 0.0).unwrap_or(16) as u8
    }
}
