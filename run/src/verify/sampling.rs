//! Checks randomly drawn stored values against the values computed from the next stored layers above.
//!
//! Values whose successors lie below the same cut are checked together, as a group. All states that they lead to, up to
//! the stored layers, are listed layer by layer, each state once. Then these states are valued downward.
//!
//! Groups that lead to few states are checked first, in parallel. The other groups are checked one after the other,
//! each on all threads. Values that need more memory than allowed are left out and reported.
//!
//! The check also compares answers of the oracle for some of the states whose values are not stored. If the run stores
//! best moves, it also checks those of the drawn states and of some other listed states.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_game::Board;
use exact2048_game::rules::Move;
use exact2048_game::value::Stored;
use exact2048_solution::{Oracle, OracleOptions, QueryError, ReadError};
use exact2048_storage::{Entry, ItemKey, ShardKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::cone::{CheckLimits, Cone, ValuedLayer};
use super::game::CheckedGame;
use super::items::{Content, item_text};
use super::layer_reader::LayerReader;
use super::moves::States;
use super::outcome::{CheckOutcome, CheckProgress, Checked, MOST_PROBLEMS, Problem};
use super::values::SpawnedValues;
use super::verifier::Verifier;

/// A fixed seed, so that every check draws the same states of a run and a failure can be reproduced.
const SEED: u64 = 2048;

/// The most values of a group.
const TOGETHER: usize = 256;

/// The most bytes of a group that is checked in parallel with other groups, and of an answer of the oracle.
const LITTLE_BYTES: u64 = 64 << 20;

/// Bytes of decoded parts that the oracle keeps in memory.
const ORACLE_CACHE: u64 = 64 << 20;

/// The most attempts on a group and its halves that may exceed the memory. After that, the rest of the group is left
/// out.
///
/// The number is limited because each attempt takes the time to list states until they exceed the memory.
const MOST_FAILURES: u32 = 12;

/// The most states per group that are queried from the oracle, and the most listed states whose best moves are checked.
const ASKED: u64 = 4;

/// The least number of states in the uppermost layers from which states for the oracle are drawn.
///
/// States near the cut lead to few other states. An answer of the oracle takes far more time per such state than this
/// check.
const NEAR: u64 = 1 << 16;

/// Checks `count` stored values, drawn uniformly.
pub(super) fn check_sample(verifier: &Verifier<'_>, count: u64, memory_bytes: u64) -> CheckOutcome {
    let little = LITTLE_BYTES.min(memory_bytes / verifier.threads() as u64);
    let mut sampler = Sampler {
        verifier,
        game: verifier.game(),
        reader: LayerReader::new(verifier.run(), verifier.game()),
        oracle: Oracle::with_options(
            verifier.run(),
            OracleOptions {
                cone_bytes: little,
                solved_bytes: 0,
                cache_bytes: ORACLE_CACHE,
                ..OracleOptions::default()
            },
        )
        .ok(),
        count,
        checked: AtomicU64::new(0),
        states: AtomicU64::new(0),
    };
    let mut outcome = CheckOutcome::default();
    let items = match values_items(verifier, sampler.reader.width()) {
        Ok(items) => items,
        Err(problem) => {
            outcome.problems.push(problem);
            return outcome;
        }
    };
    let total = items.last().map_or(0, |(end, _)| *end);
    let (count, is_all) = (count.min(total), count >= total);
    sampler.count = count;
    let drawn = (0..count).map(|i| {
        let by_chance = ((u128::from(random(SEED + i)) * u128::from(total)) >> 64) as u64;
        let nth = if is_all { i } else { by_chance };
        let at = items.partition_point(|(end, _)| *end <= nth);
        let first = at.checked_sub(1).map_or(0, |before| items[before].0);
        (items[at].1, (nth - first) as usize)
    });
    let mut drawn: Vec<(ItemKey, usize)> = drawn.collect();
    drawn.sort_unstable();
    let cut = |(key, _): &(ItemKey, usize)| verifier.game().next_cut(key.layer + 2);
    let groups: Vec<&[(ItemKey, usize)]> =
        drawn.chunk_by(|a, b| cut(a) == cut(b)).flat_map(|below_cut| below_cut.chunks(TOGETHER)).collect();
    let of_group = |group: &&[(ItemKey, usize)]| sampler.check(group, little);
    let results: Vec<_> = verifier.in_pool(|| groups.par_iter().map(of_group).collect());
    for (group, result) in groups.into_iter().zip(results) {
        let result = result.and_then(|checked| match checked {
            Some(checked) => Ok(checked),
            None => verifier.in_pool(|| sampler.check_alone(group, memory_bytes, &mut { MOST_FAILURES })),
        });
        match result {
            Ok(checked) => outcome.checked.add_sampled(&checked),
            Err(problem) => outcome.problems.push(problem),
        }
        if outcome.problems.len() >= MOST_PROBLEMS {
            break;
        }
    }
    outcome.problems.truncate(MOST_PROBLEMS);
    outcome.stopped = verifier.is_stopped();
    outcome
}

/// The items of values that can be computed from committed values, each with the number of values up to its end.
fn values_items(verifier: &Verifier<'_>, width: usize) -> Result<Vec<(u64, ItemKey)>, Problem> {
    let (mut items, mut end) = (Vec::new(), 0);
    let mut followed = FxHashMap::default();
    let mut is_followed = |layer: u32| *followed.entry(layer).or_insert_with(|| can_follow(verifier, layer));
    for shard in verifier.run().catalog().shards() {
        if shard.record.kind != ShardKind::Values {
            continue;
        }
        let is_value = |entry: &&Entry| Content::of(ShardKind::Values, entry.key) == Content::Values;
        for entry in shard.reader()?.items().iter().filter(is_value) {
            if is_followed(entry.key.layer) {
                end += u64::from(entry.length) / width as u64;
                items.push((end, entry.key));
            }
        }
    }
    Ok(items)
}

/// Whether the states of a layer are committed, and so is the cut from which their values follow.
///
/// While a run is repaired, layers of values may be missing between others.
fn can_follow(verifier: &Verifier<'_>, layer: u32) -> bool {
    let (catalog, last) = (verifier.run().catalog(), verifier.game().last_layer());
    let cut = verifier.game().next_cut(layer + 2);
    let mut target_lanes = [cut, cut + 2].into_iter().filter(|&layer| layer <= last);
    let covers = |kind, layer| catalog.covers(kind, layer);
    covers(ShardKind::Reach, layer)
        && target_lanes.all(|layer| covers(ShardKind::Reach, layer) && covers(ShardKind::Values, layer))
}

struct Sampler<'a> {
    /// Reports progress, and knows whether the check must stop.
    verifier: &'a Verifier<'a>,
    game: &'a CheckedGame,
    reader: LayerReader<'a>,
    /// Answers queries; `None` if the run is not solved.
    oracle: Option<Oracle>,
    /// The number of values to check.
    count: u64,
    /// The number of values checked so far.
    checked: AtomicU64,
    /// The number of states processed for these values.
    states: AtomicU64,
}

