//! Values of the boards of whole layers.
//!
//! Who wants all values of a layer has its states, and those of the two layers above with their values: there is nothing to
//! enumerate, and no cone.

use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_game::rules::{Move, potential};
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Precision};
use rayon::prelude::*;

use crate::boards::{AT_A_TIME, Boards};
use crate::solver::Solver;

/// Boards that one thread takes at a time.
const AT_ONCE: usize = 4096;

/// Canonical boards of a layer with their values as they are stored, to look values up in.
#[derive(Debug)]
pub struct LayerTable {
    boards: Boards,
    /// By slot.
    values: Vec<Stored>,
}

impl LayerTable {
    /// Of boards and their values. Each board comes once, and none is empty.
    pub fn new(boards: &[Board], values: &[Stored]) -> Self {
        let mut table = Boards::default();
        table.reserve(boards.len());
        let slots: Vec<AtomicU64> = (0..table.slots()).map(|_| AtomicU64::new(0)).collect();
        let chunks = boards.par_chunks(AT_ONCE).zip(values.par_chunks(AT_ONCE));
        chunks.for_each(|(boards, values)| {
            for (boards, values) in boards.chunks(AT_A_TIME).zip(values.chunks(AT_A_TIME)) {
                let (at, added) = table.insert_at(boards);
                table.count(added);
                at.iter().zip(values).for_each(|(&at, value)| slots[at].store(value.0, Ordering::Relaxed));
            }
        });
        Self { boards: table, values: slots.into_iter().map(|slot| Stored(slot.into_inner())).collect() }
    }

    /// The boards with their values, ascending.
    pub fn sorted(&self) -> Vec<(Board, Stored)> {
        let slots = 0..self.boards.slots();
        let mut all: Vec<_> =
            slots.filter_map(|slot| Some((self.boards.get(slot)?, self.values[slot]))).collect();
        all.par_sort_unstable();
        all
    }

    /// Bytes that a table of so many boards takes, at most.
    pub fn bytes(boards: u64) -> u64 {
        // Three slots for two boards, or twice as many while it grows.
        boards * 3 * (size_of::<Board>() + size_of::<u64>()) as u64
    }
}

/// Where a move leads that is not legal.
const NOWHERE: u32 = u32::MAX;

/// The moves of the states of a layer, and what they lead to.
#[derive(Debug)]
pub struct LayerMoves {
    after: LayerTable,
    /// Of each state, in the order in which they were given: where its moves lead in the table.
    edges: Vec<[u32; 4]>,
}

impl LayerMoves {
    /// The canonical afterstates with their values as they are stored, those that are won too.
    pub fn afterstates(&self) -> &LayerTable {
        &self.after
    }

    /// The values of the moves of a state by direction, by the number of the state; `None` where a move is not legal.
    #[inline]
    pub fn values(&self, state: usize) -> [Option<Stored>; 4] {
        self.edges[state].map(|slot| (slot != NOWHERE).then(|| self.after.values[slot as usize]))
    }

    /// The best move of a state by the number of the state, of equal ones the first; `None` where none is legal.
    #[inline]
    pub fn best(&self, state: usize) -> Option<Move> {
        let moves = Move::ALL.into_iter().zip(self.values(state));
        let legal = moves.filter_map(|(direction, value)| Some((direction, value?)));
        legal
            .reduce(|best, other| if other.1 > best.1 { other } else { best })
            .map(|(direction, _)| direction)
    }

    /// Bytes that they take at most for so many states and afterstates, also while they are made.
    pub fn bytes(states: u64, afterstates: u64) -> u64 {
        states * (size_of::<[Board; 4]>() + size_of::<[u32; 4]>()) as u64 + LayerTable::bytes(afterstates)
    }
}

