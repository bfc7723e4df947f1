//! Step to which a run rounds the values that it keeps.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::fixed::Scale;
use crate::objective::ValueUnit;
use crate::params::Game;
use crate::spawning::FloatingMean;
use crate::value::{Stored, Value};

/// Step of rounded values: a power of two, in points or of probability.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ValueStep {
    exponent: i16,
}

/// Largest step of scores. Every potential is a multiple of 4 points, so no rounding moves a value below the score
/// already made, or above the largest value.
const MOST_POINTS: ValueStep = ValueStep { exponent: 2 };

/// Largest step of probabilities.
const MOST_PROBABILITY: ValueStep = ValueStep { exponent: -1 };

/// Largest step of probabilities that serves most uses: an error of about a hundredth of a percent.
const COARSE_PROBABILITY: ValueStep = ValueStep { exponent: -12 };

/// Smallest step of floating-point values.
const LEAST_FLOATING: ValueStep = ValueStep { exponent: -64 };

/// Error of a text that is not a step.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected a number above 0 such as 0.25 or 1/4, found {0:?}")]
pub struct ParseValueStepError(String);

impl ValueStep {
    /// The step in points or of probability.
    #[must_use]
    pub fn number(self) -> f64 {
        2f64.powi(i32::from(self.exponent))
    }

    /// Half of this step.
    #[must_use]
    pub fn half(self) -> Self {
        Self { exponent: self.exponent - 1 }
    }

    /// Smallest and largest step of the values of a game. With a smaller step, rounding would change no value.
    #[must_use]
    pub fn limits(game: &Game) -> [Self; 2] {
        let least = match Scale::new(game).fraction_bits() {
            Some(bits) => Self { exponent: 1 - bits as i16 },
            None => LEAST_FLOATING,
        };
        let is_probability = game.objective().unit() == ValueUnit::Probability;
        [least, if is_probability { MOST_PROBABILITY } else { MOST_POINTS }]
    }

    /// Largest step that a program may choose for a game.
    #[must_use]
    pub fn coarse(game: &Game) -> Self {
        match game.objective().unit() {
            ValueUnit::Points => MOST_POINTS,
            ValueUnit::Probability => COARSE_PROBABILITY,
        }
    }
}

/// Formats the step as a whole number or as a fraction.
impl fmt::Display for ValueStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = 2f64.powi(i32::from(self.exponent).abs());
        if self.exponent < 0 { write!(f, "1/{power}") } else { write!(f, "{power}") }
    }
}

/// Parses a decimal or a fraction, and rounds it down to a power of two.
impl FromStr for ValueStep {
    type Err = ParseValueStepError;

    fn from_str(text: &str) -> Result<Self, ParseValueStepError> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let parsed = match text.split_once('/') {
            Some((a, b)) => number(a).zip(number(b)).map(|(a, b)| a / b),
            None => number(text),
        };
        let normal = parsed.filter(|number| *number > 0.0 && number.is_normal());
        let bits = normal.ok_or_else(|| ParseValueStepError(text.to_owned()))?.to_bits();
        Ok(Self { exponent: (bits >> 52) as i16 - 1023 })
    }
}

impl TryFrom<String> for ValueStep {
    type Error = ParseValueStepError;

    /// Parses exactly the output of `Display`.
    fn try_from(text: String) -> Result<Self, ParseValueStepError> {
        let step: Self = text.parse()?;
        if step.to_string() == text { Ok(step) } else { Err(ParseValueStepError(text)) }
    }
}

impl From<ValueStep> for String {
    fn from(step: ValueStep) -> String {
        step.to_string()
    }
}

/// Rounding of stored values to the nearest multiple of a step; a tie is rounded upward.
#[derive(Clone, Copy, Debug)]
pub struct Rounding(Form);

#[derive(Clone, Copy, Debug)]
enum Form {
    /// Half of a step, and the bits of a multiple of the step.
    Fixed {
        half: u64,
        mask: u64,
    },
    Floating {
        step: f64,
        floating: FloatingMean,
    },
}

