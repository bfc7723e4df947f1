//! Cache of shards in stores: local copies of shards that this machine has read or written.
//!
//! A cache is a folder of files, which may be deleted at any time. The file name of an entry contains the run and the
//! header checksum of the shard. The checksum covers every byte, so an entry is never stale. Any number of processes
//! may use a cache at once. Entries appear by a rename and are removed by name, so a process that has an entry open can
//! still read it.

use std::fs::{self, DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use exact2048_files::{OFlags, open_with};
use rustix::process::geteuid;

use crate::publish::{TempFile, list, remove_abandoned};
use crate::{Peers, RunId, ShardName, StorageError};

/// A cache in a folder.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    /// Limit in bytes on all entries together.
    limit: u64,
    /// Processes to ask for shards that are missing in the cache.
    peers: Option<Arc<dyn Peers>>,
}

/// Returns the path of a shard in the cache of a folder, whether or not it exists.
pub(crate) fn entry(folder: &Path, run: RunId, header_checksum: u64) -> PathBuf {
    private(folder).join(format!("{run}-{header_checksum:016x}.shard"))
}

/// Returns whether a file name belongs to an entry. The folder may also hold other files.
fn is_entry(name: &str) -> bool {
    let parts = name.strip_suffix(".shard").and_then(|name| name.split_once('-'));
    parts.is_some_and(|(run, checksum)| {
        run.parse::<RunId>().is_ok() && u64::from_str_radix(checksum, 16).is_ok() && checksum.len() == 16
    })
}

/// Returns whether a temporary file with this target name belongs to a cache.
fn is_own_temp(name: &str) -> bool {
    ["copy", "download", "inspect", "scratch"].contains(&name) || ShardName::parse(name).is_some()
}

/// Returns the folder that a cache in `folder` uses: `folder` itself if only the user can write to it, else a
/// subfolder.
///
/// Other users can write to a shared folder such as /tmp or a container volume. Cached files are not kept there,
/// because their checksums detect damage but not forgery.
fn private(folder: &Path) -> PathBuf {
    match fs::metadata(folder) {
        Ok(metadata) if is_shared(&metadata) => folder.join(format!("exact2048-{}", geteuid().as_raw())),
        _ => folder.to_path_buf(),
    }
}

/// Returns whether a folder belongs to another user or others can write to it.
fn is_shared(metadata: &Metadata) -> bool {
    metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0
}

/// Creates a missing folder that only this user can read.
fn make(folder: &Path) -> Result<(), StorageError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| match StorageError::closed_cache(folder, &error) {
        Some(closed) => closed,
        None => StorageError::io("create the folder", folder, error),
    })
}

/// Checks that no other user can put files into a cache folder or replace the folder.
fn require_private(folder: &Path) -> Result<(), StorageError> {
    let metadata = fs::symlink_metadata(folder).map_err(|e| StorageError::read(folder, e))?;
    if metadata.is_symlink() {
        return Err(refused(folder, "it is a link, which another user may have created".to_owned()));
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(refused(folder, format!("it belongs to the user {}", metadata.uid())));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(refused(folder, "other users can write to it; run chmod 700 to prevent that".to_owned()));
    }
    Ok(())
}

/// Checks that a shared folder belongs to this user or to root.
///
/// Another owner could replace subfolders. Root is trusted because it owns folders for temporary files and container
/// volumes.
fn require_neutral(folder: &Path) -> Result<(), StorageError> {
    let owner = fs::metadata(folder).map_err(|e| StorageError::read(folder, e))?.uid();
    if owner == geteuid().as_raw() || owner == 0 {
        return Ok(());
    }
    Err(refused(folder, format!("it belongs to the user {owner}")))
}

fn refused(folder: &Path, reason: String) -> StorageError {
    StorageError::UnsafeCache { folder: folder.into(), reason }
}

impl Cache {
    /// Opens the cache in a folder. If the folder is missing, creates it so that only this user can read it.
    ///
    /// If other users can write to the folder, uses a subfolder that only this user can write to.
    pub(crate) fn open(folder: &Path, limit: u64) -> Result<Self, StorageError> {
        make(folder)?;
        let within = private(folder);
        if within != folder {
            require_neutral(folder)?;
            make(&within)?;
            require_private(&within)?;
        }
        let folder = &*within;
        remove_abandoned(folder, is_own_temp);
        Ok(Self { folder: folder.to_path_buf(), limit, peers: None })
    }

    /// Adds peers to ask for shards that are missing in the cache.
    pub(crate) fn with_peers(self, peers: Option<Arc<dyn Peers>>) -> Self {
        Self { peers, ..self }
    }

