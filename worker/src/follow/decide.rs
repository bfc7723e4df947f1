//! Decisions in the states of a block: the move with which a game continues, or its end.

use exact2048_game::bitset::{Number, for_each_bit, lowest};
use exact2048_game::configs::Config;
use exact2048_game::legal::Legality;
use exact2048_game::rowset::{RowSet, Slot};
use exact2048_game::transitions::{Direction, Moves, Transitions};
use exact2048_game::value::Value;
use exact2048_solution::best_moves;
use exact2048_solution::{ItemKind, Parts, PayloadError, ReadError};
use exact2048_storage::ItemKey;

use super::sums::FollowSums;
use crate::bits::BitMatrix;
use crate::blocks::Entries;
use crate::error::WorkerError;
use crate::kernels::MoveRun;
use crate::kernels::chances::{NO_MOVE, mark_some};
use crate::kernels::index_map::IndexMap;
use crate::moves::{self, RowMoves};
use crate::occurring::OccurringMoves;
use crate::open_block::OpenBlock;
use crate::policy::{state_masks, state_rows};
use crate::shared::Shared;
use crate::tables::{LaneTables, MapCache, Tables};

/// The form in which a follower reads the best moves of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BestMoves {
    /// The form in the shards of the run.
    Stored,
    /// The form of [`Sink::BestMoves`](crate::Sink::BestMoves).
    WorkedOut,
}

/// Reads the best moves of blocks.
pub struct Decisions<'a, V> {
    shared: &'a Shared<V>,
    form: BestMoves,
    legality: Legality,
}

/// The states of a block that games reach, while their best moves are read.
pub struct Reached<'a> {
    /// The rows that games may reach, with their transitions.
    pub transitions: &'a Transitions,
    /// The chances of these rows.
    pub chances: &'a [f64],
    /// The best moves of these rows.
    pub best: &'a mut [Direction],
    /// The sums over these rows.
    pub sums: &'a mut FollowSums,
}

impl<'a, V: Value> Decisions<'a, V> {
    /// The best moves of a run in one form.
    pub fn new(shared: &'a Shared<V>, form: BestMoves) -> Self {
        Self { shared, form, legality: Legality::new(shared.tables.params().game().board()) }
    }

    /// Reads the best moves of the states that games reach, and sums up how games continue or end.
    pub fn decide(
        &self,
        open: &OpenBlock<'_>,
        reach: &Entries,
        reached: &mut Reached<'_>,
    ) -> Result<(), WorkerError> {
        let transitions = reached.transitions;
        let (parts, rows, held) = (open.parts(), transitions.rows(), &reach.matrix);
        let (columns, longest) = (open.tables.columns.len(), open.tables.columns.len().max(rows.len()));
        let of_held = match self.form {
            BestMoves::Stored => Some(self.shared.store.transitions(open.class, held.rows())?),
            BestMoves::WorkedOut => None,
        };
        let tables = &*self.shared.tables;
        let mut taker = Taker::new(tables, &open.tables, reached);
        for part in (0..parts.count()).filter(|&part| rows.count_in(parts.rows(part)) > 0) {
            let key = Parts::key(open.layer, open.lane, part);
            let item = self.shared.sources.best_moves(key)?;
            let (key, in_part) = (ItemKind::BestMoves.key(key), parts.rows(part));
            let read = match &of_held {
                None => {
                    let of_part = held.rows().rows_in(in_part);
                    let of_part = of_part.map(|row| (row, held.slot(held.rows().slot(row))));
                    moves::unpack(key, &item, of_part, |row, states, moves| {
                        if rows.contains(row) {
                            taker.take_row(rows.slot(row), states, moves);
                        }
                    })
                }
                Some(of_held) => {
                    let masks = state_masks(tables, &self.legality, open, held, in_part);
                    if masks.is_empty() {
                        continue;
                    }
                    let states = state_rows(&masks, tables.configs(of_held), held);
                    take_stored(&mut taker, (key, &item), columns, rows, held, states)
                }
            };
            read.map_err(ReadError::from)?;
        }
        taker.reached.sums.longest = longest as u64;
        Ok(())
    }

    /// Removes the best moves that make the wanted tile, and sums up their chances, slot by slot.
    pub fn take_wins(
        &self,
        tables: &LaneTables,
        moves: &Moves,
        (chances, best): (&[f64], &mut [Direction]),
        cache: &mut MapCache,
        sums: &mut FollowSums,
    ) {
        let all_tables = &self.shared.tables;
        let (lane, stride) = (tables.columns.lane(), tables.stride());
        let mut won = vec![0.0; best.len() / stride];
        let mut take = |slot: Slot, column: usize, direction: Direction, best: &mut [Direction]| {
            let place = slot.index() * stride + column;
            if best[place] == direction {
                won[slot.index()] += chances[place];
                best[place] = NO_MOVE;
            }
        };
        for &(slot, direction) in &moves.won_rows {
            (0..stride).for_each(|column| take(slot, column, direction, best));
        }
        for group in &moves.groups {
            let occurring = OccurringMoves::new(group, |_| true);
            for target_lane in lane.after(group.step, all_tables.params()) {
                let target = all_tables.lane_or_empty(target_lane);
                let won = target.columns.len() as u32 + 1;
                let mut maps = all_tables.maps(cache, tables, &target);
                maps.for_each_some(&occurring.patterns, |patterns, maps| {
                    for MoveRun { edges, map } in occurring.runs(patterns, maps) {
                        let winning = winning_columns(map, won);
                        for edge in edges.iter().filter(|_| !winning.is_empty()) {
                            let direction = edge.direction();
                            winning.iter().for_each(|&column| take(edge.from, column, direction, best));
                        }
                    }
                });
            }
        }
        sums.won = won.iter().sum();
    }
}

