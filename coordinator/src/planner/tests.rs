//! Tests that plans have the properties of `README.md` for any number of workers and any order of work.

use super::*;
use exact2048_game::{KeptLayers, lane};
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::HashSet;

fn params(board: &str, until_layer: Option<u32>) -> Params {
    Params::usual(board, "score").until(until_layer).large(3).build().unwrap()
}

/// Reports of other members' progress may arrive out of order, because a frontier never moves back.
#[test]
fn the_frontier_of_others_never_moves_back() {
    let (params, segment) =
        (params("3x2", None), Segment { phase: Phase::Enumerate, first: Layer(4), last: Layer(200) });
    // This member plans only one lane. The lane needs no blocks of other members, so only their frontier limits the
    // lane.
    let alone = lane::lanes(&params)[0];
    let all_tasks = |frontiers: &[u32]| {
        let (mut planner, _) = Planner::new(&params, segment, |lane| lane == alone);
        frontiers.iter().for_each(|&layer| planner.slowest_elsewhere(Layer(layer)));
        let mut tasks = 0;
        while let Some(task) = planner.next_task(true) {
            planner.complete(task, Totals::default());
            tasks += 1;
        }
        tasks
    };
    let (near, far) = (all_tasks(&[4]), all_tasks(&[200]));
    assert!(near < far, "{near} of {far}");
    assert_eq!((all_tasks(&[4, 200]), all_tasks(&[200, 4])), (far, far));
}

