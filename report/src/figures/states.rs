//! Figures of the states of a run.

use exact2048_game::Discount;
use exact2048_game::board::tile;
use exact2048_solution::ValueSums;
use exact2048_text::numbers::{count, share};

use super::figure::{Figure, Plan, of_bars};
use crate::chart::ChartLine;
use crate::gathered::{LayerReport, ReportedValues, RunReport, StateSums};
use crate::published::{Source, is_in};
use crate::table::{Numbers, some_of};
use crate::words::{count_axis, number_axis, share_axis, value_name, value_text};

/// The four moves, in the order of [`MoveCounts::best`](crate::gathered::MoveCounts::best).
const MOVES: [&str; 4] = ["left", "right", "up", "down"];

/// The horizontal axis, which shows layers.
pub(super) const BY_LAYER: (&str, crate::chart::AxisText) = ("layer (sum of the tiles)", count_axis);

pub(super) fn figures(run: &RunReport) -> Vec<Figure> {
    let sums = run.sums();
    let figures = [
        counts(run),
        fill(run),
        values(run, &sums),
        by_largest(run, &sums),
        empties(run, &sums),
        best_moves(run, &sums),
    ];
    figures.into_iter().flatten().collect()
}

/// A line with the results of `of` for the layers of a run. A layer without a result has no point.
pub(super) fn line(
    name: impl Into<String>,
    run: &RunReport,
    of: impl Fn(&LayerReport) -> Option<f64>,
) -> ChartLine {
    let point = |layer: &LayerReport| Some((f64::from(layer.layer.0), of(layer)?));
    ChartLine { name: name.into(), points: run.layers.iter().filter_map(point).collect() }
}

/// Sentence of a caption for a table that does not have all layers.
pub(super) fn thinned(step: usize) -> String {
    if step > 1 { format!(" The table has one in {step} layers and the last.") } else { String::new() }
}

/// Sentence of a caption that states which layers a figure covers. `counts_of` returns the number of reported states of
/// a layer.
fn which_layers(run: &RunReport, counts_of: impl Fn(&StateSums) -> u64) -> String {
    let reported = run.layers.iter().filter(|layer| counts_of(&layer.sums) > 0).count();
    match run.values {
        _ if reported == run.layers.len() => {
            " The figure includes all states of all layers, without sampling.".to_owned()
        }
        ReportedValues::Stored => format!(
            " The figure includes only the layers whose values the run stores, {} of {}, with all of their states.",
            count(reported),
            count(run.layers.len())
        ),
        ReportedValues::All | ReportedValues::None => format!(
            " The figure includes {} of {} layers, because the run no longer stores the states of the others.",
            count(reported),
            count(run.layers.len())
        ),
    }
}

fn counts(run: &RunReport) -> Option<Figure> {
    let mut caption = "Number of boards with each sum of tiles. A state is a board on which the player has to move. An \
                       afterstate is the board after a move, before the next tile. In a dead state, no move is legal; \
                       dead states count as states. Boards that are turned or mirrored into each other count once. The \
                       counts are exact."
        .to_owned();
    if is_in(Source::Enumeration, &run.params) {
        caption += " Lees-Miller enumerated the same boards independently (The Mathematics of 2048, part 3, jdlm.info, \
                    2017). His numbers of states exclude the dead states.";
    }
    if is_in(Source::StrongSolutions, &run.params) {
        caption += " Yamashita and Kaneko enumerate the same states by the sum of tiles, which they call the age, for their \
                    strong solutions (arXiv:2510.04580).";
    }
    let (some, step) = some_of(&run.layers);
    let row = |layer: &&LayerReport| {
        let dead = layer.dead.map_or("–".to_owned(), count);
        vec![count(layer.layer.0), count(layer.states), count(layer.afterstates), dead]
    };
    let numbers = Numbers::new(&["layer", "states", "afterstates", "dead states"], some.iter().map(row));
    Plan {
        name: "states",
        title: "States and afterstates by layer".to_owned(),
        caption: caption + &thinned(step),
        x: BY_LAYER,
        y: ("boards".to_owned(), count_axis),
        lines: vec![
            line("states", run, |layer| Some(layer.states as f64)),
            line("afterstates", run, |layer| Some(layer.afterstates as f64)),
            line("dead states", run, |layer| layer.dead.map(|dead| dead as f64)),
        ],
        is_logarithmic: false,
        numbers: vec![numbers],
    }
    .figure()
}

