//! Values of states that are not stored, from those that are: layer by layer, each part of the run read once.
//!
//! A search is asked for states and afterstates, then [`settle`](Search::settle) goes through the layers upward: what
//! is stored or was computed before is taken, and any other state is *open*: it asks for what its moves and spawns lead
//! to. No path jumps over a cut, so that this ends below the next one. Then it goes downward and computes. The states of
//! a layer are sorted by where they are, so that neither the order of questions nor the size of the cache decides how
//! often a part is read.
//!
//! Far below a cut many states come together. Where they are more than may be open at once, those of a layer are settled
//! some at a time, by searches of their own. So memory is bounded whatever layers are kept; what these searches have in
//! common is computed again for each where the cache has not kept it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use exact2048_game::board::Board;
use exact2048_game::rules;
use exact2048_game::{Layer, SpawnKind};
use exact2048_storage::ItemKey;

use super::decoded::Part;
use super::{Oracle, QueryError, Wanted};
use crate::archive::ReadError;

/// States that are settled at a time at least, where there is no room for more.
const LEAST_AT_A_TIME: usize = 16;

/// A search for the values of some states and afterstates.
pub(crate) struct Search<'a> {
    oracle: &'a Oracle,
    wanted: Wanted<'a>,
    /// States that may still be opened.
    room: usize,
    levels: BTreeMap<u32, Level>,
}

/// What is asked of a layer.
#[derive(Default)]
struct Level {
    asked: Vec<Asked>,
    /// The value of each, once it is known; `None` to the end where a state is not reachable.
    values: Vec<Option<u64>>,
    open: Vec<Open>,
}

impl Level {
    /// Takes in the value of an open state.
    fn close(&mut self, open: &Open, bits: u64) {
        if let Some((part, rank)) = &open.part {
            part.keep(*rank, bits);
        }
        open.asked.iter().for_each(|&index| self.values[index as usize] = Some(bits));
    }
}

/// A state whose value is asked for.
#[derive(Clone, Copy)]
struct Asked {
    board: Board,
    /// Whether it may be unreachable: it is no successor of a reachable one.
    from_outside: bool,
}

/// A state whose value has to be computed.
struct Open {
    board: Board,
    key: ItemKey,
    /// Where to keep the value.
    part: Option<(Arc<Part>, usize)>,
    /// What was asked for its moves.
    moves: Vec<After>,
    /// Everybody who asked for it or an image of it.
    asked: Vec<u32>,
}

/// A state that was asked for.
#[derive(Clone, Copy)]
pub(crate) struct State {
    layer: u32,
    index: usize,
}

/// An afterstate that was asked for.
#[derive(Clone)]
pub(crate) enum After {
    /// It holds the wanted tile.
    Won,
    /// Its spawns: what was asked of the two layers above, cell by cell.
    Spawns { layer: u32, twos: Range<usize>, fours: Range<usize> },
}

impl<'a> Search<'a> {
    /// A search that stops with [`QueryError::GivenUp`] once its answer is not `wanted`.
    pub(crate) fn new(oracle: &'a Oracle, wanted: Wanted<'a>) -> Self {
        Self { oracle, wanted, room: oracle.open_states(), levels: BTreeMap::new() }
    }

    /// Asks for a state that may be unreachable, and must not be won.
    pub(crate) fn ask(&mut self, board: Board) -> State {
        let layer = self.oracle.layer(board).0;
        State { layer, index: self.push(layer, Asked { board, from_outside: true }) }
    }

    /// Asks for an afterstate of a reachable state of a layer.
    pub(crate) fn ask_after(&mut self, layer: u32, after: Board) -> After {
        if self.oracle.is_won(after) {
            return After::Won;
        }
        let mut spawned = |spawn: SpawnKind| {
            let above = Layer(layer).after(spawn).0;
            let first = self.length(above);
            for cell in rules::empty_cells(after, self.oracle.params().board) {
                let board = after.with(cell, spawn.exponent());
                self.push(above, Asked { board, from_outside: false });
            }
            first..self.length(above)
        };
        After::Spawns { layer, twos: spawned(SpawnKind::Two), fours: spawned(SpawnKind::Four) }
    }

    fn push(&mut self, layer: u32, asked: Asked) -> usize {
        let level = self.levels.entry(layer).or_default();
        level.asked.push(asked);
        level.asked.len() - 1
    }

    fn length(&self, layer: u32) -> usize {
        self.levels.get(&layer).map_or(0, |level| level.asked.len())
    }

    /// Finds the values of everything asked for, and what they follow from.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`] where a shard cannot be read, [`QueryError::GivenUp`].
    pub(crate) fn settle(&mut self) -> Result<(), QueryError> {
        let mut next = self.levels.keys().next().copied();
        while let Some(layer) = next {
            let mut level = self.levels.remove(&layer).unwrap_or_default();
            let mut open = self.look_up(layer, &mut level)?;
            if open.len() <= self.room / 2 {
                self.room -= open.len();
                open.iter_mut().for_each(|open| self.ask_moves(layer, open));
                level.open = open;
            } else {
                self.settle_apart(layer, open, &mut level)?;
            }
            self.levels.insert(layer, level);
            next = self.levels.range(layer + 1..).next().map(|(&layer, _)| layer);
        }
        let layers: Vec<u32> = self.levels.keys().rev().copied().collect();
        for layer in layers {
            let mut level = self.levels.remove(&layer).unwrap_or_default();
            for open in std::mem::take(&mut level.open) {
                level.close(&open, self.best(&open)?);
            }
            self.levels.insert(layer, level);
        }
        Ok(())
    }

