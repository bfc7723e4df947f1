//! Published numbers for comparison with runs of some boards, with their sources (`docs/published.md`).

use exact2048_game::{Params, Spawner};
use exact2048_text::numbers::{count, mean};

use crate::gathered::RunReport;

/// Source of a published number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// States by enumeration.
    Enumeration,
    /// Probabilities and discounted wins under perfect play.
    OptimalPlay,
    /// Strong solutions.
    StrongSolutions,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Self::Enumeration => {
                "J. Lees-Miller, The Mathematics of 2048, part 3: counting states (jdlm.info, 2017)"
            }
            Self::OptimalPlay => {
                "J. Lees-Miller, The Mathematics of 2048, part 4: optimal play (jdlm.info, 2018)"
            }
            Self::StrongSolutions => {
                "S. Yamashita, T. Kaneko and others, strong solutions of small boards (arXiv:2510.04580 and its code)"
            }
        }
    }
}

/// A published number.
#[derive(Clone, Copy, Debug)]
enum Published {
    /// Number of states with a legal move, before the target tile is made.
    Live(u64),
    /// Number of states, including states without a legal move.
    States(u64),
    /// Number of afterstates.
    Afterstates(u64),
    /// Mean value of the starts up to symmetry. Each start counts once.
    Starts(f64),
    /// The value of two 2s at the start, cut off after the first decimal.
    TwoTwos(f64),
}

/// The published numbers, by board, objective and discount.
const NUMBERS: &[(&str, &str, &str, Source, Published)] = {
    use Published::{Afterstates, Live, Starts, States, TwoTwos};
    use Source::{Enumeration, OptimalPlay, StrongSolutions};
    const ONE: &str = "1/1";
    const P95: &str = "19/20";
    &[
        ("2x2", "reach:8", ONE, Enumeration, Live(15)),
        ("2x2", "reach:16", ONE, Enumeration, Live(35)),
        ("2x2", "reach:32", ONE, Enumeration, Live(57)),
        ("2x2", "score", ONE, Enumeration, Live(74)),
        ("3x3", "reach:8", ONE, Enumeration, Live(1_186)),
        ("3x3", "reach:16", ONE, Enumeration, Live(16_834)),
        ("3x3", "reach:32", ONE, Enumeration, Live(124_372)),
        ("3x3", "reach:64", ONE, Enumeration, Live(594_046)),
        ("3x3", "reach:128", ONE, Enumeration, Live(2_064_918)),
        ("3x3", "reach:256", ONE, Enumeration, Live(5_643_584)),
        ("3x3", "reach:512", ONE, Enumeration, Live(12_789_511)),
        ("3x3", "reach:1024", ONE, Enumeration, Live(25_179_012)),
        ("3x3", "score", ONE, Enumeration, Live(41_325_017)),
        ("4x4", "reach:8", ONE, Enumeration, Live(84_659)),
        ("4x4", "reach:16", ONE, Enumeration, Live(23_482_821)),
        ("4x4", "reach:32", ONE, Enumeration, Live(1_566_798_892)),
        ("2x2", "reach:8", ONE, OptimalPlay, Starts(1.0)),
        ("2x2", "reach:16", ONE, OptimalPlay, Starts(0.965_623_875)),
        ("2x2", "reach:32", ONE, OptimalPlay, Starts(0.083_149_377_320_429_21)),
        ("3x3", "reach:16", ONE, OptimalPlay, Starts(1.0)),
        ("3x3", "reach:32", ONE, OptimalPlay, Starts(1.0)),
        ("3x3", "reach:128", ONE, OptimalPlay, Starts(0.999_999_805_905_013)),
        ("3x3", "reach:256", ONE, OptimalPlay, Starts(0.995_709_643_177_207)),
        ("3x3", "reach:512", ONE, OptimalPlay, Starts(0.736_774_177_006_839_2)),
        ("3x3", "reach:1024", ONE, OptimalPlay, Starts(0.011_337_880_082_275_75)),
        ("2x2", "reach:8", P95, OptimalPlay, Starts(0.858_633_805_086_805_4)),
        ("2x2", "reach:16", P95, OptimalPlay, Starts(0.656_943_524_931_941_2)),
        ("2x2", "reach:32", P95, OptimalPlay, Starts(0.040_307_225_413_361_666)),
        ("3x3", "reach:8", P95, OptimalPlay, Starts(0.851_382_985_157_706_3)),
        ("3x3", "reach:16", P95, OptimalPlay, Starts(0.661_960_669_430_172_2)),
        ("3x3", "reach:32", P95, OptimalPlay, Starts(0.429_569_390_629_974_3)),
        ("3x3", "reach:64", P95, OptimalPlay, Starts(0.194_536_248_513_155_15)),
        ("3x3", "reach:128", P95, OptimalPlay, Starts(0.041_859_809_497_196_48)),
        ("3x3", "reach:256", P95, OptimalPlay, Starts(0.002_015_643_284_515_190_6)),
        ("3x3", "reach:512", P95, OptimalPlay, Starts(3.709_189_741_025_722_6e-6)),
        ("3x3", "reach:1024", P95, OptimalPlay, Starts(3.732_137_207_639_090_4e-13)),
        ("3x2", "score", ONE, StrongSolutions, States(21_752)),
        ("4x2", "score", ONE, StrongSolutions, States(4_980_767)),
        ("3x3", "score", ONE, StrongSolutions, States(48_713_519)),
        ("4x3", "score", ONE, StrongSolutions, States(1_152_817_492_752)),
        ("4x3", "score", ONE, StrongSolutions, Afterstates(739_648_886_170)),
        ("2x2", "score", ONE, StrongSolutions, TwoTwos(67.6)),
        ("3x2", "score", ONE, StrongSolutions, TwoTwos(480.9)),
        ("4x2", "score", ONE, StrongSolutions, TwoTwos(2_642.6)),
        ("3x3", "score", ONE, StrongSolutions, TwoTwos(5_469.2)),
        ("4x3", "score", ONE, StrongSolutions, TwoTwos(50_724.2)),
    ]
};

