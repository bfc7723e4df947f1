//! Codec 2: integers that are multiples of a common power of two, as planes of their significant bytes.
//!
//! Rounded values are such integers. The low bytes of neighbours differ and their high bytes are alike, so Zstandard
//! needs fewer bytes and less time for planes than for whole integers.

use std::io;

use crate::bytes::{Fields, index};

/// Most planes of a payload. With three planes, whole integers were shorter.
pub(super) const MOST_PLANES: usize = 2;

/// Integers divided by their common power of two.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Planes {
    width: u8,
    shift: u8,
    /// The lowest bytes of all integers, then their second bytes, if any is not 0.
    planes: Vec<Vec<u8>>,
}

impl Planes {
    /// Splits little-endian integers of `width` bytes; `None` unless [`MOST_PLANES`] suffice.
    pub(super) fn split(raw: &[u8], width: usize) -> Option<Self> {
        match width {
            4 => Self::split_words(raw, |bytes: [u8; 4]| u64::from(u32::from_le_bytes(bytes))),
            8 => Self::split_words(raw, |bytes: [u8; 8]| u64::from_le_bytes(bytes)),
            _ => None,
        }
    }

    fn split_words<const W: usize>(raw: &[u8], word: impl Fn([u8; W]) -> u64) -> Option<Self> {
        let (words, rest) = raw.as_chunks::<W>();
        if words.is_empty() || !rest.is_empty() {
            return None;
        }
        let all = words.iter().fold(0, |all, &bytes| all | word(bytes));
        let shift = if all == 0 { 0 } else { all.trailing_zeros() };
        let bytes = |bytes: [u8; W]| (word(bytes) >> shift).to_le_bytes();
        let mut planes = vec![words.iter().map(|&word| bytes(word)[0]).collect()];
        match all >> shift {
            0..=0xff => {}
            0x100..=0xffff => planes.push(words.iter().map(|&word| bytes(word)[1]).collect()),
            _ => return None,
        }
        Some(Self { width: u8::try_from(W).ok()?, shift: u8::try_from(shift).ok()?, planes })
    }

    /// The payload, in which `pack` shortens each plane if it can.
    pub(super) fn encode(&self, mut pack: impl FnMut(&[u8]) -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
        let count = u8::try_from(self.planes.len()).map_err(io::Error::other)?;
        let mut payload = vec![self.width, self.shift, count, 0];
        for plane in &self.planes {
            let packed = pack(plane)?;
            let shorter = if packed.len() < plane.len() { &packed } else { plane };
            payload.extend(u32::try_from(shorter.len()).map_err(io::Error::other)?.to_le_bytes());
            payload.extend_from_slice(shorter);
        }
        Ok(payload)
    }

    /// Reads a payload, which must describe `raw_bytes` bytes of integers. `unpack` decodes a plane of a given length.
    /// Memory is reserved for the integers only after all planes are decoded.
    pub(super) fn decode(
        payload: &[u8],
        raw_bytes: usize,
        mut unpack: impl FnMut(&[u8], usize) -> io::Result<Vec<u8>>,
    ) -> io::Result<Vec<u8>> {
        let (head, rest) =
            payload.split_first_chunk::<4>().ok_or_else(|| invalid("planes without a head"))?;
        let &[width, shift, count, reserved] = head;
        let (bytes, planes) = (usize::from(width), usize::from(count));
        if !matches!(bytes, 4 | 8) || usize::from(shift) >= 8 * bytes || reserved != 0 {
            return Err(invalid("no width of 4 or 8 bytes with a shift below it"));
        }
        if !(1..=MOST_PLANES).contains(&planes) || !raw_bytes.is_multiple_of(bytes) {
            return Err(invalid("no planes for these integers"));
        }
        let (length, mut fields) = (raw_bytes / bytes, Fields(rest));
        let mut next = || {
            let stored = fields.u32().map(index).ok_or_else(|| invalid("a missing plane"))?;
            let (plane, rest) = fields.0.split_at_checked(stored).ok_or_else(|| invalid("a cut plane"))?;
            fields.0 = rest;
            let plane = if stored == length { plane.to_vec() } else { unpack(plane, length)? };
            if plane.len() == length { Ok(plane) } else { Err(invalid("a plane of another length")) }
        };
        let planes = (0..planes).map(|_| next()).collect::<io::Result<Vec<_>>>()?;
        if !fields.0.is_empty() {
            return Err(invalid("bytes after the planes"));
        }
        Self { width, shift, planes }.join(raw_bytes)
    }

    /// The integers; an error if one needs more than the width.
    fn join(&self, raw_bytes: usize) -> io::Result<Vec<u8>> {
        let all = |plane: Option<&Vec<u8>>| plane.map_or(0, |plane| plane.iter().fold(0, |all, b| all | b));
        let most = u64::from(u16::from_le_bytes([all(self.planes.first()), all(self.planes.get(1))]));
        let bits = u64::BITS - most.leading_zeros() + u32::from(self.shift);
        if most != 0 && bits > 8 * u32::from(self.width) {
            return Err(invalid("an integer longer than the width"));
        }
        let mut raw = Vec::new();
        raw.try_reserve_exact(raw_bytes)?;
        let shift = self.shift;
        match self.width {
            4 => self.join_words(&mut raw, |word| (u32::from(word) << shift).to_le_bytes()),
            _ => self.join_words(&mut raw, |word| (u64::from(word) << shift).to_le_bytes()),
        }
        Ok(raw)
    }

