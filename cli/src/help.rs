//! What `--help` prints: wrapped once, at the width of the terminal, with example commands left whole so that they can be
//! copied.

use clap::Command;
use clap::builder::{Resettable, StyledStr};
use terminal_size::{Width, terminal_size};

/// Columns that help takes at most.
pub const WIDEST: usize = 100;

/// The same command, whose help and that of its subcommands ends in its examples and notes as they are meant: in a text given
/// to clap by `after_help` lines that begin with a blank are kept as they are, and the others are paragraphs to be wrapped.
pub fn with_examples(command: Command) -> Command {
    let columns = terminal_size().map_or(WIDEST, |(Width(columns), _)| usize::from(columns));
    let columns = columns.clamp(40, WIDEST);
    let mut command = command.term_width(columns);
    command.build();
    let command = command.mut_subcommands(|sub| with_own_end(sub, columns));
    with_own_end(command, columns)
}

fn with_own_end(command: Command, columns: usize) -> Command {
    let Some(end) = command.get_after_help().map(StyledStr::to_string) else { return command };
    let mut command = command.after_help(Resettable::Reset);
    let head = with_usage_wrapped(&command.render_help().ansi().to_string(), columns);
    command.override_help(format!("{}\n\n{}\n", head.trim_end(), wrapped(&end, columns)))
}

/// Help as clap has it, which wraps everything but how a command is used.
fn with_usage_wrapped(help: &str, columns: usize) -> String {
    let options = textwrap::Options::new(columns).subsequent_indent("       ").break_words(false);
    let wrapped = |line: &str| {
        let plain = without_styles(line);
        let is_too_long = plain.starts_with("Usage:") && plain.chars().count() > columns;
        if is_too_long { textwrap::fill(&plain, options.clone()) } else { line.to_owned() }
    };
    help.lines().map(wrapped).collect::<Vec<_>>().join("\n")
}

/// A line without the sequences that make it bold: ESC [ NUMBERS m.
fn without_styles(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default();
    let rest = pieces.map(|piece| piece.split_once('m').map_or(piece, |(_, text)| text));
    std::iter::once(first).chain(rest).collect()
}

/// A text with its paragraphs wrapped, and lines that begin with a blank left alone.
fn wrapped(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = String::new();
    let end_paragraph = |paragraph: &mut String, lines: &mut Vec<String>| {
        let options = textwrap::Options::new(columns).break_words(false);
        lines.extend(textwrap::wrap(paragraph, options).into_iter().map(String::from));
        paragraph.clear();
    };
    for line in text.lines() {
        if line.is_empty() || line.starts_with(' ') {
            if !paragraph.is_empty() {
                end_paragraph(&mut paragraph, &mut lines);
            }
            lines.push(line.to_owned());
        } else {
            paragraph.push_str(if paragraph.is_empty() { "" } else { " " });
            paragraph.push_str(line);
        }
    }
    if !paragraph.is_empty() {
        end_paragraph(&mut paragraph, &mut lines);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a line as a shell has them, up to what is no part of the command.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in line.chars().chain([' ']) {
            match quote {
                Some(open) if c == open => quote = None,
                Some(_) => word.push(c),
                None if c == '"' || c == '\'' => quote = Some(c),
                None if c != ' ' => word.push(c),
                None if word.is_empty() => {}
                None => words.push(std::mem::take(&mut word)),
            }
        }
        let is_end = |word: &String| ["|", ">", "<"].contains(&word.as_str());
        let end = words.iter().position(is_end).unwrap_or(words.len());
        words.truncate(end);
        words
    }

    #[test]
    fn examples_are_commands_that_are_understood() {
        use clap::CommandFactory;
        let mut checked = 0;
        for sub in crate::Cli::command().get_subcommands() {
            let end = sub.get_after_help().map(StyledStr::to_string).unwrap_or_default();
            for line in end.lines().filter(|line| line.starts_with("  ")) {
                // In a substitution: job=$(exact2048 ...).
                let line = line.rsplit_once("$(").map_or(line, |(_, inner)| inner.trim_end_matches(')'));
                let words = words(line);
                if words.first().is_some_and(|word| word == "exact2048") {
                    let parsed = crate::Cli::command().try_get_matches_from(&words);
                    assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                    checked += 1;
                }
            }
        }
        assert!(checked > 25, "{checked} examples");
    }

    #[test]
    fn every_command_that_prints_a_result_has_json() {
        use clap::CommandFactory;
        let servers = ["serve", "coordinator", "worker"];
        let without = crate::Cli::command();
        let without =
            without.get_subcommands().filter(|sub| sub.get_arguments().all(|arg| arg.get_id() != "json"));
        let names: Vec<&str> =
            without.map(Command::get_name).filter(|name| !servers.contains(name)).collect();
        assert!(names.is_empty(), "{names:?}");
    }

    #[test]
    fn usage_is_wrapped_by_what_is_seen_of_it() {
        let help =
            "About\n\n\u{1b}[1m\u{1b}[4mUsage:\u{1b}[0m \u{1b}[1mexact2048 solve\u{1b}[0m --run <DIR|URL>\n";
        assert_eq!(with_usage_wrapped(help, 38), help.trim_end(), "38 columns are enough");
        assert_eq!(with_usage_wrapped(help, 30), "About\n\nUsage: exact2048 solve --run\n       <DIR|URL>");
    }

    #[test]
    fn paragraphs_are_wrapped_once_and_examples_never() {
        let text = "Examples:\n  exact2048 solve --board 3x3 --run runs/3x3\n\nThe run is made if there is none, and\nresumed \
                    if it is of the same job.";
        let wrapped = wrapped(text, 30);
        assert_eq!(
            wrapped,
            "Examples:\n  exact2048 solve --board 3x3 --run runs/3x3\n\nThe run is made if there is\nnone, and resumed if \
             it is of\nthe same job."
        );
    }
}
