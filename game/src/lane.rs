//! Lanes: the division of a layer into blocks, and the target lanes of moves.
//!
//! Within a [layer](Layer), a board has a *lane* (k, T, H, s): the number of its large tiles, their sum, the *huge*
//! tiles among them, and a sector. The [sector](crate::sector) depends on the places of the large tiles. The boards of
//! one layer and one lane are a *block*. A spawn preserves the lane. A move with `m` merges of large tiles and `j`
//! births preserves the layer. It leads from lane (k, T, H, s) to lane (k−m+j, T+j·2^large, H', s'). Tiles of at least
//! 2^large are large. If the lanes of a board are small without H, no tile is huge. Most runs have a single sector.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::huge::HugeTiles;
use crate::layer::Layer;
use crate::params::Params;
use crate::sector::MOST_SECTORS;

/// Bits of the number of large tiles in the code of a lane.
const K_BITS: u32 = 5;

/// Lane of a board: its number `k` of large tiles, their sum `large_sum`, the huge tiles among them, and their sector.
///
/// Lanes are ordered by sum, then from many tiles to few, so moves lead upward in this order. Only lanes that differ in
/// the sector alone lead to each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// Number of large tiles.
    pub k: u8,
    /// Sum of the large tiles.
    pub large_sum: u32,
    /// Huge tiles.
    pub huge: HugeTiles,
    /// Sector of the places of the large tiles.
    pub sector: u8,
}

impl std::fmt::Display for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "k={} sum={}", self.k, self.large_sum)?;
        if !self.huge.is_empty() {
            write!(f, " huge={}", self.huge)?;
        }
        if self.sector == 0 { Ok(()) } else { write!(f, " sector={}", self.sector) }
    }
}

impl PartialOrd for Lane {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Lane {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |lane: &Self| (lane.large_sum, Reverse(lane.k), lane.huge, lane.sector);
        key(self).cmp(&key(other))
    }
}

impl Lane {
    /// Creates a lane without huge tiles, in the first sector.
    pub const fn new(k: u8, large_sum: u32) -> Self {
        Self { k, large_sum, huge: HugeTiles::NONE, sector: 0 }
    }

    /// Returns the lane with the same large tiles in the first sector. All sectors have its columns.
    #[must_use]
    pub const fn in_first_sector(self) -> Self {
        Self { sector: 0, ..self }
    }

    /// Returns the lane as one number for keys in files: huge tiles highest, then the sum, the sector, and the number of
    /// tiles.
    pub fn code(self) -> u64 {
        let places = u64::from(self.sector) << K_BITS | u64::from(self.k);
        u64::from(self.huge.0) << 32 | u64::from(self.large_sum) << 8 | places
    }

    /// Returns the lane of a [`Lane::code`]; `None` if the number is not the code of a lane.
    pub fn from_code(code: u64) -> Option<Self> {
        let huge = HugeTiles((code >> 32) as u32);
        let (k, sector) = (code as u8 & ((1 << K_BITS) - 1), code as u8 >> K_BITS);
        let lane = Self { k, large_sum: (code as u32) >> 8, huge, sector };
        (lane.k <= 16 && huge.len() <= lane.k && huge.sum() <= lane.large_sum).then_some(lane)
    }

    /// Returns the lanes that a move with `step` can lead to from this lane. Some of them have no board.
    pub fn after(self, step: Step, params: &Params) -> Vec<Self> {
        let Some(k) = (self.k + step.births).checked_sub(step.merges) else { return Vec::new() };
        let large_sum = self.large_sum + (u32::from(step.births) << params.split().large());
        if step.sector >= params.split().sectors() {
            return Vec::new();
        }
        let huge = self.huge.after(step.merges, params.split().huge());
        huge.into_iter().map(|huge| Self { k, large_sum, huge, sector: step.sector }).collect()
    }

