//! Conversions between the types of the solver and the messages of the service.

use exact2048_game::board::{Board, BoardSize};
use exact2048_game::rules::Move;
use exact2048_game::{Asked, Game, Perspective};
use exact2048_net::status;
use exact2048_proto::v1;
use exact2048_solution::{
    Advice, Evaluation, LayerCounts, MoveValue, StartValues, StateAnswer, shown_best, shown_moves,
};
use tonic::Status;

use crate::served::RunSnapshot;

/// Maximum length of a board's text in bytes, many times the longest useful text. The length is limited because
/// errors repeat the text, and headers of bounded size carry these errors.
const MAX_TEXT_BYTES: usize = 512;

/// Maximum number of boards in one message.
pub(crate) const MAX_BOARDS: usize = 1 << 16;

/// Maximum number of boards in a message with moves. It is lower because answers with moves are twenty times as
/// long.
pub(crate) const MAX_BOARDS_WITH_MOVES: usize = 1 << 12;

/// Returns whether a packed number is a board of this size.
pub(crate) fn is_board(packed: u64, size: BoardSize) -> bool {
    size.holds(packed)
}

/// Parses the board of a message. A text may show a position of the real game, if the game has locks.
///
/// # Errors
///
/// INVALID_ARGUMENT with the name of the invalid field.
pub fn asked_of(message: Option<v1::Board>, game: &Game) -> Result<Asked, Status> {
    use v1::board::Spelling;

    let size = game.board();
    let spelling = message.and_then(|board| board.spelling);
    match spelling {
        None => Err(status::invalid_argument("board", format!("expected a board of {size}, found none"))),
        Some(Spelling::Text(text)) if text.len() > MAX_TEXT_BYTES => {
            let what =
                format!("expected a board in at most {MAX_TEXT_BYTES} bytes of text, found {}", text.len());
            Err(status::invalid_argument("board.text", what))
        }
        Some(Spelling::Text(text)) => {
            Asked::parse(&text, game).map_err(|error| status::invalid_argument("board.text", error))
        }
        Some(Spelling::Packed(packed)) if is_board(packed, size) => Ok(Asked::of_run(Board(packed), size)),
        Some(Spelling::Packed(packed)) => {
            let what = format!("expected no bits above the last cell of a {size} board, found {packed:#x}");
            Err(status::invalid_argument("board.packed", what))
        }
    }
}

/// Converts a direction to a move.
#[must_use]
pub fn direction_of(direction: v1::Direction) -> Option<Move> {
    match direction {
        v1::Direction::Unspecified => None,
        v1::Direction::Left => Some(Move::Left),
        v1::Direction::Right => Some(Move::Right),
        v1::Direction::Up => Some(Move::Up),
        v1::Direction::Down => Some(Move::Down),
    }
}

fn direction(direction: Move) -> v1::Direction {
    match direction {
        Move::Left => v1::Direction::Left,
        Move::Right => v1::Direction::Right,
        Move::Up => v1::Direction::Up,
        Move::Down => v1::Direction::Down,
    }
}

/// Returns the answer to a request for a state, with boards and moves as the client sees them.
pub(crate) fn answer(answer: &StateAnswer, perspective: &Perspective) -> v1::GetValueResponse {
    let mut message = match answer {
        StateAnswer::Values(of) => v1::GetValueResponse {
            best: shown_best(of, perspective).map_or(v1::Direction::Unspecified, direction).into(),
            moves: shown_moves(&of.moves, perspective)
                .map(|(shown, of)| v1::MoveValue { direction: direction(shown).into(), ..move_value(of) })
                .collect(),
            ..packed_value(of)
        },
        StateAnswer::BestMove(of) => v1::GetValueResponse {
            best: of
                .best
                .map_or(v1::Direction::Unspecified, |best| direction(perspective.shown_move(best)))
                .into(),
            moves: Move::ALL
                .map(|shown| v1::MoveValue {
                    direction: direction(shown).into(),
                    ..move_advice(of, perspective.of_run(shown))
                })
                .to_vec(),
            ..packed_advice(of)
        },
    };
    let show = |packed: &mut u64, text: &mut String| {
        *text = perspective.text(Board(*packed));
        *packed = perspective.shown(Board(*packed)).0;
    };
    show(&mut message.packed_board, &mut message.board);
    message.canonical = Board(message.packed_canonical).to_text(perspective.size_of_run());
    for of in message.moves.iter_mut().filter(|of| of.legal) {
        show(&mut of.packed_afterstate, &mut of.afterstate);
        if of.packed_worst_spawn != 0 {
            show(&mut of.packed_worst_spawn, &mut of.worst_spawn);
        }
    }
    message
}

