//! Arithmetic of expectations: f64 with an error bound, or exact fractions.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, Zero};

use exact2048_game::Spawn4;

/// The arithmetic of a pass over the layers.
///
/// A pass carries a [`Self::Number`] for each state. A spawned 2 is one step, and a spawned 4 is two steps. Let d be the
/// denominator of the spawn's probabilities. A number after `steps` steps is an integer divided by d^steps. So fractions
/// need no common denominators, and no division before the end.
pub trait Arithmetic {
    /// Number carried by a pass.
    type Number: Clone;
    /// Result of a pass.
    type Value: Clone;

    /// The number 0.
    fn zero(&self) -> Self::Number;
    /// The number 1, before the first step.
    fn one(&self) -> Self::Number;
    /// The same number, represented with one more step.
    fn raised(&self, number: &Self::Number) -> Self::Number;
    /// A number times an integer.
    fn times(&self, factor: i64, number: &Self::Number) -> Self::Number;
    /// Adds a number to another with the same number of steps.
    fn add(&self, sum: &mut Self::Number, number: &Self::Number);
    /// A number times the probability of a 2. The result is after one more step.
    fn by_two(&self, number: &Self::Number) -> Self::Number;
    /// A number times the probability of a 4. The result is after two more steps.
    fn by_four(&self, number: &Self::Number) -> Self::Number;
    /// The value of a number after `steps` steps, divided by an integer.
    fn value(&self, number: &Self::Number, steps: u32, divisor: u64) -> Self::Value;
    /// `second − first²` divided by the square of an integer. Both numbers are after `steps` steps.
    fn variance(&self, first: &Self::Number, second: &Self::Number, steps: u32, divisor: u64) -> Self::Value;
}

/// An f64 with a bound on its error.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Bounded {
    /// The number.
    pub value: f64,
    /// Bound on the error: the true number is within `value ± error`.
    pub error: f64,
}

/// Half a unit in the last place of 1: the relative error of one rounding.
const ROUNDING: f64 = f64::EPSILON / 2.0;
/// Factor that covers the roundings of the bound itself, at most a dozen an operation.
const SLACK: f64 = 1.0 + 32.0 * f64::EPSILON;

impl Bounded {
    fn new(value: f64, error: f64) -> Self {
        Self { value, error: (error + value.abs() * ROUNDING) * SLACK }
    }

    fn sum(self, other: Self) -> Self {
        Self::new(self.value + other.value, self.error + other.error)
    }

    fn product(self, other: Self) -> Self {
        let error = self.error * (other.value.abs() + other.error) + self.value.abs() * other.error;
        Self::new(self.value * other.value, error)
    }

    fn divided(self, divisor: f64) -> Self {
        Self::new(self.value / divisor, self.error / divisor)
    }

    /// The square root of a non-negative number.
    #[must_use]
    pub fn sqrt(self) -> Self {
        let value = self.value.max(0.0).sqrt();
        let low = (self.value - self.error).max(0.0).sqrt();
        // The root is concave, so the root of the interval's lower end usually differs more from `value`. Near 0, the
        // lower end is cut off at 0, and the root of the upper end may differ more.
        let error = (value - low).max((self.value + self.error).max(0.0).sqrt() - value);
        // Both ends of the interval and their roots are rounded.
        Self::new(value, error + 3.0 * ROUNDING * value)
    }
}

/// [`Arithmetic`] in f64, each number with an error bound.
///
/// Source: running error analysis (N. Higham, "Accuracy and Stability of Numerical Algorithms", 3.3).
#[derive(Clone, Copy, Debug)]
pub struct Floating {
    two: Bounded,
    four: Bounded,
}

impl Floating {
    /// The arithmetic with the probabilities of `spawn4`.
    #[must_use]
    pub fn new(spawn4: Spawn4) -> Self {
        let share = |weight: u32| {
            let value = f64::from(weight) / f64::from(spawn4.denominator());
            // A share of 0 or 1 is exact.
            if value.fract() == 0.0 { Bounded { value, error: 0.0 } } else { Bounded::new(value, 0.0) }
        };
        Self { two: share(spawn4.weight2()), four: share(spawn4.weight4()) }
    }
}

impl Arithmetic for Floating {
    type Number = Bounded;
    type Value = Bounded;

    fn zero(&self) -> Bounded {
        Bounded::default()
    }

    fn one(&self) -> Bounded {
        Bounded { value: 1.0, error: 0.0 }
    }

    fn raised(&self, number: &Bounded) -> Bounded {
        *number
    }

    fn times(&self, factor: i64, number: &Bounded) -> Bounded {
        Bounded::new(factor as f64 * number.value, factor.unsigned_abs() as f64 * number.error)
    }

    fn add(&self, sum: &mut Bounded, number: &Bounded) {
        *sum = sum.sum(*number);
    }

    fn by_two(&self, number: &Bounded) -> Bounded {
        self.two.product(*number)
    }

    fn by_four(&self, number: &Bounded) -> Bounded {
        self.four.product(*number)
    }

