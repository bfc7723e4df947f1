//! The options that say where a run is: the same for every command.

use std::ffi::OsString;
use std::path::PathBuf;

use bytesize::ByteSize;
use exact2048_storage::{Location, StorageError, StoreSettings};

use crate::Failure;

/// Where the run is.
#[derive(clap::Args, Debug)]
pub struct RunPlace {
    /// Where the run is: a directory, file:///DIR, or s3://BUCKET/PREFIX (keys from the environment)
    #[arg(long, value_name = "DIR|URL")]
    run: OsString,
    #[command(flatten)]
    store: StoreOptions,
}

impl RunPlace {
    /// The location; wrong usage where it is none.
    pub fn location(&self) -> anyhow::Result<Location> {
        self.store.locate(&self.run)
    }

    /// As it was given, for people.
    pub fn text(&self) -> String {
        self.run.to_string_lossy().into_owned()
    }
}

/// How runs in stores are used.
#[derive(clap::Args, Debug)]
pub struct StoreOptions {
    /// Folder for copies of shards of a run in a store [default: exact2048 in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Most that the copies in the cache may take together [default: 32GiB]
    #[arg(long, value_name = "SIZE")]
    cache_size: Option<ByteSize>,
}

impl StoreOptions {
    /// What the options stand for.
    pub fn settings(&self) -> StoreSettings {
        StoreSettings {
            cache_folder: self.cache.clone(),
            cache_bytes: self.cache_size.map(|size| size.as_u64()),
            ..StoreSettings::default()
        }
    }

    /// The location that a path or URL names; wrong usage where it names none.
    pub fn locate(&self, text: &OsString) -> anyhow::Result<Location> {
        Location::parse(text, &self.settings()).map_err(|error| match error {
            StorageError::Settings { .. } => Failure::usage(error.to_string()).into(),
            error => error.into(),
        })
    }
}
