//! Which layers' values a run stores.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::layer::Layer;

/// Which layers' values are stored: the first `width` of every `period` layers, counted from tile sum 0.
///
/// A spawn leads one or two layers up. So two neighbouring kept layers are a *cut*: no path jumps over it, and the values
/// of all layers below follow from its own. Hence a width of at least 2, or all layers. The policy changes how much is
/// stored and how long a question takes that has to search, and no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct KeptLayers {
    period: u8,
    width: u8,
}

/// Layers that make a cut.
const CUT_WIDTH: u8 = 2;

/// No way to keep layers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "values of {width} layers in every {period} cannot be kept: expected a width of 2 or more and less than the period, \
     which is at most 255; or 1 in every 1, which keeps all"
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

    /// The first `width` of every `period` layers.
    ///
    /// # Errors
    ///
    /// [`KeptLayersError`] where some path would jump over what is kept, or the period is above 255.
    pub fn new(period: u32, width: u32) -> Result<Self, KeptLayersError> {
        let error = KeptLayersError { width, period };
        let (Ok(small_period), Ok(small_width)) = (u8::try_from(period), u8::try_from(width)) else {
            return Err(error);
        };
        let kept = Self { period: small_period, width: small_width };
        let is_cut_in_each = (CUT_WIDTH..small_period).contains(&small_width);
        if kept == Self::ALL || is_cut_in_each { Ok(kept) } else { Err(error) }
    }

    /// Layers from one that is kept to the same one of the next period.
    pub fn period(self) -> u32 {
        self.period.into()
    }

    /// Layers that are kept of every period.
    pub fn width(self) -> u32 {
        self.width.into()
    }

    /// Whether the values of a layer are stored.
    pub fn keeps(self, layer: Layer) -> bool {
        self.place(layer) < self.width()
    }

    /// Whether the values of a layer and of the next are stored, so that all below follow from them. Work on the way down
    /// may end with such a layer, to be gone on with later.
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

impl fmt::Display for KeptLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.width, self.period)
    }
}

/// A text that says in no way which layers are kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseKeptLayersError {
    /// It is no pair of numbers.
    #[error("expected WIDTH/PERIOD, as 2/4 for two layers in every four")]
    Form,
    /// The numbers.
    #[error(transparent)]
    Numbers(#[from] KeptLayersError),
}

impl FromStr for KeptLayers {
    type Err = ParseKeptLayersError;

    fn from_str(text: &str) -> Result<Self, ParseKeptLayersError> {
        let numbers = text.split_once('/').and_then(|(width, period)| {
            let number = |text: &str| text.parse::<u32>().ok();
            Some((number(period)?, number(width)?))
        });
        let (period, width) = numbers.ok_or(ParseKeptLayersError::Form)?;
        Ok(Self::new(period, width)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept() -> impl Strategy<Value = KeptLayers> {
        let some = (3u32..=255).prop_flat_map(|period| (Just(period), 2..period));
        prop_oneof![
            Just(KeptLayers::ALL),
            some.prop_map(|(period, width)| KeptLayers::new(period, width).unwrap())
        ]
    }

    proptest! {
        #[test]
        fn no_path_jumps_over_a_cut(kept in kept(), half in 0u32..5000) {
            let layer = Layer(2 * half);
            let cut = kept.next_cut(layer);
            prop_assert!(kept.is_cut(cut) && (layer..=Layer(layer.0 + 2 * (kept.period() - 1))).contains(&cut));
            prop_assert!((layer.0..cut.0).step_by(2).all(|below| !kept.is_cut(Layer(below))), "there is none before");
            prop_assert_eq!(kept.is_cut(layer), [0, 2].iter().all(|rise| kept.keeps(Layer(layer.0 + rise))));
            let in_period = (0..kept.period()).filter(|step| kept.keeps(Layer(layer.0 + 2 * step))).count();
            prop_assert_eq!(in_period as u32, kept.width());
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
    fn what_keeps_no_cut_is_refused() {
        for (period, width) in
            [(0, 0), (1, 0), (2, 1), (4, 0), (4, 1), (4, 4), (4, 5), (2, 2), (256, 2), (4, 258)]
        {
            assert_eq!(KeptLayers::new(period, width), Err(KeptLayersError { width, period }));
        }
        assert_eq!("2".parse::<KeptLayers>(), Err(ParseKeptLayersError::Form));
        assert!(matches!("1/2".parse::<KeptLayers>(), Err(ParseKeptLayersError::Numbers(_))));
    }
}
