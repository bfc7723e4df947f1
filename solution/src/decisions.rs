//! Arithmetic coding of yes-or-no decisions. A decision whose outcome had the probability p takes −log₂ p bits.
//!
//! The project defines the format of the code (`docs/dev/format.md`), and it must not change with the version of a
//! library. So this module implements the carry-propagating range coder that compressors have used for decades.

/// An adaptive probability of a yes, in units of 2^-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u16);

/// After a decision, the probability moves by 2^-RATE of the distance to its bound: 1 after a yes, 0 after a no.
const RATE: u32 = 3;

/// Number of leading bits of a probability that the coder uses.
const USED_BITS: u32 = 12;

/// Least width of the range, so that both outcomes of a decision have a part of it.
const LEAST_RANGE: u32 = 1 << 24;

impl Probability {
    /// A probability in units of 2^-16.
    pub const fn new(units: u16) -> Self {
        Self(units)
    }

    /// The width of the part of a range that stands for a yes: more than nothing, and less than all.
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

/// Writes or reads decisions.
pub trait Decide {
    /// Codes a decision. A writer writes `yes` and returns it; a reader ignores `yes` and returns the written decision.
    fn decide(&mut self, probability: &mut Probability, yes: bool) -> bool;
}

/// Writes decisions.
#[derive(Debug)]
pub struct DecisionWriter {
    bytes: Vec<u8>,
    /// The digits after `bytes` stand for a number from `low` on, below `low + range`.
    low: u32,
    range: u32,
}

impl DecisionWriter {
    /// A writer without decisions.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), low: 0, range: u32::MAX }
    }

    /// Returns the shortest code that lies within the range if zeros follow. The code does not end with a zero byte.
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

    /// Adds one to the written bytes. Some byte always takes the carry, because the code is a number below one.
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
        // A branch on the decision would be mispredicted as often as the decision is unexpected.
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
    /// The unread bytes, after which zeros follow.
    rest: &'a [u8],
    /// Distance of the code from the low end of the range.
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

    /// Number of bytes of the code that no decision has read.
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

    fn check_round_trip(decisions: &[(usize, bool)]) {
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
            check_round_trip(&decisions);
        }
    }

    /// Covers long carries, and probabilities near 0 and 1.
    #[test]
    fn long_runs_have_short_codes() {
        for yes in [true, false] {
            let mut decisions = vec![(0, yes); 100_000];
            check_round_trip(&decisions);
            assert!(encode(&decisions).len() < 100);
            (0..100_000).step_by(997).for_each(|at| decisions[at].1 = !yes);
            check_round_trip(&decisions);
        }
        let mut seed = 1u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 30) as usize
        };
        let decisions: Vec<_> = (0..200_000).map(|_| (random(), random() % 2 == 0)).collect();
        check_round_trip(&decisions);
        assert!(encode(&decisions).len() < 200_000 / 8 * 11 / 10);
        check_round_trip(&[]);
        assert!(encode(&[]).is_empty());
    }
}
