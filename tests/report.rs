//! Reports, compared with slow enumerations and the oracle. Also tests the format of the page, and refused options.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, Solved, close, exact2048, files, format_run, format_run_unfinished, on_run, solve};
use exact2048_count::{Bounds, Counted};
use exact2048_game::Board;
use exact2048_game::packed::PackedRules;
use exact2048_reference::{Game, STONE, Solution, as_f64};
use exact2048_report::{
    LayerReport, ReportOptions, ReportedPlay, ReportedValues, RunReport, StateSums, gather,
};
use exact2048_solution::{Oracle, Run};

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

fn gathered(run: &Path, values: ReportedValues) -> RunReport {
    let options = ReportOptions { values, perfect_play: None, memory_bytes: 1 << 30, kernels: None };
    gather("a name", &Run::open(run).unwrap(), None, &options, |_| {}).unwrap()
}

/// Sums over the states of a layer, computed state by state.
#[derive(Default)]
struct Slow {
    values: Vec<f64>,
    by_largest: BTreeMap<usize, Vec<f64>>,
    empties: BTreeMap<usize, u64>,
    legal: [u64; 5],
    best: [u64; 4],
    several_best: u64,
}

impl Slow {
    fn of(game: &Game, solution: &Solution, layer: u32, oracle: &Oracle) -> Self {
        let (size, rules) =
            (oracle.params().game().board(), PackedRules::new(oracle.params().game().board()));
        let mut slow = Self::default();
        for state in &solution.layers[&layer].states {
            let value = as_f64(solution.values[state]);
            let cells = &state[..game.cells()];
            slow.values.push(value);
            let largest = cells.iter().copied().filter(|&cell| cell != STONE).max().unwrap();
            slow.by_largest.entry(largest.into()).or_default().push(value);
            *slow.empties.entry(cells.iter().filter(|&&cell| cell == 0).count()).or_default() += 1;
            slow.legal[game.moves(state).len()] += 1;
            let canonical = rules.canonical(Board::parse(&game.text(state), size).unwrap());
            let told = oracle.evaluate(canonical, ALWAYS).unwrap();
            if let Some(best) = told.best {
                slow.best[best as usize] += 1;
            }
            let best = told.moves.iter().filter_map(|made| made.outcome).filter(|made| made.is_best);
            slow.several_best += u64::from(best.count() > 1);
        }
        slow
    }

    fn check_moves(&self, sums: &StateSums, at: &str) {
        assert_eq!((sums.moves.legal, sums.moves.best), (self.legal, self.best), "{at}");
        assert_eq!(sums.moves.several_best, self.several_best, "{at}");
    }

    fn check_values(&self, sums: &StateSums, bound: f64, at: &str) {
        check_summary(&sums.values, &self.values, bound, at);
        for (exponent, of_tile) in sums.by_largest.iter().enumerate() {
            let slow = self.by_largest.get(&exponent).cloned().unwrap_or_default();
            check_summary(of_tile, &slow, bound, &format!("{at}, exponent {exponent}"));
        }
        self.check_empties(sums, at);
    }

    fn check_empties(&self, sums: &StateSums, at: &str) {
        for (empty, &states) in sums.empties.iter().enumerate() {
            assert_eq!(states, self.empties.get(&empty).copied().unwrap_or(0), "{at}, {empty} empty cells");
        }
    }
}

fn check_summary(summary: &exact2048_solution::ValueSums, values: &[f64], bound: f64, at: &str) {
    assert_eq!(summary.count(), values.len() as u64, "{at}");
    if values.is_empty() {
        return;
    }
    close(summary.least().unwrap(), values.iter().copied().fold(f64::INFINITY, f64::min), bound, at);
    close(summary.most().unwrap(), values.iter().copied().fold(f64::NEG_INFINITY, f64::max), bound, at);
    close(summary.mean().unwrap(), values.iter().sum::<f64>() / values.len() as f64, bound, at);
}

