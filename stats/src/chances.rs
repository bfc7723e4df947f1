//! The boards of a layer, each with how likely a game is to come to it.
//!
//! What is sent from one layer to another is added up in an order that does not depend on threads, and it is counted how
//! often a number was rounded (`docs/dev/error-bound.md`, "Chances").

use exact2048_game::Board;
use rayon::prelude::*;

/// Parts of a layer that are filled at once, whatever the threads: so sums are taken in one order.
pub const BUCKETS: usize = 64;

/// Buckets of a layer whose boards are sent on at once, which bounds what is on its way.
const SENT_TOGETHER: usize = 16;

/// A board, and how likely a game is to come to it.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    /// The board.
    pub board: Board,
    /// The share of games that come to it.
    pub chance: f64,
    /// Numbers that `chance` is the sum of.
    terms: u32,
}

/// What is sent to boards of a layer, by bucket.
pub struct ChanceList {
    by_bucket: [Vec<(Board, f64)>; BUCKETS],
    /// The bucket of each board in the order in which they were sent, where that is to be known.
    order: Option<Vec<u8>>,
}

/// In an order: what was not sent.
const NOT_SENT: u8 = u8::MAX;

impl ChanceList {
    /// With room for so many boards.
    fn with_room(boards: usize, with_order: bool) -> Self {
        let by_bucket = std::array::from_fn(|_| Vec::with_capacity(boards / BUCKETS));
        Self { by_bucket, order: with_order.then(|| Vec::with_capacity(boards)) }
    }

    /// Adds something for a board.
    #[inline]
    pub fn push(&mut self, board: Board, chance: f64) {
        let bucket = bucket_of(hash(board));
        self.by_bucket[bucket].push((board, chance));
        if let Some(order) = &mut self.order {
            order.push(bucket as u8);
        }
    }

    /// Leaves a board out, which has no place then.
    #[inline]
    pub fn skip(&mut self) {
        if let Some(order) = &mut self.order {
            order.push(NOT_SENT);
        }
    }
}

/// Where a board is in a [`ChanceTable`], for as long as that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChancePlace {
    /// Its bucket.
    pub bucket: u8,
    /// Its entry there.
    pub entry: u32,
}

/// Where the boards are that were sent from one bucket to one table, in the order in which they were sent; `None` for
/// those that were left out.
pub type ChancePlaces = Vec<Option<ChancePlace>>;

/// ChanceTable sent for one, about.
const SENT_FOR_ONE: usize = 4;

/// ChanceTable of a layer.
pub struct ChanceTable {
    /// The boards, by the first bits of their hashes.
    pub buckets: Vec<ChanceBucket>,
    /// Roundings that went at most into any number that was sent here.
    sent_roundings: u64,
}

impl Default for ChanceTable {
    fn default() -> Self {
        Self { buckets: (0..BUCKETS).map(|_| ChanceBucket::default()).collect(), sent_roundings: 0 }
    }
}

impl ChanceTable {
    /// No boards, with room for about so many.
    pub fn with_room(boards: usize) -> Self {
        let mut empty = Self::default();
        empty.buckets.iter_mut().for_each(|bucket| bucket.make_room(boards / BUCKETS));
        empty
    }

    /// Sends what `send` makes of each bucket to the boards of some layers; gives what it found besides, in order.
    /// What is sent was rounded `roundings` times on its way.
    pub fn send<const N: usize, T: Send>(
        &self,
        to: [&mut ChanceTable; N],
        roundings: u64,
        send: impl Fn(usize, &ChanceBucket, &mut [ChanceList; N]) -> T + Sync,
    ) -> Vec<T> {
        self.send_some::<N, T, false>(to, roundings, send).0
    }

    /// The same, and by bucket where in these layers is what was sent.
    pub fn send_to_places<const N: usize, T: Send>(
        &self,
        to: [&mut ChanceTable; N],
        roundings: u64,
        send: impl Fn(usize, &ChanceBucket, &mut [ChanceList; N]) -> T + Sync,
    ) -> (Vec<T>, Vec<[ChancePlaces; N]>) {
        self.send_some::<N, T, true>(to, roundings, send)
    }

    fn send_some<const N: usize, T: Send, const PLACES: bool>(
        &self,
        mut to: [&mut ChanceTable; N],
        roundings: u64,
        send: impl Fn(usize, &ChanceBucket, &mut [ChanceList; N]) -> T + Sync,
    ) -> (Vec<T>, Vec<[ChancePlaces; N]>) {
        let reached = self.roundings() + roundings;
        to.iter_mut().for_each(|boards| boards.sent_roundings = boards.sent_roundings.max(reached));
        let (mut found, mut places) = (Vec::with_capacity(BUCKETS), Vec::new());
        for (group, buckets) in self.buckets.chunks(SENT_TOGETHER).enumerate() {
            let sent = buckets.par_iter().enumerate().map(|(at, bucket)| {
                let room = SENT_FOR_ONE * bucket.entries.len();
                let mut sent = std::array::from_fn(|_| ChanceList::with_room(room, PLACES));
                let found = send(group * SENT_TOGETHER + at, bucket, &mut sent);
                (sent, found)
            });
            let (sent, of_group): (Vec<_>, Vec<_>) = sent.unzip();
            let added: [Vec<_>; N] = std::array::from_fn(|layer| {
                let buckets = to[layer].buckets.par_iter_mut().enumerate();
                buckets.map(|(at, bucket)| bucket.add_all::<N, PLACES>(&sent, layer, at)).collect()
            });
            if PLACES {
                let of = |source: usize| {
                    std::array::from_fn(|layer| in_order(&sent[source][layer], source, &added[layer]))
                };
                places.par_extend((0..sent.len()).into_par_iter().map(of));
            }
            found.extend::<Vec<T>>(of_group);
        }
        (found, places)
    }

