//! Long byte strings as lists of pieces. So joining copies no piece, and every written piece fits into a message.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::Xxh3Default;

/// A byte string in pieces, which clones share.
#[derive(Clone, Debug, Default)]
pub struct BytesList {
    pieces: VecDeque<Bytes>,
    len: usize,
}

/// Builds a byte string.
#[derive(Debug)]
pub struct Writer {
    list: BytesList,
    /// The last piece, with capacity for all of it if the estimated length was right.
    open: BytesMut,
    estimated: usize,
}

impl BytesList {
    /// The most bytes of a piece of a written list.
    pub const PIECE_BYTES: usize = 512 << 10;

    /// An empty string to write to, with an estimate of its final bytes.
    pub fn writer(estimated: usize) -> Writer {
        let open = BytesMut::with_capacity(estimated.min(Self::PIECE_BYTES));
        Writer { list: Self::default(), open, estimated }
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// XXH3 (64 bits) of the bytes, for any division into pieces. Cost: at most some 0.1 ms a MiB.
    pub fn checksum(&self) -> u64 {
        let mut sum = Xxh3Default::new();
        self.pieces.iter().for_each(|piece| sum.update(piece));
        sum.digest()
    }

    /// The pieces in order, none of them empty.
    pub fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        self.pieces.into_iter()
    }
}

impl Writer {
    /// Appends bytes.
    pub fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.open.len() == BytesList::PIECE_BYTES {
                let left = self.estimated.saturating_sub(self.list.len + self.open.len());
                let next = BytesMut::with_capacity(left.min(BytesList::PIECE_BYTES));
                self.list.push(std::mem::replace(&mut self.open, next).freeze());
            }
            let (now, later) = bytes.split_at(bytes.len().min(BytesList::PIECE_BYTES - self.open.len()));
            self.open.put_slice(now);
            bytes = later;
        }
    }

    /// The byte string.
    pub fn finish(mut self) -> BytesList {
        self.list.push(self.open.freeze());
        self.list
    }
}

impl From<Bytes> for BytesList {
    fn from(bytes: Bytes) -> Self {
        let mut list = Self::default();
        list.push(bytes);
        list
    }
}

impl Buf for BytesList {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "advanced by {count} of {} bytes", self.len);
        self.len -= count;
        while let Some(piece) = self.pieces.front_mut()
            && count > 0
        {
            let now = count.min(piece.len());
            piece.advance(now);
            count -= now;
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_bytes_are_read(lengths in prop::collection::vec(0usize..2_500_000, 0..5), step in 1usize..3_000_000, estimated in 0usize..3_000_000) {
            let all: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|i| (i / 7) as u8).collect();
            let (mut writer, mut rest) = (BytesList::writer(estimated), &all[..]);
            for length in lengths {
                let (now, later) = rest.split_at(length);
                writer.put(now);
                rest = later;
            }
            let mut list = writer.finish();
            prop_assert_eq!(list.len(), all.len());
            let pieces: Vec<usize> = list.clone().into_pieces().map(|piece| piece.len()).collect();
            prop_assert!(pieces.iter().all(|&piece| 0 < piece && piece <= BytesList::PIECE_BYTES));
            prop_assert_eq!(list.checksum(), xxhash_rust::xxh3::xxh3_64(&all));
            let mut read = Vec::new();
            while list.has_remaining() {
                let mut part = vec![0; step.min(list.remaining())];
                list.copy_to_slice(&mut part);
                read.extend(part);
            }
            prop_assert!(read == all && list.is_empty());
        }
    }
}
