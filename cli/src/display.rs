//! Progress on stderr that fits the terminal: live lines there, a plain line every few seconds elsewhere.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::{shell, terminal, units};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a plain line is written where there is no terminal.
pub const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Characters of a bar where there is room, and where there is little.
const BARS: (usize, usize) = (24, 10);

/// Columns from which on there is room.
const ROOMY: usize = 100;

/// The line that is drawn at the moment: other messages have to be written above it.
static LIVE: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn live() -> MutexGuard<'static, Option<ProgressBar>> {
    LIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Columns of the terminal that stderr is; `None` where it is not a terminal.
pub fn columns() -> Option<usize> {
    terminal::of_stderr()
}

/// Writes a message for people to stderr, above a live line if there is one; on a terminal in lines that fit it. What
/// is in it comes from files and command lines, and is shown without what would command the terminal.
pub fn say(message: &str) {
    let message = exact2048_text::plain(message);
    write_line(&columns().map_or(message.to_string(), |columns| paragraph(&message, columns)));
}

/// Writes a command to stderr that people may copy, in lines that fit the terminal.
pub fn say_command(command: &str) {
    write_line(&columns().map_or(command.to_owned(), |columns| shell::folded(command, columns)));
}

fn write_line(text: &str) {
    // What nobody reads any more is lost; `eprintln!` would panic.
    let write = || drop(writeln!(io::stderr(), "{text}"));
    match &*live() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// A text in lines of at most `columns` characters; further lines are indented as the first is.
pub fn paragraph(text: &str, columns: usize) -> String {
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    textwrap::fill(text, textwrap::Options::new(columns).subsequent_indent(&indent).break_words(false))
}

/// The head, then as many of the parts as fit the columns: what matters most comes first.
pub fn fit(head: &str, parts: &[String], columns: usize) -> String {
    let mut line = head.to_owned();
    for (place, part) in parts.iter().filter(|part| !part.is_empty()).enumerate() {
        let separator = if place == 0 { " " } else { ", " };
        if place > 0 && width(&line) + separator.len() + width(part) > columns {
            break;
        }
        line.push_str(separator);
        line.push_str(part);
    }
    cut(&line, columns)
}

/// A text of at most `columns` characters; what is missing is marked.
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

/// A bar for the columns that there are.
pub fn bar(share: f64, columns: usize) -> String {
    let length = if columns >= ROOMY { BARS.0 } else { BARS.1 };
    let full = (share.clamp(0.0, 1.0) * length as f64) as usize;
    let head = if full < length { ">" } else { "" };
    format!("[{:<length$}]", format!("{}{head}", "=".repeat(full)))
}

/// A line of a live display, of the text that it is given.
pub fn bare_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// One line that says how far something is.
#[derive(Debug)]
pub struct ProgressLine {
    name: &'static str,
    bar: Option<ProgressBar>,
    next_plain: Mutex<Instant>,
}

impl ProgressLine {
    /// A line of something that begins now.
    pub fn new(name: &'static str) -> Self {
        let bar = columns().map(|_| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(bare_style());
            bar
        });
        live().clone_from(&bar);
        Self { name, bar, next_plain: Mutex::new(Instant::now() + PLAIN_INTERVAL) }
    }

    /// Shows the part that is done and more of it, what matters most first: what does not fit the terminal is left out.
    /// Where there is no terminal, all of it is written every few seconds.
    pub fn show(&self, share: f64, parts: &[String]) {
        if let (Some(bar), Some(columns)) = (&self.bar, columns()) {
            let head = format!("{:<9} {} {:>5}", self.name, self::bar(share, columns), units::percent(share));
            // In the last column some terminals go on to the next line.
            bar.set_message(fit(&(head + ","), parts, columns - 1));
            return;
        }
        let mut next = self.next_plain.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if Instant::now() >= *next {
            *next = Instant::now() + PLAIN_INTERVAL;
            let parts: Vec<&str> = parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
            write_line(&format!("{}: {}, {}", self.name, units::percent(share), parts.join(", ")));
        }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            live().take();
        }
    }
}

/// When something is done, for a line of progress.
pub fn eta(left: Option<Duration>) -> String {
    left.map_or("ETA unknown".to_owned(), |left| format!("ETA {}", units::about(left.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_is_wider_than_the_terminal() {
        let parts =
            ["ETA 2 min 5 s", "layer 406 of 2,044", "", "7,852,929 states", "13.0 M/s"].map(str::to_owned);
        for columns in 20..200 {
            let line = fit("enumerate [=>        ] 19.8%,", &parts, columns);
            assert!(width(&line) <= columns, "{columns}: {line}");
        }
        assert!(
            fit("up", &parts, 200).ends_with("ETA 2 min 5 s, layer 406 of 2,044, 7,852,929 states, 13.0 M/s")
        );
        assert_eq!(fit("up", &parts, 38), "up ETA 2 min 5 s, layer 406 of 2,044");
        assert_eq!(cut("16 M/s of 20", 7), "16 M/s…");
        assert_eq!(cut("short", 7), "short");
    }

    #[test]
    fn bars_fill() {
        assert_eq!(bar(0.0, 80), "[>         ]");
        assert_eq!(bar(0.55, 80), "[=====>    ]");
        assert_eq!(bar(1.0, 80), "[==========]");
        assert_eq!(bar(7.0, 160).len(), 26);
    }
}