    fn value(&self, number: &Bounded, _steps: u32, divisor: u64) -> Bounded {
        number.divided(divisor as f64)
    }

    fn variance(&self, first: &Bounded, second: &Bounded, _steps: u32, divisor: u64) -> Bounded {
        let square = first.product(*first);
        let divisor = divisor as f64;
        second.sum(Bounded { value: -square.value, error: square.error }).divided(divisor).divided(divisor)
    }
}

/// [`Arithmetic`] in exact fractions.
///
/// Values are not in lowest terms, because their reduction would take longer than the rest of the pass. A number after s
/// steps takes s · log₂ d bits, so the time of a pass is proportional to the square of the target.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    spawn4: Spawn4,
}

impl Exact {
    /// The arithmetic with the probabilities of `spawn4`.
    #[must_use]
    pub fn new(spawn4: Spawn4) -> Self {
        Self { spawn4 }
    }

    fn denominator(&self, steps: u32) -> BigInt {
        BigInt::from(BigUint::from(self.spawn4.denominator()).pow(steps))
    }
}

impl Arithmetic for Exact {
    type Number = BigInt;
    type Value = BigRational;

    fn zero(&self) -> BigInt {
        BigInt::zero()
    }

    fn one(&self) -> BigInt {
        BigInt::one()
    }

    fn raised(&self, number: &BigInt) -> BigInt {
        number * self.spawn4.denominator()
    }

    fn times(&self, factor: i64, number: &BigInt) -> BigInt {
        number * factor
    }

    fn add(&self, sum: &mut BigInt, number: &BigInt) {
        *sum += number;
    }

    fn by_two(&self, number: &BigInt) -> BigInt {
        number * self.spawn4.weight2()
    }

    fn by_four(&self, number: &BigInt) -> BigInt {
        // Multiplies the weight of a 4 by the denominator, because a 4 is two steps.
        number * (u64::from(self.spawn4.weight4()) * u64::from(self.spawn4.denominator()))
    }

    fn value(&self, number: &BigInt, steps: u32, divisor: u64) -> BigRational {
        BigRational::new_raw(number.clone(), self.denominator(steps) * divisor)
    }

    fn variance(&self, first: &BigInt, second: &BigInt, steps: u32, divisor: u64) -> BigRational {
        let one = self.denominator(steps);
        let divisor = &one * divisor;
        BigRational::new_raw(second * one - first * first, &divisor * &divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_traits::ToPrimitive;

    #[test]
    fn the_bound_covers_the_roundings() {
        let spawn4: Spawn4 = "1/7".parse().unwrap();
        let (floating, exact) = (Floating::new(spawn4), Exact::new(spawn4));
        let (mut near, mut right) = (floating.one(), exact.one());
        let (mut near_one, mut right_one) = (floating.one(), exact.one());
        for step in 1..200u32 {
            (near_one, right_one) = (floating.raised(&near_one), exact.raised(&right_one));
            near = floating.by_two(&floating.times(3, &near));
            right = exact.by_two(&exact.times(3, &right));
            floating.add(&mut near, &near_one);
            exact.add(&mut right, &right_one);
            let value = exact.value(&right, step, 1);
            let difference = (BigRational::from_float(near.value).unwrap() - value).to_f64().unwrap().abs();
            assert!(difference <= near.error, "step {step}: {difference:e} > {:e}", near.error);
            assert!(near.error <= 1e-12 * near.value, "the bound is useless");
        }
    }

    #[test]
    fn roots_keep_their_bounds() {
        for (value, error) in [(2.0, 1e-10), (0.0, 1e-10), (1e-12, 1e-11)] {
            let root = Bounded { value, error }.sqrt();
            for end in [value - error, value + error] {
                let want = end.max(0.0).sqrt();
                assert!((root.value - want).abs() <= root.error, "{value} ± {error}");
            }
        }
    }

    /// The errors are about one rounding. So the roundings of the interval's ends are as large as the interval.
    #[test]
    fn roots_count_the_roundings_of_both_ends() {
        let exact = |number: f64| BigRational::from_float(number).unwrap();
        for (step, roundings) in (1..2000).flat_map(|step| [(step, 0.7), (step, 1.3), (step, 2.9)]) {
            let value = 1.0 + f64::from(step) * 1.3e-3;
            let error = value * roundings * ROUNDING;
            let root = Bounded { value, error }.sqrt();
            let (low, high) = (exact(root.value) - exact(root.error), exact(root.value) + exact(root.error));
            let [least, most] = [exact(value) - exact(error), exact(value) + exact(error)];
            assert!(&low * &low <= least && most <= &high * &high, "{value} ± {error}");
        }
    }

    #[test]
    fn fractions_keep_count_of_their_steps() {
        let exact = Exact::new("3/8".parse().unwrap());
        let number = exact.by_four(&exact.by_two(&exact.one()));
        assert_eq!(exact.value(&number, 3, 1), BigRational::new(15.into(), 64.into()));
        assert_eq!(exact.value(&exact.raised(&number), 4, 5), BigRational::new(3.into(), 64.into()));
    }
}
