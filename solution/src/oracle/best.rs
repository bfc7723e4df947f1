//! Best moves of states, from a run that stores them.
//!
//! If several moves are best, the run stores the first of them on the stored image of the board. An answer maps this
//! move to the requested board.

use std::collections::BTreeMap;
use std::sync::Arc;

use exact2048_game::board::Board;
use exact2048_game::columns::Columns;
use exact2048_game::configs::Config;
use exact2048_game::legal::{Legality, MaskLegality};
use exact2048_game::locate::Locator;
use exact2048_game::packed::{LegalMoves, PackedRules};
use exact2048_game::rules::Move;
use exact2048_game::transitions::Direction;
use exact2048_game::{Lane, Layer, Params};
use exact2048_storage::ItemKey;

use super::decoded::{Marked, PartCache};
use super::stored::{Entry, StoredStates};
use super::{QueryError, Wanted};
use crate::best_moves::{self, StateRow};
use crate::cache::{Bytes, WeighedCache, weighed_cache};
use crate::parts::{ItemKind, PayloadError};
use crate::read_error::ReadError;

/// Most bytes of decoded best moves that an oracle keeps.
const CACHE_BYTES: u64 = 32 << 20;

/// Approximate bytes of a decoded part of best moves.
const PART_BYTES: u64 = 48 << 10;

/// The best move in a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The board as asked for.
    pub board: Board,
    /// Its canonical image.
    pub canonical: Board,
    /// Its layer.
    pub layer: Layer,
    /// A best move; `None` if no move is legal.
    pub best: Option<Move>,
    /// The legal moves, with the boards after them.
    pub moves: LegalMoves,
}

/// Reads best moves, and keeps parts of them decoded.
pub(super) struct BestMoves {
    legality: Legality,
    parts: WeighedCache<ItemKey, Option<Arc<BestPart>>>,
}

/// The reachable entries of a part and the best move of each.
#[derive(Debug)]
pub(super) struct BestPart {
    marked: Marked,
    pub(super) best: Box<[Direction]>,
}

impl Bytes for Option<Arc<BestPart>> {
    fn bytes(&self) -> u64 {
        self.as_ref().map_or(0, |part| part.marked.bytes() + (part.best.len() + size_of::<BestPart>()) as u64)
    }
}

impl BestMoves {
    pub(super) fn new(params: &Params) -> Self {
        Self { legality: Legality::new(params.game().board()), parts: weighed_cache(CACHE_BYTES, PART_BYTES) }
    }

    /// See [`Oracle::advise_all`](super::Oracle::advise_all).
    pub(super) fn advise_all(
        &self,
        stored: &StoredStates,
        rules: &PackedRules,
        boards: &[Board],
        wanted: Wanted<'_>,
    ) -> Result<Vec<Result<Advice, QueryError>>, QueryError> {
        let mut answers: Vec<_> = boards.iter().map(|&board| Err(stored.refusal(board))).collect();
        for of_part in stored.entries(boards).chunk_by(|(a, _), (b, _)| a.key == b.key) {
            if !wanted() {
                return Err(QueryError::GivenUp);
            }
            let Some(part) = self.part(&stored.parts, &stored.locator, &of_part[0].0)? else { continue };
            for (entry, i) in of_part {
                let Some(rank) = part.marked.rank(entry.number) else { continue };
                let best = *part
                    .best
                    .get(rank)
                    .ok_or(ReadError::ItemMissing { kind: ItemKind::BestMoves, part: entry.key })?;
                answers[*i] = Ok(advice(stored, rules, boards[*i], best));
            }
        }
        Ok(answers)
    }

    /// The decoded part that contains an entry; `None` if none of its entries is reachable.
    pub(super) fn part(
        &self,
        source: &PartCache,
        locator: &Locator,
        entry: &Entry,
    ) -> Result<Option<Arc<BestPart>>, ReadError> {
        self.parts.get_or_insert_with(&entry.key, || {
            let Some(states) = source.states(entry.key, entry.parts)? else { return Ok(None) };
            // Shards have no empty items.
            let item = source.read(ItemKind::BestMoves, entry.key)?.unwrap_or_default();
            let best = self.decode(locator, entry, &states, &item)?;
            Ok(Some(Arc::new(BestPart { marked: Marked::new(&states, entry.parts.columns()), best })))
        })
    }

    fn decode(
        &self,
        locator: &Locator,
        entry: &Entry,
        states: &[u64],
        item: &[u8],
    ) -> Result<Box<[Direction]>, ReadError> {
        let Entry { key, parts, .. } = *entry;
        let no_boards = || PayloadError::no_boards(key);
        let lane = Lane::from_code(key.lane).ok_or_else(no_boards)?;
        let columns = Columns::new(locator.space().params(), lane);
        let mut masks: BTreeMap<usize, MaskLegality<'_>> = BTreeMap::new();
        let mut rows: Vec<(usize, Config, &[u64])> = Vec::new();
        for (row, states) in parts.occupied(key.part, states) {
            let skeleton = locator.skeleton(Layer(key.layer), lane, row);
            let (index, mask, config) = skeleton.ok_or_else(no_boards)?;
            masks.entry(index).or_insert_with(|| self.legality.of_mask(mask, &columns));
            rows.push((index, config, states));
        }
        let rows = rows
            .iter()
            .map(|&(mask, config, states)| StateRow { legality: masks[&mask].row(config), states });
        Ok(best_moves::decode(ItemKind::BestMoves.key(key), item, columns.len(), rows)?.into())
    }
}

/// The advice on a board, from the best move on its stored image.
fn advice(stored: &StoredStates, rules: &PackedRules, board: Board, best: Direction) -> Advice {
    let moves = rules.moves(board);
    let image = stored.locator.stored_image(board).unwrap_or(board);
    Advice {
        board,
        canonical: rules.canonical(board),
        layer: stored.layer(board),
        best: best_on_image(rules, board, &moves, image, best),
        moves,
    }
}

/// The move on a board that corresponds to a given move on its image; `None` if no move is legal.
pub(super) fn best_on_image(
    rules: &PackedRules,
    board: Board,
    moves: &LegalMoves,
    image: Board,
    best: Direction,
) -> Option<Move> {
    let (wanted, _) = rules.moves(image).get(Move::ALL[usize::from(best)])?;
    let symmetry = rules.images(board).iter().position(|&other| other == image)?;
    moves
        .iter()
        .find(|&(_, after, _)| rules.images(after)[symmetry] == wanted)
        .map(|(direction, ..)| direction)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best moves of all images of a board lead to images of one afterstate.
    #[test]
    fn moves_follow_from_the_stored_image() {
        for (size, text) in
            [("3x3", "2 2 4 / 0 8 0 / 0 0 2"), ("2x3", "2 2 0 / 8 0 2"), ("4x2", "2 0 / 2 4 / 0 0 / 8 2")]
        {
            let rules = PackedRules::new(size.parse().unwrap());
            let image = Board::parse(text, rules.size()).unwrap();
            for (best, after, _) in rules.moves(image).iter() {
                for board in rules.images(image) {
                    let moves = rules.moves(board);
                    let found = best_on_image(&rules, board, &moves, image, best as Direction).unwrap();
                    let (to, _) = moves.get(found).unwrap();
                    assert_eq!(rules.canonical(to), rules.canonical(after), "{size} {best:?}");
                    assert!(board != image || found == best);
                }
            }
        }
        let rules = PackedRules::new("2x2".parse().unwrap());
        let over = Board::parse("2 4 / 4 2", rules.size()).unwrap();
        assert_eq!(best_on_image(&rules, over, &rules.moves(over), over, 0), None);
    }
}
