//! Distribution of the number of moves to the target and to each smaller tile.

use std::ops::Range;

use crate::arithmetic::{Arithmetic, Floating};
use crate::chain::{Chain, StateId};

/// Distribution of the number of moves after which a tile first occurs.
#[derive(Clone, Debug)]
pub struct Time {
    /// Exponent of the tile.
    pub exponent: u8,
    /// Number of moves for the first entry of `probabilities`.
    pub first: u32,
    /// Probabilities of the numbers of moves, starting with `first`.
    pub probabilities: Vec<f64>,
}

/// [`Time`]s of several tiles, and their errors.
#[derive(Clone, Debug)]
pub struct Times {
    /// One distribution for each tile from 8 to the target.
    pub tiles: Vec<Time>,
    /// Bound on the relative error of each probability, without the effect of `left_out`.
    pub relative_error: f64,
    /// Total probability of the omitted states. After some number of moves, each had a probability below 10⁻³⁰.
    pub left_out: f64,
}

/// Smallest probability of a state, after a number of moves, that the computation follows.
const NEGLIGIBLE: f64 = 1e-30;

/// Follows the probabilities of all states from move to move.
///
/// The cost is proportional to the number of moves times the number of states that are likely at one time. A target of 2^20
/// takes half a minute, and each doubling of the target about triples the time.
#[must_use]
pub fn times(chain: &Chain) -> Times {
    times_with(chain, |_| {})
}

/// Does the same as [`times`], and calls `report` after each move with the completed share, from 0 to 1.
#[must_use]
pub fn times_with(chain: &Chain, mut report: impl FnMut(f64)) -> Times {
    let floating = Floating::new(chain.spawn4());
    let spawn = [floating.by_two(&floating.one()).value, floating.by_four(&floating.one()).value];
    let mut now = Wave::new(chain.states().len());
    for id in chain.starts() {
        let bag = chain.states()[id].bag;
        let orders = if bag.count(1) == 1 { 2.0 } else { 1.0 };
        now.add(id, orders * bag.tiles().map(|tile| spawn[usize::from(tile == 4)]).product::<f64>());
    }
    let mut next = Wave::new(chain.states().len());
    let mut arrivals: Vec<Vec<f64>> = vec![Vec::new(); usize::from(chain.target()) + 1];
    let (mut moves, mut left_out) = (0u32, 0.0);
    while !now.touched.is_empty() {
        moves += 1;
        arrivals.iter_mut().for_each(|of_tile| of_tile.push(0.0));
        for id in now.touched.clone() {
            let probability = std::mem::take(&mut now.probabilities[id]);
            let state = chain.states()[id];
            let Some(ways) = state.next.filter(|_| probability > 0.0) else { continue };
            if probability < NEGLIGIBLE {
                left_out += probability;
                continue;
            }
            for (id, chance) in ways.into_iter().zip(spawn).filter_map(|(id, chance)| Some((id?, chance))) {
                let largest = chain.states()[id].bag.largest();
                if largest > state.bag.largest() {
                    *arrivals[usize::from(largest)].last_mut().expect("of this move") += probability * chance;
                }
                next.add(id, probability * chance);
            }
        }
        report(now.touched.end as f64 / chain.states().len() as f64);
        now.touched = 0..0;
        std::mem::swap(&mut now, &mut next);
    }
    let tiles =
        (3..=chain.target()).map(|exponent| Time::new(exponent, &arrivals[usize::from(exponent)])).collect();
    // A path of m moves has m + 2 factors and up to m + 2 sums. A factor, its product and its sum are rounded once
    // each, so each move has three roundings.
    let relative_error = 3.0 * f64::from(moves + 2) * f64::EPSILON;
    Times { tiles, relative_error, left_out }
}

impl Time {
    /// Creates the distribution from the probabilities of one move, two moves and so on.
    fn new(exponent: u8, arrivals: &[f64]) -> Self {
        let first = arrivals.iter().position(|&p| p > 0.0).unwrap_or(0);
        let end = arrivals.iter().rposition(|&p| p > 0.0).map_or(first, |last| last + 1);
        Self { exponent, first: first as u32 + 1, probabilities: arrivals[first..end].to_vec() }
    }

    /// Numbers of moves and their probabilities.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        (self.first..).zip(self.probabilities.iter().copied())
    }

    /// Expected number of moves.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.iter().map(|(moves, p)| f64::from(moves) * p).sum()
    }

    /// Standard deviation of the number of moves.
    #[must_use]
    pub fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        self.iter().map(|(moves, p)| (f64::from(moves) - mean).powi(2) * p).sum::<f64>().sqrt()
    }

    /// The smallest number of moves after which the tile has occurred with at least this probability.
    #[must_use]
    pub fn quantile(&self, probability: f64) -> u32 {
        let mut sum = 0.0;
        let found = self.iter().find(|&(_, p)| {
            sum += p;
            sum >= probability
        });
        found.map_or(self.first + self.probabilities.len() as u32 - 1, |(moves, _)| moves)
    }
}

/// Probabilities of states after one number of moves, and the range of states with a positive probability.
struct Wave {
    probabilities: Vec<f64>,
    touched: Range<StateId>,
}

impl Wave {
    fn new(states: usize) -> Self {
        Self { probabilities: vec![0.0; states], touched: 0..0 }
    }

    fn add(&mut self, id: StateId, probability: f64) {
        self.probabilities[id] += probability;
        self.touched = if self.touched.is_empty() {
            id..id + 1
        } else {
            self.touched.start.min(id)..self.touched.end.max(id + 1)
        };
    }
}
