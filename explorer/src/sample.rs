//! Samples of the states of a layer.

use exact2048_game::layered::LayeredGame;
use exact2048_game::rules::empty_cells;
use exact2048_game::{Board, Layer, Params};
use exact2048_solution::{Oracle, QueryError, Wanted};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Number of states that are read for each wanted state. The surplus lets a sample cover several parts of the layer.
const READ_FOR_EACH: usize = 8;

/// Number of games that are begun for each wanted state. Most states of a layer have few empty cells, so most games end
/// soon.
const GAMES_FOR_EACH: usize = 32;

/// Share of the moves that are drawn from all legal ones. The others leave the most cells empty, because games of random
/// moves end soon.
const RANDOM_MOVES: f64 = 0.25;

/// Draws up to `most` states of a layer as canonical boards. The same seed gives the same states.
///
/// Draws parts of the layer first, and then states within these parts. Any state can be drawn, but not all states are
/// equally likely.
pub fn sample(
    oracle: &Oracle,
    layer: Layer,
    most: usize,
    seed: u64,
    wanted: Wanted<'_>,
) -> Result<Vec<Board>, QueryError> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(layer.0.into());
    let mut parts = oracle.parts_of(layer)?;
    parts.shuffle(&mut generator);
    let mut boards = Vec::new();
    for part in parts {
        if boards.len() >= READ_FOR_EACH * most {
            break;
        }
        if !wanted() {
            return Err(QueryError::GivenUp);
        }
        boards.extend(oracle.states_of(part)?);
    }
    let (chosen, _) = boards.partial_shuffle(&mut generator, most);
    Ok(chosen.to_vec())
}

/// Draws up to `most` states of a layer, as [`sample`] does. If the run no longer stores its reachability, draws states
/// of the next lower layer that has it, and plays on from them. Such games reach only reachable states.
///
/// # Errors
///
/// As for [`sample`]; [`QueryError::ReachRemoved`] if no game reaches the layer.
pub fn sample_or_play(
    oracle: &Oracle,
    layer: Layer,
    most: usize,
    seed: u64,
    wanted: Wanted<'_>,
) -> Result<Vec<Board>, QueryError> {
    let mut from = layer;
    let begun = loop {
        let games = if from == layer { most } else { GAMES_FOR_EACH * most };
        match (sample(oracle, from, games, seed, wanted), from.down(1)) {
            (Err(QueryError::ReachRemoved(_)), Some(lower)) => from = lower,
            (boards, _) => break boards?,
        }
    };
    if from == layer {
        return Ok(begun);
    }
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(layer.0.into());
    let params = oracle.params();
    let played = begun.into_iter().filter_map(|board| play_to(params, board, layer, &mut generator));
    let played = played.filter_map(|board| params.images(board).into_iter().min());
    let mut boards: Vec<Board> = played.take(most).collect();
    boards.sort_unstable();
    boards.dedup();
    if boards.is_empty() { Err(QueryError::ReachRemoved(layer)) } else { Ok(boards) }
}

/// Plays up to a layer; `None` if the game ends before.
fn play_to(params: &Params, mut board: Board, layer: Layer, generator: &mut impl Rng) -> Option<Board> {
    let spawns = params.spawns();
    while params.layer(board) < layer.number() {
        let left = layer.number() - params.layer(board);
        let mut afterstates = params.moves(board);
        afterstates.retain(|&(after, _)| !params.is_won(after));
        let empty = |after: Board| empty_cells(after, params.game().board()).count();
        let most = afterstates.iter().map(|&(after, _)| empty(after)).max()?;
        if !generator.random_bool(RANDOM_MOVES) {
            afterstates.retain(|&(after, _)| empty(after) == most);
        }
        let &(after, _) = afterstates.choose(generator)?;
        let kinds: Vec<usize> = (0..spawns.len()).filter(|&kind| spawns[kind].rise <= left).collect();
        let &kind = kinds.choose_weighted(generator, |&kind| spawns[kind].weight).ok()?;
        board = *params.spawned(after, kind).choose(generator)?;
    }
    Some(board)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_games_end_in_the_layer() {
        for (board, objective) in [("3x3", "score"), ("3x3", "reach:64"), ("4x1", "score")] {
            let params = Params::usual(board, objective).build().unwrap();
            let mut generator = ChaCha8Rng::seed_from_u64(1);
            let layer = Layer(12);
            let starts: Vec<Board> = params.starts();
            let ends: Vec<Board> =
                starts.iter().filter_map(|&start| play_to(&params, start, layer, &mut generator)).collect();
            assert!(ends.len() > starts.len() / 2, "{board}: {} of {}", ends.len(), starts.len());
            assert!(ends.iter().all(|&end| params.layer(end) == layer.number()));
        }
    }
}
