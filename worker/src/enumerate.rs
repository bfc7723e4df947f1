//! Enumeration of one block: its states from the spawns of earlier afterstates, then its
//! afterstates from the moves of its layer's states.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use exact2048_game::bitset::{self, BitSet, Number};
use exact2048_game::class::Class;
use exact2048_game::lane::Step;
use exact2048_game::patterns::PatternId;
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::transitions::{MoveEdge, MoveGroup, Moves, Transitions};
use exact2048_game::{Lane, Layer, SpawnKind, rules};
use exact2048_solution::{ItemKind, Parts, ReadError};
use exact2048_storage::{ItemKey, ShardKind};

use crate::bits::{BitMatrix, Summary};
use crate::blocks::{Entries, ReachBlock};
use crate::kernels::bit_moves::or_permuted;
use crate::kernels::index_map::{IndexMap, Permutation};
use crate::kernels::{BitMoves, BitSpawns, MoveRun};
use crate::open_block::OpenBlock;
use crate::pieces::{Pieces, map_parts, of_slots};
use crate::tables::MapCache;
use crate::{Worker, WorkerError, most_pieces};

/// The entries that were found of a block.
#[derive(Default)]
struct Found {
    /// The number of entries, up to symmetry.
    count: u64,
    entries: Option<Entries>,
}

impl<V: crate::Value> Worker<V> {
    /// Finds the states of the block of `lane` in `layer` and counts them, up to symmetry. Needs the lane's own
    /// afterstates of the two layers below. `helpers` threads have no task of their own, and may help.
    ///
    /// # Errors
    ///
    /// If data cannot be read, or cannot be written to a scratch file.
    pub fn enumerate_states(&self, layer: Layer, lane: Lane, helpers: usize) -> Result<u64, WorkerError> {
        let Some(open) = self.open(layer, lane, helpers) else { return Ok(0) };
        let _reserved = self.reserve(self.enumerate_need(layer, lane))?;
        let Found { count, entries } = self.spawn_states(&open, &mut open.tables.maps())?;
        if let Some(entries) = &entries {
            self.pack_reach(&open, &entries.matrix)?;
        }
        self.reach.insert(layer, lane, self.settle_reach(entries)?);
        Ok(count)
    }

    /// Like [`Worker::enumerate_states`], but packs nothing for a shard, and gives the reachable states as shards hold
    /// them: an item for each part that has some.
    ///
    /// # Errors
    ///
    /// As for [`Worker::enumerate_states`].
    pub fn enumerate_items(
        &self,
        layer: Layer,
        lane: Lane,
        helpers: usize,
    ) -> Result<Vec<(ItemKey, Vec<u8>)>, WorkerError> {
        let Some(open) = self.open(layer, lane, helpers) else { return Ok(Vec::new()) };
        let _reserved = self.reserve(self.enumerate_need(layer, lane))?;
        let Found { entries, .. } = self.spawn_states(&open, &mut open.tables.maps())?;
        let items = entries.as_ref().map_or_else(Vec::new, |Entries { matrix, .. }| {
            let parts = open.parts();
            let item = |part| {
                (Parts::key(layer, lane, part), parts.encode_reach(part, matrix.rows(), matrix.bits()))
            };
            (0..parts.count()).map(item).filter(|(_, item)| !item.is_empty()).collect()
        });
        self.reach.insert(layer, lane, self.settle_reach(entries)?);
        Ok(items)
    }

    /// Finds the afterstates of the block of `lane` in `layer` and counts them, up to symmetry. Needs the states of
    /// this layer in this lane and in every lane that moves lead here from.
    ///
    /// # Errors
    ///
    /// If data cannot be read, or cannot be written to a scratch file.
    pub fn enumerate_afterstates(
        &self,
        layer: Layer,
        lane: Lane,
        helpers: usize,
    ) -> Result<u64, WorkerError> {
        let Some(open) = self.open(layer, lane, helpers) else { return Ok(0) };
        let _reserved = self.reserve(self.enumerate_need(layer, lane))?;
        let Found { count, entries } = self.move_states(&open, &mut open.tables.maps())?;
        self.after_reach.insert(layer, lane, self.settle_reach(entries)?);
        Ok(count)
    }

