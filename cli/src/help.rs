//! What `--help` prints: wrapped once, at the width of the terminal. Example commands that are wider go on in lines
//! that a shell joins again, so that they can be copied.

use clap::Command;
use clap::builder::{Resettable, StyledStr};

use crate::{shell, terminal};

/// Columns that help takes at most.
const WIDEST: usize = 100;

/// Columns that help takes at least, however narrow the terminal is.
const NARROWEST: usize = 40;

/// The end of a text that names a page of the documentation, because an installed program comes without the pages.
pub const PLACE_OF_PAGES: &str = "docs/ is in the source code of exact2048";

/// How texts name pages.
pub const PAGE: &str = "docs/";

/// What begins the example commands.
const EXAMPLES: &str = "Examples:";

/// The same command, whose help and that of its subcommands ends in its examples and notes as they are meant. In a text
/// given to clap by `after_help`, the indented lines below `Examples:` are commands, other lines that begin with a
/// blank are kept as they are, and the rest are paragraphs to be wrapped.
pub fn with_examples(command: Command) -> Command {
    let columns = terminal::of_anything().clamp(NARROWEST, WIDEST);
    let mut command = with_place_of_pages(command).term_width(columns);
    command.build();
    with_own_end(command, columns)
}

/// The same command, whose help and that of its subcommands says where the pages are that it names.
pub fn with_place_of_pages(command: Command) -> Command {
    let command = command.mut_subcommands(with_place_of_pages);
    match command.get_after_help().map(StyledStr::to_string) {
        Some(end) if end.contains(PAGE) => command.after_help(format!("{end} ({PLACE_OF_PAGES})")),
        _ => command,
    }
}

