//! Gathers the numbers of a report. One pass reads the layers of a run, another follows perfect play.

use std::collections::{BTreeMap, BTreeSet};

use exact2048_count::Bounds;
use exact2048_game::columns::Columns;
use exact2048_game::lane::{lanes, layer_range};
use exact2048_game::locate::Locator;
use exact2048_game::packed::PackedRules;
use exact2048_game::rules::Move;
use exact2048_game::{Board, Layer, Params};
use exact2048_solution::{
    DeadStates, KernelsOfRun, LayerCounts, LayerMoves, LayerStates, Oracle, OracleOptions, Phase, QueryError,
    Run, StateReader,
};
use exact2048_stats::{FollowerOfRun, KeptStatistics, StatisticsView, StatsProgress, has_usual_rules};
use rayon::prelude::*;

use crate::gathered::{
    LayerReport, MoveCounts, ReportedPlay, ReportedValues, RunIdentity, RunReport, StateSums,
};

/// Number of states that one thread sums at a time. The partial sums are added in order, so the result does not depend on
/// the threads.
const AT_ONCE: usize = 4096;

/// Options and limits of a report.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// Layers whose values are reported.
    pub values: ReportedValues,
    /// Follower of perfect play, and the smallest probability that it follows. `None` omits the statistics of perfect
    /// play.
    pub perfect_play: Option<(FollowerOfRun, f64)>,
    /// Memory limit in bytes.
    pub memory_bytes: u64,
    /// The kernels for the layers that a run does not store, if available.
    pub kernels: Option<KernelsOfRun>,
}

impl ReportOptions {
    fn oracle(&self, run: &Run, options: OracleOptions) -> Result<Oracle, QueryError> {
        Oracle::with_options(run, OracleOptions { kernels: self.kernels.clone(), ..options })
    }
}

/// Progress of gathering.
#[derive(Clone, Copy, Debug)]
pub struct ReportProgress {
    /// Name of the current step.
    pub what: &'static str,
    /// The completed share.
    pub share: f64,
    /// The current layer.
    pub layer: Layer,
}

/// Reason why a report failed.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run could not answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The layers exceed the memory limit.
    #[error(
        "the largest layers need up to {needed_bytes} bytes of memory, and the limit is {limit_bytes}: raise the limit, \
         or report values of fewer layers"
    )]
    Memory {
        /// Largest number of bytes needed at once.
        needed_bytes: u64,
        /// Bytes allowed.
        limit_bytes: u64,
    },
    /// The number of a layer's states differs from the run's count.
    #[error("expected {expected} states in layer {layer}, as the run counted, found {found}: verify the run")]
    Count {
        /// The layer.
        layer: Layer,
        /// States found.
        found: u64,
        /// States counted by the run.
        expected: u64,
    },
}

/// Gathers the numbers of a solved run for a report.
///
/// `name` is the run's name in the report. `kept` is the file that stores the run's statistics of perfect play. Uses
/// the threads of the caller's rayon pool; the result does not depend on their number. If values of all layers are
/// reported, the result is also independent of the layers that the run stores.
///
/// # Errors
///
/// See [`ReportError`].
pub fn gather(
    name: &str,
    run: &Run,
    kept: Option<&KeptStatistics>,
    options: &ReportOptions,
    mut progress: impl FnMut(ReportProgress),
) -> Result<RunReport, ReportError> {
    let layers_oracle = options.oracle(run, OracleOptions { cache_bytes: 0, ..OracleOptions::default() })?;
    let layers = gather_layers(run, &layers_oracle, options, &mut progress)?;
    drop(layers_oracle);
    let params = run.params();
    let oracle = options.oracle(run, OracleOptions::default())?;
    let play = match options.perfect_play {
        _ if !has_usual_rules(params.game()) => ReportedPlay::OtherRules,
        None => ReportedPlay::LeftOut,
        Some((follower_of, least_chance)) => {
            let found = match kept.and_then(|kept| kept.read_with(least_chance)) {
                Some(found) => found,
                None => {
                    let follower = follower_of(run, options.memory_bytes)?;
                    let mut show = |at: StatsProgress| {
                        let layer = Layer(at.layer);
                        progress(ReportProgress { what: "perfect play", share: at.share, layer });
                    };
                    let found = StatisticsView::follow(run, &*follower, least_chance, &mut show)?;
                    // If the folder is not writable, the next report computes the statistics again.
                    let _ = kept.map(|kept| kept.keep(&found));
                    found
                }
            };
            ReportedPlay::Statistics(found.statistics())
        }
    };
    Ok(RunReport {
        name: name.to_owned(),
        params: params.clone(),
        identity: identity(run),
        starts: oracle.starts()?,
        canonical_starts: canonical_starts(&oracle)?,
        layers,
        values: options.values,
        play,
    })
}

