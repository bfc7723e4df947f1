//! Clients of servers with a solved run.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use exact2048_game::rules::Move;
use exact2048_game::{Board as Packed, Game, Objective, Params};
use exact2048_net::client::{ClientOptions, Connected, connect};
use exact2048_net::status::words_of;
use exact2048_net::text::plain_words;
use exact2048_net::tls::TlsFiles;
use exact2048_net::token::Token;
use exact2048_proto::v1::query_client::QueryClient;
use exact2048_proto::v1::{
    BatchGetValuesRequest, BatchGetValuesResponse, BoardStatus, Direction, GetRunRequest, GetRunResponse,
    GetValueRequest, GetValueResponse, MoveValue, RunParameters, board::Spelling,
};
use exact2048_text::with_causes;
use parking_lot::Mutex;
use pyo3::prelude::*;
use tokio::runtime::Runtime;
use tonic::{Code, Request, Status};

use crate::answers::{self, Actions, MoveAnswer, Source};
use crate::board::{Question, read_question};
use crate::errors::{
    BoardError, Exact2048Error, NotSolvedError, ServerError, UnreachableError, UsageError, of_board,
};
use crate::process::INTERVAL;
use crate::rules;

/// Environment variable with the default token.
const TOKEN_VARIABLE: &str = "EXACT2048_TOKEN";

/// Timeout of a request. The computation of values may take minutes, and the server has its own limits.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Largest number of characters to show of a server's message.
const MOST_WORDS: usize = 2000;

/// A client of a server with a solved run. Its values and best moves are those of the run.
#[pyclass(module = "exact2048", frozen)]
pub(crate) struct Client {
    options: ClientOptions,
    /// The connection of the process that made the last request.
    ///
    /// Callers hold the interpreter when they take this lock. So no other thread holds the lock when the process forks.
    link: Mutex<Arc<Link>>,
    /// Board and objective of the run, with usual rules otherwise.
    game: Game,
    parameters: RunParameters,
    run: GetRunResponse,
}

#[pymethods]
impl Client {
    /// Connects to a server. The default token is in EXACT2048_TOKEN. Certificates and keys are paths of files.
    #[new]
    #[pyo3(signature = (url, *, token=None, tls_ca=None, tls_cert=None, tls_key=None, insecure=false))]
    fn new(
        py: Python<'_>,
        url: String,
        token: Option<String>,
        tls_ca: Option<PathBuf>,
        tls_cert: Option<PathBuf>,
        tls_key: Option<PathBuf>,
        insecure: bool,
    ) -> PyResult<Self> {
        exact2048_net::install_crypto();
        let token = match token {
            Some(token) => Some((token, "token")),
            None => std::env::var(TOKEN_VARIABLE).ok().map(|token| (token, TOKEN_VARIABLE)),
        };
        let token = token.map(|(text, origin)| Token::new(&text, origin)).transpose();
        let token = token.map_err(|error| UsageError::new_err(error.to_string()))?;
        let tls = TlsFiles { cert: tls_cert, key: tls_key, ca: tls_ca };
        let options = ClientOptions { server: url, tls, token, insecure };
        py.detach(|| {
            let link = Link::connect(&options)?;
            let run = link.ask(|mut client| async move { client.get_run(within(GetRunRequest {})).await })?;
            let run = run.into_inner();
            if !run.not_solved.is_empty() {
                return Err(NotSolvedError::new_err(plain_words(&run.not_solved, MOST_WORDS).to_string()));
            }
            let missing = || ServerError::new_err("expected the parameters of the server's run, found none");
            let parameters = run.parameters.clone().ok_or_else(missing)?;
            let size = parameters.size().map_err(|error| of_board(&error))?;
            let objective = parameters.objective.parse::<Objective>();
            let objective = objective.map_err(|error| ServerError::new_err(error.to_string()))?;
            let params = Params::builder(size, objective).build();
            let game = *params.map_err(|error| ServerError::new_err(error.to_string()))?.game();
            Ok(Self { options, link: Mutex::new(Arc::new(link)), game, parameters, run })
        })
    }

