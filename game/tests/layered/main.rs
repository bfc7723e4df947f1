//! Conformance suite of layered games: it checks the laws of `game/src/layered.rs` on every reachable board.
//!
//! The suite runs on 2048 and on a second small game. Games with one broken law show that the suite finds each kind of
//! error.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod broken;
mod pours;
mod suite;

use exact2048_game::backup::Backup;
use exact2048_game::fixed::Scale;
use exact2048_game::value::Stored;
use exact2048_game::{Board, Params, PerSpawn, Precision, SpawnKind, rules};

use broken::{Broken, Fault};
use pours::Pours;
use suite::{Law, Solution, check, solve};

#[test]
fn the_laws_hold_for_2048() {
    for (board, objective) in [("2x2", "score"), ("1x5", "score"), ("3x2", "reach:16"), ("2x3", "lose:16")] {
        for (large, sectors) in [(3, 1), (4, 1), (3, 3)] {
            let params = Params::usual(board, objective).large(large).sectors(sectors).build().unwrap();
            let boards = check(&params).unwrap_or_else(|law| panic!("{board} {objective}: {law:?}"));
            assert!(boards > 100, "{board} {objective}: {boards}");
        }
    }
}

#[test]
fn the_laws_hold_beside_stones() {
    for (board, objective) in [
        ("2x3:..x/...", "score"),
        ("3x3:x../.../x..", "reach:16"),
        ("3x2:.#/../..", "lose:16"),
        ("3x3:.../.##/.##", "score"),
    ] {
        for large in [3, 4] {
            let params = Params::usual(board, objective).large(large).build().unwrap();
            let boards = check(&params).unwrap_or_else(|law| panic!("{board} {objective}: {law:?}"));
            assert!(boards > 50, "{board} {objective}: {boards}");
        }
    }
}

#[test]
fn the_laws_hold_for_a_second_game() {
    for (cups, boards) in [(3, 915), (4, 11_021)] {
        assert_eq!(check(&Pours::new(cups)), Ok(boards), "{cups}");
    }
}

#[test]
fn a_broken_law_is_found() {
    let found = |fault| check(&Broken { game: Pours::new(3), fault }).map(|_| ());
    assert_eq!(found(Fault::None), Ok(()));
    for (fault, law) in [
        (Fault::MoveLeavesLayer, Law::Layers),
        (Fault::SpawnRisesBy, Law::Layers),
        (Fault::LastLayerTooLow, Law::Layers),
        (Fault::PlaceMissing, Law::Spawns),
        (Fault::ImageMissing, Law::Symmetries),
        (Fault::MoveMissing, Law::Symmetries),
        (Fault::ScoreTooHigh, Law::Potential),
        (Fault::UnscoredPoints, Law::Potential),
        (Fault::SpawnLeavesLane, Law::Lanes),
        (Fault::TargetLaneMissing, Law::Lanes),
    ] {
        assert_eq!(found(fault), Err(law), "{fault:?}");
    }
}

/// Backing up layer by layer gives the expected score of the definition, and equal values to all images of a board.
#[test]
fn layers_give_the_value_of_the_definition() {
    let game = Pours::new(3);
    let Solution { values, by_definition } = solve(&game);
    assert_eq!(values.len(), 648);
    for (state, value) in values {
        assert!((value - by_definition[&state]).abs() < 1e-9, "{state:?}");
    }
}

/// The constants of backward induction in fixed point agree with the suite.
#[test]
fn values_of_2048_are_those_of_the_contract() {
    let params = Params::usual("2x2", "score").precision(Precision::Bits64).build().unwrap();
    let (scale, backup) = (Scale::new(params.game()), Backup::new(params.game()));
    let Solution { values, .. } = solve(&params);
    let stored = |state: Board| {
        let number = values[&state] + rules::potential(state) as f64;
        Stored((number * 2f64.powi(scale.fraction_bits().unwrap() as i32)) as u64)
    };
    let size = params.game().board();
    let mut compared = 0;
    for &state in values.keys() {
        for (after, score) in rules::Move::ALL.into_iter().filter_map(|m| rules::make_move(state, m, size)) {
            let spawned: PerSpawn<Vec<Stored>> = SpawnKind::ALL.map(|spawn| {
                let states = rules::empty_cells(after, size).map(|cell| after.with(cell, spawn.exponent()));
                states.map(stored).collect()
            });
            let found = backup.of_spawns::<u64>(spawned.each_ref().map(Vec::as_slice));
            let past = scale.points(rules::potential(after));
            let value = scale.number(found.future_value(past)) + f64::from(score);
            assert!(value <= values[&state] + 1e-6, "{state:?}");
            compared += usize::from((value - values[&state]).abs() < 1e-6);
        }
    }
    assert!(compared > 100, "the best moves have the value of the state: {compared}");
}
