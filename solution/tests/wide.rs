//! Questions to runs that are too large to be solved in a test: 4×3 in its widest lanes, and 4×4. The runs hold only
//! the states that the questions need. Tables of the solver, which the oracle does not use, give the places of these
//! states.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use exact2048_game::backup::Backup;
use exact2048_game::bitset::Number;
use exact2048_game::board::Board;
use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::fixed::Scale;
use exact2048_game::huge::NO_HUGE;
use exact2048_game::rowset::Row;
use exact2048_game::rules::{self, Move};
use exact2048_game::sequence::{Counts, Sequence, unpack};
use exact2048_game::value::Stored;
use exact2048_game::{Lane, Layer, Params};
use exact2048_solution::{
    Commit, JournalRecord, Oracle, OracleOptions, Parts, Phase, QueryError, Record, Run, UnnamedPolicy,
};
use exact2048_storage::{Frame, ItemKey, ShardWriter};
use tempfile::TempDir;

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

/// A run that holds only the states to which some boards lead, and some entries to fill the parts.
struct Made {
    place: TempDir,
    params: Params,
    /// The stored value of every state that is needed, by canonical board.
    stored: HashMap<Board, Stored>,
}

/// The made-up value of an entry. It is near the largest value, so that it exceeds every score.
fn made_up(key: ItemKey, number: usize) -> u32 {
    let mixed =
        (key.lane ^ u64::from(key.layer) << 40 ^ u64::from(key.part) << 20).wrapping_add(number as u64);
    u32::MAX - (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as u32
}

impl Made {
    /// Makes a run for questions about `boards`. Every `filler`-th entry of the same parts is reachable too.
    fn new(params: &Params, boards: &[Board], filler: usize) -> Self {
        let space = Space::new(params);
        let mut states = BTreeSet::new();
        boards.iter().for_each(|&board| needed(params, &space, board, &mut states, true));

        // The states are grouped by lane, because the columns of one lane may take a hundred MB.
        let mut by_lane: BTreeMap<Lane, Vec<(Board, Layer, Row, Sequence)>> = BTreeMap::new();
        for &board in &states {
            let (lane, layer, row, sequence) = space.locate(board).unwrap();
            by_lane.entry(lane).or_default().push((board, layer, row, sequence));
        }
        let (mut reach, mut values) = (BTreeMap::new(), BTreeMap::new());
        let mut stored = HashMap::new();
        for (lane, states) in by_lane {
            let columns = Columns::new(params, lane);
            let mut parts_of: BTreeMap<ItemKey, (Parts, BTreeSet<usize>)> = BTreeMap::new();
            for (board, layer, row, sequence) in states {
                let class = space.class(ClassId::of(layer, lane).unwrap()).unwrap();
                let parts = Parts::new(class.rows(), columns.len());
                let key = Parts::key(layer, lane, parts.of_row(row.index()));
                let first_row = parts.rows(key.part).start;
                let number = (row.index() - first_row) * columns.len() + column(&columns, sequence);
                let entry = parts_of.entry(key).or_insert_with(|| (parts, BTreeSet::new()));
                entry.1.insert(number);
                if params.contents().kept().keeps(layer) {
                    stored.insert(board, Stored(u64::from(made_up(key, number))));
                }
            }
            for (key, (parts, mut numbers)) in parts_of {
                let rows = parts.rows(key.part).len();
                numbers.extend((0..rows * columns.len()).step_by(filler));
                reach.insert(key, reach_item(rows, columns.len(), &numbers));
                if params.contents().kept().keeps(Layer(key.layer)) {
                    let bytes = numbers.iter().flat_map(|&number| made_up(key, number).to_le_bytes());
                    values.insert(key, bytes.collect());
                }
            }
        }
        let place = TempDir::new().unwrap();
        let mut run = Run::open_or_create(&place.path().join("run"), params, UnnamedPolicy::Refuse).unwrap();
        commit(&mut run, Phase::Enumerate, &reach);
        commit(&mut run, Phase::BackUp, &values);
        assert!(run.is_solved());
        Self { place, params: params.clone(), stored }
    }

    fn oracle(&self, cache_bytes: u64) -> Oracle {
        let run = Run::open(&self.place.path().join("run")).unwrap();
        Oracle::with_options(&run, OracleOptions { cache_bytes, ..OracleOptions::default() }).unwrap()
    }

    /// The value that the oracle should find, by plain recursion.
    fn state_value(&self, backup: &Backup, board: Board, known: &mut HashMap<Board, Stored>) -> Stored {
        let space_board = canonical(&self.params, board);
        if let Some(&value) = self.stored.get(&space_board).or_else(|| known.get(&space_board)) {
            return value;
        }
        let size = self.params.game().board();
        let moves = Move::ALL.into_iter().filter_map(|direction| rules::make_move(board, direction, size));
        let moves: Vec<Board> = moves.map(|(after, _)| after).collect();
        let best = moves.into_iter().map(|after| self.after_value(backup, after, known)).max();
        let value = best.unwrap_or_else(|| Scale::new(self.params.game()).points(rules::potential(board)));
        known.insert(space_board, value);
        value
    }

    fn after_value(&self, backup: &Backup, after: Board, known: &mut HashMap<Board, Stored>) -> Stored {
        if is_won(&self.params, after) {
            return Scale::new(self.params.game()).won();
        }
        let [twos, fours] = [1, 2].map(|exponent| -> Vec<Stored> {
            let cells = rules::empty_cells(after, self.params.game().board());
            cells.map(|cell| self.state_value(backup, after.with(cell, exponent), known)).collect()
        });
        backup.of_spawns::<u32>([&twos, &fours])
    }
}

fn canonical(params: &Params, board: Board) -> Board {
    exact2048_game::symmetry::Symmetries::new(params.game().board()).canonical(board)
}

fn is_won(params: &Params, board: Board) -> bool {
    params
        .game()
        .winning_exponent()
        .is_some_and(|e| (0..params.game().cells()).any(|cell| board.get(cell) >= e))
}

/// Adds the states that a question about `board` needs to `states`. If `asked` is true, the successors of the board are
/// needed even if its value is stored.
fn needed(params: &Params, space: &Space, board: Board, states: &mut BTreeSet<Board>, asked: bool) {
    let board = space.symmetries().canonical(board);
    let is_new = states.insert(board);
    if !asked && (!is_new || params.contents().kept().keeps(Layer(board.tile_sum(params.game().board())))) {
        return;
    }
    for direction in Move::ALL {
        let Some((after, _)) = rules::make_move(board, direction, params.game().board()) else { continue };
        if is_won(params, after) {
            continue;
        }
        for cell in rules::empty_cells(after, params.game().board()).collect::<Vec<_>>() {
            needed(params, space, after.with(cell, 1), states, false);
            needed(params, space, after.with(cell, 2), states, false);
        }
    }
}

/// The column of a sequence, by search among those with its multiset.
fn column(columns: &Columns, sequence: u64) -> usize {
    let group = columns.group(Counts::of(sequence)).unwrap();
    let of_group = &columns.sequences()[group.first as usize..][..group.count as usize];
    group.first as usize + of_group.binary_search(&sequence).unwrap()
}

/// A reach item in the format of docs/dev/format.md.
fn reach_item(rows: usize, columns: usize, numbers: &BTreeSet<usize>) -> Vec<u8> {
    let mut occupancy = vec![0u8; rows.div_ceil(8)];
    let mut bits: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for number in numbers {
        let (row, column) = (number / columns, number % columns);
        occupancy[row / 8] |= 1 << (row % 8);
        bits.entry(row).or_insert_with(|| vec![0; columns.div_ceil(8)])[column / 8] |= 1 << (column % 8);
    }
    occupancy.into_iter().chain(bits.into_values().flatten()).collect()
}

fn commit(run: &mut Run, phase: Phase, items: &BTreeMap<ItemKey, Vec<u8>>) {
    let (first, last) = (Layer(4), run.params().last_layer());
    let identity = run.catalog().identity(phase, first, last);
    let mut writer = ShardWriter::create(run.dir(), identity).unwrap();
    for (&key, item) in items {
        writer.push(Frame::encode(&[(key, item)], 1).unwrap()).unwrap();
    }
    let shards = vec![writer.finish().unwrap()];
    let fingerprint = (phase == Phase::BackUp).then_some(0);
    let commit = Commit { phase, first, last, layers: Vec::new(), fingerprint };
    run.append(JournalRecord::Commit(Record::new(commit, shards))).unwrap();
}

/// Parameters with the split of version 0.1 and without huge tiles, which make the lanes of 4×3 the widest.
fn params(board: &str, objective: &str) -> Params {
    let usual = Params::usual(board, objective).build().unwrap();
    usual.to_builder().large(usual.split().large().min(4)).huge(NO_HUGE).build().unwrap()
}

/// A board of a lane: one of its sequences, spread over the cells, with small tiles in the remaining cells.
fn board_of(params: &Params, lane: Lane, small: &[u8], seed: usize) -> Board {
    let columns = Columns::new(params, lane);
    let large = unpack(columns.sequences()[seed * 7919 % columns.len()], lane.k);
    let exponents: Vec<u8> = large.into_iter().chain(small.iter().copied()).collect();
    // This visits every cell once, because 5 has no factor in common with 12 and 16.
    let cell = |i: usize| (5 * i + seed) % params.game().cells();
    exponents.iter().enumerate().fold(Board::default(), |board, (i, &e)| board.with(cell(i), e))
}

/// Boards of the widest lane of 4×3. Their small tiles give every residue of the layer modulo 8.
fn boards_of_4x3(params: &Params) -> Vec<Board> {
    let widest = Lane::new(10, 11_760);
    assert_eq!(Columns::count(params, widest), 6_451_200);
    let small: [&[u8]; 4] = [&[1, 0], &[2, 0], &[2, 1], &[2, 2]];
    small.iter().enumerate().map(|(seed, small)| board_of(params, widest, small, seed)).collect()
}

fn boards_of_4x4(params: &Params) -> Vec<Board> {
    let widest = Lane::new(15, 264);
    assert!(Columns::count(params, widest) > 1_000_000);
    let half = Lane::new(8, 136);
    let small: [&[u8]; 2] = [&[1], &[2]];
    let few: [&[u8]; 2] = [&[1, 2, 0, 0, 1], &[2, 2, 2, 1, 1, 0]];
    let full = small.iter().enumerate().map(|(seed, small)| board_of(params, widest, small, seed));
    let open = few.iter().enumerate().map(|(seed, small)| board_of(params, half, small, seed + 2));
    full.chain(open).collect()
}

fn check_answers(params: &Params, boards: &[Board]) {
    let made = Made::new(params, boards, 1009);
    let (oracle, backup) = (made.oracle(64 << 20), Backup::new(params.game()));
    let mut known = HashMap::new();
    for &board in boards {
        let answer = oracle.evaluate(board, ALWAYS).unwrap();
        for (direction, found) in Move::ALL.into_iter().zip(&answer.moves) {
            let expected = rules::make_move(board, direction, params.game().board()).map(|(after, score)| {
                let stored = made.after_value(&backup, after, &mut known);
                let past = Scale::new(params.game()).points(rules::potential(board));
                (after, score, Scale::new(params.game()).number(stored.future_value(past)))
            });
            let found = found.outcome.map(|outcome| (outcome.after, outcome.score, outcome.value));
            assert_eq!(found, expected, "{} {direction:?}", board.to_text(params.game().board()));
        }
        let stored = made.state_value(&backup, board, &mut known);
        assert_eq!(oracle.stored_value(board).unwrap(), stored);
        let values = oracle.values(&[board], ALWAYS).unwrap();
        assert_eq!(values[0].map(f64::to_bits), Some(answer.value.to_bits()));
    }
}

#[test]
fn boards_of_the_widest_lanes_of_4x3_are_answered() {
    let params = params("4x3", "score");
    check_answers(&params, &boards_of_4x3(&params));
}

#[test]
fn boards_of_4x4_are_answered() {
    let params = params("4x4", "reach:64");
    check_answers(&params, &boards_of_4x4(&params));
}

/// Each part is read once even without a cache, whatever the order of the boards in a batch.
#[test]
fn the_order_of_a_batch_does_not_matter() {
    let params = params("4x4", "reach:64");
    let some = boards_of_4x4(&params);
    let made = Made::new(&params, &some, 1009);
    let mut boards: Vec<Board> = made.stored.keys().copied().collect();
    boards.sort_unstable();
    let ask = |boards: &[Board]| {
        let oracle = made.oracle(0);
        let values = oracle.values(boards, ALWAYS).unwrap();
        (values, oracle.cache_use().misses)
    };
    let (sorted, reads) = ask(&boards);
    let mixed: Vec<usize> = (0..boards.len()).map(|i| i * 7919 % boards.len()).collect();
    assert_eq!(mixed.iter().collect::<BTreeSet<_>>().len(), boards.len());
    let (values, reads_mixed) = ask(&mixed.iter().map(|&i| boards[i]).collect::<Vec<_>>());
    assert_eq!(values, mixed.iter().map(|&i| sorted[i]).collect::<Vec<_>>());
    assert_eq!(reads, reads_mixed);
    assert!(reads < boards.len() as u64);
}

/// The computation of an answer that is no longer wanted ends early.
#[test]
fn unwanted_questions_end_early() {
    let params = params("4x4", "reach:64");
    let boards = boards_of_4x4(&params);
    let made = Made::new(&params, &boards, 1009);
    let oracle = made.oracle(64 << 20);
    let asked = AtomicUsize::new(0);
    let last = boards[boards.len() - 1];
    oracle.evaluate(last, &|| asked.fetch_add(1, Ordering::Relaxed) < usize::MAX).unwrap();
    let all = asked.load(Ordering::Relaxed);
    assert!(all > 10, "{all}");
    for patience in [0, 1, all / 2] {
        let oracle = made.oracle(64 << 20);
        let asked = AtomicUsize::new(0);
        let wanted = || asked.fetch_add(1, Ordering::Relaxed) < patience;
        assert!(matches!(oracle.evaluate(last, &wanted), Err(QueryError::GivenUp)));
        // Threads that look values up at the same time may each ask a few times more.
        let asked = asked.load(Ordering::Relaxed);
        assert!((patience + 1..=patience + all / 4).contains(&asked), "{asked} for {patience} of {all}");
        assert!(matches!(oracle.values(&boards, &|| false), Err(QueryError::GivenUp)));
    }
    // A batch of stored boards solves no cone, but it may be large, so it must end early too.
    let stored: Vec<Board> = made.stored.keys().copied().collect();
    assert!(matches!(oracle.values(&stored, &|| false), Err(QueryError::GivenUp)));
}

/// Prints the numbers on look-ups in docs/dev/performance.md. Rows are as full as those of a solved run.
#[test]
#[ignore = "a measurement, for a release build: takes 2 GB of disk"]
fn measure_look_ups() {
    for (board, objective, boards) in
        [("4x3", "score", boards_of_4x3 as fn(&Params) -> Vec<Board>), ("4x4", "reach:64", boards_of_4x4)]
    {
        let params = params(board, objective);
        let boards = boards(&params);
        let made = Made::new(&params, &boards, 2);
        for cache_mib in [64, 256, 1024] {
            let begun = Instant::now();
            let oracle = made.oracle(cache_mib << 20);
            println!("{board} {objective}, {cache_mib} MiB: opened in {:.1?}", begun.elapsed());
            for round in ["cold", "warm"] {
                for &board in &boards {
                    let (begun, before) = (Instant::now(), oracle.cache_use().misses);
                    oracle.evaluate(board, ALWAYS).unwrap();
                    let reads = oracle.cache_use().misses - before;
                    println!(
                        "  {round} {}: {:.1?}, {reads} parts",
                        board.to_text(params.game().board()),
                        begun.elapsed()
                    );
                }
            }
        }
    }
}
