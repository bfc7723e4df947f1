//! Decisions in the states of a block: which go on with which move, and which end a game.

use exact2048_game::bitset::{Number, for_each_bit, lowest};
use exact2048_game::rowset::Slot;
use exact2048_game::skeleton::Config;
use exact2048_game::transitions::{Direction, Moves, Transitions};
use exact2048_game::value::Value;
use exact2048_solution::best_moves;
use exact2048_solution::{ItemKind, Parts, ReadError};

use super::{BestMoves, FollowSums, Follower, moves};
use crate::WorkerError;
use crate::blocks::Entries;
use crate::enumerate::OccurringMoves;
use crate::kernels::MoveRun;
use crate::kernels::chances::{NO_MOVE, mark_some};
use crate::kernels::index_map::IndexMap;
use crate::open_block::OpenBlock;
use crate::policy::state_rows;
use crate::tables::{LaneTables, MapCache};

impl<V: Value> Follower<'_, V> {
    /// Reads the best moves of the states that games reach, and sums up how they go on or end.
    pub(super) fn decide(
        &self,
        open: &OpenBlock<'_>,
        transitions: &Transitions,
        reach: &Entries,
        chances: &[f64],
        best: &mut [Direction],
        sums: &mut FollowSums,
    ) -> Result<(), WorkerError> {
        let worker = self.worker;
        let OpenBlock { layer, lane, class, ref tables, .. } = *open;
        let (columns, stride) = (tables.columns.len(), tables.stride());
        let (parts, rows, held) = (open.parts(), transitions.rows(), &reach.matrix);
        let configs = worker.tables.configs(transitions);
        let small = &worker.tables.skeletons(transitions).potential;
        let ends = Ends::new(tables);
        let mut take = |slot: Slot, column: usize, direction: Direction, row: &mut FollowSums| {
            let place = slot.index() * stride + column;
            let chance = chances[place];
            row.states += 1;
            row.reached += chance;
            if direction == NO_MOVE {
                row.ended[ends.largest(configs[slot.index()], column)] += chance;
                let potential = small[slot.index()] + tables.columns.potential()[column];
                row.potential += chance * f64::from(potential);
            } else {
                row.moved += chance;
                best[place] = direction;
            }
        };
        let mut marks = Vec::new();
        let of_held = match self.best_moves {
            BestMoves::Stored => Some(worker.class_transitions(class, held.rows())?),
            BestMoves::WorkedOut => None,
        };
        let configs_of_held = of_held.as_ref().map_or(&[][..], |of_held| worker.tables.configs(of_held));
        for part in (0..parts.count()).filter(|&part| rows.count_in(parts.rows(part)) > 0) {
            let key = ItemKind::BestMoves.key(Parts::key(layer, lane, part));
            // Shards have no empty items.
            let item = worker.archive.read(ItemKind::BestMoves.shard(), key)?.unwrap_or_default();
            let read = match self.best_moves {
                BestMoves::WorkedOut => {
                    let of_part = held
                        .rows()
                        .rows_in(parts.rows(part))
                        .map(|row| (row, held.slot(held.rows().slot(row))));
                    moves::unpack(key, &item, of_part, |row, states, moves| {
                        if !rows.contains(row) {
                            return;
                        }
                        let (slot, mut sum, mut before) = (rows.slot(row), FollowSums::default(), 0);
                        mark_some(&chances[slot.index() * stride..][..stride], &mut marks);
                        for (word, (&come_to, &states)) in marks.iter().zip(states).enumerate() {
                            for_each_bit(&[come_to], |bit| {
                                let number = before + (states & lowest(bit)).count_ones();
                                take(slot, 64 * word + bit, moves.of(number), &mut sum);
                            });
                            before += states.count_ones();
                        }
                        *sums += &sum;
                    })
                }
                BestMoves::Stored => {
                    let masks = worker.state_masks(&self.legality, open, held, parts.rows(part));
                    if masks.is_empty() {
                        continue;
                    }
                    let (mut current, mut sum) = (None, FollowSums::default());
                    let states = state_rows(&masks, configs_of_held, held);
                    let read = best_moves::decode_each(
                        key,
                        &item,
                        columns,
                        states,
                        |&of_held, column, legal, best| {
                            if current != Some(of_held) {
                                *sums += &std::mem::take(&mut sum);
                                current = Some(of_held);
                            }
                            let row = held.rows().row(of_held);
                            if rows.contains(row) && chances[rows.slot(row).index() * stride + column] != 0.0
                            {
                                let direction = if legal == 0 { NO_MOVE } else { best };
                                take(rows.slot(row), column, direction, &mut sum);
                            }
                        },
                    );
                    *sums += &sum;
                    read
                }
            };
            read.map_err(ReadError::from)?;
        }
        sums.longest = columns.max(rows.len()) as u64;
        Ok(())
    }

    /// Removes the best moves that make the wanted tile, and sums up their chances, slot by slot.
    pub(super) fn take_wins(
        &self,
        tables: &LaneTables,
        moves: &Moves,
        (chances, best): (&[f64], &mut [Direction]),
        cache: &mut MapCache,
        sums: &mut FollowSums,
    ) {
        let worker = self.worker;
        let (lane, stride, params) = (tables.columns.lane(), tables.stride(), worker.tables.params());
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
            for target_lane in lane.after(group.step, params) {
                let target = worker.tables.lane_or_empty(target_lane);
                let won = target.columns.len() as u32 + 1;
                worker.tables.maps(cache, tables, &target).for_each_some(
                    &occurring.patterns,
                    |patterns, maps| {
                        for MoveRun { edges, map } in occurring.runs(patterns, maps) {
                            let winning = winning_columns(map, won);
                            for edge in edges.iter().filter(|_| !winning.is_empty()) {
                                let direction = edge.direction();
                                winning.iter().for_each(|&column| take(edge.from, column, direction, best));
                            }
                        }
                    },
                );
            }
        }
        sums.won = won.iter().sum();
    }
}

/// The largest tiles of a lane's boards.
struct Ends {
    /// The exponent of the largest tile of each column; `None` in a lane without large tiles.
    of_columns: Option<Vec<u8>>,
}

impl Ends {
    fn new(tables: &LaneTables) -> Self {
        let k = u32::from(tables.columns.lane().k);
        let of_columns = k.checked_sub(1).map(|last| {
            // The largest one comes first.
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

/// The columns that a map leads to a won game.
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
