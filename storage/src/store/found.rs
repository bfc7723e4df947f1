//! Results of requests to an object store.

use bytes::Bytes;

/// An object in a listing.
#[derive(Debug)]
pub(crate) struct ListedObject {
    /// Name of the object within the run.
    pub(crate) name: String,
    /// Its length in bytes.
    pub(crate) bytes: u64,
}

/// Start and length of an object.
#[derive(Debug)]
pub(crate) struct Head {
    /// First bytes of the object.
    pub(crate) first: Bytes,
    /// Its length in bytes.
    pub(crate) bytes: u64,
}

/// Outcome of creating an object.
#[derive(Debug)]
pub(crate) enum Created {
    /// This call created the object with these contents.
    Here,
    /// Another object of this name exists, with these contents.
    Taken(Bytes),
}
