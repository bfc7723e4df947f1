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

/// Price of moves from a member's lane to another member's, in the unit of [`Links::between`], divided by the number of
/// members. Lanes that exchange much then often have one owner. With two members, a third fewer values are sent than
/// without a price. The busiest member has some hundredths more of a layer's work, and with many members most neighbours
/// have other owners in any case.
const PRICE: u64 = 20;

/// The owner of each lane, lanes ascending.
pub(super) fn deal(params: &Params, threads: &[u32]) -> Vec<(Lane, u16)> {
    let lanes = lanes(params);
    let work = scaled(LaneWork::of_lanes(params, &lanes), params.last_layer().index() + 1);
    let links = Links::new(params, &lanes, &work, PRICE / threads.len() as u64);
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    order.sort_by_key(|&lane| (work[lane].first, Reverse(work[lane].whole()), lane));
    let mut table = Table::new(threads, params.last_layer().index() + 1);
    let mut owners: Vec<Option<usize>> = vec![None; lanes.len()];
    let rounds = if threads.len() <= FEW_MEMBERS { 1 + MORE_ROUNDS } else { 1 };
    for lane in std::iter::repeat_n(order, rounds).flatten() {
        if let Some(owner) = owners[lane].take() {
            table.change(&work[lane], owner, u64::wrapping_sub);
        }
        let saved = links.saved(lane, &owners, threads.len());
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
///
/// The lanes that differ only in the sector are a group. They have the same layers and lead to the same groups. So a lane
/// saves as much with each lane of a group.
struct Links {
    /// The lanes of each group, and the group of each lane.
    groups: Vec<Range<usize>>,
    group_of: Vec<usize>,
    /// For each lane, the groups that its moves lead to, each with the saving with one of its lanes.
    after: Vec<Vec<(usize, u64)>>,
    /// For each group, the groups whose moves lead to it.
    before: Vec<Vec<usize>>,
}

impl Links {
    fn new(params: &Params, lanes: &[Lane], work: &[Scaled], price: u64) -> Self {
        let sectors = u64::from(params.split().sectors());
        let (mut names, mut groups, mut group_of) = (Vec::new(), Vec::new(), Vec::new());
        for of_group in lanes.chunk_by(|a, b| a.in_first_sector() == b.in_first_sector()) {
            let first = group_of.len();
            group_of.resize(first + of_group.len(), groups.len());
            groups.push(first..group_of.len());
            names.push(of_group[0].in_first_sector());
        }
        let steps = [(1, 0), (0, 1), (1, 1), (0, 2), (0, 0)].into_iter().zip(BYTES);
        let steps = steps.map(|((merges, births), bytes)| (Step { merges, births, sector: 0 }, bytes));
        let mut after = vec![Vec::new(); lanes.len()];
        let mut before = vec![Vec::new(); groups.len()];
        for (group, name) in names.iter().enumerate() {
            for (step, bytes) in steps.clone() {
                let targets = name.after(step, params).into_iter();
                for target in targets.filter_map(|target| names.binary_search(&target).ok()) {
                    before[target].push(group);
                    for lane in groups[group].clone() {
                        let saved =
                            price * Self::between(&work[lane], &work[groups[target].start], bytes) / sectors;
                        after[lane].push((target, saved));
                    }
                }
            }
        }
        Self { groups, group_of, after, before }
    }

    /// Saving of a lane with each member, if that member owns it.
    fn saved(&self, lane: usize, owners: &[Option<usize>], members: usize) -> Vec<u64> {
        let mut saved = vec![0; members];
        let mut add = |other: usize, bytes: u64| {
            if let Some(owner) = owners[other].filter(|_| other != lane) {
                saved[owner] += bytes;
            }
        };
        for &(group, bytes) in &self.after[lane] {
            self.groups[group].clone().for_each(|other| add(other, bytes));
        }
        let own = self.group_of[lane];
        for other in self.before[own].iter().flat_map(|&group| self.groups[group].clone()) {
            let to_own = self.after[other].iter().filter(|&&(group, _)| group == own);
            to_own.for_each(|&(_, bytes)| add(other, bytes));
        }
        saved
    }

    /// Saving of two lanes with the same owner for a price of one, in the unit of [`Table::cheapest`]. A state needs `bytes`
    /// tenths of a byte from the other lane, in the layers that both lanes have.
    fn between(from: &Scaled, to: &Scaled, bytes: u64) -> u64 {
        let (own, other) = (from.layers(), to.layers());
        let both = own.start.max(other.start)..own.end.min(other.end);
        let work: u64 = both.map(|layer| from.blocks[layer - from.first].0).sum();
        (work * bytes) << (SHARE_BITS - 10)
    }
}
