use exact2048_game::KeptLayers;
use proptest::prelude::*;

use super::*;

fn params(board: &str, kept: &str) -> Params {
    Params::usual(board, "score").kept(kept.parse::<KeptLayers>().unwrap()).build().unwrap()
}

fn counts(layer: Layer) -> LayerCounts {
    LayerCounts { layer, states: 1, afterstates: 2 }
}

fn commit(segment: Segment) -> Commit {
    let Segment { phase, first, last } = segment;
    let layers = match phase {
        Phase::Enumerate => first.to(last).map(counts).collect(),
        Phase::BackUp => Vec::new(),
    };
    Commit { phase, first, last, layers, fingerprint: (phase == Phase::BackUp).then_some(0) }
}

fn up(first: u32, last: u32) -> Segment {
    Segment { phase: Phase::Enumerate, first: Layer(first), last: Layer(last) }
}

fn down(first: u32, last: u32) -> Segment {
    Segment { phase: Phase::BackUp, first: Layer(first), last: Layer(last) }
}

fn range(first: u32, last: u32) -> LayerRange {
    LayerRange { first: Layer(first), last: Layer(last) }
}

fn holdings(segments: &[Segment]) -> Holdings {
    segments.iter().map(|&segment| commit(segment)).collect::<Vec<_>>().into()
}

fn steps(params: &Params, holdings: &Holdings) -> Vec<Segment> {
    Recipe::new(params, holdings).steps()
}

#[test]
fn missing_layers_are_enumerated_then_backed_up() {
    let params = params("2x2", "4");
    assert_eq!(steps(&params, &Holdings::default()), [up(4, 60), down(4, 60)]);
    let held = holdings(&[up(20, 30), up(4, 10), down(48, 60), down(16, 30)]);
    assert_eq!(steps(&params, &held), [up(12, 18), up(32, 60), down(32, 46), down(4, 14)]);
}

/// The run keeps the layers 4, 6, 8, 16, 18, 32, 34, 48 and 50.
#[test]
fn reach_that_was_removed_is_enumerated_again_before_its_values() {
    let params = params("2x2", "8");
    let ranges =
        [up(4, 8), up(10, 14), up(16, 18), up(20, 30), up(32, 34), up(36, 46), up(48, 50), up(52, 60)];
    let mut held = holdings(&ranges);
    assert_eq!(steps(&params, &held), [down(4, 60)]);
    assert_eq!(Recipe::new(&params, &held).repeatable(), [range(10, 14), range(20, 30), range(36, 46)]);
    held.remove(&[range(10, 46)]);
    let recipe = Recipe::new(&params, &held);
    assert_eq!(recipe.reach(Layer(44)), ReachSource::Recomputed);
    assert_eq!(recipe.reach(Layer(48)), ReachSource::Stored);
    assert_eq!(recipe.reach(Layer(90)), ReachSource::Missing);
    assert_eq!(recipe.reach(Layer(32)), ReachSource::Missing, "a kept layer, despite the removal");
    // The removal also covers kept layers. Their reach is enumerated first, because it stays in the run.
    assert_eq!(recipe.steps()[..3], [up(10, 18), up(20, 34), down(48, 60)]);

    let mut held = holdings(&ranges);
    held.remove(&[range(10, 14), range(20, 30), range(36, 46)]);
    let expected =
        [down(48, 60), up(36, 46), down(32, 46), up(20, 30), down(16, 30), up(10, 14), down(4, 14)];
    assert_eq!(steps(&params, &held), expected);
    // Only a part of the reach between two cuts was removed.
    let mut held = holdings(&[up(4, 18), up(20, 24), up(26, 60)]);
    held.remove(&[range(20, 24)]);
    assert_eq!(steps(&params, &held), [down(32, 60), up(20, 24), down(4, 30)]);
}

#[test]
fn layers_with_values_need_no_reach() {
    let params = params("2x2", "8");
    let ranges = [up(4, 8), up(10, 14), up(16, 18), up(20, 30), up(32, 34), up(36, 44), up(46, 60)];
    let mut held = holdings(&[&ranges[..], &[down(32, 60)]].concat());
    let recipe = Recipe::new(&params, &held);
    assert_eq!(recipe.passed(), [range(36, 44)], "46 to 60 contain 48 and 50, which are kept");
    assert_eq!(recipe.repeatable(), [range(10, 14)], "20 to 30 get their values next");
    held.remove(&[range(36, 44), range(20, 30)]);
    assert_eq!(Recipe::new(&params, &held).passed(), []);
    assert_eq!(steps(&params, &held), [up(20, 30), down(4, 30)]);
    held.add(commit(up(20, 30)), params.contents());
    held.add(commit(down(4, 30)), params.contents());
    assert_eq!(Recipe::new(&params, &held).passed(), [range(10, 14), range(20, 30)]);
    assert_eq!(steps(&params, &held), []);
    assert_eq!(held.counts().len(), 29);
    // The run lost the reach of kept layers. It is enumerated again from the reach of the layers below, which stays
    // until then.
    let mut lost = held.clone();
    lost.take(|commit| *commit == self::commit(up(32, 34)));
    assert_eq!(steps(&params, &lost), [up(32, 34)]);
    assert_eq!(Recipe::new(&params, &lost).passed(), [range(10, 14)]);
    // A run that only enumerates keeps all reach.
    let params = Params::usual("2x2", "score").until(60).build().unwrap();
    let recipe = Recipe::new(&params, &held);
    assert_eq!((recipe.passed(), recipe.repeatable()), (vec![], vec![]));
}

