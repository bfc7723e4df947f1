//! Dealing lanes by size: each member gets about the same share of the work of every layer.
//!
//! Lanes are dealt in the order of their first layers, those with most work first. Each goes to the member that then
//! costs least. A few more rounds take each lane back and deal it again. All arithmetic is on integers, so that every
//! machine deals the same.

use std::cmp::Reverse;
use std::ops::Range;

use exact2048_game::lane::{Step, lanes};
use exact2048_game::{Lane, Params};

use super::work::LaneWork;

/// Largest weight of a member, also for members with more threads.
const MOST_WEIGHT: u32 = 256;

/// Rounds in which lanes are dealt again, if there are at most [`FEW_MEMBERS`]. Further rounds change little. With many
/// members, single lanes decide, and the rounds would take long.
const MORE_ROUNDS: usize = 2;
const FEW_MEMBERS: usize = 32;

/// Bits of the shares of a layer's work.
const SHARE_BITS: u32 = 20;

/// Bits of the work of a layer.
const WORK_BITS: u32 = 30;

/// Price of moves from a member's lane to another member's, in the unit of [`Links::between`]. Lanes that exchange much
/// then often have one owner. With two members, a third fewer values are sent than without a price. The busiest member
/// has some hundredths more of a layer's work.
const PRICE: u64 = 10;

/// The owner of each lane, lanes ascending.
pub(super) fn deal(params: &Params, threads: &[u32]) -> Vec<(Lane, u16)> {
    let lanes = lanes(params);
    let work = scaled(LaneWork::of_lanes(params, &lanes), params.last_layer().index() + 1);
    let links = Links::new(params, &lanes, &work);
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    order.sort_by_key(|&lane| (work[lane].first, Reverse(work[lane].whole()), lane));
    let mut table = Table::new(threads, params.last_layer().index() + 1);
    let mut owners: Vec<Option<usize>> = vec![None; lanes.len()];
    let rounds = if threads.len() <= FEW_MEMBERS { 1 + MORE_ROUNDS } else { 1 };
    for lane in std::iter::repeat_n(order, rounds).flatten() {
        if let Some(owner) = owners[lane].take() {
            table.change(&work[lane], owner, u64::wrapping_sub);
        }
        let mut saved = vec![0; threads.len()];
        for (other, bytes) in &links.of[lane] {
            if let Some(owner) = owners[*other] {
                saved[owner] += bytes;
            }
        }
        let owner = table.cheapest(&work[lane], &saved);
        table.change(&work[lane], owner, u64::wrapping_add);
        owners[lane] = Some(owner);
    }
    lanes.into_iter().zip(owners).map(|(lane, owner)| (lane, owner.unwrap_or_default() as u16)).collect()
}

/// The work of a lane's blocks: as a number, and as a share of the layer's work.
struct Scaled {
    first: usize,
    blocks: Vec<(u64, u64)>,
}

impl Scaled {
    fn whole(&self) -> u64 {
        self.blocks.iter().map(|(work, _)| work).sum()
    }

    fn layers(&self) -> Range<usize> {
        self.first..self.first + self.blocks.len()
    }
}

/// Scales work so that sums of products fit 64 bits.
fn scaled(lanes: Vec<LaneWork>, layers: usize) -> Vec<Scaled> {
    let mut totals = vec![0u128; layers];
    for lane in &lanes {
        totals[lane.first..]
            .iter_mut()
            .zip(&lane.blocks)
            .for_each(|(total, &work)| *total += u128::from(work));
    }
    let most = totals.iter().copied().max().unwrap_or_default();
    let shift = (u128::BITS - most.leading_zeros()).saturating_sub(WORK_BITS);
    let scale = |LaneWork { first, blocks }| {
        let block = |(&work, &total): (&u64, &u128)| {
            let share = (u128::from(work) << SHARE_BITS) / total.max(1);
            ((u128::from(work) >> shift) as u64, share as u64)
        };
        Scaled { first, blocks: blocks.iter().zip(&totals[first..]).map(block).collect() }
    };
    lanes.into_iter().map(scale).collect()
}

