//! File systems that grant a lock to every process, as some do between machines. This test is alone in its file,
//! because fail points affect the whole process.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::sync::Barrier;

use exact2048_storage::{RunDir, StorageError};
use serde_json::json;

/// One creator wins, the others are refused, and the run is the winner's.
#[test]
fn one_of_several_creators_wins_if_all_get_the_lock() {
    fail::cfg("lock.granted", "return").unwrap();
    for _ in 0..50 {
        let place = tempfile::tempdir().unwrap();
        let (folder, start) = (place.path().join("run"), Barrier::new(4));
        let ends = std::thread::scope(|scope| {
            let create = |n: u32| {
                start.wait();
                let mut run = RunDir::create(&folder, &json!(n))?;
                run.commit(&json!("first"))?;
                Ok::<_, StorageError>(run.run_id())
            };
            let creators: Vec<_> = (0..4).map(|n| scope.spawn(move || create(n))).collect();
            creators.into_iter().map(|creator| creator.join().unwrap()).collect::<Vec<_>>()
        });
        let won: Vec<_> = ends.iter().filter_map(|end| end.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "{ends:?}");
        let run = RunDir::open_for_writing(&folder).unwrap();
        assert_eq!((run.run_id(), run.records()), (*won[0], &[json!("first")][..]));
        let refused = |end: &Result<_, _>| {
            matches!(end, Ok(_) | Err(StorageError::AlreadyARun { .. } | StorageError::NotEmpty { .. }))
        };
        assert!(ends.iter().all(refused), "{ends:?}");
    }
}
