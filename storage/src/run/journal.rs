//! The journal: numbered records. Each record has its own file or object, which is created once and never changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::opening::Opening;
use crate::allowance::{Allowance, file_cost};
use crate::crash_points::crash_point;
use crate::error::Remedy;
use crate::names::JOURNAL;
use crate::publish::{TempFile, list_if_there, sync_folder};
use crate::store::{Created, Store};
use crate::{Place, RunId, StorageError, sealed};

/// Maximum number of attempts to append an opening record while other processes append.
const OPENINGS: u32 = 100;

/// Maximum number of records fetched from a store at once, to bound their memory.
const FETCHED: u64 = 256;

/// A record as written to its file, with its run and number.
#[derive(Serialize)]
struct Numbered<'a, R> {
    run_id: RunId,
    sequence: u64,
    record: &'a R,
}

/// An opening record as written to its file.
#[derive(Serialize)]
struct NumberedOpening<'a> {
    run_id: RunId,
    sequence: u64,
    opened: &'a Opening,
}

/// A journal entry of either type as read from its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found<'a> {
    run_id: RunId,
    sequence: u64,
    /// JSON text of the record, which may be `null`.
    #[serde(borrow, default, deserialize_with = "some_text")]
    record: Option<&'a RawValue>,
    #[serde(default)]
    opened: Option<Opening>,
}

fn some_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Contents of a journal file.
enum Entry<R> {
    Record(R),
    Opening(Opening),
}

/// Medium that holds the journal's files.
#[derive(Debug)]
enum Home {
    Folder(PathBuf),
    Store(Arc<Store>),
}

/// The journal of a run. Holds all records except opening records in memory until the caller takes them.
#[derive(Debug)]
pub(super) struct Journal<R> {
    home: Home,
    run: RunId,
    /// Records, parallel to `numbers`.
    records: Vec<R>,
    numbers: Vec<u64>,
    /// Number of the next record of any kind.
    next: u64,
    /// True after a failed append, because its record may or may not exist.
    failed: bool,
}

impl<R: Serialize + DeserializeOwned + Clone> Journal<R> {
    /// Reads all records of a journal in a folder, even while another process appends.
    pub(super) fn replay(folder: PathBuf, run: RunId) -> Result<Self, StorageError> {
        let mut journal = Self::empty(Home::Folder(folder.clone()), run);
        // The writer creates each record only after all earlier records. So a missing earlier record was lost and is
        // not merely late.
        let last_listed = || -> Result<Option<u64>, StorageError> {
            // A missing folder counts as an empty journal. The run's unreferenced shards then reveal lost records.
            Ok(list_if_there(&folder)?.iter().filter_map(|entry| number_of(&entry.name)).max())
        };
        loop {
            while journal.take_next().map_err(|error| journal.explain(error, last_listed))? {}
            match last_listed()? {
                Some(last) if last >= journal.next => {
                    if !journal.take_next()? {
                        return Err(journal.gap(last));
                    }
                }
                _ => return Ok(journal),
            }
        }
    }

    /// Reads all records of a journal in a store, with one list request and many parallel reads.
    pub(super) fn replay_store(store: Arc<Store>, run: RunId) -> Result<Self, StorageError> {
        let mut journal = Self::empty(Home::Store(Arc::clone(&store)), run);
        let listed = store.list(Some(JOURNAL), None)?;
        let number = |name: &str| number_of(name.strip_prefix(JOURNAL)?.strip_prefix('/')?);
        let Some(last) = listed.iter().filter_map(|object| number(&object.name)).max() else {
            return Ok(journal);
        };
        // The writer creates each record only after all earlier records, so a number absent from the list is a lost
        // record.
        if listed.len() as u64 <= last {
            return Err(journal.first_gap(listed.iter().filter_map(|object| number(&object.name)), last));
        }
        while journal.next <= last {
            let until = last.min(journal.next + FETCHED - 1);
            for contents in store.read_all((journal.next..=until).map(object_name))? {
                let Some(contents) = contents else { return Err(journal.gap(last)) };
                journal.take(&contents).map_err(|error| journal.explain(error, || Ok(Some(last))))?;
            }
        }
        Ok(journal)
    }

    /// Marks a damaged record as removable if it is the last record.
    fn explain(
        &self,
        mut error: StorageError,
        last: impl FnOnce() -> Result<Option<u64>, StorageError>,
    ) -> StorageError {
        if let StorageError::Damaged { remedy, .. } = &mut error
            && last().is_ok_and(|last| last == Some(self.next))
        {
            *remedy = Remedy::RestoreOrRemove;
        }
        error
    }

    fn empty(home: Home, run: RunId) -> Self {
        Self { home, run, records: Vec::new(), numbers: Vec::new(), next: 0, failed: false }
    }

