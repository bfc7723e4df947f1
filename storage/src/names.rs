//! Names of the files and folders of a run, in a directory and below the prefix of a store.

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const JOURNAL: &str = "journal";
pub(crate) const SHARDS: &str = "shards";
pub(crate) const LOCK: &str = "lock";
