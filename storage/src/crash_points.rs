//! Points at which tests kill the process or inject a failure. Compiled only into test builds, because only
//! `[dev-dependencies]` enable the feature `failpoints`.

/// A point at which a test can kill the process: `fail::cfg(name, "return")`.
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        fail::fail_point!($name, |_| std::process::abort())
    };
}
pub(crate) use crash_point;

/// Crash points set from the environment, until this value is dropped.
#[must_use]
pub struct CrashPoints {
    #[cfg(feature = "failpoints")]
    _set: fail::FailScenario<'static>,
}

impl CrashPoints {
    /// Sets the points named in the variable `FAILPOINTS`; does nothing without the feature `failpoints`.
    pub fn of_environment() -> Self {
        Self {
            #[cfg(feature = "failpoints")]
            _set: fail::FailScenario::setup(),
        }
    }
}
