//! Long immutable lists, on the heap or elsewhere.
//!
//! This crate does no I/O. It only defines the trait [`Store`] for code that keeps such lists elsewhere.

use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;

/// Shared immutable list.
///
/// Each access to a list that is kept elsewhere is a virtual call, so take the slice before a loop.
#[derive(Clone)]
pub struct Table<T>(Place<T>);

#[derive(Clone)]
enum Place<T> {
    Heap(Arc<Vec<T>>),
    Elsewhere(Arc<dyn Deref<Target = [T]> + Send + Sync>),
}

/// Keeps lists elsewhere, for example in files that are mapped.
pub trait Store {
    /// Error of storing a list.
    type Error;

    /// Stores the elements of a list. Returns the stored list.
    fn store<T: Pod + Send + Sync>(&mut self, list: &[T]) -> Result<Table<T>, Self::Error>;
}

impl<T> Table<T> {
    /// Wraps a list that is kept elsewhere.
    pub fn elsewhere(list: impl Deref<Target = [T]> + Send + Sync + 'static) -> Self {
        Self(Place::Elsewhere(Arc::new(list)))
    }

    /// Heap size in bytes; 0 for a list that is kept elsewhere.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Place::Heap(list) => size_of_val(&***list),
            Place::Elsewhere(_) => 0,
        }
    }
}

impl<T: Pod + Send + Sync> Table<T> {
    /// Stores a list that is on the heap. Returns other lists unchanged.
    ///
    /// # Errors
    ///
    /// Errors of the store.
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