/// The states of a layer as a share of `all`; `None` if `all` is 0.
pub(super) fn share_of(layer: &LayerReport, all: f64) -> Option<f64> {
    (all > 0.0).then(|| layer.states as f64 / all)
}

fn fill(run: &RunReport) -> Option<Figure> {
    let (some, step) = some_of(&run.layers);
    let shares =
        |layer: &LayerReport| [share_of(layer, layer.entries as f64), share_of(layer, layer.boards as f64)];
    let row = |layer: &&LayerReport| {
        let text = |found: Option<f64>| found.map_or("–".to_owned(), share);
        let [of_entries, of_boards] = shares(layer).map(text);
        vec![count(layer.layer.0), count(layer.entries), of_entries, count(layer.boards), of_boards]
    };
    let header = ["layer", "rows × columns", "states of these", "possible boards", "states of these"];
    let mut caption = "Share of the stored entries, and of the possible boards, that occur. Rows × columns: a layer is \
                       stored as blocks, with a row for each pattern of small tiles and a column for each sequence of \
                       large ones. Some entries are holes: no game reaches them, or they repeat a symmetric board. \
                       Possible boards: boards with the layer's sum, up to symmetry, that contain a 2 or a 4 (the last \
                       spawn) and satisfy a bound on the number of large tiles. A formula counts them (exact2048 \
                       count). Both shares are exact."
        .to_owned();
    if is_in(Source::Enumeration, &run.params) {
        caption += " Lees-Miller compares his enumerated boards with such a count (parts 2 and 3 of The Mathematics of \
                    2048, jdlm.info, 2017). His count has no bound on large tiles, and counts rotated and \
                    mirrored boards separately.";
    }
    Plan {
        name: "fill",
        title: "Share of possible entries and boards that occur".to_owned(),
        caption: caption + &thinned(step),
        x: BY_LAYER,
        y: ("share that occurs".to_owned(), share_axis),
        lines: vec![
            line("of rows × columns", run, |layer| shares(layer)[0]),
            line("of possible boards", run, |layer| shares(layer)[1]),
        ],
        is_logarithmic: false,
        numbers: vec![Numbers::new(&header, some.iter().map(row))],
    }
    .figure()
}

/// Smallest, mean and largest value as texts.
fn texts(run: &RunReport, of: &ValueSums) -> [String; 3] {
    let text =
        |value: Option<f64>| value.map_or("–".to_owned(), |value| value_text(run.params.game(), value));
    [of.least(), of.mean(), of.most()].map(text)
}

fn values(run: &RunReport, sums: &StateSums) -> Option<Figure> {
    if sums.values.count() == 0 {
        return None;
    }
    let valued: Vec<&LayerReport> = run.layers.iter().filter(|layer| layer.sums.values.count() > 0).collect();
    let (some, step) = some_of(&valued);
    let row = |layer: &&&LayerReport| {
        let texts = texts(run, &layer.sums.values);
        [count(layer.layer.0)].into_iter().chain(texts).collect()
    };
    let name = value_name(run.params.game());
    let mut caption = format!(
        "The least, the mean and the largest {name} under perfect play, over the states of each layer. Each state counts \
         once, regardless of its probability.{}",
        which_layers(run, |sums| sums.values.count())
    );
    if run.params.game().discount() != Discount::NONE && is_in(Source::OptimalPlay, &run.params) {
        caption += " The data of Lees-Miller's article on optimal play has the same three numbers for each sum of tiles \
                    (The Mathematics of 2048, part 4, jdlm.info, 2018, layer_stats.csv). The numbers here include \
                    states without a legal move.";
    }
    Plan {
        name: "values",
        title: "Values by layer".to_owned(),
        caption: caption + &thinned(step),
        x: BY_LAYER,
        y: (name, number_axis),
        lines: vec![
            line("largest", run, |layer| layer.sums.values.most()),
            line("mean", run, |layer| layer.sums.values.mean()),
            line("least", run, |layer| layer.sums.values.least()),
        ],
        is_logarithmic: false,
        numbers: vec![Numbers::new(&["layer", "least", "mean", "largest"], some.iter().map(row))],
    }
    .figure()
}

