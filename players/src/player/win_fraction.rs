//! Random games that are cut short, and how many of them were not lost by then.

use exact2048_game::Board;
use exact2048_game::rules::Move;
use rand::Rng;

use super::{Player, PlayerError, Turn};

/// After each move, plays random games of at most so many steps, and takes the move after which the largest share of
/// them is not lost by then; among equals it draws lots.
///
/// Source: a paper on Monte Carlo play that tabulates mean lengths of games by the number of runs and of steps; see
/// docs/players.md for what its printed code does otherwise.
pub struct WinFraction {
    /// Games after each move.
    pub runs: u32,
    /// Moves of each at most.
    pub steps: u32,
}

impl WinFraction {
    /// Whether a random game from an afterstate on is not lost after as many steps as there are to be.
    fn is_kept(&self, turn: &mut Turn<'_>, mut board: Board) -> bool {
        for _ in 0..self.steps {
            board = turn.engine.spawn(board, turn.generator).0;
            let moves = turn.engine.moves(board);
            let legal = moves.iter().count();
            if legal == 0 {
                return false;
            }
            let has_room = turn.engine.empty(board) != 0;
            board = if turn.takes_idle_moves && has_room {
                moves.get(Move::ALL[turn.generator.random_range(0..4)]).map_or(board, |(after, _)| after)
            } else {
                let drawn = turn.generator.random_range(0..legal);
                moves.iter().nth(drawn).expect("drawn from as many").1
            };
        }
        true
    }
}

impl Player for WinFraction {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let (mut best, mut most, mut equal) = (None, 0, 0u32);
        for direction in Move::ALL {
            let idle = (turn.takes_idle_moves && turn.engine.empty(turn.board) != 0).then_some(turn.board);
            let Some(after) = turn.moves.get(direction).map(|(after, _)| after).or(idle) else { continue };
            let kept = (0..self.runs).filter(|_| self.is_kept(turn, after)).count();
            if best.is_none() || kept > most {
                (best, most, equal) = (Some(direction), kept, 1);
            } else if kept == most {
                equal += 1;
                if turn.generator.random_range(0..equal) == 0 {
                    best = Some(direction);
                }
            }
        }
        Ok(best.expect("a move is legal"))
    }
}
