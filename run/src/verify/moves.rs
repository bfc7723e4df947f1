//! Successors of the states of a layer, and the values of these states, computed from the layers above.
//!
//! A spawn does not change the large tiles, so all successors of an afterstate are in one lane. So the afterstates of a
//! layer are grouped by lane, and each lane needs two small tables of states.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::game::CheckedGame;
use super::layer_reader::Part;
use super::outcome::MOST_PROBLEMS;
use super::table::BoardTable;
use super::values::{SPAWNS, SpawnedValues};

/// Afterstates whose spawns are looked up together.
const BATCH: usize = 256;

/// Afterstates of which one thread lists the spawns, or looks them up.
const SPAWNED_TOGETHER: usize = 1 << 14;

/// Stands for a move to a won board, among the numbers of lanes that the moves of a part lead to.
const WON: u8 = u8::MAX;

/// The states of a lane in a layer.
#[derive(Debug, Default)]
pub struct BlockStates {
    /// Their canonical boards.
    pub boards: Vec<u64>,
    /// Their values; empty where they are not known.
    pub values: Vec<u64>,
    /// Whether a move and a spawn are known to lead to them.
    pub target_lanes: Vec<AtomicBool>,
}

/// Canonical boards by the code of their lane, ascending, each once.
pub type Lanes = BTreeMap<u64, Vec<u64>>;

/// The states of a layer.
#[derive(Debug, Default)]
pub struct States {
    /// By the code of their lane.
    pub lanes: BTreeMap<u64, BlockStates>,
    /// Whether values are known.
    pub valued: bool,
}

impl States {
    /// Puts the parts of a layer together, with their values where they are known.
    pub fn new(parts: Vec<Part>, valued: bool) -> Self {
        let mut lanes = BTreeMap::<u64, Vec<Part>>::new();
        parts.into_iter().for_each(|part| lanes.entry(part.lane).or_default().push(part));
        let block = |(lane, parts): (u64, Vec<Part>)| {
            let (boards, values) = parts.into_iter().map(|part| (part.boards, part.values)).unzip();
            let (boards, values) = (joined(boards), joined(values));
            let target_lanes = boards.iter().map(|_| AtomicBool::new(false)).collect();
            (lane, BlockStates { boards, values, target_lanes })
        };
        let lanes: Vec<(u64, Vec<Part>)> = lanes.into_iter().collect();
        Self { lanes: lanes.into_par_iter().map(block).collect::<Vec<_>>().into_iter().collect(), valued }
    }

    /// All boards with their values, in the order of their lanes.
    pub fn valued(&self) -> impl Iterator<Item = (u64, u64)> {
        self.lanes.values().flat_map(|block| block.boards.iter().copied().zip(block.values.iter().copied()))
    }

    /// The value of a state of a lane whose boards ascend; `None` where it is not there, or its value is not known.
    pub fn value(&self, lane: u64, board: u64) -> Option<u64> {
        let block = self.lanes.get(&lane)?;
        block.values.get(block.boards.binary_search(&board).ok()?).copied()
    }

    /// The states that nothing is known to lead to.
    pub fn not_led_to(&self) -> impl Iterator<Item = u64> {
        let alone = |block: &'_ BlockStates| {
            let boards = block.boards.iter().zip(&block.target_lanes);
            boards
                .filter(|(_, led)| !led.load(Ordering::Relaxed))
                .map(|(&board, _)| board)
                .collect::<Vec<_>>()
        };
        self.lanes.values().flat_map(alone)
    }
}

/// The legal moves of the states of a part.
struct Moves {
    /// Which moves each state has, one bit each.
    legal: Vec<u8>,
    /// Which of `lanes` each move leads to.
    targets: Vec<u8>,
    /// The afterstates by lane, in order of the moves.
    lanes: Vec<(u64, Vec<u64>)>,
}

/// The moves of the states of one part that lead to one lane.
struct Arrivals {
    lane: u64,
    part: usize,
    /// Which of the part's lanes this is.
    number: usize,
    /// Canonical afterstates at first, later their values.
    after: Vec<u64>,
}

