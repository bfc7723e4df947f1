//! Numbers for readers: counts with separators, sizes in the user's units, and values with the digits that their error
//! allows.

/// Largest number of decimals that [`value`] prints.
const MOST_DECIMALS: f64 = 15.0;

/// Formats a count with separators: `1,234`.
#[must_use]
pub fn count(number: impl TryInto<u128>) -> String {
    let digits = number.try_into().unwrap_or(u128::MAX).to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// Formats a count with a noun: `1 thread`, `4 threads`. The plural of the noun must add an s.
#[must_use]
pub fn several(number: impl TryInto<u128>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u128::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// Formats bytes in binary units: `512 B`, `47.7 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    SizeUnits::Binary.size(bytes)
}

/// Units of printed sizes.
///
/// Units are binary by default. If a user gave a size in decimal units, this size and the sizes compared with it are
/// printed in decimal units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeUnits {
    /// Powers of 1024: `47.7 MiB`.
    Binary,
    /// Powers of 1000: `50.0 MB`.
    Decimal,
}

/// Largest number of decimals of a size that a user types.
const TYPED_DECIMALS: u32 = 2;

impl SizeUnits {
    /// Guesses the units of a size that a user gave: decimal for 20,000,000 bytes, binary for 536,870,912.
    ///
    /// Chooses the units that need fewer decimals for the size. A guess is needed because other processes do not know
    /// the units that the user typed.
    #[must_use]
    pub fn of(given_bytes: u64) -> Self {
        let decimals = |units: Self| {
            let base = units.base();
            let unit =
                (1..7).map(|power| base.pow(power)).take_while(|unit| *unit <= given_bytes.into()).last();
            let digits =
                |n: &u32| (u128::from(given_bytes) * 10_u128.pow(*n)).is_multiple_of(unit.unwrap_or(1));
            (0..=TYPED_DECIMALS).find(digits).unwrap_or(TYPED_DECIMALS + 1)
        };
        if decimals(Self::Decimal) < decimals(Self::Binary) { Self::Decimal } else { Self::Binary }
    }

    fn base(self) -> u128 {
        match self {
            Self::Binary => 1024,
            Self::Decimal => 1000,
        }
    }

    /// Formats bytes to the nearest tenth of a unit.
    #[must_use]
    pub fn size(self, bytes: u64) -> String {
        self.rounded(bytes, f64::round_ties_even)
    }

    /// Formats required bytes. Rounds up, so the printed size suffices.
    #[must_use]
    pub fn at_least(self, bytes: u64) -> String {
        self.rounded(bytes, f64::ceil)
    }

    /// Formats available bytes. Rounds down. If fewer bytes are available than required, the printed size does not
    /// exceed the result of [`at_least`](Self::at_least).
    #[must_use]
    pub fn at_most(self, bytes: u64) -> String {
        self.rounded(bytes, f64::floor)
    }

    fn rounded(self, bytes: u64, round: fn(f64) -> f64) -> String {
        let (base, names) = match self {
            Self::Binary => (1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]),
            Self::Decimal => (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB"]),
        };
        if u128::from(bytes) < self.base() {
            return format!("{bytes} B");
        }
        let (mut amount, mut unit) = (bytes as f64 / base, 0);
        // Choose the unit by the rounded amount. Otherwise 1023.96 MiB would be printed as 1024.0 MiB.
        while round(amount * 10.0) >= base * 10.0 && unit + 1 < names.len() {
            amount /= base;
            unit += 1;
        }
        format!("{:.1} {}", round(amount * 10.0) / 10.0, names[unit])
    }
}

/// Formats an approximate number: `110`, `48.7 M`, `1.2 T`, `5.3e18`.
#[must_use]
pub fn rough(number: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M")];
    match units.iter().find(|(size, _)| number >= *size) {
        Some(_) if number >= 1e15 => format!("{number:.1e}"),
        Some((size, unit)) => format!("{:.1} {unit}", number / size),
        None => count(number as u64),
    }
}

