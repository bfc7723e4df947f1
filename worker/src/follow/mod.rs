//! Following games upward along best moves: how likely they reach each entry of a block.
//!
//! A state's chance is that of all its images together. It is in the entry that best moves are stored for. In a
//! symmetric row, this is the entry of the smallest column. An afterstate's chance may be divided among its images,
//! because nothing is decided there.

mod decide;
mod kept;
pub(crate) mod moves;

use std::ops::AddAssign;
use std::sync::Arc;

use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::board::EXPONENTS;
use exact2048_game::class::Class;
use exact2048_game::lane::Step;
use exact2048_game::legal::Legality;
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::rules;
use exact2048_game::transitions::{Direction, Moves, Transitions};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, SpawnKind};
use exact2048_storage::StorageError;

use crate::blocks::{BlockMap, Spill};
use crate::enumerate::{OccurringMoves, group_of};
use crate::kernels::chances::{ChanceRows, ChanceSpawns, ChanceSums, NO_MOVE, move_chances, spawn_chances};
use crate::kernels::index_map::Permutation;
use crate::memory::{Buffer, Memory, Need, Reservation};
use crate::tables::{LaneTables, MapCache};
use crate::{AnyFollower, Worker, WorkerError};

/// The chances of a block's rows.
#[derive(Debug)]
pub struct ChanceBlock {
    rows: Arc<RowSet>,
    stride: usize,
    chances: Buffer<f64>,
}

/// The chances of a block's states, and where they go from there.
#[derive(Debug)]
struct StateChances {
    block: ChanceBlock,
    /// The best move of each entry; [`NO_MOVE`] in entries from which no game goes on.
    best: Buffer<Direction>,
    /// The moves that are best in some entry of their slot, those included that win.
    moves: Moves,
}

/// Afterstates of a lane that spawns of one kind lead on from.
struct SpawnSource {
    spawn: SpawnKind,
    afterstates: Arc<ChanceBlock>,
    /// The transitions of their rows.
    transitions: Arc<Transitions>,
}

/// Sums over the states of a block that games reach.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct FollowSums {
    /// States that games reach, up to symmetry.
    pub states: u64,
    /// The sum of the chances of these states.
    pub reached: f64,
    /// The sum of the chances of those states in which a move is made.
    pub moved: f64,
    /// The sum of the chances of those states that end a game, by the exponent of the largest tile.
    pub ended: [f64; EXPONENTS],
    /// The sum of chance times potential of those states that end a game.
    pub potential: f64,
    /// The sum of the chances of moves that make the wanted tile.
    pub won: f64,
    /// The sum of the chances that were left out because they were too small.
    pub left_out: f64,
    /// The most terms that a chance is the sum of.
    pub terms: u32,
    /// The length of the longest chain of additions that went into one of these sums: each addition rounds.
    pub longest: u64,
}

impl AddAssign<&Self> for FollowSums {
    /// Adds what was found of other states.
    fn add_assign(&mut self, more: &Self) {
        self.states += more.states;
        self.reached += more.reached;
        self.moved += more.moved;
        self.ended.iter_mut().zip(more.ended).for_each(|(sum, more)| *sum += more);
        self.potential += more.potential;
        self.won += more.won;
        self.left_out += more.left_out;
        self.terms = self.terms.max(more.terms);
        self.longest = self.longest.max(more.longest);
    }
}

/// In which form the best moves of a run are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BestMoves {
    /// As the run's shards store them.
    Stored,
    /// As [`Worker::back_up_best_moves`] gives them.
    WorkedOut,
}

/// Follows games through the blocks of a solved run with best moves, layer by layer. Any number of threads may work on the
/// blocks of a layer.
pub struct Follower<'a, V> {
    worker: &'a Worker<V>,
    best_moves: BestMoves,
    legality: Legality,
    least: f64,
    states: BlockMap<StateChances>,
    afterstates: BlockMap<ChanceBlock>,
}

impl ChanceBlock {
    fn is_empty(&self) -> bool {
        self.chances.is_empty()
    }

    fn sent(&self) -> ChanceRows<'_> {
        ChanceRows { stride: self.stride, chances: &self.chances }
    }
}

