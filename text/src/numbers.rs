//! Numbers as people read them: counts with separators, sizes in binary units, values in the digits that their error allows.

const SIZES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// See [`value`].
const MOST_DECIMALS: f64 = 15.0;

/// A count with separators: `1,234`.
#[must_use]
pub fn count(number: impl TryInto<u128>) -> String {
    let digits = number.try_into().unwrap_or(u128::MAX).to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// How many of a thing: `1 thread`, `4 threads`. For nouns that take an s.
#[must_use]
pub fn several(number: impl TryInto<u128>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u128::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// Bytes: `512 B`, `47.7 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    let mut unit = 0;
    // 1023.96 MiB would be shown as 1024.0 MiB.
    while amount >= 1023.95 && unit + 1 < SIZES.len() {
        amount /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{amount:.1} {}", SIZES[unit]) }
}

/// A number that is known roughly: `110`, `48.7 M`, `1.2 T`, `5.3e18`.
#[must_use]
pub fn rough(number: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M")];
    match units.iter().find(|(size, _)| number >= *size) {
        Some(_) if number >= 1e15 => format!("{number:.1e}"),
        Some((size, unit)) => format!("{:.1} {unit}", number / size),
        None => count(number as u64),
    }
}

/// A share of a whole that was counted or measured, rounded: `19.83%`.
#[must_use]
pub fn share(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// A probability in six significant digits: `0.250000`, `1.25000e-7`.
#[must_use]
pub fn probability(value: f64) -> String {
    if value >= 1e-4 || value == 0.0 { format!("{value:.6}") } else { format!("{value:.5e}") }
}

/// A mean with this number of decimals: `1,234.5`.
#[must_use]
pub fn mean(value: f64, decimals: usize) -> String {
    with_separators(&format!("{value:.decimals$}"))
}

/// A number that is off by at most `error`, with no more decimals than that allows: `5,468.487` for an error of 3.5e-3.
/// Where that would be more than 15 of them, the number is written with a power of ten.
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

/// The same with the bound: `5,468.487 (error at most 3.5e-3)`.
#[must_use]
pub fn value_with_bound(number: f64, error: f64) -> String {
    match value(number, error) {
        text if error == 0.0 => format!("{text}, exactly"),
        text => format!("{text} (error at most {})", bound(error)),
    }
}

/// A bound, in two digits, rounded upward so that it stays one: `3.5e-3`.
#[must_use]
pub fn bound(error: f64) -> String {
    let text = format!("{error:.1e}");
    let rounded: f64 = text.parse().unwrap_or(f64::INFINITY);
    // Where the nearest two digits are below it, the next ones: a unit of the second digit more.
    if rounded >= error { text } else { format!("{:.1e}", rounded + 10f64.powf(error.log10().floor() - 1.0)) }
}

/// A number in decimal digits with separators in its whole part.
#[must_use]
pub fn with_separators(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    // What is below zero by less than is shown is zero.
    let sign = if text.contains(|digit| ('1'..='9').contains(&digit)) { sign } else { "" };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.parse::<u128>().map_or_else(|_| whole.to_owned(), count);
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// Ranges of layers that follow one another joined: layers are even, so 4 to 10 and 12 to 20 are 4 to 20.
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

/// Ranges that are told one by one; of more than these the first are, and what is left is told by their number and end.
const TOLD_RANGES: usize = 4;

/// Ranges of layers: `4 to 1,020, 1,030 to 2,044`, or `none`; of many `10 to 126, 132 to 254, 260 to 382, and 126 ranges
/// more up to 16,380`.
#[must_use]
pub fn layers(ranges: &[[u32; 2]]) -> String {
    let text = |[first, last]: &[u32; 2]| match first == last {
        true => count(*first),
        false => format!("{} to {}", count(*first), count(*last)),
    };
    let texts = |ranges: &[[u32; 2]]| ranges.iter().map(text).collect::<Vec<_>>().join(", ");
    match ranges {
        [] => "none".to_owned(),
        [told @ .., [_, last]] if told.len() >= TOLD_RANGES => {
            let (first, more) = (&ranges[..TOLD_RANGES - 1], ranges.len() + 1 - TOLD_RANGES);
            format!("{}, and {} ranges more up to {}", texts(first), count(more), count(*last))
        }
        some => texts(some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_upward() {
        for (error, text) in [(3.41e-3, "3.5e-3"), (3.5e-3, "3.5e-3"), (9.96e-7, "1.0e-6"), (1.0, "1.0e0")] {
            assert_eq!(bound(error), text);
        }
        assert_eq!(value_with_bound(60.0, 0.0), "60, exactly");
        assert_eq!(value_with_bound(0.25, 1e-3), "0.250 (error at most 1.0e-3)");
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
    fn ranges_of_even_layers_that_touch_are_one() {
        let pieces = [[454, 730], [4, 452], [732, 1028], [1040, 1042], [10, 20]];
        assert_eq!(joined(pieces), [[4, 1028], [1040, 1042]]);
        assert_eq!(layers(&joined(pieces)), "4 to 1,028, 1,040 to 1,042");
        assert_eq!(layers(&[]), "none");
        assert_eq!(layers(&[[4, 4]]), "4");
        let many: Vec<[u32; 2]> = (0..1_200).map(|i| [10 * i, 10 * i + 4]).collect();
        assert_eq!(layers(&many[..4]), "0 to 4, 10 to 14, 20 to 24, 30 to 34");
        assert_eq!(layers(&many[..5]), "0 to 4, 10 to 14, 20 to 24, and 2 ranges more up to 44");
        assert_eq!(layers(&many), "0 to 4, 10 to 14, 20 to 24, and 1,197 ranges more up to 11,994");
    }
}
