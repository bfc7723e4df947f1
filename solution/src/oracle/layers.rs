//! Whole layers: all their states in the order of their canonical boards, with values.
//!
//! A question about a board looks up the entry of that board. This module instead decodes each part of a layer once,
//! and lists the boards of its entries. Values that are not stored are backed up from the next stored layers. If the
//! program has the kernels of the solver ([`LayerSolver`]), they do this. Else the crate `exact2048-cone` backs up
//! layer by layer, which takes several times as long.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use exact2048_cone::{LayerMoves, LayerTable};
use exact2048_game::bitset::{Number, for_each_bit, ones};
use exact2048_game::class::ClassId;
use exact2048_game::columns::Columns;
use exact2048_game::locate::{RowBoards, RowSkeleton, with_tiles};
use exact2048_game::rowset::Row;
use exact2048_game::rules::Move;
use exact2048_game::sequence::Sequence;
use exact2048_game::transitions::Direction;
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Lane, Layer, Precision, SpawnKind};
use exact2048_storage::{ItemKey, ShardKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::best::best_on_image;
use super::layer_solver::{LayerSolver, SolvedLayers};
use super::sorting::sorted;
use super::{Entry, Oracle, QueryError, Wanted};
use crate::commit::LayerCounts;
use crate::parts::{ItemKind, Parts, PayloadError};
use crate::read_error::ReadError;

/// The states of a layer.
#[derive(Debug)]
pub struct LayerStates {
    /// The layer.
    pub layer: Layer,
    /// Canonical boards, ascending.
    pub boards: Vec<Board>,
    /// The values of the boards in the form in which runs store them; see [`Oracle::seen_from`].
    pub values: Vec<Stored>,
}

/// Reads the layers of a run in ascending order. A layer that was read or backed up for a lower layer is not read
/// again.
///
/// Memory: see [`StateReader::bytes`].
pub struct StateReader<'a> {
    oracle: &'a Oracle,
    wanted: Wanted<'a>,
    columns: FxHashMap<Lane, Arc<Columns>>,
    skeletons: FxHashMap<ClassId, Arc<Vec<RowSkeleton>>>,
    /// States and afterstates of the layers of the run.
    counts: BTreeMap<Layer, LayerCounts>,
    known: BTreeMap<Layer, Arc<LayerStates>>,
    tables: BTreeMap<Layer, Arc<LayerTable>>,
    pub(super) solved: SolvedLayers,
}

/// One part of a layer, before it is decoded.
struct PartPlace {
    key: ItemKey,
    lane: Lane,
    parts: Parts,
    columns: Arc<Columns>,
    /// The skeletons of all rows of the block, unless there are too many to keep.
    skeletons: Option<Arc<Vec<RowSkeleton>>>,
}

/// Most rows of a class whose skeletons are kept, for the blocks of all layers and lanes with this class.
const KEPT_ROWS: u32 = 1 << 16;

/// Most rows whose skeletons are kept, of all classes together: 100 MB.
const MOST_KEPT_ROWS: usize = 1 << 22;

impl<'a> StateReader<'a> {
    /// A reader of whole layers. It decodes parts with the threads of the caller's rayon pool.
    pub fn new(oracle: &'a Oracle, wanted: Wanted<'a>) -> Self {
        Self {
            oracle,
            wanted,
            columns: FxHashMap::default(),
            skeletons: FxHashMap::default(),
            counts: oracle.stored.catalog.holdings().counts(),
            known: BTreeMap::new(),
            tables: BTreeMap::new(),
            solved: SolvedLayers::default(),
        }
    }

    /// The states of a layer with their values.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`], [`QueryError::GivenUp`]. [`QueryError::ReachRemoved`] if the run no longer stores the
    /// reach of the layer, or of a layer between it and the next stored layers.
    pub fn states(&mut self, layer: Layer) -> Result<Arc<LayerStates>, QueryError> {
        self.forget(layer);
        self.states_anew(layer)
    }