/// The sum of the shares that each member has of each layer.
struct Table {
    members: usize,
    /// By layer and member.
    shares: Vec<u64>,
    /// The weight of each member, and of all.
    weights: Vec<u64>,
    all: u64,
}

impl Table {
    fn new(threads: &[u32], layers: usize) -> Self {
        let weights: Vec<u64> = threads.iter().map(|&n| u64::from(n.clamp(1, MOST_WEIGHT))).collect();
        let (members, all) = (weights.len(), weights.iter().sum());
        Self { members, shares: vec![0; layers * members], weights, all }
    }

    fn change(&mut self, lane: &Scaled, owner: usize, change: impl Fn(u64, u64) -> u64) {
        let of_owner = self.shares[lane.first * self.members + owner..].iter_mut().step_by(self.members);
        of_owner.zip(&lane.blocks).for_each(|(sum, &(_, share))| *sum = change(*sum, share));
    }

    /// The member with the lowest cost of a lane.
    ///
    /// Evenly dealt layers have the least sum of squares of the members' shares, each over the member's weight. So the
    /// cost is what the lane adds to that sum, over its layers by their work, less what its neighbours save.
    fn cheapest(&self, lane: &Scaled, saved: &[u64]) -> usize {
        let mut sums = vec![0u64; self.members];
        let rows = self.shares[lane.first * self.members..].chunks_exact(self.members);
        for (row, &(work, share)) in rows.zip(&lane.blocks) {
            sums.iter_mut().zip(row).for_each(|(sum, &has)| *sum += work * (2 * has + share));
        }
        let cost = |member: usize| {
            let added = u128::from(sums[member]) * u128::from(self.all) / u128::from(self.weights[member]);
            added as i128 - i128::from(saved[member])
        };
        (0..self.members).min_by_key(|&member| cost(member)).unwrap_or_default()
    }
}

/// Tenths of a byte that a state needs from the lanes after one merge, one birth, both, two births, and from the other
/// sectors of its lane. The first four are measured on 4x3.
const BYTES: [u64; 5] = [13, 13, 4, 4, 24];

/// Savings of pairs of lanes with the same owner.
struct Links {
    of: Vec<Vec<(usize, u64)>>,
}

impl Links {
    fn new(params: &Params, lanes: &[Lane], work: &[Scaled]) -> Self {
        let sectors = params.split().sectors();
        let steps = [(1, 0), (0, 1), (1, 1), (0, 2), (0, 0)].into_iter().zip(BYTES);
        let steps = steps.flat_map(|((merges, births), bytes)| {
            (0..sectors).map(move |sector| (Step { merges, births, sector }, bytes))
        });
        let steps: Vec<(Step, u64)> = steps.collect();
        let mut of = vec![Vec::new(); lanes.len()];
        for (from, lane) in lanes.iter().enumerate() {
            for &(step, bytes) in &steps {
                for to in lane.after(step, params).into_iter().filter(|to| to != lane) {
                    let Ok(to) = lanes.binary_search(&to) else { continue };
                    let saved = Self::between(&work[from], &work[to], bytes) / u64::from(sectors);
                    of[from].push((to, saved));
                    of[to].push((from, saved));
                }
            }
        }
        Self { of }
    }

    /// Saving of two lanes with the same owner, in the unit of [`Table::cheapest`]. A state needs `bytes` tenths of a byte
    /// from the other lane, in the layers that both lanes have.
    fn between(from: &Scaled, to: &Scaled, bytes: u64) -> u64 {
        let (own, other) = (from.layers(), to.layers());
        let both = own.start.max(other.start)..own.end.min(other.end);
        let work: u64 = both.map(|layer| from.blocks[layer - from.first].0).sum();
        (work * bytes * PRICE) << (SHARE_BITS - 10)
    }
}
