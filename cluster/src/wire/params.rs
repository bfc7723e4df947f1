//! Parameters of a run.

use std::fmt::Display;
use std::str::FromStr;

use exact2048_game::{BoardError, Discount, KeptLayers, Params, ParamsError, Precision, Spawn4, Spawner};
use exact2048_proto::v1::RunParameters;

use super::WireError;

/// Checks and converts a message's parameters. If the message does not define large tiles, chooses the best split
/// for the board.
///
/// # Errors
///
/// [`WireError::Field`].
pub fn params_of(message: &RunParameters) -> Result<Params, WireError> {
    let board = message.size().map_err(|error| {
        let field = match error {
            BoardError::Picture { .. } => "picture",
            BoardError::LooseStones { .. } => "loose_stones",
            _ => "rows",
        };
        WireError::field(field, error)
    })?;
    let objective = parsed("objective", &message.objective)?;
    let spawn4: Spawn4 =
        parsed("spawn4_numerator", &format!("{}/{}", message.spawn4_numerator, message.spawn4_denominator))?;
    let bits = u8::try_from(message.precision_bits).unwrap_or(u8::MAX);
    let precision = Precision::try_from(bits).map_err(|error| WireError::field("precision_bits", error))?;
    let kept = message.kept.map(|kept| KeptLayers::new(kept.period, kept.width));
    let value_step = Some(&message.value_step).filter(|step| !step.is_empty());
    let position = message.position.as_deref().map(|text| exact2048_game::position(text, board)).transpose();
    let params = Params::builder(board, objective)
        .spawn4(spawn4)
        .precision(precision)
        .discount(discount_of(message)?)
        .spawner(spawner_of(message)?)
        .until(message.until_layer)
        .large(Some(message.large_exponent).filter(|&large| large != 0).map(exponent))
        .huge(Some(message.huge_exponent).filter(|&huge| huge != 0).map(exponent))
        .sectors(exponent(message.sectors.max(1)))
        .kept(kept.transpose().map_err(|error| WireError::field("kept", error))?)
        .best_moves(message.best_moves)
        .value_step(value_step.map(|step| parsed("value_step", step)).transpose()?)
        .from(position.map_err(|error| WireError::field("position", error))?);
    params.build().map_err(|error| WireError::field(field_of(&error), error))
}

/// Returns the field of a message that an error of parameters blames.
fn field_of(error: &ParamsError) -> &'static str {
    match error {
        ParamsError::Huge(_) => "huge_exponent",
        ParamsError::Sectors(_) => "sectors",
        ParamsError::Discount(_) => "discount_numerator",
        ParamsError::CertainLoss(_) => "spawner",
        ParamsError::Position { .. } => "position",
        ParamsError::BestMovesTooFarApart { .. } => "kept",
        ParamsError::StepWithoutValues(_)
        | ParamsError::StepTooSmall { .. }
        | ParamsError::StepTooLarge { .. } => "value_step",
        _ => "parameters",
    }
}

/// Checks and converts a message's discount.
///
/// # Errors
///
/// [`WireError::Field`].
pub fn discount_of(message: &RunParameters) -> Result<Discount, WireError> {
    match (message.discount_numerator, message.discount_denominator) {
        (0, 0) => Ok(Discount::NONE),
        (numerator, denominator) => parsed("discount_numerator", &format!("{numerator}/{denominator}")),
    }
}

/// Checks and converts a message's spawner.
///
/// # Errors
///
/// [`WireError::Field`].
pub fn spawner_of(message: &RunParameters) -> Result<Spawner, WireError> {
    if message.spawner.is_empty() { Ok(Spawner::Random) } else { parsed("spawner", &message.spawner) }
}

/// Parses the text of a field. The error repeats the text, so its length is limited.
fn parsed<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, WireError> {
    let start: String = text.chars().take(32).collect();
    start.parse().map_err(|error| WireError::field(field, error))
}

