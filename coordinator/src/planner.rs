//! The planner of one segment: chooses tasks, releases data, and reports finished layers.

mod lanes;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use exact2048_game::{Lane, Layer, Params, SpawnKind};
use exact2048_solution::{Phase, Segment};

use crate::task::{PlanEvent, Release, Stage, Task, Totals};
use lanes::Lanes;

/// Maximum number of positions between a lane and the lowest unfinished position of any member. This lead keeps
/// many threads busy while layers are small or blocks are in transit, and still fits in memory.
const RUN_AHEAD: usize = 8;

/// Plans one member's part of a segment: the blocks of the lanes that it owns. A single member owns all lanes.
/// This crate's `README.md` states the problem.
#[derive(Debug)]
pub struct Planner {
    segment: Segment,
    params: Params,
    lanes: Lanes,
    positions: Vec<PositionState>,
    /// Positions of stored layers to seal.
    seals: VecDeque<usize>,
    /// Lowest position with an unfinished block.
    frontier: usize,
    /// Lowest known position with an unfinished block of another member.
    elsewhere: Option<usize>,
    /// First position that is not reported yet.
    unreported: usize,
    in_flight: usize,
}

#[derive(Debug)]
struct PositionState {
    blocks_left: usize,
    sealed: bool,
    totals: Totals,
}

impl Planner {
    /// Plans the blocks of the lanes that `owns` accepts. Report progress of other members with
    /// [`Planner::finished_elsewhere`]. Carry out the returned events before any task, because layers without a
    /// block of this member are already done.
    pub fn new(params: &Params, segment: Segment, owns: impl Fn(Lane) -> bool) -> (Self, Vec<PlanEvent>) {
        let lanes = Lanes::new(params, segment, owns);
        let blocks = lanes.blocks(segment.layers() as usize).into_iter();
        let position =
            |blocks_left| PositionState { blocks_left, sealed: blocks_left == 0, totals: Totals::default() };
        let mut planner = Self {
            segment,
            params: params.clone(),
            lanes,
            positions: blocks.map(position).collect(),
            seals: VecDeque::new(),
            frontier: 0,
            elsewhere: None,
            unreported: 0,
            in_flight: 0,
        };
        let mut events = Vec::new();
        planner.retire(&mut events);
        planner.report(&mut events);
        (planner, events)
    }

    /// Records that another member has done the first stage of a block. Calls may repeat. A call also records the
    /// earlier blocks of the lane, so all of them that this member needs must have arrived.
    pub fn finished_elsewhere(&mut self, layer: Layer, lane: Lane) {
        if !self.segment.contains(layer) {
            return;
        }
        self.lanes.first_stage_elsewhere(lane, self.position(layer));
    }

    /// Returns whether this segment has the block and another member plans it.
    pub fn is_elsewhere(&self, layer: Layer, lane: Lane) -> bool {
        let Some(plan) = self.lanes.get(lane) else { return false };
        self.segment.contains(layer)
            && Layer::of_sum(layer.0).is_some()
            && !plan.owned
            && plan.has(self.position(layer))
    }

    /// Returns whether this member needs this block of another member and has not received it.
    pub fn awaits(&self, layer: Layer, lane: Lane) -> bool {
        let Some(plan) = self.lanes.get(lane) else { return false };
        self.segment.contains(layer)
            && !plan.owned
            && plan.is_needed()
            && (plan.first_stage.max(self.frontier)..plan.end).contains(&self.position(layer))
    }

    /// Records the frontier of the slowest other member. No task starts more than `RUN_AHEAD` positions after this
    /// frontier or after the member's own frontier. So members that wait for the slowest member hold little data.
    /// Calls may occur in any order because a frontier never moves back.
    pub fn slowest_elsewhere(&mut self, frontier: Layer) {
        self.elsewhere = self.elsewhere.max(Some(self.position(frontier)));
    }

    /// Returns a task that may start now, if any. Without memory to spare, the task is a seal or belongs to the first
    /// unfinished layer of the pass.
    pub fn next_task(&mut self, has_room_to_spare: bool) -> Option<Task> {
        if let Some(position) = self.seals.pop_front() {
            self.in_flight += 1;
            return Some(Task::Seal { phase: self.segment.phase, layer: self.layer(position) });
        }
        let slowest = self.elsewhere.map_or(self.frontier, |elsewhere| elsewhere.min(self.frontier));
        let ahead = slowest + RUN_AHEAD;
        let highest = if has_room_to_spare { ahead } else { ahead.min(self.frontier) };
        let plan = self.lanes.take_ready(highest)?;
        let (position, stage, lane) = (plan.second_stage, plan.stage(), plan.lane);
        self.in_flight += 1;
        let layer = self.layer(position);
        Some(match (self.segment.phase, stage) {
            (Phase::Enumerate, Stage::First) => Task::EnumerateStates { layer, lane },
            (Phase::Enumerate, Stage::Second) => Task::EnumerateAfterstates { layer, lane },
            (Phase::BackUp, Stage::First) => Task::BackUpAfterstates { layer, lane },
            (Phase::BackUp, Stage::Second) => {
                Task::BackUpStates { layer, lane, keep: self.params.contents().kept().keeps(layer) }
            }
        })
    }

