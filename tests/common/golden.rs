//! Golden numbers: tables in `tests/golden`. Each table names its source.

use std::collections::HashMap;
use std::path::Path;

/// One row of a table, by the names of its columns.
pub struct Row(HashMap<String, String>);

impl Row {
    pub fn text(&self, column: &str) -> &str {
        self.0.get(column).unwrap_or_else(|| panic!("no column {column}"))
    }

    /// A count; commas between thousands are allowed.
    pub fn whole(&self, column: &str) -> u64 {
        self.text(column).replace(',', "").parse().unwrap()
    }

    pub fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap()
    }
}

/// The rows of `tests/golden/NAME.tsv`. Comments begin with `#`, and the first other line names the columns.
pub fn table(name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name).with_extension("tsv");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# Source: "), "{} does not say where it is from", path.display());
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let columns: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!(cells.len(), columns.len(), "{line:?} in {}", path.display());
        Row(columns.iter().zip(cells).map(|(column, cell)| (column.to_string(), cell.to_owned())).collect())
    };
    lines.map(row).collect()
}
