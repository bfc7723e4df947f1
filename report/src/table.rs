//! Tables of a page.

use std::fmt::Write;

use crate::escape::escaped;

/// Approximate maximum number of rows of a table of layers.
const MOST_ROWS: usize = 200;

/// A table. The first column names the rows. The other columns are numbers, unless the table lists facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Whether all columns contain words.
    pub is_of_words: bool,
}

impl Numbers {
    pub fn new(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        Self { header, rows: rows.into_iter().collect(), is_of_words: false }
    }

    pub fn html(&self) -> String {
        let mut html = String::new();
        let class = match (self.is_of_words, self.header.is_empty()) {
            (false, _) => "",
            (true, false) => " class=\"words\"",
            // Narrow screens show each fact below its name.
            (true, true) => " class=\"words facts\"",
        };
        let _ = writeln!(html, "<div class=\"wide\"><table{class}>");
        if !self.header.is_empty() {
            let cells = self.header.iter().map(|name| format!("<th scope=\"col\">{}</th>", escaped(name)));
            let _ = writeln!(html, "<thead><tr>{}</tr></thead>", cells.collect::<String>());
        }
        html.push_str("<tbody>\n");
        for row in &self.rows {
            let cell = |(nth, cell): (usize, &String)| match nth {
                0 => format!("<th scope=\"row\">{}</th>", escaped(cell)),
                _ => format!("<td>{}</td>", escaped(cell)),
            };
            let _ = writeln!(html, "<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>());
        }
        html + "</tbody></table></div>\n"
    }
}

/// Picks evenly spread items, including the first and the last, or all of a few items. Also returns the step between the
/// picked items.
pub(crate) fn some_of<T>(all: &[T]) -> (Vec<&T>, usize) {
    let step = all.len().div_ceil(MOST_ROWS).max(1);
    let mut some: Vec<&T> = all.iter().step_by(step).collect();
    if let Some(last) = all.last().filter(|_| !all.is_empty() && !(all.len() - 1).is_multiple_of(step)) {
        some.push(last);
    }
    (some, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tables_have_some_rows() {
        assert_eq!(some_of(&[1, 2, 3]), (vec![&1, &2, &3], 1));
        let all: Vec<u32> = (0..1021).collect();
        let (some, step) = some_of(&all);
        assert_eq!((some.len(), step, some[1]), (171, 6, &6));
        assert_eq!(some.last(), Some(&&1020));
        assert_eq!(some_of::<u32>(&[]), (vec![], 1));
    }
}
