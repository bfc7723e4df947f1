//! Journal that this process owns. It contains each record once, although appends may fail.
//!
//! After a failed append, the journal may contain the record, because only the answer may have been lost. So the
//! journal is reopened before the next append, and its contents show whether the record arrived. Opening fences off
//! every other process that has the journal open. So this process does not reopen the journal if another process has
//! taken the journal over in the meantime.

use exact2048_storage::{Location, RunId};

use super::AppendError;
use crate::wire::OpeningId;

/// A journal that is open for writing. Earlier writers can no longer append to it.
pub trait Journal: Sized {
    /// A record of the journal.
    type Record: Clone + PartialEq;

    /// Reopens the journal of this run.
    ///
    /// Returns `None` if the contents are not as expected; then no process is fenced off. `is_expected` receives the
    /// number of entries, and the last entry if that is a record. Blocks on the store.
    ///
    /// # Errors
    ///
    /// The place contains another run or none, or the opening failed with or without effect. The caller may try again.
    fn open_again(
        location: &Location,
        run: RunId,
        is_expected: &dyn Fn(u64, Option<&Self::Record>) -> bool,
    ) -> Result<Option<OpenJournal<Self>>, AppendError>;

    /// Appends a record. Blocks on the store.
    ///
    /// # Errors
    ///
    /// After an error, the journal may contain the record or not.
    fn append(&mut self, record: &Self::Record) -> Result<(), AppendError>;
}

/// A journal, and its contents at its opening. A journal counts opening records as entries if it must notice that
/// another process has opened it, even without an append.
pub struct OpenJournal<J: Journal> {
    /// The journal.
    pub journal: J,
    /// Opening record of this process.
    pub opening: OpeningId,
    /// Number of entries before the opening.
    pub found: u64,
    /// The last of these entries, if it is a record.
    pub last: Option<J::Record>,
    /// Number of entries after the opening.
    pub entries: u64,
}

/// A journal that this process owns.
#[derive(Debug)]
pub struct OwnedJournal<J: Journal> {
    pub location: Location,
    /// The run of the journal.
    run: RunId,
    /// The open journal; `None` if it could not be reopened after a failure.
    pub open: Option<J>,
    /// The latest opening record.
    pub opening: OpeningId,
    /// Number of entries that the journal is known to have.
    entries: u64,
    /// The record of the failed append, which may be the next entry.
    uncertain: Option<J::Record>,
}

impl<J: Journal> OwnedJournal<J> {
    /// Owns a journal that this process has just opened.
    pub fn new(location: Location, run: RunId, opened: OpenJournal<J>) -> Self {
        let OpenJournal { journal, opening, entries, .. } = opened;
        Self { location, run, open: Some(journal), opening, entries, uncertain: None }
    }

    /// Returns whether the journal must be reopened before the next append.
    pub fn is_uncertain(&self) -> bool {
        self.open.is_none() || self.uncertain.is_some()
    }

    /// Reopens the journal if the last append has failed. Returns the journal, and the record of that append if the
    /// journal contains it.
    ///
    /// # Errors
    ///
    /// [`AppendError::Foreign`] if another process has written to the journal or has removed records from it. Otherwise
    /// [`AppendError::Failed`]. The next call tries again.
    pub fn heal(&mut self) -> Result<(&mut J, Option<J::Record>), AppendError> {
        let (journal, found) = match self.open.take() {
            Some(open) if self.uncertain.is_none() => (open, None),
            broken => {
                // The old journal is closed first, because it holds the lock.
                drop(broken);
                let (entries, uncertain) = (self.entries, self.uncertain.as_ref());
                let is_expected = |found: u64, last: Option<&J::Record>| {
                    found <= entries || found == entries + 1 && last.is_some() && last == uncertain
                };
                let opened = J::open_again(&self.location, self.run, &is_expected)?;
                let opened = opened.ok_or_else(|| self.foreign())?;
                self.opening = opened.opening;
                let found = match opened.found.checked_sub(self.entries) {
                    Some(0) => None,
                    Some(1) if opened.last.is_some() && opened.last == self.uncertain => opened.last,
                    Some(_) => return Err(self.foreign()),
                    None => {
                        return Err(AppendError::Foreign(format!(
                            "expected {} records in the journal of {}, found {}; restore them from a copy, then resume \
                             the job",
                            self.entries, self.location, opened.found
                        )));
                    }
                };
                self.entries = opened.entries;
                self.uncertain = None;
                (opened.journal, found)
            }
        };
        Ok((self.open.insert(journal), found))
    }

    /// Appends a record. After a failure, the same record may be appended again.
    ///
    /// If the last append has failed, this call first reopens the journal. If the journal then contains the same
    /// record, the call appends nothing.
    ///
    /// # Errors
    ///
    /// As for [`heal`](Self::heal). After [`AppendError::Failed`], the journal may contain the record or not.
    pub fn append(&mut self, record: &J::Record) -> Result<(), AppendError> {
        let (journal, found) = self.heal()?;
        if found.as_ref() == Some(record) {
            return Ok(());
        }
        match journal.append(record) {
            Ok(()) => {
                self.entries += 1;
                Ok(())
            }
            Err(error) => {
                self.uncertain = Some(record.clone());
                Err(error)
            }
        }
    }

