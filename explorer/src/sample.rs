//! Some states of a layer.

use exact2048_game::{Board, Layer};
use exact2048_solution::{Oracle, QueryError, Wanted};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// States that are read for each that is wanted, so that a sample is not of one part of the layer alone.
const READ_FOR_EACH: usize = 8;

/// Up to `most` states of a layer as canonical boards, all where there are no more. The same seed gives the same ones. Parts
/// of the layer are drawn first and then states within them: each state may be drawn, but not all are quite equally
/// likely.
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
