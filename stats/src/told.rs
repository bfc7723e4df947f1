//! Statistics of perfect play as they are told and kept.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use exact2048_game::board::EXPONENTS;
use exact2048_game::{Params, Spawn4};
use exact2048_storage::{StorageError, replace_file};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::outcome::PlayStatistics;

/// Statistics of perfect play, as JSON tells them.
#[derive(Clone, Debug, Serialize)]
pub struct ToldStatistics {
    board: String,
    objective: String,
    spawn4: Spawn4,
    /// What the start is worth by the values of the run.
    perfect: Bounded,
    /// The same by the chances that were followed.
    value: Bounded,
    moves: Bounded,
    /// None where no game was followed to its end.
    last_layer: Option<Spread>,
    states: u64,
    left_out: f64,
    rounding: f64,
    tiles: Vec<ToldTile>,
    layers: Vec<ToldLayer>,
    seconds: f64,
}

/// A number with the bound of its error.
#[derive(Clone, Copy, Debug, Serialize)]
struct Bounded {
    value: f64,
    error: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Spread {
    mean: f64,
    standard_deviation: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ToldTile {
    tile: u32,
    ended: f64,
    reached: f64,
}

#[derive(Clone, Debug, Serialize)]
struct ToldLayer {
    layer: u32,
    states: u64,
    reached: f64,
    ended: f64,
    ended_with: BTreeMap<u32, f64>,
}

impl ToldStatistics {
    /// The statistics of a run. `perfect` is what the start is worth by the values of the run, and the error of that;
    /// `seconds` is how long the statistics took.
    #[must_use]
    pub fn new(found: &PlayStatistics, params: &Params, perfect: (f64, f64), seconds: f64) -> Self {
        let spread = |(mean, standard_deviation)| Spread { mean, standard_deviation };
        let tile = |(exponent, ended, reached)| ToldTile { tile: 1u32 << exponent, ended, reached };
        let bounded = |(value, error)| Bounded { value, error };
        Self {
            board: params.board.to_string(),
            objective: params.objective.to_string(),
            spawn4: params.spawn4,
            perfect: bounded(perfect),
            value: bounded((found.value, found.value_error)),
            moves: bounded((found.moves, found.moves_error)),
            last_layer: found.last_layer().map(spread),
            states: found.states(),
            left_out: found.dropped,
            rounding: found.rounding,
            tiles: found.tiles().into_iter().map(tile).collect(),
            layers: found
                .layers
                .iter()
                .map(|of| ToldLayer {
                    layer: of.layer,
                    states: of.states,
                    reached: of.reached,
                    ended: of.ended_in_all(),
                    ended_with: (0..EXPONENTS)
                        .filter(|&exponent| of.ended[exponent] > 0.0)
                        .map(|exponent| (1 << exponent, of.ended[exponent]))
                        .collect(),
                })
                .collect(),
            seconds,
        }
    }
}

/// Where the statistics of a run are kept for the next that asks for them: a file in a folder that runs may share.
///
/// Its first line names the run and has the checksum of the rest, which is JSON. A file that is damaged, or of other
/// values, counts as none.
#[derive(Debug)]
pub struct KeptStatistics {
    place: PathBuf,
    /// What the first line begins with.
    run: String,
}

impl KeptStatistics {
    /// The statistics of a run, by its id and its fingerprint.
    #[must_use]
    pub fn new(folder: &Path, run_id: &str, fingerprint: u128) -> Self {
        Self {
            place: folder.join(format!("perfect-play-{run_id}.json")),
            run: format!("exact2048 perfect play 1, run {run_id}, fingerprint {fingerprint:032x}, checksum "),
        }
    }

    /// The statistics that are kept, as JSON; `None` if there are none.
    #[must_use]
    pub fn read(&self) -> Option<String> {
        let text = fs::read_to_string(&self.place).ok()?;
        let (checksum, told) = text.strip_prefix(&self.run)?.split_once('\n')?;
        (checksum == checksum_of(told)).then(|| told.to_owned())
    }

    /// Keeps statistics, which are given as JSON.
    ///
    /// # Errors
    ///
    /// A failure of the system; what was kept before stays then.
    pub fn keep(&self, told: &str) -> Result<(), StorageError> {
        replace_file(&self.place, |file| write!(file, "{}{}\n{told}", self.run, checksum_of(told)))
    }
}

fn checksum_of(told: &str) -> String {
    format!("{:016x}", xxh3_64(told.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_of_one_run_and_whole() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("kept");
        let kept = KeptStatistics::new(&folder, "a1", 7);
        assert_eq!(kept.read(), None);
        kept.keep("{\"moves\":1}").unwrap();
        kept.keep("{\"moves\":2}").unwrap();
        assert_eq!(kept.read().as_deref(), Some("{\"moves\":2}"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing temporary is left");
        assert_eq!(KeptStatistics::new(&folder, "a1", 8).read(), None, "solved anew with other values");
        let file = folder.join("perfect-play-a1.json");
        for damaged in ["", "exact2048", &fs::read_to_string(&file).unwrap().replace('2', "3")] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(kept.read(), None, "{damaged}");
        }
    }
}
