//! `exact2048 query`: what a state is worth, and each of its moves.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use exact2048_game::Objective;
use exact2048_game::board::{Board, BoardSize, tile};
use exact2048_game::rules::Move;
use exact2048_run::{Evaluation, Oracle, QueryError, Run};
use serde::Serialize;

use crate::failure::{self, Failure};
use crate::network::ClientArgs;
use crate::output;
use crate::place::StoreOptions;
use crate::remote::Remote;

/// Options of `query`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 query --run runs/3x3 \"2 0 0 / 0 2 0 / 0 0 0\"
  exact2048 query --run runs/3x3 --json \"2,.,./.,2,./.,.,.\"
  exact2048 query --run runs/3x3 --json - < boards.txt
  exact2048 query --server http://127.0.0.1:2048 \"2 0 0 / 0 2 0 / 0 0 0\"

Rows are separated by '/', cells by spaces or commas; 0 or '.' is an empty cell. Any image of a
board under rotation and reflection may be given; moves are those of the board as given.

The exit code is 3 where a state is not reachable, 2 where a text is no board, and 1 for any other
failure. Of several boards, all are answered that can be; the code is the first of 1, 2, 3 that any
of them calls for.")]
pub struct Args {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    client: ClientArgs,
    /// The board, or - to read boards from standard input, one a line
    #[arg(value_name = "BOARD")]
    board: String,
    /// Print one JSON object a board, on a line of its own
    #[arg(long)]
    json: bool,
}

/// Where the answers are.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct Source {
    /// Where a solved run is: a directory, file:///DIR, or s3://BUCKET/PREFIX (keys from the environment)
    #[arg(long, value_name = "DIR|URL")]
    run: Option<OsString>,
    /// Ask a server (see serve) instead: http://HOST:PORT, or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    board: String,
    canonical: String,
    layer: u32,
    value: f64,
    error_bound: f64,
    best: Option<&'static str>,
    moves: Vec<MoveAnswer>,
}

#[derive(Serialize)]
struct MoveAnswer {
    #[serde(rename = "move")]
    direction: &'static str,
    legal: bool,
    score: Option<u32>,
    value: Option<f64>,
    afterstate: Option<String>,
}

#[derive(Serialize)]
struct Refusal<'a> {
    board: &'a str,
    error: String,
}

/// What answers: a run that is read here, or a server. Both give the same answers, word for word.
enum Answerer {
    Run(Box<Oracle>),
    Server(Box<Remote>),
}

impl Answerer {
    fn new(args: &Args) -> Result<Self> {
        match (&args.source.run, &args.source.server) {
            (_, Some(url)) => Ok(Self::Server(Box::new(Remote::connect(url, &args.client)?))),
            (Some(run), None) => {
                args.client.refuse()?;
                Ok(Self::Run(Box::new(Oracle::new(&Run::open(args.store.locate_to_read(run)?)?)?)))
            }
            (None, None) => Err(Failure::usage("give --run or --server".to_owned()).into()),
        }
    }

    fn size(&self) -> BoardSize {
        match self {
            Self::Run(oracle) => oracle.params().board,
            Self::Server(remote) => remote.size(),
        }
    }

    fn objective(&self) -> Objective {
        match self {
            Self::Run(oracle) => oracle.params().objective,
            Self::Server(remote) => remote.objective(),
        }
    }

    fn evaluate(&self, text: &str) -> Result<Evaluation> {
        let board = Board::parse(text, self.size()).map_err(QueryError::from)?;
        match self {
            Self::Run(oracle) => Ok(oracle.evaluate(board)?),
            Self::Server(remote) => remote.evaluate(board),
        }
    }
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let answerer = Answerer::new(args)?;
    let mut out = io::stdout().lock();
    if args.board == "-" {
        return answer_lines(&answerer, args.json, &mut out);
    }
    let answer = answerer.evaluate(&args.board)?;
    write_answer(&mut out, &answer, &answerer, args.json)
}

