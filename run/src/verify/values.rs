//! The stored form of values, and the values of afterstates, implemented independently from `docs/dev/format.md`.

use exact2048_game::{Discount, Game, Objective, Precision, Spawner};

/// Exponents of the tiles that spawn: a 2 and a 4.
pub const SPAWNS: [u8; 2] = [1, 2];

/// For each kind of spawned tile, the values of the states after the spawn, one for each empty cell.
pub type SpawnedValues = [Vec<u64>; SPAWNS.len()];

/// The form of a run's values.
#[derive(Clone, Debug)]
pub struct ValueForm {
    form: Form,
    precision: Precision,
    /// The weight of each kind of spawned tile.
    weights: [u32; SPAWNS.len()],
    worst: bool,
    discount: Discount,
    /// The step to which stored values are rounded.
    step: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    /// Multiples of 2^-fraction_bits. `scores` is true for the objective score.
    Fixed { fraction_bits: u32, scores: bool },
    /// The bits of a floating-point number or, with `losses`, the bits of 1 minus those bits.
    Floating { losses: bool },
}

impl ValueForm {
    /// The form of the values of a game. `most` is the potential of the heaviest board within the bounds of the game.
    pub fn new(game: &Game, most: u64) -> Self {
        let losses = matches!(game.objective(), Objective::Lose { .. });
        let scores = game.objective() == Objective::Score;
        let largest = if scores { most } else { 1 };
        let form = if losses || game.discount() != Discount::NONE {
            Form::Floating { losses }
        } else {
            Form::Fixed { fraction_bits: fraction_bits(game, largest), scores }
        };
        Self {
            form,
            precision: game.precision(),
            weights: [game.spawn4().weight2(), game.spawn4().weight4()],
            worst: game.spawner() == Spawner::Worst,
            discount: game.discount(),
            step: None,
        }
    }

    /// The form of values that are rounded to multiples of `step` when they are stored.
    pub fn with_step(self, step: Option<f64>) -> Self {
        Self { step, ..self }
    }

    /// Whether stored values are rounded.
    pub fn is_rounded(&self) -> bool {
        self.step.is_some()
    }

    /// The stored form of a value: the nearest multiple of the step, and the larger one of two.
    pub fn rounded(&self, value: u64) -> u64 {
        let Some(step) = self.step else { return value };
        match self.form {
            Form::Fixed { fraction_bits, .. } => {
                let step = units(step, fraction_bits);
                (value + step / 2) / step * step
            }
            Form::Floating { .. } => {
                let steps = self.read(value) / step;
                // Larger quotients have no fraction.
                let is_whole = steps >= 2f64.powi(52);
                self.write(if is_whole { steps } else { (steps + 0.5).floor() } * step)
            }
        }
    }

    /// Whether a stored value is as near to a value computed from rounded values as rounding allows.
    ///
    /// Half of the step is the error of the stored value, and another half that of the rounded values, because means and
    /// maxima do not enlarge errors. Each of the layers in between adds at most one unit of rounding its means.
    pub fn is_near(&self, stored: u64, computed: u64, layers: u32) -> bool {
        let Some(step) = self.step else { return stored == computed };
        match self.form {
            Form::Fixed { fraction_bits, .. } => {
                stored.abs_diff(computed) <= units(step, fraction_bits) + u64::from(layers)
            }
            Form::Floating { .. } => {
                let (stored, computed) = (self.read(stored), self.read(computed));
                let of_a_mean =
                    if self.precision == Precision::Bits32 { 2f64.powi(-22) } else { 2f64.powi(-43) };
                (stored - computed).abs() <= step + f64::from(layers) * of_a_mean * stored.max(computed)
            }
        }
    }

    /// The term that these points add to a value; 0 if values are not scores.
    pub fn score(&self, points: u64) -> u64 {
        match self.form {
            Form::Fixed { fraction_bits, scores: true } => points << fraction_bits,
            _ => 0,
        }
    }

