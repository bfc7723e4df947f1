//! Asking a server, as if its run were here.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use exact2048_game::board::{Board, BoardSize};
use exact2048_game::{Layer, Objective};
use exact2048_net::client::{self, Connected};
use exact2048_proto::v1::board::Spelling;
use exact2048_proto::v1::query_client::QueryClient;
use exact2048_proto::v1::{self, GetRunRequest, GetValueRequest, GetValueResponse};
use exact2048_run::{Evaluation, MoveValue};
use tokio::runtime::Runtime;
use tonic::{Code, Request, Status};

use crate::Failure;
use crate::network::{ClientArgs, refusal};

/// Time for an answer, which takes a server milliseconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server with a solved run.
pub struct Remote {
    runtime: Runtime,
    client: QueryClient<Connected>,
    size: BoardSize,
    objective: Objective,
}

impl Remote {
    /// Connects to the server at `url`; a failure where its run is not solved.
    pub fn connect(url: &str, args: &ClientArgs) -> Result<Self> {
        exact2048_net::install_crypto();
        let options = args.options(url)?;
        // With a thread of its own: the server's pings are answered also while somebody thinks about the next board.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.context("cannot start a runtime")?;
        let mut client = QueryClient::new(runtime.block_on(client::connect(&options))?);
        let run = runtime.block_on(client.get_run(within(GetRunRequest {}))).map_err(|s| failure(&s))?;
        let run = run.into_inner();
        if !run.not_solved.is_empty() {
            return Err(anyhow!(run.not_solved));
        }
        let parameters = run.parameters.context("the server does not say what its run is")?;
        let size = BoardSize::new(parameters.rows.into(), parameters.columns.into())?;
        Ok(Self { runtime, client, size, objective: parameters.objective.parse()? })
    }

    /// The size of the run's board.
    pub fn size(&self) -> BoardSize {
        self.size
    }

    /// What the run maximises.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// The value of a state and of each of its moves.
    pub fn evaluate(&self, board: Board) -> Result<Evaluation> {
        let board = Some(v1::Board { spelling: Some(Spelling::Packed(board.0)) });
        // Clients of one connection are cheap, and each is its own to change.
        let mut client = self.client.clone();
        let answer = self.runtime.block_on(client.get_value(within(GetValueRequest { board })));
        Ok(evaluation(&answer.map_err(|status| failure(&status))?.into_inner()))
    }
}

fn within<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    request
}

/// What a status is on the command line: the same message and exit code that a run here would have led to.
fn failure(status: &Status) -> anyhow::Error {
    let message = status.message().to_owned();
    match status.code() {
        Code::NotFound => Failure::unreachable(message).into(),
        Code::InvalidArgument => Failure::usage(message).into(),
        Code::FailedPrecondition => anyhow!(message),
        _ => refusal("query server", status),
    }
}

fn evaluation(answer: &GetValueResponse) -> Evaluation {
    let direction = |direction| exact2048_server::direction_of(direction);
    let moves = answer.moves.iter().filter_map(|m| {
        let outcome = m.legal.then_some((Board(m.packed_afterstate), m.score, m.value));
        Some(MoveValue { direction: direction(m.direction())?, outcome })
    });
    Evaluation {
        board: Board(answer.packed_board),
        canonical: Board(answer.packed_canonical),
        layer: Layer(answer.layer),
        value: answer.value,
        error_bound: answer.error_bound,
        best: direction(answer.best()),
        moves: moves.collect(),
    }
}
