//! Journal that this process owns. Each record is there once, although appends may fail.
//!
//! After a failure, the record may be in the journal, because the answer may have been lost. So the journal is opened
//! again before the next append, and its contents decide. Opening fences off every other process that has the journal
//! open. So the journal is not opened if another process has taken it over meanwhile.

use exact2048_storage::{Location, RunId};

use crate::wire::OpeningId;

/// A journal that is open for writing: no earlier writer can append to it any more.
pub trait Journal: Sized {
    /// A record of the journal.
    type Record: Clone + PartialEq;
    /// Why it cannot be opened or appended to.
    type Error;

    /// Opens the journal of this run in a place again.
    ///
    /// Returns `None` if the contents are not as expected; then no process is fenced off. `is_expected` receives the
    /// number of entries, and the last entry if that is a record. Blocks on the store.
    ///
    /// # Errors
    ///
    /// The place may hold another run, or none. Otherwise it is uncertain whether the journal was opened. Either way it may
    /// be tried again.
    fn open_again(
        location: &Location,
        run: RunId,
        is_expected: &dyn Fn(u64, Option<&Self::Record>) -> bool,
    ) -> Result<Option<OpenJournal<Self>>, Self::Error>;

    /// Appends a record. Blocks on the store.
    ///
    /// # Errors
    ///
    /// Whether the record is there is then uncertain.
    fn append(&mut self, record: &Self::Record) -> Result<(), Self::Error>;
}

/// A journal, and what it held when it was opened. Which records count as entries depends on its kind: opening records
/// do where it matters that others have opened it, even if they have appended nothing.
pub struct OpenJournal<J: Journal> {
    /// The journal.
    pub journal: J,
    /// Its opening record.
    pub opening: OpeningId,
    /// Entries before it was opened.
    pub found: u64,
    /// The last of them, if it is a record.
    pub last: Option<J::Record>,
    /// Entries now.
    pub entries: u64,
}

/// Why nothing can be appended.
#[derive(PartialEq, Eq, Debug)]
pub enum Broken<E> {
    /// Another process has written to the journal.
    Foreign,
    /// Entries were removed: there are fewer than are known to have been there.
    Fewer {
        /// Entries that were there.
        known: u64,
        /// Entries that are left.
        left: u64,
    },
    /// The journal cannot be opened or appended to now.
    Failed(E),
}

/// An open journal, and the record whose append had failed, if it turned out to be there.
type Healed<'a, J> = (&'a mut J, Option<<J as Journal>::Record>);

/// A journal that this process owns.
#[derive(Debug)]
pub struct OwnedJournal<J: Journal> {
    location: Location,
    /// The run whose journal it is.
    run: RunId,
    /// `None` while it could not be opened again after a failure.
    open: Option<J>,
    opening: OpeningId,
    /// Entries that are known to be there.
    entries: u64,
    /// The record whose append has failed: it may be the next entry.
    uncertain: Option<J::Record>,
}

