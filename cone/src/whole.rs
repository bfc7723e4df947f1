//! Values of the boards of whole layers.
//!
//! A caller that needs all values of a layer already has the layer's states, and the values of the two layers above. So
//! it needs no enumeration and no cone.

use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_game::spawn_images::Spawned;
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, PerSpawn, Precision, SpawnKind};
use rayon::prelude::*;

use crate::boards::{AT_A_TIME, Boards, first_slot, slot_after};
use crate::solver::Solver;

/// Number of boards that one thread processes at a time.
const AT_ONCE: usize = 1024;

/// Additional capacity of a table of afterstates.
///
/// A state has up to four afterstates, so a step lists at most one state per four free slots. With this capacity, even
/// the last steps of a layer have enough states for all threads.
const SPARE: usize = 16 * AT_ONCE;

/// Lookup table of the canonical boards of a layer with their stored values.
///
/// Like `Boards`, it is an open-addressing table. A slot has the board and its value, so a lookup accesses memory once.
#[derive(Debug)]
pub struct LayerTable {
    slots: Box<[(Board, Stored)]>,
}

impl LayerTable {
    /// Creates a table of boards and their values. The boards must be distinct, and each must have a tile.
    pub fn new(boards: &[Board], values: &[Stored]) -> Self {
        let mut table = Boards::default();
        table.reserve(boards.len());
        let of_slots: Vec<AtomicU64> = (0..table.slots()).map(|_| AtomicU64::new(0)).collect();
        let chunks = boards.par_chunks(AT_ONCE).zip(values.par_chunks(AT_ONCE));
        chunks.for_each(|(boards, values)| {
            for (boards, values) in boards.chunks(AT_A_TIME).zip(values.chunks(AT_A_TIME)) {
                let (at, _) = table.insert_at(boards);
                at.iter().zip(values).for_each(|(&at, value)| of_slots[at].store(value.0, Ordering::Relaxed));
            }
        });
        let slot = |(slot, value): (usize, AtomicU64)| {
            (table.get(slot).unwrap_or_default(), Stored(value.into_inner()))
        };
        Self { slots: of_slots.into_iter().enumerate().map(slot).collect() }
    }

    /// The values of at most [`AT_A_TIME`] boards. The error is the first missing board.
    #[inline]
    fn values<V: Value>(&self, boards: &[Board]) -> Result<[V; AT_A_TIME], Board> {
        let mut found = [(Board::default(), Stored::default()); AT_A_TIME];
        for (found, &board) in found.iter_mut().zip(boards) {
            *found = self.slots[first_slot(board, self.slots.len())];
        }
        let mut values = [V::default(); AT_A_TIME];
        for ((value, &board), found) in values.iter_mut().zip(boards).zip(found) {
            *value = V::of_stored(if found.0 == board { found.1 } else { self.search(board)? });
        }
        Ok(values)
    }

    /// The value of a board that is not in its first slot.
    fn search(&self, board: Board) -> Result<Stored, Board> {
        let mut at = first_slot(board, self.slots.len());
        loop {
            match self.slots[at] {
                (found, value) if found == board => return Ok(value),
                (Board(0), _) => return Err(board),
                _ => at = slot_after(at, self.slots.len()),
            }
        }
    }

    /// Upper bound on the bytes of a table of `boards` boards, including its construction.
    pub fn bytes(boards: u64) -> u64 {
        // Counts three slots for two boards, and a copy of the boards and values during construction.
        boards * 3 * (size_of::<Board>() + size_of::<u64>()) as u64
    }
}

/// Target of an illegal move.
const NOWHERE: u32 = u32::MAX;

/// Target of a move that wins the game.
const WON: u32 = u32::MAX - 1;

/// Targets of the moves of a state: slots of the layer's afterstates, [`NOWHERE`] or [`WON`].
type Edges = [u32; 4];

