//! Layers whose values a run stores.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::layer::Layer;

/// Policy for the layers whose values are stored.
///
/// A run stores the first `width` of every `period` layers, counted from tile sum 0. If the period exceeds 4, the run
/// also stores the lowest three layers of the run, so queries for the values of starts need no search.
///
/// A spawn raises the layer by one or two. So two neighbouring stored layers are a *cut*: no path jumps over it, and
/// its values determine the values of all layers below. Therefore the width is at least 2, unless all layers are
/// stored. The policy changes the size of the run and the time of queries of layers that are not stored, but no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct KeptLayers {
    period: u32,
    width: u32,
    /// Lowest layer of the run. It is no part of the policy, so manifests omit it.
    first: Layer,
}

/// Number of neighbouring layers that make a cut.
const CUT_WIDTH: u32 = Layer::RISE;

/// Longest period: more layers than any board has, so the period never repeats.
const MOST_PERIOD: u32 = 1 << 20;

/// Number of layers in which a game can begin: the sums of two tiles.
const START_LAYERS: u32 = (Layer::LAST_START.0 - Layer::FIRST.0) / Layer::STEP + 1;

/// Longest period for which the layers of the starts are not stored in addition.
const MOST_PERIOD_WITHOUT_STARTS: u32 = 4;

/// Error for a period and a width that are not a valid policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "values of {width} layers in every {period} cannot be kept: expected all, starts, or a number N from 3 to 1048576 for \
     two layers in every N"
)]
pub struct KeptLayersError {
    width: u32,
    period: u32,
}

/// Form of the policy in a manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    period: u32,
    width: u32,
}

impl KeptLayers {
    /// All layers.
    pub const ALL: Self = Self { period: 1, width: 1, first: Layer::FIRST };

    /// Two layers in every four: half of all values. A stored value is at most two spawns away from any state.
    pub const TWO_IN_FOUR: Self = Self { period: 4, width: 2, first: Layer::FIRST };

    /// Policy of runs that store best moves: two layers in every 128. The values take little space compared with the
    /// moves, and an interrupted solve can resume from these values.
    pub const KEPT_WITH_BEST_MOVES: Self = Self { period: 128, width: 2, first: Layer::FIRST };

    /// Only the layers of the starts. A run cannot store fewer layers. The period never repeats.
    pub const STARTS: Self = Self { period: MOST_PERIOD, width: CUT_WIDTH, first: Layer::FIRST };

    /// Creates the policy that stores the first `width` of every `period` layers.
    ///
    /// # Errors
    ///
    /// [`KeptLayersError`] unless `width` is at least 2 and below `period`, and `period` is at most 1,048,576. The
    /// exception is 1 of 1, which stores all layers.
    pub fn new(period: u32, width: u32) -> Result<Self, KeptLayersError> {
        let kept = Self { period, width, first: Layer::FIRST };
        let is_cut_in_each = (CUT_WIDTH..period).contains(&width) && period <= MOST_PERIOD;
        if kept == Self::ALL || is_cut_in_each { Ok(kept) } else { Err(KeptLayersError { width, period }) }
    }

    /// Returns the policy for a run whose lowest layer is `first`.
    #[must_use]
    pub fn of_run_from(self, first: Layer) -> Self {
        Self { first, ..self }
    }

    /// Returns the policy alone, to compare it with others, as for a run that begins with the starts of games.
    #[must_use]
    pub fn policy(self) -> Self {
        self.of_run_from(Layer::FIRST)
    }

    /// Number of layers in a period.
    pub fn period(self) -> u32 {
        self.period
    }

    /// Number of layers that are stored in every period.
    pub fn width(self) -> u32 {
        self.width
    }

    /// Whether the values of a layer are stored.
    pub fn keeps(self, layer: Layer) -> bool {
        self.place(layer) < self.width
            || self.period > MOST_PERIOD_WITHOUT_STARTS && layer <= self.first.up(START_LAYERS - 1)
    }

    /// Whether the values of a layer and of the next layer are stored. These values determine all layers below. A
    /// solve can stop after such a layer and resume later.
    pub fn is_cut(self, layer: Layer) -> bool {
        self.keeps(layer) && self.keeps(layer.up(1))
    }

