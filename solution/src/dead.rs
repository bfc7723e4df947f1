//! Dead states: those in which no move is legal.
//!
//! Commits count all states of a layer, including dead ones, which have values too. Whether a state is dead follows
//! from its row and column (`exact2048_game::legal`). So this module counts 64 columns at a time, and builds boards
//! only for symmetric rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use exact2048_game::bitset::for_each_bit;
use exact2048_game::columns::Columns;
use exact2048_game::legal::{Legality, MaskLegality};
use exact2048_game::locate::{Locator, board_of};
use exact2048_game::{Lane, Layer};
use exact2048_storage::{ItemKey, ShardKind};
use rayon::prelude::*;

use crate::archive::Archive;
use crate::catalog::Catalog;
use crate::parts::{Parts, PayloadError};
use crate::read_error::ReadError;
use crate::run::Run;

/// Counts the dead states of the layers of a run.
///
/// Memory: some MiB of frames, a part for each thread, and the columns of the lanes of a layer, 8 bytes each.
pub struct DeadStates<'a> {
    catalog: &'a Catalog,
    archive: &'a dyn Archive,
    locator: Locator,
    legality: Legality,
    columns: HashMap<Lane, Arc<Columns>>,
}

impl<'a> DeadStates<'a> {
    /// A counter for a run, which need not be finished.
    #[must_use]
    pub fn new(run: &'a Run) -> Self {
        let params = run.params();
        Self {
            catalog: run.catalog(),
            archive: &**run.archive(),
            locator: Locator::new(params),
            legality: Legality::new(params.game().board()),
            columns: HashMap::new(),
        }
    }

    /// Counts the dead states of a layer, up to symmetry; `None` if the reach of the layer is not stored. Uses the
    /// threads of the caller's rayon pool.
    ///
    /// Cost: tens of nanoseconds per row, and less than a nanosecond per state.
    ///
    /// # Errors
    ///
    /// If the reach cannot be read or is invalid.
    pub fn of_layer(&mut self, layer: Layer) -> Result<Option<u64>, ReadError> {
        let Some(of_layer) = self.catalog.parts_of(layer)? else { return Ok(None) };
        let params = self.locator.space().params();
        let lane_of = |key: &ItemKey| Lane::from_code(key.lane);
        let lanes: Vec<Lane> = of_layer.iter().filter_map(lane_of).collect();
        self.columns.retain(|lane, _| lanes.contains(lane));
        for &lane in &lanes {
            self.columns.entry(lane).or_insert_with(|| Arc::new(Columns::new(params, lane)));
        }
        of_layer.par_iter().map(|&key| self.of_part(layer, key)).sum::<Result<u64, _>>().map(Some)
    }

    fn of_part(&self, layer: Layer, key: ItemKey) -> Result<u64, ReadError> {
        let lane = Lane::from_code(key.lane).filter(|lane| self.columns.contains_key(lane));
        let place = lane.and_then(|lane| Some((lane, self.locator.rows(layer, lane)?)));
        let (lane, rows) = place.ok_or_else(|| PayloadError::no_boards(key))?;
        let columns = &self.columns[&lane];
        let parts = Parts::new(rows as usize, columns.len());
        let Some(item) = self.archive.read(ShardKind::Reach, key)? else { return Ok(0) };
        let states = parts.reach_rows(key, &item)?;
        let mut masks: BTreeMap<usize, MaskLegality<'_>> = BTreeMap::new();
        let mut dead = 0;
        for (row, states) in parts.occupied(key.part, &states) {
            let skeleton = self.locator.skeleton(layer, lane, row);
            let (index, mask, config) = skeleton.ok_or_else(|| PayloadError::no_boards(key))?;
            let of_mask = masks.entry(index).or_insert_with(|| self.legality.of_mask(mask, columns));
            let legality = of_mask.row(config);
            // A row that a symmetry maps to itself holds several images of a state. Only the stored image counts.
            let counts = |column: usize| {
                let board = board_of(mask, config, columns.sequences()[column]);
                self.locator.stored_image(board) == Some(board)
            };
            for (word, &states) in states.iter().enumerate() {
                let found = states & legality.none(word);
                if mask.stabiliser.is_empty() {
                    dead += u64::from(found.count_ones());
                } else {
                    for_each_bit(&[found], |bit| dead += u64::from(counts(64 * word + bit)));
                }
            }
        }
        Ok(dead)
    }
}
