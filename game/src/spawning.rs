//! Rules that combine the values of the states after spawns into the value of the afterstate.
//!
//! There are three rules. The parameters of a run choose one of them ([`SpawnRule`]). Kernels are compiled for each
//! rule, so no rule slows the others. Each rule gives the same bits for every order of the values. So results do not
//! depend on the orientation of boards or on the worker that computes them.

use crate::discount::Discount;
use crate::layer::PerSpawn;
use crate::value::{Divisor, Stored, Value};

/// Rule of a run.
#[derive(Clone, Copy, Debug)]
pub enum SpawnRule {
    /// Chance, in fixed point: the rounded mean.
    Mean(FixedMean),
    /// Chance, in floating point: the discounted mean.
    Floating(FloatingMean),
    /// Adversary: the least value.
    Worst(WorstSpawn),
}

/// Combines the values after each kind of spawn into one value, in two passes over the values.
pub trait Spawning<V>: Copy + Send + Sync {
    /// Result of the first pass over all values of one kind of spawn. The second pass needs this result.
    type Scan: Copy + Default;
    /// Result of the second pass over the values of one kind of spawn.
    type Sum: Copy;
    /// Whether the first pass has any effect; if not, callers may skip it.
    const NEEDS_SCAN: bool;
    /// Sum of no values.
    const NONE: Self::Sum;

    /// Handles a value in the first pass.
    fn scan(self, value: V, scan: &mut Self::Scan);
    /// Adds a value in the second pass.
    fn add(self, value: V, scan: Self::Scan, sum: &mut Self::Sum);
    /// Computes the value of the afterstate.
    fn value(self, sums: PerSpawn<Self::Sum>, divisor: &Divisor) -> V;
}

/// Computes the value of an afterstate from a list of values for each kind of spawn.
pub fn of_lists<V: Value, R: Spawning<V>>(rule: R, spawned: PerSpawn<&[V]>, divisor: &Divisor) -> V {
    let sum = |values: &[V]| {
        let (mut scan, mut sum) = (R::Scan::default(), R::NONE);
        values.iter().for_each(|&value| rule.scan(value, &mut scan));
        values.iter().for_each(|&value| rule.add(value, scan, &mut sum));
        sum
    };
    rule.value(spawned.map(sum), divisor)
}

/// Mean of fixed-point numbers: their exact sum, divided with one rounding.
#[derive(Clone, Copy, Debug)]
pub struct FixedMean;

impl<V: Value> Spawning<V> for FixedMean {
    type Scan = ();
    type Sum = V::Sum;
    const NEEDS_SCAN: bool = false;
    const NONE: V::Sum = V::NO_SUM;

    #[inline(always)]
    fn scan(self, _: V, _: &mut ()) {}

    #[inline(always)]
    fn add(self, value: V, _: (), sum: &mut V::Sum) {
        value.add_to(sum);
    }

    #[inline(always)]
    fn value(self, sums: PerSpawn<V::Sum>, divisor: &Divisor) -> V {
        V::mean(sums, divisor)
    }
}

/// Mean of floating-point numbers, times a discount.
///
/// The order of additions changes a floating-point sum, unless no addition rounds. For each kind of spawn, let 2^e be
/// the largest power of two that does not exceed the largest value. Each value is first rounded to a multiple of
/// 2^(e−48). Sums of up to 16 such multiples have at most 53 bits, so they are exact. The operations after the sums,
/// with four roundings, are the same for every order (`docs/dev/error-bound.md`).
#[derive(Clone, Copy, Debug)]
pub struct FloatingMean {
    /// Whether values are probabilities of losing. Such a value is stored as the bits of 1 minus its own bits.
    losses: bool,
    discount: Factor,
}

/// Numerator and denominator of a discount, as f64 numbers.
#[derive(Clone, Copy, Debug)]
struct Factor(f64, f64);

impl Factor {
    fn new(discount: Discount) -> Self {
        Self(f64::from(discount.numerator()), f64::from(discount.denominator()))
    }
}

impl FloatingMean {
    pub(crate) fn new(losses: bool, discount: Discount) -> Self {
        Self { losses, discount: Factor::new(discount) }
    }

    /// Converts a stored value to its number.
    #[inline(always)]
    pub(crate) fn number<V: Value>(self, value: V) -> f64 {
        if self.losses { value.one_less().number() } else { value.number() }
    }

    /// Returns the stored value nearest to a number.
    #[inline(always)]
    pub(crate) fn of_number<V: Value>(self, number: f64) -> V {
        let value = V::of_number(number);
        if self.losses { value.one_less() } else { value }
    }
}

/// Bits of the exponent of an f64.
const EXPONENT_BITS: u64 = 0x7ff << 52;

impl<V: Value> Spawning<V> for FloatingMean {
    /// Largest value.
    type Scan = f64;
    type Sum = f64;
    const NEEDS_SCAN: bool = true;
    const NONE: f64 = 0.0;

    #[inline(always)]
    fn scan(self, value: V, scan: &mut f64) {
        let number = self.number(value);
        *scan = if number > *scan { number } else { *scan };
    }

    /// Adds 1.5·2^(e + 4) to the value, and subtracts this constant again. The last place of the sum is 2^(e − 48), so
    /// the addition rounds the value to a multiple of it. The subtraction is exact.
    #[inline(always)]
    fn add(self, value: V, scan: f64, sum: &mut f64) {
        let rounder = 24.0 * f64::from_bits(scan.to_bits() & EXPONENT_BITS);
        *sum += (self.number(value) + rounder) - rounder;
    }

