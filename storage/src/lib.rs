//! Runs in directories and object stores: a manifest written once, a journal of numbered commit records, and
//! immutable shards of compressed, checksummed items.
//!
//! The crate does not know the rules of the game, because keys and payloads are opaque to it. `docs/dev/format.md` is
//! the only specification of the bytes on disk and of the files that a crash can leave.
//!
//! | Module | Contents |
//! |---|---|
//! | [`Location`] (`location`) | the address of a run: a path or a URL |
//! | [`RunDir`], [`TypedRun`] (`run/`) | the run: journal, lock, leftovers; the same objects in a directory and in a store |
//! | [`Shards`] (`run/shards`) | opening committed shards in either medium |
//! | `manifest`, `home` | the manifest, and the check that a run is in its place |
//! | [`Frame`], [`ShardWriter`], [`ShardReader`] (`shard/`) | the sections of a shard, one file each; its writer and its reader |
//! | [`Scratch`], [`MappedFile`] (`mapped`) | scratch files and their memory maps, the only `unsafe` code |
//! | [`Peers`] (`peers`) | other processes that may have copies of shards |
//! | `publish` | atomic creation of a file: temporary file, sync, rename or link, sync of the folder |
//! | `store/` | object stores: requests, transfers, the cache of shards |
//! | `sealed` | JSON files that carry their own checksum |
//!
//! # Example
//!
//! ```
//! use exact2048_storage::{Frame, ItemKey, RunDir, ShardIdentity, ShardKind, ShardReader, ShardWriter};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("exact2048-doc-{}", std::process::id()));
//! let mut run = RunDir::create(&folder, &serde_json::json!({ "rows": 3, "cols": 3 }))?;
//! let identity = ShardIdentity {
//!     run: run.run_id(), kind: ShardKind::Reach, rows: 3, cols: 3,
//!     first_layer: 4, last_layer: 8, rule_hash: 0x1234,
//! };
//! let key = ItemKey { layer: 4, lane: 0, part: 0 };
//! let mut writer = ShardWriter::create(&run, identity)?;
//! writer.push(Frame::encode(&[(key, b"any bytes")], 3)?)?;
//! let record = writer.finish()?; // published: the file is complete, but no journal record names it yet
//! run.commit(&serde_json::json!({ "shard": record }))?; // committed
//!
//! let reader = run.shards().open(&record, &identity)?;
//! assert_eq!(reader.read(key)?.as_deref(), Some(&b"any bytes"[..]));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```

// Bytes from disk are untrusted: an index out of bounds or a truncated length must become an error value.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::cast_possible_truncation))]
#![deny(unsafe_code)]

mod allowance;
mod bytes;
mod crash_points;
mod error;
mod home;
mod ids;
mod location;
mod manifest;
mod mapped;
mod names;
mod peers;
mod place;
mod private;
mod publish;
mod run;
mod sealed;
mod shard;
#[cfg_attr(not(feature = "stores"), path = "store/absent.rs")]
#[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "built without object stores"))]
mod store;
#[cfg(feature = "stores")]
mod urls;

pub use allowance::{Allowance, file_cost};
pub use crash_points::CrashPoints;
pub use error::{ErrorKind, Remedy, StorageError};
pub use ids::{Attempt, ItemKey, RunId, ShardIdentity, ShardKind, ShardName};
pub use location::{Location, StoreSettings};
pub use mapped::{MappedFile, Scratch, ScratchPlace};
pub use peers::{CopyOutcome, Peers, WantedCopy};
pub use place::{Place, ShardId};
pub use publish::{create_file, remove_abandoned, replace_file, require_creatable, temp_target};
pub use run::{RunDir, RunInfo, Shards, TypedRun};
pub use shard::{Codec, Entry, Frame, FrameInfo, Packing, ShardReader, ShardRecord, ShardWriter};
#[cfg(feature = "stores")]
pub use store::settings::check_environment;

/// Newest run format that this crate reads, and the format of new runs.
///
/// The version covers the meaning of manifest, journal and items. `docs/dev/format.md` states when the version
/// increases.
pub const FORMAT_VERSION: u32 = 2;

/// Newest shard format that this crate reads, and the format of new shards. Both run formats use this shard format.
pub const SHARD_VERSION: u32 = 1;
