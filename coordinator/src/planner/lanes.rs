//! The lanes of a segment, and the lanes with a task that may start.

use std::collections::BTreeSet;

use exact2048_game::lane;
use exact2048_game::{Lane, Params};
use exact2048_solution::{Phase, Segment};
use rustc_hash::FxHashMap;

use crate::task::Stage;

#[derive(Debug)]
pub(super) struct LanePlan {
    pub lane: Lane,
    /// Whether this member plans the lane's blocks.
    pub owned: bool,
    /// Positions of the lane's blocks, as `first..end`.
    first: usize,
    pub end: usize,
    /// Position of the lowest block with an unfinished first stage.
    pub first_stage: usize,
    /// Position of the lowest block with an unfinished second stage. The lane's next task is one of this block's
    /// stages.
    pub second_stage: usize,
    /// Whether the lane's next task is queued or running.
    busy: bool,
    depends_on: Vec<usize>,
    needed_by: Vec<usize>,
}

impl LanePlan {
    /// Returns the stage of the lane's next task.
    pub fn stage(&self) -> Stage {
        if self.first_stage == self.second_stage { Stage::First } else { Stage::Second }
    }

    /// Returns whether the lane has a block at this position.
    pub fn has(&self, position: usize) -> bool {
        (self.first..self.end).contains(&position)
    }

    /// Returns whether a lane of this member needs this lane.
    pub fn is_needed(&self) -> bool {
        !self.needed_by.is_empty()
    }

    /// Returns whether both stages at this position are done, as far as this member plans them.
    fn is_done(&self, position: usize) -> bool {
        !self.owned || !self.has(position) || self.second_stage > position
    }
}

/// The lanes of a segment. A lane is named by its index.
#[derive(Debug)]
pub(super) struct Lanes {
    plans: Vec<LanePlan>,
    index: FxHashMap<Lane, usize>,
    /// Whether other members plan some lanes.
    is_shared: bool,
    /// Lanes with a next task that may start. An entry has the task's turn, its order among tasks of that turn,
    /// and the lane.
    ready: BTreeSet<(usize, usize, usize)>,
}

impl Lanes {
    /// Takes the lanes with blocks in a segment. `owns` accepts the lanes of this member.
    pub fn new(params: &Params, segment: Segment, owns: impl Fn(Lane) -> bool) -> Self {
        let mut lanes =
            Self { plans: Vec::new(), index: FxHashMap::default(), is_shared: false, ready: BTreeSet::new() };
        let mut all = lane::lanes(params);
        if segment.phase == Phase::BackUp {
            all.reverse();
        }
        for lane in all {
            let (low, high) = lane::layer_range(params, lane);
            let (low, high) = (low.max(segment.first), high.min(segment.last));
            if low > high {
                continue;
            }
            let [a, b] = [low, high].map(|layer| segment.position(layer) as usize);
            let (first, end, owned) = (a.min(b), a.max(b) + 1, owns(lane));
            lanes.is_shared |= !owned;
            lanes.index.insert(lane, lanes.plans.len());
            lanes.plans.push(LanePlan {
                lane,
                owned,
                first,
                end,
                first_stage: first,
                second_stage: first,
                busy: false,
                depends_on: Vec::new(),
                needed_by: Vec::new(),
            });
        }
        lanes.link(params, segment.phase);
        (0..lanes.plans.len()).for_each(|lane| lanes.queue_if_ready(lane));
        lanes
    }

    fn link(&mut self, params: &Params, phase: Phase) {
        for lane in (0..self.plans.len()).filter(|&lane| self.plans[lane].owned).collect::<Vec<_>>() {
            for other in phase.needs(self.plans[lane].lane, params) {
                let Some(&other) = self.index.get(&other) else { continue };
                self.plans[lane].depends_on.push(other);
                self.plans[other].needed_by.push(lane);
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &LanePlan> {
        self.plans.iter()
    }

    /// Returns the plan of a lane with blocks in the segment.
    pub fn get(&self, lane: Lane) -> Option<&LanePlan> {
        self.index.get(&lane).map(|&index| &self.plans[index])
    }

    /// Returns the numbers of blocks of this member by position, for this number of positions.
    pub fn blocks(&self, positions: usize) -> Vec<usize> {
        let mut blocks = vec![0; positions];
        for plan in self.plans.iter().filter(|plan| plan.owned) {
            blocks[plan.first..plan.end].iter_mut().for_each(|blocks| *blocks += 1);
        }
        blocks
    }

    /// Returns the lane of the next task at a position up to `highest`.
    pub fn take_ready(&mut self, highest: usize) -> Option<&LanePlan> {
        // A task's turn is its position or the position before. So tasks that are too far ahead may precede other
        // tasks in the order.
        let mut possible = self.ready.iter().take_while(|(turn, ..)| *turn <= highest);
        let next = *possible.find(|&&(_, _, lane)| self.plans[lane].second_stage <= highest)?;
        self.ready.remove(&next);
        Some(&self.plans[next.2])
    }

    /// Records that another member has done the first stages of a lane up to this position.
    pub fn first_stage_elsewhere(&mut self, lane: Lane, position: usize) {
        let Some(&lane) = self.index.get(&lane) else { return };
        let plan = &mut self.plans[lane];
        if !plan.owned && plan.first_stage <= position {
            plan.first_stage = position + 1;
            self.queue_dependents(lane);
        }
    }

    /// Records that this member has done the lane's next task, of this stage.
    pub fn stage_done(&mut self, lane: Lane, stage: Stage) {
        let lane = self.index[&lane];
        let plan = &mut self.plans[lane];
        plan.busy = false;
        match stage {
            Stage::First => {
                plan.first_stage += 1;
                self.queue_dependents(lane);
            }
            Stage::Second => plan.second_stage += 1,
        }
        self.queue_if_ready(lane);
    }

    /// Returns the lanes whose first stages at this position no later stage needs, now that both stages of `lane` are
    /// done there. Only the lanes with moves to a block need its first stage.
    pub fn unneeded(&self, lane: Lane, position: usize) -> Vec<Lane> {
        let lane = self.index[&lane];
        let candidates = self.plans[lane].depends_on.iter().chain([&lane]).map(|&read| &self.plans[read]);
        let is_unneeded = |plan: &&LanePlan| {
            plan.has(position)
                && plan.is_done(position)
                && plan.needed_by.iter().all(|&lane| self.plans[lane].is_done(position))
        };
        candidates.filter(is_unneeded).map(|plan| plan.lane).collect()
    }

    fn queue_if_ready(&mut self, lane: usize) {
        let plan = &self.plans[lane];
        let (position, stage) = (plan.second_stage, plan.stage());
        let has_it = |d: &LanePlan| !d.has(position) || d.first_stage > position;
        if plan.owned
            && !plan.busy
            && position < plan.end
            && (stage == Stage::First || plan.depends_on.iter().all(|&d| has_it(&self.plans[d])))
        {
            self.plans[lane].busy = true;
            let (turn, order) = match (self.is_shared, stage) {
                // No other member waits. So the second stage runs right after the first, with the results of the
                // first stage still in the cache.
                (false, _) => (position, lane),
                // Other members wait for results of first stages. So first stages precede second stages, even the
                // second stages of the layer before.
                (true, Stage::First) => (position.saturating_sub(1), lane),
                (true, Stage::Second) => (position, self.plans.len() + lane),
            };
            self.ready.insert((turn, order, lane));
        }
    }

    fn queue_dependents(&mut self, lane: usize) {
        for i in 0..self.plans[lane].needed_by.len() {
            self.queue_if_ready(self.plans[lane].needed_by[i]);
        }
    }
}
