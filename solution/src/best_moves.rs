//! Best moves of a part's states, as a shard stores them (`docs/dev/format.md`).
//!
//! A reader knows a state's board, and so which moves are legal. Of these one is best, and to say which takes at most as
//! many yes-or-no decisions as there are legal moves less one: first whether it is that of the state before in the row,
//! which it most often is, then for the others in their order. How probable each answer is follows from the decisions
//! before it that were made under the same circumstances: the legal moves, the best move of the state before in the row
//! and of the one above in the column.

use exact2048_game::bitset::for_each_bit;
use exact2048_game::legal::{MoveSet, RowLegality};
use exact2048_game::transitions::Direction;
use exact2048_storage::ItemKey;

use crate::decisions::{Decide, DecisionReader, DecisionWriter, Probability};
use crate::parts::PayloadError;

/// How probable it is at first that the best move is that of the state before.
const AS_BEFORE: Probability = Probability::new(0xc000);

/// How probable it is at first that it is the next of the other moves.
const NEXT: Probability = Probability::new(0x8000);

/// One row of a part.
#[derive(Clone, Copy, Debug)]
pub struct StateRow<'a> {
    /// Which moves are legal.
    pub legality: RowLegality<'a>,
    /// Which states are reachable, one bit a column.
    pub states: &'a [u64],
}

/// Decisions under the same circumstances, by how many moves were declined before.
type Decisions = [Probability; 4];

/// What is expected of the decisions, by the legal moves and those of the neighbours.
struct Expected(Vec<Decisions>);

impl Expected {
    fn new() -> Self {
        Self(vec![[AS_BEFORE, NEXT, NEXT, NEXT]; 4 * 4 * 16])
    }

    /// Codes which of some legal moves is best.
    #[inline(always)]
    fn code(
        &mut self,
        coder: &mut impl Decide,
        legal: MoveSet,
        (before, above): (Direction, Direction),
        best: Direction,
    ) -> Direction {
        let decisions = &mut self.0[(usize::from(before) * 4 + usize::from(above)) * 16 + usize::from(legal)];
        let is_legal = legal >> before & 1 == 1;
        let (mut rest, mut candidate) = (legal, if is_legal { before } else { first_of(legal) });
        for probability in decisions {
            rest &= !(1 << candidate);
            if rest == 0 || coder.decide(probability, best == candidate) {
                break;
            }
            candidate = first_of(rest);
        }
        candidate
    }
}

/// The first of some moves; of none whatever.
#[inline(always)]
fn first_of(moves: MoveSet) -> Direction {
    moves.trailing_zeros() as Direction & 3
}

/// Codes the best moves of the states of some rows; `best` gives that of a row and a column where it is known. What is found
/// is given with the row, the column and the legal moves; where there are none, any move.
fn code<'a, T>(
    coder: &mut impl Decide,
    columns: usize,
    rows: impl Iterator<Item = (StateRow<'a>, T)>,
    best: impl Fn(&T, usize) -> Direction,
    mut found: impl FnMut(&T, usize, MoveSet, Direction),
) {
    let (mut expected, mut above) = (Expected::new(), vec![0; columns]);
    for (row, known) in rows {
        let mut before = 0;
        for (word, &states) in row.states.iter().enumerate() {
            let legality = row.legality.word(word);
            for_each_bit(&[states], |bit| {
                let (column, legal) = (64 * word + bit, legality.at(bit));
                if legal == 0 {
                    found(&known, column, legal, 0);
                    return;
                }
                let best = best(&known, column);
                let best = if legal >> best & 1 == 1 { best } else { first_of(legal) };
                before = expected.code(coder, legal, (before, above[column]), best);
                above[column] = before;
                found(&known, column, legal, before);
            });
        }
    }
}

/// The item of a part, from its rows that have states, each with the best move of each column. Moves that are not legal
/// stand for the first one that is. May be empty: then the shard has no item.
///
/// Cost: some nanoseconds a state.
pub fn encode<'a>(columns: usize, rows: impl Iterator<Item = (StateRow<'a>, &'a [Direction])>) -> Vec<u8> {
    let mut writer = DecisionWriter::new();
    code(&mut writer, columns, rows, |best, column| best[column], |_, _, _, _| {});
    writer.finish()
}

/// Reads the item of a part, from its rows that have states: the best move of each state, row by row; any move where none
/// is legal.
///
/// # Errors
///
/// If the item is longer than what it says.
pub fn decode<'a>(
    key: ItemKey,
    item: &[u8],
    columns: usize,
    rows: impl Iterator<Item = StateRow<'a>>,
) -> Result<Vec<Direction>, PayloadError> {
    let mut all = Vec::new();
    decode_each(key, item, columns, rows.map(|row| (row, ())), |(), _, _, best| all.push(best))?;
    Ok(all)
}

/// The same, state by state: what comes with the row, the column, the legal moves and the best of them; any move where none
/// is legal.
///
/// # Errors
///
/// If the item is longer than what it says.
pub fn decode_each<'a, T>(
    key: ItemKey,
    item: &[u8],
    columns: usize,
    rows: impl Iterator<Item = (StateRow<'a>, T)>,
    mut found: impl FnMut(&T, usize, MoveSet, Direction),
) -> Result<(), PayloadError> {
    let (mut reader, mut states) = (DecisionReader::new(item), 0u64);
    code(
        &mut reader,
        columns,
        rows,
        |_, _| 0,
        |row, column, legal, best| {
            states += 1;
            found(row, column, legal, best);
        },
    );
    match reader.unread() {
        0 => Ok(()),
        unread => {
            let expected = format!("best moves of {states} states in {} bytes", item.len() - unread);
            Err(PayloadError::new(key, expected, format!("{} bytes", item.len())))
        }
    }
}
