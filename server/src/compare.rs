//! Answers of all served runs about one board.
//!
//! Several formations may fit a position of the real game, and the best of their values is the best lower bound.

use std::cmp::Ordering;
use std::sync::Arc;

use exact2048_game::{Game, Perspective};
use exact2048_proto::v1;
use exact2048_solution::StateAnswer;
use tonic::Status;

use crate::messages::{self, asked_of};
use crate::runs::{NamedRun, Runs};
use crate::served::RunSnapshot;
use crate::state::answer_state;
use crate::turns::Turns;

/// Answer of one run.
pub struct RunAnswer {
    /// Name of the run.
    pub run: String,
    /// The run.
    pub snapshot: Arc<RunSnapshot>,
    /// Answer about the board.
    pub answer: StateAnswer,
    /// How the answer shows boards.
    pub perspective: Perspective,
    /// Cost of the answer.
    pub cost: v1::Cost,
}

/// Answers of the runs that know a board, and the reasons of the others by name of the run.
///
/// Runs with the same rules and objective are together, in the order of the first of them. Of these, the best value is
/// first.
pub struct Comparison {
    /// The answers.
    pub answers: Vec<RunAnswer>,
    /// The reasons.
    pub refusals: Vec<(String, Status)>,
}

/// Asks all runs about a board, one after another. `with_values` is that of [`answer_state`].
pub async fn compare(runs: &Runs, turns: &Turns, board: &v1::Board, with_values: bool) -> Comparison {
    let (mut answers, mut refusals) = (Vec::new(), Vec::new());
    for run in runs.iter() {
        match answer_of(run, turns, board.clone(), with_values).await {
            Ok(answer) => answers.push(answer),
            Err(status) => refusals.push((run.name.clone(), status)),
        }
    }
    let games: Vec<Game> = answers.iter().map(|of| *of.snapshot.params.game()).collect();
    let group = |of: &RunAnswer| games.iter().position(|game| is_same_goal(game, of.snapshot.params.game()));
    answers.sort_by(|a, b| group(a).cmp(&group(b)).then_with(|| better_first(a, b)));
    Comparison { answers, refusals }
}

async fn answer_of(
    run: &NamedRun,
    turns: &Turns,
    board: v1::Board,
    with_values: bool,
) -> Result<RunAnswer, Status> {
    let snapshot = run.served.now();
    let asked = asked_of(Some(board), snapshot.params.game())?;
    let (answer, cost) = answer_state(snapshot.oracle()?, turns, asked.board, with_values).await?;
    Ok(RunAnswer { run: run.name.clone(), snapshot, answer, perspective: asked.perspective, cost })
}

/// Whether values of two games mean the same, apart from the stones.
fn is_same_goal(one: &Game, other: &Game) -> bool {
    let goal = |game: &Game| (game.objective(), game.spawn4(), game.discount(), game.spawner());
    goal(one) == goal(other)
}

/// Orders answers of the same goal. Answers without values are last.
fn better_first(a: &RunAnswer, b: &RunAnswer) -> Ordering {
    let value = |of: &RunAnswer| match &of.answer {
        StateAnswer::Values(of) => Some(of.value),
        StateAnswer::BestMove(_) => None,
    };
    let larger_first = match (value(a), value(b)) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => return b.is_some().cmp(&a.is_some()),
    };
    match a.snapshot.params.game().objective().is_less_better() {
        true => larger_first.reverse(),
        false => larger_first,
    }
}

impl From<Comparison> for v1::CompareRunsResponse {
    fn from(comparison: Comparison) -> Self {
        let answer = |of: RunAnswer| v1::RunAnswer {
            run: of.run,
            objective: of.snapshot.params.game().objective().to_string(),
            answer: Some(v1::GetValueResponse {
                cost: Some(of.cost),
                ..messages::answer(&of.answer, &of.perspective)
            }),
        };
        let refusal = |(run, status): (String, Status)| v1::RunRefusal {
            run,
            code: status.code() as u32,
            reason: status.message().to_owned(),
        };
        Self {
            answers: comparison.answers.into_iter().map(answer).collect(),
            refusals: comparison.refusals.into_iter().map(refusal).collect(),
        }
    }
}
