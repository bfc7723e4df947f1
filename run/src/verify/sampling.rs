//! Some states drawn by chance, each against a search down to the stored values above it.

use exact2048_coordinator::is_kept;
use exact2048_game::{Board, Layer, Precision};
use exact2048_storage::{ItemKey, ShardKind};
use rustc_hash::FxHashMap;

use super::rules::{Rules, Spawns};
use super::stored::Store;
use super::{Outcome, Problem, Progress, parallel};
use crate::{Oracle, QueryError, Run};

/// Every check draws the same states of a run, so that a failure can be looked into.
const SEED: u64 = 2048;

/// Samples of a thread between two reports of progress.
const BATCH: usize = 32;

/// Checks `count` stored values, drawn evenly and with repeats. The run must be solved.
pub fn sample(
    run: &Run,
    count: u64,
    threads: usize,
    progress: &dyn Fn(Progress),
) -> Result<Outcome, QueryError> {
    let rules = Rules::new(run.params());
    let sampler = Sampler { run, rules: &rules, store: Store::new(run, &rules), oracle: Oracle::new(run)? };
    let mut outcome = Outcome::default();
    let items = match sampler.items() {
        Ok(items) => items,
        Err(problem) => {
            outcome.problems.push(problem);
            return Ok(outcome);
        }
    };
    let total = items.last().map_or(0, |(end, _)| *end);
    let mut done = 0;
    while done < count && total > 0 && outcome.problems.is_empty() {
        let batch = (count - done).min((BATCH * threads) as u64);
        let results = parallel::each(threads, batch as usize, |i| {
            let drawn = ((u128::from(random(SEED + done + i as u64)) * u128::from(total)) >> 64) as u64;
            let at = items.partition_point(|(end, _)| *end <= drawn);
            let first = at.checked_sub(1).map_or(0, |before| items[before].0);
            sampler.check(items[at].1, (drawn - first) as usize)
        });
        for result in results {
            match result {
                Ok(states) => {
                    outcome.checked.values += 1;
                    outcome.checked.states += states;
                }
                Err(problem) => outcome.problems.push(problem),
            }
        }
        done += batch;
        progress(Progress::Sample(done));
    }
    Ok(outcome)
}

struct Sampler<'a> {
    run: &'a Run,
    rules: &'a Rules,
    store: Store<'a>,
    oracle: Oracle,
}

impl Sampler<'_> {
    /// The values items of the run, each with the number of values up to its end.
    fn items(&self) -> Result<Vec<(u64, ItemKey)>, Problem> {
        let width = if self.run.params().precision == Precision::Bits64 { 8 } else { 4 };
        let (mut items, mut end) = (Vec::new(), 0);
        for shard in self.run.catalog().shards() {
            if shard.record.kind != ShardKind::Values {
                continue;
            }
            for entry in shard.reader()?.items() {
                end += u64::from(entry.length / width);
                items.push((end, entry.key));
            }
        }
        Ok(items)
    }

    /// Checks one stored value; returns the number of states that were looked at for it.
    fn check(&self, key: ItemKey, nth: usize) -> Result<u64, Problem> {
        let Some((board, stored)) = self.store.nth_of_item(key, nth)? else {
            let what = format!("entries of lane {:#x}, part {} of layer {}", key.lane, key.part, key.layer);
            let expected = format!("more than {nth}, as there are values");
            return Err(self.store.problem(ShardKind::Reach, Layer(key.layer), what, expected, "fewer"));
        };
        let mut known = FxHashMap::default();
        let computed = self.best(board, &mut known)?;
        if computed != stored {
            return Err(self.store.value_problem(Layer(key.layer), board, computed, stored));
        }
        Ok(known.len() as u64 + 1)
    }

    /// The value of a state by its moves.
    fn best(&self, board: u64, known: &mut FxHashMap<u64, u64>) -> Result<u64, Problem> {
        let mut best = None;
        for after in self.rules.afterstates(board) {
            best = best.max(Some(self.mean(after, known)?));
        }
        Ok(best.unwrap_or_else(|| self.rules.dead(board)))
    }

    /// The value of an afterstate by its spawns.
    fn mean(&self, after: u64, known: &mut FxHashMap<u64, u64>) -> Result<u64, Problem> {
        if self.rules.is_won(after) {
            return Ok(self.rules.won());
        }
        let mut spawns = Spawns { empty: 0, twos: 0, fours: 0 };
        for (two, four) in self.rules.spawns(after) {
            spawns.empty += 1;
            spawns.twos += u128::from(self.value(two, known)?);
            spawns.fours += u128::from(self.value(four, known)?);
        }
        Ok(self.rules.mean(&spawns))
    }

    /// The value of a state: stored where its layer is kept, else by its moves.
    fn value(&self, board: u64, known: &mut FxHashMap<u64, u64>) -> Result<u64, Problem> {
        let board = self.rules.canonical(board);
        if let Some(&value) = known.get(&board) {
            return Ok(value);
        }
        let layer = Layer(Board(board).tile_sum(self.run.params().cells()));
        let value =
            if is_kept(layer) { self.oracle.stored_bits(Board(board))? } else { self.best(board, known)? };
        known.insert(board, value);
        Ok(value)
    }
}

/// SplitMix64: well mixed bits of a counter.
fn random(counter: u64) -> u64 {
    let mut x = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
