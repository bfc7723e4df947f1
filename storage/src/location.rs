//! Location of a run: a directory, or a prefix of an object store.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::geteuid;

use crate::error::refused;
use crate::store::{Cache, Store, cache};
use crate::{Peers, Place, RunId, ShardReader, StorageError, shard};

/// Settings for object stores. They have no effect on directories.
#[derive(Clone, Debug, Default)]
pub struct StoreSettings {
    /// Folder for copies of shards and for scratch files. `None`: `exact2048` in the user's cache folder.
    pub cache_folder: Option<PathBuf>,
    /// Limit in bytes on all copies of shards together. The newest copy stays even if it exceeds the limit. `None`: 32
    /// GiB.
    pub cache_bytes: Option<u64>,
    /// Time limit for the retries of a request to the store. `None`: 180 s.
    pub patience: Option<Duration>,
    /// Time limit for retries before the first answer of the store, when a wrong setting is likelier than an outage.
    /// `None`: 20 s.
    pub first_patience: Option<Duration>,
    /// Receives a message when a request gets no answer and is retried, at most once per request.
    pub on_wait: Option<fn(&str)>,
    /// Processes to ask for a shard that is not in the cache, before the store is asked.
    pub peers: Option<Arc<dyn Peers>>,
}

impl StoreSettings {
    const CACHE_BYTES: u64 = 32 << 30;

    /// Returns the folder for copies and scratch files. The folder may not exist yet.
    #[must_use]
    pub fn cache_folder(&self) -> PathBuf {
        self.cache_folder.clone().unwrap_or_else(default_cache_folder)
    }

    fn open_cache(&self) -> Result<Cache, StorageError> {
        let cache = Cache::open(&self.cache_folder(), self.cache_bytes.unwrap_or(Self::CACHE_BYTES))?;
        Ok(cache.with_peers(self.peers.clone()))
    }

    /// Opens the cached copy of a shard, to send it to other processes; `None` if there is no copy.
    ///
    /// The copy is not verified.
    ///
    /// # Errors
    ///
    /// An I/O error.
    pub fn open_copy(&self, run: RunId, header_checksum: u64) -> io::Result<Option<File>> {
        match exact2048_files::open(&cache::entry(&self.cache_folder(), run, header_checksum)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the user's cache folder, or else a temporary folder named after the user id. [`Cache::open`] checks the
/// owner of the folder.
fn default_cache_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))) {
        Some(of_user) => of_user.join("exact2048"),
        None => std::env::temp_dir().join(format!("exact2048-{}", geteuid().as_raw())),
    }
}

/// Location of a run. It is not accessed until the run is opened or created.
#[derive(Clone, Debug)]
pub struct Location(pub(crate) Medium);

/// Medium that holds a run.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "built without object stores"))]
pub(crate) enum Medium {
    Folder(PathBuf),
    Store(StorePlace),
}

/// A prefix of an object store.
#[derive(Clone, Debug)]
pub(crate) struct StorePlace {
    pub(crate) store: Arc<Store>,
    pub(crate) settings: StoreSettings,
}

impl StorePlace {
    pub(crate) fn open_cache(&self) -> Result<Arc<Cache>, StorageError> {
        self.settings.open_cache().map(Arc::new)
    }
}

impl Location {
    /// Parses a location given by a user: a path, `file:///path` or `s3://bucket/prefix`.
    ///
    /// The environment provides the settings of an S3 store; see `docs/stores.md`.
    ///
    /// # Errors
    ///
    /// [`StorageError::Settings`] if the URL has another scheme, a setting is missing or wrong, or the text is neither
    /// a path nor a URL, such as `~/x` or `s3:/bucket/x`.
    pub fn parse(text: &OsStr, settings: &StoreSettings) -> Result<Self, StorageError> {
        let Some(address) = url_of(text)? else { return Ok(Self::from(Path::new(text))) };
        #[cfg(feature = "stores")]
        return Self::of_url(address, settings);
        #[cfg(not(feature = "stores"))]
        {
            let _ = settings;
            let reason = "this program was built without object stores; give a path, or build it with its default features";
            Err(refused(address, reason))
        }
    }