impl Rounding {
    /// The rounding of the values of a game to a step within the [limits](ValueStep::limits).
    #[must_use]
    pub fn new(game: &Game, step: ValueStep) -> Self {
        let scale = Scale::new(game);
        Self(match (scale.fraction_bits(), scale.floating()) {
            (None, Some(floating)) => Form::Floating { step: step.number(), floating },
            (bits, _) => {
                let shift = (i32::from(step.exponent) + bits.unwrap_or(0) as i32).clamp(1, 62);
                Form::Fixed { half: 1 << (shift - 1), mask: u64::MAX << shift }
            }
        })
    }

    /// Rounds values. Cost: below a nanosecond for each value in fixed point.
    pub fn round<V: Value>(self, values: &mut [V]) {
        match self.0 {
            Form::Fixed { half, mask } => values
                .iter_mut()
                .for_each(|value| *value = V::of_stored(Stored((value.stored().0 + half) & mask))),
            // The quotient and the product are exact, because the step is a power of two.
            Form::Floating { step, floating } => values.iter_mut().for_each(|value| {
                *value = floating.of_number((floating.number(*value) / step).round() * step);
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Params, Precision};

    #[test]
    fn steps_are_rounded_down_to_powers_of_two() {
        for (text, shown) in [
            ("1", "1"),
            ("0.3", "1/4"),
            ("1/4", "1/4"),
            ("0.249", "1/8"),
            ("7.99", "4"),
            ("1e-3", "1/1024"),
            ("5000", "4096"),
            (".5", "1/2"),
        ] {
            let step: ValueStep = text.parse().unwrap();
            assert_eq!(step.to_string(), shown, "{text}");
            assert_eq!(ValueStep::try_from(shown.to_owned()), Ok(step));
        }
        for wrong in ["0", "-1", "-0", "nan", "inf", "x", "", "1/0", "0/1", "1/-4", "-1/4", "1e-400", "1/2/3"]
        {
            assert_eq!(wrong.parse::<ValueStep>(), Err(ParseValueStepError(wrong.to_owned())), "{wrong}");
        }
        for wrong in ["0.25", "1/3", "3", "2/8"] {
            assert!(ValueStep::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    fn rounded<V: Value>(game: &Game, step: &str, value: V) -> V {
        let mut values = [value];
        Rounding::new(game, step.parse().unwrap()).round(&mut values);
        values[0]
    }

    #[test]
    fn values_are_rounded_to_the_nearest_multiple() {
        let score = Params::small("3x3");
        let unit = 1u32 << 17;
        for (value, wanted) in [
            (0, 0),
            (unit / 8, unit / 4),
            (unit / 8 - 1, 0),
            (5 * unit + unit / 8 - 1, 5 * unit),
            (5 * unit + unit / 8, 5 * unit + unit / 4),
        ] {
            assert_eq!(rounded(score.game(), "0.25", value), wanted, "{value}");
        }
        let largest = 18_404u32 << 17;
        let [_, most] = ValueStep::limits(score.game());
        assert_eq!(rounded(score.game(), &most.to_string(), largest), largest);
        let reach = Params::usual("3x3", "reach:512").build().unwrap();
        assert_eq!(rounded(reach.game(), "1/2", 1u32 << 31), 1 << 31);
        assert_eq!(rounded(reach.game(), "1/2", 0u32), 0);
    }

    #[test]
    fn floating_values_are_rounded_by_their_numbers() {
        for (objective, discount, losses) in [("lose:64", "1", true), ("reach:64", "0.95", false)] {
            for precision in [Precision::Bits32, Precision::Bits64] {
                let params = Params::usual("3x3", objective).discount(discount.parse().unwrap());
                let params = params.precision(precision).build().unwrap();
                let floating = FloatingMean::new(losses, params.game().discount());
                for (number, wanted) in [(0.0, 0.0), (1.0, 1.0), (0.3, 0.25), (1e-9, 0.0), (0.125, 0.25)] {
                    let found = match precision {
                        Precision::Bits32 => {
                            let value: u32 = floating.of_number(number);
                            floating.number(rounded(params.game(), "1/4", value))
                        }
                        Precision::Bits64 => {
                            let value: u64 = floating.of_number(number);
                            floating.number(rounded(params.game(), "1/4", value))
                        }
                    };
                    assert_eq!(found, wanted, "{objective} {number}");
                }
            }
        }
    }
}
