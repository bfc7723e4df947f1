//! Shares that together cover a segment. Each member plans its own lanes and receives the blocks that it needs.
//! For any order of events, no task runs before its inputs.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::collections::{HashMap, HashSet, VecDeque};

use exact2048_coordinator::{PlanEvent, Planner, Stage, Task, Totals};
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::{Lane, Layer, Params};
use exact2048_solution::{Owners, Phase, Segment, assign};
use proptest::prelude::*;

fn params(board: &str) -> Params {
    Params::usual(board, "score").large(3).build().unwrap()
}

/// Whether a member has memory for blocks that it does not need yet.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Enough,
    Short,
    Varies,
}

struct Share {
    planner: Planner,
    running: Vec<Task>,
    /// Blocks in transit to the member, in the order of each sender.
    arriving: Vec<VecDeque<(Layer, Lane)>>,
    has: HashSet<(Layer, Lane)>,
    reported: Vec<(Layer, u64)>,
}

impl Share {
    fn take(&mut self, events: Vec<PlanEvent>) {
        for event in events {
            if let PlanEvent::LayerDone { layer, totals } = event {
                self.reported.push((layer, totals.states));
            }
        }
    }
}

fn run(
    params: &Params,
    segment: Segment,
    owners: &Owners,
    members: usize,
    memory: Memory,
    mut choose: impl FnMut(usize) -> usize,
) {
    let ranges: HashMap<Lane, _> =
        lanes(params).into_iter().map(|lane| (lane, layer_range(params, lane))).collect();
    let exists = |layer: Layer, lane: Lane| {
        ranges.get(&lane).is_some_and(|&(first, last)| (first..=last).contains(&layer))
    };
    let mut shares: Vec<Share> = (0..members)
        .map(|me| {
            let (planner, events) = Planner::new(params, segment, |lane| owners.owner(lane) == me);
            let (running, has, reported) = (Vec::new(), HashSet::new(), Vec::new());
            let mut share =
                Share { planner, running, arriving: vec![VecDeque::new(); members], has, reported };
            share.take(events);
            share
        })
        .collect();
    let mut idle = 0;
    while idle < 200 * members {
        idle += 1;
        let me = choose(members);
        // A block arrives, perhaps twice.
        let from = choose(members);
        if let Some((layer, lane)) = shares[me].arriving[from].pop_front() {
            let share = &mut shares[me];
            if share.planner.awaits(layer, lane) {
                share.has.insert((layer, lane));
                share.planner.finished_elsewhere(layer, lane);
                idle = 0;
            }
            assert!(!share.planner.awaits(layer, lane), "accepted once");
            share.planner.finished_elsewhere(layer, lane);
        }
        let has_room_to_spare = match memory {
            Memory::Enough => true,
            Memory::Short => false,
            Memory::Varies => choose(2) == 0,
        };
        let share = &mut shares[me];
        if let Some(task) = share.planner.next_task(has_room_to_spare) {
            if let Some((layer, lane, stage)) = task.block() {
                assert_eq!(owners.owner(lane), me, "only its own lanes");
                let inputs = segment.phase.needs(lane, params);
                for input in inputs.into_iter().filter(|_| stage == Stage::Second) {
                    assert!(!exists(layer, input) || share.has.contains(&(layer, input)), "inputs first");
                }
            }
            share.running.push(task);
            idle = 0;
        }
        if share.running.is_empty() {
            continue;
        }
        idle = 0;
        let task = share.running.swap_remove(choose(share.running.len()));
        let is_second = task.block().is_some_and(|(.., stage)| stage == Stage::Second);
        let totals = Totals { states: u64::from(is_second), sealed_bytes: 10, ..Totals::default() };
        if let Some((layer, lane, Stage::First)) = task.block() {
            assert!(share.has.insert((layer, lane)), "each block once");
            let needed_by = segment.phase.needed_by(lane, params);
            for (other, to) in shares.iter_mut().enumerate().filter(|&(other, _)| other != me) {
                let is_its = |to: &Lane| ranges.contains_key(to) && owners.owner(*to) == other;
                if needed_by.iter().any(is_its) {
                    to.arriving[me].push_back((layer, lane));
                }
            }
        }
        let share = &mut shares[me];
        let events = share.planner.complete(task, totals);
        share.take(events);
    }
    let layers: Vec<Layer> = (0..segment.layers()).map(|position| segment.layer(position)).collect();
    for share in &shares {
        let reported: Vec<Layer> = share.reported.iter().map(|&(layer, _)| layer).collect();
        assert_eq!(reported, layers, "every layer once, in order, even without blocks");
        assert!(share.planner.is_done());
    }
    for (i, &layer) in layers.iter().enumerate() {
        let blocks = ranges.keys().filter(|&&lane| exists(layer, lane)).count() as u64;
        let reported: u64 = shares.iter().map(|share| share.reported[i].1).sum();
        assert_eq!(reported, blocks, "layer {layer}: all blocks, by any member");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn shares_cover_the_segment(
        seed in any::<u64>(), up in any::<bool>(), threads in prop::collection::vec(1u32..5, 1..6),
        first in 2u32..40, count in 1u32..40,
        memory in prop::sample::select(vec![Memory::Enough, Memory::Short, Memory::Varies]),
    ) {
        let params = params("3x2");
        let owners = assign(&params, &threads);
        let phase = if up { Phase::Enumerate } else { Phase::BackUp };
        let segment = Segment { phase, first: Layer(2 * first), last: Layer(2 * (first + count - 1)) };
        let mut state = seed;
        run(&params, segment, &owners, threads.len(), memory, |n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        });
    }
}