fn by_largest(run: &RunReport, sums: &StateSums) -> Option<Figure> {
    let tiles = || sums.by_largest.iter().enumerate().filter(|(_, of_tile)| of_tile.count() > 0);
    let name_of = |exponent: usize| count(tile(exponent as u8));
    let row = |(exponent, of_tile): (usize, &ValueSums)| {
        let part = share(of_tile.count() as f64 / sums.values.count() as f64);
        let named = [name_of(exponent), count(of_tile.count()), part];
        named.into_iter().chain(texts(run, of_tile)).collect()
    };
    let header = ["largest tile", "states", "share", "least", "mean", "largest"];
    let name = value_name(run.params.game());
    Plan {
        name: "values-by-largest-tile",
        title: "Values by layer and largest tile".to_owned(),
        caption: format!(
            "The mean {name}, over the states of each layer with the same largest tile. The table combines all \
             layers.{}",
            which_layers(run, |sums| sums.values.count())
        ),
        x: BY_LAYER,
        y: (format!("mean {name}"), number_axis),
        lines: tiles()
            .map(|(exponent, _)| {
                line(name_of(exponent), run, |layer| layer.sums.by_largest[exponent].mean())
            })
            .collect(),
        is_logarithmic: false,
        numbers: vec![Numbers::new(&header, tiles().map(row))],
    }
    .figure()
}

fn empties(run: &RunReport, sums: &StateSums) -> Option<Figure> {
    let (all, most) = (sums.states(), sums.empties.iter().rposition(|&states| states > 0)?);
    let shares: Vec<(String, f64)> = sums.empties[..=most]
        .iter()
        .enumerate()
        .map(|(empty, &states)| (empty.to_string(), states as f64 / all as f64))
        .collect();
    let rows = shares
        .iter()
        .zip(&sums.empties)
        .map(|((empty, part), &states)| vec![empty.clone(), count(states), share(*part)]);
    let numbers = Numbers::new(&["empty cells", "states", "share"], rows);
    let caption = format!(
        "Shares of the states by number of empty cells. Each state counts once.{}",
        which_layers(run, StateSums::states)
    );
    let heading = ("empty-cells", "States by number of empty cells");
    of_bars(heading, caption, "empty cells", ("share of the states", share_axis), shares, vec![numbers])
}

fn best_moves(run: &RunReport, sums: &StateSums) -> Option<Figure> {
    let all = sums.moved();
    if all == 0 {
        return None;
    }
    let chosen: u64 = sums.moves.best.iter().sum();
    let part = |number: u64, all: u64| share(number as f64 / all.max(1) as f64);
    let by_move = MOVES
        .iter()
        .zip(sums.moves.best)
        .map(|(name, states)| vec![(*name).to_owned(), count(states), part(states, chosen)]);
    let by_legal = sums
        .moves
        .legal
        .iter()
        .enumerate()
        .map(|(moves, &states)| vec![moves.to_string(), count(states), part(states, all)]);
    let is_by_values = run.values == ReportedValues::All;
    let which = if is_by_values {
        format!(
            " If a state has several best moves, the first of left, right, up and down counts, as exact2048 query \
             reports it for the canonical board. The command exact2048 stats may follow another of these moves. {} \
             states have several best moves ({} of the states with a legal move).",
            count(sums.moves.several_best),
            part(sums.moves.several_best, chosen)
        )
    } else {
        " The stored best move counts: if a state has several best moves, the first on the stored image of the board."
            .to_owned()
    };
    let caption = format!(
        "The best move, as shares of the states of a layer that have a legal move. A move is counted on the canonical image \
         of a state: the turned or mirrored image with the smallest packed number. In this number, the last cell (row \
         by row from the top left) counts most, so large tiles tend to be in the first cells.{which}{}",
        match run.gaps().len() {
            0 => " The figure includes all states, without sampling.".to_owned(),
            gaps => format!(" {} layers are missing.", count(gaps)),
        }
    );
    Plan {
        name: "best-moves",
        title: "Best moves by layer".to_owned(),
        caption,
        x: BY_LAYER,
        y: ("share of the states".to_owned(), share_axis),
        lines: MOVES
            .iter()
            .enumerate()
            .map(|(direction, name)| {
                line(*name, run, |layer| {
                    let best = layer.sums.moves.best;
                    let all: u64 = best.iter().sum();
                    (all > 0).then(|| best[direction] as f64 / all as f64)
                })
            })
            .collect(),
        is_logarithmic: false,
        numbers: vec![
            Numbers::new(&["best move", "states", "share of states with a best move"], by_move),
            Numbers::new(&["legal moves", "states", "share"], by_legal),
        ],
    }
    .figure()
}
