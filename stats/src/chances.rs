//! The boards of a layer, each with the probability that a game reaches it.
//!
//! Each layer sends probabilities to later layers. The order of the additions does not depend on threads. The tables
//! count the roundings of each probability (`docs/dev/error-bound.md`, "Chances").

use exact2048_game::Board;
use exact2048_game::packed::PackedRules;
use rayon::prelude::*;

/// Smallest probability that can be followed. Much smaller numbers have fewer digits in 64-bit floating point.
pub const LEAST_CHANCE: f64 = 1e-290;

/// Number of buckets of a layer. Threads process buckets in parallel.
///
/// The number does not depend on the threads, so the order of every sum is fixed. With this many buckets, the boards of
/// one bucket fit into a fast cache.
pub const BUCKETS: usize = 64;

/// Number of buckets in a group. One thread makes the moves of a group in sequence.
const GROUP: usize = 4;

/// Assigns boards to buckets by properties that no spawn and no symmetry changes.
///
/// All images of a board are therefore in one bucket, and a spawn does not change the bucket. Most bits of a bucket's
/// number depend on the tiles of 8 and more, so the moves of one bucket reach few buckets. The other bits depend on the
/// cells of these tiles, because many boards have the same tiles. Cells that are images of each other count as one.
#[derive(Debug)]
pub struct Buckets {
    /// Summand of each pair of neighbouring cells, by their tiles. The upper 16 bits stand for the tiles, the lower 16 for
    /// the cells.
    pairs: Box<[[u32; 256]; 8]>,
}

impl Buckets {
    /// Creates buckets for boards of the size of the rules.
    #[must_use]
    pub fn new(packed: &PackedRules) -> Self {
        let cell_class = |cell: usize| {
            let images = packed.images(Board(1 << (4 * cell)));
            images.into_iter().map(|image| image.0).fold(u64::MAX, u64::min)
        };
        let mut pairs = Box::new([[0u32; 256]; 8]);
        for cell in 0..packed.size().places() {
            for (tiles, summand) in pairs[cell / 2].iter_mut().enumerate() {
                let exponent = tiles as u64 >> (4 * (cell % 2)) & 15;
                if exponent >= 3 {
                    let (of_tile, of_cell) =
                        (hash(Board(exponent)), hash(Board(cell_class(cell) * exponent)));
                    *summand = summand.wrapping_add((of_tile >> 48 << 16 | of_cell >> 48) as u32);
                }
            }
        }
        Self { pairs }
    }

    #[inline]
    fn of(&self, board: Board) -> usize {
        let cells = self.pairs.iter().zip(board.0.to_le_bytes());
        let sum = cells.fold(0u32, |sum, (pairs, tiles)| sum.wrapping_add(pairs[usize::from(tiles)]));
        let first = |sum: u32, bits: u32| (hash(Board(sum.into())) >> (u64::BITS - bits)) as usize;
        first(sum >> 16, BUCKETS.trailing_zeros() - CELL_BITS) << CELL_BITS | first(sum & 0xffff, CELL_BITS)
    }
}

/// Number of bits of a bucket's number that depend on cells.
const CELL_BITS: u32 = 2;

/// A board, and the probability that a game reaches it.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    /// The board.
    pub board: Board,
    /// Share of games that reach the board.
    pub chance: f64,
    /// Number of terms in `chance`.
    terms: u32,
}

/// Probabilities that some buckets send to boards in any bucket of a layer.
pub struct ChanceList<'a> {
    buckets: &'a Buckets,
    by_bucket: [Vec<(Board, f64)>; BUCKETS],
    /// The bucket of each board in the order of sending, if requested.
    order: Option<Vec<u8>>,
}

impl ChanceList<'_> {
    /// Empties the list, but retains its memory.
    fn begin(&mut self, with_order: bool) {
        self.by_bucket.iter_mut().for_each(Vec::clear);
        self.order = with_order.then(Vec::new);
    }

    /// Sends a probability to a board.
    #[inline]
    pub fn push(&mut self, board: Board, chance: f64) {
        let bucket = self.buckets.of(board);
        self.by_bucket[bucket].push((board, chance));
        if let Some(order) = &mut self.order {
            order.push(bucket as u8);
        }
    }
}

/// Lists of probabilities sent to a layer. They reuse their memory from layer to layer.
pub struct ChanceLists<'a>(Vec<ChanceList<'a>>);

impl<'a> ChanceLists<'a> {
    /// Creates lists without memory.
    #[must_use]
    pub fn new(buckets: &'a Buckets) -> Self {
        let list = || ChanceList { buckets, by_bucket: [const { Vec::new() }; BUCKETS], order: None };
        Self((0..BUCKETS / GROUP).map(|_| list()).collect())
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let sent = self.0.iter().flat_map(|list| &list.by_bucket);
        sent.map(|sent| size_of::<(Board, f64)>() * sent.capacity()).sum()
    }
}

