//! All states, layer by layer downward.

use std::collections::VecDeque;

use exact2048_coordinator::{Commit, Phase, is_kept};
use exact2048_game::{Board, Layer};
use exact2048_storage::ShardKind;
use xxhash_rust::xxh3::xxh3_128;

use super::boards::{Boards, merge};
use super::rules::{Rules, Spawns};
use super::stored::Store;
use super::{MOST_PROBLEMS, Outcome, Problem, Progress, parallel};
use crate::Run;

/// Checks every committed layer, from the highest down to the first one with a problem. Memory: three
/// layers, at 17 bytes a state, and the items of one of them.
pub fn all_states(run: &Run, threads: usize, progress: &dyn Fn(Progress)) -> Outcome {
    let rules = Rules::new(run.params());
    let commits = run.catalog().commits();
    let mut descent = Descent {
        run,
        rules: &rules,
        store: Store::new(run, &rules),
        threads,
        starts: rules.starts(),
        above: VecDeque::from([None, None]),
        shares: vec![Some(0); commits.len()],
        commits,
        outcome: Outcome::default(),
    };
    let last = run.params().last_layer();
    if run.params().until_layer.is_none() {
        // Nothing is above the last layer, and that is known.
        descent.above = VecDeque::from([Some(Boards::default()), Some(Boards::default())]);
    }
    for layer in (4..=last.0).rev().step_by(2).map(Layer) {
        descent.step(layer);
        if !descent.outcome.problems.is_empty() {
            return descent.outcome;
        }
        progress(Progress::Layer(layer, descent.outcome.checked.states));
    }
    descent.check_led_to(Layer(4), 0);
    descent.check_led_to(Layer(6), 1);
    if run.is_solved() && descent.outcome.problems.is_empty() {
        let add = |sum: u128, share: &Option<u128>| Some(sum.wrapping_add((*share)?));
        descent.outcome.checked.fingerprint = descent.shares.iter().try_fold(0, add);
    }
    descent.outcome
}

/// The state of the descent.
struct Descent<'a> {
    run: &'a Run,
    rules: &'a Rules,
    store: Store<'a>,
    threads: usize,
    starts: Vec<u64>,
    /// The layers 2 and 4 above the next one; `None` where they are not committed.
    above: VecDeque<Option<Boards>>,
    commits: Vec<Commit>,
    /// For each commit, the sum of its states' hashes so far; `None` once a value of it is unknown.
    shares: Vec<Option<u128>>,
    outcome: Outcome,
}

/// The values of a layer's afterstates.
struct Afterstates {
    boards: Vec<u64>,
    values: Vec<u64>,
}

