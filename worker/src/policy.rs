//! Packing of best moves: the items of a block for the shard of its layer.

use std::ops::Range;

use exact2048_game::bitset;
use exact2048_game::legal::{Legality, MaskLegality};
use exact2048_game::rowset::Row;
use exact2048_game::skeleton::Config;
use exact2048_game::transitions::Direction;
use exact2048_game::value::Value;
use exact2048_game::{Layer, bitset::Number};
use exact2048_solution::best_moves::{self, StateRow};
use exact2048_solution::{ItemKind, Parts};

use crate::backup::{BackedUp, stride};
use crate::pieces::map_parts;
use crate::{Worker, WorkerError};

impl<V: Value> Worker<V> {
    /// Packs the best moves of a block, which are given in rows as those of its values. Cost: some nanoseconds a state.
    pub(crate) fn pack_best_moves(
        &self,
        layer: Layer,
        legality: &Legality,
        block: &BackedUp<'_, V>,
        best: &[Direction],
    ) -> Result<(), WorkerError> {
        let BackedUp { class, tables, .. } = *block;
        let parts = Parts::new(class.rows(), tables.columns.len());
        let items = map_parts(parts, |part| self.best_moves_item(legality, block, best, parts.rows(part)));
        let lengths: Vec<usize> = items.iter().map(Vec::len).collect();
        let item = |part: u32| items[part as usize].clone();
        self.pack(ItemKind::BestMoves, layer, tables.columns.lane(), &lengths, item)
    }

    /// The item of the part that has these rows; may be empty.
    fn best_moves_item(
        &self,
        legality: &Legality,
        block: &BackedUp<'_, V>,
        best: &[Direction],
        rows: Range<usize>,
    ) -> Vec<u8> {
        let BackedUp { class, tables, transitions, reach, .. } = *block;
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