/// Target bucket of spawns. The source bucket has the same number in an earlier layer.
pub struct SpawnChances<'a> {
    bucket: &'a mut ChanceBucket,
    /// The entry of each board in the order of sending, if requested.
    entries: Option<Vec<u32>>,
}

/// Placeholder in a list of entries for a board that was left out.
pub const LEFT_OUT: u32 = u32::MAX;

impl SpawnChances<'_> {
    /// Adds `chance` to each board. All boards must belong to this bucket.
    #[inline]
    pub fn push_all(&mut self, boards: &[Board], chance: f64) {
        match &mut self.entries {
            Some(entries) => entries.extend(boards.iter().map(|&board| self.bucket.add(board, chance))),
            None => boards.iter().for_each(|&board| {
                self.bucket.add(board, chance);
            }),
        }
    }

    /// Skips `boards` boards. If entries are requested, the entry of a skipped board is [`LEFT_OUT`].
    pub fn skip(&mut self, boards: usize) {
        if let Some(entries) = &mut self.entries {
            entries.resize(entries.len() + boards, LEFT_OUT);
        }
    }
}

/// Place of a board in a [`ChanceTable`], valid for the table's lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChancePlace {
    /// Number of the board's bucket.
    pub bucket: u8,
    /// Number of the board's entry in the bucket.
    pub entry: u32,
}

/// Places of the boards after a bucket's moves, in the order of sending.
pub type ChancePlaces = Vec<ChancePlace>;

/// The boards of a layer, by bucket.
pub struct ChanceTable {
    /// The buckets, in the order of their numbers.
    pub buckets: Vec<ChanceBucket>,
    /// Largest number of roundings of any probability sent to this layer.
    sent_roundings: u64,
}

impl Default for ChanceTable {
    fn default() -> Self {
        Self { buckets: (0..BUCKETS).map(|_| ChanceBucket::default()).collect(), sent_roundings: 0 }
    }
}

impl ChanceTable {
    /// Creates an empty table with memory for about as many boards as another layer has.
    pub fn with_room_of(other: &Self) -> Self {
        let room = |bucket: &ChanceBucket| ChanceBucket::with_room(bucket.entries.len());
        Self { buckets: other.buckets.iter().map(room).collect(), sent_roundings: 0 }
    }

    /// Calls `send` for each bucket, and adds the sent probabilities to the boards of the layer `to`.
    ///
    /// Returns the results of `send`, in order. If `with_places`, also returns the places of the receiving boards, bucket by
    /// bucket. The sender rounds each probability `roundings` times.
    pub fn send_moves<T: Send>(
        &self,
        to: &mut ChanceTable,
        lists: &mut ChanceLists<'_>,
        roundings: u64,
        with_places: bool,
        send: impl Fn(&ChanceBucket, &mut ChanceList<'_>) -> T + Sync,
    ) -> (Vec<T>, Vec<ChancePlaces>) {
        to.sent_roundings = to.sent_roundings.max(self.roundings() + roundings);
        let groups = self.buckets.par_chunks(GROUP).zip(&mut lists.0);
        let sent = groups.map(|(sources, list)| {
            list.begin(with_places);
            let mut ends = Vec::with_capacity(GROUP);
            let mut of = |source| {
                let found = send(source, list);
                ends.push(list.order.as_ref().map_or(0, Vec::len));
                found
            };
            (sources.iter().map(&mut of).collect::<Vec<T>>(), ends)
        });
        let (found, ends): (Vec<Vec<T>>, Vec<Vec<usize>>) = sent.unzip();
        let buckets = to.buckets.par_iter_mut().enumerate();
        let added: Vec<_> = buckets.map(|(at, bucket)| bucket.take_in(&lists.0, at, with_places)).collect();
        let of_group = |(group, (list, ends)): (usize, (&ChanceList<'_>, Vec<usize>))| {
            let places = in_order(list, group, &added);
            let begins = [0].into_iter().chain(ends.clone());
            begins.zip(ends).map(|(begin, end)| places[begin..end].to_vec()).collect::<Vec<_>>()
        };
        let places = if with_places {
            lists.0.par_iter().zip(ends).enumerate()
        } else {
            return (flat(found), Vec::new());
        };
        (flat(found), flat(places.map(of_group).collect()))
    }

    /// Calls `send` for each bucket, and adds the sent probabilities to the boards after a spawned 2 or 4.
    ///
    /// Returns the results of `send`, in order. If `with_places`, also returns the receiving entries, bucket by bucket. The
    /// sender rounds each probability `roundings` times.
    pub fn send_spawns<T: Send>(
        &self,
        to: [&mut ChanceTable; 2],
        roundings: u64,
        with_places: bool,
        send: impl Fn(&ChanceBucket, &mut [SpawnChances<'_>; 2]) -> T + Sync,
    ) -> (Vec<T>, Vec<[Vec<u32>; 2]>) {
        let sent_roundings = self.roundings() + roundings;
        let [twos, fours] = to.map(|layer| {
            layer.sent_roundings = layer.sent_roundings.max(sent_roundings);
            layer.buckets.par_iter_mut()
        });
        let of = |(source, (two, four)): (&ChanceBucket, (&mut ChanceBucket, &mut ChanceBucket))| {
            let entries = || with_places.then(Vec::new);
            let mut targets = [two, four].map(|bucket| SpawnChances { bucket, entries: entries() });
            let found = send(source, &mut targets);
            (found, targets.map(|target| target.entries.unwrap_or_default()))
        };
        self.buckets.par_iter().zip(twos.zip(fours)).map(of).unzip()
    }

    /// Adds `chance` to the probability of one board.
    pub fn add(&mut self, buckets: &Buckets, board: Board, chance: f64, roundings: u64) {
        self.sent_roundings = self.sent_roundings.max(roundings);
        self.buckets[buckets.of(board)].add(board, chance);
    }

    /// The place of a board.
    pub fn find(&self, buckets: &Buckets, board: Board) -> Option<ChancePlace> {
        let bucket = buckets.of(board);
        Some(ChancePlace { bucket: bucket as u8, entry: self.buckets[bucket].find(board)? })
    }

    /// Whether the table has no boards.
    pub fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.entries.is_empty())
    }

    /// Number of boards.
    pub fn len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.entries.len()).sum()
    }

