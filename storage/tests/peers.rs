//! Copies of shards from other processes: used if they match the shard, otherwise ignored.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;
#[path = "common/faulty.rs"]
mod faulty;

use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{frame, identity, key, names, write_small_shard};
use exact2048_storage::{
    Attempt, CopyOutcome, Location, Peers, RunDir, ShardReader, ShardRecord, ShardWriter, StoreSettings,
    WantedCopy,
};
use faulty::{Fault, Faulty, Request};
use serde_json::json;

/// Bytes that each peer sends, and the end of its stream.
type Script = Vec<(Vec<u8>, io::Result<()>)>;

/// Peers that follow a test's script, one after the other.
#[derive(Debug, Default)]
struct Scripted {
    copies: Mutex<Script>,
    asked: Mutex<Vec<WantedCopy>>,
    outcomes: Mutex<Vec<&'static str>>,
    /// Error of the last refused copy.
    refusal: Mutex<String>,
    /// Total bytes read from all copies.
    read: Arc<AtomicUsize>,
}

struct Sending {
    rest: io::Cursor<Vec<u8>>,
    end: io::Result<()>,
    read: Arc<AtomicUsize>,
}

impl Read for Sending {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.read(buffer)?;
        self.read.fetch_add(count, Ordering::Relaxed);
        if count == 0 {
            std::mem::replace(&mut self.end, Ok(()))?;
        }
        Ok(count)
    }
}

impl Peers for Scripted {
    fn copies<'a>(&'a self, wanted: &WantedCopy) -> Box<dyn Iterator<Item = Box<dyn Read + 'a>> + 'a> {
        self.asked.lock().unwrap().push(*wanted);
        let copies = std::mem::take(&mut *self.copies.lock().unwrap());
        Box::new(copies.into_iter().map(|(bytes, end)| {
            let (rest, read) = (io::Cursor::new(bytes), Arc::clone(&self.read));
            Box::new(Sending { rest, end, read }) as Box<dyn Read>
        }))
    }

    fn note(&self, _: &WantedCopy, outcome: CopyOutcome<'_>) {
        self.outcomes.lock().unwrap().push(match outcome {
            CopyOutcome::Cached => "cached",
            CopyOutcome::Taken => "taken",
            CopyOutcome::Refused(error) => {
                *self.refusal.lock().unwrap() = error.to_string();
                "refused"
            }
            CopyOutcome::FromStore => "store",
        });
    }
}

/// A run in a store with one shard that is not in this process's cache.
struct Missing {
    store: Arc<Faulty>,
    local: tempfile::TempDir,
    run: RunDir,
    peers: Arc<Scripted>,
    shard: ShardRecord,
    sound: Vec<u8>,
}

impl Missing {
    fn new() -> Self {
        let (store, local) = (Faulty::new(), tempfile::tempdir().unwrap());
        let peers = Arc::new(Scripted::default());
        let settings = StoreSettings {
            cache_folder: Some(local.path().to_path_buf()),
            peers: Some(Arc::clone(&peers) as Arc<dyn Peers>),
            ..StoreSettings::default()
        };
        let location = Location::objects(store.clone(), "s3://bucket/run", "run", &settings).unwrap();
        let run = RunDir::create(&location, &json!({ "rows": 3 })).unwrap();
        let shard = write_small_shard(&run);
        let missing = Self { store, local, run, peers, shard, sound: Vec::new() };
        let sound = std::fs::read(missing.local.path().join(&missing.cached()[0])).unwrap();
        missing.forget();
        Self { sound, ..missing }
    }

    fn cached(&self) -> Vec<String> {
        names(self.local.path())
    }

    fn forget(&self) {
        self.cached().iter().for_each(|name| std::fs::remove_file(self.local.path().join(name)).unwrap());
    }

    fn open(&self) -> ShardReader {
        self.run.shards().open(&self.shard, &identity(self.run.run_id())).unwrap()
    }

    /// Opens the shard while peers send these copies, and returns the outcomes.
    #[track_caller]
    fn opens(&self, copies: Script) -> Vec<&'static str> {
        *self.peers.copies.lock().unwrap() = copies;
        self.peers.read.store(0, Ordering::Relaxed);
        let reader = self.open();
        assert_eq!(reader.read(key(4, 0, 0)).unwrap().as_deref(), Some(&b"raw bytes"[..]));
        reader.verify().unwrap();
        assert_eq!(self.cached().len(), 1, "exactly one copy is kept: {:?}", self.cached());
        self.forget();
        std::mem::take(&mut *self.peers.outcomes.lock().unwrap())
    }
}

#[test]
fn a_copy_that_matches_the_shard_is_used_and_kept() {
    let missing = Missing::new();
    missing.store.plan(|_, _| Fault::Error("connection refused"));
    assert_eq!(missing.opens(vec![(missing.sound.clone(), Ok(()))]), ["taken"]);
    let wanted = missing.peers.asked.lock().unwrap()[0];
    let &ShardRecord { header_checksum, bytes, .. } = &missing.shard;
    assert_eq!(wanted, WantedCopy { run: missing.run.run_id(), header_checksum, bytes, writer: None });

    // No peer is asked for a cached shard.
    *missing.peers.copies.lock().unwrap() = vec![(missing.sound.clone(), Ok(()))];
    missing.open();
    missing.open();
    assert_eq!(missing.peers.asked.lock().unwrap().len(), 2);
    assert_eq!(*missing.peers.outcomes.lock().unwrap(), ["taken", "cached"]);
}

