//! The values of a block's afterstates: means over spawns.

use std::sync::Arc;

use exact2048_arena::Area;
use exact2048_game::SpawnKind;
use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::class::ClassId;
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::value::Value;

use crate::blocks::ValueBlock;
use crate::error::WorkerError;
use crate::footprint::{means_input_need, means_need, shape};
use crate::kernels::index_map::Permutation;
use crate::kernels::means::Means;
use crate::memory::Need;
use crate::open_block::OpenBlock;
use crate::pieces::{SlotBits, most_pieces};
use crate::shared::Shared;
use crate::sink::Outcome;
use crate::stage::{BlockStage, StageResources};

/// The stage that backs up the afterstates of a block. It reads the lane's own values of the two layers above.
///
/// It computes the rows whose spawns all lead to rows that hold reachable states. These rows have all reachable
/// afterstates, and no state reads the others.
pub struct BackUpAfterstates<'a, V> {
    pub open: &'a OpenBlock<'a>,
    pub shared: &'a Shared<V>,
}

/// The values of the states that spawns lead to.
pub struct SpawnedBlocks<V> {
    twos: Arc<ValueBlock<V>>,
    fours: Arc<ValueBlock<V>>,
    /// The rows of afterstates to hold.
    rows: Arc<RowSet>,
}

/// The means of the rows of afterstates.
pub struct MeanValues<V> {
    rows: Arc<RowSet>,
    computed: BitSet<Slot>,
    values: Area<V>,
}

impl<V: Value> BlockStage for BackUpAfterstates<'_, V> {
    type Inputs = SpawnedBlocks<V>;
    type Made = MeanValues<V>;

    fn need_to_gather(&self) -> Need {
        let OpenBlock { layer, lane, .. } = *self.open;
        let is_unread = |&spawn: &SpawnKind| !self.shared.sources.has_state_values(layer.after(spawn), lane);
        let unread = SpawnKind::ALL.into_iter().filter(is_unread).count();
        means_input_need::<V>(shape(&self.shared.tables, layer, lane), unread)
    }

    fn gather(&self, _: &mut StageResources<'_>) -> Result<Option<Self::Inputs>, WorkerError> {
        let OpenBlock { layer, lane, .. } = *self.open;
        let twos = self.shared.sources.state_values(layer.after(SpawnKind::Two), lane)?;
        let fours = self.shared.sources.state_values(layer.after(SpawnKind::Four), lane)?;
        if twos.rows.is_empty() || fours.rows.is_empty() {
            return Ok(None);
        }
        let rows = self.rows_to_hold(&twos, &fours)?;
        Ok(rows.map(|rows| SpawnedBlocks { twos, fours, rows }))
    }

    fn need_to_compute(&self, SpawnedBlocks { rows, .. }: &Self::Inputs) -> Option<Need> {
        Some(means_need::<V>(rows.len(), rows.len() * self.open.tables.stride()))
    }

    fn compute(
        &self,
        SpawnedBlocks { twos, fours, rows }: Self::Inputs,
        task: &mut StageResources<'_>,
    ) -> Result<Self::Made, WorkerError> {
        let (OpenBlock { class, tables, helpers, .. }, shared) = (self.open, self.shared);
        let (columns, stride) = (tables.columns.len(), tables.stride());
        let transitions = shared.store.transitions(class, &rows)?;
        let spawns = shared.tables.spawns(&transitions);
        let permutations = shared.tables.permutations(&mut task.maps, tables, &spawns.patterns);
        let maps: Vec<&Permutation> = permutations.iter().map(|permutation| &**permutation).collect();
        let mut values = task.reserved.area(rows.len() * stride);
        let (backup, reached) = (&shared.backup, twos.marks());
        let plan = Means { backup, spawns, maps: &maps, twos: twos.rows(), fours: fours.rows(), reached };
        let pieces = shared.piece_length.of_values::<V>(rows.len(), stride).at_most(most_pieces(*helpers));
        let computed = pieces.map_of(&mut values, stride, |slots, values| {
            let first = slots.start;
            let computed = shared.kernels.means(&plan, slots, values);
            // Fills the two padding columns. Index maps refer to them for columns without a value, and for won games.
            computed.for_each(|slot| {
                let padding = &mut values[(slot.index() - first) * stride + columns..][..2];
                padding.copy_from_slice(&[V::default(), backup.won()]);
            });
            computed
        });
        let computed = SlotBits::of_all(rows.len(), computed);
        Ok(MeanValues { rows, computed, values })
    }

    fn settle(&self, made: Option<Self::Made>, _: &mut StageResources<'_>) -> Result<Outcome, WorkerError> {
        let (store, stride) = (&self.shared.store, self.open.tables.stride());
        let values = match made {
            Some(MeanValues { rows, computed, values }) => {
                store.settle_values(rows, stride, &computed, values)?
            }
            None => ValueBlock::empty(),
        };
        store.hold_after_values(self.open.layer, self.open.lane, values);
        Ok(Outcome::default())
    }
}

