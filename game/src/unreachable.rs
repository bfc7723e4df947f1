//! Proofs that a board is unreachable, without a search of games.

use crate::board::Board;
use crate::layer::{Layer, SpawnKind};
use crate::params::Game;

/// Returns the reason why games that end at this layer never hold a board: see [`Params::why_unreachable`].
///
/// Both spawned tiles count as possible even at probability 0, because runs enumerate both. Cost: one pass over the
/// cells.
///
/// [`Params::why_unreachable`]: crate::Params::why_unreachable
pub(crate) fn why_unreachable(board: Board, game: &Game, last: Layer) -> Option<&'static str> {
    let (size, tiles_of_board) = (game.board(), game.board().tiles_of(board));
    let mut of_exponent = [0usize; 16];
    for cell in size.playable() {
        of_exponent[usize::from(tiles_of_board.get(cell))] += 1;
    }
    let empty_or_stone = of_exponent[0];
    let wins = game.winning_exponent().map_or(of_exponent.len(), usize::from);
    if of_exponent[wins.min(of_exponent.len())..].iter().any(|&tiles| tiles > 0) {
        return Some("it holds the wanted tile, and won boards are not expanded");
    }
    if game.cells() - empty_or_stone < 2 {
        return Some("a game starts with two tiles");
    }
    if board.tile_sum(size) > last.0 {
        return Some("its tiles sum to more than any reachable board's");
    }
    if board.tile_sum(size) < game.first_layer().0 {
        return Some("its tiles sum to less than those of the position from which the run begins");
    }
    if SpawnKind::ALL.iter().all(|spawn| of_exponent[usize::from(spawn.exponent())] == 0) {
        return Some("it has neither a 2 nor a 4, but the last spawn is one of them");
    }
    let mut tiles = 0;
    let is_too_full = |(exponent, &of_this): (usize, &usize)| {
        tiles += of_this;
        tiles > game.most_cells_with(exponent as u8)
    };
    let crowded = of_exponent.iter().enumerate().skip(1).rev().any(is_too_full);
    crowded.then_some("the board has too few cells to make that many large tiles")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::rules::{self, Move};
    use crate::{Params, SpawnKind};

    fn params(size: &str, objective: &str) -> Params {
        Params::usual(size, objective).build().unwrap()
    }

    fn why(size: &str, objective: &str, board: &str) -> Option<&'static str> {
        let params = params(size, objective);
        params.why_unreachable(Board::parse(board, params.game().board()).unwrap())
    }

    #[test]
    fn each_reason_is_given() {
        for (size, objective, board, reason) in [
            ("3x2", "score", "8 8 / 8 8 / 8 8", "neither a 2 nor a 4"),
            ("2x2", "score", "0 0 / 0 0", "starts with two tiles"),
            ("2x2", "score", "4 0 / 0 0", "starts with two tiles"),
            ("2x2", "reach:16", "16 2 / 0 0", "wanted tile"),
            ("2x2", "score", "32 32 / 2 2", "sum to more"),
            ("2x2", "score", "16 16 / 16 2", "too few cells"),
        ] {
            let why = why(size, objective, board);
            assert!(why.is_some_and(|why| why.contains(reason)), "{board}: {why:?}");
        }
        assert_eq!(why("2x2", "score", "32 16 / 8 4"), None);
    }

    /// Enumerates all games of small boards. Only won boards have a reason.
    #[test]
    fn no_reachable_board_has_a_reason() {
        for (size, objective) in [
            ("2x2", "score"),
            ("2x2", "reach:16"),
            ("1x4", "score"),
            ("5x1", "score"),
            ("3x2", "reach:32"),
            ("3x2+2x", "reach:16"),
        ] {
            let params = params(size, objective);
            let mut open: Vec<Board> = rules::starts(params.game().board()).map(|(board, _)| board).collect();
            let mut seen: HashSet<Board> = open.iter().copied().collect();
            while let Some(board) = open.pop() {
                let wins = params.game().is_won(board);
                let why = params.why_unreachable(board);
                assert_eq!(why.is_some(), wins, "{size} {}: {why:?}", board.to_text(params.game().board()));
                let moves = Move::ALL.into_iter().filter(|_| !wins);
                for (after, _) in moves.filter_map(|way| rules::make_move(board, way, params.game().board()))
                {
                    for cell in rules::empty_cells(after, params.game().board()) {
                        let with = SpawnKind::ALL.iter().map(|spawn| after.with(cell, spawn.exponent()));
                        open.extend(with.filter(|&next| seen.insert(next)));
                    }
                }
            }
        }
    }
}