/// The moves of the states of a layer, and their afterstates.
#[derive(Debug)]
pub struct LayerMoves {
    after: Boards,
    /// The values of afterstates, by slot.
    values: Vec<Stored>,
    /// The value of a winning move.
    won: Stored,
    /// The edges of each state, in the order of the given states.
    edges: Vec<Edges>,
}

impl LayerMoves {
    /// The canonical afterstates without won ones, in ascending order, with their stored values.
    pub fn afterstates(&self) -> Vec<(Board, Stored)> {
        let slots = 0..self.after.slots();
        let mut all: Vec<_> =
            slots.filter_map(|slot| Some((self.after.get(slot)?, self.values[slot]))).collect();
        all.par_sort_unstable();
        all
    }

    /// The values of a state's moves by direction; `None` for illegal moves. `state` is the number of the state.
    #[inline]
    pub fn values(&self, state: usize) -> [Option<Stored>; 4] {
        self.edges[state].map(|edge| match edge {
            NOWHERE => None,
            WON => Some(self.won),
            slot => Some(self.values[slot as usize]),
        })
    }

    /// Upper bound on the bytes for these numbers of states and afterstates, including construction.
    pub fn bytes(states: u64, afterstates: u64) -> u64 {
        // Counts three slots for two afterstates, with their values.
        let of_after =
            3 * (afterstates + SPARE as u64) / 2 * (size_of::<Board>() + size_of::<Stored>()) as u64;
        states * size_of::<Edges>() as u64 + of_after
    }
}

impl Solver {
    /// Computes the moves of all states of a layer. `afterstates` estimates the number of afterstates without won ones.
    ///
    /// `above` has the layers after a spawned 2 and after a spawned 4. A state costs about a tenth of a microsecond of
    /// one core.
    ///
    /// # Errors
    ///
    /// The board after a spawn, if the layers above lack it.
    pub fn whole_layer(
        &self,
        states: &[Board],
        afterstates: usize,
        above: PerSpawn<&LayerTable>,
    ) -> Result<LayerMoves, Board> {
        // Doubles the size of the table if the layer has more afterstates than the caller estimated.
        let mut rooms = std::iter::successors(Some(afterstates + SPARE), |room| Some(2 * room));
        let listed = rooms.find_map(|room| self.list_moves(states, room));
        let (after, edges) = listed.unwrap_or_default();
        let won = match self.precision() {
            Precision::Bits32 => self.backup().won::<u32>().stored(),
            Precision::Bits64 => self.backup().won::<u64>().stored(),
        };
        let values = match self.precision() {
            Precision::Bits32 => self.after_values::<u32>(&after, above),
            Precision::Bits64 => self.after_values::<u64>(&after, above),
        }?;
        Ok(LayerMoves { after, values, won, edges })
    }

    /// Lists the layer's afterstates without won ones, and the targets of all moves; `None` if `room` may be too small.
    fn list_moves(&self, states: &[Board], room: usize) -> Option<(Boards, Vec<Edges>)> {
        let mut after = Boards::default();
        after.reserve(room);
        let mut edges = vec![[NOWHERE; 4]; states.len()];
        let (mut states, mut open) = (states, &mut edges[..]);
        while !states.is_empty() {
            let step = ((room - after.len()) / 4).min(states.len());
            if step < AT_ONCE.min(states.len()) {
                return None;
            }
            let (edges, states_now);
            (states_now, states) = states.split_at(step);
            (edges, open) = open.split_at_mut(step);
            edges.par_chunks_mut(AT_ONCE).zip(states_now.par_chunks(AT_ONCE)).for_each(|(edges, states)| {
                let together = edges.chunks_mut(AT_A_TIME / 4).zip(states.chunks(AT_A_TIME / 4));
                after.count(together.map(|(edges, states)| self.list(states, &after, edges)).sum());
            });
        }
        Some((after, edges))
    }