    /// Returns the lower layer of the lowest cut that is not below `layer`.
    pub fn next_cut(self, layer: Layer) -> Layer {
        if self.is_cut(layer) { layer } else { layer.up(self.period() - self.place(layer)) }
    }

    /// Fraction of the layers that are stored, not counting the layers of the starts.
    pub fn share(self) -> f64 {
        f64::from(self.width) / f64::from(self.period)
    }

    /// Position of a layer in its period.
    fn place(self, layer: Layer) -> u32 {
        layer.0 / Layer::STEP % self.period()
    }
}

impl Default for KeptLayers {
    fn default() -> Self {
        Self::TWO_IN_FOUR
    }
}

impl From<KeptLayers> for Fields {
    fn from(kept: KeptLayers) -> Self {
        Self { period: kept.period(), width: kept.width() }
    }
}

impl TryFrom<Fields> for KeptLayers {
    type Error = KeptLayersError;

    fn try_from(fields: Fields) -> Result<Self, KeptLayersError> {
        Self::new(fields.period, fields.width)
    }
}

/// Formats the policy for [`FromStr`]: `all`, `starts`, the period if the width is 2, or otherwise `width/period`.
impl fmt::Display for KeptLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy() {
            Self::ALL => f.write_str("all"),
            Self::STARTS => f.write_str("starts"),
            Self { period, width: CUT_WIDTH, .. } => write!(f, "{period}"),
            Self { period, width, .. } => write!(f, "{width}/{period}"),
        }
    }
}

/// Error when parsing a policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseKeptLayersError {
    /// Neither `all` nor `starts` nor numbers.
    #[error(
        "expected a number N from 3 on for two layers in every N, `all` for every layer, or `starts` for the layers of \
         the starts alone"
    )]
    Form,
    /// A period of 1 or 2, in which two layers are all layers.
    #[error("two layers in every {0} are all layers: expected `all`, or a number from 3 on")]
    All(u32),
    /// Numbers that are not a valid policy.
    #[error(transparent)]
    Numbers(#[from] KeptLayersError),
}

impl FromStr for KeptLayers {
    type Err = ParseKeptLayersError;

