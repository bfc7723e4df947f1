//! Options for the location of a run, shared by all commands.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use exact2048_storage::{Location, StorageError, StoreSettings};

use crate::{Failure, display};

/// Time that read-only commands wait for a store that has not answered yet.
const SHORT_PATIENCE: Duration = Duration::from_secs(5);

/// Time that a server waits for a store that does not answer.
#[cfg(feature = "net")]
const SERVED_PATIENCE: Duration = Duration::from_secs(10);

/// Options for the location of one run.
#[derive(clap::Args, Debug)]
pub struct RunPlace {
    /// Use the run at this location: a directory, file:///DIR, or s3://BUCKET/PREFIX (keys from the environment)
    #[arg(long, value_name = "DIR|URL")]
    run: OsString,
    #[command(flatten)]
    store: StoreOptions,
}

impl RunPlace {
    /// The location of the run.
    ///
    /// # Errors
    ///
    /// A usage error if the text names no location.
    pub fn location(&self) -> anyhow::Result<Location> {
        self.store.locate(&self.run)
    }

    /// The location for a read-only command, see [`StoreOptions::locate_to_read`].
    pub fn location_to_read(&self) -> anyhow::Result<Location> {
        self.store.locate_to_read(&self.run)
    }

    /// The location as the user typed it.
    pub fn given(&self) -> &OsStr {
        &self.run
    }
}

/// Options for runs in stores.
#[derive(clap::Args, Debug)]
pub struct StoreOptions {
    /// Cache shards of a run in a store in this folder [default: exact2048 in the user's cache folder]
    #[arg(long, value_name = "DIR", value_parser = crate::parsing::local_path())]
    cache: Option<PathBuf>,
    /// Limit the total size of the cached shards [default: 32GiB]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    cache_size: Option<ByteSize>,
}

impl StoreOptions {
    /// The settings that the options describe.
    pub fn settings(&self) -> StoreSettings {
        StoreSettings {
            cache_folder: self.cache.clone(),
            cache_bytes: self.cache_size.map(|size| size.as_u64()),
            on_wait: Some(report_wait),
            ..StoreSettings::default()
        }
    }

    /// The location that a path or URL names.
    ///
    /// # Errors
    ///
    /// A usage error if the text names no location.
    pub fn locate(&self, text: &OsString) -> anyhow::Result<Location> {
        locate(text, &self.settings())
    }

    /// The location for a read-only command. The command waits only briefly for a store, because the user can repeat it at
    /// once.
    pub fn locate_to_read(&self, text: &OsString) -> anyhow::Result<Location> {
        locate(text, &StoreSettings { first_patience: Some(SHORT_PATIENCE), ..self.settings() })
    }

    /// The location for a server. The server waits no longer for a store than a request may take, because clients retry.
    #[cfg(feature = "net")]
    pub fn locate_to_serve(&self, text: &OsString) -> anyhow::Result<Location> {
        let patience = Some(SERVED_PATIENCE);
        locate(text, &StoreSettings { first_patience: Some(SHORT_PATIENCE), patience, ..self.settings() })
    }
}

fn locate(text: &OsString, settings: &StoreSettings) -> anyhow::Result<Location> {
    Location::parse(text, settings).map_err(|error| match error {
        StorageError::Settings { .. } => Failure::usage(error.to_string()).into(),
        error => error.into(),
    })
}

/// Runs with their names, for commands that accept several runs.
///
/// # Errors
///
/// A usage error if two runs have the same name.
pub fn named(runs: &[OsString]) -> anyhow::Result<Vec<(String, OsString)>> {
    let mut named: Vec<(String, OsString)> = Vec::new();
    for given in runs {
        let (name, place) = name_of(given);
        if named.iter().any(|(other, _)| *other == name) {
            let message =
                format!("two runs have the name {name}; give one of them another name with --run NAME=DIR");
            return Err(Failure::usage(message).into());
        }
        named.push((name, place));
    }
    Ok(named)
}

/// The name and location in `NAME=DIR`. A run without a name takes the name of its folder.
fn name_of(given: &OsStr) -> (String, OsString) {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if let Some((name, place)) = given.to_str().and_then(|text| text.split_once('='))
        && is_name(name)
    {
        return (name.to_owned(), place.into());
    }
    let folder = Path::new(given).file_name().unwrap_or(given);
    (folder.to_string_lossy().into_owned(), given.to_owned())
}

/// Reports a wait for a store in the log of a server, or otherwise on stderr.
fn report_wait(words: &str) {
    #[cfg(feature = "net")]
    if tracing::dispatcher::has_been_set() {
        tracing::warn!("{words}");
        return;
    }
    display::print_note(words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_names() {
        for (given, name, place) in [
            ("runs/3x3", "3x3", "runs/3x3"),
            ("runs/3x3/", "3x3", "runs/3x3/"),
            ("small=runs/2x2", "small", "runs/2x2"),
            ("runs/a=b", "a=b", "runs/a=b"),
            ("./a=b", "a=b", "./a=b"),
            ("x=s3://bucket/3x3", "x", "s3://bucket/3x3"),
            ("s3://bucket/3x3", "3x3", "s3://bucket/3x3"),
            ("=x", "=x", "=x"),
        ] {
            assert_eq!(name_of(OsStr::new(given)), (name.to_owned(), OsString::from(place)), "{given}");
        }
    }
}
