//! Run folders with missing files, or with special files and folders in their place. Every command names the fault and a
//! remedy without waiting, and the remedy helps.

use crate::common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::{Finished, Place, Solved, exact2048, files, make_fifo, on_run, shards, text, try_solve};
use exact2048_solution::Run;

/// The commands that read a run, with their other arguments.
const READERS: [(&str, &[&str]); 6] = [
    ("info", &[]),
    ("info", &["--json"]),
    ("verify", &[]),
    ("layers", &[]),
    ("count", &[]),
    ("query", &["2 2 / 0 0"]),
];

/// All commands print the same error for a run without its journal, and none treats it as a new run.
#[test]
fn all_commands_print_one_error_for_a_lost_journal() {
    for with_folder in [true, false] {
        let solved = Solved::new("--board 2x2");
        let (run, journal) = (solved.run(), solved.run().join("journal"));
        fs::remove_dir_all(&journal).unwrap();
        if with_folder {
            fs::create_dir(&journal).unwrap();
        }
        let readers = READERS.map(|(command, options)| on_run(&run, command, options).exits(1));
        let refused = try_solve(&run, "--board 2x2").exits(1).says(&["2 of ", "--discard-shards"]);
        let refused = refused.prints("lost journal");
        for Finished { stdout, stderr, .. } in readers {
            assert_eq!((stdout.as_str(), stderr.as_str()), ("", refused.stderr.as_str()));
        }
        try_solve(&run, "--board 2x2 --discard-shards").exits(0);
        on_run(&run, "verify", &[]).exits(0);
    }
}

/// A shard without a record is from an interrupted command, and does not count as damage.
#[test]
fn an_interrupted_run_is_unfinished_and_not_damaged() {
    let solved = Solved::new("--board 2x2");
    let last = files(&solved.run().join("journal")).pop().unwrap();
    fs::remove_file(last).unwrap();
    let info = on_run(&solved.run(), "info", &["--json"]).exits(0).json();
    assert_eq!(text(&info["progress"]), "unfinished");
    on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(1).prints("query of an interrupted run");
    try_solve(&solved.run(), "--board 2x2").exits(0);
}

/// A blocking open of a FIFO would wait forever for a writer.
#[test]
fn commands_do_not_wait_for_a_fifo() {
    for (name, section) in [
        ("lock", "FIFO in place of the lock"),
        ("manifest.json", "FIFO in place of the manifest"),
        ("journal/000000.json", "FIFO in place of a record"),
    ] {
        let solved = Solved::new("--board 2x2");
        let file = solved.run().join(name);
        fs::remove_file(&file).unwrap();
        make_fifo(&file);
        on_run(&solved.run(), "info", &[]).exits(1).says(&["FIFO", name]).prints(section);
        try_solve(&solved.run(), "--board 2x2").exits(1).says(&["FIFO", name]).prints(section);
        // Reading needs no lock.
        on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(if name == "lock" { 0 } else { 1 });
        if name == "lock" {
            fs::remove_file(&file).unwrap();
            try_solve(&solved.run(), "--board 2x2").exits(0);
        }
    }
}

/// Tests special files in place of caches next to a run, and of secrets.
#[test]
fn commands_do_not_wait_for_other_fifos() {
    let solved = Solved::new("--board 2x2 --keep starts");
    let (run, cones) = (solved.run(), solved.run().join("cones"));
    let id = Run::open(&run).unwrap().dir().run_id();
    fs::create_dir(&cones).unwrap();
    let statistics = [format!("perfect-play-{id}.json"), format!("perfect-play-{id}-1e-18.part")];
    for name in statistics.iter().chain([&format!("000004-000060-{:016x}.cone", 7)]) {
        make_fifo(&cones.join(name));
    }
    on_run(&run, "query", &["4 4 / 2 0"]).exits(0);
    on_run(&run, "stats", &[]).exits(0);

    let place = Place::new();
    let secret = place.join("secret");
    make_fifo(&secret);
    for option in ["--token-file", "--tls-ca"] {
        let server =
            ["query", "--server", "https://127.0.0.1:1", option, secret.to_str().unwrap(), "2 2 / 0 0"];
        exact2048(server).exits(1).says(&["FIFO", "secret"]);
    }
    let folder = place.join("export");
    fs::create_dir(&folder).unwrap();
    make_fifo(&folder.join("_export.txt"));
    on_run(&run, "export", &["--what", "states", "-o", folder.to_str().unwrap()])
        .exits(1)
        .says(&["FIFO", "_export.txt"]);
}