    /// The term for the points of building this tile from 2s. The player does not score these points if the tile
    /// spawned.
    fn unscored(&self, tile: u8) -> u64 {
        self.score(u64::from(tile - 1) << tile)
    }

    /// The value of an afterstate that is won.
    pub fn won(&self) -> u64 {
        match self.form {
            Form::Fixed { fraction_bits, .. } => 1 << fraction_bits,
            Form::Floating { losses: true } => self.write(0.0),
            Form::Floating { losses: false } => {
                self.write(f64::from(self.discount.numerator()) / f64::from(self.discount.denominator()))
            }
        }
    }

    /// A value as text for messages.
    pub fn text(&self, value: u64) -> String {
        match self.form {
            Form::Fixed { fraction_bits, .. } => format!("{value} in units of 2^-{fraction_bits}"),
            Form::Floating { .. } => format!("{value}, the bits of {:e}", self.read(value)),
        }
    }

    /// The value of an afterstate, from the values of the states after its spawns.
    pub fn of_spawned(&self, spawned: &SpawnedValues) -> u64 {
        match (self.form, self.worst) {
            (_, true) => self.least(spawned),
            (Form::Fixed { .. }, false) => self.rounded_mean(spawned),
            (Form::Floating { .. }, false) => {
                let sum =
                    |values: &[u64]| coarse_sum(&values.iter().map(|&v| self.read(v)).collect::<Vec<_>>());
                let weighted =
                    spawned.iter().zip(self.weights).map(|(of, weight)| sum(of) * f64::from(weight));
                let sum = weighted.reduce(|sum, product| sum + product).unwrap_or_default();
                let count = f64::from(self.weights.iter().sum::<u32>()) * spawned[0].len() as f64;
                self.write(self.discounted(sum, count))
            }
        }
    }

    fn discounted(&self, number: f64, count: f64) -> f64 {
        let (numerator, denominator) = (self.discount.numerator(), self.discount.denominator());
        number * f64::from(numerator) / (f64::from(denominator) * count)
    }

    /// The least value of the possible spawns. A spawned 4 counts 4 points less, because the player did not build the 4
    /// from 2s.
    fn least(&self, spawned: &SpawnedValues) -> u64 {
        let kinds = spawned.iter().zip(SPAWNS).zip(self.weights).filter(|&(_, weight)| weight > 0);
        let scored = kinds.flat_map(|((values, tile), _)| {
            values.iter().map(move |&value| value.saturating_sub(self.unscored(tile)))
        });
        let least = scored.min().unwrap_or_default();
        match self.form {
            Form::Fixed { .. } => least,
            Form::Floating { .. } => self.write(self.discounted(self.read(least), 1.0)),
        }
    }

    /// The weighted mean of the values, rounded to nearest.
    ///
    /// A spawned 4 counts 4 points less, because the player did not build the 4 from 2s.
    fn rounded_mean(&self, spawned: &SpawnedValues) -> u64 {
        let empty = spawned[0].len() as u64;
        let scored = |(values, tile): (&Vec<u64>, u8)| {
            let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
            sum.saturating_sub(u128::from(self.unscored(tile)) * u128::from(empty))
        };
        let kinds = spawned.iter().zip(SPAWNS).map(scored).zip(self.weights);
        let sum = kinds.map(|(sum, weight)| u128::from(weight) * sum).sum();
        let count = u64::from(self.weights.iter().sum::<u32>()) * empty;
        match self.precision {
            Precision::Bits32 => to_nearest_32(sum, count),
            Precision::Bits64 => to_nearest_64(sum, count),
        }
    }

