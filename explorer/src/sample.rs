//! Samples of the states of a layer.

use exact2048_game::{Board, Layer};
use exact2048_solution::{Oracle, QueryError, Wanted};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Number of states that are read for each wanted state. The surplus lets a sample cover several parts of the layer.
const READ_FOR_EACH: usize = 8;

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
