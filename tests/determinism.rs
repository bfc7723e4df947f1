//! The bits of a run do not depend on threads, memory, split or interruptions.

use crate::common;

use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use common::{Finished, Place, Solved, committed, committed_as, layers, solve, solve_args, text};
use serde_json::Value;

/// The facts that two runs of the same job share.
fn result(run: &Path, summary: &Value) -> (Value, Vec<(u64, u64, u64)>) {
    let mut summary = summary.clone();
    let fields = summary.as_object_mut().unwrap();
    for how in ["seconds", "bytes_on_disk", "peak_rss_bytes"] {
        assert!(fields.remove(how).is_some(), "the summary has no {how}");
    }
    // The summary has this field only with a disk limit.
    fields.remove("peak_disk_bytes");
    assert_eq!(text(&summary["fingerprint"]).len(), 32);
    (summary, layers(run))
}

fn check_variants(job: &str, variants: &[&str]) {
    let first = Solved::new(job);
    let expected = result(&first.run(), &first.summary);
    let least = common::least_memory(&format!("{job} --threads 1"));
    let least = format!("--threads 1 --memory {least}");
    for variant in variants.iter().chain([&least.as_str()]) {
        let other = Solved::new(&format!("{job} {variant}"));
        assert!(result(&other.run(), &other.summary) == expected, "{job} with {variant} differs");
    }
}

// `--dense-rows` chooses between blocks with all rows of a class and blocks with the occurring rows. With 0, all blocks
// have the occurring rows; a small number mixes both kinds. `--piece-bytes` divides blocks into pieces for the threads,
// and 1 gives pieces of one row. `--huge` and `--sectors` divide lanes. `--keep` selects the layers with stored values.
const VARIANTS: [&str; 19] = [
    "--threads 1",
    "--threads 2",
    "--threads 5",
    "--memory 4GiB",
    "--large 3 --threads 2",
    "--large 4",
    "--large 5 --threads 1",
    "--huge 8 --threads 2",
    "--large 3 --huge 8 --dense-rows 0 --threads 1",
    "--sectors 2 --threads 2",
    "--sectors 8 --huge 8 --dense-rows 50",
    "--dense-rows 0",
    "--dense-rows 100",
    "--piece-bytes 1 --threads 3",
    "--piece-bytes 5000 --threads 2",
    "--piece-bytes 500 --threads 2 --dense-rows 0",
    "--keep all --threads 2",
    "--keep 16",
    "--keep starts",
];

/// Some of [`VARIANTS`], for kinds of values that differ only in their arithmetic.
const SOME_VARIANTS: [&str; 7] = [
    "--threads 5",
    "--large 4",
    "--large 3 --huge 8 --dense-rows 0 --threads 1",
    "--sectors 3",
    "--dense-rows 100",
    "--piece-bytes 1 --threads 3",
    "--keep 16",
];

#[test]
fn results_of_4x2_do_not_depend_on_how_they_are_computed() {
    check_variants("--board 4x2", &VARIANTS);
}

#[test]
fn results_of_3x3_do_not_depend_on_how_they_are_computed() {
    check_variants("--board 3x3 --objective reach:128", &VARIANTS);
}

/// States, values and fingerprint of a board do not depend on the choice of stored layers.
#[test]
fn results_of_a_whole_3x3_do_not_depend_on_the_stored_layers() {
    let usual = Solved::new("--board 3x3 --keep 4");
    let expected = result(&usual.run(), &usual.summary);
    for stored in ["--keep all", "--keep starts", "--values best-move"] {
        let other = Solved::new(&format!("--board 3x3 {stored}"));
        assert!(result(&other.run(), &other.summary) == expected, "{stored} differs");
    }
}

#[test]
fn results_with_64_bits_do_not_depend_on_how_they_are_computed() {
    check_variants("--board 4x2 --objective reach:128 --precision 64 --spawn4 1/3", &SOME_VARIANTS);
}