impl<V: Value> BackUpAfterstates<'_, V> {
    /// The rows that the block holds; `None` if no class has the states after a spawned 2, or if the enumerated
    /// afterstates are empty.
    ///
    /// A block of a small class holds all rows. A large block holds only those whose spawns all lead to rows with
    /// values, if these are few enough. If the class has very many rows, the block holds those of the enumerated
    /// afterstates, or else those from which a spawned 2 can lead to a row of `twos`.
    fn rows_to_hold(
        &self,
        twos: &ValueBlock<V>,
        fours: &ValueBlock<V>,
    ) -> Result<Option<Arc<RowSet>>, WorkerError> {
        let (class, tables) = (self.open.class, &self.shared.tables);
        if let Some(all) = tables.all_rows(class) {
            let (stride, piece_length) = (self.open.tables.stride(), self.shared.piece_length);
            let is_large = piece_length.is_sparse::<V>(all.len(), stride, 0);
            let computed = if is_large { Some(self.computed_rows(&all, twos, fours)?) } else { None };
            let is_sparse = |rows: &BitSet<Row>| piece_length.is_sparse::<V>(all.len(), stride, rows.len());
            let sparse = computed.filter(is_sparse).map(|rows| Arc::new(RowSet::new(rows)));
            return Ok(Some(sparse.unwrap_or(all)));
        }
        if let Some(held) = self.shared.store.afterstates(self.open.layer, self.open.lane) {
            return Ok((!held.is_empty()).then(|| Arc::clone(&held.rows)));
        }
        let space = &tables.space;
        let above = ClassId { small_sum: class.id().small_sum + SpawnKind::Two.tile(), ..class.id() };
        let Some(above) = space.class(above) else { return Ok(None) };
        Ok(Some(Arc::new(RowSet::new(space.rows_before_two(class, above, &twos.rows)))))
    }

    /// The rows of the class whose spawns all lead to rows with values.
    fn computed_rows(
        &self,
        all: &Arc<RowSet>,
        twos: &ValueBlock<V>,
        fours: &ValueBlock<V>,
    ) -> Result<BitSet<Row>, WorkerError> {
        let transitions = self.shared.store.transitions(self.open.class, all)?;
        let spawns = self.shared.tables.spawns(&transitions);
        let mut rows = BitSet::with_room(all.len());
        let edges = std::iter::zip(spawns.of(SpawnKind::Two), spawns.of(SpawnKind::Four));
        for (row, (to_twos, to_fours)) in edges.enumerate() {
            if !to_twos.is_empty()
                && to_twos.iter().all(|edge| twos.occupied.contains(edge.row))
                && to_fours.iter().all(|edge| fours.occupied.contains(edge.row))
            {
                rows.insert(Row::from_index(row));
            }
        }
        Ok(rows)
    }
}
