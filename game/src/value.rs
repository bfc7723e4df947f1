//! Stored values, and the divisors of their sums over spawns.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::layer::{PerSpawn, SpawnKind};
use crate::objective::Spawn4;

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
    /// Returns the rounded mean, from the sum over each kind of spawn.
    fn mean(sums: PerSpawn<Self::Sum>, divisor: &Divisor) -> Self;

    /// Reads a stored value from exactly as many bytes as it has in memory.
    fn read_from(bytes: &[u8]) -> Self {
        bytemuck::pod_read_unaligned(bytes)
    }
}

/// Divisor of a sum over spawns, for a fixed number of empty cells.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    weights: PerSpawn<u32>,
    /// Mean of the unscored potential that a spawn adds, times the divisor.
    offset: u64,
    divisor: u64,
    reciprocal: f64,
    /// Factor for integer quotients: see [`Divisor::quotient`].
    multiplier: u64,
    shift: u32,
}

impl Divisor {
    /// Builds the divisor of the sum over the spawns in `empty` cells. `offset` is subtracted from the sum first.
    pub(crate) fn new(spawn4: Spawn4, empty: u64, offset: u64) -> Self {
        let divisor = u64::from(spawn4.denominator()) * empty.max(1);
        let shift = u64::BITS - (divisor - 1).leading_zeros();
        // The multiplier is below 2^64, because 2^shift is below twice the divisor. If the divisor is a power of two,
        // 2^shift equals the divisor.
        let multiplier = (1u128 << (63 + shift)).div_ceil(u128::from(divisor));
        Self {
            weights: SpawnKind::ALL.map(|spawn| spawn.weight(spawn4)),
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
    fn mean(sums: PerSpawn<u64>, divisor: &Divisor) -> Self {
        const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
        let sum = divisor.weighted(sums.map(small_to_f64));
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
    fn mean(sums: PerSpawn<u64>, divisor: &Divisor) -> Self {
        let weights = divisor.weights.iter();
        let weighted = sums.iter().zip(weights).map(|(sum, &weight)| sum.wrapping_mul(u64::from(weight)));
        let sum = weighted.fold(0, u64::wrapping_add);
        divisor.quotient(sum.wrapping_sub(divisor.offset).wrapping_add(divisor.divisor / 2))
    }
}

impl Divisor {
    /// Weighted sum over the kinds of spawns. The compiler makes vector instructions of kernels only if this method
    /// iterates over borrowed arrays.
    #[inline(always)]
    pub(crate) fn weighted(&self, sums: PerSpawn<f64>) -> f64 {
        let products = sums.iter().zip(&self.weights).map(|(sum, &weight)| sum * f64::from(weight));
        products.reduce(|sum, product| sum + product).unwrap_or_default()
    }

    /// Sum of all weights: the denominator of the spawn probability times the number of empty cells.
    #[inline(always)]
    pub(crate) fn count(&self) -> f64 {
        self.divisor as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
