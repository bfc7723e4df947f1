//! True contents of a job's layers, modelled by hashes. The result of every schedule must equal these contents.

use std::collections::BTreeMap;

use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::LayerPart;
use exact2048_coordinator::room::{BESIDE_FRAMES, with_headroom};
use exact2048_game::{KeptLayers, Lane, Layer, Params, lane};
use exact2048_solution::{LayerCounts, Owners, Phase};

use crate::random::mix;
use crate::store::FILE_BYTES;

/// A board small enough for thousands of runs, and its blocks.
pub struct Truth {
    pub params: Params,
    /// Factor on the sealed bytes of every block.
    block_bytes: u64,
    lanes: BTreeMap<Layer, Vec<Lane>>,
}

impl Truth {
    /// Creates the contents for a seed. Every second seed keeps other layers than the default.
    pub fn new(board: &str, seed: u64) -> Self {
        let kept = ["2/4", "1/1", "2/4", "2/16"][(seed % 4) as usize];
        let params = Params::usual(board, "score").kept(kept.parse::<KeptLayers>().unwrap()).build().unwrap();
        let mut lanes: BTreeMap<Layer, Vec<Lane>> = BTreeMap::new();
        for lane in lane::lanes(&params) {
            let (first, last) = lane::layer_range(&params, lane);
            for layer in (first.0..=last.0).step_by(2) {
                lanes.entry(Layer(layer)).or_default().push(lane);
            }
        }
        // With a disk limit, blocks are large, so the overhead of files is small.
        let block_bytes = if kept == "2/16" { 1000 } else { 1 };
        Self { params, block_bytes, lanes }
    }

    /// Returns one member's correct report of a layer. Each member sends every block to every other member.
    pub fn part(
        &self,
        phase: Phase,
        layer: Layer,
        owners: &Owners,
        member: usize,
        members: usize,
    ) -> LayerPart {
        let owned = |lane: &&Lane| owners.owner(**lane) == member;
        let mut part = self.sum(phase, layer, self.lanes[&layer].iter().filter(owned));
        for &lane in &self.lanes[&layer] {
            let owner = owners.owner(lane);
            let checksum = |to: usize| mix(mix(lane.code() + 1) ^ u64::from(layer.0) << 8 ^ to as u64);
            if owner == member {
                let others = (0..members).filter(|&to| to != member);
                part.sent = others.map(checksum).fold(part.sent, u64::wrapping_add);
            } else {
                part.received = part.received.wrapping_add(checksum(member));
            }
        }
        part
    }

    /// Returns a disk limit that forces a run to enumerate most layers twice, if it keeps few layers.
    pub fn tight_limit(&self, most_members: u64) -> Option<u64> {
        let kept = self.params.contents().kept();
        if kept.period() <= 4 {
            return None;
        }
        let layers: Vec<Layer> = self.lanes.keys().copied().collect();
        let bytes = |phase, layer| self.layer(phase, layer).totals.sealed_bytes;
        let of_kept = layers.iter().filter(|&&layer| kept.keeps(layer));
        let kept_bytes: u64 =
            of_kept.map(|&layer| bytes(Phase::Enumerate, layer) + bytes(Phase::BackUp, layer)).sum();
        // The layers from one cut to the next, both included.
        let between = layers.windows(kept.period() as usize + 2);
        let reach = between.map(|layers| layers.iter().map(|&layer| bytes(Phase::Enumerate, layer)).sum());
        let files = 2 * layers.len() as u64 * most_members * FILE_BYTES;
        Some(with_headroom(kept_bytes + reach.max().unwrap_or(0) + files + most_members * BESIDE_FRAMES))
    }

    /// Returns the whole contents of a layer.
    pub fn layer(&self, phase: Phase, layer: Layer) -> LayerPart {
        self.sum(phase, layer, self.lanes[&layer].iter())
    }

    pub fn counts(&self, layer: Layer) -> LayerCounts {
        let Totals { states, afterstates, .. } = self.layer(Phase::Enumerate, layer).totals;
        LayerCounts { layer, states, afterstates }
    }

    fn sum<'a>(&self, phase: Phase, layer: Layer, lanes: impl Iterator<Item = &'a Lane>) -> LayerPart {
        let is_stored = phase == Phase::Enumerate || self.params.contents().kept().keeps(layer);
        let mut part = LayerPart { layer, totals: Totals::default(), sent: 0, received: 0 };
        for lane in lanes {
            let hash = mix(mix(lane.code() + 1) ^ u64::from(layer.0) << 1 ^ phase as u64);
            // The counts are equal in both passes, and possible even for the smallest block.
            let counts = mix(mix(lane.code() + 1) ^ u64::from(layer.0));
            part.totals += Totals {
                states: counts % 2,
                afterstates: counts >> 1 & 1,
                fingerprint: u128::from(hash) << 64 | u128::from(mix(hash)),
                sealed_bytes: if is_stored { hash % 500 * self.block_bytes } else { 0 },
            };
        }
        part
    }
}