    /// Like [`states`](Self::states), but releases nothing.
    fn states_anew(&mut self, layer: Layer) -> Result<Arc<LayerStates>, QueryError> {
        if let Some(known) = self.known.get(&layer) {
            return Ok(Arc::clone(known));
        }
        if !self.oracle.stored.params.contents().kept().keeps(layer) && !self.solved.layers.contains(&layer) {
            match &self.oracle.layers {
                Some(solver) => self.solve(layer, &**solver)?,
                None => return self.back_up(layer),
            }
        }
        let (boards, values) = self.decode(layer, ItemKind::Values)?;
        let values = values.into_iter().map(Stored).collect();
        let states = Arc::new(LayerStates { layer, boards, values });
        self.known.insert(layer, Arc::clone(&states));
        Ok(states)
    }

    /// The moves of the states of a layer, in the order of [`states`](Self::states).
    ///
    /// # Errors
    ///
    /// As for [`states`](Self::states).
    pub fn moves(&mut self, layer: Layer) -> Result<LayerMoves, QueryError> {
        let states = self.states(layer)?;
        self.moves_of(layer, &states.boards)
    }

    /// The best moves of the states of a layer, from a run that stores them: canonical boards, ascending, each with a
    /// best move if one is legal.
    ///
    /// # Errors
    ///
    /// As for [`states`](Self::states), and [`QueryError::NoBestMoves`].
    pub fn best_moves(&mut self, layer: Layer) -> Result<Vec<(Board, Option<Move>)>, QueryError> {
        self.forget(layer);
        let (boards, best) = self.decode(layer, ItemKind::BestMoves)?;
        let best = best.into_iter().map(|best| Move::ALL.get(best as usize).copied());
        Ok(boards.into_iter().zip(best).collect())
    }

    /// Most bytes of memory that a reader of these layers takes.
    pub fn bytes(&self, layers: RangeInclusive<Layer>) -> u64 {
        let kept = self.oracle.stored.params.contents().kept();
        let last = self.oracle.stored.params.last_layer();
        let value_bytes = self.oracle.stored.params.game().precision().bytes();
        let counts = |layer| self.counts.get(&layer).map_or((0, 0), |of| (of.states, of.afterstates));
        let of_layer = |layer: Layer| {
            let above = layer.to(kept.next_cut(layer.up(1)).up(1).min(last));
            let listed: u64 = match &self.oracle.layers {
                None => above.map(|layer| 16 * counts(layer).0).sum(),
                Some(solver) => {
                    let solved = above.clone().filter(|&layer| !kept.keeps(layer));
                    let values = solved.clone().map(|layer| value_bytes * counts(layer).0).sum::<u64>();
                    let listed = above.take(3).map(|layer| 16 * counts(layer).0).sum::<u64>();
                    listed + values + solved.map(|layer| solver.bytes(layer)).max().unwrap_or(0)
                }
            };
            let tables: u64 = (0..3).map(|up| LayerTable::bytes(counts(layer.up(up)).0)).sum();
            // The last term is a sorted list and the list from which it is made.
            listed + tables + LayerMoves::bytes(counts(layer).0, counts(layer).1) + 32 * counts(layer).0
        };
        layers.start().to(*layers.end()).map(of_layer).max().unwrap_or(0)
    }

    /// Removes the data of all layers below a layer.
    fn forget(&mut self, layer: Layer) {
        self.known = self.known.split_off(&layer);
        self.tables = self.tables.split_off(&layer);
        self.solved.forget(layer);
        let small = (self.oracle.stored.params.game().cells() as u32)
            << (self.oracle.stored.params.split().large() - 1);
        self.columns.retain(|lane, _| lane.large_sum + small >= layer.0);
    }

    /// The layers from a layer that is not stored up to the next stored layers, without these.
    pub(super) fn between(&self, layer: Layer) -> Vec<Layer> {
        let cut = self
            .oracle
            .stored
            .params
            .contents()
            .kept()
            .next_cut(layer)
            .min(self.oracle.stored.params.last_layer().up(1));
        layer.to(cut).filter(|&between| between < cut).collect()
    }

