//! Runs of small boards that are solved by workers in this process.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use exact2048_game::board::Board;
use exact2048_game::class::Space;
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::value::Value;
use exact2048_game::{Lane, Layer, Params, Precision};
use exact2048_solution::{Archive, Owners, ReadError, assign};
use exact2048_storage::{Attempt, ItemKey, RunDir, ShardIdentity, ShardKind, ShardWriter};
use exact2048_worker::{BlockEngine, BlockTask, BytesList, Heap, Holding, Sink, Tuning, Worker};
use xxhash_rust::xxh3::xxh3_128;

/// Threads that may help with every block.
pub const HELPERS: usize = 4;

/// Finds the states of a block for its layer's shards.
pub const FIND_STATES: BlockTask = BlockTask::FindStates(Sink::Shards { keep: true });

pub type Items = BTreeMap<(ShardKind, ItemKey), Vec<u8>>;

/// The sealed items of all workers.
#[derive(Default)]
pub struct Sealed(Mutex<Items>);

impl Sealed {
    /// Writes a worker's items of a layer as a shard, and adds the items that it reads from the shard.
    pub fn add<V: Value>(
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

/// Solves a board by several workers that exchange blocks. Returns states, fingerprint and all items.
///
/// `tuning` is the number of rows up to which blocks are dense, and the bytes of a piece.
pub fn solve<V: Value>(params: &Params, threads: &[u32], tuning: (usize, usize)) -> (u64, u128, Items) {
    let archive = Arc::new(Sealed::default());
    let workers = threads.iter().map(|_| worker(params, &archive, tuning)).collect();
    solve_by::<V>(params, threads, workers, &archive)
}

/// Solves a board by given workers, which read the sealed items.
pub fn solve_by<V: Value>(
    params: &Params,
    threads: &[u32],
    workers: Vec<Worker<V>>,
    archive: &Arc<Sealed>,
) -> (u64, u128, Items) {
    let owners: Owners = assign(params, threads);
    workers.iter().enumerate().for_each(|(me, worker)| worker.join(&owners, me));
    let place = tempfile::tempdir().unwrap();
    let run = RunDir::create(&place.path().join("run"), &serde_json::json!({})).unwrap();
    let layers: Vec<Layer> = (4..=params.last_layer().0).step_by(2).map(Layer).collect();
    let others = |me: usize| workers.iter().enumerate().filter(move |&(other, _)| other != me);
    let (mut states, mut fingerprint) = (0, 0u128);
    for &layer in &layers {
        for lane in alive(params, layer) {
            let me = owners.owner(lane);
            states += workers[me].compute(FIND_STATES, layer, lane, HELPERS).unwrap().count;
            let payload = workers[me].states_payload(layer, lane);
            others(me).for_each(|(_, to)| to.accept_states(layer, lane, payload.clone()).unwrap());
        }
        for lane in alive(params, layer) {
            let owner = &workers[owners.owner(lane)];
            owner.compute(BlockTask::FindAfterstates, layer, lane, HELPERS).unwrap();
        }
        for (member, worker) in workers.iter().enumerate() {
            archive.add(&run, worker, member, ShardKind::Reach, layer);
        }
    }
    workers.iter().for_each(|worker| worker.release(Holding::All));
    for &layer in layers.iter().rev() {
        for lane in alive(params, layer) {
            let me = owners.owner(lane);
            workers[me].compute(BlockTask::BackUpAfterstates, layer, lane, HELPERS).unwrap();
            let (members, to): (Vec<usize>, Vec<&Worker<V>>) = others(me).unzip();
            let payloads = workers[me].after_values_payloads(layer, lane, &members).unwrap();
            if params.game().cells() <= 6 {
                // The first call took the note of the block, so the second finds the needed values again.
                let again = workers[me].after_values_payloads(layer, lane, &members).unwrap();
                let checksums = |payloads: &[BytesList]| -> Vec<u64> {
                    payloads.iter().map(BytesList::checksum).collect()
                };
                assert_eq!(checksums(&payloads), checksums(&again), "layer {layer}, lane {lane:?}");
            }
            for (to, payload) in to.into_iter().zip(payloads) {
                to.accept_after_values(layer, lane, payload).unwrap();
            }
        }
        for lane in alive(params, layer) {
            let keep = params.contents().kept().keeps(layer);
            let task = BlockTask::BackUpStates(Sink::Shards { keep });
            let outcome = workers[owners.owner(lane)].compute(task, layer, lane, HELPERS).unwrap();
            fingerprint = fingerprint.wrapping_add(outcome.fingerprint);
        }
        if params.contents().stores_values_or_moves(layer) {
            for (member, worker) in workers.iter().enumerate() {
                archive.add(&run, worker, member, ShardKind::Values, layer);
            }
        }
    }
    let items = archive.0.lock().unwrap().clone();
    (states, fingerprint, items)
}

/// The hash of a state by the definition in `docs/dev/format.md`, from all images of its board.
pub fn slow_hash(space: &Space, board: Board, value: u64) -> u128 {
    let (size, places) = (space.params().game().board(), space.params().game().places());
    let contents = |image: Board| (0..places).map(|cell| image.get(cell)).collect::<Vec<u8>>();
    let images: Vec<Vec<u8>> = space.symmetries().images(board).map(contents).collect();
    let holding = |image: &[u8], exponent: u8| -> u32 {
        (0..places).filter(|&cell| image[cell] == exponent).map(|cell| 1 << cell).sum()
    };
    let key = |image: &Vec<u8>| [0, 1, 2].map(|exponent| holding(image, exponent));
    let first = images.iter().map(key).min().unwrap();
    let words = |image: &Vec<u8>| {
        let random = size.playable().map(|cell| xxh3_128(&[cell as u8, image[cell]]));
        random.fold((0u64, 0u64), |(a, b), r| (a.wrapping_add(r as u64), b.wrapping_add((r >> 64) as u64)))
    };
    let (a, b) = images.iter().filter(|image| key(image) == first).map(words).min().unwrap();
    let (low, high) = (value & 0xffff_ffff, value >> 32);
    let mix = |word: u64, added: u64| {
        let product = (word.wrapping_add(added) % (1 << 32)) * (word >> 32 | 1);
        let folded = product ^ product >> 24;
        u128::from(folded ^ folded << 16)
    };
    mix(b, low + 2 * high) << 64 | mix(a, low + high)
}
