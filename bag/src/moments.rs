//! Mean and variance of the number of moves.

use std::collections::VecDeque;

use crate::Bag;
use crate::arithmetic::Arithmetic;
use crate::chain::Chain;

/// Moments of the number of moves from the empty bag to the target.
///
/// The first transition adds two tiles and is not a move.
#[derive(Clone, Debug)]
pub struct Moments<T> {
    /// Expected number of moves.
    pub mean: T,
    /// Variance of the number of moves.
    pub variance: T,
}

/// Mean and mean square of the remaining part of Y (see [`moments`]).
type Pair<N> = (N, N);

/// Computes mean and variance of the number of moves, in one pass over the states.
///
/// The equations of the first step are the system that the chain's fundamental matrix solves. This function solves them by
/// substitution from the last layer to the first.
///
/// The sum nearly determines the number of moves N, because a move adds 2 + 2p on average. Here p is the probability of a
/// 4. So the pass carries only the small difference Y. Let p = w₄/d and w₂ = d − w₄. Let r be half the difference between
/// the last sum of the chain and the sum of a state. Then
///
/// ```text
/// (d + w₄)·N = d·r + Y
/// ```
///
/// where a move adds w₄ to Y with a 2 and −w₂ with a 4, and the end adds −d·r. All of these numbers are integers, and Y has
/// no drift. So the function computes the variance of Y without the cancellation of `E[N²] − E[N]²`.
#[must_use]
pub fn moments<A: Arithmetic>(chain: &Chain, arithmetic: &A) -> Moments<A::Value> {
    let spawn4 = chain.spawn4();
    let [w2, w4, d] = [spawn4.weight2(), spawn4.weight4(), spawn4.denominator()].map(i64::from);
    let steps_from = |sum: u64| u32::try_from((chain.last_sum() - sum) / 2).expect("sums are below 2^25");
    let mut ones = Ones::new(arithmetic);
    let mut known: Vec<Option<Pair<A::Number>>> = vec![None; chain.states().len()];
    let layers: Vec<_> = chain.layers().collect();
    for (at, (sum, states)) in layers.iter().enumerate().rev() {
        let steps = steps_from(*sum);
        for id in states.clone() {
            known[id] = Some(match chain.states()[id].next {
                None => {
                    let end = -d * i64::from(steps);
                    let first = arithmetic.times(end, ones.at(steps));
                    let second = arithmetic.times(end, &first);
                    (first, second)
                }
                Some(next) => {
                    let next = next.map(|id| id.and_then(|id| known[id].as_ref()));
                    expect(arithmetic, &mut ones, steps, next, [w4, -w2])
                }
            });
        }
        // Frees the layer at + 2, because exact numbers are long and no lower layer needs it. Keeps the lowest three layers,
        // because they have the starts.
        if let Some((_, states)) = layers.get(at + 2)
            && at > 0
        {
            known[states.clone()].fill(None);
        }
    }
    // The first two tiles only raise the sum. They are not moves.
    let placed = [-d, -2 * d];
    let mut after = |bag: Bag| {
        let next = [1, 2].map(|step| chain.find(bag.with(step)).and_then(|id| known[id].as_ref()));
        next.iter()
            .any(Option::is_some)
            .then(|| expect(arithmetic, &mut ones, steps_from(bag.sum()), next, placed))
    };
    let one_tile = [after(Bag::EMPTY.with(1)), after(Bag::EMPTY.with(2))];
    let steps = steps_from(0);
    let (first, second) =
        expect(arithmetic, &mut ones, steps, one_tile.each_ref().map(Option::as_ref), placed);
    let divisor = (d + w4) as u64;
    let mut moves = arithmetic.times(d * i64::from(steps), ones.at(steps));
    arithmetic.add(&mut moves, &first);
    Moments {
        mean: arithmetic.value(&moves, steps, divisor),
        variance: arithmetic.variance(&first, &second, steps, divisor),
    }
}

/// Mean and mean square before a spawn, given the means and mean squares after a 2 and after a 4.
///
/// The spawn adds one of the `gains`. `None` represents a tile that never spawns.
fn expect<A: Arithmetic>(
    arithmetic: &A,
    ones: &mut Ones<'_, A>,
    steps: u32,
    next: [Option<&Pair<A::Number>>; 2],
    gains: [i64; 2],
) -> Pair<A::Number> {
    let (mut first, mut second) = (arithmetic.zero(), arithmetic.zero());
    for (spawn, (pair, gain)) in next.into_iter().zip(gains).enumerate() {
        let Some((mean, mean_square)) = pair else { continue };
        let weigh = |number| if spawn == 0 { arithmetic.by_two(number) } else { arithmetic.by_four(number) };
        // E[g + Y] = g + E[Y] and E[(g + Y)²] = g² + 2g·E[Y] + E[Y²].
        let mut shifted = arithmetic.times(gain, ones.at(steps - 1 - spawn as u32));
        let mut square = arithmetic.times(gain, &shifted);
        arithmetic.add(&mut square, &arithmetic.times(2 * gain, mean));
        arithmetic.add(&mut square, mean_square);
        arithmetic.add(&mut shifted, mean);
        arithmetic.add(&mut first, &weigh(&shifted));
        arithmetic.add(&mut second, &weigh(&square));
    }
    (first, second)
}

/// The number 1 at the current step counts of a pass. Each entry is computed from the previous one.
struct Ones<'a, A: Arithmetic> {
    arithmetic: &'a A,
    /// Step count of the first entry of `values`.
    first: u32,
    values: VecDeque<A::Number>,
}

impl<'a, A: Arithmetic> Ones<'a, A> {
    /// Number of step counts to keep, up to the highest one in use.
    ///
    /// A state needs the numbers of up to two steps earlier, and the first two tiles need two steps more.
    const KEPT: usize = 6;

    fn new(arithmetic: &'a A) -> Self {
        Self { arithmetic, first: 0, values: VecDeque::from([arithmetic.one()]) }
    }

    fn at(&mut self, steps: u32) -> &A::Number {
        while self.first + self.values.len() as u32 <= steps {
            let raised = self.arithmetic.raised(self.values.back().expect("one at least is kept"));
            self.values.push_back(raised);
            if self.values.len() > Self::KEPT {
                self.values.pop_front();
                self.first += 1;
            }
        }
        &self.values[(steps - self.first) as usize]
    }
}
