//! Random games of limited length, counted by survival.

use exact2048_game::Board;
use exact2048_game::rules::Move;
use rand::Rng;

use super::{Player, PlayerError, Turn};

/// Plays random games of at most `steps` steps after each move.
///
/// Takes the move with the largest number of surviving games, or with the largest total number of steps. Breaks ties at
/// random.
///
/// Source: a paper on Monte Carlo play. The paper tabulates mean lengths of games by the numbers of runs and steps. The
/// program printed in the paper has other rules; `docs/players.md` lists the differences.
pub struct WinFraction {
    /// Number of games after each move.
    pub runs: u32,
    /// Largest number of moves of each game.
    pub steps: u32,
    /// Quantity counted in these games.
    pub counted: RandomGameCount,
}

/// Quantity counted in random games of limited length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomGameCount {
    /// Number of games that survive all steps.
    Games,
    /// Number of steps that the games last, summed over the games.
    Steps,
}

impl WinFraction {
    /// Contribution to the count of one random game that continues from an afterstate.
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
