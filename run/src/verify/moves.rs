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

/// Number of afterstates whose spawns are looked up together.
const BATCH: usize = 256;

/// Number of afterstates whose spawns one thread lists or looks up as one piece of work.
const SPAWNED_TOGETHER: usize = 1 << 14;

/// Marks a move to a won board in [`Moves::targets`].
const WON: u8 = u8::MAX;

/// The states of a lane in a layer.
#[derive(Debug, Default)]
pub struct BlockStates {
    /// The canonical boards of the states.
    pub boards: Vec<u64>,
    /// The values of the states; empty if they are unknown.
    pub values: Vec<u64>,
    /// Whether a move and a spawn are known to lead to each state.
    pub target_lanes: Vec<AtomicBool>,
}

/// Canonical boards by the code of their lane, ascending, each once.
pub type Lanes = BTreeMap<u64, Vec<u64>>;

/// The states of a layer.
#[derive(Debug, Default)]
pub struct States {
    /// The states by the code of their lane.
    pub lanes: BTreeMap<u64, BlockStates>,
    /// Whether the values of the states are known.
    pub valued: bool,
    /// Whether the values have all their bits.
    pub is_exact: bool,
}

impl States {
    /// Joins the parts of a layer, with their values if these are known. The values may be rounded.
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
        let lanes = lanes.into_par_iter().map(block).collect::<Vec<_>>().into_iter().collect();
        Self { lanes, valued, is_exact: false }
    }

    /// All boards with their values, in the order of their lanes.
    pub fn valued(&self) -> impl Iterator<Item = (u64, u64)> {
        self.lanes.values().flat_map(|block| block.boards.iter().copied().zip(block.values.iter().copied()))
    }

    /// The value of a state of a lane. The boards of the lane must ascend.
    ///
    /// Returns `None` if the lane lacks the state, or its value is unknown.
    pub fn value(&self, lane: u64, board: u64) -> Option<u64> {
        let block = self.lanes.get(&lane)?;
        block.values.get(block.boards.binary_search(&board).ok()?).copied()
    }

    /// The states that no known state leads to.
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
    /// The legal moves of each state, one bit per move.
    legal: Vec<u8>,
    /// For each move, the index in `lanes` of the lane that it leads to, or [`WON`].
    targets: Vec<u8>,
    /// The afterstates by lane, in the order of the moves.
    lanes: Vec<(u64, Vec<u64>)>,
}

/// The moves of the states of one part that lead to one lane.
struct Arrivals {
    lane: u64,
    part: usize,
    /// The index of the lane in [`Moves::lanes`] of the part.
    number: usize,
    /// The canonical afterstates, which their values replace later.
    after: Vec<u64>,
}

/// Result of checking the afterstates of a layer.
#[derive(Default)]
pub struct Successors {
    /// The number of afterstates that are not won, up to symmetry.
    pub afterstates: u64,
    /// Some afterstates, each with a board that a spawn makes of it and that is missing from the states above.
    pub missing: Vec<(u64, u64)>,
    /// For each part, the values of the states and the number of the first best move of each state, which is 0 without
    /// a legal move. Empty unless `back_up` was set.
    pub values: Vec<(Vec<u64>, Vec<u8>)>,
}

/// Finds the afterstates of a layer, and looks their spawns up in the given layers 2 and 4 above.
///
/// Marks the states above that a spawn leads to. With `back_up`, both layers above must have values, and the result has
/// the values of the layer's states.
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
    // The largest lane is first, so that no thread begins it last.
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

/// The states that the states of some parts lead to, after a spawned 2 and after a spawned 4.
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

/// The states that spawned 2s and spawned 4s make of some afterstates of a lane, ascending, each once.
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

/// Concatenates some lists.
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

    /// The index of a lane in `lanes`, to which it is added if it is new. The search is linear, because moves from one
    /// lane lead to few lanes.
    fn number(&mut self, lane: u64) -> usize {
        let known = self.lanes.iter().position(|(other, _)| *other == lane);
        known.unwrap_or_else(|| {
            self.lanes.push((lane, Vec::new()));
            self.lanes.len() - 1
        })
    }

    /// The values of the states and their best moves, from the values of the afterstates by lane.
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
            // The first move wins among equal values, so a later move replaces it only with a larger value.
            let best = values.reduce(|best, other| if other.0 > best.0 { other } else { best });
            best.unwrap_or_else(|| (game.dead(board), 0))
        };
        boards.iter().zip(&self.legal).map(&mut best).unzip()
    }
}

/// All moves that lead to a lane, and the states that spawns lead to.
struct Lane<'a> {
    arrivals: &'a mut [Arrivals],
    /// The states after a spawned 2 and after a spawned 4.
    above: [Above<'a>; 2],
}

/// The states of a lane in a layer above.
struct Above<'a> {
    /// Whether the states of the layer are known.
    looked_up: bool,
    /// The states; `None` if the layer has none in this lane.
    block: Option<&'a BlockStates>,
}

/// Hash tables that one thread uses for one lane after the other.
#[derive(Default)]
struct Tables {
    afterstates: BoardTable,
    above: [BoardTable; 2],
}

/// The states that spawns make of some afterstates. One thread uses these buffers for one batch of afterstates after
/// the other.
#[derive(Default)]
struct Spawned {
    /// The states after spawned 2s and after spawned 4s.
    boards: [Vec<u64>; 2],
    /// The values of the states of a single afterstate.
    values: SpawnedValues,
}

/// Result of checking the afterstates of a lane.
struct Found {
    afterstates: u64,
    missing: Vec<(u64, u64)>,
}

impl Lane<'_> {
    /// The number of moves that lead to the lane.
    fn arrivals(&self) -> usize {
        self.arrivals.iter().map(|arrivals| arrivals.after.len()).sum()
    }

    /// Looks up the spawns of all afterstates. If `with_values` is set, replaces the afterstates in `arrivals` by their
    /// values.
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
        // In pieces, so that all threads share the work if one lane has most of a layer.
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

    /// Looks up the spawns of some afterstates in the tables of the layers above. If `with_values` is set, replaces the
    /// afterstates by their values.
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
    /// Lists the values of the states that an afterstate leads to; 0 for a missing state or an unknown value.
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
