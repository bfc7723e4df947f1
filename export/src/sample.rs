//! An even sample of rows.

/// A sample of rows. Rows are numbered in the order of writing.
///
/// The rows are divided into equally long stretches, one for each wanted row. The sample has one row of each stretch. It
/// is therefore spread evenly over the layers, and each row is equally likely. The chosen rows depend only on the wanted
/// and the total number of rows. So a range can be sampled without the rows before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    wanted: u64,
    rows: u64,
}

impl Sample {
    /// A sample of `wanted` out of `rows` rows, or all rows if there are fewer.
    pub fn new(wanted: u64, rows: u64) -> Self {
        Self { wanted: wanted.min(rows), rows }
    }

    /// The sampled rows of a range, numbered from the beginning of the range.
    pub fn within(self, first: u64, count: u64) -> impl Iterator<Item = usize> {
        let stretch_of =
            |row: u64| (u128::from(row) * u128::from(self.wanted) / u128::from(self.rows.max(1))) as u64;
        let stretches = stretch_of(first)..(stretch_of(first + count) + 1).min(self.wanted);
        stretches
            .map(move |stretch| self.row(stretch))
            .filter(move |row| (first..first + count).contains(row))
            .map(move |row| (row - first) as usize)
    }

    /// The sampled row of a stretch, chosen from the rows that begin in the stretch.
    fn row(self, stretch: u64) -> u64 {
        let begin = |stretch: u64| {
            (u128::from(stretch) * u128::from(self.rows)).div_ceil(u128::from(self.wanted)) as u64
        };
        let (first, end) = (begin(stretch), begin(stretch + 1));
        first + ((u128::from(mixed(stretch)) * u128::from(end - first)) >> 64) as u64
    }
}

/// Returns a pseudorandom number that depends only on the input (SplitMix64).
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
    fn a_sample_has_the_wanted_number_of_rows_in_any_ranges() {
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
    fn every_row_is_equally_likely() {
        // Each stretch has ten rows, and each place in it is equally likely.
        let mut places = [0; 10];
        Sample::new(10_000, 100_000).within(0, 100_000).for_each(|row| places[row % 10] += 1);
        assert!(places.iter().all(|count| (850..1150).contains(count)), "{places:?}");
    }
}
