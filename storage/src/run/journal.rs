//! The journal: numbered records, each in a file of its own that is created once and never changed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::publish::{TempFile, crash_point, list, sync_folder};
use crate::{RunId, StorageError, sealed};

/// A record as it is in its file: it knows which one it is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbered {
    run_id: RunId,
    sequence: u64,
    record: Value,
}

/// The journal of a run, all of it in memory.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    run: RunId,
    records: Vec<Value>,
    /// An append failed: whether its record is on disk is uncertain.
    failed: bool,
}

impl Journal {
    /// Reads all records. Another process may append at the same time.
    pub(super) fn replay(folder: PathBuf, run: RunId) -> Result<Self, StorageError> {
        let mut journal = Self { folder, run, records: Vec::new(), failed: false };
        loop {
            while let Some(record) = journal.read_next()? {
                journal.records.push(record);
            }
            // Whatever the list shows was created after all records before it. So if the next one is still
            // missing now, it is not because it came later.
            let last = journal.last_on_disk()?;
            if last.is_none_or(|last| last < journal.next()) {
                return Ok(journal);
            }
            match journal.read_next()? {
                Some(record) => journal.records.push(record),
                None => {
                    let expected =
                        format!("a record, as there are records up to {}", last.unwrap_or_default());
                    return Err(StorageError::damaged(&journal.next_path(), 0, expected, "no file"));
                }
            }
        }
    }

    pub(super) fn records(&self) -> &[Value] {
        &self.records
    }

    /// Publishes the next record and returns its number. Only for the holder of the lock.
    pub(super) fn append(&mut self, record: &Value) -> Result<u64, StorageError> {
        if self.failed {
            return Err(StorageError::EarlierFailure { path: self.folder.clone() });
        }
        let sequence = self.next();
        let numbered = Numbered { run_id: self.run, sequence, record: record.clone() };
        let sealed = sealed::seal("a journal record", &json!(numbered))?;
        self.failed = true;
        publish(&self.folder, &file_name(sequence), &sealed)?;
        self.failed = false;
        self.records.push(numbered.record);
        Ok(sequence)
    }

    /// The number of the next record.
    fn next(&self) -> u64 {
        self.records.len() as u64
    }

    fn next_path(&self) -> PathBuf {
        self.folder.join(file_name(self.next()))
    }

    /// The next record, `None` if there is no file of that name.
    fn read_next(&self) -> Result<Option<Value>, StorageError> {
        let file = self.next_path();
        let Some(body) = sealed::read(&file)? else { return Ok(None) };
        let numbered: Numbered = serde_json::from_value(body)
            .map_err(|e| StorageError::damaged(&file, 0, "the fields of a journal record", e.to_string()))?;
        let foreign = |field, expected: String, found: String| {
            Err(StorageError::Foreign { file: file.clone(), field, expected, found })
        };
        if numbered.run_id != self.run {
            return foreign("run id", self.run.to_string(), numbered.run_id.to_string());
        }
        if numbered.sequence != self.next() {
            return foreign("sequence", self.next().to_string(), numbered.sequence.to_string());
        }
        Ok(Some(numbered.record))
    }

    /// The highest number that a file in the folder has. Files with other names are none of the journal's.
    fn last_on_disk(&self) -> Result<Option<u64>, StorageError> {
        Ok(list(&self.folder)?.iter().filter_map(|entry| number_of(&entry.name)).max())
    }
}

fn file_name(sequence: u64) -> String {
    format!("{sequence:06}.json")
}

fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".json")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// Creates the file `name` with these contents, all of it or nothing, and never over an existing one.
fn publish(folder: &Path, name: &str, contents: &[u8]) -> Result<(), StorageError> {
    let mut temp = TempFile::create(folder, name)?;
    temp.write(contents)?;
    crash_point!("journal.before_sync");
    temp.sync()?;
    crash_point!("journal.synced");
    temp.link_to(&folder.join(name))?;
    crash_point!("journal.linked");
    drop(temp); // removes the temporary name
    sync_folder(folder)?;
    crash_point!("journal.folder_synced");
    Ok(())
}
