//! Some stored values drawn by chance, each against a search up to the stored values above it.

use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_storage::{ItemKey, ShardKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::game::{Game, SpawnMeans};
use super::layout::tile_sum;
use super::stored::Stored;
use super::{CheckOutcome, CheckProgress, Problem, Verifier};

/// Every check draws the same states of a run, so that a failure can be looked into.
const SEED: u64 = 2048;

/// Samples between two looks at whether to stop.
const BATCH: u64 = 256;

impl Verifier<'_> {
    /// Checks `count` stored values, drawn evenly and with repeats; none where no values are stored. If there are no more
    /// than that, each is checked once. The values of states above, from which they follow, must be committed.
    ///
    /// Cost: some milliseconds a value where at most two layers are left out between those that are kept, however large the
    /// run is; with more of them time and memory grow with all that a state leads to below the next cut.
    pub fn sample(&self, count: u64) -> CheckOutcome {
        let sampler = Sampler { game: self.game(), stored: Stored::new(self.run(), self.game()) };
        let mut outcome = CheckOutcome::default();
        let items = match self.values_items(sampler.stored.width()) {
            Ok(items) => items,
            Err(problem) => {
                outcome.problems.push(problem);
                return outcome;
            }
        };
        let total = items.last().map_or(0, |(end, _)| *end);
        let (count, is_all) = (count.min(total), count >= total);
        let (mut drawn, checked) = (0, AtomicU64::new(0));
        while drawn < count && outcome.problems.is_empty() && !outcome.stopped {
            let batch = drawn..count.min(drawn + BATCH);
            let check = |i: u64| {
                let by_chance = ((u128::from(random(SEED + i)) * u128::from(total)) >> 64) as u64;
                let nth = if is_all { i } else { by_chance };
                let at = items.partition_point(|(end, _)| *end <= nth);
                let first = at.checked_sub(1).map_or(0, |before| items[before].0);
                let states = sampler.check(items[at].1, (nth - first) as usize);
                (self.progress)(CheckProgress::Sample(checked.fetch_add(1, Ordering::Relaxed) + 1, count));
                states
            };
            let results: Vec<_> = self.in_pool(|| batch.clone().into_par_iter().map(check).collect());
            for result in results {
                match result {
                    Ok(states) => {
                        outcome.checked.values += 1;
                        outcome.checked.states += states;
                    }
                    Err(problem) => outcome.problems.push(problem),
                }
            }
            drawn = batch.end;
            outcome.stopped = self.is_stopped();
        }
        outcome
    }

    /// The values items of the run, each with the number of values up to its end.
    fn values_items(&self, width: usize) -> Result<Vec<(u64, ItemKey)>, Problem> {
        let (mut items, mut end) = (Vec::new(), 0);
        for shard in self.run().catalog().shards() {
            if shard.record.kind != ShardKind::Values {
                continue;
            }
            for entry in shard.reader()?.items() {
                end += u64::from(entry.length) / width as u64;
                items.push((end, entry.key));
            }
        }
        Ok(items)
    }
}

struct Sampler<'a> {
    game: &'a Game,
    stored: Stored<'a>,
}

impl Sampler<'_> {
    /// Checks one stored value; returns the number of states that were looked at for it.
    fn check(&self, key: ItemKey, nth: usize) -> Result<u64, Problem> {
        let Some((board, stored)) = self.stored.nth_value(key, nth)? else {
            let what = format!("entries of {}", super::items::item_text(key.layer, key.lane, key.part));
            let expected = format!("more than {nth}, as there are values");
            return Err(self.stored.problem(ShardKind::Reach, key.layer, what, expected, "fewer".to_owned()));
        };
        let board = self.game.geometry().canonical(board);
        // Where a query looks for the board, the same value must be.
        let found = self.stored.value(board)?;
        if found != Some(stored) {
            let what = format!("value of {} where its row and column are", self.stored.text(board));
            let found = found.map_or("none".to_owned(), |found| found.to_string());
            return Err(self.stored.problem(ShardKind::Values, key.layer, what, stored.to_string(), found));
        }
        let mut known = FxHashMap::default();
        let computed = self.best(board, &mut known)?;
        if computed != stored {
            return Err(self.stored.value_problem(key.layer, board, computed, stored));
        }
        Ok(known.len() as u64 + 1)
    }

    /// The value of a state by its moves.
    fn best(&self, board: u64, known: &mut FxHashMap<u64, u64>) -> Result<u64, Problem> {
        let mut after = [const { Vec::new() }; 4];
        self.game.geometry().slide(&[board], &mut after);
        let mut best = None;
        for after in after.into_iter().flatten().filter(|&after| after != board) {
            best = best.max(Some(self.mean(after, known)?));
        }
        Ok(best.unwrap_or_else(|| self.game.dead(board)))
    }

    /// The value of an afterstate by its spawns.
    fn mean(&self, after: u64, known: &mut FxHashMap<u64, u64>) -> Result<u64, Problem> {
        if self.game.is_won(after) {
            return Ok(self.game.won());
        }
        let mut spawns = SpawnMeans::default();
        for (two, four) in self.game.spawns(after) {
            spawns.empty += 1;
            spawns.twos += u128::from(self.value(after, two, known)?);
            spawns.fours += u128::from(self.value(after, four, known)?);
        }
        Ok(self.game.mean(&spawns))
    }

    /// The value of a state that a spawn leads to: stored where its layer is kept, else by its moves.
    fn value(&self, after: u64, board: u64, known: &mut FxHashMap<u64, u64>) -> Result<u64, Problem> {
        let board = self.game.geometry().canonical(board);
        if let Some(&value) = known.get(&board) {
            return Ok(value);
        }
        let layer = tile_sum(board);
        let value = if self.game.keeps(layer) {
            self.stored.value(board)?.ok_or_else(|| {
                let (text, after) = (self.stored.text(board), self.stored.text(after));
                let expected = format!("{text}, a spawn of the afterstate {after}");
                let what = format!("states of layer {layer}");
                self.stored.problem(ShardKind::Reach, layer, what, expected, "no such state".to_owned())
            })?
        } else {
            self.best(board, known)?
        };
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
