//! Checks some stored values, drawn by chance, against the values that follow from the stored ones above them.
//!
//! Values whose successors lie below the same cut are checked together: all that they lead to, up to the stored layers,
//! is listed layer by layer, each state once, and valued downward again. Where few layers are stored that is much: what
//! takes more memory than allowed is left out, and said so. Of the states in between, whose values are not stored, some
//! are asked of the oracle, so that answers to queries are checked too. Where the run stores best moves, those of the
//! drawn states and of these are checked, too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_game::Board;
use exact2048_game::rules::Move;
use exact2048_game::value::Stored;
use exact2048_solution::{Oracle, OracleOptions, QueryError, ReadError};
use exact2048_storage::{Entry, ItemKey, ShardKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::game::Game;
use super::items::Content;
use super::layer_reader::LayerReader;
use super::layout::tile_sum;
use super::values::SpawnedValues;
use super::{CheckOutcome, CheckProgress, Checked, Problem, Verifier};

/// Every check draws the same states of a run, so that a failure can be looked into.
const SEED: u64 = 2048;

/// Values that are checked together at most.
const TOGETHER: usize = 256;

/// After how many states it is looked whether to stop: some tens of milliseconds.
const OFTEN: usize = 1 << 14;

/// Bytes that a state takes while the values below it are checked, about.
const STATE_BYTES: u64 = 64;

/// States between stored layers that are asked of the oracle, of each group of values that are checked together.
const ASKED: usize = 4;

impl Verifier<'_> {
    /// Checks `count` stored values, drawn evenly and with repeats; none where no values are stored. If there are no more
    /// than that, each is checked once. The values of states above, from which they follow, must be committed.
    ///
    /// Cost: some milliseconds a value where at most two layers are left out between those that are kept, however large the
    /// run is; with more of them time and memory grow with all that the states lead to below the next cut. Values for which
    /// that takes more than `memory_bytes` are left out.
    pub fn sample(&self, count: u64, memory_bytes: u64) -> CheckOutcome {
        let sampler = Sampler {
            verifier: self,
            game: self.game(),
            reader: LayerReader::new(self.run(), self.game()),
            oracle: Oracle::with_options(
                self.run(),
                OracleOptions { cone_bytes: memory_bytes, solved_bytes: 0, ..OracleOptions::default() },
            )
            .ok(),
            most_states: usize::try_from(memory_bytes / STATE_BYTES / self.threads() as u64)
                .unwrap_or(usize::MAX),
        };
        let mut outcome = CheckOutcome::default();
        let items = match self.values_items(sampler.reader.width()) {
            Ok(items) => items,
            Err(problem) => {
                outcome.problems.push(problem);
                return outcome;
            }
        };
        let total = items.last().map_or(0, |(end, _)| *end);
        let (count, is_all) = (count.min(total), count >= total);
        let drawn = (0..count).map(|i| {
            let by_chance = ((u128::from(random(SEED + i)) * u128::from(total)) >> 64) as u64;
            let nth = if is_all { i } else { by_chance };
            let at = items.partition_point(|(end, _)| *end <= nth);
            let first = at.checked_sub(1).map_or(0, |before| items[before].0);
            (items[at].1, (nth - first) as usize)
        });
        let mut drawn: Vec<(ItemKey, usize)> = drawn.collect();
        drawn.sort_unstable();
        let cut = |(key, _): &(ItemKey, usize)| self.game().next_cut(key.layer + 2);
        let groups: Vec<&[(ItemKey, usize)]> = drawn
            .chunk_by(|a, b| cut(a) == cut(b))
            .flat_map(|below_cut| below_cut.chunks(TOGETHER))
            .collect();
        let checked = AtomicU64::new(0);
        let check = |group: &&[(ItemKey, usize)]| {
            if self.is_stopped() {
                return Ok(Checked::default());
            }
            let found = sampler.check(group);
            if self.is_stopped() {
                return found;
            }
            let so_far = checked.fetch_add(group.len() as u64, Ordering::Relaxed) + group.len() as u64;
            (self.progress)(CheckProgress::Sample(so_far, count));
            found
        };
        let results: Vec<_> = self.in_pool(|| groups.par_iter().map(check).collect());
        for result in results {
            match result {
                Ok(of_group) => {
                    outcome.checked.values += of_group.values;
                    outcome.checked.states += of_group.states;
                    outcome.checked.values_too_far += of_group.values_too_far;
                    outcome.checked.answers += of_group.answers;
                    outcome.checked.best_moves += of_group.best_moves;
                }
                Err(problem) => outcome.problems.push(problem),
            }
        }
        outcome.problems.truncate(super::MOST_PROBLEMS);
        outcome.stopped = self.is_stopped();
        outcome
    }

    /// The values items of the run, each with the number of values up to its end.
    fn values_items(&self, width: usize) -> Result<Vec<(u64, ItemKey)>, Problem> {
        let (mut items, mut end) = (Vec::new(), 0);
        for shard in self.run().catalog().shards() {
            if shard.record.kind != ShardKind::Values {
                continue;
            }
            let is_value = |entry: &&Entry| Content::of(ShardKind::Values, entry.key) == Content::Values;
            for entry in shard.reader()?.items().iter().filter(is_value) {
                end += u64::from(entry.length) / width as u64;
                items.push((end, entry.key));
            }
        }
        Ok(items)
    }
}

