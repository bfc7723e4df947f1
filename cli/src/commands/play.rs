//! `exact2048 play`: plays many games and prints their statistics.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use exact2048_game::{Board, BoardSize, Spawn4};
use exact2048_players::{
    EarlyEnd, Engine, GameId, GameRecord, PlayerError, PlayerSpec, Rules, Stats, WonShare, play,
};
use exact2048_solution::{Oracle, QueryError, Run};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::place::StoreOptions;
use crate::units::{self, count};
use crate::{Failure, cones, display, limits, output, output_file};

/// Options of `play`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 play --player random --board 4x4 --games 10000
  exact2048 play --player expectimax:depth=3 --games 10
  exact2048 play --player perfect --run runs/3x3 --games 1000
  exact2048 play --player cmd:./mine --games 10
  exact2048 play --player perfect --run runs/3x3 --from \"64 8 2 / 16 4 0 / 2 0 0\"
  exact2048 play --player greedy --games 5 --record games.jsonl
  exact2048 play --player monte-carlo --watch

The same seed gives the same games with any number of threads. docs/players.md lists the players, their parameters
and the protocol for external programs.")]
pub struct Args {
    /// Choose the player: random, greedy, corner, linear-paths, minimax, expectimax, monte-carlo, win-fraction, perfect or
    /// cmd:PROGRAM; parameters follow, as in expectimax:depth=3,cutoff=0.001
    #[arg(long, value_name = "PLAYER")]
    player: PlayerSpec,
    /// Set the rows and columns [default: 4x4, or those of the run]
    #[arg(long, value_name = "RxC", conflicts_with = "run")]
    board: Option<BoardSize>,
    /// Look up the moves of the perfect player in this solved run
    #[arg(long, value_name = "DIR|URL")]
    run: Option<std::ffi::OsString>,
    #[command(flatten)]
    store: StoreOptions,
    /// Play this many games
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    games: u64,
    /// Set the seed of all games
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Set the probability that a spawned tile is a 4 [default: 0.1, or that of the run]
    #[arg(long, value_name = "P", conflicts_with = "run")]
    spawn4: Option<Spawn4>,
    /// End a game when its board holds this tile [default: never, or at the tile of the run's objective]
    #[arg(long, value_name = "TILE", value_parser = tile)]
    until: Option<u8>,
    /// Begin all games at this board. Rows are separated by / [default: the start of a game, or the position from which the
    /// run begins]
    #[arg(long, value_name = "BOARD", allow_hyphen_values = true)]
    from: Option<String>,
    /// Play by the rules of the program printed in the win-fraction paper: one tile in four is a 4, and moves that change
    /// nothing are allowed
    #[arg(long, conflicts_with = "spawn4")]
    paper_rules: bool,
    /// Use this many threads [default: all]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Write every game to this new file, one JSON object per line
    #[arg(long, value_name = "FILE", value_parser = crate::parsing::local_path())]
    record: Option<PathBuf>,
    /// Play one game and show it
    #[arg(long, conflicts_with_all = ["games", "json", "record", "threads"])]
    watch: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn tile(text: &str) -> Result<u8, String> {
    let tile: Option<u32> = text.parse().ok();
    let tile = tile.filter(|tile| tile.is_power_of_two() && (4..=32_768).contains(tile));
    tile.map(|tile| tile.trailing_zeros() as u8)
        .ok_or_else(|| "expected a power of two from 4 to 32768".to_owned())
}

/// Engine, oracle and rules of all games.
struct Table {
    engine: Engine,
    oracle: Option<Arc<Oracle>>,
    rules: Rules,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let table = table(args)?;
    if args.watch { watch(args, &table) } else { play_all(args, &table) }
}

fn table(args: &Args) -> Result<Table> {
    if args.player.needs_run() && args.run.is_none() {
        return Err(
            Failure::usage("the perfect player needs a solved run; give one with --run".to_owned()).into()
        );
    }
    let at = |engine: Engine, oracle, until, begin| -> Result<Table> {
        let of_the_paper = args.paper_rules.then(|| Rules::of_the_paper(&engine, until));
        let rules = of_the_paper.unwrap_or_else(|| Rules::until(until));
        let given = args.from.as_deref().map(|text| from(text, &engine, rules.target)).transpose()?;
        Ok(Table { engine, oracle, rules: Rules { from: given.or(begin), ..rules } })
    };
    let Some(place) = &args.run else {
        let size = args.board.map_or_else(|| BoardSize::new(4, 4), Ok)?;
        return at(Engine::new(size, args.spawn4.unwrap_or_default()), None, args.until, None);
    };
    let run = Run::open(args.store.locate_to_read(place)?)?;
    let params = run.params();
    let wanted = params.game().winning_exponent();
    if let (Some(until), Some(wanted)) = (args.until, wanted)
        && args.player.needs_run()
        && until > wanted
    {
        let message = format!(
            "--until {}: expected a tile of at most {}, where the games of the run end",
            1u32 << until,
            1u32 << wanted
        );
        return Err(Failure::usage(message).into());
    }
    let engine = Engine::new(params.game().board(), params.game().spawn4());
    let options = cones::options(limits::memory_or_half(None));
    let oracle =
        if args.player.needs_run() { Some(Arc::new(Oracle::with_options(&run, options)?)) } else { None };
    at(engine, oracle, args.until.or(wanted), params.game().from())
}

/// The board of `--from`. Games need a legal move there, and must not be won.
fn from(text: &str, engine: &Engine, target: Option<u8>) -> Result<Board> {
    let wrong = |why: String| Failure::usage(format!("--from: {why}"));
    let board = Board::parse(text, engine.size()).map_err(|error| wrong(error.to_string()))?;
    let text = board.to_text(engine.size());
    let largest = engine.size().largest(board);
    if let Some(target) = target.filter(|&target| largest >= target) {
        let (target, found) = (1u32 << target, 1u32 << largest);
        let why = format!(
            "expected a board below the tile {target}, at which games end, found {found} in {text}; give an earlier board"
        );
        return Err(wrong(why).into());
    }
    if engine.moves(board).is_empty() {
        let why = format!("expected a board with a legal move, found none in {text}; give an earlier board");
        return Err(wrong(why).into());
    }
    Ok(board)
}

/// Shows one game, move by move.
fn watch(args: &Args, table: &Table) -> Result<()> {
    let mut player = args.player.player(&table.engine, table.oracle.as_ref())?;
    let mut out = io::stdout().lock();
    let on_screen = out.is_terminal();
    let (mut moves, mut written) = (0u64, Ok(()));
    let id = GameId { seed: args.seed, number: 0 };
    let (game, failure) = play(&table.engine, id, &mut *player, &table.rules, |board, score| {
        if written.is_ok() {
            written = show(&mut out, on_screen, &table.engine, board, score, moves);
        }
        moves += 1;
    });
    written?;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    writeln!(out, "{}", if game.cut_short == Some(EarlyEnd::Won) { "won" } else { "no move is legal" })?;
    Ok(())
}

/// Time between two boards on a terminal. It lets a person follow the game.
const FRAME: Duration = Duration::from_millis(60);

fn show(
    out: &mut impl Write,
    on_screen: bool,
    engine: &Engine,
    board: Board,
    score: u64,
    moves: u64,
) -> io::Result<()> {
    if on_screen {
        // Moves the cursor to the top left and clears the screen.
        write!(out, "\x1b[H\x1b[J")?;
    }
    let (rows, cols) = (engine.size().rows(), engine.size().cols());
    for row in 0..rows {
        let cells = (0..cols).map(|col| match board.get(row * cols + col) {
            0 => format!("{:>6}", "."),
            exponent => format!("{:>6}", 1u32 << exponent),
        });
        writeln!(out, "{}", cells.collect::<String>())?;
    }
    writeln!(out, "score {}, {} moves\n", count(score), count(moves))?;
    out.flush()?;
    if on_screen {
        std::thread::sleep(FRAME);
    }
    Ok(())
}

/// Number of games that one player object plays in sequence. Starting a player can cost more than a game.
const BATCH: u64 = 16;

/// Largest number of failed games that are reported individually.
const MOST_REPORTED: u64 = 5;

/// Error of a record that cannot be written. It is a `Failure`, because the program treats a bare broken-pipe
/// error as a closed stdout, which is no failure.
fn not_recorded(args: &Args, error: &io::Error) -> Failure {
    let file = args.record.as_deref().unwrap_or(Path::new(""));
    Failure::failed(format!("cannot write {}: {error}", file.display()))
}

fn play_all(args: &Args, table: &Table) -> Result<()> {
    let records = args.record.as_deref().map(|path| {
        let file = match File::create_new(path) {
            // Pipes and devices exist already and lose no data.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !path.is_file() => {
                File::options().write(true).open(path)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                output_file::require_free(path, "--record")?;
                Err(error)
            }
            created => created,
        };
        let file = file.map_err(|error| not_recorded(args, &error))?;
        anyhow::Ok(Mutex::new(BufWriter::new(file)))
    });
    let records = records.transpose()?;
    let name = args.player.to_string();
    let progress = ProgressBar::new(args.games);
    progress
        .set_style(ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len} games, ETA {eta}")?);
    let failures = AtomicU64::new(0);
    let report = |number: u64, failure: &PlayerError| {
        let reported = failures.fetch_add(1, Ordering::Relaxed);
        if reported < MOST_REPORTED {
            progress
                .suspend(|| display::print_note(&format!("warning: game {number} ended early: {failure}")));
        }
    };
    let batch = |batch: u64| -> Result<Stats> {
        let mut player = args.player.player(&table.engine, table.oracle.as_ref())?;
        let (mut stats, mut lines) = (Stats::default(), Vec::new());
        for number in batch * BATCH..args.games.min((batch + 1) * BATCH) {
            let id = GameId { seed: args.seed, number };
            let (game, failure) = play(&table.engine, id, &mut *player, &table.rules, |_, _| {});
            match failure {
                None => {}
                // A player's program may fail in a single game. But if the run cannot answer for a board, every game
                // that reaches this board fails, so stop all games.
                Some(PlayerError::Query(error)) if !matches!(error, QueryError::Unreachable { .. }) => {
                    return Err(error.into());
                }
                Some(failure) => report(number, &failure),
            }
            if records.is_some() {
                serde_json::to_writer(&mut lines, &GameRecord::new(&table.engine, id, &name, &game))?;
                lines.push(b'\n');
            }
            stats.add(&game);
            progress.inc(1);
        }
        if let Some(records) = &records {
            let written = records.lock().write_all(&lines);
            written.map_err(|error| not_recorded(args, &error))?;
        }
        Ok(stats)
    };
    let pool = limits::pool(args.threads)?;
    let begun = Instant::now();
    let stats = pool.install(|| {
        let batches = (0..args.games.div_ceil(BATCH)).into_par_iter().map(batch);
        batches.try_reduce(Stats::default, |a, b| Ok(a.with(b)))
    });
    let seconds = begun.elapsed().as_secs_f64();
    progress.finish_and_clear();
    let stats = stats?;
    if let Some(records) = records {
        let written = records.into_inner().flush();
        written.map_err(|error| not_recorded(args, &error))?;
    }
    if stats.games() == 0 {
        return Err(Failure::failed("no game was played to its end".to_owned()).into());
    }
    let mut out = io::stdout().lock();
    if args.json {
        return Ok(writeln!(out, "{}", summary(args, table, &stats, seconds))?);
    }
    write_for_people(&mut out, args, table, &stats, seconds)
}

