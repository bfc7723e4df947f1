//! Figures of perfect play.

use exact2048_game::board::tile;
use exact2048_stats::{LayerStatistics, PlayStatistics};
use exact2048_text::numbers::{count, probability};

use super::figure::{Figure, Plan, of_bars};
use super::states::{BY_LAYER, thinned};
use crate::chart::ChartLine;
use crate::gathered::RunReport;
use crate::table::{Numbers, some_of};
use crate::words::{share_axis, share_left_out};

/// Shares of games. For each share, the table lists the layer by which so many games have ended.
const QUANTILES: [f64; 5] = [0.01, 0.1, 0.5, 0.9, 0.99];

pub(super) fn figures(run: &RunReport) -> Vec<Figure> {
    let Some(found) = run.play.statistics() else { return Vec::new() };
    [largest(found), last_layers(found)].into_iter().flatten().collect()
}

fn largest(found: &PlayStatistics) -> Option<Figure> {
    let mut tiles = found.tiles();
    tiles.reverse();
    let bars = tiles.iter().map(|&(exponent, ended, _)| (count(tile(exponent)), ended)).collect();
    let row = |&(exponent, ended, reached): &(u8, f64, f64)| {
        vec![count(tile(exponent)), probability(ended), probability(reached)]
    };
    let header = ["tile", "largest at the end", "reached"];
    let caption = format!(
        "The largest tile when a perfect game ends, as shares of games. The shares are computed from probabilities, \
         without playing games (exact2048 stats). Share of games not followed, because their probabilities are too \
         small: {}. This share bounds the error of every other share.",
        share_left_out(found.dropped)
    );
    let heading = ("largest-tile", "Largest tile at the end of perfect games");
    of_bars(
        heading,
        caption,
        "largest tile",
        ("share of games", share_axis),
        bars,
        vec![Numbers::new(&header, tiles.iter().map(row))],
    )
}

fn last_layers(found: &PlayStatistics) -> Option<Figure> {
    let (mean, deviation) = found.last_layer()?;
    let quantiles = QUANTILES
        .iter()
        .filter_map(|&share| Some(vec![format!("{}%", 100.0 * share), count(found.ended_by(share)?)]));
    let (some, step) = some_of(&found.layers);
    let row = |layer: &&LayerStatistics| {
        let shares = [layer.reached, layer.ended_in_all()].map(probability);
        [count(layer.layer), count(layer.states)].into_iter().chain(shares).collect()
    };
    let points = found.layers.iter().map(|layer| (f64::from(layer.layer), layer.ended_in_all())).collect();
    let caption = format!(
        "The layer in which perfect games end. A game ends in a state without a legal move or, if a tile is the \
         objective, with the move that makes this tile. The mean is layer {mean:.1}, the standard deviation \
         {deviation:.1}. A game takes {:.3} moves on average.{}",
        found.moves,
        thinned(step)
    );
    let header = ["layer", "states followed", "games that reach it", "games that end in it"];
    Plan {
        name: "last-layers",
        title: "Layers in which perfect games end".to_owned(),
        caption,
        x: BY_LAYER,
        y: ("share of games".to_owned(), share_axis),
        lines: vec![ChartLine { name: "games that end in the layer".to_owned(), points }],
        is_logarithmic: false,
        numbers: vec![
            Numbers::new(&["games", "have ended by layer"], quantiles),
            Numbers::new(&header, some.iter().map(row)),
        ],
    }
    .figure()
}
