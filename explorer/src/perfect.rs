//! Answers requests for the statistics of perfect play.

use axum::extract::State;
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_stats::has_usual_rules;
use serde::Deserialize;
use tonic::Status;

use crate::state::Explorer;
use crate::statistics::PlayAnswer;
use crate::url_query::UrlQuery;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayQuery {
    run: Option<String>,
}

/// `GET /api/v1/perfect-play`.
pub async fn perfect_play(
    State(explorer): State<Explorer>,
    UrlQuery(asked): UrlQuery<PlayQuery>,
) -> Result<JsonReply<PlayAnswer>, RequestFailure> {
    let served = explorer.served(asked.run.as_deref())?;
    let run = served.now();
    run.oracle()?;
    if !has_usual_rules(run.params.game()) {
        let what = "the values of this run do not describe random games. Statistics require random spawns, the score or a \
                    tile to reach as the objective, and no discount";
        return Err(Status::failed_precondition(what).into());
    }
    Ok(JsonReply(explorer.perfect_play().find(served, &run).await?))
}