/// Result of checking the afterstates of a layer.
#[derive(Default)]
pub struct Successors {
    /// Number of afterstates, up to symmetry, that are not won.
    pub afterstates: u64,
    /// Afterstates, each with a board that it can become and that is no state; not all there are.
    pub missing: Vec<(u64, u64)>,
    /// The values of the states of each part, where they were asked for, and the number of the first of the best moves of
    /// each; 0 where none is legal.
    pub values: Vec<(Vec<u64>, Vec<u8>)>,
}

/// Moves the states of a layer, looks their spawns up in the layers 2 and 4 above, where those are given, and
/// notes there what was led to. With `back_up` both must be given with values, and the values of the states follow.
pub fn successors(
    game: &CheckedGame,
    parts: &[Part],
    above: [Option<&States>; 2],
    back_up: bool,
) -> Successors {
    let moves: Vec<Moves> = parts.par_iter().map(|part| Moves::new(game, part.as_stored())).collect();
    let (mut moves, mut arrivals) = (moves, Vec::new());
    for (part, moves) in moves.iter_mut().enumerate() {
        let lanes = std::mem::take(&mut moves.lanes).into_iter().enumerate();
        arrivals.extend(lanes.map(|(number, (lane, after))| Arrivals { lane, part, number, after }));
    }
    arrivals.sort_by_key(|arrivals| arrivals.lane);
    let mut lanes: Vec<Lane<'_>> = arrivals
        .chunk_by_mut(|a, b| a.lane == b.lane)
        .map(|arrivals| {
            let lane = &arrivals[0].lane;
            let above = above.map(|states| Above {
                looked_up: states.is_some(),
                block: states.and_then(|states| states.lanes.get(lane)),
            });
            Lane { above, arrivals }
        })
        .collect();
    // The largest first, so that no thread is left with one at the end.
    lanes.sort_by_cached_key(|lane| std::cmp::Reverse(lane.arrivals()));
    let found = lanes.into_par_iter().with_max_len(1);
    let found: Vec<Found> =
        found.map_init(Tables::default, |tables, lane| lane.look_up(game, tables, back_up)).collect();
    let mut values = Vec::new();
    if back_up {
        let mut after: Vec<Vec<Vec<u64>>> = moves.iter().map(|_| Vec::new()).collect();
        arrivals.sort_by_key(|arrivals| (arrivals.part, arrivals.number));
        arrivals.into_iter().for_each(|arrivals| after[arrivals.part].push(arrivals.after));
        let all = parts.par_iter().zip(&moves).zip(after);
        values = all.map(|((part, moves), after)| moves.best(game, &part.boards, &after)).collect();
    }
    Successors {
        afterstates: found.iter().map(|found| found.afterstates).sum(),
        missing: found.into_iter().flat_map(|found| found.missing).collect(),
        values,
    }
}

/// The states that those of some parts lead to, after a 2 and after a 4.
pub fn target_lanes(game: &CheckedGame, parts: &[Part]) -> [Lanes; 2] {
    let arrivals = parts.par_iter().flat_map_iter(|part| Moves::new(game, &part.boards).lanes);
    let mut arrivals: Vec<(u64, Vec<u64>)> = arrivals.collect();
    arrivals.sort_unstable_by_key(|&(lane, _)| lane);
    let lanes = arrivals.par_chunk_by_mut(|a, b| a.0 == b.0).map(|arrivals| {
        let (lane, after) = (arrivals[0].0, arrivals.iter_mut().map(|(_, after)| std::mem::take(after)));
        (lane, spawned(game, &each_once(after.collect())))
    });
    let mut all = [Lanes::new(), Lanes::new()];
    for (lane, boards) in lanes.collect::<Vec<_>>() {
        all.iter_mut().zip(boards).for_each(|(all, boards)| _ = all.insert(lane, boards));
    }
    all
}

/// The states that some afterstates of a lane become by a 2 and by a 4, ascending, each once.
fn spawned(game: &CheckedGame, afterstates: &[u64]) -> [Vec<u64>; 2] {
    let spawn = |afterstates: &[u64]| {
        let mut spawned = Spawned::default();
        spawned.list(game, afterstates);
        spawned.boards.map(|boards| each_once(vec![boards]))
    };
    let pieces: Vec<[Vec<u64>; 2]> = afterstates.par_chunks(SPAWNED_TOGETHER).map(spawn).collect();
    let mut lists = SPAWNS.map(|_| Vec::new());
    for piece in pieces {
        lists.iter_mut().zip(piece).for_each(|(lists, piece)| lists.push(piece));
    }
    lists.map(each_once)
}

