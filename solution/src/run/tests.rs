use std::path::PathBuf;
use std::sync::Arc;

use exact2048_game::{Layer, Precision};
use exact2048_storage::{ErrorKind, Frame, ItemKey, ShardWriter, StoreSettings};
use object_store::memory::InMemory;
use tempfile::TempDir;

use super::*;
use crate::commit::Phase;
use crate::records::WorkTime;

fn params() -> Params {
    Params::small("2x2")
}

fn open(location: &Location) -> Result<Run, RunError> {
    Run::open_or_create(location, &params(), UnnamedPolicy::Refuse)
}

/// Writes a shard with one item, and commits it if `commits` is true.
fn publish(run: &mut Run, phase: Phase, first: u32, last: u32, commits: bool) {
    let record = write(run, phase, first, last);
    if commits {
        run.append(JournalRecord::Commit(record)).unwrap();
    }
}

fn write(run: &mut Run, phase: Phase, first: u32, last: u32) -> Record {
    let (first, last) = (Layer(first), Layer(last));
    let identity = run.catalog().identity(phase, first, last);
    let mut writer = ShardWriter::create(run.dir(), identity).unwrap();
    let key = ItemKey { layer: first.0, lane: 0, part: 0 };
    writer.push(Frame::encode(&[(key, phase.shard_kind().to_string().as_bytes())], 1).unwrap()).unwrap();
    let shards = vec![writer.finish().unwrap()];
    let commit = Commit { phase, first, last, layers: Vec::new(), fingerprint: None };
    let record = Record::new(commit, shards);
    assert_eq!(looked(run, &record), None);
    record
}

/// The kind of error of the first shard of a record.
fn looked(run: &Run, record: &Record) -> Option<ErrorKind> {
    Some(run.look(record).unwrap().remove(0).err()?.kind())
}

/// A store in memory, and the location of a run in it. Copies of its shards are cached in this folder.
fn in_store(cache_folder: PathBuf) -> (Arc<InMemory>, Location) {
    let store = Arc::new(InMemory::new());
    let settings = StoreSettings { cache_folder: Some(cache_folder), ..StoreSettings::default() };
    let location = Location::objects(store.clone(), "s3://bucket/run", "run", &settings).unwrap();
    (store, location)
}

/// Locations of a run in a directory and in a store, each with a function that removes a record of its journal.
fn places() -> (TempDir, Vec<(Location, RemoveRecord)>) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let (store, in_store) = in_store(place.path().join("cache"));
    let journal = folder.join("journal");
    let of_folder: RemoveRecord =
        Box::new(move |n| std::fs::remove_file(journal.join(format!("{n:06}.json"))).unwrap());
    let of_store: RemoveRecord = Box::new(move |n| {
        use futures_util::FutureExt;
        use object_store::ObjectStoreExt;
        let object = format!("run/journal/{n:06}.json").into();
        store.delete(&object).now_or_never().unwrap().unwrap();
    });
    (place, vec![(Location::from(&folder), of_folder), (in_store, of_store)])
}

type RemoveRecord = Box<dyn Fn(u64)>;

/// A commit removes the shards that it replaces, so later shards can use their disk space.
#[test]
fn a_commit_removes_the_shards_it_replaces() {
    let (_place, places) = places();
    for (location, _) in places {
        let mut run = open(&location).unwrap();
        publish(&mut run, Phase::Enumerate, 4, 8, true);
        publish(&mut run, Phase::Enumerate, 10, 20, true);
        run.limit_disk(1 << 20).unwrap();
        let file = |run: &Run, first| {
            let shards = run.catalog().shards();
            shards.iter().find(|shard| shard.commit.first == Layer(first)).unwrap().record.file.clone()
        };
        let lose = |run: &Run, first| {
            let shards = run.catalog().shards();
            run.catalog().remove(shards.iter().find(|shard| shard.commit.first == Layer(first)).unwrap());
        };
        let is_there = |run: &Run, file: &str| run.dir().shard_files().unwrap().contains_key(file);
        let (other, replaced) = (file(&run, 4), file(&run, 10));
        lose(&run, 10);
        publish(&mut run, Phase::BackUp, 10, 20, true);
        assert!(is_there(&run, &replaced), "it still counts in the journal");
        publish(&mut run, Phase::Enumerate, 10, 14, true);
        assert!(is_there(&run, &other) && !is_there(&run, &replaced));
        // In a directory, a recomputed shard of the same layers has the name of the shard that it replaces.
        lose(&run, 10);
        publish(&mut run, Phase::Enumerate, 10, 14, true);
        assert!(is_there(&run, &file(&run, 10)));
        assert_eq!(run.dir().shard_files().unwrap().len(), 3);
        let counted = run.dir().allowance().unwrap().taken_bytes();
        run.limit_disk(1 << 20).unwrap();
        assert_eq!(counted, run.dir().allowance().unwrap().taken_bytes(), "as in a new count");
    }
}

