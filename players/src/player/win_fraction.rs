//! Random games of limited length, counted by survival.

use exact2048_game::Board;
use exact2048_game::rules::Move;
use rand::Rng;

use super::{Player, PlayerError, Turn};

/// Plays random games of at most `steps` steps after each move.
///
/// Takes the move after which most games survive, or after which the games last longest in total. Among equal moves it
/// draws lots.
///
/// Source: a paper on Monte Carlo play that tabulates mean lengths of games by the number of runs and of steps;
/// docs/players.md lists the differences of its printed code.
pub struct WinFraction {
    /// Number of games after each move.
    pub runs: u32,
    /// Most moves of each game.
    pub steps: u32,
    /// Quantity counted in these games.
    pub counted: RandomGameCount,
}

/// Quantity counted in random games of limited length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomGameCount {
    /// Games that survive all steps.
    Games,
    /// Steps that each game lasts.
    Steps,
}

impl WinFraction {
    /// Contribution to the count of one random game from an afterstate on.
    fn worth(&self, turn: &mut Turn<'_>, mut board: Board) -> u64 {
        for step in 0..self.steps {
            // A move that changed nothing may leave a full board.
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