/// Printed quantiles of the scores.
const QUANTILES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

fn write_for_people(
    out: &mut impl Write,
    args: &Args,
    table: &Table,
    stats: &Stats,
    seconds: f64,
) -> Result<()> {
    let (mean, half) = stats.mean_score();
    output::write_field(out, "player", &args.player)?;
    output::write_field(out, "board", table.engine.size())?;
    if let Some(from) = table.rules.from {
        output::write_field(out, "from", from.to_text(table.engine.size()))?;
    }
    output::write_field(out, "games", format!("{}, seed {}", count(stats.games()), args.seed))?;
    if stats.failed() > 0 {
        output::write_field(out, "failed", format!("{}, not counted below", count(stats.failed())))?;
    }
    if let Some(until) = table.rules.target {
        let WonShare { share, low, high, .. } = stats.won();
        let (share, [low, high], tile) =
            (units::share(share), [low, high].map(units::share), count(1u32 << until));
        let text = format!("{share} reached {tile} ({low} to {high})");
        output::write_field(out, "won", text)?;
    }
    output::write_field(out, "mean score", units::interval(mean, half, 1))?;
    let rate = stats.moves() as f64 / seconds.max(1e-9);
    let moves = stats.moves() as f64 / stats.games().max(1) as f64;
    output::write_field(out, "moves", format!("{} a game, {}", units::mean(moves, 1), units::rate(rate)))?;
    let header = ["score", "least", "5%", "25%", "50%", "75%", "95%", "most"];
    let scores = stats.quantiles(QUANTILES).map(count);
    let scores = std::iter::once(String::new()).chain(scores).collect();
    writeln!(out)?;
    output::write_all_columns(out, &header, &[0], &[scores])?;
    writeln!(out)?;
    let merges: Vec<(u8, f64)> = stats.merges_a_game().collect();
    let made = |exponent: u8| merges.iter().find(|&&(e, _)| e + 1 == exponent).map_or(0.0, |&(_, n)| n);
    let reached = stats.reached().map(|(exponent, share)| {
        vec![
            count(1u32 << exponent),
            units::share(share.share),
            format!("{} to {}", units::share(share.low), units::share(share.high)),
            units::mean(made(exponent), 2),
        ]
    });
    let header = ["tile", "reached", "95% confidence", "made a game"];
    Ok(output::write_all_columns(out, &header, &[], &reached.collect::<Vec<_>>())?)
}

