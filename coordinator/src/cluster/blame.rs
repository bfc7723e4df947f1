//! Blame for a failed append or opening: the store, the job, or another process.

use super::messages::{AppendFailure, OpenFailure, StoreCheck};

/// Facts about a run that the shell could not open or write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunTrouble {
    /// The error.
    pub reason: String,
    /// Kind of the error.
    pub kind: TroubleKind,
    /// State of the store after the error.
    pub store: StoreCheck,
}

/// Kind of an error of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TroubleKind {
    /// Another process has written to the run, or the run is missing.
    Foreign,
    /// The store is full, or the process has reached a limit.
    Full,
    /// The run is in use, or the store does not answer.
    Passing,
    /// Any other error.
    Other,
}

impl From<RunTrouble> for AppendFailure {
    /// Blames the journal of the job only if the store is in its place and writable.
    fn from(trouble: RunTrouble) -> Self {
        let RunTrouble { reason, kind, store } = trouble;
        match (kind, store) {
            (TroubleKind::Foreign, _) => Self::Foreign(reason),
            (TroubleKind::Full, _) => Self::Store(reason),
            (TroubleKind::Passing | TroubleKind::Other, StoreCheck::Away(why)) => Self::Store(why),
            (TroubleKind::Passing | TroubleKind::Other, StoreCheck::There) => Self::Journal(reason),
        }
    }
}

impl From<RunTrouble> for OpenFailure {
    /// Blames the job only if the store is in its place and writable.
    fn from(trouble: RunTrouble) -> Self {
        let RunTrouble { reason, kind, store } = trouble;
        match (kind, store) {
            (TroubleKind::Full | TroubleKind::Passing, _) => Self::Later(reason),
            (TroubleKind::Foreign | TroubleKind::Other, StoreCheck::Away(why)) => Self::Later(why),
            (TroubleKind::Foreign | TroubleKind::Other, StoreCheck::There) => Self::Never(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_blamed_only_while_its_store_is_there() {
        let text = str::to_owned;
        let away = || StoreCheck::Away("away".to_owned());
        for (kind, store, append, open) in [
            (
                TroubleKind::Other,
                StoreCheck::There,
                AppendFailure::Journal(text("x")),
                OpenFailure::Never(text("x")),
            ),
            (
                TroubleKind::Other,
                away(),
                AppendFailure::Store(text("away")),
                OpenFailure::Later(text("away")),
            ),
            (
                TroubleKind::Full,
                StoreCheck::There,
                AppendFailure::Store(text("x")),
                OpenFailure::Later(text("x")),
            ),
            (TroubleKind::Passing, away(), AppendFailure::Store(text("away")), OpenFailure::Later(text("x"))),
            (
                TroubleKind::Foreign,
                away(),
                AppendFailure::Foreign(text("x")),
                OpenFailure::Later(text("away")),
            ),
        ] {
            let trouble = RunTrouble { reason: text("x"), kind, store };
            assert_eq!(AppendFailure::from(trouble.clone()), append, "{trouble:?}");
            assert_eq!(OpenFailure::from(trouble.clone()), open, "{trouble:?}");
        }
    }
}
