//! The journal: numbered records, each in a file or object of its own that is created once and never changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::JOURNAL;
use super::opening::Opening;
use crate::publish::{TempFile, crash_point, list, sync_folder};
use crate::store::{Created, Store};
use crate::{RunId, StorageError, sealed};

/// How often opening is tried while others append.
const OPENINGS: u32 = 100;

/// A record as it is in its file: it knows which one it is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbered {
    run_id: RunId,
    sequence: u64,
    record: Value,
}

/// An opening record as it is in its object.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberedOpening {
    run_id: RunId,
    sequence: u64,
    opened: Opening,
}

/// What a file of the journal can hold.
enum Entry {
    Record(Value),
    Opening(Opening),
}

/// Where the files are.
#[derive(Debug)]
enum Home {
    Folder(PathBuf),
    Store(Arc<Store>),
}

/// The journal of a run, all of it in memory.
#[derive(Debug)]
pub(super) struct Journal {
    home: Home,
    run: RunId,
    /// The records of the solver, without those of openings.
    records: Vec<Value>,
    /// The number of each of them.
    numbers: Vec<u64>,
    /// The number of the next record of any kind.
    next: u64,
    /// An append failed: whether its record is there is uncertain.
    failed: bool,
}

impl Journal {
    /// Reads all records of a journal in a folder. Another process may append at the same time.
    pub(super) fn replay(folder: PathBuf, run: RunId) -> Result<Self, StorageError> {
        let mut journal = Self::empty(Home::Folder(folder.clone()), run);
        loop {
            while let Some(body) = sealed::read(&journal.next_path())? {
                journal.take(body)?;
            }
            // Whatever the list shows was created after all records before it. So if the next one is still
            // missing now, it is not because it came later.
            let last = list(&folder)?.iter().filter_map(|entry| number_of(&entry.name)).max();
            if last.is_none_or(|last| last < journal.next) {
                return Ok(journal);
            }
            match sealed::read(&journal.next_path())? {
                Some(body) => journal.take(body)?,
                None => return Err(journal.gap(last.unwrap_or_default())),
            }
        }
    }

    /// The same for a store: one list, and all records at once.
    pub(super) fn replay_store(store: Arc<Store>, run: RunId) -> Result<Self, StorageError> {
        let mut journal = Self::empty(Home::Store(Arc::clone(&store)), run);
        let listed = store.list(Some(JOURNAL), None)?;
        let number = |name: &str| number_of(name.strip_prefix(JOURNAL)?.strip_prefix('/')?);
        let Some(last) = listed.iter().filter_map(|object| number(&object.name)).max() else {
            return Ok(journal);
        };
        // Each record was created after all records before it: those that the list misses are missing.
        if listed.len() as u64 <= last {
            return Err(journal.first_gap(listed.iter().filter_map(|object| number(&object.name)), last));
        }
        for contents in store.read_all((0..=last).map(object_name))? {
            match contents {
                Some(contents) => journal.take(sealed::unseal(&journal.next_path(), &contents)?)?,
                None => return Err(journal.gap(last)),
            }
        }
        Ok(journal)
    }

    fn empty(home: Home, run: RunId) -> Self {
        Self { home, run, records: Vec::new(), numbers: Vec::new(), next: 0, failed: false }
    }

    pub(super) fn records(&self) -> &[Value] {
        &self.records
    }

    /// The number of the record at this place of [`records`](Self::records).
    pub(super) fn number(&self, place: usize) -> Option<u64> {
        self.numbers.get(place).copied()
    }

    /// Reads the records that were appended since. Costs a look for each of them and one for the next.
    pub(super) fn catch_up(&mut self) -> Result<(), StorageError> {
        loop {
            let path = self.next_path();
            let body = match &self.home {
                Home::Folder(_) => sealed::read(&path)?,
                Home::Store(store) => match store.read(&object_name(self.next))? {
                    Some(contents) => Some(sealed::unseal(&path, &contents)?),
                    None => None,
                },
            };
            match body {
                Some(body) => self.take(body)?,
                None => return Ok(()),
            }
        }
    }

    /// Publishes the next record and returns its number. Only for the writer.
    pub(super) fn append(&mut self, record: &Value) -> Result<u64, StorageError> {
        if self.failed {
            return Err(StorageError::EarlierFailure { path: self.path().to_path_buf() });
        }
        let sequence = self.next;
        let numbered = Numbered { run_id: self.run, sequence, record: record.clone() };
        let sealed = sealed::seal("a journal record", &json!(numbered))?;
        self.failed = true;
        match &self.home {
            Home::Folder(folder) => match publish(folder, &file_name(sequence), &sealed) {
                Err(conflict @ StorageError::Conflict { .. }) => return Err(self.conflict(conflict)),
                published => published?,
            },
            Home::Store(store) => {
                crash_point!("store.before_record");
                if let Created::Taken(found) = store.create(&object_name(sequence), &sealed)? {
                    return Err(self.taken_over(&found));
                }
                crash_point!("store.record_created");
            }
        }
        self.failed = false;
        self.push(Entry::Record(numbered.record));
        Ok(sequence)
    }

    /// Requires that nobody has written what would be the next record of this one.
    pub(super) fn confirm(&self) -> Result<(), StorageError> {
        let next = self.next_path();
        match &self.home {
            Home::Folder(_) => match sealed::read(&next)? {
                None => Ok(()),
                Some(_) => Err(self.conflict(StorageError::Conflict { file: next })),
            },
            Home::Store(store) => match store.read(&object_name(self.next))? {
                None => Ok(()),
                Some(found) => Err(self.taken_over(&found)),
            },
        }
    }

