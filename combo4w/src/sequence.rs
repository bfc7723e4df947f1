//! Sequences of pieces: the visible pieces, and the possible continuations.

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::piece::{PIECES, Piece};

/// Method of drawing pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Draw {
    /// Each piece is any of the seven, independently of the earlier pieces.
    #[default]
    Random,
    /// Pieces are drawn from a bag of all seven pieces. The bag is refilled when it is empty.
    Bag,
}

/// Pieces as a set of bits, by number.
pub(crate) type Bits = u8;
pub(crate) const FULL: Bits = 0b111_1111;

/// Knowledge of the next pieces: the visible pieces, and the possible pieces after them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outlook {
    /// The visible pieces, the next one first.
    pub previews: Vec<Piece>,
    /// The possible pieces after the visible ones, in order.
    pub bag: Vec<Piece>,
}

/// An outlook in one word; see [`Key::new`] for the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key(u64);

/// Bits of a piece in a key.
const PIECE_BITS: u32 = 3;

impl Key {
    /// Largest number of previews that fit into a key.
    const MOST_PREVIEWS: usize = 17;

    /// Packs an outlook. Keys sort by the previews after the first, then by the bag, then by the first preview.
    ///
    /// In this order, outlooks with the same continuations are neighbours.
    fn new(first: usize, rest: u64, bag: Bits) -> Self {
        Self((rest << 7 | u64::from(bag)) << PIECE_BITS | first as u64)
    }

    fn first(self) -> usize {
        (self.0 & 0b111) as usize
    }

    fn bag(self) -> Bits {
        (self.0 >> PIECE_BITS) as Bits & FULL
    }

    /// The previews after the first, three bits each, the last one in the lowest bits.
    fn rest(self) -> u64 {
        self.0 >> (PIECE_BITS + 7)
    }

    /// The key without the first preview. Outlooks with the same tail have the same continuations.
    fn tail(self) -> u64 {
        self.0 >> PIECE_BITS
    }
}

/// All outlooks with a given number of previews, and their transitions. Outlooks are numbered.
///
/// The outlooks form *levels*: a draw leads from each level to the next one, and from the last level to level 0. With a
/// bag, the level is the number of pieces drawn from the bag. Otherwise, there is one level.
#[derive(Clone, Debug)]
pub struct Sequences {
    previews: usize,
    draw: Draw,
    levels: Vec<Level>,
}

/// The outlooks of a level, and their transitions.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    keys: Vec<Key>,
    /// Start of each group. The outlooks of a group differ only in the next piece, so they have the same continuations.
    starts: Vec<u32>,
    /// Transitions, `branches` for each group, as drawn piece and resulting outlook of the next level.
    follow: Vec<(u8, u32)>,
    branches: usize,
}

/// Outlooks that differ only in the next piece.
pub(crate) struct Group<'a> {
    /// Numbers of the outlooks within the level.
    pub outlooks: std::ops::Range<usize>,
    /// Equally likely transitions, as drawn piece and resulting outlook of the next level.
    pub follow: &'a [(u8, u32)],
}

impl Level {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn branches(&self) -> usize {
        self.branches
    }

    pub fn group(&self, group: usize) -> Group<'_> {
        Group {
            outlooks: self.starts[group] as usize..self.starts[group + 1] as usize,
            follow: &self.follow[group * self.branches..][..self.branches],
        }
    }

    /// The group of an outlook.
    pub fn group_of(&self, outlook: usize) -> usize {
        self.starts.partition_point(|&start| start as usize <= outlook) - 1
    }

    /// The next piece of an outlook, if visible.
    pub fn first(&self, outlook: usize) -> usize {
        self.keys[outlook].first()
    }
}

