//! Blocks that one worker sends to another: several workers compute the same results as one worker, and refuse damaged
//! payloads.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod common;

use std::sync::Arc;

use bytes::Buf;
use exact2048_game::columns::Columns;
use exact2048_game::huge::{LEAST_HUGE, NO_HUGE};
use exact2048_game::lane::lanes;
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params, Precision};
use exact2048_storage::{RunDir, ShardKind};
use exact2048_worker::{BlockEngine, BlockTask, BytesList, Sink};
use proptest::prelude::*;

use common::{FIND_STATES, HELPERS, Sealed, alive, params, solve, worker};

/// A payload of these bytes.
fn list(bytes: &[u8]) -> BytesList {
    let mut writer = BytesList::writer(bytes.len());
    writer.put(bytes);
    writer.finish()
}

fn compare<V: Value>(board: &str, precision: Precision) {
    let params = params(board, precision);
    let alone = solve::<V>(&params, &[1], (usize::MAX, usize::MAX));
    assert!(alone.0 > 0 && alone.1 != 0);
    let (sparse, whole) = (0, usize::MAX);
    for (threads, tuning) in
        [(vec![3, 1], (usize::MAX, 1)), (vec![1; 5], (sparse, whole)), (vec![2], (sparse, 300))]
    {
        let shared = solve::<V>(&params, &threads, tuning);
        assert_eq!((shared.0, shared.1), (alone.0, alone.1), "{threads:?}, {tuning:?}");
        assert!(shared.2 == alone.2, "{threads:?}, {tuning:?}: other items");
    }
}

#[test]
fn workers_that_exchange_blocks_compute_the_results_of_one() {
    compare::<u32>("2x2", Precision::Bits32);
    compare::<u32>("3x2", Precision::Bits32);
    compare::<u64>("2x2", Precision::Bits64);
}

/// 4x2 has lanes with rows that are long enough to be packed.
#[test]
fn rows_that_are_packed_arrive() {
    let params = params("4x2", Precision::Bits32);
    assert!(lanes(&params).into_iter().any(|lane| Columns::count(&params, lane) > 200));
    let (states, fingerprint, _) = solve::<u32>(&params, &[1, 1], (usize::MAX, usize::MAX));
    // Every solve of this board has this result; tests/cluster_faults.rs expects it too.
    assert_eq!((states, fingerprint), (4_980_767, 0x512d_941b_1389_50ab_02da_2825_2f0e_594a));
}

/// States, values and with them the fingerprint do not depend on which tiles are large.
#[test]
fn the_split_changes_no_fingerprint() {
    for (board, objective) in [("2x2", "score"), ("1x5", "score"), ("3x2", "score"), ("3x3", "reach:32")] {
        let solved = [3, 4, 5, 6].map(|large| {
            let bits = Precision::Bits32;
            let params = Params::usual(board, objective).precision(bits).large(large).build().unwrap();
            let (states, fingerprint, _) = solve::<u32>(&params, &[1], (usize::MAX, usize::MAX));
            (states, fingerprint)
        });
        assert!(solved.iter().all(|found| *found == solved[0]), "{board} {objective}: {solved:x?}");
    }
}

/// Lanes with the same huge tiles are assigned together, to one worker or to several. The result is the same.
#[test]
fn families_of_lanes_arrive() {
    let whole = params("1x7", Precision::Bits32);
    let alone = solve::<u32>(&whole, &[1], (usize::MAX, usize::MAX));
    for (members, huge, sectors) in [(3, LEAST_HUGE, 1), (8, LEAST_HUGE, 1), (3, NO_HUGE, 3)] {
        let divided = whole.to_builder().huge(huge).sectors(sectors).build().unwrap();
        let shared = solve::<u32>(&divided, &vec![1; members], (usize::MAX, usize::MAX));
        assert_eq!((shared.0, shared.1), (alone.0, alone.1), "{members} workers");
    }
}

/// On a square board some spawns turn or mirror the columns. Marks of the states after such spawns do not show which
/// entries are needed.
#[test]
fn entries_that_spawns_rearrange_arrive() {
    let params = Params::usual("3x3", "reach:128").build().unwrap();
    assert!(lanes(&params).into_iter().any(|lane| Columns::count(&params, lane) > 64));
    let alone = solve::<u32>(&params, &[1], (usize::MAX, usize::MAX));
    let shared = solve::<u32>(&params, &[1, 1], (usize::MAX, usize::MAX));
    assert_eq!((shared.0, shared.1), (alone.0, alone.1));
}

