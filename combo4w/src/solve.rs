//! The lives of all states, with a proved interval around each value.

use rayon::prelude::*;

use crate::anderson::{self, Anderson};
use crate::sequence::Sequences;
use crate::space::{ComboProblem, ComboSpace, ComboState, Stage};
use crate::sweep::{Lives, Plan};

/// Progress of a solve.
#[derive(Clone, Copy, Debug)]
pub struct ComboProgress {
    /// Number of sweeps of the current stage.
    pub sweeps: u64,
    /// Share of the states in the current and the earlier stages.
    pub share: f64,
    /// Largest change in the last sweep.
    pub residual: f64,
    /// The residual at which the stage ends.
    pub goal: f64,
}

/// Reason why a solve failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// The values do not converge.
    #[error("no convergence: expected a residual of {goal:e}, found {residual:e} after {sweeps} sweeps")]
    Stuck {
        /// The residual.
        residual: f64,
        /// The goal.
        goal: f64,
        /// Number of sweeps.
        sweeps: u64,
    },
    /// The caller stopped the solve.
    #[error("stopped")]
    Stopped,
}

/// Expected number of further placements in each state under the best policy.
///
/// Let m ≤ 0 ≤ M be the smallest and the largest change by one more sweep, widened by the sweep's rounding. Then the true
/// lives W* of a state are between W / (1 − m) and W / (1 − M). `docs/combo.md` has the proof.
#[derive(Clone, Debug)]
pub struct Solution {
    lives: Lives,
    low: f64,
    high: f64,
    sweeps: u64,
}

/// Mean and largest value of some states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueSummary {
    /// The mean over all states, with equal weights.
    pub mean: f64,
    /// Bound on the rounding error of the mean of the computed values.
    pub mean_rounding: f64,
    /// The largest value.
    pub max: f64,
}

impl ValueSummary {
    /// Summarises `states` states whose positive lives have the sum `sum`. Each term was rounded at most `additions`
    /// times.
    fn new(sum: f64, states: usize, additions: usize, largest: f64) -> Self {
        let mean = sum / states as f64;
        // The division adds a rounding. Twice the first-order bound covers the higher-order terms.
        let mean_rounding = (additions + 1) as f64 * f64::EPSILON * mean;
        Self { mean: mean - 1.0, mean_rounding, max: largest - 1.0 }
    }
}

/// Number of states whose lives are summed in sequence.
const CHUNK: usize = 1 << 14;
/// Largest number of roundings in one sweep: seven sums, a division, one more sum, and the difference to the old value.
const ROUNDINGS: f64 = 10.0;
/// Number of sweeps after which a stage fails to converge.
const MOST_SWEEPS: u64 = 1_000_000;

/// Upper bound on the bytes for solving a problem with this number of fields; `None` if it exceeds 64 bits.
#[must_use]
pub fn memory_bytes(problem: &ComboProblem, fields: usize) -> Option<u64> {
    let outlooks = Sequences::count(problem.draw, problem.previews)?;
    let states = (fields as u64).checked_mul(if problem.hold { 7 } else { 1 })?.checked_mul(outlooks)?;
    // The vectors are the lives, the image of a sweep, and the vectors of the acceleration. An outlook has a key (two
    // during the search) and up to seven successors.
    let vectors = 4 + 2 * anderson::DEPTH as u64;
    states.checked_mul(8 * vectors)?.checked_add(outlooks.checked_mul(100)?)
}

/// Solves a space until a sweep changes no value by more than `goal` or the rounding of the sweep.
///
/// The values have the same bits for any number of threads. Calls `watch` after every sweep, and stops if `watch`
/// returns `false`.
///
/// # Errors
///
/// If the values do not converge, or if `watch` stops the solve.
pub fn solve(
    space: &ComboSpace,
    goal: f64,
    mut watch: impl FnMut(ComboProgress) -> bool,
) -> Result<Solution, SolveError> {
    let row = space.row();
    let mut lives: Lives =
        space.sequences().levels().iter().map(|level| vec![1.0; level.len() * row]).collect();
    let mut sweeps = 0;
    for stage in space.stages() {
        let share = stage.end as f64 / space.width() as f64;
        let mut watch = |sweeps, residual, goal| watch(ComboProgress { sweeps, share, residual, goal });
        sweeps += solve_stage(space, stage, goal, &mut lives, &mut watch)?;
    }
    let whole = 0..space.width();
    let plan = Plan::new(space, &whole);
    let changes = (0..lives.len()).map(|level| plan.changes(&lives, level));
    let (low, high) = changes.fold((0.0, 0.0), |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1)));
    let rounding = ROUNDINGS * f64::EPSILON / 2.0 * largest(&lives);
    Ok(Solution { lives, low: low - rounding, high: high + rounding, sweeps: sweeps + 1 })
}

fn largest(lives: &Lives) -> f64 {
    lives.par_iter().flat_map(|level| level.par_iter().copied()).reduce(|| 1.0, f64::max)
}