fn identity(run: &Run) -> RunIdentity {
    let shards = |phase: Phase| {
        let all = run.catalog().shards();
        let of_phase = all.iter().filter(|shard| shard.commit.phase == phase);
        of_phase.fold((0, 0), |(count, bytes), shard| (count + 1, bytes + shard.record.bytes))
    };
    RunIdentity {
        run_id: run.dir().run_id().to_string(),
        created_by: run.dir().created_by().to_owned(),
        format_version: run.format_version(),
        fingerprint: run.fingerprint().unwrap_or_default(),
        reach_shards: shards(Phase::Enumerate),
        values_shards: shards(Phase::BackUp),
    }
}

/// Mean value of the starts up to symmetry. Each start counts once.
fn canonical_starts(oracle: &Oracle) -> Result<f64, QueryError> {
    let rules = PackedRules::new(oracle.params().game().board());
    let starts: BTreeSet<Board> =
        oracle.params().game().starts().into_iter().map(|start| rules.canonical(start.board)).collect();
    let values = oracle.values(&starts.into_iter().collect::<Vec<_>>(), &|| true)?;
    Ok(values.iter().flatten().sum::<f64>() / values.len() as f64)
}

fn gather_layers(
    run: &Run,
    oracle: &Oracle,
    options: &ReportOptions,
    progress: &mut impl FnMut(ReportProgress),
) -> Result<Vec<LayerReport>, ReportError> {
    let counts = run.layer_counts();
    let work =
        Work { run, oracle, values: options.values, rules: PackedRules::new(run.params().game().board()) };
    work.check_memory(&counts, options.memory_bytes)?;
    let (entries, boards) = (entries(run.params()), boards(run.params()));
    let states: u64 = counts.iter().map(|counts| counts.states).sum();
    let (mut reader, mut dead, mut behind) = (StateReader::new(oracle, &|| true), DeadStates::new(run), 0);
    let mut layers = Vec::with_capacity(counts.len());
    for counts in counts {
        let layer = counts.layer;
        progress(ReportProgress { what: "layers", share: behind as f64 / states as f64, layer });
        let sums = work.layer(&mut reader, &counts)?;
        let is_counted = work.values == ReportedValues::All && sums.moved() == counts.states;
        layers.push(LayerReport {
            layer,
            states: counts.states,
            afterstates: counts.afterstates,
            dead: if is_counted {
                Some(sums.moves.legal[0])
            } else {
                dead.of_layer(layer).map_err(QueryError::from)?
            },
            entries: entries.get(&layer).copied().unwrap_or(0),
            boards: boards.get(&layer).copied().unwrap_or(0),
            is_stored: run.params().contents().kept().keeps(layer),
            sums,
        });
        behind += counts.states;
    }
    Ok(layers)
}

/// Number of entries of the blocks of each layer, rows × columns.
fn entries(params: &Params) -> BTreeMap<Layer, u64> {
    let locator = Locator::new(params);
    let mut entries = BTreeMap::new();
    for lane in lanes(params) {
        let columns = Columns::count(params, lane);
        let (first, last) = layer_range(params, lane);
        for layer in first.to(last) {
            let rows = locator.rows(layer, lane).unwrap_or(0);
            *entries.entry(layer).or_default() += u64::from(rows) * columns;
        }
    }
    entries
}

/// Number of possible boards up to symmetry, by layer.
fn boards(params: &Params) -> BTreeMap<Layer, u128> {
    let target = params.game().winning_exponent().map(|exponent| 1 << exponent);
    let Ok(bounds) = Bounds::new(params.game().board(), target, |_| {}) else { return BTreeMap::new() };
    let of_layer = |sum: u64| u32::try_from(sum).ok().map(Layer);
    let layers = bounds.layers().iter();
    layers.filter_map(|layer| Some((of_layer(layer.sum)?, layer.within_tile_bound.orbits))).collect()
}

/// Context shared by all layers.
struct Work<'a> {
    run: &'a Run,
    oracle: &'a Oracle,
    values: ReportedValues,
    rules: PackedRules,
}

