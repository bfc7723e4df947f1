//! Removal of data from the disk, so that a run stays within its disk limit.
//!
//! Data that the recipe no longer needs is removed after each commit. If that frees too little, reach that can be
//! enumerated again is removed too.

use exact2048_coordinator::room::{self, headroom};
use exact2048_coordinator::{Forecast, SHARD_BYTES};
use exact2048_solution::{LayerCounts, LayerRange, Recipe, Run, RunError};
use exact2048_storage::{ShardKind, file_cost};

/// The error of a forecast is less than the forecast divided by this number. The largest measured error is a fifth.
const FORECAST_SHARE: u64 = 4;

/// Removes, after a commit, the files that no later step needs.
///
/// In the upward pass, this function also removes reach that can be enumerated again, until the next files fit.
pub(super) fn tidy(run: &mut Run) -> Result<(), RunError> {
    remove_needless(run, 1)
}

/// Removes files until `times` times the usual headroom is free, or no more files can be removed.
fn remove_needless(run: &mut Run, times: u64) -> Result<(), RunError> {
    let Some(allowance) = run.dir().allowance().cloned() else { return Ok(()) };
    loop {
        let holdings = run.holdings();
        let recipe = Recipe::new(run.params(), &holdings);
        let removed = room::next_removals(&recipe, allowance.limit_bytes(), allowance.free_bytes(), times);
        if removed.is_empty() {
            return Ok(());
        }
        run.remove_reach(&removed)?;
    }
}

/// The amount by which a disk limit is too small.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shortage {
    /// Missing bytes, as far as they are known.
    pub missing_bytes: u64,
    /// Whether the shortage exceeds the error of a forecast. If so, no removal could suffice, and nothing was removed.
    pub is_certain: bool,
}

/// Frees disk space, so that the rest of the run fits.
///
/// Called before a segment, and after a segment that found too little space. Leaves `times` times the usual headroom
/// free, and returns the bytes that are still missing. A finished run keeps all its data.
pub fn make_room(run: &mut Run, times: u64) -> Result<Shortage, RunError> {
    let is_finished = run.missing().is_empty();
    let Some(allowance) = run.dir().allowance().cloned().filter(|_| !is_finished) else {
        return Ok(Shortage::default());
    };
    let (limit, usual) = (allowance.limit_bytes(), headroom(allowance.limit_bytes()));
    let beyond = allowance.taken_bytes().saturating_sub(removable_bytes(run)).saturating_sub(limit);
    if beyond > 0 {
        return Ok(Shortage { missing_bytes: beyond + usual, is_certain: true });
    }
    remove_needless(run, times)?;
    let holdings = run.holdings();
    if Recipe::new(run.params(), &holdings).is_climbing() {
        let missing_bytes = u64::try_from(usual.cast_signed() - allowance.free_bytes()).unwrap_or(0);
        return Ok(Shortage { missing_bytes, is_certain: false });
    }
    let free = allowance.free_bytes() - (times * usual).cast_signed();
    let relief = forecast(run).relief(&holdings, |range| reach_bytes(run, range), free);
    if relief.missing_bytes > (limit + relief.missing_bytes) / FORECAST_SHARE {
        return Ok(Shortage { missing_bytes: relief.missing_bytes, is_certain: true });
    }
    run.remove_reach(&relief.removed)?;
    let missing_bytes = match relief.missing_bytes {
        0 => 0,
        // The least limit that is reported leaves the usual headroom, not `times` times as much.
        missing => missing.saturating_sub((times - 1) * usual).max(usual),
    };
    Ok(Shortage { missing_bytes, is_certain: false })
}

/// Bytes of the stored reach that a solve with a disk limit removes before it ends.
#[must_use]
pub fn removable_bytes(run: &Run) -> u64 {
    let removable = Recipe::new(run.params(), &run.holdings()).removable();
    removable.into_iter().map(|range| reach_bytes(run, range)).sum()
}

/// The largest number of bytes that the rest of a run adds to its present bytes; `None` in the upward pass.
#[must_use]
pub fn still_needed(run: &Run) -> Option<u64> {
    let holdings = run.holdings();
    let is_climbing = Recipe::new(run.params(), &holdings).is_climbing();
    (!is_climbing).then(|| forecast(run).still_needed(&holdings, |range| reach_bytes(run, range)))
}

/// Forecasts the bytes of the layers of an enumerated run, from its counts and its stored values.
fn forecast(run: &Run) -> Forecast {
    let counts = run.layer_counts();
    let forecast = Forecast::of_counts(run.params(), &counts);
    match value_bytes(run, &counts) {
        Some(bytes) => forecast.with_value_bytes(&counts, bytes),
        None => forecast,
    }
}

/// Mean bytes of a stored value; `None` if too few values are stored for a good estimate, or the run stores best moves.
fn value_bytes(run: &Run, counts: &[LayerCounts]) -> Option<f64> {
    if run.params().contents().stores_best_moves() {
        // Best moves are in the same shards as the values.
        return None;
    }
    let (mut bytes, mut states) = (0, 0);
    for shard in run.catalog().shards().iter().filter(|shard| shard.record.kind == ShardKind::Values) {
        bytes += shard.record.bytes;
        let layers = shard.commit.first..=shard.commit.last;
        let kept = counts.iter().filter(|counts| layers.contains(&counts.layer));
        states += kept
            .filter(|counts| run.params().contents().kept().keeps(counts.layer))
            .map(|c| c.states)
            .sum::<u64>();
    }
    (bytes >= SHARD_BYTES && states > 0).then(|| bytes as f64 / states as f64)
}

/// Bytes that the shards of a range of reach occupy on the disk.
fn reach_bytes(run: &Run, range: LayerRange) -> u64 {
    run.catalog().reach_of(&[range]).iter().map(|shard| file_cost(shard.bytes)).sum()
}
