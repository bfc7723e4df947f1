//! The program accepts the commands in README, in the guides and in help texts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{exact2048, files};
use crate::display::{examples, subcommands};

/// Texts that end a command in a shell.
const ENDS: [&str; 5] = [" | ", " > ", " < ", " &", " #"];

/// The commands of the program in the code blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2).map(|block| block.replace("\\\n", " "));
    let lines = blocks.flat_map(|block| block.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>());
    let command = |line: String| {
        let line = line.strip_prefix("$ ").unwrap_or(&line);
        let args = line.strip_prefix("exact2048 ").or_else(|| line.strip_prefix("cargo run --release -- "));
        args.map(|args| format!("exact2048 {args}"))
    };
    lines.filter_map(command).collect()
}

/// Checks that the program accepts a command. A shell splits the command. `--help` follows the options, so wrong options
/// cause errors first.
fn is_understood(shown: &str) -> Result<(), String> {
    let end = ENDS.iter().filter_map(|end| shown.find(end)).min().unwrap_or(shown.len());
    let shown = &shown[..end];
    let script = format!("exact2048() {{ \"$PROGRAM\" \"$@\" --help > /dev/null; }}\n{shown}");
    let mut shell = Command::new("sh");
    shell.args(["-ec", &script]).env("PROGRAM", env!("CARGO_BIN_EXE_exact2048")).stdin(Stdio::null());
    let done = shell.output().unwrap();
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("{shown}: {}", String::from_utf8_lossy(&done.stderr)))
    }
}

#[test]
fn commands_in_guides_and_help_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let folders =
        ["docs", "docs/results", "docs/dev", "scripts/k8s", "scripts/slurm"].map(|folder| root.join(folder));
    let pages =
        folders.iter().flat_map(|folder| files(folder)).filter(is_page).chain([root.join("README.md")]);
    let mut shown: Vec<String> =
        pages.flat_map(|page| commands(&fs::read_to_string(page).unwrap())).collect();
    assert!(shown.len() > 50, "the guides show {} commands", shown.len());
    for name in subcommands() {
        let of_help = examples(&exact2048([&name, "--help"]).exits(0).stdout);
        shown.extend(
            of_help.iter().map(|line| line.trim().to_owned()).filter(|line| line.starts_with("exact2048 ")),
        );
    }
    shown.sort();
    shown.dedup();
    let wrong: Vec<String> = shown.iter().filter_map(|shown| is_understood(shown).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
