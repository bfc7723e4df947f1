//! Lays out the text of `--help`. Wraps paragraphs at the width of the terminal. Folds long example commands with
//! backslashes, so they can be copied into a shell.

use clap::Command;
use clap::builder::{Resettable, StyledStr};

use crate::{shell, terminal};

/// Largest width of help in columns.
const WIDEST: usize = 100;

/// Smallest width of help in columns, on any terminal.
const NARROWEST: usize = 40;

/// Suffix of a text that names a page of the documentation. An installed program does not include these pages.
pub const PLACE_OF_PAGES: &str = "docs/ is in the source code of exact2048";

/// Prefix of the name of a page in a text.
pub const PAGE: &str = "docs/";

/// Heading of the example commands.
const EXAMPLES: &str = "Examples:";

/// Formats the examples and notes at the end of the help of a command and its subcommands.
///
/// In the `after_help` of a command, the indented lines below `Examples:` are commands. Other indented lines stay
/// unchanged. Lines without an indent form paragraphs, which are wrapped.
pub fn with_examples(command: Command) -> Command {
    let columns = terminal::of_anything().clamp(NARROWEST, WIDEST);
    let mut command = with_place_of_pages(command).term_width(columns);
    command.build();
    with_own_end(command, columns)
}

/// Adds the location of the pages to each help text that names a page.
pub fn with_place_of_pages(command: Command) -> Command {
    let command = command.mut_subcommands(with_place_of_pages);
    match command.get_after_help().map(StyledStr::to_string) {
        Some(end) if end.contains(PAGE) => command.after_help(format!("{end} ({PLACE_OF_PAGES})")),
        _ => command,
    }
}

fn with_own_end(command: Command, columns: usize) -> Command {
    let command = command.mut_subcommands(|sub| with_own_end(sub, columns));
    // If an option has possible values, clap's default text refers to a longer help, which no command has.
    let command = command.mut_args(|option| match option.get_id().as_str() {
        "help" => option.help("Print help"),
        _ => option,
    });
    let Some(end) = command.get_after_help().map(StyledStr::to_string) else { return command };
    let mut command = command.after_help(Resettable::Reset);
    let head = with_usage_wrapped(&command.render_help().ansi().to_string(), columns);
    command.override_help(format!("{}\n\n{}\n", head.trim_end(), wrapped(&end, columns)))
}

/// Wraps the usage line, which clap leaves unwrapped.
fn with_usage_wrapped(help: &str, columns: usize) -> String {
    let options = textwrap::Options::new(columns).subsequent_indent("       ").break_words(false);
    let wrapped = |line: &str| {
        let plain = without_styles(line);
        let is_too_long = plain.starts_with("Usage:") && plain.chars().count() > columns;
        if is_too_long { textwrap::fill(&plain, options.clone()) } else { line.to_owned() }
    };
    help.lines().map(wrapped).collect::<Vec<_>>().join("\n")
}

/// Removes style sequences (ESC [ NUMBERS m) from a line.
fn without_styles(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default();
    let rest = pieces.map(|piece| piece.split_once('m').map_or(piece, |(_, text)| text));
    std::iter::once(first).chain(rest).collect()
}

/// Wraps the paragraphs of a text and folds its example commands. Leaves other indented lines unchanged.
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

/// The lines of a text, joined at backslashes as in a shell.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_continued = false;
    for line in text.lines() {
        let (part, is_begun) = line.strip_suffix('\\').map_or((line, false), |part| (part.trim_end(), true));
        match lines.last_mut() {
            Some(last) if is_continued => {
                last.push(' ');
                last.push_str(part.trim_start());
            }
            _ => lines.push(part.to_owned()),
        }
        is_continued = is_begun;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a command without quotes, up to a pipe or a redirection.
    fn words(command: &str) -> Vec<String> {
        let words = shell::written_words(command).into_iter();
        let of_program = words.take_while(|word| !["|", ">", "<"].contains(word));
        of_program.map(|word| word.replace(['"', '\''], "")).collect()
    }

    /// All subcommands at all levels.
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

    /// An installed program does not include the pages.
    #[test]
    fn help_that_names_a_page_states_its_location() {
        let ends =
            all_commands().into_iter().filter_map(|sub| sub.get_after_help().map(StyledStr::to_string));
        let naming: Vec<String> = ends.filter(|end| end.contains("docs/")).collect();
        assert!(naming.len() > 5 && naming.iter().all(|end| end.ends_with("source code of exact2048)")));
    }

    /// All examples of the printed help at a width, with their lines joined.
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
    fn examples_are_valid_commands() {
        use clap::CommandFactory;
        for columns in [40, 60, 80, 100] {
            let mut checked = 0;
            for line in examples(columns) {
                // The command may be in a substitution: job=$(exact2048 ...).
                let line = line.rsplit_once("$(").map_or(&*line, |(_, inner)| inner.trim_end_matches(')'));
                let mut words = words(line);
                // Expand the tilde as a shell does.
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
    fn usage_is_wrapped_by_its_visible_width() {
        let help =
            "About\n\n\u{1b}[1m\u{1b}[4mUsage:\u{1b}[0m \u{1b}[1mexact2048 solve\u{1b}[0m --run <DIR|URL>\n";
        assert_eq!(with_usage_wrapped(help, 38), help.trim_end(), "38 columns are enough");
        assert_eq!(with_usage_wrapped(help, 30), "About\n\nUsage: exact2048 solve --run\n       <DIR|URL>");
    }

    #[test]
    fn paragraphs_are_wrapped_and_examples_continue_with_backslashes() {
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