impl Sequences {
    /// Finds the outlooks.
    ///
    /// # Panics
    ///
    /// If more than 17 previews are requested, because they do not fit into a key.
    #[must_use]
    pub fn new(draw: Draw, previews: usize) -> Self {
        assert!(previews <= Key::MOST_PREVIEWS, "{previews} previews do not fit into a key");
        let count = match draw {
            Draw::Random => 1,
            Draw::Bag => PIECES.len(),
        };
        let this = Self { previews, draw, levels: Vec::new() };
        let mut keys: Vec<Vec<Key>> = vec![Vec::new(); count];
        for key in this.all() {
            keys[this.level_of(key)].push(key);
        }
        keys.par_iter_mut().for_each(|keys| keys.par_sort_unstable());
        let levels = (0..count).map(|level| this.level(&keys[level], &keys[(level + 1) % count])).collect();
        Self { levels, ..this }
    }

    /// Counts the outlooks without enumerating them; `None` if the count exceeds 64 bits.
    #[must_use]
    pub fn count(draw: Draw, previews: usize) -> Option<u64> {
        let Draw::Bag = draw else { return 7u64.checked_pow(u32::try_from(previews).ok()?) };
        let ordered = |taken: u64, seen: u64| (0..seen).map(|i| taken - i).product::<u64>();
        let previews = previews as u64;
        (0..7u64).try_fold(0u64, |sum, taken| {
            // The last pieces from the current bag are visible in order. The other drawn pieces are known as a set.
            let seen = taken.min(previews);
            let sets = ordered(7, taken) / ordered(taken, taken);
            let before = previews - seen;
            let bags = ordered(7, 7).checked_pow(u32::try_from(before / 7).ok()?)?;
            let count = sets.checked_mul(ordered(taken, seen))?.checked_mul(bags)?;
            sum.checked_add(count.checked_mul(ordered(7, before % 7))?)
        })
    }

    fn level_of(&self, key: Key) -> usize {
        match self.draw {
            Draw::Random => 0,
            Draw::Bag => PIECES.len() - key.bag().count_ones() as usize,
        }
    }

    /// Enumerates all outlooks, starting with one of them.
    fn all(&self) -> Vec<Key> {
        let mut bag = FULL;
        let mut start = Key::new(0, 0, FULL);
        for place in 0..self.previews {
            let piece = place % PIECES.len();
            bag = self.without(bag, piece);
            let rest = if place == 0 { 0 } else { start.rest() << PIECE_BITS | piece as u64 };
            start = Key::new(start.first(), rest, bag);
        }
        let mut seen = FxHashSet::from_iter([start]);
        let mut found = vec![start];
        let mut at = 0;
        while at < found.len() {
            let key = found[at];
            found.extend(self.following(key).map(|(_, next)| next).filter(|&next| seen.insert(next)));
            at += 1;
        }
        found
    }

    /// The bag after drawing a piece.
    fn without(&self, bag: Bits, piece: usize) -> Bits {
        match (self.draw, bag & !(1 << piece)) {
            (Draw::Random, _) | (Draw::Bag, 0) => FULL,
            (Draw::Bag, left) => left,
        }
    }