    /// Finds and counts the states of a block.
    fn spawn_states(&self, open: &OpenBlock<'_>, cache: &mut MapCache) -> Result<Found, WorkerError> {
        let starts = self.starts(open);
        let below = SpawnKind::ALL.map(|spawned| {
            let layer = open.layer.before(spawned)?;
            Some((spawned, layer, self.tables.class(layer, open.lane)?))
        });
        let mut sources = Vec::new();
        for (spawned, layer, class) in below.into_iter().flatten() {
            let afterstates = self.afterstates(layer, open.lane, open.helpers, cache)?;
            if !afterstates.is_empty() {
                sources.push((spawned, class, afterstates));
            }
        }
        if sources.is_empty() && starts.is_empty() {
            return Ok(Found::default());
        }
        let rows = self.rows_of(open.class, |found| {
            starts.iter().for_each(|&row| found.insert(row));
            for (spawned, class, afterstates) in &sources {
                let transitions = self.transitions(class, afterstates)?;
                for (slot, edges) in (0..).map(Slot).zip(self.tables.spawns(&transitions).of(*spawned)) {
                    if afterstates.summary.occupied.contains(slot) {
                        edges.iter().for_each(|edge| found.insert(edge.row));
                    }
                }
            }
            Ok(())
        })?;
        let mut states = self.new_matrix(rows, open)?;
        let pieces = self.bit_pieces(states.rows().len(), states.words()).at_most(most_pieces(open.helpers));
        starts.iter().for_each(|&row| states.row_mut(row)[0] |= 1);
        for (spawned, class, afterstates) in &sources {
            let transitions = self.transitions(class, afterstates)?;
            let spawns = self.tables.spawns(&transitions);
            let permutations = self.tables.permutations(cache, &open.tables, &spawns.patterns);
            let maps: Vec<&Permutation> = permutations.iter().map(|permutation| &**permutation).collect();
            let (edges, afterstates) = (spawns.edges(*spawned), afterstates.source());
            let plan = BitSpawns { start: &spawns.start, edges, maps: &maps, afterstates };
            states.map_pieces(&pieces, |states| self.kernels.spawn_bits(&plan, states));
        }
        self.found(states, open, cache)
    }

    /// Finds and counts the afterstates of a block.
    fn move_states(&self, open: &OpenBlock<'_>, cache: &mut MapCache) -> Result<Found, WorkerError> {
        let afterstates = self.moved(open, |_| true, cache)?;
        afterstates.map_or_else(|| Ok(Found::default()), |afterstates| self.found(afterstates, open, cache))
    }

    /// The afterstates of a block that moves lead to from the wanted lanes. Only bits that moves set are set: those of
    /// padding too, and in symmetric rows perhaps not all images of an entry. `None` where no wanted lane has a state.
    pub(crate) fn moved(
        &self,
        open: &OpenBlock<'_>,
        is_wanted: impl Fn(Lane) -> bool,
        cache: &mut MapCache,
    ) -> Result<Option<BitMatrix>, WorkerError> {
        let mut sources = Vec::new();
        let params = self.tables.params();
        let before = |&step: &Step| open.lane.before(step, params).into_iter().map(move |lane| (step, lane));
        for (step, lane) in self.steps.iter().flat_map(before).filter(|&(_, lane)| is_wanted(lane)) {
            let Some(source) = self.open(open.layer, lane, 0) else { continue };
            let states = self.states(open.layer, lane)?;
            if !states.is_empty() {
                sources.push((step, source, states));
            }
        }
        if sources.is_empty() {
            return Ok(None);
        }
        // Each source's transitions are released before the next one's are fetched: they can be large.
        let rows = self.rows_of(open.class, |found| {
            for (step, source, states) in &sources {
                let transitions = self.transitions(source.class, states)?;
                let edges: &[MoveEdge] =
                    group_of(self.tables.moves(&transitions), *step).map_or(&[], |group| &group.edges);
                let reached = edges.iter().filter(|edge| states.summary.occupied.contains(edge.from));
                reached.for_each(|edge| found.insert(edge.to()));
            }
            Ok(())
        })?;
        let mut afterstates = self.new_matrix(rows, open)?;
        let pieces = self.bit_pieces(afterstates.rows().len(), afterstates.words());
        let pieces = pieces.at_most(most_pieces(open.helpers));
        for (step, source, states) in &sources {
            let transitions = self.transitions(source.class, states)?;
            let Some(group) = group_of(self.tables.moves(&transitions), *step) else { continue };
            let moves = OccurringMoves::new(group, |edge| states.summary.occupied.contains(edge.from));
            let mut maps = self.tables.maps(cache, &source.tables, &open.tables);
            maps.for_each_some(&moves.patterns, |patterns, maps| {
                let runs = moves.runs(patterns, maps);
                let plan = BitMoves { runs: &runs, states: states.source() };
                afterstates.map_pieces(&pieces, |afterstates| self.kernels.move_bits(&plan, afterstates));
            });
        }
        Ok(Some(afterstates))
    }

    /// The transitions of the rows of a block that has some.
    fn transitions(&self, class: &Class, block: &ReachBlock) -> Result<Arc<Transitions>, WorkerError> {
        if self.tables.all_rows(class).is_some() {
            // The class keeps them, and moves them to disk when memory is short; a block that kept them too would hold
            // them in memory.
            return self.class_transitions(class, &block.rows);
        }
        if let Some(transitions) = block.transitions.get() {
            return Ok(Arc::clone(transitions));
        }
        let transitions = self.class_transitions(class, &block.rows)?;
        Ok(Arc::clone(block.transitions.get_or_init(|| transitions)))
    }

