//! The reachable states that a run stores, and the values of its kept layers.

use std::sync::Arc;

use exact2048_cone::Solved;
use exact2048_game::bitset::Number;
use exact2048_game::locate::{EntryPlace, Locator};
use exact2048_game::placer::Placer;
use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer, Params};
use exact2048_storage::ItemKey;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::decoded::{Part, PartCache};
use super::ladder::ValueSource;
use super::{QueryError, QuestionLimits};
use crate::archive::Archive;
use crate::catalog::Catalog;
use crate::parts::{PART_ENTRIES, Parts};
use crate::read_error::ReadError;
use crate::recipe::{ReachSource, Recipe};
use crate::run::Run;

/// From this number of states on, threads share the search for their entries.
const SHARED_STATES: usize = 4096;

/// Number of states that one thread looks up together. The number is large, because states of one part are often far
/// apart in the list. It is small enough that the places of the states take some MiB.
const LOOKED_UP_TOGETHER: usize = 1 << 14;

/// The place of a state in its part, and the index of its board among the requested ones.
#[derive(Clone, Copy, Default)]
struct PlaceOfBoard {
    /// The index of the part among the parts with requested states.
    part: u32,
    at: u32,
    number: usize,
    /// The value, once it was looked up.
    value: Stored,
}

/// Orders places by part. `counts` has the number of places of each part.
fn by_part(places: &[PlaceOfBoard], counts: &[usize]) -> Vec<PlaceOfBoard> {
    let starts = counts.iter().scan(0, |end, count| Some(std::mem::replace(end, *end + count)));
    let mut next: Vec<usize> = starts.collect();
    let mut ordered = vec![PlaceOfBoard::default(); places.len()];
    for &place in places {
        let next = &mut next[place.part as usize];
        ordered[*next] = place;
        *next += 1;
    }
    ordered
}

/// The stored states of a run, and their values.
pub(super) struct StoredStates {
    pub(super) params: Params,
    pub(super) locator: Locator,
    pub(super) parts: PartCache,
    pub(super) catalog: Arc<Catalog>,
    /// Whether the reach of each layer is stored, by layer number. For other layers, the run does not store which
    /// boards games reach.
    has_reach: Vec<bool>,
}

impl StoredStates {
    /// The states of a run, with decoded parts of at most `cache_bytes` bytes in memory.
    pub(super) fn new(run: &Run, cache_bytes: u64) -> Self {
        let params = run.params().clone();
        let archive: Arc<dyn Archive> = Arc::clone(run.archive()) as Arc<dyn Archive>;
        let holdings = run.holdings();
        let recipe = Recipe::new(&params, &holdings);
        let layers = Layer::FIRST.to(params.last_layer());
        Self {
            has_reach: layers.map(|layer| recipe.reach(layer) == ReachSource::Stored).collect(),
            locator: Locator::new(&params),
            parts: PartCache::new(archive, params.game().precision(), params.contents().kept(), cache_bytes),
            catalog: Arc::clone(run.catalog()),
            params,
        }
    }

    /// Whether the run stores the reach of a layer.
    pub(super) fn has_reach(&self, layer: Layer) -> bool {
        self.has_reach.get(layer.index()).is_some_and(|&has_reach| has_reach)
    }

    /// The layer of a board.
    pub(super) fn layer(&self, board: Board) -> Layer {
        Layer(board.tile_sum(self.params.game().board()))
    }

    /// The entry of a board, reachable or not; `None` if no block has an entry for the board.
    pub(super) fn entry(&self, board: Board) -> Option<Entry> {
        self.locator.place(board).map(Entry::of)
    }

    /// The entries of those boards that may be reachable, sorted by part, each with its index in `boards`.
    pub(super) fn entries(&self, boards: &[Board]) -> Vec<(Entry, usize)> {
        let in_range =
            boards.iter().enumerate().filter(|&(_, &board)| self.params.why_unreachable(board).is_none());
        let mut entries: Vec<_> = in_range.filter_map(|(i, &board)| Some((self.entry(board)?, i))).collect();
        entries.sort_unstable_by_key(|(entry, i)| (entry.key, entry.number, *i));
        entries
    }

    /// The decoded part of an entry; `None` if none of its entries is reachable, or if the reach of the layer is not
    /// stored.
    pub(super) fn part(&self, entry: &Entry) -> Result<Option<Arc<Part>>, QueryError> {
        if !self.has_reach(entry.layer()) && !self.params.contents().stores_reachability(entry.layer()) {
            return Ok(None);
        }
        Ok(self.parts.get(entry.key, entry.parts, entry.keeps_values())?)
    }

    /// The error for a board that the run does not reach.
    pub(super) fn refusal(&self, board: Board) -> QueryError {
        let why = self.params.why_unreachable(board).map(|why| format!(": {why}"));
        self.unreachable(board, &why.unwrap_or_default())
    }

    pub(super) fn unreachable(&self, board: Board, reason: &str) -> QueryError {
        QueryError::Unreachable {
            board: board.to_text(self.params.game().board()),
            reason: reason.to_owned(),
        }
    }

    /// The error for a state that the run must have, but for which no block has an entry.
    fn no_place(&self, layer: Layer, board: Board) -> QueryError {
        self.unreachable(
            board,
            &format!(": layer {layer} has no place for it, so a shard of a lower layer is wrong"),
        )
    }

