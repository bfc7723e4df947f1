//! The rules of a game in words. Games, runs and servers with equal rules have equal texts.

use exact2048_proto::v1::RunParameters;

/// Describes rules as `3x3, score, a 4 by 1/10`, followed by non-default rules. Omits storage options.
pub(crate) fn in_words(of: &RunParameters) -> String {
    let mut words = format!("{}x{}", of.rows, of.columns);
    if !of.picture.is_empty() {
        words += &format!(":{}", of.picture);
    }
    if of.loose_stones > 0 {
        words += &format!("+{}x", of.loose_stones);
    }
    words += &format!(", {}, a 4 by {}/{}", of.objective, of.spawn4_numerator, of.spawn4_denominator);
    if of.discount_denominator != 0 {
        words += &format!(", discount {}/{}", of.discount_numerator, of.discount_denominator);
    }
    if !["", "random"].contains(&of.spawner.as_str()) {
        words += &format!(", {} tiles", of.spawner);
    }
    words
}
