//! Text for terminals and logs: escaped foreign text, error chains and numbers.

pub mod numbers;

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes characters that could control a terminal, begin a line, or change the look of the text next to them.
///
/// These are control characters, invisible characters, and characters that change the direction of writing. They become
/// escapes like `\n` and `\u{1b}`.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_plain(char) {
            plain.push(char);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(plain, "{}", char.escape_default());
        }
    }
    Cow::Owned(plain)
}

/// Decodes bytes as UTF-8.
///
/// # Errors
///
/// A noun phrase that describes the content, for an error of the form "expected a board, found …". Content with a zero
/// byte counts as UTF-16, because no valid input of the program has a zero byte. Some systems write UTF-16 by default.
pub fn utf8(bytes: &[u8]) -> Result<&str, String> {
    let is_utf16 = bytes.contains(&0) || bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    match std::str::from_utf8(bytes) {
        _ if is_utf16 => Err("text in UTF-16; convert it to UTF-8 with iconv -f UTF-16 -t UTF-8".to_owned()),
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.valid_up_to();
            Err(format!("bytes that are not UTF-8: byte {} is {:#04x}", at + 1, bytes[at]))
        }
    }
}

/// Iterates over an error and its causes.
pub fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// Formats an error with its causes on one line. Omits a cause if the text already ends with it.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Formats only the last cause of an error.
#[must_use]
pub fn last_cause(error: &(dyn std::error::Error + 'static)) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

/// Quotes and escapes at most the first `most` characters of a text. An ellipsis marks omitted text.
#[must_use]
pub fn quoted(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// Escapes a text as [`plain`] does, and cuts it to at most `most` bytes. An ellipsis marks omitted text.
#[must_use]
pub fn plain_words(text: &str, most: usize) -> String {
    // An escape is at least as long as its character. So characters after this boundary could not be in the result.
    let plain = plain(&text[..text.floor_char_boundary(most.saturating_add(1))]);
    if plain.len() <= most {
        return plain.into_owned();
    }
    const ELLIPSIS: &str = "…";
    let end = plain.floor_char_boundary(most.saturating_sub(ELLIPSIS.len()));
    format!("{}{ELLIPSIS}", &plain[..end])
}

fn is_plain(char: char) -> bool {
    let is_hidden = matches!(char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !char.is_control() && !is_hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_other_than_utf8_are_named() {
        let utf16 =
            |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        for wrong in [
            utf16("\u{feff}2 2 / 0 0\n", u16::to_le_bytes),
            utf16("\u{feff}2 2 / 0 0\n", u16::to_be_bytes),
            utf16("2 2", u16::to_le_bytes),
        ] {
            assert!(utf8(&wrong).unwrap_err().contains("UTF-16"), "{wrong:?}");
        }
        assert_eq!(utf8(b"2 \xfc").unwrap_err(), "bytes that are not UTF-8: byte 3 is 0xfc");
        assert_eq!(utf8("\u{feff}2 \u{e4}".as_bytes()), Ok("\u{feff}2 \u{e4}"));
    }

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in [
            ("disk full: /tmp", "disk full: /tmp"),
            ("4×3 Größe ≤ 2²", "4×3 Größe ≤ 2²"),
            ("\x1b[31mred\x1b[0m\x07", "\\u{1b}[31mred\\u{1b}[0m\\u{7}"),
            ("one\ntwo\r\tthree\0", "one\\ntwo\\r\\tthree\\u{0}"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("a\u{202e}b\u{2066}c\u{feff}", "a\\u{202e}b\\u{2066}c\\u{feff}"),
        ] {
            assert_eq!(plain(text), shown);
        }
        assert!(matches!(plain("as it was"), Cow::Borrowed(_)));
    }

    #[derive(Debug)]
    struct Failed(&'static str, Option<Box<Failed>>);

    impl std::fmt::Display for Failed {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Failed {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn causes_are_printed_once() {
        let repeated = Failed("connect: refused", Some(Box::new(Failed("refused", None))));
        assert_eq!(with_causes(&repeated), "connect: refused");
        let outer = Failed("cannot", Some(Box::new(repeated)));
        assert_eq!(with_causes(&outer), "cannot: connect: refused");
        assert_eq!(last_cause(&outer), "refused");
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(plain_words("12345", 5), "12345");
        assert_eq!(plain_words("123456", 5), "12…");
        assert_eq!(plain_words("ääää", 5), "ä…");
        for (text, most) in [("ä".repeat(3000), 2048), ("\x1b".repeat(3000), 2048), ("x".repeat(9), 2)] {
            let words = plain_words(&text, most);
            assert!(words.len() <= most.max(3), "{}", words.len());
        }
    }
}