    /// The number of a stored floating-point value.
    fn read(&self, bits: u64) -> f64 {
        let losses = self.form == Form::Floating { losses: true };
        match self.precision {
            Precision::Bits32 => {
                let bits = bits as u32;
                f64::from(f32::from_bits(if losses { 1f32.to_bits().wrapping_sub(bits) } else { bits }))
            }
            Precision::Bits64 => {
                f64::from_bits(if losses { 1f64.to_bits().wrapping_sub(bits) } else { bits })
            }
        }
    }

    /// The stored floating-point value of a number.
    fn write(&self, number: f64) -> u64 {
        let losses = self.form == Form::Floating { losses: true };
        let (bits, one) = match self.precision {
            Precision::Bits32 => (u64::from((number as f32).to_bits()), u64::from(1f32.to_bits())),
            Precision::Bits64 => (number.to_bits(), 1f64.to_bits()),
        };
        // The subtraction may wrap around, because damaged values may give any number.
        if losses { one.wrapping_sub(bits) } else { bits }
    }
}

/// Sum of non-negative numbers, each rounded to a multiple of 2^(e − 48).
///
/// 2^e is the largest power of two up to the largest number. A tie is rounded to the even multiple.
fn coarse_sum(numbers: &[f64]) -> f64 {
    const DIGITS: u32 = 52;
    let exponent = |number: f64| (number.to_bits() >> DIGITS) as u32;
    let most = numbers.iter().map(|&number| exponent(number)).max().unwrap_or_default();
    if most == 0 {
        // All numbers are subnormal, so their bits count multiples of the smallest positive number.
        return f64::from_bits(numbers.iter().map(|number| number.to_bits()).sum());
    }
    let rounded = |&number: &f64| {
        let (own, digits) = (exponent(number), number.to_bits() & ((1 << DIGITS) - 1));
        let digits = if own == 0 { digits } else { digits | 1 << DIGITS };
        let drop = most - own.max(1) + 4;
        if drop > DIGITS + 2 {
            return 0;
        }
        let (whole, rest, half) = (digits >> drop, digits & ((1 << drop) - 1), 1 << (drop - 1));
        whole + u64::from(rest > half || (rest == half && whole & 1 == 1))
    };
    let sum: u64 = numbers.iter().map(rounded).sum();
    // Two multiplications, because the unit may be too small for a normal number.
    let largest_power = f64::from_bits(u64::from(most) << DIGITS);
    sum as f64 * 2f64.powi(-48) * largest_power
}

/// Rounds `sum / count` to the nearest integer, and a tie to the larger integer.
fn to_nearest_64(sum: u128, count: u64) -> u64 {
    // 64 bits are almost always enough, and a division of 64 bits is much faster.
    let (whole, rest) = match u64::try_from(sum) {
        Ok(sum) => (sum / count, sum % count),
        Err(_) => ((sum / u128::from(count)) as u64, (sum % u128::from(count)) as u64),
    };
    whole.wrapping_add(u64::from(2 * rest >= count))
}

/// Rounds `sum / count` to the nearest integer, with ties as in IEEE arithmetic.
///
/// The solver multiplies by the reciprocal of `count`, and rounds a tie to the even integer. The error of the product
/// is less than 2^-20, so this function computes the product only within 2^-16 of a tie.
fn to_nearest_32(sum: u128, count: u64) -> u64 {
    let near_tie = |rest: u64| (2 * rest).abs_diff(count) <= count >> 16;
    match u64::try_from(sum) {
        Ok(sum) if near_tie(sum % count) => (sum as f64 * (1.0 / count as f64)).round_ties_even() as u64,
        _ => to_nearest_64(sum, count),
    }
}

/// A step in units of fixed-point values.
fn units(step: f64, fraction_bits: u32) -> u64 {
    ((step * 2f64.powi(fraction_bits as i32)) as u64).max(1)
}

