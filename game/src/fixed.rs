//! Fixed-point values: scale, rounding and the certified error bound.
//!
//! A stored value is `W = V + Φ` (score) or a probability (reach), times `2^fraction_bits`, as an
//! unsigned integer. The maximum over moves is exact on integers and the mean over spawns is an
//! exact integer sum and one rounding, so values do not depend on the order of evaluation.
//! `docs/dev/error-bound.md` proves the bound.

use crate::layer::Layer;
use crate::objective::Objective;
use crate::params::{Params, Precision, tile_bound_board};
use crate::rules::exponent_potential;

/// The fixed-point scale of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    fraction_bits: u32,
    /// Mean growth of the tile sum a move.
    growth: f64,
    largest_value: f64,
    last_layer: Layer,
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
        Self {
            fraction_bits,
            growth: 2.0 + 2.0 * params.spawn4.probability(),
            largest_value: largest_value as f64,
            last_layer: params.last_layer(),
        }
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

    /// A proven bound on the absolute error of any value of `layer`: half a unit in the last place
    /// for each mean that an optimal or any other policy can still expect to pass, and what printing it as f64
    /// can add.
    pub fn error_bound(self, layer: Layer) -> f64 {
        let moves_left = f64::from(self.last_layer.0.saturating_sub(layer.0)) / self.growth;
        // Printing a value as f64 rounds at most three times: the number, a mean's division, its scale.
        let printing = self.largest_value * 2.0 * f64::EPSILON;
        MEAN_ERROR_ULP * moves_left / (1u64 << self.fraction_bits) as f64 + printing
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
        let s = scale("3x3", "score", Precision::Bits32);
        assert_eq!(s.fraction_bits(), 17);
        assert!(s.error_bound(Layer(4)) <= 0.005);
        assert!(scale("3x3", "score", Precision::Bits64).error_bound(Layer(4)) <= 1e-6);
        assert_eq!(scale("4x3", "score", Precision::Bits32).fraction_bits(), 14);
        assert_eq!(scale("3x3", "reach:512", Precision::Bits32).fraction_bits(), 31);
    }
}