/// The sums of all layers do not depend on the stored layers.
#[test]
fn sums_are_those_of_all_states() {
    for (board, objective, stored) in [
        ("2x2", "score", &["--keep 4", "--keep starts"][..]),
        (
            "3x2",
            "score",
            &["--keep 4", "--keep all", "--keep 64", "--values best-move --keep 32", "--precision 64"],
        ),
        ("3x2", "reach:64", &["--keep 16", "--values best-move"]),
        ("2x2", "lose:32", &["--keep 4"]),
        ("2x3:.x./...", "reach:32", &["--keep 4", "--values best-move --keep 16"]),
        ("2x4:.#../...#", "score", &["--keep all", "--keep 16"]),
    ] {
        let game = Game::new(board, objective, "1/10");
        let solution = game.solve();
        let mut first: Option<Vec<LayerReport>> = None;
        for options in stored {
            let at = format!("{board} {objective} {options}");
            let run = Solved::new(&format!("--board {board} --objective {objective} {options}"));
            let report = gathered(&run.run(), ReportedValues::All);
            let oracle = Oracle::new(&Run::open(&run.run()).unwrap()).unwrap();
            assert_eq!(report.layers.len(), solution.layers.len(), "{at}");
            let all = oracle.starts().unwrap();
            let mean: Vec<f64> =
                game.canonical_starts().iter().map(|start| as_f64(solution.values[start])).collect();
            close(
                report.canonical_starts,
                mean.iter().sum::<f64>() / mean.len() as f64,
                all.error_bound,
                &at,
            );
            for layer in &report.layers {
                let at = format!("{at} layer {}", layer.layer);
                let known = &solution.layers[&layer.layer.0];
                assert_eq!(layer.states, known.states.len() as u64, "{at}");
                assert_eq!(layer.afterstates, known.afterstates.len() as u64, "{at}");
                assert_eq!(layer.dead, Some(known.dead as u64), "{at}");
                assert!(layer.entries >= layer.states && layer.boards >= layer.states.into(), "{at}");
                let slow = Slow::of(&game, &solution, layer.layer.0, &oracle);
                slow.check_values(&layer.sums, all.error_bound, &at);
                slow.check_moves(&layer.sums, &at);
            }
            assert!(report.gaps().is_empty());
            if !options.contains("64") || options.contains("--keep") {
                let unlike = |layer: &LayerReport| LayerReport { is_stored: true, ..layer.clone() };
                let layers: Vec<_> = report.layers.iter().map(unlike).collect();
                assert_eq!(
                    *first.get_or_insert_with(|| layers.clone()),
                    layers,
                    "{at}: it depends on what is kept"
                );
            }
        }
    }
}

#[test]
fn layers_that_are_not_worked_out_are_left_out() {
    for options in ["--keep 16", "--values best-move --keep 16"] {
        let run = Solved::new(&format!("--board 3x2 {options}"));
        let all = gathered(&run.run(), ReportedValues::All);
        let stored = gathered(&run.run(), ReportedValues::Stored);
        let none = gathered(&run.run(), ReportedValues::None);
        let has_moves = options.contains("best-move");
        // If few layers are stored, the layers of the starts are among them.
        let starts = stored.layers[0].is_stored;
        for ((all, stored), none) in all.layers.iter().zip(&stored.layers).zip(&none.layers) {
            let at = format!("{options} layer {}", all.layer);
            assert_eq!((stored.dead, none.dead), (all.dead, all.dead), "{at}");
            assert_eq!((stored.entries, stored.boards), (all.entries, all.boards), "{at}");
            let is_stored = all.layer.0 / 2 % 16 < 2 || starts && all.layer.0 <= 8;
            assert_eq!(stored.is_stored, is_stored, "{at}");
            if is_stored {
                assert_eq!(
                    (&stored.sums.values, &stored.sums.by_largest),
                    (&all.sums.values, &all.sums.by_largest)
                );
            } else {
                assert_eq!(stored.sums.values.count(), 0, "{at}");
            }
            assert_eq!(none.sums.values.count(), 0, "{at}");
            if has_moves {
                // Of equally good moves, the run may store another one.
                for sums in [&stored.sums, &none.sums] {
                    assert_eq!(
                        (sums.empties, sums.moves.legal),
                        (all.sums.empties, all.sums.moves.legal),
                        "{at}"
                    );
                    let count = |best: [u64; 4]| best.iter().sum::<u64>();
                    assert_eq!(count(sums.moves.best), count(all.sums.moves.best), "{at}");
                    let apart = sums.moves.best.iter().zip(all.sums.moves.best).map(|(a, b)| a.abs_diff(b));
                    assert!(apart.sum::<u64>() <= 2 * all.sums.moves.several_best, "{at}");
                }
            } else {
                assert_eq!((stored.sums.moved(), none.sums.states()), (0, 0), "{at}");
            }
        }
        assert_eq!(stored.play, ReportedPlay::LeftOut);
    }
}

#[test]
fn possible_boards_are_those_of_the_formula() {
    for (job, target) in [("--board 3x2", None), ("--board 3x2 --objective reach:32", Some(32))] {
        let report = gathered(&Solved::new(job).run(), ReportedValues::None);
        let boards: u128 = report.layers.iter().map(|layer| layer.boards).sum();
        let bounds = Bounds::new("3x2".parse().unwrap(), target, |_| {}).unwrap();
        let won = u128::from(target.is_some());
        assert!(
            boards <= bounds.total(Counted::WithinTileBound).orbits - won && boards >= report.states().into()
        );
    }
}