fn summary(args: &Args, table: &Table, stats: &Stats, seconds: f64) -> Value {
    let (mean, half_width) = stats.mean_score();
    let quantiles = QUANTILES.into_iter().zip(stats.quantiles(QUANTILES));
    let tiles = stats.reached().map(|(e, share)| json!({ "tile": 1u32 << e, "reached": share }));
    let merges = stats.merges_a_game().map(|(e, n)| json!({ "tile": 1u32 << e, "merges": n }));
    json!({
        "player": args.player.to_string(),
        "board": table.engine.size().to_string(),
        "spawn4": table.engine.spawn4(),
        "from": table.rules.from.map(|board| board.to_text(table.engine.size())),
        "paper_rules": args.paper_rules,
        "seed": args.seed,
        "games": stats.games(),
        "failed": stats.failed(),
        "won": table.rules.target.map(|until| json!({ "tile": 1u32 << until, "share": stats.won() })),
        "score": {
            "mean": mean,
            "half_width": half_width,
            "quantiles": quantiles.map(|(share, score)| json!({ "share": share, "score": score })).collect::<Vec<_>>(),
        },
        "moves": stats.moves(),
        "seconds": seconds,
        "tiles": tiles.collect::<Vec<_>>(),
        "merges_a_game": merges.collect::<Vec<_>>(),
    })
}