    /// Parses a local file or folder given by a user: a path, or `file:///path`.
    ///
    /// # Errors
    ///
    /// [`StorageError::Settings`] for other URLs, and as for [`parse`](Self::parse).
    pub fn parse_local(text: &OsStr) -> Result<PathBuf, StorageError> {
        // Omit the rest of the URL because it may contain a password.
        let not_local = |scheme: &str| refused(&format!("{scheme}://..."), "expected a path of this machine");
        if let Some((scheme, _)) = url_of(text)?.and_then(|address| address.split_once(':'))
            && !scheme.eq_ignore_ascii_case("file")
        {
            return Err(not_local(scheme));
        }
        let place = Self::parse(text, &StoreSettings::default())?;
        place.as_folder().map(Path::to_path_buf).ok_or_else(|| not_local("file"))
    }

    /// Returns the location called `name` in this directory or below this prefix, without accessing it.
    ///
    /// # Errors
    ///
    /// [`StorageError::InvalidInput`] unless `name` consists of letters, digits, `.`, `_` and `-` and does not start
    /// with `.`. This rule prevents a name from leading out of this location.
    pub fn child(&self, name: &str) -> Result<Self, StorageError> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if name.is_empty() || name.starts_with('.') || !plain {
            let what = format!("{name:?} is not a valid name for a location within another");
            return Err(StorageError::InvalidInput { what });
        }
        Ok(Self(match &self.0 {
            Medium::Folder(path) => Medium::Folder(path.join(name)),
            Medium::Store(place) => {
                let (store, settings) = (Arc::new(place.store.child(name)), place.settings.clone());
                Medium::Store(StorePlace { store, settings })
            }
        }))
    }

    /// Returns the directory, or `None` for an object store.
    #[must_use]
    pub fn as_folder(&self) -> Option<&Path> {
        match &self.0 {
            Medium::Folder(path) => Some(path),
            Medium::Store(_) => None,
        }
    }

    /// Returns this location in the form that errors use.
    #[must_use]
    pub fn place(&self) -> Place {
        match &self.0 {
            Medium::Folder(path) => path.into(),
            Medium::Store(place) => place.store.place(),
        }
    }

    /// Opens the shard at this location without its journal record, to inspect the shard.
    ///
    /// # Errors
    ///
    /// As for [`ShardReader::open_any`], and store errors.
    pub fn open_shard(&self) -> Result<ShardReader, StorageError> {
        match &self.0 {
            Medium::Folder(path) => ShardReader::open_any(path),
            Medium::Store(place) => shard::open_lone_object(&place.store, &*place.open_cache()?),
        }
    }
}

/// Returns the text if it is a URL, or `None` for a path.
///
/// Refuses text such as `~/x` or `s3:/x`, because as a path it would create a folder called `~` or `s3:`.
fn url_of(text: &OsStr) -> Result<Option<&str>, StorageError> {
    if text.is_empty() {
        return Err(refused("an empty location", "give a directory or a URL"));
    }
    let Some(text) = text.to_str() else { return Ok(None) };
    if text.starts_with('~') {
        let reason =
            "only a shell expands ~, and only at the start of an argument; write the path in full, or";
        return Err(refused(text, format!("{reason} ./{text} for a folder of that name")));
    }
    if text.contains("://") {
        return Ok(Some(text));
    }
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(None) };
    if scheme.eq_ignore_ascii_case("file") && rest.starts_with('/') {
        return Ok(Some(text));
    }
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    let within = rest.trim_start_matches('/');
    let form = match scheme.to_ascii_lowercase().as_str() {
        "file" => format!("file:///{within}"),
        "s3" => format!("s3://{within}"),
        _ if is_scheme && rest.starts_with('/') => "a path or a URL".to_owned(),
        _ => return Ok(None),
    };
    if rest.contains('@') {
        // The text before the @ may contain a password.
        return Err(refused(&format!("{scheme}:..."), "expected s3://BUCKET/PREFIX or a path"));
    }
    Err(refused(text, format!("expected {form}, or ./{text} for a folder of that name")))
}

impl fmt::Display for Location {
    /// Writes the location as the user gave it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place().fmt(f)
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self(Medium::Folder(path.to_path_buf()))
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
