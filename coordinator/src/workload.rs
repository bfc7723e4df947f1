//! How many entries layers have, known before any of them is found.

use exact2048_game::class::Space;
use exact2048_game::{Layer, Params, lane};

use crate::layer_sums::LayerSums;

/// The entries (rows × columns) of each layer. Unlike states they can be counted without finding them; the share of them
/// that is reachable changes slowly from layer to layer.
#[derive(Clone, Debug)]
pub struct Workload(LayerSums);

impl Workload {
    /// Counts the entries of a run. Cost: a step a block; 0.04 s for 4x3.
    pub fn new(params: &Params) -> Self {
        let space = Space::new(params);
        let mut entries = vec![0.0; params.last_layer().index() + 1];
        for (layer, count) in lane::lanes(params).into_iter().flat_map(|lane| space.entries_about(lane)) {
            if let Some(entries) = entries.get_mut(layer.index()) {
                *entries += count as f64;
            }
        }
        Self(LayerSums::new(entries))
    }

    /// Entries in the layers from `first` on that are below `end`, as far as the run has them.
    pub fn entries(&self, first: Layer, end: Layer) -> f64 {
        self.0.between(first, end)
    }

    /// Entries of the run.
    pub fn whole(&self) -> f64 {
        self.0.whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::{Objective, Precision, Spawn4};

    fn workload(board: &str, until_layer: Option<u32>) -> Workload {
        let (board, spawn4) = (board.parse().unwrap(), Spawn4::default());
        let params = Params::new(board, Objective::Score, spawn4, Precision::Bits32, until_layer).unwrap();
        Workload::new(&params)
    }

    #[test]
    fn entries_add_up() {
        let workload = workload("3x3", None);
        let end = Layer(2046);
        let all = workload.entries(Layer(4), end);
        assert!(all > 48_713_519.0, "fewer entries than states: {all}");
        assert_eq!(workload.whole(), all);
        for at in [Layer(4), Layer(6), Layer(900), Layer(2044), end, Layer(9999)] {
            let (below, rest) = (workload.entries(Layer(4), at), workload.entries(at, end));
            assert!((below + rest - all).abs() < 1e-6 * all, "{at}: {below} and {rest} of {all}");
        }
        assert_eq!(workload.entries(Layer(900), Layer(800)), 0.0);
    }

    #[test]
    fn every_layer_has_room_for_its_states() {
        // States of layers of 3x3, as `layers` lists them.
        let workload = workload("3x3", None);
        for (layer, states) in [(4, 8.0), (84, 18_906.0), (804, 55_386.0), (1204, 79_582.0), (2004, 6_315.0)]
        {
            let entries = workload.entries(Layer(layer), Layer(layer + 2));
            assert!((states..100.0 * states).contains(&entries), "layer {layer}: {entries} for {states}");
        }
    }

    #[test]
    fn a_run_that_ends_early_has_no_more() {
        let workload = workload("2x2", Some(20));
        assert_eq!(workload.entries(Layer(4), Layer(60)), workload.entries(Layer(4), Layer(22)));
    }
}
