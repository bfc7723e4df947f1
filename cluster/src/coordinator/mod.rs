//! The coordinator's process.
