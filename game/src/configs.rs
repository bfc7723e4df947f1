//! Configs: the digits of the small cells of a skeleton, and their ranking.

use crate::board::MOST_CELLS;

/// Digits of a config, one per nibble, with the first cell in the highest nibble. So configs compare like their
/// sequences of digits.
pub type Config = u64;

/// Ranks the configs with the same number of cells and the same small sum, in lexicographic order.
#[derive(Debug)]
pub struct Configs {
    /// Number of half sums in a table.
    halves: usize,
    /// For each number of cells and half sum ([`Configs::place`]) and each digit: the number of configs whose first
    /// digit is smaller. `u32::MAX` for digits of at least `large`.
    below: Vec<[u32; DIGITS]>,
    counts: Vec<Vec<u32>>,
    chunks: Chunks,
}

/// Number of places for digits: a power of two, so the index of a digit needs no bounds check.
const DIGITS: usize = 8;

impl Configs {
    /// Builds the tables for up to `cells` cells and digits below `large`. `large` is at most 6.
    pub fn new(cells: usize, large: u8) -> Self {
        let sums = |f: usize| f * (1usize << (large - 1)) / 2 + 1;
        let halves = sums(cells);
        let mut counts: Vec<Vec<u32>> = vec![vec![1]];
        let mut below = vec![[u32::MAX; DIGITS]; (cells + 1) * halves];
        for f in 1..=cells {
            let mut counts_f = vec![0u32; sums(f)];
            for (half, count) in counts_f.iter_mut().enumerate() {
                let mut total = 0;
                for digit in 0..large {
                    below[f * halves + half][digit as usize] = total;
                    let rest = half.checked_sub(half_tile(digit));
                    total += rest.and_then(|r| counts[f - 1].get(r)).copied().unwrap_or(0);
                }
                *count = total;
            }
            counts.push(counts_f);
        }
        let chunks = Chunks::new(cells, large, halves, |f, half| &below[f * halves + half]);
        Self { halves, below, counts, chunks }
    }

    /// Number of configs of `cells` cells with sum `small_sum`.
    pub fn count(&self, cells: usize, small_sum: u32) -> u32 {
        self.counts[cells].get(small_sum as usize / 2).copied().unwrap_or(0)
    }

    /// Returns the table of `f` cells with a half sum.
    #[inline]
    fn place(&self, f: usize, half: usize) -> &[u32; DIGITS] {
        &self.below[f * self.halves + half]
    }

    /// Returns the rank of a config of `cells` cells among the configs with the same sum, which must be `small_sum`.
    /// Cost: a few nanoseconds.
    #[inline]
    pub fn rank(&self, cells: usize, small_sum: u32, config: Config) -> u32 {
        let chunks = &self.chunks;
        let packed = chunks.packed(config);
        let (mut half, mut rank, mut left) = (small_sum as usize / 2, 0, cells);
        while left > 0 {
            let after = chunks.digits_after(left);
            let chunk = (packed >> (4 * after)) as usize & ((1 << CHUNK_BITS) - 1);
            rank += chunks.below[(left * self.halves + half) << CHUNK_BITS | chunk];
            half -= chunks.half_sums[chunk] as usize;
            left = after;
        }
        rank
    }

    /// Returns the config of a rank: the inverse of [`Configs::rank`].
    #[inline]
    pub fn config(&self, cells: usize, small_sum: u32, rank: u32) -> Config {
        self.ascending(cells, small_sum).config(rank)
    }

    /// Returns a finder of the configs of ascending ranks.
    #[inline]
    pub fn ascending(&self, cells: usize, small_sum: u32) -> Ascending<'_> {
        let mut known = [Beginning::default(); MOST_CELLS + 1];
        known[0] = Beginning { config: 0, half: small_sum as usize / 2, first: 0, end: u32::MAX };
        Ascending { configs: self, cells, places: 0, known }
    }
}

/// Finds the configs of ascending ranks. Neighbours differ in few digits, so each config begins like the config before.
#[derive(Debug)]
pub struct Ascending<'a> {
    configs: &'a Configs,
    cells: usize,
    /// Number of known digits: 0 before the first rank, then all.
    places: usize,
    /// Beginnings of the last config, by their numbers of digits.
    known: [Beginning; MOST_CELLS + 1],
}

/// First digits of a config.
#[derive(Clone, Copy, Default, Debug)]
struct Beginning {
    config: Config,
    /// Half of the sum of the digits that follow.
    half: usize,
    /// First rank of the configs with this beginning.
    first: u32,
    /// Rank after the last of them.
    end: u32,
}

