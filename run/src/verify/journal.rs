//! Checks of the journal without the data of the shards.

use exact2048_game::Layer;
use exact2048_solution::{Commit, Phase, Run};

use super::game::CheckedGame;
use super::outcome::Problem;

/// A problem of the journal.
pub fn problem(run: &Run, what: String, expected: String, found: String) -> Problem {
    Problem::Content { file: run.dir().place().join("journal"), offset: None, what, expected, found }
}

/// Checks each commit separately.
///
/// The layers of a commit must be layers of the game. A commit of states must have the counts of each layer and no
/// fingerprint. A commit of values must have a fingerprint and no counts.
pub fn check(run: &Run, game: &CheckedGame) -> Vec<Problem> {
    let commits = run.catalog().commits();
    let wrong = |commit: &Commit| {
        let (expected, found) = what_is_wrong(commit, game.last_layer())?;
        Some(problem(run, format!("commit of {}", text(commit)), expected, found))
    };
    commits.iter().filter_map(wrong).collect()
}

/// A commit as text for messages.
fn text(commit: &Commit) -> String {
    let of = match commit.phase {
        Phase::Enumerate => "states",
        Phase::BackUp => "values",
    };
    format!("the {of} of layers {} to {}", commit.first, commit.last)
}

/// The expected and the found content of a commit that is wrong; `None` if the commit is right.
fn what_is_wrong(commit: &Commit, last_layer: u32) -> Option<(String, String)> {
    let (first, last) = (commit.first.0, commit.last.0);
    let even = first % 2 == 0 && last % 2 == 0;
    if !(4 <= first && first <= last && last <= last_layer && even) {
        return Some((format!("even layers from 4 to {last_layer}"), format!("{first} to {last}")));
    }
    let counted: Vec<Layer> = commit.layers.iter().map(|counts| counts.layer).collect();
    match commit.phase {
        Phase::Enumerate if commit.fingerprint.is_some() => {
            Some(("no fingerprint".to_owned(), "a fingerprint".to_owned()))
        }
        Phase::Enumerate if !(first..=last).step_by(2).map(Layer).eq(counted.iter().copied()) => {
            let expected = format!("counts of each of its {} layers", (last - first) / 2 + 1);
            Some((expected, format!("counts of {} layers", counted.len())))
        }
        Phase::BackUp if !counted.is_empty() => Some(("no counts".to_owned(), "counts".to_owned())),
        Phase::BackUp if commit.fingerprint.is_none() => {
            Some(("a fingerprint".to_owned(), "none".to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_solution::LayerCounts;

    fn counts(layer: u32) -> LayerCounts {
        LayerCounts { layer: Layer(layer), states: 1, afterstates: 1 }
    }

    #[test]
    fn commits_must_be_whole() {
        let states = Commit {
            phase: Phase::Enumerate,
            first: Layer(4),
            last: Layer(8),
            layers: [4, 6, 8].map(counts).to_vec(),
            fingerprint: None,
        };
        let values =
            Commit { phase: Phase::BackUp, layers: Vec::new(), fingerprint: Some(0), ..states.clone() };
        assert_eq!(what_is_wrong(&states, 8), None);
        assert_eq!(what_is_wrong(&values, 8), None);
        for wrong in [
            Commit { layers: Vec::new(), ..states.clone() },
            Commit { layers: [4, 8].map(counts).to_vec(), ..states.clone() },
            Commit { layers: [4, 6, 6].map(counts).to_vec(), ..states.clone() },
            Commit { layers: [4, 6, 8, 10].map(counts).to_vec(), ..states.clone() },
            Commit { fingerprint: Some(0), ..states.clone() },
            Commit { first: Layer(5), ..states.clone() },
            Commit { first: Layer(2), layers: [2, 4, 6, 8].map(counts).to_vec(), ..states.clone() },
            Commit { last: Layer(10), layers: [4, 6, 8, 10].map(counts).to_vec(), ..states.clone() },
            Commit { fingerprint: None, ..values.clone() },
            Commit { layers: [4, 6, 8].map(counts).to_vec(), ..values.clone() },
            Commit { first: Layer(10), ..values.clone() },
        ] {
            assert!(what_is_wrong(&wrong, 8).is_some(), "{wrong:?}");
        }
    }
}