impl Work<'_> {
    fn check_memory(&self, counts: &[LayerCounts], limit_bytes: u64) -> Result<(), ReportError> {
        let needed_bytes = match self.values {
            ReportedValues::All => {
                let reader = StateReader::new(self.oracle, &|| true);
                reader.bytes(self.run.params().first_layer()..=self.run.params().last_layer())
            }
            // Memory of a layer and of its sorted copy.
            _ if self.values == ReportedValues::Stored
                || self.run.params().contents().stores_best_moves() =>
            {
                48 * counts.iter().map(|counts| counts.states).max().unwrap_or(0)
            }
            _ => 0,
        };
        if needed_bytes > limit_bytes {
            return Err(ReportError::Memory { needed_bytes, limit_bytes });
        }
        Ok(())
    }

    /// Sums over the states of a layer. The sums are empty if the report does not need the states or the run no longer
    /// stores them.
    fn layer(&self, reader: &mut StateReader<'_>, counts: &LayerCounts) -> Result<StateSums, ReportError> {
        let sums = match self.summed(reader, counts.layer) {
            Err(QueryError::ReachRemoved(_)) => return Ok(StateSums::default()),
            sums => sums?,
        };
        let (found, expected) = (sums.states(), counts.states);
        if found != expected && found > 0 {
            return Err(ReportError::Count { layer: counts.layer, found, expected });
        }
        Ok(sums)
    }

    fn summed(&self, reader: &mut StateReader<'_>, layer: Layer) -> Result<StateSums, QueryError> {
        let params = self.run.params();
        let is_wanted = match self.values {
            ReportedValues::All => true,
            ReportedValues::Stored => params.contents().kept().keeps(layer),
            ReportedValues::None => false,
        };
        let valued = is_wanted.then(|| reader.states(layer)).transpose()?;
        if self.values == ReportedValues::All {
            // If the run no longer stores the reach of the next layers, values are known but moves are not.
            let moves = match reader.moves(layer) {
                Err(QueryError::ReachRemoved(_)) => None,
                moves => Some(moves?),
            };
            return Ok(valued.map_or_else(StateSums::default, |states| self.sums(&states, moves.as_ref())));
        }
        let mut sums = valued.map_or_else(StateSums::default, |states| self.sums(&states, None));
        if params.contents().stores_best_moves() {
            let of_moves = self.stored_moves(&reader.best_moves(layer)?);
            sums.moves = of_moves.moves;
            sums.empties = of_moves.empties;
        }
        Ok(sums)
    }

    /// Sums over states with their values, and their moves if known.
    fn sums(&self, states: &LayerStates, moves: Option<&LayerMoves>) -> StateSums {
        let size = self.oracle.params().game().board();
        let some = |(nth, boards): (usize, &[Board])| {
            let mut sums = StateSums::default();
            for (at, &board) in (nth * AT_ONCE..).zip(boards) {
                let value = self.oracle.seen_from(board, states.values[at]);
                sums.values.add(value);
                sums.by_largest[usize::from(size.largest(board))].add(value);
                sums.empties[self.empty(board)] += 1;
                if let Some(moves) = moves {
                    count_moves(&mut sums.moves, moves.values(at));
                }
            }
            sums
        };
        in_order(states.boards.par_chunks(AT_ONCE).enumerate().map(some))
    }

    /// Sums over states with stored best moves.
    fn stored_moves(&self, states: &[(Board, Option<Move>)]) -> StateSums {
        let some = |states: &[(Board, Option<Move>)]| {
            let mut sums = StateSums::default();
            for &(board, best) in states {
                sums.empties[self.empty(board)] += 1;
                sums.moves.legal[self.rules.moves(board).iter().count()] += 1;
                if let Some(best) = best {
                    sums.moves.best[best as usize] += 1;
                }
            }
            sums
        };
        in_order(states.par_chunks(AT_ONCE).map(some))
    }

    fn empty(&self, board: Board) -> usize {
        self.rules.empty(board).count_ones() as usize
    }
}

/// Adds sums in order.
fn in_order(sums: impl IndexedParallelIterator<Item = StateSums>) -> StateSums {
    let mut all = StateSums::default();
    sums.collect::<Vec<_>>().iter().for_each(|sums| all.append(sums));
    all
}

/// Counts the moves of a state, by their values.
fn count_moves<V: Ord + Copy>(counts: &mut MoveCounts, values: [Option<V>; 4]) {
    let most = values.iter().flatten().max().copied();
    let is_best = |value: &Option<V>| most.is_some() && *value == most;
    counts.legal[values.iter().flatten().count()] += 1;
    if let Some(first) = values.iter().position(&is_best) {
        counts.best[first] += 1;
        counts.several_best += u64::from(values.iter().filter(|value| is_best(value)).count() > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_best_moves_the_first_counts() {
        let mut counts = MoveCounts::default();
        for values in [
            [None, None, None, None],
            [None, Some(3), Some(3), None],
            [Some(1), Some(2), Some(3), Some(3)],
            [Some(9), Some(2), Some(3), None],
        ] {
            count_moves(&mut counts, values);
        }
        assert_eq!(counts.legal, [1, 0, 1, 1, 1]);
        assert_eq!(counts.best, [1, 1, 1, 0]);
        assert_eq!(counts.several_best, 2);
    }
}
