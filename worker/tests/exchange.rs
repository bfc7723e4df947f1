//! Blocks that go from one worker to another: what is computed with them is what one worker computes alone, and what
//! is no block is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Buf;
use exact2048_game::columns::Columns;
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Objective, Params, Precision, Spawn4};
use exact2048_solution::{Archive, Owners, ReadError, assign};
use exact2048_storage::{Attempt, ItemKey, RunDir, ShardIdentity, ShardKind, ShardWriter};
use exact2048_worker::{Tuning, Worker};
use proptest::prelude::*;

/// Threads that may help with every block.
const HELPERS: usize = 4;

type Items = BTreeMap<(ShardKind, ItemKey), Vec<u8>>;

/// What was sealed, by any worker.
#[derive(Default)]
struct Sealed(Mutex<Items>);

impl Sealed {
    /// Takes what a worker has of a layer through a shard.
    fn take_in<V: Value>(
        &self,
        run: &RunDir,
        worker: &Worker<V>,
        member: usize,
        kind: ShardKind,
        layer: Layer,
    ) {
        let (first_layer, last_layer) = (layer.0, layer.0);
        let identity = ShardIdentity {
            run: run.run_id(),
            kind,
            rows: 3,
            cols: 3,
            first_layer,
            last_layer,
            rule_hash: 0,
        };
        let attempt = Attempt { opening: 0, epoch: 0, member: member as u64 };
        let mut writer = ShardWriter::create_as(&run.shards(), identity, attempt).unwrap();
        for frame in worker.seal(kind, layer).unwrap().frames {
            writer.push(frame).unwrap();
        }
        let reader = run.shards().open(&writer.finish().unwrap(), &identity).unwrap();
        for entry in reader.items() {
            let item = reader.read(entry.key).unwrap().unwrap();
            assert!(
                self.0.lock().unwrap().insert((kind, entry.key), item).is_none(),
                "{:?} twice",
                entry.key
            );
        }
    }
}

impl Archive for Sealed {
    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.0.lock().unwrap().get(&(kind, key)).cloned())
    }
}

fn params(board: &str, precision: Precision) -> Params {
    let (board, spawn4) = (board.parse().unwrap(), Spawn4::default());
    Params::with_large(board, Objective::Score, spawn4, precision, None, 3).unwrap()
}

fn worker<V: Value>(
    params: &Params,
    archive: &Arc<Sealed>,
    (dense_rows, piece_bytes): (usize, usize),
) -> Worker<V> {
    let tuning = Tuning { limit_bytes: 1 << 30, heap_bytes: || 0, dense_rows, piece_bytes };
    Worker::new(params, tuning, std::env::temp_dir(), archive.clone())
}

fn alive(params: &Params, layer: Layer) -> Vec<Lane> {
    let mut alive = lanes(params);
    alive.retain(|&lane| {
        let (first, last) = layer_range(params, lane);
        (first..=last).contains(&layer)
    });
    alive
}