    /// Adds to the chance of one board.
    pub fn add(&mut self, board: Board, chance: f64, roundings: u64) {
        self.sent_roundings = self.sent_roundings.max(roundings);
        self.buckets[bucket_of(hash(board))].add(board, chance);
    }

    /// ChanceBucket and place of a board.
    pub fn find(&self, board: Board) -> Option<(usize, usize)> {
        let bucket = bucket_of(hash(board));
        Some((bucket, self.buckets[bucket].find(board)?))
    }

    /// Whether there is no board.
    pub fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.entries.is_empty())
    }

    /// Number of boards.
    pub fn len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.entries.len()).sum()
    }

    /// ChanceTable of the largest bucket.
    pub fn longest(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.entries.len()).max().unwrap_or(0)
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        let of = |bucket: &ChanceBucket| {
            size_of::<Chance>() * bucket.entries.capacity() + size_of::<u32>() * bucket.slots.len()
        };
        self.buckets.iter().map(of).sum()
    }

    /// How often a number here, or one that went into it, was rounded at most.
    pub fn roundings(&self) -> u64 {
        let terms = self.buckets.iter().flat_map(|bucket| &bucket.entries).map(|entry| entry.terms).max();
        self.sent_roundings + u64::from(terms.unwrap_or(0))
    }
}

/// ChanceTable of a layer whose hashes begin alike, in the order in which they came.
#[derive(Default)]
pub struct ChanceBucket {
    /// The boards, in the order in which they came.
    pub entries: Vec<Chance>,
    /// One more than the place of an entry, or 0, by hash; at least twice as many as entries.
    slots: Vec<u32>,
}

/// Slots of a bucket that holds a board.
const FEWEST_SLOTS: usize = 16;

impl ChanceBucket {
    /// Adds what came for this bucket, the `at`th of a layer; gives the entry of each by source.
    fn add_all<const N: usize, const PLACES: bool>(
        &mut self,
        sent: &[[ChanceList; N]],
        layer: usize,
        at: usize,
    ) -> Vec<Vec<u32>> {
        let mut entries = Vec::new();
        for sent in sent {
            let boards = sent[layer].by_bucket[at].iter();
            if PLACES {
                entries.push(boards.map(|&(board, chance)| self.add(board, chance)).collect());
            } else {
                boards.for_each(|&(board, chance)| {
                    self.add(board, chance);
                });
            }
        }
        entries
    }

    /// Adds to the chance of a board, and gives its entry.
    #[inline]
    fn add(&mut self, board: Board, chance: f64) -> u32 {
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.grow();
        }
        let slot = self.slot(board);
        match self.slots[slot] {
            0 => {
                self.entries.push(Chance { board, chance, terms: 1 });
                self.slots[slot] = self.entries.len() as u32;
                self.entries.len() as u32 - 1
            }
            taken => {
                let entry = &mut self.entries[taken as usize - 1];
                entry.chance += chance;
                entry.terms += 1;
                taken - 1
            }
        }
    }

    fn find(&self, board: Board) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        (self.slots[self.slot(board)] as usize).checked_sub(1)
    }

    /// The slot that a board has, or would get.
    fn slot(&self, board: Board) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (hash(board) >> 20) as usize & mask;
        loop {
            let taken = self.slots[slot] as usize;
            if taken == 0 || self.entries[taken - 1].board == board {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    fn make_room(&mut self, boards: usize) {
        if boards > FEWEST_SLOTS {
            self.slots = vec![0; (2 * boards).next_power_of_two()];
            self.entries.reserve(boards);
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; (2 * self.slots.len()).max(FEWEST_SLOTS)];
        for place in 0..self.entries.len() {
            let slot = self.slot(self.entries[place].board);
            self.slots[slot] = place as u32 + 1;
        }
    }
}

/// The places of what one source sent to a layer, in the order in which it was sent, from the entries by bucket and
/// source.
fn in_order(sent: &ChanceList, source: usize, entries: &[Vec<Vec<u32>>]) -> ChancePlaces {
    let mut next = [0; BUCKETS];
    let place = |&bucket: &u8| {
        (bucket != NOT_SENT).then(|| {
            let at = usize::from(bucket);
            next[at] += 1;
            ChancePlace { bucket, entry: entries[at][source][next[at] - 1] }
        })
    };
    sent.order.iter().flatten().map(place).collect()
}

/// Fibonacci hashing: the upper bits depend on all bits of the board.
fn hash(board: Board) -> u64 {
    board.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn bucket_of(hash: u64) -> usize {
    (hash >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_to_a_board_adds_up() {
        let (mut from, mut to) = (ChanceTable::default(), ChanceTable::default());
        (1..=5_000).for_each(|n| from.add(Board(n), 0.5, 3));
        let found = from.send([&mut to], 2, |_, bucket, [sent]| {
            bucket.entries.iter().for_each(|entry| sent.push(Board(1 + entry.board.0 % 100), entry.chance));
            bucket.entries.len()
        });
        assert_eq!((found.iter().sum::<usize>(), from.len(), to.len()), (5_000, 5_000, 100));
        for n in 1..=100 {
            let (bucket, place) = to.find(Board(n)).unwrap();
            assert_eq!(to.buckets[bucket].entries[place].chance, 25.0);
        }
        assert_eq!(to.find(Board(101)), None);
        assert_eq!((from.roundings(), to.roundings()), (4, 4 + 2 + 50));
    }
}
