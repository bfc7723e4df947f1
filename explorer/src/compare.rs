//! Answers of all served runs about one board.

use axum::extract::State;
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_proto::v1;
use exact2048_server::{Comparison, RunAnswer, compare};
use exact2048_solution::StateView;
use serde::{Deserialize, Serialize};

use crate::state::Explorer;
use crate::url_query::UrlQuery;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareQuery {
    board: String,
    /// Whether to compute values of runs that store best moves.
    #[serde(default)]
    values: bool,
}

#[derive(Serialize)]
pub struct CompareReply {
    /// Runs with the same rules and objective are together, the best value first.
    answers: Vec<AnswerView>,
    refusals: Vec<RefusalView>,
}

/// Answer of a run.
#[derive(Serialize)]
struct AnswerView {
    run: String,
    objective: String,
    #[serde(flatten)]
    state: StateView,
}

/// Reason why a run has no answer.
#[derive(Serialize)]
struct RefusalView {
    run: String,
    reason: String,
}

/// `GET /api/v1/compare`.
pub async fn compare_runs(
    State(explorer): State<Explorer>,
    UrlQuery(asked): UrlQuery<CompareQuery>,
) -> Result<JsonReply<CompareReply>, RequestFailure> {
    let board = v1::Board { spelling: Some(v1::board::Spelling::Text(asked.board)) };
    let Comparison { answers, refusals } =
        compare(explorer.runs(), explorer.turns(), &board, asked.values).await;
    let answer = |of: RunAnswer| AnswerView {
        objective: of.snapshot.params.game().objective().to_string(),
        state: StateView::new(&of.answer, &of.perspective),
        run: of.run,
    };
    Ok(JsonReply(CompareReply {
        answers: answers.into_iter().map(answer).collect(),
        refusals: refusals
            .into_iter()
            .map(|(run, status)| RefusalView { run, reason: status.message().to_owned() })
            .collect(),
    }))
}
