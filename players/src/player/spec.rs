//! Names of players and their parameters.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use exact2048_game::rules::Move;
use exact2048_solution::Oracle;

use super::canonical::Canonical;
use super::corner::{Corner, CornerModel, CornerParams};
use super::expectimax::{Expectimax, ExpectimaxParams};
use super::linear_paths::{LinearPaths, LinearPathsParams};
use super::minimax::Minimax;
use super::monte_carlo::MonteCarlo;
use super::perfect::Perfect;
use super::win_fraction::{RandomGameCount, WinFraction};
use super::{Player, PlayerError, command, greedy, random};
use crate::engine::Engine;

/// A player and its parameters, for example `expectimax:depth=4,cutoff=0.001`.
#[derive(Clone, PartialEq, Debug)]
pub enum PlayerSpec {
    /// A uniformly random legal move.
    Random,
    /// The move that merges the largest number of pairs.
    Greedy,
    /// The move with the highest expected value of a heuristic.
    Expectimax(ExpectimaxParams),
    /// The best move against adversarial spawns, by a heuristic.
    Minimax {
        /// Number of boards after which no deeper search begins.
        positions: u32,
    },
    /// Tiles weighted along snakes.
    LinearPaths(LinearPathsParams),
    /// The move after which the board is nearest to a model: tiles that descend along a snake from a corner.
    Corner(CornerParams),
    /// The move with the highest mean score of random games.
    MonteCarlo {
        /// Number of games after each move.
        runs: u32,
    },
    /// The move after which random games of limited length survive most often, or longest.
    WinFraction {
        /// Number of games after each move.
        runs: u32,
        /// Largest number of steps of each game.
        steps: u32,
        /// Quantity counted in these games.
        counted: RandomGameCount,
    },
    /// The best move, from a solved run.
    Perfect,
    /// An external program.
    Command {
        /// The program and its arguments, as a shell would read them.
        command: String,
    },
}

/// Inputs that determine a player's moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// The board alone, up to its symmetries.
    ByBoard,
    /// The board alone, including its orientation.
    ByTurnedBoard,
    /// Chance alone: each legal move is equally likely.
    ByEvenLots,
    /// Anything else, such as other random numbers or the memory of a program.
    Freely,
}

/// Error of a text that is not a valid player.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// No player has this name.
    #[error("expected one of {}, found {name:?}", PlayerSpec::NAMES.join(", "))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The player does not have the parameter.
    #[error("parameters of {player}: expected {expected}, found {name:?}")]
    Parameter {
        /// The player.
        player: &'static str,
        /// The name given.
        name: String,
        /// The valid names.
        expected: &'static str,
    },
    /// The parameter's value is invalid.
    #[error("{name}: expected {expected}, found {value:?}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
}

impl PlayerSpec {
    /// All players, with their parameters.
    pub const NAMES: [&str; 10] = [
        "random",
        "greedy",
        "corner[:corner=C,forbidden=MOVE]",
        "linear-paths[:paths=8|2,ratio=R,depth=N]",
        "minimax[:positions=N]",
        "expectimax[:depth=N|auto,cutoff=P]",
        "monte-carlo[:runs=N]",
        "win-fraction[:runs=N,steps=T,count=games|steps]",
        "perfect",
        "cmd:PROGRAM",
    ];

    /// Creates the player. Only [`PlayerSpec::Perfect`] needs `oracle`.
    ///
    /// # Errors
    ///
    /// If the program of [`PlayerSpec::Command`] cannot be started.
    ///
    /// # Panics
    ///
    /// If [`PlayerSpec::Perfect`] has no oracle.
    pub fn player(
        &self,
        engine: &Engine,
        oracle: Option<&Arc<Oracle>>,
    ) -> Result<Box<dyn Player>, PlayerError> {
        Ok(match self {
            Self::Random => Box::new(random::Random),
            Self::Greedy => Box::new(greedy::Greedy),
            Self::Corner(params) => Box::new(CornerModel::new(engine, *params)),
            Self::LinearPaths(params) => {
                let player = LinearPaths::new(engine, *params);
                if params.all_corners { Box::new(Canonical(player)) } else { Box::new(player) }
            }
            Self::Minimax { positions } => Box::new(Canonical(Minimax { positions: *positions })),
            Self::Expectimax(params) => Box::new(Canonical(Expectimax::new(engine, *params))),
            Self::MonteCarlo { runs } => Box::new(MonteCarlo { runs: *runs }),
            Self::WinFraction { runs, steps, counted } => {
                Box::new(WinFraction { runs: *runs, steps: *steps, counted: *counted })
            }
            Self::Perfect => {
                let oracle = oracle.expect("the caller opened the run");
                Box::new(Canonical(Perfect(Arc::clone(oracle))))
            }
            Self::Command { command } => Box::new(command::External::start(command)?),
        })
    }