fn with_own_end(command: Command, columns: usize) -> Command {
    let command = command.mut_subcommands(|sub| with_own_end(sub, columns));
    // There is no longer help, of which clap speaks where an option has possible values.
    let command = command.mut_args(|option| match option.get_id().as_str() {
        "help" => option.help("Print help"),
        _ => option,
    });
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

/// A text with its paragraphs wrapped and its example commands folded, and other lines that begin with a blank left
/// alone.
fn wrapped(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = String::new();
    let mut is_example = false;
    let end_paragraph = |paragraph: &mut String, lines: &mut Vec<String>| {
        let options = textwrap::Options::new(columns).break_words(false);
        let whole = std::mem::take(paragraph);
        lines.extend(textwrap::wrap(&whole, options).into_iter().map(String::from));
    };
    for line in joined(text) {
        let is_kept = line.is_empty() || line.starts_with(' ');
        if (is_kept || line == EXAMPLES) && !paragraph.is_empty() {
            end_paragraph(&mut paragraph, &mut lines);
        }
        if line == EXAMPLES {
            lines.push(line);
            is_example = true;
        } else if line.starts_with(' ') && is_example {
            lines.push(shell::folded(&line, columns));
        } else if is_kept {
            lines.push(line);
        } else {
            is_example = false;
            paragraph.push_str(if paragraph.is_empty() { "" } else { " " });
            paragraph.push_str(&line);
        }
    }
    if !paragraph.is_empty() {
        end_paragraph(&mut paragraph, &mut lines);
    }
    lines.join("\n")
}

/// The lines of a text, those that a backslash ends together with the next one: as a shell reads commands.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let (part, is_begun) = line.strip_suffix('\\').map_or((line, false), |part| (part.trim_end(), true));
        match lines.last_mut() {
            Some(last) if goes_on => {
                last.push(' ');
                last.push_str(part.trim_start());
            }
            _ => lines.push(part.to_owned()),
        }
        goes_on = is_begun;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a command as the program gets them: without quotes, up to what the shell keeps for itself.
    fn words(command: &str) -> Vec<String> {
        let words = shell::written_words(command).into_iter();
        let of_program = words.take_while(|word| !["|", ">", "<"].contains(word));
        of_program.map(|word| word.replace(['"', '\''], "")).collect()
    }

    /// All subcommands, and theirs.
    fn all_commands() -> Vec<Command> {
        fn collect(command: &Command, into: &mut Vec<Command>) {
            for sub in command.get_subcommands() {
                into.push(sub.clone());
                collect(sub, into);
            }
        }
        use clap::CommandFactory;
        let mut all = Vec::new();
        collect(&with_place_of_pages(crate::Cli::command()), &mut all);
        all
    }

    /// An installed program comes without the pages.
    #[test]
    fn help_that_names_a_page_says_where_the_pages_are() {
        let ends =
            all_commands().into_iter().filter_map(|sub| sub.get_after_help().map(StyledStr::to_string));
        let naming: Vec<String> = ends.filter(|end| end.contains("docs/")).collect();
        assert!(naming.len() > 5 && naming.iter().all(|end| end.ends_with("source code of exact2048)")));
    }

    /// All examples of the help that people see, at some width, as a shell joins their lines.
    fn examples(columns: usize) -> Vec<String> {
        let mut examples = Vec::new();
        for sub in all_commands() {
            let end = sub.get_after_help().map(StyledStr::to_string).unwrap_or_default();
            let end = wrapped(&end, columns);
            let of_sub = joined(&end).into_iter().skip_while(|line| line != EXAMPLES).skip(1);
            examples.extend(of_sub.take_while(|line| line.starts_with("  ")));
        }
        examples
    }

    #[test]
    fn examples_are_commands_that_are_understood() {
        use clap::CommandFactory;
        for columns in [40, 60, 80, 100] {
            let mut checked = 0;
            for line in examples(columns) {
                // In a substitution: job=$(exact2048 ...).
                let line = line.rsplit_once("$(").map_or(&*line, |(_, inner)| inner.trim_end_matches(')'));
                let mut words = words(line);
                // As a shell does it.
                for word in words.iter_mut().filter(|word| word.starts_with("~/")) {
                    word.replace_range(..1, "/home/user");
                }
                if words.first().is_some_and(|word| word == "exact2048") {
                    let parsed = crate::Cli::command().try_get_matches_from(&words);
                    assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                    checked += 1;
                }
            }
            assert!(checked > 25, "{checked} examples");
        }
    }

    #[test]
    fn examples_are_the_same_at_every_width() {
        assert_eq!(examples(60), examples(1000));
        let wide = examples(1000).into_iter().filter(|example| example.chars().count() > 60).count();
        assert!(wide > 5, "only {wide} examples are wider than a narrow terminal");
    }

    #[test]
    fn every_command_that_prints_a_result_has_json() {
        let servers = ["serve", "coordinator", "worker"];
        let about_itself = ["completions", "man"];
        let commands = all_commands();
        let without = commands
            .iter()
            .filter(|sub| !sub.has_subcommands() && sub.get_arguments().all(|arg| arg.get_id() != "json"));
        let names: Vec<&str> = without
            .map(Command::get_name)
            .filter(|name| ![&servers[..], &about_itself].concat().contains(name))
            .collect();
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
    fn paragraphs_are_wrapped_once_and_examples_go_on_in_lines_that_a_shell_joins() {
        let text = "Examples:\n  exact2048 solve --board 3x3 \\\n  --run runs/3x3\n\nThe run is made if there is none, and\n\
                    resumed if it is of the same job.\n  0  a line to be kept as it is";
        let end = "\n\nThe run is made if there is\nnone, and resumed if it is of\nthe same job.\n  0  a line to be kept as it is";
        assert_eq!(
            wrapped(text, 30),
            format!("Examples:\n  exact2048 solve \\\n      --board 3x3 \\\n      --run runs/3x3{end}")
        );
        let wide = wrapped(text, 60);
        assert!(
            wide.starts_with("Examples:\n  exact2048 solve --board 3x3 --run runs/3x3\n\nThe run"),
            "{wide}"
        );
    }
}
