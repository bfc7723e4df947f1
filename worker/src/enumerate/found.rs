//! The entries of a block that were found.

use std::sync::Arc;

use exact2048_game::bitset::{self, BitSet};
use exact2048_game::class::Class;
use exact2048_game::patterns::PatternId;
use exact2048_game::rowset::{Row, RowSet};
use exact2048_game::value::Value;

use crate::bits::BitMatrix;
use crate::blocks::Entries;
use crate::error::WorkerError;
use crate::kernels::bit_moves::or_permuted;
use crate::open_block::OpenBlock;
use crate::pieces::of_slots;
use crate::shared::Shared;
use crate::tables::{MapCache, Tables};

/// The entries of a block that were found.
#[derive(Default)]
pub struct Found {
    /// The number of entries, up to symmetry.
    pub count: u64,
    pub entries: Option<Entries>,
}

/// The rows for a new block: all rows of the class, or those that `mark` marks if the class has very many.
pub fn rows_of(
    tables: &Tables,
    class: &Class,
    mark: impl FnOnce(&mut BitSet<Row>) -> Result<(), WorkerError>,
) -> Result<Arc<RowSet>, WorkerError> {
    if let Some(all) = tables.all_rows(class) {
        return Ok(all);
    }
    let mut found = BitSet::with_room(class.rows());
    mark(&mut found)?;
    Ok(Arc::new(RowSet::new(found)))
}

/// Clears the padding, sets all images of the entries in symmetric rows, and counts orbits.
pub fn close<V: Value>(
    shared: &Shared<V>,
    open: &OpenBlock<'_>,
    mut matrix: BitMatrix,
    cache: &mut MapCache,
) -> Result<Found, WorkerError> {
    let tables = &shared.tables;
    let transitions = shared.store.transitions(open.class, matrix.rows())?;
    let occurs = |slot| bitset::any(matrix.slot(slot));
    let symmetric = tables.symmetric_rows(cache, &open.tables, &transitions, occurs);
    let patterns: Vec<PatternId> = symmetric.iter().flat_map(|row| row.patterns).copied().collect();
    let permutations = tables.permutations(cache, &open.tables, &patterns);
    let columns = open.tables.columns.len();
    let pieces = shared.piece_length.of_bits(matrix.rows().len(), matrix.words());
    let more_than_orbits = matrix.map_pieces(&pieces, |rows| {
        rows.clear_padding(columns);
        let mut images = vec![0u64; open.tables.words()];
        let mut more_than_orbits = 0;
        for symmetric in of_slots(&symmetric, rows.slots(), |row| row.slot) {
            let row = rows.slot_mut(symmetric.slot);
            images.copy_from_slice(row);
            for permutation in &permutations[symmetric.first_pattern..][..symmetric.patterns.len()] {
                or_permuted(&mut images, row, permutation);
            }
            row.copy_from_slice(&images);
            images.iter_mut().zip(&*symmetric.representatives).for_each(|(i, r)| *i &= r);
            more_than_orbits += bitset::ones(row) - bitset::ones(&images);
        }
        more_than_orbits
    });
    let entries = Entries::of(matrix, &pieces);
    let ones = entries.as_ref().map_or(0, |entries| entries.summary.ones);
    Ok(Found { count: ones - more_than_orbits.into_iter().sum::<u64>(), entries })
}
