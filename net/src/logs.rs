//! Logs on stderr, for people or as JSON lines.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

use crate::text::plain;

/// Crates that could log headers, and therefore tokens, at their lowest levels.
const SEE_HEADERS: [&str; 6] = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// Failure to start logging.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error(
        "expected a level (error, warn, info, debug, trace) or crate=level,… as the log filter, found {filter:?}"
    )]
    Filter {
        /// The text.
        filter: String,
        /// The parser's error.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Logging is already set up.
    #[error("logging is already set up")]
    Twice,
}

/// Starts logging to stderr. `filter` is a level, or levels by crate as in `RUST_LOG`. No filter enables the
/// logging of headers, because one header contains the token.
///
/// # Errors
///
/// [`LogError`].
pub fn start(format: LogFormat, filter: &str) -> Result<(), LogError> {
    let wrong = |source| LogError::Filter { filter: filter.to_owned(), source };
    // `EnvFilter` would read a single word that is not a level as the name of a crate, and log nothing else.
    for word in filter.split(',').filter(|word| !word.contains(['=', '['])) {
        let _: Directive = format!("any={word}").parse().map_err(wrong)?;
    }
    let mut levels = EnvFilter::try_new(filter).map_err(wrong)?;
    for name in SEE_HEADERS {
        let quiet: Directive = format!("{name}=warn").parse().map_err(wrong)?;
        levels = levels.add_directive(quiet);
    }
    // If stderr is closed, the line is lost. An error report on stderr would panic.
    let lines =
        tracing_subscriber::fmt().with_env_filter(levels).with_target(false).log_internal_errors(false);
    let started = match format {
        LogFormat::Human => lines.with_ansi(false).with_writer(|| Plain(io::stderr())).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_writer(io::stderr).try_init(),
    };
    started.map_err(|_| LogError::Twice)
}

/// Writes each line in one call. Lines quote other parties, so this writer escapes characters that could control a
/// terminal or fake another line. JSON escapes such characters anyway.
struct Plain<W>(W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let (body, end) = text.strip_suffix('\n').map_or((&*text, ""), |body| (body, "\n"));
        self.0.write_all(format!("{}{end}", plain(body)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Rounds a time to milliseconds, for log lines.
pub fn seconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_milliseconds() {
        assert_eq!(seconds(std::time::Duration::from_nanos(501_925_042)), 0.502);
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut written = Vec::new();
        let line = "WARN a worker failed failure=\x1b[2Jx\n2026-01-01 ERROR forged\n";
        Plain(&mut written).write_all(line.as_bytes()).unwrap();
        let expected = "WARN a worker failed failure=\\u{1b}[2Jx\\n2026-01-01 ERROR forged\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