#[test]
fn floating_values_do_not_depend_on_how_they_are_computed() {
    check_variants("--board 4x2 --objective lose:64", &SOME_VARIANTS);
    check_variants("--board 4x2 --objective reach:64 --discount 0.95 --precision 64", &SOME_VARIANTS);
}

#[test]
fn values_against_an_adversary_do_not_depend_on_how_they_are_computed() {
    check_variants("--board 4x2 --spawner worst", &SOME_VARIANTS);
}

#[test]
fn other_jobs_have_other_fingerprints() {
    let jobs = [
        "--board 3x2",
        "--board 3x2 --spawn4 0.2",
        "--board 3x2 --objective reach:32",
        "--board 3x2 --objective reach:64",
        "--board 3x2 --objective reach:64 --discount 0.95",
        "--board 3x2 --objective reach:64 --spawner worst",
        "--board 3x2 --objective lose:64",
        "--board 2x2",
    ];
    let fingerprints: std::collections::HashSet<String> =
        jobs.iter().map(|job| Solved::new(job).fingerprint().to_owned()).collect();
    assert_eq!(fingerprints.len(), jobs.len());
}

#[test]
fn a_finished_run_is_not_computed_again() {
    let solved = Solved::new("--board 4x2");
    let before = committed(&solved.run());
    assert!(before.len() >= 2);
    for options in ["--board 4x2", "--board 4x2 --threads 1", "--board 4x2 --memory 1GiB"] {
        let again = solve(&solved.run(), options);
        assert_eq!(result(&solved.run(), &again), result(&solved.run(), &solved.summary));
        assert_eq!(committed(&solved.run()), before);
    }
}

/// Method of stopping a run.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Interrupt,
    Terminate,
    Kill,
    InterruptTwice,
}

impl Stop {
    fn send(self, child: &Child) {
        // The process may have ended already.
        let signal = |name: &str| {
            common::signal(child.id(), name);
        };
        match self {
            Stop::Interrupt => signal("INT"),
            Stop::Terminate => signal("TERM"),
            Stop::Kill => signal("KILL"),
            Stop::InterruptTwice => {
                signal("INT");
                signal("INT");
            }
        }
    }

    /// Starts `solve`, stops it after a delay, and returns its result.
    fn after(self, delay: Duration, run: &Path, options: &str) -> Finished {
        let mut command = common::command(solve_args(run, options));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Waits until the run exists, because only then the program guarantees a clean stop.
        while !run.join("manifest.json").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(delay);
        self.send(&child);
        let output: Output = child.wait_with_output().unwrap();
        Finished::new(output)
    }
}

/// Pseudorandom delays that are the same in every run of the tests.
struct Delays(u64);

impl Delays {
    fn next(&mut self, most_ms: u64) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % most_ms)
    }
}

/// Interrupts a job repeatedly, then lets it end. No committed range is computed twice, except for reach under a disk limit.
/// With such a limit, the solver removes reach and may enumerate it again.
fn check_interrupted(job: &str, cycles: &[(Stop, &str)], most_ms: u64) {
    let expected = {
        let uninterrupted = Solved::new(job);
        result(&uninterrupted.run(), &uninterrupted.summary)
    };
    let lasting = |run: &Path| committed_as(run, if job.contains("--disk") { "values-" } else { "" });
    let place = Place::new();
    let run = place.join("run");
    let mut delays = Delays(2048);
    let mut before = Vec::new();
    for (cycle, (stop, how)) in cycles.iter().enumerate() {
        let finished = stop.after(delays.next(most_ms), &run, &format!("{job} {how}"));
        match (finished.code, finished.signal) {
            // The program ended before the signal.
            (Some(0), _) => drop(finished.json()),
            (Some(130), _) if *stop != Stop::Kill => {
                assert!(finished.stdout.is_empty(), "{finished:?}");
            }
            // With 2 and 15, the signal arrived before the program handled signals.
            (None, Some(9 | 2 | 15)) => {}
            _ => panic!("cycle {cycle} of {job}: {finished:?}"),
        }
        let after = lasting(&run);
        assert!(after.starts_with(&before), "cycle {cycle} of {job} lost or rewrote a shard");
        before = after;
        common::on_run(&run, "info", &["--json"]).exits(0).json();
    }
    let summary = solve(&run, job);
    assert!(
        result(&run, &summary) == expected,
        "{job}: {summary} after interruptions, expected {expected:?}"
    );
    assert!(lasting(&run).starts_with(&before), "{job} lost or rewrote a shard");
    let how: &[&str] = match () {
        // Without all reach, `verify` cannot check all states.
        () if job.contains("--disk") => &["--sample", "1"],
        // If a run stores few layers, a check of all states takes no longer than a sample.
        () if job.contains("--keep") || job.contains("best-move") => &[],
        () => &["--sample", "500"],
    };
    common::on_run(&run, "verify", how).exits(0);
}