    /// The value of a board under perfect play.
    fn value<'py>(&self, py: Python<'py>, board: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::value(py, self, &Question::One(read_question(board, &self.game)?.one()?))
    }

    /// The values of an array of boards: float64 [N].
    fn values<'py>(&self, py: Python<'py>, boards: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::value(py, self, &read_question(boards, &self.game)?.many()?)
    }

    /// The value of each move, including its score.
    fn action_values<'py>(&self, py: Python<'py>, boards: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::action_values(py, self, &read_question(boards, &self.game)?)
    }

    /// The best move.
    fn best<'py>(&self, py: Python<'py>, boards: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        answers::best(py, self, &read_question(boards, &self.game)?)
    }

    /// The URL of the server.
    #[getter]
    fn url(&self) -> &str {
        &self.options.server
    }

    /// The size of the boards: "3x3".
    #[getter]
    fn board(&self) -> String {
        self.game.board().to_string()
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.game.board().rows(), self.game.board().cols())
    }

    /// The objective, in the form that `solve` accepts.
    #[getter]
    fn objective(&self) -> &str {
        &self.parameters.objective
    }

    /// The rules of the game as a text. Equal rules have equal texts.
    #[getter]
    fn rules(&self) -> String {
        rules::in_words(&self.parameters)
    }

    /// Number of states, up to symmetry.
    #[getter]
    fn states(&self) -> u64 {
        self.run.states
    }

    /// The fingerprint of the run. Equal results have equal fingerprints.
    #[getter]
    fn fingerprint(&self) -> &str {
        &self.run.fingerprint
    }

    /// Returns the client itself, because clients are immutable.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!(
            "<Client {:?}: {} {}, {} states>",
            self.options.server,
            self.game.board(),
            self.parameters.objective,
            self.run.states
        )
    }
}

fn within<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    request
}

/// Creates the exception for a server's status.
fn failure(status: &Status) -> PyErr {
    let text = plain_words(words_of(status), MOST_WORDS).to_string();
    match status.code() {
        Code::NotFound => UnreachableError::new_err(text),
        Code::InvalidArgument => BoardError::new_err(text),
        Code::FailedPrecondition => NotSolvedError::new_err(text),
        Code::DataLoss => Exact2048Error::new_err(text),
        code => {
            let cause = std::error::Error::source(status).map(|cause| format!(": {}", with_causes(cause)));
            ServerError::new_err(format!(
                "the query server answered {code:?}: {text}{}",
                cause.unwrap_or_default()
            ))
        }
    }
}

/// A connection, and the process that opened it. A fork has none of the connection's threads.
struct Link {
    process: u32,
    parts: Arc<(Runtime, QueryClient<Connected>)>,
}

impl Link {
    fn connect(options: &ClientOptions) -> PyResult<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let connection = wait(&runtime, connect(options))?;
        let connection = connection.map_err(|error| ServerError::new_err(with_causes(&error)))?;
        Ok(Self { process: std::process::id(), parts: Arc::new((runtime, QueryClient::new(connection))) })
    }

    /// Makes a request. An interruption by the user ends the request.
    fn ask<T, A: Future<Output = Result<T, Status>>>(
        &self,
        question: impl FnOnce(QueryClient<Connected>) -> A,
    ) -> PyResult<T> {
        let (runtime, client) = &*self.parts;
        // A call needs a mutable client. A clone shares the connection and is cheap.
        wait(runtime, question(client.clone()))?.map_err(|status| failure(&status))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // In a fork, the runtime would wait for threads that only the parent has. So a fork never drops the runtime.
        if self.process != std::process::id() {
            std::mem::forget(Arc::clone(&self.parts));
        }
    }
}

/// Waits for an answer. An interruption by the user ends the wait.
fn wait<T>(runtime: &Runtime, answer: impl Future<Output = T>) -> PyResult<T> {
    let mut answer = pin!(answer);
    loop {
        match runtime.block_on(async { tokio::time::timeout(INTERVAL, &mut answer).await }) {
            Ok(answer) => return Ok(answer),
            Err(_) => Python::attach(|py| py.check_signals())?,
        }
    }
}

impl Client {
    /// The connection of this process. A fork opens a new connection.
    fn link(&self) -> PyResult<Arc<Link>> {
        let link = Python::attach(|_| Arc::clone(&self.link.lock()));
        if link.process == std::process::id() {
            return Ok(link);
        }
        let link = Arc::new(Link::connect(&self.options)?);
        Python::attach(|_| *self.link.lock() = Arc::clone(&link));
        Ok(link)
    }

