//! Client of a query server. It answers like a local run.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use exact2048_cluster::wire::params_of;
use exact2048_game::board::Board;
use exact2048_game::packed::PackedRules;
use exact2048_game::{Layer, Params};
use exact2048_net::client::{self, Connected};
use exact2048_net::text::plain_words;
use exact2048_proto::v1::board::Spelling;
use exact2048_proto::v1::query_client::QueryClient;
use exact2048_proto::v1::{
    self, BatchGetValuesRequest, BoardStatus, GetRunRequest, GetValueRequest, GetValueResponse,
};
use exact2048_solution::{Advice, Evaluation, MoveOutcome, MoveValue, StateAnswer};
use tokio::runtime::Runtime;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Code, Request, Status};

use crate::Failure;
use crate::cones::Cost;
use crate::network::{ClientArgs, MOST_WORDS, refusal, words};

/// Timeout of a request. A server needs milliseconds, or minutes if the run stores few layers. The server's own time limit
/// is shorter.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A connection to a server with a solved run. Several threads can share the connection.
pub struct Remote {
    runtime: Runtime,
    client: QueryClient<Connected>,
    /// Name of the run; `None` for the first run of the server.
    run: Option<AsciiMetadataValue>,
    params: Params,
    rules: PackedRules,
}

impl Remote {
    /// Connects to the named run of the server at `url`, or to its first run.
    ///
    /// # Errors
    ///
    /// If the run is not solved, or does not exist.
    pub fn connect(url: &str, run: Option<&str>, args: &ClientArgs) -> Result<Self> {
        exact2048_net::install_crypto();
        let options = args.options(url)?;
        let no_name =
            |name| Failure::usage(format!("expected a name of a run in printable ASCII, found {name:?}"));
        let name = run.map(|name| name.parse().map_err(|_| no_name(name))).transpose()?;
        // A separate thread answers the pings of the server while the user types the next board.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.context("cannot start a runtime")?;
        let mut client = QueryClient::new(runtime.block_on(client::connect(&options))?);
        let run = runtime.block_on(client.get_run(within(GetRunRequest {}, name.as_ref())));
        let run = run.map_err(|status| match status.code() {
            // The server has no run of this name.
            Code::NotFound => Failure::usage(words(&status)).into(),
            _ => failure(&status),
        })?;
        let run = run.into_inner();
        if !run.not_solved.is_empty() {
            return Err(anyhow!(plain_words(&run.not_solved, MOST_WORDS)));
        }
        let parameters = run.parameters.context("the server returned no parameters of its run")?;
        let params = params_of(&parameters)?;
        let rules = PackedRules::new(params.game().board());
        Ok(Self { runtime, client, run: name, params, rules })
    }

    /// Parameters of the run.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the values of boards and of their moves, or their best moves. Each answer has its cost. The answers are in
    /// the order of `boards`.
    ///
    /// With `with_values`, the answers are values even if the run stores best moves. All answers must fit into one
    /// message.
    ///
    /// # Errors
    ///
    /// Each board has its own result.
    pub fn answer(&self, boards: &[Board], with_values: bool) -> Vec<Result<(StateAnswer, Cost)>> {
        self.runtime.block_on(self.answer_all(boards, with_values))
    }

    async fn answer_all(&self, boards: &[Board], with_values: bool) -> Vec<Result<(StateAnswer, Cost)>> {
        let known = if boards.len() > 1 { self.batch(boards, with_values).await } else { None };
        // Requests the other boards one by one, because only single requests return the reason for each failure.
        let known = known.unwrap_or_else(|| vec![None; boards.len()]);
        let mut answers = Vec::with_capacity(boards.len());
        for (&board, known) in boards.iter().zip(known) {
            answers.push(match known {
                Some(known) => Ok(known),
                None => self.one(board, with_values).await,
            });
        }
        answers
    }

    fn asking<T>(&self, message: T) -> Request<T> {
        within(message, self.run.as_ref())
    }