    /// Calls the kernels to back up all layers from a layer up to the next stored layers.
    fn solve(&mut self, layer: Layer, solver: &dyn LayerSolver) -> Result<(), QueryError> {
        let between = self.between(layer);
        if let Some(&layer) = between.iter().find(|&&layer| !self.oracle.stored.has_reach(layer)) {
            return Err(QueryError::ReachRemoved(layer));
        }
        if let (Some(&first), Some(&last)) = (between.first(), between.last()) {
            let items = solver.back_up(first..=last, last, &|_, _| (self.wanted)())?;
            self.solved.items.values.append(&mut items.ok_or(QueryError::GivenUp)?.values);
            self.solved.layers.extend(between);
        }
        Ok(())
    }

    /// Backs up all layers from a layer up to the next stored layers.
    fn back_up(&mut self, layer: Layer) -> Result<Arc<LayerStates>, QueryError> {
        let between = self.between(layer);
        if let Some(cut) = between.last().map(|last| last.up(1)) {
            for kept in cut.to(cut.up(1)) {
                self.table(kept)?;
            }
        }
        let mut found = None;
        for &layer in between.iter().rev() {
            let (boards, _) = self.decode(layer, ItemKind::Reach)?;
            let moves = self.moves_of(layer, &boards)?;
            let values = boards.par_iter().enumerate();
            let values = values
                .map(|(at, &state)| self.oracle.cones.solver.whole_state(state, moves.values(at)))
                .collect();
            let states = LayerStates { layer, boards, values };
            let states = Arc::new(states);
            self.known.insert(layer, Arc::clone(&states));
            // The layers below need no higher tables. A later call for a higher layer makes them again.
            self.tables.retain(|&other, _| other <= layer.up(1));
            found = Some(states);
        }
        found.ok_or_else(|| ReadError::NotCovered { kind: ShardKind::Values, layer: layer.0 }.into())
    }

    /// The moves of the states of a layer, from the values of the two layers above.
    fn moves_of(&mut self, layer: Layer, states: &[Board]) -> Result<LayerMoves, QueryError> {
        let [two, four] =
            [self.table(layer.after(SpawnKind::Two))?, self.table(layer.after(SpawnKind::Four))?];
        let afterstates = self.counts.get(&layer).map_or(0, |of| of.afterstates as usize);
        let found = self.oracle.cones.solver.whole_layer(states, afterstates, [&two, &four]);
        found.map_err(|board| self.missing(board))
    }

    /// A layer as a table.
    fn table(&mut self, layer: Layer) -> Result<Arc<LayerTable>, QueryError> {
        if let Some(table) = self.tables.get(&layer) {
            return Ok(Arc::clone(table));
        }
        let table = if layer > self.oracle.stored.params.last_layer() {
            LayerTable::new(&[], &[])
        } else {
            let states = match self.known.get(&layer) {
                Some(states) => Arc::clone(states),
                None => self.above(layer)?,
            };
            LayerTable::new(&states.boards, &states.values)
        };
        let table = Arc::new(table);
        self.tables.insert(layer, Arc::clone(&table));
        Ok(table)
    }

    /// The states of a layer that a lower layer needs. Keeps the data of all other layers.
    fn above(&mut self, layer: Layer) -> Result<Arc<LayerStates>, QueryError> {
        let (known, tables) = (std::mem::take(&mut self.known), std::mem::take(&mut self.tables));
        let states = self.states_anew(layer);
        self.known.extend(known);
        self.tables.extend(tables);
        states
    }

