//! The memory budget: finished blocks stay on the heap while they fit, and spill to disk otherwise.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::Pod;
use exact2048_storage::{MappedFile, Scratch, StorageError};

/// A budget for the heap bytes of finished blocks and cached tables.
///
/// What does not fit is written to a scratch file in the run directory and mapped: its pages are
/// clean, so the kernel may drop them at any time.
#[derive(Debug)]
pub struct Memory {
    budget_bytes: usize,
    used_bytes: AtomicUsize,
    scratch: PathBuf,
}

impl Memory {
    /// A budget of `budget_bytes`, spilling into the folder `scratch`.
    pub fn new(budget_bytes: usize, scratch: PathBuf) -> Arc<Self> {
        Arc::new(Self { budget_bytes, used_bytes: AtomicUsize::new(0), scratch })
    }

    /// Bytes accounted for now.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Whether `bytes` more would still be within the budget.
    pub fn fits(&self, bytes: usize) -> bool {
        self.used_bytes() + bytes <= self.budget_bytes
    }

    /// Accounts for `bytes` until the charge is dropped.
    pub fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { bytes, memory: Arc::clone(self) }
    }

    /// Keeps finished data: on the heap where it fits, in a mapped scratch file where not.
    pub fn settle<T: Pod>(self: &Arc<Self>, data: Vec<T>) -> Result<Buffer<T>, StorageError> {
        let bytes: &[u8] = bytemuck::cast_slice(&data);
        if bytes.is_empty() || self.fits(bytes.len()) {
            let charge = self.charge(bytes.len());
            return Ok(Buffer(Inner::Heap { data, _charge: charge }));
        }
        let mut file = Scratch::create(&self.scratch)?;
        file.append(bytes)?;
        Ok(Buffer(Inner::Mapped { map: file.map()?, element: std::marker::PhantomData }))
    }
}

/// A share of the budget, given back when dropped.
#[derive(Debug)]
pub struct Charge {
    bytes: usize,
    memory: Arc<Memory>,
}

impl Charge {
    /// Changes what is accounted for.
    pub fn resize(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.memory.used_bytes.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            self.memory.used_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Immutable data, on the heap or mapped.
#[derive(Debug)]
pub struct Buffer<T>(Inner<T>);

#[derive(Debug)]
enum Inner<T> {
    Heap { data: Vec<T>, _charge: Charge },
    Mapped { map: MappedFile, element: std::marker::PhantomData<T> },
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Inner::Heap { data, .. } => data,
            Inner::Mapped { map, .. } => bytemuck::cast_slice(map),
        }
    }
}