    fn from_str(text: &str) -> Result<Self, ParseKeptLayersError> {
        let number = |text: &str| text.parse::<u32>().map_err(|_| ParseKeptLayersError::Form);
        Ok(match (text, text.split_once('/')) {
            ("all", _) => Self::ALL,
            ("starts", _) => Self::STARTS,
            (_, Some((width, period))) => Self::new(number(period)?, number(width)?)?,
            (_, None) => match number(text)? {
                period @ 1..=CUT_WIDTH => return Err(ParseKeptLayersError::All(period)),
                period => Self::new(period, CUT_WIDTH)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept() -> impl Strategy<Value = KeptLayers> {
        let periods = prop_oneof![3u32..=255, 256..=MOST_PERIOD];
        let some = periods.prop_flat_map(|period| (Just(period), 2..period.min(300)));
        prop_oneof![
            Just(KeptLayers::ALL),
            Just(KeptLayers::STARTS),
            some.prop_map(|(period, width)| KeptLayers::new(period, width).unwrap())
        ]
    }

    proptest! {
        #[test]
        fn no_path_jumps_over_a_cut(kept in kept(), half in 0u32..5000) {
            let layer = Layer(2 * half);
            let cut = kept.next_cut(layer);
            prop_assert!(kept.is_cut(cut) && (layer..=Layer(layer.0 + 2 * (kept.period() - 1))).contains(&cut));
            let mut before = (layer.0..cut.0).step_by(2).take(5000);
            prop_assert!(before.all(|below| !kept.is_cut(Layer(below))), "a cut lies below the next one");
            prop_assert_eq!(kept.is_cut(layer), [0, 2].iter().all(|rise| kept.keeps(Layer(layer.0 + rise))));
            if kept.period() < 1000 {
                let above_starts = Layer(layer.0 + 10);
                let in_period = above_starts.to(above_starts.up(kept.period() - 1)).filter(|&l| kept.keeps(l)).count();
                prop_assert_eq!(in_period as u32, kept.width());
            }
        }

        #[test]
        fn policies_are_parsed_from_their_text(kept in kept()) {
            prop_assert_eq!(kept.to_string().parse(), Ok(kept));
        }
    }

    /// Manifests without a policy mean the default policy.
    #[test]
    fn two_in_four_are_the_sums_0_and_2_modulo_8() {
        for sum in (4..2000).step_by(2) {
            assert_eq!(KeptLayers::default().keeps(Layer(sum)), sum % 8 < 4, "{sum}");
            assert_eq!(KeptLayers::default().is_cut(Layer(sum)), sum % 8 == 0, "{sum}");
        }
    }

    #[test]
    fn starts_are_kept_if_the_period_exceeds_four() {
        let kept = |kept: &str| {
            let kept: KeptLayers = kept.parse().unwrap();
            (4..40).step_by(2).filter(|&sum| kept.keeps(Layer(sum))).collect::<Vec<u32>>()
        };
        assert_eq!(kept("4"), [8, 10, 16, 18, 24, 26, 32, 34]);
        assert_eq!(kept("5"), [4, 6, 8, 10, 12, 20, 22, 30, 32]);
        assert_eq!(kept("16"), [4, 6, 8, 32, 34]);
        let starts: Vec<u32> =
            (4..300_000).step_by(2).filter(|&sum| KeptLayers::STARTS.keeps(Layer(sum))).collect();
        assert_eq!(starts, [4, 6, 8]);
        assert!(KeptLayers::STARTS.is_cut(Layer(4)) && KeptLayers::STARTS.next_cut(Layer(8)).0 > 1 << 20);
    }

    /// A run from a position stores its lowest layers in place of those of the starts.
    #[test]
    fn the_lowest_layers_of_a_run_from_a_position_are_kept() {
        let kept = KeptLayers::STARTS.of_run_from(Layer(120));
        let layers: Vec<u32> =
            Layer(120).to(Layer(3000)).map(|layer| layer.0).filter(|&n| kept.keeps(Layer(n))).collect();
        assert_eq!(layers, [120, 122, 124]);
        assert!(kept.is_cut(Layer(120)) && kept != KeptLayers::STARTS && kept.policy() == KeptLayers::STARTS);
        assert_eq!(kept.to_string(), "starts");
        let usual = KeptLayers::default().of_run_from(Layer(12));
        assert!(!usual.keeps(Layer(12)) && usual.keeps(Layer(16)));
    }

    #[test]
    fn policies_without_a_cut_are_refused() {
        for (period, width) in
            [(0, 0), (1, 0), (2, 1), (4, 0), (4, 1), (4, 4), (4, 5), (2, 2), ((1 << 20) + 1, 2), (4, 258)]
        {
            assert_eq!(KeptLayers::new(period, width), Err(KeptLayersError { width, period }));
        }
    }

    #[test]
    fn policies_are_written_in_their_short_form() {
        for (text, kept, shown) in [
            ("all", KeptLayers::ALL, "all"),
            ("1/1", KeptLayers::ALL, "all"),
            ("starts", KeptLayers::STARTS, "starts"),
            ("4", KeptLayers::TWO_IN_FOUR, "4"),
            ("2/128", KeptLayers { period: 128, width: 2, first: Layer::FIRST }, "128"),
            ("3/7", KeptLayers { period: 7, width: 3, first: Layer::FIRST }, "3/7"),
        ] {
            assert_eq!(text.parse(), Ok(kept));
            assert_eq!(kept.to_string(), shown);
        }
        for wrong in ["", "none", "ALL", "-4", "4.5", "2/", "/4", "2/4/6", "99999999999"] {
            assert_eq!(wrong.parse::<KeptLayers>(), Err(ParseKeptLayersError::Form), "{wrong}");
        }
        for few in [1, 2] {
            assert_eq!(few.to_string().parse::<KeptLayers>(), Err(ParseKeptLayersError::All(few)));
        }
        for wrong in ["0", "1/2", "2/1048577", "1048577"] {
            assert!(matches!(wrong.parse::<KeptLayers>(), Err(ParseKeptLayersError::Numbers(_))), "{wrong}");
        }
    }
}