    pub(crate) fn peers(&self) -> Option<&dyn Peers> {
        self.peers.as_deref()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a shard with this header checksum, whether or not it exists.
    pub(crate) fn entry(&self, run: RunId, header_checksum: u64) -> PathBuf {
        entry(&self.folder, run, header_checksum)
    }

    /// Returns whether an entry exists. Marks an existing entry as just used, which delays its eviction.
    pub(crate) fn touch(&self, entry: &Path) -> bool {
        let Ok(file) = open_with(File::options().append(true), OFlags::empty(), entry) else { return false };
        // A failure only affects the order of eviction.
        let _ = file.set_modified(SystemTime::now());
        true
    }

    /// Turns a file into an entry, and evicts the least recently used entries until the rest fits the limit.
    ///
    /// The new entry always stays, even if it exceeds the limit.
    pub(crate) fn insert(&self, file: TempFile, entry: &Path) -> Result<(), StorageError> {
        file.rename_to(entry)?;
        self.shrink(entry)
    }

    /// Removes a damaged or unneeded entry.
    pub(crate) fn discard(&self, entry: &Path) {
        // If the removal fails, the next process to read the entry detects the damage again.
        let _ = fs::remove_file(entry);
    }

    fn shrink(&self, newest: &Path) -> Result<(), StorageError> {
        let mut entries = Vec::new();
        let mut total = 0u64;
        for entry in list(&self.folder)?.into_iter().filter(|entry| is_entry(&entry.name)) {
            // Another process may have deleted the entry after the listing.
            let Ok(metadata) = fs::metadata(&entry.path) else { continue };
            total = total.saturating_add(metadata.len());
            entries.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len(), entry.path));
        }
        entries.sort_unstable();
        for (_, bytes, path) in entries.iter().filter(|(_, _, path)| path != newest) {
            if total <= self.limit {
                break;
            }
            self.discard(path);
            total = total.saturating_sub(*bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;
    use crate::publish::{ABANDONED, TEMP_PREFIX};

    fn insert(cache: &Cache, checksum: u64, bytes: usize, age: u64) -> PathBuf {
        let mut temp = TempFile::create(cache.folder(), "entry").unwrap();
        temp.write(&vec![0; bytes]).unwrap();
        temp.file().set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        let entry = cache.entry(RunId([0; 16]), checksum);
        cache.insert(temp, &entry).unwrap();
        entry
    }

    #[test]
    fn the_least_recently_used_entries_are_evicted_first() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::open(&place.path().join("deep/cache"), 100).unwrap();
        let (oldest, older) = (insert(&cache, 1, 40, 300), insert(&cache, 2, 40, 200));
        assert!(cache.touch(&oldest) && cache.touch(&older));
        let touched = File::options().append(true).open(&older).unwrap();
        touched.set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
        let new = insert(&cache, 3, 40, 0);
        assert_eq!([&oldest, &older, &new].map(|entry| entry.exists()), [true, false, true]);
        // An entry larger than the limit stays, and all other entries are evicted.
        let large = insert(&cache, 4, 200, 400);
        assert_eq!([&oldest, &new, &large].map(|entry| entry.exists()), [false, false, true]);
    }

    #[test]
    fn abandoned_files_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let name = |number| format!("{TEMP_PREFIX}download-{number:032x}");
        let [old, new, held] = [1, 2, 3].map(|number| place.path().join(name(number)));
        let aged = |path: &Path, age| {
            let file = File::create(path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            file
        };
        drop((aged(&old, 2 * ABANDONED), aged(&new, ABANDONED / 2)));
        // The process that writes this file is still waiting for a store.
        let waiting = aged(&held, 2 * ABANDONED);
        waiting.lock().unwrap();
        Cache::open(place.path(), 0).unwrap();
        assert_eq!([&old, &new, &held].map(|path| path.exists()), [false, true, true]);
    }

    /// A cache may share its folder with other files, some of them with names like those of entries.
    #[test]
    fn files_of_other_programs_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let others = [
            format!("{TEMP_PREFIX}notes-{:032x}", 1),
            format!("{TEMP_PREFIX}download"),
            "reach-000004-000120.shard".to_owned(),
            format!("{:032x}-12.shard", 1),
        ];
        let others = others.map(|name| place.path().join(name));
        for path in &others {
            let file = File::create(path).unwrap();
            file.set_len(1000).unwrap();
            file.set_modified(SystemTime::now() - 2 * ABANDONED).unwrap();
        }
        let cache = Cache::open(place.path(), 100).unwrap();
        let (older, newer) = (insert(&cache, 1, 80, 100), insert(&cache, 2, 80, 0));
        assert!(!older.exists() && newer.exists() && others.iter().all(|path| path.exists()));
    }

    /// Other users could put files into such a folder or replace it.
    #[test]
    fn a_folder_that_others_can_write_to_is_not_used_directly() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cache");
        let own = folder.join(format!("exact2048-{}", geteuid().as_raw()));
        let allow = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        fs::create_dir(&folder).unwrap();
        for mode in [0o1777, 0o777, 0o770] {
            allow(&folder, mode);
            let cache = Cache::open(&folder, 100).unwrap();
            assert_eq!(cache.folder(), own);
            assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
            // `StoreSettings::open_copy` uses the same folder.
            let kept = insert(&cache, 1, 10, 0);
            assert_eq!(entry(&folder, RunId([0; 16]), 1), kept);
        }
        let refusal = || Cache::open(&folder, 100).unwrap_err().to_string();
        allow(&own, 0o777);
        assert!(refusal().contains("chmod 700"), "{}", refusal());
        fs::remove_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(place.path(), &own).unwrap();
        assert!(refusal().contains("only you can change"), "{}", refusal());
        fs::remove_file(&own).unwrap();
        fs::create_dir(&own).unwrap();
        if std::os::unix::fs::chown(&own, Some(12_345), None).is_ok() {
            assert!(refusal().contains("belongs to the user 12345"), "{}", refusal());
            // The owner of the parent could replace a folder created in it.
            fs::remove_dir(&own).unwrap();
            std::os::unix::fs::chown(&folder, Some(12_345), None).unwrap();
            assert!(refusal().contains("belongs to the user 12345") && !own.exists(), "{}", refusal());
            std::os::unix::fs::chown(&folder, Some(0), None).unwrap();
        } else {
            assert!(std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "this test needs root");
        }
        allow(&folder, 0o755);
        assert_eq!(Cache::open(&folder, 100).unwrap().folder(), folder);
    }
}
