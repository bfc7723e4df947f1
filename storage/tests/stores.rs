//! Runs in object stores: the same as in directories, with openings in the place of locks, on stores that fail.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;
#[path = "common/faulty.rs"]
mod faulty;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{frame, identity, key, names, write_small_shard};
use exact2048_storage::{
    ErrorKind, Frame, Location, RunDir, ShardReader, ShardRecord, ShardWriter, StorageError, StoreSettings,
};
use faulty::{Fault, Faulty, Request};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A store, and a cache.
struct Place {
    store: Arc<Faulty>,
    local: TempDir,
    patience: Duration,
}

impl Place {
    fn new() -> Self {
        Self { store: Faulty::new(), local: tempfile::tempdir().unwrap(), patience: Duration::from_secs(10) }
    }

    fn settings(&self) -> StoreSettings {
        StoreSettings {
            cache_folder: Some(self.local.path().join("cache")),
            patience: Some(self.patience),
            ..StoreSettings::default()
        }
    }

    fn location(&self) -> Location {
        let store = Arc::clone(&self.store);
        Location::objects(store, "s3://bucket/a/run", "/a/run", &self.settings()).unwrap()
    }

    fn create(&self) -> RunDir {
        RunDir::create(self.location(), &json!({ "rows": 3 })).unwrap()
    }

    fn open(&self) -> RunDir {
        RunDir::open_for_writing(self.location()).unwrap()
    }

    fn read(&self) -> Result<RunDir, StorageError> {
        RunDir::open_read_only(self.location())
    }

    fn shards(&self) -> Vec<String> {
        let all = self.store.names();
        all.iter().filter_map(|name| name.strip_prefix("a/run/shards/").map(str::to_owned)).collect()
    }

    fn cached(&self) -> Vec<String> {
        names(&self.local.path().join("cache"))
    }

    fn forget_copies(&self) {
        for name in self.cached() {
            fs::remove_file(self.local.path().join("cache").join(name)).unwrap();
        }
    }

    /// Copies all objects of the run into a folder.
    fn copy_to(&self, folder: &Path) {
        for name in self.store.names() {
            let path = folder.join(name.strip_prefix("a/run/").unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, self.store.contents(&name)).unwrap();
        }
    }
}

fn open_shard(run: &RunDir, record: &ShardRecord) -> Result<ShardReader, StorageError> {
    run.shards().open(record, &identity(run.run_id()))
}

fn is_sound(reader: &ShardReader) {
    reader.verify().unwrap();
    assert_eq!(reader.read(key(9, 1, 0)).unwrap().unwrap(), [5; 200]);
}

