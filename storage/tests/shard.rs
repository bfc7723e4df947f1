//! Shards: data survives a round trip, and any change of a file is detected.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use common::{frame, identity, key, names, new_run, shard_path, write_small_shard};
use exact2048_storage::{
    Codec, ErrorKind, Frame, ItemKey, RunDir, RunId, ShardIdentity, ShardKind, ShardReader, ShardWriter,
    StorageError,
};
use proptest::prelude::*;

/// Identity and bytes of a small shard.
static SMALL: LazyLock<(ShardIdentity, Vec<u8>)> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    let run = new_run(place.path());
    let record = write_small_shard(&run);
    (identity(run.run_id()), std::fs::read(shard_path(&run, &record.file)).unwrap())
});

/// Opens and verifies a shard, as `verify` does.
fn check(bytes: Vec<u8>) -> Result<ShardReader, StorageError> {
    let reader = ShardReader::from_bytes(Path::new("small.shard"), bytes, Some(&SMALL.0))?;
    reader.verify()?;
    Ok(reader)
}

fn temp_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let run = new_run(place.path());
    (place, run)
}

#[test]
fn the_record_and_the_reader_agree() {
    let (_place, run) = temp_run();
    let record = write_small_shard(&run);
    assert_eq!(record.file, "reach-000004-000120.shard");
    let reader = ShardReader::open(&shard_path(&run, &record.file), &identity(run.run_id())).unwrap();
    assert_eq!((record.frames, record.items), (2, 4));
    assert_eq!(reader.file_bytes(), record.bytes);
    assert_eq!(reader.header_checksum(), record.header_checksum);
    assert_eq!(reader.frames().iter().map(|f| f.codec).collect::<Vec<_>>(), [Codec::Zstd, Codec::Raw]);
    let keys: Vec<ItemKey> = reader.items().iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [key(4, 0, 0), key(8, u64::MAX, 1), key(9, 1, 0), key(120, 7, u32::MAX)]);
    assert_eq!(reader.read(key(9, 1, 0)).unwrap().unwrap(), [5; 200]);
    assert_eq!(reader.read(key(8, u64::MAX, 1)).unwrap().unwrap(), b"");
    assert_eq!(reader.read(key(9, 1, 1)).unwrap(), None);
    assert!(matches!(reader.read_frame(2), Err(StorageError::InvalidInput { .. })));
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<exact2048_storage::ShardRecord>(&json).unwrap(), record);
}