#[test]
fn interrupted_4x2_ends_the_same() {
    let cycles = [
        (Stop::Kill, ""),
        (Stop::Interrupt, ""),
        (Stop::Kill, "--threads 1"),
        (Stop::InterruptTwice, "--threads 5"),
        (Stop::Terminate, ""),
        (Stop::Kill, "--threads 2"),
        (Stop::Kill, "--memory 200MiB"),
        (Stop::Interrupt, "--threads 5"),
    ];
    check_interrupted("--board 4x2", &cycles, 700);
}

#[test]
fn interrupted_4x2_that_keeps_other_layers_ends_the_same() {
    let cycles = [(Stop::Interrupt, ""), (Stop::Kill, ""), (Stop::Interrupt, "--threads 5")];
    for keep in ["3/8", "128", "starts"] {
        check_interrupted(&format!("--board 4x2 --keep {keep}"), &cycles, 700);
    }
}

#[test]
fn interrupted_4x2_with_best_moves_ends_the_same() {
    let cycles = [
        (Stop::Kill, ""),
        (Stop::Interrupt, ""),
        (Stop::Kill, "--threads 5"),
        (Stop::Terminate, "--threads 1"),
        (Stop::Interrupt, ""),
    ];
    check_interrupted("--board 4x2 --values best-move", &cycles, 900);
}

/// The run enumerates and removes most of its reach twice.
#[test]
fn an_interrupted_run_within_a_limit_of_the_disk_ends_the_same() {
    let cycles = [
        (Stop::Kill, ""),
        (Stop::Interrupt, ""),
        (Stop::Kill, "--threads 1"),
        (Stop::Kill, ""),
        (Stop::InterruptTwice, "--threads 5"),
        (Stop::Terminate, ""),
    ];
    check_interrupted("--board 3x3 --objective reach:512 --disk 2MB", &cycles, 2500);
}

#[test]
fn interrupted_3x3_ends_the_same() {
    let cycles = [
        (Stop::Interrupt, ""),
        (Stop::Kill, ""),
        (Stop::Kill, "--threads 5"),
        (Stop::Interrupt, "--threads 1"),
        (Stop::Kill, ""),
        (Stop::InterruptTwice, ""),
        (Stop::Terminate, "--memory 200MiB"),
    ];
    check_interrupted("--board 3x3", &cycles, 3000);
}

#[test]
fn interrupted_enumeration_ends_the_same() {
    let options = "--board 4x3 --until-layer 90";
    let uninterrupted = Solved::new(options);
    let place = Place::new();
    let run = place.join("run");
    let mut delays = Delays(3);
    for stop in [Stop::Kill, Stop::Interrupt, Stop::Kill, Stop::Kill] {
        stop.after(delays.next(500), &run, options);
        let found = layers(&run);
        assert!(layers(&uninterrupted.run()).starts_with(&found), "layers appear in order");
    }
    solve(&run, options);
    assert_eq!(layers(&run), layers(&uninterrupted.run()));
}
