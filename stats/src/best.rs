//! Which move is best in each state of a layer.

use std::sync::Arc;

use exact2048_game::rules::Move;
use exact2048_game::{Board, Layer};
use exact2048_solution::{Asking, LayerMoves, LayerStates, Oracle, QueryError, StateReader};

use crate::chances::ChanceTable;

/// Where best moves come from, layer by layer, the lowest first.
pub enum BestMoves<'a> {
    /// All states of a layer are read at once, with the values of their moves: by far the least work for each of them.
    Whole(StateReader<'a>),
    /// The oracle is asked about those that games come to: where whole layers take too much memory, or are not stored.
    Asked(&'a Oracle, &'a Asking<'a>),
}

/// Those of one layer.
pub enum BestOfLayer<'a> {
    /// See [`BestMoves::Whole`].
    Whole(&'a StateReader<'a>, Arc<LayerStates>, LayerMoves),
    /// See [`BestMoves::Asked`].
    Asked(&'a Oracle, &'a Asking<'a>),
}

impl<'a> BestMoves<'a> {
    /// Takes whole layers where these are stored and the memory allows it that a question may take.
    pub fn new(oracle: &'a Oracle, asking: &'a Asking<'a>) -> Self {
        let reader = oracle.state_reader(asking.wanted);
        let all = Layer::FIRST..=oracle.params().last_layer();
        match reader.has_all_states() && reader.bytes(all) <= asking.cone_bytes {
            true => Self::Whole(reader),
            false => Self::Asked(oracle, asking),
        }
    }

    /// The best moves of a layer, of which `states` will be asked for.
    pub fn of_layer(&mut self, layer: Layer, states: &ChanceTable) -> Result<BestOfLayer<'_>, QueryError> {
        match self {
            Self::Whole(reader) => {
                let (states, moves) = (reader.states(layer)?, reader.moves(layer)?);
                Ok(BestOfLayer::Whole(reader, states, moves))
            }
            Self::Asked(oracle, asking) => {
                prepare(oracle, layer, states, asking)?;
                Ok(BestOfLayer::Asked(oracle, asking))
            }
        }
    }
}

impl BestOfLayer<'_> {
    /// The best moves of some states by their canonical boards, of equal ones the first; `None` where none is legal.
    pub fn of(&self, boards: &[Board]) -> Result<Vec<Option<Move>>, QueryError> {
        match self {
            Self::Whole(reader, states, moves) => {
                boards.iter().map(|&board| Ok(moves.best(reader.number_of(states, board)?))).collect()
            }
            Self::Asked(oracle, asking) => {
                let answers = oracle.evaluate_as(boards, asking)?;
                answers.into_iter().map(|answer| Ok(answer?.best)).collect()
            }
        }
    }
}

/// Has the oracle work out together what the moves of a layer lead to, where that is not stored. Above a stored layer it is
/// known already: it is what the moves below lead to.
fn prepare(
    oracle: &Oracle,
    layer: Layer,
    states: &ChanceTable,
    asking: &Asking<'_>,
) -> Result<(), QueryError> {
    if layer > Layer::FIRST.up(2) && !oracle.params().kept.keeps(layer) {
        return Ok(());
    }
    let entries = states.buckets.iter().flat_map(|bucket| &bucket.entries);
    let boards: Vec<Board> = entries.map(|entry| entry.board).collect();
    oracle.prepare(layer, &boards, asking)
}
