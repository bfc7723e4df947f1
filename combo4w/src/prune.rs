//! Removes successors that are never better than another successor of the same branch, by the simulation preorder.
//!
//! A state j *simulates* a state i, written i ≤ j, if j can do everything that i can. More precisely, the probabilities
//! of i's branches can be moved completely to j's branches under one condition. Probability moves from a branch of i to
//! a branch of j only if each successor in i's branch is simulated by some successor in j's branch.
//!
//! The search for the greatest such relation begins with all pairs that the values allow. It removes the pairs that fail
//! the condition, until all remaining pairs meet it. Because i ≤ j implies V(i) ≤ V(j), a branch with j does not need i.

use rayon::prelude::*;

use crate::graph::{Explicit, Node};
use crate::minimise::gcd;

/// A set of states, one bit each.
type Bits = Vec<u64>;

/// Largest number of branches of a state, because chance draws one of seven pieces.
const MOST_BRANCHES: usize = 7;

/// Allowance for errors of the values. The search begins without the pairs i, j with V(i) > V(j) + this allowance.
const SLACK: f64 = 1e-6;

/// Removes a successor from a branch if another successor of the branch simulates it. Returns the number of removals.
///
/// `lives` has the lives (values plus one) of the states, with errors of at most 10⁻⁷. Time and memory grow with the
/// square of the number of states: 4,000 states take seconds and 2 MB.
pub fn prune(graph: &mut Explicit, lives: &[f64]) -> usize {
    let below = simulation(graph, lives);
    let is_below = |a: Node, b: Node| holds(&below[b as usize], a);
    let before = graph.edges();
    for (successors, _) in graph.branches.iter_mut().flatten() {
        let all = successors.clone();
        // If two successors simulate each other, the first one stays.
        let is_dominated =
            |a: Node| all.iter().any(|&b| a != b && is_below(a, b) && !(is_below(b, a) && a < b));
        successors.retain(|&a| !is_dominated(a));
    }
    before - graph.edges()
}

fn holds(set: &Bits, node: Node) -> bool {
    set[node as usize / 64] >> (node % 64) & 1 == 1
}

/// For each state, the states that it simulates.
fn simulation(graph: &Explicit, lives: &[f64]) -> Vec<Bits> {
    let words = lives.len().div_ceil(64);
    let worth_less = |of: f64| {
        let mut set = vec![0; words];
        for (node, _) in lives.iter().enumerate().filter(|(_, lives)| **lives <= of + SLACK) {
            set[node / 64] |= 1 << (node % 64);
        }
        set
    };
    let mut below: Vec<Bits> = lives.par_iter().map(|&of| worth_less(of)).collect();
    // A state's set depends only on the sets of its successors. So the loop checks a state again only after the set of
    // a successor has changed.
    let mut has_changed = vec![true; lives.len()];
    while has_changed.contains(&true) {
        let is_affected = |node: usize| {
            let mut successors = graph.branches[node].iter().flat_map(|(successors, _)| successors);
            successors.any(|&next| has_changed[next as usize])
        };
        let next: Vec<Option<Bits>> = (0..lives.len())
            .into_par_iter()
            .map(|node| is_affected(node).then(|| still_below(graph, node, &below)))
            .collect();
        for (node, next) in next.into_iter().enumerate() {
            let next = next.filter(|next| *next != below[node]);
            has_changed[node] = next.is_some();
            if let Some(next) = next {
                below[node] = next;
            }
        }
    }
    below
}

/// The candidates below a state that still meet the condition.
fn still_below(graph: &Explicit, node: usize, below: &[Bits]) -> Bits {
    let branches = &graph.branches[node];
    // For each branch, the states below any of its successors.
    let covered: Vec<Bits> = branches
        .iter()
        .map(|(successors, _)| {
            let mut union = vec![0; below[node].len()];
            for &next in successors {
                union.iter_mut().zip(&below[next as usize]).for_each(|(to, from)| *to |= from);
            }
            union
        })
        .collect();
    let to: Vec<u32> = branches.iter().map(|(_, weight)| *weight).collect();
    let mut fits = Vec::new();
    let mut passes = |candidate: Node| {
        let from = &graph.branches[candidate as usize];
        fits.clear();
        for (successors, _) in from {
            let is_covered = |set: &Bits| successors.iter().all(|&next| holds(set, next));
            let fit = (0..covered.len()).filter(|&target| is_covered(&covered[target]));
            let fit = fit.fold(0, |fit: Targets, target| fit | 1 << target);
            if fit == 0 {
                return false;
            }
            fits.push(fit);
        }
        can_move(from.iter().map(|(_, weight)| *weight), &to, &fits)
    };
    let mut kept = below[node].clone();
    for (at, word) in kept.iter_mut().enumerate() {
        let mut left = *word;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            if !passes(at as Node * 64 + bit) {
                *word &= !(1 << bit);
            }
        }
    }
    kept
}

