//! How wide the terminals are.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use terminal_size::{Width, terminal_size, terminal_size_of};

/// Columns where nobody knows better: what most terminals have.
const USUAL: usize = 80;

/// The fewest columns that tables are laid out for, and those that lines are cut to which are written over and over:
/// these must not wrap, however narrow the terminal is.
const FEWEST_OF_TABLES: usize = 20;
const FEWEST_OF_LINES: usize = 2;

/// Columns of the terminal that a stream is, at least the fewest; `None` where it is not a terminal.
fn columns_of(stream: impl AsFd + IsTerminal, fewest: usize) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    Some(terminal_size_of(stream).map_or(USUAL, |(Width(columns), _)| usize::from(columns).max(fewest)))
}

/// Columns of the terminal that stdout is; `None` where it is not a terminal.
pub fn of_stdout() -> Option<usize> {
    columns_of(io::stdout(), FEWEST_OF_TABLES)
}

/// Columns of the terminal that stderr is; `None` where it is not a terminal.
pub fn of_stderr() -> Option<usize> {
    columns_of(io::stderr(), FEWEST_OF_LINES)
}

/// Columns for texts that are always laid out: those of any terminal of this process, else of the environment variable
/// `COLUMNS`, else as most terminals have.
pub fn of_anything() -> usize {
    let known = terminal_size().map(|(Width(columns), _)| usize::from(columns));
    known.or_else(|| stated(&std::env::var("COLUMNS").ok()?)).unwrap_or(USUAL)
}

/// Columns as a text states them; `None` where it is no number of columns.
fn stated(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_columns_is_not_taken_for_one() {
        assert_eq!(stated("60"), Some(60));
        for none in ["", "0", "-60", "wide", "99999999999999999999999"] {
            assert_eq!(stated(none), None, "{none:?}");
        }
    }
}