    fn foreign(&self) -> AppendError {
        let location = &self.location;
        AppendError::Foreign(format!(
            "another process has written to the journal of {location}; stop it, then resume the job"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::path::Path;

    use exact2048_storage::StorageError;

    use super::*;

    impl<J: Journal> OwnedJournal<J> {
        /// Simulates an append whose answer was lost. The journal stays open, or is closed as if reopening had failed.
        pub fn lose_answer(&mut self, record: &J::Record, stays_open: bool) {
            self.uncertain = Some(record.clone());
            self.open.take_if(|_| !stays_open);
        }
    }

    /// A journal in memory. An opening adds the entry `None`.
    struct Fake;

    /// Behaviour of a simulated call.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Answer {
        Done,
        /// The call has its effect, but returns an error.
        Lost,
        /// The call fails without an effect.
        Refused,
    }

    thread_local! {
        static ENTRIES: RefCell<Vec<Option<u32>>> = const { RefCell::new(Vec::new()) };
        static ANSWERS: RefCell<Vec<Answer>> = const { RefCell::new(Vec::new()) };
    }

    fn call(entry: Option<u32>) -> Result<(), AppendError> {
        let answer = ANSWERS.with_borrow_mut(|answers| answers.pop().unwrap_or(Answer::Done));
        if answer != Answer::Refused {
            ENTRIES.with_borrow_mut(|entries| entries.push(entry));
        }
        let failed = || StorageError::io("append", Path::new("/nowhere"), io::ErrorKind::TimedOut.into());
        if answer == Answer::Done { Ok(()) } else { Err(failed().into()) }
    }

    impl Journal for Fake {
        type Record = u32;

        fn open_again(
            _: &Location,
            _: RunId,
            is_expected: &dyn Fn(u64, Option<&u32>) -> bool,
        ) -> Result<Option<OpenJournal<Self>>, AppendError> {
            let records =
                |entries: &Vec<Option<u32>>| entries.iter().flatten().copied().collect::<Vec<u32>>();
            let before = ENTRIES.with_borrow(records);
            let found = before.len() as u64;
            if !is_expected(found, before.last()) {
                return Ok(None);
            }
            call(None)?;
            let opening = OpeningId(ENTRIES.with_borrow(|entries| entries.len() as u64) - 1);
            let last = before.last().copied();
            Ok(Some(OpenJournal { journal: Self, opening, found, last, entries: found }))
        }

        fn append(&mut self, record: &u32) -> Result<(), AppendError> {
            call(Some(*record))
        }
    }

    fn records() -> Vec<u32> {
        ENTRIES.with_borrow(|entries| entries.iter().flatten().copied().collect())
    }

    /// Creates an empty journal. Its next calls behave like these answers, and later calls succeed.
    fn owned(answers: &[Answer]) -> OwnedJournal<Fake> {
        ENTRIES.take();
        ANSWERS.take();
        let (location, run) = (Location::from(Path::new("/nowhere")), RunId::random());
        let opened = Fake::open_again(&location, run, &|_, _| true).unwrap().unwrap();
        let owned = OwnedJournal::new(location, run, opened);
        ANSWERS.set(answers.iter().rev().copied().collect());
        owned
    }

    /// Calls fail in any order, and the test repeats them until they succeed.
    #[test]
    fn a_failed_append_is_made_once() {
        let all = [Answer::Done, Answer::Lost, Answer::Refused];
        for (first, second, third) in
            all.iter().flat_map(|&a| all.iter().flat_map(move |&b| all.map(|c| (a, b, c))))
        {
            let mut journal = owned(&[first, second, third]);
            let mut tries = 0;
            for record in [8, 16, 24] {
                while journal.append(&record).is_err() {
                    tries += 1;
                }
                assert!(!journal.is_uncertain());
            }
            assert_eq!(records(), [8, 16, 24]);
            assert!(tries <= 3);
        }
    }

    #[test]
    fn a_record_stays_without_a_second_append() {
        let mut journal = owned(&[Answer::Lost]);
        journal.append(&8).unwrap_err();
        journal.append(&16).unwrap();
        assert_eq!(records(), [8, 16]);
        let mut journal = owned(&[Answer::Refused]);
        journal.append(&8).unwrap_err();
        journal.append(&16).unwrap();
        assert_eq!(records(), [16]);
    }

    #[test]
    fn records_that_others_wrote_or_removed_are_noticed() {
        let mut journal = owned(&[]);
        journal.append(&8).unwrap();
        call(Some(9)).unwrap();
        journal.lose_answer(&16, true);
        let foreign = |result: Result<(), AppendError>| match result {
            Err(AppendError::Foreign(what)) => what,
            other => panic!("{other:?}"),
        };
        for _ in 0..2 {
            assert!(foreign(journal.append(&16)).contains("has written"));
        }
        assert_eq!(
            ENTRIES.with_borrow(|entries| entries.last().copied()),
            Some(Some(9)),
            "no writer is fenced"
        );
        assert!(journal.open.is_none());
        ENTRIES.take();
        assert!(foreign(journal.append(&16)).starts_with("expected 1 records"));
        // Another process appended its record where this process tried to append.
        let mut journal = owned(&[Answer::Refused]);
        journal.append(&8).unwrap_err();
        call(Some(9)).unwrap();
        assert!(foreign(journal.append(&8)).contains("has written"));
    }
}