/// Solves a board by several workers that exchange what they make; gives states, fingerprint and all items. `tuning` is the
/// number of rows up to which blocks are dense, and the bytes of a piece.
fn solve<V: Value>(params: &Params, threads: &[u32], tuning: (usize, usize)) -> (u64, u128, Items) {
    let owners: Owners = assign(params, threads);
    let place = tempfile::tempdir().unwrap();
    let run = RunDir::create(&place.path().join("run"), &serde_json::json!({})).unwrap();
    let archive = Arc::new(Sealed::default());
    let workers: Vec<Worker<V>> = threads.iter().map(|_| worker(params, &archive, tuning)).collect();
    let layers: Vec<Layer> = (4..=params.last_layer().0).step_by(2).map(Layer).collect();
    let others = |me: usize| workers.iter().enumerate().filter(move |&(other, _)| other != me);
    let (mut states, mut fingerprint) = (0, 0u128);
    for &layer in &layers {
        for lane in alive(params, layer) {
            let me = owners.owner(lane);
            states += workers[me].enumerate_states(layer, lane, HELPERS).unwrap();
            let payload = workers[me].states_payload(layer, lane);
            others(me).for_each(|(_, to)| to.accept_states(layer, lane, payload.clone()).unwrap());
        }
        for lane in alive(params, layer) {
            workers[owners.owner(lane)].enumerate_afterstates(layer, lane, HELPERS).unwrap();
        }
        for (member, worker) in workers.iter().enumerate() {
            archive.take_in(&run, worker, member, ShardKind::Reach, layer);
        }
    }
    workers.iter().for_each(Worker::release_all);
    for &layer in layers.iter().rev() {
        for lane in alive(params, layer) {
            let me = owners.owner(lane);
            workers[me].back_up_afterstates(layer, lane, HELPERS).unwrap();
            let payload = workers[me].after_values_payload(layer, lane);
            others(me).for_each(|(_, to)| to.accept_after_values(layer, lane, payload.clone()).unwrap());
        }
        for lane in alive(params, layer) {
            let keep = params.kept.keeps(layer);
            let values = workers[owners.owner(lane)].back_up_states(layer, lane, keep, HELPERS).unwrap();
            fingerprint = fingerprint.wrapping_add(values.fingerprint);
        }
        if params.kept.keeps(layer) {
            for (member, worker) in workers.iter().enumerate() {
                archive.take_in(&run, worker, member, ShardKind::Values, layer);
            }
        }
    }
    let items = archive.0.lock().unwrap().clone();
    (states, fingerprint, items)
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
fn workers_that_exchange_blocks_make_what_one_makes() {
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
    // What every solve of this board comes to: tests/cluster_faults.rs.
    assert_eq!((states, fingerprint), (4_980_767, 0x205b_5cba_e9d1_a46a_b849_0f0d_d978_fa44));
}

/// On a square board some spawns turn or mirror the columns. What they lead to says nothing of which entries are needed.
#[test]
fn entries_that_spawns_rearrange_arrive() {
    let (board, objective) = ("3x3".parse().unwrap(), "reach:128".parse().unwrap());
    let params = Params::new(board, objective, Spawn4::default(), Precision::Bits32, None).unwrap();
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
            sender.enumerate_states(layer, lane, 0).unwrap();
        }
        for lane in alive(&params, layer) {
            sender.enumerate_afterstates(layer, lane, 0).unwrap();
        }
        archive.take_in(&run, &sender, 0, ShardKind::Reach, layer);
    }
    let mut sent = 0;
    for &layer in layers.iter().rev() {
        for lane in alive(&params, layer) {
            sender.back_up_afterstates(layer, lane, 0).unwrap();
            let receiver = worker::<u32>(&params, &archive, (16, usize::MAX));
            let mut payload = sender.after_values_payload(layer, lane);
            let payload = payload.copy_to_bytes(payload.len());
            sent += payload.len();
            receiver.accept_after_values(layer, lane, &payload[..]).unwrap();
            for at in 1..payload.len() {
                assert!(receiver.accept_after_values(layer, lane, &payload[..at]).is_err(), "{at} bytes");
            }
            if !payload.is_empty() {
                let longer = [&payload[..], &[0]].concat();
                assert!(receiver.accept_after_values(layer, lane, &longer[..]).is_err());
                let all_ones = vec![0xff; payload.len()];
                assert!(receiver.accept_after_values(layer, lane, &all_ones[..]).is_err());
            }
        }
        for lane in alive(&params, layer) {
            sender.back_up_states(layer, lane, false, 0).unwrap();
        }
    }
    assert!(sent > 0);
}

proptest! {
    #[test]
    fn what_is_no_block_does_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        layer in 0u32..300, index in any::<prop::sample::Index>(), k in 0u8..=16, sum in 0u32..2000,
    ) {
        let params = params("3x2", Precision::Bits32);
        let worker = worker::<u32>(&params, &Arc::default(), (16, usize::MAX));
        for lane in [*index.get(&lanes(&params)), Lane { k, large_sum: sum }] {
            // Most are refused, some happen to be blocks.
            let _ = worker.accept_states(Layer(layer), lane, &bytes[..]);
            let _ = worker.accept_after_values(Layer(layer), lane, &bytes[..]);
        }
    }

    #[test]
    fn a_block_that_is_cut_off_is_refused(at in any::<prop::sample::Index>()) {
        let params = params("3x2", Precision::Bits32);
        let sender = worker::<u32>(&params, &Arc::default(), (16, usize::MAX));
        let receiver = worker::<u32>(&params, &Arc::default(), (16, usize::MAX));
        let lane = Lane { k: 0, large_sum: 0 };
        for layer in (4..=12).step_by(2).map(Layer) {
            sender.enumerate_states(layer, lane, HELPERS).unwrap();
            sender.enumerate_afterstates(layer, lane, HELPERS).unwrap();
        }
        let mut payload = sender.states_payload(Layer(12), lane);
        let payload = payload.copy_to_bytes(payload.len());
        prop_assert!(!payload.is_empty());
        let at = at.index(payload.len());
        let cut = receiver.accept_states(Layer(12), lane, &payload[..at]);
        prop_assert!(at == 0 || cut.is_err());
        prop_assert!(receiver.accept_states(Layer(12), lane, &payload[..]).is_ok());
        let mut again = receiver.states_payload(Layer(12), lane);
        prop_assert_eq!(again.copy_to_bytes(again.len()), payload);
    }
}
