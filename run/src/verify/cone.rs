//! The states that given states lead to, up to the next stored layers, and their values.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::{iter, mem};

use rayon::prelude::*;

use super::game::CheckedGame;
use super::layer_reader::{LayerReader, Part};
use super::listed::ListedPart;
use super::moves::{Lanes, States, successors, target_lanes};
use super::outcome::Problem;

/// The most boards of a part of a layer. One thread processes a part at a time.
const PIECE: usize = 1 << 14;

/// Bytes of a board in a list that may still grow.
const OPEN_BYTES: u64 = 8;

/// Bytes of a board, its value, and whether a state leads to it, while its layer or one of the two layers below is
/// processed.
const VALUED_BYTES: u64 = 17;

/// Approximate bytes of a board of a slice while its moves are processed.
const MOVED_BYTES: u64 = 200;

/// Approximate bytes of a board of a lane, per thread, while spawns are looked up in the lane or its stored values are
/// read.
const LANE_BYTES: u64 = 80;

/// The states of a cone by layer, each once.
#[derive(Debug, Default)]
pub struct Cone {
    layers: BTreeMap<u32, Vec<ListedPart>>,
}

/// The states of a layer of a cone and of the two layers above it, with their values.
#[derive(Debug)]
pub struct ValuedLayer<'c> {
    pub layer: u32,
    pub states: &'c States,
    /// The states of the layers 2 and 4 above.
    pub above: [&'c States; 2],
}

/// The memory limit of a cone, and the callback for its progress.
pub struct CheckLimits<'a> {
    /// The approximate limit of memory in bytes.
    pub bytes: u64,
    /// Called with the number of states processed since the last call. Returns whether to continue.
    pub goes_on: &'a (dyn Fn(usize) -> bool + Sync),
}

impl CheckLimits<'_> {
    /// The number of boards of a layer whose moves all threads process at once.
    ///
    /// The moves of a whole layer need far more memory than its boards. So slices of it use a quarter of the memory.
    fn slice(&self) -> usize {
        ((self.bytes / 4 / MOVED_BYTES) as usize).max(PIECE)
    }
}

/// The numbers of boards of the largest layer, and of the largest lane of a layer.
#[derive(Default)]
struct Largest {
    layer: usize,
    lane: usize,
}

impl Largest {
    /// Includes layers.
    fn see<'a>(&mut self, layers: impl Iterator<Item = &'a Lanes>) {
        for lanes in layers {
            self.layer = self.layer.max(all_of(lanes));
            self.lane = lanes.values().map(Vec::len).fold(self.lane, usize::max);
        }
    }

    /// The approximate largest memory for valuing layers, in bytes, without the listed boards.
    fn valuing_bytes(&self, slice: usize) -> u64 {
        let of_lanes = (self.lane * rayon::current_num_threads()).min(self.layer);
        3 * VALUED_BYTES * self.layer as u64
            + MOVED_BYTES * self.layer.min(slice) as u64
            + LANE_BYTES * of_lanes as u64
    }
}

impl Cone {
    /// Lists all states that the states `first` lead to, up to the next stored layers, which are included.
    ///
    /// All states of `first` must lie below the same cut. Returns `None` if the list needs more memory than allowed, or
    /// `goes_on` stopped it. Cost: 100 to 400 ns of core time per state.
    pub fn of(game: &CheckedGame, first: &[u64], limits: &CheckLimits<'_>) -> Option<Self> {
        let (mut open, mut cone) = (BTreeMap::<u32, Lanes>::new(), Self::default());
        let mut of_first = BTreeMap::<u32, Lanes>::new();
        for &board in first {
            let of_layer = of_first.entry(game.layer(board)).or_default();
            of_layer.entry(game.lane(board)).or_default().push(board);
        }
        for (layer, lanes) in of_first {
            add(&mut open, layer, target_lanes(game, &parts(lanes, PIECE)));
            // The layer is in the cone even if no listed state leads to it.
            cone.layers.entry(layer).or_default();
        }
        let (mut listed_bytes, mut largest) = (0, Largest::default());
        while let Some((layer, lanes)) = open.pop_first() {
            largest.see(iter::once(&lanes));
            let is_stored = game.keeps(layer);
            // Stored values are read lane by lane.
            let parts = parts(lanes, if is_stored { usize::MAX } else { PIECE });
            let of_layer = count(&parts);
            for slice in slices(&parts, limits.slice()).into_iter().map(|slice| &parts[slice]) {
                if !is_stored {
                    add(&mut open, layer, target_lanes(game, slice));
                    largest.see(open.values());
                }
                let waiting = of_layer + open.values().map(all_of).sum::<usize>();
                let listing_bytes = OPEN_BYTES * waiting as u64 + MOVED_BYTES * count(slice) as u64;
                let bytes = listed_bytes + listing_bytes.max(largest.valuing_bytes(limits.slice()));
                if bytes > limits.bytes || !(limits.goes_on)(count(slice)) {
                    return None;
                }
            }
            let listed: Vec<ListedPart> = parts.into_par_iter().map(ListedPart::new).collect();
            listed_bytes += listed.iter().map(ListedPart::bytes).sum::<u64>();
            cone.layers.insert(layer, listed);
        }
        Some(cone)
    }

    /// The number of states.
    pub fn states(&self) -> u64 {
        self.layers.values().map(|parts| count_listed(parts)).sum()
    }

