//! Runs in object stores: like runs in directories, but with opening records instead of locks, and on faulty stores.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;
#[path = "common/faulty.rs"]
mod faulty;
#[path = "common/place.rs"]
mod place;

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{frame, identity, key, write_small_shard};
use exact2048_storage::{
    ErrorKind, Frame, Location, RunDir, ShardRecord, ShardWriter, StorageError, StoreSettings, file_cost,
};
use faulty::{Fault, Request};
use place::{Place, is_sound, open_shard};
use serde_json::{Value, json};

impl Place {
    fn open(&self) -> RunDir {
        RunDir::open_for_writing(self.location()).unwrap()
    }

    fn shards(&self) -> Vec<String> {
        let all = self.store.names();
        all.iter().filter_map(|name| name.strip_prefix("a/run/shards/").map(str::to_owned)).collect()
    }
}

#[test]
fn a_run_survives_a_round_trip() {
    let place = Place::new();
    let mut run = place.create();
    assert_eq!((run.place().to_string().as_str(), run.place().as_path()), ("s3://bucket/a/run", None));
    // Record 0 is the opening record.
    let awkward = [json!(null), json!(0.1 + 0.2), json!({ "opened": 1 }), json!([5e-324, -0.0])];
    for (number, record) in (1..).zip(&awkward) {
        assert_eq!(run.commit(record).unwrap(), number);
    }
    let shard = write_small_shard(&run);
    assert_eq!(run.commit(&json!(shard)).unwrap(), 5);
    is_sound(&open_shard(&run, &shard).unwrap());
    let id = run.run_id();
    drop(run);
    place.forget_copies();
    for mut run in [place.read().unwrap(), place.open(), place.read().unwrap()] {
        assert_eq!((run.run_id(), run.params()), (id, &json!({ "rows": 3 })));
        assert_eq!(run.records()[..4], awkward);
        let records = run.take_records();
        assert_eq!(records.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        is_sound(&open_shard(&run, &shard).unwrap());
        let bytes: usize = place.store.names().iter().map(|name| place.store.contents(name).len()).sum();
        assert_eq!(run.bytes_on_disk().unwrap(), bytes as u64);
        assert_eq!(place.cached().len(), 1);
    }
    assert_eq!(place.store.names().iter().filter(|name| name.contains("journal")).count(), 7);
}

#[test]
fn a_run_can_be_copied_to_a_directory_and_back() {
    let place = Place::new();
    let mut run = place.create();
    let shard = write_small_shard(&run);
    run.commit(&json!(shard)).unwrap();
    let folder = place.local.path().join("copy");
    place.copy_to(&folder);
    let mut copy = RunDir::open_for_writing(&folder).unwrap();
    assert_eq!(copy.records(), run.records());
    is_sound(&open_shard(&copy, &shard).unwrap());
    let second = write_small_shard(&copy);
    assert_eq!(second.file, "reach-000004-000120.shard");
    assert_eq!(copy.commit(&json!(second)).unwrap(), 2);
    drop(copy);

    let back = Place::new();
    for entry in ["manifest.json", "journal/000000.json", "journal/000001.json", "journal/000002.json"] {
        back.store.set_contents(&format!("a/run/{entry}"), fs::read(folder.join(entry)).unwrap().into());
    }
    let name = format!("a/run/shards/{}", second.file);
    back.store.set_contents(&name, fs::read(folder.join("shards").join(&second.file)).unwrap().into());
    let mut run = back.open();
    is_sound(&open_shard(&run, &second).unwrap());
    assert_eq!(run.commit(&json!("more")).unwrap(), 4);
}

#[test]
fn a_place_without_a_run_is_detected() {
    let place = Place::new();
    assert!(matches!(place.read(), Err(StorageError::NotARun { .. })));
    assert!(matches!(RunDir::open_for_writing(place.location()), Err(StorageError::NotARun { .. })));
    assert_eq!(RunDir::find(place.location()).unwrap(), None);
    assert!(place.store.names().is_empty());
    place.store.set_contents("a/run/notes.txt", "mine".into());
    match RunDir::create(place.location(), &json!({})) {
        Err(StorageError::NotEmpty { found, .. }) => {
            assert_eq!(found.to_string(), "s3://bucket/a/run/notes.txt");
        }
        other => panic!("{other:?}"),
    }
    place.store.remove("a/run/notes.txt");
    place.store.set_contents("a/run-of-another-name/notes.txt", "mine".into());
    drop(place.create());
    let again = RunDir::create(place.location(), &json!({}));
    assert!(matches!(again, Err(StorageError::AlreadyARun { .. })), "{again:?}");
    assert_eq!(RunDir::find(place.location()).unwrap().unwrap().params, json!({ "rows": 3 }));
}

#[test]
fn a_store_that_overwrites_is_refused() {
    let place = Place::new();
    drop(place.create());
    let before = place.store.names();
    place.store.plan(|_, _| Fault::NoCondition);
    let refused = RunDir::open_for_writing(place.location());
    assert!(matches!(refused, Err(StorageError::UnsafeStore { .. })), "{refused:?}");
    assert_eq!(place.store.names(), before, "the probe left an object behind");
    place.read().unwrap();
    let fresh = Place::new();
    fresh.store.plan(|_, _| Fault::NoCondition);
    let refused = RunDir::create(fresh.location(), &json!({}));
    assert!(matches!(refused, Err(StorageError::UnsafeStore { .. })), "{refused:?}");
    assert!(fresh.store.names().is_empty());
}

#[test]
fn a_later_writer_fences_the_earlier_one_off() {
    let place = Place::new();
    let mut first = place.create();
    first.commit(&json!("first")).unwrap();
    let lost = write_small_shard(&first);
    let mut second = place.open();
    let kept = write_small_shard(&second);
    assert_ne!(lost.file, kept.file);

    let error = first.commit(&json!(lost)).unwrap_err();
    let StorageError::TakenOver { by, .. } = &error else { panic!("{error}") };
    assert!(by.contains(&format!("process {}", std::process::id())), "{by}");
    assert!(matches!(first.commit(&json!(lost)), Err(StorageError::EarlierFailure { .. })));
    // The earlier writer cannot harm its successor.
    let late = write_small_shard(&first);
    assert_eq!(first.remove_unreferenced_shards(&HashSet::new()).unwrap(), 0);
    assert_eq!(second.commit(&json!(kept)).unwrap(), 3);
    is_sound(&open_shard(&place.read().unwrap(), &kept).unwrap());

    // The next writer removes the leftovers of the earlier writer.
    assert_eq!(place.shards().len(), 3);
    let third = place.open();
    let freed = third.remove_unreferenced_shards(&HashSet::from([kept.file.clone()])).unwrap();
    assert_eq!(freed, lost.bytes + late.bytes);
    assert_eq!(place.shards(), [kept.file]);
    assert_eq!(third.records(), [json!("first"), json!(place.read().unwrap().records()[1])]);
}

#[test]
fn commits_of_racing_writers_are_unique_and_in_order() {
    let place = Place::new();
    drop(place.create());
    let ends = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let place = &place;
                scope.spawn(move || {
                    let mut committed = Vec::new();
                    let opened = RunDir::open_for_writing(place.location());
                    let Ok(mut run) = opened else { return committed };
                    for n in 0..20 {
                        match run.commit(&json!([writer, n])) {
                            Ok(number) => committed.push((number, json!([writer, n]))),
                            Err(StorageError::TakenOver { .. }) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    committed
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    let mut run = place.read().unwrap();
    let mut committed: Vec<(u64, Value)> = ends.iter().flatten().cloned().collect();
    committed.sort_by_key(|(number, _)| *number);
    assert_eq!(run.take_records(), committed);
    assert!(ends.iter().any(|commits| commits.len() == 20), "the last writer to open is not fenced off");
}

#[test]
fn one_of_several_racing_creators_wins() {
    let place = Place::new();
    let ends = std::thread::scope(|scope| {
        let creators: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn({
                    let place = &place;
                    move || RunDir::create(place.location(), &json!(n))
                })
            })
            .collect();
        creators.into_iter().map(|creator| creator.join().unwrap()).collect::<Vec<_>>()
    });
    let won: Vec<&RunDir> = ends.iter().filter_map(|end| end.as_ref().ok()).collect();
    assert_eq!(won.len(), 1, "{ends:?}");
    assert_eq!(won[0].run_id(), place.read().unwrap().run_id());
    assert!(ends.iter().all(|end| matches!(end, Ok(_) | Err(StorageError::AlreadyARun { .. }))), "{ends:?}");
}

/// Plans a fault for all requests of a kind except every `nth`.
fn failing_but_every(nth: u32, fault: Fault, of: Request) -> impl FnMut(Request, &str) -> Fault {
    let count = AtomicU32::new(0);
    move |request, _| {
        let passes = request != of || count.fetch_add(1, Ordering::Relaxed) % nth == nth - 1;
        if passes { Fault::None } else { fault }
    }
}

#[test]
fn lost_replies_and_short_outages_are_harmless() {
    for (fault, of) in [
        (Fault::LostReply, Request::Put),
        (Fault::Error("connection reset"), Request::Put),
        (Fault::Error("connection reset"), Request::Get),
        (Fault::Error("connection reset"), Request::List),
        (Fault::Error("connection reset"), Request::Delete),
        (Fault::Slow, Request::Put),
        (Fault::Slow, Request::Get),
    ] {
        let place = Place::new();
        place.store.plan(failing_but_every(3, fault, of));
        let mut run = place.create();
        for n in 1..6 {
            assert_eq!(run.commit(&json!(n)).unwrap(), n, "{fault:?} of {of:?}");
        }
        let shard = write_small_shard(&run);
        run.commit(&json!(shard)).unwrap();
        place.forget_copies();
        let mut run = place.open();
        assert_eq!(run.records()[..5], [json!(1), json!(2), json!(3), json!(4), json!(5)]);
        is_sound(&open_shard(&run, &shard).unwrap());
        run.remove_unreferenced_shards(&HashSet::new()).unwrap();
        run.commit(&json!("end")).unwrap();
        place.store.heal();
        assert_eq!(place.read().unwrap().records().len(), 7, "{fault:?} of {of:?}");
        let scratch = place.store.names().into_iter().find(|name| name.contains(".tmp-"));
        assert_eq!(scratch, None, "{fault:?} of {of:?}");
    }
}

/// The store completes the upload and loses the answer. When the client asks again, the store no longer knows the
/// upload.
#[test]
fn an_upload_that_the_store_has_forgotten_is_repeated() {
    let place = Place::new();
    let run = place.create();
    let mut asked = 0;
    place.store.plan(move |request, _| {
        asked += u32::from(request == Request::Complete);
        if request == Request::Complete && asked == 1 { Fault::Forgotten } else { Fault::None }
    });
    let mut writer = ShardWriter::create(&run, identity(run.run_id())).unwrap();
    let noise: Vec<u8> =
        (0..1u64 << 21).flat_map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    writer.push(frame(&[(key(4, 0, 0), &noise)])).unwrap();
    let shard = writer.finish().unwrap();
    assert!(shard.bytes > 8 << 20, "the shard must be sent in parts: {} bytes", shard.bytes);
    place.forget_copies();
    open_shard(&run, &shard).unwrap().verify().unwrap();
}

/// Scratch files are on the local disk, so they do not count towards the limit on the store.
#[test]
fn scratch_files_use_no_space_of_a_store() {
    let place = Place::new();
    let mut run = place.create();
    run.limit_disk(1 << 20).unwrap();
    let taken = || run.allowance().unwrap().taken_bytes();
    let before = taken();
    let mut scratch = run.scratch().create().unwrap();
    scratch.append(&[0; 2 << 20]).unwrap();
    assert_eq!(taken(), before);
}

/// An object may be shorter than its record states, or missing. Only the space of the object itself is given back.
#[test]
fn a_removed_object_gives_back_its_own_space() {
    let place = Place::new();
    let mut run = place.create();
    let shard = write_small_shard(&run);
    run.limit_disk(1 << 20).unwrap();
    let taken = || run.allowance().unwrap().taken_bytes();
    let before = taken();
    let longer = ShardRecord { bytes: shard.bytes + 100_000, ..shard.clone() };
    run.remove_needless_shards(std::slice::from_ref(&longer)).unwrap();
    assert_eq!(before - taken(), file_cost(shard.bytes));
    run.remove_needless_shards(&[longer]).unwrap();
    assert_eq!(before - taken(), file_cost(shard.bytes), "the object was already deleted");
}

/// All replies to puts are lost, so only reading the record back shows its author.
#[test]
fn a_commit_whose_reply_is_lost_recognises_its_own_record() {
    let place = Place { patience: Duration::from_millis(200), ..Place::new() };
    let mut run = place.create();
    place.store.plan(failing_but_every(u32::MAX, Fault::LostReply, Request::Put));
    for n in 1..4 {
        assert_eq!(run.commit(&json!("the same")).unwrap(), n);
    }
    place.store.heal();
    let mut next = place.open();
    place.store.plan(failing_but_every(u32::MAX, Fault::LostReply, Request::Put));
    assert_eq!(next.commit(&json!("the same")).unwrap(), 5);
    place.store.heal();
    assert!(matches!(run.commit(&json!("the same")), Err(StorageError::TakenOver { .. })));
}

#[test]
fn a_lasting_outage_or_silence_ends_in_time() {
    for fault in [Fault::Error("connection refused"), Fault::Hang] {
        let place = Place { patience: Duration::from_millis(300), ..Place::new() };
        let mut run = place.create();
        let shard = write_small_shard(&run);
        place.forget_copies();
        place.store.plan(move |_, _| fault);
        let begun = Instant::now();
        let check = |error: StorageError, object: &str| {
            assert!(matches!(error, StorageError::Store { .. }), "{error}");
            assert!(error.to_string().contains(object), "{error}");
        };
        check(place.read().unwrap_err(), "s3://bucket/a/run/manifest.json");
        check(open_shard(&run, &shard).unwrap_err(), &shard.file);
        check(run.bytes_on_disk().unwrap_err(), "s3://bucket/a/run");
        check(run.commit(&json!(1)).unwrap_err(), "journal/000001.json");
        assert!(matches!(run.commit(&json!(1)), Err(StorageError::EarlierFailure { .. })));
        assert!(begun.elapsed() < Duration::from_secs(20));
        place.store.heal();
        let mut next = place.open();
        assert_eq!(next.commit(&json!(2)).unwrap(), 2);
    }
}

/// An unavailable store is reported during the wait, and a reader is not advised to resume.
#[test]
fn a_wait_for_a_store_is_reported() {
    static REPORTS: AtomicU32 = AtomicU32::new(0);
    let place = Place::new();
    drop(place.create());
    let settings = StoreSettings {
        first_patience: Some(Duration::from_millis(300)),
        on_wait: Some(|words| {
            assert!(words.contains("does not answer"), "{words}");
            REPORTS.fetch_add(1, Ordering::Relaxed);
        }),
        ..place.settings()
    };
    let store = Arc::clone(&place.store);
    let location = Location::objects(store, "s3://bucket/a/run", "/a/run", &settings).unwrap();
    place.store.plan(|_, _| Fault::Error("connection refused"));
    let begun = Instant::now();
    let error = RunDir::open_read_only(&location).unwrap_err();
    assert!(begun.elapsed() < place.patience, "the wait exceeded the limit for a store never reached");
    assert_eq!((error.kind(), REPORTS.load(Ordering::Relaxed)), (ErrorKind::Unavailable, 1));
    let text = error.to_string();
    assert!(text.contains("the store is up") && !text.contains("to resume"), "{text}");
}

#[test]
fn a_bucket_that_does_not_exist_is_named() {
    let place = Place::new();
    place.store.plan(|_, _| Fault::Error("status code: 404 Not Found: <Code>NoSuchBucket</Code>"));
    for error in [place.read().unwrap_err(), RunDir::create(place.location(), &json!({})).unwrap_err()] {
        assert!(matches!(&error, StorageError::NoBucket { bucket, .. } if bucket == "bucket"), "{error}");
    }
}

#[test]
fn a_full_store_is_reported_and_loses_no_data() {
    let place = Place::new();
    let mut run = place.create();
    run.commit(&json!(1)).unwrap();
    let full = |request, _: &str| match request {
        Request::Put | Request::Multipart => Fault::Error("<Code>QuotaExceeded</Code>"),
        _ => Fault::None,
    };
    place.store.plan(full);
    let mut writer = ShardWriter::create(&run, identity(run.run_id())).unwrap();
    writer.push(frame(&[(key(4, 0, 0), b"raw bytes")])).unwrap();
    let error = writer.finish().unwrap_err();
    assert!(matches!(error, StorageError::Full { .. }), "{error}");
    assert!(error.to_string().contains("to resume"), "{error}");
    assert!(matches!(run.commit(&json!(2)), Err(StorageError::Full { .. })));
    assert!(place.cached().is_empty(), "an unfinished shard was left");
    place.store.heal();
    let mut run = place.open();
    assert_eq!(run.records(), [json!(1)]);
    assert_eq!(run.commit(&json!(2)).unwrap(), 3);
}

#[test]
fn open_shards_outlive_their_copies() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    let reader = open_shard(&run, &shard).unwrap();
    place.forget_copies();
    place.store.plan(|_, _| Fault::Error("connection refused"));
    is_sound(&reader);
}

/// The shard has several parts, the last one shorter.
#[test]
fn large_shards_are_sent_and_fetched_in_parts() {
    let place = Place::new();
    let run = place.create();
    let mut random = 1u64;
    let mut noise = |length: usize| -> Vec<u8> {
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 56) as u8
        };
        (0..length).map(|_| next()).collect()
    };
    let items: Vec<_> = (0..5).map(|part| (key(4, 0, part), noise(4 << 20))).collect();
    let mut writer = ShardWriter::create(&run, identity(run.run_id())).unwrap();
    for (key, bytes) in &items {
        writer.push(Frame::encode(&[(*key, bytes)], 1).unwrap()).unwrap();
    }
    let shard = writer.finish().unwrap();
    assert!(shard.bytes > 20 << 20);
    place.forget_copies();
    let reader = open_shard(&run, &shard).unwrap();
    for (key, bytes) in &items {
        assert!(reader.read(*key).unwrap().as_ref() == Some(bytes));
    }
}

/// Opening needs one list and one request per object, regardless of the size of the run.
#[test]
fn opening_for_reading_lists_only_the_journal() {
    let place = Place::new();
    let mut run = place.create();
    let shard = write_small_shard(&run);
    run.commit(&json!(shard)).unwrap();
    let requests = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    place.store.plan(move |request, name| {
        seen.lock().unwrap().push((request, name.to_owned()));
        Fault::None
    });
    is_sound(&open_shard(&place.read().unwrap(), &shard).unwrap());
    let requests = requests.lock().unwrap();
    let lists: Vec<_> = requests.iter().filter(|(request, _)| *request == Request::List).collect();
    assert_eq!(lists, [&(Request::List, "a/run/journal".to_owned())]);
    assert_eq!(requests.len(), 4, "{requests:?}");
}
