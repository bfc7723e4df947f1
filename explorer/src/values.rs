//! Values of a state, of its moves, and of the possible spawns after them.

use std::collections::BTreeMap;

use axum::extract::State;
use exact2048_game::board::{Board, tile};
use exact2048_game::{Asked, Game, Perspective, SpawnKind, Spawner, rules};
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_proto::v1;
use exact2048_server::{answer_state, asked_of};
use exact2048_solution::{Evaluation, Oracle, QuestionLimits, StateAnswer, StateView};
use serde::{Deserialize, Serialize};

use crate::state::Explorer;
use crate::url_query::UrlQuery;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValuesQuery {
    run: Option<String>,
    board: String,
    /// Whether to return the value of each possible spawn.
    #[serde(default)]
    spawns: bool,
    /// Whether to compute values even if the run stores best moves.
    #[serde(default)]
    values: bool,
}

#[derive(Serialize)]
pub struct ValuesReply {
    #[serde(flatten)]
    state: StateView,
    /// Spawns by move, for legal moves that do not win.
    #[serde(skip_serializing_if = "Option::is_none")]
    spawns: Option<BTreeMap<&'static str, Vec<SpawnView>>>,
    cost: CostView,
}

/// A possible spawn, and the value of the board after it.
#[derive(Serialize)]
struct SpawnView {
    cell: usize,
    tile: u32,
    /// `None` if spawns are not random.
    chance: Option<f64>,
    value: Option<f64>,
}

#[derive(Serialize)]
struct CostView {
    computed_states: u64,
    stored_states: u64,
    found_states: u64,
    seconds: f64,
}

impl From<v1::Cost> for CostView {
    fn from(cost: v1::Cost) -> Self {
        let v1::Cost { computed_states, stored_states, found_states, seconds } = cost;
        Self { computed_states, stored_states, found_states, seconds }
    }
}

/// `GET /api/v1/values`.
pub async fn values(
    State(explorer): State<Explorer>,
    UrlQuery(asked): UrlQuery<ValuesQuery>,
) -> Result<JsonReply<ValuesReply>, RequestFailure> {
    let run = explorer.run(asked.run.as_deref())?;
    let spelled = v1::Board { spelling: Some(v1::board::Spelling::Text(asked.board)) };
    let Asked { board, perspective } = asked_of(Some(spelled), run.params.game())?;
    let oracle = run.oracle()?;
    let (answer, cost) = answer_state(oracle.clone(), explorer.turns(), board, asked.values).await?;
    let spawns = match &answer {
        StateAnswer::Values(evaluation) if asked.spawns => {
            let mut places = places_of(evaluation, run.params.game(), &perspective);
            let boards: Vec<Board> = places.iter().map(|place| place.board).collect();
            let question =
                move |oracle: &Oracle, limits: &QuestionLimits<'_>| oracle.values_as(&boards, limits);
            let (values, _) = explorer.turns().ask(oracle, None, question).await?;
            for (place, value) in places.iter_mut().zip(values) {
                place.spawn.value = value;
            }
            let mut by_move: BTreeMap<_, Vec<_>> = BTreeMap::new();
            places.into_iter().for_each(|place| by_move.entry(place.made).or_default().push(place.spawn));
            Some(by_move)
        }
        _ => None,
    };
    Ok(JsonReply(ValuesReply { state: StateView::new(&answer, &perspective), spawns, cost: cost.into() }))
}

/// A possible spawn after a move, and the board after the spawn.
struct SpawnPlace {
    made: &'static str,
    board: Board,
    spawn: SpawnView,
}

/// The possible spawns after the moves of a state. A winning move has no spawns.
fn places_of(evaluation: &Evaluation, game: &Game, perspective: &Perspective) -> Vec<SpawnPlace> {
    let size = game.board();
    let mut places = Vec::new();
    for (of_run, outcome) in evaluation.moves.iter().filter_map(|m| Some((m.direction, m.outcome?))) {
        if game.is_won(outcome.after) {
            continue;
        }
        let made = perspective.shown_move(of_run).name();
        let empty: Vec<usize> = rules::empty_cells(outcome.after, size).collect();
        for (cell, spawn) in empty.iter().flat_map(|&cell| SpawnKind::ALL.map(|spawn| (cell, spawn))) {
            let weight = spawn.weight(game.spawn4());
            if weight == 0 {
                continue;
            }
            let chance = f64::from(weight) / (f64::from(game.spawn4().denominator()) * empty.len() as f64);
            let board = outcome.after.with(cell, spawn.exponent());
            let spawn = SpawnView {
                cell: perspective.shown_cell(cell),
                tile: tile(spawn.exponent()),
                chance: (game.spawner() == Spawner::Random).then_some(chance),
                value: None,
            };
            places.push(SpawnPlace { made, board, spawn });
        }
    }
    places
}