/// Runs a segment with `workers` workers that finish in the order of `choices`, and checks the properties of
/// `README.md` after every event.
fn simulate(params: &Params, segment: Segment, workers: usize, mut choices: impl FnMut(usize) -> usize) {
    let (mut planner, events) = Planner::new(params, segment, |_| true);
    assert!(events.is_empty(), "every layer has blocks");
    let (mut running, mut done) = (Vec::new(), HashSet::new());
    let mut released = HashSet::new();
    let (mut released_states, mut released_afterstates) = (HashSet::new(), HashSet::new());
    let mut reported: Vec<(Layer, Totals)> = Vec::new();
    let mut sealed = HashSet::new();
    let lanes = lane::lanes(params);
    let ranges: FxHashMap<Lane, _> = lanes.iter().map(|&l| (l, lane::layer_range(params, l))).collect();
    let exists = |layer: Layer, lane: Lane| {
        ranges.get(&lane).is_some_and(|&(first, last)| {
            (first.max(segment.first)..=last.min(segment.last)).contains(&layer)
        })
    };
    loop {
        while running.len() < workers {
            let has_room_to_spare = choices(2) == 0;
            let frontier = planner.frontier();
            let Some(task) = planner.next_task(has_room_to_spare) else { break };
            let at = task.block().map_or(frontier, |(layer, ..)| layer);
            assert!(has_room_to_spare || at == frontier, "no block runs ahead without memory to spare");
            if let Some((layer, lane, stage)) = task.block() {
                assert!(!done.contains(&(layer, lane, stage)) && exists(layer, lane), "each stage once");
                assert!(
                    !running.iter().any(|t: &Task| t.block().is_some_and(|(_, l, _)| l == lane)),
                    "one at a time"
                );
                let before = match segment.phase {
                    Phase::Enumerate => Layer(layer.0 - 2),
                    Phase::BackUp => Layer(layer.0 + 2),
                };
                let own = !exists(before, lane) || done.contains(&(before, lane, Stage::Second));
                assert!(own, "the lane's own blocks in order: {layer} {lane:?}");
                let needed = segment.phase.needs(lane, params);
                for other in needed.into_iter().filter(|_| stage == Stage::Second) {
                    let ready = !exists(layer, other) || done.contains(&(layer, other, Stage::First));
                    assert!(ready, "inputs first: {layer} {lane:?} {other:?}");
                    assert!(!released_afterstates.contains(&(layer, other)), "{layer} {lane:?} {other:?}");
                }
                let read = SpawnKind::ALL.map(|spawn| (layer.after(spawn), lane));
                assert!(
                    stage == Stage::Second || !read.iter().any(|block| released_states.contains(block)),
                    "{layer} {lane:?}"
                );
                for needed in [layer.0, layer.0.saturating_sub(2), layer.0.saturating_sub(4)] {
                    let needed = match segment.phase {
                        Phase::Enumerate => needed,
                        Phase::BackUp => 2 * layer.0 - needed,
                    };
                    assert!(!released.contains(&Layer(needed)), "layer {needed} released before {layer}");
                }
            }
            running.push(task);
        }
        if running.is_empty() {
            break;
        }
        let task = running.swap_remove(choices(running.len()) % running.len());
        match task {
            Task::Seal { layer, .. } => assert!(sealed.insert(layer)),
            _ => done.extend(task.block()),
        }
        let is_seal = task.block().is_none();
        let totals =
            Totals { states: u64::from(!is_seal), sealed_bytes: u64::from(is_seal), ..Totals::default() };
        for event in planner.complete(task, totals) {
            match event {
                PlanEvent::LayerDone { layer, totals } => reported.push((layer, totals)),
                // States and afterstates are needed by their own layer and the next two layers.
                PlanEvent::Release(Release::States(layer)) if segment.phase == Phase::BackUp => {
                    released.insert(layer);
                }
                PlanEvent::Release(Release::Afterstates(layer)) if segment.phase == Phase::Enumerate => {
                    released.insert(layer);
                }
                PlanEvent::Release(Release::BlockStates(layer, lane)) => {
                    assert!(released_states.insert((layer, lane)), "once");
                }
                PlanEvent::Release(Release::BlockAfterstates(layer, lane)) => {
                    assert!(released_afterstates.insert((layer, lane)), "once");
                }
                _ => {}
            }
        }
    }
    assert!(planner.is_done(), "stuck at {}", planner.frontier());
    let layers = (0..segment.layers()).map(|position| segment.layer(position));
    let blocks = |layer| lanes.iter().filter(|&&lane| exists(layer, lane)).count();
    assert_eq!(done.len(), 2 * layers.clone().map(blocks).sum::<usize>());
    if segment.phase == Phase::BackUp {
        assert_eq!((released_states.len(), released_afterstates.len()), (done.len() / 2, done.len() / 2));
    }
    let is_sealed = |layer| segment.phase == Phase::Enumerate || params.contents().kept().keeps(layer);
    let wanted = layers.map(|layer| {
        let (states, sealed_bytes) = (2 * blocks(layer) as u64, u64::from(is_sealed(layer)));
        (layer, Totals { states, sealed_bytes, ..Totals::default() })
    });
    assert_eq!(reported, wanted.collect::<Vec<_>>(), "every layer once, in order, sealed if it is stored");
}

#[test]
fn one_worker_finishes_every_segment() {
    let params = params("3x2", None);
    for (first, last) in [(4, 252), (4, 4), (6, 20), (100, 252), (96, 150)] {
        for phase in [Phase::Enumerate, Phase::BackUp] {
            let segment = Segment { phase, first: Layer(first), last: Layer(last) };
            simulate(&params, segment, 1, |_| 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_order_of_completion_is_safe(
        seed in any::<u64>(),
        workers in 1usize..20,
        up in any::<bool>(),
        kept in prop::sample::select(vec!["2/4", "1/1", "2/3", "3/7", "2/16", "2/255"]),
    ) {
        let params = params("3x2", None).to_builder().kept(kept.parse::<KeptLayers>().unwrap()).build().unwrap();
        let phase = if up { Phase::Enumerate } else { Phase::BackUp };
        let segment = Segment { phase, first: Layer(4), last: params.last_layer() };
        let mut state = seed;
        simulate(&params, segment, workers, |n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        });
    }
}