    /// The boards of a layer, ascending, each with its value or its best move if `kind` asks for it.
    fn decode(&mut self, layer: Layer, kind: ItemKind) -> Result<(Vec<Board>, Vec<u64>), QueryError> {
        let oracle = self.oracle;
        let keys = if self.solved.lost.contains(&layer) {
            self.solved.parts_of(layer).collect()
        } else {
            oracle.parts_of(layer)?
        };
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            let no_boards = || ReadError::from(PayloadError::no_boards(key));
            let lane = Lane::from_code(key.lane).ok_or_else(no_boards)?;
            let columns = self
                .columns
                .entry(lane)
                .or_insert_with(|| Arc::new(Columns::new(&oracle.stored.params, lane)));
            let rows = oracle.stored.locator.rows(layer, lane).ok_or_else(no_boards)?;
            let (columns, parts) = (Arc::clone(columns), Parts::new(rows as usize, columns.len()));
            let skeletons = (rows <= KEPT_ROWS).then(|| self.skeletons(layer, lane)).flatten();
            places.push(PartPlace { key, lane, parts, columns, skeletons });
        }
        let (solved, wanted) = (&self.solved, self.wanted);
        let decode = |place| decode_part(oracle, place, kind, solved, wanted);
        let decoded: Result<Vec<_>, QueryError> = places.par_iter().map(decode).collect();
        Ok(sorted(&decoded?))
    }

    /// The skeletons of the rows of a block, either kept or computed now.
    fn skeletons(&mut self, layer: Layer, lane: Lane) -> Option<Arc<Vec<RowSkeleton>>> {
        let id = ClassId::of(layer, lane)?;
        if let Some(kept) = self.skeletons.get(&id) {
            return Some(Arc::clone(kept));
        }
        let skeletons = Arc::new(self.oracle.stored.locator.row_skeletons(layer, lane)?);
        let kept: usize = self.skeletons.values().map(|of_class| of_class.len()).sum();
        if kept + skeletons.len() > MOST_KEPT_ROWS {
            self.skeletons.clear();
        }
        self.skeletons.insert(id, Arc::clone(&skeletons));
        Some(skeletons)
    }

    fn missing(&self, board: Board) -> QueryError {
        match self.oracle.stored.entry(board) {
            Some(entry) => ReadError::StateMissing(entry.key).into(),
            None => self
                .oracle
                .stored
                .unreachable(board, ": a board leads to it, so a shard of a lower layer is wrong"),
        }
    }
}

/// The boards of a part; see [`StateReader::decode`]. Among best moves, 4 stands for none.
fn decode_part(
    oracle: &Oracle,
    place: &PartPlace,
    kind: ItemKind,
    solved: &SolvedLayers,
    wanted: Wanted<'_>,
) -> Result<Vec<(Board, u64)>, QueryError> {
    if !wanted() {
        return Err(QueryError::GivenUp);
    }
    let PartPlace { key, parts, ref columns, .. } = *place;
    let states = match solved.states(key, parts)? {
        None => oracle.stored.parts.states(key, parts)?,
        states => states,
    };
    let Some(states) = states else { return Ok(Vec::new()) };
    let mut answers = Answers::read(oracle, place, kind, solved)?;
    let (count, rules) = (ones(&states) as usize, oracle.rules());
    if answers.len() < count {
        return Err(ReadError::ItemMissing { kind, part: key }.into());
    }
    let mut found = Vec::with_capacity(count);
    let mut rows = PartRows { oracle, place, of_mask: None, large: Vec::new() };
    for (row, states) in parts.occupied(key.part, &states) {
        let boards = rows.boards(row)?;
        for_each_bit(states, |column| {
            let answer = answers.next();
            let Some(board) = boards.board(column, columns.sequences()[column]) else { return };
            let canonical = rules.canonical(board);
            let answer = match kind {
                ItemKind::BestMoves => {
                    let moves = rules.moves(canonical);
                    best_on_image(rules, canonical, &moves, board, answer as Direction)
                        .map_or(4, |best| best as u64)
                }
                ItemKind::Reach | ItemKind::Values | ItemKind::Checkpoint => answer,
            };
            found.push((canonical, answer));
        });
    }
    Ok(found)
}

/// The boards of a part, row by row.
struct PartRows<'a> {
    oracle: &'a Oracle,
    place: &'a PartPlace,
    /// The mask of the last row. For this mask, `large` has the large tiles of each column.
    of_mask: Option<usize>,
    large: Vec<Board>,
}

