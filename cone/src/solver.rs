//! Enumerates the states of a cone upward, and backs up their values downward.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use exact2048_game::backup::Backup;
use exact2048_game::packed::PackedRules;
use exact2048_game::spawn_images::{SpawnImages, Spawned};
use exact2048_game::spawning::{SpawnRule, Spawning};
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Game, KeptLayers, Layer, Precision, SpawnKind};
use rayon::prelude::*;

use crate::boards::Boards;
use crate::solved::{Solved, SolvedLayer, Values};

/// Number of slots that one thread processes between two checks of [`Limits::wanted`].
const SLOTS_AT_ONCE: usize = 2048;

/// Smallest number of slots for which threads share a table. For smaller tables, threads would cost more than they save.
const SHARED_SLOTS: usize = 2 * SLOTS_AT_ONCE;

/// Limits of the solution of a cone.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Memory limit in bytes.
    pub bytes: u64,
    /// Returns whether the result is still wanted. Any thread calls it every few thousand states.
    pub wanted: &'a (dyn Fn() -> bool + Sync),
    /// Called before each layer, and before the lookup of stored values.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// Progress of the solution of a cone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Enumeration upward: the layer, and the number of states found so far.
    Up(Layer, u64),
    /// Lookup of the values of this number of stored states.
    Stored(u64),
    /// Backup downward: the number of states without a value, and the number of all states.
    Down(u64, u64),
}

/// Error of a cone that exceeds the memory limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected at most {limit_bytes} bytes for the states between layer {first} and the next stored layers, found \
     {needed_bytes} already for the {states} states up to layer {reached}"
)]
pub struct TooLarge {
    /// Bytes allowed.
    pub limit_bytes: u64,
    /// Lower bound of the bytes needed at this point.
    pub needed_bytes: u64,
    /// The lowest requested layer.
    pub first: Layer,
    /// The layer that the enumeration has reached.
    pub reached: Layer,
    /// Number of states found so far.
    pub states: u64,
}

/// Reason why a cone was not solved.
#[derive(Debug, thiserror::Error)]
pub enum ConeError<E> {
    /// The cone exceeds the memory limit.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The result is no longer wanted.
    #[error("the question was cancelled before it was answered")]
    GivenUp,
    /// The stored values could not be read.
    #[error(transparent)]
    Stored(E),
}

/// Solves cones of a run.
#[derive(Debug)]
pub struct Solver {
    packed: PackedRules,
    spawn_images: SpawnImages,
    backup: Backup,
    kept: KeptLayers,
    game: Game,
}

impl Solver {
    /// Creates a solver for the states of a game. The values of the layers in `kept` are stored.
    pub fn new(game: &Game, kept: KeptLayers) -> Self {
        let packed = PackedRules::new(game.board());
        Self { spawn_images: SpawnImages::new(&packed), packed, backup: Backup::new(game), kept, game: *game }
    }

    /// The rules on packed boards.
    pub fn packed(&self) -> &PackedRules {
        &self.packed
    }

    /// Computes the values of the states in `asked`, and of all states between them and the next stored layers.
    ///
    /// `asked` lists canonical boards of unstored layers, each with its layer. The solver calls `stored` once for each
    /// stored layer. It passes the distinct canonical boards of the cone's final states in any order, and `stored`
    /// returns their values.
    ///
    /// A state costs about half a microsecond of one core. Memory is about 12 bytes a state, plus the three largest layers.
    ///
    /// # Errors
    ///
    /// [`ConeError::TooLarge`], [`ConeError::GivenUp`], and errors of `stored`.
    pub fn solve<E>(
        &self,
        asked: &[(Layer, Board)],
        limits: Limits<'_>,
        stored: impl FnMut(Layer, &[Board]) -> Result<Vec<Stored>, E>,
    ) -> Result<Solved, ConeError<E>> {
        match self.precision() {
            Precision::Bits32 => self.solve_in::<u32, E>(asked, limits, stored),
            Precision::Bits64 => self.solve_in::<u64, E>(asked, limits, stored),
        }
    }

