//! Where a run is: a directory, or a prefix of an object store.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use url::Url;

use crate::store::{Cache, PATIENCE, Store, entry_name, s3};
use crate::{Peers, RunId, ShardReader, StorageError, shard};

/// How this process uses object stores. Has no effect on directories.
#[derive(Clone, Debug, Default)]
pub struct StoreSettings {
    /// Folder for copies of shards, and for what does not fit in memory. `None`: `exact2048` in the user's folder
    /// for caches.
    pub cache_folder: Option<PathBuf>,
    /// Bytes that the copies of shards may take together; the shard in use may be larger. `None`: 32 GiB.
    pub cache_bytes: Option<u64>,
    /// How long trouble with the store is waited out; when the run is opened, 20 s at most. `None`: 180 s.
    pub patience: Option<Duration>,
    /// Who is asked for a shard that is not in the cache, before the store is.
    pub peers: Option<Arc<dyn Peers>>,
}

impl StoreSettings {
    const CACHE_BYTES: u64 = 32 << 30;

    /// The folder for copies and scratch files.
    #[must_use]
    pub fn cache_folder(&self) -> PathBuf {
        self.cache_folder.clone().unwrap_or_else(default_cache_folder)
    }

    fn open_cache(&self) -> Result<Cache, StorageError> {
        let cache = Cache::open(&self.cache_folder(), self.cache_bytes.unwrap_or(Self::CACHE_BYTES))?;
        Ok(cache.with_peers(self.peers.clone()))
    }

    /// The copy of a shard in the cache, for others; `None` if there is none. Nothing of it is verified.
    ///
    /// # Errors
    ///
    /// A failure of the system.
    pub fn open_copy(&self, run: RunId, header_checksum: u64) -> io::Result<Option<File>> {
        match File::open(self.cache_folder().join(entry_name(run, header_checksum))) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn default_cache_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    of_user.unwrap_or_else(std::env::temp_dir).join("exact2048")
}

/// Where a run is. Nothing is looked up there before the run is opened or created.
#[derive(Clone, Debug)]
pub struct Location(pub(crate) Place);

#[derive(Clone, Debug)]
pub(crate) enum Place {
    Folder(PathBuf),
    Store(StorePlace),
}

/// A prefix of an object store.
#[derive(Clone, Debug)]
pub(crate) struct StorePlace {
    pub(crate) store: Arc<Store>,
    settings: StoreSettings,
}

impl StorePlace {
    pub(crate) fn open_cache(&self) -> Result<Arc<Cache>, StorageError> {
        self.settings.open_cache().map(Arc::new)
    }
}

impl Location {
    /// Reads what a user gives: a path, `file:///path` or `s3://bucket/prefix`. The settings of an S3 store are
    /// those of the environment, see `docs/stores.md`.
    ///
    /// # Errors
    ///
    /// [`StorageError::Settings`] if the URL is of another kind, or a setting is missing or wrong.
    pub fn parse(text: &OsStr, settings: &StoreSettings) -> Result<Self, StorageError> {
        let Some(address) = text.to_str().filter(|text| text.contains("://")) else {
            return Ok(Self::from(Path::new(text)));
        };
        let url = Url::parse(address).map_err(|e| refused(address, e.to_string()))?;
        // First, because the messages below repeat the address.
        if !url.username().is_empty() || url.password().is_some() {
            let reason = "it holds a user name or password; give keys in the environment instead";
            return Err(refused(&format!("{}://...", url.scheme()), reason));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused(address, "'?' and '#' have no meaning here; write them as %3F and %23"));
        }
        match url.scheme() {
            "file" => {
                let path = url.to_file_path();
                path.map(|path| Self::from(&*path))
                    .map_err(|()| refused(address, "it has no absolute path of this machine: file:///path"))
            }
            "s3" => {
                let bucket = url.host_str().unwrap_or_default();
                if bucket.is_empty() || url.port().is_some() {
                    return Err(refused(address, "expected s3://BUCKET/PREFIX"));
                }
                let objects = s3::open(bucket, |name| std::env::var(name).ok());
                let objects = objects.map_err(|reason| refused(address, reason))?;
                Self::objects(objects, address, url.path(), settings)
            }
            other => Err(refused(address, format!("{other}:// is not known; a path, file:// and s3:// are"))),
        }
    }

    /// A prefix of a store that is open already. `url` is only for messages; `prefix` is percent-encoded.
    ///
    /// # Errors
    ///
    /// [`StorageError::Settings`] if the prefix is none, for example because of an empty part.
    pub fn objects(
        objects: Arc<dyn ObjectStore>,
        url: &str,
        prefix: &str,
        settings: &StoreSettings,
    ) -> Result<Self, StorageError> {
        let prefix = object_store::path::Path::from_url_path(prefix);
        let prefix = prefix.map_err(|e| refused(url, e.to_string()))?;
        let patience = settings.patience.unwrap_or(PATIENCE);
        let store = Arc::new(Store::new(objects, url, prefix, patience));
        Ok(Self(Place::Store(StorePlace { store, settings: settings.clone() })))
    }

