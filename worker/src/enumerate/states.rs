//! The states of a block, found by the spawns of earlier afterstates.

use std::sync::Arc;

use exact2048_game::bitset;
use exact2048_game::class::Class;
use exact2048_game::rowset::Slot;
use exact2048_game::value::Value;
use exact2048_game::{Layer, SpawnKind};

use super::afterstates::FindAfterstates;
use super::found::{Found, close, rows_of};
use super::starts::StartEntry;
use crate::blocks::{Entries, ReachBlock};
use crate::error::WorkerError;
use crate::footprint::{enumerate_need, shape};
use crate::kernels::BitSpawns;
use crate::kernels::index_map::Permutation;
use crate::memory::Need;
use crate::open_block::OpenBlock;
use crate::pieces::most_pieces;
use crate::shared::Shared;
use crate::sink::{Drain, EncodedItems, Outcome};
use crate::stage::{BlockStage, StageResources};

/// The stage that finds the states of a block. It reads the lane's own afterstates of the two layers below.
pub struct FindStates<'a, V> {
    pub open: &'a OpenBlock<'a>,
    pub drain: Drain<'a, V>,
}

/// Afterstates from which spawns of one kind lead to a block.
pub struct SpawnSource<'a> {
    spawned: SpawnKind,
    class: &'a Class,
    afterstates: Arc<ReachBlock>,
}

impl<'a, V: Value> BlockStage for FindStates<'a, V> {
    type Inputs = (Vec<StartEntry>, Vec<SpawnSource<'a>>);
    type Made = Found;

    fn need_to_gather(&self) -> Need {
        enumerate_need(shape(&self.drain.shared.tables, self.open.layer, self.open.lane))
    }

    fn gather(&self, task: &mut StageResources<'_>) -> Result<Option<Self::Inputs>, WorkerError> {
        let (open, tables) = (self.open, &self.drain.shared.tables);
        let (starts, mut sources) = (self.drain.shared.starts.of(open.layer, open.lane), Vec::new());
        for spawned in SpawnKind::ALL {
            // No layer below the first has a state.
            let first = tables.params().first_layer();
            let Some(below) = open.layer.before(spawned).filter(|&below| below >= first) else { continue };
            let Some(class) = tables.class(below, open.lane) else { continue };
            let afterstates = afterstates(self.drain.shared, below, open, task)?;
            if !afterstates.is_empty() {
                sources.push(SpawnSource { spawned, class, afterstates });
            }
        }
        let has_entries = !sources.is_empty() || !starts.is_empty();
        Ok(has_entries.then_some((starts, sources)))
    }

    fn compute(
        &self,
        (starts, sources): Self::Inputs,
        task: &mut StageResources<'_>,
    ) -> Result<Found, WorkerError> {
        let (open, shared) = (self.open, self.drain.shared);
        let (tables, store) = (&shared.tables, &shared.store);
        let rows = rows_of(tables, open.class, |found| {
            starts.iter().for_each(|start| found.insert(start.row));
            for SpawnSource { spawned, class, afterstates } in &sources {
                let transitions = store.transitions_of(class, afterstates)?;
                for (slot, edges) in (0..).map(Slot).zip(tables.spawns(&transitions).of(*spawned)) {
                    if afterstates.summary.occupied.contains(slot) {
                        edges.iter().for_each(|edge| found.insert(edge.row));
                    }
                }
            }
            Ok(())
        })?;
        let mut states = store.new_matrix(rows, open.tables.words())?;
        let pieces = shared.piece_length.of_bits(states.rows().len(), states.words());
        let pieces = pieces.at_most(most_pieces(open.helpers));
        for start in &starts {
            if let Some(column) = start.column(&open.tables.columns) {
                bitset::set(states.row_mut(start.row), column.0 as usize);
            }
        }
        for SpawnSource { spawned, class, afterstates } in &sources {
            let transitions = store.transitions_of(class, afterstates)?;
            let spawns = tables.spawns(&transitions);
            let permutations = tables.permutations(&mut task.maps, &open.tables, &spawns.patterns);
            let maps: Vec<&Permutation> = permutations.iter().map(|permutation| &**permutation).collect();
            let (edges, afterstates) = (spawns.edges(*spawned), afterstates.source());
            let plan = BitSpawns { start: &spawns.start, edges, maps: &maps, afterstates };
            states.map_pieces(&pieces, |states| shared.kernels.spawn_bits(&plan, states));
        }
        close(shared, open, states, &mut task.maps)
    }

    fn settle(&self, made: Option<Found>, _: &mut StageResources<'_>) -> Result<Outcome, WorkerError> {
        let Found { count, entries } = made.unwrap_or_default();
        let drain = |entries: &Entries| self.drain.reach(self.open, &entries.matrix);
        let items = entries.as_ref().map_or(Ok(EncodedItems::new()), drain)?;
        self.drain.shared.store.hold_states(self.open.layer, self.open.lane, entries)?;
        Ok(Outcome { count, items, ..Outcome::default() })
    }
}

/// The afterstates of the lane of a block in a lower layer: held, or found again from the states of their layer.
fn afterstates<V: Value>(
    shared: &Shared<V>,
    layer: Layer,
    above: &OpenBlock<'_>,
    task: &mut StageResources<'_>,
) -> Result<Arc<ReachBlock>, WorkerError> {
    shared.sources.afterstates(layer, above.lane, || {
        let open = OpenBlock::new(&shared.tables, layer, above.lane, above.helpers);
        let Some(open) = &open else { return Ok(None) };
        let stage = FindAfterstates { open, shared };
        let Some(sources) = stage.gather(task)? else { return Ok(None) };
        Ok(stage.compute(sources, task)?.entries)
    })
}
