//! Descriptions of the served runs and of their layers.

use axum::extract::State;
use exact2048_game::ValueUnit;
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_proto::v1::RunPhase;
use exact2048_server::{NamedRun, RunSnapshot};
use serde::{Deserialize, Serialize};

use crate::state::Explorer;
use crate::url_query::UrlQuery;

/// Description of a run.
#[derive(Serialize)]
pub struct RunView {
    name: String,
    run_id: String,
    /// Size with the picture of the stones, for example `3x3` or `4x4:..../..../.xxx/.xxx`.
    board: String,
    rows: usize,
    columns: usize,
    objective: String,
    /// Goal of the player in words.
    goal: String,
    /// Unit of the values.
    unit: ValueUnit,
    /// Name of a board's value without a discount.
    value_name: &'static str,
    /// Whether the smaller of two values is better.
    less_is_better: bool,
    /// The tile that ends the game.
    target: Option<u32>,
    spawn4: f64,
    /// Factor of the value of a win for each further move.
    discount: f64,
    spawner: String,
    /// Position from which the run begins; `None` for the starts of games.
    from: Option<String>,
    /// Whether the run stores best moves. If so, the answer for a state has a best move, and values only on request.
    best_moves: bool,
    /// Step to which stored values are rounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_step: Option<String>,
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
        let words = params.game().objective().words();
        Self {
            name: name.to_owned(),
            run_id: run.run_id.clone(),
            board: params.game().board().to_string(),
            rows: params.game().board().rows(),
            columns: params.game().board().cols(),
            objective: params.game().objective().to_string(),
            goal: words.goal,
            unit: params.game().objective().unit(),
            value_name: words.value,
            less_is_better: params.game().objective().is_less_better(),
            target: params.game().winning_exponent().map(|exponent| 1 << exponent),
            spawn4: params.game().spawn4().probability(),
            discount: params.game().discount().factor(),
            spawner: params.game().spawner().to_string(),
            from: params.game().from().map(|board| board.to_text(params.game().board())),
            best_moves: params.contents().stores_best_moves(),
            value_step: params.contents().value_step().map(|step| step.to_string()),
            phase: match run.phase {
                RunPhase::Solved => "solved",
                RunPhase::Enumerated => "enumerated",
                RunPhase::Unfinished | RunPhase::Unspecified => "unfinished",
            },
            not_solved: run.not_solved.clone(),
            first_layer: params.first_layer().0,
            last_layer: run.layers.last().map_or(params.first_layer().0, |counts| counts.layer.0),
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

#[derive(Serialize)]
pub struct RunList {
    runs: Vec<RunView>,
}

/// `GET /api/v1/runs`.
pub async fn runs(State(explorer): State<Explorer>) -> JsonReply<RunList> {
    let describe = |run: &NamedRun| RunView::new(&run.name, &run.served.now());
    JsonReply(RunList { runs: explorer.runs().iter().map(describe).collect() })
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
    /// Whether a solved run stores the values of the layer.
    stores_values: bool,
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
        stores_values: run.params.contents().kept().keeps(counts.layer),
    });
    Ok(JsonReply(LayerList { layers: layers.collect() }))
}
