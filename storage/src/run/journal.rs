//! The journal: numbered records, each in a file or object of its own that is created once and never changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::JOURNAL;
use super::opening::Opening;
use crate::allowance::{Allowance, file_cost};
use crate::crash_points::crash_point;
use crate::error::Remedy;
use crate::publish::{TempFile, list_if_there, sync_folder};
use crate::store::{Created, Store};
use crate::{Place, RunId, StorageError, sealed};

/// How often opening is tried while others append.
const OPENINGS: u32 = 100;

/// Records that are fetched from a store at a time, which bounds the memory that they take.
const FETCHED: u64 = 256;

/// A record as it is written to its file, with its run and its number.
#[derive(Serialize)]
struct Numbered<'a, R> {
    run_id: RunId,
    sequence: u64,
    record: &'a R,
}

/// An opening record as it is written.
#[derive(Serialize)]
struct NumberedOpening<'a> {
    run_id: RunId,
    sequence: u64,
    opened: &'a Opening,
}

/// Either of them as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found<'a> {
    run_id: RunId,
    sequence: u64,
    /// The text of the record, which may be that of `null`.
    #[serde(borrow, default, deserialize_with = "some_text")]
    record: Option<&'a RawValue>,
    #[serde(default)]
    opened: Option<Opening>,
}

fn some_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// What a file of the journal can hold.
enum Entry<R> {
    Record(R),
    Opening(Opening),
}

/// Where the files are.
#[derive(Debug)]
enum Home {
    Folder(PathBuf),
    Store(Arc<Store>),
}

/// The journal of a run. Its records are held in memory, without those of openings, until they are taken.
#[derive(Debug)]
pub(super) struct Journal<R> {
    home: Home,
    run: RunId,
    /// Each with its number.
    records: Vec<R>,
    numbers: Vec<u64>,
    /// The number of the next record of any kind.
    next: u64,
    /// An append failed: whether its record is there is uncertain.
    failed: bool,
}

