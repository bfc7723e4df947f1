//! Words and number formats of a report.

use exact2048_game::{Discount, Game, KeptLayers, Spawner};
use exact2048_text::numbers::{bound, count, mean, rough};

use crate::gathered::RunReport;

/// Describes the values of a run in words.
pub(crate) fn value_name(game: &Game) -> String {
    let discounted = if game.discount() == Discount::NONE { "" } else { "discounted " };
    let worst = if game.spawner() == Spawner::Worst { ", against the worst tiles" } else { "" };
    format!("{discounted}{}{worst}", game.objective().words().description)
}

/// A value of a run, in few digits.
pub(crate) fn value_text(game: &Game, value: f64) -> String {
    game.objective().unit().text(value, 1)
}

/// Describes the layers whose values are stored.
pub(crate) fn kept_words(run: &RunReport) -> String {
    let stored = run.layers.iter().filter(|layer| layer.is_stored).count();
    let of_all = format!("{} of {}", count(stored), count(run.layers.len()));
    let kept = run.params.contents().kept().policy();
    match kept {
        KeptLayers::ALL => "all".to_owned(),
        KeptLayers::STARTS => format!("those of the starts ({of_all})"),
        _ => format!("{} in every {} ({of_all})", kept.width(), kept.period()),
    }
}

/// Formats the share of games that are not followed because their probabilities are too small.
pub(crate) fn share_left_out(dropped: f64) -> String {
    if dropped == 0.0 { "none".to_owned() } else { format!("{} of all", bound(dropped)) }
}

/// A number on an axis of counts.
pub(crate) fn count_axis(number: f64) -> String {
    if number < 0.0 { String::new() } else { rough(number.round()) }
}

/// A number on an axis of shares or values.
pub(crate) fn number_axis(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e6 => rough(number),
        size if size >= 10.0 => mean(number, 0),
        size if size >= 1e-3 => {
            let text = format!("{number:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{number:.0e}"),
    }
}

/// A share on an axis: `20%`.
pub(crate) fn share_axis(share: f64) -> String {
    match 100.0 * share {
        percent if percent.abs() < 1e-9 => "0".to_owned(),
        percent => format!("{}%", number_axis((percent * 1e6).round() / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_short_numbers() {
        assert_eq!([0.0, 20_000.0, 1.5e6].map(count_axis), ["0", "20,000", "1.5 M"]);
        assert_eq!(
            [0.0, 0.05, 0.125, 2.5, 5500.0, 1e-7].map(number_axis),
            ["0", "0.05", "0.125", "2.5", "5,500", "1e-7"]
        );
        assert_eq!(
            [0.0, 0.2, 0.30000000000000004, 1.0, 0.005].map(share_axis),
            ["0", "20%", "30%", "100%", "0.5%"]
        );
    }
}