    /// Number of boards of the largest bucket.
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

    /// Largest number of roundings of any probability in the table, including the additions of its terms.
    pub fn roundings(&self) -> u64 {
        let terms = self.buckets.iter().flat_map(|bucket| &bucket.entries).map(|entry| entry.terms).max();
        self.sent_roundings + u64::from(terms.unwrap_or(0))
    }
}

/// The boards of one bucket of a layer.
#[derive(Default)]
pub struct ChanceBucket {
    /// The boards, in the order of arrival.
    pub entries: Vec<Chance>,
    /// Hash table by the first bits of a board's hash. A slot holds the number of the board's entry plus 1, or 0 if empty.
    ///
    /// The number of slots is a power of two, and at least twice the number of entries.
    slots: Vec<u32>,
}

/// Smallest number of slots of a bucket with boards.
const FEWEST_SLOTS: usize = 16;

impl ChanceBucket {
    fn with_room(boards: usize) -> Self {
        let slots = if boards == 0 { 0 } else { (2 * boards).next_power_of_two().max(FEWEST_SLOTS) };
        Self { entries: Vec::with_capacity(boards), slots: vec![0; slots] }
    }

    /// Adds the probabilities sent to this bucket, number `at` of its layer.
    ///
    /// If `with_entries`, returns the entry of each board sent, by group.
    fn take_in(&mut self, sent: &[ChanceList<'_>], at: usize, with_entries: bool) -> Vec<Vec<u32>> {
        let mut entries = Vec::new();
        for sent in sent {
            let boards = sent.by_bucket[at].iter();
            if with_entries {
                entries.push(boards.map(|&(board, chance)| self.add(board, chance)).collect());
            } else {
                boards.for_each(|&(board, chance)| {
                    self.add(board, chance);
                });
            }
        }
        entries
    }

    /// Adds `chance` to the probability of a board, and returns the board's entry.
    #[inline]
    fn add(&mut self, board: Board, chance: f64) -> u32 {
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.grow();
        }
        match self.search(board) {
            Ok(entry) => {
                let known = &mut self.entries[entry as usize];
                known.chance += chance;
                known.terms += 1;
                entry
            }
            Err(slot) => {
                let entry = self.entries.len() as u32;
                self.entries.push(Chance { board, chance, terms: 1 });
                self.slots[slot] = entry + 1;
                entry
            }
        }
    }

    /// The entry of a board.
    pub fn find(&self, board: Board) -> Option<u32> {
        if self.slots.is_empty() { None } else { self.search(board).ok() }
    }

    /// The entry of a board, or the free slot for it.
    #[inline]
    fn search(&self, board: Board) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = ((hash(board) >> 32) as usize * self.slots.len()) >> 32;
        loop {
            let taken = self.slots[slot];
            if taken == 0 {
                return Err(slot);
            }
            if self.entries[taken as usize - 1].board == board {
                return Ok(taken - 1);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; (2 * self.slots.len()).max(FEWEST_SLOTS)];
        for entry in 0..self.entries.len() {
            let board = self.entries[entry].board;
            if let Err(slot) = self.search(board) {
                self.slots[slot] = entry as u32 + 1;
            }
        }
    }
}