    /// The place of this name in the directory, or below the prefix. Nothing is looked up there.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] unless `name` is a single name of letters, digits, `.`, `_` and `-` that is not
    /// hidden: no name leads out of this place.
    pub fn child(&self, name: &str) -> Result<Self, StorageError> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if name.is_empty() || name.starts_with('.') || !plain {
            let what = format!("{name:?} is not the name of a place within another");
            return Err(StorageError::InvalidInput { what });
        }
        Ok(Self(match &self.0 {
            Place::Folder(path) => Place::Folder(path.join(name)),
            Place::Store(place) => {
                let (store, settings) = (Arc::new(place.store.child(name)), place.settings.clone());
                Place::Store(StorePlace { store, settings })
            }
        }))
    }

    /// The URL of this place, which [`parse`](Self::parse) reads in any process that shares the file system or the
    /// store.
    ///
    /// # Errors
    ///
    /// [`StorageError::Settings`] for a path that cannot be spelled as a URL.
    pub fn url(&self) -> Result<String, StorageError> {
        match &self.0 {
            Place::Folder(path) => {
                let absolute = std::path::absolute(path).map_err(|e| StorageError::read(path, e))?;
                let url = Url::from_file_path(&absolute);
                let unspeakable = |()| refused(&path.display().to_string(), "it has no URL");
                url.map(String::from).map_err(unspeakable)
            }
            Place::Store(place) => Ok(place.store.url().to_string_lossy().into_owned()),
        }
    }

    /// The directory, `None` if this is not one.
    #[must_use]
    pub fn as_folder(&self) -> Option<&Path> {
        match &self.0 {
            Place::Folder(path) => Some(path),
            Place::Store(_) => None,
        }
    }

    /// Opens the shard that is at this location itself, to inspect a shard of which nothing is known.
    ///
    /// # Errors
    ///
    /// As for [`ShardReader::open_any`], and failures of the store.
    pub fn open_shard(&self) -> Result<ShardReader, StorageError> {
        match &self.0 {
            Place::Folder(path) => ShardReader::open_any(path),
            Place::Store(place) => shard::open_lone_object(&place.store, &*place.open_cache()?),
        }
    }
}

fn refused(url: &str, reason: impl Into<String>) -> StorageError {
    StorageError::Settings { url: url.to_owned(), reason: reason.into() }
}

impl fmt::Display for Location {
    /// As it was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Folder(path) => path.display().fmt(f),
            Place::Store(place) => place.store.url().display().fmt(f),
        }
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self(Place::Folder(path.to_path_buf()))
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        Self::from(&**path)
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Location, StorageError> {
        Location::parse(OsStr::new(text), &StoreSettings::default())
    }

    #[test]
    fn paths_and_file_urls_are_directories() {
        for (text, path) in [
            ("runs/3x3", "runs/3x3"),
            ("/a b/c", "/a b/c"),
            ("file:///shared/dir", "/shared/dir"),
            ("file:///a%20b", "/a b"),
            ("file://localhost/x", "/x"),
            ("s3:/no-url", "s3:/no-url"),
        ] {
            assert_eq!(parse(text).unwrap().as_folder(), Some(Path::new(path)), "{text}");
        }
    }

    #[test]
    fn places_within_others_and_their_urls() {
        let folder = parse("/a b").unwrap();
        let child = folder.child("3x3-to24").unwrap();
        assert_eq!(child.as_folder(), Some(Path::new("/a b/3x3-to24")));
        assert_eq!(child.url().unwrap(), "file:///a%20b/3x3-to24");
        assert_eq!(parse(&child.url().unwrap()).unwrap().as_folder(), child.as_folder());
        assert!(parse("relative").unwrap().url().unwrap().starts_with("file:///"));
        for name in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "\u{e4}", "a\0"] {
            assert!(matches!(folder.child(name), Err(StorageError::InvalidInput { .. })), "{name:?}");
        }
        let objects: Arc<dyn ObjectStore> = Arc::new(object_store::memory::InMemory::new());
        let settings = StoreSettings::default();
        let store = Location::objects(objects, "s3://bucket/all%20runs/", "all%20runs", &settings).unwrap();
        let child = store.child("3x3").unwrap();
        assert_eq!(child.url().unwrap(), "s3://bucket/all%20runs/3x3");
        let Place::Store(place) = &child.0 else { panic!("a store") };
        assert_eq!(place.store.prefix().as_ref(), "all runs/3x3");
    }

    #[test]
    fn other_urls_are_refused_and_secrets_are_not_repeated() {
        for text in
            ["gs://bucket/x", "http://host/x", "s3://", "s3:///x", "file://host/x", "://", "s3://b/p?x=1"]
        {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, StorageError::Settings { .. }), "{text}: {error}");
        }
        let error = parse("s3://key:hush@bucket/x").unwrap_err().to_string();
        assert!(error.contains("password") && !error.contains("hush"), "{error}");
    }
}