    /// The transitions of some rows of a class. Makes room for them first, unless those of all its rows are kept.
    pub(crate) fn class_transitions(
        &self,
        class: &Class,
        rows: &Arc<RowSet>,
    ) -> Result<Arc<Transitions>, WorkerError> {
        if !self.tables.keeps_transitions(class.id()) {
            self.make_room(rows.len() * Transitions::BYTES_TO_MAKE_A_ROW)?;
        }
        Ok(self.tables.transitions(class, rows))
    }

    /// A matrix of a block, without a bit set.
    fn new_matrix(&self, rows: Arc<RowSet>, open: &OpenBlock<'_>) -> Result<BitMatrix, WorkerError> {
        let words = open.tables.words();
        self.make_room(8 * rows.len() * words)?;
        Ok(BitMatrix::new(rows, words))
    }

    /// The rows for a new block: all, or those that `mark` marks where the class has very many.
    fn rows_of(
        &self,
        class: &Class,
        mark: impl FnOnce(&mut BitSet<Row>) -> Result<(), WorkerError>,
    ) -> Result<Arc<RowSet>, WorkerError> {
        if let Some(all) = self.tables.all_rows(class) {
            return Ok(all);
        }
        let mut found = BitSet::with_room(class.rows());
        mark(&mut found)?;
        Ok(Arc::new(RowSet::new(found)))
    }

    /// The reachable states of a block: held, or read from its shard.
    pub(crate) fn states(&self, layer: Layer, lane: Lane) -> Result<Arc<ReachBlock>, WorkerError> {
        if let Some(block) = self.reach.get(layer, lane) {
            return Ok(block);
        }
        let entries = self.read_reach(layer, lane)?;
        Ok(self.reach.insert(layer, lane, self.settle_reach(entries)?))
    }

    /// The reachable afterstates of a block: held, or from the states of their layer.
    fn afterstates(
        &self,
        layer: Layer,
        lane: Lane,
        helpers: usize,
        cache: &mut MapCache,
    ) -> Result<Arc<ReachBlock>, WorkerError> {
        if let Some(block) = self.after_reach.get(layer, lane) {
            return Ok(block);
        }
        let Some(open) = self.open(layer, lane, helpers) else {
            return Ok(Arc::new(self.settle_reach(None)?));
        };
        let Found { entries, .. } = self.move_states(&open, cache)?;
        Ok(self.after_reach.insert(layer, lane, self.settle_reach(entries)?))
    }

    /// Reads the reachable states of a block from its shard; `None` where it has none.
    pub(crate) fn read_reach(&self, layer: Layer, lane: Lane) -> Result<Option<Entries>, WorkerError> {
        let Some(open) = self.open(layer, lane, 0) else { return Ok(None) };
        let parts = open.parts();
        let read = |part: u32, bits: &mut [u64]| -> Result<bool, ReadError> {
            let key = Parts::key(layer, lane, part);
            let Some(item) = self.archive.read(ShardKind::Reach, key)? else { return Ok(false) };
            parts.decode_reach_part(key, &item, bits)?;
            Ok(true)
        };
        let matrix = if let Some(all) = self.tables.all_rows(open.class) {
            let mut matrix = BitMatrix::new(all, parts.words());
            let read = |rows: Range<usize>, bits: &mut [u64]| read(parts.of_row(rows.start), bits);
            let read = Pieces::of_parts(parts).map_of(matrix.bits_mut(), parts.words(), read);
            read.into_iter().collect::<Result<Vec<bool>, ReadError>>()?;
            matrix
        } else {
            let mut found = Vec::new();
            for part in 0..parts.count() {
                let mut bits = vec![0u64; parts.rows(part).len() * parts.words()];
                if read(part, &mut bits)? {
                    found.push((part, bits));
                }
            }
            occurring_rows(open.class, parts, &found)
        };
        let pieces = self.bit_pieces(matrix.rows().len(), matrix.words());
        Ok(Entries::of(matrix, &pieces))
    }