#[test]
fn every_flipped_bit_is_detected() {
    check(SMALL.1.clone()).unwrap();
    for at in 0..SMALL.1.len() {
        for bit in 0..8 {
            let mut bytes = SMALL.1.clone();
            bytes[at] ^= 1 << bit;
            assert!(check(bytes).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn every_flipped_byte_of_a_file_is_detected() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("small.shard");
    for at in 0..SMALL.1.len() {
        let mut bytes = SMALL.1.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&path, bytes).unwrap();
        let error = ShardReader::open(&path, &SMALL.0).and_then(|reader| reader.verify()).unwrap_err();
        assert!(matches!(error, StorageError::Damaged { .. }), "byte {at}: {error}");
    }
}

#[test]
fn every_cut_and_every_appended_byte_is_detected() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("small.shard");
    for length in 0..SMALL.1.len() {
        assert!(check(SMALL.1[..length].to_vec()).is_err(), "cut at {length}");
        std::fs::write(&path, &SMALL.1[..length]).unwrap();
        assert!(ShardReader::open(&path, &SMALL.0).is_err(), "file cut at {length}");
    }
    for extra in [&[0][..], &[0xff], &[0; 4096], &SMALL.1] {
        assert!(check([&SMALL.1, extra].concat()).is_err(), "{} bytes appended", extra.len());
    }
}

#[test]
fn a_shard_of_another_identity_is_foreign() {
    let (ours, bytes) = &*SMALL;
    let cases = [
        ("run id", ShardIdentity { run: RunId([7; 16]), ..*ours }),
        ("kind", ShardIdentity { kind: ShardKind::Values, ..*ours }),
        ("number of rows", ShardIdentity { rows: 4, ..*ours }),
        ("number of columns", ShardIdentity { cols: 3, ..*ours }),
        ("first layer", ShardIdentity { first_layer: 5, ..*ours }),
        ("last layer", ShardIdentity { last_layer: 119, ..*ours }),
        ("rule hash", ShardIdentity { rule_hash: 1, ..*ours }),
    ];
    for (name, expected) in cases {
        match ShardReader::from_bytes(Path::new("x.shard"), bytes.clone(), Some(&expected)) {
            Err(StorageError::Foreign { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(ShardReader::from_bytes(Path::new("x.shard"), bytes.clone(), None).is_ok());
}

#[test]
fn a_newer_version_is_distinguished_from_damage() {
    let mut bytes = SMALL.1.clone();
    bytes[8] = 2;
    assert!(matches!(check(bytes.clone()), Err(StorageError::Damaged { .. })));
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..96]);
    bytes[96..104].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(check(bytes), Err(StorageError::NewerVersion { found: 2, supported: 1, .. })));
}

#[test]
fn mistakes_of_the_caller_are_refused() {
    let (_place, mut run) = temp_run();
    let ours = identity(run.run_id());
    let refused = |result: Result<(), StorageError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, StorageError::InvalidInput { .. }), "{error}");
    };
    let create = |identity| ShardWriter::create(&run, identity).map(drop);
    refused(create(ShardIdentity { run: RunId([7; 16]), ..ours }));
    refused(create(ShardIdentity { first_layer: 121, ..ours }));

    let mut writer = ShardWriter::create(&run, ours).unwrap();
    refused(writer.push(frame(&[(key(3, 0, 0), b"")])));
    refused(writer.push(frame(&[(key(121, 0, 0), b"")])));
    writer.push(frame(&[(key(4, 0, 0), b"a")])).unwrap();
    writer.push(frame(&[(key(4, 0, 0), b"b")])).unwrap();
    refused(writer.finish().map(drop));
    assert!(
        names(&run.place().as_path().unwrap().join("shards")).is_empty(),
        "a refused shard was published"
    );

    let path = run.place().as_path().unwrap().to_path_buf();
    drop(run);
    run = RunDir::open_read_only(&path).unwrap();
    let error = ShardWriter::create(&run, ours).unwrap_err();
    assert!(matches!(error, StorageError::ReadOnly { .. }), "{error}");
}

#[test]
fn an_unfinished_writer_leaves_no_files() {
    let (place, run) = temp_run();
    let mut writer = ShardWriter::create(&run, identity(run.run_id())).unwrap();
    writer.push(frame(&[(key(4, 0, 0), b"a")])).unwrap();
    assert_eq!(names(&place.path().join("shards")).len(), 1);
    drop(writer);
    assert!(names(&place.path().join("shards")).is_empty());
}

#[test]
fn a_damaged_shard_is_replaced_and_open_readers_keep_the_old_one() {
    let (place, run) = temp_run();
    let ours = identity(run.run_id());
    let path = shard_path(&run, &write_small_shard(&run).file);
    let reader = ShardReader::open(&path, &ours).unwrap();
    std::fs::rename(&path, place.path().join("kept")).unwrap();
    std::fs::write(&path, b"damaged").unwrap();
    assert!(ShardReader::open(&path, &ours).is_err());
    write_small_shard(&run);
    ShardReader::open(&path, &ours).unwrap().verify().unwrap();
    reader.verify().unwrap();
    assert_eq!(names(&place.path().join("shards")).len(), 1);
}

