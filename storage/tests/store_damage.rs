//! Damaged, lost or forged objects and copies of runs in object stores. Each is either reported or fetched again.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;
#[path = "common/faulty.rs"]
mod faulty;
#[path = "common/place.rs"]
mod place;

use std::fs;

use common::{identity, write_small_shard};
use exact2048_storage::{ErrorKind, RunDir, ShardRecord, StorageError};
use faulty::{Fault, Request};
use place::{Place, is_sound, open_shard};
use serde_json::json;

/// If both the copy and the shard in the store are damaged or missing, the error blames the shard, which is then
/// recomputed.
#[test]
fn a_frame_without_an_intact_copy_is_blamed_on_the_shard() {
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
fn a_check_reads_the_store_and_keeps_no_copy() {
    let place = Place::new();
    let run = place.create();
    let shard = write_small_shard(&run);
    let check = || run.shards().check(&shard, &identity(run.run_id()));
    let cached = place.cached();
    check().unwrap();
    assert_eq!(place.cached(), cached, "the check changed the cached copy");
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
    // Damage during a transfer is not damage of the shard.
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
fn a_run_without_its_manifest_is_reported() {
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

/// A run is readable without its last record, so only the error for that record suggests removing the object.
#[test]
fn a_damaged_last_record_may_be_removed() {
    let place = Place::new();
    let mut run = place.create();
    (1..4).for_each(|n| assert_eq!(run.commit(&json!(n)).unwrap(), n));
    for n in [2, 3] {
        let name = format!("a/run/journal/00000{n}.json");
        let sound = place.store.contents(&name);
        place.store.set_contents(&name, sound.slice(..9));
        let error = place.read().unwrap_err();
        assert_eq!(error.to_string().contains("remove the file while no process writes"), n == 3, "{error}");
        place.store.set_contents(&name, sound);
    }
}

/// `look` checks the length and the header of a shard and reads nothing else.
#[test]
fn shards_are_checked_without_being_fetched() {
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
    assert!(place.cached().is_empty(), "the shard was fetched");
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
fn damaged_and_lost_shards_are_reported_by_name() {
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
        Err(StorageError::ShardMissing { file }) => assert_eq!(file, run.shards().place(&shard.id())),
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
        // A damaged frame was read from the store, and the copy was discarded.
        assert!(!entry.exists() || fs::read(&entry).unwrap() == sound, "byte {at}");
    }
    fs::write(&entry, &sound[..10]).unwrap();
    is_sound(&open_shard(&run, &shard).unwrap());
    assert_eq!(fs::read(&entry).unwrap(), sound);
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
fn damaged_records_and_manifests_are_reported() {
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
