//! Stores whose lists omit existing objects.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

#[path = "../../storage/tests/common/faulty.rs"]
mod faulty;

use exact2048_game::{Layer, Params};
use exact2048_solution::{Commit, JournalRecord, Phase, Record, Run, UnnamedPolicy};
use exact2048_storage::{Location, ShardWriter, StoreSettings};
use faulty::{Fault, Faulty, Request};

/// A shard counts as lost only if a check of the shard itself shows it. A list that omits the shard is not enough.
#[test]
fn a_shard_that_a_list_omits_is_checked() {
    let (store, cache) = (Faulty::new(), tempfile::tempdir().unwrap());
    let settings =
        StoreSettings { cache_folder: Some(cache.path().to_path_buf()), ..StoreSettings::default() };
    let location = Location::objects(store.clone(), "s3://bucket/run", "run", &settings).unwrap();
    let params = Params::small("2x2");
    let mut run = Run::open_or_create(&location, &params, UnnamedPolicy::Refuse).unwrap();
    let (phase, first, last) = (Phase::Enumerate, Layer(4), Layer(60));
    let identity = run.catalog().identity(phase, first, last);
    let shard = ShardWriter::create(run.dir(), identity).unwrap().finish().unwrap();
    let object = format!("run/shards/{}", shard.file);
    let commit = Commit { phase, first, last, layers: Vec::new(), fingerprint: None };
    let record = Record::new(commit.clone(), vec![shard]);
    run.append(JournalRecord::Commit(record)).unwrap();
    assert!(run.absent().unwrap().is_empty());

    let overlook = |request, _: &str| if request == Request::List { Fault::Overlook } else { Fault::None };
    store.plan(overlook);
    assert!(run.absent().unwrap().is_empty(), "the shard exists");
    store.plan(|request, _| match request {
        Request::List => Fault::Overlook,
        Request::Head => Fault::Error("status code: 403 Forbidden"),
        _ => Fault::None,
    });
    assert!(run.absent().is_err(), "the answer is unknown");
    store.remove(&object);
    store.plan(overlook);
    assert_eq!(run.absent().unwrap(), [commit]);
}
