//! Shards of stores that were read or written here, kept as files.
//!
//! A cache is a folder of files that may vanish at any time. An entry is named by the run and the header checksum
//! of the shard, which vouches for every byte, so that an entry is never out of date. Any number of processes
//! may use a cache at once: entries appear by a rename and are removed by name, which leaves the bytes to those
//! who have them open.

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
    /// Bytes that all entries may have together.
    limit: u64,
    /// Who is asked for what is missing here.
    peers: Option<Arc<dyn Peers>>,
}

/// Where the shard of a run with this header checksum is in the cache of a folder, if it is there at all.
pub(crate) fn entry(folder: &Path, run: RunId, header_checksum: u64) -> PathBuf {
    private(folder).join(format!("{run}-{header_checksum:016x}.shard"))
}

/// Whether a file is an entry, by its name: a cache may be in a folder that holds other files.
fn is_entry(name: &str) -> bool {
    let parts = name.strip_suffix(".shard").and_then(|name| name.split_once('-'));
    parts.is_some_and(|(run, checksum)| {
        run.parse::<RunId>().is_ok() && u64::from_str_radix(checksum, 16).is_ok() && checksum.len() == 16
    })
}

/// Whether a temporary file is of a cache, by the name that it was to get.
fn is_own_temp(name: &str) -> bool {
    ["copy", "download", "inspect", "scratch"].contains(&name) || ShardName::parse(name).is_some()
}

/// The folder that a cache in `folder` uses: this one if it is the user's alone, else one of the user's within.
///
/// A folder that others can write to, such as /tmp or a volume of a container, is no place for files that are read as
/// they are: their checksums tell damage, not forgery.
fn private(folder: &Path) -> PathBuf {
    match fs::metadata(folder) {
        Ok(metadata) if is_shared(&metadata) => folder.join(format!("exact2048-{}", geteuid().as_raw())),
        _ => folder.to_path_buf(),
    }
}

/// Whether a folder is not this user's, or others can write to it.
fn is_shared(metadata: &Metadata) -> bool {
    metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0
}

/// Makes a folder if there is none; only this user can read it then.
fn make(folder: &Path) -> Result<(), StorageError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| match StorageError::closed_cache(folder, &error) {
        Some(closed) => closed,
        None => StorageError::io("create the folder", folder, error),
    })
}

/// Requires that nobody else can put files into the folder of a cache, or another folder in its place.
fn require_private(folder: &Path) -> Result<(), StorageError> {
    let metadata = fs::symlink_metadata(folder).map_err(|e| StorageError::read(folder, e))?;
    if metadata.is_symlink() {
        return Err(refused(folder, "another user may have made that link".to_owned()));
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(refused(folder, format!("it belongs to the user {}", metadata.uid())));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(refused(folder, "other users can write to it; chmod 700 would end that".to_owned()));
    }
    Ok(())
}

/// Requires that a folder that others can write to is at least not another user's, who could put another one in the place
/// of what is made there. What belongs to root is trusted: a folder for temporary files, a volume of a container.
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
    /// Opens the cache in a folder. If there is none it is made, and only this user can read it then. In a folder that
    /// others can write to, it uses one within that is the user's alone.
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

    /// The same, with others to ask for what is missing here.
    pub(crate) fn with_peers(self, peers: Option<Arc<dyn Peers>>) -> Self {
        Self { peers, ..self }
    }

    pub(crate) fn peers(&self) -> Option<&dyn Peers> {
        self.peers.as_deref()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the shard with this header checksum is, if it is there at all.
    pub(crate) fn entry(&self, run: RunId, header_checksum: u64) -> PathBuf {
        entry(&self.folder, run, header_checksum)
    }

    /// Whether there is an entry. If there is, it is among the last to be removed from now on.
    pub(crate) fn touch(&self, entry: &Path) -> bool {
        let Ok(file) = open_with(File::options().append(true), OFlags::empty(), entry) else { return false };
        // Only the order of removal depends on it.
        let _ = file.set_modified(SystemTime::now());
        true
    }

    /// Makes a file an entry, and removes the entries used longest ago until the rest is within the limit. The new
    /// one stays, however large it is.
    pub(crate) fn insert(&self, file: TempFile, entry: &Path) -> Result<(), StorageError> {
        file.rename_to(entry)?;
        self.shrink(entry)
    }

    /// Removes an entry that is not what it should be.
    pub(crate) fn discard(&self, entry: &Path) {
        // If it stays, the next process that reads it finds out the same.
        let _ = fs::remove_file(entry);
    }

    fn shrink(&self, newest: &Path) -> Result<(), StorageError> {
        let mut entries = Vec::new();
        let mut total = 0u64;
        for entry in list(&self.folder)?.into_iter().filter(|entry| is_entry(&entry.name)) {
            // It may have gone since it was listed.
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
    fn the_entries_used_longest_ago_go_first() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::open(&place.path().join("deep/cache"), 100).unwrap();
        let (oldest, older) = (insert(&cache, 1, 40, 300), insert(&cache, 2, 40, 200));
        assert!(cache.touch(&oldest) && cache.touch(&older));
        let touched = File::options().append(true).open(&older).unwrap();
        touched.set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
        let new = insert(&cache, 3, 40, 0);
        assert_eq!([&oldest, &older, &new].map(|entry| entry.exists()), [true, false, true]);
        // One that is larger than the limit is kept alone.
        let large = insert(&cache, 4, 200, 400);
        assert_eq!([&oldest, &new, &large].map(|entry| entry.exists()), [false, false, true]);
    }

    #[test]
    fn what_was_abandoned_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let name = |number| format!("{TEMP_PREFIX}download-{number:032x}");
        let [old, new, held] = [1, 2, 3].map(|number| place.path().join(name(number)));
        let aged = |path: &Path, age| {
            let file = File::create(path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            file
        };
        drop((aged(&old, 2 * ABANDONED), aged(&new, ABANDONED / 2)));
        // Its process waits for a store.
        let waiting = aged(&held, 2 * ABANDONED);
        waiting.lock().unwrap();
        Cache::open(place.path(), 0).unwrap();
        assert_eq!([&old, &new, &held].map(|path| path.exists()), [false, true, true]);
    }

    /// A cache may be in a folder that holds other files, also such as look like its own.
    #[test]
    fn files_of_others_are_left_alone() {
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

    /// Nobody else can put files into it, or a folder of theirs in its place.
    #[test]
    fn a_folder_that_others_can_write_to_is_not_used_itself() {
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
            // Those who ask for copies find them where they are kept.
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
            // Its owner could put another folder in the place of one that is made there.
            fs::remove_dir(&own).unwrap();
            std::os::unix::fs::chown(&folder, Some(12_345), None).unwrap();
            assert!(refusal().contains("belongs to the user 12345") && !own.exists(), "{}", refusal());
            std::os::unix::fs::chown(&folder, Some(0), None).unwrap();
        } else {
            assert!(std::env::var_os("EXACT2048_REQUIRE_ROOT").is_none(), "this takes root");
        }
        allow(&folder, 0o755);
        assert_eq!(Cache::open(&folder, 100).unwrap().folder(), folder);
    }
}
