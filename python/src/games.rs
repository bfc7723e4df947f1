//! Many games at once, for environments.

use exact2048_game::board::BoardError;
use exact2048_game::packed::PackedRules;
use exact2048_game::rules::{self as game_rules, Move};
use exact2048_game::{BoardSize, Objective, Params, Spawn4};
use exact2048_players::ManyGames;
use exact2048_proto::v1::RunParameters;
use numpy::ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::board::{Board, MASKED, is_masked, read};
use crate::errors::{UsageError, of_params};
use crate::rules;

/// Number of consecutive illegal moves that truncates a game.
///
/// At least one move is always legal, so random play makes a hundred illegal moves in a row with a probability below
/// 10^-12. Without a limit, a player that repeats an illegal move would never stop.
const MOST_ILLEGAL: u8 = 100;

/// The result of a step: boards, rewards, flags of finished and of truncated games, and legal moves.
type Step<'py> = (
    Bound<'py, PyArray3<u8>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray2<i8>>,
);

/// The result of a reset: boards and legal moves.
type Begun<'py> = (Bound<'py, PyArray3<u8>>, Bound<'py, PyArray2<i8>>);

/// Games played in parallel. After a game is over or truncated, the next step restarts the game and ignores its move.
#[pyclass(module = "exact2048")]
pub(crate) struct Games {
    games: ManyGames,
    /// Whether the reward is for wins instead of scores.
    is_reach: bool,
    /// Current number of consecutive illegal moves of each game.
    illegal: Vec<u8>,
    rules: String,
}

#[pymethods]
impl Games {
    /// Creates games for a board size, a number of games and a probability of a 4.
    ///
    /// The objective is "score" or "reach:TILE". With "reach:TILE", a win has the reward 1.
    #[new]
    #[pyo3(signature = (board, count, *, objective="score", spawn4="0.1"))]
    fn new(board: &str, count: usize, objective: &str, spawn4: &str) -> PyResult<Self> {
        let usage = |text: String| UsageError::new_err(text);
        let size: BoardSize = board.parse().map_err(|error: BoardError| usage(error.to_string()))?;
        let goal: Objective = objective.parse().map_err(|error| usage(format!("{error}")))?;
        let spawn4: Spawn4 = spawn4.parse().map_err(|error| usage(format!("{error}")))?;
        if !goal.is_mean_of_games() {
            return Err(usage(format!("expected the objective score or reach:TILE, found {objective}")));
        }
        let target = goal.winning_exponent();
        if target.is_some() {
            Params::builder(size, goal).spawn4(spawn4).build().map_err(|error| of_params(&error))?;
        }
        let packed = PackedRules::new(size);
        let begins = |(board, chance): (_, f64)| chance > 0.0 && !packed.moves(board).is_empty();
        if !game_rules::start_probabilities(size, spawn4).any(begins) {
            return Err(usage(format!("expected a board whose games have a legal move, found {size}")));
        }
        if count == 0 {
            return Err(usage("expected at least one game, found 0".to_owned()));
        }
        let rules = rules::in_words(&RunParameters {
            rows: size.rows() as u32,
            columns: size.cols() as u32,
            objective: goal.to_string(),
            spawn4_numerator: spawn4.weight4(),
            spawn4_denominator: spawn4.denominator(),
            picture: size.picture().unwrap_or_default(),
            loose_stones: size.loose().into(),
            ..RunParameters::default()
        });
        let games = ManyGames::new(size, spawn4, target, count);
        Ok(Self { games, is_reach: target.is_some(), illegal: vec![0; count], rules })
    }

