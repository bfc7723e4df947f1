//! Statistics of values: their number, least, mean and largest.

/// Number, least, largest and sum of values. The values are added as floating-point numbers, so the last digits of the
/// sum depend on their order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ValueSums {
    count: u64,
    least: f64,
    most: f64,
    sum: f64,
}

impl Default for ValueSums {
    /// The statistics of no values.
    fn default() -> Self {
        Self { count: 0, least: f64::INFINITY, most: f64::NEG_INFINITY, sum: 0.0 }
    }
}

impl ValueSums {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.sum += value;
    }

    /// Adds the statistics of other values, which are added after the present ones.
    pub fn append(&mut self, other: &Self) {
        self.count += other.count;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.sum += other.sum;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least value; `None` if there are no values.
    pub fn least(&self) -> Option<f64> {
        (self.count > 0).then_some(self.least)
    }

    /// The mean; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The largest value; `None` if there are no values.
    pub fn most(&self) -> Option<f64> {
        (self.count > 0).then_some(self.most)
    }
}

impl FromIterator<f64> for ValueSums {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sums = Self::default();
        values.into_iter().for_each(|value| sums.add(value));
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_summed_up() {
        let none = ValueSums::default();
        assert_eq!((none.count(), none.least(), none.mean(), none.most()), (0, None, None, None));
        let mut some: ValueSums = [3.0, 1.0].into_iter().collect();
        some.append(&none);
        some.append(&[8.0].into_iter().collect());
        assert_eq!(
            (some.count(), some.least(), some.mean(), some.most()),
            (3, Some(1.0), Some(4.0), Some(8.0))
        );
    }
}