    /// Finds the values of open states of a layer some at a time.
    fn settle_apart(&self, layer: u32, mut open: Vec<Open>, level: &mut Level) -> Result<(), QueryError> {
        let at_a_time = (self.room / 4).max(LEAST_AT_A_TIME);
        for some in open.chunks_mut(at_a_time) {
            let room = self.room.saturating_sub(some.len());
            let mut search = Self { oracle: self.oracle, wanted: self.wanted, room, levels: BTreeMap::new() };
            some.iter_mut().for_each(|open| search.ask_moves(layer, open));
            search.settle()?;
            for open in some {
                level.close(open, search.best(open)?);
                open.moves = Vec::new();
            }
        }
        Ok(())
    }

    /// Asks for what the moves of an open state lead to.
    fn ask_moves(&mut self, layer: u32, open: &mut Open) {
        open.moves = self.oracle.afterstates(open.board).map(|after| self.ask_after(layer, after)).collect();
    }

    /// The fixed-point value of an open state, from those of what its moves lead to.
    fn best(&self, open: &Open) -> Result<u64, QueryError> {
        let mut best = None;
        for after in &open.moves {
            best = best.max(Some(self.after_bits(after, open.key)?));
        }
        Ok(best.unwrap_or_else(|| self.oracle.terminal(open.board)))
    }

    /// The fixed-point value of a state; `None` where it is not reachable.
    pub(crate) fn bits(&self, state: State) -> Option<u64> {
        self.levels.get(&state.layer)?.values.get(state.index).copied().flatten()
    }

    /// The fixed-point value of an afterstate, by a move from the part `key`: the rounded mean over its spawns.
    ///
    /// # Errors
    ///
    /// [`ReadError::ItemMissing`] where the run lacks a state that it has to have.
    pub(crate) fn after_bits(&self, after: &After, key: ItemKey) -> Result<u64, QueryError> {
        let After::Spawns { layer, twos, fours } = after else { return Ok(self.oracle.one()) };
        let (mut of_twos, mut of_fours) = ([0; 16], [0; 16]);
        for (exponent, range, values) in [(1, twos, &mut of_twos), (2, fours, &mut of_fours)] {
            let known =
                self.levels.get(&(layer + (1 << exponent))).and_then(|level| level.values.get(range.clone()));
            for (value, known) in values.iter_mut().zip(known.unwrap_or_default()) {
                *value = known.ok_or(ReadError::ItemMissing(key))?;
            }
        }
        Ok(self.oracle.mean(&of_twos[..twos.len()], &of_fours[..fours.len()]))
    }

    /// Takes the values of a layer that are there; the other states are open.
    fn look_up(&self, layer: u32, level: &mut Level) -> Result<Vec<Open>, QueryError> {
        let oracle = self.oracle;
        level.values = vec![None; level.asked.len()];
        let mut entries = Vec::with_capacity(level.asked.len());
        for (index, asked) in (0u32..).zip(&level.asked) {
            entries.extend(oracle.entry(asked.board).map(|entry| (entry, index)));
        }
        entries.sort_unstable_by_key(|(entry, index)| (entry.key, entry.number, *index));
        let is_kept = oracle.params().kept.keeps(Layer(layer));
        let mut open = Vec::new();
        for of_part in entries.chunk_by(|(a, _), (b, _)| a.key == b.key) {
            self.check()?;
            let entry = &of_part[0].0;
            let from_outside = of_part.iter().any(|&(_, index)| level.asked[index as usize].from_outside);
            let part = if is_kept || entry.keeps_values() || from_outside {
                let Some(part) = oracle.part(entry)? else { continue };
                Some(part)
            } else {
                // The successors of a reachable state are reachable, and nothing else would be learned.
                None
            };
            for same in of_part.chunk_by(|(a, _), (b, _)| a.number == b.number) {
                let rank = match &part {
                    None => None,
                    Some(part) => match part.rank(same[0].0.number) {
                        None => continue,
                        Some(rank) => Some((part, rank)),
                    },
                };
                let known = rank.map(|(part, rank)| part.value(rank)).transpose()?.flatten();
                let asked = same.iter().map(|&(_, index)| index);
                if let Some(bits) = known {
                    asked.for_each(|index| level.values[index as usize] = Some(bits));
                    continue;
                }
                self.check()?;
                let board = level.asked[same[0].1 as usize].board;
                let part = rank.map(|(part, rank)| (Arc::clone(part), rank));
                open.push(Open { board, key: entry.key, part, moves: Vec::new(), asked: asked.collect() });
            }
        }
        Ok(open)
    }

    fn check(&self) -> Result<(), QueryError> {
        if (self.wanted)() { Ok(()) } else { Err(QueryError::GivenUp) }
    }
}
