//! Following games upward along best moves: the chance that they reach each entry of a block.
//!
//! The chance of a state is that of all its images together. It is in the entry that has a stored best move: in a
//! symmetric row, the image in the smallest column. The chance of an afterstate may be divided among its images,
//! because it needs no decision.

mod blocks;
mod decide;
mod kept;
mod sums;

use std::io::{self, Read, Write};
use std::sync::Arc;

use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::class::Class;
use exact2048_game::columns::Columns;
use exact2048_game::lane::Step;
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::sequence::{Column, Counts};
use exact2048_game::transitions::{Direction, Transitions};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, SpawnKind};

use crate::blocks::BlockMap;
use crate::error::WorkerError;
use crate::footprint::{enumerate_need, shape};
use crate::kernels::chances::{ChanceMoves, ChanceSpawns, ChanceSums, NO_MOVE};
use crate::kernels::index_map::Permutation;
use crate::memory::{Need, Reservation};
use crate::occurring::{OccurringMoves, group_of};
use crate::open_block::OpenBlock;
use crate::shared::Shared;
use crate::tables::{LaneTables, MapCache, Tables};

use blocks::{ChanceBlock, StateChances};
pub use decide::BestMoves;
use decide::{Decisions, Reached};
pub use sums::FollowSums;

/// Follows games through the blocks of a solved run with best moves, layer by layer. Any number of threads may work on
/// the blocks of a layer.
pub trait Follower: Send + Sync {
    /// Finds the chances of the states of a block.
    ///
    /// It needs the chances of the lane's own afterstates of the two layers below, and the best moves of the block.
    ///
    /// # Errors
    ///
    /// If data cannot be read, or cannot be written to a scratch file.
    fn follow_states(&self, layer: Layer, lane: Lane) -> Result<FollowSums, WorkerError>;

    /// Finds the chances of the afterstates of a block. Returns the largest number of terms of a chance.
    ///
    /// It needs the chances of this layer's states in this lane and in every lane from which moves lead to it.
    ///
    /// # Errors
    ///
    /// If data cannot be written to a scratch file.
    fn follow_moves(&self, layer: Layer, lane: Lane) -> Result<u32, WorkerError>;

    /// Moves all held chances to scratch files.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    fn set_aside(&self) -> Result<(), WorkerError>;

    /// Writes the chances of a layer's afterstates, for [`Follower::read_afterstates`].
    ///
    /// # Errors
    ///
    /// Those of `out`.
    fn write_afterstates(&self, layer: Layer, out: &mut dyn Write) -> io::Result<()>;

    /// Reads and holds the chances of a layer's afterstates, as [`Follower::write_afterstates`] wrote them.
    ///
    /// # Errors
    ///
    /// Those of `input`, or if the chances are of another run.
    fn read_afterstates(&self, layer: Layer, input: &mut dyn Read) -> io::Result<()>;

    /// Releases a layer's states.
    fn release_states(&self, layer: Layer);

    /// Releases a layer's afterstates.
    fn release_afterstates(&self, layer: Layer);

    /// Releases all blocks.
    fn release_all(&self);
}

/// The chances of a solved run's blocks, as far as they are held.
pub struct Chances<'a, V> {
    shared: &'a Shared<V>,
    decisions: Decisions<'a, V>,
    least: f64,
    states: BlockMap<StateChances>,
    afterstates: BlockMap<ChanceBlock>,
}

/// Afterstates of a lane that spawns of one kind start from.
struct SpawnSource {
    spawn: SpawnKind,
    afterstates: Arc<ChanceBlock>,
    /// The transitions of their rows.
    transitions: Arc<Transitions>,
}

impl<'a, V: Value> Chances<'a, V> {
    /// A follower without chances yet, of a run that has best moves. It drops chances below `least`.
    pub fn new(shared: &'a Shared<V>, best_moves: BestMoves, least: f64) -> Self {
        let (states, afterstates) = (BlockMap::default(), BlockMap::default());
        Self { shared, decisions: Decisions::new(shared, best_moves), least, states, afterstates }
    }