/// Commands name a file in place of a folder, and work again after its removal.
#[test]
fn special_files_in_place_of_folders_are_named() {
    let cases: [(&str, &str, Make); 4] = [
        ("FIFO", "FIFO in place of a folder", make_fifo),
        ("file", "file in place of a folder", |path| fs::write(path, "").unwrap()),
        ("symbolic link", "link to itself", |path| symlink(path, path).unwrap()),
        ("symbolic link", "link to nothing", |path| symlink(path.with_extension("gone"), path).unwrap()),
    ];
    for name in ["shards", "journal"] {
        let solved = Solved::new("--board 2x2");
        let (run, folder) = (solved.run(), solved.run().join(name));
        fs::rename(&folder, run.join("kept")).unwrap();
        for (found, section, make) in cases {
            make(&folder);
            for (command, options) in READERS {
                on_run(&run, command, options).exits(1).says(&[name, found]);
            }
            let refused = try_solve(&run, "--board 2x2").exits(1).says(&[name, found]);
            if name == "shards" {
                refused.prints(section);
            }
            fs::remove_file(&folder).unwrap();
        }
        if name == "shards" {
            try_solve(&run, "--board 2x2").exits(0);
        } else {
            try_solve(&run, "--board 2x2").exits(1).says(&["journal", "--discard-shards"]);
            fs::rename(run.join("kept"), &folder).unwrap();
        }
        on_run(&run, "verify", &[]).exits(0);
    }
}

/// Makes a file or folder at a path.
type Make = fn(&Path);

/// Commands name a special file in place of a shard, and `solve` replaces it.
#[test]
fn special_files_in_place_of_shards_are_replaced() {
    let directory: Make = |path| fs::create_dir(path).unwrap();
    let cases: [(&str, Make); 4] = [
        ("FIFO", make_fifo),
        ("directory", directory),
        ("symbolic link", |path| symlink(path, path).unwrap()),
        ("directory", |path| {
            let elsewhere = path.with_extension("elsewhere");
            fs::create_dir(&elsewhere).unwrap();
            symlink(elsewhere, path).unwrap();
        }),
    ];
    for (found, make) in cases {
        let solved = Solved::new("--board 2x2");
        for shard in shards(&solved.run()) {
            fs::remove_file(&shard).unwrap();
            make(&shard);
            let info = on_run(&solved.run(), "info", &[]).exits(0).stdout;
            assert!(info.contains("damaged"), "{info}");
            on_run(&solved.run(), "verify", &[]).exits(1).says(&[found]);
            try_solve(&solved.run(), "--board 2x2").exits(0).says(&[found]);
            assert!(fs::symlink_metadata(&shard).unwrap().is_file(), "{}", shard.display());
            on_run(&solved.run(), "verify", &[]).exits(0);
        }
        let again = on_run(&solved.run(), "info", &["--json"]).exits(0).json();
        assert_eq!(text(&again["fingerprint"]), solved.fingerprint());
    }
}

/// A directory with foreign files stays, and commands report it before they compute.
#[test]
fn a_directory_with_files_is_not_removed() {
    let solved = Solved::new("--board 2x2");
    let shard: PathBuf = shards(&solved.run()).remove(0);
    fs::remove_file(&shard).unwrap();
    fs::create_dir(&shard).unwrap();
    fs::write(shard.join("holiday.jpg"), "not ours").unwrap();
    on_run(&solved.run(), "info", &[]).exits(1).prints("directory in place of a shard");
    try_solve(&solved.run(), "--board 2x2").exits(1).prints("directory in place of a shard");
    assert!(shard.join("holiday.jpg").is_file());
    fs::rename(&shard, solved.run().join("moved")).unwrap();
    try_solve(&solved.run(), "--board 2x2").exits(0);
    on_run(&solved.run(), "verify", &[]).exits(0);
}