/// The boards of some lists, ascending, each once.
fn each_once(lists: Vec<Vec<u64>>) -> Vec<u64> {
    let mut boards = joined(lists);
    boards.par_sort_unstable();
    boards.dedup();
    boards.shrink_to_fit();
    boards
}

/// Some lists one after the other.
fn joined(mut lists: Vec<Vec<u64>>) -> Vec<u64> {
    if lists.len() == 1 { lists.pop().unwrap_or_default() } else { lists.concat() }
}

impl Moves {
    fn new(game: &CheckedGame, boards: &[u64]) -> Self {
        let mut after = [const { Vec::new() }; 4];
        game.geometry().slide(boards, &mut after);
        let mut moves =
            Self { legal: Vec::with_capacity(boards.len()), targets: Vec::new(), lanes: Vec::new() };
        let mut last = 0;
        for (i, &board) in boards.iter().enumerate() {
            let mut legal = 0;
            for (number, after) in after.each_ref().map(|after| after[i]).into_iter().enumerate() {
                if after == board {
                    continue;
                }
                legal |= 1 << number;
                if game.is_won(after) {
                    moves.targets.push(WON);
                    continue;
                }
                let lane = game.lane(after);
                if moves.lanes.get(last).is_none_or(|(other, _)| *other != lane) {
                    last = moves.number(lane);
                }
                moves.targets.push(last as u8);
                moves.lanes[last].1.push(after);
            }
            moves.legal.push(legal);
        }
        for (_, after) in &mut moves.lanes {
            game.geometry().canonicalise(after);
        }
        moves
    }

    /// The number of a lane that a move leads to: few lanes can be reached from one.
    fn number(&mut self, lane: u64) -> usize {
        let known = self.lanes.iter().position(|(other, _)| *other == lane);
        known.unwrap_or_else(|| {
            self.lanes.push((lane, Vec::new()));
            self.lanes.len() - 1
        })
    }

    /// The values of states: that of the best move of each, given the values of the afterstates by lane; and these moves.
    fn best(&self, game: &CheckedGame, boards: &[u64], after: &[Vec<u64>]) -> (Vec<u64>, Vec<u8>) {
        let mut after: Vec<_> = after.iter().map(|values| values.iter().copied()).collect();
        let mut targets = self.targets.iter();
        let mut next = || match *targets.next()? {
            WON => Some(game.values().won()),
            lane => after[usize::from(lane)].next(),
        };
        let mut best = |(&board, &legal): (&u64, &u8)| {
            let legal = (0..4u8).filter(|m| legal >> m & 1 == 1);
            let values = legal.filter_map(|m| Some((next()?, m)));
            // Of equal values the first: what comes later has to be larger.
            let best = values.reduce(|best, other| if other.0 > best.0 { other } else { best });
            best.unwrap_or_else(|| (game.dead(board), 0))
        };
        boards.iter().zip(&self.legal).map(&mut best).unzip()
    }
}

/// All moves that lead to a lane, and the states that follow.
struct Lane<'a> {
    arrivals: &'a mut [Arrivals],
    /// After a 2, and after a 4.
    above: [Above<'a>; 2],
}

/// The states of a lane in a layer above.
struct Above<'a> {
    /// Whether they are known at all.
    looked_up: bool,
    /// The states; `None` where there are none.
    block: Option<&'a BlockStates>,
}

/// Working memory, used for one lane after the other.
#[derive(Default)]
struct Tables {
    afterstates: BoardTable,
    above: [BoardTable; 2],
}

/// States that the spawns of some afterstates lead to; working memory, used for one group of afterstates
/// after another.
#[derive(Default)]
struct Spawned {
    /// After 2s and after 4s.
    boards: [Vec<u64>; 2],
    /// Of a single afterstate.
    values: SpawnedValues,
}

/// Result of checking the afterstates of a lane.
struct Found {
    afterstates: u64,
    missing: Vec<(u64, u64)>,
}

