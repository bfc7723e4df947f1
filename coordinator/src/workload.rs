//! Numbers of rows, entries and states in layers, exact or estimated, before the run finds them.

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::{Layer, Params, lane};

use crate::layer_sums::LayerSums;
use crate::states;

/// Number of rows, entries (rows × columns) and states in each layer. Rows and entries can be counted without
/// enumerating states.
#[derive(Clone, Debug)]
pub struct Workload {
    entries: LayerSums,
    rows: LayerSums,
    states: Vec<f64>,
}

impl Workload {
    /// Counts the entries of a run. Cost: a step per block; 0.04 s for 4x3.
    pub fn new(params: &Params) -> Self {
        let space = Space::new(params);
        let layers = params.last_layer().index() + 1;
        let (mut rows, mut entries) = (vec![0.0; layers], vec![0.0; layers]);
        for lane in lane::lanes(params) {
            let columns = Columns::count(params, lane) as f64;
            let (first, last) = lane::layer_range(params, lane);
            for layer in first.to(last.min(params.last_layer())) {
                let of_block = ClassId::of(layer, lane).map_or(0, |class| space.estimate_rows(class)) as f64;
                rows[layer.index()] += of_block;
                entries[layer.index()] += of_block * columns;
            }
        }
        let states = states::of_layers(params, &rows, &entries);
        Self { entries: LayerSums::new(entries), rows: LayerSums::new(rows), states }
    }

    /// Replaces the numbers of states in the layers.
    #[must_use]
    pub fn with_states(self, states: Vec<f64>) -> Self {
        Self { states, ..self }
    }

    /// Returns the number of entries in the run's layers from `first` to `end`, excluding `end`.
    pub fn entries(&self, first: Layer, end: Layer) -> f64 {
        self.entries.between(first, end)
    }

    /// Returns the number of entries in the run.
    pub fn whole(&self) -> f64 {
        self.entries.whole()
    }

    /// Returns the number of rows in all blocks of the run.
    pub fn whole_rows(&self) -> f64 {
        self.rows.whole()
    }

    /// Returns the number of states in a layer, counted or estimated.
    pub fn states(&self, layer: Layer) -> f64 {
        self.states.get(layer.index()).copied().unwrap_or_default()
    }

    /// Returns the number of states in the run.
    pub fn whole_states(&self) -> f64 {
        self.states.iter().sum()
    }

    /// Returns the number of rows in a layer, and the fraction of rows that contain a state.
    pub(crate) fn occurring(&self, layer: Layer) -> (f64, f64) {
        let end = layer.up(1);
        let (rows, entries) = (self.rows.between(layer, end), self.entries.between(layer, end));
        (rows, occurring(self.states(layer), rows, entries))
    }
}

/// Estimates the fraction of rows that contain a state, given the number of states among their entries. The entries
/// of a row are correlated. So the model counts only the square root of a row's entries as independent. The model is
/// fitted to the times and the reach of 4x4 runs.
pub(crate) fn occurring(states: f64, rows: f64, entries: f64) -> f64 {
    if rows <= 0.0 || entries <= 0.0 {
        return 0.0;
    }
    1.0 - (1.0 - (states / entries).min(1.0)).powf((entries / rows).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(board: &str, until_layer: Option<u32>) -> Workload {
        let params = Params::usual(board, "score").until(until_layer).build().unwrap();
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
    fn every_layer_has_more_entries_than_states() {
        // Numbers of states in layers of 3x3, from the output of `exact2048 layers`.
        let workload = workload("3x3", None);
        for (layer, states) in [(4, 8.0), (84, 18_906.0), (804, 55_386.0), (1204, 79_582.0), (2004, 6_315.0)]
        {
            let entries = workload.entries(Layer(layer), Layer(layer + 2));
            assert!((states..100.0 * states).contains(&entries), "layer {layer}: {entries} for {states}");
        }
    }

    #[test]
    fn a_shortened_run_has_no_entries_beyond_its_end() {
        let workload = workload("2x2", Some(20));
        assert_eq!(workload.entries(Layer(4), Layer(60)), workload.entries(Layer(4), Layer(22)));
    }
}
