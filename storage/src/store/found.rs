//! What is learnt of objects.

use bytes::Bytes;

/// An object as a list shows it.
#[derive(Debug)]
pub(crate) struct ListedObject {
    /// Its name within the run.
    pub(crate) name: String,
    /// Its length in bytes.
    pub(crate) bytes: u64,
}

/// What is known of an object that was looked at.
#[derive(Debug)]
pub(crate) struct Head {
    /// Its first bytes.
    pub(crate) first: Bytes,
    /// Its length in bytes.
    pub(crate) bytes: u64,
}

/// What came of creating an object.
#[derive(Debug)]
pub(crate) enum Created {
    /// It is there with these contents, made by this call.
    Here,
    /// There is another one of this name.
    Taken(Bytes),
}
