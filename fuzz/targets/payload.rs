//! Blocks from other workers, and items of shards. The first byte selects the block, the rest is its payload.
#![no_main]

use std::sync::{Arc, LazyLock};

use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::rowset::RowSet;
use exact2048_game::{Lane, Layer, Params};
use exact2048_solution::{Archive, Parts, ReadError};
use exact2048_storage::{ItemKey, ShardKind};
use exact2048_worker::{BytesList, BlockEngine, Heap, Holding, Tuning, Worker};
use libfuzzer_sys::fuzz_target;

struct Nothing;

impl Archive for Nothing {
    fn read(&self, _: ShardKind, _: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(None)
    }
}

static PARAMS: LazyLock<Params> = LazyLock::new(|| Params::small("3x2"));

static WORKER: LazyLock<Worker<u32>> = LazyLock::new(|| {
    let tuning = Tuning {
        limit_bytes: 1 << 30,
        heap: Heap::of(|| 0),
        dense_rows: Tuning::DENSE_ROWS,
        piece_bytes: Tuning::PIECE_BYTES,
    };
    Worker::new(&PARAMS, tuning, std::env::temp_dir(), Arc::new(Nothing))
});

static BLOCKS: LazyLock<Vec<(Layer, Lane)>> = LazyLock::new(|| {
    let first_of = |lane| (layer_range(&PARAMS, lane).0, lane);
    lanes(&PARAMS).into_iter().map(first_of).collect()
});

fuzz_target!(|bytes: &[u8]| {
    let [which, payload @ ..] = bytes else { return };
    let (layer, lane) = BLOCKS[usize::from(*which) * BLOCKS.len() / 256];
    let list = || {
        let mut writer = BytesList::writer(payload.len());
        writer.put(payload);
        writer.finish()
    };
    let _ = WORKER.accept_states(layer, lane, list());
    let _ = WORKER.accept_after_values(layer, lane, list());
    WORKER.release(Holding::States(layer));
    WORKER.release(Holding::Afterstates(layer));

    let parts = Parts::new(usize::from(*which) + 1, 100);
    let mut bits = vec![0; parts.rows(0).len() * parts.words()];
    let key = Parts::key(layer, lane, 0);
    if parts.decode_reach_part(key, payload, &mut bits).is_ok() {
        let held = RowSet::all(parts.rows(0).len());
        let item = parts.encode_reach(0, &held, &bits);
        let mut again = vec![0; bits.len()];
        // An item without states is not written.
        assert!(item.is_empty() || parts.decode_reach_part(key, &item, &mut again).is_ok());
        assert_eq!(again, bits);
    }
});
