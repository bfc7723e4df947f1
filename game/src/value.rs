//! Stored values, and the constants of backward induction.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::fixed::Scale;
use crate::layer::SpawnKind;
use crate::objective::{Spawn4, Spawner};
use crate::params::Game;
use crate::spawning::{self, FixedMean, SpawnRule, WorstSpawn};

/// Stored value W, an integer. A larger integer is better for the player.
///
/// For the score, W is the expected future score plus the potential Φ of the board.
/// [`Scale`](crate::fixed::Scale) converts the integer to a number, in fixed or in floating point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stored(pub u64);

/// Future value V, in the same integers as [`Stored`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FutureValue(pub u64);

impl Stored {
    /// Returns the future value of a board. `past` is the stored value that the board would have if its game were
    /// over.
    #[must_use]
    pub fn future_value(self, past: Stored) -> FutureValue {
        // W is at least Φ, because rounding never moves a value below the score already made.
        FutureValue(self.0.saturating_sub(past.0))
    }
}

/// Type of stored values in memory: unsigned integers of 32 or 64 bits.
pub trait Value: Pod + Ord + Default + Debug + Send + Sync + 'static {
    /// Type of the sum of fixed-point numbers over the spawns of one afterstate.
    type Sum: Copy + Debug;
    /// Sum of no values.
    const NO_SUM: Self::Sum;
    /// Largest integer.
    const LARGEST: Self;

    /// Converts a stored value, and keeps only the low bits of a value that does not fit.
    fn of_stored(stored: Stored) -> Self;
    /// Converts to a stored value.
    fn stored(self) -> Stored;
    /// Reads the bits as an IEEE 754 number of the same width.
    fn number(self) -> f64;
    /// Returns the bits of the IEEE 754 number nearest to a number.
    fn of_number(number: f64) -> Self;
    /// Subtracts this integer from the bits of 1. The subtraction reverses the order of the numbers from 0 to 1.
    fn one_less(self) -> Self;
    /// Adds this value to a sum, exactly.
    fn add_to(self, sum: &mut Self::Sum);
    /// Returns the rounded mean, from the sum over spawned 2s and the sum over spawned 4s.
    fn mean(twos: Self::Sum, fours: Self::Sum, divisor: &Divisor) -> Self;

    /// Reads a stored value from exactly as many bytes as it has in memory.
    fn read_from(bytes: &[u8]) -> Self {
        bytemuck::pod_read_unaligned(bytes)
    }
}

/// Divisor of a sum over spawns, for a fixed number of empty cells.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    weight2: u32,
    weight4: u32,
    /// Potential that a spawned 4 adds without scoring it, times its weight and the number of empty cells.
    offset: u64,
    divisor: u64,
    reciprocal: f64,
    /// Factor for integer quotients: see [`Divisor::quotient`].
    multiplier: u64,
    shift: u32,
}

impl Divisor {
    /// Builds the divisor of the sum over the spawns in `empty` cells. `offset` is subtracted from the sum first.
    fn new(spawn4: Spawn4, empty: u64, offset: u64) -> Self {
        let divisor = u64::from(spawn4.denominator()) * empty.max(1);
        let shift = u64::BITS - (divisor - 1).leading_zeros();
        // The multiplier is below 2^64, because 2^shift is below twice the divisor. If the divisor is a power of two,
        // 2^shift equals the divisor.
        let multiplier = (1u128 << (63 + shift)).div_ceil(u128::from(divisor));
        Self {
            weight2: spawn4.weight2(),
            weight4: spawn4.weight4(),
            offset,
            divisor,
            reciprocal: 1.0 / divisor as f64,
            multiplier: multiplier as u64,
            shift,
        }
    }

    /// Returns `sum / divisor`, rounded down, of a sum below 2^63.
    ///
    /// Multiplying by the reciprocal costs a fraction of a division. Let d be the divisor, l = `shift` and m =
    /// `multiplier`. Then 2^l ≥ d, and m·d = 2^(63 + l) + r with 0 ≤ r < d. So m·sum / 2^(63 + l) exceeds sum/d by
    /// r·sum / (d · 2^(63 + l)) < 1/d. So the excess never lifts a fraction k/d to the next integer.
    #[inline(always)]
    fn quotient(&self, sum: u64) -> u64 {
        ((u128::from(sum << 1) * u128::from(self.multiplier)) >> u64::BITS) as u64 >> self.shift
    }
}