impl Spill for ChanceBlock {
    fn heap_bytes(&self) -> usize {
        self.chances.heap_bytes()
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        let chances = memory.spilled(&self.chances)?;
        Ok(Self { rows: Arc::clone(&self.rows), stride: self.stride, chances })
    }
}

impl Spill for StateChances {
    fn heap_bytes(&self) -> usize {
        self.block.heap_bytes() + self.best.heap_bytes() + self.moves.heap_bytes()
    }

    fn spilled(&self, memory: &Memory) -> Result<Self, StorageError> {
        let (block, best) = (self.block.spilled(memory)?, memory.spilled(&self.best)?);
        Ok(Self { block, best, moves: self.moves.stored_in(&mut &*memory)? })
    }
}

impl<V: Value> Worker<V> {
    /// Follows games through the run of this worker, whose layers have best moves. Chances below `least` are not followed.
    pub fn follower(&self, best_moves: BestMoves, least: f64) -> Box<dyn AnyFollower + '_> {
        Box::new(Follower::new(self, best_moves, least))
    }
}

impl<'a, V: Value> Follower<'a, V> {
    fn new(worker: &'a Worker<V>, best_moves: BestMoves, least: f64) -> Self {
        let legality = Legality::new(worker.tables.params().game().board());
        let (states, afterstates) = (BlockMap::default(), BlockMap::default());
        Self { worker, best_moves, legality, least, states, afterstates }
    }

    /// Releases a layer's states.
    pub fn release_states(&self, layer: Layer) {
        self.states.release(layer);
    }

    /// Releases a layer's afterstates.
    pub fn release_afterstates(&self, layer: Layer) {
        self.afterstates.release(layer);
    }

    /// Releases all blocks.
    pub fn release_all(&self) {
        self.states.clear();
        self.afterstates.clear();
    }

