//! Players, one in a file, and how they are named.

mod command;
mod expectimax;
mod greedy;
mod monte_carlo;
mod perfect;
mod random;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use exact2048_game::Board;
use exact2048_game::rules::Move;
use exact2048_solution::{Oracle, QueryError};
use rand_chacha::ChaCha8Rng;

use crate::engine::{Engine, Moves};

pub use command::CommandError;

/// What a player sees when it is to move. At least one move is legal.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The game.
    pub engine: &'a Engine,
    /// The board.
    pub board: Board,
    /// Its legal moves.
    pub moves: &'a Moves,
    /// For players that draw lots: of this game and player alone, so that the same seed gives the same game.
    pub generator: &'a mut ChaCha8Rng,
}

/// Somebody who plays. One object plays one game after another.
pub trait Player: Send {
    /// A game begins.
    ///
    /// # Errors
    ///
    /// If the player cannot play it.
    fn begin(&mut self, _engine: &Engine) -> Result<(), PlayerError> {
        Ok(())
    }

    /// The move to make, which must be legal.
    ///
    /// # Errors
    ///
    /// If the player has none: its game is over then.
    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError>;

    /// The game is over.
    fn end(&mut self, _score: u64) {}
}

/// Why a game could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The program that plays did not answer as it should.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The run does not know the board.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A move was chosen that changes nothing.
    #[error("{} changes nothing on {board}", direction.name())]
    Illegal {
        /// The move.
        direction: Move,
        /// The board.
        board: String,
    },
}

/// A player and its parameters, as in `expectimax:depth=4,cutoff=0.001`.
#[derive(Clone, PartialEq, Debug)]
pub enum PlayerSpec {
    /// Uniformly one of the legal moves.
    Random,
    /// The move that merges most.
    Greedy,
    /// Expected value of a heuristic some moves ahead.
    Expectimax(ExpectimaxParams),
    /// The move after which random games end best.
    MonteCarlo {
        /// Games a move.
        runs: u32,
    },
    /// A best move, by a solved run.
    Perfect,
    /// A program that is asked.
    Command {
        /// The program and its arguments, as a shell would read them.
        command: String,
    },
}

/// Parameters of expectimax.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExpectimaxParams {
    /// Moves and spawns that are looked ahead; `None` looks further the more different tiles there are.
    pub depth: Option<u32>,
    /// Spawns that are less likely, together with those before them, are not followed.
    pub cutoff: f32,
}

/// Why a text names no player.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// There is no such player.
    #[error("there is no player {name:?}: expected one of {}", PlayerSpec::NAMES.join(", "))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The player does not have the parameter.
    #[error("{player} has no parameter {name:?}: expected {expected}")]
    Parameter {
        /// The player.
        player: &'static str,
        /// The name given.
        name: String,
        /// The names that there are.
        expected: &'static str,
    },
    /// The parameter has no such value.
    #[error("{name}={value} is not possible: expected {expected}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is possible.
        expected: &'static str,
    },
}

impl PlayerSpec {
    /// All players, with their parameters.
    pub const NAMES: [&str; 6] = [
        "random",
        "greedy",
        "expectimax[:depth=N|auto,cutoff=P]",
        "monte-carlo[:runs=N]",
        "perfect",
        "cmd:PROGRAM",
    ];

    /// A player. `oracle` is for the one that needs a run.
    ///
    /// # Errors
    ///
    /// The program of [`PlayerSpec::Command`] cannot be started.
    ///
    /// # Panics
    ///
    /// [`PlayerSpec::Perfect`] without an oracle.
    pub fn player(
        &self,
        engine: &Engine,
        oracle: Option<&Arc<Oracle>>,
    ) -> Result<Box<dyn Player>, PlayerError> {
        Ok(match self {
            Self::Random => Box::new(random::Random),
            Self::Greedy => Box::new(greedy::Greedy),
            Self::Expectimax(params) => Box::new(expectimax::Expectimax::new(engine, *params)),
            Self::MonteCarlo { runs } => Box::new(monte_carlo::MonteCarlo { runs: *runs }),
            Self::Perfect => {
                Box::new(perfect::Perfect(Arc::clone(oracle.expect("the caller opened the run"))))
            }
            Self::Command { command } => Box::new(command::External::start(command)?),
        })
    }

    /// Whether the player needs a solved run.
    #[must_use]
    pub fn needs_run(&self) -> bool {
        *self == Self::Perfect
    }
}