    /// The stored values of states of a kept layer, in the order of their boards.
    pub(super) fn look_up(
        &self,
        layer: Layer,
        boards: &[Board],
        question: &QuestionLimits<'_>,
    ) -> Result<Vec<Stored>, QueryError> {
        question.spent.add_stored(boards.len() as u64);
        let mut values = vec![Stored::default(); boards.len()];
        let look_up =
            |(values, boards): (&mut [Stored], &[Board])| self.look_up_some(layer, boards, values, question);
        if boards.len() < SHARED_STATES {
            look_up((&mut values, boards))?;
        } else {
            let values = values.par_chunks_mut(LOOKED_UP_TOGETHER);
            values.zip(boards.par_chunks(LOOKED_UP_TOGETHER)).try_for_each(look_up)?;
        }
        Ok(values)
    }

    /// Looks up the values of some states. Each part of the run is read once, and threads share the parts, because
    /// decoding a part takes much longer than a look-up.
    fn look_up_some(
        &self,
        layer: Layer,
        boards: &[Board],
        values: &mut [Stored],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let mut placer = Placer::new(&self.locator);
        let (mut parts, mut firsts, mut counts) = (FxHashMap::default(), Vec::new(), Vec::new());
        let mut places = Vec::with_capacity(boards.len());
        for (at, &board) in (0..).zip(boards) {
            let entry = placer.place(board).map(Entry::of).ok_or_else(|| self.no_place(layer, board))?;
            let part = *parts.entry(entry.key).or_insert_with(|| {
                firsts.push(entry);
                counts.push(0);
                firsts.len() as u32 - 1
            });
            counts[part as usize] += 1;
            places.push(PlaceOfBoard { part, at, number: entry.number, value: Stored::default() });
        }
        let mut places = by_part(&places, &counts);
        places.par_chunk_by_mut(|a, b| a.part == b.part).try_for_each(|of_part| {
            question.check()?;
            let first = &firsts[of_part[0].part as usize];
            let key = first.key;
            let part = self.part(first)?.ok_or(ReadError::StateMissing(key))?;
            for place in of_part {
                let rank = part.rank(place.number).ok_or(ReadError::StateMissing(key))?;
                place.value = part.value(rank)?.ok_or(ReadError::no_values(key))?;
            }
            Ok::<(), QueryError>(())
        })?;
        places.iter().for_each(|place| values[place.at as usize] = place.value);
        Ok(())
    }

    /// Keeps the values of a cone with the decoded parts.
    pub(super) fn keep(&self, solved: &Solved) -> Result<(), QueryError> {
        for layer in solved.layers() {
            let places =
                layer.boards.iter().enumerate().filter_map(|(at, &board)| Some((self.entry(board)?, at)));
            let mut entries: Vec<_> = places.filter(|(entry, _)| entry.keeps_values()).collect();
            entries.sort_unstable_by_key(|(entry, _)| (entry.key, entry.number));
            for of_part in entries.chunk_by(|(a, _), (b, _)| a.key == b.key) {
                let Some(part) = self.part(&of_part[0].0)? else { continue };
                for (entry, at) in of_part {
                    if let Some(rank) = part.rank(entry.number) {
                        part.keep(rank, layer.values.get(*at));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The values that are kept with the decoded parts.
impl ValueSource for StoredStates {
    fn fill(
        &self,
        states: &[(Layer, Board)],
        values: &mut [Option<Stored>],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let mut entries = Vec::with_capacity(states.len());
        for (at, &(layer, board)) in states.iter().enumerate().filter(|&(at, _)| values[at].is_none()) {
            entries.push((self.entry(board).ok_or_else(|| self.no_place(layer, board))?, at));
        }
        // A part that keeps no values need not be read.
        entries.retain(|(entry, _)| entry.keeps_values());
        entries.sort_unstable_by_key(|(entry, _)| (entry.key, entry.number));
        for of_part in entries.chunk_by(|(a, _), (b, _)| a.key == b.key) {
            question.check()?;
            let Some(part) = self.part(&of_part[0].0)? else { continue };
            for (entry, at) in of_part {
                values[*at] = part.rank(entry.number).map(|rank| part.value(rank)).transpose()?.flatten();
            }
        }
        Ok(())
    }
}

/// The place of an entry in its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) key: ItemKey,
    pub(super) parts: Parts,
    /// Row × columns + column, within the part.
    pub(super) number: usize,
}

impl Entry {
    /// The entry at a place.
    pub(super) fn of(place: EntryPlace) -> Self {
        let EntryPlace { layer, lane, row, rows, column, columns } = place;
        let (row, columns) = (row.index(), columns as usize);
        let parts = Parts::new(rows as usize, columns);
        let part = parts.of_row(row);
        let number = (row - parts.rows(part).start) * columns + column.0 as usize;
        Self { key: Parts::key(layer, lane, part), parts, number }
    }

    /// The layer.
    pub(super) fn layer(&self) -> Layer {
        Layer(self.key.layer)
    }

    /// Whether computed values of the part are kept with the decoded part. If a single row has more entries than a
    /// usual part, queries ask for few of them, so memory for all would be wasted.
    fn keeps_values(&self) -> bool {
        self.parts.columns() <= PART_ENTRIES
    }
}
