//! Boards of a run as a user sees them: as the run stores them, or as positions of the real game.
//!
//! A formation has locks in place of the largest tiles of a real game. So a position of the real game is a board of the
//! formation if its largest tiles are in the cells of the locks. A rotation or reflection may bring them there. Loose
//! stones are the largest tiles in any cells.

use crate::board::{Board, BoardError, BoardSize, MAX_EXPONENT, cells_of, rows_of, tile};
use crate::params::Game;
use crate::rules::{Move, make_move};
use crate::stones::Stone;
use crate::symmetry::{Symmetries, Symmetry};

/// A board in a question, and how its answer shows boards.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Board of the run.
    pub board: Board,
    /// How the answer shows boards.
    pub perspective: Perspective,
}

impl Asked {
    /// A board of a run.
    #[must_use]
    pub fn of_run(board: Board, size: BoardSize) -> Self {
        Self { board, perspective: size.into() }
    }

    /// Parses the board of a question. If the board of the game has locks or loose stones and the text shows none, the text
    /// is a position of the real game.
    ///
    /// # Errors
    ///
    /// Those of [`Board::parse`], and [`BoardError::NotOfFormation`] for a position of the real game that does not fit.
    pub fn parse(text: &str, game: &Game) -> Result<Self, BoardError> {
        let size = game.board();
        let shows_stones = rows_of(text).flat_map(cells_of).any(|cell| Stone::of_text(cell).is_some());
        let stands_for_large_tiles = size.stone() == Some(Stone::Locked) || size.loose() > 0;
        if !stands_for_large_tiles || shows_stones {
            return Ok(Self::of_run(Board::parse(text, size)?, size));
        }
        real(Board::parse(text, size.without_stones())?, game)
    }
}

/// How answers show boards of a run.
#[derive(Clone, Debug)]
pub struct Perspective {
    size: BoardSize,
    position: Option<Position>,
}

/// A position of the real game that fits a formation.
#[derive(Clone, Debug)]
struct Position {
    /// The large tiles of the position and after each of its moves. Locks keep them in their cells.
    large: Vec<LargeTiles>,
    /// The formation's board has in cell `i` the tile of cell `perm[i]` of the position.
    perm: Symmetry,
}

/// The large tiles of the real game on a board of the formation.
#[derive(Clone, Debug)]
struct LargeTiles {
    /// The board of the formation.
    of_run: Board,
    /// The large tiles of the real game, in the cells of the position.
    real: Board,
}

impl From<BoardSize> for Perspective {
    fn from(size: BoardSize) -> Self {
        Self { size, position: None }
    }
}

impl Perspective {
    /// Size of the shown boards.
    #[must_use]
    pub fn size(&self) -> BoardSize {
        if self.position.is_some() { self.size.without_stones() } else { self.size }
    }

    /// Size of the boards of the run.
    #[must_use]
    pub fn size_of_run(&self) -> BoardSize {
        self.size
    }

    /// Whether the user asks about a position of the real game.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.position.is_some()
    }

    /// The shown board for a board of the run: the asked board, or that after a move, perhaps with one more tile.
    #[must_use]
    pub fn shown(&self, board: Board) -> Board {
        let Some(Position { large, perm }) = &self.position else { return board };
        let leads_to = |from: &&LargeTiles| {
            self.size.playable().all(|place| {
                let tile = from.of_run.get(place);
                tile == 0 || tile == board.get(place)
            })
        };
        let real = large.iter().find(leads_to).or(large.first()).map_or(Board::default(), |large| large.real);
        let is_tile =
            |place: usize| !self.size.is_stone(place) && !self.size.is_loose_stone(board.get(place));
        let places = perm.iter().enumerate().filter(|&(place, _)| is_tile(place));
        places.fold(real, |shown, (place, &cell)| shown.with(cell.into(), board.get(place)))
    }

    /// The shown cell for a cell of the run.
    #[must_use]
    pub fn shown_cell(&self, of_run: usize) -> usize {
        self.position.as_ref().map_or(of_run, |position| position.perm[of_run].into())
    }

    /// The shown board as text.
    #[must_use]
    pub fn text(&self, board: Board) -> String {
        self.shown(board).to_text(self.size())
    }

    /// The move of the run for a shown move.
    #[must_use]
    pub fn of_run(&self, shown: Move) -> Move {
        let Some(Position { perm, .. }) = &self.position else { return shown };
        let plain = self.size.without_stones();
        let in_order = |mut lines: Vec<Vec<u8>>| {
            lines.sort_unstable();
            lines
        };
        let wanted = in_order(shown.lines(plain));
        let is_same = |made: &Move| {
            let line = |line: Vec<u8>| line.iter().map(|&place| perm[usize::from(place)]).collect();
            in_order(made.lines(plain).into_iter().map(line).collect()) == wanted
        };
        Move::ALL.into_iter().find(is_same).unwrap_or(shown)
    }

    /// The shown move for a move of the run.
    #[must_use]
    pub fn shown_move(&self, of_run: Move) -> Move {
        Move::ALL.into_iter().find(|&shown| self.of_run(shown) == of_run).unwrap_or(of_run)
    }
}

