//! The names of public types: each names one thing, and is made of words that `docs/glossary.md` has or that are plain.
//! And the words of libraries: which options the program has, it alone knows.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Words of plain English, of programming and of networks that need no entry in the glossary. Sorted, and each is used.
const PLAIN: &str = "\
    absorption accept activity alive answer any arg arithmetic arrival ask away back between bit bound broken \
    buffer by byte call capacity carlo chain check client codec combo command connect connection content corner \
    count cycle decide dense dial dir display dot draw drop end engine error estimate eta evaluate evaluation \
    exact examine expectimax explicit expose external fact failure file finder float format fraction free game \
    gather greedy id info join keep key known lack least legal limit linear list log many marks memory method \
    minimax minimise model monitor monte name need net next no not number option own pack pair params parse \
    perfect permit play pool print problem progress protection protocol random rarely rate read reason refresh \
    refuse remedy remote reply request room sample seldom send serve setting short show shown solution solve \
    source sparse spec start stats status stop storage stream symmetric time told too took turn type unmet \
    unnamed unreachable unsealed until up use vector want watch weigh win with won worst write";

/// Names that are declared once for each of many modules of the same shape: the options of a subcommand.
const ONE_A_MODULE: [&str; 1] = ["Args"];

/// Files and folders that are compiled in place of others, where a feature is off.
const STAND_INS: [&str; 2] = ["cli/src/without_net", "storage/src/store/absent.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folders of the workspace's crates, without those of tests.
fn members() -> Vec<String> {
    let manifest = read(&root().join("Cargo.toml"));
    let list = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    list.split(',')
        .map(|name| name.trim().trim_matches('"').to_owned())
        .filter(|name| !name.is_empty() && !name.starts_with("tests/"))
        .collect()
}

/// All source files below a folder, without those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if is_test || STAND_INS.iter().any(|stand_in| path == root().join(stand_in)) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Who sees a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Everybody.
    Everywhere,
    /// Other files of its crate at least: `pub(crate)` and `pub(super)` count as well.
    InItsCrate,
}

/// The types that a source text declares outside its tests, as far as others see them.
fn types(text: &str, seen: Seen) -> Vec<&str> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let declared = product.lines().filter_map(|line| {
        let (visibility, rest) = line.trim_start().strip_prefix("pub")?.split_once(' ')?;
        if seen == Seen::Everywhere && !visibility.is_empty() {
            return None;
        }
        let (kind, rest) = rest.split_once(' ')?;
        ["struct", "enum", "union", "trait", "type"].contains(&kind).then_some(rest)
    });
    declared
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
        // What a macro declares has its name where that is used.
        .filter(|name| !name.is_empty())
        .collect()
}

/// The lines of a source text outside its tests and comments that name an option of a command line.
fn options(text: &str) -> Vec<&str> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names_option = |line: &&str| {
        line.match_indices("--").any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + 2..].chars().next();
            before.is_none_or(|c| " \"'`(".contains(c)) && after.is_some_and(|c| c.is_ascii_lowercase())
        })
    };
    code.filter(names_option).collect()
}

/// Where each public type of the workspace is declared.
fn declarations() -> BTreeMap<String, Vec<PathBuf>> {
    declarations_of(&members(), Seen::Everywhere)
}

/// Where each type of some crates is declared that others see.
fn declarations_of(crates: &[String], seen: Seen) -> BTreeMap<String, Vec<PathBuf>> {
    let mut files = Vec::new();
    for member in crates {
        sources(&root().join(member).join("src"), &mut files);
    }
    let mut declared: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in files {
        for name in types(&read(&file), seen) {
            let place = file.strip_prefix(root()).unwrap().to_path_buf();
            declared.entry(name.to_owned()).or_default().push(place);
        }
    }
    declared
}

/// The words of a name in lower case: `TlsFiles` has `tls` and `files`. Numbers are none.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let chars: Vec<char> = name.chars().collect();
    for (at, &char) in chars.iter().enumerate() {
        let is_small = |at: usize| chars.get(at).is_some_and(|char| char.is_lowercase());
        if char.is_uppercase() && (at == 0 || is_small(at - 1) || is_small(at + 1)) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| char.is_alphabetic()) {
            word.extend(char.to_lowercase());
        }
    }
    words
}

/// A word and what it may be a form of: `retried` of `retry`, `running` of `run`.
fn forms(word: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([word.to_owned()]);
    for (ending, instead) in [
        ("s", ""),
        ("es", ""),
        ("ies", "y"),
        ("ied", "y"),
        ("d", ""),
        ("ed", ""),
        ("r", ""),
        ("er", ""),
        ("ers", ""),
        ("ing", ""),
        ("ing", "e"),
        ("ima", "imum"),
        ("trices", "trix"),
    ] {
        let Some(stem) = word.strip_suffix(ending) else { continue };
        let stem = format!("{stem}{instead}");
        let mut letters = stem.chars().rev();
        // As in `planner`.
        if let (Some(last), Some(before)) = (letters.next(), letters.next())
            && last == before
        {
            forms.insert(stem[..stem.len() - 1].to_owned());
        }
        forms.insert(stem);
    }
    forms
}