    /// The lane's afterstates from which spawns lead to a layer.
    fn spawn_sources(&self, layer: Layer, lane: Lane) -> Result<Vec<SpawnSource>, WorkerError> {
        let shared = self.shared;
        let sources = SpawnKind::ALL.into_iter().filter_map(|spawn| {
            let below = layer.before(spawn)?;
            let class = shared.tables.class(below, lane)?;
            let afterstates = self.afterstates.get(below, lane).filter(|block| !block.is_empty())?;
            let transitions = shared.store.transitions(class, &afterstates.rows);
            Some(
                transitions
                    .map(|transitions| SpawnSource { spawn, afterstates, transitions })
                    .map_err(WorkerError::from),
            )
        });
        sources.collect()
    }

    /// The held rows of a block that games may reach, from some afterstates or as starts.
    fn reached_rows(
        &self,
        class: &Class,
        sources: &[SpawnSource],
        starts: &[(Row, Column, f64)],
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
            self.shared.tables.spawns(transitions).edges(*spawn).iter().for_each(|edge| insert(edge.row));
        }
        starts.iter().for_each(|&(row, ..)| insert(row));
        RowSet::new(found)
    }

    /// The states of a layer from which moves may lead to a lane.
    fn move_sources(&self, layer: Layer, lane: Lane) -> Vec<(Step, Lane, Arc<StateChances>)> {
        let before = self.shared.tables.lanes_before(lane);
        let sources = before.filter_map(|(step, lane)| Some((step, lane, self.states.get(layer, lane)?)));
        sources.filter(|(.., states)| !states.block.is_empty()).collect()
    }

    /// Adds to the chances of states those that spawns of one kind send from a block of afterstates.
    ///
    /// Returns the sum of the chances that were left out.
    fn spawn(
        &self,
        SpawnSource { spawn, afterstates, transitions }: &SpawnSource,
        tables: &LaneTables,
        cache: &mut MapCache,
        target: &mut ChanceSums<'_>,
    ) -> f64 {
        let (all_tables, spawn4) = (&self.shared.tables, self.shared.tables.params().game().spawn4());
        let spawns = all_tables.spawns(transitions);
        let permutations = all_tables.permutations(cache, tables, &spawns.patterns);
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
        self.shared.kernels.spawn_chances(&plan, target)
    }

    /// The starts of a block with their rows, columns and chances.
    fn starts(&self, layer: Layer, lane: Lane, columns: &Columns) -> Vec<(Row, Column, f64)> {
        let game = self.shared.tables.params().game();
        let starts = game.start_probabilities().into_iter().filter_map(|(board, chance)| {
            let (to, at, row, sequence) = self.shared.tables.space.locate(board)?;
            if (at, to) != (layer, lane) || chance == 0.0 {
                return None;
            }
            let mut finder = columns.finder();
            let group = finder.group(Counts::of(sequence))?;
            Some((row, finder.column(group, sequence)?, chance))
        });
        starts.collect()
    }

    /// Reserves the memory to follow games into a block.
    fn reserve(&self, areas: usize, rows: usize) -> Result<Reservation<'a>, WorkerError> {
        let need = Need { areas, other: rows * Transitions::BYTES_TO_MAKE_A_ROW };
        self.shared.store.memory().reserve(need, |bytes| self.make_free(bytes))
    }

    /// Makes `bytes` more bytes free, as far as chances and blocks can move or be dropped.
    fn make_free(&self, bytes: usize) -> Result<(), WorkerError> {
        let memory = self.shared.store.memory();
        if !memory.fits(bytes) {
            let enough = || memory.fits(bytes.saturating_add(memory.unreserved_bytes()));
            self.afterstates.spill(memory, enough)?;
            self.states.spill(memory, enough)?;
        }
        Ok(self.shared.store.make_free(bytes)?)
    }
}

