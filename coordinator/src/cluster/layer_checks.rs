//! Checks of the members' reports of layers.

use std::collections::VecDeque;

use exact2048_game::Layer;

use super::counts::PossibleCounts;
use super::messages::LayerPart;
use crate::task::Totals;

/// Checks the layers of an epoch's segment.
#[derive(Debug)]
pub(super) struct LayerChecks {
    /// Lowest layer of the segment.
    first: Layer,
    /// Possible counts of each layer, ascending.
    possible: Vec<PossibleCounts>,
    /// Checksums of the blocks that members sent and received, by layer. The first entry is the first layer that
    /// some member has not finished.
    exchanged: VecDeque<Exchanged>,
}

/// Sums over the members of [`LayerPart::sent`] and [`LayerPart::received`].
#[derive(Clone, Copy, Default, Debug)]
struct Exchanged {
    sent: u64,
    received: u64,
}

impl LayerChecks {
    /// Creates the checks of the layers from `first` on. `possible` contains the possible counts of each layer,
    /// ascending.
    pub fn new(first: Layer, possible: Vec<PossibleCounts>) -> Self {
        Self { first, possible, exchanged: VecDeque::new() }
    }

    /// Returns why a member's part of a layer is impossible; `None` if it is possible.
    pub fn exceeded(&self, part: &LayerPart) -> Option<String> {
        self.possible(part.layer)?.exceeded(part.layer, part.totals)
    }

    /// Adds a member's part of the layer at this position after the first layer that some member has not finished.
    pub fn add(&mut self, position: usize, part: &LayerPart) {
        if position == self.exchanged.len() {
            self.exchanged.push_back(Exchanged::default());
        }
        let sum = &mut self.exchanged[position];
        sum.sent = sum.sent.wrapping_add(part.sent);
        sum.received = sum.received.wrapping_add(part.received);
    }

    /// Checks the first layer that some member had not finished, once all members have. The received blocks must
    /// equal the sent blocks, and the counts must be possible.
    pub fn complete(&mut self, layer: Layer, totals: Totals) -> Result<(), String> {
        let Exchanged { sent, received } = self.exchanged.pop_front().unwrap_or_default();
        if sent != received {
            return Err(format!(
                "expected the members to receive the blocks of layer {layer} that were sent: checksum {sent:016x}, \
                 found {received:016x}"
            ));
        }
        let refused = self.possible(layer).and_then(|possible| possible.refuse(layer, totals));
        refused.map_or(Ok(()), Err)
    }

    fn possible(&self, layer: Layer) -> Option<&PossibleCounts> {
        self.possible.get((layer.number() - self.first.number()) as usize)
    }
}