/// Values of states, by canonical board.
type Known = FxHashMap<u64, u64>;

/// Drawn states of a layer, each with its stored value.
type Drawn = Vec<(u64, u64)>;

impl Sampler<'_> {
    /// Checks a group while no other group is checked.
    ///
    /// A group that needs too much memory is checked in halves. After `failures` such attempts, the rest is left out.
    fn check_alone(
        &self,
        group: &[(ItemKey, usize)],
        bytes: u64,
        failures: &mut u32,
    ) -> Result<Checked, Problem> {
        if *failures > 0
            && let Some(checked) = self.check(group, bytes)?
        {
            return Ok(checked);
        }
        let mut checked = Checked::default();
        if self.verifier.is_stopped() {
            return Ok(checked);
        }
        *failures = failures.saturating_sub(1);
        if group.len() == 1 || *failures == 0 {
            self.count_checked(group.len());
            return Ok(Checked { values_too_far: group.len() as u64, ..checked });
        }
        for half in group.chunks(group.len().div_ceil(2)) {
            checked.add_sampled(&self.check_alone(half, bytes, failures)?);
        }
        Ok(checked)
    }

    /// Checks a group of stored values, given by the keys of their items and the numbers of their entries.
    ///
    /// Returns `None` if the check needs more memory than allowed, or must stop.
    fn check(&self, group: &[(ItemKey, usize)], bytes: u64) -> Result<Option<Checked>, Problem> {
        let goes_on = |states: usize| self.goes_on(states);
        if !goes_on(0) {
            return Ok(None);
        }
        let mut drawn = BTreeMap::<u32, Drawn>::new();
        for &(key, nth) in group {
            drawn.entry(key.layer).or_default().push(self.drawn(key, nth)?);
        }
        let limits = CheckLimits { bytes, goes_on: &goes_on };
        let boards: Vec<u64> = drawn.values().flatten().map(|&(board, _)| board).collect();
        let Some(cone) = Cone::of(self.game, &boards, &limits) else { return Ok(None) };
        let mut checked =
            Checked { values: boards.len() as u64, states: cone.states(), ..Checked::default() };
        if self.game.values().is_rounded() {
            checked.values_by_bound = checked.values;
        }
        let [between, near] = cone.between(self.game, NEAR);
        let every = |of: u64| of.div_ceil(ASKED).max(1);
        let mut passed = 0;
        let check = |of: ValuedLayer<'_>| {
            let drawn = drawn.get(&of.layer).map_or(&[][..], Vec::as_slice);
            self.check_values(drawn, of.above)?;
            let mut moved: Vec<u64> = drawn.iter().map(|&(board, _)| board).collect();
            if !self.game.keeps(of.layer) {
                let is_asked = |nth: u64| nth < near && nth.is_multiple_of(every(near));
                let numbered = || of.states.valued().zip(passed..);
                let asked = numbered().filter(|&(_, nth)| is_asked(nth)).map(|(state, _)| state);
                checked.answers += self.ask(asked)?;
                let spread = numbered().filter(|(_, nth)| nth.is_multiple_of(every(between)));
                moved.extend(spread.map(|((board, _), _)| board));
                passed += of.states.valued().count() as u64;
            }
            checked.best_moves += self.check_best_moves(&moved, of.above)?;
            Ok(())
        };
        if !cone.value_down_to(self.game, &self.reader, &limits, check)? {
            return Ok(None);
        }
        self.count_checked(group.len());
        Ok(Some(checked))
    }

    /// Checks the stored values of some states against the values of the layers above.
    fn check_values(&self, drawn: &[(u64, u64)], above: [&States; 2]) -> Result<(), Problem> {
        for &(board, stored) in drawn {
            let computed = self.best(board, &self.successors(board, above)?);
            let layer = self.game.layer(board);
            let layers = (self.game.next_cut(layer + 2) - layer) / 2 + 1;
            if !self.game.values().is_near(stored, computed, layers) {
                return Err(self.reader.value_problem(self.game.layer(board), board, computed, stored));
            }
        }
        Ok(())
    }

    /// The values of the states that a state leads to.
    fn successors(&self, board: u64, above: [&States; 2]) -> Result<Known, Problem> {
        let (mut known, geometry) = (Known::default(), self.game.geometry());
        for after in self.afterstates(board).filter(|&after| !self.game.is_won(after)) {
            for spawned in self.game.spawns(after) {
                for (states, board) in above.into_iter().zip(spawned) {
                    let board = geometry.canonical(board);
                    let value = states.value(self.game.lane(board), board);
                    known.insert(board, value.ok_or_else(|| self.reader.missing_problem(after, board))?);
                }
            }
        }
        Ok(known)
    }

    /// Reports progress. Returns whether the check continues.
    fn goes_on(&self, states: usize) -> bool {
        let states = self.states.fetch_add(states as u64, Ordering::Relaxed) + states as u64;
        let checked = self.checked.load(Ordering::Relaxed);
        self.verifier.report(CheckProgress::Sample { checked, count: self.count, states });
        !self.verifier.is_stopped()
    }

    fn count_checked(&self, values: usize) {
        self.checked.fetch_add(values as u64, Ordering::Relaxed);
        self.goes_on(0);
    }

    /// The board and the value of an entry. Requires that a query for the board finds the same value.
    fn drawn(&self, key: ItemKey, nth: usize) -> Result<(u64, u64), Problem> {
        let Some((board, stored)) = self.reader.nth_value(key, nth)? else {
            let what = format!("entries of {}", item_text(key.layer, key.lane, key.part));
            let expected = format!("more than {nth} for its values");
            return Err(self.reader.problem(ShardKind::Reach, key.layer, what, expected, "fewer".to_owned()));
        };
        let board = self.game.geometry().canonical(board);
        let found = self.reader.value(board)?;
        if found != Some(stored) {
            let what = format!("value of {} at its row and column", self.reader.text(board));
            let found = found.map_or("none".to_owned(), |found| found.to_string());
            return Err(self.reader.problem(ShardKind::Values, key.layer, what, stored.to_string(), found));
        }
        Ok((board, stored))
    }

    /// Compares answers of the oracle with known values of states between stored layers. Returns the number of answers.
    fn ask(&self, asked: impl Iterator<Item = (u64, u64)>) -> Result<u64, Problem> {
        let Some(oracle) = &self.oracle else { return Ok(0) };
        let mut answers = 0;
        for (board, value) in asked {
            let answer = match oracle.stored_value(Board(board)) {
                Ok(Stored(bits)) => bits.to_string(),
                // The oracle lacks the memory for an answer, which is no fault of the run.
                Err(QueryError::TooLarge(_)) => continue,
                Err(QueryError::Read(ReadError::Storage(error))) => return Err(error.into()),
                Err(error) => error.to_string(),
            };
            answers += 1;
            if answer != value.to_string() {
                let what = format!("answer to a query of {}", self.reader.text(board));
                let expected = value.to_string();
                return Err(self.reader.problem(
                    ShardKind::Reach,
                    self.game.layer(board),
                    what,
                    expected,
                    answer,
                ));
            }
        }
        Ok(answers)
    }

    /// Checks that the stored moves of some states are best, by the values of the layers above.
    ///
    /// Returns the number of checked moves, which is 0 if the run stores no moves, or rounds the values from which they
    /// follow.
    fn check_best_moves(&self, boards: &[u64], above: [&States; 2]) -> Result<u64, Problem> {
        let Some(oracle) = self
            .oracle
            .as_ref()
            .filter(|oracle| oracle.params().contents().stores_best_moves())
            .filter(|_| !self.game.values().is_rounded())
        else {
            return Ok(0);
        };
        let mut checked = 0;
        for &board in boards {
            let known = &self.successors(board, above)?;
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
            return Err(self.reader.problem(
                ShardKind::Values,
                self.game.layer(board),
                what,
                expected,
                found,
            ));
        }
        Ok(checked)
    }

    /// The afterstates of a board.
    fn afterstates(&self, board: u64) -> impl Iterator<Item = u64> {
        self.slid(board).into_iter().filter(move |&after| after != board)
    }

    /// The board after each move, in the order of [`Move::ALL`]. A move that is not legal leaves the board unchanged.
    fn slid(&self, board: u64) -> [u64; 4] {
        let mut after = [const { Vec::new() }; 4];
        self.game.geometry().slide(&[board], &mut after);
        after.map(|after| after.first().copied().unwrap_or(board))
    }

    /// The value of a state, from the known values of its successors.
    fn best(&self, board: u64, known: &Known) -> u64 {
        self.afterstates(board)
            .map(|after| self.mean(after, known))
            .max()
            .unwrap_or_else(|| self.game.dead(board))
    }

    /// The value of an afterstate, from the known values of the states after its spawns.
    fn mean(&self, after: u64, known: &Known) -> u64 {
        if self.game.is_won(after) {
            return self.game.values().won();
        }
        let (mut spawned, geometry) = (SpawnedValues::default(), self.game.geometry());
        for states in self.game.spawns(after) {
            let values = states.map(|state| known[&geometry.canonical(state)]);
            spawned.iter_mut().zip(values).for_each(|(spawned, value)| spawned.push(value));
        }
        self.game.values().of_spawned(&spawned)
    }
}

/// Random bits from a counter, by SplitMix64.
fn random(counter: u64) -> u64 {
    let mut x = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