/// Converts an exponent. A number above 255 becomes 255, which the later check of the range always refuses.
fn exponent(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use exact2048_proto::v1;
    use proptest::prelude::*;

    pub fn any_params() -> impl Strategy<Value = Params> {
        let boards = prop::sample::select(vec![
            "2x2",
            "3x2",
            "3x3",
            "4x3",
            "1x8",
            "3x3:x../..x/...",
            "4x4:####/...#/...#/####",
        ]);
        let objectives = prop::sample::select(vec!["score", "reach:8", "reach:16", "lose:16"]);
        let spawns = prop::sample::select(vec!["0.1", "1/3", "0", "1"]);
        let until = prop::option::of((2u32..20).prop_map(|half| 2 * half));
        let kept = prop::sample::select(vec!["1/1", "2/4", "3/16"]);
        let rules = prop::sample::select(vec![
            ("1", "random"),
            ("19/20", "random"),
            ("1", "worst"),
            ("1/2", "worst"),
        ]);
        let stored = (kept, any::<bool>());
        let split = (3u8..7, 8u8..17, 1u8..9);
        (boards, objectives, spawns, any::<bool>(), until, split, (stored, rules)).prop_filter_map(
            "some boards lack a layer, and some objectives exclude a rule",
            |(
                board,
                objective,
                spawn4,
                wide,
                until,
                (large, huge, sectors),
                ((kept, best_moves), (discount, spawner)),
            )| {
                let precision = if wide { Precision::Bits64 } else { Precision::Bits32 };
                let spawn4 = spawn4.parse().unwrap();
                let params = Params::usual(board, objective)
                    .spawn4(spawn4)
                    .precision(precision)
                    .until(until)
                    .large(large)
                    .huge(huge)
                    .sectors(sectors)
                    .discount(discount.parse().unwrap())
                    .spawner(spawner.parse().unwrap())
                    .kept(kept.parse::<KeptLayers>().unwrap())
                    .best_moves(best_moves);
                params.build().ok()
            },
        )
    }

    proptest! {
        #[test]
        fn parameters_round_trip(params in any_params()) {
            prop_assert_eq!(params_of(&RunParameters::from(&params)).unwrap(), params);
        }
    }

    #[test]
    fn optional_parameters_may_be_missing_and_errors_name_their_fields() {
        let params = Params::small("3x3");
        let good = RunParameters { large_exponent: 0, kept: None, ..RunParameters::from(&params) };
        assert_eq!(params_of(&good).unwrap(), params);
        for (wrong, named) in [
            (RunParameters { rows: 9, ..good.clone() }, "rows"),
            (RunParameters { picture: "x..".to_owned(), ..good.clone() }, "picture"),
            (RunParameters { objective: "win".to_owned(), ..good.clone() }, "objective"),
            (RunParameters { spawn4_denominator: 0, ..good.clone() }, "spawn4_numerator"),
            (RunParameters { precision_bits: 1 << 20, ..good.clone() }, "precision_bits"),
            (RunParameters { until_layer: Some(5), ..good.clone() }, "parameters"),
            (RunParameters { large_exponent: 300, ..good.clone() }, "parameters"),
            (RunParameters { huge_exponent: 7, ..good.clone() }, "huge_exponent"),
            (RunParameters { sectors: 9, ..good.clone() }, "sectors"),
            (RunParameters { discount_denominator: 2, ..good.clone() }, "discount_numerator"),
            (
                RunParameters { discount_numerator: 1, discount_denominator: 2, ..good.clone() },
                "discount_numerator",
            ),
            (RunParameters { spawner: "best".to_owned(), ..good.clone() }, "spawner"),
            (RunParameters { kept: Some(v1::KeptLayers { period: 4, width: 1 }), ..good.clone() }, "kept"),
            (RunParameters::default(), "rows"),
        ] {
            match params_of(&wrong) {
                Err(WireError::Field { field, .. }) => assert_eq!(field, named),
                other => panic!("{wrong:?}: {other:?}"),
            }
        }
    }
}
