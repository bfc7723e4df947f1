//! `exact2048 evaluate`: the loss of a player against perfect play.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_game::{Objective, ValueUnit};
use exact2048_players::evaluate::{
    EvaluateError, EvaluationLimits, EvaluationProgress, ExactEvaluation, LossTable, Sample, WorstMove,
    exactly, sampled,
};
use exact2048_players::{Decides, Engine, PlayerError, PlayerSpec, WonShare};
use exact2048_solution::{Oracle, Run};
use serde_json::{Value, json};

use super::stats::chance;
use crate::display::ProgressLine;
use crate::job::require_usual_rules;
use crate::place::RunPlace;
use crate::units::{self, SizeUnits, count};
use crate::{Failure, cones, display, limits, output};

/// Options of `evaluate`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 evaluate --player greedy --run runs/3x3
  exact2048 evaluate --player random --run runs/3x3 --no-losses
  exact2048 evaluate --player monte-carlo:runs=20 --run runs/3x3 --games 200

If the moves of a built-in player depend only on the board, or are uniformly random, the command computes the \
probability of every reachable board. Then nothing is sampled, and the bound on the error is proven. Probabilities \
below the cutoff are dropped and their sum is printed. Any other player, and every cmd: program, plays games. The loss \
of a move is the value of the board minus the value of the move, both under perfect play afterwards.

docs/players.md lists the players and their parameters.")]
pub struct Args {
    /// Choose the player: random, greedy, corner, linear-paths, minimax, expectimax, monte-carlo, win-fraction, perfect or
    /// cmd:PROGRAM; parameters follow, as in expectimax:depth=3,cutoff=0.001
    #[arg(long, value_name = "PLAYER")]
    player: PlayerSpec,
    #[command(flatten)]
    place: RunPlace,
    /// Play this many games instead of evaluating all boards [default: 1000 for players that must be sampled]
    #[arg(long, value_name = "N", conflicts_with = "no_losses",
          value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    games: Option<u64>,
    /// Set the seed of the games [default: 1]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Compute only the value of the player, not the losses of its moves, which is faster
    #[arg(long)]
    no_losses: bool,
    /// Drop boards that a game reaches with less than this probability; 0 drops none
    #[arg(long, value_name = "P", default_value = "1e-30", value_parser = chance, allow_negative_numbers = true,
          conflicts_with = "games")]
    cutoff: f64,
    /// Use this many threads [default: all]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Limit the memory for boards [default: half of the memory of this machine or container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    memory: Option<ByteSize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Number of games by default.
const GAMES: u64 = 1_000;

/// Default seed.
const SEED: u64 = 1;

impl Args {
    fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED)
    }
}

/// Result of an evaluation.
#[allow(clippy::large_enum_variant, reason = "only one exists")]
enum Found {
    Exact(ExactEvaluation),
    Sample(Sample),
}

impl Found {
    fn losses(&self) -> Option<&LossTable> {
        match self {
            Found::Exact(exact) => exact.losses.as_ref(),
            Found::Sample(sample) => Some(&sample.losses),
        }
    }
}

/// Value of the start under perfect play, and its error.
#[derive(Clone, Copy)]
struct Perfect {
    value: f64,
    error: f64,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let is_free = args.player.decides() == Decides::Freely;
    if is_free && args.no_losses {
        let message = format!(
            "--no-losses: {} must be sampled, which always measures losses; omit --no-losses",
            args.player
        );
        return Err(Failure::usage(message).into());
    }
    let games = args.games.or(is_free.then_some(GAMES));
    if args.seed.is_some() && games.is_none() {
        let message = format!(
            "--seed: {} is evaluated on all boards without playing games; add --games N",
            args.player
        );
        return Err(Failure::usage(message).into());
    }
    let run = Run::open(args.place.location_to_read()?)?;
    let options = cones::options(limits::memory_or_half(args.memory));
    let oracle = Arc::new(Oracle::with_options(&run, options)?);
    let params = run.params();
    require_usual_rules(params.game())?;
    let engine = Engine::new(params.game().board(), params.game().spawn4());
    let starts = oracle.starts()?;
    let perfect = Perfect { value: starts.expected, error: starts.error_bound };
    let pool = limits::pool(args.threads)?;
    let begun = Instant::now();
    let found = pool.install(|| match games {
        Some(games) => sample(args, &engine, &oracle, games).map(Found::Sample),
        None => go_through(args, &engine, &oracle).map(Found::Exact),
    })?;
    if let Found::Sample(sample) = &found
        && sample.stats.games() == 0
    {
        return Err(Failure::failed("no game was played to its end".to_owned()).into());
    }
    let report = Report { args, engine, objective: params.game().objective(), perfect, oracle: &oracle };
    let seconds = begun.elapsed().as_secs_f64();
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", report.json(&found, seconds)?)?;
    } else {
        report.write(&mut out, &found, seconds)?;
    }
    Ok(())
}