    /// Clears the padding, sets all images of the entries in symmetric rows, and counts orbits.
    fn found(
        &self,
        mut matrix: BitMatrix,
        open: &OpenBlock<'_>,
        cache: &mut MapCache,
    ) -> Result<Found, WorkerError> {
        let transitions = self.class_transitions(open.class, matrix.rows())?;
        let occurs = |slot| bitset::any(matrix.slot(slot));
        let symmetric = self.tables.symmetric_rows(cache, &open.tables, &transitions, occurs);
        let patterns: Vec<PatternId> = symmetric.iter().flat_map(|row| row.patterns).copied().collect();
        let permutations = self.tables.permutations(cache, &open.tables, &patterns);
        let columns = open.tables.columns.len();
        let pieces = self.bit_pieces(matrix.rows().len(), matrix.words());
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

    /// The rows of the layer's starts, two tiles on an empty board: their only column is the first.
    fn starts(&self, open: &OpenBlock<'_>) -> Vec<Row> {
        if open.lane.k > 0 || open.layer > Layer::LAST_START {
            return Vec::new();
        }
        let located = rules::starts(self.tables.params().game().board())
            .filter_map(|(board, _)| self.tables.space.locate(board))
            .filter(|&(lane, layer, ..)| (layer, lane) == (open.layer, open.lane));
        located.map(|(_, _, row, _)| row).collect()
    }

    pub(crate) fn settle_reach(&self, entries: Option<Entries>) -> Result<ReachBlock, WorkerError> {
        let nothing = || BitMatrix::new(Arc::new(RowSet::all(0)), 0);
        let (matrix, summary) = match entries {
            Some(Entries { matrix, summary }) => (matrix, summary),
            None => (nothing(), Summary::default()),
        };
        Ok(ReachBlock {
            rows: Arc::clone(matrix.rows()),
            words: matrix.words(),
            summary,
            bits: self.memory.settle(matrix.into_bits())?,
            transitions: OnceLock::new(),
        })
    }

    /// Packs the items of a block for the shard of its layer.
    fn pack_reach(&self, open: &OpenBlock<'_>, matrix: &BitMatrix) -> Result<(), WorkerError> {
        let parts = open.parts();
        let lengths = map_parts(parts, |part| parts.reach_bytes(part, matrix.rows(), matrix.bits()));
        let item = |part| parts.encode_reach(part, matrix.rows(), matrix.bits());
        self.pack(ItemKind::Reach, open.layer, open.lane, &lengths, item)
    }
}

/// A matrix of the rows of some parts that have an entry; `found` has the parts' numbers and bits.
pub(crate) fn occurring_rows(class: &Class, parts: Parts, found: &[(u32, Vec<u64>)]) -> BitMatrix {
    let words = parts.words();
    let rows = || {
        found.iter().flat_map(|(part, bits)| {
            let first = parts.rows(*part).start;
            let rows = bits.chunks_exact(words).enumerate();
            rows.map(move |(i, row)| (Row::from_index(first + i), row)).filter(|(_, row)| bitset::any(row))
        })
    };
    let mut held = BitSet::with_room(class.rows());
    rows().for_each(|(row, _)| held.insert(row));
    let mut matrix = BitMatrix::new(Arc::new(RowSet::new(held)), words);
    rows().for_each(|(row, bits)| matrix.row_mut(row).copy_from_slice(bits));
    matrix
}

/// The moves of a group that some state makes. Maps of other patterns would be made for nothing.
pub(crate) struct OccurringMoves {
    /// The patterns that occur.
    pub patterns: Vec<PatternId>,
    edges: Vec<MoveEdge>,
    /// Where the edges of each pattern end.
    ends: Vec<usize>,
}

impl OccurringMoves {
    pub(crate) fn new(group: &MoveGroup, occurs: impl Fn(MoveEdge) -> bool) -> Self {
        let (mut patterns, mut ends) = (Vec::new(), Vec::new());
        // Most edges are left out, and which ones is as good as random. So each edge is written, over the one before if
        // that was left out, and no branch can be mispredicted.
        let (mut edges, mut kept) = (vec![MoveEdge::default(); group.edges.len()], 0);
        let all = group.edges_of(0..group.patterns.len());
        for (&pattern, of_pattern) in group.patterns.iter().zip(all) {
            let before = kept;
            for &edge in of_pattern {
                edges[kept] = edge;
                kept += usize::from(occurs(edge));
            }
            if kept > before {
                patterns.push(pattern);
                ends.push(kept);
            }
        }
        edges.truncate(kept);
        Self { patterns, edges, ends }
    }

    /// The edges of some patterns with their maps, without the patterns that no column takes part in.
    pub(crate) fn runs<'a>(&'a self, patterns: Range<usize>, maps: &[IndexMap<'a>]) -> Vec<MoveRun<'a>> {
        let mut start = patterns.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let runs = self.ends[patterns].iter().zip(maps).map(|(&end, &map)| {
            let edges = &self.edges[start..end];
            start = end;
            MoveRun { edges, map }
        });
        runs.filter(|run| !run.map.is_empty()).collect()
    }
}

/// The moves of a step, if the class has any.
pub(crate) fn group_of(moves: &Moves, step: Step) -> Option<&MoveGroup> {
    moves.groups.iter().find(|group| group.step == step)
}
