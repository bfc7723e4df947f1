//! Escapes text for HTML and SVG.

use exact2048_text::plain;

/// Escapes a text for an element or an attribute, so that markup and invisible characters appear as text.
pub(crate) fn escaped(text: &str) -> String {
    let plain = plain(text);
    let mut escaped = String::with_capacity(plain.len());
    for char in plain.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_shown() {
        assert_eq!(escaped("<b a='1'>&\"</b>\n"), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;&lt;/b&gt;\\n");
        assert_eq!(escaped("3×3 ≤ 4"), "3×3 ≤ 4");
    }
}