    /// Returns the lanes from which a move with `step` can lead to this lane. Some of them have no board.
    pub fn before(self, step: Step, params: &Params) -> Vec<Self> {
        let k = (self.k + step.merges).checked_sub(step.births);
        let large_sum = self.large_sum.checked_sub(u32::from(step.births) << params.split().large());
        let Some((k, large_sum)) = k.zip(large_sum).filter(|_| step.sector == self.sector) else {
            return Vec::new();
        };
        let huge = self.huge.before(step.merges, params.split().huge());
        let in_sectors =
            |huge| (0..params.split().sectors()).map(move |sector| Self { k, large_sum, huge, sector });
        huge.into_iter().flat_map(in_sectors).collect()
    }

    /// Returns the other lanes that moves can lead to from this lane. Some of them have no board.
    pub fn target_lanes(self, params: &Params) -> BTreeSet<Self> {
        let mut lanes: BTreeSet<_> =
            Step::all(params).into_iter().flat_map(|step| self.after(step, params)).collect();
        lanes.remove(&self);
        lanes
    }

    /// Returns the other lanes from which moves can lead to this lane. Some of them have no board.
    pub fn source_lanes(self, params: &Params) -> BTreeSet<Self> {
        let mut lanes: BTreeSet<_> =
            Step::all(params).into_iter().flat_map(|step| self.before(step, params)).collect();
        lanes.remove(&self);
        lanes
    }
}

/// Effect of a move on the large tiles: pairs that merge, new tiles made of two small tiles, and the places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Step {
    /// Number of merges of two large tiles.
    pub merges: u8,
    /// Number of large tiles made of two small tiles of half their size.
    pub births: u8,
    /// Sector of the large tiles after the move.
    pub sector: u8,
}

impl Step {
    /// Step of a move that preserves the number and the sum of the large tiles, and leads to the first sector.
    pub const STAY: Step = Step { merges: 0, births: 0, sector: 0 };

    /// Returns every step that a move on this board can make, with at most one merge per two cells of a line.
    pub fn all(params: &Params) -> Vec<Step> {
        let (rows, cols) = (params.game().board().rows() as u8, params.game().board().cols() as u8);
        let most = (rows * (cols / 2)).max(cols * (rows / 2));
        let with = |births| (0..=most - births).map(move |merges| (merges, births));
        let of_sector =
            |sector| (0..=most).flat_map(with).map(move |(merges, births)| Step { merges, births, sector });
        (0..params.split().sectors()).flat_map(of_sector).collect()
    }
}

/// Returns all lanes of a run that have at least one sequence, in order.
pub fn lanes(params: &Params) -> Vec<Lane> {
    let loose = params.game().board().loose();
    let most_large = params.most_cells_with(params.split().large()) + usize::from(loose);
    let mut found = BTreeSet::from([Lane::new(loose, 0)]);
    // The lanes of sets of tiles that obey the tile bound, built from the largest exponent down.
    let mut sets = found.clone();
    for exponent in (params.split().large()..=params.largest_exponent()).rev() {
        let most = params.most_cells_with(exponent);
        let mut next = sets.clone();
        for &set in &sets {
            let one_more = |lane: &Lane| {
                let huge =
                    if exponent < params.split().huge() { lane.huge } else { lane.huge.with(exponent) };
                Some(Lane { k: lane.k + 1, large_sum: lane.large_sum + (1 << exponent), huge, sector: 0 })
            };
            let more = std::iter::successors(Some(set), one_more).skip(1);
            next.extend(more.take((most + usize::from(loose)).saturating_sub(usize::from(set.k))));
        }
        sets = next;
    }
    let last = params.last_layer().0;
    let occurs = |lane: &Lane| {
        let (first, last) = layer_range(params, *lane);
        first <= last
    };
    let possible = |lane: &Lane| usize::from(lane.k) <= most_large && lane.large_sum <= last && occurs(lane);
    found.extend(sets.into_iter().filter(possible));
    let sectors = params.sectors();
    let in_sectors = |lane: Lane| {
        let set = sectors.occurring()[usize::from(lane.k)];
        (0..MOST_SECTORS)
            .filter(move |sector| set >> sector & 1 == 1)
            .map(move |sector| Lane { sector, ..lane })
    };
    found.into_iter().flat_map(in_sectors).collect()
}