/// Formats a counted or measured share of a whole, rounded: `19.83%`.
#[must_use]
pub fn share(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// Formats a probability with six decimals, or with six significant digits below 1e-4: `0.250000`, `1.25000e-7`.
#[must_use]
pub fn probability(value: f64) -> String {
    if value >= 1e-4 || value == 0.0 { format!("{value:.6}") } else { format!("{value:.5e}") }
}

/// Formats a mean with a number of decimals: `1,234.5`.
#[must_use]
pub fn mean(value: f64, decimals: usize) -> String {
    with_separators(&format!("{value:.decimals$}"))
}

/// Formats a number with the decimals that an error of at most `error` allows: `5,468.487` for an error of 3.5e-3.
///
/// A number below 0.1 that would need more than 15 decimals is printed with a power of ten.
#[must_use]
pub fn value(value: f64, error: f64) -> String {
    let decimals = -error.log10();
    if error == 0.0 || value == 0.0 && decimals > MOST_DECIMALS {
        return with_separators(&value.to_string());
    }
    if decimals > MOST_DECIMALS && value.abs() < 0.1 {
        let digits = (value.abs() / error).log10().floor().clamp(0.0, MOST_DECIMALS) as usize;
        return format!("{value:.digits$e}");
    }
    mean(value, decimals.ceil().clamp(0.0, MOST_DECIMALS) as usize)
}

/// Formats a number as [`value`] does, and a bound on the error of the printed number.
///
/// The error of `number` is at most `error`.
///
/// The bound includes the rounding to the printed digits, so the printed number differs from the true number by at
/// most the bound. The bound is `None` if the printed number is exact. All code that prints a value with a bound uses
/// this function.
#[must_use]
pub fn value_and_bound(number: f64, error: f64) -> (String, Option<String>) {
    let text = value(number, error);
    if error == 0.0 && is_exact(&text, number) {
        return (text, None);
    }
    let printed: f64 = text.replace(',', "").parse().unwrap_or(f64::INFINITY);
    // The difference is exact, because the two numbers are close, or one of them is 0. But parsing rounds the printed
    // number.
    let rounding = (printed - number).abs() + printed.abs() * f64::EPSILON / 2.0;
    let bound = bound((error + rounding.next_up()).next_up());
    (text, Some(bound))
}

/// Formats the results of [`value_and_bound`] as one text: `5,468.487 (error at most 3.5e-3)`.
#[must_use]
pub fn value_with_bound(number: f64, error: f64) -> String {
    match value_and_bound(number, error) {
        (text, None) => format!("{text}, exactly"),
        (text, Some(bound)) => format!("{text} (error at most {bound})"),
    }
}

/// Returns whether a text has all digits of a number, not only enough digits to distinguish it from other f64 numbers.
fn is_exact(text: &str, number: f64) -> bool {
    let all = format!("{number:.1074}");
    let all = if all.contains('.') { all.trim_end_matches('0').trim_end_matches('.') } else { &all };
    with_separators(all) == text
}

/// Formats a bound with two digits: `3.5e-3`. Rounds up, so the result remains a bound.
#[must_use]
pub fn bound(error: f64) -> String {
    let text = format!("{error:.1e}");
    let rounded: f64 = text.parse().unwrap_or(f64::INFINITY);
    match text.split_once('e') {
        // Rounding to two digits gave less than the error, so raise the second digit by one.
        Some((digits, exponent)) if rounded < error => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let tenths = digits.replace('.', "").parse::<u32>().unwrap_or(99) + 1;
            if tenths == 100 {
                return format!("1.0e{}", exponent + 1);
            }
            format!("{}.{}e{exponent}", tenths / 10, tenths % 10)
        }
        _ => text,
    }
}

