//! Solves runs with several members of one epoch in one process, linked by channels. Any number of members must make
//! the same run as a single member.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{run_segment, run_segment_as};
use exact2048_game::value_step::Rounding;
use exact2048_game::{KeptLayers, Params, ValueStep};
use exact2048_solution::{Archive, CatalogShard, ItemKind, Phase, Recipe, Run, Segment, UnnamedPolicy};
use exact2048_storage::{ItemKey, ShardKind};

/// The items of values and best moves.
type Items = BTreeMap<ItemKey, Vec<u8>>;

/// Solves a run with `count` members. See [`solve_by_turns`].
fn solve(count: usize, best_moves: bool) -> (u128, Items, usize) {
    solve_by_turns(&[(count, false)], best_moves, None)
}

/// Solves a run by parts, by these members in turn: their number, and whether they are of an older program. Values are
/// rounded to `step`. Returns the run's fingerprint, the items of its values shards, and the number of commits.
fn solve_by_turns(members: &[(usize, bool)], best_moves: bool, step: Option<&str>) -> (u128, Items, usize) {
    let step: Option<ValueStep> = step.map(|step| step.parse().unwrap());
    let params = Params::usual("3x2", "score").large(3).kept(KeptLayers::default()).best_moves(best_moves);
    let params = params.value_step(step);
    let params = params.build().unwrap();
    let place = tempfile::tempdir().unwrap();
    let mut run =
        Run::open_or_create(place.path().join("run").as_path(), &params, UnnamedPolicy::Refuse).unwrap();
    let opening = run.share().unwrap();
    let mut turns = members.iter().cycle();
    while let Some(&whole) = run.missing().first() {
        let third = params.last_layer().0 / 6 * 2;
        let segment = match whole.phase {
            Phase::Enumerate => Segment { last: whole.last.min(whole.first.up(third / 2)), ..whole },
            Phase::BackUp => whole,
        };
        let members = *turns.next().unwrap();
        run = run_segment_as(run, opening, segment, place.path(), members, None);
    }
    let mut items = Items::new();
    for shard in run.catalog().shards().iter().filter(|shard| shard.record.kind == ShardKind::Values) {
        for entry in shard.reader().unwrap().items() {
            let item = run.archive().read(ShardKind::Values, entry.key).unwrap().unwrap();
            assert!(items.insert(entry.key, item).is_none(), "each item is in one shard");
        }
    }
    let is_checkpoint = |shard: &Arc<CatalogShard>| shard.record.kind == ShardKind::Checkpoint;
    assert!(!run.catalog().shards().iter().any(is_checkpoint), "a finished run has no checkpoint");
    (run.fingerprint().unwrap(), items, run.catalog().commits().len())
}

/// The rounded values are those of a run without rounding, rounded, and the fingerprint is the same.
#[test]
fn any_number_of_members_rounds_the_same_values() {
    let (exact, mut values, _) = solve(1, true);
    let params = Params::small("3x2");
    let rounding = Rounding::new(params.game(), "1/4".parse().unwrap());
    for (&key, item) in &mut values {
        if ItemKind::of(ShardKind::Values, key) == ItemKind::Values {
            let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
            let mut numbers: Vec<u32> = item.chunks_exact(4).map(number).collect();
            rounding.round(&mut numbers);
            *item = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
        }
    }
    for count in [1, 2, 3] {
        let (fingerprint, found, commits) = solve_by_turns(&[(count, false)], true, Some("1/4"));
        assert!(commits > 3, "{commits} commits");
        assert_eq!(fingerprint, exact, "{count} members");
        assert!(found == values, "{count} members");
    }
}

#[test]
fn any_number_of_members_makes_the_same_run() {
    let (alone, values, commits) = solve(1, false);
    assert!(commits > 3, "{commits} commits");
    let (also_alone, best_moves, _) = solve(1, true);
    assert!(also_alone == alone && best_moves.len() > values.len() * 3 / 2);
    for count in [2, 3, 5] {
        for (with_best_moves, items) in [(false, &values), (true, &best_moves)] {
            let (fingerprint, found, _) = solve(count, with_best_moves);
            assert!(fingerprint == alone && found == *items, "{count} members");
        }
    }
}

/// Members of other numbers go on, and read the shards of an older cluster.
#[test]
fn a_run_that_others_began_goes_on() {
    let (alone, values, _) = solve(1, false);
    for members in
        [&[(3, true), (2, false)][..], &[(2, true), (1, false), (3, false)], &[(4, false), (2, false)]]
    {
        let (fingerprint, found, _) = solve_by_turns(members, false, None);
        assert!(fingerprint == alone && found == values, "{members:?}");
    }
}

/// Solves the same run, but removes reach wherever that is possible. So most layers are enumerated twice.
fn solve_sparingly(count: usize, kept: KeptLayers, step: Option<ValueStep>) -> u128 {
    let params = Params::usual("3x2", "score").large(3).kept(kept).value_step(step).build().unwrap();
    let place = tempfile::tempdir().unwrap();
    let location = place.path().join("run");
    let mut run = Run::open_or_create(location.as_path(), &params, UnnamedPolicy::Refuse).unwrap();
    let opening = run.share().unwrap();
    let mut removed = 0;
    while let Some(&segment) = run.missing().first() {
        run = run_segment(run, opening, segment, place.path(), count, Some(1));
        let holdings = run.holdings();
        let recipe = Recipe::new(run.params(), &holdings);
        // After the upward pass, remove all reach that can be enumerated again. Later, remove the reach that nothing
        // needs.
        let at_turn = segment.phase == Phase::Enumerate && segment.last == params.last_layer();
        let needless = if at_turn { recipe.repeatable() } else { recipe.passed() };
        removed += needless.len();
        run.remove_reach(&needless).unwrap();
    }
    assert!(removed > 10, "{removed} ranges removed");
    let left = run.catalog().shards();
    let of_kept = left
        .iter()
        .filter(|shard| shard.commit.phase == Phase::Enumerate)
        .all(|shard| shard.commit.first.to(shard.commit.last).any(|layer| kept.keeps(layer)));
    assert!(of_kept, "reach that nothing needs is left");
    run.fingerprint().unwrap()
}

#[test]
fn reach_that_was_removed_is_enumerated_again_by_any_number_of_members() {
    let alone = solve(1, false).0;
    for (count, kept) in [(1, "8"), (3, "8"), (2, "3/20")] {
        assert_eq!(solve_sparingly(count, kept.parse().unwrap(), None), alone, "{count} members, {kept}");
        let step = "1/4".parse().unwrap();
        assert_eq!(
            solve_sparingly(count, kept.parse().unwrap(), Some(step)),
            alone,
            "{count} members, {kept}"
        );
    }
}
