//! Graphs of states and their successors, for minimisation and pruning.

use crate::piece::PIECES;
use crate::space::{ComboSpace, ComboState};

/// Number of a state among all states of a graph.
pub type Node = u32;

/// A Markov decision process with a reward of one for every step.
///
/// Chance picks a *branch*, then the player picks one of the branch's successors. A branch without successors ends the
/// process.
pub trait Graph: Sync {
    /// Number of states.
    fn nodes(&self) -> usize;

    /// Calls `see` with the weight and the successors of each branch of a state. Branches may repeat.
    fn branches(&self, node: Node, see: impl FnMut(u32, &[Node]));
}

impl ComboSpace {
    /// The number of a state; `None` if the state is not in this space.
    #[must_use]
    pub fn node(&self, state: &ComboState) -> Option<Node> {
        let (level, at) = self.find(state)?;
        Some((self.first_node(level) + at) as Node)
    }

    /// The state with the number `node`.
    ///
    /// # Panics
    ///
    /// If no state has this number.
    #[must_use]
    pub fn state_of(&self, node: Node) -> ComboState {
        let (level, at) = self.at(node);
        self.state(level, at)
    }

    /// The number of the first state of a level.
    fn first_node(&self, level: usize) -> usize {
        self.sequences().levels()[..level].iter().map(|level| level.len() * self.row()).sum()
    }

    /// The level of a state, and the state's number within the level.
    fn at(&self, node: Node) -> (usize, usize) {
        let mut at = node as usize;
        for (number, level) in self.sequences().levels().iter().enumerate() {
            let states = level.len() * self.row();
            if at < states {
                return (number, at);
            }
            at -= states;
        }
        unreachable!("state {node} is not one of {}", self.len())
    }
}

/// The states are numbered level by level.
impl Graph for ComboSpace {
    fn nodes(&self) -> usize {
        self.len()
    }

    fn branches(&self, node: Node, mut see: impl FnMut(u32, &[Node])) {
        let levels = self.sequences().levels();
        let (level, at) = self.at(node);
        let next = (level + 1) % levels.len();
        let first_of_next = self.first_node(next);
        let (outlook, hold, place) = (at / self.row(), at % self.row() / self.width(), at % self.width());
        let group = levels[level].group(levels[level].group_of(outlook));
        let mut successors = Vec::new();
        for &(drawn, outlook_after) in group.follow {
            let current = match self.sequences().previews() {
                0 => usize::from(drawn),
                _ => levels[level].first(outlook),
            };
            successors.clear();
            let mut add = |piece: usize, held: usize| {
                let row = first_of_next + outlook_after as usize * self.row() + held * self.width();
                successors.extend(self.next_places(place, piece).map(|next| (row + next) as Node));
            };
            if self.holds() == PIECES.len() {
                add(current, hold);
                if hold != current {
                    add(hold, current);
                }
            } else {
                add(current, 0);
            }
            see(1, &successors);
        }
    }
}

/// An explicitly stored graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explicit {
    /// The distinct branches of each state in order, as successors and weight. Successors are sorted, without duplicates.
    pub(crate) branches: Vec<Vec<(Vec<Node>, u32)>>,
}

impl Graph for Explicit {
    fn nodes(&self) -> usize {
        self.branches.len()
    }

    fn branches(&self, node: Node, mut see: impl FnMut(u32, &[Node])) {
        for (successors, weight) in &self.branches[node as usize] {
            see(*weight, successors);
        }
    }
}

impl Explicit {
    /// Number of edges: pairs of a branch and one of its successors.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.branches.iter().flatten().map(|(successors, _)| successors.len()).sum()
    }

    /// Computes the lives of all states. Sweeps until a sweep changes no state by more than `goal`.
    #[must_use]
    pub fn lives(&self, goal: f64) -> Vec<f64> {
        let mut lives = vec![1.0; self.branches.len()];
        loop {
            let mut change = 0.0_f64;
            for (node, branches) in self.branches.iter().enumerate() {
                let (mut sum, mut weights) = (0.0, 0.0);
                for (successors, weight) in branches {
                    let best = successors.iter().map(|&next| lives[next as usize]).fold(0.0, f64::max);
                    sum += f64::from(*weight) * best;
                    weights += f64::from(*weight);
                }
                let new = 1.0 + sum / weights;
                change = change.max((new - lives[node]).abs());
                lives[node] = new;
            }
            if change <= goal {
                return lives;
            }
        }
    }
}
