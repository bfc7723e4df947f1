//! The answer about one state, and its JSON.

use exact2048_game::rules::Move;
use exact2048_game::{Board, Perspective};
use serde::Serialize;

use crate::oracle::{Advice, Evaluation, MoveValue};

/// Answer about a state.
#[derive(Clone, Debug)]
pub enum StateAnswer {
    /// The value of the state and of each of its moves.
    Values(Evaluation),
    /// Only a best move, from a run that stores best moves.
    BestMove(Advice),
}

impl StateAnswer {
    /// The board, its canonical image and the sum of its tiles.
    pub fn state(&self) -> (Board, Board, u32) {
        match self {
            Self::Values(of) => (of.board, of.canonical, of.layer.0),
            Self::BestMove(of) => (of.board, of.canonical, of.layer.0),
        }
    }
}

/// An answer as JSON, as `query --json` prints it and the explorer sends it.
#[derive(Clone, Debug, Serialize)]
pub struct StateView {
    board: String,
    canonical: String,
    layer: u32,
    /// `Some(false)` if the run no longer stores which boards of the layer games reach; otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_reachable: Option<bool>,
    /// `None` if the answer is only a best move.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_bound: Option<f64>,
    best: Option<&'static str>,
    moves: Vec<MoveView>,
}

/// A move of an answer as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct MoveView {
    #[serde(rename = "move")]
    direction: &'static str,
    legal: bool,
    score: Option<u32>,
    value: Option<f64>,
    /// `None` also if the bound equals the bound of the board. The two bounds can differ only if values are
    /// floating-point numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_bound: Option<f64>,
    afterstate: Option<String>,
    /// The board after the worst spawn; `None` unless an adversary spawns the tiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    worst_spawn: Option<String>,
    best: bool,
    /// Whether the error bounds do not prove that another move is better; `None` unless the run rounds values.
    #[serde(skip_serializing_if = "Option::is_none")]
    may_be_best: Option<bool>,
}

impl StateView {
    /// The view of an answer, with boards and moves as the user sees them.
    pub fn new(answer: &StateAnswer, perspective: &Perspective) -> Self {
        let (board, canonical, layer) = answer.state();
        let known_reachable = match answer {
            StateAnswer::Values(Evaluation { is_known_reachable: false, .. }) => Some(false),
            StateAnswer::Values(_) | StateAnswer::BestMove(_) => None,
        };
        let (value, error_bound, best, moves) = match answer {
            StateAnswer::Values(of) => {
                let moves = shown_moves(&of.moves, perspective);
                let moves = moves
                    .map(|(shown, m)| MoveView::of_value(shown, m, of.error_bound, perspective))
                    .collect();
                (Some(of.value), Some(of.error_bound), shown_best(of, perspective), moves)
            }
            StateAnswer::BestMove(of) => {
                let moves =
                    Move::ALL.into_iter().map(|made| MoveView::of_advice(made, of, perspective)).collect();
                (None, None, of.best.map(|best| perspective.shown_move(best)), moves)
            }
        };
        Self {
            board: perspective.text(board),
            canonical: canonical.to_text(perspective.size_of_run()),
            layer,
            known_reachable,
            value,
            error_bound,
            best: best.map(Move::name),
            moves,
        }
    }
}

/// The first best move in the order of the shown moves; `None` if no move is legal.
pub fn shown_best(answer: &Evaluation, perspective: &Perspective) -> Option<Move> {
    let is_best = |of: &MoveValue| of.outcome.is_some_and(|outcome| outcome.is_best);
    shown_moves(&answer.moves, perspective).find(|(_, of)| is_best(of)).map(|(shown, _)| shown)
}

/// The values of moves in the order of the shown moves, with these.
pub fn shown_moves<'a>(
    moves: &'a [MoveValue],
    perspective: &'a Perspective,
) -> impl Iterator<Item = (Move, &'a MoveValue)> {
    Move::ALL.into_iter().filter_map(move |shown| {
        let of_run = perspective.of_run(shown);
        Some((shown, moves.iter().find(|made| made.direction == of_run)?))
    })
}

impl MoveView {
    fn of_value(shown: Move, of: &MoveValue, error_bound: f64, perspective: &Perspective) -> Self {
        let outcome = of.outcome;
        Self {
            direction: shown.name(),
            legal: outcome.is_some(),
            score: outcome.map(|outcome| outcome.score),
            value: outcome.map(|outcome| outcome.value),
            error_bound: outcome.map(|outcome| outcome.error_bound).filter(|&bound| bound != error_bound),
            afterstate: outcome.map(|outcome| perspective.text(outcome.after)),
            worst_spawn: outcome.and_then(|outcome| outcome.worst_spawn).map(|board| perspective.text(board)),
            best: outcome.is_some_and(|outcome| outcome.is_best),
            may_be_best: outcome.and_then(|outcome| outcome.may_be_best),
        }
    }

    fn of_advice(shown: Move, advice: &Advice, perspective: &Perspective) -> Self {
        let of_run = perspective.of_run(shown);
        let made = advice.moves.get(of_run);
        Self {
            direction: shown.name(),
            legal: made.is_some(),
            score: made.map(|(_, score)| score),
            value: None,
            error_bound: None,
            afterstate: made.map(|(after, _)| perspective.text(after)),
            worst_spawn: None,
            best: advice.best == Some(of_run),
            may_be_best: None,
        }
    }
}
