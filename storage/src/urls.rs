//! Locations given as URLs: directories and prefixes of object stores.

use std::sync::Arc;

use object_store::ObjectStore;
use url::Url;

use crate::error::refused;
use crate::location::{Medium, StorePlace};
use crate::store::settings::S3Settings;
use crate::store::{FIRST_PATIENCE, PATIENCE, Patience, Store, s3};
use crate::{Location, StorageError, StoreSettings};

impl Location {
    /// Parses `file:///path` or `s3://bucket/prefix`.
    pub(crate) fn of_url(address: &str, settings: &StoreSettings) -> Result<Self, StorageError> {
        let url = Url::parse(address).map_err(|e| refused(address, e.to_string()))?;
        // Check this first, because the messages below repeat the address.
        if !url.username().is_empty() || url.password().is_some() {
            let reason = "it contains a user name or password; set the keys in the environment instead";
            return Err(refused(&format!("{}://...", url.scheme()), reason));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused(address, "'?' and '#' have no meaning here; write %3F and %23"));
        }
        match url.scheme() {
            "file" => {
                let path = url.to_file_path();
                path.map(|path| Self::from(&*path)).map_err(|()| {
                    refused(address, "expected an absolute path of this machine, as in file:///path")
                })
            }
            "s3" => Self::s3(address, &url, settings),
            other => {
                Err(refused(address, format!("{other}:// is not supported; use a path, file:// or s3://")))
            }
        }
    }

    fn s3(address: &str, url: &Url, settings: &StoreSettings) -> Result<Self, StorageError> {
        let bucket = url.host_str().unwrap_or_default();
        if bucket.is_empty() || url.port().is_some() {
            return Err(refused(address, "expected s3://BUCKET/PREFIX"));
        }
        let opened = S3Settings::of_environment().and_then(|settings| s3::open(bucket, &settings));
        let objects = opened.map_err(|reason| refused(address, reason))?;
        Self::objects(objects, address, url.path(), settings)
    }

    /// Returns the location of a prefix in an open store. `url` is the URL of the prefix, for messages and
    /// [`url`](Self::url); `prefix` is percent-encoded.
    ///
    /// # Errors
    ///
    /// [`StorageError::Settings`] if the prefix is invalid, for example because of an empty component.
    pub fn objects(
        objects: Arc<dyn ObjectStore>,
        url: &str,
        prefix: &str,
        settings: &StoreSettings,
    ) -> Result<Self, StorageError> {
        let prefix = object_store::path::Path::from_url_path(prefix);
        let prefix = prefix.map_err(|e| refused(url, e.to_string()))?;
        let patience = Patience {
            limit: settings.patience.unwrap_or(PATIENCE),
            first: settings.first_patience.unwrap_or(FIRST_PATIENCE),
            on_wait: settings.on_wait,
        };
        let store = Arc::new(Store::new(objects, url, prefix, patience));
        Ok(Self(Medium::Store(StorePlace { store, settings: settings.clone() })))
    }

    /// Returns the URL of this location.
    ///
    /// Any process that shares the file system or the store can [`parse`](Self::parse) it.
    ///
    /// # Errors
    ///
    /// [`StorageError::Settings`] for a path that has no URL.
    pub fn url(&self) -> Result<String, StorageError> {
        match &self.0 {
            Medium::Folder(path) => {
                let absolute = std::path::absolute(path).map_err(|e| StorageError::read(path, e))?;
                let url = Url::from_file_path(&absolute);
                let no_url = |()| refused(&path.display().to_string(), "the path has no URL");
                url.map(String::from).map_err(no_url)
            }
            Medium::Store(place) => Ok(place.store.url().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

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
            ("file:/shared/dir", "/shared/dir"),
            ("FILE:/shared/dir", "/shared/dir"),
            ("./~/x", "./~/x"),
            ("./s3:/x", "./s3:/x"),
            ("runs/~/x", "runs/~/x"),
            ("3x3:old", "3x3:old"),
            ("a b:/x", "a b:/x"),
        ] {
            assert_eq!(parse(text).unwrap().as_folder(), Some(Path::new(path)), "{text}");
            assert_eq!(Location::parse_local(OsStr::new(text)).unwrap(), Path::new(path), "{text}");
        }
    }

    /// Each text would otherwise create a folder called `~` or `s3:`.
    #[test]
    fn texts_that_only_look_like_paths_are_refused_with_the_right_form() {
        for (text, form) in [
            ("~", "./~ for"),
            ("~/runs/3x3", "./~/runs/3x3 for"),
            ("~user/x", "./~user/x for"),
            ("s3:/bucket/x", "expected s3://bucket/x, or ./s3:/bucket/x"),
            ("s3:bucket/x", "expected s3://bucket/x"),
            ("S3:/bucket/x", "expected s3://bucket/x"),
            ("file:x", "expected file:///x"),
            ("gs:/bucket/x", "expected a path or a URL, or ./gs:/bucket/x"),
            ("s3:/key:hush@bucket/x", "s3:... cannot be used"),
        ] {
            for error in [parse(text).unwrap_err(), Location::parse_local(OsStr::new(text)).unwrap_err()] {
                assert!(matches!(error, StorageError::Settings { .. }), "{text}: {error}");
                assert!(error.to_string().contains(form), "{text}: {error}");
            }
        }
        for text in ["s3://bucket/x", "http://user:hush@host/x"] {
            let error = Location::parse_local(OsStr::new(text)).unwrap_err().to_string();
            assert!(error.contains("expected a path of this machine") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn children_of_a_location_have_the_right_path_and_url() {
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
        let Medium::Store(place) = &child.0 else { panic!("a store") };
        assert_eq!(place.store.prefix().as_ref(), "all runs/3x3");
    }

    #[test]
    fn an_empty_location_is_refused() {
        assert!(matches!(parse(""), Err(StorageError::Settings { .. })));
    }

    #[test]
    fn other_urls_are_refused_without_repeating_secrets() {
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
