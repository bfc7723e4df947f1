//! Uniformly one of the legal moves.

use exact2048_game::rules::Move;
use rand::Rng;

use super::{Player, PlayerError, Turn};

/// Draws lots.
pub struct Random;

impl Player for Random {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let drawn = turn.generator.random_range(0..turn.moves.iter().count());
        let (direction, ..) = turn.moves.iter().nth(drawn).expect("drawn from as many");
        Ok(direction)
    }
}
