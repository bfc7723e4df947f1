//! All that some states lead to, up to the next stored layers, and its values.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::Problem;
use super::game::Game;
use super::layer_reader::{LayerReader, Part};
use super::layout::tile_sum;
use super::moves::{Lanes, States, led_to, successors};

/// Boards of a part: what one thread works on.
const PIECE: usize = 1 << 16;

/// Bytes of a state that is only listed.
const LISTED_BYTES: u64 = 8;

/// Bytes that a state takes while its layer is worked on, together with the two layers above it, about.
const WORK_BYTES: u64 = 180;

/// States by layer, each once.
#[derive(Debug, Default)]
pub struct Cone {
    layers: BTreeMap<u32, Vec<Part>>,
}

/// The states of a layer of a cone with their values, and of the two layers above it.
#[derive(Debug)]
pub struct ValuedLayer<'c> {
    pub layer: u32,
    pub states: &'c States,
    /// After a 2, and after a 4.
    pub above: [&'c States; 2],
}

/// What bounds a cone, and hears how far it is.
pub struct Limits<'a> {
    /// Bytes that it may take, about.
    pub bytes: u64,
    /// Called with the number of states that were worked on since the last time; says whether to go on.
    pub goes_on: &'a (dyn Fn(usize) -> bool + Sync),
}

impl Cone {
    /// Lists what some states lead to that lie below the same cut; `None` where that takes more than allowed, or it is to stop.
    ///
    /// Cost: about 100 ns a state. Those of the next stored layers are listed too, and what they lead to is not.
    pub fn of(game: &Game, first: &[u64], limits: &Limits<'_>) -> Option<Self> {
        let (mut open, mut cone) = (BTreeMap::<u32, Lanes>::new(), Self::default());
        for &board in first {
            let layer = tile_sum(board);
            add(&mut open, layer, led_to(game, &pieces(game.lane(board), vec![board])));
            // A layer of the cone, also if nothing leads there.
            cone.layers.entry(layer).or_default();
        }
        let (mut listed, mut largest) = (0, 0);
        while let Some((layer, lanes)) = open.pop_first() {
            let parts: Vec<Part> =
                lanes.into_iter().flat_map(|(lane, boards)| pieces(lane, boards)).collect();
            let of_layer = count(&parts);
            if !game.keeps(layer) {
                add(&mut open, layer, led_to(game, &parts));
            }
            cone.layers.insert(layer, parts);
            let waiting = open.values().map(|lanes| lanes.values().map(Vec::len).sum::<usize>());
            listed += of_layer;
            largest = waiting.clone().max().unwrap_or(0).max(largest);
            let bytes = LISTED_BYTES * (listed + waiting.sum::<usize>()) as u64 + WORK_BYTES * largest as u64;
            if bytes > limits.bytes || !(limits.goes_on)(of_layer) {
                return None;
            }
        }
        Some(cone)
    }

    /// How many states there are.
    pub fn states(&self) -> u64 {
        self.layers.values().map(|parts| count(parts) as u64).sum()
    }

    /// How many states there are whose values are not stored.
    pub fn between(&self, game: &Game) -> usize {
        self.layers.iter().filter(|(layer, _)| !game.keeps(**layer)).map(|(_, parts)| count(parts)).sum()
    }

    /// Works out the values downward, those of stored layers read, and calls `visit` with each layer, down to that of the
    /// lowest of the first states. The result says whether it went on to the end.
    ///
    /// # Errors
    ///
    /// Those of reading and of `visit`, and where a state is not there that another one leads to.
    pub fn value_down_to(
        self,
        game: &Game,
        reader: &LayerReader<'_>,
        limits: &Limits<'_>,
        mut visit: impl FnMut(ValuedLayer<'_>) -> Result<(), Problem>,
    ) -> Result<bool, Problem> {
        let Self { mut layers } = self;
        let mut above = [States::default(), States::default()];
        let ends = layers.first_key_value().zip(layers.last_key_value());
        let all = ends.map_or(0..0, |((&first, _), (&last, _))| first..last + 1);
        for layer in all.rev().step_by(2) {
            let mut parts = layers.remove(&layer).unwrap_or_default();
            let states = count(&parts);
            if game.keeps(layer) {
                parts =
                    parts.into_par_iter().map(|part| reader.with_values(part)).collect::<Result<_, _>>()?;
            } else {
                let found = successors(game, &parts, above.each_mut().map(Some), true);
                if let Some(&(after, board)) = found.missing.iter().min() {
                    return Err(reader.missing_problem(after, board));
                }
                parts.iter_mut().zip(found.values).for_each(|(part, (values, _))| part.values = values);
            }
            let of_layer = States::new(parts, true);
            let [two, four] = &above;
            visit(ValuedLayer { layer, states: &of_layer, above: [two, four] })?;
            let [two, _] = above;
            above = [of_layer, two];
            if !(limits.goes_on)(states) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn count(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.boards.len()).sum()
}

/// Boards of a lane, in parts.
fn pieces(lane: u64, boards: Vec<u64>) -> Vec<Part> {
    if boards.len() <= PIECE {
        return vec![Part { lane, boards, ..Part::default() }];
    }
    let piece = |boards: &[u64]| Part { lane, boards: boards.to_vec(), ..Part::default() };
    boards.chunks(PIECE).map(piece).collect()
}

/// Adds what the states of a layer lead to, after a 2 and after a 4.
fn add(open: &mut BTreeMap<u32, Lanes>, layer: u32, [twos, fours]: [Lanes; 2]) {
    for (layer, lanes) in [(layer + 2, twos), (layer + 4, fours)] {
        let of_layer = open.entry(layer).or_default();
        for (lane, boards) in lanes {
            let there = of_layer.entry(lane).or_default();
            *there = merged(std::mem::take(there), boards);
        }
    }
}

/// The boards of two ascending lists, each once, ascending.
fn merged(a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    if a.is_empty() || b.is_empty() {
        return if a.is_empty() { b } else { a };
    }
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    while let (Some(&x), Some(&y)) = (a.peek(), b.peek()) {
        all.push(x.min(y));
        _ = a.next_if(|_| x <= y);
        _ = b.next_if(|_| y <= x);
    }
    all.extend(a);
    all.extend(b);
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_of_both_lists_are_there_once() {
        for (a, b, both) in [
            (vec![], vec![], vec![]),
            (vec![1, 3], vec![], vec![1, 3]),
            (vec![], vec![2], vec![2]),
            (vec![1, 3, 5], vec![1, 2, 5, 7, 8], vec![1, 2, 3, 5, 7, 8]),
            (vec![4, 9], vec![1, 2], vec![1, 2, 4, 9]),
        ] {
            assert_eq!(merged(a.clone(), b.clone()), both);
            assert_eq!(merged(b, a), both);
        }
    }
}