/// The board of the formation for a position of the real game.
fn real(position: Board, game: &Game) -> Result<Asked, BoardError> {
    let size = game.board();
    let plain = size.without_stones();
    let refused = |reason: String| BoardError::NotOfFormation { board: position.to_text(plain), reason };
    let Some(target) = game.winning_exponent() else {
        let what = "expected locks, because only runs of reach:TILE or lose:TILE answer positions of the real game; write x \
                    in the cells of the locks";
        return Err(refused(what.to_owned()));
    };
    let locks = size.stones().count_ones() as usize + usize::from(size.loose());
    let mut cells: Vec<usize> = (0..size.places()).collect();
    cells.sort_by_key(|&cell| MAX_EXPONENT - position.get(cell));
    let large = &cells[..locks];
    let smallest = position.get(large[locks - 1]);
    if smallest < target {
        return Err(refused(format!(
            "expected {locks} tiles of at least {}, because the formation has {locks} stones, found {} as number {locks}; write \
             x in the cells of the stones, or ask a run with fewer stones or a smaller tile to reach",
            tile(target),
            tile(smallest)
        )));
    }
    if let Some(pair) = large.windows(2).find(|pair| position.get(pair[0]) == position.get(pair[1])) {
        return Err(refused(format!(
            "expected {locks} different large tiles, found {} twice; equal tiles can merge, so they are no stones",
            tile(position.get(pair[0]))
        )));
    }
    let fits = |perm: &Symmetry| {
        let is_stone = |(place, &cell)| size.is_stone(place) == large.contains(&usize::from(cell));
        size.loose() > 0 || (0..).zip(perm).all(is_stone)
    };
    let Some(perm) = Symmetries::new(plain).permutations().iter().find(|perm| fits(perm)).cloned() else {
        return Err(refused(format!(
            "expected the {locks} largest tiles in the cells of the locks of {size}, turned or mirrored, found them elsewhere"
        )));
    };
    let places = perm.iter().enumerate().filter(|&(place, _)| !size.is_stone(place));
    let exponent = |cell: usize| {
        if size.loose() > 0 && large.contains(&cell) { MAX_EXPONENT } else { position.get(cell) }
    };
    let board =
        places.fold(Board::default(), |board, (place, &cell)| board.with(place, exponent(cell.into())));
    if size.largest(board) > size.most_exponent() {
        return Err(BoardError::TileBesideStones);
    }
    let large = large_tiles(position, board, size, smallest);
    Ok(Asked { board, perspective: Perspective { size, position: Some(Position { large, perm }) } })
}