/// Places of the boards that received probabilities from one group, in the order of sending.
///
/// `entries` lists the receiving entries by bucket and group.
fn in_order(sent: &ChanceList<'_>, group: usize, entries: &[Vec<Vec<u32>>]) -> ChancePlaces {
    let mut next = [0; BUCKETS];
    let place = |&bucket: &u8| {
        let at = usize::from(bucket);
        next[at] += 1;
        ChancePlace { bucket, entry: entries[at][group][next[at] - 1] }
    };
    sent.order.iter().flatten().map(place).collect()
}

/// Fibonacci hashing: the upper bits depend on all bits of the board.
#[inline]
fn hash(board: Board) -> u64 {
    board.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn flat<T>(groups: Vec<Vec<T>>) -> Vec<T> {
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> PackedRules {
        PackedRules::new("4x4".parse().unwrap())
    }

    #[test]
    fn probabilities_sent_to_a_board_are_added() {
        let (buckets, mut from, mut to) =
            (Buckets::new(&rules()), ChanceTable::default(), ChanceTable::default());
        (1..=5_000).for_each(|n| from.add(&buckets, Board(n), 0.5, 3));
        let target = |board: Board| Board(1 + board.0 % 100);
        for with_places in [false, true] {
            to = ChanceTable::with_room_of(&to);
            let (found, places) =
                from.send_moves(&mut to, &mut ChanceLists::new(&buckets), 2, with_places, |bucket, sent| {
                    bucket.entries.iter().for_each(|entry| sent.push(target(entry.board), entry.chance));
                    bucket.entries.len()
                });
            assert_eq!((found.iter().sum::<usize>(), from.len(), to.len()), (5_000, 5_000, 100));
            for (source, places) in from.buckets.iter().zip(&places) {
                let boards = source.entries.iter().map(|entry| Some(target(entry.board)));
                assert!(boards.map(|board| to.find(&buckets, board?)).eq(places.iter().copied().map(Some)));
            }
            assert_eq!(places.len(), if with_places { BUCKETS } else { 0 });
        }
        for n in 1..=100 {
            let ChancePlace { bucket, entry } = to.find(&buckets, Board(n)).unwrap();
            assert_eq!(to.buckets[usize::from(bucket)].entries[entry as usize].chance, 25.0);
        }
        assert_eq!(to.find(&buckets, Board(101)), None);
        assert_eq!((from.roundings(), to.roundings()), (4, 4 + 2 + 50));
    }

    #[test]
    fn spawns_and_images_stay_in_a_bucket() {
        let (rules, mut used) = (rules(), [false; BUCKETS]);
        let buckets = Buckets::new(&rules);
        for seed in 1..9_000u64 {
            let board = Board(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) & 0x0fff_0fff_00ff_0fff);
            used[buckets.of(board)] = true;
            for spawned in [board, board.with(3, 1), board.with(7, 2)] {
                for image in rules.images(spawned) {
                    assert_eq!(buckets.of(image), buckets.of(board));
                }
            }
        }
        assert_eq!(used, [true; BUCKETS]);
    }

    #[test]
    fn spawns_are_sent_within_buckets() {
        let (buckets, mut from) = (Buckets::new(&rules()), ChanceTable::default());
        (1..=3_000u64).for_each(|n| from.add(&buckets, Board(n << 8), 1.0, 1));
        let mut to = [ChanceTable::default(), ChanceTable::default()];
        let [two, four] = &mut to;
        let (_, entries) = from.send_spawns([two, four], 2, true, |bucket, targets| {
            for entry in &bucket.entries {
                targets[0].push_all(&[Board(entry.board.0 | 1)], entry.chance);
                if entry.board.0 % 512 == 0 {
                    targets[1].push_all(&[Board(entry.board.0 | 2)], entry.chance);
                } else {
                    targets[1].skip(1);
                }
            }
        });
        assert_eq!(to.each_ref().map(ChanceTable::len), [3_000, 1_500]);
        for ((at, source), entries) in from.buckets.iter().enumerate().zip(&entries) {
            for (layer, (table, entries)) in to.iter().zip(entries).enumerate() {
                assert_eq!(entries.len(), source.entries.len());
                for (entry, &found) in source.entries.iter().zip(entries) {
                    let board = Board(entry.board.0 | (layer as u64 + 1));
                    let place =
                        table.find(&buckets, board).map(|place| (usize::from(place.bucket), place.entry));
                    assert_eq!(place.unwrap_or((at, LEFT_OUT)), (at, found));
                }
            }
        }
    }
}
