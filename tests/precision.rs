//! A run with states but without values can resume with another precision.

use crate::common;

use std::fs;
use std::path::Path;

use common::{Place, Solved, on_run, query, solve, try_solve};

/// Reverts a run to the time before the first commit of values. All states remain committed.
fn without_values(run: &Path) {
    let files = |folder: &str| fs::read_dir(run.join(folder)).unwrap().map(|file| file.unwrap().path());
    let is_of_values = |record: &Path| fs::read_to_string(record).unwrap().contains(r#""back_up""#);
    let records: Vec<_> = files("journal").filter(|record| is_of_values(record)).collect();
    let shards = files("shards").filter(|shard| shard.to_str().unwrap().contains("/values-"));
    let removed: Vec<_> = records.into_iter().chain(shards).collect();
    assert!(removed.len() >= 2, "a record and a shard at least: {removed:?}");
    removed.iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn values_have_the_precision_that_is_asked_for_before_the_first() {
    let place = Place::new();
    let run = place.join("run");
    solve(&run, "--board 3x2 --keep 16 --precision 32");
    without_values(&run);
    let wide = Solved::new("--board 3x2 --keep 16 --precision 64");
    let summary = solve(&run, "--board 3x2 --keep 16 --precision 64");
    assert_eq!(summary["fingerprint"], wide.summary["fingerprint"]);
    assert_eq!(summary["start"], wide.summary["start"]);
    on_run(&run, "verify", &[]).exits(0);
    on_run(&run, "verify", &["--sample", "50"]).exits(0);
    assert!(on_run(&run, "info", &[]).exits(0).stdout.contains("64"));
    let boards = ["2 2 / 0 0 / 0 0", "16 8 / 4 2 / 2 0", "32 16 / 8 2 / 4 2"].map(str::to_owned);
    let values =
        |run: &Path| query(run, &boards).iter().map(|answer| answer["value"].clone()).collect::<Vec<_>>();
    assert_eq!(values(&run), values(&wide.run()), "from the journal that amends the manifest");
    // The run has this precision from now on, also without the option.
    assert_eq!(solve(&run, "--board 3x2")["fingerprint"], wide.summary["fingerprint"]);
    let refused = try_solve(&run, "--board 3x2 --keep 16 --precision 32").exits(2);
    refused.says(&["precision", "64", "32"]);
    assert_eq!(
        solve(&run, "--board 3x2 --keep 16 --precision 64")["fingerprint"],
        wide.summary["fingerprint"]
    );
}

/// A resume without `--precision` preserves the precision.
#[test]
fn an_unfinished_run_resumes_with_its_precision() {
    let place = Place::new();
    let run = place.join("run");
    let wide = solve(&run, "--board 3x2 --precision 64");
    without_values(&run);
    assert_eq!(solve(&run, "--board 3x2")["fingerprint"], wide["fingerprint"]);
}
