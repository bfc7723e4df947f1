//! Sizes in memory, in words: "8.3 GiB".

const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// The bytes that something needs, in words and rounded up: giving it as much as the text says is enough.
#[must_use]
pub fn needed(bytes: u64) -> String {
    in_units(bytes, f64::ceil)
}

/// The bytes that there are, in words and rounded down: where they are fewer than what is needed, the text never says
/// as much as that of [`needed`].
#[must_use]
pub fn available(bytes: u64) -> String {
    in_units(bytes, f64::floor)
}

fn in_units(bytes: u64, round: fn(f64) -> f64) -> String {
    let mut size = bytes as f64 / 1024.0;
    for unit in UNITS {
        let tenths = round(size * 10.0);
        if tenths < 10_240.0 {
            return format!("{:.1} {unit}", tenths / 10.0);
        }
        size /= 1024.0;
    }
    format!("{:.1} EiB", round(size * 10.0) / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_rounded_up_and_what_there_is_down() {
        for (bytes, up, down) in [
            (0, "0.0 KiB", "0.0 KiB"),
            (1 << 20, "1.0 MiB", "1.0 MiB"),
            ((1 << 20) + 1, "1.1 MiB", "1.0 MiB"),
            ((1 << 20) - 1, "1.0 MiB", "1023.9 KiB"),
            (8_900_000_000, "8.3 GiB", "8.2 GiB"),
            (u64::MAX, "16.0 EiB", "16.0 EiB"),
        ] {
            assert_eq!((needed(bytes), available(bytes)), (up.to_owned(), down.to_owned()), "{bytes}");
        }
    }
}
