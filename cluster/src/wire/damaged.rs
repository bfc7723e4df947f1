//! Damaged messages for tests, like those of a faulty or hostile sender.

use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;

/// Generates new bytes and the positions to overwrite with them.
pub fn any_damage() -> impl Strategy<Value = Vec<(Index, u8)>> {
    prop::collection::vec(any::<(Index, u8)>(), 1..6)
}

/// Damages a message; `None` if the result is not a message.
pub fn damaged<M: Message + Default>(message: &M, damage: &[(Index, u8)]) -> Option<M> {
    let mut bytes = message.encode_to_vec();
    for (at, byte) in damage {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    M::decode(&bytes[..]).ok()
}
