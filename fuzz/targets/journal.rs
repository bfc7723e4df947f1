//! Manifest and journal of a run. The input holds their bodies, separated by line feeds; this target seals them.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use exact2048_solution::Run;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("journal")).expect("a folder");
    fs::create_dir(folder.path().join("shards")).expect("a folder");
    folder
});

/// Returns a sealed file; see docs/dev/format.md.
fn sealed(body: &[u8]) -> Vec<u8> {
    let checksum = format!("{:016x}", xxh3_64(body));
    [b"{\"xxh3\":\"", checksum.as_bytes(), b"\",\"body\":", body, b"}\n"].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.path();
    let mut bodies = bytes.split(|&byte| byte == b'\n');
    fs::write(folder.join("manifest.json"), sealed(bodies.next().unwrap_or_default())).expect("written");
    let records = bodies.take(3).collect::<Vec<_>>();
    for number in 0..3 {
        let file = folder.join(format!("journal/{number:06}.json"));
        match records.get(number) {
            Some(body) => fs::write(file, sealed(body)).expect("written"),
            None => drop(fs::remove_file(file)),
        }
    }
    if let Ok(run) = Run::open(folder) {
        let _ = run.missing();
        for commit in run.catalog().commits() {
            assert!(commit.first <= commit.last);
        }
    }
});