/// The number of bits after the binary point.
///
/// With 32 bits per value, these are all bits that the largest value does not need. With 64 bits, they are fewer,
/// because the sum of the weights of all spawns needs some bits, and rounding needs one.
fn fraction_bits(game: &Game, largest: u64) -> u32 {
    let digits = |n: u64| u64::BITS - n.leading_zeros();
    match game.precision() {
        Precision::Bits32 => 32 - digits(largest),
        Precision::Bits64 => {
            let weights = 2 * u64::from(game.spawn4().denominator()) * game.board().cells() as u64;
            64 - digits(largest) - digits(weights)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Params;
    use exact2048_game::backup::Backup;
    use exact2048_game::value::Stored;

    fn params(objective: &str, precision: Precision) -> Params {
        Params::usual("3x3", objective).precision(precision).build().unwrap()
    }

    #[test]
    fn rounds_to_nearest() {
        for (sum, count, wanted) in
            [(10, 4, [2, 3]), (14, 4, [4, 4]), (9, 4, [2, 2]), (11, 4, [3, 3]), (0, 7, [0, 0])]
        {
            assert_eq!(to_nearest_32(sum, count), wanted[0], "{sum}/{count}");
            assert_eq!(to_nearest_64(sum, count), wanted[1], "{sum}/{count}");
        }
        assert_eq!(to_nearest_64(3 << 64, 6), 1 << 63);
    }

    #[test]
    fn sums_keep_significant_digits() {
        assert_eq!(coarse_sum(&[1.0, 0.5, 2f64.powi(-60)]), 1.5);
        assert_eq!(coarse_sum(&[1.0, 3.0 * 2f64.powi(-49)]), 1.0 + 2f64.powi(-47), "a tie");
        assert_eq!(coarse_sum(&[1.0, 2f64.powi(-49)]), 1.0, "a tie");
        assert_eq!(coarse_sum(&[f64::MIN_POSITIVE, f64::from_bits(16)]).to_bits(), (1 << 52) + 16);
        assert_eq!(coarse_sum(&[f64::from_bits(3); 4]).to_bits(), 12);
        assert_eq!(coarse_sum(&[0.0, 0.0]), 0.0);
    }

    /// The arithmetic of the verifier and that of the solver give the same bits for values of all sizes.
    #[test]
    fn values_of_spawns_are_those_of_the_solver() {
        let mut seed = 7u64;
        let mut next = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 16
        };
        let jobs =
            [("lose:64", "1", "random"), ("reach:64", "19/20", "random"), ("reach:64", "0.99", "worst")];
        for (objective, discount, spawner) in jobs.into_iter().chain([("reach:64", "1", "worst")]) {
            for precision in [Precision::Bits32, Precision::Bits64] {
                let params = params(objective, precision).to_builder().discount(discount.parse().unwrap());
                let params = params.spawner(spawner.parse().unwrap()).build().unwrap();
                let (values, backup) = (ValueForm::new(params.game(), 0), Backup::new(params.game()));
                let (one, wide) = match precision {
                    Precision::Bits32 => (u64::from(1f32.to_bits()), false),
                    Precision::Bits64 => (1f64.to_bits(), true),
                };
                for round in 0..3_000 {
                    // Most values are near one another, some are tiny, and some are 0 or 1.
                    let mut list = || -> Vec<u64> {
                        let value = |_| match next() % 8 {
                            0 => 0,
                            1 => one,
                            2 => next() % one,
                            _ => one - next() % (one / 64),
                        };
                        (0..round % 8 + 1).map(value).collect()
                    };
                    let spawned = SPAWNS.map(|_| list());
                    let of_solver =
                        spawned.each_ref().map(|of| of.iter().copied().map(Stored).collect::<Vec<_>>());
                    let of_solver = of_solver.each_ref().map(Vec::as_slice);
                    let Stored(wanted) = match wide {
                        true => backup.of_spawns::<u64>(of_solver),
                        false => backup.of_spawns::<u32>(of_solver),
                    };
                    assert_eq!(values.of_spawned(&spawned), wanted, "{spawned:?} {params:?}");
                }
            }
        }
    }
}
