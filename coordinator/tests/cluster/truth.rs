//! What a job's layers really hold, modelled by hashes: what every schedule has to arrive at.

use std::collections::BTreeMap;

use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::LayerPart;
use exact2048_game::{Lane, Layer, Objective, Params, Precision, Spawn4, lane};
use exact2048_solution::{LayerCounts, Owners, Phase};

use crate::random::mix;

/// A board small enough for thousands of runs, and its blocks.
pub struct Truth {
    pub params: Params,
    lanes: BTreeMap<Layer, Vec<Lane>>,
}

impl Truth {
    /// Every other schedule keeps other layers than runs do unless told otherwise.
    pub fn new(board: &str, seed: u64) -> Self {
        let (board, spawn4) = (board.parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, None).unwrap();
        let kept = ["2/4", "1/1", "2/4", "2/16"][(seed % 4) as usize];
        let params = params.with_kept(kept.parse().unwrap());
        let mut lanes: BTreeMap<Layer, Vec<Lane>> = BTreeMap::new();
        for lane in lane::lanes(&params) {
            let (first, last) = lane::layer_range(&params, lane);
            for layer in (first.0..=last.0).step_by(2) {
                lanes.entry(Layer(layer)).or_default().push(lane);
            }
        }
        Self { params, lanes }
    }

    /// What one member has to report of a layer. Each sends every block to every other member.
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

    /// What a layer holds in all.
    pub fn layer(&self, phase: Phase, layer: Layer) -> LayerPart {
        self.sum(phase, layer, self.lanes[&layer].iter())
    }

    pub fn counts(&self, layer: Layer) -> LayerCounts {
        let Totals { states, afterstates, .. } = self.layer(Phase::Enumerate, layer).totals;
        LayerCounts { layer, states, afterstates }
    }

    fn sum<'a>(&self, phase: Phase, layer: Layer, lanes: impl Iterator<Item = &'a Lane>) -> LayerPart {
        let mut part = LayerPart { layer, totals: Totals::default(), sent: 0, received: 0 };
        for lane in lanes {
            let hash = mix(mix(lane.code() + 1) ^ u64::from(layer.0) << 1 ^ phase as u64);
            // The same on both ways, and no more than there is room for in the smallest block.
            let counts = mix(mix(lane.code() + 1) ^ u64::from(layer.0));
            part.totals += Totals {
                states: counts % 2,
                afterstates: counts >> 1 & 1,
                fingerprint: u128::from(hash) << 64 | u128::from(mix(hash)),
                sealed_bytes: hash % 500,
            };
        }
        part
    }
}
