//! Figures of the states of a run.

use exact2048_game::Discount;
use exact2048_game::board::tile;
use exact2048_solution::ValueSums;
use exact2048_text::numbers::{count, share};

use super::{Figure, Plan, of_bars};
use crate::chart::ChartLine;
use crate::gathered::{LayerReport, ReportedValues, RunReport, StateSums};
use crate::published::{Source, is_in};
use crate::table::{Numbers, some_of};
use crate::words::{count_axis, number_axis, share_axis, value_name, value_text};

/// The four moves, in the order in which they are counted.
const MOVES: [&str; 4] = ["left", "right", "up", "down"];

/// Layers on the first axis.
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

/// A line of what `of` gives for the layers of a run; without a point where it gives nothing.
pub(super) fn line(
    name: impl Into<String>,
    run: &RunReport,
    of: impl Fn(&LayerReport) -> Option<f64>,
) -> ChartLine {
    let point = |layer: &LayerReport| Some((f64::from(layer.layer.0), of(layer)?));
    ChartLine { name: name.into(), points: run.layers.iter().filter_map(point).collect() }
}

/// What is said where a table has not all layers.
pub(super) fn thinned(step: usize) -> String {
    if step > 1 { format!(" The table has one in {step} layers, and the last.") } else { String::new() }
}

/// What is said where only some layers were looked at. `counts_of` gives how many states of a layer were looked at.
fn which_layers(run: &RunReport, counts_of: impl Fn(&StateSums) -> u64) -> String {
    let looked_at = run.layers.iter().filter(|layer| counts_of(&layer.sums) > 0).count();
    match run.values {
        _ if looked_at == run.layers.len() => {
            " All states of all layers are in it, none is sampled.".to_owned()
        }
        ReportedValues::Stored => format!(
            " Only the {} layers are in it whose values the run stores, of {}: all of their states, none is sampled.",
            count(looked_at),
            count(run.layers.len())
        ),
        ReportedValues::All | ReportedValues::None => format!(
            " {} of {} layers are in it: of the others it is not stored any more which states they have.",
            count(looked_at),
            count(run.layers.len())
        ),
    }
}

fn counts(run: &RunReport) -> Option<Figure> {
    let mut caption = "How many boards have each sum of tiles: states, on which the player has to move, afterstates, which \
                       a move leaves before the next tile comes, and dead states, in which no move is legal and which \
                       count as states. Boards that are turned or mirrored into each other are one. All of them are \
                       counted."
        .to_owned();
    if is_in(Source::Enumeration, &run.params) {
        caption += " Lees-Miller counted the same boards by an enumeration of his own (The Mathematics of 2048, part 3, \
                    jdlm.info, 2017): his states of a sum are the states here less the dead ones.";
    }
    if is_in(Source::StrongSolutions, &run.params) {
        caption += " The states are those that Yamashita and Kaneko enumerate by the sum of tiles for their strong \
                    solutions (arXiv:2510.04580), who call it the age.";
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

/// The states of a layer as a share of `all`; `None` where `all` is 0.
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
    let mut caption = "What share of the boards that there is room for occurs. Rows × columns: a layer is stored as blocks, \
                       with a row for each pattern of small tiles and a column for each sequence of large ones; \
                       entries that no game reaches are holes, as are further images of boards with a symmetry of \
                       their own. Possible boards: those with this sum, up to symmetry, with a 2 or a 4 that came \
                       last and no more large tiles than a board has cells for, by a formula (exact2048 count). Both \
                       are exact."
        .to_owned();
    if is_in(Source::Enumeration, &run.params) {
        caption += " Lees-Miller compares the boards that he enumerates with such a count (parts 2 and 3 of The Mathematics \
                    of 2048, jdlm.info, 2017); his count has no limit of large tiles, and no symmetry.";
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

/// Least, mean and largest value as texts.
fn texts(run: &RunReport, of: &ValueSums) -> [String; 3] {
    let text = |value: Option<f64>| value.map_or("–".to_owned(), |value| value_text(&run.params, value));
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
    let name = value_name(&run.params);
    let mut caption = format!(
        "The least, the mean and the largest {name}, by perfect play, over the states of each layer; each state \
         counts once, however likely it is.{}",
        which_layers(run, |sums| sums.values.count())
    );
    if run.params.discount != Discount::NONE && is_in(Source::OptimalPlay, &run.params) {
        caption += " The same three numbers of each sum of tiles are in the data of Lees-Miller's article on optimal play \
                    (The Mathematics of 2048, part 4, jdlm.info, 2018, layer_stats.csv); states that have no legal \
                    move are among those here.";
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
    let name = value_name(&run.params);
    Plan {
        name: "values-by-largest-tile",
        title: "Values by layer and largest tile".to_owned(),
        caption: format!(
            "The mean {name}, over the states of each layer with the same largest tile. The table has all layers \
             together.{}",
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
        "How many cells of a state are empty: shares of all states, each counted once.{}",
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
            " Of several best moves the first of left, right, up, down is counted, as query names it for the canonical board; \
             exact2048 stats may follow another one that is as good. {} states have several ({} of those with a legal move).",
            count(sums.moves.several_best),
            part(sums.moves.several_best, chosen)
        )
    } else {
        " The move that the run stores is counted: of several best ones the first on the image of the board that is stored."
            .to_owned()
    };
    let caption = format!(
        "Which move is best, as shares of the states of a layer that have a legal move. What counts is the canonical image \
         of a state: of the images of a board by turning and mirroring the one that is least as a packed number (first \
         the last cell, row by row from the top left, then the one before it), so that large tiles tend to the first \
         cells.{which}{}",
        match run.gaps().len() {
            0 => " All states are in it, none is sampled.".to_owned(),
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
            Numbers::new(&["best move", "states", "share of those with one"], by_move),
            Numbers::new(&["legal moves", "states", "share"], by_legal),
        ],
    }
    .figure()
}