/// Solves one stage, given the earlier stages. Returns the number of sweeps.
fn solve_stage(
    space: &ComboSpace,
    stage: &Stage,
    goal: f64,
    lives: &mut Lives,
    watch: &mut dyn FnMut(u64, f64, f64) -> bool,
) -> Result<u64, SolveError> {
    let plan = Plan::new(space, stage);
    let levels = lives.len();
    let tiles: Vec<_> = (0..levels).map(|level| plan.tiles(level)).collect();
    let states = |level: usize| space.sequences().levels()[level].len() * plan.row();
    // The image of one level under a sweep.
    let mut image = vec![0.0; (0..levels).map(states).max().unwrap_or(0)];
    let mut residual = vec![0.0; states(0)];
    let mut anderson = Anderson::default();
    let (mut sweeps, mut last) = (0, f64::INFINITY);
    loop {
        // Level 0 is the iterate. The sweep computes the other levels in descending order, each from the next level.
        for level in (1..levels).rev() {
            let new = &mut image[..states(level)];
            plan.sweep(lives, level, &tiles[level], new);
            store(space, stage, &mut lives[level], new);
        }
        let new = &mut image[..states(0)];
        plan.sweep(lives, 0, &tiles[0], new);
        sweeps += 1;
        let change = differences(space, stage, &lives[0], new, &mut residual);
        let largest = new.par_iter().copied().reduce(|| 1.0, f64::max);
        let goal = goal.max(ROUNDINGS * f64::EPSILON * largest);
        let is_done = change <= goal;
        if !is_done {
            if change > 2.0 * last {
                anderson.reset();
            }
            anderson.step(new, &residual);
        }
        store(space, stage, &mut lives[0], new);
        if !watch(sweeps, change, goal) {
            return Err(SolveError::Stopped);
        }
        if is_done {
            return Ok(sweeps);
        }
        if sweeps == MOST_SWEEPS || !change.is_finite() {
            return Err(SolveError::Stuck { residual: change, goal, sweeps });
        }
        last = change;
    }
}

/// Stores the lives of a stage in the rows of a level.
fn store(space: &ComboSpace, stage: &Stage, lives: &mut [f64], new: &[f64]) {
    let rows = lives.par_chunks_exact_mut(space.width()).zip(new.par_chunks_exact(stage.len()));
    rows.with_min_len(1 << 10).for_each(|(row, new)| row[stage.clone()].copy_from_slice(new));
}

/// Computes the changes of the lives of a stage, and returns the largest one.
fn differences(space: &ComboSpace, stage: &Stage, lives: &[f64], new: &[f64], changes: &mut [f64]) -> f64 {
    let width = stage.len();
    let rows = (
        lives.par_chunks_exact(space.width()),
        new.par_chunks_exact(width),
        changes.par_chunks_exact_mut(width),
    );
    let largest = rows.into_par_iter().with_min_len(1 << 10).map(|(old, new, changes)| {
        let mut largest = 0.0_f64;
        for ((change, new), old) in changes.iter_mut().zip(new).zip(&old[stage.clone()]) {
            *change = new - old;
            largest = largest.max(change.abs());
        }
        largest
    });
    largest.reduce(|| 0.0, f64::max)
}

impl Solution {
    /// Expected number of further placements in a state; `None` if the space lacks the state.
    #[must_use]
    pub fn value(&self, space: &ComboSpace, state: &ComboState) -> Option<f64> {
        let (level, at) = space.find(state)?;
        Some(self.lives[level][at] - 1.0)
    }

    /// Returns an interval that contains the true value, given the computed value.
    ///
    /// `rounding` is 0 for the value of a state, and [`ValueSummary::mean_rounding`] for a mean. Each operation is rounded
    /// outward.
    #[must_use]
    pub fn interval(&self, value: f64, rounding: f64) -> (f64, f64) {
        let low = (value - rounding).next_down() + 1.0;
        let high = (value + rounding).next_up() + 1.0;
        let low = (low.next_down() / (1.0 - self.low).next_up()).next_down() - 1.0;
        let high = (high.next_up() / (1.0 - self.high).next_down()).next_up() - 1.0;
        (low.next_down(), high.next_up())
    }

    /// Smallest and largest change by one more sweep, with its rounding.
    #[must_use]
    pub fn changes(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Number of sweeps of all stages together. Most sweeps cover only a part of the states.
    #[must_use]
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// The lives (values plus one) of all states, in the order of [`crate::Graph`].
    pub fn lives(&self) -> impl Iterator<Item = f64> + '_ {
        self.lives.iter().flatten().copied()
    }

    /// The mean and the largest value over all states.
    #[must_use]
    pub fn summary(&self) -> ValueSummary {
        let sums: Vec<f64> = self
            .lives
            .iter()
            .flat_map(|level| level.par_chunks(CHUNK).map(|lives| lives.iter().sum()).collect::<Vec<f64>>())
            .collect();
        let states = self.lives.iter().map(Vec::len).sum();
        ValueSummary::new(sums.iter().sum(), states, CHUNK + sums.len(), largest(&self.lives))
    }

    /// The mean and the largest value over the states with the first field.
    #[must_use]
    pub fn first_field(&self, space: &ComboSpace) -> ValueSummary {
        let place = space.place(0);
        let lives =
            || self.lives.iter().flat_map(|level| level.chunks_exact(space.width())).map(|row| row[place]);
        let count = lives().count();
        ValueSummary::new(lives().sum(), count, count, lives().fold(0.0, f64::max))
    }

    /// All states with their values, in order of their numbers.
    pub fn values<'a>(&'a self, space: &'a ComboSpace) -> impl Iterator<Item = (ComboState, f64)> + 'a {
        self.lives.iter().enumerate().flat_map(move |(level, lives)| {
            lives.iter().enumerate().map(move |(at, lives)| (space.state(level, at), lives - 1.0))
        })
    }
}
