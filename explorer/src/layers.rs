//! Values of a sample of the states of a layer.

use axum::extract::State;
use exact2048_game::Layer;
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_solution::{Oracle, QuestionLimits, ValueSums};
use serde::{Deserialize, Serialize};
use tonic::Status;

use crate::sample::sample;
use crate::state::Explorer;
use crate::url_query::{UrlQuery, count_of};

/// Default and maximum number of sampled states of a layer.
const SAMPLE: u32 = 500;
const MOST_SAMPLED: u32 = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerQuery {
    run: Option<String>,
    layer: u32,
    sample: Option<u32>,
    #[serde(default)]
    seed: u64,
}

/// The values of some states of a layer.
#[derive(Serialize)]
pub struct ValuesView {
    layer: u32,
    states: u64,
    afterstates: u64,
    /// Number of sampled states with values.
    sampled: u64,
    least: Option<f64>,
    mean: Option<f64>,
    most: Option<f64>,
}

/// `GET /api/v1/layer`.
pub async fn layer(
    State(explorer): State<Explorer>,
    UrlQuery(asked): UrlQuery<LayerQuery>,
) -> Result<JsonReply<ValuesView>, RequestFailure> {
    let run = explorer.run(asked.run.as_deref())?;
    if run.params.contents().stores_best_moves() {
        let what = "the run stores best moves and few values, so the values of a layer are not available";
        return Err(Status::failed_precondition(what).into());
    }
    let (layer, seed) = (Layer(asked.layer), asked.seed);
    let counts = run.layers.iter().find(|counts| counts.layer == layer);
    let last = run.layers.last().map(|last| last.layer);
    let counts = *counts.ok_or_else(|| no_such_layer(layer, run.params.first_layer(), last))?;
    let most = count_of("sample", asked.sample, SAMPLE, MOST_SAMPLED)?;
    let question = move |oracle: &Oracle, limits: &QuestionLimits<'_>| {
        oracle.values_as(&sample(oracle, layer, most, seed, limits.wanted)?, limits)
    };
    let values = explorer.ask_heavy(run.oracle()?, question).await?;
    let values: ValueSums = values.into_iter().flatten().collect();
    Ok(JsonReply(ValuesView {
        layer: layer.0,
        states: counts.states,
        afterstates: counts.afterstates,
        sampled: values.count(),
        least: values.least(),
        mean: values.mean(),
        most: values.most(),
    }))
}

/// The error for a layer that the run does not have.
pub fn no_such_layer(layer: Layer, first: Layer, last: Option<Layer>) -> Status {
    let expected = match last {
        Some(last) => format!("an even number from {first} to {last}"),
        None => "a finished layer, and none is finished yet".to_owned(),
    };
    exact2048_net::status::invalid_argument(
        "layer",
        format!("the run has no layer {layer}: expected {expected}"),
    )
}
