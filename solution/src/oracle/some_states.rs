//! States of a layer, part by part, for callers that need not hold all of them.

use exact2048_game::bitset::for_each_bit;
use exact2048_game::columns::Columns;
use exact2048_game::packed::PackedRules;
use exact2048_game::{Board, Lane, Layer};
use exact2048_storage::ItemKey;

use super::QueryError;
use super::stored::StoredStates;
use crate::parts::{Parts, PayloadError};
use crate::read_error::ReadError;

impl StoredStates {
    /// See [`Oracle::parts_of`](super::Oracle::parts_of).
    pub(super) fn parts_of(&self, layer: Layer) -> Result<Vec<ItemKey>, QueryError> {
        if layer > self.params.last_layer() || layer < self.params.first_layer() {
            return Ok(Vec::new());
        }
        if !self.has_reach(layer) {
            return Err(QueryError::ReachRemoved(layer));
        }
        Ok(self.catalog.parts_of(layer).map_err(ReadError::from)?.unwrap_or_default())
    }

    /// See [`Oracle::states_of`](super::Oracle::states_of).
    pub(super) fn states_of(&self, rules: &PackedRules, part: ItemKey) -> Result<Vec<Board>, QueryError> {
        let no_boards = || ReadError::from(PayloadError::no_boards(part));
        let (layer, lane) = (Layer(part.layer), Lane::from_code(part.lane).ok_or_else(no_boards)?);
        let columns = Columns::new(&self.params, lane);
        let rows = self.locator.rows(layer, lane).ok_or_else(no_boards)?;
        let parts = Parts::new(rows as usize, columns.len());
        let Some(reach) = self.parts.states(part, parts)? else { return Ok(Vec::new()) };
        let mut boards = Vec::new();
        for (row, bits) in parts.occupied(part.part, &reach) {
            let row = self.locator.row_boards(layer, lane, row).ok_or_else(no_boards)?;
            // If a row has several images of a state, `board` returns only one of them.
            for_each_bit(bits, |column| boards.extend(row.board(columns.sequences()[column])));
        }
        boards.iter_mut().for_each(|board| *board = rules.canonical(*board));
        Ok(boards)
    }
}