    pub(super) fn records(&self) -> &[R] {
        &self.records
    }

    /// Number of the next record of any kind, equal to the number of entries.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Last record, or `None` if an opening record follows it.
    pub(super) fn last(&self) -> Option<&R> {
        let is_last = self.numbers.last().is_some_and(|number| number + 1 == self.next);
        self.records.last().filter(|_| is_last)
    }

    /// Removes the records from memory and returns each with its number.
    pub(super) fn take_records(&mut self) -> Vec<(u64, R)> {
        std::mem::take(&mut self.numbers).into_iter().zip(std::mem::take(&mut self.records)).collect()
    }

    /// Reads the records appended since the last read. Cost: one look-up per record, plus one.
    pub(super) fn catch_up(&mut self) -> Result<(), StorageError> {
        while self.take_next()? {}
        Ok(())
    }

    /// Reads the next record, if it exists.
    fn take_next(&mut self) -> Result<bool, StorageError> {
        let found = self.read_next()?;
        found.map_or(Ok(false), |contents| self.take(&contents).map(|()| true))
    }

    /// Reads the file of the next record; `None` if it does not exist.
    fn read_next(&self) -> Result<Option<Bytes>, StorageError> {
        match &self.home {
            Home::Folder(folder) => Ok(sealed::read(&folder.join(file_name(self.next)))?.map(Bytes::from)),
            Home::Store(store) => store.read(&object_name(self.next)),
        }
    }

    /// Publishes the next record and returns its number. Only the writer calls this method.
    pub(super) fn append(&mut self, record: &R, allowance: Option<&Allowance>) -> Result<u64, StorageError> {
        if self.failed {
            return Err(StorageError::EarlierFailure { place: self.place() });
        }
        let sequence = self.next;
        let sealed = seal(&Numbered { run_id: self.run, sequence, record })?;
        if let Some(allowance) = allowance {
            allowance.take_for_journal(file_cost(sealed.len() as u64))?;
        }
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
        self.push(Entry::Record(record.clone()));
        Ok(sequence)
    }

    /// Checks that no other process has written the record that this writer would write next.
    pub(super) fn confirm(&self) -> Result<(), StorageError> {
        match self.read_next()? {
            None => Ok(()),
            Some(_) if matches!(self.home, Home::Folder(_)) => {
                Err(self.conflict(StorageError::Conflict { file: self.next_place() }))
            }
            Some(found) => Err(self.taken_over(&found)),
        }
    }

    /// Checks that the last record still exists. An older copy of the run in the same place would lack that record.
    pub(super) fn require_last(&self) -> Result<(), StorageError> {
        let Home::Folder(folder) = &self.home else { return Ok(()) };
        let Some(last) = self.next.checked_sub(1) else { return Ok(()) };
        let file = folder.join(file_name(last));
        match file.try_exists() {
            Ok(true) => Ok(()),
            Ok(false) => Err(StorageError::damaged(file, 0, "the last record of the journal", "no file")),
            Err(error) => Err(StorageError::read(file, error)),
        }
    }

    /// Appends an opening record and returns its number. After this call, no earlier writer can append.
    pub(super) fn open(&mut self) -> Result<u64, StorageError> {
        for _ in 0..OPENINGS {
            let number = self.next;
            match self.try_to_open()? {
                // Another writer appended this record after the journal was read. Add the record and try the next
                // number.
                Some(found) => self.take(&found)?,
                None => return Ok(number),
            }
        }
        let by = "other processes, repeatedly while this process opened the run".to_owned();
        Err(StorageError::TakenOver { place: self.place(), by })
    }

    /// Appends an opening record, or fails if another process has appended since the journal was read.
    pub(super) fn open_as_it_is(&mut self) -> Result<u64, StorageError> {
        let number = self.next;
        match self.try_to_open()? {
            Some(found) => Err(self.taken_over(&found)),
            None => Ok(number),
        }
    }

    /// Tries to append an opening record. If another record has its number, returns the contents of the other record.
    fn try_to_open(&mut self) -> Result<Option<Bytes>, StorageError> {
        let (sequence, opened) = (self.next, Opening::by_this_process());
        let sealed = seal(&NumberedOpening { run_id: self.run, sequence, opened: &opened })?;
        let found = match &self.home {
            Home::Folder(folder) => match publish(folder, &file_name(sequence), &sealed) {
                Ok(()) => None,
                Err(conflict @ StorageError::Conflict { .. }) => Some(self.read_next()?.ok_or(conflict)?),
                Err(error) => return Err(error),
            },
            Home::Store(store) => match store.create(&object_name(sequence), &sealed)? {
                Created::Here => None,
                Created::Taken(found) => Some(found),
            },
        };
        if found.is_none() {
            self.push(Entry::Opening(opened));
            crash_point!("store.opened");
        }
        Ok(found)
    }

