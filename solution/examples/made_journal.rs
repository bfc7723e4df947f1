//! Makes a 4x3 run to measure the memory that a journal needs. The journal has as many shards as a cluster with this
//! many workers makes, but the shards do not exist. Measure the memory of `exact2048 info` on this run.
//!
//! ```sh
//! cargo run --release -p exact2048-solution --example made_journal -- /tmp/made 964 100
//! ```
#![allow(clippy::unwrap_used, reason = "a tool for those who develop this")]

use std::path::Path;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, JournalRecord, LayerCounts, Phase, Record, Run, UnnamedPolicy, assign};
use exact2048_storage::ShardRecord;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, records, workers] = &args[..] else {
        panic!("give a folder, the number of records and the number of workers")
    };
    let (records, workers): (u32, u64) = (records.parse().unwrap(), workers.parse().unwrap());
    let params = Params::small("4x3");
    let owners = assign(&params, &vec![32; usize::try_from(workers).unwrap()]);
    let mut run = Run::open_or_create(Path::new(folder), &params, UnnamedPolicy::Refuse).unwrap();
    let step = params.last_layer().0 / 2 / records.div_ceil(2) * 2;
    for number in 0..records {
        let phase = if number % 2 == 0 { Phase::Enumerate } else { Phase::BackUp };
        let first = 4 + number / 2 * step;
        let (first, last) = (Layer(first), Layer(first + step - 2));
        let counts =
            |layer| LayerCounts { layer: Layer(layer), states: 123_456_789, afterstates: 98_765_432 };
        let layers = match phase {
            Phase::Enumerate => (first.0..=last.0).step_by(2).map(counts).collect(),
            Phase::BackUp => Vec::new(),
        };
        let shard = |worker: u64| ShardRecord {
            file: format!(
                "{}-{first:06}-{last:06}-000001-100000001.{:016x}.shard",
                phase.shard_kind(),
                worker.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                first = first.0,
                last = last.0,
            ),
            kind: phase.shard_kind(),
            first_layer: first.0,
            last_layer: last.0,
            bytes: 12_345_678,
            frames: 123,
            items: 4567,
            header_checksum: worker,
        };
        let fingerprint = (phase == Phase::BackUp).then_some(u128::from(number) << 90);
        let commit = Commit { phase, first, last, layers, fingerprint };
        let shards: Vec<ShardRecord> = (0..workers).map(shard).collect();
        let lanes = owners.lanes_by_member(&params, shards.len(), (first, last));
        let record = Record { lanes, ..Record::new(commit, shards) };
        run.append(JournalRecord::Commit(record)).unwrap();
    }
}