/// The large tiles of a position and, if they are loose, after each of its moves. `smallest` is the exponent of the
/// smallest of them.
fn large_tiles(position: Board, of_run: Board, size: BoardSize, smallest: u8) -> Vec<LargeTiles> {
    let plain = size.without_stones();
    let large = |board: Board| {
        let cells = (0..size.places()).filter(|&cell| board.get(cell) >= smallest);
        cells.fold(Board::default(), |large, cell| large.with(cell, board.get(cell)))
    };
    let moves = Move::ALL.into_iter().filter(|_| size.loose() > 0);
    let after = moves.filter_map(|way| {
        let (of_run, _) = make_move(of_run, way, size)?;
        let (real, _) = make_move(position, way, plain)?;
        Some(LargeTiles { of_run, real: large(real) })
    });
    std::iter::once(LargeTiles { of_run, real: large(position) }).chain(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::rules::make_move;

    fn game(board: &str, objective: &str) -> Game {
        *Params::usual(board, objective).build().unwrap().game()
    }

    #[test]
    fn positions_of_the_real_game_are_turned_and_back() {
        let game = game("4x4:..../..../.xxx/.xxx", "reach:64");
        let size = game.board();
        let plain: BoardSize = "4x4".parse().unwrap();
        let formation = Board::parse("2 0 4 0 / 0 8 0 0 / 2 x x x / 16 x x x", size).unwrap();
        let real = Board::parse("2 0 4 0 / 0 8 0 0 / 2 128 64 256 / 16 512 2048 1024", plain).unwrap();
        for image in Symmetries::new(plain).images(real) {
            let Asked { board, perspective } = Asked::parse(&image.to_text(plain), &game).unwrap();
            assert_eq!((board, perspective.shown(board), perspective.size()), (formation, image, plain));
            for made in Move::ALL {
                let of_run = make_move(board, perspective.of_run(made), size);
                assert_eq!(perspective.shown_move(perspective.of_run(made)), made);
                // A legal move of the formation is the same move of the real game.
                if let Some((after, score)) = of_run {
                    assert_eq!(make_move(image, made, plain), Some((perspective.shown(after), score)));
                }
            }
        }
        // A board with its locks is shown as it is.
        let Asked { board, perspective } = Asked::parse(&formation.to_text(size), &game).unwrap();
        assert_eq!(
            (board, perspective.text(board), perspective.is_real()),
            (formation, formation.to_text(size), false)
        );
    }

    #[test]
    fn loose_stones_are_the_largest_tiles_wherever_they_are() {
        let game = game("4x4+3x", "reach:64");
        let (size, plain): (BoardSize, BoardSize) = (game.board(), "4x4".parse().unwrap());
        let real = "2 0 4 0 / 0 128 64 0 / 2 16 0 256 / 16 8 2 4";
        let Asked { board, perspective } = Asked::parse(real, &game).unwrap();
        assert_eq!(board.to_text(size), "2 0 4 0 / 0 x x 0 / 2 16 0 x / 16 8 2 4");
        assert_eq!(perspective.text(board), real);
        let real = Board::parse(real, plain).unwrap();
        for made in Move::ALL {
            let ((after, score), (real, real_score)) =
                (make_move(board, made, size).unwrap(), make_move(real, made, plain).unwrap());
            assert_eq!((perspective.shown(after), score), (real, real_score), "{}", made.name());
            let empty = (0..16).find(|&cell| after.get(cell) == 0).unwrap();
            assert_eq!(perspective.shown(after.with(empty, 1)), real.with(empty, 1));
        }
        for (text, words) in [
            ("2 0 4 0 / 0 128 128 0 / 2 16 0 256 / 16 8 2 4", "twice"),
            ("2 0 4 0 / 0 128 32 0 / 2 16 0 256 / 16 8 2 4", "found 32 as number 3"),
            ("2 0 4 0 / 0 x x 0 / 2 16 0 256 / 16 8 2 4", "2 loose stones, expected 3"),
        ] {
            let refusal = Asked::parse(text, &game).unwrap_err().to_string();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }

    #[test]
    fn positions_outside_a_formation_are_refused() {
        let refusal = |text: &str, objective: &str| {
            Asked::parse(text, &game("2x3:.x./.x.", objective)).unwrap_err().to_string()
        };
        for (text, objective, words) in [
            ("2 64 0 / 0 16 2", "reach:32", "found 16 as number 2"),
            ("2 64 0 / 0 64 2", "reach:32", "found 64 twice"),
            ("64 2 0 / 0 32 2", "reach:32", "found them elsewhere"),
            ("2 64 0 / 0 32 2", "score", "write x"),
            ("2 64 0 / 0 32", "reach:32", "2 cells in row 2"),
            ("2 x 0 / 0 32 2", "reach:32", "x"),
        ] {
            let found = refusal(text, objective);
            assert!(found.contains(words), "{text}: {found}");
        }
        // Walls are no tiles.
        assert!(Asked::parse("2 64 0 / 0 32 2", &game("2x3:.#./.#.", "reach:32")).is_err());
    }
}