impl Value for u32 {
    const NO_SUM: u64 = 0;
    const LARGEST: Self = Self::MAX;

    type Sum = u64;

    fn of_stored(stored: Stored) -> Self {
        stored.0 as u32
    }

    fn stored(self) -> Stored {
        Stored(u64::from(self))
    }

    #[inline(always)]
    fn number(self) -> f64 {
        f64::from(f32::from_bits(self))
    }

    #[inline(always)]
    fn of_number(number: f64) -> Self {
        (number as f32).to_bits()
    }

    #[inline(always)]
    fn one_less(self) -> Self {
        1f32.to_bits().wrapping_sub(self)
    }

    #[inline(always)]
    fn add_to(self, sum: &mut u64) {
        *sum += u64::from(self);
    }

    /// Computes in f64, which has faster vector instructions. Every intermediate result except the quotient is exact.
    /// Adding 1.5·2^52 rounds the quotient to the nearest integer and leaves that integer in the low bits.
    #[inline(always)]
    fn mean(twos: u64, fours: u64, divisor: &Divisor) -> Self {
        const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
        let sum = small_to_f64(twos) * f64::from(divisor.weight2)
            + small_to_f64(fours) * f64::from(divisor.weight4);
        ((sum - divisor.offset as f64) * divisor.reciprocal + TO_INTEGER).to_bits() as u32
    }
}

/// Converts an integer below 2^52 to f64 by its bits, because AVX2 has no instruction that converts 64 bits.
#[inline(always)]
fn small_to_f64(integer: u64) -> f64 {
    const TWO_POW_52: f64 = 4_503_599_627_370_496.0;
    f64::from_bits(TWO_POW_52.to_bits() | integer) - TWO_POW_52
}

impl Value for u64 {
    const NO_SUM: u64 = 0;
    const LARGEST: Self = Self::MAX;

    /// The scale leaves enough bits for the sum over the spawns in all cells.
    type Sum = u64;

    fn of_stored(stored: Stored) -> Self {
        stored.0
    }

    fn stored(self) -> Stored {
        Stored(self)
    }

    #[inline(always)]
    fn number(self) -> f64 {
        f64::from_bits(self)
    }

    #[inline(always)]
    fn of_number(number: f64) -> Self {
        number.to_bits()
    }

    #[inline(always)]
    fn one_less(self) -> Self {
        1f64.to_bits().wrapping_sub(self)
    }

    #[inline(always)]
    fn add_to(self, sum: &mut u64) {
        // Sums in holes may overflow, but no reachable state reads a hole.
        *sum = sum.wrapping_add(self);
    }

    #[inline(always)]
    fn mean(twos: u64, fours: u64, divisor: &Divisor) -> Self {
        let twos = twos.wrapping_mul(u64::from(divisor.weight2));
        let sum = twos.wrapping_add(fours.wrapping_mul(u64::from(divisor.weight4)));
        divisor.quotient(sum.wrapping_sub(divisor.offset).wrapping_add(divisor.divisor / 2))
    }
}

impl Divisor {
    /// Weight of a spawned 2.
    #[inline(always)]
    pub(crate) fn weight2(&self) -> f64 {
        f64::from(self.weight2)
    }

    /// Weight of a spawned 4.
    #[inline(always)]
    pub(crate) fn weight4(&self) -> f64 {
        f64::from(self.weight4)
    }

    /// Sum of all weights: the denominator of the spawn probability times the number of empty cells.
    #[inline(always)]
    pub(crate) fn count(&self) -> f64 {
        self.divisor as f64
    }
}

/// Constants of backward induction for a run.
#[derive(Clone, Debug)]
pub struct Backup {
    divisors: Vec<Divisor>,
    rule: SpawnRule,
    won: Stored,
    /// Number of bits after the binary point; `None` if values are not scores in fixed point.
    score_bits: Option<u32>,
    can_win: bool,
}

impl Backup {
    /// Computes the constants of a game.
    pub fn new(game: &Game) -> Self {
        let (scale, spawn4) = (Scale::new(game), game.spawn4());
        let unscored_potential = scale.points(SpawnKind::Four.unscored_potential());
        let divisors = (0..=game.cells() as u64).map(|empty| {
            Divisor::new(spawn4, empty, unscored_potential.0 * u64::from(spawn4.weight4()) * empty)
        });
        let rule = match (game.spawner(), scale.floating()) {
            (Spawner::Random, None) => SpawnRule::Mean(FixedMean),
            (Spawner::Random, Some(floating)) => SpawnRule::Floating(floating),
            (Spawner::Worst, floating) => {
                let spawned = [spawn4.weight2() > 0, spawn4.weight4() > 0];
                SpawnRule::Worst(WorstSpawn::new(
                    spawned,
                    unscored_potential,
                    floating.map(|_| game.discount()),
                ))
            }
        };
        let can_win = game.winning_exponent().is_some();
        let score_bits = scale.fraction_bits().filter(|_| !can_win);
        Self { divisors: divisors.collect(), rule, won: scale.won(), score_bits, can_win }
    }