impl Lane<'_> {
    /// Moves that lead here.
    fn arrivals(&self) -> usize {
        self.arrivals.iter().map(|arrivals| arrivals.after.len()).sum()
    }

    /// Looks up the spawns of all afterstates; puts the values of the afterstates in their place if `with_values` is
    /// set.
    fn look_up(self, game: &CheckedGame, tables: &mut Tables, with_values: bool) -> Found {
        let total = self.arrivals();
        tables.afterstates.clear(total);
        let (mut afterstates, mut numbers) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for &after in self.arrivals.iter().flat_map(|arrivals| &arrivals.after) {
            let next = afterstates.len() as u32;
            let number = tables.afterstates.get_or_insert(after, next);
            if number == next {
                afterstates.push(after);
            }
            numbers.push(number);
        }
        for (above, table) in self.above.iter().zip(&mut tables.above) {
            table.number(above.block.as_ref().map_or(&[], |block| &block.boards));
        }
        let mut found = Found { afterstates: afterstates.len() as u64, missing: Vec::new() };
        let (above, tables) = (self.above.each_ref(), &tables.above);
        let look_up = |spawned: &mut Spawned, afterstates: &mut [u64]| {
            let mut missing = Vec::new();
            for batch in afterstates.chunks_mut(BATCH) {
                spawned.look_up(game, batch, above, tables, with_values, &mut missing);
            }
            missing
        };
        // In pieces: threads beside each other in a lane that has most of a layer.
        let pieces = afterstates.par_chunks_mut(SPAWNED_TOGETHER).map_init(Spawned::default, look_up);
        found.missing.extend(pieces.collect::<Vec<_>>().into_iter().flatten());
        let values = afterstates;
        if with_values {
            let mut numbers = numbers.into_iter();
            for arrivals in self.arrivals.iter_mut() {
                for (after, number) in arrivals.after.iter_mut().zip(&mut numbers) {
                    *after = values[number as usize];
                }
            }
        }
        found
    }
}

impl Spawned {
    /// Lists the canonical boards of all states that some afterstates can become.
    fn list(&mut self, game: &CheckedGame, afterstates: &[u64]) {
        self.boards.iter_mut().for_each(Vec::clear);
        for states in afterstates.iter().flat_map(|&after| game.spawns(after)) {
            self.boards.iter_mut().zip(states).for_each(|(boards, state)| boards.push(state));
        }
        self.boards.iter_mut().for_each(|boards| game.geometry().canonicalise(boards));
    }

    /// Looks up what some afterstates become, by the numbers of the boards of the layers above; puts the values of the
    /// afterstates in their place if `with_values` is set.
    fn look_up(
        &mut self,
        game: &CheckedGame,
        afterstates: &mut [u64],
        above: [&Above<'_>; 2],
        tables: &[BoardTable; 2],
        with_values: bool,
        missing: &mut Vec<(u64, u64)>,
    ) {
        self.list(game, afterstates);
        let mut at = 0;
        for after in afterstates {
            let empty = game.geometry().empty_cells(*after).count_ones() as usize;
            self.values.iter_mut().for_each(Vec::clear);
            for ((above, list), (table, boards)) in
                above.into_iter().zip(&mut self.values).zip(tables.iter().zip(&self.boards))
            {
                above.find(table, *after, &boards[at..at + empty], list, missing);
            }
            at += empty;
            if with_values {
                *after = game.values().of_spawned(&self.values);
            }
        }
    }
}

impl Above<'_> {
    /// Lists the values of states, each of which an afterstate leads to; 0 for those that are missing.
    fn find(
        &self,
        table: &BoardTable,
        after: u64,
        boards: &[u64],
        values: &mut Vec<u64>,
        missing: &mut Vec<(u64, u64)>,
    ) {
        for &board in boards {
            let number = if self.looked_up { table.get(board) } else { None };
            let value = match (number, self.block) {
                (Some(number), Some(block)) => {
                    block.target_lanes[number as usize].store(true, Ordering::Relaxed);
                    block.values.get(number as usize).copied()
                }
                _ if self.looked_up && missing.len() < MOST_PROBLEMS => {
                    missing.push((after, board));
                    None
                }
                _ => None,
            };
            values.push(value.unwrap_or_default());
        }
    }
}