impl<J: Journal> OwnedJournal<J> {
    /// A journal that was opened just now.
    pub fn new(location: Location, run: RunId, opened: OpenJournal<J>) -> Self {
        let OpenJournal { journal, opening, entries, .. } = opened;
        Self { location, run, open: Some(journal), opening, entries, uncertain: None }
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The latest opening record.
    pub fn opening(&self) -> OpeningId {
        self.opening
    }

    /// The journal; `None` while it could not be opened again after a failure.
    pub fn journal(&self) -> Option<&J> {
        self.open.as_ref()
    }

    /// Whether it has to be opened again before anything is appended.
    pub fn is_uncertain(&self) -> bool {
        self.open.is_none() || self.uncertain.is_some()
    }

    /// Opens the journal again if the last append has failed. Returns the journal, and the record of that append if it
    /// turns out to be there.
    ///
    /// # Errors
    ///
    /// [`Broken`]; the next call tries again.
    pub fn heal(&mut self) -> Result<Healed<'_, J>, Broken<J::Error>> {
        let (journal, found) = match self.open.take() {
            Some(open) if self.uncertain.is_none() => (open, None),
            broken => {
                // This comes first, as it holds the lock.
                drop(broken);
                let (entries, uncertain) = (self.entries, self.uncertain.as_ref());
                let is_expected = |found: u64, last: Option<&J::Record>| {
                    found <= entries || found == entries + 1 && last.is_some() && last == uncertain
                };
                let opened = J::open_again(&self.location, self.run, &is_expected).map_err(Broken::Failed)?;
                let opened = opened.ok_or(Broken::Foreign)?;
                self.opening = opened.opening;
                let found = match opened.found.checked_sub(self.entries) {
                    Some(0) => None,
                    Some(1) if opened.last.is_some() && opened.last == self.uncertain => opened.last,
                    Some(_) => return Err(Broken::Foreign),
                    None => return Err(Broken::Fewer { known: self.entries, left: opened.found }),
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
    /// If the last append has failed, the journal is opened again first. If that append was of the same record, and the
    /// record is there, nothing is left to do.
    ///
    /// # Errors
    ///
    /// [`Broken`]; after [`Broken::Failed`] it is uncertain whether the record is there.
    pub fn append(&mut self, record: &J::Record) -> Result<(), Broken<J::Error>> {
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
                Err(Broken::Failed(error))
            }
        }
    }

    /// Leaves the journal as an append does whose answer was lost; it stays open, or could not be opened again since.
    #[cfg(test)]
    pub fn lose_answer(&mut self, record: &J::Record, stays_open: bool) {
        self.uncertain = Some(record.clone());
        self.open.take_if(|_| !stays_open);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use super::*;

    /// A journal in memory. Openings are entries: `None`.
    struct Fake;

    /// Behaviour of a simulated call.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Answer {
        Done,
        /// The call has its effect, and fails.
        Lost,
        /// The call fails without an effect.
        Refused,
    }

    thread_local! {
        static ENTRIES: RefCell<Vec<Option<u32>>> = const { RefCell::new(Vec::new()) };
        static ANSWERS: RefCell<Vec<Answer>> = const { RefCell::new(Vec::new()) };
    }

    fn call(entry: Option<u32>) -> Result<(), ()> {
        let answer = ANSWERS.with_borrow_mut(|answers| answers.pop().unwrap_or(Answer::Done));
        if answer != Answer::Refused {
            ENTRIES.with_borrow_mut(|entries| entries.push(entry));
        }
        if answer == Answer::Done { Ok(()) } else { Err(()) }
    }

    impl Journal for Fake {
        type Record = u32;
        type Error = ();

        fn open_again(
            _: &Location,
            _: RunId,
            is_expected: &dyn Fn(u64, Option<&u32>) -> bool,
        ) -> Result<Option<OpenJournal<Self>>, ()> {
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

        fn append(&mut self, record: &u32) -> Result<(), ()> {
            call(Some(*record))
        }
    }

    fn records() -> Vec<u32> {
        ENTRIES.with_borrow(|entries| entries.iter().flatten().copied().collect())
    }

    /// An empty journal whose calls have these answers, then all succeed.
    fn owned(answers: &[Answer]) -> OwnedJournal<Fake> {
        ENTRIES.take();
        ANSWERS.take();
        let (location, run) = (Location::from(Path::new("/nowhere")), RunId::random());
        let opened = Fake::open_again(&location, run, &|_, _| true).unwrap().unwrap();
        let owned = OwnedJournal::new(location, run, opened);
        ANSWERS.set(answers.iter().rev().copied().collect());
        owned
    }

    /// Calls fail in any order, and are tried again until they succeed.
    #[test]
    fn an_append_that_failed_is_made_once() {
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
    fn a_record_that_nobody_asks_for_again_stays() {
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
    fn what_others_wrote_or_removed_is_noticed() {
        let mut journal = owned(&[]);
        journal.append(&8).unwrap();
        call(Some(9)).unwrap();
        journal.lose_answer(&16, true);
        assert_eq!(journal.append(&16), Err(Broken::Foreign));
        assert_eq!(journal.append(&16), Err(Broken::Foreign), "and stays so");
        assert_eq!(
            ENTRIES.with_borrow(|entries| entries.last().copied()),
            Some(Some(9)),
            "no writer is fenced"
        );
        assert!(journal.journal().is_none());
        ENTRIES.take();
        assert_eq!(journal.append(&16), Err(Broken::Fewer { known: 1, left: 0 }));
        // Another's record of the same place as ours.
        let mut journal = owned(&[Answer::Refused]);
        journal.append(&8).unwrap_err();
        call(Some(9)).unwrap();
        assert_eq!(journal.append(&8), Err(Broken::Foreign));
    }
}