/// A published number and the corresponding number of a run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PublishedComparison {
    pub what: &'static str,
    pub published: String,
    pub found: String,
    pub agrees: bool,
    pub source: Source,
}

/// Compares the report with all published numbers for the run's parameters. Skips numbers that the report lacks.
pub(crate) fn compared(run: &RunReport) -> Vec<PublishedComparison> {
    let of_run = numbers_of(&run.params);
    of_run.filter_map(|(source, published)| compare(run, source, published)).collect()
}

/// Whether a source has published numbers for a run with these parameters.
pub(crate) fn is_in(source: Source, params: &Params) -> bool {
    numbers_of(params).any(|(other, _)| other == source)
}

fn numbers_of(params: &Params) -> impl Iterator<Item = (Source, Published)> {
    let game = params.game();
    let (rows, columns) = (game.board().rows(), game.board().cols());
    let board = if game.board().has_stones() {
        game.board().to_string()
    } else {
        format!("{}x{}", rows.max(columns), rows.min(columns))
    };
    let (objective, discount) = (game.objective().to_string(), game.discount().to_string());
    let has_usual_tiles = game.spawner() == Spawner::Random && game.spawn4() == Default::default();
    let is_of_run = move |of: &&(&str, &str, &str, Source, Published)| {
        // A discount does not change the states.
        let is_discount = of.2 == discount || is_count(of.4);
        has_usual_tiles && of.0 == board && of.1 == objective && is_discount
    };
    NUMBERS.iter().filter(is_of_run).map(|of| (of.3, of.4)).collect::<Vec<_>>().into_iter()
}

fn is_count(published: Published) -> bool {
    matches!(published, Published::Live(_) | Published::States(_) | Published::Afterstates(_))
}

fn compare(run: &RunReport, source: Source, published: Published) -> Option<PublishedComparison> {
    let of_counts = |what, published: u64, found: u64| PublishedComparison {
        what,
        published: count(published),
        found: count(found),
        agrees: published == found,
        source,
    };
    let bound = run.starts.error_bound;
    Some(match published {
        Published::Live(live) => {
            of_counts("states with a legal move", live, run.states().checked_sub(run.dead()?)?)
        }
        Published::States(states) => of_counts("states", states, run.states()),
        Published::Afterstates(afterstates) => of_counts("afterstates", afterstates, run.afterstates()),
        Published::Starts(mean) => PublishedComparison {
            what: "mean over the starts up to symmetry",
            published: mean.to_string(),
            found: format!("{} ± {bound:.1e}", run.canonical_starts),
            // Both numbers have rounding errors of 64-bit floating point.
            agrees: (mean - run.canonical_starts).abs() <= bound + 1e-12 * mean,
            source,
        },
        Published::TwoTwos(value) => {
            let (_, found) = *run.starts.by_layer.first()?;
            let cut_off = |value: f64| (value * 10.0).floor() / 10.0;
            PublishedComparison {
                what: "two 2s at the start, cut off after a decimal",
                published: mean(value, 1),
                found: mean(cut_off(found), 1),
                agrees: [found - bound, found + bound].iter().any(|&end| cut_off(end) == value),
                source,
            }
        }
    })
}