    /// Each possible drawn piece, and the resulting outlook.
    fn following(&self, key: Key) -> impl Iterator<Item = (u8, Key)> + '_ {
        let drawn = (0..PIECES.len()).filter(move |piece| key.bag() >> piece & 1 == 1);
        drawn.map(move |piece| {
            let bag = self.without(key.bag(), piece);
            let next = if self.previews == 0 {
                Key::new(0, 0, bag)
            } else {
                let seen = key.rest() << PIECE_BITS | piece as u64;
                let below = PIECE_BITS * (self.previews as u32 - 1);
                Key::new((seen >> below) as usize, seen & ((1 << below) - 1), bag)
            };
            (piece as u8, next)
        })
    }

    fn level(&self, keys: &[Key], next: &[Key]) -> Level {
        let is_start = |&at: &usize| at == 0 || keys[at - 1].tail() != keys[at].tail();
        let starts: Vec<usize> = (0..keys.len()).filter(is_start).collect();
        let number = |key: Key| next.binary_search(&key).map_or(u32::MAX, |at| at as u32);
        let follow: Vec<(u8, u32)> = starts
            .par_iter()
            .flat_map_iter(|&at| self.following(keys[at]).map(|(piece, key)| (piece, number(key))))
            .collect();
        let branches = follow.len() / starts.len();
        let starts = starts.into_iter().chain([keys.len()]).map(|at| at as u32).collect();
        Level { keys: keys.to_vec(), starts, follow, branches }
    }

    /// Number of visible pieces.
    #[must_use]
    pub fn previews(&self) -> usize {
        self.previews
    }

    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Number of outlooks.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }

    /// The outlook with a level and a number within the level.
    pub(crate) fn outlook(&self, level: usize, at: usize) -> Outlook {
        let key = self.levels[level].keys[at];
        let piece = |number: usize| PIECES[number];
        let rest = (1..self.previews)
            .map(|place| key.rest() >> (PIECE_BITS * (self.previews - 1 - place) as u32) & 0b111);
        let first = (self.previews > 0).then(|| key.first());
        Outlook {
            previews: first.into_iter().chain(rest.map(|number| number as usize)).map(piece).collect(),
            bag: PIECES.into_iter().filter(|piece| key.bag() >> piece.index() & 1 == 1).collect(),
        }
    }

    /// Whether a piece can precede an outlook.
    pub(crate) fn can_come(&self, current: Piece, outlook: &Outlook) -> bool {
        let mut seen = vec![current];
        seen.extend(&outlook.previews);
        let drawn = seen.pop().unwrap_or(current);
        let bag = match self.draw {
            Draw::Random => outlook.bag.clone(),
            // If the bag is full, `drawn` was the last piece of the previous bag. Otherwise, `drawn` is from this bag.
            Draw::Bag if outlook.bag.len() == PIECES.len() => vec![drawn],
            Draw::Bag if outlook.bag.contains(&drawn) => return false,
            Draw::Bag => {
                PIECES.into_iter().filter(|piece| *piece == drawn || outlook.bag.contains(piece)).collect()
            }
        };
        self.find(&Outlook { previews: seen, bag }).is_some()
    }

    /// The level of an outlook, and its number within the level; `None` if the outlook is impossible.
    pub(crate) fn find(&self, outlook: &Outlook) -> Option<(usize, usize)> {
        if outlook.previews.len() != self.previews {
            return None;
        }
        let mut previews = outlook.previews.iter().map(|piece| piece.index());
        let first = previews.next().unwrap_or(0);
        let rest = previews.fold(0, |rest, piece| rest << PIECE_BITS | piece as u64);
        let key = Key::new(first, rest, outlook.bag.iter().fold(0, |bits, piece| bits | 1 << piece.index()));
        let level = self.level_of(key);
        let at = self.levels.get(level)?.keys.binary_search(&key).ok()?;
        Some((level, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_outlooks_match_published_ones() {
        for (previews, states) in [127, 448, 1393, 3948, 11_424].into_iter().enumerate() {
            assert_eq!(Sequences::new(Draw::Bag, previews).len(), states, "{previews}");
            assert_eq!(Sequences::count(Draw::Bag, previews), Some(states as u64), "{previews}");
            assert_eq!(Sequences::new(Draw::Random, previews).len(), 7usize.pow(previews as u32));
        }
        assert_eq!(Sequences::count(Draw::Bag, 8), Some(Sequences::new(Draw::Bag, 8).len() as u64));
        assert_eq!(Sequences::count(Draw::Random, 23), None);
    }

    #[test]
    fn outlooks_are_found_by_their_pieces() {
        for draw in [Draw::Random, Draw::Bag] {
            for previews in 0..=3 {
                let sequences = Sequences::new(draw, previews);
                for level in 0..sequences.levels.len() {
                    for at in 0..sequences.levels[level].len() {
                        assert_eq!(sequences.find(&sequences.outlook(level, at)), Some((level, at)));
                    }
                }
            }
        }
    }
}