impl Solver {
    /// The moves of all states of a layer. `above` are the layers that a spawned 2 and a spawned 4 lead to.
    ///
    /// Cost: about a tenth of a microsecond of one core a state.
    ///
    /// # Errors
    ///
    /// The board that the layers above lack, though a spawn leads to it.
    pub fn whole_layer(&self, states: &[Board], above: [&LayerTable; 2]) -> Result<LayerMoves, Board> {
        let mut led_to = vec![[Board(0); 4]; states.len()];
        led_to.par_chunks_mut(AT_ONCE).zip(states.par_chunks(AT_ONCE)).for_each(|(led_to, states)| {
            for (led_to, &state) in led_to.iter_mut().zip(states) {
                for (direction, after, _) in self.packed().moves(state).iter() {
                    led_to[direction as usize] = self.packed().canonical(after);
                }
            }
        });
        let mut after = Boards::default();
        for step in led_to.chunks((states.len() / 8).max(2 * AT_ONCE)) {
            after.reserve(4 * step.len());
            step.par_chunks(AT_ONCE).for_each(|led_to| {
                let added = legal(led_to).map(|(boards, count)| after.insert(&boards[..count]));
                after.count(added.sum());
            });
        }
        after.shrink();
        let values = match self.precision() {
            Precision::Bits32 => self.after_values::<u32>(&after, above),
            Precision::Bits64 => self.after_values::<u64>(&after, above),
        }?;
        let mut edges = vec![[NOWHERE; 4]; states.len()];
        edges.par_chunks_mut(AT_ONCE).zip(led_to.par_chunks(AT_ONCE)).for_each(|(edges, led_to)| {
            let edges = edges.chunks_mut(AT_A_TIME / 4).zip(led_to.chunks(AT_A_TIME / 4));
            for (edges, led_to) in edges {
                let boards = led_to.as_flattened();
                let slots = after.slots_of(boards);
                for ((edge, slot), board) in edges.as_flattened_mut().iter_mut().zip(slots).zip(boards) {
                    // A table of 2^32 slots would take 32 GiB.
                    *edge = if board.0 == 0 { NOWHERE } else { slot as u32 };
                }
            }
        });
        Ok(LayerMoves { after: LayerTable { boards: after, values }, edges })
    }

    /// The values of afterstates, by slot.
    fn after_values<V: Value>(&self, after: &Boards, above: [&LayerTable; 2]) -> Result<Vec<Stored>, Board> {
        let mut values = vec![Stored::default(); after.slots()];
        values.par_chunks_mut(AT_ONCE).enumerate().try_for_each(|(nth, values)| {
            for (slot, value) in (nth * AT_ONCE..).zip(values) {
                if let Some(board) = after.get(slot) {
                    *value = self.after_value::<V>(board, above)?;
                }
            }
            Ok(())
        })?;
        Ok(values)
    }

    /// The value of an afterstate.
    fn after_value<V: Value>(&self, after: Board, above: [&LayerTable; 2]) -> Result<Stored, Board> {
        if self.is_won(after) {
            return Ok(self.backup().won::<V>().stored());
        }
        let spawned = self.spawned(after);
        let mut values = [[V::default(); AT_A_TIME]; 2];
        for ((boards, above), values) in spawned.each().into_iter().zip(above).zip(&mut values) {
            let slots = above.boards.slots_of(boards);
            for ((&board, slot), value) in boards.iter().zip(slots).zip(values) {
                if above.boards.get(slot) != Some(board) {
                    return Err(board);
                }
                *value = V::of_stored(above.values[slot]);
            }
        }
        let empty = spawned.each()[0].len();
        Ok(self.backup().of_values(&values[0][..empty], &values[1][..empty]).stored())
    }

    /// The value of a state as it is stored, by those of its moves.
    #[inline]
    pub fn whole_state(&self, state: Board, moves: [Option<Stored>; 4]) -> Stored {
        let over = || match self.precision() {
            Precision::Bits32 => self.terminal::<u32>(state),
            Precision::Bits64 => self.terminal::<u64>(state),
        };
        moves.into_iter().flatten().max().unwrap_or_else(over)
    }

    fn terminal<V: Value>(&self, state: Board) -> Stored {
        self.backup().terminal::<V>(potential(state, self.packed().size()) as u32).stored()
    }
}

/// The boards that are there, some at a time, with how many they are.
fn legal(led_to: &[[Board; 4]]) -> impl Iterator<Item = ([Board; AT_A_TIME], usize)> + '_ {
    led_to.chunks(AT_A_TIME / 4).map(|led_to| {
        let (mut boards, mut count) = ([Board(0); AT_A_TIME], 0);
        for &board in led_to.as_flattened().iter().filter(|board| board.0 != 0) {
            boards[count] = board;
            count += 1;
        }
        (boards, count)
    })
}
