//! Run folders in which something else has the name of a file, or that lost files: every command says what is wrong and what
//! to do, none waits, and what it says to do helps.

use crate::common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::{Finished, Place, Solved, exact2048, files, make_fifo, on_run, shards, text, try_solve};
use exact2048_solution::Run;

/// The commands that read a run, with what else they need.
const READERS: [(&str, &[&str]); 6] = [
    ("info", &[]),
    ("info", &["--json"]),
    ("verify", &[]),
    ("layers", &[]),
    ("count", &[]),
    ("query", &["2 2 / 0 0"]),
];

/// A run without its journal is not one that has not begun: all say the same of it.
#[test]
fn a_lost_journal_is_told_by_all_in_the_same_words() {
    for with_folder in [true, false] {
        let solved = Solved::new("--board 2x2");
        let (run, journal) = (solved.run(), solved.run().join("journal"));
        fs::remove_dir_all(&journal).unwrap();
        if with_folder {
            fs::create_dir(&journal).unwrap();
        }
        let told = READERS.map(|(command, options)| on_run(&run, command, options).exits(1));
        let refused = try_solve(&run, "--board 2x2").exits(1).says(&[
            "lacks records of its journal: 2 of its shards",
            "more than an interrupted command leaves",
            "Restore the folder journal from a copy",
            "solve --discard-shards",
        ]);
        for Finished { stdout, stderr, .. } in told {
            assert_eq!((stdout.as_str(), stderr.as_str()), ("", refused.stderr.as_str()));
        }
        try_solve(&run, "--board 2x2 --discard-shards").exits(0);
        on_run(&run, "verify", &[]).exits(0);
    }
}

/// What an interrupted command leaves is no loss: a shard that no record names yet.
#[test]
fn an_interrupted_run_is_unfinished_and_not_damaged() {
    let solved = Solved::new("--board 2x2");
    let last = files(&solved.run().join("journal")).pop().unwrap();
    fs::remove_file(last).unwrap();
    let info = on_run(&solved.run(), "info", &["--json"]).exits(0).json();
    assert_eq!(text(&info["progress"]), "unfinished");
    on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(1).says(&["not solved", "back up layers"]);
    try_solve(&solved.run(), "--board 2x2").exits(0);
}

/// Opening a FIFO waits for somebody who writes to it, who never comes.
#[test]
fn a_fifo_keeps_nobody_waiting() {
    for (name, words) in [
        ("lock", ["cannot lock", "Remove it while nobody writes the run"]),
        ("manifest.json", ["is damaged", "Restore the file from a copy"]),
        ("journal/000000.json", ["is damaged", "Restore the file from a copy"]),
    ] {
        let solved = Solved::new("--board 2x2");
        let file = solved.run().join(name);
        fs::remove_file(&file).unwrap();
        make_fifo(&file);
        let words = [words[0], words[1], "expected a file, found a FIFO", name];
        on_run(&solved.run(), "info", &[]).exits(1).says(&words);
        try_solve(&solved.run(), "--board 2x2").exits(1).says(&words);
        // Reading needs no lock.
        on_run(&solved.run(), "query", &["2 2 / 0 0"]).exits(if name == "lock" { 0 } else { 1 });
        if name == "lock" {
            fs::remove_file(&file).unwrap();
            try_solve(&solved.run(), "--board 2x2").exits(0);
        }
    }
}

/// The same for what is kept beside a run, and for secrets.
#[test]
fn a_fifo_beside_a_run_keeps_nobody_waiting() {
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
        exact2048(server).exits(1).says(&["cannot read", "expected a file, found a FIFO"]);
    }
    let folder = place.join("export");
    fs::create_dir(&folder).unwrap();
    make_fifo(&folder.join("_export.txt"));
    on_run(&run, "export", &["--what", "states", "-o", folder.to_str().unwrap()])
        .exits(1)
        .says(&["expected a file, found a FIFO"]);
}

/// Something else than a folder has the name of one: all say so, and removing it, as they advise, helps.
#[test]
fn what_is_no_folder_of_a_run_is_told() {
    let cases: [(&str, Make); 4] = [
        ("a FIFO", make_fifo),
        ("a file", |path| fs::write(path, "").unwrap()),
        ("a symbolic link that leads to itself", |path| symlink(path, path).unwrap()),
        ("a symbolic link that leads nowhere", |path| symlink(path.with_extension("gone"), path).unwrap()),
    ];
    for name in ["shards", "journal"] {
        let solved = Solved::new("--board 2x2");
        let (run, folder) = (solved.run(), solved.run().join(name));
        fs::rename(&folder, run.join("kept")).unwrap();
        for (found, make) in cases {
            make(&folder);
            let words = format!("{name} is {found}, and a run has a folder there");
            let words = [words.as_str(), "Put the folder back in its place, or remove what is there"];
            for (command, options) in READERS {
                on_run(&run, command, options).exits(1).says(&words);
            }
            try_solve(&run, "--board 2x2").exits(1).says(&words);
            fs::remove_file(&folder).unwrap();
        }
        if name == "shards" {
            try_solve(&run, "--board 2x2").exits(0);
        } else {
            try_solve(&run, "--board 2x2").exits(1).says(&["Restore the folder journal from a copy"]);
            fs::rename(run.join("kept"), &folder).unwrap();
        }
        on_run(&run, "verify", &[]).exits(0);
    }
}

/// Puts something in a place.
type Make = fn(&Path);

/// Whatever has the name of a shard, all commands say so, and solving again makes the shard, as they advise.
#[test]
fn whatever_has_the_name_of_a_shard_is_replaced() {
    let directory: Make = |path| fs::create_dir(path).unwrap();
    let cases: [(&str, Make); 4] = [
        ("found a FIFO", make_fifo),
        ("found a directory", directory),
        ("found a symbolic link that leads to itself", |path| symlink(path, path).unwrap()),
        ("found a directory", |path| {
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
            assert!(info.contains("damaged") && info.contains("computes lost shards again"), "{info}");
            on_run(&solved.run(), "verify", &[])
                .exits(1)
                .says(&[found, "computes lost and damaged shards again"]);
            try_solve(&solved.run(), "--board 2x2").exits(0).says(&[found, "recomputing it"]);
            assert!(fs::symlink_metadata(&shard).unwrap().is_file(), "{}", shard.display());
            on_run(&solved.run(), "verify", &[]).exits(0);
        }
        let again = on_run(&solved.run(), "info", &["--json"]).exits(0).json();
        assert_eq!(text(&again["fingerprint"]), solved.fingerprint());
    }
}

/// What a directory holds may be somebody's: it stays, and is told before anything is computed.
#[test]
fn a_directory_that_holds_something_is_not_removed() {
    let solved = Solved::new("--board 2x2");
    let shard: PathBuf = shards(&solved.run()).remove(0);
    fs::remove_file(&shard).unwrap();
    fs::create_dir(&shard).unwrap();
    fs::write(shard.join("holiday.jpg"), "not ours").unwrap();
    let words = ["found a directory that is not empty", "Move it away, and try again"];
    on_run(&solved.run(), "info", &[]).exits(1).says(&words);
    try_solve(&solved.run(), "--board 2x2").exits(1).says(&words);
    assert!(shard.join("holiday.jpg").is_file());
    fs::rename(&shard, solved.run().join("moved")).unwrap();
    try_solve(&solved.run(), "--board 2x2").exits(0);
    on_run(&solved.run(), "verify", &[]).exits(0);
}