#[test]
fn a_run_is_read_back_as_it_was_written() {
    let place = Place::new();
    let mut run = place.create();
    assert_eq!((run.place().to_string().as_str(), run.place().as_path()), ("s3://bucket/a/run", None));
    // Number 0 is the opening.
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
    for run in [place.read().unwrap(), place.open(), place.read().unwrap()] {
        assert_eq!((run.run_id(), run.params()), (id, &json!({ "rows": 3 })));
        assert_eq!(run.records()[..4], awkward);
        assert_eq!([0, 4, 5].map(|at| run.record_number(at)), [Some(1), Some(5), None]);
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
fn what_is_no_run_is_told_apart() {
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
    assert_eq!(place.store.names(), before, "the probe left something behind");
    place.read().unwrap();
    let fresh = Place::new();
    fresh.store.plan(|_, _| Fault::NoCondition);
    let refused = RunDir::create(fresh.location(), &json!({}));
    assert!(matches!(refused, Err(StorageError::UnsafeStore { .. })), "{refused:?}");
    assert!(fresh.store.names().is_empty());
}

/// Where the copy is damaged, and the shard in the store is gone or cut off as well, that is said of the shard: it is made
/// again then.
#[test]
fn a_frame_that_is_nowhere_is_missed_in_the_shard() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    let name = format!("a/run/shards/{}", shard.file);
    let sound = place.store.contents(&name);
    let read = || {
        let reader = open_shard(&run, &shard).unwrap();
        for copy in place.cached() {
            fs::write(place.local.path().join("cache").join(copy), vec![0; sound.len()]).unwrap();
        }
        reader
    };
    let reader = read();
    place.store.set_contents(&name, sound.slice(..sound.len() / 4));
    let error = reader.verify().unwrap_err();
    assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
    assert_eq!(error.blames().map(|shard| shard.to_string()), Some(shard.file.clone()), "{error}");
    place.store.set_contents(&name, sound.clone());
    let reader = read();
    place.store.remove(&name);
    let error = reader.verify().unwrap_err();
    assert!(matches!(error, StorageError::ShardMissing { .. }), "{error}");
}

#[test]
fn a_check_reads_the_store_and_keeps_nothing() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    let check = || run.shards().check(&shard, &identity(run.run_id()));
    let cached = place.cached();
    check().unwrap();
    assert_eq!(place.cached(), cached, "the copy that was there");
    place.forget_copies();
    check().unwrap();
    assert!(place.cached().is_empty(), "{:?}", place.cached());

    let name = format!("a/run/shards/{}", shard.file);
    let sound = place.store.contents(&name);
    let mut damaged = sound.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    place.store.set_contents(&name, damaged.into());
    let error = check().unwrap_err();
    assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
    // Damage on the way there alone is no damage of the shard.
    place.store.set_contents(&name, sound);
    let mut first = true;
    place.store.plan(move |request, _| match request {
        Request::Get if std::mem::take(&mut first) => Fault::Flip,
        _ => Fault::None,
    });
    check().unwrap();
    place.store.heal();
    place.store.remove(&name);
    let error = check().unwrap_err();
    assert!(matches!(error, StorageError::ShardMissing { .. }), "{error}");
    assert!(place.cached().is_empty(), "{:?}", place.cached());
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
    // Nor does it harm its successor, whatever it does.
    let late = write_small_shard(&first);
    assert_eq!(first.remove_unreferenced_shards(&HashSet::new()).unwrap(), 0);
    assert_eq!(second.commit(&json!(kept)).unwrap(), 3);
    is_sound(&open_shard(&place.read().unwrap(), &kept).unwrap());

    // What it left is removed by the next writer.
    assert_eq!(place.shards().len(), 3);
    let third = place.open();
    let freed = third.remove_unreferenced_shards(&HashSet::from([kept.file.clone()])).unwrap();
    assert_eq!(freed, lost.bytes + late.bytes);
    assert_eq!(place.shards(), [kept.file]);
    assert_eq!(third.records(), [json!("first"), json!(place.read().unwrap().records()[1])]);
}

#[test]
fn of_racing_writers_what_is_committed_is_there_once_and_in_order() {
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
    let run = place.read().unwrap();
    let mut committed: Vec<(u64, Value)> = ends.iter().flatten().cloned().collect();
    committed.sort_by_key(|(number, _)| *number);
    let found: Vec<(u64, Value)> =
        (0..).zip(run.records()).map(|(at, r)| (run.record_number(at).unwrap(), r.clone())).collect();
    assert_eq!(found, committed);
    assert!(ends.iter().any(|commits| commits.len() == 20), "the last to open is fenced off by nobody");
}

