//! All that some states lead to, up to the next stored layers, and its values.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::Problem;
use super::game::Game;
use super::layer_reader::{LayerReader, Part};
use super::layout::tile_sum;
use super::moves::{Lanes, States, led_to, successors};

/// Boards of a part of a layer that is worked on: what one thread takes up.
const PIECE: usize = 1 << 14;

/// Bytes of a state that is only listed.
const LISTED_BYTES: u64 = 8;

/// Bytes that a state takes while its layer is worked on, together with the two layers above it, about.
const WORK_BYTES: u64 = 180;

/// Bytes that a state of a stored layer takes while its value is read, about.
const READ_BYTES: u64 = 64;

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
pub struct CheckLimits<'a> {
    /// Bytes that it may take, about.
    pub bytes: u64,
    /// Called with the number of states that were worked on since the last time; says whether to go on.
    pub goes_on: &'a (dyn Fn(usize) -> bool + Sync),
}

impl Cone {
    /// Lists what some states lead to that lie below the same cut; `None` where that takes more than allowed, or it is to stop.
    ///
    /// Cost: about 100 ns a state. Those of the next stored layers are listed too, and what they lead to is not.
    pub fn of(game: &Game, first: &[u64], limits: &CheckLimits<'_>) -> Option<Self> {
        let (mut open, mut cone) = (BTreeMap::<u32, Lanes>::new(), Self::default());
        let mut of_first = BTreeMap::<u32, Lanes>::new();
        for &board in first {
            let of_layer = of_first.entry(tile_sum(board)).or_default();
            of_layer.entry(game.lane(board)).or_default().push(board);
        }
        for (layer, lanes) in of_first {
            add(&mut open, layer, led_to(game, &parts(lanes, PIECE)));
            // A layer of the cone, also if nothing leads there.
            cone.layers.entry(layer).or_default();
        }
        let (mut listed, mut most_work) = (0, 0);
        while let Some((layer, lanes)) = open.pop_first() {
            let is_stored = game.keeps(layer);
            // Stored values are read lane by lane.
            let parts = parts(lanes, if is_stored { usize::MAX } else { PIECE });
            let of_layer = count(&parts);
            if !is_stored {
                add(&mut open, layer, led_to(game, &parts));
            }
            cone.layers.insert(layer, parts);
            listed += of_layer as u64;
            let mut waiting = 0;
            for (&layer, lanes) in &open {
                let states = lanes.values().map(|boards| boards.len() as u64).sum::<u64>();
                waiting += states;
                most_work = most_work.max(states * if game.keeps(layer) { READ_BYTES } else { WORK_BYTES });
            }
            if LISTED_BYTES * (listed + waiting) + most_work > limits.bytes || !(limits.goes_on)(of_layer) {
                return None;
            }
        }
        Some(cone)
    }

    /// How many states there are.
    pub fn states(&self) -> u64 {
        self.layers.values().map(|parts| count(parts) as u64).sum()
    }

    /// How many states there are whose values are not stored, and how many of these are in the uppermost layers that have
    /// at least `least` of them together.
    pub fn between(&self, game: &Game, least: u64) -> [u64; 2] {
        let (mut all, mut near) = (0, 0);
        for (_, parts) in self.layers.iter().rev().filter(|(layer, _)| !game.keeps(**layer)) {
            all += count(parts) as u64;
            near = if near < least { all } else { near };
        }
        [all, near]
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
        limits: &CheckLimits<'_>,
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

/// The boards of some lanes in parts of at most so many.
fn parts(lanes: Lanes, most: usize) -> Vec<Part> {
    let mut parts = Vec::with_capacity(lanes.len());
    for (lane, boards) in lanes {
        if boards.len() <= most {
            parts.push(Part { lane, boards, ..Part::default() });
        } else {
            let piece = |boards: &[u64]| Part { lane, boards: boards.to_vec(), ..Part::default() };
            parts.extend(boards.chunks(most).map(piece));
        }
    }
    parts
}

/// Adds what the states of a layer lead to, after a 2 and after a 4.
fn add(open: &mut BTreeMap<u32, Lanes>, layer: u32, [twos, fours]: [Lanes; 2]) {
    for (layer, lanes) in
        [(layer + 2, twos), (layer + 4, fours)].into_iter().filter(|(_, lanes)| !lanes.is_empty())
    {
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
    fn parts_have_all_boards_in_their_order() {
        let lanes = Lanes::from([(3, (10..20).collect()), (5, vec![7])]);
        let cut = |most: usize| parts(lanes.clone(), most).into_iter().map(|part| (part.lane, part.boards));
        let small: Vec<_> = cut(4).collect();
        assert_eq!(small[..2], [(3, vec![10, 11, 12, 13]), (3, vec![14, 15, 16, 17])]);
        assert_eq!(small[2..], [(3, vec![18, 19]), (5, vec![7])]);
        assert_eq!(cut(usize::MAX).collect::<Lanes>(), lanes);
    }

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