    /// Moves all that is held to scratch files.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn set_aside(&self) -> Result<(), WorkerError> {
        self.states.spill(&self.worker.memory, || false)?;
        Ok(self.afterstates.spill(&self.worker.memory, || false)?)
    }

    /// Finds the chances of the states of a block. Needs those of the lane's own afterstates of the two layers below, and
    /// the best moves of the block.
    ///
    /// # Errors
    ///
    /// If data cannot be read, or cannot be written to a scratch file.
    pub fn follow_states(&self, layer: Layer, lane: Lane) -> Result<FollowSums, WorkerError> {
        let worker = self.worker;
        let Some(open) = worker.open(layer, lane, 0) else { return Ok(FollowSums::default()) };
        let tables = &open.tables;
        let sources = self.spawn_sources(layer, lane)?;
        let is_start = lane.k == 0 && layer <= Layer::LAST_START;
        if sources.is_empty() && !is_start {
            return Ok(FollowSums::default());
        }
        let Some(reach) = worker.read_occurring(layer, lane)? else { return Ok(FollowSums::default()) };
        let starts = if is_start { self.starts(layer, lane) } else { Vec::new() };
        let rows = Arc::new(self.rows_come_to(open.class, &sources, &starts, reach.matrix.rows()));
        let (length, stride) = (rows.len() * tables.stride(), tables.stride());
        let mut reserved = self.reserve(length * (size_of::<f64>() + size_of::<Direction>()), rows.len())?;
        let (mut cache, mut sums) = (tables.maps(), FollowSums::default());
        let mut chances = reserved.area::<f64>(length);
        chances.fill(0.0);
        let mut terms = vec![0; rows.len()];
        let mut target = ChanceSums { set: &rows, stride, chances: &mut chances, terms: &mut terms };
        for source in sources {
            sums.left_out += self.spawn(&source, tables, &mut cache, &mut target);
        }
        for (row, chance) in starts {
            target.add_to(row)[0] += chance;
        }
        let transitions = worker.class_transitions(open.class, &rows)?;
        let images = fold(worker, (tables, &transitions), &mut cache, &mut target);
        sums.terms = terms.iter().copied().max().unwrap_or(0) + images;
        let mut best = reserved.area::<Direction>(length);
        best.fill(NO_MOVE);
        self.decide(&open, &transitions, &reach, &chances, &mut best, &mut sums)?;
        let of_slot = |best: &[Direction]| best.iter().fold(0, |moves: u8, &best| moves | 1 << best);
        let made: Vec<u8> = best.chunks_exact(stride).map(of_slot).collect();
        let is_made = |slot: Slot, direction| made[slot.index()] >> direction & 1 == 1;
        let moves = worker.tables.select_moves(&transitions, is_made);
        if worker.backup.can_win() {
            self.take_wins(tables, &moves, (&chances, &mut best), &mut cache, &mut sums);
        }
        drop(cache);
        let (chances, best) = (worker.memory.settle(chances)?, worker.memory.settle(best)?);
        self.states.insert(
            layer,
            lane,
            StateChances { block: ChanceBlock { rows, stride, chances }, best, moves },
        );
        Ok(sums)
    }

    /// Finds the chances of the afterstates of a block; gives the most terms that one of them is the sum of. Needs
    /// those of this layer's states in this lane and in every lane that moves lead here from.
    ///
    /// # Errors
    ///
    /// If data cannot be written to a scratch file.
    pub fn follow_moves(&self, layer: Layer, lane: Lane) -> Result<u32, WorkerError> {
        let worker = self.worker;
        let Some(open) = worker.open(layer, lane, 0) else { return Ok(0) };
        let (class, tables) = (open.class, &open.tables);
        let sources = self.move_sources(layer, lane);
        if sources.is_empty() {
            return Ok(0);
        }
        let mut found = BitSet::with_room(class.rows());
        for (step, _, states) in &sources {
            let edges = group_of(&states.moves, *step).map_or(&[][..], |group| &group.edges);
            edges.iter().for_each(|edge| found.insert(edge.to()));
        }
        let (rows, stride) = (Arc::new(RowSet::new(found)), tables.stride());
        let mut reserved = self.reserve(rows.len() * stride * size_of::<f64>(), 0)?;
        let mut chances = reserved.area::<f64>(rows.len() * stride);
        chances.fill(0.0);
        let (mut terms, mut cache) = (vec![0; rows.len()], tables.maps());
        let mut target = ChanceSums { set: &rows, stride, chances: &mut chances, terms: &mut terms };
        for (step, lane, states) in &sources {
            let Some(group) = group_of(&states.moves, *step) else { continue };
            let Some(source) = worker.tables.lane(*lane) else { continue };
            let moves = OccurringMoves::new(group, |_| true);
            worker.tables.maps(&mut cache, &source, tables).for_each_some(
                &moves.patterns,
                |patterns, maps| {
                    let runs = moves.runs(patterns, maps);
                    move_chances(&runs, states.block.sent(), &states.best, &mut target);
                },
            );
        }
        drop(cache);
        let columns = tables.columns.len();
        chances.chunks_exact_mut(stride).for_each(|row| row[columns..].fill(0.0));
        let chances = worker.memory.settle(chances)?;
        self.afterstates.insert(layer, lane, ChanceBlock { rows, stride, chances });
        Ok(terms.into_iter().max().unwrap_or(0))
    }

    /// The lane's afterstates from which spawns lead to a layer.
    fn spawn_sources(&self, layer: Layer, lane: Lane) -> Result<Vec<SpawnSource>, WorkerError> {
        let worker = self.worker;
        let sources = SpawnKind::ALL.into_iter().filter_map(|spawn| {
            let below = layer.before(spawn)?;
            let class = worker.tables.class(below, lane)?;
            let afterstates = self.afterstates.get(below, lane).filter(|block| !block.is_empty())?;
            let transitions = worker.class_transitions(class, &afterstates.rows);
            Some(transitions.map(|transitions| SpawnSource { spawn, afterstates, transitions }))
        });
        sources.collect()
    }

    /// Those of the rows that are held of a block to which games may come: from some afterstates, or as starts.
    fn rows_come_to(
        &self,
        class: &Class,
        sources: &[SpawnSource],
        starts: &[(Row, f64)],
        held: &RowSet,
    ) -> RowSet {
        let mut found = BitSet::with_room(class.rows());
        // Rows without a chance may lead to rows that are not held.
        let mut insert = |row: Row| {
            if held.contains(row) {
                found.insert(row);
            }
        };
        for SpawnSource { spawn, transitions, .. } in sources {
            self.worker.tables.spawns(transitions).edges(*spawn).iter().for_each(|edge| insert(edge.row));
        }
        starts.iter().for_each(|&(row, _)| insert(row));
        RowSet::new(found)
    }

    /// The states of a layer from which moves may lead to a lane.
    fn move_sources(&self, layer: Layer, lane: Lane) -> Vec<(Step, Lane, Arc<StateChances>)> {
        let (worker, params) = (self.worker, self.worker.tables.params());
        let before = worker
            .steps
            .iter()
            .flat_map(|&step| lane.before(step, params).into_iter().map(move |lane| (step, lane)));
        let sources = before.filter_map(|(step, lane)| Some((step, lane, self.states.get(layer, lane)?)));
        sources.filter(|(.., states)| !states.block.is_empty()).collect()
    }

    /// Adds to the chances of states what comes from a block of afterstates by spawns of one kind; gives the sum of the chances
    /// that were left out.
    fn spawn(
        &self,
        SpawnSource { spawn, afterstates, transitions }: &SpawnSource,
        tables: &LaneTables,
        cache: &mut MapCache,
        target: &mut ChanceSums<'_>,
    ) -> f64 {
        let (worker, spawn4) = (self.worker, self.worker.tables.params().game().spawn4());
        let spawns = worker.tables.spawns(transitions);
        let permutations = worker.tables.permutations(cache, tables, &spawns.patterns);
        let maps: Vec<&Permutation> = permutations.iter().map(|permutation| &**permutation).collect();
        let plan = ChanceSpawns {
            start: &spawns.start,
            edges: spawns.edges(*spawn),
            maps: &maps,
            afterstates: afterstates.sent(),
            weight: spawn.weight(spawn4).into(),
            all: spawn4.denominator().into(),
            least: self.least,
        };
        spawn_chances(&plan, target)
    }

    /// The starts of a block, two tiles on an empty board, with their chances: the column of each is the first.
    fn starts(&self, layer: Layer, lane: Lane) -> Vec<(Row, f64)> {
        let params = self.worker.tables.params();
        let starts = rules::start_probabilities(params.game().board(), params.game().spawn4()).filter_map(
            |(board, chance)| {
                let (to, at, row, _) = self.worker.tables.space.locate(board)?;
                ((at, to) == (layer, lane) && chance > 0.0).then_some((row, chance))
            },
        );
        starts.collect()
    }

    fn reserve(&self, areas: usize, rows: usize) -> Result<Reservation<'a>, WorkerError> {
        let need = Need { areas, other: rows * Transitions::BYTES_TO_MAKE_A_ROW };
        self.worker.memory.reserve(need, |bytes| self.make_room(bytes))
    }

    /// Makes room for `bytes` more, as far as there is something to move or to drop.
    fn make_room(&self, bytes: usize) -> Result<(), WorkerError> {
        let memory = &self.worker.memory;
        if !memory.fits(bytes) {
            let enough = || memory.fits(bytes.saturating_add(memory.unreserved_bytes()));
            self.afterstates.spill(memory, enough)?;
            self.states.spill(memory, enough)?;
        }
        self.worker.make_room(bytes)
    }
}

/// Adds the chances of all images of a state, in symmetric rows, to the entry of the smallest column. Returns
/// the largest number of other images.
fn fold<V: Value>(
    worker: &Worker<V>,
    (tables, transitions): (&LaneTables, &Transitions),
    cache: &mut MapCache,
    target: &mut ChanceSums<'_>,
) -> u32 {
    let symmetric =
        worker.tables.symmetric_rows(cache, tables, transitions, |slot| target.terms[slot.index()] > 0);
    let (columns, mut most) = (tables.columns.len(), 0);
    for row in symmetric {
        let permutations = worker.tables.permutations(cache, tables, row.patterns);
        most = most.max(row.patterns.len() as u32);
        let chances = &mut target.chances[row.slot.index() * target.stride..][..columns];
        for column in 0..columns {
            if chances[column] != 0.0 && row.representatives[column / 64] >> (column % 64) & 1 == 0 {
                let images = permutations.iter().map(|permutation| {
                    permutation.map().map_or(column, |map| map.leads_to()[column] as usize)
                });
                let first = images.min().unwrap_or(column);
                chances[first] += chances[column];
                chances[column] = 0.0;
            }
        }
    }
    most
}
