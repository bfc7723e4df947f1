//! Random games that are cut short, and how many of them were not lost by then.

use exact2048_game::Board;
use exact2048_game::rules::Move;
use rand::Rng;

use super::{Player, PlayerError, Turn};

/// After each move, plays random games of at most `steps` steps, and takes the move after which most of them are not
/// lost by then, or after which they last longest in all; among equals it draws lots.
///
/// Source: a paper on Monte Carlo play that tabulates mean lengths of games by the number of runs and of steps; see
/// docs/players.md for what its printed code does otherwise.
pub struct WinFraction {
    /// Games after each move.
    pub runs: u32,
    /// Moves of each at most.
    pub steps: u32,
    /// What is counted of these games.
    pub counted: RandomGameCount,
}

/// What counts of random games that are cut short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomGameCount {
    /// Games that are not lost by then.
    Games,
    /// The steps that each game lasts.
    Steps,
}

impl WinFraction {
    /// What a random game that begins at an afterstate adds to the count.
    fn worth(&self, turn: &mut Turn<'_>, mut board: Board) -> u64 {
        for step in 0..self.steps {
            // No cell is empty where a move changed nothing on a full board.
            if turn.engine.empty(board) != 0 {
                board = turn.engine.spawn(board, turn.generator).0;
            }
            let moves = turn.engine.moves(board);
            let legal = moves.iter().count();
            if legal == 0 {
                return match self.counted {
                    RandomGameCount::Games => 0,
                    RandomGameCount::Steps => step.into(),
                };
            }
            board = if turn.takes_idle_moves {
                moves.get(Move::ALL[turn.generator.random_range(0..4)]).map_or(board, |(after, _)| after)
            } else {
                let drawn = turn.generator.random_range(0..legal);
                moves.iter().nth(drawn).expect("drawn from as many").1
            };
        }
        match self.counted {
            RandomGameCount::Games => 1,
            RandomGameCount::Steps => self.steps.into(),
        }
    }
}

impl Player for WinFraction {
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let (mut best, mut most, mut equal) = (None, 0, 0u32);
        for direction in Move::ALL {
            let idle = (turn.takes_idle_moves && turn.engine.empty(turn.board) != 0).then_some(turn.board);
            let Some(after) = turn.moves.get(direction).map(|(after, _)| after).or(idle) else { continue };
            let worth = (0..self.runs).map(|_| self.worth(turn, after)).sum();
            if best.is_none() || worth > most {
                (best, most, equal) = (Some(direction), worth, 1);
            } else if worth == most {
                equal += 1;
                if turn.generator.random_range(0..equal) == 0 {
                    best = Some(direction);
                }
            }
        }
        Ok(best.expect("a move is legal"))
    }
}