    /// Parses the contents of the next record's file and adds its entry.
    fn take(&mut self, contents: &[u8]) -> Result<(), StorageError> {
        let entry = parse(&self.next_place(), contents, self.run, self.next)?;
        self.push(entry);
        Ok(())
    }

    fn push(&mut self, entry: Entry<R>) {
        if let Entry::Record(record) = entry {
            self.records.push(record);
            self.numbers.push(self.next);
        }
        self.next += 1;
    }

    fn place(&self) -> Place {
        match &self.home {
            Home::Folder(folder) => folder.into(),
            Home::Store(store) => store.place(),
        }
    }

    /// Place of the next record.
    fn next_place(&self) -> Place {
        match &self.home {
            Home::Folder(folder) => folder.join(file_name(self.next)).into(),
            Home::Store(store) => store.place_of(&object_name(self.next)),
        }
    }

    /// Error for a missing record that later records follow.
    fn gap(&self, last: u64) -> StorageError {
        let expected = format!("a record, because there are records up to {last}");
        StorageError::damaged(self.next_place(), 0, expected, "no file")
    }

    /// Error for the first missing record up to `last`, given the numbers of the existing records.
    fn first_gap(&mut self, found: impl Iterator<Item = u64>, last: u64) -> StorageError {
        let found: std::collections::HashSet<u64> = found.collect();
        self.next = (0..=last).find(|number| !found.contains(number)).unwrap_or(last);
        self.gap(last)
    }

    /// Error for a next record that another process has written in a store.
    fn taken_over(&self, found: &[u8]) -> StorageError {
        let file = self.next_place();
        let by = match self.opening_in(found) {
            Some(opening) => opening.to_string(),
            None => format!("another process, which wrote {file}"),
        };
        StorageError::TakenOver { place: self.place(), by }
    }

    /// Error for a next record that already exists in a folder.
    ///
    /// If the existing record is an opening record, another process took over. Otherwise the lock failed, and the
    /// error stays a conflict.
    fn conflict(&self, conflict: StorageError) -> StorageError {
        let found = self.read_next().ok().flatten();
        match found.and_then(|contents| self.opening_in(&contents)) {
            Some(opening) => {
                let (place, by) = (self.place(), opening.to_string());
                StorageError::TakenOver { place, by }
            }
            None => conflict,
        }
    }

    /// Parses the contents of the next record's file as an opening record; `None` for any other contents.
    fn opening_in(&self, contents: &[u8]) -> Option<Opening> {
        match parse::<IgnoredAny>(&self.next_place(), contents, self.run, self.next) {
            Ok(Entry::Opening(opening)) => Some(opening),
            Ok(Entry::Record(_)) | Err(_) => None,
        }
    }
}

/// Returns the bytes of a record's file.
fn seal(record: &impl Serialize) -> Result<Vec<u8>, StorageError> {
    let body = serde_json::to_string(record).map_err(|e| StorageError::InvalidInput {
        what: format!("cannot write a journal record as JSON: {e}"),
    })?;
    sealed::seal("a journal record", &body)
}

/// Parses the file of the record with this number.
fn parse<R: DeserializeOwned>(
    file: &Place,
    contents: &[u8],
    run: RunId,
    number: u64,
) -> Result<Entry<R>, StorageError> {
    let fields = |found: String| StorageError::damaged(file, 0, "the fields of a journal record", found);
    let body = sealed::unseal(file, contents)?;
    let found: Found<'_> = sealed::parse(file, body, |e| fields(e.to_string()))?;
    let foreign = |field, expected: String, found: String| {
        Err(StorageError::Foreign { file: file.clone(), field, expected, found })
    };
    if found.run_id != run {
        return foreign("run id", run.to_string(), found.run_id.to_string());
    }
    if found.sequence != number {
        return foreign("sequence", number.to_string(), found.sequence.to_string());
    }
    match (found.record, found.opened) {
        (Some(record), None) => serde_json::from_str(record.get())
            .map(Entry::Record)
            .map_err(|e| StorageError::NotUnderstood { file: file.clone(), reason: e.to_string() }),
        (None, Some(opening)) => Ok(Entry::Opening(opening)),
        (Some(_), Some(_)) => Err(fields("both `record` and `opened`".to_owned())),
        (None, None) => Err(fields("neither `record` nor `opened`".to_owned())),
    }
}

fn file_name(sequence: u64) -> String {
    format!("{sequence:06}.json")
}

fn object_name(sequence: u64) -> String {
    format!("{JOURNAL}/{}", file_name(sequence))
}

/// Returns the record number in a file name. Files with other names are not part of the journal.
fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".json")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// Atomically creates the file `name` with these contents, and never replaces a file.
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
