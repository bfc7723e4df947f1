//! The block that a task works on.

use std::sync::Arc;

use exact2048_game::class::Class;
use exact2048_game::{Lane, Layer};
use exact2048_solution::Parts;

use crate::Worker;
use crate::tables::LaneTables;

/// A block with what is known of its rows and columns, while it is worked on.
pub(crate) struct OpenBlock<'a> {
    pub layer: Layer,
    pub lane: Lane,
    /// Its rows.
    pub class: &'a Class,
    /// Its columns.
    pub tables: Arc<LaneTables>,
    /// Threads without a task of their own, which may help.
    pub helpers: usize,
}

impl OpenBlock<'_> {
    /// The parts that it is stored in.
    pub fn parts(&self) -> Parts {
        Parts::new(self.class.rows(), self.tables.columns.len())
    }
}

impl<V: crate::Value> Worker<V> {
    /// A block; `None` where there is none of this layer and lane.
    pub(crate) fn open(&self, layer: Layer, lane: Lane, helpers: usize) -> Option<OpenBlock<'_>> {
        // The columns of a lane take long to list: not where there is no block.
        let class = self.tables.class(layer, lane)?;
        let tables = self.tables.lane(lane)?;
        Some(OpenBlock { layer, lane, class, tables, helpers })
    }
}