    fn solve_in<V: Width, E>(
        &self,
        asked: &[(Layer, Board)],
        limits: Limits<'_>,
        stored: impl FnMut(Layer, &[Board]) -> Result<Vec<Stored>, E>,
    ) -> Result<Solved, ConeError<E>> {
        let first = asked.iter().map(|(layer, _)| *layer).min().unwrap_or(Layer::FIRST);
        let mut work =
            Work { solver: self, limits, first, states: 0, bytes: 0, over: AtomicBool::new(false) };
        let (inner, ends) = work.climb(asked)?;
        work.descend::<V, E>(inner, ends, stored)
    }

    /// Precision of the values.
    pub(crate) fn precision(&self) -> Precision {
        self.game.precision()
    }

    /// The constants of backward induction.
    pub(crate) fn backup(&self) -> &Backup {
        &self.backup
    }

    /// Finds the canonical states after spawns.
    #[inline]
    pub(crate) fn find_spawned(&self, after: Board, spawned: &mut Spawned) {
        self.spawn_images.find(&self.packed, after, spawned);
    }

    /// Whether an afterstate has the target tile.
    #[inline]
    pub(crate) fn is_won(&self, after: Board) -> bool {
        self.game.is_won(after)
    }

    /// The canonical afterstates of a state, including won afterstates, and their number.
    #[inline]
    fn afterstates(&self, state: Board) -> ([Board; 4], usize) {
        let (moves, mut after, mut count) = (self.packed.moves(state), [Board(0); 4], 0);
        for (_, board, _) in moves.iter() {
            after[count] = self.packed.canonical(board);
            count += 1;
        }
        (after, count)
    }
}

/// The states of the layers of a cone.
type Layers = BTreeMap<Layer, Boards>;

/// The states between the requested and the stored layers, with the number of afterstates of each layer.
type InnerLayers = BTreeMap<Layer, (Boards, usize)>;

/// Targets of the moves of a state: slots of its layer's afterstates, padded to four with [`NOWHERE`].
type Edges = [u32; 4];

const NOWHERE: u32 = u32::MAX;

/// Bytes for the lookup of a stored value: 24 for the board, its slot and the value, and 24 for the value's place in
/// the run.
const ASKED_BYTES: u64 = 48;

/// Values of a layer, by slot.
struct Valued<V> {
    boards: Boards,
    values: Vec<V>,
}

/// A cone under construction.
struct Work<'a> {
    solver: &'a Solver,
    limits: Limits<'a>,
    first: Layer,
    states: u64,
    /// Bytes of the finished tables.
    bytes: u64,
    /// Whether the result is no longer wanted.
    over: AtomicBool,
}