    /// Appends an opening record and returns its number: from now on no earlier writer can append.
    pub(super) fn open(&mut self) -> Result<u64, StorageError> {
        let opened = Opening::by_this_process();
        for _ in 0..OPENINGS {
            let sequence = self.next;
            let numbered = NumberedOpening { run_id: self.run, sequence, opened: opened.clone() };
            let sealed = sealed::seal("a journal record", &json!(numbered))?;
            // What another writer appended since the journal was read is a part of it now.
            let found = match &self.home {
                Home::Folder(folder) => match publish(folder, &file_name(sequence), &sealed) {
                    Ok(()) => None,
                    Err(StorageError::Conflict { .. }) => sealed::read(&self.next_path())?,
                    Err(error) => return Err(error),
                },
                Home::Store(store) => match store.create(&object_name(sequence), &sealed)? {
                    Created::Here => None,
                    Created::Taken(found) => Some(sealed::unseal(&self.next_path(), &found)?),
                },
            };
            match found {
                Some(found) => self.take(found)?,
                None => {
                    self.push(Entry::Opening(opened));
                    crash_point!("store.opened");
                    return Ok(sequence);
                }
            }
        }
        let by = "others, again and again while it was opened".to_owned();
        Err(StorageError::TakenOver { place: self.path().to_path_buf(), by })
    }

    /// Adds what the file of the next number holds.
    fn take(&mut self, body: Value) -> Result<(), StorageError> {
        let file = self.next_path();
        let entry = parse(&file, body, self.run, self.next)?;
        self.push(entry);
        Ok(())
    }

    fn push(&mut self, entry: Entry) {
        if let Entry::Record(record) = entry {
            self.records.push(record);
            self.numbers.push(self.next);
        }
        self.next += 1;
    }

    fn path(&self) -> &Path {
        match &self.home {
            Home::Folder(folder) => folder,
            Home::Store(store) => store.url(),
        }
    }

    fn next_path(&self) -> PathBuf {
        match &self.home {
            Home::Folder(folder) => folder.join(file_name(self.next)),
            Home::Store(store) => store.name(&object_name(self.next)),
        }
    }

    /// The next record is not there, although a later one is.
    fn gap(&self, last: u64) -> StorageError {
        let expected = format!("a record, as there are records up to {last}");
        StorageError::damaged(&self.next_path(), 0, expected, "no file")
    }

    /// The same for the first number up to `last` that is not among those found.
    fn first_gap(&mut self, found: impl Iterator<Item = u64>, last: u64) -> StorageError {
        let found: std::collections::HashSet<u64> = found.collect();
        self.next = (0..=last).find(|number| !found.contains(number)).unwrap_or(last);
        self.gap(last)
    }

    /// Another process wrote the record that this one was to write.
    fn taken_over(&self, found: &[u8]) -> StorageError {
        let file = self.next_path();
        let by = match sealed::unseal(&file, found).ok().and_then(|body| self.opening_in(body)) {
            Some(opening) => opening.to_string(),
            None => format!("another process, which wrote {}", file.display()),
        };
        StorageError::TakenOver { place: self.path().to_path_buf(), by }
    }

    /// The same in a folder, where it can only be so if an opening record says it: elsewhere there is the lock.
    fn conflict(&self, conflict: StorageError) -> StorageError {
        let found = sealed::read(&self.next_path()).ok().flatten();
        match found.and_then(|body| self.opening_in(body)) {
            Some(opening) => {
                let (place, by) = (self.path().to_path_buf(), opening.to_string());
                StorageError::TakenOver { place, by }
            }
            None => conflict,
        }
    }

    /// The opening record that this is as the next in the journal, if it is one.
    fn opening_in(&self, body: Value) -> Option<Opening> {
        match parse(&self.next_path(), body, self.run, self.next) {
            Ok(Entry::Opening(opening)) => Some(opening),
            Ok(Entry::Record(_)) | Err(_) => None,
        }
    }
}

/// What a record of this number holds.
fn parse(file: &Path, body: Value, run: RunId, number: u64) -> Result<Entry, StorageError> {
    let fields = |e: serde_json::Error| {
        StorageError::damaged(file, 0, "the fields of a journal record", e.to_string())
    };
    let (run_id, sequence, entry) = if body.get("opened").is_some() {
        let opening: NumberedOpening = serde_json::from_value(body).map_err(fields)?;
        (opening.run_id, opening.sequence, Entry::Opening(opening.opened))
    } else {
        let numbered: Numbered = serde_json::from_value(body).map_err(fields)?;
        (numbered.run_id, numbered.sequence, Entry::Record(numbered.record))
    };
    let foreign = |field, expected: String, found: String| {
        Err(StorageError::Foreign { file: file.to_path_buf(), field, expected, found })
    };
    if run_id != run {
        return foreign("run id", run.to_string(), run_id.to_string());
    }
    if sequence != number {
        return foreign("sequence", number.to_string(), sequence.to_string());
    }
    Ok(entry)
}

fn file_name(sequence: u64) -> String {
    format!("{sequence:06}.json")
}

fn object_name(sequence: u64) -> String {
    format!("{JOURNAL}/{}", file_name(sequence))
}

/// The number of the record in a file of this name. Files with other names are none of the journal's.
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