impl Ascending<'_> {
    /// Returns the config of a rank, which must not be below the rank of the previous call. Cost: some nanoseconds for
    /// each digit after the common beginning.
    #[inline]
    pub fn config(&mut self, rank: u32) -> Config {
        while rank >= self.known[self.places].end {
            self.places -= 1;
        }
        while self.places < self.cells {
            let Beginning { config, half, first, end } = self.known[self.places];
            let below = self.configs.place(self.cells - self.places, half);
            // The digit is the last digit with at most as many configs below it. If no config begins with a digit, this
            // digit and the next have equal counts. All digits are compared, because a branch at the first larger
            // count would be unpredictable.
            let digit = below[1..].iter().map(|&below| u8::from(below <= rank - first)).sum::<u8>();
            let next = below.get(usize::from(digit) + 1).map_or(end, |&below| first.saturating_add(below));
            self.places += 1;
            self.known[self.places] = Beginning {
                config: config << 4 | Config::from(digit),
                half: half.saturating_sub(half_tile(digit)),
                first: first + below[usize::from(digit)],
                end: next.min(end),
            };
        }
        self.known[self.places].config
    }
}

/// Ranks of several digits at once.
///
/// A *chunk* is a group of neighbouring digits. The chunks of a config end at its last digit, so its first chunk can be
/// shorter.
#[derive(Debug)]
struct Chunks {
    /// Digits of a chunk: 4 of two bits each, or 2 of three bits.
    digits: usize,
    /// For each number of cells, half sum and chunk: the number of configs of these cells that begin with a smaller
    /// chunk of as many digits.
    below: Vec<u32>,
    /// Half of the sum of each chunk.
    half_sums: Vec<u16>,
}

/// Bits of the number of a chunk.
const CHUNK_BITS: usize = 8;

impl Chunks {
    fn new<'a>(
        cells: usize,
        large: u8,
        halves: usize,
        place: impl Fn(usize, usize) -> &'a [u32; DIGITS],
    ) -> Self {
        let (digits, bits) = if large <= 4 { (4, 2) } else { (2, 3) };
        let digit = |chunk: usize, i: usize| (chunk >> (bits * i) & ((1 << bits) - 1)) as u8;
        let half_sum = |chunk: usize| (0..digits).map(|i| half_tile(digit(chunk, i))).sum::<usize>();
        let mut chunks = Self {
            digits,
            below: vec![0; ((cells + 1) * halves) << CHUNK_BITS],
            half_sums: (0..1 << CHUNK_BITS).map(|chunk| half_sum(chunk) as u16).collect(),
        };
        for f in 1..=cells {
            let after = chunks.digits_after(f);
            for (half, chunk) in
                (0..halves).flat_map(|half| (0..1usize << CHUNK_BITS).map(move |c| (half, c)))
            {
                let (mut left, mut total) = (half, 0u32);
                for i in (0..f - after).rev() {
                    let digit = digit(chunk, i);
                    // No config begins with some chunks. Their sums may wrap, because no rank reads them.
                    total = total.wrapping_add(place(after + i + 1, left)[usize::from(digit) % DIGITS]);
                    let Some(rest) = left.checked_sub(half_tile(digit)) else { break };
                    left = rest;
                }
                chunks.below[(f * halves + half) << CHUNK_BITS | chunk] = total;
            }
        }
        chunks
    }

    /// Number of digits that follow the first chunk of a config with `digits` digits.
    #[inline]
    fn digits_after(&self, digits: usize) -> usize {
        (digits - 1) & !(self.digits - 1)
    }

    /// Returns the number of each chunk, in the place of its last digit.
    #[inline]
    fn packed(&self, config: Config) -> u64 {
        if self.digits == 2 {
            return config & 0x0707_0707_0707_0707 | config >> 1 & 0x3838_3838_3838_3838;
        }
        let pairs = (config | config >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
        (pairs | pairs >> 4) & 0x00ff_00ff_00ff_00ff
    }
}

/// Half of the tile of a small exponent. Sums are even, so tables use halves.
#[inline]
pub(crate) fn half_tile(digit: u8) -> usize {
    (1 << digit) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_configs_are_inverse_and_ordered() {
        for large in 3..=6 {
            let configs = Configs::new(7, large);
            for cells in 0..=7 {
                let mut total = 0;
                for small_sum in (0..=cells as u32 * (1 << (large - 1))).step_by(2) {
                    let mut previous = None;
                    for rank in 0..configs.count(cells, small_sum) {
                        let config = configs.config(cells, small_sum, rank);
                        assert_eq!(configs.rank(cells, small_sum, config), rank);
                        assert!(previous < Some(config));
                        previous = Some(config);
                        total += 1;
                    }
                }
                assert_eq!(total, usize::from(large).pow(cells as u32));
            }
        }
    }

    #[test]
    fn ascending_ranks_give_the_same_configs() {
        let configs = Configs::new(9, 4);
        let all: Vec<Config> = (0..configs.count(9, 24)).map(|rank| configs.config(9, 24, rank)).collect();
        assert!(all.len() > 1000);
        for step in [1, 2, 7, 100] {
            let mut ascending = configs.ascending(9, 24);
            let mut found = (0..all.len()).step_by(step).map(|rank| ascending.config(rank as u32));
            assert!(all.iter().copied().step_by(step).eq(found.by_ref()), "step {step}");
        }
    }
}
