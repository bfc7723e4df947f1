//! Writing a shard: frames as they arrive, then the index, then the header in the space reserved for it.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Frame;
use super::header::{HEADER_BYTES, Header};
use super::index::IndexBuilder;
use crate::allowance::Taken;
use crate::bytes::{as_hex64, index};
use crate::crash_points::crash_point;
use crate::home::RunPlace;
use crate::publish::{Listed, TempFile, sync_folder};
use crate::store::{Cache, Store};
use crate::{RunId, ShardId, ShardIdentity, ShardKind, StorageError};

/// Description of a shard in a commit, with a JSON form for journal records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardRecord {
    /// Name of its file, for [`Shards::place`](crate::Shards::place).
    pub file: String,
    /// Content of its items.
    pub kind: ShardKind,
    /// The lowest layer that its items may have.
    pub first_layer: u32,
    /// The highest layer that its items may have.
    pub last_layer: u32,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Number of frames.
    pub frames: u64,
    /// Number of items.
    pub items: u64,
    /// Checksum of the header, 16 hex digits in JSON. It covers the whole file, because the header has the checksum of
    /// the index, and the index has the checksums of the frames.
    #[serde(with = "as_hex64")]
    pub header_checksum: u64,
}

impl ShardRecord {
    /// Returns the id of the shard within its run.
    #[must_use]
    pub fn id(&self) -> ShardId {
        ShardId::of(&self.file)
    }
}

/// Destination of a shard.
#[derive(Debug)]
pub(crate) enum Target {
    /// A folder, in which the shard replaces any shard of the same name.
    Folder {
        folder: PathBuf,
        /// The name of its file.
        file: String,
        /// The run to which the shard will belong.
        run: RunPlace,
    },
    /// An object. The writer first writes a file in the cache folder, and this file stays as a copy.
    Store {
        store: Arc<Store>,
        cache: Arc<Cache>,
        /// The name of its file.
        file: String,
        /// The name of its object within the run.
        object: String,
    },
}

impl Target {
    /// Creates the temporary file of the shard.
    ///
    /// In a run directory, the temporary name contains the final name of the shard. In a cluster, the final name
    /// identifies the writer.
    fn create_temp(&self) -> Result<TempFile, StorageError> {
        match self {
            Self::Folder { folder, file, run } => {
                run.require_run()?;
                TempFile::create(folder, file)
            }
            Self::Store { cache, file, .. } => TempFile::create(cache.folder(), file),
        }
    }

    /// Disk space of an earlier shard of the same name.
    fn replaced_bytes(&self) -> Result<u64, StorageError> {
        match self {
            Self::Folder { folder, file, .. } => {
                Listed { path: folder.join(file), name: file.clone() }.cost()
            }
            Self::Store { .. } => Ok(0),
        }
    }
}

/// Writes one shard. A writer that is dropped before [`finish`](Self::finish) leaves no file.
///
/// Memory: 24 bytes per item and 32 per frame, and about three times as much during `finish`. Frames are written
/// immediately and not kept in memory. The writer does not borrow the run, but the run must stay open for writing,
/// because the next writer of the run may remove unfinished shards.
#[derive(Debug)]
pub struct ShardWriter {
    identity: ShardIdentity,
    target: Target,
    temp: TempFile,
    index: IndexBuilder,
    taken: Taken,
    /// Offset of the next frame, in bytes from the start of the file.
    offset: u64,
    /// A write failed, so the contents of the file are uncertain.
    failed: bool,
}

impl ShardWriter {
    /// Starts a shard of the run with this id. Its bytes count towards `taken`.
    pub(crate) fn begin(
        target: Target,
        run: RunId,
        identity: ShardIdentity,
        taken: Taken,
    ) -> Result<Self, StorageError> {
        if identity.run != run || identity.first_layer > identity.last_layer {
            return Err(StorageError::InvalidInput {
                what: format!("the run {run} cannot have a shard {identity:?}"),
            });
        }
        taken.grow_to(HEADER_BYTES.into())?;
        let mut temp = target.create_temp()?;
        write(&mut temp, &[0; index(HEADER_BYTES)])?; // space for the header
        let index = IndexBuilder::default();
        Ok(Self { identity, target, temp, index, taken, offset: u64::from(HEADER_BYTES), failed: false })
    }

