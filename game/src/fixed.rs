//! Values as integers: scale, rounding and the proven error bound.
//!
//! A stored value is `W = V + Φ` (score) or a probability (reach), times `2^fraction_bits`, as an unsigned integer. The
//! maximum over moves is exact on integers. The mean over spawns is an exact integer sum with one rounding. So values
//! do not depend on the order of evaluation.
//!
//! Discounted wins and probabilities of losing may be many orders of magnitude below 1, so they are floating-point
//! numbers. Non-negative numbers have the same order as their IEEE 754 bits, so these bits are the stored integer. A
//! lower probability of losing is better, so its stored integer is the bits of 1 minus its own bits.
//!
//! `docs/dev/error-bound.md` proves the bounds.

use crate::board::exponent_potential;
use crate::discount::Discount;
use crate::layer::Layer;
use crate::move_bound::MoveBound;
use crate::objective::{Objective, Spawner, ValueUnit};
use crate::params::{Game, Precision};
use crate::spawning::FloatingMean;
use crate::value::{FutureValue, Stored, Value};

/// Number format of the values of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    form: Form,
    last_layer: Layer,
    /// Largest error of rounding a value when it was stored.
    stored_error: f64,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Fixed(Fixed),
    Floating { precision: Precision, floating: FloatingMean, won: Stored },
}

#[derive(Clone, Copy, Debug)]
struct Fixed {
    fraction_bits: u32,
    scores: bool,
    largest_value: f64,
    /// Bound on the remaining moves; `None` if values are never rounded.
    move_bound: Option<MoveBound>,
}

/// Rounding error of a mean in units in the last place. The error is one half, plus the error of the f64 product that
/// the 32-bit kernel rounds.
const MEAN_ERROR_ULP: f64 = 0.5 + 1.0 / (1 << 16) as f64;

/// Relative error that a move can add to a floating-point value, by precision.
fn move_error(precision: Precision) -> f64 {
    let floating = 2f64.powi(-45);
    match precision {
        Precision::Bits32 => 2f64.powi(-24) + 2.0 * floating,
        Precision::Bits64 => floating,
    }
}

/// Absolute error that a move can add to values below the smallest normal number, by precision.
fn underflow(precision: Precision) -> f64 {
    match precision {
        Precision::Bits32 => 2f64.powi(-148),
        Precision::Bits64 => 2f64.powi(-1068),
    }
}

/// Relative error that a mean of fewer than 2^11 numbers in f64 can add.
const SUM_ERROR: f64 = f64::EPSILON * 2048.0;

impl Scale {
    /// Creates the number format of the values of a game.
    pub fn new(game: &Game) -> Self {
        let losses = matches!(game.objective(), Objective::Lose { .. });
        let form = if losses || game.discount() != Discount::NONE {
            let (precision, discount) = (game.precision(), game.discount());
            let floating = FloatingMean::new(losses, discount);
            // The winning move is discounted like every other move.
            let won = discount.factor();
            let number = if losses { 0.0 } else { won };
            let won = match precision {
                Precision::Bits32 => floating.of_number::<u32>(number).stored(),
                Precision::Bits64 => floating.of_number::<u64>(number).stored(),
            };
            Form::Floating { precision, floating, won }
        } else {
            Form::Fixed(Fixed::new(game))
        };
        Self { form, last_layer: game.last_layer(), stored_error: 0.0 }
    }

    /// Returns the number format of values that are rounded to a [step](crate::value_step). Only error bounds differ.
    pub(crate) fn rounded(self, step: f64) -> Self {
        // Without chance and discount, all values are multiples of the largest step.
        let is_exact = matches!(self.form, Form::Fixed(Fixed { move_bound: None, .. }));
        Self { stored_error: if is_exact { 0.0 } else { step / 2.0 }, ..self }
    }

    /// Number of bits after the binary point; `None` if values are floating-point numbers.
    pub fn fraction_bits(self) -> Option<u32> {
        match self.form {
            Form::Fixed(fixed) => Some(fixed.fraction_bits),
            Form::Floating { .. } => None,
        }
    }

