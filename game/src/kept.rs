//! Which layers' values a run stores.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::layer::Layer;

/// Which layers' values are stored: the first `width` of every `period` layers, counted from tile sum 0; and those of
/// the starts, where the period is above 4, so that what a game is worth is known without a search.
///
/// A spawn leads one or two layers up. So two neighbouring kept layers are a *cut*: no path jumps over it, and the values
/// of all layers below follow from its own. Hence a width of at least 2, or all layers. The policy changes how much is
/// stored and how long a question takes that has to search, and no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct KeptLayers {
    period: u32,
    width: u32,
}

/// Layers that make a cut.
const CUT_WIDTH: u32 = Layer::RISE;

/// The longest period: more layers than any board has, so that it never begins again.
const MOST_PERIOD: u32 = 1 << 20;

/// The longest period that does not make a run keep the starts.
const MOST_PERIOD_WITHOUT_STARTS: u32 = 4;

/// A period and a width that are no way to keep layers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "values of {width} layers in every {period} cannot be kept: expected all, starts, or for two in every N an N from 3 to \
     1048576"
)]
pub struct KeptLayersError {
    width: u32,
    period: u32,
}

/// As written in a manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    period: u32,
    width: u32,
}

impl KeptLayers {
    /// All layers.
    pub const ALL: Self = Self { period: 1, width: 1 };

    /// Two layers in every four: half of all values, with at most two spawns from any state to them.
    pub const TWO_IN_FOUR: Self = Self { period: 4, width: 2 };

    /// Two layers in so many are kept where best moves are stored: little beside them, and a place to go on from where a solve
    /// was interrupted.
    pub const BESIDE_BEST_MOVES: Self = Self { period: 128, width: 2 };

    /// The layers of the starts and no other: the least that a run can keep. The period never begins again.
    pub const STARTS: Self = Self { period: MOST_PERIOD, width: CUT_WIDTH };

    /// The first `width` of every `period` layers.
    ///
    /// # Errors
    ///
    /// [`KeptLayersError`] where some path would jump over what is kept, or the period is above 1,048,576.
    pub fn new(period: u32, width: u32) -> Result<Self, KeptLayersError> {
        let kept = Self { period, width };
        let is_cut_in_each = (CUT_WIDTH..period).contains(&width) && period <= MOST_PERIOD;
        if kept == Self::ALL || is_cut_in_each { Ok(kept) } else { Err(KeptLayersError { width, period }) }
    }

    /// Number of layers in a period.
    pub fn period(self) -> u32 {
        self.period
    }

    /// Layers that are kept of every period.
    pub fn width(self) -> u32 {
        self.width
    }

    /// Whether the values of a layer are stored.
    pub fn keeps(self, layer: Layer) -> bool {
        self.place(layer) < self.width
            || self.period > MOST_PERIOD_WITHOUT_STARTS && layer <= Layer::LAST_START
    }

    /// Whether the values of a layer and of the next are stored, so that all below follow from them. Work on the way
    /// down may stop after such a layer and be continued later.
    pub fn is_cut(self, layer: Layer) -> bool {
        self.keeps(layer) && self.keeps(layer.up(1))
    }

    /// The lower layer of the lowest cut that is not below `layer`.
    pub fn next_cut(self, layer: Layer) -> Layer {
        if self.is_cut(layer) { layer } else { layer.up(self.period() - self.place(layer)) }
    }

    /// The share of the layers that are kept.
    pub fn share(self) -> f64 {
        f64::from(self.width) / f64::from(self.period)
    }

    /// The place of a layer in its period.
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

/// As [`FromStr`] reads it: `all`, `starts`, the period alone where two are kept of each, or both numbers.
impl fmt::Display for KeptLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("all"),
            Self::STARTS => f.write_str("starts"),
            Self { period, width: CUT_WIDTH } => write!(f, "{period}"),
            Self { period, width } => write!(f, "{width}/{period}"),
        }
    }
}

/// A text that says in no way which layers are kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseKeptLayersError {
    /// It is none of the words, and no number.
    #[error(
        "expected a number N for two layers in every N, from 3 on; `all` for every layer; or `starts` for those of the \
         starts alone"
    )]
    Form,
    /// Two in every one or two would be all.
    #[error("two layers in every {0} are all of them: expected `all`, or a number from 3 on")]
    All(u32),
    /// The numbers are no way to keep layers.
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
            prop_assert!(before.all(|below| !kept.is_cut(Layer(below))), "there is none before");
            prop_assert_eq!(kept.is_cut(layer), [0, 2].iter().all(|rise| kept.keeps(Layer(layer.0 + rise))));
            if kept.period() < 1000 {
                let above_starts = Layer(layer.0 + 10);
                let in_period = above_starts.to(above_starts.up(kept.period() - 1)).filter(|&l| kept.keeps(l)).count();
                prop_assert_eq!(in_period as u32, kept.width());
            }
        }

        #[test]
        fn what_is_written_is_read(kept in kept()) {
            prop_assert_eq!(kept.to_string().parse(), Ok(kept));
        }
    }

    /// The rule of runs whose manifests say nothing of it.
    #[test]
    fn two_in_four_are_the_sums_0_and_2_modulo_8() {
        for sum in (4..2000).step_by(2) {
            assert_eq!(KeptLayers::default().keeps(Layer(sum)), sum % 8 < 4, "{sum}");
            assert_eq!(KeptLayers::default().is_cut(Layer(sum)), sum % 8 == 0, "{sum}");
        }
    }

    #[test]
    fn starts_are_kept_where_others_are_far() {
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

    #[test]
    fn what_keeps_no_cut_is_refused() {
        for (period, width) in
            [(0, 0), (1, 0), (2, 1), (4, 0), (4, 1), (4, 4), (4, 5), (2, 2), ((1 << 20) + 1, 2), (4, 258)]
        {
            assert_eq!(KeptLayers::new(period, width), Err(KeptLayersError { width, period }));
        }
    }

    #[test]
    fn policies_are_written_as_people_say_them() {
        for (text, kept, shown) in [
            ("all", KeptLayers::ALL, "all"),
            ("1/1", KeptLayers::ALL, "all"),
            ("starts", KeptLayers::STARTS, "starts"),
            ("4", KeptLayers::TWO_IN_FOUR, "4"),
            ("2/128", KeptLayers { period: 128, width: 2 }, "128"),
            ("3/7", KeptLayers { period: 7, width: 3 }, "3/7"),
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