struct Sampler<'a> {
    /// Says whether to stop.
    verifier: &'a Verifier<'a>,
    game: &'a Game,
    reader: LayerReader<'a>,
    /// What answers queries; none where the run is not solved.
    oracle: Option<Oracle>,
    /// States that a group may lead to.
    most_states: usize,
}

/// Values of states, by canonical board.
type Known = FxHashMap<u64, u64>;

impl Sampler<'_> {
    /// Checks stored values that lie below the same cut: those of entries of items, by number.
    fn check(&self, group: &[(ItemKey, usize)]) -> Result<Checked, Problem> {
        let mut states = Vec::with_capacity(group.len());
        for &(key, nth) in group {
            states.push(self.drawn(key, nth)?);
        }
        let Some((known, between)) = self.cone(&states)? else {
            if self.verifier.is_stopped() {
                return Ok(Checked::default());
            }
            let Some(half) = (group.len() > 1).then_some(group.len() / 2) else {
                return Ok(Checked { values_too_far: 1, ..Checked::default() });
            };
            let (first, rest) = (self.check(&group[..half])?, self.check(&group[half..])?);
            return Ok(Checked {
                values: first.values + rest.values,
                states: first.states + rest.states,
                values_too_far: first.values_too_far + rest.values_too_far,
                answers: first.answers + rest.answers,
                best_moves: first.best_moves + rest.best_moves,
                ..Checked::default()
            });
        };
        for &(layer, board, stored) in &states {
            let computed = self.best(board, &known);
            if computed != stored {
                return Err(self.reader.value_problem(layer, board, computed, stored));
            }
        }
        let answers = self.ask(&between, &known)?;
        let drawn = states.iter().map(|&(_, board, _)| board);
        let best_moves = self.check_best_moves(drawn.chain(some_of(&between)), &known)?;
        let (values, states) = (states.len() as u64, (states.len() + known.len()) as u64);
        Ok(Checked { values, states, answers, best_moves, ..Checked::default() })
    }

    /// The board and the value of an entry, which must be found where a query looks for the board.
    fn drawn(&self, key: ItemKey, nth: usize) -> Result<(u32, u64, u64), Problem> {
        let Some((board, stored)) = self.reader.nth_value(key, nth)? else {
            let what = format!("entries of {}", super::items::item_text(key.layer, key.lane, key.part));
            let expected = format!("more than {nth}, as there are values");
            return Err(self.reader.problem(ShardKind::Reach, key.layer, what, expected, "fewer".to_owned()));
        };
        let board = self.game.geometry().canonical(board);
        let found = self.reader.value(board)?;
        if found != Some(stored) {
            let what = format!("value of {} where its row and column are", self.reader.text(board));
            let found = found.map_or("none".to_owned(), |found| found.to_string());
            return Err(self.reader.problem(ShardKind::Values, key.layer, what, stored.to_string(), found));
        }
        Ok((key.layer, board, stored))
    }

    /// The values of all that states lead to, up to the stored layers, and those states among them whose values are not
    /// stored, ascending; `None` where they are too many, or it is to stop.
    fn cone(&self, states: &[(u32, u64, u64)]) -> Result<Option<(Known, Vec<u64>)>, Problem> {
        let (mut known, mut between) = (Known::default(), Vec::new());
        // For each layer the states that are still to be worked on, each with an afterstate that leads to it.
        let mut open: BTreeMap<u32, FxHashMap<u64, u64>> = BTreeMap::new();
        for &(_, board, _) in states {
            self.successors(board, |after, state| {
                _ = open.entry(tile_sum(state)).or_default().insert(state, after)
            });
        }
        while let Some((layer, of_layer)) = open.pop_first() {
            if known.len() + of_layer.len() + open.values().map(FxHashMap::len).sum::<usize>()
                > self.most_states
            {
                return Ok(None);
            }
            for (nth, (board, after)) in of_layer.into_iter().enumerate() {
                if nth % OFTEN == 0 && self.verifier.is_stopped() {
                    return Ok(None);
                }
                let value = if self.game.keeps(layer) { self.stored_value(layer, after, board)? } else { 0 };
                known.insert(board, value);
                if !self.game.keeps(layer) {
                    between.push(board);
                    self.successors(board, |after, state| {
                        open.entry(tile_sum(state)).or_default().insert(state, after);
                    });
                }
            }
        }
        between.sort_unstable_by_key(|&board| (tile_sum(board), board));
        for (nth, &board) in between.iter().rev().enumerate() {
            if nth % OFTEN == 0 && self.verifier.is_stopped() {
                return Ok(None);
            }
            let value = self.best(board, &known);
            known.insert(board, value);
        }
        Ok(Some((known, between)))
    }

    /// The stored value of a state that an afterstate leads to.
    fn stored_value(&self, layer: u32, after: u64, board: u64) -> Result<u64, Problem> {
        self.reader.value(board)?.ok_or_else(|| {
            let (text, after) = (self.reader.text(board), self.reader.text(after));
            let expected = format!("{text}, a spawn of the afterstate {after}");
            let what = format!("states of layer {layer}");
            self.reader.problem(ShardKind::Reach, layer, what, expected, "no such state".to_owned())
        })
    }

    /// Asks the oracle for some states between stored layers; returns how many it was asked for.
    fn ask(&self, between: &[u64], known: &Known) -> Result<u64, Problem> {
        let Some(oracle) = &self.oracle else { return Ok(0) };
        let mut asked = 0;
        for board in some_of(between) {
            let answer = match oracle.stored_value(Board(board)) {
                Ok(Stored(bits)) => bits.to_string(),
                // It lacks the memory that it would take to answer, and says nothing wrong.
                Err(QueryError::TooLarge(_)) => continue,
                Err(QueryError::Read(ReadError::Storage(error))) => return Err(error.into()),
                Err(error) => error.to_string(),
            };
            asked += 1;
            if answer != known[&board].to_string() {
                let what = format!("what a query answers for {}", self.reader.text(board));
                let expected = known[&board].to_string();
                return Err(self.reader.problem(ShardKind::Reach, tile_sum(board), what, expected, answer));
            }
        }
        Ok(asked)
    }

    /// Checks that the stored moves of some states, whose successors are known, are best; returns how many those are: none
    /// where the run stores no moves.
    fn check_best_moves(&self, boards: impl Iterator<Item = u64>, known: &Known) -> Result<u64, Problem> {
        let Some(oracle) = self.oracle.as_ref().filter(|oracle| oracle.params().best_moves) else {
            return Ok(0);
        };
        let mut checked = 0;
        for board in boards {
            let is_best = |stored: Option<Move>| match stored {
                Some(stored) => {
                    let after = self.slid(board)[stored as usize];
                    after != board && self.mean(after, known) == self.best(board, known)
                }
                None => self.afterstates(board).next().is_none(),
            };
            let found = match oracle.advise(Board(board)).map(|advice| advice.best) {
                Ok(stored) if is_best(stored) => {
                    checked += 1;
                    continue;
                }
                Ok(stored) => stored.map_or("none", Move::name).to_owned(),
                Err(QueryError::Read(ReadError::Storage(error))) => return Err(error.into()),
                Err(error) => error.to_string(),
            };
            let best = Move::ALL.into_iter().filter(|&direction| is_best(Some(direction)));
            let best: Vec<&str> = best.map(Move::name).collect();
            let expected = if best.is_empty() { "none".to_owned() } else { best.join(" or ") };
            let what = format!("best move of {}", self.reader.text(board));
            return Err(self.reader.problem(ShardKind::Values, tile_sum(board), what, expected, found));
        }
        Ok(checked)
    }

    /// Calls `visit` with each state that moves and spawns lead to, canonical, and the afterstate between.
    fn successors(&self, board: u64, mut visit: impl FnMut(u64, u64)) {
        let geometry = self.game.geometry();
        for after in self.afterstates(board).filter(|&after| !self.game.is_won(after)) {
            for (two, four) in self.game.spawns(after) {
                visit(after, geometry.canonical(two));
                visit(after, geometry.canonical(four));
            }
        }
    }

    /// The boards that moves lead to.
    fn afterstates(&self, board: u64) -> impl Iterator<Item = u64> {
        self.slid(board).into_iter().filter(move |&after| after != board)
    }

    /// The board after each move, in the order of [`Move::ALL`]; the same board where that is not legal.
    fn slid(&self, board: u64) -> [u64; 4] {
        let mut after = [const { Vec::new() }; 4];
        self.game.geometry().slide(&[board], &mut after);
        after.map(|after| after.first().copied().unwrap_or(board))
    }

    /// The value of a state by its moves, whose successors are known.
    fn best(&self, board: u64, known: &Known) -> u64 {
        self.afterstates(board)
            .map(|after| self.mean(after, known))
            .max()
            .unwrap_or_else(|| self.game.dead(board))
    }

    /// The value of an afterstate by its spawns.
    fn mean(&self, after: u64, known: &Known) -> u64 {
        if self.game.is_won(after) {
            return self.game.values().won();
        }
        let (mut spawned, geometry) = (SpawnedValues::default(), self.game.geometry());
        for (two, four) in self.game.spawns(after) {
            spawned.twos.push(known[&geometry.canonical(two)]);
            spawned.fours.push(known[&geometry.canonical(four)]);
        }
        self.game.values().of_spawned(&spawned)
    }
}

/// Some states between stored layers, spread over all of them.
fn some_of(between: &[u64]) -> impl Iterator<Item = u64> {
    between.iter().rev().step_by(between.len().div_ceil(ASKED).max(1)).copied()
}

/// SplitMix64: well mixed bits of a counter.
fn random(counter: u64) -> u64 {
    let mut x = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