    /// The number of states whose values are not stored, and the number of these in the uppermost layers.
    ///
    /// The uppermost layers are the fewest that together have at least `least` such states.
    pub fn between(&self, game: &CheckedGame, least: u64) -> [u64; 2] {
        let (mut all, mut near) = (0, 0);
        for (_, parts) in self.layers.iter().rev().filter(|(layer, _)| !game.keeps(**layer)) {
            all += count_listed(parts);
            near = if near < least { all } else { near };
        }
        [all, near]
    }

    /// Computes the values downward, and calls `visit` with each layer, down to the lowest layer of the first states.
    ///
    /// The values of stored layers are read. Returns `false` if `goes_on` stopped the computation.
    ///
    /// # Errors
    ///
    /// The errors of reading and of `visit`, and a problem if a successor of a state is missing.
    pub fn value_down_to(
        self,
        game: &CheckedGame,
        reader: &LayerReader<'_>,
        limits: &CheckLimits<'_>,
        mut visit: impl FnMut(ValuedLayer<'_>) -> Result<(), Problem>,
    ) -> Result<bool, Problem> {
        let Self { mut layers } = self;
        let mut above = [States::default(), States::default()];
        let ends = layers.first_key_value().zip(layers.last_key_value());
        let all = ends.map_or(0..0, |((&first, _), (&last, _))| first..last + 1);
        for layer in all.rev().step_by(2) {
            let listed = layers.remove(&layer).unwrap_or_default();
            let mut parts: Vec<Part> = listed.into_par_iter().map(ListedPart::into_part).collect();
            for slice in slices(&parts, limits.slice()) {
                let slice = &mut parts[slice];
                let states = count(slice);
                if game.keeps(layer) {
                    let read =
                        |part: &mut Part| reader.with_values(mem::take(part)).map(|found| *part = found);
                    slice.par_iter_mut().try_for_each(read)?;
                } else {
                    let found = successors(game, slice, above.each_ref().map(Some), true);
                    if let Some(&(after, board)) = found.missing.iter().min() {
                        return Err(reader.missing_problem(after, board));
                    }
                    slice.iter_mut().zip(found.values).for_each(|(part, (values, _))| part.values = values);
                }
                if !(limits.goes_on)(states) {
                    return Ok(false);
                }
            }
            let of_layer = States::new(parts, true);
            let [two, four] = &above;
            visit(ValuedLayer { layer, states: &of_layer, above: [two, four] })?;
            let [two, _] = above;
            above = [of_layer, two];
        }
        Ok(true)
    }
}

fn count(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.boards.len()).sum()
}

fn count_listed(parts: &[ListedPart]) -> u64 {
    parts.iter().map(|part| part.count() as u64).sum()
}

fn all_of(lanes: &Lanes) -> usize {
    lanes.values().map(Vec::len).sum()
}

/// Divides the parts of a layer into slices, in the order of the lanes.
///
/// The parts of a slice are processed at once. A slice has at most `most` boards, or a single larger part. A lane that
/// fits into one slice is not divided, because each slice prepares its lanes anew.
fn slices(parts: &[Part], most: usize) -> Vec<Range<usize>> {
    let (mut slices, mut room, mut end) = (Vec::<Range<usize>>::new(), 0, 0);
    for lane in parts.chunk_by(|a, b| a.lane == b.lane) {
        if count(lane) > room {
            room = 0;
        }
        for part in lane {
            let boards = part.boards.len();
            end += 1;
            match slices.last_mut() {
                Some(slice) if boards <= room => {
                    slice.end = end;
                    room -= boards;
                }
                _ => {
                    slices.push(end - 1..end);
                    room = most.saturating_sub(boards);
                }
            }
        }
    }
    slices
}

/// Divides the boards of some lanes into parts of at most `most` boards.
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

/// Adds the states that the states of a layer lead to, after a spawned 2 and after a spawned 4.
fn add(open: &mut BTreeMap<u32, Lanes>, layer: u32, target_lanes: [Lanes; 2]) {
    let mut lists = Vec::new();
    for (layer, lanes) in
        [layer + 2, layer + 4].into_iter().zip(target_lanes).filter(|(_, lanes)| !lanes.is_empty())
    {
        let there = open.entry(layer).or_default();
        let with_those_there =
            |(lane, boards)| (layer, lane, there.remove(&lane).unwrap_or_default(), boards);
        lists.extend(lanes.into_iter().map(with_those_there));
    }
    // The largest list is first, so that no thread begins it last.
    lists.sort_by_key(|(_, _, there, boards): &(_, _, Vec<u64>, Vec<u64>)| {
        Reverse(there.len() + boards.len())
    });
    let lists = lists.into_par_iter().with_max_len(1);
    let merged = lists.map(|(layer, lane, there, boards)| (layer, lane, merged(there, boards)));
    for (layer, lane, boards) in merged.collect::<Vec<_>>() {
        open.entry(layer).or_default().insert(lane, boards);
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
    fn slices_have_all_parts_in_their_order() {
        let part =
            |&(lane, boards): &(u64, u64)| Part { lane, boards: (0..boards).collect(), ..Part::default() };
        let cut = |parts: &[(u64, u64)]| slices(&parts.iter().map(part).collect::<Vec<_>>(), 10);
        assert_eq!(cut(&[]), []);
        assert_eq!(cut(&[(1, 4), (1, 6), (2, 1), (3, 0), (4, 12), (5, 3)]), [0..2, 2..4, 4..5, 5..6]);
        // A lane of 9 boards is not divided, but a lane of 15 boards is.
        assert_eq!(cut(&[(1, 4), (2, 6), (2, 3), (3, 5), (3, 5), (3, 5)]), [0..1, 1..3, 3..5, 5..6]);
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