    /// Requests answers for boards, in messages as large as the server accepts.
    fn ask(
        &self,
        boards: &[Packed],
        with_moves: bool,
        with_values: bool,
    ) -> PyResult<Vec<BatchGetValuesResponse>> {
        let link = self.link()?;
        let most = if with_moves { self.run.max_batch_boards_with_moves } else { self.run.max_batch_boards };
        let mut answers = Vec::new();
        for some in boards.chunks(most.max(1) as usize) {
            let boards = some.iter().map(|board| board.0).collect();
            let request = BatchGetValuesRequest { boards, with_moves, with_values };
            let answer = link.ask(|mut client| async move {
                let answer = client.batch_get_values(within(tokio_stream::once(request))).await?;
                answer.into_inner().message().await
            });
            let answer = answer?.unwrap_or_default();
            let found = if with_moves { answer.answers.len() } else { answer.values.len() };
            for (what, found) in [("statuses", answer.statuses.len()), ("answers", found)] {
                if found != some.len() {
                    let expected = some.len();
                    let text = format!("expected {expected} {what} from the server, found {found}");
                    return Err(ServerError::new_err(text));
                }
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// The answers with moves; `None` for unreachable boards.
    fn evaluate(&self, boards: &[Packed], with_values: bool) -> PyResult<Vec<Option<GetValueResponse>>> {
        let mut all = Vec::with_capacity(boards.len());
        for BatchGetValuesResponse { answers, statuses, .. } in self.ask(boards, true, with_values)? {
            let is_there =
                |status: i32| [BoardStatus::Ok, BoardStatus::BestMoveOnly].map(i32::from).contains(&status);
            all.extend(
                answers.into_iter().zip(statuses).map(|(answer, status)| is_there(status).then_some(answer)),
            );
        }
        Ok(all)
    }
}

fn best_of(answer: &GetValueResponse) -> Option<Move> {
    match answer.best() {
        Direction::Unspecified => None,
        Direction::Left => Some(Move::Left),
        Direction::Right => Some(Move::Right),
        Direction::Up => Some(Move::Up),
        Direction::Down => Some(Move::Down),
    }
}

/// The value of each move, from an answer with all moves in their usual order.
fn actions_of(answer: &GetValueResponse) -> PyResult<Actions> {
    let listed: Vec<_> = answer.moves.iter().map(MoveValue::direction).collect();
    let order = [Direction::Left, Direction::Right, Direction::Up, Direction::Down];
    if listed != order {
        let text = format!("expected the moves {order:?} from the server, found {listed:?}");
        return Err(ServerError::new_err(text));
    }
    let mut actions = [None; 4];
    for (of_move, action) in answer.moves.iter().zip(&mut actions) {
        *action = of_move.legal.then_some(of_move.value);
    }
    Ok(actions)
}

impl Source for Client {
    fn values(&self, boards: &[Packed]) -> PyResult<Vec<Option<f64>>> {
        let mut all = Vec::with_capacity(boards.len());
        for BatchGetValuesResponse { values, statuses, .. } in self.ask(boards, false, true)? {
            let is_ok = |status: i32| status == i32::from(BoardStatus::Ok);
            all.extend(
                values.into_iter().zip(statuses).map(|(value, status)| is_ok(status).then_some(value)),
            );
        }
        Ok(all)
    }

    fn actions(&self, boards: &[Packed]) -> PyResult<Vec<Option<MoveAnswer>>> {
        let answers = self.evaluate(boards, true)?.into_iter();
        let read = |answer: GetValueResponse| Ok((actions_of(&answer)?, best_of(&answer)));
        answers.map(|answer| answer.map(read).transpose()).collect()
    }

    fn best(&self, boards: &[Packed]) -> PyResult<Vec<Option<Option<Move>>>> {
        let answers = self.evaluate(boards, false)?.into_iter();
        Ok(answers.map(|answer| answer.map(|answer| best_of(&answer))).collect())
    }

    /// Requests the reason from the server.
    fn refusal(&self, board: Packed) -> PyErr {
        let board = Some(exact2048_proto::v1::Board { spelling: Some(Spelling::Packed(board.0)) });
        let request = within(GetValueRequest { board, with_values: false });
        let answer = self
            .link()
            .and_then(|link| link.ask(|mut client| async move { client.get_value(request).await }));
        match answer {
            Err(error) => error,
            Ok(_) => UnreachableError::new_err("the server has no value for this board"),
        }
    }
}
