//! Merges equivalent states of a graph (the greatest bisimulation).
//!
//! Equivalent states give the player the same choices among classes of equivalent states, with the same probabilities.
//! In each state, chance picks a *branch*, then the player picks a successor of this branch.
//!
//! The method is partition refinement. At first, all states form one class. In each round, each branch of a state has a
//! set of classes: those of its successors. The state's *signature* lists the distinct sets with their probabilities. A
//! round splits each class by signature; the method ends when a round splits no class. The number of rounds is at most
//! the number of classes, and the time of a round is proportional to the number of edges. Symmetries, such as mirror
//! images and swapped pieces, need no special treatment.

use rayon::prelude::*;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

use crate::graph::{Explicit, Graph, Node};

/// The classes of equivalent states of a graph.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// The graph of the classes.
    pub graph: Explicit,
    /// The class of each state.
    pub class_of: Vec<Node>,
}

/// The branches of a state as distinct sets of classes, in order, each with its weight in lowest terms.
type Signature = Vec<(Vec<Node>, u32)>;

/// Merges all equivalent states.
///
/// Rounds compare hashes of signatures, so a collision may leave different states in one class. The last step compares the
/// signatures. After a collision, the function starts again with other hashes.
#[must_use]
pub fn minimise(graph: &impl Graph) -> Minimised {
    (0..).find_map(|seed| refine(graph, seed)).unwrap_or_else(|| unreachable!("hashes differ for some seed"))
}

fn refine(graph: &impl Graph, seed: u64) -> Option<Minimised> {
    let nodes = 0..graph.nodes() as Node;
    let mut class_of: Vec<Node> = vec![0; graph.nodes()];
    let mut classes = 1;
    loop {
        let mut keys: Vec<(Node, u64, Node)> = nodes
            .clone()
            .into_par_iter()
            .map(|node| (class_of[node as usize], hash(&signature(graph, node, &class_of), seed), node))
            .collect();
        keys.par_sort_unstable();
        let mut found = 0;
        for (at, &(class, hash, node)) in keys.iter().enumerate() {
            if at > 0 && (keys[at - 1].0, keys[at - 1].1) != (class, hash) {
                found += 1;
            }
            class_of[node as usize] = found;
        }
        if found as usize + 1 == classes {
            break;
        }
        classes = found as usize + 1;
    }
    let mut first: Vec<Option<Node>> = vec![None; classes];
    for (node, &class) in class_of.iter().enumerate() {
        first[class as usize].get_or_insert(node as Node);
    }
    let first: Vec<Node> = first.into_iter().flatten().collect();
    let branches: Vec<Signature> = first.par_iter().map(|&node| signature(graph, node, &class_of)).collect();
    let is_same = |node| signature(graph, node, &class_of) == branches[class_of[node as usize] as usize];
    nodes.into_par_iter().all(is_same).then_some(Minimised { graph: Explicit { branches }, class_of })
}

fn signature(graph: &impl Graph, node: Node, class_of: &[Node]) -> Signature {
    let mut signature: Signature = Vec::with_capacity(7);
    graph.branches(node, |weight, successors| {
        let mut set: Vec<Node> = successors.iter().map(|&next| class_of[next as usize]).collect();
        set.sort_unstable();
        set.dedup();
        match signature.iter_mut().find(|(known, _)| *known == set) {
            Some((_, sum)) => *sum += weight,
            None => signature.push((set, weight)),
        }
    });
    signature.sort_unstable();
    let divisor = signature.iter().fold(0, |divisor, (_, weight)| gcd(divisor, *weight));
    for (_, weight) in &mut signature {
        *weight /= divisor;
    }
    signature
}

fn hash(signature: &Signature, seed: u64) -> u64 {
    let mut hasher = FxHasher::default();
    seed.hash(&mut hasher);
    signature.hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equivalent_states_are_merged() {
        let end = || vec![(vec![], 1)];
        // States 0 and 1 end. States 2 and 3 continue with 0 or 1, or end, at the same probabilities. State 4 does so at
        // other probabilities. State 5 may choose 2 or 3.
        let branches = vec![
            end(),
            end(),
            vec![(vec![], 1), (vec![0], 1)],
            vec![(vec![], 2), (vec![0, 1], 2)],
            vec![(vec![], 1), (vec![1], 2)],
            vec![(vec![2, 3], 3)],
        ];
        let minimised = minimise(&Explicit { branches });
        let class = &minimised.class_of;
        assert_eq!((class[0], class[2]), (class[1], class[3]));
        assert_eq!(minimised.graph.nodes(), 4);
        assert_eq!(minimised.graph.branches[class[5] as usize], [(vec![class[2]], 1)]);
    }
}
