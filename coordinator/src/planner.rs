//! The planner of one segment: chooses tasks, releases data, and reports finished layers.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use exact2048_game::lane;
use exact2048_game::{Lane, Layer, Params, SpawnKind};
use exact2048_solution::{Phase, Segment};
use rustc_hash::FxHashMap;

use crate::task::{PlanEvent, Release, Stage, Task, Totals};

/// Maximum number of positions between a lane and the lowest unfinished position of any member. This lead keeps
/// many threads busy while layers are small or blocks are in transit, and still fits in memory.
const RUN_AHEAD: usize = 8;

/// Plans one member's part of a segment: the blocks of the lanes that it owns. A single member owns all lanes.
/// This crate's `README.md` states the problem.
#[derive(Debug)]
pub struct Planner {
    segment: Segment,
    params: Params,
    /// Whether other members plan some lanes.
    is_shared: bool,
    lanes: Vec<LanePlan>,
    index: FxHashMap<Lane, usize>,
    /// Lanes with a next task that may start. An entry has the task's turn, its order among tasks of that turn,
    /// and the lane.
    ready: BTreeSet<(usize, usize, usize)>,
    seals: VecDeque<usize>,
    positions: Vec<PositionState>,
    /// Lowest position with an unfinished block.
    frontier: usize,
    /// Lowest known position with an unfinished block of another member.
    elsewhere: Option<usize>,
    /// First position that is not reported yet.
    unreported: usize,
    in_flight: usize,
}

#[derive(Debug)]
struct LanePlan {
    lane: Lane,
    /// Whether this member plans the lane's blocks.
    owned: bool,
    /// Positions of the lane's blocks, as `first..end`.
    first: usize,
    end: usize,
    /// Position of the lowest block with an unfinished first stage.
    first_stage: usize,
    /// Position of the lowest block with an unfinished second stage. The lane's next task is one of this block's
    /// stages.
    second_stage: usize,
    /// Whether the lane's next task is queued or running.
    busy: bool,
    depends_on: Vec<usize>,
    needed_by: Vec<usize>,
}

impl LanePlan {
    /// Returns the stage of the lane's next task.
    fn stage(&self) -> Stage {
        if self.first_stage == self.second_stage { Stage::First } else { Stage::Second }
    }
}