/// In a store, each opening adds a record, which is lost too.
#[test]
fn a_run_that_lost_its_journal_is_refused() {
    for (location, remove) in places().1 {
        let mut run = open(&location).unwrap();
        publish(&mut run, Phase::Enumerate, 4, 60, true);
        publish(&mut run, Phase::BackUp, 32, 60, true);
        publish(&mut run, Phase::BackUp, 4, 30, true);
        // In a store there is an opening record too.
        let entries = 3 + u64::from(location.as_folder().is_none());
        drop(run);
        (0..entries).rev().for_each(remove);
        match open(&location) {
            Err(RunError::UnnamedShards { shards: 3, bytes, .. }) => assert!(bytes > 300),
            other => panic!("{location}: {other:?}"),
        }
        // Readers get the same error.
        assert!(matches!(Run::open(&location), Err(RunError::UnnamedShards { shards: 3, .. })));
        let run = Run::open_or_create(&location, &params(), UnnamedPolicy::Discard).unwrap();
        assert!(run.dir().shard_files().unwrap().is_empty());
    }
}

/// A crash may leave a shard without a record, a replaced shard or a retracted shard. The next opening removes them,
/// and does not report a loss.
#[test]
fn leftovers_of_a_crash_are_removed() {
    for (location, _) in places().1 {
        let mut run = open(&location).unwrap();
        publish(&mut run, Phase::Enumerate, 4, 60, true);
        publish(&mut run, Phase::BackUp, 32, 60, true);
        publish(&mut run, Phase::BackUp, 4, 60, true);
        let retracted = run.catalog().commits().pop().unwrap();
        run.append(JournalRecord::Retraction(Retraction { retracted })).unwrap();
        publish(&mut run, Phase::BackUp, 40, 60, false);
        drop(run);
        let run = open(&location).unwrap();
        assert_eq!(run.dir().shard_files().unwrap().len(), 1);
        assert_eq!((run.records(), run.catalog().shards().len()), (4, 1));
    }
}

/// States do not depend on the precision, so it may change until values are committed.
#[test]
fn a_run_without_values_may_change_its_precision() {
    let wider = params().with_precision(Precision::Bits64);
    let open_as =
        |location: &Location, params: &Params| Run::open_or_create(location, params, UnnamedPolicy::Refuse);
    for (location, _) in places().1 {
        let mut run = open(&location).unwrap();
        publish(&mut run, Phase::Enumerate, 4, 60, true);
        drop(run);
        assert_eq!(*open_as(&location, &wider).unwrap().params(), wider);
        assert_eq!(*Run::open(&location).unwrap().params(), wider, "as its journal says");
        assert_eq!(*open(&location).unwrap().params(), params(), "the precision changes back");
        let mut run = open_as(&location, &wider).unwrap();
        run.catalog().shards()[0].reader().expect("earlier shards still belong to the run");
        publish(&mut run, Phase::BackUp, 32, 60, true);
        let amendment = Amendment { amended: Amended { precision: Precision::Bits32 } };
        run.catalog().add(JournalRecord::Amendment(amendment)).unwrap_err();
        drop(run);
        match open(&location) {
            Err(RunError::OtherJob { field: "precision", found, wanted, .. }) => {
                assert_eq!((found.as_str(), wanted.as_str()), ("64", "32"));
            }
            other => panic!("{location}: {other:?}"),
        }
        assert_eq!(*open_as(&location, &wider).unwrap().params(), wider);
    }
}

/// Only the journal shows the current precision, so it must be read before other writers are fenced off.
#[test]
fn a_request_for_another_precision_fences_off_no_writer() {
    let place = tempfile::tempdir().unwrap();
    let (_, location) = in_store(place.path().into());
    publish(&mut open(&location).unwrap(), Phase::Enumerate, 4, 60, true);
    let wider = params().with_precision(Precision::Bits64);
    let mut writer = Run::open_or_create(&location, &wider, UnnamedPolicy::Refuse).unwrap();
    publish(&mut writer, Phase::BackUp, 32, 60, true);
    assert!(matches!(open(&location), Err(RunError::OtherJob { field: "precision", .. })));
    publish(&mut writer, Phase::BackUp, 4, 30, true);
}

/// A retraction removes the shards of its commit.
#[test]
fn shards_of_retracted_commits_are_removed() {
    for (location, _) in places().1 {
        let mut run = open(&location).unwrap();
        publish(&mut run, Phase::Enumerate, 4, 60, true);
        publish(&mut run, Phase::BackUp, 32, 60, true);
        let retracted =
            run.catalog().commits().into_iter().find(|commit| commit.phase == Phase::BackUp).unwrap();
        run.retract(retracted).unwrap();
        assert_eq!(run.dir().shard_files().unwrap().len(), 1);
        let run = Run::open(&location).unwrap();
        assert_eq!((run.records(), run.catalog().shards().len()), (3, 1));
    }
}

