//! The values of a cone.

use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, Layer};

/// The computed values of a cone's states. Excludes the final states of the cone, because their values are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Solved {
    layers: Vec<SolvedLayer>,
}

/// The states of one layer with their computed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SolvedLayer {
    /// The layer.
    pub layer: Layer,
    /// Canonical boards in ascending order.
    pub boards: Box<[Board]>,
    /// Values of the boards.
    pub values: Values,
}

/// Values with the precision of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// 32-bit values.
    Bits32(Box<[u32]>),
    /// 64-bit values.
    Bits64(Box<[u64]>),
}

impl Values {
    /// The value at a place of the list.
    #[inline]
    pub fn get(&self, at: usize) -> Stored {
        match self {
            Self::Bits32(values) => values[at].stored(),
            Self::Bits64(values) => values[at].stored(),
        }
    }

    /// Bytes of each value.
    pub fn width(&self) -> usize {
        match self {
            Self::Bits32(_) => 4,
            Self::Bits64(_) => 8,
        }
    }
}

impl Solved {
    /// Creates the result from layers in ascending order.
    pub fn new(layers: Vec<SolvedLayer>) -> Self {
        Self { layers }
    }

    /// The layers with states, in ascending order.
    pub fn layers(&self) -> &[SolvedLayer] {
        &self.layers
    }

    /// The value of a state, by the state's canonical board; `None` if the value was not computed.
    pub fn value(&self, layer: Layer, canonical: Board) -> Option<Stored> {
        let at = self.layers.binary_search_by_key(&layer, |of| of.layer).ok()?;
        let SolvedLayer { boards, values, .. } = &self.layers[at];
        boards.binary_search(&canonical).ok().map(|at| values.get(at))
    }

    /// Number of states.
    pub fn states(&self) -> u64 {
        self.layers.iter().map(|layer| layer.boards.len() as u64).sum()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let bytes =
            |layer: &SolvedLayer| layer.boards.len() * (8 + layer.values.width()) + size_of::<SolvedLayer>();
        self.layers.iter().map(|layer| bytes(layer) as u64).sum()
    }
}
