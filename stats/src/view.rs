//! Statistics of perfect play as JSON, and the file that stores them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use exact2048_files::open;
use exact2048_game::board::EXPONENTS;
use exact2048_game::{Params, Spawn4};
use exact2048_solution::{Oracle, QueryError, Run};
use exact2048_storage::{StorageError, replace_file};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::follow::{FollowPlay, LEAST_FOLLOWED, StatsProgress};
use crate::outcome::{LayerStatistics, PlayStatistics};

/// Statistics of perfect play as JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatisticsView {
    board: String,
    objective: String,
    spawn4: Spawn4,
    /// The value of the start in the run.
    perfect: Bounded,
    /// The value of the start, computed from the followed probabilities.
    value: Bounded,
    moves: Bounded,
    /// `None` if no game was followed to its end.
    last_layer: Option<Spread>,
    states: u64,
    /// Smallest probability that was followed. Files of earlier versions lack this field, because their statistics used
    /// the default.
    #[serde(default = "least_followed")]
    cutoff: f64,
    left_out: f64,
    rounding: f64,
    tiles: Vec<TileView>,
    layers: Vec<LayerView>,
    seconds: f64,
}

fn least_followed() -> f64 {
    LEAST_FOLLOWED
}

/// A number with the bound on its error.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Bounded {
    value: f64,
    error: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Spread {
    mean: f64,
    standard_deviation: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct TileView {
    tile: u32,
    ended: f64,
    reached: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct LayerView {
    layer: u32,
    states: u64,
    reached: f64,
    ended: f64,
    ended_with: BTreeMap<u32, f64>,
}

impl StatisticsView {
    /// Follows the games of a run, except boards that a game reaches with a probability below `cutoff`.
    ///
    /// Reads the starts first, so a run without values fails at once and not after hours of work.
    ///
    /// # Errors
    ///
    /// As for [`Oracle::starts`] and [`FollowPlay::follow`].
    pub fn follow(
        run: &Run,
        follower: &dyn FollowPlay,
        cutoff: f64,
        progress: &mut dyn FnMut(StatsProgress),
    ) -> Result<Self, QueryError> {
        let begun = Instant::now();
        let starts = Oracle::new(run)?.starts()?;
        let found = follower.follow(cutoff, progress)?;
        let perfect = (starts.expected, starts.error_bound);
        Ok(Self::new(&found, run.params(), cutoff, perfect, begun.elapsed().as_secs_f64()))
    }

    /// The statistics of a run.
    ///
    /// `perfect` is the value of the start in the run, with its error bound. `seconds` is the computing time.
    #[must_use]
    fn new(found: &PlayStatistics, params: &Params, cutoff: f64, perfect: (f64, f64), seconds: f64) -> Self {
        let spread = |(mean, standard_deviation)| Spread { mean, standard_deviation };
        let tile = |(exponent, ended, reached)| TileView { tile: 1u32 << exponent, ended, reached };
        let bounded = |(value, error)| Bounded { value, error };
        Self {
            board: params.game().board().to_string(),
            objective: params.game().objective().to_string(),
            spawn4: params.game().spawn4(),
            perfect: bounded(perfect),
            value: bounded((found.value, found.value_error)),
            moves: bounded((found.moves, found.moves_error)),
            last_layer: found.last_layer().map(spread),
            states: found.states(),
            cutoff,
            left_out: found.dropped,
            rounding: found.rounding,
            tiles: found.tiles().into_iter().map(tile).collect(),
            layers: found
                .layers
                .iter()
                .map(|of| LayerView {
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

    /// The value of the start in the run, with its error bound.
    #[must_use]
    pub fn perfect(&self) -> (f64, f64) {
        (self.perfect.value, self.perfect.error)
    }

    /// Whether the followed probabilities and the run agree on the value of the start, within both errors.
    ///
    /// The proof of the error bounds guarantees agreement. A contradiction therefore reveals damage that no checksum
    /// detected.
    fn is_consistent(&self) -> bool {
        (self.value.value - self.perfect.value).abs() <= self.value.error + self.perfect.error
            && !self.layers.is_empty()
    }

    /// Computing time of the statistics in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The original numbers. JSON preserves every bit.
    #[must_use]
    pub fn statistics(&self) -> PlayStatistics {
        let layer = |of: &LayerView| {
            let mut ended = [0.0; EXPONENTS];
            for (tile, &share) in &of.ended_with {
                ended[tile.trailing_zeros() as usize % EXPONENTS] = share;
            }
            LayerStatistics { layer: of.layer, states: of.states, reached: of.reached, ended }
        };
        PlayStatistics {
            layers: self.layers.iter().map(layer).collect(),
            value: self.value.value,
            value_error: self.value.error,
            moves: self.moves.value,
            moves_error: self.moves.error,
            dropped: self.left_out,
            rounding: self.rounding,
        }
    }
}

/// Largest size of a file of statistics, in bytes. A file has about 200 bytes for each layer, and at most 20,000 layers.
const MOST_BYTES: u64 = 64 << 20;

/// File that stores the statistics of a run for later readers. Several runs may share its folder.
///
/// The first line names the run and contains the checksum of the rest, which is JSON. Readers ignore a file that is
/// damaged, or that names another run or fingerprint.
#[derive(Debug)]
pub struct KeptStatistics {
    place: PathBuf,
    /// Beginning of the first line.
    run: String,
}

impl KeptStatistics {
    /// The file for a run, by its id and its fingerprint.
    #[must_use]
    pub fn new(folder: &Path, run_id: &str, fingerprint: u128) -> Self {
        Self {
            place: folder.join(format!("perfect-play-{run_id}.json")),
            run: format!("exact2048 perfect play 1, run {run_id}, fingerprint {fingerprint:032x}, checksum "),
        }
    }

    /// The file for an open run.
    #[must_use]
    pub fn of_run(folder: &Path, run: &Run) -> Self {
        Self::new(folder, &run.dir().run_id().to_string(), run.fingerprint().unwrap_or_default())
    }

    /// The kept statistics, if any. Statistics that contradict themselves are ignored.
    #[must_use]
    pub fn read(&self) -> Option<StatisticsView> {
        let mut text = String::new();
        open(&self.place).ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        let (checksum, json) = text.strip_prefix(&self.run)?.split_once('\n')?;
        let read: Option<StatisticsView> =
            (checksum == checksum_of(json)).then(|| serde_json::from_str(json).ok())?;
        read.filter(StatisticsView::is_consistent)
    }

    /// The kept statistics, if they have this `cutoff`. They equal the caller's own computation, bit for bit.
    #[must_use]
    pub fn read_with(&self, cutoff: f64) -> Option<StatisticsView> {
        self.read().filter(|kept| kept.cutoff == cutoff)
    }

    /// Stores statistics, unless their cutoff is above the default or they contradict themselves.
    ///
    /// # Errors
    ///
    /// If the file cannot be written. The earlier file then remains.
    pub fn keep(&self, statistics: &StatisticsView) -> Result<(), StorageError> {
        if statistics.cutoff > LEAST_FOLLOWED || !statistics.is_consistent() {
            return Ok(());
        }
        let json = serde_json::to_string(statistics).unwrap_or_default();
        replace_file(&self.place, |file| write!(file, "{}{}\n{json}", self.run, checksum_of(&json)))
    }
}

fn checksum_of(json: &str) -> String {
    format!("{:016x}", xxh3_64(json.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn params() -> Params {
        Params::small("2x2")
    }

    /// Statistics whose numbers need all digits of an f64. Games end with a 4 or an 8.
    fn found() -> PlayStatistics {
        let mut ended = [0.0; EXPONENTS];
        (ended[2], ended[3]) = (0.1 + 0.2, 1.0 / 3.0);
        PlayStatistics {
            layers: vec![LayerStatistics { layer: 12, states: 7, reached: 0.7 - 0.1, ended }],
            value: 1.0 / 7.0,
            value_error: 5e-324,
            moves: 1e300 / 7.0,
            moves_error: f64::EPSILON / 3.0,
            dropped: 1.0 / 49.0,
            rounding: 0.1,
        }
    }

    fn kept_with(cutoff: f64) -> StatisticsView {
        StatisticsView::new(&found(), &params(), cutoff, (1.0 / 7.0, 1e-9), 0.3)
    }

    #[test]
    fn kept_statistics_belong_to_one_run_and_keep_every_bit() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("kept");
        fs::create_dir(&folder).unwrap();
        let kept = KeptStatistics::new(&folder, "a1", 7);
        assert_eq!(kept.read(), None);
        kept.keep(&kept_with(0.0)).unwrap();
        kept.keep(&kept_with(LEAST_FOLLOWED)).unwrap();
        let read = kept.read().unwrap();
        assert_eq!(read, kept_with(LEAST_FOLLOWED));
        assert_eq!(read.statistics(), found());
        assert_eq!((read.perfect(), read.seconds()), ((1.0 / 7.0, 1e-9), 0.3));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        assert_eq!(KeptStatistics::new(&folder, "a1", 8).read(), None, "solved again with other values");
        let file = folder.join("perfect-play-a1.json");
        for damaged in ["", "exact2048", &fs::read_to_string(&file).unwrap().replace('2', "3")] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(kept.read(), None, "{damaged}");
        }
    }

    /// A checksum proves only that a file did not change after it was written.
    #[test]
    fn statistics_that_contradict_the_run_are_neither_kept_nor_read() {
        let place = tempfile::tempdir().unwrap();
        let kept = KeptStatistics::new(place.path(), "a1", 7);
        let wrong = StatisticsView::new(&found(), &params(), 0.0, (0.5, 1e-9), 0.3);
        kept.keep(&wrong).unwrap();
        assert!(!place.path().join("perfect-play-a1.json").exists());
        let json = serde_json::to_string(&wrong).unwrap();
        let text = format!("{}{}\n{json}", kept.run, checksum_of(&json));
        fs::write(place.path().join("perfect-play-a1.json"), text).unwrap();
        assert_eq!(kept.read(), None);
    }

    #[test]
    fn statistics_of_another_cutoff_are_not_returned() {
        let place = tempfile::tempdir().unwrap();
        let kept = KeptStatistics::new(place.path(), "a1", 7);
        kept.keep(&kept_with(LEAST_FOLLOWED)).unwrap();
        assert_eq!(kept.read_with(0.0), None);
        assert_eq!(kept.read_with(LEAST_FOLLOWED), Some(kept_with(LEAST_FOLLOWED)));
        kept.keep(&kept_with(1e-9)).unwrap();
        assert_eq!(kept.read_with(1e-9), None, "a large cutoff leaves out too much for the explorer");
        assert_eq!(kept.read_with(LEAST_FOLLOWED), Some(kept_with(LEAST_FOLLOWED)));
    }

    /// Files of earlier versions have no cutoff.
    #[test]
    fn files_without_a_cutoff_have_the_default() {
        let mut json = serde_json::to_value(kept_with(0.5)).unwrap();
        json.as_object_mut().unwrap().remove("cutoff").unwrap();
        let read: StatisticsView = serde_json::from_value(json).unwrap();
        assert_eq!(read, kept_with(LEAST_FOLLOWED));
    }
}