    async fn one(&self, board: Board, with_values: bool) -> Result<(StateAnswer, Cost)> {
        let board = Some(v1::Board { spelling: Some(Spelling::Packed(board.0)) });
        // Calls need a mutable client, and clones of a client are cheap.
        let answer = self.client.clone().get_value(self.asking(GetValueRequest { board, with_values })).await;
        let answer = answer.map_err(|status| failure(&status))?.into_inner();
        Ok((self.read(&answer), cost(answer.cost, 1)))
    }

    /// Requests all boards in one message. Returns `None` if the request fails, and `None` for each board without an answer.
    async fn batch(&self, boards: &[Board], with_values: bool) -> Option<Vec<Option<(StateAnswer, Cost)>>> {
        let packed = boards.iter().map(|board| board.0).collect();
        let request = BatchGetValuesRequest { boards: packed, with_moves: true, with_values };
        let answers = self.client.clone().batch_get_values(self.asking(tokio_stream::once(request))).await;
        let answer = answers.ok()?.into_inner().message().await.ok()??;
        let is_ok =
            |status: &i32| [BoardStatus::Ok, BoardStatus::BestMoveOnly].map(i32::from).contains(status);
        let each = answer.answers.iter().zip(&answer.statuses);
        let cost = cost(answer.cost, boards.len());
        let answers: Vec<_> =
            each.map(|(answer, status)| is_ok(status).then(|| (self.read(answer), cost))).collect();
        (answers.len() == boards.len()).then_some(answers)
    }

    /// Converts an answer of the server.
    fn read(&self, answer: &GetValueResponse) -> StateAnswer {
        if !answer.best_move_only {
            return StateAnswer::Values(evaluation(answer));
        }
        let board = Board(answer.packed_board);
        StateAnswer::BestMove(Advice {
            board,
            canonical: Board(answer.packed_canonical),
            layer: Layer(answer.layer),
            best: exact2048_server::direction_of(answer.best()),
            moves: self.rules.moves(board),
        })
    }
}

/// A request with a timeout for a named run.
fn within<T>(message: T, run: Option<&AsciiMetadataValue>) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    if let Some(run) = run {
        request.metadata_mut().insert(exact2048_server::RUN_HEADER, run.clone());
    }
    request
}

/// The error for a status, with the message and exit code of a local run.
fn failure(status: &Status) -> anyhow::Error {
    let message = words(status);
    match status.code() {
        Code::NotFound => Failure::unreachable(message).into(),
        Code::InvalidArgument => Failure::usage(message).into(),
        Code::FailedPrecondition => anyhow!(message),
        _ => refusal("query server", status),
    }
}

fn cost(cost: Option<v1::Cost>, boards: usize) -> Cost {
    let v1::Cost { computed_states, stored_states, found_states, seconds } = cost.unwrap_or_default();
    Cost { computed_states, stored_states, found_states, seconds, boards }
}

fn evaluation(answer: &GetValueResponse) -> Evaluation {
    let direction = |direction| exact2048_server::direction_of(direction);
    let moves = answer.moves.iter().filter_map(|m| {
        let outcome = m.legal.then_some(MoveOutcome {
            after: Board(m.packed_afterstate),
            score: m.score,
            value: m.value,
            // Older servers send only the error bound of the board.
            error_bound: m.error_bound.unwrap_or(answer.error_bound),
            worst_spawn: (m.packed_worst_spawn != 0).then_some(Board(m.packed_worst_spawn)),
            is_best: m.best,
            may_be_best: m.may_be_best,
        });
        Some(MoveValue { direction: direction(m.direction())?, outcome })
    });
    Evaluation {
        board: Board(answer.packed_board),
        canonical: Board(answer.packed_canonical),
        layer: Layer(answer.layer),
        is_known_reachable: !answer.reachable_unknown,
        value: answer.value,
        error_bound: answer.error_bound,
        best: direction(answer.best()),
        moves: moves.collect(),
    }
}
