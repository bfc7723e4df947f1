//! Points at which tests kill the process, or have it fail. They are compiled into builds for tests alone: only
//! `[dev-dependencies]` turn the feature `failpoints` on.

/// A point at which a test can kill the process: `fail::cfg(name, "return")`.
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        fail::fail_point!($name, |_| std::process::abort())
    };
}
pub(crate) use crash_point;

/// Points that the environment sets, until this is dropped.
#[must_use]
pub struct CrashPoints {
    #[cfg(feature = "failpoints")]
    _set: fail::FailScenario<'static>,
}

impl CrashPoints {
    /// Sets the points that the variable `FAILPOINTS` names; none in builds that are not for tests.
    pub fn of_environment() -> Self {
        Self {
            #[cfg(feature = "failpoints")]
            _set: fail::FailScenario::setup(),
        }
    }
}