    /// Whether the objective has a winning tile.
    pub fn can_win(&self) -> bool {
        self.can_win
    }

    /// Value of an afterstate that holds the winning tile.
    pub fn won<V: Value>(&self) -> V {
        V::of_stored(self.won)
    }

    /// Value of a board without a legal move, from its potential.
    #[inline(always)]
    pub fn terminal<V: Value>(&self, potential: u32) -> V {
        match self.score_bits {
            Some(bits) => V::of_stored(Stored(u64::from(potential) << bits)),
            None => V::default(),
        }
    }

    /// Rule that combines the values after spawns into the value of the afterstate.
    pub fn rule(&self) -> SpawnRule {
        self.rule
    }

    /// Computes the value of an afterstate from the values after a 2 and after a 4 in each empty cell.
    pub fn of_spawns<V: Value>(&self, twos: &[Stored], fours: &[Stored]) -> Stored {
        let values = |of: &[Stored]| -> Vec<V> { of.iter().map(|&stored| V::of_stored(stored)).collect() };
        self.of_values(&values(twos), &values(fours)).stored()
    }

    /// Does the same as [`of_spawns`](Self::of_spawns) for values in memory.
    #[inline]
    pub fn of_values<V: Value>(&self, twos: &[V], fours: &[V]) -> V {
        let divisor = self.divisor(twos.len());
        match self.rule {
            SpawnRule::Mean(rule) => spawning::of_lists(rule, twos, fours, divisor),
            SpawnRule::Floating(rule) => spawning::of_lists(rule, twos, fours, divisor),
            SpawnRule::Worst(rule) => spawning::of_lists(rule, twos, fours, divisor),
        }
    }

    /// Divisor of a sum over the spawns in `empty` cells.
    #[inline]
    pub fn divisor(&self, empty: usize) -> &Divisor {
        &self.divisors[empty]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;

    /// The f64 mean is within half a unit of the exact mean, as the proof of the error bound requires.
    #[test]
    fn means_round_to_nearest() {
        let params = Params::small("3x3");
        let backup = Backup::new(params.game());
        let Stored(offset) = Scale::new(params.game()).points(4);
        let mut seed = 1u64;
        for round in 0..20_000 {
            let empty = round % 8 + 1;
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((seed >> 32) as u32).max(1 << 20)
            };
            let twos: Vec<Stored> = (0..empty).map(|_| Stored(u64::from(next()))).collect();
            let fours: Vec<Stored> = (0..empty).map(|_| Stored(u64::from(next()))).collect();
            let Stored(mean) = backup.of_spawns::<u32>(&twos, &fours);
            let sum: i128 = twos.iter().map(|v| 9 * i128::from(v.0)).sum::<i128>()
                + fours.iter().map(|v| i128::from(v.0) - i128::from(offset)).sum::<i128>();
            let divisor = 10 * empty as i128;
            let error = (i128::from(mean) * divisor - sum).abs();
            assert!(2 * error <= divisor, "{sum} / {divisor} gave {mean}");
        }
    }

    /// The sums are near multiples of the divisor, up to the largest sum. A slightly wrong multiplier would fail for
    /// such sums.
    #[test]
    fn quotients_are_rounded_down() {
        let divisors =
            ["0", "1/2", "1/10", "1/3", "4097/65535", "1/65536"].map(|text| text.parse::<Spawn4>().unwrap());
        for (spawn4, empty) in divisors.into_iter().flat_map(|spawn4| (1..=15).map(move |e| (spawn4, e))) {
            let divisor = Divisor::new(spawn4, empty, 0);
            let d = divisor.divisor;
            let tops = (0..63).map(|bits| ((1u64 << 63) - 1) >> bits);
            for sum in tops.flat_map(|top| [top, top / d * d, (top / d * d).saturating_sub(1)]) {
                assert_eq!(divisor.quotient(sum), sum / d, "{sum} / {d}");
            }
        }
    }
}