impl<R: Serialize + DeserializeOwned + Clone> Journal<R> {
    /// Reads all records of a journal in a folder. Another process may append at the same time.
    pub(super) fn replay(folder: PathBuf, run: RunId) -> Result<Self, StorageError> {
        let mut journal = Self::empty(Home::Folder(folder.clone()), run);
        // Whatever the list shows was created after all records before it. So if one before the last of the list is
        // missing, it is not because it came later.
        let last_listed = || -> Result<Option<u64>, StorageError> {
            // Where records were lost with the folder, their shards show that.
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

    /// The same for a store: one list, and many records at once.
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
        while journal.next <= last {
            let until = last.min(journal.next + FETCHED - 1);
            for contents in store.read_all((journal.next..=until).map(object_name))? {
                let Some(contents) = contents else { return Err(journal.gap(last)) };
                journal.take(&contents).map_err(|error| journal.explain(error, || Ok(Some(last))))?;
            }
        }
        Ok(journal)
    }

    /// Says of a damaged record whether the run can do without it.
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

    /// The number that the next record will have, of any kind: as many as there are.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The last record, unless an opening came after it.
    pub(super) fn last(&self) -> Option<&R> {
        let is_last = self.numbers.last().is_some_and(|number| number + 1 == self.next);
        self.records.last().filter(|_| is_last)
    }

    /// Takes out the records that are held, each with its number.
    pub(super) fn take_records(&mut self) -> Vec<(u64, R)> {
        std::mem::take(&mut self.numbers).into_iter().zip(std::mem::take(&mut self.records)).collect()
    }

    /// Reads the records that were appended since the last read. Costs a look for each of them and one for the next.
    pub(super) fn catch_up(&mut self) -> Result<(), StorageError> {
        while self.take_next()? {}
        Ok(())
    }

    /// Reads the next record if it is there.
    fn take_next(&mut self) -> Result<bool, StorageError> {
        let found = self.read_next()?;
        found.map_or(Ok(false), |contents| self.take(&contents).map(|()| true))
    }

    /// The contents of the file that the next record is or would be in.
    fn read_next(&self) -> Result<Option<Bytes>, StorageError> {
        match &self.home {
            Home::Folder(folder) => Ok(sealed::read(&folder.join(file_name(self.next)))?.map(Bytes::from)),
            Home::Store(store) => store.read(&object_name(self.next)),
        }
    }

    /// Publishes the next record and returns its number. Only for the writer.
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

    /// Requires that nobody else has written the record that this writer would write next.
    pub(super) fn confirm(&self) -> Result<(), StorageError> {
        match self.read_next()? {
            None => Ok(()),
            Some(_) if matches!(self.home, Home::Folder(_)) => {
                Err(self.conflict(StorageError::Conflict { file: self.next_place() }))
            }
            Some(found) => Err(self.taken_over(&found)),
        }
    }

    /// Requires that the record before the next one is there: an older copy of the run lacks it.
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

    /// Appends an opening record and returns its number: from now on no earlier writer can append.
    pub(super) fn open(&mut self) -> Result<u64, StorageError> {
        for _ in 0..OPENINGS {
            let number = self.next;
            match self.try_to_open()? {
                // What another writer appended since the journal was read is a part of it now.
                Some(found) => self.take(&found)?,
                None => return Ok(number),
            }
        }
        let by = "others, again and again while it was opened".to_owned();
        Err(StorageError::TakenOver { place: self.place(), by })
    }

    /// The same, where nobody has appended anything since the journal was read.
    pub(super) fn open_as_it_is(&mut self) -> Result<u64, StorageError> {
        let number = self.next;
        match self.try_to_open()? {
            Some(found) => Err(self.taken_over(&found)),
            None => Ok(number),
        }
    }

    /// Appends an opening record, unless there is a record of its number. Returns what that holds then.
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

    /// Adds what the file of the next number holds.
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

    /// Where the next record is or would be.
    fn next_place(&self) -> Place {
        match &self.home {
            Home::Folder(folder) => folder.join(file_name(self.next)).into(),
            Home::Store(store) => store.place_of(&object_name(self.next)),
        }
    }

    /// The next record is not there, although a later one is.
    fn gap(&self, last: u64) -> StorageError {
        let expected = format!("a record, as there are records up to {last}");
        StorageError::damaged(self.next_place(), 0, expected, "no file")
    }

    /// The error for the first record up to `last` whose number is not among those found.
    fn first_gap(&mut self, found: impl Iterator<Item = u64>, last: u64) -> StorageError {
        let found: std::collections::HashSet<u64> = found.collect();
        self.next = (0..=last).find(|number| !found.contains(number)).unwrap_or(last);
        self.gap(last)
    }

    /// Another process wrote the record that this one was to write.
    fn taken_over(&self, found: &[u8]) -> StorageError {
        let file = self.next_place();
        let by = match self.opening_in(found) {
            Some(opening) => opening.to_string(),
            None => format!("another process, which wrote {file}"),
        };
        StorageError::TakenOver { place: self.place(), by }
    }

    /// The error for a record that is there already in a folder. Another process took the run over only if the record
    /// is an opening record; otherwise the lock should have kept it out, and the error stays a conflict.
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

    /// The opening record in the contents of the next record's file; `None` if they are something else.
    fn opening_in(&self, contents: &[u8]) -> Option<Opening> {
        match parse::<IgnoredAny>(&self.next_place(), contents, self.run, self.next) {
            Ok(Entry::Opening(opening)) => Some(opening),
            Ok(Entry::Record(_)) | Err(_) => None,
        }
    }
}

/// The bytes of the file of a record.
fn seal(record: &impl Serialize) -> Result<Vec<u8>, StorageError> {
    let body = serde_json::to_string(record)
        .map_err(|e| StorageError::InvalidInput { what: format!("a journal record is no JSON: {e}") })?;
    sealed::seal("a journal record", &body)
}

/// What the file of the record of this number holds.
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

/// The number of the record in a file of this name. Files with other names do not belong to the journal.
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