impl<V: Value> Follower for Chances<'_, V> {
    fn follow_states(&self, layer: Layer, lane: Lane) -> Result<FollowSums, WorkerError> {
        let (shared, store) = (self.shared, &self.shared.store);
        let Some(open) = OpenBlock::new(&shared.tables, layer, lane, 0) else {
            return Ok(FollowSums::default());
        };
        let tables = &open.tables;
        let sources = self.spawn_sources(layer, lane)?;
        let game = shared.tables.params().game();
        let is_start = (game.first_layer()..=game.last_start()).contains(&layer);
        let starts = if is_start { self.starts(layer, lane, &tables.columns) } else { Vec::new() };
        if sources.is_empty() && starts.is_empty() {
            return Ok(FollowSums::default());
        }
        let reading = store.reserve(enumerate_need(shape(&shared.tables, layer, lane)))?;
        let Some(reach) = shared.sources.occurring_states(layer, lane)? else {
            return Ok(FollowSums::default());
        };
        drop(reading);
        let rows = Arc::new(self.reached_rows(open.class, &sources, &starts, reach.matrix.rows()));
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
        for (row, column, chance) in starts {
            target.add_to(row)[column.0 as usize] += chance;
        }
        let transitions = store.transitions(open.class, &rows)?;
        let images = fold(&shared.tables, (tables, &transitions), &mut cache, &mut target);
        sums.terms = terms.iter().copied().max().unwrap_or(0) + images;
        let mut best = reserved.area::<Direction>(length);
        best.fill(NO_MOVE);
        let mut reached =
            Reached { transitions: &transitions, chances: &chances, best: &mut best, sums: &mut sums };
        self.decisions.decide(&open, &reach, &mut reached)?;
        let of_slot = |best: &[Direction]| best.iter().fold(0, |moves: u8, &best| moves | 1 << best);
        let made: Vec<u8> = best.chunks_exact(stride).map(of_slot).collect();
        let is_made = |slot: Slot, direction| made[slot.index()] >> direction & 1 == 1;
        let moves = shared.tables.select_moves(&transitions, is_made);
        if shared.backup.can_win() {
            self.decisions.take_wins(tables, &moves, (&chances, &mut best), &mut cache, &mut sums);
        }
        drop(cache);
        let (chances, best) = (store.memory().settle(chances)?, store.memory().settle(best)?);
        self.states.insert(
            layer,
            lane,
            StateChances { block: ChanceBlock { rows, stride, chances }, best, moves },
        );
        Ok(sums)
    }

    fn follow_moves(&self, layer: Layer, lane: Lane) -> Result<u32, WorkerError> {
        let shared = self.shared;
        let Some(open) = OpenBlock::new(&shared.tables, layer, lane, 0) else { return Ok(0) };
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
            let Some(source) = shared.tables.lane(*lane) else { continue };
            let moves = OccurringMoves::new(group, |_| true);
            let mut maps = shared.tables.maps(&mut cache, &source, tables);
            maps.for_each_some(&moves.patterns, |patterns, maps| {
                let runs = moves.runs(patterns, maps);
                let plan = ChanceMoves { runs: &runs, states: states.block.sent(), best: &states.best };
                shared.kernels.move_chances(&plan, &mut target);
            });
        }
        drop(cache);
        let columns = tables.columns.len();
        chances.chunks_exact_mut(stride).for_each(|row| row[columns..].fill(0.0));
        let chances = shared.store.memory().settle(chances)?;
        self.afterstates.insert(layer, lane, ChanceBlock { rows, stride, chances });
        Ok(terms.into_iter().max().unwrap_or(0))
    }

    fn set_aside(&self) -> Result<(), WorkerError> {
        let memory = self.shared.store.memory();
        self.states.spill(memory, || false)?;
        Ok(self.afterstates.spill(memory, || false)?)
    }

    fn write_afterstates(&self, layer: Layer, out: &mut dyn Write) -> io::Result<()> {
        kept::write_afterstates(&self.afterstates, layer, out)
    }

    fn read_afterstates(&self, layer: Layer, input: &mut dyn Read) -> io::Result<()> {
        kept::read_afterstates(self.shared, &self.afterstates, layer, input)
    }

    fn release_states(&self, layer: Layer) {
        self.states.release(layer);
    }

    fn release_afterstates(&self, layer: Layer) {
        self.afterstates.release(layer);
    }

    fn release_all(&self) {
        self.states.clear();
        self.afterstates.clear();
    }
}

/// Adds the chances of all images of a state, in symmetric rows, to the entry of the smallest column.
///
/// Returns the largest number of other images.
fn fold(
    all_tables: &Tables,
    (tables, transitions): (&LaneTables, &Transitions),
    cache: &mut MapCache,
    target: &mut ChanceSums<'_>,
) -> u32 {
    let symmetric =
        all_tables.symmetric_rows(cache, tables, transitions, |slot| target.terms[slot.index()] > 0);
    let (columns, mut most) = (tables.columns.len(), 0);
    for row in symmetric {
        let permutations = all_tables.permutations(cache, tables, row.patterns);
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
