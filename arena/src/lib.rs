//! Memory for long lists, which reuse pages, because fresh pages cost about as much as filling them.
//!
//! A [`Pool`] hands out an [`Area`], a list of any length. Lists of two megabytes and more are pages of an arena, one long
//! range of addresses. The pool keeps the memory of a shorter list when it is dropped, for the next list of about the same
//! length. The pool knows the limit of the process, so kept memory never exceeds it.

mod area;
mod arena;
mod extents;

pub use area::{Area, Pool};
