//! Blocks of a job, the number of states of each block, and the blocks that it needs.

use exact2048_game::lane;
use exact2048_game::{Lane, Layer, Params, ParamsBuilder};
use exact2048_solution::{LaneWork, Phase};

/// A job. Layers are numbered upward from 0, lanes in the order of moves.
pub struct Job {
    pub params: Params,
    pub lanes: Vec<LaneBlocks>,
    pub layers: usize,
    pub states: f64,
}

/// The blocks of a lane.
pub struct LaneBlocks {
    pub lane: Lane,
    /// Number of the lane's first layer.
    pub first: usize,
    /// Number of states in each of the lane's blocks, layer by layer, or of states that take as long as its rows.
    pub states: Vec<f64>,
    /// Lanes that moves from this lane reach, and lanes with moves that reach this lane.
    pub after: Vec<usize>,
    pub before: Vec<usize>,
}

impl Job {
    /// Estimates the work of every block as for dealing, and scales it to a known number of states. `split` may change
    /// the division into lanes that `solve` uses, and the stored layers.
    pub fn new(board: &str, states: u64, split: impl FnOnce(ParamsBuilder) -> ParamsBuilder) -> Self {
        let params = split(Params::usual(board, "score")).build().expect("a job");
        let names = lane::lanes(&params);
        let work = LaneWork::of_lanes(&params, &names);
        let blocks = names.iter().zip(work).map(|(&lane, work)| blocks(&params, lane, &work));
        let mut lanes: Vec<LaneBlocks> = blocks.collect();
        let entries: f64 = lanes.iter().flat_map(|lane| &lane.states).sum();
        let scale = states as f64 / entries;
        lanes.iter_mut().flat_map(|lane| &mut lane.states).for_each(|states| *states *= scale);
        for from in 0..lanes.len() {
            for after in names[from].target_lanes(&params) {
                let Ok(to) = names.binary_search(&after) else { continue };
                lanes[from].after.push(to);
                lanes[to].before.push(from);
            }
        }
        let layers = (params.last_layer().0 as usize - 4) / 2 + 1;
        Self { params, lanes, layers, states: states as f64 }
    }

    /// Converts between a layer's number and its position in a pass.
    pub fn turned(&self, phase: Phase, layer: usize) -> usize {
        match phase {
            Phase::Enumerate => layer,
            Phase::BackUp => self.layers - 1 - layer,
        }
    }

    pub fn layer(&self, phase: Phase, position: usize) -> Layer {
        Layer(4 + 2 * self.turned(phase, position) as u32)
    }

    /// Returns the positions of a lane's blocks in a pass.
    pub fn positions(&self, phase: Phase, lane: usize) -> std::ops::Range<usize> {
        let (first, count) = (self.lanes[lane].first, self.lanes[lane].states.len());
        match phase {
            Phase::Enumerate => first..first + count,
            Phase::BackUp => self.layers - first - count..self.layers - first,
        }
    }

    /// Returns the number of states in a block.
    pub fn block(&self, phase: Phase, lane: usize, position: usize) -> f64 {
        self.lanes[lane].states[self.turned(phase, position) - self.lanes[lane].first]
    }

    /// Returns two lists of lanes. In each layer, a lane's block needs the blocks of the first list, and the blocks of
    /// the second list need the lane's block.
    pub fn needs(&self, phase: Phase, lane: usize) -> (&[usize], &[usize]) {
        let LaneBlocks { after, before, .. } = &self.lanes[lane];
        match phase {
            Phase::Enumerate => (before, after),
            Phase::BackUp => (after, before),
        }
    }
}

fn blocks(params: &Params, lane: Lane, work: &LaneWork) -> LaneBlocks {
    let (first, _) = lane::layer_range(params, lane);
    let states = work.blocks.iter().map(|&work| work as f64).collect();
    LaneBlocks { lane, first: (first.0 as usize - 4) / 2, states, after: Vec::new(), before: Vec::new() }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let blocks: usize = self.lanes.iter().map(|lane| lane.states.len()).sum();
        let mut layers = vec![0.0; self.layers];
        let mut most: Vec<f64> = layers.clone();
        for lane in &self.lanes {
            layers[lane.first..].iter_mut().zip(&lane.states).for_each(|(layer, states)| *layer += states);
            most[lane.first..]
                .iter_mut()
                .zip(&lane.states)
                .for_each(|(most, &states)| *most = states.max(*most));
        }
        let largest = layers.iter().copied().fold(0.0, f64::max);
        write!(
            f,
            "{:.4e} states, {} layers of up to {:.3e} states, {} lanes, {} blocks; the largest blocks of all layers \
             have {:.3} of all states",
            self.states,
            self.layers,
            largest,
            self.lanes.len(),
            blocks,
            most.iter().sum::<f64>() / self.states
        )
    }
}