/// Returns the values of a state, without texts of boards.
pub(crate) fn packed_value(answer: &Evaluation) -> v1::GetValueResponse {
    v1::GetValueResponse {
        layer: answer.layer.0,
        reachable_unknown: !answer.is_known_reachable,
        value: answer.value,
        error_bound: answer.error_bound,
        best: answer.best.map_or(v1::Direction::Unspecified, direction).into(),
        moves: answer.moves.iter().map(move_value).collect(),
        packed_board: answer.board.0,
        packed_canonical: answer.canonical.0,
        ..v1::GetValueResponse::default()
    }
}

/// Returns the best move of a state, without texts of boards.
pub(crate) fn packed_advice(advice: &Advice) -> v1::GetValueResponse {
    v1::GetValueResponse {
        layer: advice.layer.0,
        best: advice.best.map_or(v1::Direction::Unspecified, direction).into(),
        moves: Move::ALL.map(|made| move_advice(advice, made)).to_vec(),
        packed_board: advice.board.0,
        packed_canonical: advice.canonical.0,
        best_move_only: true,
        ..v1::GetValueResponse::default()
    }
}

fn move_advice(advice: &Advice, made: Move) -> v1::MoveValue {
    let legal = advice.moves.get(made);
    let (after, score) = legal.unwrap_or_default();
    v1::MoveValue {
        direction: direction(made).into(),
        legal: legal.is_some(),
        score,
        packed_afterstate: after.0,
        best: advice.best == Some(made),
        ..v1::MoveValue::default()
    }
}

fn move_value(of: &MoveValue) -> v1::MoveValue {
    let mut message = v1::MoveValue { direction: direction(of.direction).into(), ..v1::MoveValue::default() };
    if let Some(outcome) = of.outcome {
        message.legal = true;
        message.score = outcome.score;
        message.value = outcome.value;
        message.packed_afterstate = outcome.after.0;
        message.best = outcome.is_best;
        message.may_be_best = outcome.may_be_best;
        message.error_bound = Some(outcome.error_bound);
        message.packed_worst_spawn = outcome.worst_spawn.map_or(0, |board| board.0);
    }
    message
}

/// Returns the description of a run.
pub(crate) fn run(snapshot: &RunSnapshot) -> v1::GetRunResponse {
    let layers = &snapshot.layers;
    v1::GetRunResponse {
        run_id: snapshot.run_id.clone(),
        parameters: Some((&snapshot.params).into()),
        phase: snapshot.phase.into(),
        layers: layers.len() as u32,
        states: layers.iter().map(|counts| counts.states).sum(),
        afterstates: layers.iter().map(|counts| counts.afterstates).sum(),
        fingerprint: snapshot.fingerprint.map(|sum| format!("{sum:032x}")).unwrap_or_default(),
        start: snapshot.start.as_ref().map(start),
        not_solved: snapshot.not_solved.clone().unwrap_or_default(),
        max_batch_boards: MAX_BOARDS as u32,
        max_batch_boards_with_moves: MAX_BOARDS_WITH_MOVES as u32,
    }
}

fn start(values: &StartValues) -> v1::StartValue {
    let layer = |&(layer, value): &(exact2048_game::Layer, f64)| v1::LayerStart { layer: layer.0, value };
    v1::StartValue {
        expected: values.expected,
        error_bound: values.error_bound,
        by_layer: values.by_layer.iter().map(layer).collect(),
    }
}

/// Returns the counts of a layer.
pub(crate) fn layer(counts: &LayerCounts) -> v1::ListLayersResponse {
    v1::ListLayersResponse { layer: counts.layer.0, states: counts.states, afterstates: counts.afterstates }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::Params;
    use v1::board::Spelling;

    #[test]
    fn boards_are_read_in_both_spellings() {
        let game = *Params::usual("2x2", "score").build().unwrap().game();
        let read = |spelling| asked_of(Some(v1::Board { spelling: Some(spelling) }), &game);
        let board = read(Spelling::Text("2 0 / 0 4".to_owned())).unwrap().board;
        assert_eq!(read(Spelling::Packed(0x2001)).unwrap().board, board);
        let field = |result: Result<Asked, Status>| status::field_of(&result.unwrap_err()).unwrap();
        assert_eq!(field(read(Spelling::Text("2 0".to_owned()))), "board.text");
        assert_eq!(field(read(Spelling::Packed(0x1_2001))), "board.packed");
        assert_eq!(field(asked_of(None, &game)), "board");
        assert!(is_board(u64::MAX, "4x4".parse().unwrap()));
    }
}