impl Work<'_> {
    /// Enumerates the states between the requested and the stored layers, and the final states in the stored layers.
    fn climb<E>(&mut self, asked: &[(Layer, Board)]) -> Result<(InnerLayers, Layers), ConeError<E>> {
        let solver = self.solver;
        let mut found = Layers::new();
        for of_layer in asked.chunk_by(|(a, _), (b, _)| a == b) {
            let boards = found.entry(of_layer[0].0).or_default();
            boards.reserve(of_layer.len());
            let of_layer: Vec<Board> = of_layer.iter().map(|(_, board)| *board).collect();
            boards.count(boards.insert(&of_layer));
        }
        let (mut inner, mut ends) = (InnerLayers::new(), Layers::new());
        while let Some((layer, mut states)) = found.pop_first() {
            states.shrink();
            self.bytes += states.bytes();
            self.states += states.len() as u64;
            if solver.kept.keeps(layer) {
                ends.insert(layer, states);
                continue;
            }
            (self.limits.progress)(Progress::Up(layer, self.states));
            let after = self.afterstates(layer, &states, found.values().map(Boards::bytes).sum())?;
            let mut above = SpawnKind::ALL.map(|spawn| found.remove(&layer.after(spawn)).unwrap_or_default());
            let spawned = |range: std::ops::Range<usize>| {
                let boards = range.filter_map(|slot| after.get(slot)).filter(|&board| !solver.is_won(board));
                boards.map(|board| solver.packed.empty(board).count_ones() as usize).sum()
            };
            let mut at = 0;
            while at < after.slots() {
                // Tables grow by the number of boards that may be new in a step. So a step must be a small part of the layer.
                let step = at..(at + (after.slots() / 8).max(SHARED_SLOTS)).min(after.slots());
                let more = spawned(step.clone());
                let held = after.bytes() + found.values().map(Boards::bytes).sum::<u64>();
                let grown: u64 = above.iter().map(|boards| boards.bytes() + boards.bytes_with(more)).sum();
                self.check(layer, held + grown)?;
                above.iter_mut().for_each(|boards| boards.reserve(more));
                self.for_each(step.clone(), |range| {
                    let mut added = [0; 2];
                    let boards = range.filter_map(|slot| after.get(slot));
                    for board in boards.filter(|&board| !solver.is_won(board)) {
                        let spawned = solver.spawn_images.spawned(&solver.packed, board);
                        for ((boards, above), added) in spawned.each().into_iter().zip(&above).zip(&mut added)
                        {
                            *added += above.insert(boards);
                        }
                    }
                    above.iter().zip(added).for_each(|(above, added)| above.count(added));
                })?;
                at = step.end;
            }
            for (spawn, boards) in SpawnKind::ALL.into_iter().zip(above) {
                if boards.len() > 0 {
                    found.insert(layer.after(spawn), boards);
                }
            }
            inner.insert(layer, (states, after.len()));
        }
        Ok((inner, ends))
    }

    /// The afterstates of the states of a layer.
    fn afterstates<E>(&self, layer: Layer, states: &Boards, others: u64) -> Result<Boards, ConeError<E>> {
        let solver = self.solver;
        let (mut after, mut at) = (Boards::default(), 0);
        while at < states.slots() {
            let step = at..(at + (states.slots() / 8).max(SHARED_SLOTS)).min(states.slots());
            // At most two thirds of the slots have a state, and a state has at most four moves.
            let more = (4 * step.len()).min(4 * states.len());
            self.check(layer, others + after.bytes() + after.bytes_with(more))?;
            after.reserve(more);
            self.for_each(step.clone(), |range| {
                let states = range.filter_map(|slot| states.get(slot));
                let added = states.map(|state| {
                    let (boards, count) = solver.afterstates(state);
                    after.insert(&boards[..count])
                });
                after.count(added.sum());
            })?;
            at = step.end;
        }
        after.shrink();
        Ok(after)
    }

    /// Backs up values from the stored layers down to the requested layers.
    fn descend<V: Width, E>(
        &mut self,
        mut inner: InnerLayers,
        ends: Layers,
        mut stored: impl FnMut(Layer, &[Board]) -> Result<Vec<Stored>, E>,
    ) -> Result<Solved, ConeError<E>> {
        let mut above: BTreeMap<Layer, Valued<V>> = BTreeMap::new();
        (self.limits.progress)(Progress::Stored(ends.values().map(|boards| boards.len() as u64).sum()));
        for (layer, boards) in ends {
            let slots: Vec<usize> = (0..boards.slots()).filter(|&slot| boards.get(slot).is_some()).collect();
            let asked: Vec<Board> = slots.iter().filter_map(|&slot| boards.get(slot)).collect();
            self.bytes += (boards.slots() * size_of::<V>()) as u64;
            // Temporary memory in addition to the table and its values.
            self.check(layer, ASKED_BYTES * asked.len() as u64)?;
            self.go_on()?;
            let mut values = vec![V::default(); boards.slots()];
            let found = stored(layer, &asked).map_err(ConeError::Stored)?;
            slots.iter().zip(found).for_each(|(&slot, stored)| values[slot] = V::of_stored(stored));
            above.insert(layer, Valued { boards, values });
        }
        let all: u64 = inner.values().map(|(boards, _)| boards.len() as u64).sum();
        let (mut left, mut solved) = (all, Vec::new());
        while let Some((layer, (boards, afterstates))) = inner.pop_last() {
            (self.limits.progress)(Progress::Down(left, all));
            left -= boards.len() as u64;
            let mut after = Boards::default();
            let edges_bytes = boards.slots() * size_of::<Edges>();
            let values_bytes = (afterstates * 2 + boards.slots()) * size_of::<V>();
            self.check(layer, after.bytes_with(afterstates) + (edges_bytes + values_bytes) as u64)?;
            after.reserve(afterstates);
            let edges = self.edges(&boards, &after)?;
            let of_after = self.means(layer, &after, &above)?;
            let values = self.maxima(&boards, &edges, &of_after)?;
            drop((after, edges, of_after));
            self.bytes += (boards.slots() * size_of::<V>()) as u64;
            above.insert(layer, Valued { boards, values });
            // Spawns from lower layers reach no layer above `layer.after(SpawnKind::Two)`.
            while let Some(highest) =
                above.keys().next_back().copied().filter(|&highest| highest > layer.after(SpawnKind::Two))
            {
                if let Some(done) = above.remove(&highest) {
                    self.settle(highest, done, &mut solved);
                }
            }
        }
        for (layer, done) in above.into_iter().rev() {
            self.settle(layer, done, &mut solved);
        }
        solved.reverse();
        Ok(Solved::new(solved))
    }

    /// Moves the values of a layer to the result, unless the run stores them. No other layer may still need the values.
    fn settle<V: Width>(&mut self, layer: Layer, done: Valued<V>, solved: &mut Vec<SolvedLayer>) {
        let Valued { boards: table, values } = done;
        self.bytes -= table.bytes() + size_of_val(&*values) as u64;
        if self.solver.kept.keeps(layer) {
            return;
        }
        let mut states: Vec<(Board, V)> =
            (0..table.slots()).filter_map(|slot| Some((table.get(slot)?, values[slot]))).collect();
        drop((table, values));
        if states.len() < SHARED_SLOTS {
            states.sort_unstable();
        } else {
            states.par_sort_unstable();
        }
        let boards = states.iter().map(|(board, _)| *board).collect();
        let layer = SolvedLayer { layer, boards, values: V::values(states.iter().map(|(_, value)| *value)) };
        self.bytes += (layer.boards.len() * (size_of::<Board>() + size_of::<V>())) as u64;
        solved.push(layer);
    }

    /// The values of the afterstates of a layer, by slot.
    fn means<V: Value, E>(
        &self,
        layer: Layer,
        after: &Boards,
        above: &BTreeMap<Layer, Valued<V>>,
    ) -> Result<Vec<V>, ConeError<E>> {
        match self.solver.backup.rule() {
            SpawnRule::Mean(rule) => self.means_by(rule, layer, after, above),
            SpawnRule::Floating(rule) => self.means_by(rule, layer, after, above),
            SpawnRule::Worst(rule) => self.means_by(rule, layer, after, above),
        }
    }

    fn means_by<V: Value, R: Spawning<V>, E>(
        &self,
        rule: R,
        layer: Layer,
        after: &Boards,
        above: &BTreeMap<Layer, Valued<V>>,
    ) -> Result<Vec<V>, ConeError<E>> {
        let solver = self.solver;
        let above = SpawnKind::ALL.map(|spawn| above.get(&layer.after(spawn)));
        self.map(after, V::default(), |_, board| {
            if solver.is_won(board) {
                return solver.backup.won();
            }
            let spawned = solver.spawn_images.spawned(&solver.packed, board);
            let mut sums = [R::NONE; 2];
            for ((boards, above), sum) in spawned.each().into_iter().zip(&above).zip(&mut sums) {
                if let Some(above) = above {
                    let slots = above.boards.slots_of(boards);
                    let values = || slots[..boards.len()].iter().map(|&slot| above.values[slot]);
                    let mut scan = R::Scan::default();
                    if R::NEEDS_SCAN {
                        values().for_each(|value| rule.scan(value, &mut scan));
                    }
                    values().for_each(|value| rule.add(value, scan, sum));
                }
            }
            let empty = spawned.each()[0].len();
            rule.value(sums, solver.backup.divisor(empty))
        })
    }

    /// Lists the afterstates of a layer in `after`, and the targets of the moves of the layer's states, by slot.
    ///
    /// `after` must have enough slots.
    fn edges<E>(&self, states: &Boards, after: &Boards) -> Result<Vec<Edges>, ConeError<E>> {
        let solver = self.solver;
        self.map(states, [NOWHERE; 4], |_, state| {
            let (boards, count) = solver.afterstates(state);
            // Does not count the new afterstates, because their number is not needed.
            let (slots, _) = after.insert_at(&boards[..count]);
            let mut edges = [NOWHERE; 4];
            edges.iter_mut().zip(&slots[..count]).for_each(|(edge, &slot)| *edge = slot as u32);
            edges
        })
    }

    /// The values of the states of a layer, by slot.
    fn maxima<V: Value, E>(
        &self,
        states: &Boards,
        edges: &[Edges],
        after: &[V],
    ) -> Result<Vec<V>, ConeError<E>> {
        let solver = self.solver;
        self.map(states, V::default(), |slot, state| {
            let best =
                edges[slot].iter().filter(|&&edge| edge != NOWHERE).map(|&edge| after[edge as usize]).max();
            best.unwrap_or_else(|| V::of_stored(solver.backup.terminal_of(state)))
        })
    }

    /// Results of `value` for each board, by slot. Free slots have `nothing`.
    fn map<T: Copy + Send, E>(
        &self,
        boards: &Boards,
        nothing: T,
        value: impl Fn(usize, Board) -> T + Sync,
    ) -> Result<Vec<T>, ConeError<E>> {
        let mut values = vec![nothing; boards.slots()];
        let fill = |(nth, values): (usize, &mut [T])| {
            if self.is_over() {
                return;
            }
            for (slot, to) in (nth * SLOTS_AT_ONCE..).zip(values) {
                if let Some(board) = boards.get(slot) {
                    *to = value(slot, board);
                }
            }
        };
        if boards.slots() < SHARED_SLOTS {
            values.chunks_mut(SLOTS_AT_ONCE).enumerate().for_each(fill);
        } else {
            values.par_chunks_mut(SLOTS_AT_ONCE).enumerate().for_each(fill);
        }
        self.go_on()?;
        Ok(values)
    }

    /// Divides a range of slots among the threads, and calls `work` for each part.
    fn for_each<E>(
        &self,
        slots: std::ops::Range<usize>,
        work: impl Fn(std::ops::Range<usize>) + Sync,
    ) -> Result<(), ConeError<E>> {
        let cut = |nth: usize| {
            let first = slots.start + nth * SLOTS_AT_ONCE;
            if !self.is_over() {
                work(first..(first + SLOTS_AT_ONCE).min(slots.end));
            }
        };
        let cuts = slots.len().div_ceil(SLOTS_AT_ONCE);
        if slots.len() < SHARED_SLOTS {
            (0..cuts).for_each(cut);
        } else {
            (0..cuts).into_par_iter().for_each(cut);
        }
        self.go_on()
    }

    /// Whether the result is no longer wanted. Once `wanted` has returned `false`, it is not called again.
    fn is_over(&self) -> bool {
        if !self.over.load(Ordering::Relaxed) && !(self.limits.wanted)() {
            self.over.store(true, Ordering::Relaxed);
        }
        self.over.load(Ordering::Relaxed)
    }

    fn go_on<E>(&self) -> Result<(), ConeError<E>> {
        if self.over.load(Ordering::Relaxed) { Err(ConeError::GivenUp) } else { Ok(()) }
    }

    /// Checks that `more` bytes, in addition to the finished tables, are within the memory limit.
    fn check<E>(&self, reached: Layer, more: u64) -> Result<(), ConeError<E>> {
        let needed_bytes = self.bytes + more;
        if needed_bytes <= self.limits.bytes {
            return Ok(());
        }
        let Limits { bytes: limit_bytes, .. } = self.limits;
        Err(TooLarge { limit_bytes, needed_bytes, first: self.first, reached, states: self.states }.into())
    }
}

/// The width of a value in a cone.
trait Width: Value {
    /// Collects values of this width.
    fn values(values: impl Iterator<Item = Self>) -> Values;
}

impl Width for u32 {
    fn values(values: impl Iterator<Item = Self>) -> Values {
        Values::Bits32(values.collect())
    }
}

impl Width for u64 {
    fn values(values: impl Iterator<Item = Self>) -> Values {
        Values::Bits64(values.collect())
    }
}
