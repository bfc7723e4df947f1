//! Parameters in the form of a manifest.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::board::BoardSize;
use crate::discount::Discount;
use crate::huge::NO_HUGE;
use crate::kept::KeptLayers;
use crate::objective::{Objective, Spawn4, Spawner};
use crate::value_step::ValueStep;

use super::contents::RunContents;
use super::error::ParamsError;
use super::game::Game;
use super::precision::Precision;
use super::split::TileSplit;
use super::whole::{self, Params};

/// Unchecked parameters in the form of a manifest.
///
/// A manifest omits each choice that has its default value. So manifests from before a choice existed stay valid.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamsRecord {
    board: BoardSize,
    objective: Objective,
    spawn4: Spawn4,
    precision: Precision,
    until_layer: Option<u32>,
    large: u8,
    #[serde(default = "no_huge", skip_serializing_if = "is_no_huge")]
    huge: u8,
    #[serde(default = "one_sector", skip_serializing_if = "is_one_sector")]
    sectors: u8,
    #[serde(default, skip_serializing_if = "is_default")]
    kept: KeptLayers,
    #[serde(default, skip_serializing_if = "is_default")]
    discount: Discount,
    #[serde(default, skip_serializing_if = "is_default")]
    spawner: Spawner,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    best_moves: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    value_step: Option<ValueStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

/// Default of `huge`, which a manifest omits: no tile is huge.
fn no_huge() -> u8 {
    NO_HUGE
}

fn is_no_huge(huge: &u8) -> bool {
    *huge == NO_HUGE
}

/// Default of `sectors`, which a manifest omits.
fn one_sector() -> u8 {
    1
}

fn is_one_sector(sectors: &u8) -> bool {
    *sectors == one_sector()
}

/// Whether a choice is the default, which a manifest omits.
fn is_default<T: Default + PartialEq>(choice: &T) -> bool {
    *choice == T::default()
}

impl From<&Params> for ParamsRecord {
    fn from(params: &Params) -> Self {
        let Game { board, objective, spawn4, discount, spawner, precision, from } = params.game;
        let TileSplit { large, huge, sectors } = params.split;
        let RunContents { until, kept, best_moves, value_step } = params.contents;
        let kept = kept.policy();
        let until_layer = until.map(|layer| layer.0);
        Self {
            board,
            objective,
            spawn4,
            precision,
            until_layer,
            large,
            huge,
            sectors,
            kept,
            discount,
            spawner,
            best_moves,
            value_step,
            from: from.map(|position| position.to_text(board)),
        }
    }
}

impl TryFrom<ParamsRecord> for Params {
    type Error = ParamsError;

    fn try_from(record: ParamsRecord) -> Result<Self, ParamsError> {
        let ParamsRecord { board, objective, spawn4, precision, discount, spawner, .. } = record;
        let from = record.from.map(|text| whole::position(&text, board)).transpose()?;
        let game = Game { board, objective, spawn4, discount, spawner, precision, from };
        let split = TileSplit { large: record.large, huge: record.huge, sectors: record.sectors };
        let ParamsRecord { until_layer, kept, best_moves, value_step, .. } = record;
        Self::checked(game, split, until_layer, RunContents { until: None, kept, best_moves, value_step })
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ParamsRecord::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(ParamsRecord::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