#[derive(Debug, Default)]
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
        let mut planner = Self {
            segment,
            params: params.clone(),
            is_shared: false,
            lanes: Vec::new(),
            index: FxHashMap::default(),
            ready: BTreeSet::new(),
            seals: VecDeque::new(),
            positions: (0..segment.layers()).map(|_| PositionState::default()).collect(),
            frontier: 0,
            elsewhere: None,
            unreported: 0,
            in_flight: 0,
        };
        planner.add_lanes(params, owns);
        planner.link_lanes(params);
        planner.positions.iter_mut().for_each(|position| position.sealed = position.blocks_left == 0);
        for lane in 0..planner.lanes.len() {
            planner.queue_if_ready(lane);
        }
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
        let position = self.position(layer);
        let Some(&index) = self.index.get(&lane) else { return };
        let plan = &mut self.lanes[index];
        if !plan.owned && plan.first_stage <= position {
            plan.first_stage = position + 1;
            self.queue_dependents(index);
        }
    }

    /// Returns whether this segment has the block and another member plans it.
    pub fn is_elsewhere(&self, layer: Layer, lane: Lane) -> bool {
        let Some(plan) = self.index.get(&lane).map(|&index| &self.lanes[index]) else { return false };
        self.segment.contains(layer)
            && Layer::of_sum(layer.0).is_some()
            && !plan.owned
            && (plan.first..plan.end).contains(&self.position(layer))
    }

    /// Returns whether this member needs this block of another member and has not received it.
    pub fn awaits(&self, layer: Layer, lane: Lane) -> bool {
        let Some(&index) = self.index.get(&lane) else { return false };
        let plan = &self.lanes[index];
        self.segment.contains(layer)
            && !plan.owned
            && !plan.needed_by.is_empty()
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
        // A task's turn is its position or the position before. So tasks that are too far ahead may precede other
        // tasks in the order.
        let mut possible = self.ready.iter().take_while(|(turn, ..)| *turn <= highest);
        let next = *possible.find(|&&(_, _, lane)| self.lanes[lane].second_stage <= highest)?;
        self.ready.remove(&next);
        let (.., lane) = next;
        let position = self.lanes[lane].second_stage;
        self.in_flight += 1;
        let (layer, stage, lane) = (self.layer(position), self.lanes[lane].stage(), self.lanes[lane].lane);
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

    fn add_lanes(&mut self, params: &Params, owns: impl Fn(Lane) -> bool) {
        let mut lanes = lane::lanes(params);
        if self.segment.phase == Phase::BackUp {
            lanes.reverse();
        }
        for lane in lanes {
            let (low, high) = lane::layer_range(params, lane);
            let (low, high) = (low.max(self.segment.first), high.min(self.segment.last));
            if low > high {
                continue;
            }
            let (a, b) = (self.position(low), self.position(high));
            let (first, end) = (a.min(b), a.max(b) + 1);
            let owned = owns(lane);
            self.is_shared |= !owned;
            if owned {
                self.positions[first..end].iter_mut().for_each(|p| p.blocks_left += 1);
            }
            self.index.insert(lane, self.lanes.len());
            let plan = LanePlan {
                lane,
                owned,
                first,
                end,
                first_stage: first,
                second_stage: first,
                busy: false,
                depends_on: Vec::new(),
                needed_by: Vec::new(),
            };
            self.lanes.push(plan);
        }
    }

    fn link_lanes(&mut self, params: &Params) {
        for lane in (0..self.lanes.len()).filter(|&lane| self.lanes[lane].owned).collect::<Vec<_>>() {
            for other in self.segment.phase.needs(self.lanes[lane].lane, params) {
                let Some(&other) = self.index.get(&other) else { continue };
                self.lanes[lane].depends_on.push(other);
                self.lanes[other].needed_by.push(lane);
            }
        }
    }

    fn queue_if_ready(&mut self, lane: usize) {
        let plan = &self.lanes[lane];
        let position = plan.second_stage;
        let stage = plan.stage();
        let has_it = |d: &LanePlan| position < d.first || position >= d.end || d.first_stage > position;
        if plan.owned
            && !plan.busy
            && position < plan.end
            && (stage == Stage::First || plan.depends_on.iter().all(|&d| has_it(&self.lanes[d])))
        {
            self.lanes[lane].busy = true;
            let (turn, order) = match (self.is_shared, stage) {
                // No other member waits. So the second stage runs right after the first, with the results of the
                // first stage still in the cache.
                (false, _) => (position, lane),
                // Other members wait for results of first stages. So first stages precede second stages, even the
                // second stages of the layer before.
                (true, Stage::First) => (position.saturating_sub(1), lane),
                (true, Stage::Second) => (position, self.lanes.len() + lane),
            };
            self.ready.insert((turn, order, lane));
        }
    }

    fn stage_done(&mut self, layer: Layer, lane: Lane, stage: Stage, totals: Totals) {
        let (position, lane) = (self.position(layer), self.index[&lane]);
        let state = &mut self.positions[position];
        state.totals += totals;
        let plan = &mut self.lanes[lane];
        plan.busy = false;
        match stage {
            Stage::First => {
                plan.first_stage += 1;
                self.queue_dependents(lane);
            }
            Stage::Second => {
                plan.second_stage += 1;
                state.blocks_left -= 1;
                if state.blocks_left == 0 {
                    self.layer_done(position);
                }
            }
        }
        self.queue_if_ready(lane);
    }

    fn queue_dependents(&mut self, lane: usize) {
        for i in 0..self.lanes[lane].needed_by.len() {
            self.queue_if_ready(self.lanes[lane].needed_by[i]);
        }
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
        let (position, lane) = (self.position(layer), self.index[&lane]);
        let is_done = |lane: usize| {
            let plan = &self.lanes[lane];
            !plan.owned || !(plan.first..plan.end).contains(&position) || plan.second_stage > position
        };
        for &read in self.lanes[lane].depends_on.iter().chain([&lane]) {
            let plan = &self.lanes[read];
            if (plan.first..plan.end).contains(&position)
                && is_done(read)
                && plan.needed_by.iter().all(|&lane| is_done(lane))
            {
                events.push(PlanEvent::Release(Release::BlockAfterstates(layer, plan.lane)));
            }
        }
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