    /// Arithmetic of floating-point values; `None` if values are fixed-point numbers.
    pub(crate) fn floating(self) -> Option<FloatingMean> {
        match self.form {
            Form::Fixed(_) => None,
            Form::Floating { floating, .. } => Some(floating),
        }
    }

    /// Converts points of the score to a stored value; 0 if values are not scores.
    #[inline]
    pub fn points(self, points: u64) -> Stored {
        match self.form {
            Form::Fixed(Fixed { fraction_bits, scores: true, .. }) => Stored(points << fraction_bits),
            _ => Stored(0),
        }
    }

    /// Stored value of an afterstate that wins.
    pub fn won(self) -> Stored {
        match self.form {
            Form::Fixed(fixed) => Stored(1 << fixed.fraction_bits),
            Form::Floating { won, .. } => won,
        }
    }

    /// Converts a future value to the number that it represents.
    #[inline]
    pub fn number(self, FutureValue(bits): FutureValue) -> f64 {
        match self.form {
            Form::Fixed(fixed) => bits as f64 / (1u64 << fixed.fraction_bits) as f64,
            Form::Floating { precision: Precision::Bits32, floating, .. } => floating.number(bits as u32),
            Form::Floating { precision: Precision::Bits64, floating, .. } => floating.number(bits),
        }
    }

    /// Smallest difference between two different fixed-point values; 0 in floating point.
    pub fn last_place(self) -> f64 {
        match self.form {
            Form::Fixed(_) => self.number(FutureValue(1)),
            Form::Floating { .. } => 0.0,
        }
    }

    /// Largest difference between two numbers that may be a rounding of equal values. If stored values are rounded, this
    /// is their step; otherwise it is the [last place](Self::last_place).
    pub fn resolution(self) -> f64 {
        self.last_place().max(2.0 * self.stored_error)
    }

    /// Weighted mean of at most 2^10 values, whose weights sum to at most 2^60.
    pub fn mean(self, of: impl Iterator<Item = (FutureValue, u64)>) -> f64 {
        match self.form {
            Form::Fixed(fixed) => {
                let add = |(sum, weights): (u128, u64), (FutureValue(bits), weight)| {
                    (sum + u128::from(bits) * u128::from(weight), weights + weight)
                };
                let (sum, weights) = of.fold((0, 0), add);
                sum as f64 / weights as f64 / (1u64 << fixed.fraction_bits) as f64
            }
            Form::Floating { .. } => {
                let add = |(sum, weights): (f64, f64), (value, weight)| {
                    (sum + self.number(value) * weight as f64, weights + weight as f64)
                };
                let (sum, weights) = of.fold((0.0, 0.0), add);
                sum / weights
            }
        }
    }

    /// Returns a proven bound on the absolute error of the printed number of a stored value of `layer`.
    ///
    /// In fixed point, the bound is half a unit in the last place times the largest expected number of remaining means
    /// under any policy. The error of printing as f64 is added. In floating point the bound is proportional to the
    /// value. If stored values are rounded, the bound adds half of their step.
    pub fn error_bound(self, layer: Layer, Stored(bits): Stored) -> f64 {
        // The unrounded value, from which the other errors follow, may be larger.
        let value = self.number(FutureValue(bits)) + self.stored_error;
        let of_means = match self.form {
            Form::Fixed(Fixed { move_bound: None, .. }) => 0.0,
            Form::Fixed(Fixed { fraction_bits, move_bound: Some(move_bound), largest_value, .. }) => {
                let of_a_mean = MEAN_ERROR_ULP / (1u64 << fraction_bits) as f64;
                // Printing a value as f64 rounds at most three times: the number, the division of a mean, the scale.
                let printing = largest_value * 2.0 * f64::EPSILON;
                of_a_mean * move_bound.most(layer, value, of_a_mean) + printing
            }
            Form::Floating { precision, .. } => {
                let rise = self.last_layer.0.saturating_sub(layer.0);
                // Count one more move, because the last move may win without a spawn.
                let moves = f64::from(rise / Layer::STEP + 1);
                let relative = moves * move_error(precision);
                value * (relative / (1.0 - relative) + SUM_ERROR) + moves * underflow(precision)
            }
        };
        of_means + self.stored_error
    }
}

