//! The page of a report: one HTML file without scripts or other resources.

use std::fmt::Write;

use exact2048_game::{Discount, Precision, Spawner};
use exact2048_text::numbers::{
    count, joined, layers as ranges, mean, several, share, size, value_with_bound,
};

use crate::escape::escaped;
use crate::figures::Figure;
use crate::gathered::{ReportedPlay, ReportedValues, RunReport};
use crate::published::compared;
use crate::table::Numbers;
use crate::words::{kept_words, share_left_out, value_name};

/// Style of the page.
const STYLE: &str = include_str!("page.css");

/// Makes the page of some runs with their figures.
#[must_use]
pub fn page(runs: &[RunReport], figures: &[Figure]) -> String {
    let names: Vec<String> = runs.iter().map(|run| escaped(&heading(run))).collect();
    let title = format!("exact2048: {}", names.join("; "));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    page.push_str(
        "<p>Results of solved boards of 2048. A <em>state</em> is a board on which the player has to move. An \
         <em>afterstate</em> is the board after a move, before the next tile. A <em>layer</em> has all states and \
         afterstates with the same sum of tiles. Boards that are turned or mirrored into each other count once. Values \
         assume perfect play.</p>\n</header>\n",
    );
    write_contents(&mut page, runs, figures);
    for (nth, run) in runs.iter().enumerate() {
        write_run(&mut page, nth, run, figures);
    }
    if runs.len() > 1 {
        let _ = write!(
            page,
            "<section>\n<h2 id=\"comparison\">The runs compared</h2>\n{}",
            side_by_side(runs).html()
        );
        figures
            .iter()
            .filter(|figure| figure.run.is_none())
            .for_each(|figure| write_figure(&mut page, figure));
        page.push_str("</section>\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(
        page,
        "<footer><p>Made by exact2048 {version} from the runs alone: the same runs give the same bytes. In the \
         program's source code, the file docs/report.md explains every number and how to reproduce the \
         page.</p></footer>\n</body>\n</html>\n"
    );
    page
}

/// Describes a run in one line.
fn heading(run: &RunReport) -> String {
    let job = format!("{}, {}", run.params.game().board(), run.params.game().objective());
    if run.name == run.params.game().board().to_string() { job } else { format!("{} ({job})", run.name) }
}

fn write_contents(page: &mut String, runs: &[RunReport], figures: &[Figure]) {
    page.push_str("<nav aria-label=\"Contents\"><ul>\n");
    let mut write_part = |id: &str, title: &str, part: Option<usize>| {
        let _ = writeln!(page, "<li><a href=\"#{id}\">{}</a><ul>", escaped(title));
        for figure in figures.iter().filter(|figure| figure.run == part) {
            let _ = writeln!(page, "<li><a href=\"#{}\">{}</a></li>", figure.name, escaped(&figure.title));
        }
        page.push_str("</ul></li>\n");
    };
    for (nth, run) in runs.iter().enumerate() {
        write_part(&format!("run{}", nth + 1), &heading(run), Some(nth));
    }
    if runs.len() > 1 {
        write_part("comparison", "The runs compared", None);
    }
    page.push_str("</ul></nav>\n");
}

fn write_run(page: &mut String, nth: usize, run: &RunReport, figures: &[Figure]) {
    let id = nth + 1;
    let _ = write!(page, "<section>\n<h2 id=\"run{id}\">{}</h2>\n", escaped(&heading(run)));
    page.push_str("<h3>The run and its certificate</h3>\n");
    page.push_str(&certificate(run).html());
    page.push_str(
        "<p>The error is a proved bound on the effect of rounding on any value at the start. The fingerprint is a \
         sum over the values of all states. Runs of one format with the same fingerprint have the same values, bit \
         for bit. This page copies the error and the fingerprint from the run. The command exact2048 verify \
         recomputes the values and the fingerprint.</p>\n",
    );
    let published = compared(run);
    if !published.is_empty() {
        page.push_str("<h3>Published numbers of this board</h3>\n");
        let row = |number: &crate::published::PublishedComparison| {
            let verdict = if number.agrees { "agrees" } else { "differs" };
            let cells = [number.what, &number.published, &number.found, verdict, number.source.name()];
            cells.map(str::to_owned).to_vec()
        };
        let header = ["number", "published", "this run", "", "source"];
        let table = Numbers { is_of_words: true, ..Numbers::new(&header, published.iter().map(row)) };
        page.push_str(&table.html());
    }
    for sentence in missing(run) {
        let _ = writeln!(page, "<p class=\"missing\">{}</p>", escaped(&sentence));
    }
    figures.iter().filter(|figure| figure.run == Some(nth)).for_each(|figure| write_figure(page, figure));
    if let Some(table) = perfect_play(run) {
        page.push_str("<h3>Perfect play in numbers</h3>\n");
        page.push_str(&table.html());
    }
    page.push_str("</section>\n");
}

fn write_figure(page: &mut String, figure: &Figure) {
    let (title, caption) = (escaped(&figure.title), escaped(&figure.caption));
    let _ = write!(
        page,
        "<figure id=\"{}\">\n<h3>{title}</h3>\n<div class=\"drawing\">\n{}</div>\n<figcaption>{caption}</figcaption>\n\
         <details><summary>The numbers</summary>\n",
        figure.name,
        figure.svg_element()
    );
    figure.numbers.iter().for_each(|numbers| page.push_str(&numbers.html()));
    page.push_str("</details>\n</figure>\n");
}

/// Parameters of the run, and the identity of its values.
fn certificate(run: &RunReport) -> Numbers {
    let (params, identity) = (&run.params, &run.identity);
    let (first, last) = run.range();
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, text: String| rows.push((name.to_owned(), text));
    add("board", format!("{} rows, {} columns", params.game().board().rows(), params.game().board().cols()));
    if let Some(picture) = params.game().board().picture() {
        add("stones", picture);
    }
    if params.game().board().loose() > 0 {
        add("loose stones", params.game().board().loose().to_string());
    }
    add("objective", params.game().objective().to_string());
    add("values are the", value_name(params.game()));
    add(
        "probability of a 4",
        format!("{} ({})", params.game().spawn4(), params.game().spawn4().probability()),
    );
    add(
        "spawns",
        match params.game().spawner() {
            Spawner::Random => "random, in any empty cell with equal probability".to_owned(),
            Spawner::Worst => "the tile and cell that are worst for the player".to_owned(),
        },
    );
    if params.game().discount() != Discount::NONE {
        add("discount", format!("{} a move", params.game().discount()));
    }
    add("value at the start", run.start_text());
    for (layer, value) in &run.starts.by_layer {
        let name = format!("starts of layer {layer}");
        add(&name, value_with_bound(*value, run.starts.error_bound));
    }
    add("fingerprint", format!("{:032x}", identity.fingerprint));
    add("layers", format!("{}, tile sums {} to {}", count(run.layers.len()), count(first), count(last)));
    add("states", count(run.states()));
    if let Some(dead) = run.dead() {
        let part = share(dead as f64 / run.states() as f64);
        add("dead states", format!("{} ({part}): no move is legal", count(dead)));
    }
    add("afterstates", count(run.afterstates()));
    let bits = match params.game().precision() {
        Precision::Bits32 => 32,
        Precision::Bits64 => 64,
    };
    add("precision", format!("{bits} bits a value"));
    if let Some(step) = params.contents().value_step() {
        add("value step", format!("{step}: stored values are rounded to multiples of it"));
    }
    add("layers with stored values", kept_words(run));
    let best = if params.contents().stores_best_moves() { "of all states" } else { "none" };
    add("stored best moves", best.to_owned());
    let shards = |(number, bytes): (u64, u64)| format!("{}, {}", several(number, "shard"), size(bytes));
    add("reachable states on disk", shards(identity.reach_shards));
    add("values on disk", shards(identity.values_shards));
    let format = match identity.format_version {
        1 => "version 1, whose fingerprints are not comparable with those of later versions".to_owned(),
        version => format!("version {version}"),
    };
    add("format", format);
    add("created by", format!("exact2048 {}", identity.created_by.trim_start_matches("exact2048 ")));
    add("run", identity.run_id.clone());
    let rows = rows.into_iter().map(|(name, text)| vec![name, text]);
    Numbers { is_of_words: true, ..Numbers::new(&[], rows) }
}

/// Sentences that say which parts the report of a run lacks, and why.
fn missing(run: &RunReport) -> Vec<String> {
    let mut missing = Vec::new();
    let stored = run.layers.iter().filter(|layer| layer.is_stored).count();
    let of_all = format!("{} of {} layers", count(stored), count(run.layers.len()));
    match run.values {
        ReportedValues::All => {}
        ReportedValues::Stored if run.params.contents().stores_best_moves() => missing.push(format!(
            "Values cover only the {of_all} whose values the run stores; the others were not computed. Best moves \
             and empty cells cover all layers, because the run stores best moves."
        )),
        ReportedValues::Stored => missing.push(format!(
            "Values and empty cells cover only the {of_all} whose values the run stores; the others were not \
             computed. Without these values, the best moves are unknown."
        )),
        ReportedValues::None if run.params.contents().stores_best_moves() => {
            missing.push("Values were left out. Best moves are those that the run stores.".to_owned());
        }
        ReportedValues::None => {
            missing.push("Values, empty cells and best moves were left out.".to_owned());
        }
    }
    let gaps = run.gaps();
    if !gaps.is_empty() {
        let which = ranges(&joined(gaps.iter().map(|layer| [layer.0, layer.0])));
        missing.push(format!(
            "The sums of layers {which} are missing, or lack moves. To save disk space, the run no longer stores the states of \
             these layers or of the layers above them. A run of the same job without a disk limit has all of them."
        ));
    }
    match run.play {
        ReportedPlay::Statistics(_) => {}
        ReportedPlay::LeftOut => missing.push("Statistics of perfect play were left out.".to_owned()),
        ReportedPlay::OtherRules => missing.push(
            "There are no statistics of perfect play: they require random spawns, the score or a tile to reach as the \
             objective, and no discount."
                .to_owned(),
        ),
    }
    missing
}

/// Statistics of perfect play, in a few numbers.
fn perfect_play(run: &RunReport) -> Option<Numbers> {
    let found = run.play.statistics()?;
    let (mean_layer, deviation) = found.last_layer()?;
    let rows = [
        ("mean number of moves of a game", value_with_bound(found.moves, found.moves_error)),
        ("mean last layer", mean(mean_layer, 1)),
        ("its standard deviation", mean(deviation, 1)),
        (
            "states followed",
            format!(
                "{}, {} of all",
                count(found.states()),
                share(found.states() as f64 / run.states() as f64)
            ),
        ),
        ("value from these probabilities", value_with_bound(found.value, found.value_error)),
        ("games not followed", share_left_out(found.dropped)),
    ];
    let rows = rows.map(|(name, text)| vec![name.to_owned(), text]);
    Some(Numbers { is_of_words: true, ..Numbers::new(&[], rows) })
}

/// Name of a fact, and a function that returns it for a run.
type SideFact = (&'static str, fn(&RunReport) -> String);

/// A table that compares the runs. Each run has a column.
fn side_by_side(runs: &[RunReport]) -> Numbers {
    let facts: [SideFact; 9] = [
        ("board", |run| run.params.game().board().to_string()),
        ("objective", |run| run.params.game().objective().to_string()),
        ("value at the start", RunReport::start_text),
        ("layers", |run| count(run.layers.len())),
        ("states", |run| count(run.states())),
        ("dead states", |run| run.dead().map_or("–".to_owned(), count)),
        ("afterstates", |run| count(run.afterstates())),
        ("moves of a perfect game", |run| {
            run.play.statistics().map_or("–".to_owned(), |found| format!("{:.3}", found.moves))
        }),
        ("fingerprint", |run| format!("{:032x}", run.identity.fingerprint)),
    ];
    let header: Vec<&str> = [""].into_iter().chain(runs.iter().map(|run| run.name.as_str())).collect();
    let rows = facts.map(|(name, of)| [name.to_owned()].into_iter().chain(runs.iter().map(of)).collect());
    Numbers { is_of_words: true, ..Numbers::new(&header, rows) }
}
