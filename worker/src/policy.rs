//! Packing of best moves: the items of a block for the shard of its layer.

use std::ops::Range;

use exact2048_game::bitset;
use exact2048_game::class::Class;
use exact2048_game::legal::{Legality, MaskLegality};
use exact2048_game::rowset::Row;
use exact2048_game::skeleton::Config;
use exact2048_game::transitions::{Direction, Transitions};
use exact2048_game::value::Value;
use exact2048_game::{Layer, bitset::Number};
use exact2048_solution::best_moves::{self, StateRow};
use exact2048_solution::{ItemKind, Parts};

use crate::backup::stride;
use crate::blocks::Entries;
use crate::pieces::map_parts;
use crate::tables::LaneTables;
use crate::{Worker, WorkerError};

/// The states of a block and the best move of each.
pub(crate) struct Policy<'a> {
    pub layer: Layer,
    pub class: &'a Class,
    pub tables: &'a LaneTables,
    pub transitions: &'a Transitions,
    pub reach: &'a Entries,
    /// In rows as those of values.
    pub best: &'a [Direction],
}

impl<V: Value> Worker<V> {
    /// Packs the best moves of a block. Cost: some nanoseconds a state.
    pub(crate) fn pack_best_moves(
        &self,
        legality: &Legality,
        policy: &Policy<'_>,
    ) -> Result<(), WorkerError> {
        let Policy { layer, class, tables, .. } = *policy;
        let parts = Parts::new(class.rows(), tables.columns.len());
        let items = map_parts(parts, |part| self.best_moves_item(legality, policy, parts.rows(part)));
        let lengths: Vec<usize> = items.iter().map(Vec::len).collect();
        let item = |part: u32| items[part as usize].clone();
        self.pack(ItemKind::BestMoves, layer, tables.columns.lane(), &lengths, item)
    }

    /// The item of the part that has these rows; may be empty.
    fn best_moves_item(&self, legality: &Legality, policy: &Policy<'_>, rows: Range<usize>) -> Vec<u8> {
        let Policy { class, tables, transitions, reach, best, .. } = *policy;
        let (held, configs) = (reach.matrix.rows(), self.tables.configs(transitions));
        let states = |row: Row| reach.matrix.slot(held.slot(row));
        let masks = self.tables.space.masks(tables.columns.lane().k).iter().enumerate();
        let of_masks: Vec<(MaskLegality<'_>, Vec<Row>)> = masks
            .filter_map(|(index, mask)| {
                let all = class.mask_rows(index);
                let here = all.start.max(rows.start)..all.end.min(rows.end);
                let rows: Vec<Row> = held.rows_in(here).filter(|&row| bitset::any(states(row))).collect();
                (!rows.is_empty()).then(|| (legality.of_mask(mask, &tables.columns), rows))
            })
            .collect();
        let rows = of_masks.iter().flat_map(|(mask, rows)| rows.iter().map(move |&row| (mask, row)));
        let stride = stride(tables);
        let rows = rows.map(|(mask, row)| {
            let slot = held.slot(row).index();
            let config: Config = configs[slot];
            let state_row = StateRow { legality: mask.row(config), states: states(row) };
            (state_row, &best[slot * stride..][..tables.columns.len()])
        });
        best_moves::encode(tables.columns.len(), rows)
    }
}