/// Answers every line of standard input; lines that have no answer are told and the rest goes on.
fn answer_lines(answerer: &Answerer, json: bool, out: &mut impl Write) -> Result<()> {
    let mut codes = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line.context("cannot read boards from standard input")?;
        if line.trim().is_empty() {
            continue;
        }
        match answerer.evaluate(&line) {
            Ok(answer) => {
                write_answer(out, &answer, answerer, json)?;
                if !json {
                    writeln!(out)?;
                }
            }
            Err(error) => {
                codes.push(failure::code(&error));
                if json {
                    let refusal = Refusal { board: line.trim(), error: format!("{error:#}") };
                    writeln!(out, "{}", serde_json::to_string(&refusal)?)?;
                } else {
                    eprintln!("error: {:?}: {error:#}", line.trim());
                }
            }
        }
    }
    // From the worst on: a failure, what is no board, what is not reachable.
    codes.into_iter().min().map_or(Ok(()), |code| Err(Failure::told(code).into()))
}

fn write_answer(out: &mut impl Write, answer: &Evaluation, answerer: &Answerer, json: bool) -> Result<()> {
    let size = answerer.size();
    if json {
        writeln!(out, "{}", serde_json::to_string(&in_json(answer, size))?)?;
    } else {
        write_for_people(out, answer, size, answerer.objective())?;
    }
    Ok(())
}

fn in_json(answer: &Evaluation, size: BoardSize) -> Answer {
    let moves = answer.moves.iter().map(|m| MoveAnswer {
        direction: m.direction.name(),
        legal: m.outcome.is_some(),
        score: m.outcome.map(|(_, score, _)| score),
        value: m.outcome.map(|(_, _, value)| value),
        afterstate: m.outcome.map(|(after, _, _)| after.to_text(size)),
    });
    Answer {
        board: answer.board.to_text(size),
        canonical: answer.canonical.to_text(size),
        layer: answer.layer.0,
        value: answer.value,
        error_bound: answer.error_bound,
        best: answer.best.map(Move::name),
        moves: moves.collect(),
    }
}

fn write_for_people(
    out: &mut impl Write,
    answer: &Evaluation,
    size: BoardSize,
    objective: Objective,
) -> io::Result<()> {
    writeln!(out, "{}", grid(answer.board, size))?;
    output::write_field(out, "layer", answer.layer)?;
    output::write_field(out, "canonical", answer.canonical.to_text(size))?;
    output::write_field(out, "objective", objective)?;
    output::write_field(
        out,
        "value",
        format!("{:.6} (error at most {:.1e})", answer.value, answer.error_bound),
    )?;
    if answer.best.is_none() {
        return writeln!(out, "\nNo move is legal: the game is over.");
    }
    let row = |m: &exact2048_run::MoveValue| {
        let mark = if answer.best == Some(m.direction) { "best" } else { "" };
        let cells = match m.outcome {
            Some((after, score, value)) => [score.to_string(), format!("{value:.6}"), after.to_text(size)],
            None => ["-".to_owned(), "-".to_owned(), "not legal".to_owned()],
        };
        let [score, value, after] = cells;
        vec![m.direction.name().to_owned(), mark.to_owned(), score, value, after]
    };
    let mut table =
        output::table(&["move", "", "score", "value", "afterstate"], 2, answer.moves.iter().map(row));
    if let Some(column) = table.column_mut(4) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    writeln!(out)?;
    output::write_table(out, &table)
}

/// The board as a drawing.
fn grid(board: Board, size: BoardSize) -> Table {
    let mut grid = Table::new();
    grid.load_style(UTF8_FULL_CONDENSED);
    for row in 0..size.rows() {
        grid.add_row((0..size.cols()).map(|col| match tile(board.get(row * size.cols() + col)) {
            0 => ".".to_owned(),
            tile => tile.to_string(),
        }));
    }
    grid.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    grid
}
