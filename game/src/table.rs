//! Long immutable lists that need not be on the heap.
//!
//! This crate does no I/O, so it says only what it needs of whoever keeps such a list elsewhere.

use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;

/// A shared immutable list. Reading one is a virtual call: take the slice before a loop.
#[derive(Clone)]
pub struct Table<T>(Arc<dyn Deref<Target = [T]> + Send + Sync>);

/// Keeps lists elsewhere, for example in files that are mapped.
pub trait Store {
    /// Why a list could not be kept.
    type Error;

    /// A list with the same elements, kept in the store.
    fn store<T: Pod + Send + Sync>(&mut self, list: &[T]) -> Result<Table<T>, Self::Error>;
}

impl<T> Table<T> {
    /// A list that is kept by `list`.
    pub fn new(list: impl Deref<Target = [T]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(list))
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> std::fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} elements", self.len())
    }
}