    fn join_words<const W: usize>(&self, raw: &mut Vec<u8>, bytes: impl Fn(u16) -> [u8; W]) {
        match &self.planes[..] {
            [low] => raw.extend(low.iter().flat_map(|&low| bytes(u16::from(low)))),
            [low, high] => {
                let words = low.iter().zip(high).map(|(&low, &high)| u16::from_le_bytes([low, high]));
                words.for_each(|word| raw.extend_from_slice(&bytes(word)));
            }
            _ => {}
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn payload(raw: &[u8], width: usize) -> Option<Vec<u8>> {
        Planes::split(raw, width).map(|planes| planes.encode(|plane| Ok(plane.to_vec())).unwrap())
    }

    fn decode(payload: &[u8], raw_bytes: usize) -> io::Result<Vec<u8>> {
        Planes::decode(payload, raw_bytes, |_, _| Err(invalid("no compressed planes here")))
    }

    fn bytes(words: &[u64], width: usize) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()[..width].to_vec()).collect()
    }

    proptest! {
        #[test]
        fn multiples_of_a_step_are_read_back(
            words in prop::collection::vec(any::<u16>(), 1..300),
            most in any::<u16>(),
            is_wide: bool,
            shift in 0u32..48,
        ) {
            let width = if is_wide { 8 } else { 4 };
            let words: Vec<u64> = words.iter().map(|&word| u64::from(word & most) << (shift % (width * 8 - 15))).collect();
            let raw = bytes(&words, width as usize);
            let payload = payload(&raw, width as usize).unwrap();
            prop_assert_eq!(decode(&payload, raw.len()).unwrap(), raw);
            prop_assert!(payload.len() <= 12 + 2 * words.len());
        }

        #[test]
        fn other_integers_have_no_planes(words in prop::collection::vec(any::<u64>(), 1..9), is_wide: bool) {
            let width = if is_wide { 8 } else { 4 };
            let words: Vec<u64> = [1, 1 << 16].into_iter().chain(words).collect();
            prop_assert_eq!(Planes::split(&bytes(&words, width), width), None);
        }

        #[test]
        fn any_bytes_are_refused_or_read(payload in prop::collection::vec(0u8..9, 0..40), raw_bytes in 0usize..64) {
            if let Ok(raw) = decode(&payload, raw_bytes) {
                prop_assert_eq!(raw.len(), raw_bytes);
            }
        }
    }

    #[test]
    fn extremes_are_read_back() {
        let cases: [(&[u64], usize, usize); 7] = [
            (&[0], 4, 1),
            (&[0; 1000], 8, 1),
            (&[7 << 20; 1000], 4, 1),
            (&[0xffff_0000, 0x1_0000], 4, 2),
            (&[0xffff_0000_0000_0000, 0], 8, 2),
            (&[1 << 31, 1 << 16], 4, 2),
            (&[1 << 63, 1 << 63], 8, 1),
        ];
        for (words, width, planes) in cases {
            let raw = bytes(words, width);
            let payload = payload(&raw, width).unwrap();
            assert_eq!(usize::from(payload[2]), planes);
            assert_eq!(decode(&payload, raw.len()).unwrap(), raw);
        }
        assert_eq!(payload(&[], 4), None);
        assert_eq!(payload(&[1; 6], 4), None, "no whole number of integers");
        assert_eq!(payload(&[1; 6], 2), None, "an unknown width");
        assert_eq!(payload(&[1; 8], 4), None, "four planes");
    }

    #[test]
    fn damaged_payloads_are_refused() {
        let raw = bytes(&[0xff01 << 16, 3 << 16, 9 << 16], 4);
        let good = payload(&raw, 4).unwrap();
        assert_eq!(good[..8], [4, 16, 2, 0, 3, 0, 0, 0]);
        for length in 0..good.len() {
            assert!(decode(&good[..length], raw.len()).is_err(), "cut at {length}");
        }
        let with = |at: usize, byte: u8| {
            let mut payload = good.clone();
            payload[at] = byte;
            payload
        };
        for (at, byte) in [(0, 5), (0, 0), (1, 17), (1, 32), (1, 255), (2, 0), (2, 1), (2, 3), (3, 1), (4, 4)]
        {
            assert!(decode(&with(at, byte), raw.len()).is_err(), "{byte} at {at}");
        }
        assert!(decode(&[&good[..], &[0]].concat(), raw.len()).is_err());
        for raw_bytes in [0, 4, 11, 13, 16, 24] {
            assert!(decode(&good, raw_bytes).is_err(), "{raw_bytes} bytes");
        }
    }
}
