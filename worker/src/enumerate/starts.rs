//! The states at which an enumeration begins.

use exact2048_game::class::Space;
use exact2048_game::columns::Columns;
use exact2048_game::rowset::Row;
use exact2048_game::sequence::{Column, Counts, Sequence};
use exact2048_game::{Board, Lane, Layer};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// A state at which an enumeration begins, in its block.
#[derive(Clone, Copy, Debug)]
pub struct StartEntry {
    pub row: Row,
    sequence: Sequence,
}

impl StartEntry {
    /// Its column; `None` for a board with more large tiles than any game makes.
    pub fn column(&self, columns: &Columns) -> Option<Column> {
        let mut finder = columns.finder();
        let group = finder.group(Counts::of(self.sequence))?;
        finder.column(group, self.sequence)
    }
}

/// The states at which an enumeration begins: the starts of games, or those that a caller sets.
#[derive(Debug)]
pub struct Starts(RwLock<FxHashMap<(Layer, Lane), Vec<StartEntry>>>);

impl Starts {
    /// The states at which games of the run begin: the starts of the rules, or a given position.
    pub fn of_games(space: &Space) -> Self {
        let starts = Self(RwLock::default());
        let boards: Vec<Board> =
            space.params().game().starts().into_iter().map(|start| start.board).collect();
        starts.set(space, &boards);
        starts
    }

    /// Replaces the states.
    pub fn set(&self, space: &Space, boards: &[Board]) {
        let mut starts = FxHashMap::<_, Vec<StartEntry>>::default();
        for (lane, layer, row, sequence) in boards.iter().filter_map(|&board| space.locate(board)) {
            starts.entry((layer, lane)).or_default().push(StartEntry { row, sequence });
        }
        *self.0.write() = starts;
    }

    /// The states of a block.
    pub fn of(&self, layer: Layer, lane: Lane) -> Vec<StartEntry> {
        self.0.read().get(&(layer, lane)).cloned().unwrap_or_default()
    }
}
