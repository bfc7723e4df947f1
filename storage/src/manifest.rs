//! The manifest: identity and parameters of a run. Written once; its presence makes a directory a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::crash_points::crash_point;
use crate::names::{JOURNAL, MANIFEST, SHARDS};
use crate::publish::{TempFile, list, sync_folder};
use crate::store::{Created, Store};
use crate::{FORMAT_VERSION, Place, RunId, StorageError, sealed};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) format_version: u32,
    pub(crate) run_id: RunId,
    pub(crate) created_by: String,
    pub(crate) params: Value,
}

/// Reason why a place is not a run.
const MISSING: &str = "it has no manifest.json";

/// Name and version of this program.
pub(crate) const PROGRAM: &str = concat!("exact2048 ", env!("CARGO_PKG_VERSION"));

impl Manifest {
    /// Creates the manifest of a new run with a random id.
    fn draw(params: &Value) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            run_id: RunId::random(),
            created_by: PROGRAM.to_owned(),
            params: params.clone(),
        }
    }

    /// Returns the bytes of the manifest file.
    fn seal(&self) -> Result<Vec<u8>, StorageError> {
        // Indent the JSON, because people read the manifest more often than programs do.
        sealed::seal("the manifest", &format!("{:#}", json!(self)))
    }

    /// Publishes the manifest of a new run in `folder`, with a new run id. Only the holder of the lock calls this
    /// function.
    pub(crate) fn publish(folder: &Path, params: &Value) -> Result<Self, StorageError> {
        let manifest = Self::draw(params);
        let mut temp = TempFile::create(folder, MANIFEST)?;
        temp.write(&manifest.seal()?)?;
        temp.sync()?;
        crash_point!("manifest.synced");
        // Never replace a manifest. If the lock is not enforced between machines, one of two creations fails here.
        temp.link_to(&folder.join(MANIFEST)).map_err(|error| match error {
            StorageError::Conflict { .. } => StorageError::AlreadyARun { place: folder.into() },
            other => other,
        })?;
        crash_point!("manifest.linked");
        drop(temp); // removes the temporary name
        sync_folder(folder)?;
        Ok(manifest)
    }

    /// Publishes the manifest of a new run in a store. If two processes do so at once, one of them fails.
    pub(crate) fn publish_in_store(store: &Store, params: &Value) -> Result<Self, StorageError> {
        let manifest = Self::draw(params);
        match store.create(MANIFEST, &manifest.seal()?)? {
            Created::Here => {
                crash_point!("store.manifest_created");
                Ok(manifest)
            }
            Created::Taken(_) => Err(StorageError::AlreadyARun { place: store.place() }),
        }
    }

    /// Reads the manifest of the run in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self, StorageError> {
        let not_a_run = |reason| StorageError::NotARun { place: folder.into(), reason };
        if !folder.try_exists().map_err(|e| StorageError::read(folder, e))? {
            return Err(not_a_run("it does not exist"));
        }
        if !folder.is_dir() {
            return Err(StorageError::NotADirectory { place: folder.into() });
        }
        let file = folder.join(MANIFEST);
        match sealed::read(&file)? {
            Some(contents) => Self::parse(file.into(), &contents),
            None => match find_record(folder)? {
                Some(found) => {
                    Err(StorageError::ManifestMissing { place: folder.into(), found: found.into() })
                }
                None => Err(not_a_run(MISSING)),
            },
        }
    }

    /// Reads the manifest of the run in a store.
    pub(crate) fn read_in_store(store: &Store) -> Result<Self, StorageError> {
        if let Some(contents) = store.read(MANIFEST)? {
            return Self::parse(store.place_of(MANIFEST), &contents);
        }
        let place = store.place();
        for folder in [JOURNAL, SHARDS] {
            if let Some(found) = store.list(Some(folder), Some(1))?.first() {
                return Err(StorageError::ManifestMissing { place, found: store.place_of(&found.name) });
            }
        }
        Err(StorageError::NotARun { place, reason: MISSING })
    }

    fn parse(file: Place, contents: &[u8]) -> Result<Self, StorageError> {
        let fields =
            |e: serde_json::Error| StorageError::damaged(&file, 0, "the fields of a manifest", e.to_string());
        let body: Value = sealed::parse(&file, sealed::unseal(&file, contents)?, fields)?;
        // Check the version first, because every other field may differ in a newer version.
        let version = body.get("format_version").and_then(Value::as_u64).and_then(|v| u32::try_from(v).ok());
        match version {
            Some(found) if found > FORMAT_VERSION => {
                Err(StorageError::NewerVersion { file, found, supported: FORMAT_VERSION })
            }
            Some(1..=FORMAT_VERSION) => serde_json::from_value(body).map_err(fields),
            _ => {
                let found = body.get("format_version").map_or_else(|| "none".to_owned(), Value::to_string);
                Err(StorageError::damaged(
                    &file,
                    0,
                    format!("a format version of 1 to {FORMAT_VERSION}"),
                    found,
                ))
            }
        }
    }
}

/// Returns a file of `folder` that only a run has: a journal record or a shard.
pub(crate) fn find_record(folder: &Path) -> Result<Option<PathBuf>, StorageError> {
    for (folder, suffix) in [(folder.join(JOURNAL), ".json"), (folder.join(SHARDS), ".shard")] {
        if folder.is_dir()
            && let Some(found) = list(&folder)?.into_iter().find(|entry| entry.name.ends_with(suffix))
        {
            return Ok(Some(found.path));
        }
    }
    Ok(None)
}