    #[inline(always)]
    fn value(self, sums: PerSpawn<f64>, divisor: &Divisor) -> V {
        let Factor(numerator, denominator) = self.discount;
        let sum = divisor.weighted(sums);
        self.of_number(sum * numerator / (denominator * divisor.count()))
    }
}

/// Least value over the spawns that chance could choose.
#[derive(Clone, Copy, Debug)]
pub struct WorstSpawn {
    /// Whether each kind can spawn.
    possible: PerSpawn<bool>,
    /// Unscored potential that each kind adds, in fixed point.
    unscored: PerSpawn<Stored>,
    /// Discount; `None` if values are fixed-point numbers.
    discount: Option<Factor>,
}

impl WorstSpawn {
    pub(crate) fn new(
        possible: PerSpawn<bool>,
        unscored: PerSpawn<Stored>,
        discount: Option<Discount>,
    ) -> Self {
        Self { possible, unscored, discount: discount.map(Factor::new) }
    }
}

impl<V: Value> Spawning<V> for WorstSpawn {
    type Scan = ();
    /// Least value.
    type Sum = V;
    const NEEDS_SCAN: bool = false;
    const NONE: V = V::LARGEST;

    #[inline(always)]
    fn scan(self, _: V, _: &mut ()) {}

    #[inline(always)]
    fn add(self, value: V, _: (), sum: &mut V) {
        *sum = value.min(*sum);
    }

    #[inline(always)]
    fn value(self, least: PerSpawn<V>, _: &Divisor) -> V {
        let mut worst = V::LARGEST;
        for ((value, unscored), &is_possible) in least.iter().zip(&self.unscored).zip(&self.possible) {
            if is_possible {
                worst = worst.min(V::of_stored(Stored(value.stored().0.wrapping_sub(unscored.0))));
            }
        }
        match self.discount {
            Some(Factor(numerator, denominator)) => V::of_number(worst.number() * numerator / denominator),
            None => worst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::Backup;
    use crate::objective::Spawner;
    use crate::params::{Params, Precision};

    fn backup(objective: &str, discount: &str, spawner: Spawner, precision: Precision) -> Backup {
        let params = Params::usual("3x3", objective).precision(precision);
        let params = params.discount(discount.parse().unwrap()).spawner(spawner).build().unwrap();
        Backup::new(params.game())
    }

    /// Pseudo-random numbers from 0 to 1 of very different magnitudes.
    fn numbers(count: usize, seed: &mut u64) -> Vec<f64> {
        let mut next = || {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..count).map(|_| next() * 2f64.powi(-(next() * 80.0) as i32)).collect()
    }

    /// Every order gives the same bits, and the result is within the error bound of the exact mean.
    #[test]
    fn floating_means_do_not_depend_on_order_and_are_near() {
        let mut seed = 1;
        for (objective, discount, factor) in [("reach:64", "0.95", 0.95), ("lose:64", "1", 1.0)] {
            let backup = backup(objective, discount, Spawner::Random, Precision::Bits64);
            for round in 0..2_000 {
                let floating = FloatingMean::new(objective.starts_with("lose"), Discount::NONE);
                let empty = round % 8 + 1;
                let (twos, fours) = (numbers(empty, &mut seed), numbers(empty, &mut seed));
                let stored = |numbers: &[f64]| -> Vec<Stored> {
                    numbers.iter().map(|&number| floating.of_number::<u64>(number).stored()).collect()
                };
                let (mut two_values, mut four_values) = (stored(&twos), stored(&fours));
                let mean = backup.of_spawns::<u64>([&two_values, &four_values]);
                two_values.reverse();
                four_values.rotate_left(empty / 2);
                assert_eq!(backup.of_spawns::<u64>([&two_values, &four_values]), mean);
                let mut exact: Vec<f64> = twos.iter().map(|x| 9.0 * x).chain(fours.iter().copied()).collect();
                exact.sort_by(f64::total_cmp);
                let exact = exact.iter().sum::<f64>() * factor / (10.0 * empty as f64);
                let found = floating.number(mean.0);
                assert!((found - exact).abs() <= exact * 2f64.powi(-45), "{found} {exact}");
            }
        }
    }

    /// Certain results stay certain, to the last bit.
    #[test]
    fn means_of_ones_are_one() {
        for precision in [Precision::Bits32, Precision::Bits64] {
            let backup = backup("lose:64", "1", Spawner::Random, precision);
            let won = match precision {
                Precision::Bits32 => backup.won::<u32>().stored(),
                Precision::Bits64 => backup.won::<u64>().stored(),
            };
            for empty in 1..=8 {
                for value in [won, Stored(0)] {
                    let list = vec![value; empty];
                    let found = match precision {
                        Precision::Bits32 => backup.of_spawns::<u32>([&list, &list]),
                        Precision::Bits64 => backup.of_spawns::<u64>([&list, &list]),
                    };
                    assert_eq!(found, value, "{empty}");
                }
            }
        }
    }

    #[test]
    fn the_worst_spawn_has_the_least_value() {
        let score = backup("score", "1", Spawner::Worst, Precision::Bits32);
        let fixed = |number: u64| Stored(number << 17);
        let of = |twos: &[Stored], fours: &[Stored]| score.of_spawns::<u32>([twos, fours]);
        assert_eq!(of(&[fixed(20), fixed(30)], &[fixed(25), fixed(24)]), fixed(20));
        // A spawned 4 adds an unscored potential of 4, so 4 is subtracted.
        assert_eq!(of(&[fixed(20)], &[fixed(23)]), fixed(19));
        let half = backup("reach:64", "1/2", Spawner::Worst, Precision::Bits64);
        let chance = |number: f64| Stored(number.to_bits());
        assert_eq!(half.of_spawns::<u64>([&[chance(0.5)], &[chance(0.25)]]), chance(0.125));
    }
}
