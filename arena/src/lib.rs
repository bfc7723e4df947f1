//! Memory for long lists. The lists reuse pages, because a fresh page costs about as much time as filling it.
//!
//! A [`Pool`] creates lists of any length ([`Area`]). Lists of two megabytes and more are pages of an arena, one long
//! range of addresses. When a shorter list is dropped, the pool keeps its memory for a later list of about the same
//! length. The pool knows the memory limit of the process. It frees kept memory that would exceed the limit.

mod area;
mod arena;
mod extents;

pub use area::{Area, Pool};