/// Adds separators to the whole part of a number in decimal digits.
#[must_use]
pub fn with_separators(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    // Print a negative number as zero if all its printed digits are zero.
    let sign = if text.contains(|digit| ('1'..='9').contains(&digit)) { sign } else { "" };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.parse::<u128>().map_or_else(|_| whole.to_owned(), count);
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// Joins ranges of layers that overlap or touch. Layers are even, so 4 to 10 and 12 to 20 give 4 to 20.
#[must_use]
pub fn joined(ranges: impl IntoIterator<Item = [u32; 2]>) -> Vec<[u32; 2]> {
    let mut sorted: Vec<[u32; 2]> = ranges.into_iter().collect();
    sorted.sort_unstable();
    let mut joined: Vec<[u32; 2]> = Vec::new();
    for [first, last] in sorted {
        match joined.last_mut() {
            Some(before) if first <= before[1].saturating_add(2) => before[1] = before[1].max(last),
            _ => joined.push([first, last]),
        }
    }
    joined
}

/// Largest number of ranges that [`layers`] lists completely. If there are more ranges, it lists one fewer and
/// summarises the rest by their number and end.
const LISTED_RANGES: usize = 4;

/// Formats ranges of layers: `4 to 1,020, 1,030 to 2,044`, or `none`. Long lists are shortened: `10 to 126, 132 to
/// 254, 260 to 382, and 126 more ranges up to 16,380`.
#[must_use]
pub fn layers(ranges: &[[u32; 2]]) -> String {
    let text = |[first, last]: &[u32; 2]| match first == last {
        true => count(*first),
        false => format!("{} to {}", count(*first), count(*last)),
    };
    let texts = |ranges: &[[u32; 2]]| ranges.iter().map(text).collect::<Vec<_>>().join(", ");
    match ranges {
        [] => "none".to_owned(),
        [before @ .., [_, last]] if before.len() >= LISTED_RANGES => {
            let (first, more) = (&ranges[..LISTED_RANGES - 1], ranges.len() + 1 - LISTED_RANGES);
            format!("{}, and {} more ranges up to {}", texts(first), count(more), count(*last))
        }
        some => texts(some),
    }
}

#[cfg(test)]
mod tests {
    use num_rational::BigRational;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn required_sizes_are_rounded_up_and_available_ones_down() {
        for (bytes, up, down) in [
            (0, "0 B", "0 B"),
            (1 << 20, "1.0 MiB", "1.0 MiB"),
            ((1 << 20) + 1, "1.1 MiB", "1.0 MiB"),
            ((1 << 20) - 1, "1.0 MiB", "1023.9 KiB"),
            (8_900_000_000, "8.3 GiB", "8.2 GiB"),
            (u64::MAX, "16.0 EiB", "16.0 EiB"),
        ] {
            let units = SizeUnits::Binary;
            assert_eq!(
                (units.at_least(bytes), units.at_most(bytes)),
                (up.to_owned(), down.to_owned()),
                "{bytes}"
            );
        }
    }

    /// A size typed as 20 MB is not printed as 19.1 MiB.
    #[test]
    fn given_sizes_are_printed_in_their_typed_units() {
        for (typed, text) in [
            (20_000_000, "20.0 MB"),
            (60_000_000_000, "60.0 GB"),
            (1_500_000, "1.5 MB"),
            (64_000, "64.0 kB"),
            (512 << 20, "512.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (5 << 10, "5.0 KiB"),
            (100, "100 B"),
            (0, "0 B"),
            // Sizes that a user would not type.
            (12_345_678_848, "11.5 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(SizeUnits::of(typed).size(typed), text, "{typed}");
        }
        let units = SizeUnits::of(20_000_000);
        assert_eq!(
            [units.size(5_872_026), units.at_least(36_700_160), units.at_most(999)],
            ["5.9 MB", "36.8 MB", "999 B"]
        );
        assert_eq!(units.size(999_999_999), "1.0 GB");
    }

    #[test]
    fn bounds_are_rounded_upward() {
        for (error, text) in [(3.41e-3, "3.5e-3"), (3.5e-3, "3.5e-3"), (9.96e-7, "1.0e-6"), (1.0, "1.0e0")] {
            assert_eq!(bound(error), text);
        }
        assert_eq!(bound(f64::from_bits(1e-3f64.to_bits() + 1)), "1.1e-3");
    }

    #[test]
    fn bounds_contain_the_rounding_of_the_printed_number() {
        for (number, error, text) in [
            (60.0, 0.0, "60, exactly"),
            (-0.5, 0.0, "-0.5, exactly"),
            (0.1, 0.0, "0.1 (error at most 1.2e-17)"),
            (0.25, 9e-4, "0.2500 (error at most 9.1e-4)"),
            // The interval is 2.82 to 3.04, so 2.9 is off by up to 0.14.
            (2.93, 0.11, "2.9 (error at most 1.5e-1)"),
            (0.429_569_4, 1e-16, "0.429569400000000 (error at most 1.5e-16)"),
        ] {
            assert_eq!(value_with_bound(number, error), text);
        }
    }

    /// Parses a printed number as a fraction.
    fn read_back(text: &str) -> BigRational {
        let text = text.replace(',', "");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let digits = BigRational::from_integer(format!("{whole}{fraction}").parse().unwrap());
        let exponent = exponent.parse::<i32>().unwrap() - fraction.len() as i32;
        digits * BigRational::from_integer(10.into()).pow(exponent)
    }

    /// Numbers and errors of all magnitudes.
    fn of_any_size(digits: std::ops::Range<i64>) -> impl Strategy<Value = f64> {
        (digits, -40..12i32).prop_map(|(digits, exponent)| digits as f64 * 10f64.powi(exponent))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn true_numbers_are_within_the_printed_bound(
            number in prop_oneof![of_any_size(-99_999..99_999), (-2.0..2.0f64), Just(0.0), Just(1.0)],
            error in prop_oneof![of_any_size(1..9_999), Just(0.0)],
        ) {
            let text = value_with_bound(number, error);
            let (value, bound) = match text.strip_suffix(", exactly") {
                Some(value) => (read_back(value), BigRational::from_integer(0.into())),
                None => {
                    let (value, bound) = text.split_once(" (error at most ").unwrap();
                    (read_back(value), read_back(bound.strip_suffix(')').unwrap()))
                }
            };
            let [number, error] = [number, error].map(|number| BigRational::from_float(number).unwrap());
            prop_assert!(&value - &bound <= &number - &error, "{}: below", text);
            prop_assert!(&number + &error <= &value + &bound, "{}: above", text);
        }
    }

    #[test]
    fn values_have_no_more_digits_than_their_error_allows() {
        assert_eq!(value(5_468.486_792, 3.5e-3), "5,468.487");
        assert_eq!(value(0.736_774_123, 1.1e-7), "0.7367741");
        assert_eq!(value(-1_234.6, 20.0), "-1,235");
        assert_eq!([mean(-0.0, 1), mean(-0.04, 1), mean(-0.06, 1)], ["0.0", "0.0", "-0.1"]);
        assert_eq!(value(0.0, 1e-3), "0.000");
        assert_eq!(value(7.011_191_23e-18, 3e-27), "7.011191230e-18");
        assert_eq!(value(0.0, 1e-320), "0");
        assert_eq!(value(1_234.0, 0.0), "1,234");
        assert_eq!(value(0.429_569_4, 1e-16), "0.429569400000000");
    }

    #[test]
    fn touching_ranges_of_layers_are_joined() {
        let pieces = [[454, 730], [4, 452], [732, 1028], [1040, 1042], [10, 20]];
        assert_eq!(joined(pieces), [[4, 1028], [1040, 1042]]);
        assert_eq!(layers(&joined(pieces)), "4 to 1,028, 1,040 to 1,042");
        assert_eq!(layers(&[]), "none");
        assert_eq!(layers(&[[4, 4]]), "4");
        let many: Vec<[u32; 2]> = (0..1_200).map(|i| [10 * i, 10 * i + 4]).collect();
        assert_eq!(layers(&many[..4]), "0 to 4, 10 to 14, 20 to 24, 30 to 34");
        assert_eq!(layers(&many[..5]), "0 to 4, 10 to 14, 20 to 24, and 2 more ranges up to 44");
        assert_eq!(layers(&many), "0 to 4, 10 to 14, 20 to 24, and 1,197 more ranges up to 11,994");
    }
}