/// Notes decisions, and sums up their chances.
struct Taker<'a, 'b> {
    tables: &'a LaneTables,
    configs: &'b [Config],
    /// Φ of each row's small tiles.
    small: &'b [u32],
    ends: Ends,
    reached: &'a mut Reached<'b>,
    /// Working memory: the columns of a row that games reach.
    marks: Vec<u64>,
}

impl<'a, 'b> Taker<'a, 'b> {
    fn new(all_tables: &Tables, tables: &'a LaneTables, reached: &'a mut Reached<'b>) -> Self {
        let (transitions, loose) = (reached.transitions, all_tables.params().game().board().loose());
        let (configs, small) =
            (all_tables.configs(transitions), &all_tables.skeletons(transitions).potential);
        Self { tables, configs, small, ends: Ends::new(tables, loose.into()), reached, marks: Vec::new() }
    }

    /// Notes the decision in one state, and adds it to the sums of its row.
    fn take(&mut self, slot: Slot, column: usize, direction: Direction, row: &mut FollowSums) {
        let place = slot.index() * self.tables.stride() + column;
        let chance = self.reached.chances[place];
        row.states += 1;
        row.reached += chance;
        if direction == NO_MOVE {
            row.ended[self.ends.largest(self.configs[slot.index()], column)] += chance;
            let potential = self.small[slot.index()] + self.tables.columns.potential()[column];
            row.potential += chance * f64::from(potential);
        } else {
            row.moved += chance;
            self.reached.best[place] = direction;
        }
    }

    /// Notes the decisions in the states of a row.
    fn take_row(&mut self, slot: Slot, states: &[u64], moves: RowMoves<'_>) {
        let (mut sum, mut before, stride) = (FollowSums::default(), 0, self.tables.stride());
        let mut marks = std::mem::take(&mut self.marks);
        mark_some(&self.reached.chances[slot.index() * stride..][..stride], &mut marks);
        for (word, (&reached, &states)) in marks.iter().zip(states).enumerate() {
            for_each_bit(&[reached], |bit| {
                let number = before + (states & lowest(bit)).count_ones();
                self.take(slot, 64 * word + bit, moves.of(number), &mut sum);
            });
            before += states.count_ones();
        }
        self.marks = marks;
        *self.reached.sums += &sum;
    }
}

/// Notes the decisions in `states`, from an item in the form of shards.
fn take_stored<'a>(
    taker: &mut Taker<'_, '_>,
    (key, item): (ItemKey, &[u8]),
    columns: usize,
    rows: &RowSet,
    held: &BitMatrix,
    states: impl Iterator<Item = (best_moves::StateRow<'a>, Slot)>,
) -> Result<(), PayloadError> {
    let (mut current, mut sum) = (None, FollowSums::default());
    let stride = taker.tables.stride();
    let read = best_moves::decode_each(key, item, columns, states, |&of_held, column, legal, best| {
        if current != Some(of_held) {
            *taker.reached.sums += &std::mem::take(&mut sum);
            current = Some(of_held);
        }
        let row = held.rows().row(of_held);
        if rows.contains(row) && taker.reached.chances[rows.slot(row).index() * stride + column] != 0.0 {
            let direction = if legal == 0 { NO_MOVE } else { best };
            taker.take(rows.slot(row), column, direction, &mut sum);
        }
    });
    *taker.reached.sums += &sum;
    read
}

/// The largest tiles of a lane's boards.
struct Ends {
    /// The exponent of the largest tile of each column; `None` in a lane without large tiles.
    of_columns: Option<Vec<u8>>,
}

impl Ends {
    fn new(tables: &LaneTables, loose: u32) -> Self {
        let k = u32::from(tables.columns.lane().k) - loose;
        let of_columns = k.checked_sub(1).map(|last| {
            // The loose stones are the highest digits of a multiset. The next digit is its largest tile.
            let groups = tables.columns.groups().iter();
            let largest =
                groups.map(|group| ((group.multiset >> (4 * last)) as u8 & 15, group.count as usize));
            largest.flat_map(|(exponent, columns)| std::iter::repeat_n(exponent, columns)).collect()
        });
        Self { of_columns }
    }

    /// The exponent of the largest tile.
    fn largest(&self, config: Config, column: usize) -> usize {
        match &self.of_columns {
            Some(of_columns) => of_columns[column].into(),
            None => (0..16).map(|digit| (config >> (4 * digit)) as usize & 15).max().unwrap_or(0),
        }
    }
}

/// The columns from which a map leads to a won game.
fn winning_columns(map: IndexMap<'_>, won: u32) -> Vec<usize> {
    match map {
        IndexMap::Identity => Vec::new(),
        IndexMap::Dense(map) => {
            let all = map.leads_to().iter().enumerate();
            all.filter(|&(_, &to)| to == won).map(|(column, _)| column).collect()
        }
        IndexMap::Sparse(map) => {
            let all = map.pairs().iter().filter(|&&[_, to]| to == won);
            all.map(|&[column, _]| column as usize).collect()
        }
    }
}
