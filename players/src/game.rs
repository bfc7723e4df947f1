//! Plays one game and records it.

use exact2048_game::Board;
use exact2048_game::rules::Move;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::engine::Engine;
use crate::player::{Player, PlayerError, Turn};

/// Identity of a game.
#[derive(Clone, Copy, Debug)]
pub struct GameId {
    /// Seed that all games share.
    pub seed: u64,
    /// Number of the game among all games.
    pub number: u64,
}

impl GameId {
    /// Random numbers for this game's spawns, or for its player.
    ///
    /// The two streams are separate, so the player's draws do not change the spawns.
    fn generator(self, of_player: bool) -> ChaCha8Rng {
        let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
        generator.set_stream(2 * self.number + u64::from(of_player));
        generator
    }
}

/// A played game.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlayedGame {
    /// The two start tiles, each as cell and exponent, in the order of their spawns. With [`PlayedGame::from`], there are
    /// none.
    pub start: Vec<(u8, u8)>,
    /// The board at which the game began, if [`Rules::from`] sets it or the board has loose stones.
    pub from: Option<Board>,
    /// The moves, each with the tile spawned after the move.
    pub steps: Vec<PlayedMove>,
    /// The board at the end.
    pub last: Board,
    /// Exponent of the largest tile at the end.
    pub largest: u8,
    /// Sum of the merged tiles.
    pub score: u64,
    /// Number of merges of two tiles of each exponent.
    pub merges: [u32; 16],
    /// Reason for an early end; `None` if the game ended because no move was legal.
    pub cut_short: Option<EarlyEnd>,
}

/// Reason for the early end of a game.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyEnd {
    /// The target tile was reached.
    Won,
    /// The player failed.
    PlayerFailed,
}

/// A move and the spawn after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayedMove {
    /// The move.
    pub direction: Move,
    /// The cell of the spawned tile.
    pub cell: u8,
    /// Exponent of the spawned tile.
    pub exponent: u8,
}

/// Rules of a game in addition to the rules of the board.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Exponent of the target tile. A game that reaches it is won and ends.
    pub target: Option<u8>,
    /// Engine for the spawns, if it differs from the player's engine.
    pub spawns: Option<Engine>,
    /// Board at which games begin, instead of two tiles on an empty board.
    pub from: Option<Board>,
    /// Whether a move that changes nothing is legal on a board with an empty cell. Such a move spawns a tile too.
    pub takes_idle_moves: bool,
}

impl Rules {
    /// The usual rules, up to a target tile.
    #[must_use]
    pub fn until(target: Option<u8>) -> Self {
        Self { target, ..Self::default() }
    }

    /// The rules of the program printed in a paper on Monte Carlo play (docs/players.md).
    ///
    /// One spawned tile in four is a 4, but the player assumes its own engine's spawns. Moves that change nothing are
    /// legal.
    #[must_use]
    pub fn of_the_paper(engine: &Engine, target: Option<u8>) -> Self {
        let quarter = "1/4".parse().expect("a probability");
        Self { target, spawns: Some(engine.with_spawn4(quarter)), takes_idle_moves: true, from: None }
    }
}