#[test]
fn the_upward_pass_resumes_above_the_highest_stored_layers() {
    let params = params("2x2", "8");
    let mut held = holdings(&[up(4, 18), up(20, 30), up(32, 34), up(36, 40)]);
    assert_eq!(Recipe::new(&params, &held).repeatable(), [range(20, 30)]);
    assert!(Recipe::new(&params, &held).has_inputs(up(42, 60)));
    held.remove(&[range(36, 40)]);
    assert!(!Recipe::new(&params, &held).has_inputs(up(42, 60)));
    assert_eq!(steps(&params, &held)[0], up(36, 60));
    assert!(Recipe::new(&params, &held).has_inputs(up(36, 60)));
    assert!(!Recipe::new(&params, &held).has_inputs(down(48, 60)));
}

fn policies() -> impl Strategy<Value = KeptLayers> {
    let some = (3u32..40).prop_flat_map(|period| {
        (2..period.min(6)).prop_map(move |width| KeptLayers::new(period, width).unwrap())
    });
    prop_oneof![1 => Just(KeptLayers::ALL), 1 => Just(KeptLayers::STARTS), 6 => some]
}

proptest! {
    /// Ranges may end anywhere, and any range may be removed or lost. Running the first step repeatedly still completes
    /// the run. Every step finds its inputs, and at the end all kept layers have stored reach.
    #[test]
    fn repeating_the_first_step_completes_a_run(
        kept in policies(),
        choices in prop::collection::vec((0u32..12, 0u32..8, any::<u16>()), 1..400),
        // Used after the last choice: where a commit may end. Each commit is then followed by all possible removals.
        at_last in 0u32..12,
    ) {
        let params = params("3x2", "4").to_builder().kept(kept).build().unwrap();
        let mut held = Holdings::default();
        let mut choices = choices.into_iter().chain(std::iter::repeat_n((at_last, 6, 0), 2000));
        let mut lost = 0;
        while let Some(&step) = steps(&params, &held).first() {
            let (layers, event, which) = choices.next().expect("the run is completed before that");
            prop_assert!(Recipe::new(&params, &held).has_inputs(step), "{step:?} of {held:?}");
            // A part of the step is committed.
            let ends = (0..step.layers()).filter(|&at| step.may_end_at(step.layer(at), params.contents()));
            let ends: Vec<u32> = ends.filter(|&at| at >= layers || at + 1 == step.layers()).collect();
            let end = ends.first().copied().unwrap_or(step.layers() - 1);
            let done = commit(step.range(0..end + 1));
            held.take(|old| old.phase == Phase::BackUp && old.phase == done.phase && old.first >= done.first && old.last <= done.last);
            held.add(done, params.contents());
            let recipe = Recipe::new(&params, &held);
            let gone = match event {
                0..=2 => recipe.passed(),
                3 | 4 => recipe.repeatable().into_iter().take(3).collect(),
                6 => [recipe.passed(), recipe.repeatable()].concat(),
                5 if lost < 3 => {
                    lost += 1;
                    let commits: Vec<Commit> = held.stored().cloned().collect();
                    let victim = commits[usize::from(which) % commits.len()].clone();
                    held.take(|old| *old == victim);
                    Vec::new()
                }
                _ => Vec::new(),
            };
            held.remove(&gone);
        }
        let recipe = Recipe::new(&params, &held);
        for layer in Layer::FIRST.to(params.last_layer()).filter(|&layer| kept.keeps(layer)) {
            prop_assert_eq!(recipe.reach(layer), ReachSource::Stored);
        }
        prop_assert_eq!(recipe.repeatable(), vec![]);
    }
}

/// Values above a layer without values are rounded unless a checkpoint has their bits. So the layers up to the next
/// checkpoint are backed up again.
#[test]
fn rounded_layers_are_backed_up_again_from_the_next_checkpoint() {
    let params =
        Params::usual("3x2", "score").value_step("1/4".parse::<exact2048_game::ValueStep>().unwrap());
    let params = params.build().unwrap();
    let last = params.last_layer().0;
    let held = |downward: &[Segment]| {
        let mut held = holdings(&[up(4, last)]);
        downward.iter().for_each(|&segment| held.add(commit(segment), params.contents()));
        held
    };
    // A pass resumes below the lowest range, whose checkpoint counts.
    assert_eq!(steps(&params, &held(&[down(128, last)])), [down(4, 126)]);
    let ranges = [down(128, last), down(96, 126), down(32, 94), down(4, 30)];
    assert_eq!(steps(&params, &held(&ranges[..2])), [down(4, 94)]);
    assert_eq!(steps(&params, &held(&ranges)), []);
    // A finished run has no checkpoint. If it loses a range, all layers above the range are needed again.
    let mut lost = held(&ranges);
    lost.take(|commit| commit.first == Layer(32));
    assert_eq!(steps(&params, &lost), [down(32, last)]);
    // This pass was interrupted, and resumes at its own checkpoint.
    lost.take(|commit| commit.phase == Phase::BackUp && commit.first > Layer(32));
    lost.add(commit(down(128, last)), params.contents());
    assert_eq!(steps(&params, &lost), [down(32, 126)]);
    // In an unfinished pass, a higher range is lost.
    let mut lost = held(&ranges[..3]);
    lost.take(|commit| commit.first == Layer(96));
    assert_eq!(steps(&params, &lost), [down(96, last), down(4, 30)]);
    // Without rounding, only the lost range is repeated.
    let exact = params.to_builder().value_step(None).build().unwrap();
    let mut lost = held(&ranges);
    lost.take(|commit| commit.first == Layer(32));
    assert_eq!(steps(&exact, &lost), [down(32, 94)]);
}