    /// Begins all games. If `seeds` are given, first seeds each game with 64 bits.
    ///
    /// Without seeds, the games continue their sequences of random numbers. The initial seed of a game is its number.
    fn reset<'py>(&mut self, py: Python<'py>, seeds: Option<Vec<u64>>) -> PyResult<Begun<'py>> {
        if let Some(seeds) = &seeds {
            self.expect(seeds.len(), "seeds")?;
            seeds.iter().enumerate().for_each(|(game, &seed)| self.games.seed(game, seed));
        }
        (0..self.games.len()).for_each(|game| self.games.begin(game));
        self.illegal.fill(0);
        Ok((self.boards(py), self.legal(py)))
    }

    /// Begins a game with a given board.
    fn place(&mut self, game: usize, board: &Bound<'_, PyAny>) -> PyResult<()> {
        if game >= self.games.len() {
            let count = self.games.len();
            return Err(UsageError::new_err(format!("expected a game number below {count}, found {game}")));
        }
        let board = read(board, self.games.size())?.one()?.board;
        self.games.place(game, board);
        self.illegal[game] = 0;
        Ok(())
    }

    /// Makes a move in each game: 0 left, 1 right, 2 up, 3 down.
    ///
    /// An illegal move changes nothing. A hundred consecutive illegal moves truncate the game.
    fn step<'py>(&mut self, py: Python<'py>, actions: &Bound<'py, PyAny>) -> PyResult<Step<'py>> {
        if is_masked(actions)? {
            return Err(UsageError::new_err(MASKED));
        }
        let actions: PyReadonlyArray1<'py, i64> = actions.extract()?;
        let actions = actions.as_array();
        self.expect(actions.len(), "actions")?;
        if let Some(wrong) = actions.iter().find(|&&action| !(0..4).contains(&action)) {
            return Err(UsageError::new_err(format!("expected actions from 0 to 3, found {wrong}")));
        }
        let count = self.games.len();
        let (mut rewards, mut over, mut cut_off) = (vec![0.0; count], vec![false; count], vec![false; count]);
        for (game, &action) in actions.iter().enumerate() {
            let illegal = &mut self.illegal[game];
            if self.games.is_over(game) || *illegal == MOST_ILLEGAL {
                self.games.begin(game);
                *illegal = 0;
                continue;
            }
            let direction = Move::ALL[action as usize & 3];
            let is_legal = self.games.moves(game).get(direction).is_some();
            *illegal = if is_legal { 0 } else { *illegal + 1 };
            cut_off[game] = *illegal == MOST_ILLEGAL;
            let made = self.games.make(game, direction);
            rewards[game] = f64::from(if self.is_reach { u32::from(made.is_won) } else { made.score });
            over[game] = made.is_over;
        }
        let [over, cut_off] = [over, cut_off].map(|flags| PyArray1::from_vec(py, flags));
        Ok((self.boards(py), PyArray1::from_vec(py, rewards), over, cut_off, self.legal(py)))
    }

    /// The boards: exponents, uint8 [N, R, C].
    fn boards<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray3<u8>> {
        let size = self.games.size();
        let cells = size.places();
        let mut all = vec![0; self.games.len() * cells];
        for (game, of_board) in all.chunks_exact_mut(cells).enumerate() {
            let bytes = spread(self.games.board(game).0);
            of_board.copy_from_slice(&bytes[..cells]);
        }
        let shape = (self.games.len(), size.rows(), size.cols());
        // The shape and the array have the same number of cells.
        Array3::from_shape_vec(shape, all).unwrap_or_default().into_pyarray(py)
    }

    /// The boards as packed numbers: uint64 [N].
    fn packed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_vec(py, (0..self.games.len()).map(|game| self.games.board(game).0).collect())
    }

    /// The legal moves: int8 [N, 4], 1 for a legal move.
    fn legal<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<i8>> {
        let of_game =
            |game| Move::ALL.map(|direction| i8::from(self.games.moves(game).get(direction).is_some()));
        let all: Vec<i8> = (0..self.games.len()).flat_map(of_game).collect();
        Array2::from_shape_vec((self.games.len(), 4), all).unwrap_or_default().into_pyarray(py)
    }

    /// The board of a game.
    fn board(&self, game: usize) -> PyResult<Board> {
        if game >= self.games.len() {
            let count = self.games.len();
            return Err(UsageError::new_err(format!("expected a game number below {count}, found {game}")));
        }
        Ok(Board { packed: self.games.board(game), size: self.games.size() })
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.games.size().rows(), self.games.size().cols())
    }

    /// The rules of the game as a text. Equal rules have equal texts.
    #[getter]
    fn rules(&self) -> &str {
        &self.rules
    }

    fn __len__(&self) -> usize {
        self.games.len()
    }
}

impl Games {
    fn expect(&self, found: usize, what: &str) -> PyResult<()> {
        let games = self.games.len();
        if found == games {
            Ok(())
        } else {
            Err(UsageError::new_err(format!("expected {games} {what}, found {found}")))
        }
    }
}

/// The cells of a board, one byte a cell.
#[inline]
fn spread(board: u64) -> [u8; 16] {
    let half = |bits: u64| {
        let bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
        let bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
        (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f
    };
    let (low, high) = (half(board & 0xffff_ffff), half(board >> 32));
    let mut cells = [0; 16];
    cells[..8].copy_from_slice(&low.to_le_bytes());
    cells[8..].copy_from_slice(&high.to_le_bytes());
    cells
}