/// Evaluates all boards that a player can reach.
fn go_through(args: &Args, engine: &Engine, oracle: &Arc<Oracle>) -> Result<ExactEvaluation> {
    let bytes = limits::memory_or_half(args.memory);
    let limits = EvaluationLimits { bytes, least_chance: args.cutoff, losses: !args.no_losses };
    let line = ProgressLine::new("evaluate");
    let show = |at: EvaluationProgress| {
        let share = f64::from(at.layer) / f64::from(at.last_layer);
        let layer = format!("layer {} of {}", count(at.layer), count(at.last_layer));
        line.show(share, &[layer, format!("{} boards", count(at.boards))]);
    };
    let found = exactly(engine, &args.player, oracle, limits, show);
    line.finish();
    found.map_err(|error| failure(args, error))
}

/// The error of an evaluation. Errors of the run are not wrapped, because their type determines the remedy.
fn failure(args: &Args, error: EvaluateError) -> anyhow::Error {
    match error {
        EvaluateError::Memory { layer, bytes, limit } => Failure::failed(format!(
            "{} reaches more boards than memory holds: those around layer {} take {}, the limit is {}; give more \
             --memory, a larger --cutoff, or --games N to play games instead",
            args.player,
            count(layer),
            SizeUnits::of(limit).size(bytes),
            SizeUnits::of(limit).size(limit),
        ))
        .into(),
        EvaluateError::Query(error) | EvaluateError::Player(PlayerError::Query(error)) => error.into(),
        EvaluateError::Player(error) => error.into(),
    }
}

/// Plays games with progress on stderr.
fn sample(args: &Args, engine: &Engine, oracle: &Arc<Oracle>, games: u64) -> Result<Sample> {
    let line = ProgressLine::new("evaluate");
    let played = AtomicU64::new(0);
    let show = || {
        let played = 1 + played.fetch_add(1, Ordering::Relaxed);
        let text = format!("game {} of {}", count(played), count(games));
        line.show(played as f64 / games as f64, &[text]);
    };
    let found = sampled(engine, &args.player, oracle, args.seed(), games, show);
    line.finish();
    let found = found.map_err(|error| failure(args, error))?;
    if let Some(failure) = &found.first_failure {
        let failed = units::several(found.stats.failed(), "game");
        display::print_note(&format!(
            "warning: the result leaves out {failed} that ended early; the first: {failure}"
        ));
    }
    Ok(found)
}

struct Report<'a> {
    args: &'a Args,
    engine: Engine,
    objective: Objective,
    perfect: Perfect,
    oracle: &'a Oracle,
}

/// Smallest number of games with a loss that allows an estimate by losses. From this number on, the normal
/// approximation is good enough.
const LEAST_LOSSY_GAMES: u64 = 30;

/// An estimate and its 95% confidence interval.
struct Estimate {
    value: f64,
    low: f64,
    high: f64,
    half_width: f64,
    /// Measurement that the estimate is based on.
    by: &'static str,
}

impl Estimate {
    /// Estimate of `number` minus the estimated value.
    fn below(&self, number: f64) -> Self {
        Self { value: number - self.value, low: number - self.high, high: number - self.low, ..*self }
    }

    /// `1,234.5 ± 6.7`, or `0.950 (0.764 to 0.991)` if the value is not in the middle of the interval.
    fn text(&self, decimals: usize) -> String {
        let off_centre = (self.high + self.low) / 2.0 - self.value;
        if off_centre.abs() * 1e6 > self.half_width {
            let [value, low, high] =
                [self.value, self.low, self.high].map(|number| units::mean(number, decimals));
            return format!("{value} ({low} to {high})");
        }
        units::interval(self.value, self.half_width, decimals)
    }
}

