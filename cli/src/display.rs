//! Shows progress on stderr: live lines that fit a terminal, or a plain line every few seconds without a terminal.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use exact2048_coordinator::Pace;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::{Mutex, MutexGuard};

use crate::{shell, terminal, units};

/// Interval of plain lines without a terminal.
pub const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Length of a bar on wide and on narrow terminals.
const BARS: (usize, usize) = (24, 10);

/// Smallest number of columns for a long bar, and for any bar.
const ROOMY: usize = 100;
const NARROW: usize = 60;

/// Indent of continued lines.
const INDENT: &str = "  ";

/// The live line, if any; other messages are written above it.
static LIVE: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn live() -> MutexGuard<'static, Option<ProgressBar>> {
    LIVE.lock()
}

/// Number of columns of the terminal on stderr; `None` if stderr is not a terminal.
pub fn columns() -> Option<usize> {
    terminal::of_stderr()
}

/// Writes a message for people to stderr, above a live line. Wraps it on a terminal.
///
/// Escapes control characters, because messages can contain text from files and command lines.
pub fn print_note(message: &str) {
    let message = exact2048_text::plain(message);
    write_line(&columns().map_or(message.to_string(), |columns| paragraph(&message, columns)));
}

/// Writes a command to stderr. Folds it to the terminal in a form that can be copied.
pub fn print_command(command: &str) {
    write_line(&columns().map_or(command.to_owned(), |columns| shell::folded(command, columns)));
}

fn write_line(text: &str) {
    // Ignores a closed stderr, on which `eprintln!` would panic.
    let write = || drop(writeln!(io::stderr(), "{text}"));
    match &*live() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Wraps a text at `columns` characters with the indent of its first line.
pub fn paragraph(text: &str, columns: usize) -> String {
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    textwrap::fill(text, textwrap::Options::new(columns).subsequent_indent(&indent).break_words(false))
}

/// Joins the head and the parts into as few lines of at most `columns` characters as possible. Cuts a part that is wider
/// than a line.
pub fn lines(head: &str, parts: &[String], columns: usize) -> Vec<String> {
    let mut lines = vec![head.to_owned()];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(part) < columns => *line += &format!(", {part}"),
            last => {
                last.into_iter().for_each(|line| line.push(','));
                lines.push(format!("{INDENT}{part}"));
            }
        }
    }
    lines.iter().map(|line| cut(line, columns)).collect()
}

/// Cuts a text to `columns` characters and marks the cut.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(columns.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// The finished share, with a bar on terminals that are wide enough.
pub fn done(share: f64, columns: usize) -> String {
    let percent = units::percent(share);
    if columns < NARROW { percent } else { format!("{} {percent:>5}", bar(share, columns)) }
}

/// A bar for a terminal of `columns`.
fn bar(share: f64, columns: usize) -> String {
    let length = if columns >= ROOMY { BARS.0 } else { BARS.1 };
    let full = (share.clamp(0.0, 1.0) * length as f64) as usize;
    let head = if full < length { ">" } else { "" };
    format!("[{:<length$}]", format!("{}{head}", "=".repeat(full)))
}

/// Style of a live line that shows only its text.
pub fn bare_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A progress line, or a few lines on a narrow terminal.
#[derive(Debug)]
pub struct ProgressLine {
    name: &'static str,
    /// Words that name the work. They follow the share.
    of: &'static str,
    bar: Option<ProgressBar>,
    next_plain: Mutex<Instant>,
    begun: Instant,
    /// Pace of the share, and the share at the last update.
    pace: Mutex<Option<(Pace, f64)>>,
}

impl ProgressLine {
    /// Creates a line for work that begins now.
    pub fn new(name: &'static str) -> Self {
        Self::with_share_of(name, "")
    }

