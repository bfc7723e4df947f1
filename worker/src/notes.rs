//! Notes of the afterstates to which states of other members lead.
//!
//! The upward pass finds these afterstates for one member after the other, and notes them. The downward pass sends their
//! values to that member. It has no note after a restart, with other owners of lanes, or if too little memory was left.
//! Then it finds the afterstates again, from states that it has to read.

use std::collections::BTreeMap;

use exact2048_game::{Lane, Layer};
use exact2048_solution::Owners;
use parking_lot::Mutex;

use crate::bits::{BitMatrix, Summary};
use crate::pieces::Pieces;

/// The memory limit divided by the most bytes of all notes.
const SHARE: usize = 8;

/// Bytes that a block has in the notes beside its bits.
const BLOCK_BYTES: usize = 128;

/// For each other member whose states lead to a block, the afterstates to which they lead.
pub type NeededBits = BTreeMap<usize, BitMatrix>;

/// A note that a task makes.
pub struct Note {
    most_bytes: usize,
    /// `None` if it takes more than all notes may.
    needed: Option<NeededBits>,
}

impl Note {
    /// Adds the afterstates to which states of a member lead.
    pub fn add(&mut self, member: usize, afterstates: BitMatrix) {
        let Some(needed) = &mut self.needed else { return };
        needed.insert(member, of_occurring_rows(afterstates));
        if bytes(needed) > self.most_bytes {
            self.needed = None;
        }
    }
}

/// The owners of lanes, and the notes of a worker.
#[derive(Debug)]
pub struct Notes {
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default, Debug)]
struct Kept {
    owners: Owners,
    /// This member among the owners.
    me: usize,
    needed: BTreeMap<(Layer, Lane), NeededBits>,
    bytes: usize,
}

impl Notes {
    /// No notes, of a worker that owns all lanes.
    pub fn new(limit_bytes: usize) -> Self {
        Self { most_bytes: limit_bytes / SHARE, kept: Mutex::default() }
    }

    /// Sets the owners of lanes. Notes for other owners are dropped.
    pub fn join(&self, owners: &Owners, me: usize) {
        let mut kept = self.kept.lock();
        if (&kept.owners, kept.me) != (owners, me) {
            *kept = Kept { owners: owners.clone(), me, ..Kept::default() };
        }
    }

    /// The owners of lanes, and this member among them.
    pub fn owners(&self) -> (Owners, usize) {
        let kept = self.kept.lock();
        (kept.owners.clone(), kept.me)
    }

    /// Whether other members own lanes.
    pub fn has_others(&self) -> bool {
        self.kept.lock().owners != Owners::default()
    }

    /// A note of no afterstates.
    pub fn begin(&self) -> Note {
        Note { most_bytes: self.most_bytes, needed: Some(NeededBits::new()) }
    }

    /// Keeps the note of a block. If the notes take too much memory, those of the lowest layers go, because the downward
    /// pass needs them last.
    pub fn keep(&self, layer: Layer, lane: Lane, note: Note) {
        let mut kept = self.kept.lock();
        let Some(needed) = note.needed.filter(|_| kept.owners != Owners::default()) else { return };
        kept.bytes += bytes(&needed);
        let earlier = kept.needed.insert((layer, lane), needed);
        kept.bytes -= earlier.as_ref().map_or(0, bytes);
        while kept.bytes > self.most_bytes
            && let Some((_, lowest)) = kept.needed.pop_first()
        {
            kept.bytes -= bytes(&lowest);
        }
    }

    /// Takes the note of a block.
    pub fn take(&self, layer: Layer, lane: Lane) -> Option<NeededBits> {
        let mut kept = self.kept.lock();
        let needed = kept.needed.remove(&(layer, lane))?;
        kept.bytes -= bytes(&needed);
        Some(needed)
    }
}

/// The matrix without rows that have no bit, in as little memory as it needs.
fn of_occurring_rows(matrix: BitMatrix) -> BitMatrix {
    let Summary { occupied, .. } = matrix.summary(&Pieces::whole(matrix.rows().len()));
    let matrix = matrix.of_slots(&occupied);
    let (rows, words) = (matrix.rows().clone(), matrix.words());
    let mut bits = matrix.into_bits();
    bits.shrink_to_fit();
    BitMatrix::of_rows(rows, words, bits)
}

/// Bytes of the note of a block: its bits, and the sets of rows, which are at most as long.
fn bytes(needed: &NeededBits) -> usize {
    BLOCK_BYTES + needed.values().map(|matrix| 2 * size_of_val(matrix.bits())).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use exact2048_game::Params;
    use exact2048_game::rowset::{Row, RowSet};
    use exact2048_solution::assign;

    use super::*;

    fn two_members() -> Owners {
        assign(&Params::small("3x2"), &[1, 1])
    }

    /// Keeps a note of member 1, with one bit in each of `rows` rows of 100.
    fn keep(notes: &Notes, layer: u32, rows: u32) {
        let mut matrix = BitMatrix::new(Arc::new(RowSet::all(100)), 1);
        (0..rows).for_each(|row| matrix.row_mut(Row(7 * row))[0] = 1);
        let mut note = notes.begin();
        note.add(1, matrix);
        notes.keep(Layer(layer), Lane::new(0, 0), note);
    }

    #[test]
    fn the_notes_of_the_lowest_layers_go_first() {
        let notes = Notes::new(SHARE * 2 * (BLOCK_BYTES + 2 * 8 * 3));
        notes.join(&two_members(), 0);
        let lane = Lane::new(0, 0);
        [6, 4, 8].into_iter().for_each(|layer| keep(&notes, layer, 3));
        assert!(notes.take(Layer(4), lane).is_none());
        let needed = notes.take(Layer(6), lane).unwrap();
        assert_eq!(needed[&1].rows().iter().collect::<Vec<_>>(), [Row(0), Row(7), Row(14)]);
        assert!(notes.take(Layer(6), lane).is_none(), "it was taken");
        keep(&notes, 8, 1);
        keep(&notes, 10, 15);
        assert_eq!(notes.take(Layer(8), lane).unwrap()[&1].bits(), [1]);
        assert!(notes.take(Layer(10), lane).is_none(), "this note alone is too large");
        assert_eq!(notes.kept.lock().bytes, 0);
    }

    #[test]
    fn notes_for_other_owners_are_dropped() {
        let (notes, lane, owners) = (Notes::new(1 << 20), Lane::new(0, 0), two_members());
        keep(&notes, 4, 3);
        assert!(notes.take(Layer(4), lane).is_none(), "there are no others");
        notes.join(&owners, 0);
        keep(&notes, 4, 3);
        notes.join(&two_members(), 0);
        assert_eq!(notes.owners(), (owners.clone(), 0));
        assert!(notes.kept.lock().needed.contains_key(&(Layer(4), lane)));
        notes.join(&owners, 1);
        assert!(notes.take(Layer(4), lane).is_none());
    }
}
