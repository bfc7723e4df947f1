//! Sums over the states of a block that games reach.

use std::ops::AddAssign;

use exact2048_game::board::EXPONENTS;

/// Sums over the states of a block that games reach.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct FollowSums {
    /// States that games reach, up to symmetry.
    pub states: u64,
    /// The sum of the chances of these states.
    pub reached: f64,
    /// The sum of the chances of those states in which a move is made.
    pub moved: f64,
    /// The sum of the chances of those states that end a game, by the exponent of the largest tile.
    pub ended: [f64; EXPONENTS],
    /// The sum of chance times potential of those states that end a game.
    pub potential: f64,
    /// The sum of the chances of moves that make the wanted tile.
    pub won: f64,
    /// The sum of the chances that were left out because they were too small.
    pub left_out: f64,
    /// The largest number of terms of a chance.
    pub terms: u32,
    /// The length of the longest chain of additions in one of these sums. Each addition rounds.
    pub longest: u64,
}

impl AddAssign<&Self> for FollowSums {
    /// Adds the sums of other states.
    fn add_assign(&mut self, more: &Self) {
        self.states += more.states;
        self.reached += more.reached;
        self.moved += more.moved;
        self.ended.iter_mut().zip(more.ended).for_each(|(sum, more)| *sum += more);
        self.potential += more.potential;
        self.won += more.won;
        self.left_out += more.left_out;
        self.terms = self.terms.max(more.terms);
        self.longest = self.longest.max(more.longest);
    }
}