/// Plays a game until it is lost or won.
///
/// Calls `seen` with each board before a move, and with the last board. If the player fails, the game ends, and the
/// function returns the error with the game.
pub fn play(
    engine: &Engine,
    id: GameId,
    player: &mut dyn Player,
    rules: &Rules,
    mut seen: impl FnMut(Board, u64),
) -> (PlayedGame, Option<PlayerError>) {
    let (mut spawns, mut lots) = (id.generator(false), id.generator(true));
    let spawning = rules.spawns.as_ref().unwrap_or(engine);
    let (mut start, mut board) = (Vec::new(), rules.from.unwrap_or_default());
    if rules.from.is_none() {
        board = spawning.without_tiles(&mut spawns);
        for _ in 0..2 {
            let spawned = spawning.spawn(board, &mut spawns);
            board = spawned.0;
            start.push((spawned.1, spawned.2));
        }
    }
    let mut from = rules.from;
    if engine.size().loose() > 0 {
        // Two tiles do not tell where the loose stones are.
        (start, from) = (Vec::new(), Some(board));
    }
    let mut game = PlayedGame {
        start,
        from,
        steps: Vec::new(),
        last: board,
        largest: 0,
        score: 0,
        merges: [0; 16],
        cut_short: None,
    };
    let mut failure = player.begin(engine).err();
    while failure.is_none() {
        seen(board, game.score);
        if rules.target.is_some_and(|target| engine.size().largest(board) >= target) {
            game.cut_short = Some(EarlyEnd::Won);
            break;
        }
        let moves = engine.moves(board);
        if moves.is_empty() {
            break;
        }
        let takes_idle_moves = rules.takes_idle_moves;
        let idle = (takes_idle_moves && engine.empty(board) != 0).then_some((board, 0));
        let mut turn = Turn { engine, board, moves: &moves, takes_idle_moves, generator: &mut lots };
        let chosen = player.choose(&mut turn).and_then(|direction| {
            let illegal = || PlayerError::Illegal { direction, board: board.to_text(engine.size()) };
            moves.get(direction).or(idle).map(|made| (direction, made)).ok_or_else(illegal)
        });
        match chosen {
            Ok((direction, (after, score))) => {
                count_merges(board, after, &mut game.merges);
                let (spawned, cell, exponent) = spawning.spawn(after, &mut spawns);
                game.steps.push(PlayedMove { direction, cell, exponent });
                game.score += u64::from(score);
                board = spawned;
            }
            Err(error) => failure = Some(error),
        }
    }
    if failure.is_some() {
        game.cut_short = Some(EarlyEnd::PlayerFailed);
    }
    (game.last, game.largest) = (board, engine.size().largest(board));
    player.end(game.score);
    (game, failure)
}

/// Adds the merges of a move.
///
/// Works from the largest exponent down. Each additional tile of an exponent is the result of a merge. The merge took
/// two tiles of the next lower exponent.
fn count_merges(before: Board, after: Board, merges: &mut [u32; 16]) {
    let mut gained = [0i32; 17];
    for cell in 0..16 {
        gained[usize::from(after.get(cell))] += 1;
        gained[usize::from(before.get(cell))] -= 1;
    }
    let mut above = 0;
    for exponent in (1..16).rev() {
        // Merges of the next lower exponent made `made` tiles of this exponent. Merges of this exponent took 2·above
        // tiles.
        let made = gained[exponent] + 2 * above;
        if exponent > 1 {
            merges[exponent - 1] += made as u32;
        }
        above = made;
    }
}

/// A game as a line of JSON, sufficient to replay the game.
#[derive(Debug, Serialize)]
pub struct GameRecord<'a> {
    game: u64,
    seed: u64,
    board: String,
    player: &'a str,
    score: u64,
    cut_short: Option<EarlyEnd>,
    /// Cell and value of each of the two tiles at the start; none if the game began at a given board.
    start: Vec<[u32; 2]>,
    /// The board at which the game began, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// One letter per move: L, R, U, D.
    moves: String,
    /// Cell and value of the tile spawned after each move.
    spawns: Vec<[u32; 2]>,
    last: String,
}

impl<'a> GameRecord<'a> {
    /// The record of a game.
    #[must_use]
    pub fn new(engine: &Engine, id: GameId, player: &'a str, game: &PlayedGame) -> Self {
        let spawn = |cell: u8, exponent: u8| [u32::from(cell), 1 << exponent];
        let letter = |step: &PlayedMove| match step.direction {
            Move::Left => 'L',
            Move::Right => 'R',
            Move::Up => 'U',
            Move::Down => 'D',
        };
        Self {
            game: id.number,
            seed: id.seed,
            board: engine.size().to_string(),
            player,
            score: game.score,
            cut_short: game.cut_short,
            start: game.start.iter().map(|&(cell, exponent)| spawn(cell, exponent)).collect(),
            from: game.from.map(|board| board.to_text(engine.size())),
            moves: game.steps.iter().map(letter).collect(),
            spawns: game.steps.iter().map(|step| spawn(step.cell, step.exponent)).collect(),
            last: game.last.to_text(engine.size()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_follow_from_boards() {
        let engine = Engine::new("4x4".parse().unwrap(), exact2048_game::Spawn4::default());
        let before = Board::parse("2 2 4 4 / 2 2 2 2 / 8 8 16 2 / 0 2 0 2", engine.size()).unwrap();
        let (after, _) = engine.moves(before).get(Move::Left).unwrap();
        let mut merges = [0; 16];
        count_merges(before, after, &mut merges);
        assert_eq!(merges[..5], [0, 4, 1, 1, 0]);
        assert!(merges[5..].iter().all(|&n| n == 0));
    }
}