    /// Records a finished task and its totals. Carry out the returned events in order.
    pub fn complete(&mut self, task: Task, totals: Totals) -> Vec<PlanEvent> {
        self.in_flight -= 1;
        let mut events = Vec::new();
        if let Some((layer, lane, stage)) = task.block() {
            self.stage_done(layer, lane, stage, totals);
            if self.segment.phase == Phase::BackUp {
                self.release_blocks(layer, lane, stage, &mut events);
            }
            self.retire(&mut events);
        } else if let Task::Seal { layer, .. } = task {
            let position = self.position(layer);
            self.positions[position].totals += totals;
            self.positions[position].sealed = true;
        }
        self.report(&mut events);
        events
    }

    /// Returns whether everything is done and reported.
    pub fn is_done(&self) -> bool {
        self.unreported == self.positions.len() && self.in_flight == 0
    }

    /// Returns the lowest layer (in the downward pass, the highest) with unfinished blocks.
    pub fn frontier(&self) -> Layer {
        self.layer(self.frontier.min(self.positions.len().saturating_sub(1)))
    }

    fn stage_done(&mut self, layer: Layer, lane: Lane, stage: Stage, totals: Totals) {
        let position = self.position(layer);
        let state = &mut self.positions[position];
        state.totals += totals;
        if stage == Stage::Second {
            state.blocks_left -= 1;
            if state.blocks_left == 0 {
                self.layer_done(position);
            }
        }
        self.lanes.stage_done(lane, stage);
    }

    /// Seals a completed layer, if it is stored.
    fn layer_done(&mut self, position: usize) {
        if self.segment.phase == Phase::Enumerate
            || self.params.contents().stores_values_or_moves(self.layer(position))
        {
            self.seals.push_back(position);
        } else {
            self.positions[position].sealed = true;
        }
    }

    /// Releases values that no later stage needs, block by block, because values take far more memory than the bits
    /// of reach. Only the means of the same lane need the values of states two layers above. Only the lanes with
    /// moves to a block's afterstates need the values of these afterstates.
    fn release_blocks(&self, layer: Layer, lane: Lane, stage: Stage, events: &mut Vec<PlanEvent>) {
        if stage == Stage::First {
            let read = Release::BlockStates(layer.after(SpawnKind::Four), lane);
            events.push(PlanEvent::Release(read));
            return;
        }
        let unneeded = self.lanes.unneeded(lane, self.position(layer)).into_iter();
        events.extend(unneeded.map(|lane| PlanEvent::Release(Release::BlockAfterstates(layer, lane))));
    }

    /// Moves the frontier past finished layers and releases the data that no later layer needs. A block needs its
    /// own layer and the two layers before it.
    fn retire(&mut self, events: &mut Vec<PlanEvent>) {
        let mut releases = Vec::new();
        while self.positions.get(self.frontier).is_some_and(|p| p.blocks_left == 0) {
            let layer = self.layer(self.frontier);
            match self.segment.phase {
                Phase::Enumerate => {
                    let lowest = layer.before(SpawnKind::Four);
                    let below = [Some(layer), layer.before(SpawnKind::Two), lowest];
                    releases.extend(below.into_iter().flatten().map(Release::States));
                    releases.extend(lowest.map(Release::Afterstates));
                }
                Phase::BackUp => {
                    releases.push(Release::States(layer.after(SpawnKind::Four)));
                    releases.push(Release::Afterstates(layer));
                }
            }
            let ended = self.lanes.iter().filter(|plan| plan.end == self.frontier + 1);
            releases.extend(ended.map(|plan| Release::Lane(plan.lane)));
            self.frontier += 1;
        }
        events.extend(releases.into_iter().map(PlanEvent::Release));
    }

    /// Reports sealed layers in order.
    fn report(&mut self, events: &mut Vec<PlanEvent>) {
        while let Some(state) = self.positions.get(self.unreported).filter(|p| p.blocks_left == 0 && p.sealed)
        {
            let (layer, totals) = (self.layer(self.unreported), state.totals);
            events.push(PlanEvent::LayerDone { layer, totals });
            self.unreported += 1;
        }
    }

    fn layer(&self, position: usize) -> Layer {
        self.segment.layer(position as u32)
    }

    fn position(&self, layer: Layer) -> usize {
        self.segment.position(layer) as usize
    }
}