impl Fixed {
    fn new(game: &Game) -> Self {
        let scores = game.objective().unit() == ValueUnit::Points;
        let largest_value =
            if scores { game.tile_bound_board().map(exponent_potential).sum::<u64>() } else { 1 };
        let integer_bits = u64::BITS - largest_value.leading_zeros();
        let fraction_bits = match game.precision() {
            // The largest value itself must fit, so a power of two leaves one bit unused.
            Precision::Bits32 => u32::BITS - integer_bits,
            Precision::Bits64 => {
                // The sum over spawns in all cells must fit in 64 bits, with a margin for rounding.
                let weights = u64::from(game.spawn4().denominator()) * game.cells() as u64 * 2;
                u64::BITS - integer_bits - (u64::BITS - weights.leading_zeros())
            }
        };
        let move_bound = (game.spawner() == Spawner::Random).then(|| MoveBound::new(game));
        Self { fraction_bits, scores, largest_value: largest_value as f64, move_bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::params::Params;

    fn scale(board: &str, objective: &str, precision: Precision) -> Scale {
        Scale::new(Params::usual(board, objective).precision(precision).build().unwrap().game())
    }

    #[test]
    fn bounds_meet_the_documented_limits() {
        let bound = |board, precision, value| {
            let s = scale(board, "score", precision);
            (s.fraction_bits(), s.error_bound(Layer(4), s.points(value)))
        };
        let (bits, error) = bound("3x3", Precision::Bits32, 5_469);
        assert!(bits == Some(17) && error <= 0.0016, "{error}");
        let (bits, error) = bound("4x3", Precision::Bits32, 50_725);
        assert!(bits == Some(14) && error <= 0.081, "{error}");
        let (bits, error) = bound("4x3", Precision::Bits64, 50_725);
        assert!(bits == Some(38) && error <= 5e-9, "{error}");
        assert_eq!(scale("3x3", "reach:512", Precision::Bits32).fraction_bits(), Some(31));
    }

    /// A probability of losing of 7e-18 has at least eight correct digits. In 64-bit fixed point it would have none.
    #[test]
    fn bounds_of_floating_values_are_relative() {
        let s = scale("3x3", "lose:64", Precision::Bits64);
        assert_eq!(s.fraction_bits(), None);
        let bits = 1f64.to_bits() - 7e-18f64.to_bits();
        assert!(s.number(FutureValue(bits)) == 7e-18 && s.error_bound(Layer(4), Stored(bits)) <= 7e-27);
        let narrow = scale("3x3", "lose:64", Precision::Bits32);
        let bits = u64::from(1f32.to_bits() - 7e-18f32.to_bits());
        assert!(narrow.error_bound(Layer(4), Stored(bits)) <= 1e-22);
        let reach = scale("3x3", "reach:64", Precision::Bits64);
        assert!(reach.error_bound(Layer(4), reach.won()) > 7e-18);
    }

    /// The better value is the larger integer for every objective.
    #[test]
    fn integers_are_in_the_order_of_preference() {
        for precision in [Precision::Bits32, Precision::Bits64] {
            let lose = scale("3x3", "lose:64", precision);
            let (number, Stored(won)) = (|bits| lose.number(FutureValue(bits)), lose.won());
            assert_eq!((number(won), number(0)), (0.0, 1.0));
            assert!(number(1) < 1.0 && number(won - 1) > 0.0);
            let reach = scale("3x3", "reach:64", precision);
            assert_eq!(
                [reach.won(), Stored(0)].map(|stored| reach.number(stored.future_value(Stored(0)))),
                [1.0, 0.0]
            );
        }
    }
}
