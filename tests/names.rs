//! Names: a public name belongs to one type of the workspace, and tests name log messages and expected texts that exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::common::events;

/// Names that many similar modules declare, for example for the options of a subcommand.
const ONE_A_MODULE: [&str; 1] = ["Args"];

/// Files and folders that replace others if a feature is off.
const STAND_INS: [&str; 2] = ["cli/src/without_net", "storage/src/store/absent.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The folders of the workspace's crates, without crates of tests.
fn members() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let list = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    let names = list.split(',').map(|name| name.trim().trim_matches('"').to_owned());
    names.filter(|name| !name.is_empty() && !name.starts_with("tests/")).collect()
}

/// Adds the source files of a folder to `found`, without files of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in super::common::files(folder) {
        let is_stand_in = STAND_INS.iter().any(|stand_in| path == root().join(stand_in));
        if is_stand_in || path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The public types that a source text declares outside its tests.
fn public_types(text: &str) -> impl Iterator<Item = &str> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    product.lines().filter_map(|line| {
        let (kind, rest) = line.trim_start().strip_prefix("pub ")?.split_once(' ')?;
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        // The types of a macro have no names in its definition.
        (["struct", "enum", "union", "trait", "type"].contains(&kind) && !name.is_empty()).then_some(name)
    })
}

#[test]
fn no_two_public_types_have_one_name() {
    let mut files = Vec::new();
    members().iter().for_each(|member| sources(&root().join(member).join("src"), &mut files));
    let mut declared: BTreeMap<String, Vec<&Path>> = BTreeMap::new();
    for file in &files {
        for name in public_types(&fs::read_to_string(file).unwrap()) {
            declared.entry(name.to_owned()).or_default().push(file);
        }
    }
    assert!(declared.len() > 300, "only {} types were found", declared.len());
    declared.retain(|name, files| files.len() > 1 && !ONE_A_MODULE.contains(&name.as_str()));
    assert!(declared.is_empty(), "rename all but one: {declared:#?}");

    let text = "pub struct A<T>(T);\npub(crate) enum B {}\n    pub type C = u8;\nstruct D;\n";
    let text = format!("{text}#[cfg(test)]\nmod tests {{\n    pub struct E;\n}}");
    assert_eq!(public_types(&text).collect::<Vec<_>>(), ["A", "C"]);
}

/// Without this check, a test for the absence of a message could not fail after a new wording of the message.
#[test]
fn messages_that_tests_know_are_logged() {
    let mut files = Vec::new();
    members().iter().for_each(|member| sources(&root().join(member).join("src"), &mut files));
    let sources: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for message in events::ALL {
        assert!(sources.iter().any(|text| text.contains(message)), "no source has the message {message:?}");
    }
}

/// Without this check, a test that needs a server could lack its expected text until a run with a server.
#[test]
fn tests_and_expected_texts_have_the_same_sections() {
    let named = Regex::new(r#"(?:assert_section|prints)\(\s*"([^"]+)""#).unwrap();
    let mut count = 0;
    for file in super::common::files(&root().join("tests/snapshots")) {
        if !file.is_file() || file.file_name().is_some_and(|name| name == "help.txt") {
            continue;
        }
        let test = root().join("tests").join(file.file_stem().unwrap()).with_extension("rs");
        let source = fs::read_to_string(&test).unwrap_or_else(|_| panic!("no test uses {}", file.display()));
        let expected = fs::read_to_string(&file).unwrap();
        let sections: Vec<&str> = expected.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        for name in &sections {
            assert!(source.contains(&format!("{name:?}")), "{} does not name {name:?}", test.display());
        }
        for (_, [name]) in named.captures_iter(&source).map(|found| found.extract()) {
            assert!(sections.contains(&name), "{} lacks the section {name:?}", file.display());
        }
        count += sections.len();
    }
    assert!(count > 100, "only {count} sections were found");
}
