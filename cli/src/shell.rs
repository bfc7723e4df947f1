//! Commands that people can copy into a shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Indent of the continuation lines of a command.
const INDENT: &str = "      ";

/// End of a line that the next line continues.
const CONTINUATION: &str = " \\";

/// Quotes a word for a shell, if needed, and escapes bytes that are control characters or not UTF-8.
pub fn quote(word: &OsStr) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        Some(text) if exact2048_text::plain(text) == text => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let byte = |byte: &u8| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            };
            format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>())
        }
    }
}

/// Folds a command at `columns` characters with backslashes, so all lines can be copied together. Keeps words whole,
/// and options on the same line as their values.
pub fn folded(command: &str, columns: usize) -> String {
    let indent: String = command.chars().take_while(|c| *c == ' ').collect();
    let mut lines: Vec<String> = Vec::new();
    for part in parts(command) {
        let room = columns.saturating_sub(CONTINUATION.len());
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&part) <= room => {
                line.push(' ');
                line.push_str(&part);
            }
            Some(line) => {
                line.push_str(CONTINUATION);
                lines.push(format!("{INDENT}{part}"));
            }
            None => lines.push(format!("{indent}{part}")),
        }
    }
    if width(command) <= columns { command.to_owned() } else { lines.join("\n") }
}

/// Splits a command into parts that must stay on one line. A part is one word, an option with its value, or a pipe or
/// redirection with the next word.
fn parts(command: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut takes_next = false;
    for word in written_words(command) {
        let leads = |start: &str| word.starts_with(start);
        match parts.last_mut() {
            Some(part) if takes_next && !leads("-") => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
        takes_next = leads("-") && word != "-" || ["|", "<", ">"].contains(&word);
    }
    parts
}

/// The words of a command, quotes included.
pub fn written_words(command: &str) -> Vec<&str> {
    let (mut words, mut start, mut quote) = (Vec::new(), None, None);
    for (at, c) in command.char_indices().chain([(command.len(), ' ')]) {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == ' ' => words.extend(start.take().map(|start: usize| &command[start..at])),
            None => {
                start.get_or_insert(at);
                quote = Some(c).filter(|c| ['"', '\''].contains(c));
            }
        }
    }
    words
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The words of a text as a shell parses them, each ended by a zero byte.
    fn by_shell(command: &str) -> Vec<u8> {
        let script = format!("printf '%s\\0' {command}");
        Command::new("bash").args(["-c", &script]).output().map(|output| output.stdout).unwrap_or_default()
    }

    #[test]
    fn shells_read_quoted_words_back() {
        for (word, quoted) in [
            (&b"runs/3x3"[..], "runs/3x3"),
            (b"s3://bucket/a_b%20", "s3://bucket/a_b%20"),
            (b"", "''"),
            (b"my run", "'my run'"),
            (b"it's; rm -rf $HOME `x`", r"'it'\''s; rm -rf $HOME `x`'"),
            ("Größe".as_bytes(), "'Größe'"),
            (b"\x1b[2J\n'x'\\", r"$'\x1b[2J\x0a\'x\'\\'"),
            (b"\xff\xfe", r"$'\xff\xfe'"),
            ("a\u{202e}b".as_bytes(), r"$'a\xe2\x80\xaeb'"),
        ] {
            let word = OsStr::from_bytes(word);
            assert_eq!(quote(word), quoted);
            assert_eq!(by_shell(quoted), [word.as_bytes(), b"\0"].concat(), "{quoted}");
        }
    }

    #[test]
    fn folded_commands_are_the_same_commands() {
        let long = "  exact2048 serve --run 'a b/c d' --listen 0.0.0.0:2048 --insecure \"2 0 / 0 2\" - | jq '.x | .y'";
        for columns in 20..120 {
            let folded = folded(long, columns);
            assert_eq!(by_shell(&folded.replace('|', "")), by_shell(&long.replace('|', "")), "{folded}");
            if columns >= 40 {
                assert!(folded.lines().all(|line| width(line) <= columns), "{columns}: {folded}");
            }
        }
        assert_eq!(
            folded(long, 60),
            "  exact2048 serve --run 'a b/c d' --listen 0.0.0.0:2048 \\\n      --insecure \"2 0 / 0 2\" - | jq '.x | .y'"
        );
    }
}
