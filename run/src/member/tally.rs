//! Sums over the blocks that the members of an epoch exchange, by layer.
//!
//! Before the coordinator commits a layer, it compares the sum of the sent blocks with the sum of the received blocks.

use exact2048_coordinator::cluster::WorkerId;
use exact2048_game::{Lane, Layer};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

/// The sums of one member in one epoch.
#[derive(Debug)]
pub struct Tally {
    me: WorkerId,
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    /// The sums of layers that this member has not reported yet.
    layers: FxHashMap<Layer, LayerSums>,
    /// Checksums of the accepted blocks. Each block needs 24 bytes, and a layer has about ten blocks.
    taken: FxHashMap<(Layer, Lane), u64>,
}

/// Sums over the blocks of a layer that a member sent to other members and received from them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LayerSums {
    /// Sum modulo 2^64 over the sent blocks. A block counts once for each receiver.
    pub sent: u64,
    /// Sum modulo 2^64 over the received blocks.
    pub received: u64,
}

/// Relation of an arriving block to an earlier block of the same layer and lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// No earlier block arrived.
    New,
    /// The earlier block has the same contents.
    Again,
    /// The earlier block has other contents.
    Other,
}

impl Tally {
    /// The sums of this member, all 0.
    pub fn new(me: WorkerId) -> Self {
        Self { me, sums: Mutex::default() }
    }

    /// Counts a block that is sent to another member.
    pub fn send(&self, layer: Layer, lane: Lane, to: WorkerId, checksum: u64) {
        let summand = summand(layer, lane, to, checksum);
        let mut sums = self.sums.lock();
        let sent = &mut sums.layers.entry(layer).or_default().sent;
        *sent = sent.wrapping_add(summand);
    }

    /// Counts a block received from another member, if it is the first of its layer and lane.
    pub fn take(&self, layer: Layer, lane: Lane, checksum: u64) -> Arrival {
        let mut sums = self.sums.lock();
        if let Some(&known) = sums.taken.get(&(layer, lane)) {
            return if known == checksum { Arrival::Again } else { Arrival::Other };
        }
        sums.taken.insert((layer, lane), checksum);
        let summand = summand(layer, lane, self.me, checksum);
        let received = &mut sums.layers.entry(layer).or_default().received;
        *received = received.wrapping_add(summand);
        Arrival::New
    }

    /// Removes a counted block that could not be accepted.
    pub fn forget(&self, layer: Layer, lane: Lane) {
        let mut sums = self.sums.lock();
        let Some(checksum) = sums.taken.remove(&(layer, lane)) else { return };
        let summand = summand(layer, lane, self.me, checksum);
        let received = &mut sums.layers.entry(layer).or_default().received;
        *received = received.wrapping_sub(summand);
    }

    /// Removes and returns the sums of a layer. No more blocks of the layer will be counted.
    pub fn close(&self, layer: Layer) -> LayerSums {
        self.sums.lock().layers.remove(&layer).unwrap_or_default()
    }
}

/// The term that a block adds to the sums of its sender and its receiver. Different blocks have different terms, except
/// for hash collisions.
fn summand(layer: Layer, lane: Lane, to: WorkerId, checksum: u64) -> u64 {
    let words = [u64::from(layer.0), lane.code(), to.0, checksum];
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(chunk, word)| chunk.copy_from_slice(&word.to_le_bytes()));
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane::new(1, 16);
    const OTHER: Lane = Lane::new(1, 32);
    const LAYER: Layer = Layer(100);

    #[test]
    fn sent_and_received_sums_are_equal() {
        let (one, two) = (Tally::new(WorkerId(1)), Tally::new(WorkerId(2)));
        one.send(LAYER, LANE, WorkerId(2), 7);
        one.send(LAYER, OTHER, WorkerId(2), 8);
        two.send(Layer(102), LANE, WorkerId(1), 7);
        assert_eq!(two.take(LAYER, OTHER, 8), Arrival::New);
        assert_eq!(two.take(LAYER, LANE, 7), Arrival::New);
        assert_eq!(two.take(LAYER, LANE, 7), Arrival::Again);
        let (sent, received) = (one.close(LAYER), two.close(LAYER));
        assert_eq!((sent.sent, sent.received), (received.received, received.sent));
        assert_ne!(sent.sent, 0);
        assert_eq!(one.close(LAYER), LayerSums::default(), "each layer is reported once");
        assert_eq!(two.take(LAYER, LANE, 7), Arrival::Again, "and its blocks stay known");
        assert_eq!(two.take(LAYER, LANE, 6), Arrival::Other);
    }

    #[test]
    fn every_change_of_a_block_or_its_place_changes_the_sum() {
        let good = summand(LAYER, LANE, WorkerId(2), 7);
        for other in [
            summand(LAYER, LANE, WorkerId(2), 6),
            summand(LAYER, LANE, WorkerId(3), 7),
            summand(LAYER, OTHER, WorkerId(2), 7),
            summand(Layer(98), LANE, WorkerId(2), 7),
        ] {
            assert_ne!(other, good);
        }
    }
}