/// The time of a pass is the sum over its ranges, even if different processes computed them.
#[test]
fn times_of_ranges_add_up() {
    let place = tempfile::tempdir().unwrap();
    let mut run = open(&Location::from(&*place.path().join("run"))).unwrap();
    let mut time_with = |first, last, took: Option<(f64, u32)>| {
        let took = took.map(|(seconds, threads)| WorkTime { seconds, threads });
        let record = Record { took, ..write(&mut run, Phase::Enumerate, first, last) };
        run.append(JournalRecord::Commit(record)).unwrap();
        run.catalog().took(Phase::Enumerate).map(|time| (time.seconds, time.threads))
    };
    assert_eq!(time_with(4, 10, Some((1.5, 2))), Some((1.5, Some(2))));
    assert_eq!(time_with(12, 20, Some((0.25, 2))), Some((1.75, Some(2))));
    assert_eq!(time_with(22, 30, Some((2.0, 4))), Some((3.75, None)), "by different numbers of threads");
    assert_eq!(time_with(32, 60, None), None, "one time is unknown");
    assert_eq!(run.catalog().took(Phase::BackUp), None);
}

/// Commands print the times in a journal, so an impossible time must be refused.
#[test]
fn impossible_times_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let location = Location::from(&*place.path().join("run"));
    let mut run = open(&location).unwrap();
    let sound = write(&mut run, Phase::Enumerate, 4, 10);
    for seconds in [1e299, 1.1e10, -1.0, f64::MAX] {
        let took = Some(WorkTime { seconds, threads: 1 });
        let record = JournalRecord::Commit(Record { took, ..sound.clone() });
        let error = run.catalog().add(record).unwrap_err();
        assert!(error.contains("expected 0 to 1e10"), "{seconds}: {error}");
    }
}

/// A record must not be appended if its shards are missing or different.
#[test]
fn shards_of_a_record_are_checked() {
    for (location, _) in places().1 {
        let mut run = open(&location).unwrap();
        publish(&mut run, Phase::Enumerate, 4, 60, true);
        let shard = run.catalog().shards().remove(0);
        let record = |forge: fn(&mut ShardRecord)| {
            let mut shards = vec![shard.record.clone()];
            forge(&mut shards[0]);
            Record::new(Commit::clone(&shard.commit), shards)
        };
        assert_eq!(looked(&run, &record(|_| {})), None);
        let forgeries: [fn(&mut ShardRecord); 3] =
            [|r| r.file.insert(0, 'x'), |r| r.bytes = 1 << 63, |r| r.header_checksum = 7];
        for forge in forgeries {
            assert_eq!(looked(&run, &record(forge)), Some(ErrorKind::DataLoss));
        }
    }
}

/// The copy in the cache may be intact although the shard itself is damaged.
#[test]
fn checks_read_the_shard_and_not_its_copy() {
    use futures_util::FutureExt;
    use object_store::ObjectStoreExt;

    let place = tempfile::tempdir().unwrap();
    let (store, location) = in_store(place.path().into());
    publish(&mut open(&location).unwrap(), Phase::Enumerate, 4, 60, true);
    // Each call takes the shard from a new catalog, because an open shard stays open.
    let shard = || Run::open(&location).unwrap().catalog().shards().remove(0);
    shard().original().unwrap().verify().unwrap();
    let object = format!("run/shards/{}", shard().record.file).into();
    let read = store.get(&object).now_or_never().unwrap().unwrap();
    let mut bytes = read.bytes().now_or_never().unwrap().unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    store.put(&object, bytes.into()).now_or_never().unwrap().unwrap();
    shard().reader().unwrap().verify().unwrap();
    let is_lost = |read: Result<(), StorageError>| read.unwrap_err().blames().is_some();
    assert!(is_lost(shard().check()));
    assert!(is_lost(shard().original().and_then(|reader| reader.verify())));
}

/// In a store, opening a run for writing fences off other writers. A run of an older format is refused before that.
#[test]
fn opening_an_older_format_fences_off_no_writer() {
    use futures_util::FutureExt;
    use object_store::ObjectStoreExt;

    let place = tempfile::tempdir().unwrap();
    let (store, location) = in_store(place.path().into());
    let mut writer = open(&location).unwrap();
    let manifest = "run/manifest.json".into();
    let read = store.get(&manifest).now_or_never().unwrap().unwrap();
    let sealed = String::from_utf8(read.bytes().now_or_never().unwrap().unwrap().to_vec()).unwrap();
    let body = sealed.split_once("\"body\":").unwrap().1.trim_end().strip_suffix('}').unwrap();
    let body = body.replacen("\"format_version\": 2", "\"format_version\": 1", 1);
    let older = format!("{{\"xxh3\":\"{:016x}\",\"body\":{body}}}\n", xxh3_64(body.as_bytes()));
    assert_ne!(older, sealed);
    store.put(&manifest, older.into()).now_or_never().unwrap().unwrap();

    for refused in [open(&location).map(drop), Run::open_again(&location).map(drop)] {
        assert!(matches!(refused, Err(RunError::OlderFormat { found: 1, .. })), "{refused:?}");
    }
    // The first writer can still write.
    publish(&mut writer, Phase::Enumerate, 4, 60, true);
    let run = Run::open(&location).unwrap();
    assert_eq!((run.format_version(), run.records()), (1, 1));
    assert!(matches!(run.why_not_solved(), Some(MissingValues::OlderFormat(_))));
}
