//! Best moves of a part's states, as a shard stores them (`docs/dev/format.md`).
//!
//! A reader knows the board of a state, and so which moves are legal. Of n legal moves, at most n − 1 yes-or-no
//! decisions select the best one. The first decision is whether the best move is that of the previous state in the row,
//! which is usually so. The others are about the remaining moves in order. The probability of a yes adapts to earlier
//! decisions in the same *context*. The context consists of the legal moves, the best move of the previous state in the
//! row, and that of the previous state in the column.

use exact2048_game::bitset::for_each_bit;
use exact2048_game::legal::RowLegality;
use exact2048_game::packed::MoveSet;
use exact2048_game::transitions::Direction;
use exact2048_storage::ItemKey;

use crate::decisions::{Decide, DecisionReader, DecisionWriter, Probability};
use crate::parts::PayloadError;

/// Initial probability that the best move is that of the previous state in the row.
const AS_BEFORE: Probability = Probability::new(0xc000);

/// Initial probability that the best move is the next of the remaining moves.
const NEXT: Probability = Probability::new(0x8000);

/// One row of a part.
#[derive(Clone, Copy, Debug)]
pub struct StateRow<'a> {
    /// Which moves are legal.
    pub legality: RowLegality<'a>,
    /// Which states are reachable, one bit a column.
    pub states: &'a [u64],
}

/// Probabilities of the decisions in one context, by the number of moves that are already ruled out.
type Decisions = [Probability; 4];

/// Probabilities of all decisions, by context.
struct Expected(Vec<Decisions>);

impl Expected {
    fn new() -> Self {
        Self(vec![[AS_BEFORE, NEXT, NEXT, NEXT]; 4 * 4 * 16])
    }

    /// Codes which of the legal moves is best.
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

/// The first of some moves; an arbitrary move if there are none.
#[inline(always)]
fn first_of(moves: MoveSet) -> Direction {
    moves.trailing_zeros() as Direction & 3
}

/// Codes the best moves of the states of some rows, each of which has some data. For the data and a column, `best`
/// returns the best move; a reader ignores it. Calls `found` for each state with the data of its row, the column, the
/// legal moves and the best of them. If no move is legal, the best move is arbitrary.
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

/// Encodes the item of a part from its rows that have states, each with the best move of each column. A move that is
/// not legal stands for the first legal one. If the item is empty, the shard does not store it.
///
/// Cost: some nanoseconds a state.
pub fn encode<'a>(columns: usize, rows: impl Iterator<Item = (StateRow<'a>, &'a [Direction])>) -> Vec<u8> {
    let mut writer = DecisionWriter::new();
    code(&mut writer, columns, rows, |best, column| best[column], |_, _, _, _| {});
    writer.finish()
}

/// Decodes the item of a part, given the rows that have states. Returns the best move of each state, row by row; an
/// arbitrary move if none is legal.
///
/// # Errors
///
/// If the item is longer than the code of the best moves of these states.
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

