//! The end of the chain.

use crate::arithmetic::Arithmetic;
use crate::chain::{Chain, StateId};
use crate::{Bag, chain};

/// Probabilities that the chain ends in each absorbing state.
#[derive(Clone, Debug)]
pub struct Absorption<T> {
    /// The reachable absorbing states with their probabilities, in ascending order of sums.
    pub states: Vec<(Bag, T)>,
    /// Sums of absorbing states in ascending order, with their probabilities.
    pub sums: Vec<(u64, T)>,
}

/// Computes the probability of each absorbing state, in one pass from the first layer to the last.
#[must_use]
pub fn absorption<A: Arithmetic>(chain: &Chain, arithmetic: &A) -> Absorption<A::Value> {
    let mut reached: Vec<Option<A::Number>> = vec![None; chain.states().len()];
    let add = |reached: &mut Vec<Option<A::Number>>, id: StateId, number: &A::Number| match &mut reached[id] {
        Some(sum) => arithmetic.add(sum, number),
        none => *none = Some(number.clone()),
    };
    let one = arithmetic.one();
    for first in [arithmetic.by_two(&one), arithmetic.by_four(&one)].iter().zip([1, 2]) {
        let (number, step) = first;
        for (second, number) in [(1, arithmetic.by_two(number)), (2, arithmetic.by_four(number))] {
            if let Some(id) = chain.find(Bag::EMPTY.with(step).with(second)) {
                add(&mut reached, id, &number);
            }
        }
    }
    let (mut states, mut sums) = (Vec::new(), Vec::new());
    for (sum, layer) in chain.layers() {
        let steps = u32::try_from(sum / 2).expect("sums are below 2^25");
        let mut in_layer: Option<A::Number> = None;
        for id in layer {
            // Takes the number out of the list. Exact numbers are long, and the pass does not need this number again.
            let Some(number) = reached[id].take() else { continue };
            let chain::BagState { bag, next } = chain.states()[id];
            if let Some([two, four]) = next {
                two.inspect(|&id| add(&mut reached, id, &arithmetic.by_two(&number)));
                four.inspect(|&id| add(&mut reached, id, &arithmetic.by_four(&number)));
            } else {
                states.push((bag, arithmetic.value(&number, steps, 1)));
                match &mut in_layer {
                    Some(sum) => arithmetic.add(sum, &number),
                    none => *none = Some(number),
                }
            }
        }
        if let Some(number) = in_layer {
            sums.push((sum, arithmetic.value(&number, steps, 1)));
        }
    }
    Absorption { states, sums }
}