#[test]
fn of_racing_creators_one_wins() {
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

/// Requests of some kind fail every time but the last of so many.
fn failing_but_every(nth: u32, fault: Fault, of: Request) -> impl FnMut(Request, &str) -> Fault {
    let count = AtomicU32::new(0);
    move |request, _| {
        let passes = request != of || count.fetch_add(1, Ordering::Relaxed) % nth == nth - 1;
        if passes { Fault::None } else { fault }
    }
}

#[test]
fn lost_replies_and_passing_trouble_do_no_harm() {
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

/// All replies to puts are lost, so that nothing but reading back can tell.
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
fn lasting_trouble_and_silence_end_in_time() {
    for fault in [Fault::Error("connection refused"), Fault::Hang] {
        let place = Place { patience: Duration::from_millis(300), ..Place::new() };
        let mut run = place.create();
        let shard = write_small_shard(&run);
        place.forget_copies();
        place.store.plan(move |_, _| fault);
        let begun = Instant::now();
        let told = |error: StorageError, object: &str| {
            assert!(matches!(error, StorageError::Store { .. }), "{error}");
            assert!(error.to_string().contains(object), "{error}");
        };
        told(place.read().unwrap_err(), "s3://bucket/a/run/manifest.json");
        told(open_shard(&run, &shard).unwrap_err(), &shard.file);
        told(run.bytes_on_disk().unwrap_err(), "s3://bucket/a/run");
        told(run.commit(&json!(1)).unwrap_err(), "journal/000001.json");
        assert!(matches!(run.commit(&json!(1)), Err(StorageError::EarlierFailure { .. })));
        assert!(begun.elapsed() < Duration::from_secs(20));
        place.store.heal();
        let mut next = place.open();
        assert_eq!(next.commit(&json!(2)).unwrap(), 2);
    }
}

/// A store that is away is told of while it is waited for, and a reader is not told to resume.
#[test]
fn who_waits_for_a_store_is_told() {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let place = Place::new();
    drop(place.create());
    let settings = StoreSettings {
        first_patience: Some(Duration::from_millis(300)),
        on_wait: Some(|words| {
            assert!(words.contains("does not answer"), "{words}");
            TOLD.fetch_add(1, Ordering::Relaxed);
        }),
        ..place.settings()
    };
    let store = Arc::clone(&place.store);
    let location = Location::objects(store, "s3://bucket/a/run", "/a/run", &settings).unwrap();
    place.store.plan(|_, _| Fault::Error("connection refused"));
    let begun = Instant::now();
    let error = RunDir::open_read_only(&location).unwrap_err();
    assert!(begun.elapsed() < place.patience, "the patience of a store that was reached before");
    assert_eq!((error.kind(), TOLD.load(Ordering::Relaxed)), (ErrorKind::Unavailable, 1));
    let text = error.to_string();
    assert!(text.contains("the store is up") && !text.contains("resumes"), "{text}");
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
fn a_run_without_its_manifest_is_told() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    place.store.remove("a/run/manifest.json");
    place.store.remove("a/run/journal/000000.json");
    for error in [place.read().unwrap_err(), RunDir::create(place.location(), &json!({})).unwrap_err()] {
        assert!(matches!(error, StorageError::NotEmpty { .. } | StorageError::ManifestMissing { .. }));
        assert!(error.to_string().contains(&shard.file), "{error}");
    }
}

/// The run can do without its last record, and the error says so; of others it does not.
#[test]
fn of_a_damaged_last_record_the_way_out_is_told() {
    let place = Place::new();
    let mut run = place.create();
    (1..4).for_each(|n| assert_eq!(run.commit(&json!(n)).unwrap(), n));
    for n in [2, 3] {
        let name = format!("a/run/journal/00000{n}.json");
        let sound = place.store.contents(&name);
        place.store.set_contents(&name, sound.slice(..9));
        let error = place.read().unwrap_err();
        assert_eq!(error.to_string().contains("remove it while nobody writes"), n == 3, "{error}");
        place.store.set_contents(&name, sound);
    }
}

/// A look at a shard finds what its length and its header show, and reads nothing else.
#[test]
fn shards_are_looked_at_without_being_fetched() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    place.forget_copies();
    let folder = tempfile::tempdir().unwrap();
    let look = |record: &ShardRecord| {
        place.copy_to(folder.path());
        let copy = RunDir::open_read_only(folder.path()).unwrap();
        let [in_store, in_folder] = [run.shards(), copy.shards()]
            .map(|shards| shards.look(&[(record, identity(run.run_id()))]).unwrap().remove(0));
        assert_eq!(in_store.is_ok(), in_folder.is_ok());
        if let (Err(in_store), Err(in_folder)) = (&in_store, &in_folder) {
            assert_eq!(std::mem::discriminant(in_store), std::mem::discriminant(in_folder));
        }
        in_store
    };
    look(&shard).unwrap();
    assert!(place.cached().is_empty(), "it was fetched");
    let forged = [
        ShardRecord { bytes: shard.bytes + 1, ..shard.clone() },
        ShardRecord { items: shard.items + 1, ..shard.clone() },
        ShardRecord { frames: 0, ..shard.clone() },
        ShardRecord { header_checksum: 7, ..shard.clone() },
        ShardRecord { last_layer: 4, ..shard.clone() },
    ];
    for record in &forged {
        assert!(matches!(look(record), Err(StorageError::Foreign { .. })), "{record:?}");
    }
    let object = format!("a/run/shards/{}", shard.file);
    let sound = place.store.contents(&object);
    for length in [0, 1, 50, 104, sound.len() - 1] {
        place.store.set_contents(&object, sound.slice(..length));
        assert!(matches!(look(&shard), Err(StorageError::Damaged { .. })), "{length} bytes");
    }
    place.store.remove(&object);
    fs::remove_dir_all(folder.path().join("shards")).unwrap();
    assert!(matches!(look(&shard), Err(StorageError::ShardMissing { .. })));
    place.store.plan(|_, _| Fault::Error("status code: 403 Forbidden"));
    let error = run.shards().look(&[(&shard, identity(run.run_id()))]).unwrap().remove(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn a_full_store_is_told_and_loses_nothing() {
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
    assert!(error.to_string().contains("it resumes"), "{error}");
    assert!(matches!(run.commit(&json!(2)), Err(StorageError::Full { .. })));
    assert!(place.cached().is_empty(), "an unfinished shard was left");
    place.store.heal();
    let mut run = place.open();
    assert_eq!(run.records(), [json!(1)]);
    assert_eq!(run.commit(&json!(2)).unwrap(), 3);
}

#[test]
fn shards_damaged_on_the_way_are_fetched_again() {
    for fault in [Fault::Cut, Fault::Flip] {
        let place = Place::new();
        let run = place.create();
        let shard = write_small_shard(&run);
        place.forget_copies();
        let mut sound = false;
        place.store.plan(move |request, _| match request {
            Request::Get if !std::mem::replace(&mut sound, true) => fault,
            _ => Fault::None,
        });
        is_sound(&open_shard(&run, &shard).unwrap());
    }
}

#[test]
fn damaged_and_lost_shards_are_told_by_their_names() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    let object = format!("a/run/shards/{}", shard.file);
    let sound = place.store.contents(&object);
    for at in (0..sound.len()).step_by(7) {
        let mut bytes = sound.to_vec();
        bytes[at] ^= 1;
        place.store.set_contents(&object, bytes.into());
        let opened = run.shards().open_anew(&shard, &identity(run.run_id()));
        let error = opened.and_then(|reader| reader.verify()).unwrap_err();
        assert_eq!(error.blames(), Some(&shard.id()), "byte {at}: {error}");
    }
    for length in [0, 1, 103, 104, sound.len() - 1] {
        place.store.set_contents(&object, sound.slice(..length));
        let error = run.shards().open_anew(&shard, &identity(run.run_id())).unwrap_err();
        assert!(error.blames().is_some(), "{error}");
    }
    place.store.remove(&object);
    place.forget_copies();
    match open_shard(&run, &shard) {
        Err(StorageError::ShardMissing { file }) => assert_eq!(file, run.shard_place(&shard.id())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_copy_is_fetched_again() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    let entry = place.local.path().join("cache").join(&place.cached()[0]);
    let sound = fs::read(&entry).unwrap();
    for at in (0..sound.len()).step_by(5) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x20;
        fs::write(&entry, &bytes).unwrap();
        is_sound(&open_shard(&run, &shard).unwrap());
        // A frame that turned out to be damaged was read from the store, and the copy is gone.
        assert!(!entry.exists() || fs::read(&entry).unwrap() == sound, "byte {at}");
    }
    fs::write(&entry, &sound[..10]).unwrap();
    is_sound(&open_shard(&run, &shard).unwrap());
    assert_eq!(fs::read(&entry).unwrap(), sound);
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

/// More than one part, and not a whole number of them.
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

#[test]
fn a_gap_in_the_journal_is_damage() {
    let place = Place::new();
    let mut run = place.create();
    (1..5).for_each(|n| assert_eq!(run.commit(&json!(n)).unwrap(), n));
    place.store.set_contents("a/run/journal/notes", "mine".into());
    place.store.remove("a/run/journal/000002.json");
    match place.read() {
        Err(StorageError::Damaged { file, .. }) => {
            assert!(file.to_string().ends_with("journal/000002.json"), "{file:?}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn damaged_records_and_manifests_are_told() {
    let place = Place::new();
    place.create().commit(&json!("a")).unwrap();
    for name in ["manifest.json", "journal/000000.json", "journal/000001.json"] {
        let object = format!("a/run/{name}");
        let sound = place.store.contents(&object);
        for at in 0..sound.len() {
            let mut bytes = sound.to_vec();
            bytes[at] ^= 0xff;
            place.store.set_contents(&object, bytes.into());
            let error = place.read().unwrap_err();
            assert!(matches!(error, StorageError::Damaged { .. }), "byte {at} of {name}: {error}");
        }
        place.store.set_contents(&object, sound);
    }
    place.read().unwrap();
}

/// One list and a request for each object: no more, however large the run is.
#[test]
fn opening_for_reading_lists_nothing_but_the_journal() {
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