/// Like [`decode`], but calls `found` for each state with the data of its row, the column, the legal moves and the best
/// of them. If no move is legal, the best move is arbitrary.
///
/// # Errors
///
/// If the item is longer than the code of the best moves of these states.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use exact2048_game::bitset;
    use exact2048_game::columns::Columns;
    use exact2048_game::configs::Config;
    use exact2048_game::legal::{Legality, MaskLegality};
    use exact2048_game::skeleton::Mask;
    use exact2048_game::{Lane, Params};
    use proptest::prelude::*;

    use super::*;

    const KEY: ItemKey = ItemKey { layer: 24, lane: 0, part: 3 };

    /// The cells and legal moves of a board, and the columns of a lane.
    struct Shape {
        cells: u8,
        legality: Legality,
        columns: Columns,
    }

    /// Shapes with one column, with a few, and with more than a word of columns.
    static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
        let shape = |(board, k, large_sum): (&str, u8, u32)| {
            let params = Params::usual(board, "score").large(3).build().unwrap();
            let columns = Columns::new(&params, Lane::new(k, large_sum));
            Shape {
                cells: params.game().cells() as u8,
                legality: Legality::new(params.game().board()),
                columns,
            }
        };
        [("2x2", 0, 0), ("2x2", 2, 24), ("3x2", 3, 40), ("3x3", 5, 128), ("3x3", 6, 504)].map(shape).into()
    });

    /// A made-up row.
    struct Made {
        mask: Mask,
        config: Config,
        states: Vec<u64>,
        best: Vec<Direction>,
    }

    impl Shape {
        fn mask(&self, large_cells: &[u8]) -> Mask {
            let mut large_cells = large_cells.to_vec();
            large_cells.sort_unstable();
            let small_cells = (0..self.cells).filter(|cell| !large_cells.contains(cell)).collect();
            Mask { large_cells, small_cells, stabiliser: Vec::new() }
        }

        /// Makes one row per seed. The rows have all states, some, few or none, on full boards and on others. One move
        /// is often the best.
        fn made(&self, seeds: &[u64]) -> Vec<Made> {
            let row = |&seed: &u64| {
                let mut chance = chance(seed);
                let mut cells: Vec<u8> = (0..self.cells).collect();
                for last in (1..cells.len()).rev() {
                    cells.swap(last, chance() as usize % (last + 1));
                }
                let mask = self.mask(&cells[..usize::from(self.columns.lane().k)]);
                let is_full = chance().is_multiple_of(2);
                let config = mask.small_cells.iter().fold(0, |config, _| {
                    let digit = if is_full { 1 + chance() % 2 } else { chance() % 3 };
                    config << 4 | digit
                });
                let density = chance() % 4;
                let mut word = || match density {
                    0 => 0,
                    1 => chance() & chance() & chance(),
                    2 => chance(),
                    _ => u64::MAX,
                };
                let mut states: Vec<u64> = (0..self.columns.words()).map(|_| word()).collect();
                if let Some(last) = states.last_mut() {
                    *last &= bitset::last_word(self.columns.len());
                }
                let usual = chance() % 4;
                let mut best = || if chance().is_multiple_of(2) { usual } else { chance() % 4 };
                let best = (0..self.columns.len()).map(|_| best() as Direction).collect();
                Made { mask, config, states, best }
            };
            seeds.iter().map(row).collect()
        }
    }

    /// Pseudo-random numbers.
    fn chance(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }
    }

    /// The content of an item for one state: its row and column, its legal moves, and the best of them if
    /// there are any.
    type Said = (usize, usize, MoveSet, Option<Direction>);

    /// A part of made-up rows.
    struct Part<'a> {
        columns: usize,
        made: &'a [Made],
        masks: Vec<MaskLegality<'a>>,
    }

    impl<'a> Part<'a> {
        fn new(shape: &'a Shape, made: &'a [Made]) -> Self {
            let masks = made.iter().map(|row| shape.legality.of_mask(&row.mask, &shape.columns)).collect();
            Self { columns: shape.columns.len(), made, masks }
        }

        fn rows(&self) -> impl Iterator<Item = StateRow<'_>> {
            let rows = self.masks.iter().zip(self.made);
            rows.map(|(mask, made)| StateRow { legality: mask.row(made.config), states: &made.states })
        }

        fn with_best(&self) -> impl Iterator<Item = (StateRow<'_>, &[Direction])> {
            self.rows().zip(self.made.iter().map(|made| &*made.best))
        }

        fn item(&self) -> Vec<u8> {
            encode(self.columns, self.with_best())
        }

        /// The expected content of an item, for all states.
        fn wanted(&self) -> Vec<Said> {
            let mut all = Vec::new();
            for (number, (row, best)) in self.with_best().enumerate() {
                for column in (0..self.columns).filter(|&column| bitset::is_set(row.states, column)) {
                    let legal = row.legality.word(column / 64).at(column % 64);
                    let is_legal = |direction: &Direction| legal >> direction & 1 == 1;
                    let best = Some(best[column]).filter(is_legal).or_else(|| (0..4).find(is_legal));
                    all.push((number, column, legal, best));
                }
            }
            all
        }

        fn decode(&self, item: &[u8]) -> Result<Vec<Said>, PayloadError> {
            let mut all = Vec::new();
            decode_each(KEY, item, self.columns, self.rows().zip(0usize..), |&row, column, legal, best| {
                all.push((row, column, legal, (legal != 0).then_some(best)));
            })?;
            Ok(all)
        }

        /// Decodes any bytes; `None` if they are refused. Requires an entry for each state, and only legal moves.
        fn decode_any(&self, item: &[u8]) -> Option<Vec<Said>> {
            let found = self.decode(item).ok()?;
            let state = |&(row, column, legal, _): &Said| (row, column, legal);
            assert!(found.iter().map(state).eq(self.wanted().iter().map(state)), "the states differ");
            for &(row, column, legal, best) in &found {
                let is_legal = best.is_none_or(|best| legal >> best & 1 == 1);
                assert!(is_legal, "row {row}, column {column}: {best:?} of {legal:04b}");
            }
            Some(found)
        }
    }

    fn cases(cases: u32) -> ProptestConfig {
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
    }

    proptest! {
        #![proptest_config(cases(128))]

        #[test]
        fn best_moves_are_read_back(
            shape in 0..SHAPES.len(),
            seeds in prop::collection::vec(any::<u64>(), 0..24),
        ) {
            let made = SHAPES[shape].made(&seeds);
            let part = Part::new(&SHAPES[shape], &made);
            let (item, wanted) = (part.item(), part.wanted());
            prop_assert_ne!(item.last(), Some(&0));
            prop_assert!(part.decode(&item).unwrap() == wanted);
            let moves = decode(KEY, &item, part.columns, part.rows()).unwrap();
            prop_assert_eq!(moves.len(), wanted.len());
            let is_so = |(found, &(.., best)): (&Direction, &Said)| best.is_none_or(|best| best == *found);
            prop_assert!(moves.iter().zip(&wanted).all(is_so));
            // Rows without states do not change the item.
            let occupied = part.with_best().filter(|(row, _)| bitset::any(row.states));
            prop_assert_eq!(encode(part.columns, occupied), item);
        }

        /// Every item is the shortest with its content. The decoder reads zeros after the end of an item. So a cut item
        /// is refused, or decodes to other moves.
        #[test]
        fn damaged_items_are_refused_or_decode_to_other_moves(
            shape in 0..SHAPES.len(),
            seeds in prop::collection::vec(any::<u64>(), 0..12),
            junk in prop::collection::vec(any::<u8>(), 0..200),
            cut in any::<prop::sample::Index>(),
            behind in any::<u8>(),
        ) {
            let made = SHAPES[shape].made(&seeds);
            let part = Part::new(&SHAPES[shape], &made);
            let (item, wanted) = (part.item(), part.wanted());
            part.decode_any(&junk);
            if !item.is_empty() {
                let cut = &item[..cut.index(item.len())];
                let said = part.decode_any(cut);
                prop_assert!(said.is_none_or(|said| said != wanted), "{} of {} bytes", cut.len(), item.len());
            }
            let longer = |more: usize, byte: u8| [item.clone(), vec![byte; more]].concat();
            for zeros in 1..10 {
                let said = part.decode_any(&longer(zeros, 0));
                prop_assert!(said.is_none_or(|said| said == wanted), "{zeros} more zeros");
            }
            part.decode_any(&longer(1, behind));
            // No state takes more than three decisions of two bytes each, and four bytes are read before the first.
            let unread = longer(4 + 6 * wanted.len() + 1, behind);
            prop_assert!(part.decode(&unread).is_err(), "{} bytes instead of {}", unread.len(), item.len());
        }
    }

    /// The made-up rows cover all cases. Some have more than a word of columns, and the states have 0 to 4 legal moves.
    #[test]
    fn made_up_rows_are_of_all_kinds() {
        let columns: Vec<usize> = SHAPES.iter().map(|shape| shape.columns.len()).collect();
        assert_eq!(columns, [1, 2, 3, 75, 720]);
        let mut legal_moves = BTreeSet::new();
        for shape in &*SHAPES {
            let made = shape.made(&Vec::from_iter(0u64..200));
            assert!(made.iter().any(|row| !bitset::any(&row.states)));
            let part = Part::new(shape, &made);
            legal_moves.extend(part.wanted().iter().map(|(_, _, legal, _)| legal.count_ones()));
        }
        assert_eq!(Vec::from_iter(legal_moves), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn nothing_is_stored_where_there_is_no_choice() {
        let shape = &SHAPES[1];
        let stuck = || Made { mask: shape.mask(&[0, 3]), config: 0x12, states: vec![0b11], best: vec![3, 3] };
        let without_state = Made { states: vec![0], ..stuck() };
        for (made, states) in [(vec![], 0), (vec![without_state], 0), (vec![stuck(), stuck()], 4)] {
            let part = Part::new(shape, &made);
            let wanted = part.wanted();
            assert!(wanted.len() == states && wanted.iter().all(|(.., best)| best.is_none()));
            assert!(part.item().is_empty());
            assert!(part.decode(&[]).unwrap() == wanted);
            let text = part.decode(&[0; 5]).unwrap_err().to_string();
            let reason = format!("best moves of {states} states in 4 bytes, found 5 bytes");
            assert!(text.contains("layer 24") && text.contains("part 3") && text.contains(&reason), "{text}");
        }
    }

    /// The expected bytes come from `docs/dev/format.md` by arithmetic with big integers. Later versions must still
    /// read the items that are stored today.
    #[test]
    fn items_follow_the_format() {
        let shape = &SHAPES[2];
        assert_eq!(shape.columns.sequences(), [0x344, 0x434, 0x443]);
        let rows: [([u8; 3], Config, u64, [Direction; 3]); 7] = [
            ([0, 1, 2], 0x121, 0b111, [2, 1, 0]),
            ([0, 1, 2], 0x102, 0b111, [2, 1, 1]),
            ([0, 2, 4], 0x112, 0b101, [3, 3, 3]),
            ([0, 2, 5], 0x010, 0b110, [0, 1, 0]),
            ([1, 3, 4], 0x010, 0b111, [3, 3, 0]),
            ([0, 1, 5], 0x000, 0b111, [3, 0, 2]),
            ([2, 3, 4], 0x200, 0b111, [1, 3, 3]),
        ];
        let made = rows.map(|(large_cells, config, states, best)| Made {
            mask: shape.mask(&large_cells),
            config,
            states: vec![states],
            best: best.into(),
        });
        let part = Part::new(shape, &made);
        let item = [0x74, 0xe0, 0x0f, 0x7a, 0x07];
        assert_eq!(part.item(), item);
        assert!(part.decode(&item).unwrap() == part.wanted());
    }
}