/// A file truncated, overwritten or deleted under an open shard causes an error, and the process survives.
#[test]
fn a_file_that_changes_under_an_open_shard_is_an_error() {
    let (_place, run) = temp_run();
    let ours = identity(run.run_id());
    let path = shard_path(&run, &write_small_shard(&run).file);
    let sound = std::fs::read(&path).unwrap();
    for length in [0, 1, 103, 104, 150, sound.len() - 1] {
        let reader = ShardReader::open(&path, &ours).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
        let verified = reader.verify();
        // A cut inside the index is harmless, because the index is already in memory.
        let of_index = length >= usize::try_from(sound.len() as u64 - reader.index_bytes()).unwrap();
        assert_eq!(verified.is_ok(), of_index, "{length}: {verified:?}");
        if let Err(error) = verified {
            assert!(
                matches!(&error, StorageError::Damaged { file, .. } if file.as_path() == Some(&*path)),
                "{error}"
            );
        }
        std::fs::write(&path, &sound).unwrap();
        reader.verify().unwrap();
    }
    std::fs::remove_file(&path).unwrap();
    let error = ShardReader::open(&path, &ours).unwrap_err();
    assert!(
        matches!(&error, StorageError::ShardMissing { file } if file.as_path() == Some(&*path)),
        "{error}"
    );
    assert_eq!(error.kind(), ErrorKind::DataLoss);
}

/// Shards beyond the limit on open files are opened for each frame.
#[test]
fn a_process_can_open_all_shards_of_a_large_run() {
    let (_place, run) = temp_run();
    let ours = identity(run.run_id());
    let path = shard_path(&run, &write_small_shard(&run).file);
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open_files();
    let readers: Vec<ShardReader> = (0..2000).map(|_| ShardReader::open(&path, &ours).unwrap()).collect();
    // Other tests of this process have some files open too.
    assert!(open_files() < before + 600, "{} files are open", open_files());
    readers.iter().for_each(|reader| reader.verify().unwrap());
    std::fs::remove_file(&path).unwrap();
    let ends: Vec<_> = readers.iter().map(ShardReader::verify).collect();
    assert!(ends.iter().any(Result::is_ok), "some files stay open");
    let lost =
        |end: &Result<(), StorageError>| matches!(end, Ok(()) | Err(StorageError::ShardMissing { .. }));
    assert!(ends.iter().all(lost) && ends.iter().any(Result::is_err));
    drop(readers);
    write_small_shard(&run);
    ShardReader::open(&path, &ours).unwrap().verify().unwrap();
}