/// Branches of a state, one bit each.
type Targets = u8;

/// Whether weights can be moved completely to other weights, each only to the targets that fit.
///
/// The weights on each side are relative to the sum of that side.
fn can_move(from: impl Iterator<Item = u32> + Clone, to: &[u32], fits: &[Targets]) -> bool {
    let (of_from, of_to): (u32, u32) = (from.clone().sum(), to.iter().sum());
    let common = of_from / gcd(of_from, of_to) * of_to;
    let mut free = [0; MOST_BRANCHES];
    for (free, weight) in free.iter_mut().zip(to) {
        *free = weight * (common / of_to);
    }
    let mut state = Moving { fits, moved: [[0; MOST_BRANCHES]; MOST_BRANCHES], free };
    for (source, weight) in from.enumerate() {
        let mut left = weight * (common / of_from);
        while left > 0 {
            let amount = state.push(source, left, &mut 0);
            if amount == 0 {
                return false;
            }
            left -= amount;
        }
    }
    true
}

/// A partial flow of weights.
struct Moving<'a> {
    fits: &'a [Targets],
    /// Flow from each source to each target.
    moved: [[u32; MOST_BRANCHES]; MOST_BRANCHES],
    free: [u32; MOST_BRANCHES],
}

impl Moving<'_> {
    /// Moves a part of a source's weight to a target that fits. Returns the moved amount.
    ///
    /// If all targets that fit are full, first moves weight of other sources to other targets.
    fn push(&mut self, source: usize, amount: u32, seen: &mut Targets) -> u32 {
        for target in 0..MOST_BRANCHES {
            if self.fits[source] & !*seen & 1 << target == 0 {
                continue;
            }
            *seen |= 1 << target;
            if self.free[target] > 0 {
                let amount = amount.min(self.free[target]);
                self.free[target] -= amount;
                self.moved[source][target] += amount;
                return amount;
            }
            for other in (0..self.fits.len()).filter(|&other| other != source) {
                let there = amount.min(self.moved[other][target]);
                let amount = if there > 0 { self.push(other, there, seen) } else { 0 };
                if amount > 0 {
                    self.moved[other][target] -= amount;
                    self.moved[source][target] += amount;
                    return amount;
                }
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_moved_after_others_if_necessary() {
        let can = |from: &[u32], to: &[u32], fits: &[Targets]| can_move(from.iter().copied(), to, fits);
        assert!(can(&[1, 1], &[1, 1], &[0b11, 0b01]), "the first weight moves to the second target");
        assert!(!can(&[1, 1], &[1, 1], &[0b01, 0b01]));
        assert!(can(&[1, 2], &[1, 1], &[0b10, 0b11]), "thirds onto halves");
        assert!(!can(&[2, 1], &[1, 1], &[0b10, 0b11]));
        assert!(can(&[1, 1, 1], &[1, 1, 1], &[0b011, 0b101, 0b001]));
    }

    #[test]
    fn simulated_successors_are_removed() {
        // State 0 ends. State 1 makes one more step with probability 1/2, and state 2 always does. State 3 may choose any.
        let branches = vec![
            vec![(vec![], 1)],
            vec![(vec![], 1), (vec![0], 1)],
            vec![(vec![0], 1)],
            vec![(vec![0, 1, 2], 1)],
        ];
        let mut graph = Explicit { branches };
        let lives = graph.lives(0.0);
        assert_eq!(prune(&mut graph, &lives), 2);
        assert_eq!(graph.branches[3], [(vec![2], 1)]);
        assert_eq!(graph.lives(0.0), lives);
    }
}
