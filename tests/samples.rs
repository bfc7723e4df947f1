//! `verify --sample`: a random sample of values. Each value is recomputed from the stored values of higher layers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common;
use common::forge::Forge;
use common::{Solved, on_run, text, whole};
use exact2048_run::verify::{CheckProgress, Verifier};
use exact2048_solution::{JournalRecord, Phase, Retraction, Run, UnnamedPolicy};
use exact2048_storage::ShardKind;

/// One value may depend on millions of states. A sample can stop during their computation.
#[test]
fn a_sample_can_be_stopped_before_its_first_value() {
    let solved = Solved::new("--board 4x2 --keep starts");
    let run = Run::open(solved.run().as_path()).unwrap();
    let (stop, last) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |at| {
        if let CheckProgress::Sample { states, .. } = at {
            last.store(states, Ordering::Relaxed);
            stop.store(states > 10_000, Ordering::Relaxed);
        }
    };
    let outcome = Verifier::new(&run, 1, &stop, &progress).unwrap().sample(1, 8 << 30);
    assert!(outcome.stopped && outcome.problems.is_empty());
    assert_eq!((outcome.checked.values, outcome.checked.values_too_far), (0, 0));
    let last = last.into_inner();
    assert!((10_000..100_000).contains(&last), "{last}");
}

/// In a damaged run, values next to a gap cannot be checked, so a sample has only other values.
#[test]
fn a_sample_is_of_values_that_can_be_followed() {
    let solved = Solved::new("--board 3x3 --objective reach:512 --precision 64");
    let commits = Run::open(solved.run().as_path()).unwrap().catalog().commits();
    let verify = |options: &[&str]| {
        on_run(&solved.run(), "verify", &[&["--sample", "200", "--json"], options].concat())
    };
    // First retracts values that other values depend on, then states. All states are in one range.
    for (phase, is_some_left) in [(Phase::BackUp, true), (Phase::Enumerate, false)] {
        let of_phase: Vec<_> = commits.iter().filter(|commit| commit.phase == phase).collect();
        let retracted = of_phase[of_phase.len() / 2].clone();
        let place = solved.run();
        let params = Run::open(place.as_path()).unwrap().params().clone();
        let mut run = Run::open_or_create(place.as_path(), &params, UnnamedPolicy::Refuse).unwrap();
        run.append(JournalRecord::Retraction(Retraction { retracted })).unwrap();
        drop(run);
        let found = verify(&[]).exits(1).json();
        assert_eq!(text(&found["verdict"]), "unfinished", "{found}");
        assert_eq!(whole(&found["values"]) > 0, is_some_left, "{found}");
        verify(&["--partial"]).exits(i32::from(!is_some_left));
    }
}

/// A sample of every value finds each wrong value. It also finds each missing part of the stored layers above the starts,
/// because other states lead to it.
#[test]
fn a_sample_of_all_values_finds_each_wrong_one() {
    let solved = Solved::new("--board 3x2 --keep 8");
    let go_on = AtomicBool::new(false);
    let problems = || {
        let run = Run::open(solved.run().as_path()).unwrap();
        let of = AtomicU64::new(0);
        let progress = |at| {
            if let CheckProgress::Sample { count, .. } = at {
                of.store(count, Ordering::Relaxed);
            }
        };
        let outcome = Verifier::new(&run, 2, &go_on, &progress).unwrap().sample(u64::MAX, 1 << 30);
        let checked = outcome.checked.values;
        assert!(!outcome.problems.is_empty() || checked == of.into_inner());
        (outcome.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), outcome.checked.values)
    };
    let whole = Forge::open(&solved.run());
    whole.clone().write();
    let (found, values) = problems();
    assert!(found.is_empty() && values > 500, "{found:?}, {values}");
    let (mut changes, mut missing) = (0, 0);
    for shard in whole.of_kind(ShardKind::Values).collect::<Vec<_>>() {
        for (item, (key, bytes)) in whole.shards[shard].items.iter().enumerate().step_by(3) {
            for bit in (0..8 * bytes.len()).step_by(331) {
                let mut forge = whole.clone();
                forge.shards[shard].items[item].1[bit / 8] ^= 1 << (bit % 8);
                forge.write_shard(shard);
                let found = problems().0.join(", ");
                assert!(found.contains("value"), "bit {bit} of {key:?}: {found}");
                changes += 1;
            }
            whole.clone().write_shard(shard);
            if key.layer < 10 {
                continue;
            }
            let mut forge = whole.clone();
            let (of_reach, reach) = forge.find(ShardKind::Reach, *key).unwrap();
            for (shard, item) in [(shard, item), (of_reach, reach)] {
                forge.shards[shard].items.remove(item);
                forge.write_shard(shard);
            }
            let found = problems().0.join(", ");
            assert!(found.contains("afterstate"), "{key:?}: {found}");
            missing += 1;
            [shard, of_reach].into_iter().for_each(|shard| whole.clone().write_shard(shard));
        }
    }
    assert!(changes > 100 && missing > 20, "{changes}, {missing}");
}