impl Report<'_> {
    /// A loss in the units of the objective.
    fn loss(&self, loss: f64) -> String {
        self.objective.unit().text(loss, 3)
    }

    /// The narrower of two estimates of a sampled player's value.
    ///
    /// The estimate by losses needs enough games with a loss. Its interval is too narrow with few such games, and
    /// undefined without any.
    fn estimate(&self, sample: &Sample) -> Estimate {
        let around = |value: f64, half_width: f64, by| Estimate {
            value,
            low: value - half_width,
            high: value + half_width,
            half_width,
            by,
        };
        let found = if self.objective.unit() == ValueUnit::Points {
            let (mean, half_width) = sample.stats.mean_score();
            around(mean, half_width, "scores")
        } else {
            let WonShare { share, low, high, .. } = sample.stats.won();
            Estimate { value: share, low, high, half_width: (high - low) / 2.0, by: "games won" }
        };
        let (lost, half_width) = sample.lost;
        let by_losses = around(self.perfect.value - lost, half_width, "losses");
        let is_sound = sample.lossy_games >= LEAST_LOSSY_GAMES;
        if is_sound && by_losses.half_width < found.half_width { by_losses } else { found }
    }

    fn write(&self, out: &mut impl Write, found: &Found, seconds: f64) -> Result<()> {
        output::write_field(out, "player", &self.args.player)?;
        output::write_field(out, "board", format!("{}, {}", self.engine.size(), self.objective))?;
        output::write_field(out, "perfect", units::value_with_bound(self.perfect.value, self.perfect.error))?;
        match found {
            Found::Exact(exact) => self.write_exact(out, exact)?,
            Found::Sample(sample) => self.write_sample(out, sample)?,
        }
        if let Some(losses) = found.losses() {
            self.write_losses(out, losses)?;
        }
        writeln!(out)?;
        Ok(output::write_field(out, "time", units::time(seconds))?)
    }

    fn write_exact(&self, out: &mut impl Write, exact: &ExactEvaluation) -> Result<()> {
        let lost = self.perfect.value - exact.value;
        output::write_field(out, "player's", units::value_with_bound(exact.value, exact.error))?;
        // Account for the rounding of the difference and of the sum of the bounds.
        let error = (exact.error + self.perfect.error + lost.abs() * f64::EPSILON).next_up();
        output::write_field(out, "loses", units::value_with_bound(lost, error))?;
        output::write_field(out, "moves", format!("{} a game", units::mean(exact.moves, 1)))?;
        let alike = match self.args.player.decides() {
            Decides::ByTurnedBoard => "not up to symmetry",
            _ => "up to symmetry",
        };
        output::write_field(out, "boards", format!("{}, {alike}", count(exact.boards)))?;
        if exact.left_out > 0.0 {
            output::write_field(out, "left out", format!("{:.1e} of all games", exact.left_out))?;
        }
        writeln!(out)?;
        let rows: Vec<_> = exact
            .reached
            .iter()
            .map(|&(exponent, share)| vec![count(1u32 << exponent), units::probability(share)])
            .collect();
        Ok(output::write_all_columns(out, &["tile", "reached"], &[], &rows)?)
    }

    fn write_sample(&self, out: &mut impl Write, sample: &Sample) -> Result<()> {
        let stats = &sample.stats;
        output::write_field(out, "games", format!("{}, seed {}", count(stats.games()), self.args.seed()))?;
        if stats.failed() > 0 {
            output::write_field(out, "failed", format!("{}, not counted below", count(stats.failed())))?;
        }
        let decimals = if self.objective.unit() == ValueUnit::Points { 1 } else { 6 };
        let of_player = self.estimate(sample);
        let value = format!("{}, by its {}", of_player.text(decimals), of_player.by);
        output::write_field(out, "player's", value)?;
        output::write_field(out, "loses", of_player.below(self.perfect.value).text(decimals))?;
        let moves = stats.moves() as f64 / stats.games().max(1) as f64;
        output::write_field(out, "moves", format!("{} a game", units::mean(moves, 1)))?;
        writeln!(out)?;
        let reached = stats.reached().map(|(exponent, share)| {
            let interval = [share.low, share.high].map(units::share).join(" to ");
            vec![count(1u32 << exponent), units::share(share.share), interval]
        });
        let header = ["tile", "reached", "95% confidence"];
        Ok(output::write_all_columns(out, &header, &[], &reached.collect::<Vec<_>>())?)
    }

    fn write_losses(&self, out: &mut impl Write, losses: &LossTable) -> Result<()> {
        let all = [("all".to_owned(), &losses.all)];
        let groups = losses.by_largest.iter().rev().map(|(e, of)| (count(1u32 << e), of)).chain(all);
        let groups: Vec<_> = groups.collect();

        writeln!(out)?;
        let rows: Vec<_> = groups
            .iter()
            .map(|(name, of)| {
                let (moves, best) = (units::mean(of.moves, 2), units::share(of.share_best()));
                vec![name.clone(), moves, best, self.loss(of.mean())]
            })
            .collect();
        output::write_all_columns(out, &["largest tile", "moves a game", "best", "mean loss"], &[], &rows)?;

        writeln!(out)?;
        let limit = |limit: f64| if limit >= 1.0 { count(limit as u64) } else { limit.to_string() };
        let limits = losses.limits().map(limit);
        let last = format!(">= {}", limits.last().map_or("", String::as_str));
        let sizes = limits.iter().map(|limit| format!("< {limit}")).chain([last]).enumerate();
        let sizes = sizes.map(|(i, size)| if i == 0 { format!("lose {size}") } else { size });
        let header: Vec<String> = ["largest tile".to_owned()].into_iter().chain(sizes).collect();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let rows: Vec<_> = groups
            .into_iter()
            .map(|(name, of)| {
                let share = |moves: f64| units::share(if of.moves > 0.0 { moves / of.moves } else { 0.0 });
                [name].into_iter().chain(of.by_size.into_iter().map(share)).collect()
            })
            .collect();
        output::write_all_columns(out, &header, &[], &rows)?;
        for worst in &losses.worst {
            writeln!(out)?;
            self.write_worst(out, worst)?;
        }
        Ok(())
    }

    fn write_worst(&self, out: &mut impl Write, worst: &WorstMove) -> Result<()> {
        let times = worst.times.map_or_else(String::new, |times| format!(", {times:.1e} times a game"));
        let name = worst.direction.name();
        output::write_field(out, "worst", format!("{name} loses {}{times}", self.loss(worst.loss)))?;
        output::write_field(out, "board", worst.board.to_text(self.engine.size()))?;
        let evaluation = self.oracle.evaluate(worst.board, &|| true)?;
        let values = evaluation.moves.iter().map(|made| {
            let value = made.outcome.map_or("not legal".to_owned(), |outcome| self.loss(outcome.value));
            format!("{} {value}", made.direction.name())
        });
        Ok(output::write_field(out, "values", values.collect::<Vec<_>>().join(", "))?)
    }

    fn json(&self, found: &Found, seconds: f64) -> Result<Value> {
        let Perfect { value, error } = self.perfect;
        let mut json = json!({
            "player": self.args.player.to_string(),
            "board": self.engine.size().to_string(),
            "objective": self.objective.to_string(),
            "spawn4": self.engine.spawn4(),
            "perfect": { "value": value, "error": error },
            "seconds": seconds,
        });
        match found {
            Found::Exact(exact) => {
                let tiles = exact.reached.iter();
                let tiles = tiles.map(|&(e, share)| json!({ "tile": 1u32 << e, "reached": share }));
                json["exact"] = json!({
                    "value": exact.value,
                    "error": exact.error,
                    "moves": exact.moves,
                    "boards": exact.boards,
                    "left_out": exact.left_out,
                    "up_to_symmetry": self.args.player.decides() != Decides::ByTurnedBoard,
                    "tiles": tiles.collect::<Vec<_>>(),
                });
            }
            Found::Sample(sample) => {
                let stats = &sample.stats;
                let (score, score_half_width) = stats.mean_score();
                let of_player = self.estimate(sample);
                let (lost, lost_half_width) = sample.lost;
                let tiles = stats.reached();
                let tiles = tiles.map(|(e, share)| json!({ "tile": 1u32 << e, "reached": share }));
                json["sampled"] = json!({
                    "value": of_player.value,
                    "low": of_player.low,
                    "high": of_player.high,
                    "half_width": of_player.half_width,
                    "estimated_by": of_player.by,
                    "seed": self.args.seed(),
                    "games": stats.games(),
                    "failed": stats.failed(),
                    "score": { "mean": score, "half_width": score_half_width },
                    "lost": { "mean": lost, "half_width": lost_half_width },
                    "moves": stats.moves() as f64 / stats.games().max(1) as f64,
                    "tiles": tiles.collect::<Vec<_>>(),
                });
            }
        }
        if let Some(losses) = found.losses() {
            json["losses"] = self.losses_json(losses)?;
        }
        Ok(json)
    }

    fn losses_json(&self, losses: &LossTable) -> Result<Value> {
        let mut worst = Vec::new();
        for position in &losses.worst {
            let evaluation = self.oracle.evaluate(position.board, &|| true)?;
            let values = evaluation.moves.iter();
            let values =
                values.map(|made| (made.direction.name(), made.outcome.map(|outcome| outcome.value)));
            worst.push(json!({
                "board": position.board.to_text(self.engine.size()),
                "move": position.direction.name(),
                "loss": position.loss,
                "times_a_game": position.times,
                "values": values.collect::<std::collections::BTreeMap<_, _>>(),
            }));
        }
        let by_largest = losses.by_largest.iter();
        let by_largest = by_largest.map(|(e, of)| json!({ "tile": 1u32 << e, "losses": of }));
        let by_layer = losses.by_layer.iter();
        let by_layer = by_layer.map(|(layer, of)| json!({ "layer": layer, "losses": of }));
        Ok(json!({
            "sizes_below": losses.limits(),
            "all": losses.all,
            "by_largest_tile": by_largest.collect::<Vec<_>>(),
            "by_layer": by_layer.collect::<Vec<_>>(),
            "worst": worst,
        }))
    }
}
