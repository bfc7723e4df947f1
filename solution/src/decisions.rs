//! Arithmetic coding of decisions between yes and no: a decision that was expected with probability p takes −log₂ p bits.
//!
//! The project defines the format of the code (`docs/dev/format.md`), and it must not change with the version of a
//! library. So this module implements the carry-propagating range coder that compressors have used for decades.

/// A probability that adapts: of a yes, in units of 2^-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u16);

/// Each decision moves its probability a part of 2^-RATE of the way to 1 after a yes, to 0 after a no.
const RATE: u32 = 3;

/// Bits of a probability that the coder makes use of.
const USED_BITS: u32 = 12;

/// The range is kept at least this wide, so that every decision has a part of it.
const LEAST_RANGE: u32 = 1 << 24;

impl Probability {
    /// A probability in units of 2^-16.
    pub const fn new(units: u16) -> Self {
        Self(units)
    }

    /// The part of a range that belongs to a yes: neither none nor all of it.
    #[inline(always)]
    fn part_of(self, range: u32) -> u32 {
        (range >> USED_BITS) * (u32::from(self.0) >> (16 - USED_BITS) | 1)
    }

    #[inline(always)]
    fn adapt(&mut self, yes: bool) {
        let p = u32::from(self.0);
        self.0 = if yes { p + ((0x1_0000 - p) >> RATE) } else { p - (p >> RATE) } as u16;
    }
}

/// Codes decisions, in one direction or the other.
pub trait Decide {
    /// Writes a decision and gives it back; or gives the one that was written, whatever `yes` says.
    fn decide(&mut self, probability: &mut Probability, yes: bool) -> bool;
}

/// Writes decisions.
#[derive(Debug)]
pub struct DecisionWriter {
    bytes: Vec<u8>,
    /// The code so far continues with a number from `low` on, below `low + range`.
    low: u32,
    range: u32,
}

impl DecisionWriter {
    /// A writer without any decision yet.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), low: 0, range: u32::MAX }
    }

    /// The code: the shortest whose continuation with zeros lies within the range, without zeros at its end.
    pub fn finish(mut self) -> Vec<u8> {
        let top = u64::from(self.low) + u64::from(self.range);
        let shortest = (0..=4u32).map(|bytes| {
            let rest = (1u64 << (32 - 8 * bytes)) - 1;
            (u64::from(self.low) + rest) & !rest
        });
        let chosen = shortest.into_iter().find(|&number| number < top).unwrap_or_default();
        if chosen >> 32 != 0 {
            self.carry();
        }
        self.bytes.extend((chosen as u32).to_be_bytes());
        let end = self.bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        self.bytes.truncate(end);
        self.bytes
    }

    /// Adds one to what is written. There is always a byte that takes it: the code is a number below 1.
    #[cold]
    fn carry(&mut self) {
        for byte in self.bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return;
            }
        }
    }
}

impl Decide for DecisionWriter {
    #[inline(always)]
    fn decide(&mut self, probability: &mut Probability, yes: bool) -> bool {
        let part = probability.part_of(self.range);
        // No branch on the decision: it would be mispredicted as often as the decision is a surprise.
        let (low, carries) = self.low.overflowing_add(if yes { 0 } else { part });
        if carries {
            self.carry();
        }
        self.low = low;
        self.range = if yes { part } else { self.range - part };
        probability.adapt(yes);
        while self.range < LEAST_RANGE {
            self.bytes.push((self.low >> 24) as u8);
            self.low <<= 8;
            self.range <<= 8;
        }
        yes
    }
}

/// Reads decisions.
#[derive(Debug)]
pub struct DecisionReader<'a> {
    /// The bytes that were not read yet; zeros follow.
    rest: &'a [u8],
    /// How far the code is above the low end of the range.
    above: u32,
    range: u32,
}

impl<'a> DecisionReader<'a> {
    /// A reader of a code.
    pub fn new(code: &'a [u8]) -> Self {
        let mut reader = Self { rest: code, above: 0, range: u32::MAX };
        (0..4).for_each(|_| reader.read());
        reader
    }

    /// Bytes of the code that no decision has asked for.
    pub fn unread(&self) -> usize {
        self.rest.len()
    }

    #[inline(always)]
    fn read(&mut self) {
        let next = match self.rest {
            [next, rest @ ..] => {
                self.rest = rest;
                *next
            }
            [] => 0,
        };
        self.above = self.above << 8 | u32::from(next);
    }
}

impl Decide for DecisionReader<'_> {
    #[inline(always)]
    fn decide(&mut self, probability: &mut Probability, _: bool) -> bool {
        let part = probability.part_of(self.range);
        let yes = self.above < part;
        if yes {
            self.range = part;
        } else {
            self.above -= part;
            self.range -= part;
        }
        probability.adapt(yes);
        while self.range < LEAST_RANGE {
            self.read();
            self.range <<= 8;
        }
        yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(decisions: &[(usize, bool)]) -> Vec<u8> {
        let (mut writer, mut probabilities) = (DecisionWriter::new(), [Probability::new(1 << 15); 4]);
        for &(which, yes) in decisions {
            assert_eq!(writer.decide(&mut probabilities[which], yes), yes);
        }
        writer.finish()
    }

    fn is_read_back(decisions: &[(usize, bool)]) {
        let code = encode(decisions);
        let (mut reader, mut probabilities) = (DecisionReader::new(&code), [Probability::new(1 << 15); 4]);
        for &(which, yes) in decisions {
            assert_eq!(reader.decide(&mut probabilities[which], !yes), yes);
        }
        assert_eq!(reader.unread(), 0);
        assert_ne!(code.last(), Some(&0));
    }

    proptest! {
        #[test]
        fn decisions_are_read_back(
            decisions in prop::collection::vec((0usize..4, prop::bool::weighted(0.9)), 0..3000),
        ) {
            is_read_back(&decisions);
        }
    }

    /// All that a carry may meet, and probabilities at both ends.
    #[test]
    fn long_runs_are_read_back_and_short() {
        for yes in [true, false] {
            let mut decisions = vec![(0, yes); 100_000];
            is_read_back(&decisions);
            assert!(encode(&decisions).len() < 100);
            (0..100_000).step_by(997).for_each(|at| decisions[at].1 = !yes);
            is_read_back(&decisions);
        }
        let mut seed = 1u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 30) as usize
        };
        let decisions: Vec<_> = (0..200_000).map(|_| (random(), random() % 2 == 0)).collect();
        is_read_back(&decisions);
        assert!(encode(&decisions).len() < 200_000 / 8 * 11 / 10);
        is_read_back(&[]);
        assert!(encode(&[]).is_empty());
    }
}