impl FromStr for PlayerSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if name == "cmd" {
            return if rest.trim().is_empty() {
                Err(SpecError::Value {
                    name: "cmd",
                    value: String::new(),
                    expected: "a program, as in cmd:./mine",
                })
            } else {
                Ok(Self::Command { command: rest.to_owned() })
            };
        }
        let mut given = Given::parse(rest);
        let spec = match name {
            "random" => Self::Random,
            "greedy" => Self::Greedy,
            "perfect" => Self::Perfect,
            "expectimax" => {
                let depth = match given.take("depth").as_deref() {
                    None | Some("auto") => None,
                    Some(text) => Some(number("depth", text, 1..=12, "1 to 12, or auto")?),
                };
                let cutoff = given.take("cutoff").map_or(Ok(1e-4), |text| probability("cutoff", &text))?;
                Self::Expectimax(ExpectimaxParams { depth, cutoff })
            }
            "monte-carlo" => {
                let runs = given.take("runs").map_or(Ok(100), |text| {
                    number("runs", &text, 1..=1_000_000, "a number of games from 1 to 1000000")
                })?;
                Self::MonteCarlo { runs }
            }
            _ => return Err(SpecError::Unknown { name: name.to_owned() }),
        };
        given.finish(&spec)?;
        Ok(spec)
    }
}

impl fmt::Display for PlayerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Greedy => f.write_str("greedy"),
            Self::Expectimax(ExpectimaxParams { depth, cutoff }) => {
                let depth = depth.map_or("auto".to_owned(), |depth| depth.to_string());
                write!(f, "expectimax:depth={depth},cutoff={cutoff}")
            }
            Self::MonteCarlo { runs } => write!(f, "monte-carlo:runs={runs}"),
            Self::Perfect => f.write_str("perfect"),
            Self::Command { command } => write!(f, "cmd:{command}"),
        }
    }
}

/// Parameters that were given, as far as they were not taken yet.
struct Given(Vec<(String, String)>);

impl Given {
    fn parse(text: &str) -> Self {
        let pair = |item: &str| {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            (name.trim().to_owned(), value.trim().to_owned())
        };
        Self(text.split(',').filter(|item| !item.trim().is_empty()).map(pair).collect())
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(given, _)| given == name)?;
        Some(self.0.remove(at).1)
    }

    fn finish(self, spec: &PlayerSpec) -> Result<(), SpecError> {
        let Some((name, _)) = self.0.into_iter().next() else { return Ok(()) };
        let (player, expected) = match spec {
            PlayerSpec::Expectimax(_) => ("expectimax", "depth or cutoff, each once"),
            PlayerSpec::MonteCarlo { .. } => ("monte-carlo", "runs, once"),
            PlayerSpec::Random => ("random", "none"),
            PlayerSpec::Greedy => ("greedy", "none"),
            PlayerSpec::Perfect | PlayerSpec::Command { .. } => ("perfect", "none"),
        };
        Err(SpecError::Parameter { player, name, expected })
    }
}

fn number(
    name: &'static str,
    text: &str,
    range: std::ops::RangeInclusive<u32>,
    expected: &'static str,
) -> Result<u32, SpecError> {
    let found = text.parse().ok().filter(|number| range.contains(number));
    found.ok_or_else(|| SpecError::Value { name, value: text.to_owned(), expected })
}

fn probability(name: &'static str, text: &str) -> Result<f32, SpecError> {
    let found = text.parse().ok().filter(|p: &f32| (0.0..=1.0).contains(p));
    found.ok_or_else(|| SpecError::Value {
        name,
        value: text.to_owned(),
        expected: "a probability from 0 to 1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_named_as_they_are_shown() {
        for text in [
            "random",
            "greedy",
            "perfect",
            "expectimax:depth=3,cutoff=0.001",
            "expectimax:depth=auto,cutoff=0.0001",
            "monte-carlo:runs=7",
            "cmd:./mine --fast",
        ] {
            assert_eq!(text.parse::<PlayerSpec>().unwrap().to_string(), text);
        }
        assert_eq!("expectimax".parse::<PlayerSpec>(), "expectimax:depth=auto,cutoff=1e-4".parse());
    }

    #[test]
    fn what_names_no_player_is_answered_with_what_would() {
        for (text, says) in [
            ("best", "expected one of random, greedy"),
            ("random:depth=3", "random has no parameter \"depth\": expected none"),
            ("expectimax:deep=3", "expectimax has no parameter \"deep\": expected depth or cutoff"),
            ("expectimax:depth=3,depth=4", "each once"),
            ("expectimax:depth=0", "depth=0 is not possible: expected 1 to 12, or auto"),
            ("expectimax:cutoff=2", "a probability from 0 to 1"),
            ("monte-carlo:runs=many", "runs=many is not possible"),
            ("cmd:", "cmd:./mine"),
        ] {
            let error = text.parse::<PlayerSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
