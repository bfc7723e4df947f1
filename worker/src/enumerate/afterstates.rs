//! The afterstates of a block, found by the moves of its layer's states.

use std::collections::BTreeMap;
use std::sync::Arc;

use exact2048_game::Lane;
use exact2048_game::lane::Step;
use exact2048_game::rowset::RowSet;
use exact2048_game::transitions::MoveEdge;
use exact2048_game::value::Value;

use super::found::{Found, close, rows_of};
use crate::bits::BitMatrix;
use crate::blocks::ReachBlock;
use crate::error::WorkerError;
use crate::footprint::{enumerate_need, noted_need, shape};
use crate::kernels::BitMoves;
use crate::memory::Need;
use crate::occurring::{OccurringMoves, group_of};
use crate::open_block::OpenBlock;
use crate::pieces::most_pieces;
use crate::shared::Shared;
use crate::sink::Outcome;
use crate::stage::{BlockStage, StageResources};
use crate::tables::MapCache;

/// The stage that finds the afterstates of a block. It reads the states of all lanes from which moves lead to it.
pub struct FindAfterstates<'a, V> {
    pub open: &'a OpenBlock<'a>,
    pub shared: &'a Shared<V>,
}

/// States from which moves of one step lead to a block.
pub struct MoveSource<'a> {
    step: Step,
    open: OpenBlock<'a>,
    states: Arc<ReachBlock>,
}

impl<'a, V: Value> BlockStage for FindAfterstates<'a, V> {
    type Inputs = Vec<MoveSource<'a>>;
    type Made = Found;

    fn need_to_gather(&self) -> Need {
        let shape = shape(&self.shared.tables, self.open.layer, self.open.lane);
        if self.shared.notes.has_others() { noted_need(shape) } else { enumerate_need(shape) }
    }

    fn gather(&self, _: &mut StageResources<'_>) -> Result<Option<Self::Inputs>, WorkerError> {
        let sources = move_sources(self.shared, self.open, |_| true)?;
        Ok((!sources.is_empty()).then_some(sources))
    }

    fn compute(&self, sources: Self::Inputs, task: &mut StageResources<'_>) -> Result<Found, WorkerError> {
        let (shared, open) = (self.shared, self.open);
        let (owners, me) = shared.notes.owners();
        let mut by_owner = BTreeMap::<usize, Vec<MoveSource<'_>>>::new();
        let rows = rows_after(shared, open, &sources)?;
        for source in sources {
            by_owner.entry(owners.owner(source.open.lane)).or_default().push(source);
        }
        let own = by_owner.remove(&me).unwrap_or_default();
        let mut afterstates = moved(shared, open, Arc::clone(&rows), &own, &mut task.maps)?;
        let mut note = shared.notes.begin();
        for (member, sources) in by_owner {
            let of_member = moved(shared, open, Arc::clone(&rows), &sources, &mut task.maps)?;
            afterstates.bits_mut().iter_mut().zip(of_member.bits()).for_each(|(all, bits)| *all |= bits);
            note.add(member, of_member);
        }
        shared.notes.keep(open.layer, open.lane, note);
        close(shared, open, afterstates, &mut task.maps)
    }

    fn settle(&self, made: Option<Found>, _: &mut StageResources<'_>) -> Result<Outcome, WorkerError> {
        let Found { count, entries } = made.unwrap_or_default();
        self.shared.store.hold_afterstates(self.open.layer, self.open.lane, entries)?;
        Ok(Outcome { count, ..Outcome::default() })
    }
}

/// The states of a layer, in wanted lanes, from which moves lead to a block.
pub fn move_sources<'a, V: Value>(
    shared: &'a Shared<V>,
    open: &OpenBlock<'_>,
    is_wanted: impl Fn(Lane) -> bool,
) -> Result<Vec<MoveSource<'a>>, WorkerError> {
    let mut sources = Vec::new();
    for (step, lane) in shared.tables.lanes_before(open.lane).filter(|&(_, lane)| is_wanted(lane)) {
        let states = shared.sources.states(open.layer, lane)?;
        // The columns of a lane without states are not listed.
        if !states.is_empty() {
            let source = OpenBlock::new(&shared.tables, open.layer, lane, 0);
            sources.extend(source.map(|open| MoveSource { step, open, states }));
        }
    }
    Ok(sources)
}

/// The rows of a block for the afterstates to which moves from some states lead.
pub fn rows_after<V: Value>(
    shared: &Shared<V>,
    open: &OpenBlock<'_>,
    sources: &[MoveSource<'_>],
) -> Result<Arc<RowSet>, WorkerError> {
    let (tables, store) = (&shared.tables, &shared.store);
    // Transitions can be large, so those of each source are released before the next are fetched.
    rows_of(tables, open.class, |found| {
        for MoveSource { step, open: source, states } in sources {
            let transitions = store.transitions_of(source.class, states)?;
            let group = group_of(tables.moves(&transitions), *step);
            let edges: &[MoveEdge] = group.map_or(&[], |group| &group.edges);
            let reached = edges.iter().filter(|edge| states.summary.occupied.contains(edge.from));
            reached.for_each(|edge| found.insert(edge.to()));
        }
        Ok(())
    })
}

/// The afterstates of a block to which moves from some states lead, in rows that include those of [`rows_after`].
///
/// The result also has bits of padding, and may lack images of entries in symmetric rows.
pub fn moved<V: Value>(
    shared: &Shared<V>,
    open: &OpenBlock<'_>,
    rows: Arc<RowSet>,
    sources: &[MoveSource<'_>],
    cache: &mut MapCache,
) -> Result<BitMatrix, WorkerError> {
    let (tables, store) = (&shared.tables, &shared.store);
    let mut afterstates = store.new_matrix(rows, open.tables.words())?;
    let pieces = shared.piece_length.of_bits(afterstates.rows().len(), afterstates.words());
    let pieces = pieces.at_most(most_pieces(open.helpers));
    for MoveSource { step, open: source, states } in sources {
        let transitions = store.transitions_of(source.class, states)?;
        let Some(group) = group_of(tables.moves(&transitions), *step) else { continue };
        let moves = OccurringMoves::new(group, |edge| states.summary.occupied.contains(edge.from));
        tables.maps(cache, &source.tables, &open.tables).for_each_some(&moves.patterns, |patterns, maps| {
            let runs = moves.runs(patterns, maps);
            let plan = BitMoves { runs: &runs, states: states.source() };
            afterstates.map_pieces(&pieces, |afterstates| shared.kernels.move_bits(&plan, afterstates));
        });
    }
    Ok(afterstates)
}
