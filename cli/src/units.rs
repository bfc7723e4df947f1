//! Numbers and units for people, in one style for all commands.
//!
//! Counts have separators (`48,713,519`). Sizes have binary units (`8.3 GiB`) or the units that the user typed
//! ([`SizeUnits`]). Rates have a decimal prefix (`13.0 M/s`), and times at most two units (`2 min 5 s`). Programs read the
//! output of `--json` instead. It has plain numbers in bytes and seconds.

pub use exact2048_text::numbers::{
    SizeUnits, bound, count, joined, layers, mean, probability, rough, several, share, size, value,
    value_and_bound, value_with_bound, with_separators,
};

/// A rate per second: `120/s`, `953 k/s`, `13.0 M/s`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 999.5e6 => format!("{:.1} G/s", r / 1e9),
        r if r >= 999.5e3 => format!("{:.1} M/s", r / 1e6),
        r if r >= 999.5 => format!("{:.0} k/s", r / 1e3),
        r => format!("{r:.0}/s"),
    }
}

/// A measured time: `0.76 s`, `12.3 s`, `2 min 5 s`, `3 h 4 min`.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 59.95 => format!("{s:.1} s"),
        s => about(s),
    }
}

/// An estimated time in whole units: `24 s`, `2 min 5 s`, `3 h 4 min`, `5 days 3 h`.
pub fn about(seconds: f64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "day"), (3_600, "h"), (60, "min"), (1, "s")];
    // Round to the smaller of the two printed units.
    let last = match seconds {
        s if s < 3_599.5 => 1,
        s if s < 86_370.0 => 60,
        _ => 3_600,
    };
    let whole = (seconds / last as f64).round() as u64 * last;
    let name = |n: u64, unit: &str| if unit == "day" { several(n, unit) } else { format!("{n} {unit}") };
    let mut rest = whole;
    let mut words = Vec::new();
    for (length, unit) in UNITS {
        if rest >= length {
            words.push(name(rest / length, unit));
            rest %= length;
        }
    }
    if words.is_empty() { "0 s".to_owned() } else { words.join(" ") }
}

/// A share of a whole: `19.8%`. Rounds down, so only a complete whole is 100%.
pub fn percent(share: f64) -> String {
    let shown = (share * 1000.0).floor() / 10.0;
    format!("{:.1}%", shown.clamp(0.0, 100.0))
}

/// A mean with half the width of its confidence interval: `1,234.5 ± 6.7`.
pub fn interval(value: f64, half_width: f64, decimals: usize) -> String {
    if half_width.is_nan() {
        return mean(value, decimals);
    }
    format!("{} ± {}", mean(value, decimals), mean(half_width, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_binary_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (50_000_000, "47.7 MiB"),
            (7_538_804 << 20, "7.2 TiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
        for (bytes, text) in [((58 << 20) + 1, "58.1 MiB"), (58 << 20, "58.0 MiB"), (1025, "1.1 KiB")] {
            assert_eq!(SizeUnits::Binary.at_least(bytes), text, "{bytes}");
            let back: bytesize::ByteSize = text.parse().unwrap_or_default();
            assert!(back.as_u64() >= bytes, "{text} is less than {bytes}");
        }
        // Sizes in decimal units are printed in a form that users can type.
        for text in ["64.0 kB", "20.0 MB", "1.5 GB"] {
            let typed: bytesize::ByteSize = text.parse().unwrap_or_default();
            assert_eq!(SizeUnits::of(typed.as_u64()).size(typed.as_u64()), text);
        }
    }

    #[test]
    fn times_have_at_most_two_units() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (59.4, "59 s"),
            (59.6, "1 min"),
            (125.2, "2 min 5 s"),
            (3_599.6, "1 h"),
            (11_040.0, "3 h 4 min"),
            (86_399.0, "1 day"),
            (443_000.0, "5 days 3 h"),
            (1e9, "11574 days 2 h"),
        ] {
            assert_eq!(about(seconds), text.replace("11574", "11,574"), "{seconds}");
        }
        for (seconds, text) in [(0.756, "0.76 s"), (9.996, "10.0 s"), (59.96, "1 min"), (125.0, "2 min 5 s")]
        {
            assert_eq!(time(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn rates_and_counts_have_few_digits() {
        for (per_second, text) in
            [(0.0, "0/s"), (120.4, "120/s"), (953_468.0, "953 k/s"), (13e6, "13.0 M/s"), (2.5e9, "2.5 G/s")]
        {
            assert_eq!(rate(per_second), text);
        }
        assert_eq!(several(1u64, "thread"), "1 thread");
        assert_eq!(several(1024usize, "thread"), "1,024 threads");
        assert_eq!(percent(0.9999), "99.9%");
        assert_eq!(percent(1.0), "100.0%");
    }
}