    /// Returns the inputs that determine the moves.
    #[must_use]
    pub fn decides(&self) -> Decides {
        match self {
            Self::Random => Decides::ByEvenLots,
            Self::Greedy | Self::Corner(_) => Decides::ByTurnedBoard,
            Self::LinearPaths(params) if !params.all_corners => Decides::ByTurnedBoard,
            Self::LinearPaths(_) | Self::Minimax { .. } | Self::Expectimax(_) | Self::Perfect => {
                Decides::ByBoard
            }
            Self::MonteCarlo { .. } | Self::WinFraction { .. } | Self::Command { .. } => Decides::Freely,
        }
    }

    /// Whether the player needs a solved run.
    #[must_use]
    pub fn needs_run(&self) -> bool {
        *self == Self::Perfect
    }

    /// The name, and the names of the parameters.
    fn name(&self) -> (&'static str, &'static str) {
        match self {
            Self::Random => ("random", "none"),
            Self::Greedy => ("greedy", "none"),
            Self::Corner(_) => ("corner", "corner or forbidden, each once"),
            Self::LinearPaths(_) => ("linear-paths", "paths, ratio or depth, each once"),
            Self::Minimax { .. } => ("minimax", "positions, once"),
            Self::Expectimax(_) => ("expectimax", "depth or cutoff, each once"),
            Self::MonteCarlo { .. } => ("monte-carlo", "runs, once"),
            Self::WinFraction { .. } => ("win-fraction", "runs, steps or count, each once"),
            Self::Perfect => ("perfect", "none"),
            Self::Command { .. } => ("cmd", "none"),
        }
    }
}

/// Largest value of a parameter that counts games, steps or boards.
const MOST_RUNS: u32 = 1_000_000;

impl FromStr for PlayerSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if name == "cmd" {
            let (value, expected) = (String::new(), "a program, as in cmd:./mine");
            let command = rest.to_owned();
            return if rest.trim().is_empty() {
                Err(SpecError::Value { name: "cmd", value, expected })
            } else {
                Ok(Self::Command { command })
            };
        }
        let mut given = Given::parse(rest);
        let runs = (1..=MOST_RUNS, "a number from 1 to 1000000");
        let spec = match name {
            "random" => Self::Random,
            "greedy" => Self::Greedy,
            "perfect" => Self::Perfect,
            "corner" => {
                let corner = given.one_of("corner", &CORNERS)?.unwrap_or(Corner::ALL[0]);
                let [along_column, along_row] = corner.away();
                let forbidden = given.one_of("forbidden", &MOVES)?.unwrap_or(along_column);
                if forbidden != along_column && forbidden != along_row {
                    let value = format!("{} with corner={corner}", forbidden.name());
                    let expected = "a move away from the corner";
                    return Err(SpecError::Value { name: "forbidden", value, expected });
                }
                Self::Corner(CornerParams { corner, forbidden })
            }
            "linear-paths" => {
                let all_corners = given.one_of("paths", &[("8", true), ("2", false)])?.unwrap_or(true);
                let ratio = given.probability("ratio", 0.25)?;
                let depth = given.number("depth", 3, (0..=8, "0 to 8"))?;
                Self::LinearPaths(LinearPathsParams { all_corners, ratio, depth })
            }
            "minimax" => Self::Minimax { positions: given.number("positions", 1_000, runs)? },
            "expectimax" => {
                let depth = match given.peek("depth") {
                    Some("auto") => given.take("depth").and(None),
                    None => None,
                    Some(_) => Some(given.number("depth", 3, (1..=12, "1 to 12, or auto"))?),
                };
                Self::Expectimax(ExpectimaxParams {
                    depth,
                    cutoff: given.probability("cutoff", 1e-4)? as f32,
                })
            }
            "monte-carlo" => Self::MonteCarlo { runs: given.number("runs", 100, runs)? },
            "win-fraction" => Self::WinFraction {
                runs: given.number("runs", 100, runs.clone())?,
                steps: given.number("steps", 20, runs)?,
                counted: given
                    .one_of("count", &[("games", RandomGameCount::Games), ("steps", RandomGameCount::Steps)])?
                    .unwrap_or(RandomGameCount::Games),
            },
            _ => return Err(SpecError::Unknown { name: name.to_owned() }),
        };
        given.finish(&spec)?;
        Ok(spec)
    }
}

impl fmt::Display for PlayerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().0)?;
        match self {
            Self::Random | Self::Greedy | Self::Perfect => Ok(()),
            Self::Corner(CornerParams { corner, forbidden }) => {
                write!(f, ":corner={corner},forbidden={}", forbidden.name())
            }
            Self::LinearPaths(LinearPathsParams { all_corners, ratio, depth }) => {
                let paths = if *all_corners { 8 } else { 2 };
                write!(f, ":paths={paths},ratio={ratio},depth={depth}")
            }
            Self::Minimax { positions } => write!(f, ":positions={positions}"),
            Self::Expectimax(ExpectimaxParams { depth, cutoff }) => {
                let depth = depth.map_or("auto".to_owned(), |depth| depth.to_string());
                write!(f, ":depth={depth},cutoff={cutoff}")
            }
            Self::MonteCarlo { runs } => write!(f, ":runs={runs}"),
            Self::WinFraction { runs, steps, counted } => {
                let counted = if *counted == RandomGameCount::Games { "games" } else { "steps" };
                write!(f, ":runs={runs},steps={steps},count={counted}")
            }
            Self::Command { command } => write!(f, ":{command}"),
        }
    }
}