/// Returns the layers in which a lane can have boards, as `first..=last`.
pub fn layer_range(params: &Params, lane: Lane) -> (Layer, Layer) {
    let most_small = (params.game().cells() as u32 - u32::from(lane.k)) << (params.split().large() - 1);
    let last = params.last_layer().0.min(lane.large_sum + most_small);
    (Layer(lane.large_sum).max(params.first_layer()), Layer(last - last % Layer::STEP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::huge::LEAST_HUGE;

    #[test]
    fn lanes_are_ordered_as_moves_lead() {
        let params = Params::small("3x3");
        // 543 of the 548 lanes without huge tiles occur. The others only obey the tile bound.
        for (params, count) in
            [(params.clone(), 548), (params.to_builder().huge(LEAST_HUGE).build().unwrap(), 1008)]
        {
            let lanes = lanes(&params);
            assert_eq!(lanes.len(), count);
            for &lane in &lanes {
                assert_eq!(Lane::from_code(lane.code()), Some(lane));
                for step in Step::all(&params).into_iter().filter(|&s| s != Step::STAY) {
                    for target in lane.after(step, &params) {
                        assert!(target > lane, "{lane:?} {step:?}");
                        assert!(target.before(step, &params).contains(&lane), "{lane:?} {step:?}");
                    }
                    for source in lane.before(step, &params) {
                        assert!(source.after(step, &params).contains(&lane), "{lane:?} {step:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn sectors_divide_lanes() {
        let whole = Params::small("3x3");
        let params = whole.to_builder().sectors(3).build().unwrap();
        let divided = lanes(&params);
        let together: BTreeSet<_> = divided.iter().map(|lane| lane.in_first_sector()).collect();
        assert!(together.into_iter().eq(lanes(&whole)));
        let codes: BTreeSet<u64> = divided.iter().map(|lane| lane.code()).collect();
        assert_eq!(codes.len(), divided.len());
        for &lane in &divided {
            assert_eq!(Lane::from_code(lane.code()), Some(lane));
            for other in lane.target_lanes(&params) {
                assert!(
                    other > lane || other.in_first_sector() == lane.in_first_sector(),
                    "{lane:?} {other:?}"
                );
                assert!(other.source_lanes(&params).contains(&lane), "{lane:?} {other:?}");
            }
            for step in Step::all(&params) {
                let sources = lane.before(step, &params);
                assert!(
                    sources.iter().all(|source| source.after(step, &params).contains(&lane)),
                    "{lane:?} {step:?}"
                );
            }
        }
    }

    #[test]
    fn other_numbers_are_not_lanes() {
        let huge = HugeTiles::NONE.with(9);
        let code = |k, large_sum| Lane { k, large_sum, huge, sector: 0 }.code();
        assert!(Lane::from_code(code(1, 512)).is_some());
        for wrong in [code(0, 512), code(2, 510), code(17, 1024)] {
            assert_eq!(Lane::from_code(wrong), None, "{wrong:x}");
        }
    }

    /// A lane without huge tiles is the union of the divided lanes with the same number and sum.
    #[test]
    fn huge_tiles_divide_lanes() {
        let params = Params::small("4x2");
        let undivided: BTreeSet<_> = lanes(&params).into_iter().collect();
        let divided = lanes(&params.to_builder().huge(LEAST_HUGE).build().unwrap());
        assert!(divided.len() > undivided.len());
        let together: BTreeSet<_> = divided.iter().map(|lane| Lane::new(lane.k, lane.large_sum)).collect();
        assert_eq!(together, undivided);
    }
}