#[test]
fn the_shard_is_the_same_for_any_bytes_that_peers_send() {
    let missing = Missing::new();
    let sound = &missing.sound;
    let broken = || Err(io::ErrorKind::ConnectionReset.into());
    let half = sound[..sound.len() / 2].to_vec();
    let more = [&sound[..], b"!"].concat();
    let bad =
        [(vec![], Ok(())), (vec![], broken()), (half.clone(), Ok(())), (half, broken()), (more, Ok(()))];
    for (bytes, end) in bad {
        let what = format!("{} bytes, {end:?}", bytes.len());
        assert_eq!(missing.opens(vec![(bytes, end)]), ["refused", "store"], "{what}");
    }
    for at in (0..sound.len()).step_by(3) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x40;
        // Reading a damaged frame reveals the damage, and the frame is then read from the store.
        let outcomes = missing_frame_or_all(&missing, bytes);
        assert!(outcomes == ["refused", "store"] || outcomes == ["taken"], "byte {at}: {outcomes:?}");
    }
    // After a peer without a copy, the next peer is asked.
    let copies = vec![(vec![], broken()), (sound.clone(), Ok(()))];
    assert_eq!(missing.opens(copies), ["refused", "taken"]);
}

/// Opens the shard as [`Missing::opens`] does; a copy with a damaged frame is not kept.
fn missing_frame_or_all(missing: &Missing, bytes: Vec<u8>) -> Vec<&'static str> {
    *missing.peers.copies.lock().unwrap() = vec![(bytes, Ok(()))];
    missing.open().verify().unwrap();
    let kept = missing.cached();
    for name in &kept {
        assert!(std::fs::read(missing.local.path().join(name)).unwrap() == missing.sound);
    }
    missing.forget();
    std::mem::take(&mut *missing.peers.outcomes.lock().unwrap())
}

/// The copy is intact and has the same layers and length, but it is not the shard of the record.
#[test]
fn a_copy_of_another_shard_is_refused() {
    let missing = Missing::new();
    let run = &missing.run;
    let mut writer = ShardWriter::create(run, identity(run.run_id())).unwrap();
    writer.push(frame(&[(key(9, 1, 0), &[6; 200]), (key(8, u64::MAX, 1), b"")])).unwrap();
    writer.push(frame(&[(key(4, 0, 0), b"raw words"), (key(120, 7, u32::MAX), &[0; 3])])).unwrap();
    let other = writer.finish().unwrap();
    assert_eq!(other.bytes, missing.shard.bytes);
    let bytes = std::fs::read(missing.local.path().join(&missing.cached()[0])).unwrap();
    missing.forget();
    assert_eq!(missing.opens(vec![(bytes, Ok(()))]), ["refused", "store"]);
}

/// If the header of a copy differs from the record, no claim about its index is trusted.
#[test]
fn the_header_of_a_copy_is_compared_before_its_index_is_read() {
    let missing = Missing::new();
    let mut forged = missing.sound.clone();
    forged[56..64].copy_from_slice(&50_000_000u64.to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&forged[..96]);
    forged[96..104].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(missing.opens(vec![(forged, Ok(()))]), ["refused", "store"]);
    let refusal = missing.peers.refusal.lock().unwrap();
    assert!(refusal.contains("expected header checksum"), "{refusal}");
}

#[test]
fn a_peer_that_sends_endless_bytes_does_not_fill_the_disk() {
    let missing = Missing::new();
    let endless = vec![7; 1 << 20];
    assert_eq!(missing.opens(vec![(endless, Ok(()))]), ["refused", "store"]);
    assert!(missing.peers.read.load(Ordering::Relaxed) <= missing.sound.len() + 1);
}

#[test]
fn a_check_of_the_shard_reads_the_store_itself() {
    let missing = Missing::new();
    *missing.peers.copies.lock().unwrap() = vec![(missing.sound.clone(), Ok(()))];
    let gets = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&gets);
    missing.store.plan(move |request, _| {
        seen.fetch_add(usize::from(request == Request::Get), Ordering::Relaxed);
        Fault::None
    });
    missing.run.shards().open_anew(&missing.shard, &identity(missing.run.run_id())).unwrap();
    assert!(missing.peers.asked.lock().unwrap().is_empty());
    assert_eq!(gets.load(Ordering::Relaxed), 1);
}

#[test]
fn peers_receive_the_writer_of_the_shard() {
    let missing = Missing::new();
    let run = &missing.run;
    let attempt = Attempt { opening: 3, epoch: 9, member: 0xfeed };
    let writer = ShardWriter::create_as(&run.shards(), identity(run.run_id()), attempt).unwrap();
    let shard = writer.finish().unwrap();
    missing.forget();
    run.shards().open(&shard, &identity(run.run_id())).unwrap();
    assert_eq!(missing.peers.asked.lock().unwrap()[0].writer, Some(0xfeed));
}
