//! Players that treat all images of a board alike.

use exact2048_game::rules::Move;

use super::{Player, PlayerError, Turn};

/// Shows a player the canonical image of each board, and maps the player's move back.
///
/// Therefore, the player decides alike on all images of a board, even if values are tied or rounded.
pub struct Canonical<P>(pub P);

impl<P: Player> Player for Canonical<P> {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let (board, image) = turn.engine.canonical_image(turn.board);
        let moves = turn.engine.moves(board);
        let chosen = self.0.choose(&mut Turn { board, moves: &moves, generator: turn.generator, ..*turn })?;
        Ok(image.undo(chosen))
    }
}
