//! Logs on stderr, for people or as JSON lines.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

/// Crates that could log headers, and with them tokens, at their lowest levels.
const SEE_HEADERS: [&str; 6] = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error(
        "log filter {filter:?} is not understood; write a level (error, warn, info, debug, trace) or crate=level,…"
    )]
    Filter {
        /// The filter as given.
        filter: String,
        /// Why.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Logging is on already.
    #[error("logging was set up before")]
    Twice,
}

/// Starts logging to stderr. `filter` is a level, or levels by crate as in `RUST_LOG`. Whatever it says, no header
/// is logged, since one of them is the token.
///
/// # Errors
///
/// [`LogError`].
pub fn start(format: LogFormat, filter: &str) -> Result<(), LogError> {
    let wrong = |source| LogError::Filter { filter: filter.to_owned(), source };
    let mut levels = EnvFilter::try_new(filter).map_err(wrong)?;
    for name in SEE_HEADERS {
        let quiet: Directive = format!("{name}=warn").parse().map_err(wrong)?;
        levels = levels.add_directive(quiet);
    }
    let lines = tracing_subscriber::fmt().with_env_filter(levels).with_writer(io::stderr).with_target(false);
    let started = match format {
        LogFormat::Human => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|_| LogError::Twice)
}

/// An error with what caused it, on one line. Some errors repeat their cause in their own text: it is told once.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// An error and what it comes from, one after the other.
pub fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// What an error comes from in the end, without what it led to.
pub fn last_cause(error: &(dyn std::error::Error + 'static)) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

/// Seconds as log lines have them: thousandths are enough for people.
pub fn seconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failed {
        text: &'static str,
        source: Option<Box<Failed>>,
    }

    #[test]
    fn causes_are_told_once() {
        let refused = || Failed { text: "refused", source: None };
        let repeated = Failed { text: "connect: refused", source: Some(Box::new(refused())) };
        assert_eq!(with_causes(&repeated), "connect: refused");
        let outer = Failed { text: "cannot", source: Some(Box::new(repeated)) };
        assert_eq!(with_causes(&outer), "cannot: connect: refused");
        assert_eq!(last_cause(&outer), "refused");
    }

    #[test]
    fn times_are_told_in_thousandths() {
        assert_eq!(seconds(std::time::Duration::from_nanos(501_925_042)), 0.502);
    }
}
