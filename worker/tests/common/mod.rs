//! Runs of small boards that are solved by workers in this process.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params, Precision};
use exact2048_solution::{Archive, Owners, ReadError, assign};
use exact2048_storage::{Attempt, ItemKey, RunDir, ShardIdentity, ShardKind, ShardWriter};
use exact2048_worker::{Heap, Tuning, Worker};

/// Threads that may help with every block.
pub const HELPERS: usize = 4;

pub type Items = BTreeMap<(ShardKind, ItemKey), Vec<u8>>;

/// The sealed items of all workers.
#[derive(Default)]
pub struct Sealed(Mutex<Items>);

impl Sealed {
    /// Takes what a worker has of a layer through a shard.
    pub fn take_in<V: Value>(
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

pub fn params(board: &str, precision: Precision) -> Params {
    Params::usual(board, "score").precision(precision).large(3).build().unwrap()
}

pub fn worker<V: Value>(
    params: &Params,
    archive: &Arc<Sealed>,
    (dense_rows, piece_bytes): (usize, usize),
) -> Worker<V> {
    let tuning = Tuning { limit_bytes: 1 << 30, heap: Heap::of(|| 0), dense_rows, piece_bytes };
    Worker::new(params, tuning, std::env::temp_dir(), archive.clone())
}

pub fn alive(params: &Params, layer: Layer) -> Vec<Lane> {
    let mut alive = lanes(params);
    alive.retain(|&lane| {
        let (first, last) = layer_range(params, lane);
        (first..=last).contains(&layer)
    });
    alive
}

/// Solves a board by several workers that exchange what they make; gives states, fingerprint and all items. `tuning` is the
/// number of rows up to which blocks are dense, and the bytes of a piece.
pub fn solve<V: Value>(params: &Params, threads: &[u32], tuning: (usize, usize)) -> (u64, u128, Items) {
    let archive = Arc::new(Sealed::default());
    let workers = threads.iter().map(|_| worker(params, &archive, tuning)).collect();
    solve_by::<V>(params, threads, workers, &archive)
}

/// The same by workers that were made for it, which read what was sealed.
pub fn solve_by<V: Value>(
    params: &Params,
    threads: &[u32],
    workers: Vec<Worker<V>>,
    archive: &Arc<Sealed>,
) -> (u64, u128, Items) {
    let owners: Owners = assign(params, threads);
    let place = tempfile::tempdir().unwrap();
    let run = RunDir::create(&place.path().join("run"), &serde_json::json!({})).unwrap();
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
            for (other, to) in others(me) {
                let mut readers = lanes(params);
                readers.retain(|&reader| owners.owner(reader) == other);
                let payload = workers[me].after_values_payload(layer, lane, &readers).unwrap();
                to.accept_after_values(layer, lane, payload).unwrap();
            }
        }
        for lane in alive(params, layer) {
            let keep = params.contents().kept().keeps(layer);
            let values = workers[owners.owner(lane)].back_up_states(layer, lane, keep, HELPERS).unwrap();
            fingerprint = fingerprint.wrapping_add(values.fingerprint);
        }
        if params.contents().stores_on_the_way_down(layer) {
            for (member, worker) in workers.iter().enumerate() {
                archive.take_in(&run, worker, member, ShardKind::Values, layer);
            }
        }
    }
    let items = archive.0.lock().unwrap().clone();
    (states, fingerprint, items)
}
