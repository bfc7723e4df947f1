//! Writing a shard: frames as they come, then the index, then the header in the place kept for it.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Frame;
use super::header::{HEADER_BYTES, Header};
use super::index::IndexBuilder;
use crate::allowance::Taken;
use crate::bytes::{as_hex64, index};
use crate::crash_points::crash_point;
use crate::publish::{Listed, TempFile, sync_folder};
use crate::store::{Cache, Store};
use crate::{Attempt, RunId, ShardId, ShardIdentity, ShardKind, Shards, StorageError, TypedRun};

/// What a commit says about a shard. As JSON it is fit to be put into a journal record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardRecord {
    /// Name of its file, for [`Shards::place`].
    pub file: String,
    /// What its items hold.
    pub kind: ShardKind,
    /// The lowest layer it may have items of.
    pub first_layer: u32,
    /// The highest layer it may have items of.
    pub last_layer: u32,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Number of frames.
    pub frames: u64,
    /// Number of items.
    pub items: u64,
    /// Checksum of the header, which vouches for every byte of the file. 16 hex digits in JSON.
    #[serde(with = "as_hex64")]
    pub header_checksum: u64,
}

impl ShardRecord {
    /// Which shard of its run this is.
    #[must_use]
    pub fn id(&self) -> ShardId {
        ShardId::of(&self.file)
    }
}

/// Where a shard is to be published.
#[derive(Debug)]
pub(crate) enum Target {
    /// In this folder, in place of an earlier one of the same name.
    Folder {
        folder: PathBuf,
        /// The name of its file.
        file: String,
        /// The run that it becomes a part of.
        run: Shards,
    },
    /// As this object. It is written as a file in the cache first, where it stays as a copy.
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
    /// The file that the shard is written to first. Where it is published in a directory, its name says which shard it
    /// becomes, and so whose it is.
    fn create_temp(&self) -> Result<TempFile, StorageError> {
        match self {
            Self::Folder { folder, file, run } => {
                run.require_run()?;
                TempFile::create(folder, file)
            }
            Self::Store { cache, file, .. } => TempFile::create(cache.folder(), file),
        }
    }

    /// What an earlier shard of the same name takes of the disk.
    fn replaced_bytes(&self) -> Result<u64, StorageError> {
        match self {
            Self::Folder { folder, file, .. } => {
                Listed { path: folder.join(file), name: file.clone() }.cost()
            }
            Self::Store { .. } => Ok(0),
        }
    }
}

/// Writes one shard. Dropped before [`finish`](Self::finish) it leaves nothing behind.
///
/// Memory: 24 bytes per item and 32 per frame, and in `finish` about twice that again. Frames are written at
/// once and not kept. It holds no borrow of the run, which must stay open for writing while this lives: the
/// next process to open it removes unfinished shards.
#[derive(Debug)]
pub struct ShardWriter {
    identity: ShardIdentity,
    target: Target,
    temp: TempFile,
    index: IndexBuilder,
    taken: Taken,
    /// Where the next frame goes, in bytes from the start of the file.
    offset: u64,
    /// A write failed: what the file holds is uncertain.
    failed: bool,
}

impl ShardWriter {
    /// Begins the shard `identity` of `run`.
    ///
    /// # Errors
    ///
    /// [`StorageError::ReadOnly`] if the run is not open for writing, [`StorageError::InvalidInput`] if the
    /// identity is of another run or its layers are in the wrong order, or a failure of the system.
    pub fn create<R>(run: &TypedRun<R>, identity: ShardIdentity) -> Result<Self, StorageError>
    where
        R: Serialize + DeserializeOwned + Clone,
    {
        let taken = Taken::nothing(run.allowance().cloned());
        Self::begin(run.shard_target(&identity)?, run.run_id(), identity, taken)
    }

    /// Begins a shard that another process will commit: the one that has the run open for writing.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] if the identity is of another run or its layers are in the wrong order, or a
    /// failure of the system.
    pub fn create_as(
        shards: &Shards,
        identity: ShardIdentity,
        attempt: Attempt,
    ) -> Result<Self, StorageError> {
        let target = shards.target(&identity, attempt);
        Self::begin(target, shards.run_id(), identity, Taken::nothing(None))
    }

    fn begin(
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
        write(&mut temp, &[0; index(HEADER_BYTES)])?; // the place of the header
        let index = IndexBuilder::default();
        Ok(Self { identity, target, temp, index, taken, offset: u64::from(HEADER_BYTES), failed: false })
    }

    /// Appends a frame. Frames may come in any order of keys.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] if an item is of a layer outside the shard, [`StorageError::TooLarge`] if
    /// the shard would have too many items for its index (about 50 million); both leave the writer as it was.
    /// [`StorageError::Full`], [`StorageError::OverLimit`] or another failure of the system, after which every call fails
    /// with [`StorageError::EarlierFailure`].
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

    /// Completes the shard and publishes it: in a directory in place of an earlier one of the same layers, in a store
    /// under a name of its own.
    ///
    /// When this returns, the shard survives a loss of power. It is committed only by a journal record that
    /// names it. Costs a sync of the file and one of its folder, or the upload.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] if a key was pushed twice, or as for [`push`](Self::push). After an error
    /// there may or may not be a shard; writing it again is always right.
    pub fn finish(mut self) -> Result<ShardRecord, StorageError> {
        if let Some(key) = self.index.duplicate() {
            return Err(StorageError::InvalidInput { what: format!("{key:?} pushed twice to a shard") });
        }
        let index_offset = self.offset;
        let (index, bytes) = self.index.seal()?;
        self.append(&bytes)?;
        let header = Header {
            identity: self.identity,
            frames: u32::try_from(self.index.frames()).unwrap_or(u32::MAX), // `check_room` stops far below
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

    /// Writes at the end.
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

/// Gives a complete shard its name, and returns that.
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
            // A shard of another run may have this name.
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
            // This is only a copy: where it is missing, the shard is fetched from the store.
            let _ = cache.insert(temp, &cache.entry(identity.run, header_checksum));
            Ok(file)
        }
    }
}

/// Writes at the current position, unless a test has this write fail.
fn write(temp: &mut TempFile, bytes: &[u8]) -> Result<(), StorageError> {
    let written = injected_failure().and_then(|()| temp.file().write_all(bytes));
    written.map_err(|e| StorageError::write(temp.path(), bytes.len(), e))
}

/// The fail point `shard.write`: the action `return(enospc)` fills the disk, any other `return` breaks it.
fn injected_failure() -> io::Result<()> {
    #[cfg(feature = "failpoints")]
    fail::fail_point!("shard.write", |kind: Option<String>| Err(match kind.as_deref() {
        Some("enospc") => io::ErrorKind::StorageFull.into(),
        _ => io::Error::other("injected by the fail point shard.write"),
    }));
    Ok(())
}