    /// Lists the afterstates of some states together, and returns the number of new afterstates.
    #[inline]
    fn list(&self, states: &[Board], after: &Boards, edges: &mut [Edges]) -> usize {
        let (mut boards, mut places, mut count) = ([Board::default(); AT_A_TIME], [(0, 0); AT_A_TIME], 0);
        for (nth, (&state, edges)) in states.iter().zip(&mut *edges).enumerate() {
            for (direction, board, _) in self.packed().moves(state).iter() {
                if self.is_won(board) {
                    edges[direction as usize] = WON;
                    continue;
                }
                boards[count] = self.packed().canonical(board);
                places[count] = (nth, direction as usize);
                count += 1;
            }
        }
        let (slots, added) = after.insert_at(&boards[..count]);
        places[..count]
            .iter()
            .zip(slots)
            .for_each(|(&(nth, direction), slot)| edges[nth][direction] = slot as u32);
        added
    }

    /// The values of afterstates, by slot.
    fn after_values<V: Value>(
        &self,
        after: &Boards,
        above: PerSpawn<&LayerTable>,
    ) -> Result<Vec<Stored>, Board> {
        let mut values = vec![Stored::default(); after.slots()];
        values.par_chunks_mut(AT_ONCE).enumerate().try_for_each(|(nth, values)| {
            let mut spawned = Spawned::default();
            for (slot, value) in (nth * AT_ONCE..).zip(values) {
                if let Some(board) = after.get(slot) {
                    self.find_spawned(board, &mut spawned);
                    *value = self.after_value::<V>(&spawned, above)?;
                }
            }
            Ok(())
        })?;
        Ok(values)
    }

    /// The value of an afterstate, from the states after its spawns.
    #[inline]
    fn after_value<V: Value>(
        &self,
        spawned: &Spawned,
        above: PerSpawn<&LayerTable>,
    ) -> Result<Stored, Board> {
        let boards = spawned.each();
        let mut values: PerSpawn<_> = [[V::default(); AT_A_TIME]; SpawnKind::ALL.len()];
        for ((values, above), boards) in values.iter_mut().zip(above).zip(boards) {
            *values = above.values::<V>(boards)?;
        }
        let lists = std::array::from_fn(|kind| &values[kind][..boards[kind].len()]);
        Ok(self.backup().of_values(lists).stored())
    }

    /// The stored value of a state, from the values of its moves.
    #[inline]
    pub fn whole_state(&self, state: Board, moves: [Option<Stored>; 4]) -> Stored {
        moves.into_iter().flatten().max().unwrap_or_else(|| self.backup().terminal_of(state))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::collections::BTreeSet;

    use exact2048_game::rules::Move;
    use exact2048_game::{KeptLayers, Params};

    use super::*;

    /// A table that is too small is detected, and a larger table gives the same result.
    #[test]
    fn listed_moves_do_not_depend_on_the_room() {
        let params = Params::small("2x3");
        let solver = Solver::new(params.game(), KeptLayers::default());
        let board = |number: u64| {
            (0..6).fold(Board::default(), |b, cell| b.with(cell, (number >> (2 * cell) & 3) as u8))
        };
        let states: BTreeSet<Board> =
            (1..4096).map(|number| solver.packed().canonical(board(number))).collect();
        let states: Vec<Board> = states.into_iter().collect();
        assert!(solver.list_moves(&states, states.len()).is_none());
        for room in [4 * states.len(), 100 * states.len()] {
            let (after, edges) = solver.list_moves(&states, room).unwrap();
            let mut all = BTreeSet::new();
            for (&state, edges) in states.iter().zip(edges) {
                for (direction, edge) in Move::ALL.into_iter().zip(edges) {
                    let made = solver.packed().moves(state).get(direction);
                    let made = made.map(|(board, _)| solver.packed().canonical(board));
                    assert_eq!((edge != NOWHERE).then(|| after.get(edge as usize).unwrap()), made);
                    all.extend(made);
                }
            }
            assert_eq!(after.len(), all.len());
        }
    }
}
