//! A uniformly random legal move.

use exact2048_game::rules::Move;
use rand::Rng;

use super::{Player, PlayerError, Turn};

/// Chooses each legal move with equal probability.
pub struct Random;

impl Player for Random {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let drawn = turn.generator.random_range(0..turn.moves.iter().count());
        let (direction, ..) = turn.moves.iter().nth(drawn).expect("drawn from as many");
        Ok(direction)
    }
}
