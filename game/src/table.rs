//! Long immutable lists that need not be on the heap.
//!
//! This crate does no I/O. It only says what it needs of a [`Store`] that keeps such lists elsewhere.

use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;

/// A shared immutable list. Reading one that is kept elsewhere is a virtual call: take the slice before a loop.
#[derive(Clone)]
pub struct Table<T>(Place<T>);

#[derive(Clone)]
enum Place<T> {
    Heap(Arc<Vec<T>>),
    Elsewhere(Arc<dyn Deref<Target = [T]> + Send + Sync>),
}

/// Keeps lists elsewhere, for example in files that are mapped.
pub trait Store {
    /// Why a list could not be kept.
    type Error;

    /// A list with the same elements, kept in the store.
    fn store<T: Pod + Send + Sync>(&mut self, list: &[T]) -> Result<Table<T>, Self::Error>;
}

impl<T> Table<T> {
    /// A list that `list` keeps elsewhere.
    pub fn elsewhere(list: impl Deref<Target = [T]> + Send + Sync + 'static) -> Self {
        Self(Place::Elsewhere(Arc::new(list)))
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Place::Heap(list) => size_of_val(&***list),
            Place::Elsewhere(_) => 0,
        }
    }
}

impl<T: Pod + Send + Sync> Table<T> {
    /// The same list, in a store if it is on the heap.
    pub fn stored_in<S: Store>(&self, store: &mut S) -> Result<Self, S::Error> {
        match &self.0 {
            Place::Heap(list) => store.store(list),
            Place::Elsewhere(_) => Ok(self.clone()),
        }
    }
}

impl<T> From<Vec<T>> for Table<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Place::Heap(Arc::new(list)))
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Place::Heap(list) => list,
            Place::Elsewhere(list) => list,
        }
    }
}

impl<T> std::fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} elements", self.len())
    }
}
