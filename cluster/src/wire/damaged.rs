//! Messages as a faulty or hostile sender makes them, for tests.

use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;

/// Bytes that take the places of others.
pub fn any_damage() -> impl Strategy<Value = Vec<(Index, u8)>> {
    prop::collection::vec(any::<(Index, u8)>(), 1..6)
}

/// A message with some damage; `None` where that leaves no message.
pub fn damaged<M: Message + Default>(message: &M, damage: &[(Index, u8)]) -> Option<M> {
    let mut bytes = message.encode_to_vec();
    for (at, byte) in damage {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    M::decode(&bytes[..]).ok()
}