/// The boards of a row.
enum BoardsOfRow<'a> {
    /// The small tiles of the row, and its large tiles by column. Each entry is a board.
    Plain(Board, &'a [Board]),
    /// The boards of a row that symmetries may map to itself, so that some entries are images of others.
    Symmetric(RowBoards),
}

impl PartRows<'_> {
    fn boards(&mut self, row: Row) -> Result<BoardsOfRow<'_>, ReadError> {
        let PartPlace { key, lane, ref columns, ref skeletons, .. } = *self.place;
        let locator = &self.oracle.stored.locator;
        let skeleton = skeletons.as_ref().map(|rows| rows[row.index()]).filter(|row| !row.is_symmetric);
        let Some(RowSkeleton { small, mask, .. }) = skeleton else {
            let boards = locator.row_boards(Layer(key.layer), lane, row);
            return boards.map(BoardsOfRow::Symmetric).ok_or_else(|| PayloadError::no_boards(key).into());
        };
        if self.of_mask != Some(mask) {
            let cells = &locator.space().masks(lane.k)[mask].large_cells;
            let tiles = |&sequence| with_tiles(Board::default(), cells, sequence);
            self.large = columns.sequences().iter().map(tiles).collect();
            self.of_mask = Some(mask);
        }
        Ok(BoardsOfRow::Plain(small, &self.large))
    }
}

impl BoardsOfRow<'_> {
    /// The board of an entry; `None` if it is an image of another board of the row.
    #[inline]
    fn board(&self, column: usize, sequence: Sequence) -> Option<Board> {
        match self {
            Self::Plain(small, large) => Some(Board(small.0 | large[column].0)),
            Self::Symmetric(boards) => boards.board(sequence),
        }
    }
}

/// The values or best moves of the entries of a part, in order.
enum Answers {
    Nothing,
    Values(Precision, std::vec::IntoIter<u8>),
    Best(std::vec::IntoIter<Direction>),
}

impl Answers {
    fn read(
        oracle: &Oracle,
        place: &PartPlace,
        kind: ItemKind,
        solved: &SolvedLayers,
    ) -> Result<Self, QueryError> {
        let PartPlace { key, parts, .. } = *place;
        Ok(match kind {
            ItemKind::Reach | ItemKind::Checkpoint => Self::Nothing,
            ItemKind::Values => {
                let item = match solved.items.values.get(&key) {
                    Some(item) => item.clone(),
                    None => oracle
                        .stored
                        .parts
                        .read(kind, key)?
                        .ok_or(ReadError::ItemMissing { kind, part: key })?,
                };
                Self::Values(oracle.stored.params.game().precision(), item.into_iter())
            }
            ItemKind::BestMoves => {
                let stored = oracle.best.as_ref().ok_or(QueryError::NoBestMoves)?;
                let entry = Entry { key, parts, number: 0 };
                let part = stored.part(&oracle.stored.parts, &oracle.stored.locator, &entry)?;
                Self::Best(part.map(|part| part.best.to_vec()).unwrap_or_default().into_iter())
            }
        })
    }

    /// Number of the remaining answers.
    fn len(&self) -> usize {
        match self {
            Self::Nothing => usize::MAX,
            Self::Values(precision, bytes) => bytes.len() / precision.bytes() as usize,
            Self::Best(moves) => moves.len(),
        }
    }

    /// The next answer; 0 if there is none.
    #[inline]
    fn next(&mut self) -> u64 {
        fn word<const N: usize>(bytes: &mut std::vec::IntoIter<u8>) -> [u8; N] {
            let word = bytes.as_slice().first_chunk::<N>().copied().unwrap_or([0; N]);
            bytes.nth(N - 1);
            word
        }
        match self {
            Self::Nothing => 0,
            Self::Values(Precision::Bits32, bytes) => u32::read_from(&word::<4>(bytes)).stored().0,
            Self::Values(Precision::Bits64, bytes) => u64::read_from(&word::<8>(bytes)).stored().0,
            Self::Best(moves) => moves.next().map_or(0, u64::from),
        }
    }
}
