//! Random simulation of the chain, to check the computed results.

use std::collections::BTreeMap;

use exact2048_game::Spawn4;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::Bag;

/// Number of runs with each number of moves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SampledCounts {
    moves: BTreeMap<u32, u64>,
}

/// An estimate, and half the width of its 95% confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Half the width of the interval `value ± half_width`, by the normal approximation.
    pub half_width: f64,
}

/// Number of runs from one generator. With this number, the cost of distributing the runs is negligible.
const BATCH: u64 = 4096;

/// Runs the chain `runs` times to the tile `2^target`. The sample depends on the seed, but not on the threads.
#[must_use]
pub fn simulate(target: u8, spawn4: Spawn4, runs: u64, seed: u64) -> SampledCounts {
    (0..runs.div_ceil(BATCH))
        .into_par_iter()
        .map(|batch| {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            generator.set_stream(batch);
            let mut sample = SampledCounts::default();
            for _ in 0..BATCH.min(runs - batch * BATCH) {
                *sample.moves.entry(play(target, spawn4, &mut generator)).or_default() += 1;
            }
            sample
        })
        .reduce(SampledCounts::default, SampledCounts::with)
}

/// Plays one run and returns its number of moves.
fn play(target: u8, spawn4: Spawn4, generator: &mut impl Rng) -> u32 {
    let mut spawn = || if generator.random_range(0..spawn4.denominator()) < spawn4.weight4() { 2 } else { 1 };
    let mut bag = Bag::EMPTY.with(spawn()).with(spawn());
    let mut moves = 0;
    while bag.largest() < target {
        bag = bag.merged().with(spawn());
        moves += 1;
    }
    moves
}

impl SampledCounts {
    fn with(mut self, other: Self) -> Self {
        for (moves, runs) in other.moves {
            *self.moves.entry(moves).or_default() += runs;
        }
        self
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.moves.values().sum()
    }

    /// Numbers of moves in ascending order, each with its number of runs.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.moves.iter().map(|(&moves, &runs)| (moves, runs))
    }

    /// The mean of `(moves − about)^power`.
    fn moment(&self, about: f64, power: i32) -> f64 {
        let sum: f64 =
            self.iter().map(|(moves, runs)| runs as f64 * (f64::from(moves) - about).powi(power)).sum();
        sum / self.runs() as f64
    }

    /// Estimate of the expected number of moves.
    #[must_use]
    pub fn mean(&self) -> Estimate {
        let value = self.moment(0.0, 1);
        Estimate { value, half_width: Z95 * (self.moment(value, 2) / self.runs() as f64).sqrt() }
    }

    /// Estimate of the variance of the number of moves.
    #[must_use]
    pub fn variance(&self) -> Estimate {
        let mean = self.moment(0.0, 1);
        let runs = self.runs() as f64;
        let value = self.moment(mean, 2);
        let spread = (self.moment(mean, 4) - value * value).max(0.0);
        Estimate { value: value * runs / (runs - 1.0).max(1.0), half_width: Z95 * (spread / runs).sqrt() }
    }
}

/// Half the width of the 95% interval of the normal distribution, in standard deviations.
const Z95: f64 = 1.959_963_984_540_054;
