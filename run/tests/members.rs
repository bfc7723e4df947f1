//! Solves runs with several members of one epoch in one process, linked by channels. Any number of members must make
//! the same run as a single member.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod common;

use std::collections::BTreeMap;

use common::run_segment;
use exact2048_game::{KeptLayers, Params};
use exact2048_solution::{Archive, Phase, Recipe, Run, UnnamedPolicy};
use exact2048_storage::{ItemKey, ShardKind};

/// The items of values and best moves.
type Items = BTreeMap<ItemKey, Vec<u8>>;

/// Solves a run with `count` members. Returns its fingerprint, the items of its values shards, and the number of
/// commits.
fn solve(count: usize, best_moves: bool) -> (u128, Items, usize) {
    let params = Params::usual("3x2", "score").large(3).kept(KeptLayers::default()).best_moves(best_moves);
    let params = params.build().unwrap();
    let place = tempfile::tempdir().unwrap();
    let mut run =
        Run::open_or_create(place.path().join("run").as_path(), &params, UnnamedPolicy::Refuse).unwrap();
    let opening = run.share().unwrap();
    while let Some(&segment) = run.missing().first() {
        run = run_segment(run, opening, segment, place.path(), count, None);
    }
    let mut items = Items::new();
    for shard in run.catalog().shards().iter().filter(|shard| shard.record.kind == ShardKind::Values) {
        for entry in shard.reader().unwrap().items() {
            let item = run.archive().read(ShardKind::Values, entry.key).unwrap().unwrap();
            assert!(items.insert(entry.key, item).is_none(), "each item is in one shard");
        }
    }
    (run.fingerprint().unwrap(), items, run.catalog().commits().len())
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

/// Solves the same run, but removes reach wherever that is possible. So most layers are enumerated twice.
fn solve_sparingly(count: usize, kept: KeptLayers) -> u128 {
    let params = Params::usual("3x2", "score").large(3).kept(kept).build().unwrap();
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
        assert_eq!(solve_sparingly(count, kept.parse().unwrap()), alone, "{count} members, {kept}");
    }
}
