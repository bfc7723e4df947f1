//! Fixed-point values: scale, rounding and the certified error bound.
//!
//! A stored value is `W = V + Φ` (score) or a probability (reach), times `2^fraction_bits`, as an
//! unsigned integer. The maximum over moves is exact on integers and the mean over spawns is an
//! exact integer sum and one rounding, so values do not depend on the order of evaluation.
//! `docs/dev/error-bound.md` proves the bound.

use crate::layer::Layer;
use crate::move_bound::MoveBound;
use crate::objective::Objective;
use crate::params::{Params, Precision, tile_bound_board};
use crate::rules::exponent_potential;

/// The fixed-point scale of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    fraction_bits: u32,
    largest_value: f64,
    move_bound: MoveBound,
}

/// A mean's rounding error in ulps: a half, and what the f64 product of the 32-bit kernel can add
/// before it rounds.
const MEAN_ERROR_ULP: f64 = 0.5 + 1.0 / (1 << 16) as f64;

impl Scale {
    pub(crate) fn new(params: &Params) -> Self {
        let largest_value = match params.objective {
            Objective::Score => tile_bound_board(params).map(exponent_potential).sum::<u64>(),
            Objective::Reach { .. } => 1,
        };
        let integer_bits = u64::BITS - largest_value.leading_zeros();
        let fraction_bits = match params.precision {
            // One bit is left over when the largest value is a power of two: it must fit too.
            Precision::Bits32 => u32::BITS - integer_bits,
            Precision::Bits64 => {
                // The sum over a full board's spawns must fit 64 bits, with room for rounding.
                let weights = u64::from(params.spawn4.denominator()) * params.cells() as u64 * 2;
                u64::BITS - integer_bits - (u64::BITS - weights.leading_zeros())
            }
        };
        Self { fraction_bits, largest_value: largest_value as f64, move_bound: MoveBound::new(params) }
    }

    /// Bits behind the binary point.
    pub fn fraction_bits(self) -> u32 {
        self.fraction_bits
    }

    /// The integer that stands for `value`.
    pub fn encode(self, value: u64) -> u64 {
        value << self.fraction_bits
    }

    /// The number that `bits` stands for.
    pub fn decode(self, bits: u64) -> f64 {
        bits as f64 / (1u64 << self.fraction_bits) as f64
    }

    /// The mean of fixed-point numbers that sum to `sum`, by their number or the sum of their weights.
    pub fn decode_sum(self, sum: u128, weights: u128) -> f64 {
        sum as f64 / weights as f64 / (1u64 << self.fraction_bits) as f64
    }

    /// A proven bound on the absolute error of a value of `layer` that is stored as `bits`: half a unit in the last place
    /// for each mean that an optimal or any other policy can still expect to pass, and what printing it as f64
    /// can add.
    pub fn error_bound(self, layer: Layer, bits: u64) -> f64 {
        let of_a_mean = MEAN_ERROR_ULP / (1u64 << self.fraction_bits) as f64;
        // Printing a value as f64 rounds at most three times: the number, a mean's division, its scale.
        let printing = self.largest_value * 2.0 * f64::EPSILON;
        of_a_mean * self.move_bound.most(layer, self.decode(bits), of_a_mean) + printing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Spawn4;

    fn scale(board: &str, objective: &str, precision: Precision) -> Scale {
        let (board, objective) = (board.parse().unwrap(), objective.parse().unwrap());
        Params::new(board, objective, Spawn4::default(), precision, None).unwrap().scale()
    }

    #[test]
    fn bounds_meet_the_promise() {
        let bound = |board, precision, value| {
            let s = scale(board, "score", precision);
            (s.fraction_bits(), s.error_bound(Layer(4), s.encode(value)))
        };
        let (bits, error) = bound("3x3", Precision::Bits32, 5_469);
        assert!(bits == 17 && error <= 0.0016, "{error}");
        let (bits, error) = bound("4x3", Precision::Bits32, 50_725);
        assert!(bits == 14 && error <= 0.081, "{error}");
        let (bits, error) = bound("4x3", Precision::Bits64, 50_725);
        assert!(bits == 38 && error <= 5e-9, "{error}");
        assert_eq!(scale("3x3", "reach:512", Precision::Bits32).fraction_bits(), 31);
    }
}
