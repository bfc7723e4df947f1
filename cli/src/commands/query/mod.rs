//! `exact2048 query`: the values of states and of their moves.

mod answerer;
mod lines;
mod print;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_game::Asked;
use exact2048_solution::QueryError;

use crate::cones::ConeOptions;
use crate::failure::Failure;
use crate::network::ClientArgs;
use crate::place::StoreOptions;
use answerer::Answerer;
use print::Printer;

/// Options of `query`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 query --run runs/3x3 \"2 0 0 / 0 2 0 / 0 0 0\"
  exact2048 query --run runs/3x3 --json \"2,.,./.,2,./.,.,.\"
  exact2048 query --run runs/3x3 --json - < boards.txt
  exact2048 query --server http://127.0.0.1:2048 \"2 0 0 / 0 2 0 / 0 0 0\"

Rows are separated by '/' or line ends, cells by spaces or commas; 0 or '.' is an
empty cell. You can give any image of a board under rotation and reflection; the
answer has the moves of the board as given. If the run has locks, a board without x
is a position of the real game: its largest tiles take the places of the locks.

The value of a state is the expected further score, or the probability of reaching
the tile. The value of a move includes the score of the move. Moves are equal if
their stored values have the same bits.

If the run stores best moves (solve --values best-move), the answer is a best move
without values unless --value is given. Of equal moves the answer is the first on
the stored image of the board; see docs/policies.md.

If the run does not store a value (solve --keep), the command computes it from the
next stored layers, to the same bits, and caches it. If the run keeps fewer layers
than the default, answers state their cost. docs/keep.md explains time and memory.

The exit code is 3 if a state is not reachable, 2 if a text is not a board, and 1 for
any other failure. With several boards, the command answers all that it can and
returns the lowest of these codes.")]
pub struct Args {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    store: StoreOptions,
    /// Query the run with this name on the server [default: the first run]
    #[arg(long, value_name = "NAME", requires = "server", conflicts_with = "run")]
    server_run: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    cones: ConeOptions,
    /// Limit the memory for each computed value, for example to 8GiB [default: half of the memory of this machine or
    /// container]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, conflicts_with = "server")]
    memory: Option<ByteSize>,
    /// Compute values too, if the run stores best moves (solve --values best-move)
    #[arg(long)]
    value: bool,
    /// Query this board; - reads boards from standard input, one per line
    #[arg(value_name = "BOARD", allow_hyphen_values = true)]
    board: String,
    /// Accept the rest of a board that the shell split into words
    #[arg(hide = true)]
    rest: Vec<String>,
    /// Print one JSON object for each board, one per line
    #[arg(long)]
    json: bool,
}

/// Options for the source of answers.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct Source {
    /// Read the solved run at this location: a directory, file:///DIR, or s3://BUCKET/PREFIX (keys from the environment)
    #[arg(long, value_name = "DIR|URL")]
    run: Option<OsString>,
    /// Ask a server (see serve) instead: http://HOST:PORT, or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    if args.board.starts_with("--") {
        let message = format!("expected a board or an option of query, found {}; see --help", args.board);
        return Err(Failure::usage(message).into());
    }
    let text = [std::slice::from_ref(&args.board), &args.rest].concat().join(" ");
    let answerer = Answerer::new(args)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let printer = Printer { params: answerer.params().clone(), json: args.json };
    if text == "-" {
        return lines::answer(answerer, &printer, &mut out);
    }
    let Asked { board, perspective } =
        Asked::parse(&text, answerer.params().game()).map_err(QueryError::from)?;
    let answer = answerer.answer(&[board]).swap_remove(0)?;
    printer.write(&mut out, &answer, &perspective)?;
    Ok(out.flush()?)
}