#[test]
fn values_that_are_cut_off_or_too_long_are_refused() {
    let params = params("2x2", Precision::Bits32);
    let archive = Arc::new(Sealed::default());
    let sender = worker::<u32>(&params, &archive, (16, usize::MAX));
    let place = tempfile::tempdir().unwrap();
    let run = RunDir::create(&place.path().join("run"), &serde_json::json!({})).unwrap();
    let layers: Vec<Layer> = (4..=params.last_layer().0).step_by(2).map(Layer).collect();
    for &layer in &layers {
        for lane in alive(&params, layer) {
            sender.compute(FIND_STATES, layer, lane, 0).unwrap();
        }
        for lane in alive(&params, layer) {
            sender.compute(BlockTask::FindAfterstates, layer, lane, 0).unwrap();
        }
        archive.add(&run, &sender, 0, ShardKind::Reach, layer);
    }
    let mut sent = 0;
    for &layer in layers.iter().rev() {
        for lane in alive(&params, layer) {
            sender.compute(BlockTask::BackUpAfterstates, layer, lane, 0).unwrap();
            let receiver = worker::<u32>(&params, &archive, (16, usize::MAX));
            let [mut payload] = sender.after_values_payloads(layer, lane, &[0]).unwrap().try_into().unwrap();
            let payload = payload.copy_to_bytes(payload.len());
            sent += payload.len();
            receiver.accept_after_values(layer, lane, list(&payload[..])).unwrap();
            for at in 1..payload.len() {
                assert!(
                    receiver.accept_after_values(layer, lane, list(&payload[..at])).is_err(),
                    "{at} bytes"
                );
            }
            if !payload.is_empty() {
                let longer = [&payload[..], &[0]].concat();
                assert!(receiver.accept_after_values(layer, lane, list(&longer[..])).is_err());
                let all_ones = vec![0xff; payload.len()];
                assert!(receiver.accept_after_values(layer, lane, list(&all_ones[..])).is_err());
            }
        }
        for lane in alive(&params, layer) {
            sender.compute(BlockTask::BackUpStates(Sink::Nothing), layer, lane, 0).unwrap();
        }
    }
    assert!(sent > 0);
}

proptest! {
    #[test]
    fn other_bytes_than_a_block_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        layer in 0u32..300, index in any::<prop::sample::Index>(), k in 0u8..=16, sum in 0u32..2000,
    ) {
        let params = params("3x2", Precision::Bits32);
        let worker = worker::<u32>(&params, &Arc::default(), (16, usize::MAX));
        for lane in [*index.get(&lanes(&params)), Lane::new(k, sum)] {
            // The worker refuses most of these bytes, but some happen to be a block.
            let _ = worker.accept_states(Layer(layer), lane, list(&bytes[..]));
            let _ = worker.accept_after_values(Layer(layer), lane, list(&bytes[..]));
        }
    }

    #[test]
    fn a_block_that_is_cut_off_is_refused(at in any::<prop::sample::Index>()) {
        let params = params("3x2", Precision::Bits32);
        let sender = worker::<u32>(&params, &Arc::default(), (16, usize::MAX));
        let receiver = worker::<u32>(&params, &Arc::default(), (16, usize::MAX));
        let lane = Lane::new(0, 0);
        for layer in (4..=12).step_by(2).map(Layer) {
            sender.compute(FIND_STATES, layer, lane, HELPERS).unwrap();
            sender.compute(BlockTask::FindAfterstates, layer, lane, HELPERS).unwrap();
        }
        let mut payload = sender.states_payload(Layer(12), lane);
        let payload = payload.copy_to_bytes(payload.len());
        prop_assert!(!payload.is_empty());
        let at = at.index(payload.len());
        let cut = receiver.accept_states(Layer(12), lane, list(&payload[..at]));
        prop_assert!(at == 0 || cut.is_err());
        let twice = [&payload[..], &payload[..]].concat();
        prop_assert!(receiver.accept_states(Layer(12), lane, list(&twice[..])).is_err(), "each part once");
        prop_assert!(receiver.accept_states(Layer(12), lane, list(&payload[..])).is_ok());
        let mut again = receiver.states_payload(Layer(12), lane);
        prop_assert_eq!(again.copy_to_bytes(again.len()), payload);
    }
}
