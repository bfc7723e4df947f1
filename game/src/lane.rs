//! Layers and lanes: how the state space is cut, and which block needs which.
//!
//! Within a [layer](Layer), the *lane* (k, T) of a board is the number of its large tiles
//! and their sum; layer × lane is a *block*. A spawn keeps the lane; a move with `m` merges of large
//! tiles and `j` births of new ones leads from lane (k, T) to (k − m + j, T + j·2^h), in the same layer.

use serde::{Deserialize, Serialize};

use crate::layer::Layer;
use crate::params::Params;

/// A lane: number `k` of large tiles and their sum `large_sum`. Ordered as moves lead through them:
/// by sum, then from many tiles to few.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// Number of large tiles.
    pub k: u8,
    /// Sum of the large tiles.
    pub large_sum: u32,
}

impl PartialOrd for Lane {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Lane {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.large_sum, other.k).cmp(&(other.large_sum, self.k))
    }
}

impl Lane {
    /// The lane as one number, for keys in files; ordered by sum, then by number of tiles.
    pub fn code(self) -> u64 {
        u64::from(self.large_sum) << 8 | u64::from(self.k)
    }

    /// The lane of a [`Lane::code`], `None` where the number is no lane's.
    pub fn from_code(code: u64) -> Option<Self> {
        let lane = Self { k: (code & 0xff) as u8, large_sum: u32::try_from(code >> 8).ok()? };
        (lane.k <= 16).then_some(lane)
    }

    /// The lane that a move with `step` leads to from here.
    pub fn after(self, step: Step, large: u8) -> Option<Self> {
        let k = (self.k + step.births).checked_sub(step.merges)?;
        Some(Self { k, large_sum: self.large_sum + (u32::from(step.births) << large) })
    }

    /// The lane that a move with `step` comes from to end here.
    pub fn before(self, step: Step, large: u8) -> Option<Self> {
        let k = (self.k + step.merges).checked_sub(step.births)?;
        Some(Self { k, large_sum: self.large_sum.checked_sub(u32::from(step.births) << large)? })
    }
}

/// What a move does to the large tiles: pairs that merge, and new ones born from two small tiles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Step {
    /// Merges of two large tiles.
    pub merges: u8,
    /// Large tiles born from two of half their size.
    pub births: u8,
}

impl Step {
    /// A move that leaves the number and the sum of the large tiles as they are.
    pub const STAY: Step = Step { merges: 0, births: 0 };

    /// Every step that a move on this board can make: at most one merge for two cells of a line.
    pub fn all(params: &Params) -> Vec<Step> {
        let (rows, cols) = (params.board.rows() as u8, params.board.cols() as u8);
        let most = (rows * (cols / 2)).max(cols * (rows / 2));
        (0..=most).flat_map(|births| (0..=most - births).map(move |merges| Step { merges, births })).collect()
    }
}

/// All lanes of a run that have at least one sequence, in order.
pub fn lanes(params: &Params) -> Vec<Lane> {
    let most_large = params.most_cells_with(params.large);
    let mut found = std::collections::BTreeSet::from([Lane { k: 0, large_sum: 0 }]);
    // Sums of k tiles that obey the tile bound, built from the largest exponent down.
    let mut sums = std::collections::BTreeSet::from([(0usize, 0u64)]);
    for exponent in (params.large..=params.largest_exponent()).rev() {
        let most = params.most_cells_with(exponent);
        let mut next = sums.clone();
        for &(k, sum) in &sums {
            for count in 1..=most.saturating_sub(k) {
                next.insert((k + count, sum + ((count as u64) << exponent)));
            }
        }
        sums = next;
    }
    let last = u64::from(params.last_layer().0);
    found.extend(
        sums.into_iter()
            .filter(|&(k, sum)| k <= most_large && sum <= last)
            .map(|(k, sum)| Lane { k: k as u8, large_sum: sum as u32 }),
    );
    found.into_iter().collect()
}

/// The layers in which a lane can have boards, as `first..=last`.
pub fn layer_range(params: &Params, lane: Lane) -> (Layer, Layer) {
    let most_small = (params.cells() as u32 - u32::from(lane.k)) << (params.large - 1);
    let last = params.last_layer().0.min(lane.large_sum + most_small);
    (Layer(lane.large_sum.max(4)), Layer(last & !1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_ordered_as_moves_lead() {
        let params = Params::new(
            "3x3".parse().unwrap(),
            crate::Objective::Score,
            crate::Spawn4::default(),
            crate::Precision::Bits32,
            None,
        )
        .unwrap();
        let lanes = lanes(&params);
        // 543 of them occur; the others obey the tile bound, and no more is asked of them.
        assert_eq!(lanes.len(), 548);
        for &lane in &lanes {
            assert_eq!(Lane::from_code(lane.code()), Some(lane));
            for step in Step::all(&params).into_iter().filter(|&s| s != Step::STAY) {
                if let Some(target) = lane.after(step, params.large) {
                    assert!(target > lane, "{lane:?} {step:?}");
                    assert_eq!(target.before(step, params.large), Some(lane));
                }
            }
        }
    }
}