struct Page {
    place: Place,
    html: String,
}

impl Page {
    fn new(options: &[&str]) -> Self {
        let place = Place::new();
        let (file, svg) = (place.join("page.html"), place.join("figures"));
        let out = ["-o", file.to_str().unwrap(), "--svg", svg.to_str().unwrap(), "--json"];
        let summary = exact2048([&["report"], options, &out].concat()).exits(0).json();
        let html = fs::read_to_string(&file).unwrap();
        assert_eq!(common::whole(&summary["bytes"]), html.len() as u64);
        let page = Self { place, html };
        assert_eq!(common::whole(&summary["figures"]), page.figures().len() as u64);
        let left: Vec<_> = files(page.place.path()).into_iter().filter(|path| path.is_file()).collect();
        assert_eq!(left, [file], "the report left other files");
        page
    }

    fn figures(&self) -> Vec<PathBuf> {
        files(&self.place.join("figures"))
    }

    fn has(&self, words: &[&str]) {
        words.iter().for_each(|words| assert!(self.html.contains(words), "{words:?} is missing"));
    }
}

/// Reads an XML document to its end, and returns the texts of its title and its description.
fn read_xml(text: &str) -> [String; 2] {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut open, mut found) = (Vec::new(), [String::new(), String::new()]);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                start.attributes().for_each(|attribute| drop(attribute.unwrap()));
                open.push(String::from_utf8(start.name().as_ref().to_vec()).unwrap());
            }
            Event::Empty(empty) => empty.attributes().for_each(|attribute| drop(attribute.unwrap())),
            Event::End(_) => drop(open.pop().unwrap()),
            Event::Text(text) => {
                let at =
                    ["title", "desc"].iter().position(|name| open.last().is_some_and(|open| open == name));
                if let Some(at) = at {
                    found[at].push_str(&text.decode().unwrap());
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} is left open");
    found
}

