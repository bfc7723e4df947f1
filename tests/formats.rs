//! Runs of every past format. `tests/data/format-N/2x2` is a run of 2x2 by a program with this format.

use crate::common;

use std::path::Path;

use common::forge::Forge;
use common::serving::Server;
use common::{
    Place, Solved, content_of, files, format_run, format_run_unfinished, layers, on_run, query, shards,
    solve, text, try_solve,
};

const JOB: &str = "--board 2x2";

/// Fingerprints of 2x2 by format, starting with format 1.
const FINGERPRINTS: [&str; 2] = ["57c6832cc8aabcdc3b550062b0d703b7", "254ba309e384c58b5e907cf40dfef732"];

#[test]
fn runs_of_every_format_are_read() {
    let today = Solved::new(JOB);
    let boards = ["2 0 / 0 2", "4 2 / 0 2", "16 8 / 4 2", "32 2 / 0 0", "8 8 / 8 8"].map(str::to_owned);
    for (format, fingerprint) in (1..).zip(FINGERPRINTS) {
        let place = Place::new();
        let run = format_run(&place, format);
        let info = on_run(&run, "info", &["--json"]).exits(0).json();
        assert_eq!((text(&info["progress"]), text(&info["fingerprint"])), ("solved", fingerprint));
        assert_eq!(info["format_version"], format);
        assert_eq!(layers(&run), layers(&today.run()));
        let reachable = |board: &&String| on_run(&run, "query", &["--json", board]).code == Some(0);
        let boards: Vec<String> = boards.iter().filter(reachable).cloned().collect();
        assert!(boards.len() >= 3, "{boards:?}");
        let answers = query(&run, &boards);
        assert_eq!(answers, query(&today.run(), &boards));
        let server = Server::start(&run, &[]);
        for (board, answer) in boards.iter().zip(&answers) {
            let served =
                common::exact2048(["query", "--server", &server.url, "--json", board]).exits(0).json();
            assert_eq!(served["value"], answer["value"], "{board}, format {format}");
        }
        for shard in shards(&run) {
            common::exact2048(["inspect", shard.to_str().unwrap()]).exits(0);
        }
        let verified = on_run(&run, "verify", &["--json"]).exits(0).json();
        assert_eq!(text(&verified["fingerprint"]), fingerprint);
    }
    assert_eq!(today.fingerprint(), FINGERPRINTS[FINGERPRINTS.len() - 1]);
}

/// `verify` checks the fingerprint of the run's own format.
#[test]
fn a_fingerprint_of_another_format_is_wrong() {
    for (format, other) in [(1, FINGERPRINTS[1]), (2, FINGERPRINTS[0])] {
        let place = Place::new();
        let run = format_run(&place, format);
        Forge::open(&run).set_fingerprint(4, other);
        on_run(&run, "verify", &[]).exits(1).says(&["4 to 60"]).prints("wrong fingerprint");
    }
}

/// The program never writes to runs of format 1, because their ranges would get two kinds of sums.
#[test]
fn runs_of_format_1_are_not_continued() {
    let place = Place::new();
    for run in [format_run(&place, 1), format_run_unfinished(&place, 1)] {
        let before = content_of(&run);
        let refused = try_solve(&run, JOB).exits(1);
        refused.says(&[run.to_str().unwrap(), "format 1", "version 0.1"]);
        assert_eq!(content_of(&run), before, "something was written");
    }
    let run = place.join("unfinished");
    let info = on_run(&run, "info", &[]).exits(0);
    assert!(info.stdout.contains("version 0.1"), "{info:?}");
    on_run(&run, "query", &["2 0 / 0 2"]).exits(1).says(&["version 0.1"]);
    // The error for another job names the job. The same job can be solved in another folder.
    try_solve(&run, "--board 3x2").exits(2).says(&["2x2", "3x2"]);
    assert_eq!(text(&solve(&place.join("anew"), JOB)["fingerprint"]), FINGERPRINTS[1]);
}

/// `solve` resumes an unfinished run of the current format from any machine.
#[test]
fn runs_of_this_format_are_continued() {
    let place = Place::new();
    let run = format_run_unfinished(&place, 2);
    assert_eq!(text(&solve(&run, JOB)["fingerprint"]), FINGERPRINTS[1]);
    assert_eq!(files(Path::new(&run.join("journal"))).len(), 2);
}