    /// Creates a line with words after the share: `59.9% of the upward pass`.
    pub fn with_share_of(name: &'static str, of: &'static str) -> Self {
        let bar = columns().map(|_| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(bare_style());
            bar
        });
        live().clone_from(&bar);
        let begun = Instant::now();
        Self { name, of, bar, next_plain: Mutex::new(begun + PLAIN_INTERVAL), begun, pace: Mutex::default() }
    }

    /// The time left, estimated from the growth of the share since the first call. Progress of earlier processes does not
    /// count.
    pub fn eta(&self, share: f64) -> String {
        let now = self.begun.elapsed();
        let mut pace = self.pace.lock();
        let (pace, before) = pace.get_or_insert_with(|| {
            let mut pace = Pace::default();
            pace.resume(now);
            (pace, share)
        });
        pace.add((share - *before).max(0.0), now);
        *before = share;
        eta(pace.time_for(1.0 - share, now))
    }

    /// Number of columns of the terminal; `None` without a terminal, where the display writes plain lines.
    pub fn columns(&self) -> Option<usize> {
        self.bar.as_ref().and_then(|_| columns())
    }

    /// Shows the finished share, if known, and the parts, most important first. Without a terminal, shows them only every
    /// few seconds.
    pub fn show(&self, share: impl Into<Option<f64>>, parts: &[String]) {
        let share: Option<f64> = share.into();
        if let (Some(bar), Some(columns)) = (&self.bar, columns()) {
            let name = if columns < NARROW { self.name.to_owned() } else { format!("{:<9}", self.name) };
            // Some terminals wrap after the last column.
            let share = share.map_or(String::new(), |share| format!(" {}{}", done(share, columns), self.of));
            bar.set_message(lines(&format!("{name}{share}"), parts, columns - 1).join("\n"));
            return;
        }
        let mut next = self.next_plain.lock();
        if Instant::now() >= *next {
            *next = Instant::now() + PLAIN_INTERVAL;
            let parts: Vec<&str> = parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
            let share =
                share.map_or(String::new(), |share| format!("{}{}, ", units::percent(share), self.of));
            write_line(&format!("{}: {share}{}", self.name, parts.join(", ")));
        }
    }

    /// Removes the line.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            live().take();
        }
    }
}

/// The time left, for a progress line.
pub fn eta(left: Option<Duration>) -> String {
    left.map_or("ETA unknown".to_owned(), |left| format!("ETA {}", units::about(left.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_do_not_fit_continue_on_the_next_line() {
        let parts = ["ETA 2 min 5 s", "layer 406 of 2,044", "", "7,852,929 states", "13.0 M/s ▁▄█"]
            .map(str::to_owned);
        for columns in 2..200 {
            let lines = lines(&format!("enumerate {}", done(0.198, columns)), &parts, columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
            let all = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
            // Nothing is cut if the widest part fits on a line.
            let whole = "19.8%, ETA 2 min 5 s, layer 406 of 2,044, 7,852,929 states, 13.0 M/s ▁▄█";
            assert!(columns < 24 || all.ends_with(whole), "{all}");
        }
        assert_eq!(lines("up 19.8%", &parts[..2], 24), ["up 19.8%, ETA 2 min 5 s,", "  layer 406 of 2,044"]);
        assert_eq!(lines("3x3", &["a reason that is long".to_owned()], 20), ["3x3,", "  a reason that is…"]);
    }

    #[test]
    fn wide_texts_are_cut() {
        assert_eq!(cut("16 M/s of 20", 7), "16 M/s…");
        assert_eq!(cut("short", 7), "short");
    }

    #[test]
    fn bars_fill() {
        assert_eq!(done(0.5, 59), "50.0%");
        assert_eq!(done(0.5, 60), "[=====>    ] 50.0%");
        assert_eq!(bar(0.0, 80), "[>         ]");
        assert_eq!(bar(0.55, 80), "[=====>    ]");
        assert_eq!(bar(1.0, 80), "[==========]");
        assert_eq!(bar(7.0, 160).len(), 26);
    }
}
