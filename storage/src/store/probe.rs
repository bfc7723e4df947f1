//! Whether a store keeps the promise that commits rest on: of two creations of one name, the second fails.
//!
//! Some servers do not know the condition and answer every creation with success. With those, two writers would
//! overwrite each other's records without a word.

use super::{Created, Store};
use crate::publish::TEMP_PREFIX;
use crate::{RunId, StorageError};

impl Store {
    /// Creates a scratch object twice and removes it. Costs four small requests.
    ///
    /// A store that keeps the promise only when the two do not meet is not found out in this way: docs/stores.md says
    /// which stores are known to do so.
    ///
    /// # Errors
    ///
    /// [`StorageError::UnsafeStore`] if the second creation is not refused.
    pub(crate) fn probe(&self) -> Result<(), StorageError> {
        let object = format!("{TEMP_PREFIX}probe-{}", RunId::random());
        let unsafe_store = |found| StorageError::UnsafeStore { place: self.place(), found };
        let verdict = match self.create(&object, b"first")? {
            Created::Taken(_) => Err(unsafe_store("a new object was said to exist")),
            Created::Here => match self.create(&object, b"second")? {
                Created::Here => Err(unsafe_store("the second of two creations of an object won")),
                Created::Taken(found) if found != b"first".as_slice() => {
                    Err(unsafe_store("an object had other contents than it was created with"))
                }
                Created::Taken(_) => Ok(()),
            },
        };
        let removed = self.remove([object]);
        verdict.and(removed)
    }
}
