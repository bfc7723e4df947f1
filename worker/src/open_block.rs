//! The block that a task works on.

use std::sync::Arc;

use exact2048_game::class::Class;
use exact2048_game::transitions::{Direction, Transitions};
use exact2048_game::value::Value;
use exact2048_game::value_step::Rounding;
use exact2048_game::{Lane, Layer};
use exact2048_solution::Parts;

use crate::blocks::Entries;
use crate::tables::{LaneTables, Tables};

/// A block with its rows and columns, while a task works on it.
pub struct OpenBlock<'a> {
    pub layer: Layer,
    pub lane: Lane,
    /// Its rows.
    pub class: &'a Class,
    /// Its columns.
    pub tables: Arc<LaneTables>,
    /// The number of threads without a task, which may help.
    pub helpers: usize,
}

impl<'a> OpenBlock<'a> {
    /// Opens a block; `None` if no block has this layer and lane.
    pub fn new(tables: &'a Tables, layer: Layer, lane: Lane, helpers: usize) -> Option<Self> {
        // The class is looked up first, because listing the columns of a lane takes long.
        let class = tables.class(layer, lane)?;
        let tables = tables.lane(lane)?;
        Some(Self { layer, lane, class, tables, helpers })
    }

    /// The parts that the block is stored in.
    pub fn parts(&self) -> Parts {
        Parts::new(self.class.rows(), self.tables.columns.len())
    }
}

/// A block with the values of its states.
pub struct BackedUp<'a, V> {
    /// The block.
    pub open: &'a OpenBlock<'a>,
    /// The transitions of its rows.
    pub transitions: &'a Transitions,
    /// Its entries.
    pub reach: &'a Entries,
    /// The values of its rows.
    pub states: &'a [V],
    /// The best moves of its rows, if the run stores them.
    pub best: Option<&'a [Direction]>,
}

impl<V: Value> BackedUp<'_, V> {
    /// Encodes the values of a part as its shard holds them, rounded if `rounding` is given.
    pub fn encoded_values(&self, rounding: Option<Rounding>) -> impl Fn(u32) -> Vec<u8> + Sync {
        let (parts, matrix, stride) = (self.open.parts(), &self.reach.matrix, self.open.tables.stride());
        move |part| parts.encode_values(part, matrix.rows(), matrix.bits(), stride, self.states, rounding)
    }
}
