//! Figures that compare runs.

use exact2048_text::numbers::{count, share};

use super::figure::{Figure, Plan};
use super::states::share_of;
use crate::chart::{AxisText, ChartLine};
use crate::gathered::{LayerReport, RunReport};
use crate::table::Numbers;
use crate::words::{count_axis, number_axis, share_axis, value_text};

/// The horizontal axis. It shows layers as shares of the last layer, because the last layers of boards differ.
const BY_SHARE: (&str, AxisText) = ("layer, as a share of the last", share_axis);

pub(super) fn figures(runs: &[RunReport]) -> Vec<Figure> {
    let figures = [states(runs), boards(runs), values(runs), empties(runs), ends(runs)];
    figures.into_iter().flatten().collect()
}

/// A line for each run, with the results of `of` for its layers.
fn lines(runs: &[RunReport], of: impl Fn(&RunReport, &LayerReport) -> Option<f64>) -> Vec<ChartLine> {
    let line = |run: &RunReport| {
        let last = f64::from(run.range().1);
        let point = |layer: &LayerReport| Some((f64::from(layer.layer.0) / last, of(run, layer)?));
        ChartLine { name: run.name.clone(), points: run.layers.iter().filter_map(point).collect() }
    };
    runs.iter().map(line).collect()
}

fn states(runs: &[RunReport]) -> Option<Figure> {
    let largest = |run: &RunReport| {
        let largest = run.layers.iter().max_by_key(|layer| layer.states);
        let (layer, states) = largest.map_or((0, 0), |largest| (largest.layer.0, largest.states));
        vec![run.name.clone(), count(run.layers.len()), count(layer), count(states)]
    };
    let header = ["run", "layers", "largest layer", "its states"];
    Plan {
        name: "compare-states",
        title: "States by layer, compared".to_owned(),
        caption: "States of each layer, on a logarithmic scale. Layers are shares of the last one, so that boards of \
                  different sizes can be compared."
            .to_owned(),
        x: BY_SHARE,
        y: ("states".to_owned(), count_axis),
        lines: lines(runs, |_, layer| Some(layer.states as f64)),
        is_logarithmic: true,
        numbers: vec![Numbers::new(&header, runs.iter().map(largest))],
    }
    .figure()
}

fn boards(runs: &[RunReport]) -> Option<Figure> {
    let row = |run: &RunReport| {
        let boards: u128 = run.layers.iter().map(|layer| layer.boards).sum();
        let entries: u64 = run.layers.iter().map(|layer| layer.entries).sum();
        let states = run.states() as f64;
        let name = run.name.clone();
        vec![
            name,
            count(boards),
            share(states / boards as f64),
            count(entries),
            share(states / entries as f64),
        ]
    };
    let header = ["run", "possible boards", "states of these", "rows × columns", "states of these"];
    Plan {
        name: "compare-fill",
        title: "Share of possible boards that occur, compared".to_owned(),
        caption: "States of each layer, as a share of the layer's possible boards. Both are counted up to symmetry."
            .to_owned(),
        x: BY_SHARE,
        y: ("share that occurs".to_owned(), share_axis),
        lines: lines(runs, |_, layer| share_of(layer, layer.boards as f64)),
        is_logarithmic: false,
        numbers: vec![Numbers::new(&header, runs.iter().map(row))],
    }
    .figure()
}

fn values(runs: &[RunReport]) -> Option<Figure> {
    let row = |run: &RunReport| {
        let mean =
            run.sums().values.mean().map_or("–".to_owned(), |mean| value_text(run.params.game(), mean));
        vec![run.name.clone(), value_text(run.params.game(), run.starts.expected), mean]
    };
    let header = ["run", "value at the start", "mean over all reported states"];
    Plan {
        name: "compare-values",
        title: "Mean values by layer, compared".to_owned(),
        caption: "The mean value of the states of each layer, as a multiple of the value at the start."
            .to_owned(),
        x: BY_SHARE,
        y: ("mean value / value at the start".to_owned(), number_axis),
        lines: lines(runs, |run, layer| {
            let mean = layer.sums.values.mean()?;
            (run.starts.expected > 0.0).then(|| mean / run.starts.expected)
        }),
        is_logarithmic: false,
        numbers: vec![Numbers::new(&header, runs.iter().map(row))],
    }
    .figure()
}

fn empties(runs: &[RunReport]) -> Option<Figure> {
    let shares: Vec<(&RunReport, Vec<f64>)> = runs
        .iter()
        .map(|run| {
            let sums = run.sums();
            let most = sums.empties.iter().rposition(|&states| states > 0).map_or(0, |most| most + 1);
            let all = sums.states() as f64;
            (run, sums.empties[..most].iter().map(|&states| states as f64 / all).collect())
        })
        .collect();
    let line = |(run, shares): &(&RunReport, Vec<f64>)| ChartLine {
        name: run.name.clone(),
        points: shares.iter().enumerate().map(|(empty, &share)| (empty as f64, share)).collect(),
    };
    let most = shares.iter().map(|(_, shares)| shares.len()).max().unwrap_or(0);
    let row = |empty: usize| {
        let of_run = |(_, shares): &(&RunReport, Vec<f64>)| {
            shares.get(empty).map_or("–".to_owned(), |&part| share(part))
        };
        [empty.to_string()].into_iter().chain(shares.iter().map(of_run)).collect()
    };
    let header: Vec<&str> =
        ["empty cells"].into_iter().chain(runs.iter().map(|run| run.name.as_str())).collect();
    Plan {
        name: "compare-empty-cells",
        title: "States by number of empty cells, compared".to_owned(),
        caption: "Shares of the reported states. Each state counts once.".to_owned(),
        x: ("empty cells", count_axis),
        y: ("share of the states".to_owned(), share_axis),
        lines: shares.iter().map(line).collect(),
        is_logarithmic: false,
        numbers: vec![Numbers::new(&header, (0..most).map(row))],
    }
    .figure()
}

fn ends(runs: &[RunReport]) -> Option<Figure> {
    let played = || runs.iter().filter_map(|run| Some((run, run.play.statistics()?)));
    let line = |(run, found): (&RunReport, &exact2048_stats::PlayStatistics)| {
        let (last, mut ended) = (f64::from(run.range().1), 0.0);
        let point = |layer: &exact2048_stats::LayerStatistics| {
            ended += layer.ended_in_all();
            (f64::from(layer.layer) / last, ended)
        };
        ChartLine { name: run.name.clone(), points: found.layers.iter().map(point).collect() }
    };
    let row = |(run, found): (&RunReport, &exact2048_stats::PlayStatistics)| {
        let (mean, deviation) = found.last_layer()?;
        let (moves, layers) =
            (format!("{:.3}", found.moves), [mean, deviation].map(|layer| format!("{layer:.1}")));
        Some([run.name.clone(), moves].into_iter().chain(layers).collect())
    };
    let header = ["run", "moves of a game", "last layer", "standard deviation"];
    Plan {
        name: "compare-last-layers",
        title: "How far perfect games get, compared".to_owned(),
        caption: "The share of perfect games that end in a layer or before it.".to_owned(),
        x: BY_SHARE,
        y: ("share of games".to_owned(), share_axis),
        lines: played().map(line).collect(),
        is_logarithmic: false,
        numbers: vec![Numbers::new(&header, played().filter_map(row))],
    }
    .figure()
}
