//! Which rows a sample has.

/// A sample of rows that are numbered in the order in which they are written: the rows are cut into as many equally
/// long stretches as rows are wanted, and the sample has one row of each. So it is spread evenly over the layers, each
/// row is as likely as any other, and which rows it has follows from their number alone: a range of rows can be sampled
/// without those before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    wanted: u64,
    rows: u64,
}

impl Sample {
    /// A sample of `wanted` of `rows` rows; all of them where there are no more.
    pub fn new(wanted: u64, rows: u64) -> Self {
        Self { wanted: wanted.min(rows), rows }
    }

    /// The rows of the sample among those of a range, counted from its beginning.
    pub fn within(self, first: u64, count: u64) -> impl Iterator<Item = usize> {
        let stretch_of =
            |row: u64| (u128::from(row) * u128::from(self.wanted) / u128::from(self.rows.max(1))) as u64;
        let stretches = stretch_of(first)..(stretch_of(first + count) + 1).min(self.wanted);
        stretches
            .map(move |stretch| self.row(stretch))
            .filter(move |row| (first..first + count).contains(row))
            .map(move |row| (row - first) as usize)
    }

    /// The row that a stretch has: any of those that begin in it.
    fn row(self, stretch: u64) -> u64 {
        let begin = |stretch: u64| {
            (u128::from(stretch) * u128::from(self.rows)).div_ceil(u128::from(self.wanted)) as u64
        };
        let (first, end) = (begin(stretch), begin(stretch + 1));
        first + ((u128::from(mixed(stretch)) * u128::from(end - first)) >> 64) as u64
    }
}

/// Numbers as if by chance, the same for everybody: SplitMix64.
fn mixed(number: u64) -> u64 {
    let z = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_as_many_rows_as_are_wanted_whatever_the_ranges() {
        for (wanted, rows) in [(1, 1), (1, 10), (7, 10), (10, 10), (20, 10), (99, 1000), (1000, 1001)] {
            let sample = Sample::new(wanted, rows);
            let whole: Vec<usize> = sample.within(0, rows).collect();
            assert_eq!(whole.len() as u64, wanted.min(rows));
            assert!(whole.is_sorted_by(|a, b| a < b));
            for step in [1, 3, 64] {
                let ranges = (0..rows).step_by(step).map(|first| (first, (step as u64).min(rows - first)));
                let found = ranges.flat_map(|(first, count)| {
                    sample.within(first, count).map(move |row| first as usize + row)
                });
                assert_eq!(found.collect::<Vec<_>>(), whole, "{wanted} of {rows} by {step}");
            }
        }
    }

    #[test]
    fn every_row_is_as_likely() {
        // The tenth of each ten: by chance each place comes as often.
        let mut places = [0; 10];
        Sample::new(10_000, 100_000).within(0, 100_000).for_each(|row| places[row % 10] += 1);
        assert!(places.iter().all(|count| (850..1150).contains(count)), "{places:?}");
    }
}
