//! Many games at once, move by move, for training programs.

use exact2048_game::rules::Move;
use exact2048_game::{Board, BoardSize, Spawn4};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::engine::{Engine, LegalMoves};

/// Games played in parallel. Each game depends on its seed and its moves alone.
///
/// A finished game stays finished until the caller begins it again.
#[derive(Clone, Debug)]
pub struct ManyGames {
    engine: Engine,
    /// Exponent of the target tile. This tile ends a game.
    target: Option<u8>,
    games: Vec<Game>,
}

/// One of the games. It caches the legal moves of its board, so making a move is a lookup.
#[derive(Clone, Debug)]
struct Game {
    board: Board,
    moves: LegalMoves,
    is_won: bool,
    lots: Xoshiro256PlusPlus,
}

/// Outcome of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StepOutcome {
    /// Score of the move. An illegal move changes and scores nothing.
    pub score: u32,
    /// Whether the game is over, won or not.
    pub is_over: bool,
    /// Whether the target tile was reached.
    pub is_won: bool,
}

impl ManyGames {
    /// Creates games that the caller must begin with [`begin`](Self::begin) or [`place`](Self::place).
    ///
    /// A game's seed is its number, unless [`seed`](Self::seed) changes the seed.
    #[must_use]
    pub fn new(size: BoardSize, spawn4: Spawn4, target: Option<u8>, count: usize) -> Self {
        let game = |seed| Game {
            board: Board::default(),
            moves: LegalMoves::default(),
            is_won: false,
            lots: Xoshiro256PlusPlus::seed_from_u64(seed),
        };
        Self { engine: Engine::new(size, spawn4), target, games: (0..).take(count).map(game).collect() }
    }

    /// Number of games.
    #[must_use]
    pub fn len(&self) -> usize {
        self.games.len()
    }

    /// Whether there are no games.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.games.is_empty()
    }

    /// The size of the boards.
    #[must_use]
    pub fn size(&self) -> BoardSize {
        self.engine.size()
    }

    /// Seeds a game. The same seed and moves give the same game.
    pub fn seed(&mut self, game: usize, seed: u64) {
        self.games[game].lots = Xoshiro256PlusPlus::seed_from_u64(seed);
    }

    /// Begins a game with two tiles, on a board with a legal move. Loose stones are in random cells.
    ///
    /// Beside stones, some starts have none. If no start has any, the call does not return.
    pub fn begin(&mut self, game: usize) {
        loop {
            let lots = &mut self.games[game].lots;
            let stones = self.engine.without_tiles(lots);
            let (first, ..) = self.engine.spawn(stones, lots);
            let (board, ..) = self.engine.spawn(first, lots);
            self.place(game, board);
            if !self.is_over(game) {
                return;
            }
        }
    }

    /// Begins a game with a given board.
    pub fn place(&mut self, game: usize, board: Board) {
        let Self { engine, target, games } = self;
        games[game].take(engine, *target, board);
    }

    /// The board of a game.
    #[inline]
    #[must_use]
    pub fn board(&self, game: usize) -> Board {
        self.games[game].board
    }

    /// The legal moves of a game; empty if the game is over.
    #[inline]
    #[must_use]
    pub fn moves(&self, game: usize) -> &LegalMoves {
        &self.games[game].moves
    }

    /// Whether a game is over.
    #[inline]
    #[must_use]
    pub fn is_over(&self, game: usize) -> bool {
        self.games[game].moves.is_empty()
    }

    /// Makes a move in a game and spawns a tile. Costs a few tens of nanoseconds.
    #[inline]
    pub fn make(&mut self, game: usize, direction: Move) -> StepOutcome {
        let Self { engine, target, games } = self;
        let game = &mut games[game];
        let score = match game.moves.get(direction) {
            Some((after, score)) => {
                let (board, ..) = engine.spawn(after, &mut game.lots);
                game.take(engine, *target, board);
                score
            }
            None => 0,
        };
        StepOutcome { score, is_over: game.moves.is_empty(), is_won: game.is_won }
    }
}

impl Game {
    #[inline]
    fn take(&mut self, engine: &Engine, target: Option<u8>, board: Board) {
        self.board = board;
        self.is_won = target.is_some_and(|target| engine.packed().has(board, target));
        self.moves = if self.is_won { LegalMoves::default() } else { engine.moves(board) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exact2048_game::rules::make_move;

    fn games(size: &str, target: Option<u8>, count: usize) -> ManyGames {
        let mut games = ManyGames::new(size.parse().unwrap(), Spawn4::default(), target, count);
        for game in 0..count {
            games.seed(game, game as u64);
            games.begin(game);
        }
        games
    }

    /// Plays all games with the four directions in turn, legal or not. Returns the boards and the sum of the scores.
    fn play(games: &mut ManyGames, moves: usize) -> (Vec<Board>, u64) {
        let mut score = 0;
        for nth in 0..moves {
            for game in 0..games.len() {
                score += u64::from(games.make(game, Move::ALL[(nth + game) % 4]).score);
            }
        }
        ((0..games.len()).map(|game| games.board(game)).collect(), score)
    }

    #[test]
    fn games_follow_the_rules() {
        for size in ["2x2", "3x3", "4x3", "4x4"] {
            let mut games = games(size, None, 20);
            let (size, cells) = (games.size(), games.size().cells());
            for nth in 0..300 {
                for game in 0..games.len() {
                    let (before, direction) = (games.board(game), Move::ALL[(nth + game) % 4]);
                    let made = games.make(game, direction);
                    let now = games.board(game);
                    match make_move(before, direction, size) {
                        Some((after, score)) => {
                            assert_eq!(made.score, score);
                            let changed: Vec<usize> =
                                (0..cells).filter(|&c| after.get(c) != now.get(c)).collect();
                            assert!(changed.len() == 1 && after.get(changed[0]) == 0, "{after:?} {now:?}");
                            assert!([1, 2].contains(&now.get(changed[0])));
                        }
                        None => assert_eq!((made.score, now), (0, before)),
                    }
                    let is_over =
                        Move::ALL.iter().all(|&direction| make_move(now, direction, size).is_none());
                    assert_eq!((made.is_over, games.is_over(game), made.is_won), (is_over, is_over, false));
                }
            }
        }
    }

    #[test]
    fn seeds_determine_games() {
        let (mut some, mut same) = (games("3x3", None, 8), games("3x3", None, 8));
        assert_eq!(play(&mut some, 50), play(&mut same, 50));
        same.seed(3, 99);
        same.begin(3);
        let (boards, others) = (play(&mut some, 0).0, play(&mut same, 0).0);
        let differing: Vec<usize> = (0..8).filter(|&game| boards[game] != others[game]).collect();
        assert_eq!(differing, [3]);
        let mut unseeded = ManyGames::new("3x3".parse().unwrap(), Spawn4::default(), None, 8);
        (0..8).for_each(|game| unseeded.begin(game));
        assert_eq!(play(&mut unseeded, 50).0, boards);
    }

    #[test]
    fn a_won_game_is_over() {
        let mut games = games("2x2", Some(4), 1);
        games.place(0, Board::parse("8 8 / 0 0", games.size()).unwrap());
        assert_eq!(games.make(0, Move::Up).score, 0);
        assert!(!games.is_over(0));
        games.place(0, Board::parse("8 8 / 0 0", games.size()).unwrap());
        assert_eq!(games.make(0, Move::Left), StepOutcome { score: 16, is_over: true, is_won: true });
        assert_eq!(games.make(0, Move::Right), StepOutcome { score: 0, is_over: true, is_won: true });
        games.begin(0);
        assert!(!games.is_over(0));
    }
}
