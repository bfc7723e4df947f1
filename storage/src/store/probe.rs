//! Probe for the guarantee that commits require: if a name is created twice, the second creation fails.
//!
//! Some servers ignore the condition (`If-None-Match`) and answer every creation with success. On such a store, two
//! writers would silently overwrite each other's records.

use super::{Created, Store};
use crate::publish::TEMP_PREFIX;
use crate::{RunId, StorageError};

impl Store {
    /// Creates a scratch object twice and removes it. Costs four small requests.
    ///
    /// The probe misses a store that breaks the guarantee only for simultaneous creations. `docs/stores.md` lists the
    /// stores known to do so.
    ///
    /// # Errors
    ///
    /// [`StorageError::UnsafeStore`] if the second creation is not refused.
    pub(crate) fn probe(&self) -> Result<(), StorageError> {
        let object = format!("{TEMP_PREFIX}probe-{}", RunId::random());
        let unsafe_store = |found| StorageError::UnsafeStore { place: self.place(), found };
        let verdict = match self.create(&object, b"first")? {
            Created::Taken(_) => Err(unsafe_store("a new object was reported as existing")),
            Created::Here => match self.create(&object, b"second")? {
                Created::Here => Err(unsafe_store("the second of two creations of an object succeeded")),
                Created::Taken(found) if found != b"first".as_slice() => {
                    Err(unsafe_store("an object's contents differ from those it was created with"))
                }
                Created::Taken(_) => Ok(()),
            },
        };
        let removed = self.remove([object]);
        verdict.and(removed)
    }
}
