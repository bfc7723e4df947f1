//! Readers of a run while its reach is removed. Separate from other tests, because the number of shards that
//! a process keeps open is limited.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod common;

use std::collections::BTreeMap;

use common::run_segment;
use exact2048_game::{Board, KeptLayers, Layer, Params};
use exact2048_solution::{
    LayerRange, Oracle, OracleOptions, QueryError, ReadError, Recipe, Run, StateReader, UnnamedPolicy,
};
use exact2048_storage::StorageError;

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

/// States and their values.
type RangePolicy = (Vec<Board>, Vec<Option<f64>>);

/// The states and values of some layers, from code that reads whole layers.
fn states_of(oracle: &Oracle, range: LayerRange) -> RangePolicy {
    let mut reader = StateReader::new(oracle, ALWAYS);
    let mut states = (Vec::new(), Vec::new());
    for layer in range.first.to(range.last) {
        let of_layer = reader.states(layer).unwrap();
        let values = of_layer.boards.iter().zip(&of_layer.values);
        states.1.extend(values.map(|(&board, &stored)| Some(oracle.seen_from(board, stored))));
        states.0.extend(&of_layer.boards);
    }
    states
}

/// An open shard stays readable after its removal, with the same content; a shard that was not open yet is
/// reported missing. A reader that opens the run afterwards computes the states that are no longer stored.
#[test]
fn a_reader_has_right_values_or_none_while_reach_is_removed() {
    let params =
        Params::usual("3x2", "score").large(3).kept(KeptLayers::new(16, 2).unwrap()).build().unwrap();
    let place = tempfile::tempdir().unwrap();
    let location = place.path().join("run");
    let mut writer = Run::open_or_create(location.as_path(), &params, UnnamedPolicy::Refuse).unwrap();
    let opening = writer.share().unwrap();
    while let Some(&segment) = writer.missing().first() {
        // Reach that may be removed is in separate shards.
        writer = run_segment(writer, opening, segment, place.path(), 1, Some(1));
    }
    let holdings = writer.holdings();
    let removed = Recipe::new(writer.params(), &holdings).passed();
    let files: Vec<_> = writer.catalog().reach_of(&removed).into_iter().map(|shard| shard.file).collect();
    let path_of = |file: &String| location.join("shards").join(file);
    assert!(removed.len() > 3 && files.iter().all(|file| path_of(file).exists()), "{removed:?}");
    let expected: BTreeMap<Layer, RangePolicy> = {
        let whole = Oracle::new(&Run::open(&location).unwrap()).unwrap();
        removed.iter().map(|&range| (range.first, states_of(&whole, range))).collect()
    };
    let has_states = |range: &&LayerRange| expected[&range.first].0.len() > 100;
    let large: Vec<&LayerRange> = removed.iter().filter(has_states).collect();

    // The reader opens every second range by a query of one of its states. It keeps no decoded data in memory.
    let options = OracleOptions { cache_bytes: 0, solved_bytes: 0, ..OracleOptions::default() };
    let reader = Run::open(&location).unwrap();
    let oracle = Oracle::with_options(&reader, options).unwrap();
    let is_open = |nth: usize| nth.is_multiple_of(2);
    for (_, range) in large.iter().enumerate().filter(|(nth, _)| is_open(*nth)) {
        let (boards, values) = &expected[&range.first];
        assert_eq!(oracle.values(&boards[..1], ALWAYS).unwrap(), values[..1], "{range:?}");
    }
    writer.remove_reach(&removed).unwrap();
    assert!(!files.iter().any(|file| path_of(file).exists()), "the files are no longer on the disk");
    let mut missing = 0;
    for (nth, range) in large.iter().enumerate() {
        let (boards, values) = &expected[&range.first];
        match oracle.values(boards, ALWAYS) {
            Ok(found) => assert!(found == *values, "{range:?}"),
            Err(error) => {
                let is_missing =
                    matches!(error, QueryError::Read(ReadError::Storage(StorageError::ShardMissing { .. })));
                assert!(is_missing && !is_open(nth), "{range:?}: {error}");
                missing += 1;
            }
        }
    }
    assert_eq!(missing, large.len() / 2, "half of the ranges had no open shard");

    let afterwards = Oracle::new(&Run::open(&location).unwrap()).unwrap();
    for range in large {
        let (boards, values) = &expected[&range.first];
        assert!(afterwards.values(boards, ALWAYS).unwrap() == *values, "{range:?}");
    }
}