impl Descent<'_> {
    /// Checks one layer and makes it the lowest of those above.
    fn step(&mut self, layer: Layer) {
        let states = match self.read(layer) {
            Ok(states) => states.map(|states| self.check(layer, states)),
            Err(problem) => return self.outcome.problems.push(problem),
        };
        self.add_to_shares(layer, states.as_ref());
        self.above.push_front(states);
        self.check_led_to(Layer(layer.0 + 4), 2);
        self.above.truncate(2);
    }

    fn covered(&self, kind: ShardKind, layer: Layer) -> bool {
        self.run.catalog().covers(kind, layer.0)
    }

    fn read(&self, layer: Layer) -> Result<Option<Boards>, Problem> {
        if !self.covered(ShardKind::Reach, layer) {
            return Ok(None);
        }
        let with_values = is_kept(layer) && self.covered(ShardKind::Values, layer);
        self.store.layer(layer, with_values, self.threads).map(Some)
    }

    fn check(&mut self, layer: Layer, mut states: Boards) -> Boards {
        self.check_starts(layer, &states);
        let afterstates = self.afterstates(&states);
        self.check_counts(layer, states.boards().len(), afterstates.len());
        self.outcome.checked.layers += 1;
        self.outcome.checked.states += states.boards().len() as u64;
        self.outcome.checked.afterstates += afterstates.len() as u64;
        let values = self.look_up_spawns(layer, &afterstates);
        if !self.outcome.problems.is_empty() {
            return states;
        }
        let can_back_up = self.above.iter().all(|above| above.as_ref().is_some_and(Boards::has_values));
        if can_back_up && self.covered(ShardKind::Values, layer) {
            let afterstates = Afterstates { boards: afterstates, values };
            let values = self.back_up(&states, &afterstates);
            if states.values().is_some() {
                self.compare(layer, &states, &values);
            } else {
                states.set_values(Some(values));
            }
        }
        states
    }

    /// Every start of the layer must be a state.
    fn check_starts(&mut self, layer: Layer, states: &Boards) {
        let cells = self.run.params().cells();
        for &start in &self.starts {
            let in_layer = Board(start).tile_sum(cells) == layer.0;
            if in_layer && states.boards().binary_search(&start).is_err() {
                let what = format!("states of layer {layer}");
                let expected = format!("the start {}", self.store.text(start));
                let problem = self.store.problem(ShardKind::Reach, layer, what, expected, "no such state");
                self.outcome.problems.push(problem);
            }
        }
    }

    /// The canonical afterstates of a layer that are not won, ascending.
    fn afterstates(&self, states: &Boards) -> Vec<u64> {
        let boards = states.boards();
        let mut found = parallel::ranges(self.threads, boards.len(), |range| {
            let mut found = Vec::with_capacity(3 * range.len());
            for &board in &boards[range] {
                let open = self.rules.afterstates(board).filter(|&after| !self.rules.is_won(after));
                found.extend(open.map(|after| self.rules.canonical(after)));
            }
            found.sort_unstable();
            found.dedup();
            found
        });
        let mut all = merge(&mut found);
        all.dedup();
        all
    }

    /// The numbers of states and afterstates must be those of the journal.
    fn check_counts(&mut self, layer: Layer, states: usize, afterstates: usize) {
        let of_layer =
            self.commits.iter().flat_map(|commit| &commit.layers).filter(|counts| counts.layer == layer);
        for counts in of_layer {
            let pairs = [("states", counts.states, states), ("afterstates", counts.afterstates, afterstates)];
            for (of, journal, found) in
                pairs.into_iter().filter(|&(_, journal, found)| journal != found as u64)
            {
                let what = format!("number of {of} of layer {layer}");
                let expected = format!("{journal} as in the journal");
                let problem = self.store.problem(ShardKind::Reach, layer, what, expected, &found.to_string());
                self.outcome.problems.push(problem);
            }
        }
    }

    /// Looks up all spawns of the afterstates: each must be a state. Returns the means of their values,
    /// which mean nothing where values are not known.
    fn look_up_spawns(&mut self, layer: Layer, afterstates: &[u64]) -> Vec<u64> {
        let above = |i: usize| self.above.get(i).and_then(Option::as_ref);
        let (twos, fours) = (above(0), above(1));
        let known = [twos, fours].iter().all(|states| states.is_some_and(Boards::has_values));
        let results = parallel::ranges(self.threads, afterstates.len(), |range| {
            let (mut values, mut missing) = (Vec::with_capacity(range.len()), Vec::new());
            for &after in &afterstates[range] {
                let mut spawns = Spawns { empty: 0, twos: 0, fours: 0 };
                for (two, four) in self.rules.spawns(after) {
                    let mut look_up = |states: Option<&Boards>, board: u64| {
                        let Some(states) = states else { return 0 };
                        let canonical = self.rules.canonical(board);
                        let value = states.lead_to(canonical);
                        if value.is_none() && missing.len() < MOST_PROBLEMS {
                            missing.push((after, canonical));
                        }
                        u128::from(value.unwrap_or(0))
                    };
                    spawns.empty += 1;
                    spawns.twos += look_up(twos, two);
                    spawns.fours += look_up(fours, four);
                }
                values.push(if known { self.rules.mean(&spawns) } else { 0 });
            }
            (values, missing)
        });
        let (values, missing): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let mut missing = missing.concat();
        missing.sort_unstable();
        missing.dedup();
        for (after, board) in missing.into_iter().take(MOST_PROBLEMS) {
            let to = Layer(Board(board).tile_sum(self.run.params().cells()));
            let what = format!("states of layer {to}");
            let (board, after) = (self.store.text(board), self.store.text(after));
            let expected = format!("{board}, a spawn of the afterstate {after} of layer {layer}");
            let problem = self.store.problem(ShardKind::Reach, to, what, expected, "no such state");
            self.outcome.problems.push(problem);
        }
        values.concat()
    }

    /// The values of a layer's states: the best move of each.
    fn back_up(&self, states: &Boards, afterstates: &Afterstates) -> Vec<u64> {
        let value = |after: u64| {
            if self.rules.is_won(after) {
                return self.rules.won();
            }
            let at = afterstates.boards.binary_search(&self.rules.canonical(after));
            at.map_or(0, |at| afterstates.values[at])
        };
        let boards = states.boards();
        let best = |&board: &u64| {
            self.rules.afterstates(board).map(value).max().unwrap_or_else(|| self.rules.dead(board))
        };
        parallel::ranges(self.threads, boards.len(), |range| {
            boards[range].iter().map(best).collect::<Vec<_>>()
        })
        .concat()
    }

    /// Stored values must be those computed.
    fn compare(&mut self, layer: Layer, states: &Boards, computed: &[u64]) {
        let stored = states.values().unwrap_or_default();
        let differs = |&i: &usize| stored[i] != computed[i];
        for i in (0..computed.len()).filter(differs).take(MOST_PROBLEMS) {
            let problem = self.store.value_problem(layer, states.boards()[i], computed[i], stored[i]);
            self.outcome.problems.push(problem);
        }
        self.outcome.checked.values += computed.len() as u64;
    }

    /// Adds a layer to the fingerprints of the commits that cover it, and compares those it completes.
    fn add_to_shares(&mut self, layer: Layer, states: Option<&Boards>) {
        let hashes = states.filter(|states| states.has_values()).map(|states| self.hash_sum(states));
        for (commit, share) in self.commits.iter().zip(&mut self.shares) {
            let covers = commit.phase == Phase::BackUp && (commit.first..=commit.last).contains(&layer);
            if !covers {
                continue;
            }
            *share = share.zip(hashes).map(|(share, hashes)| share.wrapping_add(hashes));
            let (true, Some(share)) = (commit.first == layer, *share) else { continue };
            let journal = commit.fingerprint.unwrap_or_default();
            if share != journal {
                let what = format!("fingerprint of layers {} to {}", commit.first, commit.last);
                let (expected, found) =
                    (format!("{journal:032x} as in the journal"), format!("{share:032x}"));
                let problem = self.store.problem(ShardKind::Values, layer, what, expected, &found);
                self.outcome.problems.push(problem);
            }
        }
    }

    /// The sum of the hashes of a layer's states.
    fn hash_sum(&self, states: &Boards) -> u128 {
        let (boards, values) = (states.boards(), states.values().unwrap_or_default());
        let sum = |range: std::ops::Range<usize>| {
            let hashes = range.map(|i| hash(boards[i], values[i]));
            hashes.fold(0, u128::wrapping_add)
        };
        parallel::ranges(self.threads, boards.len(), sum).into_iter().fold(0, u128::wrapping_add)
    }

    /// Every state of a layer, which is number `at` of those above, must be a start or have been led to;
    /// nothing is said where a layer that can lead there is not committed.
    fn check_led_to(&mut self, layer: Layer, at: usize) {
        let Some(Some(states)) = self.above.get(at) else { return };
        if !self.above.iter().take(at).all(Option::is_some) || !self.outcome.problems.is_empty() {
            return;
        }
        let not_start = |board: &u64| self.starts.binary_search(board).is_err();
        let alone: Vec<u64> = states.not_led_to().filter(not_start).take(MOST_PROBLEMS).collect();
        for board in alone {
            let what = format!("states of layer {layer}");
            let found = format!("{}, which no move and spawn leads to", self.store.text(board));
            let expected = "starts and spawns of lower layers only".to_owned();
            let problem = self.store.problem(ShardKind::Reach, layer, what, expected, &found);
            self.outcome.problems.push(problem);
        }
    }
}

/// The hash of a state: XXH3-128 of its canonical board and its value, 8 bytes each, little endian.
fn hash(board: u64, value: u64) -> u128 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&board.to_le_bytes());
    bytes[8..].copy_from_slice(&value.to_le_bytes());
    xxh3_128(&bytes)
}
