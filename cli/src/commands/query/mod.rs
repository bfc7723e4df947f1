//! `exact2048 query`: what a state is worth, and each of its moves.

mod answerer;
mod lines;
mod print;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_game::board::Board;
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
empty cell. Any image of a board under rotation and reflection may be given; moves
are those of the board as given.

A state's value is what is still to come: the score to be expected, or the chance of
reaching the tile. A move's value includes the score of the move. Moves are equal
where no stored bit tells them apart.

Of a run that stores best moves (solve --values best-move) the answer is a best move,
of equal ones the first on the board's image that is stored, unless --value asks for
more; docs/policies.md.

What a run does not store (solve --keep) is worked out from the next layers that it
stores, to the same bits, and kept for the next question; docs/keep.md says what that
takes. Of such runs it is said what an answer cost.

The exit code is 3 where a state is not reachable, 2 where a text is no board, and 1
for any other failure. Of several boards, all are answered that can be; the code is
the first of 1, 2, 3 that any of them calls for.")]
pub struct Args {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    store: StoreOptions,
    /// Which of the runs of the server is asked, by its name there [default: the first]
    #[arg(long, value_name = "NAME", requires = "server", conflicts_with = "run")]
    server_run: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    cones: ConeOptions,
    /// Memory that may be taken for each value that has to be worked out, for example 8GiB [default: half of what there
    /// is]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, conflicts_with = "server")]
    memory: Option<ByteSize>,
    /// Of a run that stores best moves (solve --values best-move): work out values too, as where few layers are kept
    #[arg(long)]
    value: bool,
    /// The board, or - to read boards from standard input, one a line
    #[arg(value_name = "BOARD", allow_hyphen_values = true)]
    board: String,
    /// The rest of a board that the shell took apart
    #[arg(hide = true)]
    rest: Vec<String>,
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

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    if args.board.starts_with("--") {
        let message =
            format!("{} is no option of query, and no board; --help tells what there is", args.board);
        return Err(Failure::usage(message).into());
    }
    let text = [std::slice::from_ref(&args.board), &args.rest].concat().join(" ");
    let answerer = Answerer::new(args)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let printer = Printer { params: answerer.params().clone(), json: args.json };
    if text == "-" {
        return lines::answer(answerer, &printer, &mut out);
    }
    let board = Board::parse(&text, answerer.params().board).map_err(QueryError::from)?;
    let answer = answerer.answer(&[board]).swap_remove(0)?;
    printer.write(&mut out, &answer)?;
    Ok(out.flush()?)
}