/// Files of unknown identity neither block the reader nor exhaust its memory.
#[test]
fn a_file_that_is_not_a_shard_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    for (content, found) in [("", "an empty file"), ("EX", "EX"), ("{\"xxh3\":", "{\\\"xxh3\\\":")] {
        std::fs::write(&path, content).unwrap();
        let error = ShardReader::open_any(&path).unwrap_err();
        assert!(matches!(error, StorageError::NotAShard { .. }), "{error}");
        assert!(error.to_string().ends_with(found), "{error}");
        assert!(!error.to_string().contains("Restore"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    for error in [
        ShardReader::open_any(&path).unwrap_err(),
        ShardReader::open(&path, &identity(RunId([0; 16]))).unwrap_err(),
    ] {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(format!("{error}: {cause}").contains("a FIFO"), "{error}: {cause}");
    }
    std::fs::remove_file(&path).unwrap();
    let error = ShardReader::open_any(&path).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
}

#[test]
fn a_shard_without_frames_and_a_frame_without_items_are_valid() {
    let (_place, run) = temp_run();
    let ours = identity(run.run_id());
    let path = shard_path(&run, &ours.file_name());
    ShardWriter::create(&run, ours).unwrap().finish().unwrap();
    let empty = ShardReader::open(&path, &ours).unwrap();
    assert!(empty.items().is_empty() && empty.frames().is_empty());
    empty.verify().unwrap();

    let mut writer = ShardWriter::create(&run, ours).unwrap();
    writer.push(frame(&[])).unwrap();
    writer.finish().unwrap();
    let reader = ShardReader::open(&path, &ours).unwrap();
    assert_eq!((reader.items().len(), reader.frames().len()), (0, 1));
    reader.verify().unwrap();
}

#[test]
fn frames_can_be_made_and_read_on_many_threads() {
    let (_place, run) = temp_run();
    let ours = identity(run.run_id());
    let payload = |n: u64| vec![n as u8; 1000 + n as usize];
    let frames: Vec<Frame> = std::thread::scope(|scope| {
        let encode = |n: u64| frame(&[(key(4, n, 0), &payload(n)), (key(5, n, 0), &[n as u8])]);
        let workers: Vec<_> = (0..4)
            .map(|w| scope.spawn(move || (w * 10..w * 10 + 10).map(encode).collect::<Vec<_>>()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut writer = ShardWriter::create(&run, ours).unwrap();
    frames.into_iter().rev().for_each(|frame| writer.push(frame).unwrap());
    let record = writer.finish().unwrap();
    let reader = ShardReader::open(&shard_path(&run, &record.file), &ours).unwrap();
    std::thread::scope(|scope| {
        for start in 0..4 {
            let reader = &reader;
            scope.spawn(move || {
                for n in (0..40).map(|n| (n + start * 10) % 40) {
                    assert_eq!(reader.read(key(4, n, 0)).unwrap().unwrap(), payload(n));
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn random_items_are_read_back(
        items in prop::collection::btree_map(
            (4u32..=120, any::<u64>(), any::<u32>()),
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                (any::<u8>(), 0usize..5000).prop_map(|(byte, length)| vec![byte; length]),
            ],
            0..60,
        ),
        per_frame in 1usize..20,
        level in -3i32..8,
    ) {
        let items: BTreeMap<ItemKey, Vec<u8>> =
            items.into_iter().map(|((layer, lane, part), payload)| (key(layer, lane, part), payload)).collect();
        let (_place, run) = temp_run();
        let ours = identity(run.run_id());
        let mut writer = ShardWriter::create(&run, ours).unwrap();
        let all: Vec<(ItemKey, &[u8])> = items.iter().rev().map(|(key, payload)| (*key, &payload[..])).collect();
        let mut most_bytes = 0;
        for group in all.chunks(per_frame) {
            let frame = Frame::encode(group, level).unwrap();
            prop_assert_eq!(frame.raw_bytes(), group.iter().map(|(_, payload)| payload.len()).sum::<usize>());
            prop_assert!(frame.encoded_bytes() <= frame.raw_bytes() + 24);
            most_bytes += frame.most_bytes() as u64;
            writer.push(frame).unwrap();
        }
        let record = writer.finish().unwrap();
        // In addition to the shard's header and that of the index block.
        prop_assert!(record.bytes <= most_bytes + 104 + 24, "{} bytes, at most {most_bytes}", record.bytes);
        let path = shard_path(&run, &record.file);
        let mapped = ShardReader::open(&path, &ours).unwrap();
        let owned = ShardReader::from_bytes(&path, std::fs::read(&path).unwrap(), Some(&ours)).unwrap();
        for reader in [mapped, owned] {
            reader.verify().unwrap();
            prop_assert!(reader.items().iter().map(|entry| entry.key).eq(items.keys().copied()));
            for (key, payload) in &items {
                let read = reader.read(*key).unwrap();
                prop_assert_eq!(read.as_ref(), Some(payload));
            }
        }
    }

    /// Damage of any extent anywhere causes an error and never a panic.
    #[test]
    fn random_damage_is_detected(at in any::<prop::sample::Index>(), patch in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut bytes = SMALL.1.clone();
        let at = at.index(bytes.len());
        for (byte, new) in bytes[at..].iter_mut().zip(patch) {
            *byte = new;
        }
        prop_assume!(bytes != SMALL.1);
        prop_assert!(check(bytes).is_err());
    }
}
