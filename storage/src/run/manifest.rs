//! The manifest: what a run is. Written once; its presence makes a directory a run.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::MANIFEST;
use crate::publish::{TempFile, crash_point, sync_folder};
use crate::{FORMAT_VERSION, RunId, StorageError, sealed};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    format_version: u32,
    pub(super) run_id: RunId,
    pub(super) created_by: String,
    pub(super) params: Value,
}

impl Manifest {
    /// Draws a run id and publishes the manifest of a new run in `folder`. Only for the holder of the lock.
    pub(super) fn publish(folder: &Path, params: &Value) -> Result<Self, StorageError> {
        let manifest = Self {
            format_version: FORMAT_VERSION,
            run_id: RunId::random(),
            created_by: concat!("exact2048 ", env!("CARGO_PKG_VERSION")).to_owned(),
            params: params.clone(),
        };
        let body = json!(manifest);
        let mut temp = TempFile::create(folder, MANIFEST)?;
        temp.write(&sealed::seal("the manifest", &body)?)?;
        temp.sync()?;
        crash_point!("manifest.synced");
        temp.rename_to(&folder.join(MANIFEST))?;
        crash_point!("manifest.renamed");
        sync_folder(folder)?;
        Ok(manifest)
    }

    /// Reads the manifest of the run in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, StorageError> {
        let not_a_run = |reason| StorageError::NotARun { path: folder.to_path_buf(), reason };
        if !folder.try_exists().map_err(|e| StorageError::read(folder, e))? {
            return Err(not_a_run("it does not exist"));
        }
        if !folder.is_dir() {
            return Err(not_a_run("it is not a directory"));
        }
        let file = folder.join(MANIFEST);
        let body = sealed::read(&file)?.ok_or_else(|| not_a_run("it has no manifest.json"))?;
        // The version first: in a newer one every other field may be different.
        let version = body.get("format_version").and_then(Value::as_u64).and_then(|v| u32::try_from(v).ok());
        match version {
            Some(found) if found > FORMAT_VERSION => {
                Err(StorageError::NewerVersion { file, found, supported: FORMAT_VERSION })
            }
            Some(FORMAT_VERSION) => serde_json::from_value(body)
                .map_err(|e| StorageError::damaged(&file, 0, "the fields of a manifest", e.to_string())),
            _ => {
                let found = body.get("format_version").map_or_else(|| "none".to_owned(), Value::to_string);
                Err(StorageError::damaged(&file, 0, format!("format version {FORMAT_VERSION}"), found))
            }
        }
    }
}