/// The terms of each table of the glossary, in its order.
fn terms(glossary: &str) -> Vec<Vec<String>> {
    let mut tables: Vec<Vec<String>> = Vec::new();
    for line in glossary.lines() {
        let Some((term, _)) = line.strip_prefix("| ").and_then(|rest| rest.split_once(" | ")) else {
            continue;
        };
        match term {
            "Word" => tables.push(Vec::new()),
            _ => tables.last_mut().unwrap().push(term.to_lowercase()),
        }
    }
    tables
}

fn glossary() -> Vec<Vec<String>> {
    terms(&read(&root().join("docs/glossary.md")))
}

/// The words that terms are made of.
fn words_of(terms: &[String]) -> BTreeSet<String> {
    let words = terms.iter().flat_map(|term| term.split(|c: char| !c.is_alphabetic()));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The words of a name that nothing explains.
fn unknown(name: &str, known: &BTreeSet<String>) -> Vec<String> {
    words(name).into_iter().filter(|word| forms(word).is_disjoint(known)).collect()
}

#[test]
fn no_two_public_types_have_one_name() {
    let declared = declarations();
    assert!(declared.len() > 300, "only {} types were found", declared.len());
    let twice = declared_twice(&declared);
    assert!(twice.is_empty(), "rename all but one, by what they are: {twice:#?}");
}

fn declared_twice(declared: &BTreeMap<String, Vec<PathBuf>>) -> Vec<(&String, &Vec<PathBuf>)> {
    let is_one_a_module = |name: &str| ONE_A_MODULE.contains(&name);
    declared.iter().filter(|(name, places)| places.len() > 1 && !is_one_a_module(name)).collect()
}

#[test]
fn no_two_types_that_files_of_a_crate_share_have_one_name() {
    for member in members() {
        let declared = declarations_of(std::slice::from_ref(&member), Seen::InItsCrate);
        let twice = declared_twice(&declared);
        assert!(twice.is_empty(), "{member}: rename all but one, by what they are: {twice:#?}");
    }
}

#[test]
fn names_of_public_types_are_made_of_known_words() {
    let known: BTreeSet<String> = words_of(&glossary().concat())
        .into_iter()
        .chain(PLAIN.split_whitespace().map(str::to_owned))
        .collect();
    let mut unexplained = Vec::new();
    for (name, places) in declarations() {
        for word in unknown(&name, &known) {
            unexplained.push(format!("`{word}` in {name} ({})", places[0].display()));
        }
    }
    assert!(
        unexplained.is_empty(),
        "use a word of docs/glossary.md, or explain this one there: {unexplained:#?}"
    );
}

/// So that the list does not become a place to hide words in.
#[test]
fn plain_words_are_used_sorted_and_not_in_the_glossary() {
    let used: BTreeSet<String> =
        declarations().keys().flat_map(|name| words(name)).flat_map(|word| forms(&word)).collect();
    let glossary = words_of(&glossary().concat());
    let plain: Vec<&str> = PLAIN.split_whitespace().collect();
    assert!(plain.is_sorted_by(|a, b| a < b), "the list is not sorted, or has a word twice");
    let needless: Vec<_> =
        plain.iter().filter(|&&word| !used.contains(word) || glossary.contains(word)).collect();
    assert!(needless.is_empty(), "no name needs {needless:?}");
}

#[test]
fn the_glossary_is_sorted_and_has_no_term_twice() {
    for table in glossary() {
        let unsorted: Vec<_> = table.windows(2).filter(|pair| pair[0] >= pair[1]).collect();
        assert!(unsorted.is_empty(), "{unsorted:?}");
    }
}

/// An error of a library says what helps; which option that is, the program adds.
#[test]
fn libraries_name_no_options() {
    let mut files = Vec::new();
    for library in members().iter().filter(|member| *member != "cli") {
        sources(&root().join(library).join("src"), &mut files);
    }
    let mut named = Vec::new();
    for file in files {
        let text = read(&file);
        named.extend(options(&text).into_iter().map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert!(named.is_empty(), "say it in cli/src/remedy.rs: {named:#?}");
    let text = "a(\"give --memory\");\n// --not\nb(x --y);\nc(\"----\");\n    more --threads\",";
    assert_eq!(options(text), ["a(\"give --memory\");", "b(x --y);", "    more --threads\","]);
}

#[test]
fn words_of_names_are_told_apart_and_unknown_ones_found() {
    assert_eq!(words("TlsFiles"), ["tls", "files"]);
    assert_eq!(words("HTTPServer2"), ["http", "server"]);
    let text = "pub struct A<T>(T);\npub(crate) enum B {}\n    pub type C = u8;\nstruct D;";
    assert_eq!(types(text, Seen::Everywhere), ["A", "C"]);
    assert_eq!(types(text, Seen::InItsCrate), ["A", "B", "C"]);
    let text = "pub enum A {\n}\n#[cfg(test)]\nmod tests {\n    pub struct B;\n}";
    assert_eq!(types(text, Seen::Everywhere), ["A"]);
    let known = words_of(&["run, plan".to_owned(), "index map".to_owned()]);
    assert_eq!(unknown("PlannerMaps", &known), [] as [&str; 0]);
    assert_eq!(unknown("RunningGizmo", &known), ["gizmo"]);
    assert_eq!(terms("| Word | Meaning |\n|---|---|\n| run | a |\n| map | b |"), [["run", "map"]]);
}
