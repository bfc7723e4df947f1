//! The served runs, by name.

use std::sync::Arc;

use axum::extract::State;
use exact2048_game::{Layer, Objective};
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_net::token::CheckToken;
use exact2048_proto::v1::{Cost, RunPhase};
use exact2048_server::{NamedRun, RunSnapshot, Runs, Served, Turns};
use exact2048_solution::{Oracle, QueryError, QuestionLimits};
use exact2048_stats::FollowerOfRun;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tonic::Status;

use crate::perfect::{PerfectPlay, PlayLimits};
use crate::url_query::UrlQuery;

/// State shared by all request handlers.
#[derive(Clone)]
pub struct Explorer(Arc<Shared>);

struct Shared {
    runs: Runs,
    turns: Turns,
    /// Permits of concurrent requests that read many states.
    threads: Arc<Semaphore>,
    perfect_play: PerfectPlay,
    token: CheckToken,
}

impl Explorer {
    /// Creates an explorer of some runs. The first run is the default.
    ///
    /// Up to `threads` requests that read many states run at once. Long requests wait in `turns`. `follower` follows
    /// perfect play within `memory_bytes` bytes of memory.
    #[must_use]
    pub fn new(
        runs: Runs,
        threads: usize,
        turns: Turns,
        token: CheckToken,
        (follower, memory_bytes): (FollowerOfRun, u64),
    ) -> Self {
        // Half of the threads are reserved for other requests.
        let perfect_play =
            PerfectPlay::new(PlayLimits { follower, threads: (threads / 2).max(1), memory_bytes });
        Self(Arc::new(Shared {
            runs,
            turns,
            threads: Arc::new(Semaphore::new(threads)),
            perfect_play,
            token,
        }))
    }

    /// The latest snapshot of the run with a name.
    pub(crate) fn run(&self, name: Option<&str>) -> Result<Arc<RunSnapshot>, Status> {
        Ok(self.0.runs.named(name)?.now())
    }

    /// The run with a name.
    pub(crate) fn served(&self, name: Option<&str>) -> Result<&Arc<Served>, Status> {
        self.0.runs.named(name)
    }

    /// The statistics of perfect play.
    pub(crate) fn perfect_play(&self) -> &PerfectPlay {
        &self.0.perfect_play
    }

    /// The turns of questions that take long.
    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    /// The check of the token.
    pub(crate) fn token(&self) -> &CheckToken {
        &self.0.token
    }

    /// Asks a question that reads many states.
    pub(crate) async fn ask_heavy<T: Send + 'static>(
        &self,
        oracle: Arc<Oracle>,
        question: impl Fn(&Oracle, &QuestionLimits<'_>) -> Result<T, QueryError> + Clone + Send + 'static,
    ) -> Result<T, Status> {
        let answer = self.0.turns.ask(oracle, Some(&self.0.threads), question).await;
        answer.map(|(answer, Cost { .. })| answer)
    }
}

/// Description of a run.
#[derive(Serialize)]
pub struct RunView {
    name: String,
    run_id: String,
    rows: usize,
    columns: usize,
    objective: String,
    /// Whether the smaller of two values is better.
    less_is_better: bool,
    /// The tile that ends the game.
    target: Option<u32>,
    spawn4: f64,
    /// Factor of the value of a win for each further move.
    discount: f64,
    spawner: String,
    /// Whether the run stores best moves. If so, the answer for a state has a best move, and values only on request.
    best_moves: bool,
    phase: &'static str,
    /// Reason why some or all states have no values.
    not_solved: Option<String>,
    first_layer: u32,
    last_layer: u32,
    layers: usize,
    states: u64,
    afterstates: u64,
    fingerprint: Option<String>,
    start: Option<StartView>,
}

#[derive(Serialize)]
struct StartView {
    expected: f64,
    error_bound: f64,
}

impl RunView {
    fn new(name: &str, run: &RunSnapshot) -> Self {
        let params = &run.params;
        Self {
            name: name.to_owned(),
            run_id: run.run_id.clone(),
            rows: params.board.rows(),
            columns: params.board.cols(),
            objective: params.objective.to_string(),
            less_is_better: less_is_better(params.objective),
            target: params.winning_exponent().map(|exponent| 1 << exponent),
            spawn4: params.spawn4.probability(),
            discount: params.discount.factor(),
            spawner: params.spawner.to_string(),
            best_moves: params.best_moves,
            phase: match run.phase {
                RunPhase::Solved => "solved",
                RunPhase::Enumerated => "enumerated",
                RunPhase::Unfinished | RunPhase::Unspecified => "unfinished",
            },
            not_solved: run.not_solved.clone(),
            first_layer: Layer::FIRST.0,
            last_layer: run.layers.last().map_or(Layer::FIRST.0, |counts| counts.layer.0),
            layers: run.layers.len(),
            states: run.layers.iter().map(|counts| counts.states).sum(),
            afterstates: run.layers.iter().map(|counts| counts.afterstates).sum(),
            fingerprint: run.fingerprint.map(|sum| format!("{sum:032x}")),
            start: run
                .start
                .as_ref()
                .map(|start| StartView { expected: start.expected, error_bound: start.error_bound }),
        }
    }
}

/// Whether the smaller of two values is better.
pub(crate) fn less_is_better(objective: Objective) -> bool {
    matches!(objective, Objective::Lose { .. })
}

#[derive(Serialize)]
pub struct RunList {
    runs: Vec<RunView>,
}

/// `GET /api/v1/runs`.
pub async fn runs(State(explorer): State<Explorer>) -> JsonReply<RunList> {
    let describe = |run: &NamedRun| RunView::new(&run.name, &run.served.now());
    JsonReply(RunList { runs: explorer.0.runs.iter().map(describe).collect() })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayersQuery {
    run: Option<String>,
}

#[derive(Serialize)]
pub struct LayerList {
    layers: Vec<LayerView>,
}

#[derive(Serialize)]
struct LayerView {
    layer: u32,
    states: u64,
    afterstates: u64,
}

/// `GET /api/v1/layers`.
pub async fn layers(
    State(explorer): State<Explorer>,
    UrlQuery(asked): UrlQuery<LayersQuery>,
) -> Result<JsonReply<LayerList>, RequestFailure> {
    let run = explorer.run(asked.run.as_deref())?;
    let layers = run.layers.iter().map(|counts| LayerView {
        layer: counts.layer.0,
        states: counts.states,
        afterstates: counts.afterstates,
    });
    Ok(JsonReply(LayerList { layers: layers.collect() }))
}