#[test]
fn a_page_stands_alone() {
    let (two, three) = (Solved::new("--board 2x2"), Solved::new("--board 3x2 --keep 16"));
    // The page shows the name of the folder as text and never as markup.
    let odd = three.run().with_file_name("<b onclick='x'>&\"3×2\"");
    fs::rename(three.run(), &odd).unwrap();
    let (two, odd) = (format!("small={}", two.run().display()), odd.display().to_string());
    let page = Page::new(&["--run", &two, "--run", &odd]);
    for absent in ["://", "<script", " src=", "<link", "@import", "url(", "<b ", "</b>", "javascript:"] {
        assert!(!page.html.contains(absent), "the page has {absent:?}");
    }
    let links = page.html.match_indices("href=\"").map(|(at, found)| &page.html[at + found.len()..]);
    for target in links.map(|rest| rest.split('"').next().unwrap()) {
        let id = target.strip_prefix('#').unwrap_or_else(|| panic!("{target} leads elsewhere"));
        assert_eq!(page.html.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
    }
    page.has(&[
        "<!DOCTYPE html>",
        "default-src 'none'",
        "&lt;b onclick=&#39;x&#39;&gt;&amp;&quot;3×2&quot;",
        "prefers-color-scheme: dark",
        "@media print",
        "254ba309e384c58b5e907cf40dfef732",
        "d824fa6f0a7d0cde64a79087a89cab66",
        "66.9641495 (error at most",
        "The runs compared",
    ]);
    assert!(!page.html.contains("differs"), "published numbers come out");
    // The page has eight figures for each run, and five that compare the runs.
    assert_eq!(page.figures().len(), 2 * 8 + 5);
    for figure in page.figures() {
        let text = fs::read_to_string(&figure).unwrap();
        let [title, description] = read_xml(&text);
        assert!(!title.is_empty() && description.len() > 20, "{}: {title}: {description}", figure.display());
        assert!(
            text.contains("role=\"img\"") && text.len() > 1_000 && !text.contains("NaN"),
            "{}",
            figure.display()
        );
        // The page has the same drawing.
        let drawing =
            text.lines().find(|line| line.contains("<polyline") || line.contains("<rect x=")).unwrap();
        assert!(page.html.contains(drawing), "{}", figure.display());
    }
    for drawing in page.html.split("<svg").skip(1) {
        read_xml(&format!("<svg{}</svg>", drawing.split("</svg>").next().unwrap()));
    }
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    let run = Solved::new("--board 3x2 --objective reach:64");
    let run = run.run().display().to_string();
    let one = Page::new(&["--run", &run, "--threads", "1"]);
    // Without this removal, the second report would use the stored statistics of the first report.
    let kept = Path::new(&run).join("cones");
    fs::remove_dir_all(&kept).unwrap();
    let four = Page::new(&["--run", &run, "--threads", "4", "--memory", "600MiB"]);
    assert_eq!(one.html, four.html);
    let content = |page: &Page| page.figures().iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
    assert_eq!(content(&one), content(&four));
    let stats = on_run(Path::new(&run), "stats", &["--json"]).exits(0).says(&["--again"]).json();
    assert_eq!(Page::new(&["--run", &run]).html, one.html, "with the statistics that are kept");
    let moves = stats["moves"]["value"].to_string();
    one.has(&[&moves[..10], "error at most", "Largest tile at the end"]);
}

#[test]
fn published_numbers_agree() {
    for (job, published) in [
        ("--board 2x2", &["states with a legal move", ">74<", "two 2s at the start"][..]),
        ("--board 3x2", &[">21,752<", "480.9"]),
        ("--board 2x2 --objective reach:16 --precision 64", &[">35<", "0.965623875<"]),
        (
            "--board 2x2 --objective reach:32 --discount 0.95",
            &[">57<", "0.040307225413361666<", "layer_stats.csv"],
        ),
        ("--board 3x3 --objective reach:32", &[">124,372<", "jdlm.info"]),
    ] {
        let page = Page::new(&["--run", Solved::new(job).run().to_str().unwrap(), "--no-play"]);
        page.has(published);
        page.has(&["<td>agrees</td>"]);
        assert!(!page.html.contains("differs"), "{job}");
    }
    // There are no published numbers for other rules.
    let page = Page::new(&["--run", Solved::new("--board 2x2 --spawn4 0.5").run().to_str().unwrap()]);
    assert!(!page.html.contains("Published numbers"));
}

#[test]
fn missing_parts_of_a_run_are_named() {
    for (job, options, words) in [
        ("--board 3x2 --keep 32", "--values stored", "the others were not computed. Without these"),
        ("--board 3x2 --values best-move", "--values stored", "because the run stores best moves"),
        ("--board 3x2 --values best-move", "--values none", "Values were left out. Best moves are those"),
        ("--board 3x2", "--values none --no-play", "Statistics of perfect play were left out"),
        ("--board 3x2 --objective lose:64", "", "There are no statistics of perfect play"),
        ("--board 3x2 --spawner worst", "", "worst for the player"),
    ] {
        let run = Solved::new(job);
        let run = run.run().display().to_string();
        let options: Vec<&str> = ["--run", &run].into_iter().chain(options.split_whitespace()).collect();
        Page::new(&options).has(&[words]);
    }
    for (format, words) in
        [(1, "version 1, whose fingerprints are not comparable"), (2, "<td>version 2</td>")]
    {
        let place = Place::new();
        let run = format_run(&place, format).display().to_string();
        Page::new(&["--run", &run]).has(&[words, "66.9641495"]);
    }
    // With a disk limit, the solver has removed the states of most layers.
    let place = Place::new();
    let run = place.join("run");
    solve(&run, "--board 3x3 --objective reach:256 --disk 2MB");
    let page = Page::new(&["--run", run.to_str().unwrap(), "--no-play"]);
    page.has(&["without a disk limit", "no longer stores the states of the others"]);
}

#[test]
fn failed_reports_leave_no_page() {
    let (place, solved) = (Place::new(), Solved::new("--board 2x2"));
    let (out, run) = (place.join("page.html"), solved.run().display().to_string());
    let out = out.to_str().unwrap();
    let refused = |args: &[&str], code: i32, words: &[&str]| {
        exact2048([&["report"], args].concat()).exits(code).says(words);
        assert!(files(place.path()).iter().all(|path| !path.ends_with("page.html")), "{args:?}");
    };
    refused(&["--run", "/no/such/run", "-o", out], 1, &["/no/such/run"]);
    refused(&["--run", &run, "-o", "/proc/page.html"], 1, &["/proc/page.html"]);
    let unfinished = format_run_unfinished(&place, 2).display().to_string();
    refused(&["--run", &unfinished, "-o", out], 1, &["layers 4 to 60"]);
    // Existing files stay as they are.
    let there = place.join("there.html");
    fs::write(&there, "mine").unwrap();
    refused(&["--run", &run, "-o", there.to_str().unwrap()], 2, &["there.html"]);
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
}