    /// Appends a frame. The keys may be in any order.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] if an item's layer is outside the shard, and [`StorageError::TooLarge`] if the
    /// shard would have too many items for its index (about 50 million). Both leave the writer unchanged.
    /// [`StorageError::Full`], [`StorageError::OverLimit`] or another I/O error, after which every call fails with
    /// [`StorageError::EarlierFailure`].
    pub fn push(&mut self, frame: Frame) -> Result<(), StorageError> {
        let layers = self.identity.first_layer..=self.identity.last_layer;
        if let Some((key, _)) = frame.items.iter().find(|(key, _)| !layers.contains(&key.layer)) {
            return Err(StorageError::InvalidInput {
                what: format!("{key:?} pushed to a shard of the layers {layers:?}"),
            });
        }
        self.index.check_room(frame.items.len())?;
        self.append(frame.bytes())?;
        let start = self.offset - frame.encoded_bytes() as u64;
        self.index.add(start, frame.header, &frame.items);
        Ok(())
    }

    /// Completes the shard and publishes it.
    ///
    /// In a directory, the shard replaces an earlier shard of the same name; in a store, its name is unique. After
    /// this call, the shard survives a power loss. Only a journal record that names the shard commits it. Costs a sync
    /// of the file and one of its folder, or the upload.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] if a key was pushed twice, or as for [`push`](Self::push). After an error the
    /// shard may or may not exist; writing it again is always safe.
    pub fn finish(mut self) -> Result<ShardRecord, StorageError> {
        if let Some(key) = self.index.duplicate() {
            return Err(StorageError::InvalidInput { what: format!("{key:?} pushed twice to a shard") });
        }
        let index_offset = self.offset;
        let (index, bytes) = self.index.seal()?;
        self.append(&bytes)?;
        let header = Header {
            identity: self.identity,
            frames: u32::try_from(self.index.frames()).unwrap_or(u32::MAX), // `check_room` keeps the number far lower
            items: self.index.items() as u64,
            index_offset,
            index_bytes: index.block_bytes(),
            index_checksum: index.checksum,
            file_bytes: self.offset,
        };
        let (bytes, header_checksum) = header.to_bytes();
        let seek = self.temp.file().seek(SeekFrom::Start(0));
        seek.map_err(|e| StorageError::io("write", self.temp.path(), e))?;
        write(&mut self.temp, &bytes)?;

        let replaced = self.target.replaced_bytes()?;
        let file = publish(self.temp, self.target, &self.identity, &header, header_checksum)?;
        self.taken.keep(replaced);

        let ShardIdentity { kind, first_layer, last_layer, .. } = self.identity;
        let (frames, items) = (u64::from(header.frames), header.items);
        Ok(ShardRecord {
            file,
            kind,
            first_layer,
            last_layer,
            bytes: header.file_bytes,
            frames,
            items,
            header_checksum,
        })
    }

    /// Appends bytes to the file.
    fn append(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        if self.failed {
            return Err(StorageError::EarlierFailure { place: self.temp.path().into() });
        }
        let room = self.taken.grow_to(self.offset + bytes.len() as u64);
        room.and_then(|()| write(&mut self.temp, bytes)).inspect_err(|_| self.failed = true)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Gives a complete shard its final name and returns the name.
fn publish(
    temp: TempFile,
    target: Target,
    identity: &ShardIdentity,
    header: &Header,
    header_checksum: u64,
) -> Result<String, StorageError> {
    match target {
        Target::Folder { folder, file, run } => {
            crash_point!("shard.before_sync");
            temp.sync()?;
            crash_point!("shard.synced");
            // Another run with a shard of this name may have replaced this run.
            run.require_run()?;
            temp.rename_to(&folder.join(&file))?;
            crash_point!("shard.renamed");
            sync_folder(&folder)?;
            crash_point!("shard.folder_synced");
            Ok(file)
        }
        Target::Store { store, cache, file, object } => {
            crash_point!("store.before_shard");
            let mut temp = temp;
            store.upload(&object, temp.file(), header.file_bytes)?;
            crash_point!("store.shard_uploaded");
            // A failure is harmless: without the copy, the shard is fetched from the store.
            let _ = cache.insert(temp, &cache.entry(identity.run, header_checksum));
            Ok(file)
        }
    }
}

/// Writes at the current position, unless a test injects a failure.
fn write(temp: &mut TempFile, bytes: &[u8]) -> Result<(), StorageError> {
    let written = injected_failure().and_then(|()| temp.file().write_all(bytes));
    written.map_err(|e| StorageError::write(temp.path(), bytes.len(), e))
}

/// Injects a failure at the fail point `shard.write`. There, `return(enospc)` simulates a full disk, and any other
/// `return` simulates another I/O error.
fn injected_failure() -> io::Result<()> {
    #[cfg(feature = "failpoints")]
    fail::fail_point!("shard.write", |kind: Option<String>| Err(match kind.as_deref() {
        Some("enospc") => io::ErrorKind::StorageFull.into(),
        _ => io::Error::other("injected by the fail point shard.write"),
    }));
    Ok(())
}