const CORNERS: [(&str, Corner); 4] = [
    ("top-left", Corner::ALL[0]),
    ("top-right", Corner::ALL[1]),
    ("bottom-left", Corner::ALL[2]),
    ("bottom-right", Corner::ALL[3]),
];
const MOVES: [(&str, Move); 4] =
    [("left", Move::Left), ("right", Move::Right), ("up", Move::Up), ("down", Move::Down)];

/// Parameters in the text that the parser has not read yet.
struct Given(Vec<(String, String)>);

/// A range of numbers, and its description.
type Numbers = (std::ops::RangeInclusive<u32>, &'static str);

impl Given {
    fn parse(text: &str) -> Self {
        let pair = |item: &str| {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            (name.trim().to_owned(), value.trim().to_owned())
        };
        Self(text.split(',').filter(|item| !item.trim().is_empty()).map(pair).collect())
    }

    fn peek(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(given, _)| given == name)?;
        Some(self.0.remove(at).1)
    }

    fn number(&mut self, name: &'static str, default: u32, numbers: Numbers) -> Result<u32, SpecError> {
        let (range, expected) = numbers;
        let Some(value) = self.take(name) else { return Ok(default) };
        let found = value.parse().ok().filter(|number| range.contains(number));
        found.ok_or(SpecError::Value { name, value, expected })
    }

    fn probability(&mut self, name: &'static str, default: f64) -> Result<f64, SpecError> {
        let Some(value) = self.take(name) else { return Ok(default) };
        let found = value.parse().ok().filter(|p: &f64| (0.0..=1.0).contains(p));
        found.ok_or(SpecError::Value { name, value, expected: "a number from 0 to 1" })
    }

    fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &'static [(&'static str, T)],
    ) -> Result<Option<T>, SpecError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let found = choices.iter().find(|(choice, _)| *choice == value);
        let expected = match name {
            "corner" => "top-left, top-right, bottom-left or bottom-right",
            "forbidden" => "left, right, up or down",
            "count" => "games or steps",
            _ => "8 or 2",
        };
        found.map(|&(_, found)| Some(found)).ok_or(SpecError::Value { name, value, expected })
    }

    fn finish(self, spec: &PlayerSpec) -> Result<(), SpecError> {
        let Some((name, _)) = self.0.into_iter().next() else { return Ok(()) };
        let (player, expected) = spec.name();
        Err(SpecError::Parameter { player, name, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_players_parse_as_they_are_printed() {
        for text in [
            "random",
            "greedy",
            "perfect",
            "expectimax:depth=3,cutoff=0.001",
            "expectimax:depth=auto,cutoff=0.0001",
            "monte-carlo:runs=7",
            "win-fraction:runs=7,steps=9,count=games",
            "win-fraction:runs=7,steps=9,count=steps",
            "minimax:positions=30",
            "linear-paths:paths=2,ratio=0.5,depth=1",
            "corner:corner=bottom-right,forbidden=left",
            "cmd:./mine --fast",
        ] {
            assert_eq!(text.parse::<PlayerSpec>().unwrap().to_string(), text);
        }
        assert_eq!("corner".parse::<PlayerSpec>(), "corner:corner=top-left,forbidden=down".parse());
        assert_eq!("expectimax".parse::<PlayerSpec>(), "expectimax:depth=auto,cutoff=1e-4".parse());
    }

    #[test]
    fn errors_list_the_valid_players_and_parameters() {
        for (text, says) in [
            ("best", "expected one of random, greedy"),
            ("random:depth=3", "parameters of random: expected none, found \"depth\""),
            ("expectimax:deep=3", "parameters of expectimax: expected depth or cutoff"),
            ("expectimax:depth=3,depth=4", "each once"),
            ("expectimax:depth=0", "depth: expected 1 to 12, or auto, found \"0\""),
            ("expectimax:cutoff=2", "a number from 0 to 1"),
            ("monte-carlo:runs=many", "found \"many\""),
            ("cmd:", "cmd:./mine"),
            ("minimax:positions=0", "expected a number from 1"),
            ("minimax:depth=3", "parameters of minimax: expected positions, once, found \"depth\""),
            ("linear-paths:paths=4", "paths: expected 8 or 2, found \"4\""),
            ("linear-paths:length=4", "expected paths, ratio or depth"),
            ("linear-paths:depth=9", "expected 0 to 8"),
            ("corner:corner=north", "expected top-left, top-right, bottom-left or bottom-right"),
            (
                "corner:forbidden=up",
                "expected a move away from the corner, found \"up with corner=top-left\"",
            ),
            ("corner:forbidden=away", "expected left, right, up or down"),
            ("win-fraction:runs=0", "runs: expected a number from 1"),
            ("win-fraction:steps=", "found \"\""),
            ("win-fraction:games=3", "expected runs, steps or count"),
            ("win-fraction:count=3", "count: expected games or steps, found \"3\""),
            ("perfect:depth=3", "parameters of perfect: expected none, found \"depth\""),
        ] {
            let error = text.parse::<PlayerSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
