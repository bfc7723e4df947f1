//! Width of the terminals.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use terminal_size::{Width, terminal_size, terminal_size_of};

/// Default number of columns, as on most terminals.
const USUAL: usize = 80;

/// Smallest numbers of columns of tables, and of redrawn lines. Redrawn lines must not wrap even on very narrow terminals.
const FEWEST_OF_TABLES: usize = 20;
const FEWEST_OF_LINES: usize = 2;

/// Number of columns of the terminal on a stream, at least `fewest`; `None` if the stream is not a terminal.
fn columns_of(stream: impl AsFd + IsTerminal, fewest: usize) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    Some(terminal_size_of(stream).map_or(USUAL, |(Width(columns), _)| usize::from(columns).max(fewest)))
}

/// Number of columns of the terminal on stdout; `None` if stdout is not a terminal.
pub fn of_stdout() -> Option<usize> {
    columns_of(io::stdout(), FEWEST_OF_TABLES)
}

/// Number of columns of the terminal on stderr; `None` if stderr is not a terminal.
pub fn of_stderr() -> Option<usize> {
    columns_of(io::stderr(), FEWEST_OF_LINES)
}

/// Number of columns for texts that are always wrapped. It is the width of any terminal of this process, else the
/// environment variable `COLUMNS`, else the default.
pub fn of_anything() -> usize {
    let known = terminal_size().map(|(Width(columns), _)| usize::from(columns));
    known.or_else(|| stated(&std::env::var("COLUMNS").ok()?)).unwrap_or(USUAL)
}

/// Parses a number of columns; `None` if it is invalid.
fn stated(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_of_columns_are_ignored() {
        assert_eq!(stated("60"), Some(60));
        for none in ["", "0", "-60", "wide", "99999999999999999999999"] {
            assert_eq!(stated(none), None, "{none:?}");
        }
    }
}
